//! Nested launches, which use slots of a holder: over a restart, those of the same holder alone.

use super::*;
use crate::{
    agent::AcquireRequest,
    judge::terms::{NamedSlots, Nested, Runs},
};

/// A launch below a holder uses its slot if the holder is its own process, of the same user. The environment
/// has to name the slot, which proves nothing by itself.
#[test]
fn a_nested_launch_uses_the_slot_of_its_holder() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let table = ledger.store().table("seats");
    let tables = vec![slots("seats", vec![1])];
    let mut above = holding(SavedHolding { tables, ..saved(own_pid(), Hold::Process) }, None);
    above.held = table.take(&[1]).into_iter().collect();
    above.held[0].describe(above.saved.holder("seats"));
    ledger.holdings.insert(9, above);
    for (uid, hint, is_shared) in
        [(1000, Some("seats"), true), (1000, None, false), (1001, Some("seats"), false)]
    {
        let hint = hint.map(|name| NamedSlots {
            name: name.to_owned(),
            slots: Runs::of(&[1]),
            called: Vec::new(),
            joined: Runs::default(),
        });
        let demands = vec![Demand::One(Claim { nested: Nested::Join, ..claim("seats") })];
        let request = AcquireRequest { ancestors: hint.into_iter().collect(), ..needs(demands) };
        let mut session = Session::new(Caller { pid: own_pid(), uid, ..Caller::default() });
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        let CheckOutcome::Granted(below) = ledger.look(7, &mut session, &request, false, process) else {
            panic!("there is room")
        };
        assert_eq!((below.held[0].is_shared(), below.saved.tables[0].is_shared), (is_shared, is_shared));
        assert_eq!(below.held[0].slots() == [1], is_shared);
        assert_eq!(below.saved.tables[0].owners, vec![9; usize::from(is_shared)]);
        let CheckOutcome::Granted(second) = ledger.look(7, &mut session, &request, false, process) else {
            panic!("there is room")
        };
        assert!(!second.held[0].is_shared() || !is_shared, "one nested launch at a time uses it");
    }
}

/// A nested launch whose holder is gone uses no slot of another launch that has the same number: that slot is
/// free when its own launch has ended. An older agent did not save whose slot it was. It was one of the user.
#[test]
fn a_nested_launch_without_its_holder_uses_no_slot_of_another_launch() {
    let start = Process::find(own_pid()).expect("it runs").started;
    for (uid, owners) in [(1001, vec![9]), (1000, vec![9]), (1001, Vec::new())] {
        let (directory, state) = state();
        let of = |uid, of| SavedHolding { uid, start, tables: vec![of], ..saved(own_pid(), Hold::Process) };
        let shared = SavedSlots { is_shared: true, owners, ..slots("seats", vec![1]) };
        let other = of(uid, slots("seats", vec![1]));
        for (number, holding) in [(8, other), (10, of(1000, shared))] {
            state.write(number, &holding).expect("there is room");
        }
        let (mut ledger, _) = ledger(directory.path());
        assert!(!ledger.holdings()[&8].is_used_below(), "{uid}");
        assert!(ledger.holdings()[&10].held.is_empty(), "{uid}");
        drop(ledger.release(8, true));
        assert_eq!(ledger.store().table("seats").used(), 0, "{uid}");
    }
}

/// If another launch had the slot of a holder first, the holder gets another one at the start of the agent. A
/// nested launch uses that one.
#[test]
fn a_nested_launch_uses_the_slot_that_its_holder_has_after_a_restart() {
    let (directory, state) = state();
    let start = Process::find(own_pid()).expect("it runs").started;
    let shared = SavedSlots { is_shared: true, owners: vec![2], ..slots("seats", vec![1]) };
    let all = [(1, slots("seats", vec![1])), (2, slots("seats", vec![1])), (3, shared)];
    for (number, of) in all {
        let tables = vec![of];
        let holder = SavedHolding { start, tables, ..saved(own_pid(), Hold::Process) };
        state.write(number, &holder).expect("there is room");
    }
    let (ledger, _) = ledger(directory.path());
    let slots_of = |number| ledger.holdings()[&number].saved.tables[0].slots.clone();
    assert_eq!([1, 2, 3].map(slots_of), [[1], [2], [2]]);
    assert_eq!([1, 2].map(|number| ledger.holdings()[&number].is_used_below()), [false, true]);
}

/// The tables show who keeps a slot: of launches one below the other, the first that keeps its own slots. Its
/// age is that of the slot, which has been taken for as long as before.
#[test]
fn the_tables_show_the_nested_launch_that_keeps_a_slot() {
    let (directory, state) = state();
    let shared = |table, owner| SavedSlots { is_shared: true, owners: vec![owner], ..slots(table, vec![1]) };
    let own = |table| slots(table, vec![1]);
    let all = [vec![own("top")], vec![own("middle"), shared("top", 1)], vec![shared("middle", 2)]];
    let mut idles = [(); 3].map(|()| Some(Idle::begin()));
    let pids = idles.each_ref().map(|idle| idle.as_ref().expect("it runs").pid());
    for ((number, pid), tables) in (1..).zip(pids).zip(all) {
        let (start, taken) = (Process::find(pid).expect("it runs").started, Some(number));
        let saved = SavedHolding { start, taken, tables, ..saved(pid, Hold::Process) };
        state.write(number, &saved).expect("there is room");
    }
    drop(state);
    let (mut ledger, _) = ledger(directory.path());
    for (ended, keepers) in [(None, [0, 1]), (Some(0), [1, 1]), (Some(1), [2, 2])] {
        if let Some(ended) = ended {
            idles[ended] = None;
            assert!(!ledger.on_end(ended as u64 + 1, false), "a nested launch uses its slot");
        }
        ledger.show_keepers();
        let shown = ["top", "middle"].map(|name| {
            let table = ledger.store().table(name);
            let holder = table.holders(&table.occupancy()).swap_remove(0);
            (holder.keeper, holder.pid, holder.taken)
        });
        let of = |keeper: usize, number| {
            (Some(pids[keeper]), Some(pids[keeper]), Some(Duration::from_millis(number)))
        };
        assert_eq!(shown, [of(keepers[0], 1), of(keepers[1], 2)]);
        let is_kept_by = [1, 2].map(|number| ledger.keeper_of(number));
        assert_eq!(is_kept_by, keepers.map(|keeper| keeper as u64 + 1));
    }
    idles[2] = None;
    assert!(ledger.on_end(3, false));
    drop(ledger.release(3, true));
    ledger.show_keepers();
    assert_eq!(ledger.left_over(), Some(2), "the slots are free one after the other");
}
