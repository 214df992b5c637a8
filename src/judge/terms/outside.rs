//! Use of a repository that rungate did not start, as the policy says that it is measured.

use std::{path::PathBuf, time::Duration};

use super::keyword::Keyword;

/// Where the directory of root's samples is.
pub const SAMPLES: &str = "/run/rungate-outside";

/// What a claim has to know of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outside {
    /// The file with the last sample.
    pub sample: PathBuf,
    /// Who may have written it, besides root.
    pub owner: u32,
    pub counts: Counts,
    pub stale_after: Duration,
    pub when_stale: WhenStale,
    pub settle: Duration,
    /// Who asks, and whether each user has a table of their own.
    pub uid: u32,
    pub is_by_user: bool,
    /// The node name of this host, and whether each host has a table of its own.
    pub host: String,
    pub is_by_host: bool,
    /// Who has one seat together (`shared_by`).
    pub shared_by: Option<SharedBy>,
}

/// What launches of one group have in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SharedBy {
    pub user: bool,
    pub host: bool,
}

/// What a sample has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Counts {
    /// All use, that of our own programs as well.
    #[default]
    All,
    /// Only use that rungate did not start.
    Others,
}

impl Keyword for Counts {
    const WORDS: &'static [(&'static str, Self)] = &[("all", Counts::All), ("others", Counts::Others)];
}

/// Whose use one answer is about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Of {
    /// That of all hosts: a licence server's.
    #[default]
    Site,
    /// That of the host on which the command runs. A line without a host is about this one.
    Host,
}

impl Keyword for Of {
    const WORDS: &'static [(&'static str, Self)] = &[("site", Of::Site), ("host", Of::Host)];
}

/// What happens to launches while the last sample is too old.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WhenStale {
    #[default]
    Refuse,
    /// Nothing counts as used outside.
    Ignore,
}

impl Keyword for WhenStale {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", WhenStale::Refuse), ("ignore", WhenStale::Ignore)];
}
