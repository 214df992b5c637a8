//! The sections of a policy file: each runs from a header in brackets to the next one, and belongs to a rule, a
//! repository, a command or a test, or else to everybody. Where a header stands is taken from the parser, because a
//! line that looks like one may be part of a string.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// What a section belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Owner {
    /// The rule with this number in its file, counted from 0.
    Rule(usize),
    /// The repository of this name.
    Repository(String),
    /// A test.
    Test,
    /// Everything else: no launch can do without it.
    Everybody,
}

/// A part of a file, in bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Section {
    pub(super) span: Range<usize>,
    pub(super) owner: Owner,
}

/// The sections of a text without faults, in their order. What stands before the first header is none.
pub(super) fn sections(text: &str) -> Vec<Section> {
    let (tree, _) = DeTable::parse_recoverable(text);
    let mut walk = Walk { text, headers: Vec::new() };
    for (key, value) in tree.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("rule", DeValue::Array(rules)) => {
                for (number, rule) in rules.iter().enumerate() {
                    walk.add(rule, &Owner::Rule(number));
                }
            }
            ("test", DeValue::Array(tests)) => tests.iter().for_each(|test| walk.add(test, &Owner::Test)),
            ("repository", DeValue::Table(repositories)) => {
                walk.add_header(value.span(), Owner::Everybody);
                for (name, repository) in repositories {
                    walk.add(repository, &Owner::Repository(name.get_ref().to_string()));
                }
            }
            _ => walk.add(value, &Owner::Everybody),
        }
    }
    let mut headers = walk.headers;
    headers.sort_by_key(|(start, _)| *start);
    let ends: Vec<usize> = headers.iter().skip(1).map(|(start, _)| *start).chain([text.len()]).collect();
    let section = |((start, owner), end)| Section { span: start..end, owner };
    headers.into_iter().zip(ends).map(section).collect()
}

struct Walk<'t> {
    text: &'t str,
    headers: Vec<(usize, Owner)>,
}

impl Walk<'_> {
    /// Adds the headers of a value and of all that is below it.
    fn add(&mut self, value: &Spanned<DeValue<'_>>, owner: &Owner) {
        match value.get_ref() {
            DeValue::Table(table) => {
                self.add_header(value.span(), owner.clone());
                table.iter().for_each(|(_, value)| self.add(value, owner));
            }
            DeValue::Array(values) => values.iter().for_each(|value| self.add(value, owner)),
            _ => {}
        }
    }

    /// A table has a header where its span begins with a bracket; else it stands in braces, or its key is dotted.
    fn add_header(&mut self, span: Range<usize>, owner: Owner) {
        if self.text[span.start..].starts_with('[') {
            self.headers.push((span.start, owner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(text: &str) -> Vec<(String, Owner)> {
        let shown = |section: Section| {
            (text[section.span].lines().next().unwrap_or_default().to_owned(), section.owner)
        };
        sections(text).into_iter().map(shown).collect()
    }

    #[test]
    fn every_section_has_its_owner() {
        let text = "version = 1\n[defaults]\nwait = '1m'\n[repository.a]\nlimit = 1\n[repository.a.limits]\nann = 2\n \
                    [[rule]]\nname = 'x'\n[rule.environment]\nA = ['b']\n[[rule.except]]\nusers = ['c']\n[[rule]]\n[[test]]\n";
        let repository = || Owner::Repository("a".into());
        let expected = [
            ("[defaults]", Owner::Everybody),
            ("[repository.a]", repository()),
            ("[repository.a.limits]", repository()),
            ("[[rule]]", Owner::Rule(0)),
            ("[rule.environment]", Owner::Rule(0)),
            ("[[rule.except]]", Owner::Rule(0)),
            ("[[rule]]", Owner::Rule(1)),
            ("[[test]]", Owner::Test),
        ];
        assert_eq!(owners(text), expected.map(|(header, owner)| (header.to_owned(), owner)));
    }

    #[test]
    fn what_only_looks_like_a_header_is_none() {
        let text =
            "[[rule]]\nmessage = '''\n[[rule]]\n[repository.x]\n'''\nacquire = [\n  [\n  'a'],\n]\n[log]\n";
        let expected = [("[[rule]]", Owner::Rule(0)), ("[log]", Owner::Everybody)];
        assert_eq!(owners(text), expected.map(|(header, owner)| (header.to_owned(), owner)));
    }

    #[test]
    fn tables_in_braces_and_dotted_keys_have_no_section_of_their_own() {
        let text = "rule = [{ name = 'x' }]\nrepository.a.limit = 1\n[alias]\nb = ['c']\n";
        assert_eq!(owners(text), [("[alias]".to_owned(), Owner::Everybody)]);
    }
}
