//! Where events are logged, as the policy says. The launcher writes them.

use std::{
    convert::Infallible,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Directory, PathTemplate, Placeholder, fault::Fault};

/// The log of one layer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Log {
    /// Where events go.
    pub to: LogTarget,
    /// Whether they record the facts of a decision.
    pub replay: bool,
}

impl Log {
    /// Whether it has every event: reports and replays need them, and read files. Other logs have refusals,
    /// and holders that were ended.
    pub fn has_every_event(&self) -> bool {
        self.replay || matches!(self.to, LogTarget::File(_))
    }
}

/// Where events go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogTarget {
    /// Nowhere.
    Off,
    Journald,
    Syslog,
    /// To a file of JSON Lines.
    File(LogFile),
}

/// The path of a log, with `{host}` where each host writes its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFile(PathTemplate);

impl LogTarget {
    /// The words beside a path.
    pub(super) const WORDS: &'static [&'static str] = &["journald", "syslog", "off"];

    /// Reads a word or an absolute path; `None` where it is neither.
    pub(super) fn parse(text: &str) -> Result<Option<LogTarget>, Fault> {
        Ok(match text {
            "off" => Some(LogTarget::Off),
            "journald" => Some(LogTarget::Journald),
            "syslog" => Some(LogTarget::Syslog),
            path if path.contains('/') => Some(LogTarget::File(LogFile::parse(path)?)),
            _ => None,
        })
    }
}

impl LogFile {
    fn parse(text: &str) -> Result<LogFile, Fault> {
        if !text.starts_with('/') {
            return Err(Fault::RelativePath { key: "to" });
        }
        let path = PathTemplate::parse(text, &Directory::at("/")).map_err(|fault| match fault {
            Fault::RuntimeNotFirst => Fault::PlaceholderInLog,
            other => other,
        })?;
        if let Some(other) = path.placeholders().find(|placeholder| **placeholder != Placeholder::Host) {
            return Err(match other {
                Placeholder::Captured(name) => {
                    Fault::UnknownPlaceholder { name: name.clone(), nearest: Placeholder::nearest(name) }
                }
                _ => Fault::PlaceholderInLog,
            });
        }
        Ok(LogFile(path))
    }

    /// The file that a host writes.
    pub fn path(&self, host: &OsStr) -> PathBuf {
        let value = |_: &Placeholder| Ok::<_, Infallible>(host.as_bytes().to_vec());
        let Ok(path) = self.0.expand(Path::new("/"), value);
        path
    }

    /// As it is written in a policy.
    pub(super) fn text(&self) -> &str {
        self.0.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, host: &str, path: &str) {
        let file = LogFile::parse(text).expect("the path of a log");
        assert_eq!(file.path(OsStr::new(host)), Path::new(path));
    }

    /// A log has every event if it is a file, or if decisions can be replayed from it.
    #[test]
    fn a_file_or_a_replayed_log_has_every_event() {
        let log = |to: &str, replay: bool| {
            let to = LogTarget::parse(to).expect("a target").expect("a target");
            Log { to, replay }.has_every_event()
        };
        assert!(log("/var/log/a", false) && log("/var/log/a", true));
        for to in ["off", "journald", "syslog"] {
            assert!(!log(to, false) && log(to, true), "{to}");
        }
    }

    #[test]
    fn a_host_is_a_part_of_a_name_and_leads_nowhere() {
        case("/var/log/rungate.jsonl", "ws17", "/var/log/rungate.jsonl");
        case("/srv/{host}/{host}.jsonl", "ws17.example.com", "/srv/ws17.example.com/ws17.example.com.jsonl");
        case("/srv/{host}.jsonl", "../etc", "/srv/%2E.%2Fetc.jsonl");
    }
}
