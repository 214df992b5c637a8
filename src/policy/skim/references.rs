//! What plain rules and tests refer to, each with its position: it must exist although they are left out.

use super::cursor::Piece;
use crate::policy::selector::Selector;

/// What plain rules and tests refer to, each kind in the order of the file.
#[derive(Debug, Default)]
pub(in crate::policy) struct References {
    /// Entries of `commands`.
    pub(super) commands: Vec<Piece>,
    /// The repositories that rules acquire.
    pub(super) claims: Vec<Piece>,
    /// Aliases, each with its `@` and its selector.
    pub(super) aliases: Vec<(Selector, Piece)>,
    /// Entries of `when`.
    pub(super) times: Vec<Piece>,
    /// What tests refer to.
    pub(super) tests: Vec<Mention<Piece>>,
}

/// How many mentions of each kind there were at some point.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) commands: u32,
    pub(super) claims: u32,
    pub(super) aliases: u32,
    pub(super) times: u32,
    pub(super) tests: u32,
}

impl References {
    pub(super) fn mark(&self) -> Mark {
        // A text is shorter than 4 GiB, and no two of them begin at the same byte.
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let References { commands, claims, aliases, times, tests } = self;
        Mark {
            commands: length(commands.len()),
            claims: length(claims.len()),
            aliases: length(aliases.len()),
            times: length(times.len()),
            tests: length(tests.len()),
        }
    }

    /// Forgets all since then.
    pub(super) fn rewind(&mut self, mark: Mark) {
        let References { commands, claims, aliases, times, tests } = self;
        commands.truncate(mark.commands as usize);
        claims.truncate(mark.claims as usize);
        aliases.truncate(mark.aliases as usize);
        times.truncate(mark.times as usize);
        tests.truncate(mark.tests as usize);
    }
}

/// What a test refers to.
#[derive(Clone, Copy, Debug)]
pub(in crate::policy) enum Mention<T> {
    /// A repository, perhaps with a member in brackets.
    Repository(T),
    Rule(T),
    /// A moment, which depends on the zone.
    Time(T),
}

impl Mention<Piece> {
    pub(super) fn of(self, text: &str) -> Mention<&str> {
        match self {
            Mention::Repository(name) => Mention::Repository(name.of(text)),
            Mention::Rule(name) => Mention::Rule(name.of(text)),
            Mention::Time(time) => Mention::Time(time.of(text)),
        }
    }
}
