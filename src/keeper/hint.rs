//! The environment's hint about slots of ancestors. A nested launch looks there, but the hint proves nothing.

use crate::judge::terms::{Claim, Launch, NamedSlots, Nested, Runs};

/// Whether the environment means this claim's repository; it writes each name as one word.
fn is_named(claim: &Claim, hint: &NamedSlots) -> bool {
    *claim.repository == *hint.name || NamedSlots::word(&claim.repository) == hint.name
}

/// The slots of this claim's repository that ancestors have, as the environment says.
pub(super) fn slots_above<'l>(claim: &Claim, launch: &Launch<'l>) -> Option<&'l Runs> {
    launch.ancestors.iter().find(|hint| is_named(claim, hint)).map(|hint| &hint.slots)
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
    let hint = launch.ancestors.iter().find(|hint| claims.iter().any(|claim| is_named(claim, hint)))?;
    let wanted = claims.iter().map(|claim| claim.amount.wanted()).max().unwrap_or(0);
    (hint.slots.count() >= wanted).then_some(&hint.slots)
}
