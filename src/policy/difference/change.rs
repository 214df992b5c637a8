//! How one table changed: its keys with other values and, of lists and tables in them, which values.

use std::collections::BTreeMap;

use crate::policy::{
    layer::LayerKind,
    place::Place,
    printed::PartKind,
    toml_text::{elements, entries},
};

/// The layer that a table is in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LayerName {
    pub kind: LayerKind,
    /// The delegated file, if it is one.
    pub file: Option<String>,
}

impl LayerName {
    pub(super) fn system() -> Self {
        LayerName { kind: LayerKind::System, file: None }
    }
}

/// The change of a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Turn {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has changed.
    Changed,
    /// It is only renamed.
    Renamed,
}

impl Turn {
    pub fn word(self) -> &'static str {
        match self {
            Turn::Added => "added",
            Turn::Removed => "removed",
            Turn::Changed => "changed",
            Turn::Renamed => "renamed",
        }
    }
}

/// One changed table.
#[derive(Debug)]
pub struct Change {
    /// Its subject.
    pub kind: PartKind,
    /// Its outcome.
    pub turn: Turn,
    /// Its current name, or its old one.
    pub name: String,
    /// Its old name, if it differs.
    pub former_name: Option<String>,
    /// Where it is.
    pub layer: LayerName,
    /// Its old place, if there is only one.
    pub old_place: Option<Place>,
    /// Where it is.
    pub new_place: Option<Place>,
    /// The changed keys.
    pub keys: Vec<KeyChange>,
}

/// One changed key.
#[derive(Debug, Eq, PartialEq)]
pub struct KeyChange {
    /// Its name.
    pub key: &'static str,
    /// Its value before, as TOML.
    pub old: Option<String>,
    /// Its value now.
    pub new: Option<String>,
}

/// The smallest changed part of a key.
#[derive(Debug, Eq, PartialEq)]
pub enum Detail<'c> {
    /// A value has changed.
    Value {
        /// The key, and those below it, with dots between them.
        key: String,
        /// Before, as TOML.
        old: Option<&'c str>,
        /// Now.
        new: Option<&'c str>,
    },
    /// A list has lost a value.
    Lost {
        /// The key, and those below it.
        key: String,
        /// Which, as TOML.
        value: &'c str,
    },
    /// A list has one more value.
    Gained {
        /// The key, and those below it.
        key: String,
        /// Which, as TOML.
        value: &'c str,
    },
}

impl KeyChange {
    /// Its differences. For a list or table with other values, these; for one with another order, the whole.
    pub fn details(&self) -> Vec<Detail<'_>> {
        let mut details = Vec::new();
        compare(self.key.to_owned(), self.old.as_deref(), self.new.as_deref(), &mut details);
        details
    }
}

fn compare<'c>(key: String, old: Option<&'c str>, new: Option<&'c str>, details: &mut Vec<Detail<'c>>) {
    if let (Some(before), Some(after)) = (old, new) {
        if let (Some(before), Some(after)) = (entries(before), entries(after)) {
            let known = details.len();
            compare_tables(&key, &before, &after, details);
            if details.len() > known {
                return;
            }
        }
        if let (Some(before), Some(after)) = (elements(before), elements(after)) {
            let lost = without(&before, &after);
            let gained = without(&after, &before);
            if !lost.is_empty() || !gained.is_empty() {
                details.extend(lost.into_iter().map(|value| Detail::Lost { key: key.clone(), value }));
                details.extend(gained.into_iter().map(|value| Detail::Gained { key: key.clone(), value }));
                return;
            }
        }
    }
    details.push(Detail::Value { key, old, new });
}

fn compare_tables<'c>(
    key: &str,
    old: &[(&'c str, &'c str)],
    new: &[(&'c str, &'c str)],
    details: &mut Vec<Detail<'c>>,
) {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (old.iter().copied().collect(), new.iter().copied().collect());
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    for below in keys {
        let (before, after) = (old.get(below).copied(), new.get(below).copied());
        if before != after {
            compare(format!("{key}.{below}"), before, after, details);
        }
    }
}

/// The values that are missing in the others, as often as they are missing.
fn without<'c>(values: &[&'c str], others: &[&'c str]) -> Vec<&'c str> {
    let mut others = others.to_vec();
    let is_lacking = |value: &&&str| match others.iter().position(|other| other == *value) {
        Some(found) => {
            others.swap_remove(found);
            false
        }
        None => true,
    };
    values.iter().filter(is_lacking).copied().collect()
}
