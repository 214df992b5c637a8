//! The log of the agent: standard error. If that is the journal of systemd, each message is one entry with
//! its level and fields.

use crate::{
    policy::{AgentFile, SiteSettings},
    sys::journal,
    text::{Show, age, stream},
};

/// The levels of syslog(3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Level {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

/// What a message is about, as the field `RUNGATE_AGENT` has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Topic {
    /// The agent itself.
    Start,
    Policy,
    Site,
    /// A holder that was ended.
    End,
}

impl Topic {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Policy => "policy",
            Self::Site => "site",
            Self::End => "end",
        }
    }
}

/// Writes a message, of one line or several.
pub(super) fn log(level: Level, topic: Topic, text: &str) {
    if !journal::has_standard_error() {
        return stream::complain(&format!("rungate-agent: {text}"));
    }
    let number = (level as u8).to_string();
    let fields = [
        ("MESSAGE", text),
        ("PRIORITY", number.as_str()),
        ("SYSLOG_IDENTIFIER", "rungate-agent"),
        ("RUNGATE_AGENT", topic.word()),
        ("RUNGATE_VERSION", env!("CARGO_PKG_VERSION")),
    ];
    if journal::send(&fields).is_err() {
        // The journal takes each line of its stream as an entry, and the level from its start.
        let lines: Vec<String> = text.lines().map(|line| format!("<{number}>{line}")).collect();
        stream::complain(&lines.join("\n"));
    }
}

/// The first message: the version, the settings that differ from the defaults, and the site.
pub(super) fn started(settings: &AgentFile, holding: usize) {
    let changed = settings.limits.changed();
    let changed: Vec<String> = changed.map(|(name, value)| format!("{name} = {value}")).collect();
    let changed = if changed.is_empty() { "defaults".to_owned() } else { changed.join(", ") };
    let of = |site: &SiteSettings| {
        let endpoints: Vec<String> = site.endpoints.iter().map(|member| member.shown().to_string()).collect();
        let (prefix, ttl, margin) = (site.prefix.shown(), age(site.ttl), age(site.margin));
        format!("{}, prefix {prefix}, ttl {ttl}, margin {margin}", endpoints.join(" "))
    };
    let site = settings.site.as_ref().map_or_else(|| "none".to_owned(), of);
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("version {version}; limits: {changed}; site: {site}; launches with slots: {holding}");
    log(Level::Info, Topic::Start, &text);
}
