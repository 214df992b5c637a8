//! Compares two policies table by table and key by key. It uses the output of `policy show`, and so ignores
//! comments, spelling, and the files of the tables. It compares validated policies and asks nothing.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use super::{
    Layer, LayerKind, LayerText, PartKind, Policy,
    place::Place,
    printed::Part,
    toml_text::{elements, entries, list, string},
};
use crate::{
    judge::terms::is_number,
    text::{SourceText, visible, width},
};

/// Everything that differs; nothing if two policies decide the same.
#[derive(Debug, Default)]
pub struct Difference {
    changes: Vec<Change>,
}

impl Difference {
    /// The settings that are in `new` and not in `old`.
    pub fn between(old: &Policy, new: &Policy) -> Difference {
        let mut names: Vec<LayerName> = new.layers().iter().map(name).collect();
        names.extend(old.layers().iter().map(name));
        let mut changes = Vec::new();
        let is_first = |(index, name): &(usize, &LayerName)| !names[..*index].contains(name);
        for (_, layer) in names.iter().enumerate().filter(is_first) {
            let silent = silent(layer.kind);
            let parts = |policy| parts(policy, layer).or_else(|| parts(&silent, layer)).unwrap_or_default();
            let before = parts(old);
            let rules = names_of_rules(&before);
            let pairs = pairs(before, parts(new));
            let order = order(&rules, &pairs, layer);
            changes.extend(pairs.into_iter().filter_map(|pair| pair.change(layer)).chain(order));
        }
        let tests = pairs(old.test_parts(), new.test_parts());
        changes.extend(tests.into_iter().filter_map(|pair| pair.change(&LayerName::system())));
        Difference { changes }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Each table that is new, removed or changed.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

impl fmt::Display for Difference {
    /// For people: a line for each table, and one for each of its keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&describe(self))
    }
}

fn name(layer: &Layer) -> LayerName {
    LayerName { kind: layer.kind, file: layer.delegation().map(|delegation| delegation.file().to_owned()) }
}

/// The tables of a layer, if there is one.
fn parts<'p>(policy: &'p Policy, layer: &LayerName) -> Option<Vec<Part<'p>>> {
    let index = policy.layers().iter().position(|known| name(known) == *layer)?;
    let mut parts = policy.parts().swap_remove(index);
    parts.extend(policy.families(index));
    Some(parts)
}

/// A missing layer: the same as one that sets nothing.
fn silent(kind: LayerKind) -> Policy {
    let files = vec![SourceText::new("", "version = 1\n")];
    Policy::of_layers(vec![LayerText { kind, files }], true).unwrap_or_default()
}

// How one table changed: its keys with other values; for lists and tables in them, the changed values.

/// The layer that a table is in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LayerName {
    pub kind: LayerKind,
    /// The delegated file, if it is one.
    pub file: Option<String>,
}

impl LayerName {
    fn system() -> Self {
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
    /// Its differences. The changed values of a list or table; if only the order differs, all values.
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

/// The values that the other list lacks, each as often as it is missing.
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

// Pairs the tables of two policies by name. A rule without a name, or with a new one, is paired by its
// content.

/// A table before and after; at least one of them exists.
struct Pair<'o, 'n> {
    old: Option<Part<'o>>,
    new: Option<Part<'n>>,
}

/// The tables of a layer before and after, kind by kind, removed ones after the others.
fn pairs<'o, 'n>(mut old: Vec<Part<'o>>, new: Vec<Part<'n>>) -> Vec<Pair<'o, 'n>> {
    let mut pairs: Vec<Pair<'o, 'n>> =
        new.into_iter().map(|new| Pair { old: None, new: Some(new) }).collect();
    let same_as_ever = |old: &Part<'_>, new: &Part<'_>| old.name == new.name && old.keys == new.keys;
    let says_the_same = |old: &Part<'_>, new: &Part<'_>| new.kind == PartKind::Rule && old.keys == new.keys;
    let has_same_name = |old: &Part<'_>, new: &Part<'_>| old.name == new.name;
    find(&mut pairs, &mut old, same_as_ever);
    find(&mut pairs, &mut old, says_the_same);
    find(&mut pairs, &mut old, has_same_name);
    pairs.extend(old.into_iter().map(|old| Pair { old: Some(old), new: None }));
    pairs.sort_by_key(Pair::kind);
    pairs
}

fn names_of_rules(parts: &[Part<'_>]) -> Vec<String> {
    parts.iter().filter(|part| part.kind == PartKind::Rule).map(|part| part.name.clone()).collect()
}

/// A rule with its place in the old policy.
type Placed<'p> = (Option<usize>, &'p Part<'p>);

/// The order of the rules in both policies, if it differs: of several that refuse a launch, the first is
/// named. `before` are the names of all old rules. The order within a family is compared by itself.
fn order(before: &[String], pairs: &[Pair<'_, '_>], layer: &LayerName) -> Option<Change> {
    let both = pairs.iter().filter_map(|pair| Some((pair.old.as_ref()?, pair.new.as_ref()?)));
    let place = |old: &Part<'_>| before.iter().position(|name| *name == old.name);
    let rules = both.filter(|(_, new)| new.kind == PartKind::Rule);
    let now: Vec<Placed<'_>> = rules.map(|(old, new)| (place(old), new)).collect();
    let mut then = now.clone();
    then.sort_by_key(|(place, _)| *place);
    let is_moved = |(now, then): (&Placed<'_>, &Placed<'_>)| {
        let family = now.1.keys.get("first_of");
        now.1.name != then.1.name && (family.is_none() || family != then.1.keys.get("first_of"))
    };
    let first = now.iter().zip(&then).position(is_moved)?;
    let last = now.iter().zip(&then).rposition(is_moved)?;
    let names = |rules: &[Placed<'_>]| list(rules[first..=last].iter().map(|(_, rule)| string(&rule.name)));
    let keys = vec![KeyChange { key: "order", old: Some(names(&then)), new: Some(names(&now)) }];
    Some(Change {
        kind: PartKind::Order,
        turn: Turn::Changed,
        name: String::new(),
        former_name: None,
        layer: layer.clone(),
        old_place: None,
        new_place: None,
        keys,
    })
}

/// Pairs each old table with its new one.
fn find<'o>(
    pairs: &mut [Pair<'o, '_>],
    old: &mut Vec<Part<'o>>,
    is_it: impl Fn(&Part<'_>, &Part<'_>) -> bool,
) {
    for pair in pairs.iter_mut().filter(|pair| pair.old.is_none()) {
        let Some(new) = &pair.new else { continue };
        let found = old.iter().position(|old| old.kind == new.kind && is_it(old, new));
        pair.old = found.map(|found| old.remove(found));
    }
}

impl Pair<'_, '_> {
    fn kind(&self) -> PartKind {
        self.new
            .as_ref()
            .map(|new| new.kind)
            .or(self.old.as_ref().map(|old| old.kind))
            .unwrap_or(PartKind::Defaults)
    }

    /// Its change; none if it is unchanged.
    fn change(self, layer: &LayerName) -> Option<Change> {
        let kind = self.kind();
        let Pair { old, new } = self;
        let keys = changed_keys(old.as_ref(), new.as_ref());
        let is_renamed = |old: &Part<'_>, new: &Part<'_>| {
            old.name != new.name && !(is_number(&old.name) && is_number(&new.name))
        };
        let turn = match (&old, &new) {
            (None, _) => Turn::Added,
            (_, None) => Turn::Removed,
            (Some(_), Some(_)) if !keys.is_empty() => Turn::Changed,
            (Some(old), Some(new)) if is_renamed(old, new) => Turn::Renamed,
            (Some(_), Some(_)) => return None,
        };
        let place = |part: &Option<Part<'_>>| part.as_ref().and_then(|part| part.place).cloned();
        let (old_place, new_place) = (place(&old), place(&new));
        let (old, new) = (old.map(|old| old.name), new.map(|new| new.name));
        let former_name = old.clone().filter(|old| new.as_ref().is_some_and(|new| old != new));
        let name = new.or(old).unwrap_or_default();
        Some(Change { kind, turn, name, former_name, layer: layer.clone(), old_place, new_place, keys })
    }
}

fn changed_keys(old: Option<&Part<'_>>, new: Option<&Part<'_>>) -> Vec<KeyChange> {
    let keys = |part: Option<&Part<'_>>| part.map_or_else(Vec::new, |part| part.keys.keys().to_vec());
    let value =
        |part: Option<&Part<'_>>, key: &str| part.and_then(|part| part.keys.get(key)).map(str::to_owned);
    let (before, after) = (keys(old), keys(new));
    let is_known = |key: &str| after.iter().any(|(known, _)| *known == key);
    let names = after.iter().chain(before.iter().filter(|(key, _)| !is_known(key))).map(|(key, _)| *key);
    let change = |key: &'static str| KeyChange { key, old: value(old, key), new: value(new, key) };
    names.map(change).filter(|change| change.old != change.new).collect()
}

// The differences of two policies, for people: a mark, the part and its place; below it a line for each key.

/// The part before the lines about keys.
const INDENT: &str = "    ";

/// All of it, each line with its newline.
fn describe(difference: &Difference) -> String {
    difference.changes().iter().fold(String::new(), |mut text, change| {
        describe_one(change, &mut text);
        text
    })
}

fn describe_one(change: &Change, text: &mut String) {
    let mark = match change.turn {
        Turn::Added => '+',
        Turn::Removed => '-',
        Turn::Changed | Turn::Renamed => '~',
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{mark} {}", headline(change));
    let lines: Vec<(String, String)> = lines(change);
    let column = lines.iter().map(|(key, _)| width(key)).max().unwrap_or_default();
    for (key, value) in lines {
        let gap = column - width(&key);
        let _ = writeln!(text, "{INDENT}{key}{:gap$}  {value}", "");
    }
}

fn headline(change: &Change) -> String {
    let mut line = change.kind.word().to_owned();
    if !change.name.is_empty() {
        line += &format!(" {}", shown_name(change.kind, &change.name));
    }
    if let Some(former) = &change.former_name {
        line += &format!(", before: {}", shown_name(change.kind, former));
    }
    match change.new_place.as_ref().or(change.old_place.as_ref()) {
        Some(place) => format!("{line} ({})", short(place)),
        None => line,
    }
}

/// The names of rules and tests are sentences.
fn shown_name(kind: PartKind, name: &str) -> String {
    let name = visible(name);
    if matches!(kind, PartKind::Rule | PartKind::Test) { format!("\"{name}\"") } else { name }
}

fn short(place: &Place) -> String {
    let file = place.path().file_name().unwrap_or(place.path().as_os_str());
    format!("{}:{}", visible(file), place.line())
}

/// Each key with its change.
fn lines(change: &Change) -> Vec<(String, String)> {
    // For a new or removed test, its name is enough.
    if change.kind == PartKind::Test && change.turn != Turn::Changed {
        return Vec::new();
    }
    // An order is shown as one change; for a new or removed table, every key is.
    if matches!(change.kind, PartKind::Family | PartKind::Order)
        || matches!(change.turn, Turn::Added | Turn::Removed)
    {
        return change
            .keys
            .iter()
            .map(|key| whole(change.turn, key.key, key.old.as_deref(), key.new.as_deref()))
            .collect();
    }
    change.keys.iter().flat_map(KeyChange::details).map(|detail| line(&detail)).collect()
}

fn line(detail: &Detail<'_>) -> (String, String) {
    match detail {
        Detail::Value { key, old, new } => whole(Turn::Changed, key, *old, *new),
        Detail::Lost { key, value } => (visible(key), format!("- {}", visible(value))),
        Detail::Gained { key, value } => (visible(key), format!("+ {}", visible(value))),
    }
}

fn whole(turn: Turn, key: &str, old: Option<&str>, new: Option<&str>) -> (String, String) {
    let shown = |value: Option<&str>| value.map_or_else(|| "not set".to_owned(), visible);
    let value = match turn {
        Turn::Added => shown(new),
        Turn::Removed => shown(old),
        Turn::Changed | Turn::Renamed => format!("{} -> {}", shown(old), shown(new)),
    };
    (visible(key), value)
}
