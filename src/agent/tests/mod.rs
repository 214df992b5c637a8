//! Parts of the agent on their own: a launch, a request, and a holder, without connections and slots.

mod request;
mod session;

use std::{
    cell::Cell,
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    agent::{
        AcquireRequest, Eviction, RunningEviction, is_below,
        ledger::{
            holding::Holding,
            state::{SavedHolding, SavedPlace, SavedSlots},
        },
    },
    judge::terms::{Amount, Claim, Demand, Expiry, FileLocation, Hold, Location, Slots, Wait},
    keeper::{Holder, Overdue, agent::message::Take},
    sys::{PidFd, Process},
};

/// Longer than any test takes.
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// What a launch asks.
pub(super) fn take() -> Take {
    Take {
        typed: "matlab".into(),
        path: "/usr/bin/matlab".into(),
        canonical: "/usr/bin/matlab".into(),
        directory: "/".into(),
        arguments: Vec::new(),
        environment: Vec::new(),
        held: "".into(),
        hold: Hold::Process,
        wait: Some(Wait::Forever),
        may_end: true,
        is_again: false,
        opened: None,
        through: None,
    }
}

/// A claim on one slot of a lock file, which has ten.
pub(super) fn of_file() -> Claim {
    let file = FileLocation::named(PathBuf::from("/seats.lock"), 0o666);
    Claim::outside_the_policy(file, Amount::plain(Slots::Number(1), 10), "--limit")
}

/// The same of a table in memory.
pub(super) fn claim(table: &str) -> Claim {
    Claim { location: Location::Memory(table.to_owned()), ..of_file() }
}

/// What it needs. The judgement is fresh for as long as a test takes.
pub(super) fn needs(demands: Vec<Demand>) -> AcquireRequest {
    AcquireRequest {
        demands,
        locations: Vec::new(),
        hold: Hold::Process,
        longest: None,
        generation: 0,
        command: "matlab".to_owned(),
        host: "lab".to_owned(),
        uid: 1000,
        ancestors: Vec::new(),
        may_end: true,
        judged: Instant::now() + HOUR,
        without: Vec::new(),
    }
}

/// A holder as it is saved. It has no slots.
pub(super) fn saved(pid: i32, hold: Hold) -> SavedHolding {
    let text = r#"{"pid":1,"start":1,"uid":1000,"hold":"process","host":"lab","command":"matlab","since":1,"taken":null,"tables":[]}"#;
    SavedHolding { pid, hold, ..serde_json::from_str(text).expect("a holder") }
}

/// Its own slots of a table.
pub(super) fn slots(table: &str, slots: Vec<u64>) -> SavedSlots {
    SavedSlots {
        table: table.to_owned(),
        rule: "seats".to_owned(),
        slots,
        is_shared: false,
        owners: Vec::new(),
        on_lost: None,
        group: None,
        linger: None,
        is_of_heirs: false,
        before: None,
    }
}

/// The place of a process in the queue of a table, as it is saved.
pub(super) fn place(pid: i32) -> SavedPlace {
    let start = Process::find(pid).expect("it runs").started;
    let lines = r#"[{"table":"seats","classes":[[0,1]],"begun":1}]"#;
    let number = r#"{"number":1,"launch":[0,0]}"#;
    let text = format!(r#"{{"pid":{pid},"start":{start},"uid":1000,"number":{number},"lines":{lines}}}"#);
    serde_json::from_str(&text).expect("a place")
}

/// A holder while this process keeps its slots, or only its FIFO does.
pub(super) fn holding(saved: SavedHolding, process: Option<PidFd>) -> Holding {
    let (held, without, has_spared) = (Vec::new(), Vec::new(), Cell::default());
    let process = process.map(Arc::new);
    Holding { saved, process, fifo: None, held, without, launch: 0, has_spared }
}

/// A holder that is to be ended: overdue by this much, or at a user's request.
pub(super) fn overdue(pid: i32, by: Option<Duration>) -> Overdue {
    let holder = Holder { pid: Some(pid), keeper: Some(pid), ..Holder::unknown(1..=1) };
    Overdue {
        holder,
        pid,
        elsewhere: None,
        by,
        slots: 1,
        job: Ok(pid),
        may_be_signalled: true,
        with: Vec::new(),
    }
}

/// The same while it is being ended, with a long time between the signals; the number is that of its holding.
pub(super) fn ending(holding: u64, overdue: Overdue) -> RunningEviction {
    let expiry = Expiry { grace: HOUR, ..Expiry::AT_REQUEST };
    let eviction = Eviction { table: "seats".to_owned(), expiry, overdue: Vec::new() };
    RunningEviction::of(holding, &eviction, overdue, None)
}

/// No user could connect to a socket in the state directory, also if a link leads there.
#[test]
fn a_socket_in_the_state_directory_is_seen_through_links() {
    let directory = tempfile::tempdir().expect("a directory");
    let [state, other, link] = ["state", "other", "link"].map(|name| directory.path().join(name));
    for made in [&state, &other] {
        fs::create_dir(made).expect("a directory");
    }
    symlink(&state, &link).expect("a link");
    for (file, is_in_state) in [
        (state.join("socket"), true),
        (link.join("socket"), true),
        (other.join("socket"), false),
        (directory.path().join("state-socket"), false),
    ] {
        assert_eq!(is_below(&file, &state), is_in_state);
    }
}
