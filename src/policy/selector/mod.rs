//! The selectors of a rule, and of each table of its `except`: the same keys, all of which must match. An
//! absent selector matches everything. Each kind is a file of its own and a line of the table below.

mod alternatives;
mod arguments;
mod commands;
mod directories;
mod environment;
mod hosts;
mod principals;
mod text_entry;
mod window;

use std::fmt;

use self::{alternatives::Kind, arguments::Arguments, environment::Environment};
pub(super) use self::{
    alternatives::{Entry, entries_of, entry_of, inputs_of, warn_of_unknown},
    directories::DirectoryEntry,
    hosts::HostEntry,
    principals::Ids,
    window::until,
};
pub(crate) use self::{
    commands::CommandEntry,
    principals::{GroupEntry, Principal},
    text_entry::UNNAMED,
};
use super::{Aliases, Captured, EvalContext, Invocation, Key, RelevantInputs, Section};
use crate::judge::terms::LookupError;
pub(super) use window::Window;

macro_rules! selectors {
    ($($name:ident, $key:ident: $kind:ty;)+) => {
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum Selector { $(#[doc = concat!("`", stringify!($key), "`")] $name,)+ }

        pub(super) const KEYS: &[Key] = &[$(<$kind as Kind>::KEY),+];

        impl Selector {
            pub fn key(self) -> &'static str {
                match self { $(Selector::$name => <$kind as Kind>::KEY.name,)+ }
            }

            /// Whether the result is the same for everything that a user starts on a host.
            pub fn is_personal(self) -> bool {
                match self { $(Selector::$name => <$kind as Kind>::IS_PERSONAL,)+ }
            }
        }

        /// The selectors of a rule or of an exception.
        #[derive(Debug, Default)]
        pub(crate) struct Selectors { $(pub(crate) $key: Option<$kind>,)+ }

        impl Selectors {
            /// Reads those of a rule, or of one table of its `except`. Each fault is reported at its place,
            /// there or in an alias.
            pub(super) fn read(section: &Section<'_>, aliases: &Aliases<'_>) -> Self {
                let value = |key: &Key| section.get(key.name);
                Selectors { $($key: value(&<$kind as Kind>::KEY).and_then(|value| Kind::read(value, aliases)),)+ }
            }

            pub(crate) fn selectors(&self) -> impl Iterator<Item = Selector> {
                [$(self.$key.as_ref().map(|_| Selector::$name)),+].into_iter().flatten()
            }

            /// The entries of a selector as the policy writes them, aliases replaced.
            pub(crate) fn shown(&self, selector: Selector) -> Vec<String> {
                match selector { $(Selector::$name => self.$key.as_ref().map_or_else(Vec::new, Kind::shown),)+ }
            }

            /// Every selector that exists, as TOML.
            pub(super) fn printed(&self) -> impl Iterator<Item = (&'static str, String)> {
                [$((<$kind as Kind>::KEY.name, self.$key.as_ref().map(Kind::printed))),+]
                    .into_iter()
                    .filter_map(|(key, printed)| Some((key, printed?)))
            }

            /// Whether these selectors match everything that the others match.
            pub(super) fn cover(&self, narrow: &Selectors) -> bool {
                true $(&& match (&self.$key, &narrow.$key) {
                    (None, _) => true,
                    (Some(wide), None) => wide.is_everything(),
                    (Some(wide), Some(narrow)) => wide.covers(narrow),
                })+
            }

            /// The inputs that make a difference to any of them.
            pub(super) fn inputs(&self) -> RelevantInputs {
                [$(self.$key.as_ref().map_or(RelevantInputs::NONE, Kind::inputs)),+]
                    .into_iter()
                    .fold(RelevantInputs::NONE, RelevantInputs::or)
            }

            /// What they capture of a request that they match.
            pub(crate) fn captured(&self, facts: &EvalContext<'_>) -> Vec<Captured> {
                [$(self.$key.as_ref().map_or_else(Vec::new, |selector| selector.captured(facts))),+].concat()
            }

            /// The first selector of user, groups or host that does not match.
            pub(crate) fn personal_mismatch(
                &self,
                facts: &EvalContext<'_>,
                layer: usize,
            ) -> Result<Option<Selector>, LookupError> {
                $(if let Some(selector) = self.$key.as_ref().filter(|_| Selector::$name.is_personal())
                    && !selector.matches(facts, layer)?
                {
                    return Ok(Some(Selector::$name));
                })+
                Ok(None)
            }

            /// The first selector that matches some of the launches of a user on a host, and not others.
            pub(crate) fn first_open(&self) -> Option<Selector> {
                $(if self.$key.as_ref().is_some_and(|selector| !selector.is_everything())
                    && !Selector::$name.is_personal()
                {
                    return Some(Selector::$name);
                })+
                None
            }

            /// Whether any of them needs the identity of the caller.
            pub(crate) fn need_lookup(&self) -> bool {
                false $(|| <$kind as Kind>::ASKS_WHO && self.$key.is_some())+
            }

            /// The first selector that does not match, of those that need the identity of the caller or of
            /// the others. One that does not match decides, even if another could not be looked up.
            fn first_mismatch(
                &self,
                asking_who: bool,
                facts: &EvalContext<'_>,
                layer: usize,
            ) -> Result<Option<Selector>, LookupError> {
                let mut open = Ok(None);
                $(if let Some(selector) = self.$key.as_ref().filter(|_| <$kind as Kind>::ASKS_WHO == asking_who) {
                    match selector.matches(facts, layer) {
                        Ok(true) => {}
                        Ok(false) => return Ok(Some(Selector::$name)),
                        Err(failure) => open = open.and(Err(failure)),
                    }
                })+
                open
            }
        }
    };
}

selectors! {
    Commands, commands: Vec<CommandEntry>;
    Arguments, arguments: Arguments;
    Users, users: Vec<Principal>;
    Groups, groups: Vec<GroupEntry>;
    Hosts, hosts: Vec<HostEntry>;
    Directories, directories: Vec<DirectoryEntry>;
    Environment, environment: Environment;
    When, when: Vec<Window>;
}

impl Selectors {
    /// The first selector that does not match, of those that need no look-up.
    pub(crate) fn mismatch_without_lookup(&self, facts: &EvalContext<'_>, layer: usize) -> Option<Selector> {
        self.first_mismatch(false, facts, layer).ok().flatten()
    }

    /// Whether they may match a command, as far as that is known without its globs.
    pub(super) fn may_be_for(&self, command: &Invocation<'_>) -> bool {
        self.commands.as_ref().is_none_or(|commands| commands.iter().any(|entry| entry.may_be(command)))
    }

    /// Whether they match the command of a request.
    pub(super) fn are_for_command(&self, facts: &EvalContext<'_>) -> bool {
        self.commands.as_ref().is_none_or(|commands| commands.iter().any(|entry| entry.is_of(facts)))
    }

    /// The first selector that does not match, of those that need the identity of the caller.
    pub(crate) fn mismatch_with_lookup(
        &self,
        facts: &EvalContext<'_>,
        layer: usize,
    ) -> Result<Option<Selector>, LookupError> {
        self.first_mismatch(true, facts, layer)
    }
}

impl Selectors {
    /// The cost of comparing them with the arguments of a launch; everything else costs very little.
    pub(crate) fn effort(&self, facts: &EvalContext<'_>) -> u64 {
        facts.effort_of(self.arguments.as_ref().map_or(0, Arguments::patterns))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
