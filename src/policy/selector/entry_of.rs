//! Single entries of selectors without the tree of a file: whether a text is one, and what an alias becomes.

use super::{
    Selector,
    alternatives::{Entry, entries_of},
    commands::CommandEntry,
    directories::DirectoryEntry,
    hosts::HostEntry,
    principals::{GroupEntry, Principal},
    text_entry::text_entries,
    window::Window,
};
use crate::policy::{
    aliases::{Aliases, WrittenEntry},
    pattern::{Pattern, Subject},
};

impl Selector {
    /// Whether a text that is neither empty nor an alias is an entry without fault.
    pub(in crate::policy) fn takes(self, text: &str) -> bool {
        fn is<E: Entry>(text: &str) -> bool {
            !text.starts_with('!') && E::parse(text).is_ok()
        }
        match self {
            Selector::Commands => is::<CommandEntry>(text),
            Selector::Users => is::<Principal>(text),
            Selector::Groups => is::<GroupEntry>(text),
            Selector::Hosts => is::<HostEntry>(text),
            Selector::Directories => is::<DirectoryEntry>(text),
            Selector::When => is::<Window>(text),
            Selector::Arguments | Selector::Environment => Pattern::new(text, Subject::Name).is_ok(),
        }
    }

    /// Reports what is wrong with an entry, or with the alias that it names.
    pub(in crate::policy) fn check<'w>(self, entry: &'w WrittenEntry<'w>, aliases: &Aliases<'w>) {
        fn check<'w, E: Entry>(entry: &'w WrittenEntry<'w>, aliases: &Aliases<'w>) {
            drop(entries_of::<E>(std::slice::from_ref(entry), aliases));
        }
        match self {
            Selector::Commands => check::<CommandEntry>(entry, aliases),
            Selector::Users => check::<Principal>(entry, aliases),
            Selector::Groups => check::<GroupEntry>(entry, aliases),
            Selector::Hosts => check::<HostEntry>(entry, aliases),
            Selector::Directories => check::<DirectoryEntry>(entry, aliases),
            Selector::When => check::<Window>(entry, aliases),
            Selector::Arguments | Selector::Environment => {
                drop(text_entries(aliases.entries(std::slice::from_ref(entry)), aliases));
            }
        }
    }
}
