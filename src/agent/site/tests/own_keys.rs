//! Which keys of this host may have to change, and when.

use std::{
    collections::BTreeSet,
    mem, slice,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::stage::{saved, slot};
use crate::{
    agent::{
        ledger::state::since_1970,
        site::{Key, OwnKeys, TicketRecord, Value},
    },
    judge::terms::{Group, Seats, table_of_site},
    keeper::{Store, memory},
};

/// The revision of the mirror.
const MIRROR: i64 = 7;

fn ticket(number: u64) -> Key {
    Key::Ticket("seats".to_owned(), number)
}

fn waits(is_away: bool) -> Value {
    let record = r#"{"host":"lab","agent":"x","pid":1,"uid":1,"command":"","classes":[],"is_away":false}"#;
    let record: TicketRecord = serde_json::from_str(record).expect("a record");
    Value::Ticket(TicketRecord { is_away, ..record })
}

fn table(store: &Store) -> memory::Table {
    store.table(&table_of_site("seats"))
}

/// What may have to change, if no key is in a proof.
fn dirty(own: &mut OwnKeys) -> Vec<Key> {
    own.take_dirty(MIRROR, &BTreeSet::new()).into_iter().collect()
}

/// The next transaction after a failed one would fail, too. So it is sent when some key has changed or some
/// time has passed, and has all keys that could not be changed.
#[test]
fn keys_that_could_not_be_changed_wait_until_something_happens() {
    let mut own = OwnKeys::default();
    own.have_failed([slot(1)]);
    assert_eq!(dirty(&mut own), []);
    own.mark_dirty([slot(2)]);
    assert_eq!(dirty(&mut own), []);
    own.try_again();
    assert_eq!(dirty(&mut own), [slot(1), slot(2)]);
    own.have_failed([slot(1)]);
    own.have_changed([slot(3)]);
    assert_eq!(dirty(&mut own), [slot(1), slot(3)]);
    assert_eq!(dirty(&mut own), [], "each is looked at once");
}

/// A key in a proof is not changed, and is looked at when the proof is over.
#[test]
fn a_key_in_a_proof_is_looked_at_afterwards() {
    let mut own = OwnKeys::default();
    own.mark_dirty([slot(1), slot(2)]);
    assert_eq!(own.take_dirty(MIRROR, &[slot(1)].into()), [slot(2)].into());
    assert_eq!(dirty(&mut own), [slot(1)]);
}

/// Slots with one number in two tables have nothing to do with each other, and only what the mirror does not
/// show yet counts.
#[test]
fn a_slot_that_this_host_has_deleted_is_one_of_its_table() {
    let mut own = OwnKeys::default();
    own.has_written(9, [(slot(1), None), (slot(2), Some(waits(false)))]);
    assert_eq!(own.deleted_after(MIRROR, "seats"), [1].into());
    assert_eq!(own.deleted_after(MIRROR, "other"), BTreeSet::new());
    assert_eq!(own.deleted_after(9, "seats"), BTreeSet::new());
}

/// The slots of a launch stay taken in memory until all of their keys are deleted, so that no launch of this
/// host gets one before. Their keys are looked at immediately.
#[test]
fn slots_stay_taken_until_all_of_their_keys_are_deleted() {
    let (store, mut own) = (Store::default(), OwnKeys::default());
    for number in [1, 2] {
        own.want(slot(number), waits(false));
    }
    assert_eq!(dirty(&mut own), [slot(1), slot(2)]);
    own.free("seats", table(&store).take(&[1, 2]).expect("they are free"));
    assert_eq!(dirty(&mut own), [slot(1), slot(2)]);
    assert!([1, 2].iter().all(|number| own.wanted(&slot(*number), &store).is_none()));
    assert!(own.is_giving_back(&table_of_site("seats")) && !own.is_giving_back(&table_of_site("other")));
    assert_eq!(own.release(&[slot(2)].into()).len(), 0);
    assert_eq!(table(&store).used(), 2);
    assert_eq!(own.release(&BTreeSet::new()).len(), 1);
    assert_eq!(table(&store).used(), 0);
}

/// A slot of a group stays as it is while another member has it. No launch joins it while its key is being
/// deleted.
#[test]
fn a_slot_of_a_group_is_released_with_its_last_member() {
    let (store, mut own) = (Store::default(), OwnKeys::default());
    let (table, group) = (table(&store), Group::of("root"));
    let take = |shared, free| table.take_with(&Seats { shared, free }, Some(&group)).expect("it is free");
    let (first, last) = (take(vec![], vec![1]), take(vec![1], vec![]));
    own.want(slot(1), waits(false));
    assert_eq!(dirty(&mut own), [slot(1)]);
    own.free("seats", first);
    assert_eq!((dirty(&mut own), table.groups().len()), (vec![], 1));
    assert!(own.wanted(&slot(1), &store).is_some());
    own.free("seats", last);
    assert_eq!((dirty(&mut own), table.groups().len()), (vec![slot(1)], 0));
    assert_eq!((own.wanted(&slot(1), &store), table.used()), (None, 1));
}

/// Every change of the tickets of a launch is written immediately. Under another number its place needs a new
/// proof. Nothing is left of a launch that waits no longer.
#[test]
fn a_launch_that_comes_under_another_number_is_in_no_line_yet() {
    let (store, mut own) = (Store::default(), OwnKeys::default());
    let wants = |own: &mut OwnKeys, number: u64, tickets: &[(Key, Value)]| {
        own.want_tickets(3, number, tickets.iter().cloned().collect());
        let was_in = own.places.get_mut(&3).is_some_and(|place| mem::replace(&mut place.is_in, true));
        (was_in, dirty(own))
    };
    let (first, second) = ((ticket(1), waits(false)), (ticket(2), waits(false)));
    assert_eq!(wants(&mut own, 1, slice::from_ref(&first)), (false, vec![ticket(1)]));
    assert!(own.is_in(3, &ticket(1)) && !own.is_in(3, &ticket(2)) && !own.is_in(4, &ticket(1)));
    assert_eq!(wants(&mut own, 1, &[first]), (true, vec![]));
    assert_eq!(wants(&mut own, 1, &[(ticket(1), waits(true))]), (true, vec![ticket(1)]));
    assert_eq!(wants(&mut own, 2, &[second]), (false, vec![ticket(1), ticket(2)]));
    assert_eq!(own.wanted(&ticket(1), &store), None);
    assert_eq!(wants(&mut own, 2, &[]), (false, vec![ticket(2)]));
    assert_eq!((own.wanted(&ticket(2), &store), own.places.len()), (None, 0));
}

/// A start without a program is taken back, and only that one: a start that another host has recorded since
/// begins a pause.
#[test]
fn a_start_that_is_taken_back_is_no_later_one() {
    let second = Duration::from_secs;
    let [before, first, withdrawn, later] = [10, 15, 20, 30].map(|seconds| UNIX_EPOCH + second(seconds));
    let mut of_launch = saved(&[1]);
    of_launch.paced_at_site = vec![table_of_site("seats")];
    let mut own = OwnKeys::default();
    for (started, before) in [(first, before), (withdrawn, first)] {
        of_launch.started = since_1970(started);
        of_launch.tables[0].before = since_1970(before);
        own.was_not_used(&of_launch);
    }
    assert_eq!(dirty(&mut own), [Key::Stamps("seats".to_owned())]);
    let start_after = |start: SystemTime| {
        let store = Store::default();
        table(&store).set_stamps(Some(start), None, None);
        own.add_untold_use("seats", &table(&store));
        table(&store).stamps().0
    };
    // Of two, each is taken back, whichever of them the site has recorded last.
    assert_eq!([first, withdrawn].map(start_after), [Some(before); 2]);
    assert_eq!([before, later].map(start_after), [Some(before), Some(later)]);
}
