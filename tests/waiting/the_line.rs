//! Nobody overtakes, also when the policy changes; whoever does not answer is passed over; a deadline is
//! kept whatever the head is doing; a stuck mutex costs nobody their place. Each of these was once broken in
//! the way in which it is tried here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::queue::{ALTERNATIVES, pids, run};
use crate::slots::expiry::some_time_after;
use crate::support::{
    Account, Ending, RUN, Running, Site, Test, eventually, needs_root, seats, set_mode, skip,
};

/// One repository, and a command that says that it runs by appending its argument to `$DIR/order`.
fn site(limit: u32, more: &str) -> Site {
    let site = Site::new();
    set_limit(&site, limit, more);
    site.script("job", "#!/bin/sh\necho \"$1\" >>$DIR/order\nexec cat\n");
    site
}

fn set_limit(site: &Site, limit: u32, more: &str) {
    site.policy(&seats(limit, more, &["job"]));
}

fn job(site: &Site, name: &str, options: &[&str]) -> Test {
    site.test().args(["run"]).args(options).args(["--", "job", name])
}

/// Starts a launch and returns when it waits for a seat.
#[track_caller]
fn waits(site: &Site, name: &str, options: &[&str]) -> Running {
    let running = job(site, name, &[&["-wforever"], options].concat()).background();
    site.stands_in_line("seats.lock", &running);
    running
}

/// Starts a launch and returns when it runs.
#[track_caller]
fn runs(site: &Site, name: &str) -> Running {
    let before = order(site).len();
    let running = job(site, name, &[]).background();
    assert_eq!(next(site, before), name);
    running
}

/// What has started until now, in this order.
fn order(site: &Site) -> Vec<String> {
    let text = fs::read_to_string(site.path("order")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns when one more has started, and says which.
#[track_caller]
fn next(site: &Site, before: usize) -> String {
    eventually(&format!("one more starts after {before}"), || order(site).get(before).cloned())
}

/// Numbers do not depend on limits: from 1 to 2 with five waiting, a launch that does not wait got in at
/// once, and the fourth waiter started first.
#[test]
pub(crate) fn a_raised_limit_lets_nobody_pass_the_line() {
    for _ in 0..3 {
        let site = site(1, "");
        let mut running = vec![runs(&site, "holder")];
        let mut waiting: Vec<Running> = ["1", "2", "3", "4", "5"].map(|name| waits(&site, name, &[])).into();
        set_limit(&site, 2, "");
        job(&site, "newcomer", &["-n"]).stderr("rungate: job: not started: [..]\n...\n").status(75);
        for (started, name) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
            assert_eq!(next(&site, started + 1), name);
            if started > 0 {
                running.remove(0).kill();
            }
            running.push(waiting.remove(0));
            if started == 0 {
                running.remove(0).kill();
            }
        }
    }
}

/// Ending one is a state of the head's loop: a holder that does not mind SIGINT for a minute keeps nobody
/// from a slot that another one releases, and from nobody's deadline.
#[test]
pub(crate) fn whoever_ends_a_holder_sees_other_slots_and_its_deadline() {
    let overdue = "expire_after = \"1ms\"\nexpire_grace = \"10m\"";
    let site = site(2, overdue);
    site.script("job", "#!/bin/sh\ntrap '' INT TERM\necho \"$1\" >>$DIR/order\nexec cat\n");
    let stubborn = runs(&site, "stubborn");
    // Of a process that is younger nobody knows that it is overdue.
    let other = runs(&site, "other");
    let mut late = waits(&site, "late", &[]);
    let out_of_time = job(&site, "never", &["-w2s"]).background().end();
    assert_eq!(out_of_time.ending, Ending::Status(124), "{}", out_of_time.stderr);
    assert!(stubborn.state() != 'Z', "it is there still");
    other.kill();
    assert_eq!(next(&site, 2), "late");
    late.wait_for_echo();
    assert!(stubborn.state() != 'Z', "it is there still");
}

/// A launch that does not wait ends a holder, too. Meanwhile it takes a slot that another one releases.
#[test]
fn a_launch_that_ends_a_holder_sees_other_slots_without_a_wait() {
    let site = site(2, "expire_after = \"1ms\"\nexpire_grace = \"10m\"");
    let stubborn = site.test().args(["run", "--as", "job", "--"]).args([site.helper("witness")]);
    let stubborn = stubborn.args(["$DIR/work/signals"]).through(["env", "--default-signal"]).spawn();
    // The longest overdue is ended.
    some_time_after(&stubborn);
    let other = runs(&site, "other");
    let mut newcomer = job(&site, "newcomer", &[]).background();
    eventually("the first is asked to end", || {
        let signals = fs::read_to_string(site.path("work/signals")).unwrap_or_default();
        signals.contains("SIGINT").then_some(())
    });
    other.kill();
    newcomer.wait_for_echo();
    assert!(stubborn.state() != 'Z', "it is there still");
}

/// The same, where the one whose time runs out is the head that ends the holder.
#[test]
pub(crate) fn the_head_that_ends_a_holder_keeps_its_deadline() {
    let site = site(1, "expire_after = \"1ms\"\nexpire_grace = \"10m\"");
    site.script("job", "#!/bin/sh\ntrap '' INT TERM\necho \"$1\" >>$DIR/order\nexec cat\n");
    let stubborn = runs(&site, "stubborn");
    let head = job(&site, "never", &["-w2s"]).background().end();
    assert_eq!(head.ending, Ending::Status(124), "{}", head.stderr);
    assert!(stubborn.state() != 'Z', "it is there still");
}

/// A launch ends the overdue holder where it is first, while an older launch waits for its other choice.
/// Behind an older launch it ends none, even if that one cannot use the slot yet and so ends none either.
#[test]
pub(crate) fn whoever_is_first_for_one_of_two_ends_its_holder() {
    let both = "[[rule]]\nname = \"both\"\ncommands = [\"both\"]\nacquire = [\"own\", \"common\"]\n";
    let overdue = "expire_after = \"1ms\"\nexpire_grace = \"10m\"";
    let site = Site::with_policy(&(ALTERNATIVES.replace("MORE", overdue) + both));
    for name in ["own", "common", "either", "both"] {
        site.program(name);
    }
    let own = || run(&site, "own", &[]).through(["env", "--default-signal"]).spawn();
    let mut holder = own();
    let common = run(&site, "common", &[]).spawn();
    let older = run(&site, "both", &["-wforever"]).background();
    for line in ["own.lock", "common.lock"] {
        site.stands_in_line(line, &older);
    }
    run(&site, "either", &["-q", "-n"]).status(75);
    run(&site, "either", &["-q", "-w2s"]).status(124);
    holder.wait_for_echo();
    older.kill();
    eventually("no launch waits", || {
        ["own.lock", "common.lock"].iter().all(|line| site.line(line).is_empty()).then_some(())
    });
    let _older = run(&site, "common", &["-wforever"]).background();
    eventually("it waits", || (site.line("common.lock").len() == 1).then_some(()));
    run(&site, "either", &["-q", "-n"]).status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
    let mut holder = own();
    let mut either = run(&site, "either", &["-q", "-wforever"]).background();
    either.wait_for_echo();
    assert_eq!(holder.end().ending, Ending::Signal(2));
    assert_eq!(
        (pids(&site, "own.lock"), pids(&site, "common.lock")),
        (vec![either.pid()], vec![common.pid()])
    );
}

/// A waiter that does not answer is passed over, also where nobody can see that it is stopped: here those
/// behind it are in another PID namespace. Its place is its own when it goes on.
#[test]
pub(crate) fn a_head_that_cannot_be_seen_is_passed_over() {
    needs_root!();
    let site = site(1, "");
    let holder = runs(&site, "holder");
    let stopped = waits(&site, "stopped", &[]);
    site.stop_in_line("seats.lock", &stopped);
    let line = site.line("seats.lock").len();
    let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let _second = job(&site, "second", &["-wforever"]).through(apart).background();
    eventually("it stands in line", || (site.line("seats.lock").len() > line).then_some(()));
    holder.kill();
    assert_eq!(next(&site, 1), "second");
    // A launch that does not wait sees none but the stopped one, who answers nobody.
    assert_eq!(site.line("seats.lock").len(), 1);
    stopped.signal(Signal::SIGCONT);
}

/// The same with `hidepid=2`, where other users' processes are not to be seen at all, for a launch that does
/// not wait: only the line is in its way.
#[test]
pub(crate) fn a_head_whose_process_is_hidden_is_passed_over() {
    needs_root!();
    let site = site(1, "");
    let holder = runs(&site, "holder");
    let stopped = waits(&site, "stopped", &[]);
    set_mode(&site.repository("seats.lock"), 0o666);
    site.stop_in_line("seats.lock", &stopped);
    holder.kill();
    let Account { uid, gid, .. } = Account::named("games");
    let ids = [format!("--reuid={uid}"), format!("--regid={gid}"), "--init-groups".into()];
    let hide = "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"";
    let see = format!("test ! -e /proc/{} && exec \"$@\"", stopped.pid());
    let newcomer =
        job(&site, "newcomer", &["-n"]).through(["unshare", "--mount", "sh", "-c", hide, "sh", "setpriv"]);
    let begun = Instant::now();
    let mut newcomer = newcomer.through(ids).through(["sh", "-c", &see, "sh"]).background();
    newcomer.wait_for_echo();
    // Three looks, a second apart, must show no heartbeat.
    assert!(begun.elapsed() >= Duration::from_secs(3), "it was patient for {:?}", begun.elapsed());
    stopped.signal(Signal::SIGCONT);
    newcomer.kill();
    assert_eq!(next(&site, 1), "stopped");
}

/// The same where nothing shows that somebody is stopped, not even to root.
#[test]
pub(crate) fn a_newcomer_is_not_refused_because_of_somebody_frozen() {
    needs_root!();
    let Some(cgroup) = Cgroup::new() else { return };
    let site = site(1, "");
    let holder = runs(&site, "holder");
    let frozen = waits(&site, "frozen", &[]);
    // A launch that waits has the mutex for a moment still; to be frozen then is another matter.
    eventually("it is frozen without the mutex", || {
        cgroup.freeze(&frozen);
        let has_none = site.has_no_mutex("seats.lock");
        if !has_none {
            cgroup.thaw();
        }
        has_none.then_some(())
    });
    assert_eq!(frozen.state(), 'S', "nothing shows that it is frozen");
    holder.kill();
    let mut newcomer = job(&site, "newcomer", &["-n"]).background();
    assert_eq!(next(&site, 1), "newcomer");
    newcomer.wait_for_echo();
    // Behind it others wait, and one of them starts before it; when it goes on, it is first again.
    let second = waits(&site, "second", &[]);
    let third = waits(&site, "third", &[]);
    newcomer.kill();
    assert_eq!(next(&site, 2), "second");
    cgroup.thaw();
    // From its next beat on nobody passes it; that it has beaten can be seen.
    let place =
        site.line("seats.lock").iter().find(|waiter| waiter.pid == frozen.pid()).map(|waiter| waiter.number);
    let place = (1 << 62) + (place.expect("it kept its place") << 20);
    let beats = || site.lock_between("seats.lock", place, place + 1).map(|lock| lock.l_len);
    let before = beats();
    eventually("it beats", || (beats() != before).then_some(()));
    second.kill();
    assert_eq!(next(&site, 3), "frozen");
    frozen.kill();
    assert_eq!(next(&site, 4), "third");
    third.kill();
}

/// A cgroup whose processes can be frozen, and killed nevertheless.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Says why where there can be none.
    fn new() -> Option<Self> {
        // More than one test can be at it at the same time.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<&str>>());
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("rungate-test-line-{}-{number}", *RUN);
        let directory =
            fields.find(|fields| fields[2] == "cgroup2").map(|fields| Path::new(fields[1]).join(name));
        if let Some(directory) = directory {
            if fs::create_dir(&directory).is_ok() && directory.join("cgroup.freeze").exists() {
                return Some(Self(directory));
            }
            let _ = fs::remove_dir(&directory);
        }
        skip("no cgroup (version 2) can be made here, so nothing can be frozen");
        None
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).expect("a file of the cgroup");
    }

    fn freeze(&self, running: &Running) {
        self.write("cgroup.procs", &running.pid().to_string());
        self.write("cgroup.freeze", "1");
        eventually("it is frozen", || {
            let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
            events.contains("frozen 1").then_some(())
        });
    }

    fn thaw(&self) {
        self.write("cgroup.freeze", "0");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.thaw();
        eventually("the cgroup is empty", || fs::remove_dir(&self.0).ok());
    }
}

/// It stands in every line of every demand that is not met: a launch that wants one of two stood in the
/// line of the first alone, and 160 younger ones took the second.
#[test]
pub(crate) fn whoever_wants_one_of_two_is_passed_in_neither() {
    let site = Site::with_policy(
        r#"
        [repository.own]
        limit = 1

        [repository.common]
        limit = 1

        [[rule]]
        name     = "own"
        commands = ["own"]
        acquire  = ["own"]

        [[rule]]
        name     = "common"
        commands = ["common"]
        acquire  = ["common"]

        [[rule]]
        name     = "either"
        commands = ["either"]
        acquire  = [{ any_of = ["own", "common"] }]
        "#,
    );
    for name in ["own", "common", "either"] {
        site.script(name, &format!("#!/bin/sh\necho {name} $1 >>$DIR/order\nexec cat\n"));
    }
    let run =
        |command: &str, word: &str| site.test().args(["run", "-wforever", "--", command, word]).background();
    let _own = run("own", "first");
    assert_eq!(next(&site, 0), "own first");
    let common = run("common", "first");
    assert_eq!(next(&site, 1), "common first");
    let either = run("either", "");
    for line in ["own.lock", "common.lock"] {
        site.stands_in_line(line, &either);
    }
    // Not all at once: newcomers wait for the mutex with patience, and not for ever.
    let mut younger: Vec<Running> = Vec::new();
    while younger.len() < 160 {
        younger.extend((0..20).map(|number| run("common", &number.to_string())));
        let all = younger.len() + 1;
        eventually("all stand in line", || (site.line("common.lock").len() == all).then_some(()));
    }
    common.kill();
    assert_eq!(next(&site, 2), "either");
    // It is gone from the other line too.
    assert_eq!(site.line("own.lock"), []);
    drop(younger);
}

/// "No clock": a launch in a time namespace whose clock is ahead, or behind, stands where it came.
#[test]
pub(crate) fn another_clock_changes_no_place() {
    needs_root!();
    let site = site(1, "");
    let holder = runs(&site, "holder");
    let ahead = ["unshare", "--time", "--fork", "--kill-child", "--boottime", "1000000"];
    let in_line = |count: usize| {
        eventually("it stands in line", || (site.line("seats.lock").len() == count).then_some(()));
    };
    let first = job(&site, "first", &["-wforever"]).through(ahead).background();
    in_line(1);
    let second = waits(&site, "second", &[]);
    let third = job(&site, "third", &["-wforever"]).through(ahead).background();
    in_line(3);
    holder.kill();
    for (started, (name, running)) in
        [("first", first), ("second", second), ("third", third)].into_iter().enumerate()
    {
        assert_eq!(next(&site, started + 1), name);
        running.kill();
    }
}

/// A waiter in the queue never ends with 74: only newcomers do, and the line is what it was when the mutex is
/// free again.
#[test]
pub(crate) fn a_stuck_mutex_costs_nobody_in_line_their_place() {
    let site = site(1, "");
    let holder = runs(&site, "holder");
    let mut waiting: Vec<Running> = ["1", "2", "3"].map(|name| waits(&site, name, &[])).into();
    let line = site.line("seats.lock");
    let mutex = site.holder("seats.lock", ["posix", "write", "0:8"]);
    holder.kill();
    // Two, one after the other: whoever has to try for ten seconds has tried by then, and those behind them
    // too.
    for _ in 0..2 {
        job(&site, "newcomer", &["-n"])
            .stderr(
                "rungate: job: not started: [..]seats.lock stayed locked for 1[pid] s by PID [pid] (holder) of [..]\n\
                 End it if it is stuck: kill [pid]\n",
            )
            .status(74);
    }
    assert_eq!(site.line("seats.lock"), line);
    // A deadline is a deadline, also for one that cannot even look.
    let short = |options: &[&str]| job(&site, "newcomer", &[&["-w1s"], options].concat());
    short(&[])
        .stderr("rungate: job: not started: [..]seats.lock stayed locked for [pid] s by PID [pid] (holder) of [..]\n...\n")
        .status(124);
    short(&["-q", "-E3"]).status(3);
    drop(mutex);
    for (started, name) in ["1", "2", "3"].into_iter().enumerate() {
        assert_eq!(next(&site, started + 1), name);
        waiting.remove(0).kill();
    }
}

/// A waiter whose time runs out while the mutex is stuck ends like every other whose time runs out.
#[test]
pub(crate) fn a_deadline_is_kept_while_the_mutex_is_stuck() {
    let site = site(1, "");
    let holder = runs(&site, "holder");
    let mut waiter = job(&site, "waiter", &["-w4s"]).background();
    site.stands_in_line("seats.lock", &waiter);
    let mutex = site.holder("seats.lock", ["posix", "write", "0:8"]);
    drop(holder);
    let outcome = waiter.end();
    assert_eq!(outcome.ending, Ending::Status(124), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\n  seats  "), "it tells what it waited for: {}", outcome.stderr);
    drop(mutex);
}

/// A supervisor releases its slots first: with three repositories whose mutexes were stuck, `sleep 0.5`
/// took 30.5 s.
#[test]
pub(crate) fn a_supervised_program_ends_although_mutexes_are_stuck() {
    let site = Site::with_policy(
        r#"
        [repository.first]
        limit = 1

        [repository.second]
        limit = 1

        [repository.third]
        limit = 1

        [[rule]]
        name     = "all"
        commands = ["cat", "newcomer"]
        acquire  = ["first", "second", "third"]
        "#,
    );
    site.program("newcomer");
    let run = |hold: &str| site.test().args(["run", "--hold", hold, "--", "newcomer"]);
    for hold in ["supervisor", "tree"] {
        let mut supervised = run(hold).spawn();
        let names = ["first.lock", "second.lock", "third.lock"];
        let mutexes = names.map(|name| site.holder(name, ["posix", "write", "0:8"]));
        // It ends ten seconds later: whoever ends before it has not waited for a mutex.
        let mut clock = run(hold).background();
        supervised.close_stdin();
        let outcome = supervised.end();
        assert_eq!(outcome.ending, Ending::Status(0), "{hold}: {}", outcome.stderr);
        assert!(!clock.is_zombie(), "{hold}: it took ten seconds");
        for name in names {
            assert_eq!(site.held_numbers(name), [0; 0], "{hold}: {name}");
        }
        assert_eq!(clock.end().ending, Ending::Status(74));
        drop(mutexes);
    }
}
