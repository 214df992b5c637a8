//! Whether one thing matches everything that another does, as far as that can be seen without a request. It may miss
//! some (nobody proves that two globs mean the same), but what it finds is certain: `policy check` warns with it.

use super::{
    pattern::Pattern,
    principal::{GroupEntry, Principal},
    selectors::{ArgumentEntry, CommandEntry, DirectoryEntry, EnvironmentEntry, EnvironmentValue, Selectors},
    window::Window,
};

/// A thing that matches, and can be held against another.
trait Covers {
    /// Whether this matches everything that the other does.
    fn covers(&self, other: &Self) -> bool;
}

impl Selectors {
    /// Whether these selectors match whatever the others match.
    pub(super) fn cover(&self, other: &Selectors) -> bool {
        list(self.commands.as_ref(), other.commands.as_ref())
            && list(self.arguments.as_ref(), other.arguments.as_ref())
            && list(self.users.as_ref(), other.users.as_ref())
            && list(self.groups.as_ref(), other.groups.as_ref())
            && list(self.hosts.as_ref(), other.hosts.as_ref())
            && list(self.directories.as_ref(), other.directories.as_ref())
            && list(self.when.as_ref(), other.when.as_ref())
            && self.environment.iter().all(|wide| other.environment.iter().any(|narrow| wide.covers(narrow)))
    }
}

/// A selector that is missing matches everything; the entries of one are alternatives.
fn list<T: Covers>(wide: Option<&Vec<T>>, narrow: Option<&Vec<T>>) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => narrow.iter().all(|entry| wide.iter().any(|wide| wide.covers(entry))),
    }
}

impl Covers for Pattern {
    fn covers(&self, other: &Self) -> bool {
        self.is_everything()
            || self.text() == other.text()
            || other.literal().is_some_and(|value| self.matches(value.as_bytes()))
    }
}

impl Covers for CommandEntry {
    fn covers(&self, other: &Self) -> bool {
        self.is_path == other.is_path && self.pattern.covers(&other.pattern)
    }
}

impl Covers for DirectoryEntry {
    fn covers(&self, other: &Self) -> bool {
        self.pattern.text() == other.pattern.text()
            || other.pattern.literal().is_some_and(|directory| self.matches(directory.as_bytes()))
    }
}

impl Covers for ArgumentEntry {
    fn covers(&self, other: &Self) -> bool {
        self.patterns.len() == other.patterns.len()
            && self.patterns.iter().zip(&other.patterns).all(|(wide, narrow)| wide.covers(narrow))
    }
}

impl Covers for Principal {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Principal::User(wide), _) if wide.is_everything() => true,
            (Principal::User(wide), Principal::User(narrow)) => wide.covers(narrow),
            (Principal::Uids(wide), Principal::Uids(narrow)) => {
                wide.contains(narrow.start()) && wide.contains(narrow.end())
            }
            (Principal::Group(wide), Principal::Group(narrow)) => wide.covers(narrow),
            (Principal::Netgroup(wide), Principal::Netgroup(narrow)) => wide == narrow,
            _ => false,
        }
    }
}

impl Covers for GroupEntry {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (GroupEntry::Named(wide), _) if wide.is_everything() => true,
            (GroupEntry::Named(wide), GroupEntry::Named(narrow)) => wide.covers(narrow),
            (GroupEntry::Gids(wide), GroupEntry::Gids(narrow)) => {
                wide.contains(narrow.start()) && wide.contains(narrow.end())
            }
            _ => false,
        }
    }
}

impl Covers for Window {
    fn covers(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Covers for EnvironmentEntry {
    fn covers(&self, other: &Self) -> bool {
        self.variable == other.variable
            && match (&self.value, &other.value) {
                (EnvironmentValue::Unset, EnvironmentValue::Unset)
                | (EnvironmentValue::Set, EnvironmentValue::Set | EnvironmentValue::OneOf(_)) => true,
                (EnvironmentValue::OneOf(wide), EnvironmentValue::OneOf(narrow)) => {
                    narrow.iter().all(|entry| wide.iter().any(|wide| wide.covers(entry)))
                }
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::pattern::Subject;

    #[track_caller]
    fn case(wide: &str, narrow: &str, covers: bool) {
        let pattern = |text: &str| Pattern::new(text, Subject::Name).expect("a pattern");
        assert_eq!(pattern(wide).covers(&pattern(narrow)), covers);
    }

    #[test]
    fn a_pattern_covers_itself_and_the_literals_that_it_matches() {
        case("*", "a*", true);
        case("a*", "a*", true);
        case("a*", "ann", true);
        case("a*", "bob", false);
        case("ann", "a*", false);
        case("a*", "an*", false);
    }
}
