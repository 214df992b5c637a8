//! The language of `/etc/rungate/agent.toml`: settings only for the agent of this host, not part of the
//! policy. It is read, and its faults are reported, like a policy. Each of its tables is a file here, or a
//! part of one.

use std::{path::Path, sync::Arc};

use super::{
    fault::Fault,
    findings::{Faults, Findings},
    key::{Key, Keys, Shape, key},
    malformed,
    place::At,
    reader::Section,
    site_settings::{SITE, SiteSettings},
    syntax,
    tape::Tape,
};
use crate::text::diagnostic::SourceText;

static FILE: Keys = Keys {
    what: "the file",
    groups: &[&[
        key("version", Shape::Number { least: 1, most: 1 }, "The version of the language: 1.", "Every file."),
        key(
            "agent",
            Shape::Table(&AGENT),
            "Quotas of each user.",
            "Hosts whose users could overload the agent.",
        ),
        key(
            "site",
            Shape::Table(&SITE),
            "How to reach the etcd of the site.",
            "Hosts that share limits with others.",
        ),
    ]],
    together: &[],
};

static AGENT: Keys = Keys { what: "[agent]", groups: &[LIMITS], together: &[] };

const LIMITS: &[Key] = &[
    key(
        "message",
        Shape::Number { least: LEAST_MESSAGE as i64, most: LONGEST_MESSAGE as i64 },
        "Longest request in bytes: the command line and all that rules use.",
        "Users who start programs with very long command lines.",
    ),
    key(
        "rate",
        COUNT,
        "Messages a second of one connection, after the first fifty.",
        "Hosts with scripts that start commands in a loop.",
    ),
    key(
        "connections",
        COUNT,
        "Connections of one user at a time.",
        "Users with thousands of waiting launches.",
    ),
    key(
        "launches",
        COUNT,
        "Launches of one user that have slots at a time.",
        "Users with thousands of programs at a time.",
    ),
    key("slots", COUNT, "Slots of one user at a time.", "Users whose programs take many slots each."),
    key("places", COUNT, "Positions of one user in all queues.", "Users with thousands of waiting launches."),
    key(
        "members",
        COUNT,
        "Tables in which one user may have slots, positions or a last start.",
        "Policies with a repository for each value of an argument.",
    ),
];

/// The shortest length that requests may be limited to.
const LEAST_MESSAGE: u32 = 4096;

/// The longest request that any agent accepts. The kernel accepts no longer command line.
pub const LONGEST_MESSAGE: u32 = 8 * 1024 * 1024;

const LEAST: u32 = 1;
const MOST: u32 = 10_000_000;
const COUNT: Shape = Shape::Number { least: LEAST as i64, most: MOST as i64 };

/// What the file says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AgentFile {
    pub limits: AgentLimits,
    /// `[site]`, if there is one.
    pub site: Option<SiteSettings>,
}

/// The quotas of one user of the agent; root may have more of everything except the length of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AgentLimits {
    /// The length of a request in bytes.
    pub message: u32,
    /// Messages a second of one connection, after its initial burst.
    pub rate: u32,
    pub connections: u32,
    /// Launches with slots.
    pub launches: u32,
    pub slots: u32,
    /// Places in lines.
    pub places: u32,
    /// Tables.
    pub members: u32,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            message: 256 * 1024,
            rate: 5,
            connections: 2048,
            launches: 4096,
            slots: 65_536,
            places: 8192,
            members: 4096,
        }
    }
}

impl AgentFile {
    /// The keys of all of its tables.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        FILE.iter().chain(AGENT.iter()).chain(SITE.iter()).map(|key| key.name)
    }

    /// Reads it, or returns all of its faults.
    pub fn read(path: &Path, content: Vec<u8>) -> Result<Self, Faults> {
        let findings = Findings::default();
        let text = String::from_utf8(content).unwrap_or_else(|error| {
            findings.fault(At::whole(0), malformed::not_text(error.as_bytes()));
            String::new()
        });
        let source = Arc::new(SourceText::new(path, text));
        let file = {
            let nodes = syntax::parse(0, source.text(), &findings);
            let tape = Tape { text: source.text(), nodes: &nodes };
            Self::of(&Section::new(tape.root(), At::whole(0), &FILE, &findings))
        };
        findings.close(&[source]).map(|_| file)
    }

    fn of(section: &Section<'_>) -> Self {
        if let Some(version) = section.number("version", i64::MIN, i64::MAX)
            && version.value != 1
        {
            section.fault(version.at, Fault::UnknownVersion);
        }
        let limits = section.section("agent", &AGENT).map(|section| AgentLimits::of(&section));
        let site = section.section("site", &SITE).map(|section| SiteSettings::of(&section));
        Self { limits: limits.unwrap_or_default(), site }
    }
}

impl AgentLimits {
    fn of(section: &Section<'_>) -> Self {
        let default = Self::default();
        let count = |key, default| section.count(key, LEAST, MOST).map_or(default, |count| count.value);
        let message = section.count("message", LEAST_MESSAGE, LONGEST_MESSAGE);
        Self {
            message: message.map_or(default.message, |message| message.value),
            rate: count("rate", default.rate),
            connections: count("connections", default.connections),
            launches: count("launches", default.launches),
            slots: count("slots", default.slots),
            places: count("places", default.places),
            members: count("members", default.members),
        }
    }
}
