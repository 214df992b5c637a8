//! The policy in force, printed as one file for each layer: drop-ins merged, aliases replaced, defaults
//! written out. The printed policy decides as the original does; comments, spelling and `[[test]]` tables are
//! not kept. Before it becomes text it consists of tables, which are used to compare two policies.

mod layer;
mod scenario;

pub(super) use self::layer::Part;
pub use self::layer::PartKind;
use self::layer::{Printing, RepositoryNames};
use super::{
    Policy,
    layer::LayerKind,
    rule::Rule,
    toml_text::{Table, list, string},
};

impl Policy {
    /// The text of every layer, the system's first.
    pub fn print(&self) -> Vec<(LayerKind, String)> {
        let parts = self.parts().into_iter().zip(&self.layers);
        parts.map(|(parts, layer)| (layer.kind, text(&parts))).collect()
    }

    /// The tables of every layer.
    pub(super) fn parts(&self) -> Vec<Vec<Part<'_>>> {
        let names = RepositoryNames::new(self);
        let layers = self.layers.iter().enumerate();
        layers.map(|(index, layer)| Printing { policy: self, names: &names, index }.parts(layer)).collect()
    }

    /// The families of a layer, each with the order of its rules.
    pub(super) fn families(&self, layer: usize) -> Vec<Part<'_>> {
        let mut families: Vec<(&str, Vec<&Rule>)> = Vec::new();
        for rule in self.sequence.iter().map(|rule| &self.rules[*rule]).filter(|rule| rule.layer == layer) {
            let Some(name) = &rule.first_of else { continue };
            match families.iter_mut().find(|(known, _)| known == name) {
                Some((_, rules)) => rules.push(rule),
                None => families.push((name, vec![rule])),
            }
        }
        families.into_iter().map(|(name, rules)| family(name, &rules)).collect()
    }

    /// The tests, as tables.
    pub(super) fn test_parts(&self) -> Vec<Part<'_>> {
        let names = RepositoryNames::new(self);
        self.scenarios.iter().map(|scenario| scenario::part(scenario, &names)).collect()
    }
}

fn family<'p>(name: &str, rules: &[&Rule]) -> Part<'p> {
    let mut keys = Table::default();
    keys.set("order", list(rules.iter().map(|rule| string(rule.shown_name()))));
    Part { name: name.to_owned(), ..Part::only(PartKind::Family, keys) }
}

fn text(parts: &[Part<'_>]) -> String {
    parts.iter().fold("version = 1\n".to_owned(), |text, part| text + &part.to_string())
}
