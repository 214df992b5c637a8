//! `when`: windows of time, in the zone of the layer.

use super::{alternatives::Entry, window::Window};
use crate::policy::{
    facts::Facts,
    fault::Fault,
    key::{Key, Shape, key},
    names::LookupError,
};

impl Entry for Window {
    const KEY: Key = key("when", Shape::Texts, "Times: \"Mon-Fri 08:00-18:00\".").filled();

    fn parse(text: &str) -> Result<Self, Fault> {
        Window::parse(text).map_err(|problem| Fault::BadWindow { reason: problem.to_string() })
    }

    fn matches(&self, facts: &Facts<'_>, layer: usize) -> Result<bool, LookupError> {
        Ok(facts.local_time(layer).is_some_and(|time| self.contains(time)))
    }

    fn covers(&self, narrow: &Self) -> bool {
        self.to_string() == narrow.to_string()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}
