//! Where the events come from: a file, standard input, or the journal.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use flate2::read::MultiGzDecoder;

use crate::{
    commands::{history::filter::Filter, shared::journal::JOURNAL},
    error::Error,
    exit_status::ExitStatus,
    policy::{LayerKind, LogTarget, Policy},
};

/// Where daemons of syslog write what the facility `daemon` has to say: Debian's and its children's, others',
/// and old Debian's.
const FILES_OF_SYSLOG: [&str; 3] = ["/var/log/syslog", "/var/log/messages", "/var/log/daemon.log"];

/// One log.
pub(super) struct Source {
    name: PathBuf,
    kind: Kind,
}

enum Kind {
    File,
    Input,
    /// What journalctl prints, which runs from when it is opened.
    Journal(Command, Option<Child>),
}

impl Source {
    /// A file that the caller names, `-` for standard input.
    pub(super) fn of_argument(directory: &Path, argument: &Path) -> Self {
        if argument == "-" {
            return Self { name: PathBuf::from("standard input"), kind: Kind::Input };
        }
        Self { name: directory.join(argument), kind: Kind::File }
    }

    /// The first log that a layer of the policy asks for.
    pub(super) fn of_policy(policy: &Policy, host: &OsStr, filter: &Filter) -> Result<Self, Error> {
        let target = policy.logs().map(|(_, log)| &log.to).find(|to| !matches!(to, LogTarget::Off));
        let is_system = |kind| kind == LayerKind::System;
        match target {
            Some(LogTarget::File(file)) => Ok(Self { name: file.path(host), kind: Kind::File }),
            Some(LogTarget::Syslog) => {
                let file = FILES_OF_SYSLOG.iter().find(|file| Path::new(file).exists());
                file.map(|file| Self { name: PathBuf::from(file), kind: Kind::File }).ok_or_else(|| {
                    Error::new(
                        ExitStatus::System,
                        format!("the policy logs to syslog, and none of {} is there", FILES_OF_SYSLOG.join(", ")),
                    )
                    .advise("Name the file that syslog writes: rungate history FILE".to_owned())
                })
            }
            Some(LogTarget::Journald) => Ok(Self::journal(filter)),
            // As launches do where the system's policy says nothing.
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
        Self { name: PathBuf::from("journal"), kind: Kind::Journal(command, None) }
    }

    /// As it is called in messages.
    pub(super) fn name(&self) -> &Path {
        &self.name
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

    /// After all of it was read. What journalctl had to say, it has said itself.
    pub(super) fn close(self) -> Result<(), Error> {
        let Kind::Journal(_, Some(mut child)) = self.kind else { return Ok(()) };
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(Error::new(ExitStatus::System, "journalctl could not read the journal")
                .advise("Try: journalctl -t rungate -o json | rungate history -".to_owned())),
        }
    }
}

/// What a compressed log begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A log as it was written, where rotation has compressed it.
fn unpacked(mut log: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut begin = Vec::new();
    log.by_ref().take(GZIP.len() as u64).read_to_end(&mut begin)?;
    let is_packed = begin == GZIP;
    let log = io::Cursor::new(begin).chain(log);
    // Of several that were joined all are read.
    Ok(if is_packed { Box::new(MultiGzDecoder::new(log)) } else { Box::new(log) })
}
