//! A layer of the policy: the system's files, a named file, the caller's own. Defaults, families and
//! permission to loosen belong to a layer, so that a user's own file cannot affect the system's.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::{
    delegation::Delegation,
    keyword::{Hold, Keyword},
    log::Log,
    path_syntax::Directory,
    span_of_time::Wait,
};
use crate::judge::terms::keyword::Keeper;

/// The system's policy.
pub const SYSTEM_POLICY: &str = "/etc/rungate/policy.toml";

/// Default directory of the system's repositories.
pub(crate) const SYSTEM_DIRECTORY: &str = "/run/rungate";

/// The owner of a layer's files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LayerKind {
    /// The system's file and its drop-ins.
    System,
    /// A drop-in of the system that is delegated to the admin of a department.
    Delegated,
    /// The file that `--policy` or `RUNGATE_POLICY` names.
    Given,
    /// The caller's own.
    Own,
}

/// The defaults of a layer.
#[derive(Debug)]
pub struct Layer {
    pub(crate) kind: LayerKind,
    /// Whether it may also loosen what the layers before it say.
    pub(crate) may_loosen: bool,
    pub(crate) directory: Directory,
    pub(crate) unmatched: Unmatched,
    pub(crate) enforce: bool,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
    pub(crate) create_mode: Option<u32>,
    pub(crate) keeper: Keeper,
    pub(crate) contact: Option<Arc<str>>,
    /// The zone of `when`; only there where a rule of the layer uses the time.
    pub(crate) zone: Option<TimeZone>,
    pub(super) zone_name: Option<String>,
    pub(super) log: Option<Log>,
    /// The users that it applies to, if it is delegated.
    pub(crate) delegation: Option<Arc<Delegation>>,
}

impl Layer {
    /// The owner of its files.
    pub fn kind(&self) -> LayerKind {
        self.kind
    }

    /// The mode of repositories that are created: in a system policy all users must be able to open them.
    pub(crate) fn create_mode(&self) -> u32 {
        self.create_mode.unwrap_or(if self.is_of_system() { 0o666 } else { 0o600 })
    }

    /// The mode of directories that are created.
    pub(crate) fn directory_mode(&self) -> u32 {
        if self.is_of_system() { 0o1777 } else { 0o700 }
    }

    /// Whether it is the system's, for every user alike, or delegated by it.
    pub(crate) fn is_of_system(&self) -> bool {
        matches!(self.kind, LayerKind::System | LayerKind::Delegated)
    }

    /// The users that it applies to, if it is delegated.
    pub fn delegation(&self) -> Option<&Delegation> {
        self.delegation.as_deref()
    }
}

// What happens to a launch that no rule matches.

/// What happens when no rule matches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unmatched {
    /// The program starts.
    #[default]
    Run,
    /// It is refused.
    Refuse,
}

impl Keyword for Unmatched {
    const WORDS: &'static [(&'static str, Self)] = &[("run", Unmatched::Run), ("refuse", Unmatched::Refuse)];
}
