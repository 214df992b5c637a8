//! The language of `/etc/rungate/agent.toml`: settings only for the agent of this host, not part of the
//! policy. It is read, and its faults are reported, like a policy. Each of its tables is a file here, or a
//! part of one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    At, Faults, Findings, Key, Keys, Section, Shape, Tape, Together, Value, fault::Fault, key::key,
    malformed, syntax,
};
use crate::text::SourceText;

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

/// The content of the file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AgentFile {
    pub limits: AgentLimits,
    /// `[site]`, if there is one.
    pub site: Option<SiteSettings>,
}

/// The quotas of one user of the agent. They do not apply to root, except the length of a message.
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
    /// Those that differ from the defaults, by the names of their keys.
    pub fn changed(&self) -> impl Iterator<Item = (&'static str, u32)> + use<> {
        let all = |of: &Self| {
            [
                ("message", of.message),
                ("rate", of.rate),
                ("connections", of.connections),
                ("launches", of.launches),
                ("slots", of.slots),
                ("places", of.places),
                ("members", of.members),
            ]
        };
        let both = all(self).into_iter().zip(all(&Self::default()));
        both.filter(|(own, default)| own != default).map(|(own, _)| own)
    }

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

// `[site]` of `/etc/rungate/agent.toml`: the etcd of the site, and how long a host may be silent.

pub(super) static SITE: Keys = Keys {
    what: "[site]",
    groups: &[KEYS],
    together: &[
        Together::Needs("certificate", "key"),
        Together::Needs("key", "certificate"),
        Together::Needs("password_file", "user"),
        Together::Needs("user", "password_file"),
    ],
};

const KEYS: &[Key] = &[
    key("endpoints", Shape::Texts, "Members of etcd, as https://HOST:PORT.", "Every site.")
        .required()
        .filled(),
    key("prefix", Shape::Text, "Start of all keys; the same on all hosts.", "Two sites in one etcd."),
    key(
        "ca",
        Shape::Text,
        "Authority that signed the certificates of the members: a PEM file.",
        "All sites, except in tests.",
    ),
    key(
        "certificate",
        Shape::Text,
        "Certificate of this host, without a CN: a PEM file.",
        "An etcd that demands certificates of its clients.",
    ),
    key(
        "key",
        Shape::Text,
        "Private key of the certificate: a PEM file.",
        "An etcd that demands certificates of its clients.",
    ),
    key("user", Shape::Text, "User of etcd for the agent.", "An etcd with authentication."),
    key("password_file", Shape::Text, "File with the password of that user.", "An etcd with authentication."),
    key(
        "ttl",
        Shape::Duration,
        "How long a host may be silent before its slots are given to others.",
        "Sites that want slots of dead hosts sooner, or networks with long pauses.",
    ),
    key(
        "margin",
        Shape::Duration,
        "How much sooner a host considers itself lost, because clocks differ.",
        "Hosts with poor clocks.",
    ),
];

/// A shorter time could not be distinguished from a slow network.
const LEAST_TTL: Duration = Duration::from_secs(2);

/// The content of the table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SiteSettings {
    /// The members.
    pub endpoints: Vec<String>,
    /// The prefix of all keys.
    pub prefix: String,
    /// The authority that signed the members' certificates.
    pub ca: Option<PathBuf>,
    /// The certificate of this host.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The user that it authenticates as.
    pub user: Option<String>,
    /// Where the password is.
    pub password_file: Option<PathBuf>,
    /// How long the host may be silent.
    pub ttl: Duration,
    /// How much sooner the host considers itself lost.
    pub margin: Duration,
}

impl SiteSettings {
    pub(super) fn of(section: &Section<'_>) -> Self {
        let path = |key: &'static str| {
            let text = section.text(key)?;
            if !text.value.starts_with('/') {
                section.fault(text.at, Fault::RelativePath { key });
            }
            Some(PathBuf::from(text.value))
        };
        let ttl = section.duration("ttl");
        let ttl = match ttl {
            Some(ttl) if ttl.value < LEAST_TTL => {
                section.fault(ttl.at, Fault::TooShort { key: "ttl", least: LEAST_TTL });
                LEAST_TTL
            }
            ttl => ttl.map_or(Duration::from_secs(60), |ttl| ttl.value),
        };
        let margin = section.duration("margin");
        if let Some(margin) = margin.filter(|margin| margin.value > ttl / 4) {
            section.fault(margin.at, Fault::TooLong { key: "margin", most: ttl / 4 });
        }
        let [certificate, key] = ["certificate", "key"].map(path);
        let (user, password_file) = (section.text("user"), path("password_file"));
        for (one, is_there, other) in [
            ("certificate", certificate.is_some() && key.is_none(), "key"),
            ("key", key.is_some() && certificate.is_none(), "certificate"),
            ("user", user.is_some() && password_file.is_none(), "password_file"),
            ("password_file", password_file.is_some() && user.is_none(), "user"),
        ] {
            if is_there && let Some(value) = section.get(one) {
                value.fault(Fault::NeedsKey { key: one, needs: other });
            }
        }
        let settings = Self {
            endpoints: endpoints(section),
            prefix: section.text("prefix").map_or("/rungate/", |prefix| prefix.value).to_owned(),
            ca: path("ca"),
            certificate,
            key,
            user: user.map(|user| user.value.to_owned()),
            password_file,
            ttl,
            margin: margin.map_or(ttl / 12, |margin| margin.value),
        };
        let is_secret = |endpoint: &String| endpoint.starts_with("https://");
        if settings.ca.is_none()
            && settings.endpoints.iter().any(is_secret)
            && let Some(value) = section.get("endpoints")
        {
            value.fault(Fault::NeedsKey { key: "https://", needs: "ca" });
        }
        settings
    }
}

fn endpoints(section: &Section<'_>) -> Vec<String> {
    section.require("endpoints");
    let Some(endpoints) = section.texts("endpoints") else { return Vec::new() };
    if let Some(value) = section.get("endpoints").filter(Value::is_empty_list) {
        value.fault(Fault::EmptyList { key: "endpoints".into(), instead: "name a member of etcd" });
    }
    for endpoint in &endpoints.value {
        let rest = ["http://", "https://"].iter().find_map(|scheme| endpoint.value.strip_prefix(scheme));
        if rest.is_none_or(|rest| {
            rest.trim_end_matches('/').is_empty() || rest.trim_end_matches('/').contains('/')
        }) {
            section.fault(endpoint.at, Fault::BadEndpoint { text: endpoint.value.to_owned() });
        }
    }
    endpoints.value.into_iter().map(|endpoint| endpoint.value.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of a text, or the codes of its faults.
    fn read(text: &str) -> Result<AgentFile, Vec<&'static str>> {
        let read = AgentFile::read(Path::new("/etc/rungate/agent.toml"), text.as_bytes().to_vec());
        read.map_err(|faults| faults.iter().map(|fault| fault.code).collect())
    }

    /// The table of a site with these endpoints and keys has this fault alone, or none.
    #[track_caller]
    fn site(endpoints: &str, keys: &str, code: Option<&'static str>) {
        let read = read(&format!("[site]\nendpoints = [{endpoints}]\n{keys}\n"));
        assert_eq!(read.err().unwrap_or_default(), Vec::from_iter(code), "{endpoints} {keys}");
    }

    /// A fault names the file. A fault of its text also names the line and the column.
    #[test]
    fn a_fault_has_its_place_in_the_file() {
        let cases: [(&[u8], &str); 3] = [
            (b"version = 1\n\xff", ": is not UTF-8 text from line 2, column 1 on"),
            (b"[agent]\nrate\n", ":2:5: = and a value are missing after this key"),
            (b"[agent]\nrates = 5\n", ":2:1: unknown key \"rates\" in [agent]"),
        ];
        for (content, expected) in cases {
            let path = Path::new("/etc/rungate/agent.toml");
            let faults = AgentFile::read(path, content.to_vec()).expect_err("a fault").to_string();
            assert!(faults.starts_with(&format!("/etc/rungate/agent.toml{expected}")), "{faults}");
        }
    }

    const PLAIN: &str = "\"http://etcd1:2379\"";
    const SECURE: &str = "\"http://etcd1:2379\", \"https://etcd2:2379\"";

    /// A certificate needs its key, and a user the password; each is a fault alone.
    #[test]
    fn a_half_of_a_pair_needs_the_other_one() {
        for (one, other) in [
            ("certificate = \"/host.pem\"", "key = \"/host.key\""),
            ("user = \"rungate\"", "password_file = \"/password\""),
        ] {
            site(PLAIN, one, Some("needs-key"));
            site(PLAIN, other, Some("needs-key"));
            site(PLAIN, &format!("{one}\n{other}"), None);
        }
    }

    /// Without an authority the certificate of a member proves nothing: one member by https needs `ca`.
    #[test]
    fn a_member_by_https_needs_an_authority() {
        site(PLAIN, "", None);
        site(SECURE, "", Some("needs-key"));
        site(SECURE, "ca = \"/ca.pem\"", None);
        site(SECURE, "ca = \"ca.pem\"", Some("relative-path"));
    }

    /// A site has a member at least. It is a scheme, a host and a port, and nothing behind it.
    #[test]
    fn a_member_is_the_address_of_a_server() {
        assert_eq!(read("[site]\n"), Err(vec!["missing-key"]));
        site("", "", Some("empty-list"));
        for member in ["https://etcd1:2379", "http://[::1]:2379", "https://etcd1:2379/"] {
            site(&format!("\"{member}\""), "ca = \"/ca.pem\"", None);
        }
        for other in ["etcd1:2379", "ftp://etcd1:2379", "https://", "https:///", "https://etcd1:2379/v3"] {
            site(&format!("\"{other}\""), "ca = \"/ca.pem\"", Some("bad-endpoint"));
        }
    }

    /// A host may be silent for two seconds at least, and its margin is a quarter of that time at most.
    #[test]
    fn the_times_of_a_site_are_allowed_up_to_their_bounds() {
        site(PLAIN, "ttl = \"2s\"", None);
        site(PLAIN, "ttl = \"1s\"", Some("too-short"));
        // The margin is compared with the shortest time then.
        let both = read(&format!("[site]\nendpoints = [{PLAIN}]\nttl = \"1s\"\nmargin = \"501ms\"\n"));
        assert_eq!(both, Err(vec!["too-short", "too-long"]));
        site(PLAIN, "ttl = \"1s\"\nmargin = \"500ms\"", Some("too-short"));
        site(PLAIN, "ttl = \"40s\"\nmargin = \"10s\"", None);
        site(PLAIN, "ttl = \"40s\"\nmargin = \"11s\"", Some("too-long"));
        let times = |keys: &str| {
            let read = read(&format!("[site]\nendpoints = [{PLAIN}]\n{keys}\n"));
            let site = read.expect("no fault").site.expect("a site");
            (site.ttl.as_secs(), site.margin.as_secs())
        };
        assert_eq!(times(""), (60, 5));
        assert_eq!(times("ttl = \"24s\""), (24, 2));
        assert_eq!(times("margin = \"15s\""), (60, 15));
    }

    /// Each quota is allowed from its least to its greatest number, and only those that differ from the
    /// default are told.
    #[test]
    fn a_quota_is_allowed_up_to_its_bounds() {
        let quota = |key: &str, value: u32| read(&format!("version = 1\n[agent]\n{key} = {value}\n"));
        for (key, least, most) in [
            ("message", 4096, 8 * 1024 * 1024),
            ("rate", 1, 10_000_000),
            ("connections", 1, 10_000_000),
            ("launches", 1, 10_000_000),
            ("slots", 1, 10_000_000),
            ("places", 1, 10_000_000),
            ("members", 1, 10_000_000),
        ] {
            for value in [least, most] {
                let limits = quota(key, value).expect("no fault").limits;
                assert_eq!(limits.changed().collect::<Vec<_>>(), [(key, value)]);
            }
            for value in [least - 1, most + 1] {
                assert_eq!(quota(key, value), Err(vec!["out-of-range"]), "{key} = {value}");
            }
        }
        assert_eq!(read("version = 1\n"), Ok(AgentFile::default()));
        assert_eq!(read("version = 2\n"), Err(vec!["unknown-version"]));
    }

    /// What the settings do not say is as the manual says.
    #[test]
    fn quotas_have_their_defaults() {
        let AgentLimits { message, rate, connections, launches, slots, places, members } =
            read("[agent]\n").expect("no fault").limits;
        assert_eq!((message, rate, connections, launches), (262_144, 5, 2048, 4096));
        assert_eq!((slots, places, members), (65_536, 8192, 4096));
    }
}
