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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::judge::terms::{Amount, FileLocation, Group, Hold, Slots};

    fn claim(repository: &str, slots: u32) -> Claim {
        let file = FileLocation::named(PathBuf::from("/run/seats"), 0o600);
        let claim = Claim::outside_the_policy(file, Amount::plain(Slots::Number(slots), 8), "--limit");
        Claim { repository: repository.into(), nested: Nested::Join, ..claim }
    }

    fn above(name: &str, slots: &str) -> NamedSlots {
        let slots = Runs::parse(slots).expect("slots");
        NamedSlots { name: name.to_owned(), slots, called: Vec::new(), joined: Runs::default() }
    }

    /// The slots that a launch below these holders would use for these claims.
    fn joined(ancestors: &[NamedSlots], claims: &[&Claim]) -> Option<String> {
        let launch = Launch { command: "matlab", host: "ws1", uid: 1000, ancestors, hold: Hold::Process };
        slots_to_join(claims, &launch).map(Runs::to_string)
    }

    /// A launch that wants more slots than the holder above it has takes its own. Of several claims on one
    /// table the greatest number counts.
    #[test]
    fn too_few_slots_of_an_ancestor_are_not_joined() {
        let two = [above("seats", "3,4")];
        let [one, pair, three] = [1, 2, 3].map(|slots| claim("seats", slots));
        assert_eq!(joined(&two, &[&pair]).as_deref(), Some("3,4"));
        assert_eq!(joined(&two, &[&one, &pair]).as_deref(), Some("3,4"));
        assert_eq!(joined(&two, &[&three]), None);
        assert_eq!(joined(&two, &[&one, &three]), None);
    }

    /// One claim that takes a slot of its own is enough, and so is one that a group shares. A launch that
    /// only inherits lingering slots may join.
    #[test]
    fn a_launch_that_takes_its_own_slots_joins_none() {
        let one = [above("seats", "3")];
        let joins = claim("seats", 1);
        let takes = Claim { nested: Nested::Take, ..claim("seats", 1) };
        let of_group = |group| {
            let claim = claim("seats", 1);
            Claim { amount: Amount { group: Some(group), ..claim.amount.clone() }, ..claim }
        };
        let (shares, inherits) = (of_group(Group::of("ann")), of_group(Group::of_heirs("ann")));
        assert_eq!(joined(&one, &[&joins, &takes]), None);
        assert_eq!(joined(&one, &[&joins, &shares]), None);
        assert_eq!(joined(&one, &[&joins, &inherits]).as_deref(), Some("3"));
    }

    /// The nearest holder counts. The name without that of a file counts only if no other one is the same.
    #[test]
    fn slots_are_found_by_the_name_of_their_repository() {
        let holders = [above("gpu_(20-cad.toml)", "7"), above("seats", "2"), above("seats", "1")];
        let found = |name: &str| joined(&holders, &[&claim(name, 1)]);
        assert_eq!(found("seats").as_deref(), Some("2"));
        assert_eq!(found("gpu (20-cad.toml)").as_deref(), Some("7"));
        assert_eq!(found("gpu").as_deref(), Some("7"));
        assert_eq!(found("cpu"), None);
        let exact = [above("gpu_(20-cad.toml)", "7"), above("gpu", "8")];
        assert_eq!(joined(&exact, &[&claim("gpu", 1)]).as_deref(), Some("8"));
    }
}
