//! `wait` 0 refuses at once. Otherwise the launch waits in a first-come-first-served line.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;

use crate::support::{
    Call, Ending, Observed, Observer, ProcessState, Running, Site, Test, Trace, alone_with_the_machine,
    eventually, is_over_the_agent, needs_root, needs_strace, seats, storm_size,
};

/// One seat, and a command that says that it runs by appending its argument to `$DIR/order`.
fn site(limit: u32) -> Site {
    let site = Site::with_policy(&seats(limit, "", &["matlab", "job"]));
    site.program("matlab");
    site.script("job", "#!/bin/sh\necho \"$1\" >>$DIR/order\nexec cat\n");
    site
}

pub(super) fn matlab(site: &Site) -> Test {
    site.test().args(["run", "--wait", "forever", "--", "matlab"])
}

fn job(site: &Site, name: &str) -> Test {
    site.test().args(["run", "--wait", "forever", "--", "job", name])
}

/// Starts a launch and returns when it waits for a seat.
#[track_caller]
pub(super) fn waits(site: &Site, test: &Test) -> Running {
    let running = test.background();
    site.stands_in_line("seats.lock", &running);
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

/// Numbers that look random, the same for one seed: a failure is available again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("smaller than the bound")
    }
}

/// First-come-first-served … a killed waiter leaves the line by dying: of 200 waiters for 3 seats 40 are
/// killed, half of them before anybody starts and half while the seats change hands; all others start in the
/// order in which they came.
#[test]
pub(crate) fn everybody_who_is_not_killed_starts_in_the_order_of_the_line() {
    let site = site(3);
    let mut holders: Vec<(String, Running)> = (0..3)
        .map(|seat| {
            let name = format!("holder {seat}");
            let running = job(&site, &name).background();
            assert_eq!(next(&site, seat), name);
            (name, running)
        })
        .collect();
    let mut waiters: Vec<(String, Running)> = (0..200)
        .map(|place| {
            let name = format!("waiter {place}");
            let running = waits(&site, &job(&site, &name));
            (name, running)
        })
        .collect();
    assert_eq!(site.line("seats.lock").len(), 200);

    let seed = u64::from(std::process::id()) << 20 | 1;
    let mut numbers = Numbers(seed);
    let mut victims = 0;
    while victims < 20 {
        let victim = numbers.below(waiters.len());
        waiters.remove(victim).1.kill();
        victims += 1;
    }
    let mut started = order(&site).len();
    while !waiters.is_empty() {
        if victims < 40 && waiters.len() > 1 && numbers.below(4) == 0 {
            let victim = numbers.below(waiters.len());
            waiters.remove(victim).1.kill();
            victims += 1;
        }
        holders.remove(numbers.below(holders.len())).1.kill();
        let (name, running) = waiters.remove(0);
        assert_eq!(next(&site, started), name, "with seed {seed}");
        started += 1;
        holders.push((name, running));
    }
    assert_eq!(victims, 40, "with seed {seed}");
    assert_eq!(started, 3 + 160);
    assert_eq!(site.line("seats.lock"), []);
}

/// SIGINT, SIGTERM and the deadline … end it at once with nothing left behind.
#[test]
pub(crate) fn a_signal_ends_the_wait_with_nothing_left_behind() {
    let site = site(1);
    let holder = matlab(&site).spawn();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut waiter = waits(&site, &matlab(&site));
        let mut behind = waits(&site, &matlab(&site));
        for running in [&mut waiter, &mut behind] {
            running.signal(signal);
            let outcome = running.end();
            assert_eq!(outcome.ending, Ending::Signal(signal as i32));
            assert_eq!(outcome.stdout, "");
        }
        assert_eq!(site.line("seats.lock"), []);
        assert_eq!(site.held_numbers("seats.lock"), [1]);
    }
    drop(holder);
    assert_eq!(site.lock_between("seats.lock", 0, i64::MAX).map(|lock| lock.l_pid), None);
}

/// Once a second every waiter takes one cheap look. Nothing else happens while it sleeps, neither in the
/// middle of the line nor at its head. (One at a time, because a tracer stops what it traces, and who is
/// stopped is passed over.)
#[test]
pub(crate) fn a_waiter_looks_once_a_second() {
    needs_strace!();
    let site = site(1);
    let _holder = matlab(&site).spawn();
    // The first look of the head comes at once: the holders could have left before it began to watch them.
    let (head, trace) = Trace::begin(&matlab(&site), "all", &["-T"]);
    looks_once_a_second(&trace.after(5, "poll("), "poll(", 100);
    head.kill();
    let _head = waits(&site, &matlab(&site));
    let (_second, trace) = Trace::begin(&matlab(&site), "all", &["-T"]);
    looks_once_a_second(&trace.after(5, "F_SETLKW"), "F_SETLKW", 30);
}

/// When a call ended, of which strace(1) was to tell how long it took.
fn ended(call: &Call) -> Option<f64> {
    let (_, took) = call.text.strip_suffix('>')?.rsplit_once('<')?;
    Some(call.begun + took.parse::<f64>().ok()?)
}

/// The calls show one sleep a second at most, and so many calls at most from one to the next. A sleep may be
/// begun late, and is the shorter then: what is a second apart are their ends.
#[track_caller]
fn looks_once_a_second(calls: &[Call], sleep: &str, most: usize) {
    let is_sleep = |call: &usize| calls[*call].text.contains(sleep) && ended(&calls[*call]).is_some();
    let sleeps: Vec<usize> = (0..calls.len()).filter(is_sleep).collect();
    assert!(sleeps.len() > 2, "{calls:#?}");
    for pair in sleeps[1..].windows(2) {
        let [first, second] = [pair[0], pair[1]].map(|call| ended(&calls[call]).expect("it has ended"));
        let apart = second - first;
        assert!(apart > 0.9, "{sleep} after {apart} s: {:#?}", &calls[pair[0]..=pair[1]]);
        let between = pair[1] - pair[0];
        assert!(between <= most, "{between} calls for one look: {:#?}", &calls[pair[0]..pair[1]]);
    }
}

/// A holder that was killed, and that nobody has reaped yet, is no reason to look more often: its slot may be
/// kept by others.
#[test]
pub(crate) fn the_head_sleeps_also_when_a_dead_supervisor_was_not_reaped() {
    needs_strace!();
    let site = site(1);
    let mut supervised = site.test().args(["run", "--hold", "supervisor", "--", "matlab"]).spawn();
    supervised.signal(Signal::SIGKILL);
    eventually("the supervisor is dead", || supervised.is_zombie().then_some(()));
    supervised.wait_for_echo();
    let (_head, trace) = Trace::begin(&matlab(&site), "all", &["-T"]);
    looks_once_a_second(&trace.after(5, "poll("), "poll(", 100);
}

/// Takes its ticket only in the line of the repository that blocked it, holds no slot while it waits.
#[test]
pub(crate) fn a_launch_that_waits_for_two_holds_neither() {
    for (full, free) in [("first", "second"), ("second", "first")] {
        let site = pair();
        let holder = run(&site, full, &[]).spawn();
        let waiter = run(&site, "both", &["-wforever"]).background();
        site.stands_in_line(&format!("{full}.lock"), &waiter);
        assert_eq!(site.held(&format!("{free}.lock")), []);
        assert_eq!(site.line(&format!("{free}.lock")), []);
        run(&site, free, &[]).status(0);
        drop(holder);
        let mut waiter = waiter;
        waiter.wait_for_echo();
        for name in ["first.lock", "second.lock"] {
            assert_eq!(pids(&site, name), [waiter.pid()]);
        }
    }
}

/// Two repositories with one slot each, and commands for each of them and for both.
fn pair() -> Site {
    let site = Site::with_policy(
        r#"
        [repository.first]
        limit = 1

        [repository.second]
        limit = 1

        [[rule]]
        name     = "one"
        commands = ["first"]
        acquire  = ["first"]

        [[rule]]
        name     = "the other"
        commands = ["second"]
        acquire  = ["second"]

        [[rule]]
        name     = "both"
        commands = ["both"]
        acquire  = ["first", "second"]

        [[rule]]
        name     = "both, the other way round"
        commands = ["htob"]
        acquire  = ["second", "first"]
        "#,
    );
    for name in ["first", "second", "both", "htob"] {
        site.program(name);
    }
    site
}

pub(super) fn run(site: &Site, command: &str, options: &[&str]) -> Test {
    site.test().args(["run"]).args(options).args(["--", command])
}

pub(super) fn pids(site: &Site, repository: &str) -> Vec<i32> {
    site.held(repository).iter().map(|slot| slot.pid).collect()
}

/// Every wait points to an older launch, and no circle can form (numbers given out by each file for itself
/// did deadlock: A before B here, B before A there). B is held, Y (A and B) waits; A is held, X (A and B)
/// waits; A is freed, then B.
#[test]
pub(crate) fn launches_that_wait_for_the_same_two_do_not_wait_for_each_other() {
    needs_strace!();
    for (a, b, both) in [("first", "second", ["both", "htob"]), ("second", "first", ["htob", "both"])] {
        for [x, y] in [[both[0], both[1]], [both[1], both[0]], [both[0], both[0]]] {
            let site = pair();
            let holder_of_b = run(&site, b, &[]).spawn();
            let (y, trace_of_y) = Trace::begin(&run(&site, y, &["-wforever"]), "fcntl", &[]);
            site.stands_in_line(&format!("{b}.lock"), &y);
            let holder_of_a = run(&site, a, &[]).spawn();
            let (x, trace_of_x) = Trace::begin(&run(&site, x, &["-wforever"]), "fcntl", &[]);
            eventually("x stands in a line", || {
                let lines = [site.line("first.lock"), site.line("second.lock")].concat();
                lines.iter().any(|waiter| waiter.pid == x.pid()).then_some(())
            });
            holder_of_a.kill();
            holder_of_b.kill();
            // Y is the older one; but the tracer stops both again and again, and whoever is stopped is passed
            // over.
            let first = eventually("one of them starts", || {
                pids(&site, "first.lock").into_iter().find(|pid| [x.pid(), y.pid()].contains(pid))
            });
            let in_order = if first == y.pid() { [y, x] } else { [x, y] };
            for mut running in in_order {
                running.wait_for_echo();
                // Whoever starts has both: also when it was decided while the other one was stopped, and
                // taken when not.
                for repository in ["first.lock", "second.lock"] {
                    assert_eq!(pids(&site, repository), [running.pid()], "{repository}");
                }
                running.kill();
            }
            for trace in [trace_of_x, trace_of_y] {
                let calls = trace.calls();
                assert!(calls.iter().any(|call| call.text.contains("F_SETLK")), "{calls:#?}");
                assert!(calls.iter().all(|call| !call.text.contains("EDEADLK")), "{calls:#?}");
            }
        }
    }
}

/// With opposite orders and hundreds of launches, a hundred at a time, nothing blocks, nobody gets in beside
/// another, and everybody gets in. `RUNGATE_STORM=0.2` makes it a hundred in all.
#[test]
pub(crate) fn a_storm_of_opposite_orders_comes_to_its_end() {
    const AT_A_TIME: usize = 100;
    let site = pair();
    let mut observer = Observer::watch(&site, [("first.lock", 1), ("second.lock", 1)]);
    // What ends at once may never be seen; that the observer would see it, shows one that stays.
    let holder = run(&site, "both", &[]).spawn();
    assert!(observer.report().iter().all(|seen| *seen == Observed { most: 1, violations: 0 }));
    holder.kill();
    for name in ["first", "second", "both", "htob"] {
        site.copy_of("/bin/true", name);
    }
    let ends = |mut launch: Running| {
        let outcome = launch.end();
        assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""));
    };
    let mut launches: VecDeque<Running> = VecDeque::new();
    for number in 0..storm_size(500) {
        if launches.len() == AT_A_TIME {
            launches.pop_front().into_iter().for_each(ends);
        }
        let command = ["both", "htob", "first", "both", "htob", "second"][number % 6];
        launches.push_back(run(&site, command, &["-qwforever"]).background());
    }
    launches.into_iter().for_each(ends);
    for seen in observer.report() {
        assert_eq!(seen, Observed { most: 1, violations: 0 });
    }
}

/// A blocker that is stopped (state T or t) is passed over, and comes back to its place when it is
/// continued.
#[test]
pub(crate) fn a_stopped_waiter_is_passed_over_and_keeps_its_place() {
    let site = site(1);
    let first = matlab(&site).spawn();
    let mut stopped = waits(&site, &matlab(&site));
    let mut second = waits(&site, &matlab(&site));
    let mut third = waits(&site, &matlab(&site));
    let place = site.line("seats.lock")[0];
    // Until then it answers: an agent gives it the slot.
    site.stop_in_line("seats.lock", &stopped);
    first.kill();
    second.wait_for_echo();
    assert_eq!(site.line("seats.lock")[0], place, "it stands where it stood");
    // Continued, it is the first again, before the one that waited behind it and is at the head by now: at
    // the latest from its next beat on.
    let beats = || {
        let place = (1 << 62) + (place.number << 20);
        let is_file = !is_over_the_agent();
        is_file.then(|| site.lock_between("seats.lock", place, place + 1).map(|lock| lock.l_len))
    };
    let before = beats();
    stopped.signal(Signal::SIGCONT);
    eventually("it beats", || {
        // An agent does not show it.
        let has_beaten = if before.is_some() { beats() != before } else { stopped.state() == 'S' };
        has_beaten.then_some(())
    });
    second.kill();
    stopped.wait_for_echo();
    // Who has slept on the place of another one locks that for a moment.
    eventually("the third alone waits", || {
        let line = site.line("seats.lock");
        (line.iter().map(|waiter| waiter.pid).collect::<Vec<_>>() == [third.pid()]).then_some(())
    });
    stopped.kill();
    third.wait_for_echo();
}

/// A student who waits below their ceiling of 30 must not hold up staff with a limit of 50.
#[test]
pub(crate) fn a_student_who_waits_below_his_ceiling_does_not_hold_up_staff() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "everybody"
        commands = ["staff", "student"]
        acquire  = ["seats"]

        [[rule]]
        name     = "students leave room"
        commands = ["student"]
        acquire  = [{ repository = "seats", ceiling = 1 }]
        "#,
    );
    site.program("staff");
    site.program("student");
    let student = || run(&site, "student", &["-wforever"]);
    let staff = || run(&site, "staff", &["-wforever"]);
    let first = student().spawn();
    let mut waiting = student().background();
    site.stands_in_line("seats.lock", &waiting);
    // There is room for staff: also for one who does not wait.
    let second = run(&site, "staff", &[]).spawn();
    let third = staff().spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    // Among themselves they are served in order, and the older student does not stand in their way.
    let mut fourth = staff().background();
    site.stands_in_line("seats.lock", &fourth);
    second.kill();
    fourth.wait_for_echo();
    // A student behind a member of staff is behind them: their limit is not lower.
    let mut fifth = staff().background();
    eventually("the fifth stands in line", || (site.line("seats.lock").len() == 2).then_some(()));
    first.kill();
    fifth.wait_for_echo();
    for running in [third, fourth] {
        running.kill();
    }
    assert_eq!(site.held_numbers("seats.lock").len(), 1);
    assert_eq!(site.line("seats.lock").len(), 1, "two fewer than the limit, and still not below one");
    fifth.kill();
    waiting.wait_for_echo();
}

/// The same of a student with a policy of their own: what it adds does not make the limits of the system's
/// incomparable.
#[test]
fn a_students_own_policy_does_not_hold_up_staff() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "everybody"
        commands = ["staff", "student"]
        acquire  = ["seats"]

        [[rule]]
        name     = "students leave room"
        commands = ["student"]
        acquire  = [{ repository = "seats", ceiling = 1 }]
        "#,
    );
    for command in ["staff", "student"] {
        site.program(command);
        site.account(command, &[]);
    }
    let when =
        "[[rule]]\nname = \"never\"\ncommands = [\"none\"]\nwhen = [\"08:00-18:00\"]\naction = \"deny\"\n";
    site.own_policy(&site.user("student"), when);
    site.write("given.toml", &format!("version = 1\n{when}"));
    let student = || run(&site, "student", &["-wforever"]).user("student");
    let first = student().spawn();
    for waiting in [student(), student().env("RUNGATE_POLICY", "$DIR/given.toml")] {
        let waiting = waiting.background();
        site.stands_in_line("seats.lock", &waiting);
        let staff = || run(&site, "staff", &[]).user("staff").spawn();
        let _staff = [staff(), staff()];
        assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    }
    first.kill();
}

/// A newcomer without `wait` is refused when it is blocked, rather than overtaking.
#[test]
pub(crate) fn nobody_overtakes_the_line() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "two seats"
        commands = ["large"]
        acquire  = [{ repository = "seats", slots = 2 }]

        [[rule]]
        name     = "one seat"
        commands = ["small"]
        acquire  = ["seats"]
        "#,
    );
    site.program("large");
    site.program("small");
    let holder = run(&site, "large", &[]).spawn();
    let mut waiter = run(&site, "large", &["-wforever"]).background();
    site.stands_in_line("seats.lock", &waiter);
    run(&site, "small", &[])
        .stderr(&format!(
            "
            rungate: small: not started: others wait in the queue for what is left
              seats  2 of 3 used, 1 waiting
                  rule \"one seat\", $DIR/policy.toml:[..]
                  PID {} [..] large, 2 slots, since [time] ([age])
                  first in line: PID {} [..] large, 2 slots wanted, since [time] ([age])
            Try again later, or wait in the queue: rungate run --wait 30m -- small
            To see why: rungate explain -- small
            ",
            holder.pid(),
            waiter.pid(),
        ))
        .status(75);
    let mut behind = run(&site, "small", &["-wforever"]).background();
    site.stands_in_line("seats.lock", &behind);
    drop(holder);
    waiter.wait_for_echo();
    behind.wait_for_echo();
}

/// The policy may have changed, and then the launch is decided again: a higher limit lets it start, with a
/// slot that it keeps, and that also when the new policy lets nobody wait any more.
#[test]
pub(crate) fn a_higher_limit_ends_the_wait() {
    for (wait, hold) in
        [("forever", "process"), ("0s", "process"), ("0s", "supervisor"), ("1h", "descriptor")]
    {
        let is_shown = (0..5).any(|_| a_higher_limit_lets_them_start("process", wait, hold));
        assert!(is_shown, "the machine is too slow for this test");
    }
}

/// Who waits under a stronger hold has another descriptor of the repository. It must not take the lock of the
/// process with it when the program is executed.
#[test]
pub(crate) fn a_hold_that_becomes_weaker_meanwhile_loses_no_slot() {
    for stronger in ["descriptor", "supervisor", "tree"] {
        assert!(a_higher_limit_lets_them_start(stronger, "forever", "process"), "{stronger}");
    }
}

/// Whether there was time to see it: where the new policy lets nobody wait, those ahead have three seconds to
/// see it, and whoever has to wait for longer is out of time.
fn a_higher_limit_lets_them_start(first: &str, wait: &str, hold: &str) -> bool {
    let site = changing("forever", first, 1, "");
    let _holder = run(&site, "matlab", &[]).spawn();
    let mut waiter = waits(&site, &run(&site, "matlab", &[]));
    let mut second = waits(&site, &run(&site, "matlab", &[]));
    let begun = Instant::now();
    change(&site, wait, hold, 3, "");
    if !(waiter.answers() && second.answers()) {
        assert!(wait == "0s" && begun.elapsed() > Duration::from_secs(3), "wait = {wait}, hold = {hold}");
        return false;
    }
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3], "wait = {wait}, hold = {hold}");
    assert_eq!(site.line("seats.lock"), [], "wait = {wait}, hold = {hold}");
    true
}

/// The same, where the new policy refuses the command, lets nobody wait, or lets the command start without a
/// seat.
#[test]
pub(crate) fn a_waiter_obeys_the_policy_that_is_in_force() {
    let site = changing("forever", "process", 1, "");
    let holder = run(&site, "matlab", &[]).spawn();
    let mut waiter = waits(&site, &run(&site, "matlab", &[]));
    change(
        &site,
        "forever",
        "process",
        1,
        "[[rule]]\nname = \"closed\"\ncommands = [\"matlab\"]\naction = \"deny\"\n",
    );
    assert_eq!(waiter.end().ending, Ending::Status(77));

    change(&site, "forever", "process", 1, "");
    let mut waiter = waits(&site, &run(&site, "matlab", &[]));
    change(&site, "0s", "process", 1, "");
    assert_eq!(waiter.end().ending, Ending::Status(124), "it has waited, and the time is over");

    change(&site, "forever", "process", 1, "");
    let mut waiter = waits(&site, &run(&site, "matlab", &[]));
    let everybody = "[[rule]]\nname = \"free\"\ncommands = [\"matlab\"]\naction = \"exempt\"\n";
    change(&site, "0s", "supervisor", 1, everybody);
    waiter.wait_for_echo();
    assert_eq!(pids(&site, "seats.lock"), [holder.pid()]);
    assert_eq!(site.line("seats.lock"), [], "it has left the line");
}

pub(super) fn changing(wait: &str, hold: &str, limit: usize, more: &str) -> Site {
    let site = Site::new();
    change(&site, wait, hold, limit, more);
    site.program("matlab");
    site
}

pub(super) fn change(site: &Site, wait: &str, hold: &str, limit: usize, more: &str) {
    site.policy(&format!(
        "defaults.wait = \"{wait}\"\ndefaults.hold = \"{hold}\"\n\
        [repository.seats]\nlimit = {limit}\n\
        [[rule]]\nname = \"seats\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n{more}"
    ));
}

pub(super) const ALTERNATIVES: &str = r#"
    [repository.own]
    limit = 1
    MORE

    [repository.common]
    limit = 1

    [[rule]]
    name     = "own only"
    commands = ["own"]
    acquire  = ["own"]

    [[rule]]
    name     = "common only"
    commands = ["common"]
    acquire  = ["common"]

    [[rule]]
    name     = "either"
    commands = ["either"]
    acquire  = [{ any_of = ["own", "common"] }]
"#;

pub(super) fn alternatives(more: &str) -> Site {
    let site = Site::with_policy(&ALTERNATIVES.replace("MORE", more));
    for name in ["own", "common", "either"] {
        site.program(name);
    }
    site
}

/// `any_of`: the first that is available, in order also for one that waits, wherever it stands in the line.
#[test]
pub(crate) fn a_waiter_takes_the_alternative_that_is_free_first() {
    let site = alternatives("");
    let own = run(&site, "own", &[]).spawn();
    let common = run(&site, "common", &[]).spawn();
    let _ahead = {
        let waiter = run(&site, "own", &["-wforever"]).background();
        site.stands_in_line("own.lock", &waiter);
        waiter
    };
    let mut either = run(&site, "either", &["-wforever"]).background();
    site.stands_in_line("own.lock", &either);
    common.kill();
    either.wait_for_echo();
    assert_eq!(pids(&site, "common.lock"), [either.pid()]);
    assert_eq!(pids(&site, "own.lock"), [own.pid()]);
    assert_eq!(site.line("own.lock").len(), 1);
}

/// Too soon … is never waited for: but for an alternative that is full one can wait.
#[test]
pub(crate) fn an_alternative_that_is_too_soon_leaves_the_other_to_wait_for() {
    let site = alternatives("if_elapsed = \"1h\"");
    run(&site, "own", &[]).status(0);
    let common = run(&site, "common", &[]).spawn();
    run(&site, "either", &[])
        .stderr(
            "
            rungate: either: not started: both limits are reached
              own  too soon: not before [time] (if_elapsed = \"1h\")
                  rule \"either\", $DIR/policy.toml:[..]
              common  1 of 1 used
                  rule \"either\", $DIR/policy.toml:[..]
                  PID [pid] [..] common, since [time] ([age])
            Close one of yours, or wait in the queue: rungate run --wait 30m -- either
            To see why: rungate explain -- either
            To end the oldest of yours: rungate end common [pid]
            ",
        )
        .status(75);
    let mut either = run(&site, "either", &["-wforever"]).background();
    site.stands_in_line("common.lock", &either);
    assert_eq!(site.line("own.lock"), []);
    common.kill();
    either.wait_for_echo();
    assert_eq!(pids(&site, "common.lock"), [either.pid()]);
}

/// Two choices that could each be available, and not both: the claims on one file are one claim.
#[test]
pub(crate) fn alternatives_that_exclude_each_other_can_be_waited_for() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 10

        [repository.spare]
        limit = 0

        [[rule]]
        name     = "holder"
        commands = ["holder"]
        acquire  = ["seats"]

        [[rule]]
        name     = "one of few"
        commands = ["matlab"]
        acquire  = [{ any_of = [{ repository = "seats", ceiling = 2 }, "spare"] }]

        [[rule]]
        name     = "two of many"
        commands = ["matlab"]
        acquire  = [{ any_of = [{ repository = "seats", slots = 2 }, "spare"] }]
        "#,
    );
    site.program("matlab");
    site.program("holder");
    let holder = run(&site, "holder", &[]).spawn();
    run(&site, "matlab", &[])
        .stderr("rungate: matlab: not started: all 4 limits are reached\n  seats  1 of 2 used\n...\n")
        .status(75);
    let mut waiter = run(&site, "matlab", &["-wforever"]).background();
    site.stands_in_line("seats.lock", &waiter);
    holder.kill();
    waiter.wait_for_echo();
    assert_eq!(site.held_numbers("seats.lock").len(), 2);
}

/// The head sleeps on the holders' pidfds, opened before one more look, so that no wake-up is lost: also
/// the one that arrives just when the slot changes hands, finds it free and the other one ahead, and is slow.
#[test]
pub(crate) fn a_launch_that_arrives_in_the_middle_of_a_hand_over_misses_nothing() {
    needs_strace!();
    let site = site(1);
    let holder = matlab(&site).spawn();
    let mut head = waits(&site, &matlab(&site));
    let slow = "inject=fcntl:delay_enter=30ms";
    let (mut late, trace) = Trace::begin(&matlab(&site), "fcntl,poll", &["-e", slow]);
    eventually("the late one has the mutex", || {
        site.lock_between("seats.lock", 0, 8).filter(|lock| lock.l_pid == late.pid())
    });
    holder.kill();
    head.wait_for_echo();
    head.kill();
    let freed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs_f64();
    late.wait_for_echo();
    let calls = trace.calls();
    // Until the slot was free it may have slept for a second, and again; since then it has not slept to the
    // end of one.
    let milliseconds = |call: &Call| -> Option<f64> {
        let (_, rest) = call.text.split_once("], ")?;
        rest.split_once(", ")?.1.split_once(')')?.0.trim().parse().ok()
    };
    let polls = calls.iter().filter(|call| call.text.contains("poll("));
    let timed_out = polls.filter(|call| call.text.contains("Timeout"));
    let asleep = timed_out.filter(|call| call.begun + milliseconds(call).expect("a time") / 1000.0 > freed);
    assert_eq!(asleep.collect::<Vec<&Call>>(), Vec::<&Call>::new(), "freed at {freed}: {calls:#?}");
}

/// `reserve` keeps slots 1…n of the file for the members of `for`: also from a line of those who may not
/// use them.
#[test]
pub(crate) fn whoever_may_not_use_a_reserved_slot_does_not_hold_up_its_owner() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&seats(3, "reserve = [{ users = [\"games\"], slots = 1 }]", &["matlab"]));
    site.program("matlab");
    let matlab = |user| site.test().user(user).args(["run", "--wait", "forever", "--", "matlab"]);
    let first = matlab("backup").spawn();
    let _second = matlab("backup").spawn();
    let mut waiter = matlab("backup").background();
    eventually("it stands in line", || (site.line("seats.lock").len() == 1).then_some(()));
    let member = matlab("games").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    // A member who has to wait for what is not reserved waits in the queue like everybody.
    let mut second_member = matlab("games").background();
    eventually("it stands in line", || (site.line("seats.lock").len() == 2).then_some(()));
    drop(member);
    second_member.wait_for_echo();
    first.kill();
    waiter.wait_for_echo();
}

/// One that has been sent back eight times keeps its tickets in all its lines, so that it cannot starve; but
/// where it is first and there is room, for ten seconds at most, so that no cap stands idle.
#[test]
pub(crate) fn a_launch_that_was_sent_back_eight_times_keeps_both_places() {
    let is_shown = (0..5).any(|_| both_places_are_kept());
    assert!(is_shown, "the machine is too slow for this test");
}

/// Whether there was time to see it, which is ten seconds.
fn both_places_are_kept() -> bool {
    let site = pair();
    let mut holders = vec![run(&site, "first", &[]).spawn()];
    let mut waiter = run(&site, "both", &["-wforever"]).background();
    site.stands_in_line("first.lock", &waiter);
    let mut begun = Instant::now();
    let lines = |site: &Site| {
        let is_mine = |line: &str| site.line(line).iter().any(|ticket| ticket.pid == waiter.pid());
        (is_mine("first.lock"), is_mine("second.lock"))
    };
    for moves in 1..=8 {
        let (next, line) = if moves % 2 == 1 { ("second", "second.lock") } else { ("first", "first.lock") };
        // Where it does not wait in the queue yet, anybody may come in between.
        begun = Instant::now();
        holders.push(run(&site, next, &[]).spawn());
        holders.remove(0).kill();
        site.stands_in_line(line, &waiter);
        let expected = (moves % 2 == 0 || moves == 8, moves % 2 == 1 || moves == 8);
        // For as long as both were held it may have stood in both.
        if moves < 8 {
            let stands = || (lines(&site) == expected).then_some(());
            eventually(&format!("it stands in {expected:?} after {moves} moves"), stands);
        }
    }
    // It has kept its place in the second line, where there is room: whoever comes now does not overtake it …
    let has_given_up = || begun.elapsed() > Duration::from_secs(10);
    let in_both = eventually("it stands in both", || {
        let in_both = lines(&site) == (true, true);
        (in_both || has_given_up()).then_some(in_both)
    });
    let newcomer = run(&site, "second", &[]).outcome();
    if has_given_up() {
        return false;
    }
    let refused = "rungate: second: not started: others wait in the queue for what is left\n";
    let is_refused = newcomer.ending == Ending::Status(75) && newcomer.stderr.starts_with(refused);
    assert!(in_both && is_refused, "{newcomer:?}");
    // … but after ten seconds the slot does not stand idle any more.
    let mut patient = run(&site, "second", &["-wforever"]).background();
    patient.wait_for_echo();
    assert_eq!(pids(&site, "second.lock"), [patient.pid()]);
    // A second later it finds that one in its way, and stands in both again.
    let (in_first, in_second) = lines(&site);
    assert!(in_first, "it has left the line where it is first");
    if in_second {
        return false;
    }
    drop(patient);
    drop(holders);
    waiter.wait_for_echo();
    true
}

/// A program that had to wait is given everything as it came, like one that had not.
#[test]
pub(crate) fn a_wait_leaves_no_trace_in_the_program() {
    for hold in ["process", "descriptor"] {
        let site = changing("forever", hold, 1, "");
        let prefix = ["nice", "-n5", "env", "--ignore-signal=ALRM,HUP", "--block-signal=USR1,TSTP"];
        let plain = site.test().program(site.path("bin/matlab")).through(prefix).spawn();
        let mut plain = ProcessState::of(plain.pid(), "matlab");
        let first = run(&site, "matlab", &[]).spawn();
        let second = waits(&site, &run(&site, "matlab", &[]));
        let mut waiter = waits(&site, &run(&site, "matlab", &["-q"]).through(prefix));
        // From the middle of the line to its head, and from there to the slot.
        second.kill();
        first.kill();
        waiter.wait_for_echo();
        let mut state = ProcessState::of(waiter.pid(), "matlab");
        let name = fs::read_to_string(format!("/proc/{}/comm", waiter.pid())).expect("its name");
        assert_eq!(name, "matlab\n");
        assert_eq!((&state.status, &state.limits), (&plain.status, &plain.limits), "{hold}");
        assert_eq!(state.scheduling, plain.scheduling, "{hold}");
        for process in [&mut state, &mut plain] {
            process.environment.retain(|entry| !entry.to_string_lossy().starts_with("RUNGATE_"));
        }
        assert_eq!(state.environment, plain.environment, "{hold}");
        state.descriptors.retain(|number, _| !plain.descriptors.contains_key(number));
        let more: Vec<PathBuf> = state.descriptors.into_values().collect();
        assert_eq!(more, [site.repository("seats.lock")], "{hold}");
        let timers = fs::read_to_string(format!("/proc/{}/timers", waiter.pid())).unwrap_or_default();
        assert_eq!(timers, "", "{hold}");
    }
}

/// `perl -e 'alarm 300; exec @ARGV'` ends what it starts after five minutes, also while that waits: the alarm
/// is not rungate's.
#[test]
pub(crate) fn an_alarm_of_the_caller_ends_the_wait() {
    let site = site(1);
    let holder = matlab(&site).spawn();
    let _head = waits(&site, &matlab(&site));
    // It must wait in the queue before.
    let was_in_time = [2, 15, 60].into_iter().any(|seconds| {
        let alarm = format!("alarm {seconds}; exec @ARGV");
        let mut in_the_line = matlab(&site).through(["perl", "-e", &alarm]).background();
        let stood = eventually("it stands in line, or has ended", || {
            let stands = site.line("seats.lock").iter().any(|waiter| waiter.pid == in_the_line.pid());
            (stands || in_the_line.is_zombie()).then_some(stands)
        });
        assert_eq!(in_the_line.end().ending, Ending::Signal(14));
        stood
    });
    assert!(was_in_time, "the machine is too slow for this test");
    drop(holder);
}

/// A line may be long: who comes to its end asks a few dozen questions to find the one before them, and not
/// one for everybody in it, all of them while nobody else can start.
#[test]
pub(crate) fn the_end_of_a_long_line_is_found_quickly() {
    needs_strace!();
    // The kernel lists the locks of the whole host, and may leave out some while thousands come and go.
    let _alone = alone_with_the_machine();
    let site = site(1);
    site.test().args(["run", "--", "matlab"]).status(0);
    // Those whose limit is 1, one after the other, as many launches would stand there, each with its place.
    let locks = |number: u64| [(1 << 61) + (number << 32) + 1, (1 << 62) + (number << 20)];
    let numbers = (0..1000_u64).map(|number| 1000 + 37 * number);
    let places: Vec<String> = numbers.flat_map(locks).map(|byte| format!("{byte}:1")).collect();
    let words: Vec<&str> = ["ofd", "read"].into_iter().chain(places.iter().map(String::as_str)).collect();
    let _line = site.holder("seats.lock", words);
    let (newcomer, trace) =
        Trace::begin(&site.test().args(["run", "-q", "-w", "forever", "--", "matlab"]), "fcntl", &[]);
    site.stands_in_line("seats.lock", &newcomer);
    let calls = trace.calls();
    // From then on it looks once a second, for as long as it takes to come here.
    let stands = |call: &Call| {
        let start = call.text.split_once("l_start=").map_or("", |(_, rest)| rest);
        let start = start.split(|c: char| !c.is_ascii_digit()).next().and_then(|start| start.parse().ok());
        call.text.contains("SETLK") && start.is_some_and(|start: u64| (1 << 61..1 << 62).contains(&start))
    };
    let sleeps = |call: &Call| call.text.contains("F_SETLKW") || call.text.contains("F_OFD_SETLKW");
    let stood = calls.iter().position(stands).unwrap_or(calls.len());
    let until = calls[stood..].iter().skip(1).take_while(|call| !sleeps(call)).count();
    let count = stood + until;
    assert!(count < 1000, "{count} calls");
}
