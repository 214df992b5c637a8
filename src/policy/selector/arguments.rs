//! `arguments`: patterns for one argument anywhere, or for consecutive ones. One of them is enough, unless
//! the rule says `all` or `exactly`.

use std::{ffi::OsString, iter::once, os::unix::ffi::OsStrExt, ptr};

use super::{
    alternatives::{Kind, note},
    text_entry::{TextEntry, sole_entry, text_entry},
};
use crate::{
    judge::terms::LookupError,
    policy::{
        Aliases, Captured, EvalContext, Key, Keys, RelevantInputs, Shape, Together, Value, Written,
        WrittenEntry, WrittenList,
        aliases::{entry, values_in},
        fault::Fault,
        key::key,
        toml_text::{inline_table, list, string},
    },
};

/// What the arguments are compared with.
#[derive(Debug)]
pub(crate) enum Arguments {
    /// One of these is among the arguments, each a list of patterns for consecutive arguments, mostly one.
    Any(Vec<Vec<TextEntry>>),
    /// Each of these is among the arguments.
    All(Vec<Vec<TextEntry>>),
    /// A pattern for each argument; none for any number of them.
    Exactly(Vec<Option<TextEntry>>),
}

pub(in crate::policy) static TABLE: Keys = Keys {
    what: "a table of arguments",
    groups: &[&[
        key(
            "all",
            Shape::TextsOrLists,
            "All of these arguments must occur.",
            "Rules that need two options together.",
        )
        .filled(),
        key(
            "exactly",
            Shape::Texts,
            "A pattern for each argument; \"**\" for any number of them.",
            "Rules for one exact command line.",
        ),
    ]],
    together: &[Together::One("all", "exactly")],
};

/// In `exactly`: any number of arguments.
const ANY_NUMBER: &str = "**";

impl Kind for Arguments {
    const KEY: Key = key(
        "arguments",
        Shape::Arguments(&TABLE),
        "Arguments; a list matches consecutive ones.",
        "Limits for one option or subcommand of a program.",
    )
    .filled();
    const ASKS_WHO: bool = false;
    const IS_PERSONAL: bool = false;

    fn read(value: Value<'_>, aliases: &Aliases<'_>) -> Option<Self> {
        let arguments = if value.is_table() {
            let section = value.section(&TABLE)?;
            match (section.get("all"), section.get("exactly")) {
                (Some(all), None) => Arguments::All(lists(all, aliases)?),
                (None, Some(exactly)) => {
                    let one = |written: WrittenEntry<'_>| match written.value.as_ref() {
                        ANY_NUMBER => Some(None),
                        _ => sole_entry(&written, aliases).map(Some),
                    };
                    let written = exactly.elements("a list of strings")?.filter_map(entry);
                    Arguments::Exactly(written.filter_map(one).collect())
                }
                (Some(_), Some(exactly)) => {
                    exactly.fault(Fault::Contradiction { key: "exactly", other: "\"all\"" });
                    return None;
                }
                (None, None) => {
                    value.fault(Fault::MissingKey {
                        key: "all",
                        what: "a table of arguments without \"exactly\"",
                    });
                    return None;
                }
            }
        } else {
            Arguments::Any(lists(value, aliases)?)
        };
        arguments.note_captures(aliases);
        Some(arguments)
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        if !facts.spend(facts.effort_of(self.patterns())) {
            return Ok(false);
        }
        let arguments = facts.request.arguments;
        let stands = |entries: &Vec<TextEntry>| place_of(entries, arguments).is_some();
        Ok(match self {
            Arguments::Any(lists) => lists.iter().any(stands),
            Arguments::All(lists) => lists.iter().all(stands),
            Arguments::Exactly(entries) => exact_places(entries, arguments).is_some(),
        })
    }

    /// The first alternative that occurs counts, at its first place.
    fn captured(&self, facts: &EvalContext<'_>) -> Vec<Captured> {
        let arguments = facts.request.arguments;
        let taken = |(entry, argument): (&TextEntry, &OsString)| entry.captured(argument.as_bytes());
        let of_list = |entries: &Vec<TextEntry>| -> Option<Vec<Captured>> {
            let place = place_of(entries, arguments)?;
            Some(entries.iter().zip(place).filter_map(taken).collect())
        };
        match self {
            Arguments::Any(lists) => lists.iter().find_map(of_list).unwrap_or_default(),
            Arguments::All(lists) => lists.iter().filter_map(of_list).flatten().collect(),
            Arguments::Exactly(entries) => {
                let places = exact_places(entries, arguments).unwrap_or_default();
                places.into_iter().filter_map(taken).collect()
            }
        }
    }

    fn covers(&self, narrow: &Self) -> bool {
        let covers = |wide: &Vec<TextEntry>, narrow: &Vec<TextEntry>| {
            wide.len() == narrow.len() && wide.iter().zip(narrow).all(|(wide, narrow)| wide.covers(narrow))
        };
        match (self, narrow) {
            (Arguments::Any(wide), Arguments::Any(narrow)) => {
                narrow.iter().all(|narrow| wide.iter().any(|wide| covers(wide, narrow)))
            }
            (Arguments::Any(wide), Arguments::All(narrow)) => {
                narrow.iter().any(|narrow| wide.iter().any(|wide| covers(wide, narrow)))
            }
            (Arguments::All(wide), Arguments::All(narrow)) => {
                wide.iter().all(|wide| narrow.iter().any(|narrow| covers(wide, narrow)))
            }
            (Arguments::Exactly(wide), Arguments::Exactly(narrow)) => {
                let is_covered =
                    |(wide, narrow): (&Option<TextEntry>, &Option<TextEntry>)| match (wide, narrow) {
                        (Some(wide), Some(narrow)) => wide.covers(narrow),
                        (None, None) => true,
                        _ => false,
                    };
                self.is_everything() || wide.len() == narrow.len() && wide.iter().zip(narrow).all(is_covered)
            }
            _ => self.is_everything(),
        }
    }

    fn is_everything(&self) -> bool {
        matches!(self, Arguments::Exactly(patterns) if matches!(patterns.as_slice(), [None]))
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::ARGUMENTS
    }

    fn shown(&self) -> Vec<String> {
        let consecutive =
            |patterns: &Vec<TextEntry>| patterns.iter().map(TextEntry::text).collect::<Vec<_>>().join(" ");
        match self {
            Arguments::Any(lists) => lists.iter().map(consecutive).collect(),
            Arguments::All(lists) => {
                vec![lists.iter().map(consecutive).collect::<Vec<_>>().join(" + ")]
            }
            Arguments::Exactly(patterns) if patterns.is_empty() => vec!["exactly none".to_owned()],
            Arguments::Exactly(patterns) => {
                vec![format!(
                    "exactly {}",
                    patterns.iter().map(|one| text(one.as_ref())).collect::<Vec<_>>().join(" ")
                )]
            }
        }
    }

    fn printed(&self) -> String {
        let lists = |lists: &[Vec<TextEntry>]| {
            list(lists.iter().map(|patterns| match patterns.as_slice() {
                // Alone it would be an alias.
                [only] if !only.text().starts_with('@') => string(only.text()),
                several => list(several.iter().map(|pattern| string(pattern.text()))),
            }))
        };
        match self {
            Arguments::Any(any) => lists(any),
            Arguments::All(all) => inline_table([("all", lists(all))]),
            Arguments::Exactly(patterns) => inline_table([(
                "exactly",
                list(patterns.iter().map(|pattern| string(text(pattern.as_ref())))),
            )]),
        }
    }
}

/// Lists of patterns for consecutive arguments, mostly one.
fn lists(value: Value<'_>, aliases: &Aliases<'_>) -> Option<Vec<Vec<TextEntry>>> {
    let mut lists = Vec::new();
    for value in values_in(value, "a list of strings, or of lists of strings")? {
        if value.is_list() {
            // Each entry is one argument here, so an alias has no meaning.
            let list = WrittenList::read(value);
            lists.extend(list.map(|list| {
                list.entries.iter().filter_map(|written| sole_entry(written, aliases)).collect::<Vec<_>>()
            }));
        } else if let Some(written) = entry(value) {
            aliases.each([written], |entry| lists.extend(text_entry(entry, aliases).map(|one| vec![one])));
        }
    }
    Some(lists)
}

fn text(pattern: Option<&TextEntry>) -> &str {
    pattern.map_or(ANY_NUMBER, TextEntry::text)
}

impl Arguments {
    /// Marks the arguments that these patterns match, except patterns that match everything. A capture also
    /// names the captured text.
    pub(in crate::policy) fn mark_named(&self, arguments: &[OsString], named: &mut [bool]) {
        let lists = match self {
            Arguments::Any(lists) | Arguments::All(lists) => lists,
            Arguments::Exactly(entries) => {
                for (entry, argument) in exact_places(entries, arguments).unwrap_or_default() {
                    let place = arguments.iter().position(|known| ptr::eq(known, argument));
                    if let Some(place) = place.filter(|_| !entry.is_everything()) {
                        named[place] = true;
                    }
                }
                return;
            }
        };
        for entries in lists {
            for (place, consecutive) in arguments.windows(entries.len().max(1)).enumerate() {
                let mut pairs = entries.iter().zip(consecutive);
                if pairs.clone().all(|(entry, argument)| matches(entry, argument)) {
                    pairs
                        .by_ref()
                        .enumerate()
                        .filter(|(_, (entry, _))| !entry.is_everything())
                        .for_each(|(after, _)| named[place + after] = true);
                    if entries.iter().any(|entry| entry.captures().is_some()) {
                        break;
                    }
                }
            }
        }
    }

    /// The captures: all alternatives must capture the same names, required entries their own.
    fn note_captures(&self, aliases: &Aliases<'_>) {
        fn of<'e>(entries: impl Iterator<Item = &'e TextEntry>) -> Vec<Written<&'e str>> {
            entries.filter_map(TextEntry::captures).collect()
        }
        let key = Self::KEY.name;
        match self {
            Arguments::Any(lists) => {
                note(key, lists.iter().map(|entries| of(entries.iter())), aliases);
            }
            Arguments::All(lists) => note(key, once(of(lists.iter().flatten())), aliases),
            Arguments::Exactly(entries) => {
                note(key, once(of(entries.iter().flatten())), aliases);
            }
        }
    }
}

impl Arguments {
    /// How many patterns there are.
    pub(crate) fn patterns(&self) -> usize {
        match self {
            Arguments::Any(lists) | Arguments::All(lists) => lists.iter().map(Vec::len).sum(),
            Arguments::Exactly(entries) => entries.len(),
        }
    }
}

/// The consecutive arguments that entries match, at their first place.
fn place_of<'a>(entries: &[TextEntry], arguments: &'a [OsString]) -> Option<&'a [OsString]> {
    let mut windows = arguments.windows(entries.len().max(1));
    windows.find(|consecutive| {
        entries.iter().zip(*consecutive).all(|(entry, argument)| matches(entry, argument))
    })
}

fn matches(entry: &TextEntry, argument: &OsString) -> bool {
    entry.matches(argument.as_bytes())
}

/// Each entry with its argument, if each argument has one. With several wildcards for any number of
/// arguments, only the last must be tried again: earlier ones matched as early as possible.
fn exact_places<'e, 'a>(
    entries: &'e [Option<TextEntry>],
    arguments: &'a [OsString],
) -> Option<Vec<(&'e TextEntry, &'a OsString)>> {
    let mut places = Vec::new();
    let (mut entry, mut argument) = (0, 0);
    // The entry for any number of arguments, the first argument that it leaves to the next entry, and the
    // places before it.
    let mut last: Option<(usize, usize, usize)> = None;
    while argument < arguments.len() {
        match entries.get(entry) {
            Some(None) => {
                last = Some((entry, argument, places.len()));
                entry += 1;
            }
            Some(Some(one)) if matches(one, &arguments[argument]) => {
                places.push((one, &arguments[argument]));
                (entry, argument) = (entry + 1, argument + 1);
            }
            _ => {
                let (any, from, known) = last?;
                last = Some((any, from + 1, known));
                places.truncate(known);
                (entry, argument) = (any + 1, from + 1);
            }
        }
    }
    entries[entry..].iter().all(Option::is_none).then_some(places)
}
