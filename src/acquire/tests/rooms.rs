//! Whether there is room for a claim.

use std::time::Duration;

use super::stage::{But, claim, one, tables};
use crate::{
    acquire::Room,
    judge::terms::{Admit, Claim, ElapsedFrom, TooSoon, Unclear, WhyUnclear},
};

#[test]
fn a_slot_is_free_until_the_limit_is_reached() {
    let seats = || [one(claim("seats", 3))];
    tables().gives(&seats(), "seats 1");
    tables().held("seats", 1..=2).gives(&seats(), "seats 3");
    tables().held("seats", 1..=3).gives(&seats(), "75: seats full");
    tables().held("seats", 1..=3).finds(&seats(), &[Room::Full]);
    tables().held("seats", 8..=10).gives(&seats(), "75: seats full");
    tables().held("gpus", 1..=3).gives(&seats(), "seats 1");
}

#[test]
fn several_slots_are_free_together_or_not_at_all() {
    let two = || [one(claim("seats", 3).slots(2))];
    tables().held("seats", 2..=2).gives(&two(), "seats 1,3");
    tables().held("seats", 1..=2).gives(&two(), "75: seats full");
    tables().gives(&[one(claim("seats", 3).all())], "seats 1-3");
    tables().held("seats", 3..=3).gives(&[one(claim("seats", 3).all())], "75: seats full");
}

#[test]
fn a_ceiling_counts_what_everybody_holds() {
    let low = || [one(claim("seats", 5).ceiling(3))];
    tables().held("seats", 1..=2).gives(&low(), "seats 3");
    tables().held("seats", 3..=5).gives(&low(), "75: seats full");
}

#[test]
fn a_limit_of_nothing_is_closed_and_more_than_there_can_be_is_never() {
    tables().finds(&[one(claim("seats", 0))], &[Room::Closed]);
    tables().gives(&[one(claim("seats", 0))], "75: seats full");
    tables().finds(&[one(claim("seats", 3).slots(4))], &[Room::Never]);
    tables().gives(&[one(claim("seats", 3).slots(4))], "78: seats never");
    tables().gives(&[one(claim("seats", 5).ceiling(3).slots(4))], "78: seats never");
    tables().gives(&[one(claim("seats", 5).zones(&[4..=5]).slots(3))], "78: seats never");
}

#[test]
fn what_is_kept_for_others_is_no_room() {
    let zoned = || [one(claim("seats", 5).zones(&[4..=5]))];
    tables().gives(&zoned(), "seats 4");
    tables().held("seats", 4..=4).gives(&zoned(), "seats 5");
    tables().held("seats", 4..=5).finds(&zoned(), &[Room::Kept]);
    tables().held("seats", 4..=5).gives(&zoned(), "75: seats full");
    tables().held("seats", 1..=5).finds(&zoned(), &[Room::Full]);
    tables().gives(&[one(claim("seats", 5).zones(&[5..=5, 1..=2]).slots(2))], "seats 1,5");
    tables().finds(&[one(claim("seats", 5).zones(&[]))], &[Room::Never]);
}

/// What `slots_from` refuses is refused whatever the limit and the rule: a launch waits for none of it.
#[test]
fn an_unclear_number_of_slots_is_never_to_be_had() {
    let unclear = |limit, admit| {
        let why = WhyUnclear::AboveTable { number: 9, greatest: 4 };
        let unclear = Some(Unclear { why, repository: "seats".to_owned(), slots: None });
        one(Claim { unclear, ..claim("seats", limit).slots(u32::MAX).admit(admit) })
    };
    for limit in [0, 3] {
        for admit in [Admit::WithinLimit, Admit::Always] {
            tables().finds(&[unclear(limit, admit)], &[Room::Never]);
            tables().gives(&[unclear(limit, admit)], "78: seats never");
        }
        tables().gives(&[unclear(limit, Admit::Unenforced)], "(seats unenforced)");
    }
}

#[test]
fn a_pause_counts_from_the_last_start_or_the_last_end() {
    let sync = |from| [one(claim("sync", 3).pause(60, from, TooSoon::Refuse))];
    let (start, end) = (ElapsedFrom::Start, ElapsedFrom::End);
    tables().gives(&sync(start), "sync 1");
    let soon = tables().started("sync", 50);
    soon.finds(&sync(start), &[Room::TooSoon(soon.now - Duration::from_secs(50))]);
    tables().started("sync", 50).gives(&sync(start), "69: sync too soon");
    tables().started("sync", 60).gives(&sync(start), "sync 1");
    tables().ended("sync", 50).gives(&sync(start), "sync 1");
    tables().ended("sync", 50).gives(&sync(end), "69: sync too soon");
    tables().ended("sync", 61).started("sync", 50).gives(&sync(end), "sync 1");
    tables().held("sync", 1..=3).started("sync", 50).gives(&sync(start), "69: sync too soon");
}

#[test]
fn a_claim_that_is_always_admitted_goes_beyond_the_limit() {
    let always = |limit| [one(claim("seats", limit).admit(Admit::Always))];
    tables().gives(&always(2), "seats 1");
    tables().held("seats", 1..=2).gives(&always(2), "seats 3");
    tables().held("seats", 1..=4).gives(&always(2), "seats 5");
    tables().gives(&always(0), "seats 1");
    tables().held("seats", 1..=2).waiting("seats", 1, 0, 2).gives(&always(2), "seats 3");
    // More than a repository can ever have is refused at once, and blocks no other launch.
    let many = |slots| one(claim("seats", 3).zones(&[2..=3]).admit(Admit::Always).slots(slots));
    tables().finds(&[many(2_000_000)], &[Room::Never]);
    tables().gives(&[many(2_000_000)], "78: seats never");
    tables().finds(&[many(1_048_575)], &[Room::Never]);
    tables().gives(&[many(u32::MAX), one(claim("gpus", 1))], "78: seats never");
    tables().gives(&[many(3)], "seats 2-4");
    let soon = || [one(claim("seats", 2).admit(Admit::Always).not_again_within(60))];
    tables().started("seats", 10).gives(&soon(), "69: seats too soon");
}

#[test]
fn a_claim_that_is_not_enforced_refuses_nobody() {
    let watched = || claim("seats", 2).unenforced();
    tables().gives(&[one(watched())], "seats 1");
    tables().held("seats", 1..=2).gives(&[one(watched())], "(seats unenforced)");
    tables().held("seats", 1..=2).finds(&[one(watched())], &[Room::Full]);
    tables().gives(&[one(watched().slots(3))], "(seats unenforced)");
    tables().waiting("seats", 1, 0, 2).gives(&[one(watched())], "(seats unenforced)");
    tables().started("seats", 10).gives(&[one(watched().not_again_within(60))], "seats 1");
    tables()
        .held("seats", 1..=2)
        .gives(&[one(watched()), one(claim("gpus", 1))], "gpus 1, (seats unenforced)");
}
