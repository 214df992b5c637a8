//! Follows logs: past events from the requested moment on, and then each event as it is written.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom},
    mem,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{Covered, Filter, Logs, cannot_be_read, complain_of, source::Source};
use crate::{
    launch::{
        log::{
            event::Event,
            form::{self, Line},
        },
        situation::Situation,
    },
    sys::{regular_file, stamp::FileId},
    text::{
        clock::Clock,
        error::{Error, ExitStatus},
        escape::visible,
        stream,
    },
    tools::logs::records::{LONGEST_LINE, Reader, Skipped},
};

/// How often files are checked: file systems of other hosts report no change.
const INTERVAL: Duration = Duration::from_millis(200);

/// Called with the events that came together; returns whether to continue.
type Show<'s> = dyn FnMut(&[Event]) -> Result<bool, Error> + 's;

/// Calls `show` with new events, and once without any when the logs are open, until it returns false.
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
        // Rotated files are searched after the newest file was opened. So a rotation in between loses
        // nothing, and no file is read twice.
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

/// journalctl can follow the journal itself.
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

// Follows a log by its name, as `tail -F` does: rotation renames or truncates the file, and launches that
// opened it before still write into the old one. A line is read when it is complete.

/// A log that is followed.
pub(crate) struct Tail {
    path: PathBuf,
    clock: Clock,
    current: Option<OpenFile>,
    /// The file that rotation renamed last.
    renamed: Option<OpenFile>,
    skipped: Skipped,
}

struct OpenFile {
    file: File,
    id: FileId,
    /// How far it was read.
    position: u64,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// Whether this line is longer than any event.
    is_too_long: bool,
}

impl Tail {
    /// Follows a log from its end, or from its beginning. The log need not exist yet.
    pub(crate) fn open(path: &Path, from_end: bool) -> io::Result<Self> {
        let mut current = OpenFile::open(path)?;
        if let Some(opened) = current.as_mut().filter(|_| from_end) {
            opened.position = opened.file.seek(SeekFrom::End(0))?;
        }
        let clock = Clock::now();
        Ok(Self { path: path.to_owned(), clock, current, renamed: None, skipped: Skipped::default() })
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The present file; none if it does not exist.
    pub(crate) fn id(&self) -> Option<FileId> {
        self.current.as_ref().map(|opened| opened.id)
    }

    /// The events since the last check, and the number of skipped lines.
    pub(crate) fn read(&mut self, events: &mut Vec<Event>) -> io::Result<Skipped> {
        self.clock = Clock::now();
        // It assumes that writers of the old file finish before any opens the new one.
        for opened in [self.renamed.as_mut(), self.current.as_mut()].into_iter().flatten() {
            opened.read(&self.clock, events, &mut self.skipped)?;
        }
        let id = regular_file::status_of_target(&self.path).ok().map(|status| status.id);
        if id.is_some()
            && id != self.id()
            && let Some(mut opened) = OpenFile::open(&self.path)?
        {
            if let Some(old) = &mut self.current {
                old.read(&self.clock, events, &mut self.skipped)?;
            }
            opened.read(&self.clock, events, &mut self.skipped)?;
            self.renamed = self.current.replace(opened);
        }
        Ok(mem::take(&mut self.skipped))
    }
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let id = regular_file::status(&file).map_err(io::Error::from)?.id;
        Ok(Some(Self { file, id, position: 0, begun: Vec::new(), is_too_long: false }))
    }

    fn read(&mut self, clock: &Clock, events: &mut Vec<Event>, skipped: &mut Skipped) -> io::Result<()> {
        // A rotation that copies the log and then cuts it off leaves the same file.
        if self.file.metadata()?.len() < self.position {
            self.position = self.file.seek(SeekFrom::Start(0))?;
            self.begun.clear();
            self.is_too_long = false;
        }
        let mut piece = vec![0; 1 << 16];
        loop {
            let length = self.file.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
            self.position = self.position.saturating_add(length as u64);
            for part in piece.get(..length).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
                let (part, is_whole) = part.strip_suffix(b"\n").map_or((part, false), |part| (part, true));
                self.is_too_long |= self.begun.len().saturating_add(part.len()) as u64 > LONGEST_LINE;
                if self.is_too_long {
                    self.begun.clear();
                } else {
                    self.begun.extend_from_slice(part);
                }
                if is_whole {
                    self.end_line(clock, events, skipped);
                }
            }
        }
    }

    fn end_line(&mut self, clock: &Clock, events: &mut Vec<Event>, skipped: &mut Skipped) {
        if mem::take(&mut self.is_too_long) {
            skipped.too_long = skipped.too_long.saturating_add(1);
            return;
        }
        match form::read(&self.begun, clock) {
            Line::Event(event) => events.push(event),
            Line::Foreign => {}
            Line::Unknown => skipped.others = skipped.others.saturating_add(1),
        }
        self.begun.clear();
    }
}
