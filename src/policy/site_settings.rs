//! `[site]` of `/etc/rungate/agent.toml`: the etcd of the site, and how long a host may be silent.

use std::{path::PathBuf, time::Duration};

use super::{
    fault::Fault,
    key::{Key, Keys, Shape, Together, key},
    reader::Section,
};

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

/// What the table says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SiteSettings {
    /// The members.
    pub endpoints: Vec<String>,
    /// What all keys begin with.
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
    /// How long it may be silent.
    pub ttl: Duration,
    /// How much sooner it considers itself lost.
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
