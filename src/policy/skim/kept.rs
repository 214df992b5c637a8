//! Which rules of a file are kept for a command, and what must be known of the others: they are not parsed,
//! but their names are collected, and the moments when their times begin or end.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    slice,
};

use super::{
    cursor::Piece,
    extract::Extract,
    outline::{Kind, Outline},
    references::Mention,
    rule::PlainRule,
};
use crate::policy::{
    aliases::{Aliases, WrittenEntry},
    eval_context::Invocation,
    place::At,
    selector::{Selector, Window},
};

/// What tells whether a rule can be for a command.
pub(in crate::policy) struct Choice<'a> {
    command: &'a Invocation<'a>,
    aliases: &'a Aliases<'a>,
    /// Of the aliases that were met, by file and name, whether they have an entry that can match.
    known: HashMap<(usize, &'a str), bool>,
}

/// The rules of a file that are kept, and those that are not.
pub(in crate::policy) struct KeptRules<'o> {
    /// What is left to be parsed.
    pub(in crate::policy) extract: Extract,
    /// Of each rule of the file, whether it is kept.
    are_kept: Vec<bool>,
    outline: &'o Outline,
    text: &'o str,
    /// The names that rules which are left out say of themselves; nothing where two say the same.
    names: Option<Names<'o>>,
}

/// Some names, which are hashed as quickly as they come: who writes a policy in which many collide waits for
/// it.
pub(in crate::policy) type Names<'o> = HashSet<&'o str, BuildHasherDefault<NameHasher>>;

/// Multiplies eight bytes at a time.
#[derive(Default)]
pub(in crate::policy) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(8) {
            let word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The times of a rule that was left out.
#[derive(Debug)]
pub(in crate::policy) struct Idle {
    /// How many of the rules precede it.
    pub(in crate::policy) after: usize,
    pub(in crate::policy) layer: usize,
    pub(in crate::policy) times: Vec<Window>,
}

impl<'a> Choice<'a> {
    pub(in crate::policy) fn new(command: &'a Invocation<'a>, aliases: &'a Aliases<'a>) -> Self {
        Choice { command, aliases, known: HashMap::new() }
    }

    /// The rules of a file that can be for the command.
    pub(in crate::policy) fn rules_of<'o: 'a>(
        &mut self,
        outline: &'o Outline,
        file: usize,
        text: &'o str,
    ) -> KeptRules<'o> {
        let (mut extract, mut are_kept) = (Extract::default(), Vec::new());
        let mut names =
            Names::with_capacity_and_hasher(outline.sections.len(), BuildHasherDefault::default());
        let mut are_distinct = true;
        for (index, section) in outline.sections.iter().enumerate() {
            let Kind::Rule(plain) = &section.kind else { continue };
            let is_kept = plain.as_ref().is_none_or(|rule| {
                let mut commands = outline.commands(rule);
                commands.any(|entry| self.can_match(entry.of(text), entry.has_slash(), file))
            });
            if is_kept {
                extract.add(text, section.start..outline.end(index, text));
            }
            are_kept.push(is_kept);
            if let Some(name) = plain.as_ref().filter(|_| !is_kept).and_then(|rule| rule.name) {
                are_distinct &= names.insert(name.of(text));
            }
        }
        KeptRules { extract, are_kept, outline, text, names: are_distinct.then_some(names) }
    }

    fn can_match(&mut self, entry: &'a str, is_path: bool, file: usize) -> bool {
        if !entry.starts_with('@') {
            return can_match(entry, is_path, self.command);
        }
        let Choice { command, aliases, known } = self;
        *known.entry((file, entry)).or_insert_with(|| {
            let entry = WrittenEntry { value: entry.into(), at: At::whole(file) };
            // Those of an alias that is not there are a fault, and then the whole is read.
            let entries = aliases.entries(slice::from_ref(&entry));
            entries.iter().any(|entry| can_match(&entry.value, entry.value.contains('/'), command))
        })
    }
}

/// Whether an entry of `commands` can match: all that it matches begins with the part before its first
/// special character.
fn can_match(entry: &str, is_path: bool, command: &Invocation<'_>) -> bool {
    let special = |byte: u8| matches!(byte, b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'\\');
    command.any(is_path, |value| {
        let mut left = value.iter();
        for byte in entry.bytes() {
            if special(byte) {
                return true;
            }
            if left.next() != Some(&byte) {
                return false;
            }
        }
        left.next().is_none()
    })
}

impl Outline {
    /// The parts of the text that every command needs: all but rules, and tests that are plain.
    pub(in crate::policy) fn head(&self, text: &str) -> Extract {
        let mut head = Extract::default();
        for (index, section) in self.sections.iter().enumerate() {
            if matches!(section.kind, Kind::Other) {
                head.add(text, section.start..self.end(index, text));
            }
        }
        head
    }

    fn end(&self, section: usize, text: &str) -> usize {
        self.sections.get(section + 1).map_or(text.len(), |next| next.start)
    }

    fn commands(&self, rule: &PlainRule) -> impl Iterator<Item = Piece> {
        self.mentions.commands.get(rule.commands()).unwrap_or_default().iter().copied()
    }
}

impl<'o> KeptRules<'o> {
    /// The number in the file, counted from 0, of each rule that was kept.
    pub(in crate::policy) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.are_kept.iter().enumerate().filter(|(_, is_kept)| **is_kept).map(|(number, _)| number)
    }

    /// The repositories that a rule acquires, each with whether it wants to have less of it.
    pub(in crate::policy) fn claims(&self, rule: &PlainRule) -> impl Iterator<Item = (&'o str, bool)> {
        let claims = self.outline.mentions.claims.get(rule.claims()).unwrap_or_default();
        claims.iter().map(|piece| (piece.of(self.text), piece.lowers()))
    }

    /// The aliases of all rules that could be left out, each with its selector.
    pub(in crate::policy) fn aliases(&self) -> impl Iterator<Item = (Selector, &'o str)> {
        self.outline.mentions.aliases.iter().map(|(selector, piece)| (*selector, piece.of(self.text)))
    }

    /// What plain tests refer to.
    pub(in crate::policy) fn mentions_of_tests(&self) -> impl Iterator<Item = Mention<&'o str>> {
        self.outline.mentions.tests.iter().map(|mention| mention.of(self.text))
    }

    /// The rules that were left out, each with its number.
    pub(in crate::policy) fn omitted(&self) -> impl Iterator<Item = (usize, &'o PlainRule)> {
        let rules = self.outline.sections.iter().filter_map(|section| match &section.kind {
            Kind::Rule(plain) => Some(plain.as_ref()),
            Kind::PlainTest | Kind::Other => None,
        });
        let rules = rules.zip(&self.are_kept).enumerate();
        rules.filter(|(_, (_, is_kept))| !**is_kept).filter_map(|(number, (rule, _))| Some((number, rule?)))
    }

    /// The names that rules which were left out say of themselves; `None` where two say the same.
    pub(in crate::policy) fn distinct_names(&self) -> Option<&Names<'o>> {
        self.names.as_ref()
    }

    /// Whether one that was left out is called so, by its name or by its number.
    pub(in crate::policy) fn omits(&self, name: &str) -> bool {
        let number = || name.strip_prefix("rule ")?.parse::<usize>().ok()?.checked_sub(1);
        let is_unnamed =
            |number: usize| self.omitted().any(|(other, rule)| other == number && rule.name.is_none());
        self.names.as_ref().is_some_and(|names| names.contains(name)) || number().is_some_and(is_unnamed)
    }

    /// Whether any rule that could be left out asks for the time.
    pub(in crate::policy) fn ask_for_the_time(&self) -> bool {
        !self.outline.mentions.times.is_empty()
    }

    /// The times of those that were left out; `before` is how many rules of the layer precede this file's.
    pub(in crate::policy) fn idle(&self, others: usize, layer: usize) -> Vec<Idle> {
        let asking = self.omitted().filter(|(_, rule)| !rule.times().is_empty());
        let idle = asking.map(|(number, rule)| {
            let times = self.outline.mentions.times.get(rule.times()).unwrap_or_default();
            let times = times.iter().filter_map(|piece| Window::parse(piece.of(self.text)).ok()).collect();
            let before = self.are_kept.iter().take(number).filter(|is_kept| **is_kept).count();
            Idle { after: others + before, layer, times }
        });
        idle.collect()
    }
}
