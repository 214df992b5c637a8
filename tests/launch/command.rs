//! The manners of a prefix command: silent success, options that end at the first operand, and the ad-hoc
//! form that needs no policy.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::support::{Account, Ending, Site, Test, is_root};

const POLICY: &str = r#"
    [repository.seats]
    limit = 2

    [[rule]]
    name     = "two seats"
    commands = ["matlab"]
    acquire  = ["seats"]
"#;

/// Standard output has only what was requested; success is silent.
#[test]
pub(crate) fn success_is_silent() {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.test().args(["run", "--", "matlab"]).stdin("4711\n").stdout("4711\n").status(0);
    assert_eq!(site.held("seats.lock"), []);
}

/// Options end at the first operand: what follows is the command's, whatever it looks like.
#[test]
pub(crate) fn options_end_at_the_command() {
    let site = Site::with_policy(POLICY);
    site.script("matlab", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
    for words in [
        &["run", "matlab"][..],
        &["run", "--", "matlab"],
        &["run", "-n", "matlab"],
        &["run", "-n", "--", "matlab"],
    ] {
        site.test()
            .args(words)
            .args(["--help", "-q", "--policy=/none", "--", "-n", "--version"])
            .stdout("<--help><-q><--policy=/none><--><-n><--version>")
            .status(0);
    }
    // A mistyped option must not become the command.
    site.test().args(["run", "--quite", "matlab"]).stderr("rungate: [..]--quite[..]\n...\n").status(64);
}

/// "The program sees `RUNGATE_HELD="matlab=17 matlab-per-user=2"` (repository=slot,…);
/// `RUNGATE_SLOT_MATLAB=17` is the same for one."
#[test]
pub(crate) fn the_program_learns_its_slots() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 8

        [repository.gpu-cards]
        limit = 8

        [[rule]]
        name     = "both"
        commands = ["matlab", "show"]
        acquire  = ["seats", { repository = "gpu-cards", slots = 2 }]
        "#,
    );
    site.program("matlab");
    site.script("show", "#!/bin/sh\nenv | grep ^RUNGATE_ | sort\n");
    let policy = ["run", "--policy", "$DIR/policy.toml", "--", "show"];
    let show = |seats, cards| {
        let text = format!(
            "RUNGATE_HELD=seats={seats} gpu-cards={cards}\nRUNGATE_SLOT_GPU_CARDS={cards}\nRUNGATE_SLOT_SEATS={seats}\n"
        );
        site.test().env_remove("RUNGATE_POLICY").args(policy).stdout(&text)
    };
    show("1", "1,2").status(0);
    // Slots are handed out in turn, not always the lowest.
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!((site.held_numbers("seats.lock"), site.held_numbers("gpu-cards.lock")), (vec![2], vec![3, 4]));
    show("3", "5,6").status(0);
}

/// `--limit` alone uses a repository named after the command in `$XDG_RUNTIME_DIR/rungate`.
#[test]
pub(crate) fn a_limit_alone_needs_no_policy() {
    let site = Site::new();
    site.program("matlab");
    let matlab = site.test().args(["run", "--limit", "1", "--", "matlab"]);
    let running = matlab.spawn();
    let file = format!("$DIR/run/{}/rungate/matlab.lock", Account::own().uid);
    matlab
        .clone()
        .stderr(&format!(
            "
            rungate: matlab: not started: the limit is reached
              matlab  1 of 1 used
                  --limit 1, {file}
                  PID {} {} matlab, since [time] ([age])
            Close one of yours, or wait in the queue: rungate run --wait 30m --limit 1 -- matlab
            To end the oldest of yours: rungate end {file} [pid]
            ",
            running.pid(),
            Account::own().name
        ))
        .status(75);
    let found = fs::metadata(site.expand(&file)).expect("the lock file");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    drop(running);
    matlab.status(0);
}

/// Else a private directory under `/tmp`, its owner checked.
#[test]
pub(crate) fn without_a_runtime_directory_there_is_a_private_one() {
    // The same over the agent uses the same directory, and the same lock file in it.
    let _alone = crate::support::alone_with_the_machine();
    let site = Site::new();
    // The directory is this machine's: others may be at it just now.
    let touch =
        site.test().env_remove("XDG_RUNTIME_DIR").args(["run", "--limit", "1000", "-v", "--", "true"]);
    let touch = touch.stderr("rungate: true: [..]\n");
    touch.status(0);
    let is_private = |user: &Account| {
        let directory = format!("/tmp/rungate-{}", user.uid);
        let found = fs::symlink_metadata(directory).expect("the private directory");
        assert!(found.is_dir());
        assert_eq!((found.uid(), found.permissions().mode() & 0o777), (user.uid, 0o700));
    };
    is_private(&Account::own());
    // A relative path names no directory.
    let own = Account::own().uid.to_string();
    touch.clone().directory("run").env("XDG_RUNTIME_DIR", &own).status(0);
    assert!(!site.path(format!("run/{own}/rungate")).exists());
    // Root may have any directory; the second launch finds what the first has made.
    if is_root() {
        for _ in 0..2 {
            touch.clone().user("www-data").status(0);
            is_private(&Account::named("www-data"));
        }
        // After a change of user the variable may name the directory of another one.
        touch.clone().user("www-data").env("XDG_RUNTIME_DIR", format!("$DIR/run/{own}")).status(0);
    }
}

/// Ad hoc, beside or without a policy: `--repository FILE --limit N [--slots K]`.
#[test]
pub(crate) fn a_named_repository_needs_no_policy() {
    let site = Site::new();
    site.program("matlab");
    let seats = ["run", "--repository", "$DIR/repositories/seats", "--limit", "3"];
    let two = site.test().args(seats).args(["--slots", "2", "--", "matlab"]);
    let running = two.spawn();
    assert_eq!(site.held_numbers("seats"), [1, 2]);
    two.clone()
        .stderr(&format!(
            "
            rungate: matlab: not started: the limit is reached
              seats  2 of 3 used, 2 more wanted
                  --limit 3, $DIR/repositories/seats
                  PID {} {} matlab, 2 slots, since [time] ([age])
            Close one of yours, or wait in the queue: [..] run --wait 30m --repository $DIR/repositories/seats [..]
            To end the oldest of yours: rungate end $DIR/repositories/seats [pid]
            ",
            running.pid(),
            Account::own().name
        ))
        .status(75);
    site.test().args(seats).args(["--", "matlab"]).status(0);
    // A path is relative to the working directory.
    let relative = site.test().directory("repositories").args([
        "run",
        "--repository",
        "seats",
        "--limit",
        "2",
        "matlab",
    ]);
    assert_eq!(relative.outcome().ending, Ending::Status(75));
}

#[test]
pub(crate) fn a_named_repository_counts_beside_the_policy() {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    let beside =
        site.test().args(["run", "--repository", "$DIR/repositories/mine", "--limit", "1", "--", "matlab"]);
    let running = beside.spawn();
    assert_eq!((site.held_numbers("seats.lock"), site.held_numbers("mine")), (vec![1], vec![1]));
    beside
        .clone()
        .stderr("rungate: matlab: not started: 1 of 2 limits is reached\n  mine  1 of 1 used\n...\n")
        .status(75);
    let _other = site.test().args(["run", "--", "matlab"]).spawn();
    beside
        .stderr(
            "
            rungate: matlab: not started: both limits are reached
              seats  2 of 2 used
            ...
              mine  1 of 1 used
            ...
            ",
        )
        .status(75);
    drop(running);
}

/// The policy may name the very file: then it is one claim, with the lowest limit.
#[test]
pub(crate) fn a_named_repository_may_be_one_of_the_policys() {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    let same = site.test().args([
        "run",
        "--repository",
        "$DIR/repositories/seats.lock",
        "--limit",
        "1",
        "--",
        "matlab",
    ]);
    let running = same.spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    same.clone().stderr("rungate: matlab: not started: [..]\n...\n").status(75);
    site.test().args(["run", "--", "matlab"]).status(0);
    drop(running);
}

/// `-q`: say nothing when the command is refused; what is wrong is still said.
#[test]
pub(crate) fn quiet() {
    let site = Site::with_policy(&POLICY.replace("limit = 2", "limit = 0"));
    site.program("matlab");
    site.test().args(["run", "-q", "--", "matlab"]).status(75);
    site.test()
        .args(["run", "--quiet", "--", "missing"])
        .stderr("rungate: [..]missing[..]\n...\n")
        .status(127);
    site.test().args(["run", "-q", "-v", "--", "matlab"]).stderr("rungate: [..]\n...\n").status(64);
}

/// `-v`: say which slots were taken, and why.
#[test]
pub(crate) fn verbose() {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.test()
        .args(["run", "-v", "--", "matlab"])
        .stderr("rungate: matlab: starts with seats slot 1[..]\n...\n")
        .status(0);
    site.policy(&POLICY.replace("limit = 2", "limit = 0\n    enforce = false"));
    site.test()
        .args(["run", "-v", "--", "matlab"])
        .stderr("rungate: matlab: starts with no slot; seats is full, but not enforced\n...\n")
        .status(0);
    site.test().args(["run", "--verbose", "--", "true"]).stderr("rungate: true: [..]\n...\n").status(0);
}

/// Without a policy, and without a limit of one's own, rungate does not guess.
#[test]
pub(crate) fn no_policy_and_no_limit() {
    Test::new()
        .args(["run", "--", "true"])
        .stderr(
            "
            rungate: true: not started: there is no policy that says what may start
            Write one to begin with: rungate init true
            Or give a limit without one: rungate run --limit 1 -- true
            ",
        )
        .status(78);
}

/// What a launch adds to the environment can be too much. That is no fault of the program.
#[test]
pub(crate) fn an_environment_that_grew_too_long_is_named() {
    let name = "r".repeat(90);
    let repositories: Vec<String> = (0..10).map(|number| format!("{name}{number}")).collect();
    let mut policy: String =
        repositories.iter().map(|name| format!("[repository.{name}]\nlimit = 1\n")).collect();
    policy.push_str(&format!("[[rule]]\nname = \"all\"\ncommands = [\"job\"]\nacquire = {repositories:?}\n"));
    let site = Site::with_policy(&policy);
    site.program("job");
    // With so small a stack there are 128 KiB for everything; a launch adds one.
    let fill =
        "ulimit -s 512; fill=$(head -c \"$1\" /dev/zero | tr '\\0' x); export fill; shift; exec \"$@\"";
    let launch = |size: usize| {
        site.test().through(["sh", "-c", fill, "sh", &size.to_string()]).args(["run", "--", "job"]).outcome()
    };
    let outcome =
        (0..100).map(|step| launch(131_000 - 512 * step)).find(|outcome| !outcome.stderr.starts_with("sh: "));
    let outcome = outcome.expect("with less it starts");
    let expected = "/bin/job: not executed: its arguments and the environment, or one of them alone, are longer than the \
                    kernel allows (Argument list too long)\n";
    assert_eq!(outcome.ending, Ending::Status(126), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with(expected), "{}", outcome.stderr);
    assert!(site.held_numbers(&format!("{name}0.lock")).is_empty(), "nothing is left behind");
}

/// An option that should be followed by a number of slots, and is not, takes those of the policy: `-v` says
/// so, and so does `explain`.
#[test]
pub(crate) fn an_option_without_a_number_of_slots_is_told() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 4

        [[rule]]
        commands = ["job"]
        acquire  = [{ repository = "seats", slots_from = { after = "-np" } }]
        "#,
    );
    site.copy_of("/bin/true", "job");
    for (words, told) in [
        (&["-np", "x"][..], Some("\"-np x\" is not a number of slots")),
        (&["-np", "-1"][..], Some("\"-np -1\" is not a number of slots")),
        (&["-np"][..], Some("no number of slots follows \"-np\"")),
        (&["-np", "x", "-np8"][..], None),
        (&["-n", "x"][..], None),
    ] {
        let outcome = site.test().args(["run", "-v", "--", "job"]).args(words).outcome();
        let line = told.map(|told| format!("rungate: job: {told}: it takes 1 slot of seats"));
        let first = outcome.stderr.lines().next().unwrap_or_default().to_owned();
        assert_eq!(line.is_some(), first.contains("number of slots"), "{outcome:?}");
        assert!(line.is_none_or(|line| line == first), "{outcome:?}");
        let explained = site.test().args(["explain", "--", "job"]).args(words).outcome().stdout;
        assert_eq!(
            told.is_some(),
            told.is_some_and(|told| explained.contains(&format!("note  {told}"))),
            "{explained}"
        );
    }
}
