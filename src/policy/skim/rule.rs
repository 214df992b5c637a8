//! A plain `[[rule]]`: it is correct if everything that it names exists, and it says for which commands it
//! is.

use std::ops::Range;

use super::{
    cursor::{Cursor, Piece},
    references::{Mark, References},
};
use crate::policy::{
    Wait,
    contact::is_contact,
    keyword::{Hold, Keyword},
    limit::HIGHEST_LIMIT,
    selector::Selector,
};

/// A rule, and where its own mentions are among those of its file.
#[derive(Debug)]
pub(in crate::policy) struct PlainRule {
    pub(super) name: Option<Piece>,
    pub(in crate::policy) has_groups: bool,
    first: Mark,
    next: Mark,
}

impl PlainRule {
    pub(super) fn commands(&self) -> Range<usize> {
        self.first.commands as usize..self.next.commands as usize
    }

    pub(super) fn claims(&self) -> Range<usize> {
        self.first.claims as usize..self.next.claims as usize
    }

    pub(super) fn times(&self) -> Range<usize> {
        self.first.times as usize..self.next.times as usize
    }

    /// Reads the lines below `[[rule]]`, up to the next header; `None` if they are not plain.
    pub(super) fn read(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<Self> {
        let first = mentions.mark();
        let mut reading = Reading {
            name: None,
            seen: 0,
            has_commands: false,
            has_groups: false,
            is_denial: false,
            acquires: false,
            limits: false,
            mentions,
        };
        cursor.line_end()?;
        loop {
            cursor.empty_lines()?;
            if matches!(cursor.peek(), None | Some(b'[')) {
                break;
            }
            let key = cursor.key()?;
            reading.see(key)?;
            cursor.equals()?;
            reading.value(cursor, key)?;
            cursor.line_end()?;
        }
        reading.holds_together().then_some(())?;
        let (name, has_groups) = (reading.name, reading.has_groups);
        Some(PlainRule { name, has_groups, first, next: mentions.mark() })
    }
}

/// The keys that a plain rule can have, the usual ones first. Any other makes it a rule to be parsed.
const KEYS: [&str; 18] = [
    "name",
    "commands",
    "acquire",
    "groups",
    "users",
    "message",
    "first_of",
    "hosts",
    "when",
    "arguments",
    "directories",
    "environment",
    "except",
    "action",
    "order",
    "wait",
    "hold",
    "contact",
];

struct Reading<'m> {
    name: Option<Piece>,
    /// Of each of the keys, whether it has been there.
    seen: u32,
    has_commands: bool,
    has_groups: bool,
    is_denial: bool,
    acquires: bool,
    /// Whether a key is there that only a rule with claims can have.
    limits: bool,
    mentions: &'m mut References,
}

impl Reading<'_> {
    /// Notes a key; `None` where it is not known, or has been there.
    fn see(&mut self, key: &str) -> Option<()> {
        let bit = 1 << KEYS.iter().position(|known| *known == key)?;
        let is_new = self.seen & bit == 0;
        self.seen |= bit;
        is_new.then_some(())
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, key: &str) -> Option<()> {
        let text = cursor.text;
        match key {
            "name" => self.name = Some(cursor.string()?),
            "message" | "first_of" => drop(cursor.string()?),
            "contact" => is_contact(cursor.string()?.of(text)).then_some(())?,
            "order" => drop(cursor.number()?),
            "action" => match cursor.string()?.of(text) {
                "limit" => {}
                "deny" => self.is_denial = true,
                _ => return None,
            },
            "acquire" => {
                self.acquires = cursor.list(|cursor| claim(cursor, self.mentions))? > 0;
                self.limits = true;
            }
            "wait" | "hold" => {
                let word = cursor.string()?.of(text);
                self.limits = match key {
                    "wait" => Wait::parse(word).is_some(),
                    _ => Hold::of(word).is_some(),
                };
                self.limits.then_some(())?;
            }
            "except" => {
                let mentions = &mut *self.mentions;
                let tables = cursor.list(|cursor| {
                    let keys = cursor.table(|cursor, key| of_exception(cursor, key.of(text), mentions))?;
                    (keys > 0).then_some(())
                })?;
                (tables > 0).then_some(())?;
            }
            "commands" => {
                self.has_commands = true;
                commands(cursor, self.mentions)?;
            }
            _ => {
                self.has_groups |= key == "groups";
                any(cursor, key, self.mentions)?;
            }
        }
        Some(())
    }

    /// Whether it is for some commands, and its keys go together.
    fn holds_together(&self) -> bool {
        self.has_commands && if self.is_denial { !self.limits } else { self.acquires }
    }
}

/// A repository by its name, or one that must have at most this many slots in use.
fn claim(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    if cursor.peek() != Some(b'{') {
        mentions.claims.push(cursor.string()?);
        return Some(());
    }
    let (mut claimed, mut names, mut bounds) = (None, 0, 0);
    cursor.table(|cursor, key| {
        match key.of(cursor.text) {
            "repository" => {
                names += 1;
                claimed = Some(cursor.string()?);
            }
            "ceiling" => {
                bounds += 1;
                (0..=i64::from(HIGHEST_LIMIT)).contains(&cursor.number()?).then_some(())?;
            }
            _ => return None,
        }
        Some(())
    })?;
    (names == 1 && bounds <= 1).then_some(())?;
    let name = claimed?;
    mentions.claims.push(if bounds == 1 { name.lowering() } else { name });
    Some(())
}

// Selectors that are plain: each entry is an entry without fault, or an alias, of which that has to be found
// out.

/// The commands of a rule, which tell whether it matters to a launch.
pub(super) fn commands(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let filled = cursor.list(|cursor| {
        let piece = entry(cursor, Selector::Commands, mentions)?;
        mentions.commands.push(piece);
        Some(())
    })?;
    (filled > 0).then_some(())
}

/// Any other selector of a rule.
pub(super) fn any(cursor: &mut Cursor<'_>, key: &str, mentions: &mut References) -> Option<()> {
    if key == "when" {
        let filled = cursor.list(|cursor| {
            let piece = cursor.string()?;
            let text = piece.of(cursor.text);
            // The times of an alias would have to be known before anything is left out.
            (!text.starts_with('@') && Selector::When.takes(text)).then_some(())?;
            mentions.times.push(piece);
            Some(())
        })?;
        return (filled > 0).then_some(());
    }
    of_exception(cursor, key, mentions)
}

/// A selector in a table of `except`.
pub(super) fn of_exception(cursor: &mut Cursor<'_>, key: &str, mentions: &mut References) -> Option<()> {
    let selector = match key {
        "commands" => Selector::Commands,
        "users" => Selector::Users,
        "groups" => Selector::Groups,
        "hosts" => Selector::Hosts,
        "directories" => Selector::Directories,
        "arguments" => return arguments(cursor, mentions),
        "environment" => return environment(cursor, mentions),
        _ => return None,
    };
    let filled = cursor.list(|cursor| {
        let is_number = cursor.peek().is_some_and(|byte| byte.is_ascii_digit());
        if is_number && matches!(selector, Selector::Users | Selector::Groups) {
            // The highest number is nobody's.
            return (0..i64::from(u32::MAX)).contains(&cursor.number()?).then_some(());
        }
        entry(cursor, selector, mentions).map(drop)
    })?;
    (filled > 0).then_some(())
}

fn arguments(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let filled = cursor.list(|cursor| {
        if cursor.peek() != Some(b'[') {
            return pattern(cursor, Selector::Arguments, mentions);
        }
        let consecutive = cursor.list(|cursor| {
            let piece = cursor.string()?;
            (!piece.is_special() && !piece.of(cursor.text).starts_with('@')).then_some(())
        })?;
        (consecutive > 0).then_some(())
    })?;
    (filled > 0).then_some(())
}

fn environment(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let variables = cursor.table(|cursor, name| {
        let name = name.of(cursor.text);
        (!name.is_empty() && !name.contains('=')).then_some(())?;
        if cursor.peek() != Some(b'[') {
            return cursor.flag().map(drop);
        }
        let filled = cursor.list(|cursor| pattern(cursor, Selector::Environment, mentions))?;
        (filled > 0).then_some(())
    })?;
    (variables > 0).then_some(())
}

/// A pattern that may begin with anything, and be empty; or an alias.
fn pattern(cursor: &mut Cursor<'_>, selector: Selector, mentions: &mut References) -> Option<()> {
    let piece = cursor.string()?;
    let text = piece.of(cursor.text);
    if text.starts_with('@') {
        mentions.aliases.push((selector, piece));
        return Some(());
    }
    (!piece.is_special()).then_some(())
}

/// An entry of a list of alternatives.
fn entry(cursor: &mut Cursor<'_>, selector: Selector, mentions: &mut References) -> Option<Piece> {
    let piece = cursor.string()?;
    let text = piece.of(cursor.text);
    let is_plain = match text.as_bytes().first()? {
        b'@' => {
            mentions.aliases.push((selector, piece));
            true
        }
        b'a'..=b'z' | b'A'..=b'Z' | b'_' if selector != Selector::Directories => {
            !(selector == Selector::Commands && piece.has_slash())
        }
        b'/' if matches!(selector, Selector::Commands | Selector::Directories) => true,
        _ => selector.takes(text),
    };
    (is_plain && !piece.is_special()).then_some(piece)
}
