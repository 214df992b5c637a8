//! `expire_after`: when a repository refuses and a holder is older than this, and only then, it is ended:
//! pidfd opened, then checked that this very process still holds the slot, then CONT, INT, TERM, KILL,
//! `expire_grace` apart.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::agent::remote::REMOTE;
use crate::support::{
    Ending, Running, Site, Terminal, Test, Trace, eventually, given_time, is_over_the_agent, listing,
    needs_root, needs_strace, needs_tmux, skip, sleeps_of, start_of, state_of,
};

/// A repository with this limit, and more of its keys; `job` wants one slot of it, `large` wants two.
fn site(limit: u32, keys: &str) -> Site {
    let site = Site::with_policy(&policy(limit, keys));
    site.program("job");
    site
}

fn policy(limit: u32, keys: &str) -> String {
    format!(
        r#"
        [repository.seats]
        limit = {limit}
        {keys}

        [[rule]]
        name     = "seats"
        commands = ["job"]
        acquire  = ["seats"]

        [[rule]]
        name     = "two seats"
        commands = ["large"]
        acquire  = [{{ repository = "seats", slots = {} }}]
        "#,
        limit.min(2)
    )
}

/// Whatever holds a slot is overdue by the time that a test has seen it run. It has as long as it needs to
/// end by itself.
const OVERDUE: &str = "expire_after = \"1ms\"\nexpire_grace = \"10m\"";

/// Graces, of which one is enough for a process to see a signal before the next comes, and to be gone after
/// the last.
const GRACES: [&str; 3] = ["150ms", "3s", "20s"];

/// The same for those who do not end by themselves.
fn overdue(grace: &str) -> String {
    format!("expire_after = \"1ms\"\nexpire_grace = \"{grace}\"")
}

fn job(site: &Site) -> Test {
    site.test().args(["run", "--", "job"])
}

/// Does not end when it is asked to, and records each signal in `$DIR/work/signals`.
#[track_caller]
fn stubborn(site: &Site, options: &[&str]) -> Running {
    stubborn_as(site, "job", options, "signals")
}

/// The same as this command, and with this file.
#[track_caller]
fn stubborn_as(site: &Site, command: &str, options: &[&str], file: &str) -> Running {
    let witness = site.helper("witness");
    let job = site.test().args(["run", "--as", command]).args(options).args(["--"]).args([&witness]);
    job.args([format!("$DIR/work/{file}")]).through(["env", "--default-signal"]).spawn()
}

/// It was continued and asked twice. The first two signals come at once, so that either may be seen first; a
/// supervisor that was stopped passes the first one on.
#[track_caller]
fn was_asked(site: &Site) {
    let mut seen = signals(site);
    assert_eq!(seen.pop().as_deref(), Some("SIGTERM"));
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["SIGCONT", "SIGINT"]);
}

fn signals(site: &Site) -> Vec<String> {
    signals_in(site, "signals")
}

fn signals_in(site: &Site, file: &str) -> Vec<String> {
    let text = fs::read_to_string(site.path("work").join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The process id of the command that this launch holds its slot for. A supervisor writes it down when the
/// command runs.
#[track_caller]
fn command_of(site: &Site, launch: &Running) -> i32 {
    if is_over_the_agent() {
        return eventually("the command is listed", || {
            let holder = &listing(&site.test())[0]["holders"][0];
            let pid = i32::try_from(holder["pid"].as_i64()?).ok()?;
            let is_a_child = matches!(holder["hold"].as_str(), Some("supervisor" | "tree"));
            (is_a_child == (pid != launch.pid())).then_some(pid)
        });
    }
    eventually("the record names the command", || {
        let record = record(site);
        let pid = i32::try_from(record["pid"].as_i64()?).ok()?;
        (pid != launch.pid() || record["supervisor"].is_null()).then_some(pid)
    })
}

const HOLDS: [&str; 4] = ["process", "descriptor", "supervisor", "tree"];

/// A program that ignores INT and TERM and is overdue is ended in CONT, INT, TERM, KILL order by the next
/// launch, which then starts, although that does not wait.
#[test]
pub(crate) fn an_overdue_holder_is_ended_in_order_by_the_next_launch() {
    for hold in HOLDS {
        given_time(&GRACES, |grace| {
            let site = site(1, &overdue(grace));
            let mut holder = stubborn(&site, &["--hold", hold]);
            let pid = command_of(&site, &holder);
            job(&site)
                .stderr(&format!("rungate: seats: ended PID {pid} (job), overdue by [age], with SIGKILL\n"))
                .status(0);
            was_asked(&site);
            assert_eq!(holder.end().ending, Ending::Signal(9), "{hold}");
        });
    }
}

/// The order itself, as the launcher sends them: CONT, INT, TERM, KILL.
#[test]
pub(crate) fn the_signals_are_sent_in_this_order() {
    needs_strace!();
    for hold in HOLDS {
        given_time(&GRACES, |grace| {
            let site = site(1, &overdue(grace));
            let _holder = stubborn(&site, &["--hold", hold]);
            let (mut next, trace) = Trace::begin(&job(&site), "pidfd_send_signal,kill", &[]);
            next.wait_for_echo();
            let calls = trace.calls();
            let sent = calls.iter().filter_map(|call| {
                let is_sent = call.text.starts_with("pidfd_send_signal") && call.text.ends_with(" = 0");
                let name = call.text.split([',', ' ', ')']).find(|word| word.starts_with("SIG"));
                name.filter(|_| is_sent).map(str::to_owned)
            });
            let mut sent: Vec<String> = sent.collect();
            sent.dedup();
            assert_eq!(sent, ["SIGCONT", "SIGINT", "SIGTERM", "SIGKILL"], "{hold}: {calls:#?}");
            let apart = |first: usize| calls[first + 1].begun - calls[first].begun;
            let first = calls.iter().position(|call| call.text.contains("SIGINT")).expect("it was sent");
            assert!(apart(first) > 0.14 && apart(first + 1) > 0.14, "{hold}: {calls:#?}");
        });
    }
}

/// One that ends when it is asked to is not asked twice. With `-q` the launch that ends it prints nothing
/// about it.
#[test]
pub(crate) fn an_overdue_holder_may_end_by_itself() {
    let patient = site(1, OVERDUE);
    for hold in HOLDS {
        let job = |site: &Site, signals: &str| {
            site.test().args(["run", "--hold", hold, "--", "job"]).through(["env", signals])
        };
        let ends = job(&patient, "--default-signal");
        let mut holder = ends.spawn();
        patient.test().args(["run", "-q", "--", "job"]).status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
        let mut holder = ends.spawn();
        let pid = command_of(&patient, &holder);
        let said = format!("rungate: seats: ended PID {pid} (job), overdue by [age], with SIGINT\n");
        ends.stderr(&said).status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
        given_time(&GRACES, |grace| {
            let site = site(1, &overdue(grace));
            let mut holder = job(&site, "--default-signal").through(["env", "--ignore-signal=INT"]).spawn();
            let pid = command_of(&site, &holder);
            let said = format!("rungate: seats: ended PID {pid} (job), overdue by [age], with SIGTERM\n");
            self::job(&site).stderr(&said).status(0);
            assert_eq!(holder.end().ending, Ending::Signal(15), "{hold}");
        });
    }
}

/// One that is stopped is continued: also a stopped supervisor, for it has to give the slot back.
#[test]
pub(crate) fn an_overdue_holder_that_is_stopped_is_continued_and_ended() {
    for hold in HOLDS {
        given_time(&GRACES, |grace| {
            let site = site(1, &overdue(grace));
            let mut holder = stubborn(&site, &["--hold", hold]);
            let pid = command_of(&site, &holder);
            kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("a process of ours");
            eventually("the command is stopped", || (state_of(pid) == Some('T')).then_some(()));
            holder.signal(Signal::SIGSTOP);
            eventually("who stands for it is stopped", || (holder.state() == 'T').then_some(()));
            job(&site)
                .stderr(&format!("rungate: seats: ended PID {pid} (job), overdue by [age], with SIGKILL\n"))
                .status(0);
            was_asked(&site);
            assert_eq!(holder.end().ending, Ending::Signal(9), "{hold}");
        });
    }
}

/// Whoever ends a holder goes on when the repository could not be locked for a while.
#[test]
fn a_repository_that_is_locked_meanwhile_does_not_save_an_overdue_holder() {
    let site = site(1, &overdue("2s"));
    let mut holder = stubborn(&site, &[]);
    let mut waiter = site.test().args(["run", "-q", "--wait", "forever", "--", "job"]).background();
    eventually("it is asked to end", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
    let stuck = site.holder("seats.lock", ["posix", "write", "0:8"]);
    // Its attempt takes a second, and then it is not in time for the next signal.
    let begun = Instant::now();
    eventually("the time for the next signal is over", || {
        (begun.elapsed() > Duration::from_secs(3)).then_some(())
    });
    drop(stuck);
    waiter.wait_for_echo();
    assert_eq!(holder.end().ending, Ending::Signal(9));
    was_asked(&site);
}

/// One that is not overdue is left alone, and so is one that nobody has to make room for.
#[test]
pub(crate) fn whoever_is_not_overdue_or_not_in_the_way_is_left_alone() {
    for (limit, keys, status) in [(1, "expire_after = \"1h\"", 75), (2, OVERDUE, 0)] {
        let site = site(limit, keys);
        let mut holder = stubborn(&site, &[]);
        assert_eq!(job(&site).outcome().ending, Ending::Status(status));
        holder.wait_for_echo();
        assert_eq!(signals(&site), [""; 0]);
    }
}

/// Nobody is ended in vain: two slots are wanted, and only one of the two holders is overdue.
#[test]
pub(crate) fn nobody_is_ended_in_vain() {
    // Where the younger one has become overdue as well by the time that the launch looks, it would not be in
    // vain.
    let was_in_time = [3, 12, 40].into_iter().any(nobody_is_ended_in_vain_within);
    assert!(was_in_time, "the machine is too slow for this test");
}

/// Whether there was time to see it: so many seconds make a holder overdue.
fn nobody_is_ended_in_vain_within(seconds: u64) -> bool {
    let site = site(2, &format!("expire_after = \"{seconds}s\"\nexpire_grace = \"3s\""));
    site.program("large");
    let mut old = stubborn(&site, &[]);
    let dry = site.test().args(["end", "--overdue", "--dry-run"]);
    eventually("the first is overdue", || dry.outcome().stdout.contains("would end").then_some(()));
    let begun = Instant::now();
    let mut young = job(&site).spawn();
    let large = site.test().args(["run", "--", "large"]).outcome();
    if begun.elapsed() >= Duration::from_secs(seconds) {
        return false;
    }
    let refused = "rungate: large: not started: the limit is reached\n  seats  2 of 2 used, 2 more wanted\n";
    assert!(large.ending == Ending::Status(75) && large.stderr.starts_with(refused), "{large:?}");
    old.wait_for_echo();
    young.wait_for_echo();
    assert_eq!(signals(&site), [""; 0]);
    // One slot is enough for one: the longest overdue goes, and nobody else.
    let said = "rungate: seats: ended PID [pid] (job), overdue by [age], with SIGKILL\n";
    job(&site).stderr(said).status(0);
    young.wait_for_echo();
    assert_eq!(old.end().ending, Ending::Signal(9));
    true
}

/// `both` wants a slot of `seats` and the only one of `spare`, which `other` wants too.
fn site_with_spare(keys: &str, keys_of_spare: &str) -> Site {
    let spare = "[[rule]]\ncommands = [\"both\"]\nacquire = [\"seats\", \"spare\"]\n\
                 [[rule]]\ncommands = [\"other\"]\nacquire = [\"spare\"]\n";
    let spare = format!("[repository.spare]\nlimit = 1\n{keys_of_spare}\n{spare}");
    let site = Site::with_policy(&format!("{}\n{spare}", policy(1, keys)));
    for command in ["both", "other"] {
        site.program(command);
    }
    site
}

/// A holder gets no further signal while its end would be in vain: here another launch takes the only slot of a
/// second repository. If there is room again, the next signal comes.
#[test]
fn an_ending_rests_while_another_repository_is_full() {
    given_time(&["2s", "10s", "40s"], |grace| {
        let site = site_with_spare(&overdue(grace), "");
        let _holder = stubborn(&site, &[]);
        let both = ["run", "-q", "--wait", "forever", "--", "both"];
        let mut both = site.test().args(both).background();
        eventually("it begins", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
        let other = site.test().args(["run", "--", "other"]).spawn();
        site.stands_in_line("spare.lock", &both);
        // It looks each second, and sleeps at least once between two looks.
        let looks = grace.trim_end_matches('s').parse::<u64>().expect("seconds") + 2;
        let before = sleeps_of(both.pid());
        eventually("the next signal would be due", || {
            (sleeps_of(both.pid()) >= before + looks).then_some(())
        });
        assert!(!signals(&site).contains(&"SIGTERM".to_owned()));
        other.kill();
        both.wait_for_echo();
        was_asked(&site);
    });
}

/// A launch that does not wait is refused then, and sends nothing more.
#[test]
fn an_ending_stops_when_another_repository_is_full() {
    let site = site_with_spare(OVERDUE, "");
    let _holder = stubborn(&site, &[]);
    let mut both = site.test().args(["run", "-q", "--", "both"]).background();
    eventually("it begins", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
    let _other = site.test().args(["run", "--", "other"]).spawn();
    assert_eq!(both.end().ending, Ending::Status(75));
    assert!(!signals(&site).contains(&"SIGTERM".to_owned()));
}

/// While it ends a holder, a launch that does not wait is judged again as well: by a new policy the holder is not
/// overdue.
#[test]
fn an_ending_stops_under_a_policy_that_spares_the_holder() {
    let site = site(1, OVERDUE);
    let mut holder = stubborn(&site, &[]);
    let mut next = site.test().args(["run", "-q", "--", "job"]).background();
    eventually("it begins", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
    site.policy(&policy(1, "expire_after = \"1h\""));
    assert_eq!(next.end().ending, Ending::Status(75));
    holder.wait_for_echo();
    assert!(!signals(&site).contains(&"SIGTERM".to_owned()));
}

/// A holder that blocks a launch in two repositories is ended for both, and gets each signal once.
#[test]
pub(crate) fn a_holder_of_two_repositories_gets_each_signal_once() {
    for wait in [&[][..], &["--wait", "forever"]] {
        given_time(&GRACES, |grace| {
            let site = site_with_spare(&overdue(grace), &overdue(grace));
            let mut holder = stubborn_as(&site, "both", &[], "signals");
            site.test().args(["run", "-q"]).args(wait).args(["--", "both"]).status(0);
            assert_eq!(holder.end().ending, Ending::Signal(9));
            was_asked(&site);
            let seen = signals(&site);
            let times = |name: &str| seen.iter().filter(|signal| *signal == name).count();
            assert_eq!((times("SIGINT"), times("SIGTERM")), (1, 1), "{seen:?}");
        });
    }
}

/// A holder gets no further signal while only the end of another one helps: here the launch has another choice, and
/// the first one also needs a repository that is full by now.
#[test]
fn an_ending_rests_while_a_holder_of_another_choice_is_ended() {
    given_time(&["2s", "10s", "40s"], |grace| {
        let keys = overdue(grace);
        let site = Site::with_policy(&format!(
            r#"
            {}

            [repository.spare]
            limit = 1

            [repository.pairs]
            limit = 2
            {keys}

            [[rule]]
            commands = ["other"]
            acquire  = ["spare"]

            [[rule]]
            commands = ["half"]
            acquire  = ["pairs"]

            [[rule]]
            commands = ["both"]
            acquire  = [{{ any_of = [["seats", "spare"], {{ repository = "pairs", slots = 2 }}] }}]
            "#,
            policy(1, &keys)
        ));
        for command in ["both", "other"] {
            site.program(command);
        }
        // It has no record, and is never overdue: at first the second choice has too few that are.
        let never_overdue = site.holder("pairs.lock", ["ofd", "read", "8:1"]);
        let mut half = stubborn_as(&site, "half", &[], "signals of half");
        let mut first = stubborn(&site, &[]);
        let mut both = site.test().args(["run", "-q", "--wait", "forever", "--", "both"]).background();
        eventually("it begins", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
        let _other = site.test().args(["run", "--", "other"]).spawn();
        site.stands_in_line("spare.lock", &both);
        assert_eq!(signals_in(&site, "signals of half"), [""; 0]);
        drop(never_overdue);
        both.wait_for_echo();
        assert_eq!(half.end().ending, Ending::Signal(9));
        assert!(signals_in(&site, "signals of half").contains(&"SIGTERM".to_owned()));
        assert!(!signals(&site).contains(&"SIGTERM".to_owned()), "{:?}", signals(&site));
        first.wait_for_echo();
    });
}

/// The longest overdue first, and no more than are needed. The oldest of the three does not hold the first
/// slot.
#[test]
pub(crate) fn only_the_longest_overdue_holder_is_ended() {
    let site = site(3, OVERDUE);
    let test = job(&site).through(["env", "--default-signal"]);
    let first = test.spawn();
    let mut oldest = test.spawn();
    some_time_after(&oldest);
    let mut middle = test.spawn();
    some_time_after(&middle);
    first.kill();
    let mut youngest = test.spawn();
    let held: Vec<i32> = site.held("seats.lock").iter().map(|slot| slot.pid).collect();
    assert_eq!(held, [&youngest, &oldest, &middle].map(Running::pid));
    let said = format!("rungate: seats: ended PID {} (job), overdue by [age], with SIGINT\n", oldest.pid());
    job(&site).stderr(&said).status(0);
    assert_eq!(oldest.end().ending, Ending::Signal(2));
    middle.wait_for_echo();
    youngest.wait_for_echo();
}

/// A launch that waits for the end of one holder ends no second one meanwhile.
#[test]
fn no_second_holder_is_ended_while_the_first_one_ends() {
    let site = site(2, OVERDUE);
    let mut first = stubborn(&site, &[]);
    some_time_after(&first);
    let mut second = job(&site).through(["env", "--default-signal"]).spawn();
    let waiter = site.test().args(["run", "-q", "--wait", "forever", "--", "job"]).background();
    eventually("the first is asked to end", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
    let place = (1 << 62) + (site.line("seats.lock")[0].number << 20);
    let beats = || site.lock_between("seats.lock", place, place + 1).map_or(0, |lock| lock.l_len);
    let before = beats();
    eventually("the waiter has looked again", || {
        assert!(!second.is_zombie(), "the second was ended");
        (beats() > before + 1).then_some(())
    });
    assert_eq!(site.line("seats.lock")[0].pid, waiter.pid());
    first.wait_for_echo();
    second.wait_for_echo();
}

/// Nobody is ended in vain: a holder of a reserved slot is longer overdue, but its end would not help.
#[test]
pub(crate) fn a_holder_of_a_slot_that_the_launch_may_not_take_is_spared() {
    needs_root!();
    let site = site(2, &format!("reserve = [{{ users = [\"games\"], slots = 1 }}]\n{OVERDUE}"));
    let test = |user| job(&site).user(user).through(["env", "--default-signal"]);
    let mut kept = test("games").spawn();
    some_time_after(&kept);
    let mut usual = test("backup").spawn();
    assert_eq!(
        site.held("seats.lock").iter().map(|slot| slot.pid).collect::<Vec<_>>(),
        [kept.pid(), usual.pid()]
    );
    let said = format!("rungate: seats: ended PID {} (job), overdue by [age], with SIGINT\n", usual.pid());
    job(&site).stderr(&said).status(0);
    assert_eq!(usual.end().ending, Ending::Signal(2));
    kept.wait_for_echo();
}

/// Nor is one that it may take, if the others that it may take are not enough.
#[test]
fn no_holder_is_ended_where_the_rest_is_kept_for_others() {
    needs_root!();
    let site = site(3, &format!("reserve = [{{ users = [\"games\"], slots = 1 }}]\n{OVERDUE}"));
    site.program("large");
    let mut old = stubborn(&site, &[]);
    assert_eq!(site.held_numbers("seats.lock"), [2]);
    let _young = site.holder("seats.lock", ["ofd", "read", "10:1"]);
    assert_eq!(site.test().args(["run", "--", "large"]).outcome().ending, Ending::Status(75));
    old.wait_for_echo();
    assert_eq!(signals(&site), [""; 0]);
}

/// Where two rules together exclude one choice, the holder of the other choice is ended.
#[test]
fn a_holder_is_ended_for_the_choice_that_is_left() {
    let site = Site::with_policy(&format!(
        r#"
        [repository.a]
        limit = 10
        {OVERDUE}

        [repository.b]
        limit = 1
        {OVERDUE}

        [[rule]]
        commands = ["job"]
        acquire  = ["b"]

        [[rule]]
        commands = ["either"]
        acquire  = [{{ any_of = [{{ repository = "a", slots = 5 }}, "b"] }}]

        [[rule]]
        commands = ["either"]
        acquire  = [{{ repository = "a", ceiling = 8 }}]
        "#
    ));
    site.program("job");
    site.copy_of("/bin/true", "either");
    let _others = site.holder("a.lock", ["ofd", "read", "8:5"]);
    let mut holder = job(&site).through(["env", "--default-signal"]).spawn();
    site.test().args(["run", "-q", "--", "either"]).status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// Where older launches wait, the first of them does it, even if the first may not signal the holder and the
/// second may.
#[test]
pub(crate) fn a_launch_behind_an_older_one_ends_nobody() {
    needs_root!();
    let site = site(1, OVERDUE);
    let mut holder = stubborn(&site, &[]);
    let first = site.test().user("games").args(["run", "-q", "-wforever", "--", "job"]).background();
    site.stands_in_line("seats.lock", &first);
    assert_eq!(job(&site).outcome().ending, Ending::Status(75));
    holder.wait_for_echo();
    assert_eq!(signals(&site), [""; 0]);
    // Without the older launch it ends the holder.
    first.kill();
    let _next = job(&site).background();
    eventually("it is asked to end", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
}

/// A holder of several slots is one holder.
#[test]
pub(crate) fn a_holder_of_several_slots_is_ended_once() {
    let site = site(2, OVERDUE);
    site.program("large");
    let large = site.test().args(["run", "--", "large"]).through(["env", "--default-signal"]);
    let holder = large.spawn();
    let said = format!("rungate: seats: ended PID {} (large), overdue by [age], with SIGINT\n", holder.pid());
    large.stderr(&said).status(0);
}

/// The same without proof: each holder is named once, whatever lies between its slots.
#[test]
fn a_holder_of_several_slots_without_proof_is_named_once() {
    let site = site(3, "");
    site.program("large");
    let [first, between] = [job(&site).spawn(), job(&site).spawn()];
    drop(first);
    let large = site.test().args(["run", "--", "large"]).spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    assert_eq!(site.held("seats.lock")[1].pid, between.pid());
    // Only a launch under `expire_after` proves its slots.
    site.policy(&policy(3, OVERDUE));
    let said = site.test().args(["end", "--overdue"]).outcome().stderr;
    for (running, name) in [(&large, "large"), (&between, "job")] {
        let named = format!("PID {} ({name}), overdue by ", running.pid());
        assert_eq!(said.matches(&named).count(), 1, "{said}");
    }
}

/// The head also wakes when a holder becomes overdue, and ends as many as it takes; those behind it end
/// nobody.
#[test]
pub(crate) fn the_head_of_the_line_ends_a_holder_when_it_becomes_overdue() {
    // Two must wait in the queue before the holders are overdue.
    let was_in_time = ["1s", "10s", "60s"].into_iter().any(the_head_ends_a_holder_after);
    assert!(was_in_time, "the machine is too slow for this test");
}

/// Whether there was time to see it.
fn the_head_ends_a_holder_after(time: &str) -> bool {
    let site = site(2, &format!("expire_after = \"{time}\"\nexpire_grace = \"10m\""));
    let job = job(&site).through(["env", "--default-signal"]);
    let holders = [job.spawn(), job.spawn()];
    let waiting = site.test().args(["run", "-w", "forever", "--", "job"]);
    let stands = |running: &Running| {
        eventually("it stands in line, or has a seat already", || {
            let has_seat = site.held("seats.lock").iter().any(|slot| slot.pid == running.pid());
            let stands = site.line("seats.lock").iter().any(|waiter| waiter.pid == running.pid());
            (has_seat || stands).then_some(stands)
        })
    };
    let mut first = waiting.background();
    let first_stands = stands(&first);
    let mut second = waiting.background();
    if !(first_stands && stands(&second)) {
        return false;
    }
    first.wait_for_echo();
    second.wait_for_echo();
    for mut holder in holders {
        assert_eq!(holder.end().ending, Ending::Signal(2));
    }
    for waiter in [&mut first, &mut second] {
        waiter.close_stdin();
        let outcome = waiter.end();
        assert_eq!(outcome.ending, Ending::Status(0));
        assert_eq!(outcome.stderr.matches("ended PID").count(), 1, "{}", outcome.stderr);
    }
    true
}

/// `tree` is all descendants, also when the command itself has ended.
#[test]
pub(crate) fn an_overdue_tree_is_ended_with_all_its_branches() {
    for trunk in ["cat", "exit"] {
        given_time(&GRACES, |grace| {
            let site = site(1, &format!("hold = \"tree\"\n{}", overdue(grace)));
            let script = format!("setsid bash -c 'echo $$; exec 200>&- 201>&-; exec cat' <&0 & {trunk}");
            let mut holder = site
                .test()
                .args(["run", "--as", "job", "--", "bash", "-c", &script])
                .through(["env", "--default-signal"])
                .background();
            let branch = holder.read_line().trim_end().parse().expect("a process id");
            let trunk = command_of(&site, &holder);
            if script.ends_with("exit") {
                eventually("the trunk has ended", || state_of(trunk).is_none().then_some(()));
            }
            job(&site)
                .stderr(&format!("rungate: seats: ended PID {trunk} (job), overdue by [age], with SIG[..]\n"))
                .status(0);
            eventually("the branch has ended", || state_of(branch).is_none().then_some(()));
            holder.end();
        });
    }
}

/// A job of root's may have programs of other users. They are ended with it, because root may signal them.
#[test]
fn a_job_of_roots_is_ended_with_the_programs_of_other_users() {
    needs_root!();
    let site = site(1, &format!("hold = \"tree\"\n{}", overdue("3s")));
    site.script("job", "#!/bin/sh\n[ $# = 0 ] || exec cat\nsetpriv --reuid=games --clear-groups cat\n");
    let mut holder = job(&site).spawn();
    let mut next = site.test().args(["run", "--", "job", "next"]).background();
    assert!(next.answers(), "{:?}", next.end());
    holder.end();
}

/// With `expire_kill = "group"` too: a branch in a group whose leader has ended is no group's, and is ended
/// all the same.
#[test]
pub(crate) fn a_branch_whose_group_has_no_leader_is_ended_too() {
    let site = site(1, &format!("hold = \"tree\"\nexpire_kill = \"group\"\n{OVERDUE}"));
    // The shell in the middle leads a group, and ends.
    let branch = "env --default-signal cat <&3 >/dev/null 200>&- 201>&- & echo $!";
    let script = format!("setsid bash -c '{branch}' 3<&0; exec cat");
    let mut holder = site
        .test()
        .args(["run", "--as", "job", "--", "bash", "-c", &script])
        .through(["env", "--default-signal", "setsid"])
        .background();
    let branch: i32 = holder.read_line().trim_end().parse().expect("a process id");
    // Until then the branch ignores SIGINT, as whatever a shell starts in the background does, and has a
    // leader.
    for pid in [branch, command_of(&site, &holder)] {
        eventually("it is what it is to be", || {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (name == "cat\n").then_some(())
        });
    }
    job(&site).stderr("rungate: seats: ended PID [pid] (job), overdue by [age], with SIGINT\n").status(0);
    eventually("the branch is gone", || matches!(state_of(branch), None | Some('Z')).then_some(()));
    holder.end();
}

/// "A launch below a holder": nobody ends the job that started them, however late it is.
#[test]
pub(crate) fn nobody_ends_his_own_ancestor() {
    for hold in HOLDS {
        let site = site(1, &format!("hold = \"{hold}\"\nnested = \"take\"\n{OVERDUE}"));
        let script = format!("{} run -- job; echo $?; cat", site.rungate().display());
        let mut holder = site.test().args(["run", "--as", "job", "--", "bash", "-c", &script]).background();
        assert_eq!(holder.read_line(), "75\n", "{hold}");
        holder.wait_for_echo();
    }
}

/// The same if another holder is overdue as well, for a shorter time. A sweep spares the ancestor, too.
#[test]
pub(crate) fn another_holder_is_ended_instead_of_an_ancestor() {
    for command in ["run -q -- job", "end --overdue"] {
        let site = site(2, OVERDUE);
        let script = format!("read line; {} {command} </dev/null; echo $?; cat", site.rungate().display());
        let mut ancestor = site.test().args(["run", "--as", "job", "--", "bash", "-c", &script]).background();
        eventually("it has a slot", || (site.held("seats.lock").len() == 1).then_some(()));
        some_time_after(&ancestor);
        let mut other = job(&site).through(["env", "--default-signal"]).spawn();
        ancestor.write_line("now");
        assert_eq!(ancestor.read_line(), "0\n", "{command}");
        assert_eq!(other.end().ending, Ending::Signal(2), "{command}");
        ancestor.wait_for_echo();
    }
}

/// A launch in the process group of the holder, but not its descendant, ends the holder alone.
#[test]
pub(crate) fn a_launch_does_not_end_its_own_group() {
    let site = site(1, &format!("expire_kill = \"group\"\n{OVERDUE}"));
    let script = format!(
        "(above=$BASHPID
          (while [ -d /proc/$above ]; do sleep 0.01; done
           env --default-signal --unset=RUNGATE_HELD {} run -q -- job
           echo $? >answer.new; mv answer.new answer) </dev/null >/dev/null 2>&1 &)
         exec cat",
        site.rungate().display()
    );
    let mut holder = site
        .test()
        .args(["run", "--as", "job", "--", "bash", "-c", &script])
        .through(["env", "--default-signal", "setsid"])
        .background();
    let answer = eventually("it has an answer", || fs::read_to_string(site.path("work/answer")).ok());
    assert_eq!(answer, "0\n");
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// Without permission to signal it, the refusal says so and names it.
#[test]
pub(crate) fn an_overdue_holder_of_another_user_goes_on_and_is_named() {
    needs_root!();
    given_time(&GRACES, an_overdue_holder_of_another_user_goes_on);
}

fn an_overdue_holder_of_another_user_goes_on(grace: &str) {
    let site = site(1, &overdue(grace));
    let witness = site.helper("witness");
    let holder = site.test().user("games").args(["run", "--as", "job", "--"]).args([&witness]);
    let mut holder = holder.spawn();
    let pid = holder.pid();
    site.test()
        .user("backup")
        .args(["run", "--", "job"])
        .stderr(&format!(
            "
            rungate: seats: PID {pid} (job), overdue by [age], belongs to another user and was not ended
            rungate: job: not started: the limit is reached
              seats  1 of 1 used
                  rule \"seats\", $DIR/policy.toml:[..]
                  PID {pid} games job, since [time] ([age])
            ...
            "
        ))
        .status(75);
    let goes_on = format!(
        "rungate: seats: PID {pid} (job), overdue by [age], belongs to another user and was not ended\n"
    );
    site.test().user("backup").args(["end", "--overdue"]).stderr(&goes_on).status(71);
    // A launch that waits looks each second, and tells it once.
    let waits = site.test().user("backup").args(["run", "--wait", "2500ms", "--", "job"]).outcome();
    assert_eq!(waits.ending, Ending::Status(124), "{waits:?}");
    assert_eq!(waits.stderr.matches("belongs to another user and was not ended").count(), 1, "{waits:?}");
    holder.wait_for_echo();
    // Root may, as from a timer.
    let ended = format!("rungate: seats: ended PID {pid} (job), overdue by [age], with SIGKILL\n");
    site.test().args(["end", "--overdue"]).stderr(&ended).status(0);
    assert!(holder.end().stdout.ends_with("\nSIGTERM\n"), "it was asked");
}

/// `rungate end --overdue` does the same sweep for all repositories, `--dry-run` tells who would be ended,
/// and one that was named is swept alone.
#[test]
pub(crate) fn expire_sweeps_all_repositories() {
    let site = Site::with_policy(&format!(
        r#"
        [repository.one]
        limit = 5
        {OVERDUE}

        [repository.each]
        per   = "user"
        limit = 5
        {OVERDUE}

        [repository.patient]
        limit        = 5
        expire_after = "1h"

        [repository.endless]
        limit = 5

        [[rule]]
        name     = "one"
        commands = ["one"]
        acquire  = ["one"]

        [[rule]]
        name     = "each"
        commands = ["each"]
        acquire  = ["each"]

        [[rule]]
        name     = "others"
        commands = ["patient"]
        acquire  = ["patient", "endless"]
        "#
    ));
    for name in ["one", "each", "patient"] {
        site.program(name);
    }
    let run = |name: &str| site.test().args(["run", "--", name]).through(["env", "--default-signal"]).spawn();
    let (mut one, mut each, mut patient) = (run("one"), run("each"), run("patient"));
    let expire = |arguments: &[&str]| site.test().args(["end", "--overdue"]).args(arguments);
    let would = |name: &str, running: &Running| {
        format!(
            "{name}: would end PID {} ({}), overdue by [age]\n",
            running.pid(),
            &name[..name.find(' ').unwrap_or(name.len())]
        )
    };
    let user = crate::support::Account::own().name;
    let each_title = format!("each [{user}]");
    expire(&["--dry-run"]).stdout(&(would("one", &one) + &would(&each_title, &each))).status(0);
    expire(&["--dry-run", "patient"]).status(0);
    for running in [&mut one, &mut each, &mut patient] {
        running.wait_for_echo();
    }
    let ended = |name: &str, running: &Running| {
        format!(
            "rungate: {}",
            would(name, running).replace(": would end", ": ended").replace("[age]\n", "[age], with SIGINT\n")
        )
    };
    expire(&["each"]).stderr(&ended(&each_title, &each)).status(0);
    expire(&[]).stderr(&ended("one", &one)).status(0);
    for running in [&mut one, &mut each] {
        assert_eq!(running.end().ending, Ending::Signal(2));
    }
    patient.wait_for_echo();
    expire(&[]).status(0);
}

/// A holder that uses all of its grace delays the end of no holder of another repository, and no time limit
/// stops the sweep before it sends the last signal.
#[test]
fn a_sweep_waits_for_all_graces_at_once() {
    let site = Site::with_policy(&format!(
        r#"
        [repository.one]
        limit = 5
        {OVERDUE}

        [repository.two]
        limit = 5
        {OVERDUE}

        [[rule]]
        name     = "one"
        commands = ["one"]
        acquire  = ["one"]

        [[rule]]
        name     = "two"
        commands = ["two"]
        acquire  = ["two"]
        "#
    ));
    let run = |name: &str, signals: &str| {
        site.program(name);
        site.test().args(["run", "--", name]).through(["env", signals]).spawn()
    };
    let (mut one, mut two) = (run("one", "--ignore-signal=INT"), run("two", "--default-signal"));
    let mut sweep = site.test().args(["end", "--overdue"]).background();
    assert_eq!(two.end().ending, Ending::Signal(2));
    one.wait_for_echo();
    one.close_stdin();
    assert_eq!(one.end().ending, Ending::Status(0));
    assert_eq!(sweep.end().ending, Ending::Status(0));
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/rungate-overdue.service");
    assert!(!fs::read_to_string(unit).expect("a unit").contains("TimeoutStartSec"));
}

/// "`expire_kill = "process" | "group"`".
#[test]
pub(crate) fn the_group_is_ended_where_the_policy_says_so() {
    for (kill, child_lives) in [("process", true), ("group", false)] {
        let site = site(1, &format!("expire_kill = \"{kill}\"\n{OVERDUE}"));
        // A session of its own is a group of its own.
        let script = "env --default-signal cat <&0 >/dev/null & echo $!; trap 'exit 1' INT; wait";
        let mut holder = site
            .test()
            .args(["run", "--as", "job", "--", "bash", "-c", script])
            .through(["env", "--default-signal", "setsid"])
            .background();
        let child: i32 = holder.read_line().trim_end().parse().expect("a process id");
        // Until then it ignores SIGINT, as whatever a shell starts in the background does.
        eventually("the child is what it is to be", || {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
            (name == "cat\n").then_some(())
        });
        let said = "rungate: seats: ended PID [pid] (job), overdue by [age], with SIG[..]\n";
        job(&site).stderr(said).status(0);
        if child_lives {
            assert!(!matches!(state_of(child), None | Some('Z')));
        } else {
            eventually("the child is gone", || matches!(state_of(child), None | Some('Z')).then_some(()));
        }
        holder.close_stdin();
        holder.end();
    }
}

/// The same for a supervisor: its child gets the signal, and no other descendant. With `"group"` the whole group of the
/// supervisor gets it.
#[test]
fn the_group_of_a_supervisor_is_ended_where_the_policy_says_so() {
    for (kill, grandchild_lives) in [("process", true), ("group", false)] {
        let site = site(1, &format!("hold = \"supervisor\"\nexpire_kill = \"{kill}\"\n{OVERDUE}"));
        let script = "env --default-signal cat <&0 >/dev/null & echo $!; trap 'exit 1' INT; wait";
        let mut holder = site
            .test()
            .args(["run", "--as", "job", "--", "bash", "-c", script])
            .through(["env", "--default-signal", "setsid"])
            .background();
        let grandchild: i32 = holder.read_line().trim_end().parse().expect("a process id");
        // Until then it ignores SIGINT, as every process that a shell starts in the background.
        eventually("the grandchild is what it is to be", || {
            let name = fs::read_to_string(format!("/proc/{grandchild}/comm")).ok()?;
            (name == "cat\n").then_some(())
        });
        let said = "rungate: seats: ended PID [pid] (job), overdue by [age], with SIG[..]\n";
        job(&site).stderr(said).status(0);
        let has_ended = || matches!(state_of(grandchild), None | Some('Z'));
        if grandchild_lives {
            assert!(!has_ended(), "it got a signal");
        } else {
            eventually("the grandchild has ended", || has_ended().then_some(()));
        }
        holder.close_stdin();
        holder.end();
    }
}

const RECORDS: u64 = 8192;

/// The record of the first slot.
fn record(site: &Site) -> Value {
    let file = File::open(site.repository("seats.lock")).expect("the repository");
    let mut bytes = [0; 256];
    file.read_exact_at(&mut bytes, RECORDS).expect("a record");
    serde_json::from_slice(&bytes).expect("a record")
}

/// Writes that record as anybody can who may open the file.
fn forge(site: &Site, record: &Value) {
    forge_of(site, 1, record);
}

/// The same for another slot.
fn forge_of(site: &Site, slot: u64, record: &Value) {
    let file = OpenOptions::new().write(true).open(site.repository("seats.lock")).expect("the repository");
    let text = format!("{:<255}\n", record.to_string());
    assert_eq!(text.len(), 256);
    file.write_all_at(text.as_bytes(), RECORDS + (slot - 1) * 256).expect("the file is ours");
}

/// Waits a quarter of a second, so that a later holder is measurably younger: the guardian counts sixteenths.
#[track_caller]
pub(crate) fn some_time_after(running: &Running) {
    eventually("some time passes", || {
        let uptime = fs::read_to_string("/proc/uptime").expect("the time since boot");
        let hundredths = uptime.split(' ').next().expect("two numbers").replace('.', "");
        let now: u64 = hundredths.parse().expect("a number");
        (now > start_of(running.pid()) + 25).then_some(())
    });
}

/// The kernel must vouch for the holder … a record alone, which whoever can open the file can forge, ends
/// nobody: one that names an innocent process, with root expiring (where root runs the tests).
#[test]
pub(crate) fn a_record_that_lies_ends_nobody() {
    for hold in HOLDS {
        let site = site(1, OVERDUE);
        job(&site).status(0);
        let mut innocent = site.test().program(site.helper("witness")).args(["$DIR/work/signals"]).spawn();
        // A supervisor of another repository, which the record names as its own.
        let mut other = site
            .test()
            .args(["run", "--limit", "1", "--hold", "tree", "--"])
            .args([site.helper("witness")])
            .args(["$DIR/work/signals"])
            .spawn();
        let honest = record(&site);
        for (owner, kind) in [("posix", "write"), ("ofd", "read")] {
            let mut holder = site.holder("seats.lock", [owner, kind, "8:1"]);
            let of_other = fs::read_to_string(format!("/proc/{0}/task/{0}/children", other.pid()));
            let of_other: i32 = of_other.expect("a running process").trim_end().parse().expect("one child");
            for (pid, supervisor) in
                [(innocent.pid(), None), (innocent.pid(), Some(other.pid())), (of_other, Some(other.pid()))]
            {
                let mut lie = honest.clone();
                lie["hold"] = json!(hold);
                lie["pid"] = json!(pid);
                lie["start"] = json!(start_of(pid));
                lie["since"] = json!(1_000_000_000_000_u64);
                lie["taken"] = json!(1);
                if let Some(supervisor) = supervisor {
                    lie["supervisor"] = json!(supervisor);
                }
                forge(&site, &lie);
                assert_eq!(job(&site).outcome().ending, Ending::Status(75), "{hold} {owner}");
                site.test().args(["end", "--overdue"]).outcome();
            }
            for running in [&mut innocent, &mut other] {
                running.wait_for_echo();
            }
            assert_eq!(signals(&site), [""; 0], "{hold} {owner}");
            holder.close_stdin();
            holder.end();
        }
    }
}

/// Nobody is ended in vain: a holder has the slots that the kernel proves, and no others whose records name it.
#[test]
fn a_record_gives_its_holder_no_second_slot() {
    let site = site(2, OVERDUE);
    site.program("large");
    let mut old = stubborn(&site, &[]);
    let _other = site.holder("seats.lock", ["ofd", "read", "9:1"]);
    let mut lie = record(&site);
    lie["hold"] = json!("descriptor");
    forge_of(&site, 2, &lie);
    let large = site.test().args(["run", "--", "large"]).outcome();
    let refused = "rungate: large: not started: the limit is reached\n  seats  2 of 2 used, 2 more wanted\n";
    assert!(large.ending == Ending::Status(75) && large.stderr.contains(refused), "{large:?}");
    old.wait_for_echo();
    assert_eq!(signals(&site), [""; 0]);
    // One slot is enough for one.
    let _next = job(&site).background();
    eventually("it is asked to end", || signals(&site).contains(&"SIGINT".to_owned()).then_some(()));
}

/// A PID that was reused is never signalled: a record whose process has gone, and whose number another one
/// has, is not believed at all.
#[test]
pub(crate) fn a_number_that_another_process_has_got_is_not_signalled() {
    let site = site(1, OVERDUE);
    job(&site).status(0);
    let mut innocent = site.test().program(site.helper("witness")).args(["$DIR/work/signals"]).spawn();
    let holder = site.holder("seats.lock", ["ofd", "read", "8:1"]);
    let mut stale = record(&site);
    stale["hold"] = json!("descriptor");
    stale["pid"] = json!(innocent.pid());
    stale["start"] = json!(start_of(innocent.pid()) - 1);
    forge(&site, &stale);
    job(&site)
        .stderr(&format!(
            "
            rungate: job: not started: the limit is reached
              seats  1 of 1 used
                  rule [..]
                  PID {} [..] holder, since [..]
            ...
            ",
            holder.pid()
        ))
        .status(75);
    site.test().args(["end", "--overdue"]).status(0);
    innocent.wait_for_echo();
    assert_eq!(signals(&site), [""; 0]);
}

/// No job is locked out for ever by a clock that was set back: how long a holder has its slot is counted on
/// a clock that nobody sets.
#[test]
pub(crate) fn a_holder_from_the_future_is_overdue_all_the_same() {
    for hold in HOLDS {
        let site = site(1, OVERDUE);
        let job = site.test().args(["run", "--hold", hold, "--", "job"]).through(["env", "--default-signal"]);
        let mut holder = job.spawn();
        let pid = command_of(&site, &holder);
        let mut ahead = record(&site);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
        ahead["since"] = json!((now + 10 * 365 * 86400) * 1000);
        forge(&site, &ahead);
        let said = format!("rungate: seats: ended PID {pid} (job), overdue by [age], with SIGINT\n");
        job.stderr(&said).status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
    }
}

/// A holder cannot delay its end by a file on a server that does not answer: such a descriptor is neither waited for
/// when the holder is proved, nor when its terminal is looked for.
#[test]
fn a_file_of_the_holder_on_a_server_that_does_not_answer_delays_nothing() {
    needs_root!();
    if !Path::new("/dev/fuse").exists() {
        return skip("there is no /dev/fuse");
    }
    let site = site(1, OVERDUE);
    let [silence, remote] = ["silence", "remote"].map(|name| site.path(name));
    fs::create_dir(&remote).expect("a directory");
    let [silent, mounted] = [&silence, &remote].map(|path| path.display().to_string());
    let served = ["unshare", "--mount", "python3", "-c", REMOTE, &silent, &mounted, "data", "/etc/hostname"];
    let file = format!("{mounted}/data");
    let opens = ["run", "--as", "job", "--", "sh", "-c", "exec cat 2<\"$0\"", &file];
    let mut holder = site.test().through(served).args(opens).spawn();
    fs::write(&silence, "").expect("a file");
    // What was told of attributes counts for a tick of the kernel's clock.
    let told = Instant::now();
    eventually("it counts no more", || (told.elapsed() > Duration::from_millis(20)).then_some(()));
    let ended = format!("rungate: seats: ended PID {} (job), overdue by [age], with SIGINT\n", holder.pid());
    site.test().args(["run", "--as", "job", "--", "true"]).stderr(&ended).status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// A program that is ended tells its user why: on the terminal that it has, whoever ends it.
#[test]
fn whoever_sees_their_program_end_sees_why() {
    needs_tmux!();
    let site = site(5, OVERDUE);
    let terminal = Terminal::open(&site);
    terminal.enter(&format!("{} run -- job", site.rungate().display()));
    eventually("the job has its slot", || (site.held_numbers("seats.lock") == [1]).then_some(()));
    eventually("it is overdue", || {
        let seen = site.test().args(["end", "--overdue", "--dry-run"]).outcome().stdout;
        seen.contains("would end").then_some(())
    });
    site.test().args(["end", "--overdue"]).outcome();
    terminal.shows("is ended: it has had a slot of");
    terminal.shows("(expire_after)");
}
