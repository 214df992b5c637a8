//! Takes a slot in every lock repository that those rules name, all of them or none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{
    Account, Ending, Observer, Outcome, Site, Terminal, Test, eventually, needs_root, needs_tmux, state_of,
    storm_size,
};

const BOTH: &str = r#"
    [repository.first]
    limit = 4

    [repository.second]
    limit = 4

    [[rule]]
    name     = "this way"
    commands = ["this"]
    acquire  = ["first", "second"]

    [[rule]]
    name     = "that way"
    commands = ["that"]
    acquire  = ["second", "first"]

    [[rule]]
    name     = "only one"
    commands = ["one"]
    acquire  = ["first"]

    [[rule]]
    name     = "only two"
    commands = ["two"]
    acquire  = ["second"]
"#;

/// A launch that finds one repository full leaves the other one as it was: no slot, no record, no changed
/// hint. Whichever of the two comes first in the order in which they are locked.
#[test]
pub(crate) fn a_refused_launch_leaves_no_trace_in_what_was_free() {
    for (free, full, filler) in [("first", "second", "two"), ("second", "first", "one")] {
        let site = Site::with_policy(BOTH);
        for name in ["this", "that", filler] {
            site.program(name);
        }
        site.test().args(["run", "--", "this"]).status(0);
        let holders = [0; 4].map(|_| site.test().args(["run", "--", filler]).spawn());
        let content = || fs::read(site.repository(&format!("{free}.lock"))).expect("the free repository");
        let before = content();
        for name in ["this", "that"] {
            site.test()
                .args(["run", "--", name])
                .stderr(&format!("rungate: {name}: not started: [..]\n...\n  {full} [..]4 of 4[..]\n...\n"))
                .status(75);
        }
        assert_eq!(site.held(&format!("{free}.lock")), []);
        assert!(before == content(), "{free}.lock has changed");
        drop(holders);
    }
}

/// A rule that refuses no launch takes what an enforced one would take. Only if no alternative has room, the
/// first of them is used: not enforced without a slot, counted beyond the limit.
#[test]
pub(crate) fn a_rule_that_refuses_nobody_takes_the_alternative_with_room() {
    for (key, without_room) in [
        ("enforce = false", "no slot; floating is full, but not enforced"),
        ("action = \"count\"", "floating slot 2"),
    ] {
        let site = Site::with_policy(&format!(
            r#"
            [repository.floating]
            limit = 1

            [repository.named]
            limit = 1

            [[rule]]
            name     = "holders"
            commands = ["holder"]
            acquire  = ["floating"]

            [[rule]]
            name     = "tools"
            commands = ["tool"]
            acquire  = [{{ any_of = ["floating", "named"] }}]
            {key}
            "#
        ));
        for name in ["holder", "tool"] {
            site.program(name);
        }
        let _holder = site.test().args(["run", "--", "holder"]).spawn();
        let tool = site.test().args(["run", "-v", "--", "tool"]);
        let first = tool.spawn();
        assert_eq!(site.held_numbers("floating.lock"), [1], "{key}");
        let named: Vec<i32> = site.held("named.lock").iter().map(|slot| slot.pid).collect();
        assert_eq!(named, [first.pid()], "{key}");
        tool.stderr(&format!("rungate: tool: starts with {without_room}\n...\n")).status(0);
    }
}

/// The order rules out deadlock: launches that name two repositories in opposite orders never block each
/// other. With no more of them at once than there are slots, every single one starts.
#[test]
pub(crate) fn storm_of_opposite_orders_never_blocks() {
    let site = Site::with_policy(BOTH);
    for name in ["this", "that"] {
        site.copy_of("/bin/true", name);
    }
    let starts = storm_size(1_000);
    thread::scope(|scope| {
        for name in ["this", "that", "this", "that"] {
            let command = site.test().args(["run", "--", name]);
            scope.spawn(move || (0..starts / 4).for_each(|_| command.status(0)));
        }
    });
    for file in ["first.lock", "second.lock"] {
        assert_eq!(site.held(file), []);
    }
}

/// A launch that waits for one repository gives the other one back: a stopped process with the lock of one
/// does not block launches that want the other. It tries again for as long as it may.
#[test]
fn a_repository_that_stays_locked_blocks_nothing_but_itself() {
    let site = Site::with_policy(BOTH);
    for name in ["this", "one", "two"] {
        site.program(name);
    }
    let run = |name: &str| site.test().args(["run", "--", name]);
    run("this").status(0);
    let [(_, other), (last, _)] = in_order(&site);
    let stuck = site.holder(last, ["posix", "write", "0:8"]);
    let mut both = run("this").background();
    let waits_for_last = || (site.waits_for_lock(last) == Some(both.pid())).then_some(());
    eventually("it waits for the last", waits_for_last);
    run(other).status(0);
    drop(stuck);
    both.wait_for_echo();
}

/// Also by somebody at a terminal who loses patience: who is stopped has no lock.
#[test]
fn nobody_is_stopped_with_one_of_two_mutexes() {
    needs_tmux!();
    let site = Site::with_policy(BOTH);
    for name in ["this", "one", "two"] {
        site.program(name);
    }
    let run = |name: &str| site.test().args(["run", "--", name]);
    run("this").status(0);
    let [(first, other), (last, _)] = in_order(&site);
    let _stuck = site.holder(last, ["posix", "write", "0:8"]);
    let terminal = Terminal::open(&site);
    terminal.command(&format!("{} run -- this", site.rungate().display()));
    let pid = eventually("it waits for the last", || site.waits_for_lock(last));
    terminal.press("C-z");
    eventually("it is stopped", || (state_of(pid) == Some('T')).then_some(()));
    assert_eq!(site.lock_between(first, 0, 8).map(|lock| lock.l_pid), None);
    run(other).status(0);
}

/// The repositories as they are locked, in the order of their inodes, each with a command that wants it alone.
fn in_order(site: &Site) -> [(&'static str, &'static str); 2] {
    let inode = |file: &str| fs::metadata(site.repository(file)).expect("a repository").ino();
    let mut both = [("first.lock", "one"), ("second.lock", "two")];
    both.sort_by_key(|(file, _)| inode(file));
    both
}

/// A launch that cannot write all that it has to write starts nothing, so no pause begins: not in the
/// repository that it wrote first.
#[test]
fn a_disk_that_is_full_for_one_repository_begins_no_pause_in_the_other() {
    needs_root!();
    let paused = "limit = 4\n    if_elapsed = \"1h\"";
    let site = Site::with_policy(&BOTH.replace("limit = 4", paused));
    site.copy_of("/bin/true", "this");
    // Room for a whole repository, and then for the name of another one alone.
    let full =
        "cd $DIR/repositories && mount -t tmpfs -o size=32k none . && cd . && cd $DIR/repositories || exit 9
        head -c 12288 /dev/zero >first.lock; chmod 666 first.lock; head -c 20480 /dev/zero >filler
        \"$@\"; test $? = 74 || exit 8
        rm filler
        \"$@\"";
    site.test()
        .args(["run", "--", "this"])
        .through(["unshare", "--mount", "sh", "-c", full, "sh"])
        .stderr("rungate: [..]$DIR/repositories/second.lock[..]No space left on device[..]\n...\n")
        .status(0);
}

const CAPS: &str = r#"
    [repository.matlab]
    limit = 5

    [repository.matlab-per-user]
    per   = "user"
    limit = 2

    [[rule]]
    name     = "matlab seats"
    commands = ["matlab"]
    acquire  = ["matlab", "matlab-per-user"]

    [[rule]]
    name     = "students leave room"
    commands = ["matlab"]
    groups   = ["users"]
    acquire  = [{ repository = "matlab", ceiling = 3 }]
"#;

/// Global 5, two for each user, and a group whose launches must leave the global use at or below 3: three
/// users at once, and at no moment is any cap exceeded, nor anybody refused who had room.
#[test]
pub(crate) fn storm_of_three_users_keeps_every_cap_and_refuses_nobody_without_cause() {
    needs_root!();
    let site = Site::with_policy(CAPS);
    // It says when it ran, so that what overlapped can be told from its own words, too.
    site.script("matlab", "#!/bin/sh\n[ \"$1\" ] && exec cat\ndate +%s%N\nsleep 0.01\ndate +%s%N\n");
    let users = ["games", "www-data", "backup"].map(Account::named);
    let files: Vec<String> = users.iter().map(|user| format!("matlab-per-user.{}.lock", user.uid)).collect();
    let files = [("matlab.lock", 5)].into_iter().chain(files.iter().map(|file| (file.as_str(), 2)));
    let mut observer = Observer::watch(&site, files);
    let groups_of = |user: &Account| -> &'static [&'static str] {
        if user.name == "games" || user.name == "backup" { &["users"] } else { &[] }
    };
    let matlab = |user: &Account| {
        let test = site.test().user(&user.name).groups(groups_of(user).iter().copied());
        test.args(["run", "--", "matlab"])
    };
    // How many the observer sees at once in a storm is a matter of luck; that it sees them all, show some
    // that stay.
    let stay: Vec<_> = users.iter().map(|user| matlab(user).args(["stay"]).spawn()).collect();
    let seen: Vec<usize> = observer.report().iter().map(|seen| seen.most).collect();
    assert_eq!(seen, [3, 1, 1, 1]);
    drop(stay);

    let starts = storm_size(100);
    let launches: Vec<Launch> = thread::scope(|scope| {
        let workers: Vec<_> = users
            .iter()
            .flat_map(|user| [user; 4])
            .map(|user| {
                let command = matlab(user);
                scope.spawn(move || {
                    (0..starts / 4).map(|_| Launch::of(&command, user)).collect::<Vec<Launch>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });

    let seen = observer.report();
    assert!(seen.iter().all(|seen| seen.violations == 0), "{seen:?}");
    let storm = Storm::new(launches);
    storm.no_cap_was_exceeded();
    storm.no_student_came_above_the_ceiling();
    storm.every_refusal_was_right();
}

/// One start, with what can be said about it from outside.
struct Launch {
    user: String,
    /// From before the launcher was started until after its end was seen.
    window: Span,
    /// While the program itself says it ran; absent when it was refused.
    ran: Option<Span>,
    stderr: String,
}

/// A time, from and to, since the epoch.
#[derive(Clone, Copy)]
struct Span(Duration, Duration);

impl Span {
    fn overlaps(&self, moment: Duration) -> bool {
        self.0 <= moment && moment <= self.1
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970")
}

impl Launch {
    fn of(command: &Test, user: &Account) -> Self {
        let start = now();
        let Outcome { stdout, stderr, ending } = command.outcome();
        let times: Vec<Duration> =
            stdout.lines().map(|line| Duration::from_nanos(line.parse().expect("nanoseconds"))).collect();
        let ran = match (ending, times.as_slice()) {
            (Ending::Status(0), [from, to]) => Some(Span(*from, *to)),
            (Ending::Status(75), []) => None,
            other => panic!("{other:?}: {stderr}"),
        };
        Self { user: user.name.clone(), window: Span(start, now()), ran, stderr }
    }

    fn is_student(&self) -> bool {
        self.user != "www-data"
    }
}

struct Storm(Vec<Launch>);

impl Storm {
    fn new(launches: Vec<Launch>) -> Self {
        let storm = Self(launches);
        let (started, refused): (Vec<&Launch>, Vec<&Launch>) =
            storm.0.iter().partition(|launch| launch.ran.is_some());
        assert!(
            started.len() > 1 && !refused.is_empty(),
            "{} started, {} refused",
            started.len(),
            refused.len()
        );
        storm
    }

    /// A program held its slots at least while it says it ran.
    fn no_cap_was_exceeded(&self) {
        let ran: Vec<(&Launch, Span)> =
            self.0.iter().filter_map(|launch| Some((launch, launch.ran?))).collect();
        for (_, Span(moment, _)) in &ran {
            let at_once = ran.iter().filter(|(_, span)| span.overlaps(*moment)).map(|(launch, _)| *launch);
            let mut by_user: BTreeMap<&str, usize> = BTreeMap::new();
            at_once.clone().for_each(|launch| *by_user.entry(&launch.user).or_default() += 1);
            assert!(at_once.clone().count() <= 5, "all together");
            assert!(at_once.filter(|launch| launch.is_student()).count() <= 3, "students");
            assert!(by_user.values().all(|&count| count <= 2), "one user: {by_user:?}");
        }
    }

    /// A student was admitted at some moment between the start of the launcher and that of the program: not
    /// every one of those moments may have had three others.
    fn no_student_came_above_the_ceiling(&self) {
        for (launch, ran) in self.0.iter().filter_map(|launch| Some((launch, launch.ran?))) {
            let admission = Span(launch.window.0, ran.0);
            let others: Vec<Span> =
                self.0.iter().filter_map(|other| other.ran).filter(|span| span.0 != ran.0).collect();
            // The number of overlapping spans changes downwards only where one ends.
            let ends = others.iter().map(|span| span.1 + Duration::from_nanos(1));
            let mut moments = ends.filter(|end| admission.overlaps(*end)).chain([admission.0]);
            let had_room =
                moments.any(|moment| others.iter().filter(|span| span.overlaps(moment)).count() < 3);
            assert!(had_room || !launch.is_student(), "a student was admitted as the fourth");
        }
    }

    /// A program held its slots at most from the start of its launcher until its end was seen. A refusal was
    /// right if at some moment of it so many others may have held what it names.
    fn every_refusal_was_right(&self) {
        for refused in self.0.iter().filter(|launch| launch.ran.is_none()) {
            let names_user = refused.stderr.contains(&format!("matlab-per-user [{}]", refused.user));
            let names_all = refused.stderr.lines().any(|line| line.starts_with("  matlab "));
            assert!(names_user || names_all, "it names what was full: {}", refused.stderr);
            if names_user {
                assert!(
                    self.most_others(refused, |other| other.user == refused.user) >= 2,
                    "{}",
                    refused.stderr
                );
            }
            if names_all {
                let ceiling = if refused.is_student() { 3 } else { 5 };
                assert!(self.most_others(refused, |_| true) >= ceiling, "{}", refused.stderr);
            }
        }
    }

    fn most_others(&self, refused: &Launch, counts: impl Fn(&Launch) -> bool) -> usize {
        let others: Vec<Span> = self
            .0
            .iter()
            .filter(|other| other.ran.is_some() && counts(other))
            .map(|other| other.window)
            .filter(|span| span.0 <= refused.window.1 && refused.window.0 <= span.1)
            .collect();
        // The number of overlapping spans changes upwards only where one begins.
        let moments = others.iter().map(|span| span.0.max(refused.window.0));
        moments.map(|moment| others.iter().filter(|span| span.overlaps(moment)).count()).max().unwrap_or(0)
    }
}

/// `explain` checked two lock files that do not exist yet as at one table, with the lower limit and the
/// larger number of slots, and said of a launch that starts that it never can.
#[test]
pub(crate) fn lock_files_that_are_not_there_yet_are_not_one_table() {
    let site = Site::with_policy(
        r#"
        [repository.large]
        limit = 5

        [repository.small]
        limit = 2

        [[rule]]
        acquire = [{ repository = "large", slots = 3 }, "small"]
        "#,
    );
    site.program("this");
    site.test().args(["explain", "--", "this"]).stdout("...\n").status(0);
    site.test().args(["run", "--", "this"]).status(0);
}
