//! Waits of single claims, lines that end, and alternatives that are lists, with real processes and users.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::policy::examples::{full, run, shared};
use crate::support::{Ending, Outcome, Running, Site, Test, eventually, given_time, needs_root};

/// A site with these repositories, and a command for each that takes a slot of it alone.
fn site(repositories: &str, rules: &str) -> Site {
    let site = Site::new();
    let mut text =
        format!("version = 1\ndefaults.directory = \"$DIR/repositories\"\n{repositories}\n{rules}\n");
    for name in ["heavy", "tokens", "a", "b", "drc", "lvs", "bundle"] {
        if repositories.contains(&format!("[repository.{name}]")) {
            text += &format!("[[rule]]\ncommands = [\"take-{name}\"]\nacquire = [\"{name}\"]\n");
            site.program(&format!("take-{name}"));
        }
    }
    site.program("job");
    site.policy(&text);
    site
}

fn launch(site: &Site, options: &[&str], command: &str) -> Test {
    site.test().args(["run"]).args(options).args(["--", command])
}

fn takes(site: &Site, name: &str) -> Running {
    launch(site, &[], &format!("take-{name}")).spawn()
}

/// Starts a launch and returns when it stands in this line.
#[track_caller]
fn waits(site: &Site, options: &[&str], repository: &str) -> Running {
    let running = launch(site, options, "job").background();
    site.stands_in_line(repository, &running);
    running
}

#[track_caller]
fn refused(outcome: &Outcome, status: i32, lines: &[&str]) {
    assert_eq!(outcome.ending, Ending::Status(status), "{outcome:?}");
    for line in lines {
        assert!(outcome.stderr.lines().any(|told| told == *line), "{line}\n{}", outcome.stderr);
    }
}

const HEAVY: &str =
    "[repository.heavy]\nlimit = 1\nwait = \"2h\"\n[repository.tokens]\nlimit = 1\nmax_wait = \"0s\"\n";
const HEAVY_JOB: &str = "[[rule]]\ncommands = [\"job\"]\nacquire = [\"heavy\", \"tokens\"]\n";

/// "`max_wait = "0s"`: no launch ever waits for it", whatever else is, and whatever the command line asks
/// for.
#[test]
pub(crate) fn a_claim_that_is_never_waited_for_refuses_at_once() {
    let site = site(HEAVY, HEAVY_JOB);
    let _tokens = takes(&site, "tokens");
    let outcome = launch(&site, &["--wait", "1h"], "job").outcome();
    refused(&outcome, 75, &["  tokens  1 of 1 used, never waited for"]);
    assert!(!outcome.stderr.contains("stand in line"), "{}", outcome.stderr);
    let explained = site.test().args(["explain", "--", "job"]).outcome().stdout;
    assert!(explained.contains("\nwait  none: tokens allows no wait\n"), "{explained}");
    assert!(explained.contains("CLAIM  WANT USED LIMIT WAITING WAIT VERDICT\n"), "{explained}");
}

/// Two hours waited, then the tokens are full: refused, as said, with 124 because it has waited; its place
/// is left.
#[test]
pub(crate) fn whoever_has_waited_is_refused_when_something_is_full_that_is_never_waited_for() {
    let site = site(HEAVY, HEAVY_JOB);
    let _heavy = takes(&site, "heavy");
    let mut job = waits(&site, &[], "heavy.lock");
    let _tokens = takes(&site, "tokens");
    let outcome = job.end();
    refused(&outcome, 124, &["  tokens  1 of 1 used, never waited for"]);
    assert!(outcome.stderr.contains(": not started: waited "), "{}", outcome.stderr);
    assert_eq!(site.line("heavy.lock"), []);
}

/// "When the time for one repository is over, the launch is refused, unless another repository can still serve it."
#[test]
pub(crate) fn of_alternatives_one_is_waited_for_longer_than_the_other() {
    let repositories = "[repository.a]\nlimit = 1\nwait = \"1ms\"\nmax_wait = \"1ms\"\n[repository.b]\nlimit = 1\nwait = \"forever\"\n";
    let site =
        site(repositories, "[[rule]]\ncommands = [\"job\"]\nacquire = [{ any_of = [\"a\", \"b\"] }]\n");
    let (_a, b) = (takes(&site, "a"), takes(&site, "b"));
    let job = waits(&site, &[], "b.lock");
    let pid = job.pid();
    eventually("it has left the line of a", || {
        site.line("a.lock").iter().all(|waiter| waiter.pid != pid).then_some(())
    });
    b.kill();
    eventually("it has b", || {
        (site.held("b.lock").len() == 1 && site.line("b.lock").is_empty()).then_some(())
    });
    // A single claim whose time is over is a refusal, and the launch has waited.
    let outcome = launch(&site, &[], "take-a").outcome();
    refused(&outcome, 124, &["  a  1 of 1 used, waited for no longer than 1ms"]);
    drop(job);
}

/// "The option replaces every wait of the policy": a longer one counts, and so does a shorter one.
#[test]
pub(crate) fn the_command_line_replaces_every_wait_of_the_policy() {
    let site = site(
        "defaults.wait = \"1ms\"\n[repository.a]\nlimit = 1\nwait = \"1ms\"\n",
        "[[rule]]\ncommands = [\"job\"]\nwait = \"1ms\"\nacquire = [{ repository = \"a\", wait = \"1ms\" }]\n",
    );
    let _a = takes(&site, "a");
    refused(&launch(&site, &[], "job").outcome(), 124, &["  a  1 of 1 used"]);
    let job = waits(&site, &["--wait", "1h"], "a.lock");
    assert_eq!(site.line("a.lock").len(), 1);
    drop(job);
}

/// "A launch whose wait is shortened prints a line about it when it begins to wait."
#[test]
pub(crate) fn a_wait_that_the_policy_shortens_is_told_at_once() {
    let site = site(
        "[repository.a]\nlimit = 1\nwait = \"10ms\"\nmax_wait = \"50ms\"\n",
        "[[rule]]\ncommands = [\"job\"]\nacquire = [\"a\"]\n",
    );
    let a = takes(&site, "a");
    let outcome = launch(&site, &["--wait", "2h"], "job").outcome();
    let cut = "rungate: job: waits for a no longer than 50ms, not 2h: repository a has max_wait = \"50ms\"";
    let told: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(told[0], cut, "{told:?}");
    assert_eq!(told.iter().filter(|line| **line == cut).count(), 1, "{told:?}");
    assert!(told[1].starts_with("rungate: job: waits for a (1 of 1 used), first in line"), "{told:?}");
    refused(&outcome, 124, &["  a  1 of 1 used, waited for no longer than 50ms"]);
    assert!(!outcome.stderr.contains("wait longer"), "{}", outcome.stderr);
    // What is not shortened is no news, and neither is what need not be waited for.
    let outcome = launch(&site, &["--wait", "20ms"], "job").outcome();
    refused(&outcome, 124, &["  a  1 of 1 used"]);
    assert!(!outcome.stderr.contains("no longer"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains(", or wait longer: rungate run --wait 50ms -- job\n"),
        "{}",
        outcome.stderr
    );
    let explained = site.test().args(["explain", "--", "job"]).outcome().stdout;
    assert!(explained.contains("\nwait  up to 10ms; with -w up to 50ms\n"), "{explained}");
    drop(a);
    launch(&site, &["--wait", "2h"], "job").status(0);
}

/// A launch hears what it waits for and who has that. It hears nothing of what it never waits for.
#[test]
fn a_launch_is_told_of_what_it_waits_for_alone() {
    let site = site(
        "[repository.a]\nlimit = 1\nmax_wait = \"0s\"\n[repository.b]\nlimit = 1\nmax_wait = \"50ms\"\n",
        "[[rule]]\ncommands = [\"job\"]\nacquire = [{ any_of = [\"a\", \"b\"] }]\n",
    );
    let (_a, b) = (takes(&site, "a"), takes(&site, "b"));
    let outcome = launch(&site, &["--wait", "2h"], "job").outcome();
    assert_eq!(outcome.ending, Ending::Status(124), "{outcome:?}");
    let told: Vec<&str> = outcome.stderr.lines().collect();
    assert!(told[0].starts_with("rungate: job: waits for b no longer than 50ms, not 2h: "), "{told:?}");
    assert!(told[1].starts_with("rungate: job: waits for b (1 of 1 used), first in line, "), "{told:?}");
    assert!(told[1].contains(&format!("; held by PID {} ", b.pid())), "{told:?}");
    assert!(!told[1].contains(" slots"), "{told:?}");
}

/// Of several processes that hold what a launch waits for, it hears of one, and that others hold less long.
#[test]
fn a_launch_is_told_that_others_hold_what_it_waits_for() {
    let site = site(
        "[repository.b]\nlimit = 2\nmax_wait = \"50ms\"\n",
        "[[rule]]\ncommands = [\"job\"]\nacquire = [\"b\"]\n",
    );
    let _both = (takes(&site, "b"), takes(&site, "b"));
    let outcome = launch(&site, &["--wait", "50ms"], "job").outcome();
    assert_eq!(outcome.ending, Ending::Status(124), "{outcome:?}");
    let is_told = |line: &str| {
        line.starts_with("rungate: job: waits for b (2 of 2 used), first in line, ")
            && line.contains("; longest held by PID ")
    };
    assert!(outcome.stderr.lines().any(is_told), "{}", outcome.stderr);
}

/// "With -w the whole launch waits no longer than that."
#[test]
pub(crate) fn the_command_line_caps_the_whole_launch() {
    let site = site(HEAVY, HEAVY_JOB);
    let _heavy = takes(&site, "heavy");
    refused(&launch(&site, &["--wait", "50ms"], "job").outcome(), 124, &["  heavy  1 of 1 used"]);
    refused(&launch(&site, &["-n"], "job").outcome(), 75, &["  heavy  1 of 1 used"]);
}

/// A launch that waits by two limits in one queue is overtaken only by launches with a limit above both.
#[test]
pub(crate) fn whoever_waits_by_two_limits_is_passed_by_a_higher_one_alone() {
    let either = |command: &str, other: &str| {
        let low = "{ repository = \"a\", ceiling = 2 }";
        format!("[[rule]]\ncommands = [\"{command}\"]\nacquire = [{{ any_of = [{low}, {other}] }}]\n")
    };
    let rules = either("low", "{ repository = \"a\", ceiling = 3 }")
        + &either("job", "{ repository = \"a\", slots = 2 }");
    let site = site("[repository.a]\nlimit = 4\n", &rules);
    site.program("low");
    let _holders = [(); 3].map(|()| takes(&site, "a"));
    let low = launch(&site, &["-w", "forever"], "low").background();
    site.stands_in_line("a.lock", &low);
    launch(&site, &["-q", "-n"], "take-a").status(0);
    low.kill();
    // It needs two slots of which one is free.
    let _job = waits(&site, &["-w", "forever"], "a.lock");
    launch(&site, &["-q", "-n"], "take-a").status(75);
}

/// A launch that finds the queue full is refused (75). `status`, `list` and `metrics`
/// show where the line ends.
#[test]
pub(crate) fn a_line_ends() {
    let repositories = "[repository.a]\nlimit = 1\nwait = \"forever\"\nqueue = 2\n";
    let site = site(repositories, "[[rule]]\ncommands = [\"job\"]\nacquire = [\"a\"]\n");
    let _a = takes(&site, "a");
    let (first, second) = (waits(&site, &[], "a.lock"), waits(&site, &[], "a.lock"));
    let outcome = launch(&site, &[], "job").outcome();
    refused(&outcome, 75, &["  a  1 of 1 used, and 2 of 2 wait"]);
    assert_eq!(site.line("a.lock").len(), 2);
    let shows = |command: &[&str], text: &str| {
        let shown = site.test().args(command).outcome().stdout;
        assert!(shown.contains(text), "{text}\n{shown}");
    };
    shows(&["status"], " 2 of 2 ");
    shows(&["status", "--json"], "\"queue\": 2");
    shows(&["list"], ", 2 of 2 waiting\n");
    shows(&["metrics"], "rungate_queue_limit{repository=\"a\"} 2\n");
    shows(&["explain", "--", "job"], "\nwait  none: 2 of 2 wait for a\n");
    shows(&["policy", "show"], "queue = 2\n");
    // Whoever is stopped holds nobody up, and does not make a line end.
    second.signal(nix::sys::signal::Signal::SIGSTOP);
    eventually("it is stopped", || (second.state() == 'T').then_some(()));
    let third = waits(&site, &[], "a.lock");
    drop((first, second, third));
}

/// The time of a claim counts only while the launch waits in that queue, not while it waits in another.
#[test]
pub(crate) fn the_time_of_a_claim_counts_in_its_line_alone() {
    given_time(&["3", "10", "40"], the_time_counts_in_its_line);
}

fn the_time_counts_in_its_line(seconds: &str) {
    let site = site(
        &format!(
            "[repository.a]\nlimit = 1\nwait = \"{seconds}s\"\n[repository.b]\nlimit = 1\nwait = \"forever\"\n"
        ),
        "[[rule]]\ncommands = [\"job\"]\nacquire = [\"a\", \"b\"]\n",
    );
    let first = takes(&site, "a");
    let mut job = waits(&site, &[], "a.lock");
    let b = takes(&site, "b");
    first.kill();
    site.stands_in_line("b.lock", &job);
    eventually("it stands in no other", || site.line("a.lock").is_empty().then_some(()));
    let (since, wait) = (Instant::now(), Duration::from_secs(seconds.parse().expect("a number")));
    eventually("more than its time passes", || (since.elapsed() > wait).then_some(()));
    let second = takes(&site, "a");
    b.kill();
    site.stands_in_line("a.lock", &job);
    second.kill();
    job.wait_for_echo();
}

/// A launch that already waits in another queue joins regardless.
#[test]
pub(crate) fn whoever_comes_from_another_line_joins() {
    let repositories =
        "[defaults]\nwait = \"forever\"\n[repository.a]\nlimit = 1\n[repository.b]\nlimit = 1\nqueue = 1\n";
    let rules = "[[rule]]\ncommands = [\"job\"]\nacquire = [\"a\", \"b\"]\n";
    let site = site(&repositories.replace("[defaults]\n", "defaults."), rules);
    let (a, _b) = (takes(&site, "a"), takes(&site, "b"));
    // While b's line is at its end a newcomer does not begin to wait.
    let other = launch(&site, &[], "take-b").background();
    site.stands_in_line("b.lock", &other);
    refused(&launch(&site, &[], "job").outcome(), 75, &["  b  1 of 1 used, and 1 of 1 wait"]);
    other.kill();
    let job = waits(&site, &[], "a.lock");
    site.stands_in_line("b.lock", &job);
    // It stands there now, so that the next one finds the line at its end.
    refused(&launch(&site, &[], "take-b").outcome(), 75, &["  b  1 of 1 used, and 1 of 1 wait"]);
    drop((a, job));
}

/// Students who may use half of the slots do not fill the queue for users who may use all; and nobody has
/// more than their share.
#[test]
pub(crate) fn students_fill_their_line_and_staff_does_not_count_them() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        "defaults.wait = \"forever\"\n\
         [repository.seats]\nlimit = 2\nqueue = 2\nqueue_per_user = 1\n\
         [[rule]]\nname = \"seats\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n\
         [[rule]]\nname = \"students\"\ncommands = [\"matlab\"]\ngroups = [\"students\"]\n\
         acquire = [{ repository = \"seats\", ceiling = 1 }]\n",
    );
    site.program("matlab");
    for (name, group) in
        [("eve", "students"), ("fay", "students"), ("gus", "students"), ("ann", "staff"), ("bob", "staff")]
    {
        site.account(name, &[group]);
    }
    let matlab = |user| run(&site, user, &["matlab"]);
    let _running = [matlab("ann").spawn(), matlab("bob").spawn()];
    let waits = |user| {
        let running = matlab(user).background();
        site.stands_in_line("seats.lock", &running);
        running
    };
    let eve = waits("eve");
    refused(&matlab("eve").outcome(), 75, &["  seats  2 of 1 used, and 1 of 1 of yours wait"]);
    let fay = waits("fay");
    refused(&matlab("gus").outcome(), 75, &["  seats  2 of 1 used, and 2 of 2 wait"]);
    let ann = waits("ann");
    refused(&matlab("ann").outcome(), 75, &["  seats  2 of 2 used, and 1 of 1 of yours wait"]);
    drop((eve, fay, ann));
}

const SIGN_OFF: &str =
    "[repository.drc]\nlimit = 1\n[repository.lvs]\nlimit = 1\n[repository.bundle]\nlimit = 1\n";

/// A list of claims is had as a whole, or the next entry is tried.
#[test]
pub(crate) fn a_list_is_had_as_a_whole_or_the_next_alternative_is() {
    let rule = "[[rule]]\nname = \"sign-off\"\ncommands = [\"job\"]\nacquire = [{ any_of = [[\"drc\", \"lvs\"], \"bundle\"] }]\n";
    let site = site(SIGN_OFF, rule);
    let lvs = takes(&site, "lvs");
    let job = launch(&site, &[], "job").spawn();
    assert_eq!((site.held("drc.lock").len(), site.held("bundle.lock").len()), (0, 1));
    let outcome = launch(&site, &[], "job").outcome();
    let told = "rungate: job: not started: neither drc + lvs (lvs 1 of 1) nor bundle (1 of 1)";
    refused(&outcome, 75, &[told, "  lvs  1 of 1 used", "  bundle  1 of 1 used"]);
    let explained = site.test().args(["explain", "--", "job"]).outcome().stdout;
    let foretold =
        "now   refused, status 75: neither drc + lvs (lvs 1 of 1) nor bundle (1 of 1) can be had\n";
    assert!(explained.contains(foretold), "{explained}");
    // Which claims go together and which are alternatives stands in the table, and in numbers for scripts.
    let first: Vec<&str> =
        explained.lines().skip_while(|line| !line.starts_with("CLAIM")).skip(1).take(3).collect();
    let begin_with = |words: [&str; 3]| first.iter().zip(words).all(|(line, word)| line.starts_with(word));
    assert!(begin_with(["drc ", "+ lvs ", "or bundle "]), "{explained}");
    let json = site.test().args(["explain", "--json", "--", "job"]).outcome().stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let places = json["claims"].as_array().expect("a list").iter();
    let places: Vec<_> =
        places.map(|claim| (claim["demand"].as_u64(), claim["alternative"].as_u64())).collect();
    assert_eq!(places, [(Some(0), Some(0)), (Some(0), Some(0)), (Some(0), Some(1))]);
    // It waits for both, and holds nothing of either meanwhile.
    let waiting = waits(&site, &["-wforever"], "lvs.lock");
    site.stands_in_line("bundle.lock", &waiting);
    assert_eq!((site.held("drc.lock").len(), site.line("drc.lock").len()), (0, 0));
    lvs.kill();
    eventually("it has both", || {
        (site.held("drc.lock").len() == 1 && site.held("lvs.lock").len() == 1).then_some(())
    });
    drop((job, waiting));
}

/// "Claims of several rules on one file … are one claim": also where one of them is in a list.
#[test]
pub(crate) fn a_claim_beside_a_list_that_has_it_too_is_one_claim() {
    let rule = "[[rule]]\ncommands = [\"job\"]\nacquire = [\"drc\", { any_of = [[\"drc\", \"lvs\"], \"bundle\"] }]\n";
    let site = site(SIGN_OFF, rule);
    let _job = launch(&site, &[], "job").spawn();
    let held = ["drc.lock", "lvs.lock", "bundle.lock"].map(|file| site.held(file).len());
    assert_eq!(held, [1, 1, 0], "one slot of drc, of which there is no second");
}

/// A run takes a seat and a token …: the comments of `fair-queue.toml`.
#[test]
pub(crate) fn fair_queue() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&shared("fair-queue.toml"));
    site.program("simulate");
    for name in ["ann", "bob", "cid", "dan", "eve", "fay"] {
        site.account(name, &["staff"]);
    }
    let simulate = |user| run(&site, user, &["simulate"]);
    let mut running = ["ann", "bob", "cid"].map(|user| simulate(user).spawn());
    let waits = |user| {
        let waiting = simulate(user).background();
        site.stands_in_line("seats.lock", &waiting);
        waiting
    };
    let dan = [waits("dan"), waits("dan")];
    refused(&simulate("dan").outcome(), 75, &["  seats  3 of 3 used, and 2 of 2 of yours wait"]);
    let eve = waits("eve");
    running[0].close_stdin();
    assert_eq!(running[0].end().ending, Ending::Status(0));
    eventually("the first of dan's runs has its seat", || {
        (site.held("tokens.lock").len() == 3).then_some(())
    });
    drop((dan, eve));
}

/// As many turbo tokens as it says, and drc alone takes no bundle: the comments of `sign-off.toml`.
#[test]
pub(crate) fn sign_off() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&shared("sign-off.toml"));
    for name in ["signoff", "checker"] {
        site.script(name, "#!/bin/sh\nexec cat\n");
    }
    site.account("ann", &[]);
    let signoff = |arguments: &[&str]| run(&site, "ann", &[&["signoff"], arguments].concat());
    let _runs: Vec<Running> = (0..3).map(|_| signoff(&["-turbo2"]).spawn()).collect();
    assert_eq!((site.held("turbo.lock").len(), site.held("lvs.lock").len()), (6, 3));
    let _bundles: Vec<Running> = (0..2).map(|_| signoff(&[]).spawn()).collect();
    assert_eq!((site.held("turbo.lock").len(), site.held("bundle.lock").len()), (6, 2));
    full(&signoff(&[]), &[("lvs", "3 of 3"), ("bundle", "2 of 2")]);
    let checker = || run(&site, "ann", &["checker", "-batch", "-deck", "top.drc"]);
    let _checker = checker().spawn();
    full(&checker(), &[("drc", "4 of 4")]);
}

/// `--notify` announces the end of a wait, that it was in vain, and nothing if there was none.
#[test]
fn the_end_of_a_wait_is_announced() {
    let site =
        site("[repository.heavy]\nlimit = 1\n", "[[rule]]\ncommands = [\"job\"]\nacquire = [\"heavy\"]\n");
    site.script(
        "notify-send",
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >>$DIR/work/told.new\nmv $DIR/work/told.new $DIR/work/told\n",
    );
    let told = || eventually("it is announced", || std::fs::read_to_string(site.path("work/told")).ok());
    let notify = |wait: &str| launch(&site, &["--notify", "--wait", wait], "job");
    let mut at_once = notify("1h").spawn();
    at_once.close_stdin();
    assert_eq!(at_once.end().ending, Ending::Status(0));
    let holder = takes(&site, "heavy");
    assert_eq!(notify("1ms").outcome().ending, Ending::Status(124));
    assert!(told().starts_with("-- job gave up job waited for "), "{}", told());
    std::fs::remove_file(site.path("work/told")).expect("what was told");
    let mut waiter = waits(&site, &["--notify", "--wait", "1h"], "heavy.lock");
    drop(holder);
    waiter.wait_for_echo();
    assert!(told().starts_with("-- job starts job has its slots, after "), "{}", told());
}
