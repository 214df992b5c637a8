//! Alternatives, and everything that must be available together.

use super::stage::{But, Tables, any_list_of, any_of, claim, granted, one, tables};
use crate::{
    acquire::{AcquireContext, Clock, Grant, Outcome, waiting::acquire},
    judge::terms::{Claim, Demand, Launch, NamedSlots, Nested, Runs},
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

/// What a launch gets below a holder of this slot.
fn below<'c>(tables: &Tables, name: &str, slot: u64, demands: &'c [Demand]) -> Grant<'c> {
    let (slots, called, joined) = (Runs::of(&[slot]), Vec::new(), Runs::default());
    let ancestors = [NamedSlots { name: name.to_owned(), slots, called, joined }];
    let mut ancestry = VerifiedAncestry::of_user(None);
    ancestry.slots = vec![(tables.store.table(name).number(), slot)];
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
    let either = [any_of([joins("na"), joins("nb")])];
    let nested = below(&tables, "nb", 1, &either);
    assert_eq!((granted(&nested).as_str(), tables.used("na"), tables.used("nb")), ("nb 1", 0, 1));
    drop(nested);
    // Its list cannot be acquired as a whole.
    let list = [any_list_of([vec![joins("nb"), claim("full", 1)], vec![joins("na")]])];
    let other = below(&tables, "nb", 1, &list);
    assert_eq!((granted(&other).as_str(), tables.used("na")), ("na 1", 1));
    assert_eq!(granted(&below(&tables, "nb", 1, &own)), "nb 1");
}
