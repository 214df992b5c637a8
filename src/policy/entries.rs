//! Lists of entries as written, in which aliases are still names.

use std::borrow::Cow;

use super::{place::Written, reader::Value};

/// What to write instead of a list that nothing matches.
pub(super) const MATCH_ALL: &str = "leave it out to match everything";

/// An entry of a list; a number is kept as its digits.
pub(super) type WrittenEntry<'a> = Written<Cow<'a, str>>;

/// A list of entries that is not empty.
pub(super) struct WrittenList<'a> {
    pub(super) entries: Vec<WrittenEntry<'a>>,
}

impl<'a> WrittenList<'a> {
    /// Reads a list of strings, in which numbers may stand too.
    pub(super) fn read(value: Value<'a>) -> Option<Self> {
        Some(WrittenList { entries: read_all(value, "a list of strings", entry)? })
    }

    /// Its entries as they were written, for people.
    pub(super) fn shown(&self) -> String {
        self.entries.iter().map(|entry| entry.value.as_ref()).collect::<Vec<_>>().join(", ")
    }
}

/// Reads a list that must not be empty.
pub(super) fn read_all<'a, T>(
    value: Value<'a>,
    expected: &'static str,
    read: impl FnMut(Value<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let list: Vec<T> = value.list(expected)?.value.into_iter().filter_map(read).collect();
    // A list of which no entry could be read has had its fault.
    if list.is_empty() && value.has_elements() {
        return None;
    }
    value.filled(list, MATCH_ALL).map(|list| list.value)
}

pub(super) fn entry(value: Value<'_>) -> Option<WrittenEntry<'_>> {
    if value.is_number() {
        let number = value.number(0, i64::from(u32::MAX) - 1)?;
        return Some(Written { value: Cow::Owned(number.value.to_string()), at: number.at });
    }
    value.text().map(|text| Written { value: Cow::Borrowed(text.value), at: text.at })
}
