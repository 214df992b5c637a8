//! Which table of one policy corresponds to which of the other: by name, and a rule without a name or with a
//! new one by its content.

use super::change::{Change, KeyChange, LayerName, Turn};
use crate::{
    judge::terms::provenance::is_number,
    policy::printed::{Part, PartKind},
};

/// A table before and after; one of them is there.
pub(super) struct Pair<'o, 'n> {
    old: Option<Part<'o>>,
    new: Option<Part<'n>>,
}

/// The tables of a layer before and after, kind by kind, removed ones after the others.
pub(super) fn pairs<'o, 'n>(mut old: Vec<Part<'o>>, new: Vec<Part<'n>>) -> Vec<Pair<'o, 'n>> {
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
    pub(super) fn change(self, layer: &LayerName) -> Option<Change> {
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
