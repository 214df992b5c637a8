//! Waits of single claims, lines that end and alternatives that are lists: who is refused and when, and that
//! nobody is overtaken or waits for ever because of them.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use proptest::{collection::vec, prelude::*, sample::select};

use super::stage::{But, Tables, any_list_of, any_of, claim, granted, one, shown, tables};
use crate::{
    acquire::{
        AtOnce, Grant, HEARTBEAT_INTERVAL, Outcome, PlaceInLine, PlaceInTable, Refusal, Unwaited, Waiting,
        Watch, acquire_at_once,
        at_once::at_once,
        waiting::{acquire, acquire_in_turn, acquire_watched},
    },
    judge::terms::{
        Admit, Claim, Demand, Queue, Wait,
        outside::{Counts, Outside, WhenStale},
    },
    keeper::{Class, KeeperError, Number, PATIENCE, Store, WaitingProcess},
};

/// One step of a launch: it starts, is refused, or waits and comes back.
fn step<'c>(tables: &Tables, demands: &'c [Demand], place: &mut PlaceInLine) -> Outcome<'c> {
    let goes_on = |waiting: Option<&Waiting<'_, '_>>| match waiting {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    };
    tables
        .asks(|asker| acquire_in_turn(demands, asker, place, None, &mut { goes_on }))
        .expect("tables in memory")
}

#[track_caller]
fn refused<'c>(tables: &Tables, demands: &'c [Demand], place: &mut PlaceInLine) -> Refusal<'c> {
    match step(tables, demands, place) {
        Outcome::Refused(refusal) => refusal,
        Outcome::Granted(grant) => panic!("it starts with {}", granted(&grant)),
        Outcome::Interrupted => panic!("it waits"),
    }
}

#[track_caller]
fn waits(tables: &Tables, demands: &[Demand], place: &mut PlaceInLine) {
    assert!(matches!(step(tables, demands, place), Outcome::Interrupted));
}

fn unwaited(refusal: &Refusal<'_>) -> Vec<Option<Unwaited>> {
    refusal.claims().map(|refused| refused.unwaited).collect()
}

/// The numbers of those who stand in a line.
fn line(tables: &Tables, name: &str) -> Vec<u64> {
    tables.store.table(name).waiters().iter().map(|waiter| waiter.number.0).collect()
}

#[test]
fn what_is_never_waited_for_refuses_at_once_whatever_else_is_waited_for() {
    let demands = [one(claim("heavy", 1)), one(claim("tokens", 1).waits(0))];
    let full = tables().held("heavy", 1..=1).held("tokens", 1..=1);
    let refusal = refused(&full, &demands, &mut PlaceInLine::default());
    assert_eq!(shown(&refusal), "75: tokens full; heavy full");
    assert_eq!(unwaited(&refusal), [Some(Unwaited::Never), None]);
    let heavy = tables().held("heavy", 1..=1);
    let mut place = PlaceInLine::default();
    waits(&heavy, &demands, &mut place);
    assert_eq!((line(&heavy, "heavy"), line(&heavy, "tokens")), (vec![1], vec![]));
    // "Two hours waited, then the tokens are full: refused, as said."
    let _tokens = heavy.store.table("tokens").take(&[1]);
    assert_eq!(shown(&refused(&heavy, &demands, &mut place)), "124: tokens full; heavy full");
    assert!(line(&heavy, "heavy").is_empty());
}

#[test]
fn a_clock_runs_only_while_the_launch_stands_in_its_line() {
    let demands = [one(claim("a", 1)), one(claim("b", 1).waits(3_600_000))];
    let tables = tables().held("a", 1..=1);
    let mut place = PlaceInLine::default();
    waits(&tables, &demands, &mut place);
    assert_eq!(place.time_is_over_at(), None, "a is waited for until it is its turn");
    let _b = tables.store.table("b").take(&[1]);
    waits(&tables, &demands, &mut place);
    let over = place.time_is_over_at().expect("b is waited for no longer than an hour");
    assert!(over > Instant::now() + Duration::from_secs(3500));
}

const HOUR: u64 = 3_600_000;

/// Compares when the time of a launch is over with so many milliseconds from now.
#[track_caller]
fn is_over_in(place: &PlaceInLine, milliseconds: u64) {
    let left = place.time_is_over_at().map(|over| over.saturating_duration_since(Instant::now()));
    let most = Duration::from_millis(milliseconds);
    let is_near = |left: Duration| left <= most && left > most / 10 * 9;
    assert!(left.is_some_and(is_near), "it is not over in {milliseconds} ms");
}

/// The time of a launch is over when it cannot start any more: with the first demand of several, with the
/// last alternative of a demand, with the first claim of an alternative that is a list.
#[test]
fn the_time_of_a_launch_ends_when_it_cannot_start_any_more() {
    let full = tables().held("a", 1..=1).held("b", 1..=1);
    let when = |demands: &[Demand], milliseconds| {
        let mut place = PlaceInLine::default();
        waits(&full, demands, &mut place);
        is_over_in(&place, milliseconds);
    };
    let (short, long) = (|name| claim(name, 1).waits(HOUR), |name| claim(name, 1).waits(2 * HOUR));
    when(&[one(long("a")), one(short("b"))], HOUR);
    when(&[one(short("a")), one(long("b"))], HOUR);
    when(&[any_of([long("a"), short("b")])], 2 * HOUR);
    when(&[any_of([short("a"), long("b")])], 2 * HOUR);
    when(&[any_list_of([vec![short("a"), long("b")]])], HOUR);
    when(&[any_list_of([vec![long("a"), short("b")]])], HOUR);
    // Forever is longer than any other time, unless the queue is full.
    let mut place = PlaceInLine::default();
    waits(&full, &[any_of([claim("a", 1), short("b")])], &mut place);
    assert_eq!(place.time_is_over_at(), None);
    when(&[any_of([claim("a", 1).queue(0), short("b")])], HOUR);
}

/// The same before it waits: the shortest wait of several demands, the longest of alternatives, the shortest
/// of a list. A launch that does not wait for one of its demands waits for none.
#[test]
fn a_launch_would_wait_until_it_cannot_start_any_more() {
    let full = tables().held("a", 1..=1).held("b", 1..=1);
    let wait = |demands: &[Demand]| {
        let refusal = full.outlook(demands).refusal.expect("tables in memory");
        refusal.expect("both are full").wait()
    };
    let hours = |hours: u64| Some(Wait::For(Duration::from_millis(hours * HOUR)));
    let (short, long) = (|name| claim(name, 1).waits(HOUR), |name| claim(name, 1).waits(2 * HOUR));
    assert_eq!(wait(&[one(long("a")), one(short("b"))]), hours(1));
    assert_eq!(wait(&[one(short("a")), one(long("b"))]), hours(1));
    assert_eq!(wait(&[any_of([long("a"), short("b")])]), hours(2));
    assert_eq!(wait(&[any_of([short("a"), long("b")])]), hours(2));
    assert_eq!(wait(&[any_list_of([vec![short("a"), long("b")]])]), hours(1));
    assert_eq!(wait(&[any_list_of([vec![long("a"), short("b")]])]), hours(1));
    assert_eq!(wait(&[any_of([claim("a", 1), short("b")])]), Some(Wait::Forever));
    assert_eq!(wait(&[any_of([claim("a", 1).waits(0), short("b")])]), hours(1));
    assert_eq!(wait(&[one(claim("a", 1).waits(0)), one(long("b"))]), None);
}

/// One that needs a measurement of the use outside rungate, which does not exist.
fn unmeasured(claim: Claim) -> Demand {
    let outside = Outside {
        sample: PathBuf::from("/nowhere/sample"),
        owner: 0,
        counts: Counts::All,
        stale_after: Duration::MAX,
        when_stale: WhenStale::Refuse,
        settle: Duration::ZERO,
        uid: 0,
        is_by_user: false,
        host: "ws1".to_owned(),
        is_by_host: false,
        shared_by: None,
    };
    one(Claim { outside: Some(outside), ..claim })
}

/// While it is unknown what is in use outside rungate, a launch fails. It is not refused as if there were no
/// room.
#[test]
fn a_launch_that_cannot_know_the_use_outside_fails() {
    let (tables, demands) = (tables(), [unmeasured(claim("a", 1))]);
    let is_unknown = |error: Option<KeeperError>| matches!(error, Some(KeeperError::Outside(_)));
    assert!(is_unknown(tables.asks(|asker| acquire(&demands, asker)).err()));
    assert!(is_unknown(tables.asks(|asker| acquire_at_once(&demands, asker)).err()));
    assert!(is_unknown(tables.outlook(&demands).refusal.err()));
    let mut place = PlaceInLine::default();
    assert!(is_unknown(tables.asks(|asker| at_once(&demands, asker, &mut place, None)).err()));
    // What refuses no launch is not measured.
    for claim in [claim("a", 1).admit(Admit::Always), claim("a", 1).unenforced()] {
        let demands = [unmeasured(claim)];
        assert_eq!(tables.acquire(&demands).ok().map(|grant| granted(&grant)).as_deref(), Some("a 1"));
    }
}

/// A launch that cannot find out what is full waits for the longest of its waits, but not beyond its
/// deadline.
#[test]
fn the_time_of_a_launch_counts_before_it_knows_what_is_full() {
    let tables = tables();
    let fails = |demands: &[Demand], deadline| {
        let mut place = PlaceInLine::default();
        let outcome = tables
            .asks(|asker| acquire_in_turn(demands, asker, &mut place, deadline, &mut |_| panic!("it waits")));
        assert!(matches!(outcome, Err(KeeperError::Outside(_))));
        place
    };
    let both = [unmeasured(claim("a", 1).waits(HOUR)), one(claim("b", 1).waits(2 * HOUR))];
    is_over_in(&fails(&both, None), 2 * HOUR);
    is_over_in(&fails(&both, Instant::now().checked_add(Duration::from_millis(HOUR))), HOUR);
    assert_eq!(fails(&[unmeasured(claim("a", 1))], None).time_is_over_at(), None, "it waits until its turn");
}

/// A launch that is refused has still the time that it would wait for something else. So it waits for locks
/// while it checks, before the refusal, whether that is necessary.
#[test]
fn a_launch_that_is_refused_has_time_left() {
    let full_queue = tables().held("a", 1..=1).waiting("a", 1, 0, 1);
    let demands = [one(claim("a", 1).queue(1).waits(HOUR))];
    let mut place = PlaceInLine::default();
    assert_eq!(shown(&refused(&full_queue, &demands, &mut place)), "75: a behind");
    is_over_in(&place, HOUR);
    // It has waited for a, and does not wait for b.
    let demands = [one(claim("a", 1).waits(HOUR)), one(claim("b", 1).waits(0))];
    let (tables, mut place) = (tables(), PlaceInLine::default());
    let a = tables.store.table("a").take(&[1]);
    waits(&tables, &demands, &mut place);
    drop(a);
    let _b = tables.store.table("b").take(&[1]);
    assert_eq!(shown(&refused(&tables, &demands, &mut place)), "124: b full");
    is_over_in(&place, HOUR);
}

/// A launch is looked at again when the first of its waits is over, and at its deadline. Waits that are over
/// already do not count.
#[test]
fn a_launch_is_looked_at_again_when_one_of_its_waits_is_over() {
    let full = tables().held("a", 1..=1).held("b", 1..=1);
    let next = |demands: &[Demand], deadline| {
        let mut place = PlaceInLine::default();
        let tried = full.asks(|asker| at_once(demands, asker, &mut place, deadline));
        let Ok(AtOnce::Blocked(standing)) = tried else { panic!("both are full") };
        assert!(standing.waits);
        standing.next.map(|next| next.saturating_duration_since(Instant::now()).as_secs().div_ceil(60))
    };
    let waits = |name, hours| claim(name, 1).waits(hours * HOUR);
    assert_eq!(next(&[any_of([waits("a", 1), waits("b", 2)])], None), Some(60));
    assert_eq!(next(&[any_of([waits("a", 0), waits("b", 2)])], None), Some(120));
    assert_eq!(next(&[one(claim("a", 1))], None), None);
    let deadline = Instant::now().checked_add(Duration::from_millis(HOUR));
    assert_eq!(next(&[one(waits("a", 2))], deadline), Some(60));
    assert_eq!(next(&[one(claim("a", 1))], deadline), Some(60));
}

/// A new policy that leaves no time may also make room. So the launch has a little time then, and never more
/// than it had before.
#[test]
fn a_launch_whose_wait_is_cut_has_a_little_time_and_no_more_than_before() {
    let a = tables().held("a", 1..=1);
    let now_none = [one(claim("a", 1).waits(0))];
    let cut = |before: Claim, little: Duration| {
        let mut place = PlaceInLine::default();
        waits(&a, &[one(before)], &mut place);
        place.spare(little);
        place
    };
    let mut place = cut(claim("a", 1), Duration::from_secs(60));
    waits(&a, &now_none, &mut place);
    is_over_in(&place, 60_000);
    drop(place);
    // It had less than that.
    let mut place = cut(claim("a", 1).waits(HOUR), Duration::from_secs(2 * 3600));
    waits(&a, &now_none, &mut place);
    is_over_in(&place, HOUR);
    drop(place);
    // Afterwards the new policy counts.
    let mut place = cut(claim("a", 1), Duration::ZERO);
    assert_eq!(shown(&refused(&a, &now_none, &mut place)), "124: a full");
}

#[test]
fn of_alternatives_the_launch_leaves_those_whose_time_is_over_and_is_refused_with_the_last() {
    let demands = [any_of([claim("a", 1).waits(0), claim("b", 1)])];
    let full = tables().held("a", 1..=1).held("b", 1..=1);
    let mut place = PlaceInLine::default();
    waits(&full, &demands, &mut place);
    assert_eq!((line(&full, "a"), line(&full, "b")), (vec![], vec![1]));
    let never = [any_of([claim("a", 1).waits(0), claim("b", 1).waits(0)])];
    assert_eq!(shown(&refused(&full, &never, &mut PlaceInLine::default())), "75: a full or b behind");
    let list = [any_list_of([vec![claim("a", 1).waits(0), claim("b", 1)], vec![claim("c", 1)]])];
    let all = tables().held("a", 1..=1).held("b", 1..=1).held("c", 1..=1);
    waits(&all, &list, &mut PlaceInLine::default());
    assert_eq!(line(&all, "b"), Vec::<u64>::new(), "nobody is held up by a list that is not waited for");
}

#[test]
fn a_list_is_had_as_a_whole_or_the_next_alternative_is() {
    let demands = || [any_list_of([vec![claim("drc", 1), claim("lvs", 1)], vec![claim("bundle", 1)]])];
    tables().gives(&demands(), "drc 1, lvs 1");
    tables().held("lvs", 1..=1).gives(&demands(), "bundle 1");
    tables().held("lvs", 1..=1).held("bundle", 1..=1).gives(&demands(), "75: lvs full or bundle full");
    let beside = || [one(claim("drc", 1)), any_list_of([vec![claim("drc", 1), claim("lvs", 1)]])];
    tables().gives(&beside(), "drc 1, lvs 1");
    tables().held("drc", 1..=1).gives(&beside(), "75: drc full; drc full");
}

#[test]
fn a_line_ends_for_newcomers_and_not_for_whoever_comes_from_another() {
    let seats = || [one(claim("seats", 1).queue(2))];
    let full = tables().held("seats", 1..=1).waiting("seats", 1, 0, 1);
    let (first, second) = (seats(), seats());
    let mut place = PlaceInLine::default();
    waits(&full, &first, &mut place);
    let refusal = refused(&full, &second, &mut PlaceInLine::default());
    assert_eq!(unwaited(&refusal), [Some(Unwaited::Queue { waiting: 2, most: 2 })]);
    assert_eq!(shown(&refusal), "75: seats behind");
    // Who waits below a lower ceiling is let go later, and who is silent not at all.
    let students = tables().held("seats", 1..=2).waiting("seats", 1, 0, 1).waiting("seats", 2, 0, 1);
    waits(&students, &[one(claim("seats", 2).queue(2))], &mut PlaceInLine::default());
    let frozen = tables().held("seats", 1..=1).waiting("seats", 1, 0, 1).waiting("seats", 2, 0, 1);
    frozen.line[1].fall_silent();
    waits(&frozen, &seats(), &mut PlaceInLine::default());
    // One that waits with two ceilings is one launch.
    let twice = tables().held("seats", 1..=2).waiting("seats", 1, 0, 2).also(0, 3);
    waits(&twice, &[one(claim("seats", 2).queue(2))], &mut PlaceInLine::default());
    let both = [one(claim("other", 1)), one(claim("seats", 1).queue(1))];
    let tables = tables().waiting("seats", 1, 0, 1).held("seats", 1..=1).held("other", 1..=1);
    let refusal = refused(&tables, &both, &mut PlaceInLine::default());
    assert!(unwaited(&refusal).contains(&Some(Unwaited::Queue { waiting: 1, most: 1 })));
}

/// A queue may be full for one user. Launches of others do not count, and neither do those that are away.
#[test]
fn a_queue_is_full_for_a_user_alone() {
    let queue = Queue { most: None, per_user: Some(1) };
    let demands = [one(Claim { queue, ..claim("a", 1) })];
    let mut tables = tables().held("a", 1..=1).waiting("a", 1, 0, 1);
    let of = |user: u32| WaitingProcess { user: Some(user), ..WaitingProcess::default() };
    tables.line[0].belongs_to(&of(1001));
    waits(&tables, &demands, &mut PlaceInLine::default());
    tables.line[0].belongs_to(&of(1000));
    let refusal = refused(&tables, &demands, &mut PlaceInLine::default());
    assert_eq!(unwaited(&refusal), [Some(Unwaited::OwnQueue { waiting: 1, most: 1 })]);
    tables.line[0].set_away(true);
    waits(&tables, &demands, &mut PlaceInLine::default());
    // A launch that joins the queue later does not count itself.
    let (mut tables, mut place) = (tables.held("b", 1..=1), PlaceInLine::default());
    tables.line[0].set_away(false);
    let either = [any_of([Claim { queue, ..claim("a", 1) }, claim("b", 1)])];
    waits(&tables, &either, &mut place);
    place.belongs_to(&of(1000));
    let own = line(&tables, "b");
    assert_eq!((line(&tables, "a"), own.len()), (vec![1], 1));
    tables.line.clear();
    for _ in 0..2 {
        waits(&tables, &either, &mut place);
        assert_eq!((line(&tables, "a"), line(&tables, "b")), (own.clone(), own.clone()));
    }
}

/// A launch that waits in a queue stays there, however many older launches come to it from other queues.
#[test]
fn older_launches_that_come_later_fill_no_queue() {
    let demands = [one(claim("a", 1).queue(1))];
    let tables = tables().held("a", 1..=1);
    let mut place = PlaceInLine::default();
    place.begin_as(Number(5));
    waits(&tables, &demands, &mut place);
    let tables = tables.waiting("a", 2, 0, 1).waiting("a", 3, 0, 1);
    waits(&tables, &demands, &mut place);
    assert_eq!(line(&tables, "a"), [2, 3, 5]);
}

/// A launch may have a number before it waits in any queue. It finds a full queue closed nevertheless, also
/// where only launches with greater numbers wait.
#[test]
fn a_launch_that_comes_with_a_number_finds_a_queue_full() {
    let demands = [one(claim("a", 1).queue(1))];
    let tables = tables().held("a", 1..=1).waiting("a", 5, 0, 1);
    let mut place = PlaceInLine::default();
    place.begin_as(Number(2));
    let refusal = refused(&tables, &demands, &mut place);
    assert_eq!(unwaited(&refusal), [Some(Unwaited::Queue { waiting: 1, most: 1 })]);
    // One that has waited before joins the full queue. That it left with another number does not matter.
    place.begin_as(Number(2));
    place.leave();
    place.come_as(Number(3));
    waits(&tables, &demands, &mut place);
    assert_eq!(line(&tables, "a"), [3, 5]);
    drop(place);
    // In a queue that is not full it waits under this number.
    let demands = [one(claim("a", 1).queue(2))];
    let mut place = PlaceInLine::default();
    place.begin_as(Number(2));
    waits(&tables, &demands, &mut place);
    assert_eq!(line(&tables, "a"), [2, 5]);
}

/// A full queue is closed to newcomers only. A launch that waits in one queue joins every other one that it
/// needs.
#[test]
fn a_launch_that_waits_in_one_queue_joins_another_that_is_full() {
    let tables = tables().held("a", 1..=1).held("b", 1..=1).waiting("b", 1, 0, 1);
    let (first, both) = ([one(claim("a", 1))], [one(claim("a", 1)), one(claim("b", 1).queue(1))]);
    let mut place = PlaceInLine::default();
    waits(&tables, &first, &mut place);
    for _ in 0..2 {
        waits(&tables, &both, &mut place);
        assert_eq!((line(&tables, "a"), line(&tables, "b")), (vec![2], vec![1, 2]));
    }
    let newcomer = refused(&tables, &both, &mut PlaceInLine::default());
    assert!(unwaited(&newcomer).contains(&Some(Unwaited::Queue { waiting: 2, most: 1 })));
}

/// A launch whose time is over is refused at once. It does not check whether the launches ahead of it are
/// alive.
#[test]
fn a_launch_whose_time_is_over_passes_no_silent_waiter() {
    let demands = [one(claim("a", 1).waits(0))];
    let tables = tables().waiting("a", 1, 0, 1);
    tables.line[0].fall_silent();
    let (mut place, over) = (PlaceInLine::default(), Some(Instant::now()));
    let outcome =
        tables.asks(|asker| acquire_in_turn(&demands, asker, &mut place, over, &mut |_| panic!("it waits")));
    let Ok(Outcome::Refused(refusal)) = outcome else { panic!("its time is over") };
    assert_eq!(shown(&refusal), "124: a behind");
    // With time it finds that the waiter is silent.
    assert!(matches!(step(&tables, &demands, &mut PlaceInLine::default()), Outcome::Granted(_)));
}

/// A launch that waits for one claim passes silent waiters of another one for which it does not wait.
#[test]
fn silent_waiters_are_passed_where_a_launch_does_not_wait() {
    let demands = [one(claim("a", 1)), one(claim("b", 1).waits(0))];
    let tables = tables().held("a", 1..=1).waiting("b", 1, 0, 1);
    tables.line[0].fall_silent();
    let mut place = PlaceInLine::default();
    waits(&tables, &demands, &mut place);
    assert_eq!((line(&tables, "a"), line(&tables, "b")), (vec![2], vec![1]));
}

/// The outcome of a launch that does not wait, for this observer.
fn watched<'c>(tables: &Tables, demands: &'c [Demand], watch: &mut Watch<'_>) -> Outcome<'c> {
    tables.asks(|asker| acquire_watched(demands, asker, watch)).expect("tables in memory")
}

/// A launch that does not wait may check for seconds whether waiters are alive. If its decision does not hold
/// any more meanwhile, it is judged again, and gives back what it was about to get.
#[test]
fn a_launch_that_does_not_wait_starts_by_no_old_decision() {
    let demands = [one(claim("a", 1).waits(0))];
    let tables = tables().waiting("a", 1, 0, 1);
    tables.line[0].fall_silent();
    let mut looks = 0;
    let outcome = watched(&tables, &demands, &mut |_| {
        looks += 1;
        ControlFlow::Break(())
    });
    assert!(matches!(outcome, Outcome::Interrupted) && looks == 1, "{looks}");
    let outcome = watched(&tables, &demands, &mut |_| match tables.used("a") {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert!(matches!(outcome, Outcome::Interrupted));
    assert_eq!(tables.used("a"), 0);
    assert!(matches!(watched(&tables, &demands, &mut |_| ControlFlow::Continue(())), Outcome::Granted(_)));
}

/// The same for a launch that waits for something else.
#[test]
fn a_launch_that_waits_for_something_else_begins_by_no_old_decision() {
    let demands = [one(claim("a", 1)), one(claim("b", 1).waits(0))];
    let tables = tables().held("a", 1..=1).waiting("b", 1, 0, 1);
    tables.line[0].fall_silent();
    let (mut place, mut looks) = (PlaceInLine::default(), Vec::new());
    let mut look = |waiting: Option<&Waiting<'_, '_>>| {
        looks.push(waiting.is_some());
        ControlFlow::Break(())
    };
    let outcome = tables.asks(|asker| acquire_in_turn(&demands, asker, &mut place, None, &mut look));
    assert!(matches!(outcome, Ok(Outcome::Interrupted)));
    assert_eq!(looks, [false], "it has not begun to wait");
}

/// The time of a launch in a queue stops when it steps aside. It keeps its place.
#[test]
fn the_time_of_a_launch_stops_while_it_stands_aside() {
    let table = Store::default().table("seats");
    let (now, hour) = (Instant::now(), Duration::from_secs(3600));
    let classes = vec![Class { generation: 0, capacity: 1 }];
    let saved = PlaceInTable { table: table.clone(), classes, longest: hour, wants: None };
    let mut place = PlaceInLine::again(Number(1), None, &[saved]);
    place.imagine(now + hour);
    place.step_aside().expect("a table in memory");
    assert_eq!((table.waiters().len(), table.highest_place()), (0, Some(Number(1))));
    place.imagine(now + 10 * hour);
    let longest = place.saved()[0].longest;
    assert!(longest > hour * 3 / 2 && longest <= 2 * hour, "{}", longest.as_secs());
}

/// A launch in a queue waits for a lock for no longer than until its next heartbeat, and so does one that has
/// waited for another keeper. No launch waits for one beyond its deadline.
#[test]
fn a_launch_in_a_queue_has_less_patience_with_locks() {
    let table = Store::default().table("seats");
    let saved = PlaceInTable { table, classes: Vec::new(), longest: Duration::ZERO, wants: None };
    let (newcomer, waits) = (PlaceInLine::default(), PlaceInLine::again(Number(1), None, &[saved]));
    let mut came_from_elsewhere = PlaceInLine::default();
    came_from_elsewhere.waited_elsewhere();
    let places = [newcomer, waits, came_from_elsewhere];
    let longest = places.each_ref().map(|place| place.patience(None));
    assert_eq!(longest, [PATIENCE, HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL]);
    let over = Some(Instant::now());
    assert_eq!(places.map(|place| place.patience(over)), [Duration::ZERO; 3]);
}

/// A place that is recorded, and taken up later, has stood as long as before.
#[test]
fn who_comes_back_to_a_line_has_stood_in_it_before() {
    let store = Store::default();
    let hour = Duration::from_secs(3600);
    let class = Class { generation: 0, capacity: 1 };
    let saved =
        |longest, classes| PlaceInTable { table: store.table("seats"), classes, longest, wants: None };
    let times = |place: &PlaceInLine| place.saved().iter().map(|saved| saved.longest).collect::<Vec<_>>();
    let since = Some(SystemTime::now() - hour);
    let place = PlaceInLine::again(Number(1), since, &[saved(hour, vec![class])]);
    assert!(times(&place)[0] >= hour, "its time goes on");
    assert_eq!((place.since(), place.number()), (since, Some(Number(1))));
    assert_eq!((place.tables().len(), place.standing_in().count()), (1, 1));
    let idle = PlaceInLine::again(Number(2), None, &[saved(hour, Vec::new())]);
    assert_eq!(times(&idle), [hour], "the time of a line in which it only keeps its number does not");
    let wanted = PlaceInTable { wants: Some(2), ..saved(hour, vec![class]) };
    let place = PlaceInLine::again(Number(3), None, &[wanted]);
    assert_eq!(place.saved().iter().map(|saved| saved.wants).collect::<Vec<_>>(), [Some(2)]);
}

#[test]
fn whoever_found_a_line_at_its_end_does_not_slip_in_from_another() {
    let demands = [any_of([claim("a", 1).queue(1), claim("b", 1)])];
    let tables = tables().held("a", 1..=1).held("b", 1..=1).waiting("a", 1, 0, 1);
    let mut place = PlaceInLine::default();
    for _ in 0..2 {
        waits(&tables, &demands, &mut place);
        assert_eq!((line(&tables, "a"), line(&tables, "b")), (vec![1], vec![2]));
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What one launch wants: of every table the same limit for everybody, so that all are of one class.
fn claims() -> impl Strategy<Value = Claim> {
    (select(NAMES.to_vec()), 0..4_u8).prop_map(|(name, kind)| {
        let claim = claim(name, 1).queue(2);
        match kind {
            0 => claim.waits(0),
            1 => Claim { queue: Queue::default(), ..claim },
            _ => claim,
        }
    })
}

fn demands() -> impl Strategy<Value = Vec<Demand>> {
    let any_of = vec(vec(claims(), 1..3), 1..3).prop_map(Demand::AnyOf);
    vec(prop_oneof![2 => claims().prop_map(Demand::One), 1 => any_of], 1..4)
}

/// A launch, somewhere between its arrival and its end.
#[derive(Default)]
struct Runner<'c> {
    place: PlaceInLine,
    grant: Option<Grant<'c>>,
    is_over: bool,
}

/// Takes a step, and says what must not have happened.
fn check<'c>(tables: &Tables, demands: &'c [Demand], runner: &mut Runner<'c>) -> Result<(), String> {
    let number = runner.place.number;
    let before = NAMES.map(|name| (name, tables.store.table(name).waiters()));
    let line_before = |name: &str| before.iter().find(|(known, _)| *known == name).map(|(_, line)| line);
    match step(tables, demands, &mut runner.place) {
        Outcome::Granted(grant) => {
            for claim in grant.claims() {
                let is_older = |other: &Number| number.is_none_or(|number| *other < number);
                let mut line = line_before(&claim.repository).into_iter().flatten();
                if let Some(overtaken) = line.find(|waiter| is_older(&waiter.number)) {
                    return Err(format!(
                        "it overtakes number {} for {}",
                        overtaken.number.0, claim.repository
                    ));
                }
            }
            runner.grant = Some(grant);
            runner.is_over = true;
        }
        Outcome::Refused(refusal) => {
            if refusal.unmet.iter().all(|unmet| !unmet.is_unwaited()) {
                return Err("it is refused, and could have waited".into());
            }
            runner.is_over = true;
        }
        Outcome::Interrupted => {
            for name in NAMES {
                let stands = |waiter: &crate::keeper::Waiter| Some(waiter.number) == runner.place.number;
                let joined = number.is_none() && tables.store.table(name).waiters().iter().any(stands);
                let claims =
                    demands.iter().flat_map(Demand::claims).filter(|claim| *claim.repository == *name);
                let most = claims.filter_map(|claim| claim.queue.most).min();
                // Two claims on one table are two entries in memory.
                let mut numbers: Vec<Number> =
                    line_before(name).into_iter().flatten().map(|waiter| waiter.number).collect();
                numbers.dedup();
                let length = numbers.len();
                let is_endless = demands
                    .iter()
                    .flat_map(Demand::claims)
                    .any(|claim| *claim.repository == *name && claim.queue.is_endless());
                if joined && !is_endless && most.is_some_and(|most| length >= most as usize) {
                    return Err(format!("it joins {length} others for {name}"));
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_overtaken_nobody_waits_for_ever_and_no_line_grows_beyond_its_end(
        launches in vec(demands(), 2..6),
        plan in vec((0..6_usize, any::<bool>()), 0..40),
    ) {
        let tables = tables();
        let mut runners: Vec<Runner<'_>> = launches.iter().map(|_| Runner::default()).collect();
        for (index, ends) in plan {
            let index = index % launches.len();
            let runner = &mut runners[index];
            if runner.is_over {
                if ends {
                    runner.grant = None;
                }
            } else {
                prop_assert_eq!(check(&tables, &launches[index], runner), Ok(()));
            }
        }
        // Every slot falls free as soon as it is taken: in each round the oldest of all starts, at the least.
        for _ in 0..=launches.len() {
            for (demands, runner) in launches.iter().zip(&mut runners) {
                runner.grant = None;
                if !runner.is_over {
                    prop_assert_eq!(check(&tables, demands, runner), Ok(()));
                    runner.grant = None;
                }
            }
        }
        prop_assert!(runners.iter().all(|runner| runner.is_over), "somebody waits for ever");
        prop_assert_eq!(NAMES.map(|name| tables.used(name)), [0; 3]);
    }

    #[test]
    fn how_long_a_launch_would_wait_is_what_was_foreseen(demands in demands(), held in vec(any::<bool>(), 3)) {
        let full = NAMES.iter().zip(held).filter(|(_, held)| *held);
        let tables = full.fold(tables(), |tables, (name, _)| tables.held(name, 1..=1));
        let foreseen = tables.outlook(&demands).refusal.expect("tables in memory");
        let mut place = PlaceInLine::default();
        match step(&tables, &demands, &mut place) {
            Outcome::Granted(_) => prop_assert!(foreseen.is_none()),
            Outcome::Interrupted => prop_assert_eq!(foreseen.and_then(|refusal| refusal.wait()), Some(Wait::Forever)),
            Outcome::Refused(_) => prop_assert_eq!(foreseen.map(|refusal| refusal.wait()), Some(None)),
        }
    }
}
