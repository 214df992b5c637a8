//! The names that the selectors of a rule capture, checked against each other.

use crate::policy::{
    aliases::Aliases,
    fault::Fault,
    place::{At, Written},
};

/// Compares the alternatives of one list: whichever matches, the same names must have values. The captures
/// are noted for their rule.
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

/// Reports what is wrong with an entry. A wrong capture still counts as one: one mistake is one fault.
pub(super) fn report(fault: Fault, at: At, aliases: &Aliases<'_>) {
    if let Fault::PartialCapture { name } | Fault::CaptureAfterPattern { name } = &fault {
        aliases.captures.borrow_mut().push(Written { value: name.clone(), at });
    }
    aliases.findings.fault(at, fault);
}
