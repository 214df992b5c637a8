//! Delegation: a drop-in that belongs to the admin of a department. The main file says which users and
//! commands it applies to, and that is decided before the drop-in is opened. So whatever happens to it does
//! not affect other users.

use std::path::Path;

use super::{
    eval_context::EvalContext,
    key::{Key, Keys, Shape, key},
    names::LookupError,
    selector::{CommandEntry, Entry, Principal},
    toml_text::{list, string},
};

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
        format!("@{}", self.file.trim_end_matches(".toml"))
    }

    /// Whether it applies to the command of a launch; that needs no look-up.
    pub(crate) fn is_for_command(&self, facts: &EvalContext<'_>) -> bool {
        self.commands.iter().any(|command| command.is_of(facts))
    }

    /// Whether it applies to the user who starts it.
    pub(crate) fn is_for_user(&self, facts: &EvalContext<'_>) -> Result<bool, LookupError> {
        Principal::any(&self.users, facts)
    }

    /// Whether it can apply to a launch. If that is unknown it may: its rules check again.
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
