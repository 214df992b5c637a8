//! Selectors with a list of alternatives: most of them.

use std::borrow::Borrow;

use crate::{
    judge::terms::{LookupError, Names},
    policy::{
        Aliases, At, Captured, EvalContext, Key, Pattern, RelevantInputs, Subject, Value, Written,
        WrittenEntry,
        aliases::entries_in,
        eval_context::any,
        fault::Fault,
        toml_text::{list, string},
        warning::Warning,
    },
};

/// An entry of a list of alternatives.
pub(in crate::policy) trait Entry: Sized {
    const KEY: Key;
    const ASKS_WHO: bool = false;
    const IS_PERSONAL: bool = false;

    /// Reads an entry that is neither empty nor a negation.
    fn parse(text: &str) -> Result<Self, Fault>;
    fn matches(&self, facts: &EvalContext<'_>, layer: usize) -> Result<bool, LookupError>;
    fn covers(&self, narrow: &Self) -> bool;
    fn text(&self) -> String;

    /// The inputs that make a difference to it; the command, the caller and the time always may.
    fn inputs(&self) -> RelevantInputs;

    /// The names that it captures.
    fn captures(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What it captures of a request, if it matches.
    fn captured(&self, _facts: &EvalContext<'_>) -> Vec<Captured> {
        Vec::new()
    }

    /// Whether it matches every request, like a missing selector.
    fn is_everything(&self) -> bool {
        false
    }

    /// Whether it is a name or a number, and so can match only one thing.
    fn is_plain(&self) -> bool {
        false
    }

    /// The names in it that do not exist, and so match nothing, which is rarely intended.
    fn unknown(&self, _names: &dyn Names) -> Result<Option<Warning>, LookupError> {
        Ok(None)
    }
}

impl<E: Entry> Kind for Vec<E> {
    const KEY: Key = E::KEY;
    const ASKS_WHO: bool = E::ASKS_WHO;
    const IS_PERSONAL: bool = E::IS_PERSONAL;

    fn read(value: Value<'_>, aliases: &Aliases<'_>) -> Option<Self> {
        entries_in(value).map(|written| entries_of(written, aliases))
    }

    fn matches(&self, facts: &EvalContext<'_>, layer: usize) -> Result<bool, LookupError> {
        any(self, |entry| entry.matches(facts, layer))
    }

    fn covers(&self, narrow: &Self) -> bool {
        narrow.iter().all(|narrow| self.iter().any(|wide| wide.covers(narrow)))
    }

    fn inputs(&self) -> RelevantInputs {
        inputs_of(self)
    }

    fn is_everything(&self) -> bool {
        self.iter().any(Entry::is_everything)
    }

    fn captured(&self, facts: &EvalContext<'_>) -> Vec<Captured> {
        self.iter()
            .map(|entry| entry.captured(facts))
            .find(|captured| !captured.is_empty())
            .unwrap_or_default()
    }

    fn shown(&self) -> Vec<String> {
        self.iter().map(Entry::text).collect()
    }
}

/// The inputs that make a difference to any of these.
pub(in crate::policy) fn inputs_of(entries: &[impl Entry]) -> RelevantInputs {
    entries.iter().map(Entry::inputs).fold(RelevantInputs::NONE, RelevantInputs::or)
}

/// The entries of a list, aliases replaced. Each entry that cannot match is reported at its place, in a rule
/// or in an alias.
pub(in crate::policy) fn entries_of<'e, E: Entry>(
    written: impl IntoIterator<Item: Borrow<WrittenEntry<'e>>>,
    aliases: &Aliases<'_>,
) -> Vec<E> {
    let mut entries: Vec<E> = Vec::new();
    // Of the entries that capture, which are few.
    let mut places: Vec<(usize, At)> = Vec::new();
    aliases.each(written, |written| {
        let Some(entry) = entry_of::<E>(written, aliases) else { return };
        if !entry.captures().is_empty() {
            places.push((entries.len(), written.at));
        }
        entries.push(entry);
    });
    if !places.is_empty() {
        let captures = entries.iter().enumerate().map(|(index, entry)| {
            let at = places.iter().find(|(known, _)| *known == index).map(|(_, at)| *at);
            entry.captures().into_iter().filter_map(|value| Some(Written { value, at: at? })).collect()
        });
        note(E::KEY.name, captures, aliases);
    }
    entries
}

/// One entry that is not an alias.
pub(in crate::policy) fn entry_of<E: Entry>(written: &WrittenEntry<'_>, aliases: &Aliases<'_>) -> Option<E> {
    let text = written.value.as_ref();
    let parsed = if text.starts_with('!') {
        Err(Fault::Negation { entry: text.to_owned(), key: E::KEY.name })
    } else if text.is_empty() {
        Err(Fault::EmptyEntry)
    } else {
        E::parse(text)
    };
    aliases.spend_on_pattern(written, parsed.as_ref().is_ok_and(E::is_plain)).then_some(())?;
    let entry = parsed.map_err(|fault| report(fault, written.at, aliases)).ok()?;
    warn_of_unknown(&entry, written.at, aliases);
    Some(entry)
}

/// Warns of a name that does not exist, if the policy is checked.
pub(in crate::policy) fn warn_of_unknown(entry: &impl Entry, at: At, aliases: &Aliases<'_>) {
    let Some(names) = aliases.checking else { return };
    let failed = |failure: LookupError| Some(Warning::LookupFailed { failure: failure.to_string() });
    if let Some(warning) = entry.unknown(names).unwrap_or_else(failed) {
        aliases.findings.warning(at, warning);
    }
}

pub(super) fn pattern(text: &str, subject: Subject) -> Result<Pattern, Fault> {
    Pattern::new(text, subject).map_err(|reason| Fault::BadPattern { reason })
}

/// Whether a pattern can match a text that begins with `/`.
pub(super) fn can_be_absolute(pattern: &str) -> bool {
    pattern.starts_with(['/', '*', '?', '[', '{', '\\'])
}

// The code that all selectors share.

/// The trait of every kind of selector.
pub(super) trait Kind: Sized {
    const KEY: Key;
    /// Whether it needs the identity of the caller: this may need a look-up, so it is evaluated last.
    const ASKS_WHO: bool;
    /// Whether the result is the same for everything that a user starts on a host.
    const IS_PERSONAL: bool;

    /// Reads it, and reports what is wrong with it.
    fn read(value: Value<'_>, aliases: &Aliases<'_>) -> Option<Self>;
    /// Whether it matches a request, for a rule of this layer.
    fn matches(&self, facts: &EvalContext<'_>, layer: usize) -> Result<bool, LookupError>;
    /// Whether this certainly matches everything that the other does. It may miss some, because globs are not
    /// compared by meaning.
    fn covers(&self, narrow: &Self) -> bool;
    /// Its entries as the policy writes them, aliases replaced.
    fn shown(&self) -> Vec<String>;
    /// The inputs that make a difference to it.
    fn inputs(&self) -> RelevantInputs;

    /// Whether it certainly matches every request.
    fn is_everything(&self) -> bool {
        false
    }

    /// What it captures of a request that it matches.
    fn captured(&self, _facts: &EvalContext<'_>) -> Vec<Captured> {
        Vec::new()
    }

    fn printed(&self) -> String {
        list(self.shown().iter().map(|entry| string(entry)))
    }
}

// The names that the selectors of a rule capture, checked against each other.

/// Compares the alternatives of one list: all of them must capture the same names. The captures are noted for
/// their rule.
pub(super) fn note<'n>(
    key: &'static str,
    alternatives: impl Iterator<Item = Vec<Written<&'n str>>> + Clone,
    aliases: &Aliases<'_>,
) {
    // Entries without captures, as most are, allocate nothing.
    if alternatives.clone().all(|names| names.is_empty()) {
        return;
    }
    let alternatives: Vec<_> = alternatives.collect();
    let captures = |names: &[Written<&str>], name: &str| names.iter().any(|known| known.value == name);
    for Written { value: name, at } in alternatives.iter().flatten() {
        if !alternatives.iter().all(|names| captures(names, name)) {
            aliases.findings.fault(*at, Fault::UnevenCaptures { name: (*name).to_owned(), key });
        }
    }
    let first = alternatives.iter().find(|names| !names.is_empty()).into_iter().flatten();
    let noted = first.map(|name| Written { value: name.value.to_owned(), at: name.at });
    aliases.captures.borrow_mut().extend(noted);
}

/// Reports what is wrong with an entry. A wrong capture still counts as a capture, so that one mistake is one
/// fault.
pub(super) fn report(fault: Fault, at: At, aliases: &Aliases<'_>) {
    if let Fault::PartialCapture { name } | Fault::CaptureAfterPattern { name } = &fault {
        aliases.captures.borrow_mut().push(Written { value: name.clone(), at });
    }
    aliases.findings.fault(at, fault);
}
