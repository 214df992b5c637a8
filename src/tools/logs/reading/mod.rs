//! Reads logs for all subcommands: the named files, or the log of the policy with its rotated files. Events
//! of several hosts come in the order of their times.

mod source;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use self::source::Source;
pub(crate) use self::source::{end_of_journal, follow};
use super::{
    parsers::{Log as Lines, Parsers, Skipped},
    statistics::without_member,
};
use crate::{
    cli::{HistoryArguments, Span},
    launch::{
        Situation, failed,
        log::event::{Event, Kind},
    },
    policy::{Log, LogTarget, Pattern, Policy, Subject, parse_duration},
    sys::{accounts, errno_of},
    text::{Clock, Error, ExitStatus, Show, count, stream, system_time, visible},
};

/// The logs to read: for each host its files, the oldest first.
pub(crate) struct Logs(Vec<VecDeque<Source>>);

/// What was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    /// How many files rotation had made.
    pub(crate) rotated: usize,
    /// Files that could not be read.
    pub(crate) unreadable: Vec<PathBuf>,
}

impl Covered {
    /// In words, if more than the named files were read.
    pub(crate) fn to_text(&self) -> Option<String> {
        let Self { rotated, unreadable } = self;
        let files = match rotated {
            0 => return None,
            1 => "1 rotated file".to_owned(),
            more => format!("{} rotated files", count(*more as u64)),
        };
        let without = match unreadable.len() {
            0 => String::new(),
            missing => format!(", {} unreadable", count(missing as u64)),
        };
        Some(format!("the log and {files}{without}"))
    }
}

impl Logs {
    /// The logs that were named, or the one of the policy.
    pub(crate) fn of(situation: &Situation, files: &[PathBuf], filter: &Filter) -> Result<Self, Error> {
        let named = |file: &PathBuf| VecDeque::from([Source::of_argument(&situation.directory, file)]);
        Ok(Self(match files {
            [] => vec![Source::of_policy(&situation.load_policy()?, &situation.host, filter)?.into()],
            files => files.iter().map(named).collect(),
        }))
    }

    /// Calls `see` for each event that the filter lets through. It returns events that it no longer needs:
    /// the caller can reuse their memory.
    pub(crate) fn each(
        self,
        mut filter: Filter,
        mut see: impl FnMut(Event) -> Result<Option<Event>, Error>,
    ) -> Result<Covered, Error> {
        let parsers = Parsers::start(self.0.len());
        let mut covered = Covered::default();
        let mut logs = Vec::new();
        // The log with the earliest event; of several, the one that was named first.
        let mut heads: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for sources in self.0 {
            let mut log = OneLog { sources, current: None };
            heads.extend(log.time(&parsers, &mut covered)?.map(|time| Reverse((time, logs.len()))));
            logs.push(log);
        }
        while let Some(Reverse((_, number))) = heads.pop() {
            let log = &mut logs[number];
            if let Some((_, lines)) = &mut log.current
                && let Some(event) = lines.take()
            {
                lines.give_back(filter.pass(event, &mut see)?);
            }
            heads.extend(log.time(&parsers, &mut covered)?.map(|time| Reverse((time, number))));
        }
        Ok(covered)
    }
}

/// The files of one host; one of them is being read.
struct OneLog {
    sources: VecDeque<Source>,
    current: Option<(Source, Lines<Box<dyn io::Read>>)>,
}

impl OneLog {
    /// When the next event happened; none at the end of the last file.
    fn time(&mut self, parsers: &Parsers, covered: &mut Covered) -> Result<Option<u64>, Error> {
        loop {
            if self.current.is_none() {
                let Some(mut source) = self.sources.pop_front() else { return Ok(None) };
                covered.rotated += usize::from(source.is_rotated());
                match source.open() {
                    Ok(log) => self.current = Some((source, Lines::new(log))),
                    Err(error) => cannot_be_read(&source, &error, covered)?,
                }
                continue;
            }
            let Some((source, lines)) = &mut self.current else { return Ok(None) };
            match lines.time(parsers) {
                Ok(Some(time)) => return Ok(Some(time)),
                Ok(None) => {
                    complain_of(lines.skipped(), source.name());
                    let source = self.current.take().map(|(source, _)| source);
                    source.map_or(Ok(()), Source::close)?;
                }
                Err(error) => {
                    cannot_be_read(source, &error, covered)?;
                    self.current = None;
                }
            }
        }
    }
}

/// A log cannot be read. If it is a rotated one, the others are still shown.
fn cannot_be_read(source: &Source, error: &io::Error, covered: &mut Covered) -> Result<(), Error> {
    let reason = match (error.raw_os_error(), error.kind()) {
        (Some(_), _) => errno_of(error).desc().to_owned(),
        (None, io::ErrorKind::Unsupported) => error.to_string(),
        // Any other error comes from decompression.
        (None, _) => "it is compressed, and damaged or cut off".to_owned(),
    };
    let text = format!("the log {} cannot be read: {reason}", source.name().shown());
    if !source.is_rotated() {
        return Err(Error::new(ExitStatus::System, text));
    }
    covered.unreadable.push(source.name().to_owned());
    stream::complain(&format!("rungate: {text}"));
    Ok(())
}

/// Calls `see` for each event of a span of time.
pub(crate) fn each_of(
    situation: &Situation,
    files: &[PathBuf],
    span: &Span,
    see: &mut dyn FnMut(Event) -> Option<Event>,
) -> Result<Covered, Error> {
    let filter = Filter::within(span)?;
    Logs::of(situation, files, &filter)?.each(filter, |event| Ok(see(event)))
}

/// The first log of JSON lines that a layer of the policy asks for, as this host writes it.
pub(crate) fn file_of<'a>(policy: &'a Policy, host: &OsStr) -> Option<(PathBuf, &'a Log)> {
    policy.logs().find_map(|(_, log)| match &log.to {
        LogTarget::File(file) => Some((file.path(host), log)),
        _ => None,
    })
}

/// The repositories that have one table for all launches.
pub(crate) fn single_tables(policy: &Policy) -> HashSet<String> {
    let is_single = |path: &dyn Fn(&Path) -> Option<PathBuf>| {
        let path = [path(Path::new("/1")), path(Path::new("/2"))];
        path[0].is_some() && path[0] == path[1]
    };
    let repositories = policy.repositories().iter();
    let single = repositories.filter(|known| is_single(&|runtime| known.fixed_path(runtime)));
    single.map(|known| known.shown_name().to_owned()).collect()
}

/// Says which lines of a log were left out.
pub(crate) fn complain_of(skipped: Skipped, path: &Path) {
    let complain = |count: usize, one: &str, more: &str| {
        let lines = match count {
            0 => return,
            1 => format!("1 line is {one}"),
            count => format!("{count} lines are {more}"),
        };
        stream::complain(&format!("rungate: {}: {lines}", visible(path)));
    };
    complain(skipped.others, "no event of rungate", "no events of rungate");
    complain(
        skipped.too_long,
        "too long for an event, and was skipped",
        "too long for events, and were skipped",
    );
}

// Selects events by the options of the caller.

/// The conditions of an event to count.
#[derive(Default)]
pub(crate) struct Filter {
    /// In milliseconds since 1970.
    since: Option<u64>,
    /// The same; events at this moment do not count any more.
    until: Option<u64>,
    uid: Option<u32>,
    command: Option<Pattern>,
    about: Option<About>,
}

impl Filter {
    /// The caller's request. `titles` says how the repositories of an event are shown, with their members.
    pub(crate) fn of(
        arguments: &HistoryArguments,
        titles: impl Fn(&Event) -> Vec<String> + 'static,
    ) -> Result<Self, Error> {
        let command = arguments.command.as_deref().map(|text| Pattern::new(text, Subject::Path));
        Ok(Self {
            uid: arguments.user.as_deref().map(uid_of).transpose()?,
            command: command.transpose().map_err(|wrong| usage(format!("--command: {wrong}")))?,
            about: arguments.repository.clone().map(|repository| About::new(repository, Box::new(titles))),
            ..Self::within(&arguments.span)?
        })
    }

    /// Everything within a span of time.
    pub(crate) fn within(span: &Span) -> Result<Self, Error> {
        Ok(Self {
            since: span.since.as_deref().map(|text| moment("--since", text)).transpose()?,
            until: span.until.as_deref().map(|text| moment("--until", text)).transpose()?,
            ..Self::default()
        })
    }

    /// Whether every event counts.
    pub(crate) fn is_open(&self) -> bool {
        let Self { since, until, uid, command, about } = self;
        since.is_none() && until.is_none() && uid.is_none() && command.is_none() && about.is_none()
    }

    /// In milliseconds since 1970.
    pub(crate) fn since(&self) -> Option<u64> {
        self.since
    }

    pub(crate) fn until(&self) -> Option<u64> {
        self.until
    }

    /// Calls `see` with the events that count after this one: often the event itself, and sometimes an
    /// earlier one. Releases an event that is no longer needed.
    pub(crate) fn pass(&mut self, event: Event, see: &mut See<'_>) -> Result<Option<Event>, Error> {
        let is_wanted = self.since.is_none_or(|since| event.time >= since)
            && self.until.is_none_or(|until| event.time < until)
            && self.uid.is_none_or(|uid| event.uid == uid)
            && self.command.as_ref().is_none_or(|command| command.matches(event.command.as_bytes()));
        match &mut self.about {
            _ if !is_wanted => Ok(Some(event)),
            Some(about) => about.pass(event, see),
            None => see(event),
        }
    }
}

/// Called for each event; returns one that is no longer needed.
type See<'s> = dyn FnMut(Event) -> Result<Option<Event>, Error> + 's;

/// The host and the number of a process.
type Process = (String, i32);

/// Under which names reports show what an event names.
type Titles = dyn Fn(&Event) -> Vec<String>;

/// A repository. Waits and ends do not name it: they belong to a start.
struct About {
    repository: String,
    titles: Box<Titles>,
    waited: HashMap<Process, Event>,
    runs: HashSet<Process>,
}

impl About {
    fn new(repository: String, titles: Box<Titles>) -> Self {
        Self { repository, titles, waited: HashMap::new(), runs: HashSet::new() }
    }

    fn pass(&mut self, event: Event, see: &mut See<'_>) -> Result<Option<Event>, Error> {
        let process = (event.host.clone(), event.pid);
        if event.event == Kind::Waited {
            return Ok(self.waited.insert(process, event));
        }
        let waited = self.waited.remove(&process);
        if event.event == Kind::Ended {
            return if self.runs.remove(&process) { see(event) } else { Ok(Some(event)) };
        }
        let is_it = |name: &str| name == self.repository || without_member(name) == self.repository;
        let is_member = || self.repository.ends_with(']') && (self.titles)(&event).contains(&self.repository);
        if !event.names_of_repositories().any(is_it) && !is_member() {
            return Ok(Some(event));
        }
        if event.event == Kind::Started {
            self.runs.insert(process);
        }
        waited.map_or(Ok(None), &mut *see)?;
        see(event)
    }
}

/// In milliseconds since 1970: a moment, a day, or a length of time before now.
fn moment(option: &str, text: &str) -> Result<u64, Error> {
    let clock = Clock::now();
    let ago = || SystemTime::now().checked_sub(parse_duration(text.trim_end_matches(" ago"))?);
    let read = clock.read(text).or_else(|| clock.day(text)).map(system_time).or_else(ago);
    let since_1970 = read.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    since_1970.and_then(|time| u64::try_from(time.as_millis()).ok()).ok_or_else(|| {
        usage(format!(
            "{option} takes a time such as 14:02, yesterday, 2026-11-20, \"2026-11-20 14:02\" or 7d, not \"{}\"",
            text.shown()
        ))
    })
}

/// A number may belong to a deleted account.
fn uid_of(user: &str) -> Result<u32, Error> {
    if let Ok(uid) = user.parse() {
        return Ok(uid);
    }
    let account = accounts::account_of_name(user)
        .map_err(|failure| Error::new(ExitStatus::System, failed(failure).to_string()))?;
    account.map(|account| account.uid).ok_or_else(|| usage(format!("there is no user \"{}\"", user.shown())))
}

fn usage(text: String) -> Error {
    Error::new(ExitStatus::Usage, text)
}
