//! The line: who is let go first, who need not be, and who is silent. A launch in these tests is as old as
//! its number.

use std::{
    iter, mem,
    ops::{ControlFlow, RangeInclusive},
    thread,
    time::{Duration, Instant},
};

use super::stage::{But, GENERATION, Tables, any_of, claim, granted, one, shown, tables};
use crate::{
    acquire::{
        AtOnce, HEARTBEAT_INTERVAL, LivenessTracker, Outcome, PlaceInLine, QueuePosition, Room, Sign,
        TableView, Waiting, at_once::at_once, waiting::acquire_in_turn,
    },
    judge::terms::{Demand, Terms},
    keeper::{Class, Number, table::Table},
};

#[test]
fn a_newcomer_is_refused_where_older_launches_wait() {
    let seats = || [one(claim("seats", 3))];
    tables().waiting("seats", 1, 0, 3).gives(&seats(), "75: seats behind");
    tables().waiting("gpus", 1, 0, 3).gives(&seats(), "seats 1");
    tables().held("seats", 1..=3).waiting("seats", 1, 0, 3).gives(&seats(), "75: seats behind");
    let either = || [any_of([claim("seats", 3), claim("pool", 1)])];
    tables().waiting("seats", 1, 0, 3).gives(&either(), "pool 1");
    tables().waiting("seats", 1, 0, 3).held("pool", 1..=1).gives(&either(), "75: seats behind or pool full");
}

#[test]
fn a_lower_reach_does_not_hold_up_a_higher_one() {
    let seats = |ceiling| [one(claim("seats", 5).ceiling(ceiling))];
    tables().waiting("seats", 1, 0, 3).gives(&seats(5), "seats 1");
    tables().waiting("seats", 1, 0, 3).gives(&seats(3), "75: seats behind");
    tables().waiting("seats", 1, 0, 3).gives(&seats(2), "75: seats behind");
    tables().waiting("seats", 1, 0, 3).waiting("seats", 2, 0, 5).gives(&seats(5), "75: seats behind");
    let zoned = || [one(claim("seats", 5).zones(&[1..=2]))];
    tables().waiting("seats", 1, 0, 2).gives(&zoned(), "75: seats behind");
    tables().waiting("seats", 1, 0, 1).gives(&zoned(), "seats 1");
}

/// Launches with these numbers wait, with this ceiling.
fn many(tables: Tables, numbers: RangeInclusive<u64>, ceiling: u64) -> Tables {
    numbers.fold(tables, |tables, number| tables.waiting("seats", number, 0, ceiling))
}

/// A launch may pass many that wait below a lower ceiling. It does not pass an older one before them.
#[test]
fn an_older_launch_before_many_with_a_lower_reach_is_not_overtaken() {
    let seats = || [one(claim("seats", 3))];
    many(tables(), 2..=40, 1).gives(&seats(), "seats 1");
    many(tables().waiting("seats", 1, 0, 3), 2..=40, 1).gives(&seats(), "75: seats behind");
}

/// Only older launches are ahead, however many of them may be passed.
#[test]
fn a_younger_launch_is_not_ahead() {
    let tables = many(tables(), 1..=40, 1).waiting("seats", 42, 0, 3);
    let table = Table::Memory(tables.store.table("seats"));
    let ahead = |number| {
        let position = QueuePosition { number: Some(Number(number)), generation: 0, liveness: None };
        position.nearest_ahead(&table, 3).expect("a table in memory").map(|waiter| waiter.number)
    };
    assert_eq!((ahead(41), ahead(43)), (None, Some(Number(42))));
    // A launch is not ahead of itself.
    let line = table.all_waiters().expect("a table in memory");
    let all_ahead = |number| {
        let position = QueuePosition { number: Some(Number(number)), generation: 0, liveness: None };
        let ahead = position.all_ahead(&table, 3, &line).expect("a table in memory");
        ahead.iter().map(|waiter| waiter.number).collect::<Vec<_>>()
    };
    assert_eq!((all_ahead(42), all_ahead(43)), (vec![], vec![Number(42)]));
}

/// A launch that is away is passed over. Others of the same process are not.
#[test]
fn each_launch_of_a_process_is_away_for_itself() {
    let mut tables = many(tables(), 1..=2, 3);
    let table = Table::Memory(tables.store.table("seats"));
    let ahead = || {
        let position = QueuePosition::newcomer(0, None);
        position.nearest_ahead(&table, 3).expect("a table in memory").map(|waiter| waiter.number)
    };
    assert_eq!(ahead(), Some(Number(2)));
    tables.line[1].set_away(true);
    assert_eq!(ahead(), Some(Number(1)));
    tables.line[0].set_away(true);
    assert_eq!(ahead(), None);
}

/// A launch that waits hears how many come before it: the older ones that it may not pass.
#[test]
fn a_launch_is_told_how_many_come_before_it() {
    let demands = [one(claim("seats", 3))];
    let tables = tables().held("seats", 1..=3).waiting("seats", 1, 0, 3).waiting("seats", 2, 0, 1);
    let (mut place, mut later) = (PlaceInLine::default(), None);
    let mut told = Vec::new();
    let mut look = |waiting: Option<&Waiting<'_, '_>>| {
        told.extend(waiting.map(Waiting::ahead));
        // A younger one comes.
        later = later.take().or_else(|| tables.store.table("seats").take_place(Number(4)));
        if let Some(place) = &mut later {
            place.stand(&[Class { generation: 0, capacity: 3 }]);
        }
        if told.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let outcome = tables.asks(|asker| acquire_in_turn(&demands, asker, &mut place, None, &mut look));
    assert!(matches!(outcome, Ok(Outcome::Interrupted)));
    assert_eq!(told, [1, 1]);
}

/// Many waiters may be silent at once. They are checked from both ends of the queue, so a launch passes over
/// all of them.
#[test]
fn many_silent_waiters_are_passed_over() {
    let demands = [one(claim("seats", 3))];
    let tables = many(tables(), 1..=24, 3);
    for place in &tables.line {
        place.fall_silent();
    }
    assert_eq!(tables.acquire(&demands).ok().map(|grant| granted(&grant)).as_deref(), Some("seats 1"));
}

/// However many waiters are silent, all of them are known to be in the end. The more of them are, the more
/// are checked.
#[test]
fn any_number_of_silent_waiters_is_passed_over() {
    let tables = many(tables(), 1..=1000, 3);
    for place in &tables.line {
        place.fall_silent();
    }
    let (liveness, table) = (LivenessTracker::default(), Table::Memory(tables.store.table("seats")));
    let position = QueuePosition::newcomer(0, Some(&liveness));
    let mut looks = 0;
    while position.nearest_ahead(&table, 3).expect("a table in memory").is_some() {
        let class = Class { generation: 0, capacity: 3 };
        assert_eq!(liveness.look_ahead(&table, None, class).ok(), Some(false));
        looks += 1;
        assert!(looks <= 24, "it does not know all of them");
        thread::sleep(HEARTBEAT_INTERVAL);
    }
}

/// Where waiters are alive a look is cheap: at first it checks some at both ends of the queue, and then one.
#[test]
fn a_look_at_a_long_queue_is_cheap() {
    let tables = many(tables(), 1..=1000, 3);
    let (liveness, table) = (LivenessTracker::default(), Table::Memory(tables.store.table("seats")));
    let class = Class { generation: 0, capacity: 3 };
    let looks = [(); 3].map(|()| liveness.look_ahead(&table, None, class).expect("a table in memory"));
    assert_eq!(looks, [false, true, true]);
    // In memory each check is a heartbeat, as is this one.
    let checks = |number| table.pulse(Number(number)).ok().flatten().map_or(0, |heart| heart.beats - 1);
    assert_eq!((1..=1000).map(checks).sum::<u64>(), 32 + 2 + 2);
}

#[test]
fn limits_of_different_policies_are_not_compared() {
    let seats = || [one(claim("seats", 5).by_a_rule())];
    tables().waiting("seats", 1, GENERATION, 3).gives(&seats(), "seats 1");
    tables().waiting("seats", 1, GENERATION + 1, 3).gives(&seats(), "75: seats behind");
    tables().waiting("seats", 1, 0, 3).gives(&seats(), "75: seats behind");
    let by_hand = || [one(claim("seats", 5))];
    tables().waiting("seats", 1, 0, 3).gives(&by_hand(), "seats 1");
    tables().waiting("seats", 1, GENERATION, 3).gives(&by_hand(), "75: seats behind");
}

#[test]
fn a_waiter_that_beats_is_let_go_first_and_a_silent_one_is_passed_over() {
    let demands = [one(claim("seats", 3))];
    let alive = tables().waiting("seats", 1, 0, 3);
    let refusal = alive.acquire(&demands).err().expect("a waiter that is alive");
    assert_eq!(shown(&refusal), "75: seats behind");
    let silent = tables().waiting("seats", 1, 0, 3);
    silent.line[0].fall_silent();
    assert_eq!(silent.acquire(&demands).ok().map(|grant| granted(&grant)).as_deref(), Some("seats 1"));
}

/// Looks count that are a second apart: who looks ten times at once has given a waiter no time to beat.
#[test]
fn looks_at_one_moment_are_one_look() {
    let tables = tables().waiting("seats", 1, 0, 3);
    tables.line[0].fall_silent();
    let (liveness, table) = (LivenessTracker::default(), Table::Memory(tables.store.table("seats")));
    let waiter = table.waiters().expect("a table in memory").pop().expect("a line");
    for _ in 0..10 {
        assert_eq!(liveness.look(&table, &waiter).expect("a table in memory"), Sign::None);
    }
    assert_eq!(liveness.is_silent(&table, &waiter).ok(), Some(false));
    // The same for later ones, as far as they are not apart from each other.
    let later = || {
        let liveness = LivenessTracker::default();
        let look = || liveness.look(&table, &waiter).expect("a table in memory");
        assert_eq!(look(), Sign::None);
        thread::sleep(HEARTBEAT_INTERVAL);
        let begun = Instant::now();
        let signs = [(); 5].map(|()| look());
        (begun.elapsed() < HEARTBEAT_INTERVAL).then_some(signs)
    };
    let signs = iter::repeat_with(later).flatten().next();
    assert_eq!(signs, Some([Sign::None; 5]));
}

/// A waiter is known to be alive when it has sent a heartbeat since it was first seen.
#[test]
fn a_waiter_with_another_heartbeat_is_alive() {
    let tables = tables().waiting("seats", 1, 0, 3);
    let (liveness, table) = (LivenessTracker::default(), Table::Memory(tables.store.table("seats")));
    let waiter = table.waiters().expect("a table in memory").pop().expect("a line");
    let look = || liveness.look(&table, &waiter).expect("a table in memory");
    assert_eq!([look(), look(), look()], [Sign::None, Sign::Alive, Sign::Alive]);
    // From then on three heartbeats have to be missed.
    tables.line[0].fall_silent();
    let later = [(); 3].map(|()| {
        thread::sleep(HEARTBEAT_INTERVAL);
        look()
    });
    assert_eq!(later, [Sign::None, Sign::None, Sign::Silent]);
}

/// The launch may beat again, or another one take its number, before the table is locked.
#[test]
fn a_heartbeat_before_the_last_look_prevents_overtaking() {
    let mut tables = tables().waiting("seats", 1, 0, 3);
    tables.line[0].fall_silent();
    let (liveness, table) = (LivenessTracker::default(), Table::Memory(tables.store.table("seats")));
    let waiter = table.waiters().expect("a table in memory").pop().expect("a line");
    let mut looks = 1;
    while liveness.look(&table, &waiter).expect("a table in memory") != Sign::Silent {
        thread::sleep(HEARTBEAT_INTERVAL);
        looks += 1;
    }
    assert_eq!(looks, 4, "it was seen once, and has missed three heartbeats");
    assert_eq!(liveness.is_silent(&table, &waiter).ok(), Some(true));
    tables.line.clear();
    let _beats = tables.waiting("seats", 1, 0, 3);
    assert_eq!(liveness.is_silent(&table, &waiter).ok(), Some(false));
}

/// A table that had room for a launch still has it when the launch takes its slots, even if an older launch
/// responds again meanwhile.
#[test]
fn room_that_was_found_once_is_kept() {
    let mut tables = tables().waiting("seats", 1, 0, 3);
    tables.line[0].fall_silent();
    let (liveness, table) = (LivenessTracker::default(), Table::Memory(tables.store.table("seats")));
    let waiter = table.waiters().expect("a table in memory").pop().expect("a line");
    while liveness.look(&table, &waiter).expect("a table in memory") != Sign::Silent {
        thread::sleep(HEARTBEAT_INTERVAL);
    }
    let position = QueuePosition::newcomer(0, Some(&liveness));
    let view = || TableView::of(&table, position, iter::empty()).expect("a table in memory");
    let terms = Terms { limit: 3, slots: 1, ..Terms::default() };
    let mut before = view();
    let free = before.room(&terms).expect("a table in memory");
    assert!(matches!(free, Room::Free(_)));
    tables.line.clear();
    let _beats = tables.waiting("seats", 1, 0, 3);
    assert_eq!(view().room(&terms).expect("a table in memory"), Room::Behind);
    assert_eq!(before.room(&terms).expect("a table in memory"), free);
}

#[test]
fn nobody_looks_for_life_where_others_in_line_are_not_all_that_is_in_the_way() {
    let demands = [one(claim("seats", 3)), one(claim("pool", 1))];
    let tables = tables().waiting("seats", 1, 0, 3).held("pool", 1..=1);
    tables.line[0].fall_silent();
    let refusal = tables.acquire(&demands).err().expect("a full pool");
    assert_eq!(shown(&refusal), "75: seats behind; pool full");
}

/// The same if there were no room without them either.
#[test]
fn the_launches_ahead_are_not_checked_if_everything_is_full() {
    let demands = [one(claim("seats", 3))];
    let tables = tables().held("seats", 1..=3).waiting("seats", 1, 0, 3);
    tables.line[0].fall_silent();
    let refusal = tables.acquire(&demands).err().expect("no seat is free");
    assert_eq!(shown(&refusal), "75: seats behind", "it is not known that the waiter is silent");
}

/// Waits with this place, and does `next` each time that it is told of the wait.
fn wait<'c>(
    tables: &Tables,
    demands: &'c [Demand],
    place: &mut PlaceInLine,
    next: &mut dyn FnMut() -> ControlFlow<()>,
) -> Outcome<'c> {
    let deadline = Some(Instant::now() + Duration::from_secs(60));
    tables
        .asks(|asker| acquire_in_turn(demands, asker, place, deadline, &mut |_| next()))
        .expect("tables in memory")
}

#[test]
fn whoever_waits_has_a_place_in_all_its_tables_and_stands_where_it_is_blocked() {
    let demands = [one(claim("free", 2)), one(claim("full", 1))];
    let tables = tables().held("full", 1..=1).waiting("full", 4, 0, 1);
    let mut place = PlaceInLine::default();
    assert!(matches!(
        wait(&tables, &demands, &mut place, &mut || ControlFlow::Break(())),
        Outcome::Interrupted
    ));
    let table = |name| tables.store.table(name);
    assert_eq!([table("free"), table("full")].map(|table| table.highest_place()), [Some(Number(5)); 2]);
    assert!(table("free").waiters().is_empty());
    let last = table("full").waiters().pop().expect("a line");
    assert_eq!((last.number, last.class), (Number(5), Class { generation: 0, capacity: 1 }));
    assert_eq!((tables.used("free"), tables.used("full")), (0, 1), "nobody holds a slot while waiting");
    drop(place);
    assert_eq!([table("free"), table("full")].map(|table| table.highest_place()), [None, Some(Number(4))]);
}

/// A launch that sleeps behind another one asks every second whether its decision still holds.
#[test]
fn a_launch_behind_another_one_is_judged_again() {
    let demands = [one(claim("seats", 1))];
    let tables = tables().held("seats", 1..=1).waiting("seats", 1, 0, 1);
    let mut told = 0;
    let outcome = wait(&tables, &demands, &mut PlaceInLine::default(), &mut || {
        told += 1;
        if told < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(matches!(outcome, Outcome::Interrupted));
    assert_eq!(told, 3);
}

#[test]
fn a_place_stays_the_same_when_the_launch_is_decided_anew() {
    let demands = [one(claim("a", 1)), one(claim("b", 1))];
    let tables = tables().held("b", 1..=1);
    let mut place = PlaceInLine::default();
    for _ in 0..2 {
        let interrupted = wait(&tables, &demands, &mut place, &mut || ControlFlow::Break(()));
        assert!(matches!(interrupted, Outcome::Interrupted));
        let waiters = ["a", "b"].map(|name| tables.store.table(name).waiters());
        assert_eq!(
            waiters.map(|line| line.iter().map(|waiter| waiter.number.0).collect::<Vec<_>>()),
            [vec![], vec![1]]
        );
    }
}

/// A launch that needs one more table than before keeps its number.
#[test]
fn a_number_stays_the_same_with_one_more_table() {
    let names = ["a", "b", "c"];
    let tables = names.iter().fold(tables(), |tables, name| tables.held(name, 1..=1));
    let demands = names.map(|name| one(claim(name, 1)));
    let mut place = PlaceInLine::default();
    for count in [2, 3] {
        assert_eq!(stands_in(&tables, &demands[..count], &mut place), names[..count]);
        assert_eq!(place.number(), Some(Number(1)));
    }
    assert_eq!(names.map(|name| tables.store.table(name).highest_place()), [Some(Number(1)); 3]);
}

/// A launch that waits passes over an older one without heartbeats.
#[test]
fn a_launch_that_waits_passes_a_silent_one() {
    let demands = [one(claim("seats", 1))];
    let tables = tables().waiting("seats", 1, 0, 1);
    tables.line[0].fall_silent();
    let outcome = wait(&tables, &demands, &mut PlaceInLine::default(), &mut || ControlFlow::Continue(()));
    let Outcome::Granted(grant) = outcome else { panic!("the slot is free") };
    assert_eq!(granted(&grant), "seats 1");
}

/// A launch that needs fewer tables than before gives up its places in the others.
#[test]
fn a_place_in_a_table_that_is_not_needed_is_given_up() {
    let tables = tables().held("a", 1..=1).held("b", 1..=1);
    let (both, first) = ([one(claim("a", 1)), one(claim("b", 1))], [one(claim("a", 1))]);
    let mut place = PlaceInLine::default();
    let mut places = |demands: &[Demand]| {
        let _ = wait(&tables, demands, &mut place, &mut || ControlFlow::Break(()));
        ["a", "b"].map(|name| tables.store.table(name).highest_place())
    };
    assert_eq!(places(&both), [Some(Number(1)); 2]);
    assert_eq!(places(&first), [Some(Number(1)), None]);
}

/// The same for a launch that starts: it has only its places in the tables of its slots until then.
#[test]
fn a_launch_that_starts_has_no_place_in_a_table_that_is_not_needed() {
    let tables = tables().held("b", 1..=1);
    let (both, first) = ([one(claim("a", 1)), one(claim("b", 1))], [one(claim("a", 1))]);
    let mut place = PlaceInLine::default();
    let interrupted = wait(&tables, &both, &mut place, &mut || ControlFlow::Break(()));
    assert!(matches!(interrupted, Outcome::Interrupted));
    let granted = wait(&tables, &first, &mut place, &mut || ControlFlow::Continue(()));
    assert!(matches!(granted, Outcome::Granted(_)));
    let places = || ["a", "b"].map(|name| tables.store.table(name).highest_place());
    assert_eq!(places(), [Some(Number(1)), None]);
    drop((granted, place));
    // The same where one process owns all tables.
    let mut place = PlaceInLine::default();
    assert_eq!(stands_in(&tables, &both, &mut place), ["b"]);
    let granted = tables.asks(|asker| at_once(&first, asker, &mut place, None));
    assert!(matches!(granted, Ok(AtOnce::Granted(_))));
    assert_eq!(places(), [Some(Number(2)), None]);
}

/// Where one process owns all tables, it tries once. A launch that can wait is then in the queue.
#[test]
fn a_launch_that_is_tried_once_waits_if_it_can() {
    let seat = [one(claim("seats", 1))];
    let stands = |tables: &Tables, demands: &[Demand]| {
        let mut place = PlaceInLine::default();
        let tried = tables.asks(|asker| at_once(demands, asker, &mut place, None));
        let standing = match tried.expect("tables in memory") {
            AtOnce::Granted(_) => None,
            AtOnce::Blocked(standing) => Some(standing.waits),
        };
        (standing, place.places())
    };
    assert_eq!(stands(&tables(), &seat), (None, 0));
    let full = || tables().held("seats", 1..=1);
    assert_eq!(stands(&full(), &seat), (Some(true), 1));
    assert_eq!(stands(&full().waiting("seats", 1, 0, 1), &seat), (Some(true), 1));
    // What it can never have gives it no place.
    assert_eq!(stands(&full(), &[one(claim("seats", 1).slots(2))]), (Some(false), 0));
    assert_eq!(stands(&full(), &[one(claim("seats", 1).waits(0))]), (Some(false), 0));
}

/// A table without places may be forgotten between two looks. The next look takes the slot in the table that
/// others find under the name.
#[test]
fn a_table_that_was_forgotten_is_not_used_again() {
    let tables = tables();
    let demands = [one(claim("own", 1)), one(claim("full", 1).waits(0))];
    let holder = tables.store.table("full").take(&[1]).expect("it is free");
    let mut place = PlaceInLine::default();
    let tried = tables.asks(|asker| at_once(&demands, asker, &mut place, None));
    assert!(matches!(tried, Ok(AtOnce::Blocked(_))) && place.places() == 0);
    tables.store.forget_if_unused("own");
    drop(holder);
    let tried = tables.asks(|asker| at_once(&demands, asker, &mut place, None));
    let Ok(AtOnce::Granted(_grant)) = tried else { panic!("both are free") };
    assert_eq!((tables.used("own"), tables.used("full")), (1, 1));
}

/// By two limits a launch waits in two classes. Others see the higher one: a launch that may pass this one
/// may pass both.
#[test]
fn a_launch_waits_in_the_highest_of_its_classes() {
    let tables = tables().held("seats", 1..=4);
    let either = [any_of([claim("seats", 4).ceiling(2), claim("seats", 4)])];
    let mut place = PlaceInLine::default();
    assert_eq!(stands_in(&tables, &either, &mut place), ["seats"]);
    let classes = tables.store.table("seats").classes_of(Number(1));
    assert_eq!(classes.iter().map(|class| class.capacity).collect::<Vec<_>>(), [4]);
}

/// A launch has a place in each of its tables. It waits only in those that block it.
#[test]
fn a_place_in_a_table_with_room_does_not_wait() {
    let demands = [one(claim("free", 1)), one(claim("full", 1))];
    let tables = tables().held("full", 1..=1);
    let mut place = PlaceInLine::default();
    let tried = tables.asks(|asker| at_once(&demands, asker, &mut place, None));
    assert!(matches!(tried, Ok(AtOnce::Blocked(_))));
    let standing: Vec<&str> = place.standing_in().map(|place| place.table().name()).collect();
    assert_eq!((place.places(), standing), (2, vec!["full"]));
    // Only there it tells how many slots it wants.
    let told = |name: &str| place.saved().iter().find(|saved| saved.table.name() == name)?.wants;
    assert_eq!((told("free"), told("full")), (None, Some(1)));
}

/// The queues in which a launch waits after one attempt that gives it nothing.
fn stands_in(tables: &Tables, demands: &[Demand], place: &mut PlaceInLine) -> Vec<String> {
    let tried = tables.asks(|asker| at_once(demands, asker, place, None));
    assert!(matches!(tried, Ok(AtOnce::Blocked(_))));
    let mut names: Vec<String> = place.standing_in().map(|place| place.table().name().to_owned()).collect();
    names.sort();
    names
}

/// A launch that had to leave its queue eight times waits in all of its queues, also where there is room for
/// it. So it keeps slots idle for ten seconds. Then it leaves these queues, and the next eight times count.
#[test]
fn a_launch_that_left_its_queue_eight_times_waits_in_all_queues() {
    let demands = [one(claim("a", 1)), one(claim("b", 1))];
    let (tables, mut place) = (tables(), PlaceInLine::default());
    let [a, b] = ["a", "b"].map(|name| tables.store.table(name));
    let mut held = a.take(&[1]);
    assert_eq!(stands_in(&tables, &demands, &mut place), ["a"]);
    for moves in 1..=8 {
        let (name, next) = if moves % 2 == 1 { ("b", &b) } else { ("a", &a) };
        drop(mem::replace(&mut held, next.take(&[1])));
        let expected = if moves < 8 { vec![name] } else { vec!["a", "b"] };
        assert_eq!(stands_in(&tables, &demands, &mut place), expected, "{moves}");
        assert_eq!(place.idle_since.is_some(), moves == 8, "{moves}");
    }
    // While both are full no slot is idle.
    let other = b.take(&[1]);
    assert_eq!(stands_in(&tables, &demands, &mut place), ["a", "b"]);
    assert_eq!(place.idle_since, None);
    drop(other);
    assert_eq!(stands_in(&tables, &demands, &mut place), ["a", "b"]);
    let begun = place.idle_since.expect("a slot is idle");
    place.idle_since = begun.checked_sub(Duration::from_secs(11));
    assert_eq!(stands_in(&tables, &demands, &mut place), ["a"]);
    assert_eq!(place.idle_since, None);
    drop(mem::replace(&mut held, b.take(&[1])));
    assert_eq!(stands_in(&tables, &demands, &mut place), ["b"]);
    drop(held);
}

/// The same if it leaves a queue to wait for another keeper: after eight times it stays, for ten seconds. The
/// wait of its claim does not pass meanwhile.
#[test]
fn a_launch_that_left_its_queue_eight_times_stays_there_while_it_waits_elsewhere() {
    let demands = [one(claim("a", 1).waits(60))];
    let (tables, mut place) = (tables(), PlaceInLine::default());
    let a = tables.store.table("a");
    let _held = a.take(&[1]);
    let seconds_ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
    for _ in 0..2 {
        for moves in 0..8 {
            assert_eq!(stands_in(&tables, &demands, &mut place), ["a"]);
            assert!(!place.stays_meanwhile(), "{moves}");
            place.step_aside().expect("it is in memory");
        }
        assert_eq!(stands_in(&tables, &demands, &mut place), ["a"]);
        let id = Table::Memory(a.clone()).id();
        assert!(place.clocks.is_running(id) && place.over.is_some());
        assert!(place.stays_meanwhile() && !place.clocks.is_running(id) && place.over.is_none());
        for (seconds, stays) in [(0, true), (9, true), (11, false)] {
            place.idle_since = seconds_ago(seconds);
            assert!(seconds == 0 || place.stays_meanwhile());
            place.beat_meanwhile().expect("it is in memory");
            assert_eq!((place.stands(), place.idle_since.is_some()), (stays, stays), "{seconds}");
        }
    }
    assert!(!place.stays_meanwhile(), "it is in no queue");
}

#[test]
fn a_new_number_releases_the_places_under_the_old_one() {
    let tables = tables().held("a", 1..=1).waiting("b", 1, 0, 1);
    let mut place = PlaceInLine::default();
    let numbers =
        |name| tables.store.table(name).waiters().iter().map(|waiter| waiter.number.0).collect::<Vec<_>>();
    let one_table = [one(claim("a", 1))];
    let _ = wait(&tables, &one_table, &mut place, &mut || ControlFlow::Break(()));
    assert_eq!(numbers("a"), [1]);
    let both = [one(claim("a", 1)), one(claim("b", 1))];
    let _ = wait(&tables, &both, &mut place, &mut || ControlFlow::Break(()));
    // It looked with its old number, so nobody is ahead of it in the second queue yet.
    assert_eq!((numbers("a"), numbers("b")), (vec![2], vec![1]));
}

#[test]
fn the_first_in_line_takes_what_falls_free_and_leaves_the_line() {
    let demands = [one(claim("seats", 1))];
    let tables = tables();
    let mut other = tables.store.table("seats").take(&[1]);
    let mut place = PlaceInLine::default();
    let outcome = wait(&tables, &demands, &mut place, &mut || {
        other = None;
        ControlFlow::Continue(())
    });
    let Outcome::Granted(grant) = outcome else { panic!("the slot is free") };
    assert_eq!(granted(&grant), "seats 1");
    assert!(tables.store.table("seats").waiters().is_empty());
    // It has its place until it starts.
    assert_eq!(tables.store.table("seats").highest_place(), place.number());
    place.leave();
    assert_eq!(tables.store.table("seats").highest_place(), None);
    // If it comes again, it comes as a new launch.
    assert_eq!((place.number(), place.tables().len()), (None, 0));
}

#[test]
fn a_wait_that_is_over_takes_no_place() {
    let demands = [one(claim("seats", 1))];
    let tables = tables().held("seats", 1..=1);
    let mut place = PlaceInLine::default();
    let over = Some(Instant::now());
    let outcome = tables
        .asks(|asker| acquire_in_turn(&demands, asker, &mut place, over, &mut |_| panic!("nobody waits")));
    let Ok(Outcome::Refused(refusal)) = outcome else { panic!("there is no room") };
    assert_eq!(shown(&refusal), "124: seats full");
    assert_eq!(tables.store.table("seats").highest_place(), None);
}

#[test]
fn what_can_never_be_had_is_not_waited_for() {
    let demands = [one(claim("seats", 1).slots(2)), one(claim("pool", 1))];
    let tables = tables().held("pool", 1..=1);
    let outcome = wait(&tables, &demands, &mut PlaceInLine::default(), &mut || panic!("nobody waits"));
    let Outcome::Refused(refusal) = outcome else { panic!("there is no room") };
    assert_eq!(shown(&refusal), "78: seats never; pool full");
    // The same if no alternative is waited for.
    let demands = [any_of([claim("seats", 1).slots(2), claim("pool", 1).waits(0)])];
    let outcome = wait(&tables, &demands, &mut PlaceInLine::default(), &mut || panic!("nobody waits"));
    let Outcome::Refused(refusal) = outcome else { panic!("there is no room") };
    assert_eq!(shown(&refusal), "75: seats never or pool full");
}
