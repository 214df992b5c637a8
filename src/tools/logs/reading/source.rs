//! The source of events: a file, standard input, or the journal.

use std::{
    cmp::Reverse,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::UNIX_EPOCH,
};

use flate2::read::MultiGzDecoder;

use super::Filter;
use crate::{
    launch::journal::JOURNAL,
    policy::{LayerKind, LogTarget, Policy},
    text::error::{Error, ExitStatus},
};

/// Where syslog daemons write messages of the facility `daemon`: on Debian and its derivatives, on other
/// systems, and on old Debian.
const FILES_OF_SYSLOG: [&str; 3] = ["/var/log/syslog", "/var/log/messages", "/var/log/daemon.log"];

pub(super) struct Source {
    name: PathBuf,
    kind: Kind,
    is_rotated: bool,
}

enum Kind {
    File,
    Input,
    /// The output of journalctl, which runs once it is opened.
    Journal(Command, Option<Child>),
}

impl Source {
    /// A file that the caller names, `-` for standard input.
    pub(super) fn of_argument(directory: &Path, argument: &Path) -> Self {
        if argument == "-" {
            return Self { name: PathBuf::from("standard input"), kind: Kind::Input, is_rotated: false };
        }
        Self { name: directory.join(argument), kind: Kind::File, is_rotated: false }
    }

    /// The first log that a layer of the policy asks for, with the files that rotation made of it: the oldest
    /// first.
    pub(super) fn of_policy(policy: &Policy, host: &OsStr, filter: &Filter) -> Result<Vec<Self>, Error> {
        let newest = Self::newest_of_policy(policy, host, filter)?;
        let Kind::File = newest.kind else { return Ok(vec![newest]) };
        let is_old = |path: &PathBuf| {
            let written = path.metadata().and_then(|status| status.modified()).ok();
            let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let written = written.and_then(|time| u64::try_from(time.as_millis()).ok());
            written.zip(filter.since()).is_some_and(|(written, since)| written < since)
        };
        let rotated = rotated(&newest.name).into_iter().filter(|path| !is_old(path));
        let mut all: Vec<Self> =
            rotated.map(|name| Self { name, kind: Kind::File, is_rotated: true }).collect();
        all.push(newest);
        Ok(all)
    }

    fn newest_of_policy(policy: &Policy, host: &OsStr, filter: &Filter) -> Result<Self, Error> {
        let target = policy.logs().map(|(_, log)| &log.to).find(|to| !matches!(to, LogTarget::Off));
        let is_system = |kind| kind == LayerKind::System;
        match target {
            Some(LogTarget::File(file)) => Ok(Self { name: file.path(host), kind: Kind::File, is_rotated: false }),
            Some(LogTarget::Syslog) => {
                let file = FILES_OF_SYSLOG.iter().find(|file| Path::new(file).exists());
                file.map(|file| Self { name: PathBuf::from(file), kind: Kind::File, is_rotated: false }).ok_or_else(|| {
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
        command.args(["--identifier=rungate", "--output=json", "--no-pager", "--quiet"]);
        for (option, time) in [("--since", filter.since()), ("--until", filter.until())] {
            command.args(time.map(|milliseconds| format!("{option}=@{}", milliseconds.div_ceil(1000))));
        }
        Self { name: PathBuf::from("journal"), kind: Kind::Journal(command, None), is_rotated: false }
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
            Kind::File => unpacked(File::open(&self.name)?)?,
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
                .advise("Try: journalctl -t rungate -o json | rungate history -".to_owned())),
        }
    }
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
/// `log.jsonl-20261123`, `log-20261123.jsonl`.
fn rotated(log: &Path) -> Vec<PathBuf> {
    let (Some(name), Some(directory)) = (log.file_name().and_then(OsStr::to_str), log.parent()) else {
        return Vec::new();
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(Age, PathBuf)> =
        entries.filter_map(|entry| Some((age(name, entry.file_name().to_str()?)?, entry.path()))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
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
        return rest.strip_prefix('.').and_then(number).or_else(|| date(rest.strip_prefix('-')?));
    }
    let (stem, extension) = log.rsplit_once('.')?;
    date(name.strip_prefix(stem)?.strip_prefix('-')?.strip_suffix(extension)?.strip_suffix('.')?)
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
        ];
        let of = |name: &str| age("log.jsonl", name);
        names.sort_by_key(|name| of(name).expect("it was made of the log"));
        let expected = [
            "log-20261101.jsonl.gz",
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
