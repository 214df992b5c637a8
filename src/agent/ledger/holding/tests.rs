//! What keeps slots, and what stays of them.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use super::*;
use crate::{
    agent::tests::{holding, saved, slots},
    judge::terms::Group,
    sys::{own_pid, own_uid},
};

/// A shell with a child. It repeats what it reads, until it is ended.
struct Shell {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn begin() -> Self {
        Self::begin_as(own_uid())
    }

    fn begin_as(uid: u32) -> Self {
        let text = r#"sleep 600 >/dev/null & while read -r line; do echo "$line"; done"#;
        let mut command = Command::new("sh");
        command.args(["-c", text]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.process_group(0);
        if uid != own_uid() {
            command.uid(uid);
        }
        let mut process = command.spawn().expect("a shell");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut shell = Self { process, input, output };
        assert!(shell.lives(), "it has started its child");
        shell
    }

    fn pid(&self) -> i32 {
        self.process.id().try_into().expect("a PID")
    }

    /// Whether it repeats what it reads.
    fn lives(&mut self) -> bool {
        let mut line = String::new();
        let is_written = writeln!(self.input, "x").is_ok();
        is_written && self.output.read_line(&mut line).is_ok_and(|count| count > 0)
    }

    /// The same as a holder of this user.
    fn holding(&self, hold: Hold, uid: u32) -> Holding {
        let saved = SavedHolding { uid, ..saved(self.pid(), hold) };
        holding(saved, Some(PidFd::open(self.pid()).expect("it runs")))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        process::kill_group_of_child(self.pid());
        let _ = self.process.wait();
    }
}

/// All that keep the slots of a holder are killed. If all its descendants do, it is killed itself when
/// none of them is left.
#[test]
fn what_keeps_the_slots_is_killed() {
    for (hold, is_found) in [(Hold::Process, false), (Hold::Supervisor, true)] {
        let mut shell = Shell::begin();
        assert_eq!(shell.holding(hold, own_uid()).kill(&Alive::look()) > 0, is_found, "{hold}");
        assert!(!shell.lives(), "{hold}");
    }
    let mut shell = Shell::begin();
    let holding = shell.holding(Hold::Tree, own_uid());
    assert!(holding.kill(&Alive::look()) > 0);
    assert!(shell.lives());
    while holding.kill(&Alive::look()) > 0 {
        thread::yield_now();
    }
    assert!(!shell.lives());
}

/// The children of a holder whose descendants keep its slots are killed without a look at all processes.
/// Of any other holder none is.
#[test]
fn children_are_killed_if_they_keep_the_slots() {
    let mut shell = Shell::begin();
    for (hold, is_killed) in [(Hold::Supervisor, false), (Hold::Tree, true)] {
        assert_eq!(shell.holding(hold, own_uid()).kill_children(), usize::from(is_killed), "{hold}");
        assert!(shell.lives());
    }
    // They have been there before it had its slots.
    let shell = Shell::begin();
    let mut holding = shell.holding(Hold::Tree, own_uid());
    holding.saved.taken = Some(u64::from(u32::MAX) * 1000);
    assert_eq!(holding.kill_children(), 0);
    assert_eq!(holding.kill(&Alive::look()), 0);
}

/// A process that runs as another user gets no signal. One message says so.
#[test]
fn a_process_of_another_user_is_spared() {
    let mut shell = Shell::begin();
    for hold in [Hold::Process, Hold::Supervisor, Hold::Tree] {
        let holding = shell.holding(hold, own_uid() + 1);
        let alive = Alive::look();
        holding.terminate(&alive);
        assert!(holding.has_spared.get());
        assert_eq!((holding.kill(&alive), holding.kill_children()), (0, 0), "{hold}");
        assert!(shell.lives());
    }
    shell.holding(Hold::Process, own_uid()).terminate(&Alive::look());
    assert!(!shell.lives());
}

/// What a launch of root has started gets its signals, also if it runs as another user.
#[test]
fn what_root_has_started_gets_its_signals() {
    let other = if own_uid() == 0 { 65534 } else { own_uid() };
    let mut shell = Shell::begin_as(other);
    shell.holding(Hold::Process, 0).terminate(&Alive::look());
    assert!(!shell.lives());
}

/// The processes that have the FIFO of a holder open are found by it.
#[test]
fn what_has_a_fifo_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = ["own.fifo", "other.fifo"].map(|name| directory.path().join(name));
    let [own, other] = [0, 1].map(|index| Fifo::create(&paths[index]).expect("a FIFO"));
    let writer = Fifo::writer(&paths[0]).expect("a FIFO");
    let mut heir = Command::new("sleep").arg("600").stdout(writer).spawn().expect("sleep(1)");
    let pid = heir.id().try_into().expect("a PID");
    let (alive, none) = (Alive::look(), BTreeSet::new());
    // Other tests may start processes at this moment, which have it for a moment too.
    let is_among = |found: Vec<PidFd>| found.iter().any(|process| process.pid() == pid);
    let found = [alive.heirs(own.id()), alive.among(&none, Some(own.id()))].map(is_among);
    assert_eq!(found, [true, true]);
    let found = [alive.heirs(other.id()), alive.among(&none, None)].map(is_among);
    assert_eq!(found, [false, false]);
    assert!(is_among(alive.among(&BTreeSet::from([pid]), None)));
    heir.kill().expect("it is ours");
    heir.wait().expect("it has ended");
}

/// A process is a user's if it can only be that user: not while it could be another one again.
#[test]
fn a_process_is_of_the_user_that_it_runs_as() {
    let own = PidFd::open(own_pid()).expect("it runs");
    for (users, user, is_theirs) in [
        ([1000, 1000], 1000, true),
        ([1000, 0], 1000, false),
        ([0, 1000], 1000, false),
        ([1001, 1001], 1000, false),
        ([0, 0], 0, true),
        ([1000, 1000], 0, false),
    ] {
        assert_eq!(is_of_user(&own, users, user), is_theirs);
    }
}

/// A supervisor keeps its slots by the processes that it has started since it has them, and by no earlier
/// one.
#[test]
fn an_earlier_child_keeps_no_slots() {
    let child = Process::find(own_pid()).expect("it runs");
    let started = child.started_on_host().expect("a clock").as_millis();
    let started = u64::try_from(started).expect("milliseconds");
    for (taken, is_its) in [(Some(started), false), (Some(started - 1), true), (None, true)] {
        let holding = holding(SavedHolding { taken, ..saved(1, Hold::Supervisor) }, None);
        assert_eq!(holding.has_started(&child), is_its);
    }
}

/// The program of a supervisor is a child of it. A launch without a supervisor is its program itself.
#[test]
fn the_program_of_a_supervisor_is_its_child() {
    let shell = Shell::begin();
    for (hold, program, is_program) in [
        (Hold::Supervisor, shell.pid(), true),
        (Hold::Tree, shell.pid(), true),
        (Hold::Process, shell.pid(), false),
        (Hold::Supervisor, own_pid(), false),
        (Hold::Supervisor, -1, false),
    ] {
        let mut holding = holding(saved(own_pid(), hold), None);
        assert_eq!(holding.runs_as(program), is_program);
        assert_eq!(holding.saved.program, is_program.then_some(program));
    }
}

/// Others see a holder with the rule for its own slots. A process that has ended keeps none: another one
/// may have its number.
#[test]
fn a_holder_is_described_as_long_as_its_process_lives() {
    let store = memory::Store::default();
    let _above = store.table("above").take(&[1]).expect("it is free");
    let rule = |table: &str, rule: &str| SavedSlots { rule: rule.to_owned(), ..slots(table, vec![1]) };
    let tables = vec![rule("other", "of-other"), rule("above", "of-above"), rule("seats", "of-seats")];
    let process = PidFd::open(own_pid()).ok();
    let mut holding = holding(SavedHolding { tables, ..saved(own_pid(), Hold::Process) }, process);
    let own = ["seats", "other"].map(|table| store.table(table).take(&[1]).expect("it is free"));
    holding.held = own.into_iter().chain(store.table("above").share_again(&[1])).collect();
    let seen = |table: &str| {
        let table = store.table(table);
        let holder = table.holders(&table.occupancy()).swap_remove(0);
        (holder.keeper, holder.rule)
    };
    holding.describe(|held| held.table().is_called("seats"));
    assert_eq!(seen("seats"), (Some(own_pid()), Some("of-seats".to_owned())));
    assert_eq!(seen("other"), (None, None));
    let shell = Shell::begin();
    holding.process = PidFd::open(shell.pid()).ok().map(Arc::new);
    drop(shell);
    holding.describe(|_| true);
    assert_eq!(seen("seats"), (None, Some("of-seats".to_owned())));
    assert_eq!(seen("other"), (None, Some("of-other".to_owned())));
    assert_eq!(seen("above"), (None, None), "that is its ancestor's");
}

/// A launch learns its slots, and which of them other programs of its group have.
#[test]
fn a_launch_learns_its_slots() {
    let (store, group) = (memory::Store::default(), Group::of("ann"));
    let mut holding = holding(saved(1, Hold::Tree), None);
    let named = |table: &str, slots: &str| (table.to_owned(), slots.to_owned());
    holding.saved.tables = vec![slots("seats", vec![1, 2, 3, 7]), slots("gpus", vec![4])];
    assert_eq!(holding.granted(false).joined, None);
    let seats = store.table("seats");
    let other = seats.restore(&[1, 2], Some(&group)).expect("they are free");
    let own = seats.restore(&[1, 2, 3, 7], Some(&group)).expect("they are free, or the group's");
    holding.held = vec![store.table("gpus").take(&[4]).expect("it is free"), own];
    let granted = holding.granted(true);
    assert_eq!(granted.slots, [named("seats", "1-3,7"), named("gpus", "4")]);
    assert_eq!((granted.hold, granted.has_waited), (Hold::Tree, true));
    assert_eq!(granted.joined, Some(vec![named("seats", "1,2")]));
    drop(other);
}

/// If no program was started, the last start of each table is the one before. A later start of another
/// launch stays, and so does that of an ancestor.
#[test]
fn a_start_that_was_none_is_withdrawn_from_each_table() {
    let store = memory::Store::default();
    let [one, other, later, above] = ["one", "other", "later", "above"].map(|name| store.table(name));
    let _above = above.take(&[1]).expect("it is free");
    let seconds = Duration::from_secs;
    for (table, start) in [(&one, 9), (&other, 9), (&later, 10), (&above, 9)] {
        table.set_stamps(at(seconds(start)), None, None);
    }
    let before = |table: &str, before| SavedSlots { before, ..slots(table, vec![1]) };
    let tables =
        vec![before("one", Some(seconds(5))), before("other", Some(seconds(7))), before("later", None)];
    let started = Some(seconds(9));
    let mut holding = holding(SavedHolding { started, tables, ..saved(1, Hold::Process) }, None);
    let own = [&one, &other, &later].map(|table| table.take(&[1]).expect("it is free"));
    holding.held = own.into_iter().chain(above.share_again(&[1])).collect();
    holding.withdraw_stamps();
    let starts = [&one, &other, &later, &above].map(|table| table.stamps().0);
    assert_eq!(starts, [5, 7, 10, 9].map(|start| at(seconds(start))));
}

/// A user may stack thousands of processes, and the agent looks with its only thread.
#[test]
fn each_process_of_a_long_chain_is_visited_once() {
    let chain: BTreeMap<i32, Vec<i32>> = (1..30_000).map(|pid| (pid, vec![pid + 1])).collect();
    let visits = Cell::new(0);
    let children = |of: i32| {
        visits.set(visits.get() + 1);
        chain.get(&of).map_or(&[][..], Vec::as_slice)
    };
    assert_eq!(descendants(10_000, children), (10_000..=30_000).collect());
    assert_eq!(visits.get(), 20_001);
}

/// So it may seem, where the id of a process that has ended was used again while all were read.
#[test]
fn a_cycle_has_an_end() {
    let cycle = BTreeMap::from([(1, vec![2, 4]), (2, vec![3]), (3, vec![1])]);
    let children = |of: i32| cycle.get(&of).map_or(&[][..], Vec::as_slice);
    assert_eq!(descendants(2, children), BTreeSet::from([1, 2, 3, 4]));
}

/// Slots that linger replace those that an earlier program has left, if these are among them, and would
/// all be free sooner. No slot is free too early.
#[test]
fn lingering_slots_cover_those_that_are_free_sooner() {
    let (store, group) = (memory::Store::default(), Group::of_heirs("games"));
    let of = |slots: &[(&str, u64, u64)]| {
        let held = slots.iter().map(|(table, slot, until)| {
            let held = store.table(table).restore(&[*slot], Some(&group)).expect("it is the group's");
            (held, Duration::from_secs(*until))
        });
        Lingering { saved: saved(1, Hold::Process), held: held.collect() }
    };
    let both = of(&[("one", 1, 60), ("other", 1, 60)]);
    for (earlier, are_covered) in [
        (&[("one", 1, 50)][..], true),
        (&[("one", 1, 50), ("other", 1, 50)], true),
        (&[("one", 1, 50), ("other", 1, 70)], false),
        (&[("one", 1, 50), ("other", 2, 50)], false),
        (&[("one", 1, 50), ("third", 1, 50)], false),
    ] {
        assert_eq!(both.covers(&of(earlier)), are_covered);
    }
    assert_eq!(
        (of(&[("one", 1, 60), ("other", 1, 50)]).next(), both.has("one", 1)),
        (Duration::from_secs(50), true)
    );
    assert!(!both.has("one", 2) && !both.has("third", 1));
}

/// The process that asked keeps its slots, its FIFO does, or both do, as the hold says. Slots that were
/// given back are kept by neither.
#[test]
fn what_keeps_the_slots_of_a_holder() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fifo");
    Fifo::create(&path).expect("a FIFO");
    for (hold, is_started, opened, kept_by) in [
        (Hold::Process, true, None, [false, true, false, true]),
        // Until its program starts, a launch may still ask for what it was given.
        (Hold::Descriptor, false, None, [false, true, true, true]),
        (Hold::Descriptor, true, None, [false, false, true, true]),
        (Hold::Descriptor, false, Some(7), [false, false, true, true]),
        (Hold::Supervisor, true, None, [false, true, true, true]),
        (Hold::Tree, true, None, [false, true, true, true]),
    ] {
        let are_kept =
            [(false, false), (true, false), (false, true), (true, true)].map(|(lives, has_fifo)| {
                let process = lives.then(|| PidFd::open(own_pid()).expect("it runs"));
                let saved = SavedHolding { is_started, opened, ..saved(1, hold) };
                let mut holding = holding(saved, process);
                holding.fifo = Some(Fifo::open(&path).expect("a FIFO"));
                let _writer = has_fifo.then(|| Fifo::writer(&path).expect("a FIFO"));
                let is_kept = holding.is_kept();
                holding.saved.is_given_back = true;
                assert!(!holding.is_kept());
                is_kept
            });
        assert_eq!(are_kept, kept_by, "{hold}, {is_started}");
    }
    assert!(!holding(saved(1, Hold::Tree), None).is_kept());
}

/// A launch may use slots of its own user alone: those whose FIFO it has open, or those of the process
/// that it is itself, if nothing else has to keep them.
#[test]
fn who_may_use_the_slots_of_a_holder() {
    let directory = tempfile::tempdir().expect("a directory");
    let [fifo, other] =
        ["fifo", "other"].map(|name| Fifo::create(&directory.path().join(name)).expect("a FIFO"));
    let (own, other) = (fifo.id(), other.id());
    let mut of_fifo = holding(saved(5, Hold::Tree), None);
    of_fifo.fifo = Some(fifo);
    assert!(of_fifo.may_be_joined_by((9, 1000), Hold::Tree, &[other, own]));
    assert!(!of_fifo.may_be_joined_by((9, 1000), Hold::Tree, &[other]));
    assert!(!of_fifo.may_be_joined_by((9, 1001), Hold::Tree, &[own]), "it is another user");
    assert!(!of_fifo.may_be_joined_by((5, 1000), Hold::Process, &[]), "its FIFO keeps them");
    let of_process = holding(saved(5, Hold::Process), None);
    assert!(of_process.may_be_joined_by((5, 1000), Hold::Process, &[]));
    assert!(!of_process.may_be_joined_by((6, 1000), Hold::Process, &[own]), "it is another process");
    assert!(!of_process.may_be_joined_by((5, 1001), Hold::Process, &[]), "it is another user");
    assert!(!of_process.may_be_joined_by((5, 1000), Hold::Descriptor, &[]), "more has to keep them");
}

/// A holder has its own slots, and those of an ancestor that it uses, each in its table.
#[test]
fn which_slots_a_holder_has() {
    let store = memory::Store::default();
    let _above = store.table("site/b").take(&[7]).expect("it is free");
    let own = store.table("site/a").take(&[1, 2]).expect("they are free");
    let shared = store.table("site/b").share_again(&[7]).expect("it is held");
    let mut holding = holding(saved(1, Hold::Process), None);
    holding.held = vec![own, shared];
    for (table, slot, has, has_own) in [
        ("site/a", 2, true, true),
        ("site/a", 7, false, false),
        ("site/b", 7, true, false),
        ("site/b", 2, false, false),
        ("site/c", 1, false, false),
    ] {
        assert_eq!(
            (holding.has(table, slot), holding.has_own(table, slot)),
            (has, has_own),
            "{table} {slot}"
        );
    }
    assert!(holding.is_of_site());
    assert_eq!(holding.table("b").map(memory::Table::name), Some("site/b"));
    assert!(holding.table("c").is_none());
    drop(holding.held.remove(0));
    assert!(!holding.is_of_site() && !holding.has_own("site/b", 7), "it uses those of an ancestor");
    holding.held = vec![store.table("local").take(&[1]).expect("it is free")];
    assert!(!holding.is_of_site());
}

/// If the site is lost, the strictest of all tables counts. If others have a slot of one table, only that
/// table counts.
#[test]
fn what_happens_to_a_holder_without_the_site() {
    let of = |table: &str, on_lost| SavedSlots { on_lost, ..slots(table, vec![1]) };
    let (keep, stop) = (Some(OnLost::Keep), Some(OnLost::Stop));
    let mut holding = holding(saved(1, Hold::Process), None);
    assert_eq!(holding.on_lost(), None);
    holding.saved.tables = vec![of("site/a", keep), of("site/b", stop), of("seats", None)];
    assert_eq!(holding.on_lost(), stop);
    let stops = ["site/a", "site/b", "seats", "other"].map(|table| holding.stops_without(table));
    assert_eq!(stops, [false, true, false, false]);
}

/// A slot that has another number now has it in all that is known of its holder, and in its table alone.
#[test]
fn a_slot_with_another_number_is_followed_in_its_table() {
    let store = memory::Store::default();
    let (table, other) = (store.table("site/a"), store.table("site/b"));
    let mut held = [table.take(&[1, 2]), other.take(&[1])].map(|held| held.expect("they are free"));
    let tables = vec![slots("site/a", vec![1, 2]), slots("site/b", vec![1])];
    let mut saved = SavedHolding { tables, ..saved(1, Hold::Process) };
    assert!(!follow(&mut saved, held.iter_mut(), (&table, 3, 5)), "it has no such slot");
    assert!(follow(&mut saved, held.iter_mut(), (&table, 1, 5)));
    assert_eq!([held[0].slots(), held[1].slots()], [&[5, 2][..], &[1]]);
    assert_eq!(saved.tables.iter().map(|of| of.slots.clone()).collect::<Vec<_>>(), [vec![5, 2], vec![1]]);
}
