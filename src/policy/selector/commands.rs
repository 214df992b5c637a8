//! `commands`: names, as typed or of the program, and paths of programs.

use super::alternatives::{Entry, can_be_absolute, pattern};
use crate::{
    judge::terms::LookupError,
    policy::{EvalContext, Invocation, Key, Pattern, RelevantInputs, Shape, Subject, fault::Fault, key::key},
};

#[derive(Debug)]
pub(crate) struct CommandEntry {
    pub(crate) pattern: Pattern,
    /// Whether it is matched against paths instead of names.
    pub(crate) is_path: bool,
}

impl CommandEntry {
    /// Whether it is the command of a launch.
    pub(in crate::policy) fn is_of(&self, facts: &EvalContext<'_>) -> bool {
        facts.command.any(self.is_path, |value| self.pattern.matches(value))
    }

    /// Whether it may match this command, by its literal beginning.
    pub(in crate::policy) fn may_be(&self, command: &Invocation<'_>) -> bool {
        command.any(self.is_path, |value| self.pattern.may_match(value))
    }

    /// The directory of a path or of a pattern of paths, as far as it has no special characters. A launch
    /// does not resolve it: it would wait for the servers of other programs, and so would the agent.
    pub(crate) fn directory(&self) -> Option<&str> {
        let (directory, _) = self.pattern.begin().rsplit_once('/')?;
        (self.is_path && !directory.is_empty()).then_some(directory)
    }

    /// The one name it matches, if it is neither a path nor a pattern.
    pub(crate) fn literal_name(&self) -> Option<&str> {
        self.pattern.literal().filter(|_| !self.is_path)
    }
}

impl Entry for CommandEntry {
    const KEY: Key =
        key("commands", Shape::Texts, "Names or paths of commands.", "Almost every rule.").filled();

    fn parse(text: &str) -> Result<Self, Fault> {
        let is_path = text.contains('/');
        if is_path && !can_be_absolute(text) {
            return Err(Fault::RelativeCommand { entry: text.to_owned() });
        }
        Ok(CommandEntry { pattern: pattern(text, Subject::Path)?, is_path })
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        Ok(self.is_of(facts))
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::NONE
    }

    fn covers(&self, narrow: &Self) -> bool {
        self.is_path == narrow.is_path && self.pattern.covers(&narrow.pattern)
    }

    fn is_everything(&self) -> bool {
        !self.is_path && self.pattern.text() == "*"
    }

    fn is_plain(&self) -> bool {
        self.pattern.literal().is_some()
    }

    fn text(&self) -> String {
        self.pattern.text().to_owned()
    }
}
