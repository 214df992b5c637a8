//! Alternatives, and everything that must be available together.

use super::stage::{But, Tables, any_list_of, any_of, claim, granted, one, tables};
use crate::{
    acquire::{AcquireContext, Clock, Grant, Outcome, waiting::acquire},
    judge::terms::{Admit, Claim, Demand, Group, Launch, NamedSlots, Nested, Runs},
    keeper::{Keepers, VerifiedAncestry},
};

#[test]
fn the_first_alternative_that_can_be_had_is_taken() {
    let either = || [any_of([claim("seats", 1), claim("pool", 1), claim("cloud", 1)])];
    tables().gives(&either(), "seats 1");
    tables().held("seats", 1..=1).gives(&either(), "pool 1");
    tables().held("seats", 1..=1).held("pool", 1..=1).gives(&either(), "cloud 1");
    let full = tables().held("seats", 1..=1).held("pool", 1..=1).held("cloud", 1..=1);
    full.gives(&either(), "75: seats full or pool full or cloud full");
}

/// What refuses no launch is used without room only if no alternative has room.
#[test]
fn an_alternative_with_room_precedes_one_that_only_refuses_nobody() {
    let a_is_full = || tables().held("a", 1..=1);
    let both_are_full = || a_is_full().held("b", 1..=1);
    let tried = || [any_of([claim("a", 1).unenforced(), claim("b", 1).unenforced()])];
    tables().gives(&tried(), "a 1");
    a_is_full().gives(&tried(), "b 1");
    both_are_full().gives(&tried(), "(a unenforced)");
    let counted = || [any_of([claim("a", 1).admit(Admit::Always), claim("b", 1).admit(Admit::Always)])];
    tables().gives(&counted(), "a 1");
    a_is_full().gives(&counted(), "b 1");
    both_are_full().gives(&counted(), "a 2");
    // A limit of nothing has no room, and a slot that is free below the limit is none if others are beyond.
    let closed = || [any_of([claim("a", 0).admit(Admit::Always), claim("b", 1).admit(Admit::Always)])];
    tables().gives(&closed(), "b 1");
    tables().held("a", 2..=2).gives(&counted(), "b 1");
    // Older launches come first where there is another choice.
    tables().waiting("a", 1, 0, 1).gives(&counted(), "b 1");
    // Only what refuses no launch is used without room, and then none waits.
    let mixed = || [any_of([claim("a", 1), claim("b", 1).unenforced()])];
    a_is_full().gives(&mixed(), "b 1");
    both_are_full().gives(&mixed(), "(b unenforced)");
    let mixed = || [any_of([claim("a", 1).unenforced(), claim("b", 1)])];
    a_is_full().gives(&mixed(), "b 1");
    both_are_full().gives(&mixed(), "(a unenforced)");
    let list = || {
        let always = |name| claim(name, 1).admit(Admit::Always);
        [any_list_of([vec![always("c"), always("a")], vec![always("b")]])]
    };
    a_is_full().gives(&list(), "b 1");
    both_are_full().gives(&list(), "c 1, a 2");
}

/// What a group has already takes nothing, so it comes first also if its limit is reached, or is nothing now.
#[test]
fn the_alternative_that_a_group_has_comes_first_whatever_its_limit() {
    let counted = |name, limit| {
        let mut claim = claim(name, limit).admit(Admit::Always);
        claim.amount.group = Some(Group::of("ann"));
        claim
    };
    for limit in [0, 1] {
        let (tables, seat) = (tables(), [one(counted("b", 1))]);
        let _of_group = tables.acquire(&seat).ok().expect("room");
        tables.gives(&[any_of([counted("a", 1), counted("b", limit)])], "b 1");
    }
}

/// An alternative with room leaves the second demand none, so the launch goes beyond the limit of the other.
#[test]
fn going_beyond_a_limit_is_no_reason_to_refuse() {
    let demands = [
        any_of([claim("a", 1).admit(Admit::Always), claim("b", 3).zones(&[1..=1])]),
        one(claim("b", 3).zones(&[2..=3])),
    ];
    tables().gives(&demands, "a 1, b 2");
    tables().held("a", 1..=1).gives(&demands, "a 2, b 2");
}

#[test]
fn the_first_combination_that_can_be_had_as_a_whole_is_taken() {
    // Two of two seats leave the second demand nothing, if that is met from the same table by another limit.
    let both = || {
        [
            any_of([claim("seats", 4).slots(2), claim("pool", 2)]),
            any_of([claim("seats", 1).called("last"), claim("cloud", 1)]),
        ]
    };
    tables().gives(&both(), "seats 1,2, cloud 1");
    tables().held("cloud", 1..=1).gives(&both(), "pool 1, last 1");
    tables()
        .held("cloud", 1..=1)
        .held("pool", 1..=2)
        .gives(&both(), "75: seats full or pool full; last full or cloud full");
    let third = || {
        [
            any_of([claim("a", 1), claim("b", 1)]),
            any_of([claim("c", 1), claim("d", 1)]),
            one(claim("a", 1).slots(1)),
        ]
    };
    tables().held("c", 1..=1).gives(&third(), "a 1, d 1");
    let narrow =
        || [any_of([claim("a", 3).zones(&[1..=1]), claim("b", 1)]), one(claim("a", 3).zones(&[2..=3]))];
    tables().gives(&narrow(), "b 1, a 2");
}

#[test]
fn a_pause_of_one_alternative_keeps_only_that_one_from_being_chosen() {
    let either = || [any_of([claim("sync", 1).not_again_within(60), claim("pool", 1)])];
    tables().started("sync", 10).gives(&either(), "pool 1");
    tables().started("sync", 10).held("pool", 1..=1).gives(&either(), "75: sync too soon or pool full");
    tables().started("sync", 90).held("pool", 1..=1).gives(&either(), "sync 1");
}

#[test]
fn every_alternative_that_comes_too_soon_is_too_soon() {
    let all = |second: u64| {
        [any_of([claim("a", 1).not_again_within(60), claim("b", 1).silently_not_within(second)])]
    };
    let soon = || tables().started("a", 10).started("b", 10);
    soon().gives(&all(60), "69: a too soon or b too soon");
    soon().gives(&all(5), "b 1");
    let silent = || [any_of([claim("a", 1).silently_not_within(60), claim("b", 1).silently_not_within(60)])];
    soon().gives(&silent(), "0: a too soon or b too soon");
    soon()
        .held("c", 1..=1)
        .gives(&[one(claim("a", 1).not_again_within(60)), one(claim("c", 1))], "69: a too soon");
}

#[test]
fn what_can_never_be_had_is_hopeless_only_without_an_alternative() {
    let never = || claim("seats", 1).slots(2);
    tables().gives(&[any_of([never(), claim("pool", 1)])], "pool 1");
    tables()
        .held("pool", 1..=1)
        .gives(&[any_of([never(), claim("pool", 1)])], "75: seats never or pool full");
    tables().gives(&[any_of([never(), claim("pool", 1).slots(3)])], "78: seats never or pool never");
    tables().held("pool", 1..=1).gives(&[one(never()), one(claim("pool", 1))], "78: seats never; pool full");
}

#[test]
fn what_can_never_be_had_is_not_what_there_is_to_wait_for() {
    let never = || claim("seats", 1).slots(2);
    let soon = || tables().started("sync", 10);
    soon().gives(
        &[any_of([never(), claim("sync", 1).not_again_within(60)])],
        "69: seats never or sync too soon",
    );
    let silent = || any_of([never(), claim("sync", 1).silently_not_within(60)]);
    soon().gives(&[silent()], "0: seats never or sync too soon");
    soon().gives(&[silent(), one(never())], "78: seats never or sync too soon; seats never");
    soon().held("pool", 1..=1).gives(
        &[any_of([never(), claim("sync", 1).not_again_within(60), claim("pool", 1)])],
        "75: seats never or sync too soon or pool full",
    );
}

/// If only time is in the way, nothing else is shown. Otherwise everything is.
#[test]
fn what_is_told_is_what_is_in_the_way() {
    let told = |tables: &Tables, other: Claim| {
        let never = claim("seats", 1).slots(2);
        let demands = [any_of([never, claim("sync", 1).not_again_within(60), other])];
        let refusal = tables.outlook(&demands).refusal.expect("tables in memory").expect("no slot is free");
        refusal.told().map(|refused| refused.claim.repository.to_string()).collect::<Vec<_>>()
    };
    let soon = tables().started("sync", 10).held("pool", 1..=1);
    assert_eq!(told(&soon, claim("other", 1).slots(2)), ["sync"]);
    assert_eq!(told(&soon, claim("pool", 1)), ["seats", "sync", "pool"]);
}

/// Alternatives on one table are not added up: only one of them is met.
#[test]
fn alternatives_on_one_table_are_judged_separately() {
    let either = || [any_of([claim("seats", 2), claim("seats", 1).slots(2).called("low")])];
    tables().held("seats", 1..=1).gives(&either(), "seats 2");
    tables().held("seats", 1..=2).gives(&either(), "75: seats full or low never");
}

#[test]
fn everything_that_is_in_the_way_is_named_and_nothing_else() {
    let three = || [one(claim("a", 1)), one(claim("b", 1)), any_of([claim("c", 1), claim("d", 1)])];
    tables().gives(&three(), "a 1, b 1, c 1");
    tables().held("b", 1..=1).gives(&three(), "75: b full");
    tables().held("a", 1..=1).held("c", 1..=1).gives(&three(), "75: a full");
    tables()
        .held("a", 1..=1)
        .held("c", 1..=1)
        .held("d", 1..=1)
        .gives(&three(), "75: a full; c full or d full");
    tables().gives(&[], "");
}

/// What a launch gets below a holder of these slots, each of a repository's table.
fn below<'c>(tables: &Tables, above: &[(&str, &str, u64)], demands: &'c [Demand]) -> Grant<'c> {
    let named = |(repository, _, slot): &(&str, &str, u64)| {
        let (slots, called, joined) = (Runs::of(&[*slot]), Vec::new(), Runs::default());
        NamedSlots { name: (*repository).to_owned(), slots, called, joined }
    };
    let ancestors: Vec<NamedSlots> = above.iter().map(named).collect();
    let mut ancestry = VerifiedAncestry::of_user(None);
    ancestry.slots =
        above.iter().map(|(_, table, slot)| (tables.store.table(table).number(), *slot)).collect();
    let outcome = tables.asks(|asker| {
        let launch = Launch { ancestors: &ancestors, ..asker.launch };
        let memory = tables.store.for_asker(ancestry);
        let keepers = Keepers { inherited: asker.keepers.inherited, memory };
        let (generation, on_expired, clock) = (asker.generation, asker.on_expired, Clock::default());
        acquire(demands, &AcquireContext { launch, keepers, generation, on_expired, clock })
    });
    match outcome.expect("tables in memory") {
        Outcome::Granted(grant) => grant,
        Outcome::Refused(_) | Outcome::Interrupted => panic!("there is room"),
    }
}

/// A launch below a holder needs nothing new for the alternative that the holder has, so that one comes
/// first. What it does not use of the holder's slots is left to other nested launches.
#[test]
fn the_alternative_that_an_ancestor_has_comes_first() {
    let joins = |name| Claim { nested: Nested::Join, ..claim(name, 1) };
    let tables = tables().held("full", 1..=1);
    let own = [one(joins("nb"))];
    let _above = tables.acquire(&own).ok().expect("room");
    let above = [("nb", "nb", 1)];
    let either = [any_of([joins("na"), joins("nb")])];
    let nested = below(&tables, &above, &either);
    assert_eq!((granted(&nested).as_str(), tables.used("na"), tables.used("nb")), ("nb 1", 0, 1));
    drop(nested);
    // Its list cannot be acquired as a whole.
    let list = [any_list_of([vec![joins("nb"), claim("full", 1)], vec![joins("na")]])];
    let other = below(&tables, &above, &list);
    assert_eq!((granted(&other).as_str(), tables.used("na")), ("na 1", 1));
    assert_eq!(granted(&below(&tables, &above, &own)), "nb 1");
}

/// A repository may have a table for each member, and the environment names no members. Below a holder of
/// slots of two of them, a launch finds the slot of each table, whichever is named first.
#[test]
fn an_ancestors_slot_is_found_in_each_table_of_a_repository() {
    let of = |table| one(Claim { nested: Nested::Join, ..claim(table, 2).called("seats") });
    let above = [("seats", "cad", 2), ("seats", "sim", 1)];
    for (demands, slots) in [([of("cad"), of("sim")], ["2", "1"]), ([of("sim"), of("cad")], ["1", "2"])] {
        let tables = tables().held("cad", 1..=1);
        let holder = tables.acquire(&demands).ok().expect("room");
        let nested = below(&tables, &above, &demands);
        for grant in [&holder, &nested] {
            let claims = demands.iter().flat_map(Demand::claims);
            let own: Vec<String> =
                claims.filter_map(|claim| grant.slots_of(claim)).map(Runs::to_string).collect();
            assert_eq!(own, slots);
            assert_eq!(granted(grant), slots.map(|slot| format!("seats {slot}")).join(", "));
        }
        assert_eq!((tables.used("cad"), tables.used("sim")), (2, 1));
    }
}
