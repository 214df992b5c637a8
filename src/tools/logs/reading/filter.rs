//! Selects events by the options of the caller.

use std::{
    collections::{HashMap, HashSet},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    cli::{HistoryArguments, Span},
    launch::{
        log::event::{Event, Kind},
        situation::failed,
    },
    policy::{Pattern, Subject, parse_duration},
    sys::accounts,
    text::{
        clock::{Clock, system_time},
        error::Error,
        escape::Show,
        exit_status::ExitStatus,
    },
};

/// The conditions of an event to count.
#[derive(Default)]
pub(crate) struct Filter {
    /// In milliseconds since 1970.
    since: Option<u64>,
    /// The same; what happens at this moment does not count any more.
    until: Option<u64>,
    uid: Option<u32>,
    command: Option<Pattern>,
    about: Option<About>,
}

impl Filter {
    /// The caller's request.
    pub(crate) fn of(arguments: &HistoryArguments) -> Result<Self, Error> {
        let command = arguments.command.as_deref().map(|text| Pattern::new(text, Subject::Path));
        Ok(Self {
            uid: arguments.user.as_deref().map(uid_of).transpose()?,
            command: command.transpose().map_err(|wrong| usage(format!("--command: {wrong}")))?,
            about: arguments.repository.clone().map(About::new),
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

    /// Calls `see` with what counts now that this event has come: often it itself, and sometimes one that
    /// came before. Releases an event that is no longer needed.
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

/// A repository. Waits and ends do not name it: they belong to a start.
struct About {
    repository: String,
    waited: HashMap<Process, Event>,
    runs: HashSet<Process>,
}

impl About {
    fn new(repository: String) -> Self {
        Self { repository, waited: HashMap::new(), runs: HashSet::new() }
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
        if !event.names_of_repositories().any(|name| name == self.repository) {
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

/// A number need not be anybody's any more.
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
