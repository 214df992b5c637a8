//! Follows logs: past events from the requested moment on, and then each event as it is written.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{Covered, Logs, cannot_be_read, complain_of, filter::Filter, source::Source};
use crate::{
    launch::{log::event::Event, situation::Situation},
    sys::regular_file,
    text::{error::Error, escape::visible, exit_status::ExitStatus, stream},
    tools::logs::{records::Reader, tail::Tail},
};

/// How often files are checked: file systems of other hosts report no change.
const INTERVAL: Duration = Duration::from_millis(200);

/// Called with the events that came together; returns whether to continue.
type Show<'s> = dyn FnMut(&[Event]) -> Result<bool, Error> + 's;

/// Calls `show` with events as they come, and once with none when the logs are open, until it wants no more.
pub(crate) fn follow(
    situation: &Situation,
    files: &[PathBuf],
    mut filter: Filter,
    show: &mut Show<'_>,
) -> Result<(), Error> {
    let logs = || Logs::of(situation, files, &filter);
    let newest: Vec<Source> = logs()?.0.into_iter().filter_map(|mut sources| sources.pop_back()).collect();
    let is_from_now = filter.since().is_none();
    let mut tails = Vec::new();
    for source in newest {
        let Some(path) = source.file() else {
            return match files {
                [] => follow_journal(source, filter, show),
                _ => Err(Error::new(ExitStatus::Usage, "--follow reads files, not standard input")),
            };
        };
        match Tail::open(path, is_from_now) {
            Ok(tail) => tails.push(tail),
            Err(error) => cannot_be_read(&source, &error, &mut Covered::default())?,
        }
    }
    for tail in tails.iter().filter(|tail| tail.id().is_none()) {
        let path = visible(tail.path());
        stream::complain(&format!("rungate: {path} does not exist yet; waiting for it"));
    }
    show(&[])?;
    let mut events = Vec::new();
    if !is_from_now {
        // They are searched after the newest file was opened. So a rotation in between loses nothing, and no
        // file is read twice.
        let mut older = logs()?;
        let is_opened = |path: &Path| {
            let id = regular_file::status_of_target(path).ok().map(|status| status.id);
            id.is_some() && tails.iter().any(|tail| tail.id() == id)
        };
        for sources in &mut older.0 {
            sources.retain(|source| source.is_rotated() && !source.file().is_some_and(is_opened));
        }
        older.each(Filter::default(), |event| {
            filter.pass(event, &mut |event| {
                events.push(event);
                Ok(None)
            })
        })?;
    }
    loop {
        let mut seen = Vec::new();
        for tail in &mut tails {
            let skipped = tail.read(&mut seen).map_err(|error| unreadable(tail, &error))?;
            complain_of(skipped, tail.path());
        }
        for event in seen {
            pass(&mut filter, event, &mut events)?;
        }
        if !events.is_empty() && !show(&events)? {
            return Ok(());
        }
        events.clear();
        thread::sleep(INTERVAL);
    }
}

fn pass(filter: &mut Filter, event: Event, events: &mut Vec<Event>) -> Result<(), Error> {
    let mut keep = |event| {
        events.push(event);
        Ok(None)
    };
    filter.pass(event, &mut keep).map(drop)
}

fn unreadable(tail: &Tail, error: &std::io::Error) -> Error {
    let why = crate::sys::failure::errno_of(error).desc();
    Error::new(ExitStatus::System, format!("the log {} cannot be read: {why}", visible(tail.path())))
}

/// The journal knows itself how to be followed.
fn follow_journal(mut source: Source, mut filter: Filter, show: &mut Show<'_>) -> Result<(), Error> {
    source.follow(&filter);
    let opened = source.open();
    let log = match opened {
        Ok(log) => log,
        Err(error) => return cannot_be_read(&source, &error, &mut Covered::default()),
    };
    show(&[])?;
    let mut events = Vec::new();
    for event in Reader::new(BufReader::new(log)) {
        match event {
            Ok(event) => pass(&mut filter, event, &mut events)?,
            Err(error) => return cannot_be_read(&source, &error, &mut Covered::default()),
        }
        if !events.is_empty() && !show(&events)? {
            return Ok(());
        }
        events.clear();
    }
    source.close()
}
