//! Reads logs for all subcommands: the named files, or the log of the policy with its rotated files. Events
//! of several hosts come in the order of their times.

pub(crate) mod filter;
mod follow;
mod source;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet, VecDeque},
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

pub(crate) use self::follow::follow;
use self::{filter::Filter, source::Source};
use super::{
    parsers::{Log as Lines, Parsers},
    records::Skipped,
};
use crate::launch::situation::Situation;
use crate::{
    cli::Span,
    launch::log::event::Event,
    policy::{Log, LogTarget, Policy},
    sys::failure::errno_of,
    text::{
        error::Error,
        escape::{Show, visible},
        exit_status::ExitStatus,
        figures::count,
        stream,
    },
};

/// Logs that are to be read: for each host its files, the oldest first.
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
    /// In words, if it is more than what was named.
    pub(crate) fn to_text(&self) -> Option<String> {
        let Self { rotated, unreadable } = self;
        let files = match rotated {
            0 => return None,
            1 => "1 rotated file".to_owned(),
            more => format!("{} rotated files", count(*more as u64)),
        };
        let without = match unreadable.len() {
            0 => String::new(),
            missing => format!(", {} of which cannot be read", count(missing as u64)),
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
