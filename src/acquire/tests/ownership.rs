//! All or none: what a launch holds, and what it leaves behind.

use std::time::{Duration, SystemTime};

use super::stage::{But, any_of, claim, granted, one, tables};
use crate::acquire::waiting::acquire;

#[test]
fn nothing_is_held_after_a_refusal() {
    let tables = tables().held("c", 1..=1).started("a", 90);
    let demands = [one(claim("a", 2)), any_of([claim("b", 2), claim("a", 1)]), one(claim("c", 1))];
    let before = tables.store.table("a").stamps();
    tables.gives(&demands, "75: c full");
    assert_eq!((tables.used("a"), tables.used("b"), tables.used("c")), (0, 0, 1));
    assert_eq!(tables.store.table("a").stamps(), before);
}

#[test]
fn what_is_granted_is_held_until_it_is_dropped() {
    let tables = tables();
    let (two, rest) = ([one(claim("a", 3).slots(2)), one(claim("b", 1))], [one(claim("a", 3))]);
    let grant = tables.acquire(&two).ok().expect("room");
    assert_eq!((tables.used("a"), tables.used("b")), (2, 1));
    tables.gives(&two, "75: a full; b full");
    tables.gives(&rest, "a 3");
    drop(grant);
    assert_eq!((tables.used("a"), tables.used("b")), (0, 0));
    assert!(tables.acquire(&two).is_ok());
}

#[test]
fn slots_go_round() {
    let tables = tables();
    let seat = [one(claim("seats", 3))];
    for expected in ["seats 1", "seats 2", "seats 3", "seats 1"] {
        tables.gives(&seat, expected);
    }
}

/// The time of a decision is known afterwards, whatever was decided.
#[test]
fn the_time_of_a_decision_is_known() {
    for tables in [tables(), tables().held("a", 1..=1)] {
        let demands = [one(claim("a", 1))];
        let decided = tables.asks(|asker| {
            let before = asker.clock.last();
            drop(acquire(&demands, asker));
            (before, asker.clock.last())
        });
        assert!(decided.0.is_none() && decided.1.is_some_and(|moment| moment >= tables.now));
    }
}

#[test]
fn only_what_is_taken_is_stamped() {
    let tables = tables().held("full", 1..=1).started("full", 90);
    let before = tables.store.table("full").stamps();
    let grant = tables.acquire(&[one(claim("a", 1)), one(claim("full", 1).unenforced())]).ok().map(drop);
    assert!(grant.is_some());
    assert!(tables.store.table("a").stamps().0.is_some_and(|start| start >= tables.now));
    assert_eq!(tables.store.table("full").stamps(), before);
}

#[test]
fn the_end_of_a_program_is_written_down_where_it_held_slots() {
    let tables = tables();
    let demands = [one(claim("a", 1)), one(claim("b", 1))];
    let mut grant = tables.acquire(&demands).ok().expect("room");
    let start = tables.store.table("a").stamps().0;
    grant.finish().expect("tables in memory");
    assert_eq!((tables.used("a"), tables.used("b")), (0, 0));
    for name in ["a", "b"] {
        let (started, ended) = tables.store.table(name).stamps();
        assert_eq!(started, start);
        assert!(ended >= start && ended.is_some(), "{name}");
    }
    assert_eq!(tables.store.table("c").stamps(), (None, None));
}

#[test]
fn a_launch_that_started_nothing_takes_its_stamps_back() {
    let tables = tables().started("b", 90);
    let demands = [one(claim("a", 1)), one(claim("b", 1).not_again_within(60))];
    let before = ["a", "b"].map(|name| tables.store.table(name).stamps());
    let grant = tables.acquire(&demands).ok().expect("room");
    assert!(tables.store.table("b").stamps() > before[1]);
    grant.withdraw().expect("tables in memory");
    assert_eq!(["a", "b"].map(|name| tables.store.table(name).stamps()), before);
    assert_eq!((tables.used("a"), tables.used("b")), (0, 0));
    tables.gives(&demands, "a 1, b 1");
}

#[test]
fn the_stamp_of_a_later_start_stays() {
    let tables = tables();
    let demands = [one(claim("a", 2))];
    let grant = tables.acquire(&demands).ok().expect("room");
    let later = SystemTime::now() + Duration::from_secs(1);
    tables.store.table("a").started(&[2], later);
    grant.withdraw().expect("tables in memory");
    assert_eq!(tables.store.table("a").stamps().0, Some(later));
}

/// What two keepers grant is one grant, with all slots and claims of both.
#[test]
fn grants_of_two_keepers_are_one() {
    let tables = tables().held("full", 1..=1);
    let (first, second) = ([one(claim("a", 1))], [one(claim("b", 1)), one(claim("full", 1).unenforced())]);
    let grants = [&first[..], &second[..]].map(|demands| tables.acquire(demands).ok().expect("room"));
    let [files, agents] = grants;
    let both = files.and(agents);
    assert_eq!((granted(&both).as_str(), both.claims().len()), ("a 1, b 1, (full unenforced)", 3));
    assert_eq!((tables.used("a"), tables.used("b")), (1, 1));
    drop(both);
    assert_eq!((tables.used("a"), tables.used("b")), (0, 0));
}

#[test]
fn a_grant_names_each_repository_once() {
    let demands = [one(claim("a", 3)), one(claim("a", 2).slots(2)), one(claim("a", 3).called("same"))];
    assert_eq!(
        tables().acquire(&demands).ok().map(|grant| granted(&grant)).as_deref(),
        Some("a 1,2, same 1,2")
    );
}
