//! The log: whether users who launch can write to it. A log that cannot be written loses its events silently,
//! because it stops no launch.

use std::{
    fs,
    io::ErrorKind,
    os::unix::{fs::OpenOptionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
};

use super::{
    Context, Finding, Section, Want, experience,
    finding::command,
    repositories::{barrier, how_to_mend},
};
use crate::{
    cli::Topic,
    launch::{JOURNAL, journal, log::sink::Target},
    policy::LayerKind,
    sys::{Errno, LOG_GUARDS, as_ordinary_user, errno_of, is_full},
    text::Show,
};

/// Where syslog listens.
const SYSLOG: &str = "/dev/log";

/// A log, and whether it is the system's, to which all users write.
struct ConfiguredLog {
    target: Target,
    is_of_system: bool,
    /// Whether the policy has no setting, and the journal is the default.
    is_default: bool,
}

impl ConfiguredLog {
    /// Whether no log is configured, and there is no journal either.
    fn is_missing(&self) -> bool {
        self.is_default && !Path::new(JOURNAL).exists()
    }
}

pub(super) fn look(examination: &Context) -> Section {
    let Some(configured) = configured(examination) else {
        return Section::without_policy(Topic::Log);
    };
    if configured.is_empty() {
        return Section::new(Topic::Log, "no policy requests one", Vec::new());
    }
    let targets: Vec<String> = configured
        .iter()
        .map(
            |configured| {
                if configured.is_missing() { "none".to_owned() } else { configured.target.to_string() }
            },
        )
        .collect();
    let findings = configured.iter().filter_map(|configured| of(configured, examination));
    let readable = configured.iter().filter(|configured| !configured.is_missing());
    let findings = findings.chain(readable.flat_map(|configured| experience::look(&configured.target)));
    Section::new(Topic::Log, targets.join(", "), findings.collect())
}

/// The logs of the policy, or the default ones; none if unknown.
fn configured(examination: &Context) -> Option<Vec<ConfiguredLog>> {
    let policy = examination.policy()?;
    let is_system = |kind: LayerKind| kind == LayerKind::System;
    let asked = policy.logs().map(|(kind, log)| ConfiguredLog {
        target: journal::sink(log, &examination.situation.host).target,
        is_of_system: is_system(kind),
        is_default: false,
    });
    let mut configured: Vec<ConfiguredLog> = asked.collect();
    let has_system = policy.layers().iter().any(|layer| is_system(layer.kind()));
    if has_system && !configured.iter().any(|configured| configured.is_of_system) {
        configured.push(ConfiguredLog { target: Target::Journal, is_of_system: true, is_default: true });
    }
    Some(configured)
}

/// What is wrong with the logs of the policy.
pub(super) fn unwritable(examination: &Context) -> Vec<Finding> {
    let configured = configured(examination).unwrap_or_default();
    configured.iter().filter_map(|configured| of(configured, examination)).filter(Finding::is_wrong).collect()
}

fn of(configured: &ConfiguredLog, examination: &Context) -> Option<Finding> {
    match &configured.target {
        Target::Off => None,
        Target::Journal if configured.is_missing() => Some(
            Finding::note(
                "no-log",
                "the policy names no log, and there is no journal: refusals are logged nowhere",
            )
            .fix("[log] to = \"/var/log/rungate/log.jsonl\""),
        ),
        Target::Journal => Some(listener(
            JOURNAL,
            "the journal",
            "In the policy, name a file instead: [log] to = \"/var/log/rungate/log.jsonl\"",
        )),
        Target::Syslog => {
            Some(listener(SYSLOG, "syslog", "Start the daemon of syslog, or name a file in the policy."))
        }
        Target::File(path) => Some(irregular(path).unwrap_or_else(|| {
            if configured.is_of_system && examination.is_root() {
                of_everybody(path)
            } else {
                of_caller(path)
            }
        })),
    }
}

/// A socket to which an ordinary user sends events.
fn listener(socket: &str, name: &str, fix: &str) -> Finding {
    let connected = as_ordinary_user(|| UnixDatagram::unbound()?.connect(socket));
    match connected.unwrap_or(Ok(())) {
        Ok(()) => Finding::fine("log", format!("{name} listens at {socket}")),
        Err(error) => {
            let why = match error.kind() {
                ErrorKind::NotFound => "is not there",
                _ => errno_of(&error).desc(),
            };
            let text = format!("{name}: {socket}: {why}: events are lost");
            Finding::warning("log-lost", text).fix(fix)
        }
    }
}

/// A log for which there is no room.
fn full(path: &Path) -> Option<Finding> {
    is_full(path).then(|| {
        let text = format!("the file system of {} is full: events are lost", path.shown());
        Finding::warning("log-lost", text).fix(how_to_mend(Errno::ENOSPC, path))
    })
}

/// Launches follow no link, and write to no FIFO.
fn irregular(path: &Path) -> Option<Finding> {
    let status = fs::symlink_metadata(path).ok().filter(|status| !status.is_file())?;
    let what = if status.is_symlink() { "a symbolic link" } else { "not a regular file" };
    let text = format!("{} is {what}: events are lost", path.shown());
    Some(Finding::warning("log-lost", text).fix(command("ls -ld", path)))
}

/// A file that all users append to must exist, because a user who creates it keeps it private.
fn of_everybody(path: &Path) -> Finding {
    match fs::symlink_metadata(path) {
        Ok(_) => match barrier(path, Want::Write) {
            None => full(path).unwrap_or_else(|| {
                Finding::fine("log", format!("{}: all users can append to it", path.shown()))
            }),
            Some(barrier) => {
                let text =
                    format!("{}: users cannot append to the log, and their events are lost", barrier.text());
                Finding::warning("log-lost", text).fix(barrier.fix())
            }
        },
        Err(_) => missing(path),
    }
}

fn missing(path: &Path) -> Finding {
    let directory = path.parent().unwrap_or(path);
    let text = format!(
        "{} does not exist, and users cannot create it for each other: events are lost",
        path.shown()
    );
    let mut finding = Finding::warning("log-lost", text);
    if !directory.exists() {
        finding = finding.fix(command("install -d -m 755", directory));
    }
    finding.fix(command("install -m 662 -g adm /dev/null", path))
}

/// A file that the caller appends to.
fn of_caller(path: &Path) -> Finding {
    let opened = fs::OpenOptions::new().append(true).custom_flags(LOG_GUARDS).open(path);
    let reason = match opened {
        Ok(_) => {
            let fine = || Finding::fine("log", format!("you can append to {}", path.shown()));
            return full(path).unwrap_or_else(fine);
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && can_be_created(path) => {
            return Finding::fine("log", format!("{} is created with the first event", path.shown()));
        }
        Err(error) => errno_of(&error).desc(),
    };
    Finding::warning("log-lost", format!("{}: {reason}: your events are lost", path.shown()))
}

fn can_be_created(path: &Path) -> bool {
    let directory: PathBuf = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    crate::sys::executable::can_write(&directory)
}
