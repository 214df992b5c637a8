//! `shared_by`: the windows of one user on one host are one seat, and a seat is taken as long as one of them
//! lives.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{
    Dice, Ending, Running, Site, Test, eventually, given_time, is_alive, is_over_the_agent, listing,
    needs_root, sleeps_of, state_of, storm_size,
};

const REFUSED: &str = "rungate: [..]: not started: [..]\n...\n";

/// A repository that is shared by user and host; `matlab` wants one slot of it, `pair` two, `either` one of
/// this or of another one.
fn site(limit: u32, keys: &str) -> Site {
    let site = Site::with_policy(&policy(limit, keys));
    for command in ["matlab", "pair", "either"] {
        site.program(command);
    }
    site
}

fn policy(limit: u32, keys: &str) -> String {
    format!(
        r#"
        [repository.seats]
        limit     = {limit}
        shared_by = ["user", "host"]
        {keys}

        [repository.spare]
        limit = 1

        [[rule]]
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        commands = ["pair"]
        acquire  = [{{ repository = "seats", slots = {} }}]

        [[rule]]
        commands = ["either"]
        acquire  = [{{ any_of = ["spare", "seats"] }}]
        "#,
        limit.clamp(1, 2)
    )
}

fn launch(site: &Site, user: &str, command: &str) -> Test {
    site.test().user(user).args(["run", "--", command])
}

#[track_caller]
fn is_free_in_time(site: &Site, left: &[i64]) {
    eventually("the slots are free", || (site.held_numbers("seats.lock") == left).then_some(()));
}

/// "Who finds his group joins and takes nothing", and the seat is free when its last window is closed.
#[test]
pub(crate) fn the_windows_of_one_user_are_one_seat() {
    needs_root!();
    let site = site(2, "");
    let first = launch(&site, "games", "matlab").spawn();
    let second = launch(&site, "games", "matlab").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    let backup = launch(&site, "backup", "matlab").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    launch(&site, "nobody", "matlab").stderr(REFUSED).status(75);
    let third = launch(&site, "games", "matlab").spawn();
    first.kill();
    third.kill();
    launch(&site, "nobody", "matlab").stderr(REFUSED).status(75);
    second.kill();
    is_free_in_time(&site, &[2]);
    let _nobody = launch(&site, "nobody", "matlab").spawn();
    backup.kill();
}

/// The same user on another host, and another user on the same one, are other groups.
#[test]
fn another_host_is_another_seat() {
    needs_root!();
    let site = site(2, "");
    let _here = launch(&site, "games", "matlab").host("ws17").spawn();
    let _there = launch(&site, "games", "matlab").host("ws18").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    let _again = launch(&site, "games", "matlab").host("ws17").spawn();
    launch(&site, "games", "matlab").host("ws19").stderr(REFUSED).status(75);
}

/// A group has what the greatest of its living members wants: "what only one wanted is free when it ends".
#[test]
pub(crate) fn a_member_with_more_takes_the_difference() {
    needs_root!();
    let site = site(3, "");
    let _one = launch(&site, "games", "matlab").spawn();
    let _backup = launch(&site, "backup", "matlab").spawn();
    let pair = launch(&site, "games", "pair").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    let again = launch(&site, "games", "pair").spawn();
    // One slot is missing, because the group of backup has the other one already.
    let refused = launch(&site, "backup", "pair").outcome();
    assert_eq!(refused.ending, Ending::Status(75), "{}", refused.stderr);
    for line in ["\n  seats  3 of 3 used\n", "\nTry again later"] {
        assert!(refused.stderr.contains(line), "{}", refused.stderr);
    }
    assert!(!refused.stderr.contains("must be freed"), "{}", refused.stderr);
    launch(&site, "nobody", "matlab").stderr(REFUSED).status(75);
    pair.kill();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    again.kill();
    is_free_in_time(&site, &[1, 2]);
    let _nobody = launch(&site, "nobody", "matlab").spawn();
}

/// The greater member came first: the one that is left keeps what it wanted.
#[test]
pub(crate) fn a_member_with_less_keeps_the_first_slot() {
    needs_root!();
    let site = site(2, "");
    let pair = launch(&site, "games", "pair").spawn();
    let _one = launch(&site, "games", "matlab").spawn();
    pair.kill();
    is_free_in_time(&site, &[1]);
    let _backup = launch(&site, "backup", "matlab").spawn();
    launch(&site, "nobody", "matlab").stderr(REFUSED).status(75);
}

/// Members keep their slot each in its own way, and the last one keeps it, whichever that is.
#[test]
pub(crate) fn a_group_may_have_all_four_holds() {
    needs_root!();
    let holds = ["process", "descriptor", "supervisor", "tree"];
    for last in 0..holds.len() {
        let site = site(1, "");
        let member =
            |hold: &&str| site.test().user("games").args(["run", "--hold", hold, "--", "matlab"]).spawn();
        let mut members: Vec<Running> = holds.iter().map(member).collect();
        let mut stays = members.remove(last);
        for mut other in members {
            other.close_stdin();
            other.end();
        }
        assert_eq!(site.held_numbers("seats.lock"), [1], "{}", holds[last]);
        launch(&site, "backup", "matlab").stderr(REFUSED).status(75);
        stays.close_stdin();
        stays.end();
        is_free_in_time(&site, &[]);
    }
}

/// A limit of 0 lets nobody in, and with `if_elapsed` each start counts.
#[test]
pub(crate) fn who_would_join_is_refused_where_nothing_may_start() {
    needs_root!();
    let site = site(1, "if_elapsed = \"1h\"");
    let _first = launch(&site, "games", "matlab").spawn();
    launch(&site, "games", "matlab").stderr("rungate: matlab: too soon: [..]\n...\n").status(69);
    site.policy(&policy(0, ""));
    launch(&site, "games", "matlab").stderr(REFUSED).status(75);
    site.policy(&policy(1, ""));
    let _second = launch(&site, "games", "matlab").spawn();
}

/// "Of alternatives, one joined whole comes first", wherever it stands in the list; where none can be joined
/// the order of the list counts.
#[test]
pub(crate) fn of_alternatives_one_that_is_joined_comes_first() {
    needs_root!();
    let site = site(1, "");
    let free = launch(&site, "games", "either").spawn();
    assert_eq!((site.held_numbers("seats.lock"), site.held_numbers("spare.lock")), (vec![], vec![1]));
    drop(free);
    let _first = launch(&site, "games", "matlab").spawn();
    let _second = launch(&site, "games", "either").spawn();
    assert_eq!((site.held_numbers("seats.lock"), site.held_numbers("spare.lock")), (vec![1], vec![]));
}

/// "From whom a reservation keeps that slot's number, he takes his own": a group on one host, of two users.
#[test]
fn who_may_not_use_the_number_takes_another() {
    needs_root!();
    let keys = "reserve = [{ users = [\"games\"], slots = 1 }]";
    let site = Site::with_policy(&policy(2, keys).replace("[\"user\", \"host\"]", "\"host\""));
    site.program("matlab");
    let _games = launch(&site, "games", "matlab").spawn();
    let _backup = launch(&site, "backup", "matlab").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    let _others = [launch(&site, "backup", "matlab").spawn(), launch(&site, "games", "matlab").spawn()];
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
}

/// A process that is a member already neither takes nor gives back: it becomes its own shim, and a launch
/// below it joins too.
#[test]
pub(crate) fn a_launch_in_a_member_joins() {
    needs_root!();
    for exec in ["exec ", ""] {
        let site = site(1, "");
        let wrapper =
            format!("#!/bin/sh\n[ \"$1\" = inner ] && exec cat\n{exec}LAUNCHER run -- matlab inner\n");
        site.script("matlab", &wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path")));
        let mut running = launch(&site, "games", "matlab").spawn();
        assert_eq!(site.held_numbers("seats.lock"), [1]);
        launch(&site, "backup", "matlab").stderr(REFUSED).status(75);
        running.close_stdin();
        running.end();
        is_free_in_time(&site, &[]);
    }
}

/// A member that becomes its own shim, and must hold more strongly from then on. The command leaves a child.
fn site_of_chains(hold: &str, keys: &str) -> Site {
    let site = site(1, keys);
    let wrapper = "#!/bin/sh\n[ \"$1\" = inner ] && { sleep 1000 & echo $!; exec cat; }\n\
                   exec LAUNCHER run --hold HOLD -- matlab inner\n";
    let launcher = site.rungate().to_str().expect("a plain path").to_owned();
    site.script("matlab", &wrapper.replace("LAUNCHER", &launcher).replace("HOLD", hold));
    site
}

const STRONGER: [&str; 3] = ["descriptor", "supervisor", "tree"];

/// A process that is a member already gets the hold that its next launch must have: the slot is not free when the
/// process is killed and what it has started still runs. The listing names it by that hold.
#[test]
fn a_member_gets_the_stronger_hold_of_its_next_launch() {
    needs_root!();
    for hold in STRONGER {
        let site = site_of_chains(hold, "");
        let mut member = launch(&site, "games", "matlab").background();
        let child: i32 = member.read_line().trim().parse().expect("a PID");
        assert_eq!(site.held_numbers("seats.lock"), [1], "{hold}");
        let listed = listing(&site.test())[0]["holders"].clone();
        let holders = listed.as_array().expect("holders");
        assert_eq!((holders.len(), &holders[0]["shared_with"]), (1, &json!([])), "{hold}: {listed}");
        let told = ["hold", "user", "command"].map(|key| holders[0][key].clone());
        assert_eq!(told, [json!(hold), json!("games"), json!("matlab")], "{listed}");
        kill(Pid::from_raw(member.pid()), Signal::SIGKILL).expect("it runs");
        eventually("it is dead", || member.is_zombie().then_some(()));
        assert_eq!(site.held_numbers("seats.lock"), [1], "{hold}");
        launch(&site, "backup", "matlab").stderr(REFUSED).status(75);
        member.close_stdin();
        kill(Pid::from_raw(child), Signal::SIGKILL).expect("it runs");
        is_free_in_time(&site, &[]);
    }
}

/// The same member is proved, and ended, as a holder of that kind.
#[test]
fn a_member_with_a_stronger_hold_is_ended_when_it_is_overdue() {
    needs_root!();
    for hold in STRONGER {
        let site = site_of_chains(hold, "expire_after = \"1ms\"\nexpire_grace = \"10s\"");
        let mut member = launch(&site, "games", "matlab").background();
        let child: i32 = member.read_line().trim().parse().expect("a PID");
        // A shell lets what it starts in the background ignore the first signal.
        kill(Pid::from_raw(child), Signal::SIGKILL).expect("it runs");
        eventually("it is dead", || matches!(state_of(child), None | Some('Z')).then_some(()));
        let ended = "rungate: seats: ended PID [pid] (matlab), overdue by [age], with SIGINT\n";
        site.test().args(["run", "--as", "matlab", "--", "true"]).stderr(ended).status(0);
        member.end();
        assert_eq!(site.held("seats.lock"), [], "{hold}");
    }
}

/// `list` shows every member, `explain` says whose slot would be used.
#[test]
pub(crate) fn listings_show_all_members() {
    needs_root!();
    let site = site(2, "");
    let mut members: Vec<Running> = (0..3).map(|_| launch(&site, "games", "matlab").spawn()).collect();
    let holders = listing(&site.test())[0]["holders"].clone();
    let mut pids: Vec<i64> = vec![holders[0]["pid"].as_i64().expect("a PID")];
    pids.extend(
        holders[0]["shared_with"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_i64),
    );
    pids.sort_unstable();
    let mut expected: Vec<i64> = members.iter().map(|member| member.pid().into()).collect();
    expected.sort_unstable();
    assert_eq!((pids, holders.as_array().expect("a list").len()), (expected, 1));
    assert_eq!(listing(&site.test())[0]["used"], json!(1));
    site.test()
        .args(["list"])
        .stdout(
            "
            seats: 1 of 2 used
            SLOT[..]
               1[gap][pid] games [..]
               1[gap][pid] games [..]
               1[gap][pid] games [..]
            ",
        )
        .status(0);
    site.test()
        .user("games")
        .args(["explain", "--", "matlab"])
        .stdout("...\nseats[..]ok: shares slot 1\n...\n")
        .status(0);
    // Whoever lives describes the seat.
    members.remove(0).kill();
    let _next = launch(&site, "games", "matlab").spawn();
    let holder = &listing(&site.test())[0]["holders"][0];
    assert_eq!((&holder["user"], &holder["command"]), (&json!("games"), &json!("matlab")));
}

/// The log says which slots a launch found with its group.
#[test]
fn the_log_says_what_a_member_has_joined() {
    let log = "[log]\nto = \"$DIR/work/log.jsonl\"\n";
    let site = Site::with_policy(&format!("{log}{}", policy(2, "")));
    for command in ["matlab", "pair"] {
        site.program(command);
    }
    let _members = ["matlab", "pair"].map(|command| site.test().args(["run", "--", command]).spawn());
    let log = std::fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let told = events.map(|event| (event["repositories"].clone(), event["joined"].clone()));
    let expected = [(json!(["seats=1"]), Value::Null), (json!(["seats=1,2"]), json!(["seats=1"]))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

/// A member may keep the slot by a lock of the process, and another one by a descriptor. Both are listed.
#[test]
fn members_with_different_holds_are_listed() {
    let site = site(1, "");
    let member = |hold: &str| site.test().args(["run", "--hold", hold, "--", "matlab"]).spawn();
    let members = ["process", "descriptor"].map(member);
    let holder = &listing(&site.test())[0]["holders"][0];
    let others = holder["shared_with"].as_array().expect("a list").iter().filter_map(Value::as_i64);
    let mut pids: Vec<i64> = holder["pid"].as_i64().into_iter().chain(others).collect();
    let mut expected = members.each_ref().map(|member| i64::from(member.pid()));
    pids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(pids, expected, "{holder}");
}

/// The record of a slot is of the member that wrote it, whatever programs the supervisors of other members start.
#[test]
fn a_supervised_member_leaves_the_record_of_another_as_it_is() {
    let site = site(1, "");
    let member = |hold: &str| site.test().args(["run", "--hold", hold, "--", "matlab"]).spawn();
    let first = member("process");
    let named = || {
        let holder = &listing(&site.test())[0]["holders"][0];
        ["pid", "command", "rule"].map(|key| holder[key].clone())
    };
    let before = named();
    assert!(before[0] == first.pid() && before[2].is_string(), "{before:?}");
    let mut second = member("supervisor");
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    // It has named its program before that ends.
    second.close_stdin();
    second.end();
    assert_eq!(named(), before);
}

/// What is overdue is ended as a whole: the slot is free only when nobody of the group is left.
#[test]
pub(crate) fn an_overdue_group_is_ended_as_a_whole() {
    needs_root!();
    let site = site(1, "expire_after = \"1ms\"\nexpire_grace = \"10s\"");
    let mut members: Vec<Running> = ["process", "descriptor", "supervisor", "tree"]
        .iter()
        .map(|hold| site.test().user("games").args(["run", "--hold", hold, "--", "matlab"]).spawn())
        .collect();
    // Whoever joins ends nobody.
    let _joins = launch(&site, "games", "matlab").spawn();
    let mut root = site.test().args(["run", "--", "matlab"]).background();
    assert!(root.answers(), "the whole group was ended for it");
    for member in &mut members {
        member.end();
    }
    assert_eq!(site.held_numbers("seats.lock"), [1]);
}

/// "The group is overdue if its youngest member is": a launch that has begun to end a member sends it no further
/// signal when another one has joined. When that has left again, the rest is ended.
#[test]
fn a_member_that_joins_protects_its_group() {
    needs_root!();
    given_time(&["8s", "24s"], |after| {
        let seconds: u64 = after.trim_end_matches('s').parse().expect("seconds");
        let grace = seconds / 4;
        let site = site(1, &format!("expire_after = \"{after}\"\nexpire_grace = \"{grace}s\""));
        let witness = site.helper("witness");
        let first = site.test().user("games").args(["run", "--as", "matlab", "--"]).args([&witness]);
        let mut first = first.through(["env", "--default-signal"]).background();
        first.wait_for_echo();
        let mut root = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
        let mut seen = [(); 2].map(|()| first.read_line());
        seen.sort();
        assert_eq!(seen, ["SIGCONT\n", "SIGINT\n"]);
        let joined = Instant::now();
        let second = launch(&site, "games", "matlab").spawn();
        // It looks each second, and sleeps at least once between two looks.
        let before = sleeps_of(root.pid());
        eventually("the next signal would be due, and it has looked since", || {
            let is_due = joined.elapsed() > Duration::from_secs(grace + 1);
            (is_due && sleeps_of(root.pid()) > before + grace).then_some(())
        });
        first.wait_for_echo();
        assert!(joined.elapsed() < Duration::from_secs(seconds), "the second is overdue as well");
        second.kill();
        assert_eq!(first.read_line(), "SIGTERM\n");
        root.wait_for_echo();
        assert_eq!(first.end().ending, Ending::Signal(9));
    });
}

/// `rungate end` ends all who have the slot together, whichever of them is named.
#[test]
pub(crate) fn who_is_ended_is_ended_with_the_group() {
    needs_root!();
    for named in 0..3 {
        let site = site(2, "");
        let mut members: Vec<Running> = (0..2).map(|_| launch(&site, "games", "matlab").spawn()).collect();
        let _backup = launch(&site, "backup", "matlab").spawn();
        let ended = "rungate: seats: ended PID [..]\nrungate: seats: ended PID [..]\n";
        let name = members.get(named).map_or("slot:1".to_owned(), |member| member.pid().to_string());
        site.test().args(["end", "--yes", "seats", &name]).stderr(ended).status(0);
        for member in &mut members {
            member.end();
        }
        assert_eq!(site.held_numbers("seats.lock"), [2], "{name}");
    }
}

/// A group may have several slots, and a member only some of them. All members are ended together nevertheless.
#[test]
fn a_group_with_several_slots_is_ended_as_a_whole() {
    let site = site(2, "");
    let mut members = ["pair", "matlab"].map(|command| site.test().args(["run", "--", command]).spawn());
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    let ended = "rungate: seats: ended PID [..]\nrungate: seats: ended PID [..]\n";
    site.test().args(["end", "--yes", "seats", "slot:2"]).stderr(ended).status(0);
    for member in &mut members {
        member.end();
    }
    assert_eq!(site.held_numbers("seats.lock"), [0; 0]);
}

/// A seat that two users share belongs to each of them.
#[test]
fn each_user_of_a_shared_seat_finds_it() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&policy(2, "").replace("[\"user\", \"host\"]", "\"host\""));
    site.program("matlab");
    let members = ["games", "backup"].map(|user| (user, launch(&site, user, "matlab").spawn()));
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    for (number, (user, member)) in members.iter().enumerate() {
        let (own, other) = (member.pid(), members[1 - number].1.pid());
        let list = site.test().args(["list", "--user", user]);
        let text = list.outcome().stdout;
        assert!(text.contains(&own.to_string()) && !text.contains(&other.to_string()), "{text}");
        let listed: Value = serde_json::from_str(&list.args(["--json"]).outcome().stdout).expect("JSON");
        let holder = &listed[0]["holders"][0];
        assert_eq!((&holder["pid"], &holder["shared_with"]), (&json!(own), &json!([other])), "{listed}");
        let mine = site.test().user(user).args(["explain"]).outcome().stdout;
        assert!(mine.contains(&own.to_string()) && !mine.contains(&other.to_string()), "{mine}");
    }
}

/// "A launch that finds slots of its group uses them, and does not wait": also one that waits behind others when the
/// group gets them.
#[test]
pub(crate) fn a_waiter_joins_when_its_group_gets_a_slot() {
    needs_root!();
    let site = site(1, "");
    let waits = |user: &str| {
        let waits = site.test().user(user).args(["run", "-w", "10m", "--", "matlab"]).background();
        site.stands_in_line("seats.lock", &waits);
        waits
    };
    let holder = launch(&site, "backup", "matlab").spawn();
    let mut first = waits("games");
    let stranger = waits("nobody");
    let mut second = waits("games");
    holder.kill();
    assert!(first.answers(), "the head got the slot");
    assert!(second.answers(), "it shares that of its group");
    let in_line: Vec<i32> = site.line("seats.lock").iter().map(|waiter| waiter.pid).collect();
    assert_eq!(in_line, [stranger.pid()], "the slot is in use");
    assert_eq!(site.held_numbers("seats.lock").len(), 1);
}

/// A group with a member that nothing proves is not passed over in silence: the refusal and `rungate end` name it.
#[test]
fn a_group_that_cannot_be_ended_is_named() {
    needs_root!();
    let site = site(1, "");
    site.rungate_in_bin();
    let lock = "exec 9<\"$(rungate acquire --path matlab)\" && rungate acquire --fd 9 matlab && exec cat";
    let mut shell = site.test().program("/bin/bash").args(["-c", lock]).background();
    assert!(shell.answers(), "it has the slot");
    let mut member = site.test().args(["run", "--", "matlab"]).spawn();
    site.test().args(["end", "--yes", "seats"]).stderr("rungate: [..]seats[..]\n...\n").status(71);
    member.close_stdin();
    member.end();
}

/// Two supervisors of a group may release their slot at the same moment. Neither takes the other for a nested
/// launch, which would keep the slot for a process that the command has left behind.
#[test]
fn members_that_end_together_free_their_slot() {
    needs_root!();
    let site = site(1, "hold = \"supervisor\"");
    site.script("matlab", "#!/bin/sh\nsleep 1000 </dev/null >/dev/null 2>&1 &\necho $! $$\nread go\n");
    let mut member = launch(&site, "games", "matlab").background();
    let line = member.read_line();
    let pids: Vec<i32> = line.split_whitespace().map(|pid| pid.parse().expect("a number")).collect();
    // What the other one locks to release it.
    let byte = format!("{}:1", (1_i64 << 41) + site.held_numbers("seats.lock")[0]);
    let other = site.holder("seats.lock", ["posix", "write", &byte]);
    member.close_stdin();
    eventually("the command has ended", || (!is_alive(pids[1])).then_some(()));
    let before = sleeps_of(member.pid());
    eventually("it tries again", || {
        (member.is_zombie() || sleeps_of(member.pid()) > before + 3).then_some(())
    });
    drop(other);
    is_free_in_time(&site, &[]);
    let _ = kill(Pid::from_raw(pids[0]), Signal::SIGKILL);
}

// What a forged lock can do, and what it cannot.

/// Where the locks of groups begin.
const GROUPS: i64 = (1 << 62) + (1 << 61) + (1 << 49);

/// The byte that says that slot 1 is the first of games.
fn group_byte(site: &Site) -> i64 {
    // The file is root's, so that root can open it in a directory that is everybody's.
    site.test().args(["run", "--", "matlab"]).status(0);
    let running = launch(site, "games", "matlab").spawn();
    let lock = site.lock_between("seats.lock", GROUPS, i64::MAX).expect("a group has a slot");
    assert_eq!(lock.l_len, 1);
    running.kill();
    // Launches take the slots in turn, so it may be the byte of another slot.
    lock.l_start - ((lock.l_start - GROUPS) % (1 << 20) - 1)
}

/// "A slot under a write lock is not joined: a new one is taken."
#[test]
fn a_slot_under_a_write_lock_is_not_joined() {
    needs_root!();
    let site = site(2, "");
    let byte = format!("{}:1", group_byte(&site));
    let _peer = site.holder("seats.lock", ["posix", "write", "8:1", &byte]);
    let _games = launch(&site, "games", "matlab").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    launch(&site, "backup", "matlab").stderr(REFUSED).status(75);
}

/// A lock on the byte of the group alone gives nothing: a slot that is free must be taken.
#[test]
fn a_forged_group_without_its_slot_is_looked_past() {
    needs_root!();
    let site = site(1, "");
    let byte = format!("{}:1", group_byte(&site));
    let _mallory = site.holder("seats.lock", ["posix", "read", &byte]);
    let _games = launch(&site, "games", "matlab").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    launch(&site, "backup", "matlab").stderr(REFUSED).status(75);
}

/// One slot is one, at however many ranks somebody puts it.
#[test]
fn a_slot_that_is_forged_at_two_ranks_counts_once() {
    needs_root!();
    let site = site(2, "");
    let byte = group_byte(&site);
    let (first, second) = (format!("{byte}:1"), format!("{}:1", byte + (1 << 20)));
    let _mallory = site.holder("seats.lock", ["posix", "read", "8:1", &first, &second]);
    let _games = launch(&site, "games", "pair").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
}

/// "A lock of more bytes is looked past", and hides only what it covers.
#[test]
fn a_lock_of_more_bytes_says_nothing() {
    needs_root!();
    let site = site(3, "");
    let byte = group_byte(&site);
    let _mallory = site.holder("seats.lock", ["posix", "read", &format!("{}:2", byte + 3)]);
    let _first = launch(&site, "games", "matlab").spawn();
    let _second = launch(&site, "games", "matlab").spawn();
    assert_eq!(site.held_numbers("seats.lock").len(), 1);
    let _all = site.holder("seats.lock", ["posix", "read", &format!("{byte}:1000")]);
    let _third = launch(&site, "games", "matlab").spawn();
    // Whose lock the kernel names first is its own affair; it is never one slot less.
    assert!(matches!(site.held_numbers("seats.lock").len(), 1 | 2));
}

/// What the manual says: who can open the file can share somebody's seat by a forged lock, and keep a slot
/// when its members have gone. Nobody else is hurt by the first, and nobody is ended for the second.
#[test]
fn who_can_open_the_file_can_share_and_keep_a_seat() {
    needs_root!();
    let site = site(1, "expire_after = \"1ms\"\nexpire_grace = \"10s\"");
    let byte = format!("{}:1", group_byte(&site));
    let mut games = launch(&site, "games", "matlab").spawn();
    let mallory = site.holder("seats.lock", ["ofd", "read", "8:1", &byte]);
    let spared = "rungate: seats: PID [..] was not ended\nrungate: matlab: not started: [..]\n...\n";
    launch(&site, "backup", "matlab").stderr(spared).status(75);
    games.wait_for_echo();
    games.kill();
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    drop(mallory);
    let _backup = launch(&site, "backup", "matlab").spawn();
}

/// "It ends no member, because the others are not known": the slot of the group would stay taken. When the locks can be
/// listed again, the group is ended.
#[test]
fn a_group_whose_locks_cannot_be_listed_is_not_ended() {
    needs_root!();
    let site = site(1, "expire_after = \"1ms\"\nexpire_grace = \"10s\"");
    let byte = format!("{}:1", group_byte(&site));
    let mut games = launch(&site, "games", "matlab").spawn();
    let other = site.holder("seats.lock", ["ofd", "read", "8:1", &byte]);
    // The byte by which rungate finds the lines of the file.
    let probe = site.holder("seats.lock", ["posix", "write", &format!("{}:1", 1_i64 << 42)]);
    let spared = "rungate: seats: PID [pid] (matlab), overdue by [age], was not ended: nothing proves [..]\n\
                  \x20 To see [..]\nrungate: matlab: not started: [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(spared).status(75);
    games.wait_for_echo();
    drop((other, probe));
    let ended = "rungate: seats: ended PID [pid] (matlab), overdue by [age], with SIG[..]\n";
    site.test().args(["run", "--as", "matlab", "--", "true"]).stderr(ended).status(0);
    games.end();
}

// A storm: members join, die, and are ended because they are overdue, with amounts and four holds, while an
// observer counts from outside.

const USERS: [&str; 4] = ["games", "backup", "www-data", "nobody"];

const LIMIT: u64 = 4;

/// Programs that run: by their process, whose they are and how many slots they want.
type Programs = Mutex<BTreeMap<i32, (&'static str, u64)>>;

/// How many slots a server would count for those who live at one moment between two looks at all of them.
fn counted(programs: &Programs) -> u64 {
    let all = programs.lock().expect("nobody panics with it").clone();
    let alive: Vec<i32> = all.keys().copied().filter(|pid| is_alive(*pid)).collect();
    let mut seats: BTreeMap<&str, u64> = BTreeMap::new();
    for pid in alive.into_iter().filter(|pid| is_alive(*pid)) {
        let (user, wants) = all[&pid];
        let has = seats.entry(user).or_default();
        *has = wants.max(*has);
    }
    seats.values().sum()
}

fn storms(site: &Site, seed: u64, programs: &Programs) -> usize {
    let mut dice = Dice::new(seed);
    let mut running: Vec<(Option<i32>, Running)> = Vec::new();
    let mut started = 0;
    for _ in 0..storm_size(60) {
        let user = USERS[dice.below(USERS.len())];
        let (command, wants) = if dice.percent(30) { ("pair", 2) } else { ("matlab", 1) };
        let hold = ["process", "descriptor", "supervisor", "tree"][dice.below(4)];
        let launch = site.test().user(user).args(["run", "--hold", hold, "--", command]);
        let mut launch = launch.background();
        if let Ok(pid) = launch.read_line().trim().parse() {
            programs.lock().expect("nobody panics with it").insert(pid, (user, wants));
            started += 1;
            running.push((Some(pid), launch));
        }
        while running.len() > dice.below(4) {
            let (pid, mut launch) = running.swap_remove(dice.below(running.len()));
            programs.lock().expect("nobody panics with it").remove(&pid.unwrap_or(0));
            match pid.filter(|_| dice.percent(50)) {
                Some(pid) => drop(kill(Pid::from_raw(pid), Signal::SIGKILL)),
                None => launch.close_stdin(),
            }
            if dice.percent(70) {
                launch.end();
            } else {
                // It ends beside the next launches.
                launch.close_stdin();
                running.push((None, launch));
            }
        }
    }
    started
}

/// No more seats than the limit are ever in use, as a server counts them, and nothing is left taken.
#[test]
pub(crate) fn a_storm_of_members() {
    needs_root!();
    for keys in ["", "expire_after = \"20ms\"\nexpire_grace = \"200ms\""] {
        let site = site(u32::try_from(LIMIT).expect("small"), keys);
        for command in ["matlab", "pair"] {
            site.script(command, "#!/bin/sh\necho $$\nexec cat\n");
        }
        let (programs, is_over) = (Programs::default(), AtomicBool::new(false));
        let over_agent = is_over_the_agent();
        let (started, most) = thread::scope(|scope| {
            let observer = scope.spawn(|| {
                let mut most = 0;
                while !is_over.load(Ordering::Acquire) {
                    most = most.max(counted(&programs));
                }
                most
            });
            let started = if over_agent {
                storms(&site, 1, &programs)
            } else {
                let threads: Vec<_> = (1..=4)
                    .map(|seed| {
                        let (site, programs) = (site.clone(), &programs);
                        scope.spawn(move || storms(&site, seed, programs))
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
            };
            is_over.store(true, Ordering::Release);
            (started, observer.join().expect("it does not panic"))
        });
        assert!(most <= LIMIT, "{most} seats in use, {started} starts");
        assert!(started > 10, "{started} starts");
        is_free_in_time(&site, &[]);
    }
}
