//! Compares two policies table by table and key by key, over what `policy show` prints, and so without
//! comments, spelling, or the files of the tables. It compares validated policies and asks nothing.

mod change;
mod pairing;
#[cfg(test)]
mod tests;

pub use self::change::{Change, Detail, KeyChange, LayerName, Turn};
use self::pairing::pairs;
use super::{
    Policy,
    layer::{Layer, LayerKind},
    printed::Part,
    source::LayerText,
};
use crate::text::diagnostic::SourceText;

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
            changes.extend(pairs(parts(old), parts(new)).into_iter().filter_map(|pair| pair.change(layer)));
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
