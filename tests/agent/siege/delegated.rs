//! "A department's file reaches its own people, and nobody else", also where the agent judges: what its owner
//! does to it is felt by those alone whom it is for.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{chown, symlink},
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use rungate::keeper::agent::message::{Answer, Request, Take};

use super::{ANEW, Call, FAULTY, GRANTED, Mob, question, used_by};
use crate::agent::remote::REMOTE;
use crate::support::{
    Ending, Running, Site, Test, eventually, listing, needs_root, set_mode, skip, unindent,
};

const SITE: &str = r#"
    [delegate."20-cad.toml"]
    owner    = "cadadm"
    users    = ["%cad"]
    commands = ["matlab"]

    [repository.matlab]
    keeper = "agent"
    limit  = 1

    [[rule]]
    name     = "seats"
    commands = ["matlab"]
    acquire  = ["matlab"]
"#;

const DROP_IN: &str = "etc/rungate/policy.d/20-cad.toml";

/// A site with ann of cad, dan of nothing, and cadadm, whose drop-in has this text.
fn site(text: &str) -> (Site, Running) {
    let (site, agent) = Site::with_agent(SITE);
    for (user, groups) in [("ann", &["cad"][..]), ("dan", &[]), ("cadadm", &[])] {
        site.account(user, groups);
    }
    for name in ["matlab", "less"] {
        site.program(name);
    }
    fs::create_dir_all(site.path("etc/rungate/policy.d")).expect("policy.d");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    drop_in(&site, text);
    (site, agent)
}

/// In one step: nobody reads half of it.
fn drop_in(site: &Site, text: &str) {
    let (new, file) = (site.path("etc/rungate/20-cad.new"), site.path(DROP_IN));
    fs::write(&new, unindent(text)).expect("the drop-in");
    chown(&new, Some(site.user("cadadm").uid), None).expect("chown");
    set_mode(&new, 0o644);
    fs::rename(new, file).expect("the drop-in");
}

fn matlab(site: &Site, user: &str) -> Test {
    site.test().user(user).args(["run", "--", "matlab"])
}

#[track_caller]
fn stops_cad_alone(site: &Site) {
    matlab(site, "ann").stderr("rungate: matlab: not started: the policy has [..]\n...\n").status(78);
    for (user, command) in [("dan", "matlab"), ("cadadm", "matlab"), ("root", "matlab"), ("ann", "less")] {
        site.test().user(user).args(["run", "--", command]).status(0);
    }
}

/// A fault in it, a file that is missing, or one that cannot be trusted stops the launches that it is for,
/// with status 78, and no other.
#[test]
fn a_fault_in_a_delegated_file_stops_its_own_people_alone() {
    needs_root!();
    let (site, _agent) = site("version = 1\n");
    matlab(&site, "ann").status(0);
    for fault in ["broken", "version = 7\n", "version = 1\n[[rule]]\nname = \"x\"\nacquire = [\"none\"]\n"] {
        drop_in(&site, fault);
        stops_cad_alone(&site);
    }
    drop_in(&site, "version = 1\n");
    set_mode(&site.path(DROP_IN), 0o666);
    stops_cad_alone(&site);
    fs::remove_file(site.path(DROP_IN)).expect("the drop-in");
    symlink(site.path("none.toml"), site.path(DROP_IN)).expect("a link to nothing");
    stops_cad_alone(&site);
    drop_in(&site, "version = 1\n");
    matlab(&site, "ann").status(0);
}

/// A file that would take the agent's stack, its memory or its time is a fault too, as soon as its bounds are passed:
/// the agent stays, and so do the tools of root. One within its bounds is read.
#[test]
fn a_file_that_would_cost_too_much_stops_its_own_people_alone() {
    needs_root!();
    let (site, agent) = site("version = 1\n");
    let listed = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let nested = |depth: usize| {
        let braces = format!("{}a{}", "{".repeat(depth), ",b}".repeat(depth));
        format!("[[rule]]\nhosts = [\"{braces}\"]\nacquire = []\n")
    };
    let uses = |aliases: String| format!("[alias]\n{aliases}[[rule]]\nusers = [\"@a0\"]\nacquire = []\n");
    let tenfold = |n: usize| format!("a{n} = [{}]\n", format!("\"@a{}\", ", n + 1).repeat(10));
    let chained = |n: usize| format!("a{n} = [\"@a{}\"]\n", n + 1);
    let unknown = listed(5000, &|n| format!("\"@nam{n}\", "));
    let used = |entries: String, key: &str, uses: usize| {
        format!("[alias]\na = [{entries}]\n[[rule]]\n{key} = [{}]\nacquire = []\n", "\"@a\",".repeat(uses))
    };
    let long = "n".repeat(200_000);
    let captures = listed(20_000, &|n| format!("\"{{a{n}}}x\","));
    let costly = [
        nested(40_000),
        nested(300),
        uses(listed(12, &tenfold) + "a12 = [\"x\"]\n"),
        uses(listed(10_000, &chained) + "a10000 = [\"x\"]\n"),
        uses(listed(5000, &|n| format!("name{n} = [\"x\"]\n")) + &format!("a0 = [{unknown}]\n")),
        "#".repeat(1 << 20),
        used(format!("\"{{{long}}}x\""), "arguments", 10_000),
        used(format!("\"@{long}\""), "users", 10_000),
        used("\"x\",".repeat(25_000), "users", 25_000),
        format!("[[rule]]\narguments = [{captures}]\nacquire = []\n"),
        format!("[[rule]]\ndirectories = [\"{}\"]\nacquire = []\n", "/{a}".repeat(60_000)),
    ];
    for text in &costly {
        drop_in(&site, text);
        stops_cad_alone(&site);
        assert_eq!(site.test().args(["status"]).outcome().ending, Ending::Status(0));
    }
    // As many patterns for hosts as it can have.
    let hosts = listed(1400, &|n| format!("\"?{n}\", "));
    drop_in(&site, &format!("[[rule]]\nhosts = [{hosts}]\nacquire = []\n"));
    for user in ["ann", "dan"] {
        matlab(&site, user).status(0);
    }
    assert!(Path::new(&format!("/proc/{}/task", agent.pid())).exists(), "the agent has ended");
}

/// What is mended above the file, where its own state tells nothing, is seen by the agent too.
#[test]
fn a_directory_that_is_mended_lets_its_people_start_again() {
    needs_root!();
    let (site, _agent) = site("version = 1\n");
    let (home, link) = (site.path("cadadm"), site.path(DROP_IN));
    fs::create_dir(&home).expect("a home");
    fs::rename(&link, home.join("rungate.toml")).expect("cadadm's file");
    chown(&home, Some(site.user("cadadm").uid), None).expect("chown");
    symlink(home.join("rungate.toml"), link).expect("a link");
    set_mode(&home, 0o777);
    stops_cad_alone(&site);
    set_mode(&home, 0o755);
    eventually("ann starts", || (matlab(&site, "ann").outcome().ending == Ending::Status(0)).then_some(()));
}

fn threads(agent: &Running) -> usize {
    fs::read_dir(format!("/proc/{}/task", agent.pid())).expect("its threads").count()
}

/// A file server that does not answer stops the launches that its file is for, and no other: neither when it falls
/// silent under an agent that has read the file, nor when the agent starts, and whatever it does not answer. No thread
/// more waits for it with each question, and the file counts again as soon as it is elsewhere.
#[test]
fn a_silent_file_server_stops_its_own_people_alone() {
    needs_root!();
    if !Path::new("/dev/fuse").exists() {
        return skip("there is no /dev/fuse");
    }
    let (site, agent) = site("version = 1\n");
    agent.kill();
    let (home, link) = (site.path("cadadm"), site.path(DROP_IN));
    fs::create_dir(&home).expect("a home");
    fs::copy(&link, home.join("rungate.toml")).expect("cadadm's file");
    let link_to = |file: &Path| {
        let new = site.path("etc/rungate/20-cad.new");
        symlink(file, &new).expect("a link");
        fs::rename(new, &link).expect("the drop-in");
    };
    let silence = site.path("silence");
    let words = [&silence, &home, &home.join("rungate.toml")].map(|path| path.display().to_string());
    let remote = ["python3", "-c", REMOTE, &words[0], &words[1], "rungate.toml", &words[2]];
    let stops_cad_alone = |agent: &Running| {
        let mut ann = Mob::of(&site, "ann");
        ann.calls(6);
        ann.says(&Request::Take(question("matlab")));
        for (user, command) in [("dan", "matlab"), ("cadadm", "matlab"), ("root", "matlab"), ("ann", "less")]
        {
            site.test().user(user).args(["run", "--", command]).status(0);
        }
        assert_eq!(ann.hears(), BTreeMap::from([(FAULTY, 6)]));
        let before = threads(agent);
        for _ in 0..3 {
            let asked = Instant::now();
            eventually("it is read again", || (asked.elapsed() > Duration::from_millis(1100)).then_some(()));
            ann.says(&Request::Take(question("matlab")));
            assert_eq!(ann.hears(), BTreeMap::from([(ANEW, 6)]));
            assert_eq!(ann.hears(), BTreeMap::from([(FAULTY, 6)]));
            matlab(&site, "dan").status(0);
        }
        eventually("no more threads wait", || (threads(agent) <= before).then_some(()));
    };
    let ann_starts = || {
        eventually("ann starts", || {
            (matlab(&site, "ann").outcome().ending == Ending::Status(0)).then_some(())
        });
    };
    // Attributes, names, the kind of the file system; the content.
    let (attributes, name, statistics, content) = ("3", "1", "17", "15");
    for silent in [attributes, statistics] {
        link_to(&home.join("rungate.toml"));
        let agent = site.agent_through(remote);
        matlab(&site, "ann").status(0);
        fs::write(&silence, silent).expect("a file");
        // The state of the whole policy is looked at again.
        link_to(&home.join("rungate.toml"));
        stops_cad_alone(&agent);
        let elsewhere = site.path("20-cad.toml");
        fs::copy(home.join("rungate.toml"), &elsewhere).expect("a copy");
        link_to(&elsewhere);
        ann_starts();
        fs::remove_file(&silence).expect("the file");
    }
    link_to(&home.join("rungate.toml"));
    for silent in [attributes, name, statistics, content] {
        fs::write(&silence, silent).expect("a file");
        let agent = site.agent_through(remote);
        stops_cad_alone(&agent);
        site.test().through(remote).rungate_agent().args(["--check"]).status(0);
        fs::remove_file(&silence).expect("the file");
        ann_starts();
        matlab(&site, "dan").status(0);
    }
}

/// A directory on the way to two delegated files that cannot be trusted stops the people of both, and no other.
#[test]
fn two_files_behind_one_fault_stop_their_own_people_alone() {
    needs_root!();
    let (site, _agent) = site("version = 1\n");
    let delegate =
        "\n[delegate.\"30-eda.toml\"]\nowner = \"cadadm\"\nusers = [\"%eda\"]\ncommands = [\"matlab\"]\n";
    site.account("eve", &["eda"]);
    let home = site.path("cadadm");
    fs::create_dir(&home).expect("a home");
    fs::rename(site.path(DROP_IN), home.join("rungate.toml")).expect("cadadm's file");
    for name in ["20-cad.toml", "30-eda.toml"] {
        let link = site.path("etc/rungate/policy.d").join(name);
        symlink(home.join("rungate.toml"), link).expect("a link");
    }
    site.system_policy(&(unindent(SITE) + delegate));
    set_mode(&home, 0o777);
    for (user, kind) in [("ann", FAULTY), ("eve", FAULTY), ("dan", GRANTED)] {
        let mut caller = Mob::of(&site, user);
        caller.calls(1);
        caller.says(&Request::Take(question("matlab")));
        assert_eq!(caller.hears(), BTreeMap::from([(kind, 1)]), "{user}");
    }
}

/// The agent sees such a fault itself: a program that speaks its language and asks no policy gets nothing.
#[test]
fn a_fault_in_a_delegated_file_is_seen_by_the_agent() {
    needs_root!();
    let (site, _agent) = site("broken");
    let mut ann = Mob::of(&site, "ann");
    ann.calls(1);
    ann.says(&Request::Take(question("matlab")));
    assert_eq!(ann.hears(), BTreeMap::from([(FAULTY, 1)]));
    let mut dan = Mob::of(&site, "dan");
    dan.calls(1);
    dan.says(&Request::Take(question("matlab")));
    assert_eq!(dan.hears(), BTreeMap::from([(GRANTED, 1)]));
}

/// A file that breaks while its people wait holds up nobody: who stands behind them has the next seat.
#[test]
fn a_file_that_breaks_while_its_people_wait_holds_up_nobody() {
    needs_root!();
    let (site, _agent) = site("version = 1\n");
    let seat = matlab(&site, "dan").spawn();
    let wait = |user| site.test().user(user).args(["run", "-qw", "forever", "--", "matlab"]).background();
    let stands = |count: usize| {
        let waiting = || listing(&site.test())[0]["waiting"].as_array().map(Vec::len);
        eventually("so many wait", || (waiting() == Some(count)).then_some(()));
    };
    let mut ann = wait("ann");
    stands(1);
    let mut dan = wait("dan");
    stands(2);
    let judged = Instant::now();
    drop_in(&site, "broken");
    let ended = ann.end();
    assert!(ended.stderr.contains("20-cad.toml:1:"), "{ended:?}");
    // A judgement counts for a second.
    eventually("dan is to be judged again", || (judged.elapsed() > Duration::from_secs(2)).then_some(()));
    seat.kill();
    assert!(dan.answers(), "{:?}", dan.end());
}

/// For each of these and each pattern it takes some microseconds to say no.
pub(super) const ARGUMENT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const ARGUMENTS: usize = 2000;
const PATTERNS: usize = 350;

/// A site whose delegated file has so many patterns that take long.
pub(super) fn costly(patterns: usize) -> (Site, Running) {
    let patterns: String = (0..patterns).map(|n| format!("\"*a*a*a*{n}b\", ")).collect();
    site(&format!(
        "
        version = 1
        [[rule]]
        name      = \"costly\"
        arguments = [{patterns}]
        action    = \"deny\"
        "
    ))
}

/// A budget for each judgement, charged to the user who asks and the file that costs; others' turns come
/// first: all judges are at it, and have more to do.
#[test]
fn a_delegated_file_that_takes_long_to_judge_by_keeps_nobody_else_waiting() {
    needs_root!();
    let (site, agent) = costly(PATTERNS);
    matlab(&site, "dan").status(0);
    let mut other = Call::to(&site);
    let mut mob = Mob::of(&site, "ann");
    mob.calls(12);
    let (used, begun) = (used_by(&agent), Instant::now());
    mob.says(&Request::Take(Take { arguments: vec![ARGUMENT.into(); ARGUMENTS], ..question("matlab") }));
    // Where that takes no time there is nothing to wait for.
    while used_by(&agent).saturating_sub(used) < Duration::from_millis(300)
        && begun.elapsed() < Duration::from_secs(3)
    {
        sleep(Duration::from_millis(1));
    }
    let used = used_by(&agent);
    other.says(&Request::Take(question("less")));
    assert!(matches!(other.hears(), Answer::Granted(_)));
    let used = used_by(&agent).saturating_sub(used);
    assert!(used < Duration::from_millis(2500), "{used:?} of a processor until others are judged");
}
