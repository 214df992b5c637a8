//! Which holders are to be ended for a launch. No holder of a table in memory can be, so all of them stay.

use std::{ops::ControlFlow, time::Duration};

use super::stage::{But, Tables, any_list_of, any_of, claim, granted, one, tables};
use crate::{
    acquire::{
        AtOnce, Known, Outcome, PlaceInLine, Progress, Waiting,
        at_once::at_once,
        waiting::{acquire, acquire_in_turn},
    },
    judge::terms::{Claim, Demand, Expiry, Group, Pace, Seats},
    keeper::{Holder, Overdue, memory},
    sys::process,
};

/// The claim, by which a holder is overdue after five seconds.
fn expires(claim: Claim) -> Claim {
    let after = Duration::from_secs(5);
    Claim { pace: Pace { expiry: Some(Expiry { after, ..Expiry::AT_REQUEST }), ..claim.pace }, ..claim }
}

/// No process.
const NOBODY: [i32; 0] = [];

/// Processes with these numbers hold a slot each, for so many seconds, or have just taken it.
fn held(tables: &Tables, name: &str, first: i32, seconds: &[Option<u64>]) -> Vec<memory::Held> {
    let (table, now) = (tables.store.table(name), process::since_boot().expect("a time"));
    // No pause of the machine makes the latter overdue.
    let later = now + Duration::from_secs(3600);
    let hold = |((slot, pid), seconds): ((u64, i32), Option<u64>)| {
        let held = table.take(&[slot]).expect("it is free");
        let taken = seconds.map_or(later, |seconds| now.saturating_sub(Duration::from_secs(seconds)));
        let holder = Holder { pid: Some(pid), taken: Some(taken), ..Holder::unknown(slot..=slot) };
        table.describe(&[slot], holder);
        held
    };
    (1..).zip(first..).zip(seconds.iter().copied()).map(hold).collect()
}

/// The processes that are to be ended for a launch that gets nothing, in this order.
#[track_caller]
fn ended(tables: &Tables, demands: &[Demand]) -> Vec<i32> {
    let (outcome, ended) = tables.asks_and_ends(|asker| acquire(demands, asker));
    match outcome.expect("tables in memory") {
        Outcome::Refused(_) => ended,
        Outcome::Granted(grant) => panic!("it starts with {}", granted(&grant)),
        Outcome::Interrupted => panic!("it does not wait"),
    }
}

/// As many holders are ended as make room for all slots that are wanted, the longest overdue first. If one of
/// them stays nevertheless, no other one is ended.
#[test]
fn no_more_holders_are_ended_than_are_needed() {
    let tables = tables();
    let _held = held(&tables, "seats", 1, &[Some(20), Some(40), None, Some(10)]);
    let seats = |slots| [one(expires(claim("seats", 4).slots(slots)))];
    assert_eq!(ended(&tables, &seats(1)), [2]);
    assert_eq!(ended(&tables, &seats(2)), [2, 1]);
    assert_eq!(ended(&tables, &seats(3)), [2, 1, 4]);
    assert_eq!(ended(&tables, &seats(4)), NOBODY, "one of them is not overdue");
    assert_eq!(ended(&tables, &[one(claim("seats", 4))]), NOBODY, "no holder is ever overdue");
}

/// The processes that are to be ended for a launch that waits until it was told this often for what.
#[track_caller]
fn ended_meanwhile(tables: &Tables, demands: &[Demand], often: u32) -> Vec<i32> {
    let (mut place, mut told) = (PlaceInLine::default(), 0);
    let mut look = |waiting: Option<&Waiting<'_, '_>>| {
        told += u32::from(waiting.is_some());
        if told < often { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let (outcome, ended) =
        tables.asks_and_ends(|asker| acquire_in_turn(demands, asker, &mut place, None, &mut look));
    assert!(matches!(outcome, Ok(Outcome::Interrupted)));
    ended
}

/// The processes that are to be ended for a launch where one process owns all tables.
#[track_caller]
fn ended_by_the_owner(tables: &Tables, demands: &[Demand]) -> Vec<i32> {
    let mut place = PlaceInLine::default();
    let tried = tables.asks(|asker| at_once(demands, asker, &mut place, None));
    let AtOnce::Blocked(standing) = tried.expect("tables in memory") else { panic!("there is no room") };
    let known = Known { progress: &|_| Progress::Untried, leaving: &|_, _, _| 0 };
    let all = standing.to_end(&known).expect("tables in memory");
    all.iter().flat_map(|of| &of.overdue).map(|one| one.pid).collect()
}

/// A launch that waits tries the next holder if the end of the first makes no room. It tries each once.
#[test]
fn a_launch_that_waits_tries_each_holder_once() {
    let (tables, demands) = (tables(), [one(expires(claim("seats", 4)))]);
    let _held = held(&tables, "seats", 1, &[Some(20), Some(40), None, Some(10)]);
    assert_eq!(ended_meanwhile(&tables, &demands, 8), [2, 1, 4]);
}

/// No holder is ended in vain: all demands of the launch must be met, and all claims of a list. Of several
/// alternatives the first is chosen for which there are enough holders.
#[test]
fn no_holder_is_ended_where_something_else_stays_full() {
    let tables = tables();
    let _late = held(&tables, "late", 10, &[Some(20)]);
    let _later = held(&tables, "later", 20, &[Some(40)]);
    let _early = held(&tables, "early", 30, &[None]);
    let [late, later, early] = ["late", "later", "early"].map(|name| move || expires(claim(name, 1)));
    assert_eq!(ended(&tables, &[one(late()), one(later())]), [10, 20]);
    assert_eq!(ended(&tables, &[one(late()), one(early())]), NOBODY);
    assert_eq!(ended(&tables, &[any_of([early(), late(), later()])]), [10]);
    assert_eq!(ended(&tables, &[any_list_of([vec![late(), early()], vec![later()]])]), [20]);
    assert_eq!(ended(&tables, &[any_list_of([vec![late(), later()], vec![early()]])]), [10, 20]);
    assert_eq!(ended(&tables, &[one(late()), one(claim("late", 1).slots(2).called("never"))]), NOBODY);
}

/// The processes to begin with, and those to end further, if that makes room. Some are being ended, and some
/// have had all signals. Others are just leaving this number of slots.
#[track_caller]
fn chosen(
    tables: &Tables,
    demands: &[Demand],
    running: &[i32],
    tried: &[i32],
    leaving: u64,
) -> Option<[Vec<i32>; 2]> {
    let blocked = tables.attempt(demands).err().expect("it gets nothing");
    let progress = |overdue: &Overdue| match overdue.pid {
        pid if running.contains(&pid) => Progress::Running,
        pid if tried.contains(&pid) => Progress::Spared,
        _ => Progress::Untried,
    };
    let known = Known { progress: &progress, leaving: &|_, _, _| leaving };
    let (all, makes_room) = known.choose(&blocked.unmet, tables.now).expect("tables in memory");
    let begun = all.iter().flat_map(|of| &of.overdue).map(|one| one.pid).collect();
    let further = all.iter().flat_map(|of| &of.running).map(|one| one.pid).collect();
    makes_room.then_some([begun, further])
}

/// Where older launches wait, a slot that becomes free would be for one of them. In another alternative the
/// launch may be the first.
#[test]
fn no_holder_is_ended_where_older_launches_wait() {
    let tables = tables().waiting("late", 1, 0, 1);
    let _late = held(&tables, "late", 10, &[Some(40)]);
    let _later = held(&tables, "later", 20, &[Some(20)]);
    let [late, later] = ["late", "later"].map(|name| move || expires(claim(name, 1)));
    let ends = |demands: &[Demand]| {
        let all = chosen(&tables, demands, &[], &[], 0).map_or_else(Vec::new, |[begun, _]| begun);
        let ended = [
            ended(&tables, demands),
            ended_meanwhile(&tables, demands, 4),
            ended_by_the_owner(&tables, demands),
        ];
        for ended in ended {
            assert_eq!(ended, all);
        }
        all
    };
    assert_eq!(ends(&[any_of([late(), later()])]), [20]);
    assert_eq!((ends(&[one(late())]), ends(&[one(later())])), (vec![], vec![20]));
    assert_eq!(ends(&[one(later()), one(late())]), NOBODY, "it needs both");
    assert_eq!(ends(&[any_list_of([vec![later(), late()]])]), NOBODY, "it needs both");
    assert_eq!(ends(&[any_list_of([vec![later(), late()], vec![later()]])]), [20]);
}

/// Older launches have some seconds to take what is free: then the rest may be enough, and no holder has to
/// be ended. If they cannot take it, it is kept for them, and the launch needs a slot of another table.
#[test]
fn older_launches_have_time_to_take_what_is_free() {
    let tables = tables().waiting("free", 1, 0, 1);
    let _later = held(&tables, "later", 20, &[Some(20)]);
    let either = [any_of(["free", "later"].map(|name| expires(claim(name, 1))))];
    assert_eq!(ended_meanwhile(&tables, &either, 2), NOBODY);
    assert_eq!(ended_meanwhile(&tables, &either, 8), [20]);
    assert_eq!(ended(&tables, &either), NOBODY, "it does not wait until they have had the time");
}

/// A process that holds slots of two tables is ended for both: it makes room in each.
#[test]
fn a_holder_that_is_being_ended_counts_in_each_table() {
    let tables = tables();
    let _held = ["one", "two"].map(|name| held(&tables, name, 1, &[Some(20)]));
    let both = ["one", "two"].map(|name| one(expires(claim(name, 1))));
    assert_eq!(chosen(&tables, &both, &[], &[], 0), Some([vec![1, 1], vec![]]));
    assert_eq!(chosen(&tables, &both, &[1], &[], 0), Some([vec![], vec![1, 1]]));
    assert_eq!(chosen(&tables, &both, &[], &[1], 0), None, "it has had all signals");
}

/// Of several alternatives one is enough. Those that are being ended for another one are not ended further.
/// No other is begun with where they make room.
#[test]
fn holders_are_ended_further_only_for_the_alternative_that_makes_room() {
    let tables = tables();
    let _late = held(&tables, "late", 10, &[Some(20)]);
    let _later = held(&tables, "later", 20, &[Some(40)]);
    let [late, later, early] = ["late", "later", "early"].map(|name| move || expires(claim(name, 1)));
    let either = [any_list_of([vec![late(), early()], vec![later()]])];
    assert_eq!(chosen(&tables, &either, &[10], &[], 0), Some([vec![], vec![10]]));
    let full = held(&tables, "early", 30, &[None]);
    assert_eq!(chosen(&tables, &either, &[10], &[], 0), Some([vec![20], vec![]]));
    assert_eq!(chosen(&tables, &either, &[10, 20], &[], 0), Some([vec![], vec![20]]));
    assert_eq!(chosen(&tables, &either, &[10], &[20], 0), None);
    drop(full);
    assert_eq!(chosen(&tables, &either, &[10, 20], &[], 0), Some([vec![], vec![10]]));
    assert_eq!(chosen(&tables, &either, &[20], &[], 0), Some([vec![], vec![20]]), "10 is not begun with");
}

/// A holder that is being ended, and is not overdue any more, makes no room: another one must be ended. One
/// that is just leaving makes room. No more are ended further than are needed.
#[test]
fn only_holders_that_are_overdue_still_or_just_leaving_make_room() {
    let tables = tables();
    let _held = held(&tables, "seats", 1, &[Some(20), Some(40), None]);
    let seats = |slots| [one(expires(claim("seats", 3).slots(slots)))];
    assert_eq!(chosen(&tables, &seats(1), &[3], &[], 0), Some([vec![2], vec![]]));
    assert_eq!(chosen(&tables, &seats(1), &[3], &[1, 2], 0), None);
    assert_eq!(chosen(&tables, &seats(1), &[3], &[1, 2], 1), Some([vec![], vec![]]));
    assert_eq!(chosen(&tables, &seats(2), &[1], &[], 1), Some([vec![], vec![1]]));
    assert_eq!(chosen(&tables, &seats(2), &[1], &[], 0), Some([vec![2], vec![1]]));
    assert_eq!(chosen(&tables, &seats(1), &[1, 2], &[], 0), Some([vec![], vec![2]]), "the longest overdue");
    assert_eq!(chosen(&tables, &seats(3), &[1, 2], &[], 0), None);
}

/// Slots that the group of a launch has already need not become free for it.
#[test]
fn the_slots_of_a_group_count_for_its_launches() {
    let seats = |slots| {
        let mut claim = expires(claim("seats", 2).slots(slots));
        claim.amount.group = Some(Group::of("ann"));
        [one(claim)]
    };
    let (tables, seat) = (tables(), seats(1));
    let own = tables.acquire(&seat).ok().expect("a free seat");
    assert_eq!(granted(&own), "seats 1");
    let table = tables.store.table("seats");
    let _other = table.take(&[2]).expect("it is free");
    table.describe(&[2], Holder { pid: Some(2), taken: Some(Duration::ZERO), ..Holder::unknown(2..=2) });
    assert_eq!(ended(&tables, &seats(2)), [2]);
}

/// A launch ends no member of its own group: that would make no room beyond the slots on which it counts
/// already. A launch of another group ends all members.
#[test]
fn no_launch_ends_its_own_group() {
    let seats = |group, slots| {
        let mut claim = expires(claim("seats", 3).slots(slots));
        claim.amount.group = Some(Group::of(group));
        [one(claim)]
    };
    let tables = tables();
    let table = tables.store.table("seats");
    let late = |pid| Holder { pid: Some(pid), taken: Some(Duration::ZERO), ..Holder::unknown(1..=1) };
    let join = |shared: &[u64], free: &[u64], pid| {
        let slots = Seats { shared: shared.to_vec(), free: free.to_vec() };
        let member = table.take_with(&slots, Some(&Group::of("ann"))).expect("the slots are free");
        member.describe(late(pid));
        member
    };
    let _members = [join(&[], &[1], 1), join(&[1], &[], 2)];
    let _others = table.take(&[2, 3]).expect("they are free");
    assert_eq!(ended(&tables, &seats("ann", 2)), NOBODY);
    assert_eq!(ended(&tables, &seats("bob", 1)), [1, 2]);
    table.describe(&[3], late(3));
    assert_eq!(ended(&tables, &seats("ann", 2)), [3]);
}

/// A holder stays if its slot would not be for the launch: it is kept for others, or older launches wait.
#[test]
fn no_holder_is_ended_whose_slot_would_be_for_others() {
    let seats = || expires(claim("seats", 2));
    let of_two = |tables: &Tables| held(tables, "seats", 1, &[Some(40), Some(20)]);
    let kept = tables();
    let _held = of_two(&kept);
    assert_eq!(ended(&kept, &[one(seats().zones(&[2..=2]))]), [2]);
    let behind = tables().waiting("seats", 1, 0, 2);
    let _held = of_two(&behind);
    assert_eq!(ended(&behind, &[one(seats())]), NOBODY);
}
