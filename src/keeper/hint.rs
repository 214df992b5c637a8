//! The environment's hint about slots of ancestors. A nested launch looks there, but the hint proves nothing.
//! It names repositories, and a repository can have many tables. So each table is searched for all slots that
//! the hint has under the name, and the keeper proves which of them an ancestor holds in this table.

use crate::judge::terms::{Claim, Launch, NamedSlots, Nested, Runs};

/// The slots that ancestors have in the repositories of these claims, as the environment says: those of the
/// nearest ancestor first, each time as they were taken in one table. The environment writes each name as one
/// word. Whether a file's name stands behind it depends on the files that were read.
pub(super) fn slots_above<'l>(claims: &[&Claim], launch: &Launch<'l>) -> impl Iterator<Item = &'l Runs> {
    let names: Vec<String> = claims.iter().map(|claim| NamedSlots::word(&claim.repository)).collect();
    let is_one =
        move |hint: &&NamedSlots| names.iter().any(|name| without_file(name) == without_file(&hint.name));
    launch.ancestors.iter().filter(is_one).map(|hint| &hint.slots)
}

/// A repository's name, as one word, without that of a file: `gpu` of `gpu_(20-cad.toml)`.
fn without_file(name: &str) -> &str {
    name.split_once("_(").map_or(name, |(name, _)| name)
}

/// The slots that a launch below a holder could use for these claims on one table, if they are what the
/// environment says: the first that are proved to be an ancestor's, and that no other launch uses.
pub(super) fn slots_to_join<'l>(claims: &[&Claim], launch: &Launch<'l>) -> impl Iterator<Item = &'l Runs> {
    // Only its group decides which slots count as its own.
    let is_shared = |claim: &Claim| claim.amount.group.as_ref().is_some_and(|group| !group.is_of_heirs());
    let is_settled = |claim: &&Claim| claim.nested == Nested::Take || is_shared(claim);
    let joins = !claims.iter().any(is_settled);
    let wanted = claims.iter().map(|claim| claim.amount.wanted()).max().unwrap_or(0);
    slots_above(claims, launch).filter(move |slots| joins && slots.count() >= wanted)
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

    /// The slots that a launch below these holders could use for these claims, in order: `7 8`.
    fn joined(ancestors: &[NamedSlots], claims: &[&Claim]) -> String {
        let launch = Launch { command: "matlab", host: "ws1", uid: 1000, ancestors, hold: Hold::Process };
        slots_to_join(claims, &launch).map(Runs::to_string).collect::<Vec<_>>().join(" ")
    }

    /// A launch that wants more slots than the holder above it has takes its own. Of several claims on one
    /// table the greatest number counts.
    #[test]
    fn too_few_slots_of_an_ancestor_are_not_joined() {
        let two = [above("seats", "3,4")];
        let [one, pair, three] = [1, 2, 3].map(|slots| claim("seats", slots));
        assert_eq!(joined(&two, &[&pair]), "3,4");
        assert_eq!(joined(&two, &[&one, &pair]), "3,4");
        assert_eq!(joined(&two, &[&three]), "");
        assert_eq!(joined(&two, &[&one, &three]), "");
        let other_table = [above("seats", "7"), above("seats", "3,4")];
        assert_eq!(joined(&other_table, &[&pair]), "3,4");
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
        assert_eq!(joined(&one, &[&joins, &takes]), "");
        assert_eq!(joined(&one, &[&joins, &shares]), "");
        assert_eq!(joined(&one, &[&joins, &inherits]), "3");
    }

    /// A name does not say in which table the slots are, so each table gets all of them, those of the nearest
    /// holder first. A file's name does not count.
    #[test]
    fn slots_are_found_by_the_name_of_their_repository() {
        let holders = [above("gpu_(20-cad.toml)", "7"), above("seats", "2"), above("seats", "1")];
        let found = |name: &str| joined(&holders, &[&claim(name, 1)]);
        assert_eq!(found("seats"), "2 1");
        assert_eq!(found("gpu (20-cad.toml)"), "7");
        assert_eq!(found("gpu"), "7");
        assert_eq!(found("cpu"), "");
        let both = [above("gpu_(20-cad.toml)", "7"), above("gpu", "8")];
        assert_eq!(joined(&both, &[&claim("gpu", 1)]), "7 8");
    }
}
