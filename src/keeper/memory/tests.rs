//! Slots that several launches have, who is overdue, and the number of tables that count for a user.

use std::time::{Duration, SystemTime};

use super::{Held, Store, VerifiedAncestry, chosen, lingering, overdue};
use crate::{
    judge::terms::{ExpireKill, Expiry, Group, Seats, Terms},
    keeper::{Class, Holder, Number, Overdue, Vacancy},
    sys::own_pid,
};

/// Takes these slots for a member of a group, which has the first ones already.
fn member(store: &Store, shared: &[u64], free: &[u64]) -> Held {
    let seats = Seats { shared: shared.to_vec(), free: free.to_vec() };
    store.table("seats").take_with(&seats, Some(&Group::of("ann"))).expect("the slots are free")
}

/// One nested launch at a time uses a slot. The end of one that used it below an earlier holder changes
/// nothing for the next one.
#[test]
fn a_nested_launch_gives_up_only_its_own_use() {
    let table = Store::default().table("seats");
    let first = table.take(&[1]).expect("it is free");
    let below_the_first = table.share_again(&[1]).expect("no nested launch uses it");
    assert!(table.share_again(&[1]).is_none(), "one uses it");
    let other = table.take(&[2]).expect("it is free");
    assert!(table.share_again(&[2, 1]).is_none(), "one uses one of them");
    assert!(table.share_again(&[2, 3]).is_none(), "no launch holds one of them");
    drop((first, other));
    let second = table.take(&[1]).expect("it is free again");
    let below_the_second = table.share_again(&[1]).expect("no nested launch uses the slot of this holder");
    drop(below_the_first);
    assert!(table.share_again(&[1]).is_none() && second.is_used_below(), "one uses it");
    drop(below_the_second);
    assert!(!second.is_used_below());
    assert!(table.share_again(&[1]).is_some());
}

/// A nested launch uses a slot until it ends itself, also when another member of the slot has gone: here the
/// ended program from which its holder has taken the slot over.
#[test]
fn the_end_of_another_member_changes_nothing_for_a_nested_launch() {
    let store = Store::default();
    let (ended, heir) = (member(&store, &[], &[1]), member(&store, &[1], &[]));
    let table = store.table("seats");
    let below = table.share_again(&[1]).expect("no nested launch uses it");
    drop(ended);
    assert!(heir.is_used_below() && table.share_again(&[1]).is_none(), "one uses it");
    drop(below);
    assert!(!heir.is_used_below());
    let below = table.share_again(&[1]).expect("no nested launch uses it");
    drop((heir, below));
    let _next = table.take(&[1]).expect("it is free");
    assert!(table.share_again(&[1]).is_some());
}

/// A slot of a group is held as long as a member has it.
#[test]
fn the_last_member_of_a_group_releases_its_slot() {
    let store = Store::default();
    let (first, second) = (member(&store, &[], &[1, 2]), member(&store, &[1], &[]));
    assert_eq!((first.joined(), second.joined()), (&[][..], &[1][..]));
    assert_eq!((first.shared_with_others(), second.shared_with_others()), (vec![1], vec![1]));
    drop(first);
    let held = store.table("seats").occupancy();
    assert_eq!((held.holds(1), held.holds(2), second.shared_with_others()), (true, false, Vec::new()));
    drop(second);
    assert_eq!(store.table("seats").used(), 0);
    assert!(store.table("seats").groups().is_empty());
}

/// A member that leaves its group keeps the slots that it has alone, and no launch of the group joins them.
#[test]
fn who_leaves_a_group_keeps_its_own_slots_alone() {
    let store = Store::default();
    let (mut first, second) = (member(&store, &[], &[1, 2]), member(&store, &[1], &[]));
    first.leave_group();
    let groups = || store.table("seats").groups().iter().map(|(slot, ..)| *slot).collect::<Vec<_>>();
    assert_eq!((first.slots(), groups()), (&[2][..], vec![1]));
    drop(second);
    let held = store.table("seats").occupancy();
    assert_eq!((held.holds(1), held.holds(2)), (false, true));
}

/// A slot that gets another number is still that of its group, and a nested launch still uses it.
#[test]
fn a_slot_with_another_number_is_what_it_was() {
    let store = Store::default();
    let table = store.table("seats");
    let (mut held, other) = (member(&store, &[], &[1]), table.take(&[2]).expect("it is free"));
    let mut below = table.share_again(&[1]).expect("no nested launch uses it");
    assert!(table.take(&[2, 5]).is_none() && table.used() == 2, "another launch has one of them");
    assert!(!table.move_slot(1, 2), "another launch has that slot");
    assert!(table.move_slot(1, 3) && held.follow(1, 3) && below.follow(1, 3) && !held.follow(1, 4));
    assert!(table.share_again(&[3]).is_none() && held.is_used_below(), "a nested launch uses it");
    assert_eq!(table.groups().iter().map(|(slot, ..)| *slot).collect::<Vec<_>>(), [3]);
    drop((below, held));
    assert_eq!((table.used(), other.slots()), (1, &[2][..]));
}

/// A table counts for the user who needed it first, until it is forgotten. It is kept while it is in use, and
/// while a pause after its last use may block launches.
#[test]
fn a_table_counts_for_its_first_user_until_it_is_forgotten() {
    let store = Store::default();
    let by = |uid| store.for_asker(VerifiedAncestry::of_user(Some(uid)));
    let counted = || (store.count_of(7), store.count_of(8));
    store.table("of-other-hosts");
    assert_eq!(counted(), (0, 0));
    for name in ["idle", "in-use", "paused", "of-other-hosts"] {
        by(7).table(name);
        by(8).table(name);
    }
    assert_eq!(counted(), (4, 0));
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    let held = store.table("in-use").take(&[1]).expect("it is free");
    store.table("paused").pauses_for(hour);
    store.table("paused").ended(now);
    // A table that may not be forgotten counts for the next user who needs it.
    assert_eq!(store.forget_idle(7, now, |name| name != "of-other-hosts"), ["idle"]);
    assert_eq!(counted(), (2, 0));
    store.forget_if_unused("paused");
    assert_eq!(counted(), (2, 0), "its last use is known");
    by(8).table("of-other-hosts");
    assert_eq!(counted(), (2, 1));
    assert_eq!(store.forget_idle(7, now + hour, |_| true), ["paused"]);
    store.forget_if_unused("in-use");
    assert_eq!(counted(), (1, 1));
    drop(held);
    store.forget_if_unused("in-use");
    assert_eq!((counted(), store.known("in-use").is_none()), ((0, 1), true));
}

/// Each program that runs is counted when its slots are restored. If another launch has one of them, the
/// lowest free one takes its place.
#[test]
fn slots_that_others_have_are_replaced_when_they_are_restored() {
    let store = Store::default();
    let table = store.table("seats");
    let (_other, _group) = (table.take(&[1, 4]).expect("they are free"), member(&store, &[], &[2]));
    assert_eq!(table.to_restore(&[1, 3, 4], None), [5, 3, 6]);
    assert_eq!(table.to_restore(&[2], None), [3]);
    let (own, another) = (Group::of("ann"), Group::of("bob"));
    assert_eq!(table.to_restore(&[2, 3], Some(&own)), [2, 3]);
    assert_eq!(table.to_restore(&[2, 3], Some(&another)), [5, 3]);
}

/// A member with less keeps the first slots of its group. After a restart the order of the slots is the same.
#[test]
fn restored_slots_of_a_group_have_their_order() {
    let store = Store::default();
    let (table, group) = (store.table("seats"), Group::of("ann"));
    let _one = table.restore(&[2], Some(&group)).expect("it is free");
    let pair = table.restore(&[5, 2], Some(&group)).expect("it is free, or the group's");
    assert_eq!((pair.joined(), table.used()), (&[2][..], 2));
    let terms = Terms { limit: 5, slots: 2, group: Some(group), ..Terms::default() };
    assert_eq!(table.shared(&terms), [5, 2]);
}

/// The user of a start is known as long as that start is the last one.
#[test]
fn the_user_of_another_start_is_not_named() {
    let table = Store::default().table("seats");
    let [first, last] = [1, 2].map(|hour| SystemTime::UNIX_EPOCH + Duration::from_secs(3600 * hour));
    let held = table.take(&[1]).expect("it is free");
    held.describe(Holder { uid: Some(7), ..Holder::unknown(1..=1) });
    table.started(held.slots(), last);
    assert_eq!((table.who_started(last), table.who_started(first)), (Some(7), None));
    table.withdraw(Some(first));
    assert_eq!((table.who_started(last), table.who_started(first)), (None, None));
    // The user of the start before the last one is known, and of no other one.
    for (before, user) in [(first, Some(7)), (SystemTime::UNIX_EPOCH, None)] {
        held.describe(Holder { uid: Some(7), ..Holder::unknown(1..=1) });
        table.started(held.slots(), first);
        held.describe(Holder { uid: Some(8), ..Holder::unknown(1..=1) });
        table.started(held.slots(), last);
        table.withdraw(Some(before));
        assert_eq!((table.stamps().0, table.who_started(before)), (Some(before), user));
    }
}

/// The search for a free slot continues behind the last one that was taken: all slots are used in turn.
#[test]
fn the_search_goes_on_behind_the_last_slot() {
    let table = Store::default().table("seats");
    let terms = Terms { limit: 5, slots: 1, ..Terms::default() };
    for (taken, next) in [(&[3, 1][..], 4), (&[5], 1), (&[2], 3), (&[], 1)] {
        table.started(taken, SystemTime::now());
        assert_eq!(table.vacancy(&terms), Vacancy::Slots(vec![next]));
    }
}

const EXPIRY: Expiry =
    Expiry { after: Duration::from_millis(1), grace: Duration::ZERO, kill: ExpireKill::Process };

/// A holder of this slot since then, in time since the boot of the host.
fn holder(slot: u64, pid: i32, taken: Duration) -> Holder {
    Holder { pid: Some(pid), keeper: Some(pid), taken: Some(taken), ..Holder::unknown(slot..=slot) }
}

/// A program that has ended has no process that could be ended. Only its slots can be freed.
#[test]
fn a_holder_that_has_ended_is_not_overdue() {
    let lives = holder(1, 7, Duration::ZERO);
    let until = Some(SystemTime::now());
    let ended = Holder { keeper: None, lingers_until: until, ..holder(2, 7, Duration::ZERO) };
    let host = Some("lab2".to_owned());
    let elsewhere = Holder { host: host.clone(), taken: None, slots: (3, 4), ..ended.clone() };
    let holders = [lives, ended, elsewhere];
    let slots = |found: &[Overdue]| found.iter().map(|one| (one.holder.slots, one.slots)).collect::<Vec<_>>();
    assert_eq!(slots(&overdue(&holders, &EXPIRY)), [((1, 1), 1)]);
    assert_eq!(slots(&chosen(&holders)), [((1, 1), 1)]);
    let free = lingering(&holders);
    assert_eq!(slots(&free), [((2, 2), 1), ((3, 4), 2)]);
    assert_eq!(free.into_iter().map(|one| one.elsewhere).collect::<Vec<_>>(), [None, host]);
}

/// The end of one member of a group frees nothing: all members are overdue, or none is ended.
#[test]
fn a_group_is_overdue_as_a_whole() {
    let (old, young) = (Duration::ZERO, Duration::MAX);
    let found = |first, others: &[Duration]| {
        let others = (8..).zip(others).map(|(pid, taken)| holder(1, pid, *taken)).collect();
        let found = overdue(&[Holder { others, ..holder(1, 7, first) }], &EXPIRY);
        found.iter().flat_map(Overdue::all).map(Overdue::process).collect::<Vec<_>>()
    };
    assert_eq!(found(old, &[old, old]), [7, 8, 9]);
    assert!(found(old, &[old, young]).is_empty() && found(young, &[old]).is_empty());
}

/// A member with more slots than the others is ended with them, or not at all, whichever of its slots it has
/// alone.
#[test]
fn the_greatest_member_of_a_group_is_ended_with_it() {
    let (old, young) = (Duration::ZERO, Duration::MAX);
    let found = |shared: u64, alone: u64, taken: Duration| {
        let others = vec![holder(shared, 8, taken)];
        let mut holders = [Holder { others, ..holder(shared, 7, old) }, holder(alone, 7, old)];
        holders.sort_by_key(|holder| holder.slots);
        let found = overdue(&holders, &EXPIRY);
        let processes = |one: &Overdue| one.all().map(Overdue::process).collect::<Vec<_>>();
        found.iter().map(|one| (processes(one), one.slots)).collect::<Vec<_>>()
    };
    for (shared, alone) in [(1, 2), (2, 1)] {
        assert_eq!(found(shared, alone, old), [(vec![7, 8], 2)], "{shared}");
        assert!(found(shared, alone, young).is_empty(), "{shared}");
    }
    // The process of the same number on another host is not a member.
    let others = vec![holder(1, 8, young)];
    let (host, since) = (Some("lab2".to_owned()), Some(SystemTime::UNIX_EPOCH));
    let there = Holder { host, since, taken: None, ..holder(3, 7, old) };
    let holders = [Holder { others, ..holder(1, 7, old) }, there];
    assert_eq!(overdue(&holders, &EXPIRY).iter().map(|one| one.holder.slots).collect::<Vec<_>>(), [(3, 3)]);
}

/// Slots with the same first holder are listed together only if they have the same members.
#[test]
fn slots_with_other_members_are_listed_apart() {
    let store = Store::default();
    let (first, second) = (member(&store, &[], &[1, 2, 3]), member(&store, &[1], &[]));
    first.describe(holder(1, 7, Duration::ZERO));
    second.describe(holder(1, 8, Duration::ZERO));
    let table = store.table("seats");
    let pids = |holder: &Holder| holder.all().filter_map(|one| one.pid).collect::<Vec<_>>();
    let seen = |holder: &Holder| (holder.slots, pids(holder));
    let listed = || table.holders(&table.occupancy()).iter().map(seen).collect::<Vec<_>>();
    assert_eq!(listed(), [((1, 1), vec![7, 8]), ((2, 3), vec![7])]);
    drop(first);
    assert_eq!(listed(), [((1, 1), vec![8])], "the first has left");
}

/// Of a slot that a group shares, the programs that run are listed. When all of them have ended and the slot
/// lingers, those are listed that had it. A newcomer shares it with no program then.
#[test]
fn the_programs_that_run_are_listed_before_those_that_have_ended() {
    let store = Store::default();
    let (first, second) = (member(&store, &[], &[1]), member(&store, &[1], &[]));
    first.describe(holder(1, 7, Duration::ZERO));
    second.describe(holder(1, 8, Duration::ZERO));
    let table = store.table("seats");
    let listed = || -> Vec<i32> {
        let holders = table.holders(&table.occupancy());
        holders.iter().flat_map(Holder::all).filter_map(|one| one.pid).collect()
    };
    assert_eq!(listed(), [7, 8]);
    first.linger(Some(SystemTime::now()));
    assert_eq!(listed(), [8]);
    second.linger(Some(SystemTime::now()));
    assert_eq!(listed(), [7, 8]);
    assert_eq!(member(&store, &[1], &[]).joined(), [0; 0]);
}

/// A launch does not wait for slots that its ancestors alone hold: that would be for ever.
#[test]
fn slots_that_ancestors_alone_hold_are_known() {
    let table = Store::default().table("seats");
    let has = |slots: &[u64]| {
        let slots = slots.iter().map(|slot| (table.number(), *slot)).collect();
        let ancestry = VerifiedAncestry { slots, ..VerifiedAncestry::default() };
        table.is_held_by_ancestor(&table.occupancy(), &ancestry)
    };
    assert!(!has(&[1, 2]), "no launch holds any");
    let held = table.take(&[1, 2]).expect("they are free");
    held.describe(holder(1, i32::MAX, Duration::ZERO));
    assert!(has(&[1, 2]) && !has(&[1]) && !has(&[2]));
    let other = table.take(&[4]).expect("it is free");
    assert!(!has(&[1, 2]) && has(&[1, 2, 4]));
    drop(other);
    // The process itself holds them, or another table has these slots.
    held.describe(holder(1, own_pid(), Duration::ZERO));
    let own = VerifiedAncestry::of_process(own_pid(), 1000);
    assert!(table.is_held_by_ancestor(&table.occupancy(), &own) && !has(&[1]));
    let slots = [1, 2].map(|slot| (table.number() + 1, slot)).into();
    let elsewhere = VerifiedAncestry { slots, ..VerifiedAncestry::default() };
    assert!(!table.is_held_by_ancestor(&table.occupancy(), &elsewhere));
    assert!(!own.is_nobody() && !elsewhere.is_nobody() && VerifiedAncestry::of_user(Some(7)).is_nobody());
}

/// Slots count for the user of their holder where the user, and since when they are held, is known.
#[test]
fn slots_count_for_the_users_who_are_known() {
    let table = Store::default().table("seats");
    let (pair, one) = (table.take(&[1, 2]), table.take(&[4]));
    let (pair, _one) = (pair.expect("they are free"), one.expect("it is free"));
    let since = Duration::from_secs(5);
    pair.describe(Holder { uid: Some(1000), ..holder(1, 7, since) });
    let vouched = table.vouched(&table.occupancy());
    let vouched: Vec<_> = vouched.iter().map(|one| (one.uid, one.since, one.slots)).collect();
    assert_eq!(vouched, [(1000, since, 2)]);
}

/// The connections of the launches in a queue are known, each once and the oldest first. Those that do not
/// respond are found in the same order.
#[test]
fn the_connections_of_a_queue_are_in_its_order() {
    let table = Store::default().table("seats");
    let class = |capacity| Class { generation: 0, capacity };
    let mut places = [(1, 10), (2, 40), (3, 20), (4, 30)].map(|(number, session)| {
        let mut place = table.take_place(Number(number)).expect("the number is free");
        place.stand(&[class(1)]);
        place.serve_in(session);
        place
    });
    places[1].stand(&[class(1), class(2)]);
    places[1].wants(3);
    for place in [0, 2, 3] {
        places[place].set_away(true);
    }
    assert_eq!(table.sessions(), [10, 40, 20, 30]);
    assert_eq!(table.first_away(2), [10, 20]);
    assert_eq!((table.session_of(Number(2)), table.session_of(Number(5))), (Some(40), None));
    let wants: Vec<_> = table.waiters().iter().map(|waiter| waiter.wants).collect();
    assert_eq!(wants, [None, Some(3), Some(3), None, None]);
}
