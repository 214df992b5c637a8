//! A hint is a command that works when its reader pastes it: each refusal is brought about by real users,
//! its hints are run by a shell as the user who reads them (or as root, if they are for the administrator),
//! and none of them may fail because of how it is written or of who reads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use crate::support::{
    Ending, Outcome, Running, Site, Test, copy_program, eventually, given_time, needs_root,
};

/// What a pasted hint may end with: it did what it says, or was refused by a limit as said before.
const RIGHT: [i32; 3] = [0, 75, 124];

/// What was pasted so far: a test of the sources asks for every hint that they know.
#[derive(Default)]
struct Pasted(Mutex<BTreeSet<String>>);

/// With what a command can begin.
const PROGRAMS: [&str; 16] = [
    "rungate",
    "systemctl",
    "journalctl",
    "kill",
    "rm",
    "ls",
    "install",
    "truncate",
    "fuser",
    "lslocks",
    "chmod",
    "chown",
    "mkdir",
    "mv",
    "sudo",
    "etcdctl",
];

/// The commands that a message suggests, each with whether it is for the administrator.
fn hints(message: &str) -> Vec<(String, bool)> {
    let commands = |line: &str| {
        let at = PROGRAMS.iter().filter_map(|program| line.find(&format!(": {program} "))).min()?;
        let for_root = line[..at].contains("administrator") || line[..at].contains("as root");
        Some((line[at + 2..].to_owned(), for_root))
    };
    // A headline begins with the name of the program that speaks.
    message
        .lines()
        .filter(|line| !line.starts_with("rungate: ") && !line.starts_with("Usage: "))
        .filter_map(commands)
        .collect()
}

impl Pasted {
    fn notes(&self, command: String) {
        self.0.lock().expect("no scene fails while it has the lock").insert(command);
    }

    /// Whether a command was pasted that begins like this.
    fn has(&self, begin: &str) -> bool {
        let pasted = self.0.lock().expect("no scene fails while it has the lock");
        pasted.iter().any(|command| command.starts_with(begin))
    }

    /// Pastes what a refused user reads. `paste` gives the shell of the reader.
    #[track_caller]
    fn all_of(&self, outcome: &Outcome, site: &Site, reader: &dyn Fn() -> Test, expected: usize) {
        let found = hints(&outcome.stderr);
        assert_eq!(found.len(), expected, "{found:?}\n{}", outcome.stderr);
        for (command, for_root) in found {
            let shell = if for_root { site.test() } else { reader() };
            let path = format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", site.path("bin").display());
            // A launch that would wait is to wait no longer than the test has to.
            let line = command.replace("--wait 30m", "--wait 10ms").replace("--wait 1h", "--wait 10ms");
            // Who is to be ended is seen without a question.
            let line = line.replace("rungate end ", "rungate end --dry-run ");
            let pasted = shell.program("/bin/sh").args(["-c", &line]).env("PATH", &path).outcome();
            let status = match pasted.ending {
                Ending::Status(status) => status,
                Ending::Signal(signal) => -signal,
            };
            // A check says what is wrong, which is why it was suggested.
            let checks =
                ["rungate doctor", "rungate policy check"].iter().any(|check| command.starts_with(check));
            assert!(!line.contains("--dry-run") || pasted.stdout.contains(": would end PID "), "{pasted:?}");
            assert!(RIGHT.contains(&status) || checks && [1, 78].contains(&status), "{command}\n{pasted:?}");
            self.notes(command);
        }
    }
}

/// A site whose policy is the system's, with rungate in PATH.
fn site(policy: &str) -> Site {
    let site = Site::new();
    site.system_policy(policy);
    site.rungate_in_bin();
    for name in ["matlab", "odd name"] {
        site.program(name);
    }
    site
}

fn run(site: &Site, user: &str, words: &[&str]) -> Test {
    site.test().program(site.path("bin/rungate")).user(user).args(["run"]).args(words)
}

const SEATS: &str = "defaults.directory = \"$DIR/repositories\"\n[repository.seats]\nlimit = 6\n";

fn seats(rules: &str) -> Site {
    site(&format!("version = 1\n{SEATS}{rules}"))
}

const FOR_ALL: &str =
    "[[rule]]\nname = \"seats\"\ncommands = [\"matlab\", \"odd name\"]\nacquire = [\"seats\"]\n";

/// Limits, ceilings, queues, single members and files without a policy.
fn hints_of_full_repositories_work_when_pasted(pasted: &Pasted) {
    let rules = format!(
        "{FOR_ALL}[repository.mine]\nper = \"user\"\nlimit = 5\n[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"mine\"]\n"
    );
    let site = seats(&rules);
    let of = |user: &'static str| {
        let site = site.clone();
        move || site.test().user(user)
    };
    // Five of one user, so that there are more than a message names; arguments, and a name that is quoted.
    let mine: Vec<Running> = (0..5).map(|_| run(&site, "games", &["--", "matlab"]).spawn()).collect();
    let refused = run(&site, "games", &["--", "matlab", "a b", "$HOME", "it's"]).outcome();
    let told = "Close one of yours, or wait in the queue: rungate run --wait 30m -- matlab 'a b' '$HOME' 'it'\\''s'\n";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
    pasted.all_of(&refused, &site, &of("games"), 4);
    let _sixth = run(&site, "nobody", &["--", "odd name"]).spawn();
    let refused = run(&site, "nobody", &["-n", "--", "odd name"]).outcome();
    pasted.all_of(&refused, &site, &of("nobody"), 4);
    drop(mine);
    // A file that no policy names is named by its path.
    let file = site.path("work/of mine.lock");
    let limit = ["--limit", "1", "--slots", "1", "--repository", file.to_str().expect("a path"), "--"];
    let held = run(&site, "games", &[&limit[..], &["cat"]].concat()).spawn();
    let refused = run(&site, "games", &[&limit[..], &["cat"]].concat()).outcome();
    pasted.all_of(&refused, &site, &of("games"), 2);
    drop(held);
    let five = ["--limit", "5", "--repository", file.to_str().expect("a path"), "--", "cat"];
    let _held: Vec<Running> = (0..5).map(|_| run(&site, "games", &five).spawn()).collect();
    let refused = run(&site, "games", &five).outcome();
    assert!(refused.stderr.contains(&format!("rungate list '{}'", file.display())), "{}", refused.stderr);
    pasted.all_of(&refused, &site, &of("games"), 3);
}

/// 7 of 6 used: to close one would not help, and that is not said.
fn what_helps_below_a_ceiling_is_told_with_how_many_must_be_freed(pasted: &Pasted) {
    let rules = format!(
        "{FOR_ALL}[[rule]]\ncommands = [\"matlab\"]\nusers = [\"games\"]\n\
         acquire = [{{ repository = \"seats\", ceiling = 3 }}]\n"
    );
    let site = seats(&rules);
    let mut others: Vec<Running> = (0..2).map(|_| run(&site, "nobody", &["--", "matlab"]).spawn()).collect();
    let mine = run(&site, "games", &["--", "matlab"]).spawn();
    others.extend((0..2).map(|_| run(&site, "nobody", &["--", "matlab"]).spawn()));
    let refused = run(&site, "games", &["--", "matlab"]).outcome();
    assert!(
        refused
            .stderr
            .contains("\n      3 slots must be freed before it can start: 1 of yours and 2 of others\n"),
        "{}",
        refused.stderr
    );
    // The reader's own come first, also where others have held theirs for longer.
    let first = refused.stderr.lines().find(|line| line.starts_with("      PID ")).unwrap_or_default();
    assert!(first.starts_with(&format!("      PID {} games matlab", mine.pid())), "{}", refused.stderr);
    assert!(refused.stderr.contains("\nTry again once 3 slots are freed, or wait"), "{}", refused.stderr);
    pasted.all_of(&refused, &site, &|| site.test().user("games"), 3);
    // Where as many are the reader's own, that is said; and they are enough.
    others.truncate(1);
    eventually("those have gone", || (site.held("seats.lock").len() == 2).then_some(()));
    let _second = run(&site, "games", &["--", "matlab"]).spawn();
    let refused = run(&site, "games", &["--", "matlab"]).outcome();
    assert!(refused.stderr.contains("\nClose one of yours, or wait in the queue"), "{}", refused.stderr);
}

/// An alternative that is closed is no reason to ask anybody, if another will come free; and the wait
/// names the one that is waited for.
fn a_closed_alternative_is_not_what_is_told_of(pasted: &Pasted) {
    let any = "[repository.closed]\nlimit = 0\n[[rule]]\ncommands = [\"matlab\"]\n\
               acquire = [{ any_of = [\"closed\", \"seats\"] }]\n";
    let site = site(&format!("version = 1\n{}{any}", SEATS.replace("limit = 6", "limit = 1")));
    let _one = run(&site, "games", &["--", "matlab"]).spawn();
    let refused = run(&site, "games", &["--", "matlab"]).outcome();
    assert!(refused.stderr.contains("  closed  closed: its limit is 0\n"), "{}", refused.stderr);
    assert!(refused.stderr.contains("\nClose one of yours, or wait in the queue: "), "{}", refused.stderr);
    pasted.all_of(&refused, &site, &|| site.test().user("games"), 2);
    // A launch whose time is over before it has looked once does not wait.
    given_time(&["100ms", "2s", "20s"], |wait| {
        let told = run(&site, "games", &["-w", wait, "--", "matlab"]).outcome().stderr;
        assert!(told.starts_with("rungate: matlab: waits for seats (1 of 1 used), first in line"), "{told}");
    });
}

/// "Stand in the queue" is no advice where the line is at its end, also to whoever did not ask to wait.
fn nobody_is_sent_to_a_line_that_is_at_its_end(pasted: &Pasted) {
    let text = SEATS.replace("limit = 6", "limit = 1\nqueue = 1");
    let site = site(&format!("version = 1\n{text}{FOR_ALL}"));
    let _one = run(&site, "games", &["--", "matlab"]).spawn();
    let waits = run(&site, "games", &["-w", "1h", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &waits);
    let refused = run(&site, "nobody", &["--", "matlab"]).outcome();
    assert!(refused.stderr.contains("  seats  1 of 1 used, 1 of 1 waiting\n"), "{}", refused.stderr);
    assert!(refused.stderr.contains("\nTry again later\n"), "{}", refused.stderr);
    pasted.all_of(&refused, &site, &|| site.test().user("nobody"), 1);
    drop(waits);
}

/// Too soon: with a date where it is not today, and with a command that forgets the last start, for whoever
/// may do that.
fn too_soon_names_the_day_and_who_can_let_it_start(pasted: &Pasted) {
    let text = "limit = 1\nif_elapsed = \"2d\"";
    let rules = format!(
        "version = 1\n{}[repository.own]\nper = \"user\"\n{text}\n[[rule]]\ncommands = [\"true\"]\nacquire = [\"own\"]\n\
         [[rule]]\ncommands = [\"false\"]\nacquire = [\"seats\"]\n",
        SEATS.replace("limit = 6", text)
    );
    let site = site(&rules);
    for (command, status) in [("true", 0), ("false", 1)] {
        run(&site, "games", &["--", command]).status(status);
        let refused = run(&site, "games", &["--", command]).outcome();
        let day =
            jiff::ZonedDateTime::now().checked_add(jiff::SignedDuration::from_hours(48)).expect("a day");
        let day = day.strftime("next allowed at %-d %b ").to_string();
        let year = "next allowed at 20";
        let told = refused.stderr.lines().next().unwrap_or_default();
        assert!(told.contains(&day) || told.contains(year), "{day}: {told}");
        pasted.all_of(&refused, &site, &|| site.test().user("games"), 1);
        run(&site, "games", &["--", command]).status(status);
    }
}

/// What can never be available, what no rule allows, a policy that is missing and one with a fault.
fn hints_of_other_refusals_work_when_pasted(pasted: &Pasted) {
    let text = "[repository.kept]\nlimit = 1\nreserve = [{ users = [\"nobody\"], slots = 1 }]\n\
                [[rule]]\ncommands = [\"cat\"]\nacquire = [\"kept\"]\n\
                [[rule]]\ncommands = [\"matlab\"]\nacquire = [{ repository = \"seats\", slots_from = { after = \"-np\" } }]\n";
    let site = seats(text);
    let reader = || site.test().user("games");
    let refused = run(&site, "games", &["--", "cat"]).outcome();
    pasted.all_of(&refused, &site, &reader, 1);
    let refused = run(&site, "games", &["--", "matlab", "-np", "99999999999"]).outcome();
    assert!(refused.stderr.contains("  seats  more than 1048575 slots wanted of 6\n"), "{}", refused.stderr);
    pasted.all_of(&refused, &site, &reader, 1);
    site.system_policy("version = 1\ndefaults.unmatched = \"refuse\"\n");
    let refused = run(&site, "games", &["--as", "it's", "--", "matlab", "x y"]).outcome();
    assert!(
        refused.stderr.contains("rungate explain -v --as 'it'\\''s' -- matlab 'x y'\n"),
        "{}",
        refused.stderr
    );
    pasted.all_of(&refused, &site, &reader, 1);
    site.system_policy("version = 1\nfault = 1\n");
    let refused = run(&site, "games", &["--", "matlab"]).outcome();
    assert_eq!(refused.ending, Ending::Status(78), "{refused:?}");
    assert_eq!(hints(&refused.stderr), [("rungate policy check".to_owned(), true)]);
    pasted.all_of(&refused, &site, &reader, 1);
    fs::remove_dir_all(site.path("etc/rungate")).expect("no policy");
    let refused = run(&site, "games", &["--", "odd name", "-u"]).outcome();
    pasted.all_of(&refused, &site, &reader, 2);
    assert!(pasted.has("rungate init"), "{:?}", pasted.0);
    pasted.all_of(
        &run(&site, "nobody", &["--", "matlab"]).outcome(),
        &site,
        &|| site.test().user("nobody"),
        2,
    );
}

/// A mutex that somebody keeps, and a lease: who it is, and what whoever reads it can do.
fn who_keeps_a_lock_or_a_lease_is_named(pasted: &Pasted) {
    let site = seats(FOR_ALL);
    run(&site, "games", &["--", "matlab"]).status(0);
    let lock = site.repository("seats.lock");
    let path = lock.display().to_string();
    let keeps = |code: &str, user: &str| {
        let (lock_it, then) = code
            .split_once("\nos.kill")
            .map_or((code, String::new()), |(lock_it, then)| (lock_it, format!("os.kill{then}\n")));
        let text = format!(
            "import fcntl, os, signal, struct, sys\nf = os.open({path:?}, os.O_RDWR)\n{lock_it}\nprint('ready', flush=True)\n{then}sys.stdin.read()\n"
        );
        let mut running = site.test().program("/usr/bin/python3").user(user).args(["-c", &text]).background();
        assert_eq!(running.read_line(), "ready\n");
        running
    };
    let owner = "games";
    // The kernel names no process for a lock of a description: root and its own user find it nevertheless.
    let ofd = "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 8, 0))";
    let keeper = keeps(ofd, owner);
    for (reader, asks) in [(owner, "End it if it is stuck: kill "), ("root", "End it if it is stuck: kill ")]
    {
        let refused = run(&site, reader, &["--", "matlab"]).outcome();
        let named = format!(" by PID {} (python3) of games\n", keeper.pid());
        assert!(refused.stderr.contains(&named) && refused.stderr.contains(asks), "{refused:?}");
    }
    let refused = run(&site, "nobody", &["--", "matlab"]).outcome();
    let told = format!(
        " by a process that cannot be seen from here\nAsk your administrator to find it: fuser -v {}\n",
        lock.display()
    );
    assert!(refused.stderr.ends_with(&told), "{refused:?}");
    pasted.all_of(&refused, &site, &|| site.test().user("nobody"), 1);
    keeper.kill();
    // One that is stopped is continued, and then goes by itself.
    let mut keeper = keeps(
        &format!("{ofd}\nos.kill(os.getpid(), signal.SIGSTOP)\nos.close(f)\nprint('gone', flush=True)"),
        owner,
    );
    eventually("it is stopped", || {
        let status = fs::read_to_string(format!("/proc/{}/status", keeper.pid())).unwrap_or_default();
        status.contains("\nState:\tT").then_some(())
    });
    let refused = run(&site, owner, &["--", "matlab"]).outcome();
    let command = format!("kill -CONT {}", keeper.pid());
    assert_eq!(hints(&refused.stderr), [(command, false)], "{refused:?}");
    pasted.all_of(&refused, &site, &|| site.test().user(owner), 1);
    assert_eq!(keeper.read_line(), "gone\n");
    run(&site, owner, &["--", "matlab"]).status(0);
    keeper.kill();
    // Only the owner of the file, or root, can have a lease on it.
    let lease =
        "signal.signal(signal.SIGIO, signal.SIG_IGN)\nfcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)";
    let keeper = keeps(lease, owner);
    let refused = run(&site, "nobody", &["--", "matlab"]).outcome();
    let told = format!(
        ": PID {} (python3) of games has a lease on it\nAsk games or your administrator to end it",
        keeper.pid()
    );
    assert!(refused.stderr.contains(&told), "{refused:?}");
    let refused = run(&site, owner, &["--", "matlab"]).outcome();
    let hints = hints(&refused.stderr);
    assert_eq!(hints, [(format!("kill {}", keeper.pid()), false)], "{refused:?}");
    pasted.all_of(&refused, &site, &|| site.test().user(owner), 1);
    eventually("the lease has gone", || {
        run(&site, "nobody", &["--", "matlab"]).outcome().stderr.is_empty().then_some(())
    });
}

/// What lies where a lock file or its directory should be, a launcher with a bit that it must not have, a
/// shim without a policy, and a policy that exists already.
fn hints_about_files_work_when_pasted(pasted: &Pasted) {
    let site = seats(FOR_ALL);
    // `rungate init` makes lock files.
    site.directory_over_run();
    let reader = || site.test().user("games");
    // A directory that only root can create.
    let lock = site.path("missing/a b/seats.lock");
    let elsewhere = ["--limit", "1", "--repository", lock.to_str().expect("a path"), "--", "true"];
    let refused = run(&site, "games", &elsewhere).outcome();
    pasted.all_of(&refused, &site, &reader, 1);
    run(&site, "games", &elsewhere).status(0);
    // A file with something else in it.
    site.write("work/my notes", "hello");
    std::os::unix::fs::chown(site.path("work/my notes"), Some(site.user("games").uid), None).expect("chown");
    let notes = site.path("work/my notes");
    let in_notes = ["--limit", "1", "--repository", notes.to_str().expect("a path"), "--", "true"];
    let refused = run(&site, "games", &in_notes).outcome();
    pasted.all_of(&refused, &site, &reader, 1);
    run(&site, "games", &in_notes).status(0);
    // A directory in the place of a lock file.
    let directory = ["--limit", "1", "--repository", "/usr", "--", "true"];
    pasted.all_of(&run(&site, "games", &directory).outcome(), &site, &reader, 1);
    // The bit.
    let install = ["-m", "4755", "$DIR/bin/rungate", "$DIR/bin/copy"].map(|word| site.expand(word));
    site.test().program("/usr/bin/install").args(install.iter().map(String::as_str)).status(0);
    let copy = || site.test().program(site.path("bin/copy")).user("games").args(["run", "--", "true"]);
    pasted.all_of(&copy().outcome(), &site, &reader, 1);
    assert_ne!(copy().outcome().ending, Ending::Status(78));
    // A policy is there already.
    let init = site.test().program(site.path("bin/rungate")).args(["init", "matlab"]).outcome();
    let found = hints(&init.stderr);
    assert!(found.iter().any(|(command, _)| command.starts_with("mv ")), "{init:?}");
    for (command, _) in found.iter().filter(|(command, _)| !command.starts_with("rungate policy edit")) {
        let path = format!("{}:/usr/bin:/bin", site.path("bin").display());
        site.test().program("/bin/sh").args(["-c", command]).env("PATH", &path).status(0);
    }
    assert!(!site.path("etc/rungate/policy.toml").exists());
    // A shim that no policy is for.
    site.shim("matlab");
    let shim = site.test().program(site.path("shims/matlab")).outcome();
    assert!(hints(&shim.stderr).iter().any(|(command, _)| command.starts_with("rm ")), "{shim:?}");
    pasted.all_of(&shim, &site, &|| site.test(), 2);
    assert!(!site.path("shims/matlab").exists());
    let all = ["install -d -m 1777", "truncate -s 0", "ls -ld", "chmod ug-s", "rungate init", "rm "];
    for begin in all {
        assert!(pasted.has(begin), "{begin}: {:?}", pasted.0);
    }
    // What is said of too many locks needs them: the command is there.
    let lslocks = "lslocks -o PID,COMMAND,PATH";
    site.test().program("/bin/sh").args(["-c", lslocks]).stdout("...\n").status(0);
    pasted.notes(lslocks.to_owned());
}

/// A shim that does not exist, a copy of rungate under another
/// name, and a program where a subcommand should be.
fn hints_about_shims_work_when_pasted(pasted: &Pasted) {
    let site = seats(FOR_ALL);
    let reader = || site.test();
    let rungate = |words: &[&str]| reader().program(site.path("bin/rungate")).args(words).outcome();
    let shims = site.path("no shims").display().to_string();
    assert_eq!(rungate(&["shim", "install", &shims, "matlab"]).ending, Ending::Status(0));
    pasted.all_of(&rungate(&["shim", "remove", &shims, "other"]), &site, &reader, 1);
    pasted.all_of(&rungate(&["odd name"]), &site, &reader, 1);
    let copy = site.path("bin/rg");
    copy_program(site.rungate(), &copy);
    pasted.all_of(&reader().program(&copy).args(["status"]).outcome(), &site, &reader, 1);
    assert!(!copy.exists());
}

/// Under the agent: who is root can let it start now, others have to ask; and an agent that is away is for
/// the administrator to look at, with or without systemd.
fn hints_under_the_agent_work_when_pasted(pasted: &Pasted) {
    let (site, agent) = Site::with_agent(
        "[repository.seats]\nkeeper = \"agent\"\nlimit = 5\n[repository.sync]\nkeeper = \"agent\"\nlimit = 1\n\
         if_elapsed = \"1h\"\n[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n\
         [[rule]]\ncommands = [\"true\"]\nacquire = [\"sync\"]\n",
    );
    site.program("matlab");
    site.rungate_in_bin();
    let reader = || site.test().user("games");
    let mine: Vec<Running> = (0..5).map(|_| run(&site, "games", &["--", "matlab"]).spawn()).collect();
    pasted.all_of(&run(&site, "games", &["--", "matlab"]).outcome(), &site, &reader, 4);
    drop(mine);
    run(&site, "games", &["--", "true"]).status(0);
    let refused = run(&site, "games", &["--", "true"]).outcome();
    assert!(
        refused.stderr.contains("\nAsk your administrator to let it start now: rungate reset sync\n"),
        "{refused:?}"
    );
    pasted.all_of(&refused, &site, &reader, 1);
    run(&site, "games", &["--", "true"]).status(0);
    let refused = run(&site, "root", &["--", "true"]).outcome();
    assert!(refused.stderr.contains("\nTo start it now anyway: rungate reset sync\n"), "{refused:?}");
    agent.kill();
    let refused = run(&site, "games", &["--", "matlab"]).outcome();
    assert!(refused.stderr.ends_with("\nTell your administrator: rungate doctor agent\n"), "{refused:?}");
    pasted.all_of(&refused, &site, &reader, 1);
}

/// A refusal, and what its reader can do next.
type Scene = (&'static str, fn(&Pasted));

/// The refusals that suggest a command.
const SCENES: [Scene; 10] = [
    ("full repositories", hints_of_full_repositories_work_when_pasted),
    ("a ceiling", what_helps_below_a_ceiling_is_told_with_how_many_must_be_freed),
    ("a closed alternative", a_closed_alternative_is_not_what_is_told_of),
    ("a full queue", nobody_is_sent_to_a_line_that_is_at_its_end),
    ("too soon", too_soon_names_the_day_and_who_can_let_it_start),
    ("what can never start, and policies", hints_of_other_refusals_work_when_pasted),
    ("locks and leases of others", who_keeps_a_lock_or_a_lease_is_named),
    ("files", hints_about_files_work_when_pasted),
    ("the agent", hints_under_the_agent_work_when_pasted),
    ("shims", hints_about_shims_work_when_pasted),
];

/// What begins like a hint in the sources and no scene pastes: how it begins, and why not.
const ELSEWHERE: [(&str, &str); 33] = [
    ("rungate measure runs it", "prose"),
    ("rungate policy undo leaves", "prose"),
    ("systemctl restart rungate-agent", "for a machine with systemd"),
    (
        "rungate measure; systemctl ",
        "measuring executes the first, and the other is for a machine with systemd",
    ),
    ("rungate acquire --path ", "pasted by slots::by_descriptor, in the shell that opens the descriptor"),
    ("rungate policy log", "executed by policy::install, after each change"),
    ("rungate explain -- cargo test", "of init --for agents: tools::init reads it"),
    ("rungate explain --as board-job", "of init --for ci: tools::init reads it"),
    ("rungate run --as board-job", "of init --for ci: tools::init reads it"),
    ("rungate is ", "prose"),
    ("rungate finds ", "prose"),
    ("rungate itself ", "prose"),
    ("rungate policy schema", "prose"),
    ("journalctl could ", "prose"),
    ("chown root", "the end of a sentence, which names the file"),
    ("chown ", "the end of a sentence, which names the file"),
    ("rungate init COMMAND", "a word has to be filled in"),
    ("rungate explain -- COMMAND", "a word has to be filled in"),
    ("rungate history FILE", "a word has to be filled in"),
    ("rungate simulate", "report executes it"),
    ("rungate shim install ", "a word has to be filled in"),
    ("rungate policy install --name ", "policy_install executes it"),
    ("rungate policy edit", "policy_edit executes it"),
    ("rungate init --repositories", "a comment in a file, and init executes it"),
    ("rungate simulate /etc/rungate/policy.toml ", "simulate executes it"),
    ("rungate end --", "end and expiry execute them"),
    ("rungate end REPOSITORY ", "a word has to be filled in"),
    ("rungate status", "two advices in one line: watch executes both"),
    ("journalctl -t ", "for a machine with a journal"),
    ("mkdir -m 700 ", "of init, when XDG_CONFIG_HOME names a missing directory: tools::init reads it"),
    ("install -d -m 3770 -g GROUP ", "a word has to be filled in"),
    ("mkdir -p ", "the beginning of a remedy that ways_in executes"),
    ("etcdctl ", "for whoever runs the etcd of a site"),
];

/// A hint is a command that works when its reader pastes it: every refusal, and every hint of the sources.
#[test]
fn every_hint_of_every_refusal_works_when_pasted() {
    needs_root!();
    let pasted = Pasted::default();
    let failed: Vec<&str> = thread::scope(|scope| {
        let begin = |(name, scene): Scene| {
            (
                name,
                scope.spawn({
                    let pasted = &pasted;
                    move || scene(pasted)
                }),
            )
        };
        let scenes: Vec<_> = SCENES.into_iter().map(begin).collect();
        scenes.into_iter().filter_map(|(name, scene)| scene.join().is_err().then_some(name)).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut hints = BTreeSet::new();
    hints_of_sources(&root, &mut hints);
    let is_there = |begin: &str| hints.iter().any(|(_, hint)| hint.starts_with(begin));
    let gone: Vec<&str> =
        ELSEWHERE.iter().map(|(begin, _)| *begin).filter(|begin| !is_there(begin)).collect();
    assert!(gone.is_empty(), "the sources have no {gone:?}");
    let missing: Vec<_> = hints
        .iter()
        .filter(|(_, hint)| !pasted.has(hint) && !ELSEWHERE.iter().any(|(begin, _)| hint.starts_with(begin)))
        .collect();
    assert!(missing.is_empty(), "no scene pastes {missing:#?} of {:#?}", pasted.0);
}

/// The hints in the text of the program, up to the first word that is put in, each with its file. What the
/// doctor suggests is run by its own tests; `cli` and `text` suggest nothing.
fn hints_of_sources(directory: &Path, hints: &mut BTreeSet<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            if !["doctor", "cli", "text", "tests"].iter().any(|name| path.ends_with(name)) {
                hints_of_sources(&path, hints);
            }
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let begins = |program: &str| [format!(": {program} "), format!("\"{program} ")];
            for begin in PROGRAMS.into_iter().flat_map(begins) {
                for (at, _) in line.match_indices(&begin) {
                    let hint = line[at..].trim_start_matches([':', ' ', '"']);
                    let hint = hint.split(['{', '"', '\\']).next().unwrap_or_default();
                    hints.insert((path.clone(), hint.to_owned()));
                }
            }
        }
    }
}
