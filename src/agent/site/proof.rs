//! From a decision on the mirror to the conditions that prove it, which etcd compares in the transaction that
//! takes the slots. Like the mutex of a lock file, they guarantee that the limit is kept, no older launch is
//! overtaken, no pause is shortened, and the host is not considered dead. Pure: the model in `tests/model.rs`
//! carries out these very transactions.

use std::collections::BTreeSet;

use super::{Change, Compare, Key, Keys, Operation, Range, Transaction};
use crate::keeper::Occupancy;

/// etcd's limit for one transaction (`--max-txn-ops`), for its conditions and for its changes.
pub(super) const MOST_IN_TRANSACTION: usize = 128;

/// This many conditions leave room below that limit for those that every transaction has.
const MOST_COMPARES: usize = 100;

/// Up to this many absent hosts have a condition each.
const MOST_ABSENT: usize = 10;

/// The slots that a launch acquires in one table, and the facts of the decision.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    pub(super) table: String,
    pub(super) slots: Vec<u64>,
    /// Slots that its group has already, each with the revision of its key.
    pub(super) joined: Vec<(u64, i64)>,
    /// How many may be held, this launch included; none if it is admitted in any case.
    pub(super) limit: Option<u64>,
    /// The previously held slots, as far as known.
    pub(super) held: Occupancy,
    /// The revision of the recorded last use, if a pause counts; 0 if there was none.
    pub(super) stamps: Option<i64>,
}

/// The conditions for all tables of a launch that comes behind all lower numbers than this one, by a mirror
/// at this revision.
pub(super) fn compares(keys: &Keys, takings: &[Taking], number: u64, revision: i64) -> Vec<Compare> {
    let mut each: Vec<Vec<Compare>> = takings.iter().map(|taking| of_slots(keys, taking, revision)).collect();
    let of_use: Vec<Compare> =
        takings.iter().flat_map(|taking| of_use(keys, taking, number, revision)).collect();
    // If there would be too many conditions, a few tables are proved by every change of the table instead of
    // by slots.
    while each.iter().map(Vec::len).sum::<usize>() + of_use.len() > MOST_COMPARES {
        let largest = (0..each.len()).max_by_key(|index| each[*index].len());
        match largest {
            Some(largest) if each[largest].len() > 1 => {
                let all = keys.slots(&takings[largest].table);
                each[largest] = vec![Compare::UnchangedSince(all, revision)];
            }
            _ => break,
        }
    }
    each.into_iter().flatten().chain(of_use).collect()
}

/// That the limit is kept. Let w of the wanted slots be within the limit, a above it, and k slots be held
/// above it. The proof is that at most k are still held there, and that k + a more slots within the limit are
/// free. Then at most (limit - w - k - a) + w + k + a are held. A slot that the launch shares must still be
/// this host's.
fn of_slots(keys: &Keys, taking: &Taking, revision: i64) -> Vec<Compare> {
    let name = |slot: u64| keys.name(&Key::Slot(taking.table.clone(), slot));
    let absent = |slot: u64| Compare::Absent(name(slot));
    let mut compares: Vec<Compare> = taking.slots.iter().map(|slot| absent(*slot)).collect();
    compares.extend(taking.joined.iter().map(|(slot, at)| Compare::ChangedAt(name(*slot), *at)));
    let Some(limit) = taking.limit else { return compares };
    let wanted_above = taking.slots.iter().filter(|slot| **slot > limit).count();
    let held_above = taking.held.spans().iter().map(|span| {
        let (first, last) = span.slots.clone().into_inner();
        (last + 1).saturating_sub(first.max(limit + 1))
    });
    let above = held_above.sum::<u64>() + wanted_above as u64;
    let free = taking.held.free_among(1..=limit).filter(|slot| !taking.slots.contains(slot));
    // Never more conditions than etcd allows: a table that would need more is proved by every change.
    let above = usize::try_from(above).unwrap_or(usize::MAX);
    let free: Vec<u64> = free.take(above.min(MOST_COMPARES)).collect();
    if free.len() < above {
        // If there would be too many conditions, or the limit differs from that of the decision, the decision
        // itself is proved. The slots must still be free, because the mirror may be newer than the decision.
        compares.push(Compare::UnchangedSince(keys.slots(&taking.table), revision));
        return compares;
    }
    compares.extend(free.into_iter().map(absent));
    compares.push(Compare::UnchangedSince(keys.slots_above(&taking.table, limit), revision));
    compares
}

/// The proof that no older launch came meanwhile, and that the table was not used since.
fn of_use(keys: &Keys, taking: &Taking, number: u64, revision: i64) -> Vec<Compare> {
    let mut compares = Vec::new();
    if taking.limit.is_some() {
        let older: Range = keys.line_before(&taking.table, number);
        compares.push(Compare::UnchangedSince(older, revision));
    }
    if let Some(stamps) = taking.stamps {
        compares.push(Compare::ChangedAt(keys.name(&Key::Stamps(taking.table.clone())), stamps));
    }
    compares
}

/// The proof that the hosts of passed-over launches are still unreachable: each of them is absent. If there
/// are many, or there is no room for so many conditions, the proof is that no host's key was written since.
pub(super) fn of_absent(keys: &Keys, hosts: &BTreeSet<String>, revision: i64, room: usize) -> Vec<Compare> {
    if hosts.len() > MOST_ABSENT.min(room) {
        return vec![Compare::UnchangedSince(keys.hosts(), revision)];
    }
    hosts.iter().map(|host| Compare::Absent(keys.name(&Key::Host(host.clone())))).collect()
}

/// The proof that the host's key is as this agent wrote it. So no host considers this one dead, and no
/// transaction from before the last write of the key can be committed.
pub(super) fn of_host(keys: &Keys, host: &str, registration: i64) -> Compare {
    Compare::ChangedAt(keys.name(&Key::Host(host.to_owned())), registration)
}

/// Why a launch that claims of so many tables cannot be proved.
pub(super) fn too_much(repositories: usize) -> String {
    format!(
        "what it claims of {repositories} repositories of the site is more than etcd accepts in one \
            transaction: claim less for one launch"
    )
}

/// Changes, if all conditions hold and no key was changed since it was read.
pub(super) fn transaction(keys: &Keys, mut compares: Vec<Compare>, changes: &[Change]) -> Transaction {
    let mut operations = Vec::new();
    for Change { key, at, value } in changes {
        let name = keys.name(key);
        compares.push(Compare::ChangedAt(name.clone(), *at));
        operations.push(match value {
            Some(value) => Operation::Put(name, value.bytes()),
            None => Operation::Delete(name),
        });
    }
    Transaction { compares, operations }
}

/// Deletes the keys of an absent host, if it was absent ever since its key was last written.
pub(super) fn clearing(keys: &Keys, host: &str, written: i64, left: &[Change]) -> Transaction {
    let compares = vec![
        Compare::Absent(keys.name(&Key::Host(host.to_owned()))),
        Compare::ChangedAt(keys.name(&Key::Written(host.to_owned())), written),
    ];
    transaction(keys, compares, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::Span;

    fn held(spans: &[(u64, u64)]) -> Occupancy {
        Occupancy::of(spans.iter().map(|&(first, last)| Span { slots: first..=last, pid: None }).collect())
    }

    fn taking(slots: &[u64], limit: Option<u64>, spans: &[(u64, u64)]) -> Taking {
        Taking {
            table: "a".to_owned(),
            slots: slots.to_vec(),
            joined: Vec::new(),
            limit,
            held: held(spans),
            stamps: None,
        }
    }

    /// The slots that must be absent, and the other conditions.
    fn of(takings: &[Taking]) -> (Vec<u64>, Vec<Compare>) {
        let keys = Keys::below("/r/");
        let (mut absent, mut others) = (Vec::new(), Vec::new());
        for compare in compares(&keys, takings, 16, 7) {
            match compare {
                Compare::Absent(name) => match keys.parse(&name) {
                    Some(Key::Slot(_, slot)) => absent.push(slot),
                    key => panic!("{key:?}"),
                },
                other => others.push(other),
            }
        }
        (absent, others)
    }

    /// "Each wanted slot key does not exist."
    #[test]
    fn what_is_wanted_must_be_free_and_nothing_above_the_limit_may_change() {
        let keys = Keys::below("/r/");
        let (absent, others) = of(&[taking(&[2], Some(3), &[(1, 1)])]);
        assert_eq!(absent, [2]);
        let above = Compare::UnchangedSince(keys.slots_above("a", 3), 7);
        let line = Compare::UnchangedSince(keys.line_before("a", 16), 7);
        assert_eq!(others, [above, line]);
    }

    /// "With k slots held above my limit, k more keys within it do not exist."
    #[test]
    fn what_is_held_above_the_limit_must_be_free_within_it() {
        assert_eq!(of(&[taking(&[2], Some(5), &[(1, 1), (7, 8)])]).0, [2, 3, 4]);
        assert_eq!(of(&[taking(&[3], Some(5), &[(1, 1), (5, 6)])]).0, [3, 2]);
    }

    /// The last slot of the limit is within it: no other one has to be free for it.
    #[test]
    fn the_slot_at_the_limit_is_within_it() {
        let keys = Keys::below("/r/");
        let (absent, others) = of(&[taking(&[3], Some(3), &[(1, 1)])]);
        let above = Compare::UnchangedSince(keys.slots_above("a", 3), 7);
        assert_eq!((absent, others.contains(&above)), (vec![3], true));
    }

    /// Zones continue above a ceiling: a slot there counts as much as one within it.
    #[test]
    fn a_wanted_slot_above_the_ceiling_needs_a_free_one_below() {
        assert_eq!(of(&[taking(&[6], Some(5), &[(1, 3)])]).0, [6, 4]);
    }

    /// If too few slots within the limit are free for those that are held above it, the decision itself is
    /// proved: no slot of the table was taken since.
    #[test]
    fn a_decision_that_slots_cannot_prove_is_proved_by_all_of_them() {
        let keys = Keys::below("/r/");
        let (absent, others) = of(&[taking(&[1], Some(1), &[(3, 3)])]);
        let all = Compare::UnchangedSince(keys.slots("a"), 7);
        let line = Compare::UnchangedSince(keys.line_before("a", 16), 7);
        assert_eq!((absent, others), (vec![1], vec![all, line]));
    }

    /// `action = "count"`: may exceed the limit, and waits for no other launch.
    #[test]
    fn who_is_admitted_in_any_case_needs_no_room() {
        assert_eq!(of(&[taking(&[9], None, &[(1, 8)])]), (vec![9], Vec::new()));
    }

    /// A launch that only shares slots needs no room, and waits behind no other.
    #[test]
    fn what_is_shared_must_be_as_it_was() {
        let keys = Keys::below("/r/");
        let joins = Taking { joined: vec![(3, 6)], ..taking(&[], None, &[(1, 3)]) };
        let same = |slot, at| Compare::ChangedAt(keys.name(&Key::Slot("a".to_owned(), slot)), at);
        assert_eq!(of(std::slice::from_ref(&joins)), (Vec::new(), vec![same(3, 6)]));
        let (absent, others) = of(&[Taking { slots: vec![4], limit: Some(4), ..joins }]);
        assert_eq!((absent, others.contains(&same(3, 6))), (vec![4], true));
    }

    /// "What would need more than 100 compares" is proved by every change of the table.
    #[test]
    fn too_many_conditions_become_one() {
        let keys = Keys::below("/r/");
        let slots: Vec<u64> = (1..=60).collect();
        let (absent, others) = of(&[taking(&slots, Some(60), &[]), taking(&slots, Some(60), &[(70, 75)])]);
        assert_eq!(absent, slots);
        assert!(others.contains(&Compare::UnchangedSince(keys.slots("a"), 7)));
    }

    /// etcd accepts 128 conditions: 28 are left for absent hosts, for the host's own key, and for the site.
    #[test]
    fn a_launch_of_many_tables_has_no_more_conditions_than_etcd_accepts() {
        let keys = Keys::below("/r/");
        let paced = |name: u64| Taking {
            table: format!("a{name}"),
            stamps: Some(0),
            ..taking(&[1, 2, 3], Some(8), &[(4, 5)])
        };
        for tables in 1..=33 {
            let takings: Vec<Taking> = (0..tables).map(paced).collect();
            let compares = compares(&keys, &takings, 16, 7);
            assert!(compares.len() <= MOST_COMPARES, "{tables} tables: {}", compares.len());
            for taking in &takings {
                let is_of = |compare: &&Compare| match compare {
                    Compare::UnchangedSince(range, 7) => {
                        *range == keys.slots(&taking.table) || *range == keys.slots_above(&taking.table, 8)
                    }
                    _ => false,
                };
                assert!(compares.iter().any(|compare| is_of(&compare)), "{}", taking.table);
            }
        }
    }

    /// Each host whose launches are passed over has a condition of its own, if there are few of them, and if
    /// there is room for these conditions. Otherwise no host may have written its key.
    #[test]
    fn many_absent_hosts_have_one_condition() {
        let keys = Keys::below("/r/");
        for (count, room, have_one) in
            [(0, 0, false), (3, 3, false), (3, 2, true), (10, 28, false), (11, 28, true), (11, 9, true)]
        {
            let hosts: BTreeSet<String> = (0..count).map(|number| format!("lab{number}")).collect();
            let absent = |host: &String| Compare::Absent(keys.name(&Key::Host(host.clone())));
            let each: Vec<Compare> = hosts.iter().map(absent).collect();
            let unchanged = vec![Compare::UnchangedSince(keys.hosts(), 7)];
            let wanted = if have_one { unchanged } else { each };
            assert_eq!(of_absent(&keys, &hosts, 7, room), wanted, "{count} hosts, room for {room}");
        }
    }

    /// What an absent host has left is deleted only if the host is absent, was absent ever since, and each
    /// key is as it was seen: another host may have deleted it, and a third one may have the slot.
    #[test]
    fn each_key_of_an_absent_host_is_deleted_as_it_was_seen() {
        let keys = Keys::below("/r/");
        let name = |key: Key| keys.name(&key);
        let slot = |number| Key::Slot("a".to_owned(), number);
        let left = [(1, 4), (2, 6)].map(|(number, at)| Change { key: slot(number), at, value: None });
        let Transaction { compares, operations } = clearing(&keys, "lab", 3, &left);
        let host = Compare::Absent(name(Key::Host("lab".to_owned())));
        let written = Compare::ChangedAt(name(Key::Written("lab".to_owned())), 3);
        let seen = [(1, 4), (2, 6)].map(|(number, at)| Compare::ChangedAt(name(slot(number)), at));
        assert_eq!(compares, [[host, written], seen].concat());
        assert_eq!(operations, [1, 2].map(|number| Operation::Delete(name(slot(number)))));
    }

    #[test]
    fn a_pause_is_proved_by_its_stamps() {
        let keys = Keys::below("/r/");
        let paced = Taking { stamps: Some(0), ..taking(&[1], Some(1), &[]) };
        let stamps = Compare::ChangedAt(keys.name(&Key::Stamps("a".to_owned())), 0);
        assert!(of(&[paced]).1.contains(&stamps));
    }
}
