//! A layer of the policy: the system's files, a named file, the caller's own. Defaults, families and
//! permission to loosen belong to a layer, so that a user's own file cannot affect the system's.

use std::{path::Path, sync::Arc};

use super::{
    CommandEntry, Directory, EvalContext, Key, Keys, Log, Principal, Shape,
    key::key,
    selector::Entry,
    toml_text::{list, string},
};
use crate::judge::terms::{Hold, Keeper, Keyword, LookupError, Wait};
use jiff::tz::TimeZone;

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
    /// Whether it may also loosen the settings of earlier layers.
    pub(crate) may_loosen: bool,
    pub(crate) directory: Directory,
    pub(crate) unmatched: Unmatched,
    pub(crate) enforce: bool,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
    pub(crate) create_mode: Option<u32>,
    pub(crate) keeper: Keeper,
    pub(crate) contact: Option<Arc<str>>,
    /// The zone of `when`; only set if a rule of the layer uses the time.
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

    /// Whether its directories are for all users, and not only for those of a group: a mode without rights
    /// for a group is for files that each user has alone.
    pub(crate) fn is_for_all(&self) -> bool {
        let mode = self.create_mode();
        mode & 0o006 == 0o006 || mode & 0o060 != 0o060
    }

    /// The mode of directories that are created.
    pub(crate) fn directory_mode(&self) -> u32 {
        if self.is_of_system() { 0o1777 } else { 0o700 }
    }

    /// Whether it is the system's, the same for every user, or delegated by it.
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

// Delegation: a drop-in that belongs to the admin of a department. The main file says which users and
// commands it applies to, and that is decided before the drop-in is opened. So the drop-in cannot affect
// other users.

pub(super) static DELEGATE: Keys = Keys { what: "a delegation", groups: &[KEYS], together: &[] };

const KEYS: &[Key] = &[
    key("owner", Shape::TextOrNumber, "User who may own the drop-in, beside root.", "Every delegation.")
        .required(),
    key(
        "users",
        Shape::TextsOrNumbers,
        "Users whom its rules may apply to, as in rules.",
        "Every delegation.",
    )
    .required()
    .filled(),
    key("commands", Shape::Texts, "Commands that its rules may apply to, as in rules.", "Every delegation.")
        .required()
        .filled(),
];

/// The keys of a policy that a delegated file may not have.
pub(super) const FORBIDDEN: [&str; 4] = ["defaults", "command", "log", "delegate"];

/// One `[delegate."NAME"]`.
#[derive(Debug)]
pub struct Delegation {
    /// The name of the drop-in.
    pub(super) file: String,
    pub(super) owner: String,
    pub(super) users: Vec<Principal>,
    pub(super) commands: Vec<CommandEntry>,
}

impl Delegation {
    /// The name of the drop-in.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The user who may own the drop-in besides root: a name or a uid.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The users that it applies to, as the policy writes them, with aliases replaced.
    pub fn users(&self) -> Vec<String> {
        self.users.iter().map(Entry::text).collect()
    }

    /// Whether it delegates this file.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == self.file.as_str())
    }

    /// The directory of its repositories. No value of a placeholder has such a name.
    pub(super) fn directory(&self) -> String {
        format!("@{}", self.file.strip_suffix(".toml").unwrap_or(&self.file))
    }

    /// Whether it applies to the command of a launch; that needs no look-up.
    pub(crate) fn is_for_command(&self, facts: &EvalContext<'_>) -> bool {
        self.commands.iter().any(|command| command.is_of(facts))
    }

    /// Whether it applies to every command.
    pub(crate) fn is_for_all_commands(&self) -> bool {
        self.commands.iter().any(Entry::is_everything)
    }

    /// Whether it applies to the user who starts it.
    pub(crate) fn is_for_user(&self, facts: &EvalContext<'_>) -> Result<bool, LookupError> {
        Principal::any(&self.users, facts)
    }

    /// Whether it can apply to a launch. If that is unknown, the answer is yes, because its rules check
    /// again.
    pub(crate) fn may_be_for(&self, facts: &EvalContext<'_>) -> bool {
        self.is_for_command(facts) && self.is_for_user(facts).unwrap_or(true)
    }

    /// The lines below its header.
    pub(super) fn printed(&self) -> impl Iterator<Item = (&'static str, String)> {
        let commands = list(self.commands.iter().map(|command| string(&command.text())));
        let users = list(self.users().iter().map(|user| string(user)));
        [("owner", string(&self.owner)), ("users", users), ("commands", commands)].into_iter()
    }
}

/// Whether it gives the same file to the same owner, for the same users and commands.
impl PartialEq for Delegation {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.printed().eq(other.printed())
    }
}
