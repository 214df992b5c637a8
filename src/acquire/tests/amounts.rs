//! Several claims on one table are one claim there.

use super::stage::{But, any_of, claim, one, tables};
use crate::judge::terms::Admit;

#[test]
fn the_lowest_limit_and_the_most_slots_count() {
    let both = |slots| [one(claim("seats", 5)), one(claim("seats", 3).slots(slots).called("same"))];
    tables().gives(&both(2), "seats 1,2, same 1,2");
    tables().held("seats", 1..=1).gives(&both(2), "seats 2,3, same 2,3");
    tables().held("seats", 1..=2).gives(&both(2), "75: seats full; same full");
    tables().gives(&both(4), "78: seats never; same never");
}

#[test]
fn zones_are_those_that_all_claims_allow() {
    let both = |slots| {
        let first = claim("seats", 9).zones(&[6..=9, 1..=3]);
        [one(first), one(claim("seats", 9).zones(&[2..=7]).slots(slots).called("same"))]
    };
    tables().gives(&both(1), "seats 6, same 6");
    tables().gives(&both(4), "seats 2,3,6,7, same 2,3,6,7");
    tables().gives(&both(5), "78: seats never; same never");
    tables().held("seats", 6..=7).gives(&both(2), "seats 2,3, same 2,3");
}

#[test]
fn a_claim_that_is_not_enforced_adds_nothing_to_one_that_is() {
    let both = || [one(claim("seats", 5)), one(claim("seats", 1).slots(4).unenforced().called("watched"))];
    tables().held("seats", 1..=4).gives(&both(), "seats 5, watched 5");
    tables().held("seats", 1..=5).gives(&both(), "75: seats full");
    let watched = || [one(claim("seats", 5).unenforced()), one(claim("seats", 2).unenforced().called("low"))];
    tables().held("seats", 1..=1).gives(&watched(), "seats 2, low 2");
    tables().held("seats", 1..=2).gives(&watched(), "(seats unenforced), (low unenforced)");
}

#[test]
fn always_is_admitted_only_what_every_claim_admits_always() {
    let both = |admit| [one(claim("seats", 2).admit(Admit::Always)), one(claim("seats", 2).admit(admit))];
    tables().held("seats", 1..=2).gives(&both(Admit::Always), "seats 3");
    tables().held("seats", 1..=2).gives(&both(Admit::WithinLimit), "75: seats full; seats full");
    tables().held("seats", 1..=2).gives(&both(Admit::Unenforced), "seats 3");
}

#[test]
fn each_table_is_opened_once() {
    let demands = [
        one(claim("seats", 5)),
        any_of([claim("gpus", 1), claim("seats", 3).called("same"), claim("gpus", 2)]),
        one(claim("sync", 1)),
    ];
    assert_eq!(tables().opened(&demands), (3, 3));
}
