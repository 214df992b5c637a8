//! Use of a repository by programs that rungate did not start, and how the policy measures it.

use std::{path::PathBuf, time::Duration};

use super::keyword::Keyword;

/// Where the directory of root's samples is.
pub const SAMPLES: &str = "/run/rungate-outside";

/// The facts that a claim needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outside {
    /// The file with the last sample.
    pub sample: PathBuf,
    /// The user who may have written it, besides root.
    pub owner: u32,
    pub counts: Counts,
    pub stale_after: Duration,
    pub when_stale: WhenStale,
    pub settle: Duration,
    /// The requesting user, and whether each user has a separate table.
    pub uid: u32,
    pub is_by_user: bool,
    /// The node name of this host, and whether each host has a separate table.
    pub host: String,
    pub is_by_host: bool,
    /// The launches that share one seat (`shared_by`).
    pub shared_by: Option<SharedBy>,
}

/// What launches of one group have in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SharedBy {
    pub user: bool,
    pub host: bool,
}

/// The use that a sample contains.
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

/// The hosts that one answer covers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Of {
    /// All hosts: the answer of a licence server.
    #[default]
    Site,
    /// The host on which the command runs. A line without a host is about this one.
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
