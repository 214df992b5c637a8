//! The environment's hint about slots of ancestors. A nested launch looks there, but the hint proves nothing.

use crate::judge::terms::{Claim, Launch, NamedSlots, Nested, Runs};

/// What the environment says of the repository of one of these claims. It writes each name as one word.
/// Whether a file's name stands behind it depends on the files that were read: the nearest name counts.
fn named<'l>(claims: &[&Claim], launch: &Launch<'l>) -> Option<&'l NamedSlots> {
    let find = |is_it: &dyn Fn(&Claim, &NamedSlots) -> bool| {
        launch.ancestors.iter().find(|hint| claims.iter().any(|claim| is_it(claim, hint)))
    };
    let is_named = |claim: &Claim, hint: &NamedSlots| {
        *claim.repository == *hint.name || NamedSlots::word(&claim.repository) == hint.name
    };
    find(&is_named)
        .or_else(|| find(&|claim, hint| without_file(&claim.repository) == without_file(&hint.name)))
}

/// A repository's name without that of a file: `gpu` of `gpu (20-cad.toml)`, also as one word.
fn without_file(name: &str) -> &str {
    name.split_once(" (").or_else(|| name.split_once("_(")).map_or(name, |(name, _)| name)
}

/// The slots of this claim's repository that ancestors have, as the environment says.
pub(super) fn slots_above<'l>(claim: &Claim, launch: &Launch<'l>) -> Option<&'l Runs> {
    named(&[claim], launch).map(|hint| &hint.slots)
}

/// The slots that a launch below a holder would use for these claims on one table, if they are what the
/// environment says and enough.
pub(super) fn slots_to_join<'l>(claims: &[&Claim], launch: &Launch<'l>) -> Option<&'l Runs> {
    // Only its group decides which slots count as its own.
    let is_shared = |claim: &Claim| claim.amount.group.as_ref().is_some_and(|group| !group.is_of_heirs());
    let is_settled = |claim: &&Claim| claim.nested == Nested::Take || is_shared(claim);
    if claims.iter().any(is_settled) {
        return None;
    }
    let hint = named(claims, launch)?;
    let wanted = claims.iter().map(|claim| claim.amount.wanted()).max().unwrap_or(0);
    (hint.slots.count() >= wanted).then_some(&hint.slots)
}
