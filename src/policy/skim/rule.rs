//! A `[[rule]]` that is plain: nothing is wrong with it as long as what it mentions is there, and it says
//! which commands it is for.

use std::ops::Range;

use super::{
    cursor::{Cursor, Piece},
    references::{Mark, References},
    selectors,
};
use crate::policy::{
    Wait,
    contact::is_contact,
    keyword::{Hold, Keyword},
    limit::HIGHEST_LIMIT,
};

/// A rule, and where among the mentions of its file its own stand.
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

    /// Reads what stands under `[[rule]]`, up to the next header; `None` where it is not plain.
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
    /// Whether a key stands there that means something only to a rule that acquires.
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
                    let keys = cursor
                        .table(|cursor, key| selectors::of_exception(cursor, key.of(text), mentions))?;
                    (keys > 0).then_some(())
                })?;
                (tables > 0).then_some(())?;
            }
            "commands" => {
                self.has_commands = true;
                selectors::commands(cursor, self.mentions)?;
            }
            _ => {
                self.has_groups |= key == "groups";
                selectors::any(cursor, key, self.mentions)?;
            }
        }
        Some(())
    }

    /// Whether it is for some commands, and its keys go together.
    fn holds_together(&self) -> bool {
        self.has_commands && if self.is_denial { !self.limits } else { self.acquires }
    }
}

/// A repository by its name, or one that is to have at most so many slots in use.
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
