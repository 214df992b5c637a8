//! The source of events: a file, standard input, or the journal.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    cmp::Reverse,
    collections::HashSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom},
    mem,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use super::{Covered, Filter, Logs, cannot_be_read, complain_of};
use crate::{
    launch::{
        JOURNAL, Situation,
        log::{
            event::Event,
            form::{self, Line},
        },
    },
    policy::{LayerKind, LogTarget, Policy},
    sys::{FileId, descriptor, regular_file},
    text::{Clock, Error, ExitStatus, stream, visible},
    tools::logs::parsers::{LONGEST_LINE, Reader, Skipped},
};
use flate2::read::MultiGzDecoder;

/// Where syslog daemons write messages of the facility `daemon`: on Debian and its derivatives, on other
/// systems, and on old Debian.
const FILES_OF_SYSLOG: [&str; 3] = ["/var/log/syslog", "/var/log/messages", "/var/log/daemon.log"];

pub(super) struct Source {
    name: PathBuf,
    kind: Kind,
    is_rotated: bool,
    /// Whether there are rotated files of it, so that it may be missing until the next event.
    has_rotated: bool,
    /// The file, if it was opened when it was found.
    opened: Option<io::Result<File>>,
}

enum Kind {
    File,
    Input,
    /// The output of journalctl, which runs once it is opened.
    Journal(Command, Option<Child>),
}

impl Source {
    fn new(name: PathBuf, kind: Kind) -> Self {
        Self { name, kind, is_rotated: false, has_rotated: false, opened: None }
    }

    /// A file that the caller names, `-` for standard input.
    pub(super) fn of_argument(directory: &Path, argument: &Path) -> Self {
        if argument == "-" {
            return Self::new(PathBuf::from("standard input"), Kind::Input);
        }
        Self::new(directory.join(argument), Kind::File)
    }

    /// The first log that a layer of the policy asks for, with the files that rotation made of it: the oldest
    /// first.
    pub(super) fn of_policy(policy: &Policy, host: &OsStr, filter: &Filter) -> Result<Vec<Self>, Error> {
        let newest = Self::newest_of_policy(policy, host, filter)?;
        let Kind::File = newest.kind else { return Ok(vec![newest]) };
        // The newest first: rotation, which may happen now, gives a file the name of an older one. Once they
        // are open, names do not matter any more. Beyond half of the possible number of descriptors, the
        // oldest are opened when they are read.
        let most = descriptor::raise_limit() / 2;
        let mut known = HashSet::new();
        let mut open = |source: Self| {
            let file = (known.len() < most).then(|| File::open(&source.name));
            let opened = file.as_ref().map(|file| file.as_ref().ok().and_then(|file| file.metadata().ok()));
            let status = opened.unwrap_or_else(|| source.name.metadata().ok());
            let is_new = status.is_none_or(|status| known.insert((status.dev(), status.ino())));
            is_new.then_some(Self { opened: file, ..source })
        };
        let rotated = rotated(&newest.name);
        let newest = open(Self { has_rotated: !rotated.is_empty(), ..newest });
        let is_old = |path: &PathBuf| {
            let written = path.metadata().and_then(|status| status.modified()).ok();
            let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let written = written.and_then(|time| u64::try_from(time.as_millis()).ok());
            written.zip(filter.since()).is_some_and(|(written, since)| written < since)
        };
        let rotated = rotated.into_iter().filter(|path| !is_old(path));
        let older = rotated.map(|name| Self { is_rotated: true, ..Self::new(name, Kind::File) }).rev();
        let mut all: Vec<Self> = newest.into_iter().chain(older.filter_map(open)).collect();
        all.reverse();
        Ok(all)
    }

    fn newest_of_policy(policy: &Policy, host: &OsStr, filter: &Filter) -> Result<Self, Error> {
        let target = policy.logs().map(|(_, log)| &log.to).find(|to| !matches!(to, LogTarget::Off));
        let is_system = |kind| kind == LayerKind::System;
        match target {
            Some(LogTarget::File(file)) => Ok(Self::new(file.path(host), Kind::File)),
            Some(LogTarget::Syslog) => {
                let file = FILES_OF_SYSLOG.iter().find(|file| Path::new(file).exists());
                file.map(|file| Self::new(PathBuf::from(file), Kind::File)).ok_or_else(|| {
                    Error::new(
                        ExitStatus::System,
                        format!("the policy logs to syslog, but none of {} exists", FILES_OF_SYSLOG.join(", \
                            ")),
                    )
                    .advise("Name the file that syslog writes: rungate history FILE".to_owned())
                })
            }
            Some(LogTarget::Journald) => Ok(Self::journal(filter)),
            // The default of launches under a system policy without a setting.
            None if policy.layers().iter().any(|layer| is_system(layer.kind()))
                && !policy.logs().any(|(kind, _)| is_system(kind))
                && Path::new(JOURNAL).exists() =>
            {
                Ok(Self::journal(filter))
            }
            Some(LogTarget::Off) | None => Err(Error::new(ExitStatus::Usage, "the policy keeps no log").advise(
                "Name one: rungate history FILE. To have one, write: [log] to = \"/var/log/rungate/log.jsonl\""
                    .to_owned(),
            )),
        }
    }

    fn journal(filter: &Filter) -> Self {
        let mut command = Command::new("journalctl");
        // Without --all, fields of more than 4096 bytes are null.
        command.args(["--identifier=rungate", "--output=json", "--all", "--no-pager", "--quiet"]);
        // In whole seconds, and not one too few: the filter is exact.
        let (since, until) = (filter.since().map(|since| since / 1000), filter.until());
        for (option, time) in [("--since", since), ("--until", until.map(|until| until.div_ceil(1000)))] {
            command.args(time.map(|seconds| format!("{option}=@{seconds}")));
        }
        Self::new(PathBuf::from("journal"), Kind::Journal(command, None))
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// The file that is followed by its name; none of standard input and the journal.
    pub(super) fn file(&self) -> Option<&Path> {
        matches!(self.kind, Kind::File).then_some(&*self.name)
    }

    /// Follows the journal without end: from the start of the filter, or only new entries.
    pub(super) fn follow(&mut self, filter: &Filter) {
        if let Kind::Journal(command, _) = &mut self.kind {
            command.args(["--follow", if filter.since().is_some() { "--no-tail" } else { "--lines=0" }]);
        }
    }

    /// Whether it is a rotated file: the rest can be read without it.
    pub(super) fn is_rotated(&self) -> bool {
        self.is_rotated
    }

    /// Begins to read it.
    pub(super) fn open(&mut self) -> io::Result<Box<dyn Read>> {
        Ok(match &mut self.kind {
            Kind::File => match self.opened.take().unwrap_or_else(|| File::open(&self.name)) {
                Err(error) if error.kind() == ErrorKind::NotFound && self.has_rotated => {
                    Box::new(io::empty())
                }
                file => unpacked(file?)?,
            },
            Kind::Input => unpacked(io::stdin())?,
            Kind::Journal(command, child) => {
                let child = child.insert(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
                let output = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
                Box::new(output)
            }
        })
    }

    /// After all of it was read. journalctl itself has printed the reason.
    pub(super) fn close(self) -> Result<(), Error> {
        let Kind::Journal(_, Some(mut child)) = self.kind else { return Ok(()) };
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(Error::new(ExitStatus::System, "journalctl could not read the journal")
                .advise("Try: journalctl -t rungate -o json --all | rungate history -".to_owned())),
        }
    }
}

/// The newest events of the journal, newest first, as far as they fit into so many bytes. journalctl that is
/// missing, or may not read the journal, prints none.
pub(crate) fn end_of_journal(most: u64) -> io::Result<Vec<u8>> {
    let Kind::Journal(mut command, _) = Source::journal(&Filter::default()).kind else {
        return Ok(Vec::new());
    };
    command.arg("--reverse").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |output| output.take(most).read_to_end(&mut bytes));
    let _ = child.kill();
    child.wait()?;
    read.map(|_| bytes)
}

/// The first bytes of a log that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of other formats, which are not read.
const OTHERS: [(&[u8], &str); 3] = [(b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")];

/// A log as it was written, where rotation has compressed it.
fn unpacked(mut log: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut begin = Vec::new();
    log.by_ref().take(6).read_to_end(&mut begin)?;
    if let Some((_, program)) = OTHERS.iter().find(|(magic, _)| begin.starts_with(magic)) {
        let text = format!("it is compressed with {program}: {program} -dc FILE | rungate history -");
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    let is_packed = begin.starts_with(&GZIP);
    let log = io::Cursor::new(begin).chain(log);
    // All parts of a joined file are read.
    Ok(if is_packed { Box::new(MultiGzDecoder::new(log)) } else { Box::new(log) })
}

/// The files that rotation made of a log, the oldest first: `log.jsonl.2.gz`, `log.jsonl.1`,
/// `log.jsonl-20261123`, `log.jsonl.20261123`, `log-20261123.jsonl`. While a file is compressed, both forms
/// exist, and the one that is not compressed is complete. An older one is a file of its own.
fn rotated(log: &Path) -> Vec<PathBuf> {
    let (Some(name), Some(directory)) = (log.file_name().and_then(OsStr::to_str), log.parent()) else {
        return Vec::new();
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(Age, i64, PathBuf)> = entries
        .filter_map(|entry| {
            let age = age(name, entry.file_name().to_str()?)?;
            let path = entry.path();
            // In whole seconds, as compression keeps it.
            let written = path.metadata().map_or(0, |status| status.mtime());
            Some((age, written, path))
        })
        .collect();
    found.sort();
    found.dedup_by(|(.., packed), (.., file)| packed.with_extension("") == *file);
    found.into_iter().map(|(.., path)| path).collect()
}

/// In the order of time: those with a date, then those with a number, the highest of which is the oldest.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Age {
    Date(String),
    Number(Reverse<u32>),
}

/// The age in the name of a file, if it was rotated from the log with this name.
fn age(log: &str, name: &str) -> Option<Age> {
    let name = [".gz", ".xz", ".zst", ".bz2"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let date = |text: &str| {
        let is_date = text.len() >= 8 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
        is_date.then(|| Age::Date(text.to_owned()))
    };
    if let Some(rest) = name.strip_prefix(log) {
        let number = |text: &str| text.parse().ok().map(|number| Age::Number(Reverse(number)));
        let behind_dot = rest.strip_prefix('.').and_then(|text| date(text).or_else(|| number(text)));
        return behind_dot.or_else(|| date(rest.strip_prefix('-')?));
    }
    let (stem, extension) = log.rsplit_once('.')?;
    date(name.strip_prefix(stem)?.strip_prefix('-')?.strip_suffix(extension)?.strip_suffix('.')?)
}

// Follows logs: past events from the requested moment on, and then each event as it is written.

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

#[cfg(test)]
mod tests {
    use crate::tools::logs::reading::source::*;

    #[test]
    fn rotated_files_come_in_the_order_of_time() {
        let mut names = [
            "log.jsonl.1",
            "log.jsonl.10.gz",
            "log.jsonl.2.gz",
            "log.jsonl-20261123",
            "log-20261101.jsonl.gz",
            "log.jsonl.20261122.gz",
            "log.jsonl.20261108",
        ];
        let of = |name: &str| age("log.jsonl", name);
        names.sort_by_key(|name| of(name).expect("it was made of the log"));
        let expected = [
            "log-20261101.jsonl.gz",
            "log.jsonl.20261108",
            "log.jsonl.20261122.gz",
            "log.jsonl-20261123",
            "log.jsonl.10.gz",
            "log.jsonl.2.gz",
            "log.jsonl.1",
        ];
        assert_eq!(names, expected);
        // Logs of other hosts, and other files beside a log.
        for other in
            ["log.jsonl", "log-2.jsonl", "log.jsonl.ends", "log2.jsonl.1", "other.jsonl.1", "log.jsonl.1.swp"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
