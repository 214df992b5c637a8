//! Alternatives, and everything that must be available together.

use super::stage::{But, Tables, any_of, claim, one, tables};
use crate::judge::terms::Claim;

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
