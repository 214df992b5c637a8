//! Scripts that keep slots by a FIFO, or ask by a process of their own.

use super::*;

/// The FIFO of a script keeps slots once, also if two requests for it are decided at the same time. That of
/// another user with the same number is another one.
#[test]
fn a_fifo_of_a_script_keeps_slots_once() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let of = |uid, opened| {
        let saved = SavedHolding { uid, opened: Some(opened), ..saved(own_pid(), Hold::Descriptor) };
        holding(saved, None)
    };
    ledger.holdings.insert(1, of(1000, 5));
    let taken = [(1000, 5), (1001, 5), (1000, 6)].map(|(uid, opened)| ledger.is_taken(uid, opened));
    assert_eq!(taken, [true, false, false]);
    let kept = [(1000, 5), (1001, 5), (1000, 6)].map(|(uid, opened)| ledger.kept_by(uid, opened));
    assert_eq!(kept.map(|found| found.map(|(number, _)| number)), [Some(1), None, None]);
    let (table, mut second) = (ledger.store().table("seats"), of(1000, 5));
    second.held = table.take(&[1]).into_iter().collect();
    (second.saved.started, second.saved.tables) = (Some(HOUR), vec![slots("seats", vec![1])]);
    table.set_stamps(at(HOUR), None, None);
    let (left, refused) = ledger.grant(2, second).expect_err("it is taken");
    assert_eq!(refused, "the descriptor keeps slots already");
    assert_eq!((ledger.holdings().len(), table.stamps().0), (1, None));
    drop(left);
    assert_eq!(table.used(), 0);
}

/// The FIFOs of scripts that keep no slots are counted for their users.
#[test]
fn unused_fifos_count_for_their_users() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let end = io::stderr().as_fd().try_clone_to_owned().expect("a descriptor");
    ledger.unused.insert(1000, VecDeque::from([(5, end)]));
    assert_eq!((ledger.unused_of(1000), ledger.unused_of(1001)), (1, 0));
    assert_eq!(ledger.users_of_unused().collect::<Vec<_>>(), [1000]);
}

/// The holder is the process that was found for the request: a script while it runs, and otherwise the
/// process that asked.
#[test]
fn a_script_is_the_holder_while_it_runs() {
    let (directory, _state) = state();
    let (ledger, _) = ledger(directory.path());
    let (mut script, request) = (Idle::begin(), needs(vec![Demand::One(claim("seats"))]));
    let mut session = Session::new(Caller { pid: own_pid(), started: 3, ..Caller::default() });
    let mut holder = |pid: i32| {
        let open = || PidFd::open(pid).map_err(Failure::of("pidfd_open"));
        match ledger.look(7, &mut session, &request, false, open) {
            CheckOutcome::Granted(holding) => {
                let table = holding.held[0].table();
                let seen = table.holders(&table.occupancy()).swap_remove(0);
                assert_eq!((seen.pid, seen.rule), (Some(holding.saved.pid), Some("--limit".to_owned())));
                (holding.saved.pid, holding.saved.start)
            }
            _ => panic!("there is room"),
        }
    };
    let start = Process::find(script.pid()).expect("it runs").started;
    assert_eq!(holder(script.pid()), (script.pid(), start));
    assert_eq!(holder(own_pid()), (own_pid(), 3), "it is no script");
    let process = PidFd::open(script.pid()).expect("it runs");
    process.signal(Signal::SIGKILL).expect("it is ours");
    while !process.has_ended() {
        thread::yield_now();
    }
    // It was not waited for, so it has its number still.
    assert_eq!(holder(script.pid()), (own_pid(), 3));
    script.0.wait().expect("it has ended");
}
