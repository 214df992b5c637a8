//! Launches that get nothing because of a failed call: they leave neither slots nor a start.

use std::fs;

use super::*;
use crate::sys::Errno;

/// A launch whose process cannot be watched starts no program: its slots are free, and no pause begins.
#[test]
fn a_launch_without_a_descriptor_leaves_no_start() {
    let (directory, _state) = state();
    let (ledger, _) = ledger(directory.path());
    let request = needs(vec![Demand::One(claim("seats")), Demand::One(claim("other"))]);
    let tables = ["seats", "other"].map(|name| ledger.store().table(name));
    tables[0].set_stamps(at(HOUR), None, Some(7));
    let process = || Err(Failure { call: "pidfd_open", errno: Errno::EMFILE });
    let outcome = ledger.look(7, &mut Session::default(), &request, false, process);
    assert!(matches!(outcome, CheckOutcome::Failed(why) if why.starts_with("pidfd_open: ")));
    let left = tables.map(|table| (table.used(), table.stamps()));
    assert_eq!(left, [(0, (at(HOUR), None)), (0, (None, None))]);
}

/// A launch that cannot be saved starts no program: no saved table has its start, also if some were saved
/// before one failed.
#[test]
fn a_launch_that_is_not_saved_leaves_no_saved_start() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let names = ["seats", "other"];
    let [before, started] = [HOUR, 2 * HOUR];
    let tables = names.iter().map(|name| SavedSlots { before: Some(before), ..slots(name, vec![1]) });
    let saved = SavedHolding {
        tables: tables.collect(),
        paced: names.map(str::to_owned).to_vec(),
        started: Some(started),
        ..saved(own_pid(), Hold::Process)
    };
    let mut launch = holding(saved, PidFd::open(own_pid()).ok());
    for name in names {
        let table = ledger.store().table(name);
        launch.held.extend(table.take(&[1]));
        table.set_stamps(at(started), None, None);
    }
    // The file of the second table cannot be replaced.
    let [first, second] = names.map(|name| directory.path().join(format!("tables/{name}.json")));
    fs::create_dir(second).expect("there is room");
    let (left, refused) = ledger.grant(9, launch).expect_err("it cannot be saved");
    assert!(refused.starts_with("it cannot save its state: "), "{refused}");
    assert_eq!(ledger.store().table("seats").stamps().0, at(before));
    let stamps: SavedStamps =
        serde_json::from_slice(&fs::read(first).expect("it was saved")).expect("it is whole");
    assert_eq!(stamps.last_start, Some(before));
    drop(left);
}
