//! What the kinds of selectors have in common.

use crate::policy::{
    aliases::Aliases,
    capture::Captured,
    facts::Facts,
    key::Key,
    names::LookupError,
    reader::Value,
    toml_text::{list, string},
};

/// What every kind of selector must say of itself.
pub(super) trait Kind: Sized {
    /// What a file says.
    type Written<'a>;

    const KEY: Key;
    /// Whether it asks who the caller is: that may need a look-up, and comes last.
    const ASKS_WHO: bool;

    fn read(value: Value<'_>) -> Option<Self::Written<'_>>;
    fn validate<'w>(written: &'w Self::Written<'w>, aliases: &Aliases<'w>) -> Self;
    /// Whether it matches a request, for a rule of this layer.
    fn matches(&self, facts: &Facts<'_>, layer: usize) -> Result<bool, LookupError>;
    /// Whether this certainly matches everything that the other does. It may miss some, for nobody proves
    /// that two globs mean the same.
    fn covers(&self, narrow: &Self) -> bool;
    /// Its entries as the policy writes them, aliases replaced.
    fn shown(&self) -> Vec<String>;

    /// Whether it certainly matches every request.
    fn is_everything(&self) -> bool {
        false
    }

    /// What it captures of a request that it matches.
    fn captured(&self, _facts: &Facts<'_>) -> Vec<Captured> {
        Vec::new()
    }

    fn printed(&self) -> String {
        list(self.shown().iter().map(|entry| string(entry)))
    }
}
