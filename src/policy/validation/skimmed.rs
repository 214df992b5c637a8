//! Rules and tests that were not parsed, held against what the files say otherwise: the same questions that
//! are asked of those that were. What is wrong is only noted, because then the whole is read, and that finds
//! it again.

use std::collections::BTreeSet;

use super::{LayerFile, symbol_table::SymbolTable};
use crate::policy::{
    aliases::WrittenEntry,
    place::{At, Written},
    repository::Repository,
    rule::Rule,
    selector::Selector,
    skim::{KeptRules, Mention, PlainRule},
    template::Placeholder,
    times::parse_time,
};

pub(super) fn check(book: &SymbolTable<'_>, rules: &[Rule], repositories: &[Repository]) {
    for (index, file) in book.files.iter().enumerate() {
        if let Some(kept) = file.kept {
            let reading = Reading { book, rules, repositories, file, kept, at: At::whole(index) };
            reading.check();
        }
    }
}

struct Reading<'b, 'w> {
    book: &'b SymbolTable<'w>,
    rules: &'b [Rule],
    repositories: &'b [Repository],
    file: &'b LayerFile<'w>,
    kept: &'w KeptRules<'w>,
    at: At,
}

impl Reading<'_, '_> {
    fn check(&self) {
        self.check_names();
        self.check_aliases();
        let mut known = None;
        for (_, rule) in self.kept.omitted() {
            for claim in self.kept.claims(rule) {
                // Many rules in a row take the same.
                if known != Some((claim, rule.has_groups)) {
                    self.check_claim(claim, rule);
                    known = Some((claim, rule.has_groups));
                }
            }
        }
        for mention in self.kept.mentions_of_tests() {
            self.check_mention(mention);
        }
    }

    fn expect(&self, is_so: bool) {
        if !is_so {
            self.book.findings.doubt();
        }
    }

    /// Each name once in a file.
    fn check_names(&self) {
        let Some(names) = self.kept.distinct_names() else { return self.expect(false) };
        let kept = self.file.written.rules.iter().filter_map(|rule| rule.name);
        self.expect(!kept.into_iter().any(|name| names.contains(name.value)));
    }

    fn check_aliases(&self) {
        let mut known: BTreeSet<(Selector, &str)> = BTreeSet::new();
        for (selector, alias) in self.kept.aliases() {
            if known.insert((selector, alias)) {
                let entry = WrittenEntry { value: alias.into(), at: self.at };
                selector.check(&entry, &self.book.aliases);
            }
        }
        // What an alias captures is a matter of the rule that names it.
        self.expect(self.book.aliases.captures.take().is_empty());
    }

    fn check_claim(&self, (name, lowers): (&str, bool), rule: &PlainRule) {
        let Some(index) = self.book.repository(Written { value: name, at: self.at }) else { return };
        if self.book.is_of_others(self.file.layer, &self.repositories[index]) {
            return self.expect(lowers);
        }
        // What a file is by can be more than a plain rule knows of.
        let has = |placeholder: &Placeholder| match placeholder {
            Placeholder::Group | Placeholder::Gid => rule.has_groups,
            Placeholder::Captured(_) => false,
            Placeholder::User
            | Placeholder::Uid
            | Placeholder::Command
            | Placeholder::Host
            | Placeholder::Directory
            | Placeholder::Argument(_)
            | Placeholder::Arguments
            | Placeholder::Environment(_) => true,
        };
        self.expect(self.repositories[index].path.placeholders().all(has));
    }

    fn check_mention(&self, mention: Mention<&str>) {
        match mention {
            Mention::Repository(name) => {
                let name = name
                    .strip_suffix(']')
                    .and_then(|name| name.split_once('['))
                    .map_or(name, |(name, _)| name.trim_end());
                self.book.mentioned(Written { value: name, at: self.at });
            }
            Mention::Rule(name) => {
                let mut kept = self.rules.iter();
                self.expect(
                    kept.any(|rule| rule.name == name || rule.shown_name == name) || self.book.omits(name),
                );
            }
            Mention::Time(text) => {
                let zone = self.book.layers[self.file.layer].zone.as_ref();
                self.expect(parse_time(text, zone.unwrap_or(&jiff::tz::TimeZone::UTC)).is_some());
            }
        }
    }
}
