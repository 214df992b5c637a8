//! The index itself, as it is written: which bytes of which file belong to which rule and repository, and what tells
//! whether a rule can be for a command. A pattern is written down up to its first special character, so that the index
//! never says no where the pattern says yes.

use serde::{Deserialize, Serialize};

use super::{
    parts::{FileParts, Parts},
    section::{Owner, Section},
    sequence::Sequence,
};
use crate::policy::{
    Acquisition, Policy, Rule, invocation::Invocation, selectors::CommandEntry, shared_names::SharedNames,
};

/// Of a whole policy.
#[derive(Deserialize, Serialize)]
pub(super) struct Index<'a> {
    #[serde(borrow)]
    rules: Sequence<'a, RuleEntry<'a>>,
    /// How many rules and repositories there are.
    counts: [usize; 2],
    #[serde(borrow)]
    files: Vec<FileEntry<'a>>,
    /// Names that more than one file uses, also where only one of the files is left.
    shared: SharedNames,
}

#[derive(Deserialize, Serialize)]
struct RuleEntry<'a> {
    /// The commands it is for; all of them without it.
    #[serde(borrow)]
    commands: Option<Sequence<'a, Start<'a>>>,
    /// The repositories it speaks of.
    #[serde(borrow)]
    repositories: Sequence<'a, usize>,
}

/// How what a pattern matches begins.
#[derive(Deserialize, Serialize)]
struct Start<'a> {
    is_path: bool,
    /// Whether it also ends there.
    is_whole: bool,
    text: &'a [u8],
}

#[derive(Deserialize, Serialize)]
struct FileEntry<'a> {
    length: usize,
    /// Whether its rules have sections of their own. In a list in braces they have not.
    has_rules: bool,
    #[serde(borrow)]
    sections: Sequence<'a, SectionEntry>,
}

/// A section that can be left out.
#[derive(Deserialize, Serialize)]
struct SectionEntry {
    start: usize,
    end: usize,
    belongs_to: Part,
}

/// What a section belongs to, by its number in the whole policy.
#[derive(Clone, Copy, Deserialize, Serialize)]
enum Part {
    Rule {
        index: usize,
        /// Its number in the file.
        number: usize,
    },
    Repository(usize),
    Test,
}

impl<'a> Index<'a> {
    /// The index of a policy whose files have these sections.
    pub(super) fn of(policy: &'a Policy, files: &[Vec<Section>]) -> Result<Self, postcard::Error> {
        let mut first = [0, 0];
        let mut entries = Vec::new();
        for (file, sections) in policy.files.iter().zip(files) {
            let rules = policy.rules[first[0]..].iter().take_while(|rule| rule.place.is_in(file));
            let here = policy.repositories[first[1]..].iter();
            let here = here.take_while(|repository| repository.place.is_in(file));
            let names: Vec<&str> = here.map(|repository| repository.name.as_str()).collect();
            let part = |owner: &Owner| match owner {
                Owner::Rule(number) => Some(Part::Rule { index: first[0] + number, number: *number }),
                Owner::Repository(name) => {
                    let number = names.iter().position(|known| known == name)?;
                    Some(Part::Repository(first[1] + number))
                }
                Owner::Test => Some(Part::Test),
                Owner::Everybody => None,
            };
            let entry = |section: &Section| {
                let belongs_to = part(&section.owner)?;
                Some(SectionEntry { start: section.span.start, end: section.span.end, belongs_to })
            };
            entries.push(FileEntry {
                length: file.text().len(),
                has_rules: sections.iter().any(|section| matches!(section.owner, Owner::Rule(_))),
                sections: Sequence::of(sections.iter().filter_map(entry))?,
            });
            first = [first[0] + rules.count(), first[1] + names.len()];
        }
        let rules: Vec<RuleEntry<'a>> = policy.rules.iter().map(RuleEntry::of).collect::<Result<_, _>>()?;
        Ok(Index {
            rules: Sequence::of(rules)?,
            counts: first,
            files: entries,
            shared: SharedNames::of(&policy.rules, &policy.repositories),
        })
    }

    /// What is left of the files for a command; `None` where the index is not whole.
    pub(super) fn parts<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        command: &Invocation<'_>,
    ) -> Option<Parts> {
        let mut rules = Vec::with_capacity(self.counts[0]);
        let mut repositories = vec![false; self.counts[1]];
        for rule in self.rules.iter() {
            let rule = rule?;
            let counts = rule.can_be_for(command)?;
            rules.push(counts);
            for repository in rule.repositories.iter().take_while(|_| counts) {
                *repositories.get_mut(repository?)? = true;
            }
        }
        let mut files = Vec::with_capacity(self.files.len());
        let mut entries = self.files.iter();
        for text in texts {
            let file = entries.next().filter(|file| file.length == text.len())?;
            let mut left_out = Vec::new();
            let mut numbers = Vec::new();
            for section in file.sections.iter() {
                let section = section?;
                let is_needed = match section.belongs_to {
                    Part::Rule { index, number } => {
                        let is_needed = *rules.get(index)?;
                        numbers.extend(is_needed.then_some(number));
                        is_needed
                    }
                    Part::Repository(repository) => *repositories.get(repository)?,
                    Part::Test => false,
                };
                if !is_needed {
                    left_out.push(section.start..section.end);
                }
            }
            // A rule has as many sections as it has headers.
            numbers.sort_unstable();
            numbers.dedup();
            files.push(FileParts::without(text, &left_out, file.has_rules.then_some(numbers))?);
        }
        entries.next().is_none().then(|| Parts { files, shared: self.shared.clone() })
    }
}

impl<'a> RuleEntry<'a> {
    fn of(rule: &'a Rule) -> Result<Self, postcard::Error> {
        let acquired = rule.acquire.iter().flat_map(Acquisition::terms).map(|terms| terms.repository);
        let repositories = acquired.chain(rule.from.iter().flatten().copied());
        let commands = rule.selectors.commands.as_ref();
        let commands = commands.map(|entries| Sequence::of(entries.iter().map(Start::of)));
        Ok(RuleEntry { commands: commands.transpose()?, repositories: Sequence::of(repositories)? })
    }

    fn can_be_for(&self, command: &Invocation<'_>) -> Option<bool> {
        let Some(starts) = &self.commands else { return Some(true) };
        for start in starts.iter() {
            if start?.can_match(command) {
                return Some(true);
            }
        }
        Some(false)
    }
}

impl<'a> Start<'a> {
    fn of(entry: &'a CommandEntry) -> Self {
        let (text, is_whole) = entry.pattern.start();
        Start { is_path: entry.is_path, is_whole, text }
    }

    fn can_match(&self, command: &Invocation<'_>) -> bool {
        command.any(self.is_path, |value| {
            if self.is_whole { value == self.text } else { value.starts_with(self.text) }
        })
    }
}
