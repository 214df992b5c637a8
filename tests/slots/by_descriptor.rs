//! `rungate acquire`: open descriptors of a script keep slots, as rungate-acquire(1) says.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Ending, Outcome, Running, Site, eventually, listing, needs_strace, seats};

const TWO: &str = r#"
    [repository.seats]
    limit = 1

    [repository.per-user]
    per   = "user"
    limit = 2

    [[rule]]
    name     = "both"
    commands = ["both"]
    acquire  = ["seats", "per-user"]

    [[rule]]
    name     = "seats"
    commands = ["deploy"]
    acquire  = ["seats"]
    "#;

fn site(policy: &str) -> Site {
    let site = Site::with_policy(policy);
    site.rungate_in_bin();
    site
}

/// A shell that does what it reads.
fn shell(site: &Site) -> Running {
    site.test().program("/bin/bash").background()
}

/// Has the shell do something, and gives its status.
#[track_caller]
fn have(shell: &mut Running, what: &str) -> String {
    shell.write_line(&format!("{what}\necho \"status $?\""));
    shell.read_line()
}

fn outcome(site: &Site, script: &str) -> Outcome {
    site.test().program("/bin/bash").args(["-c", script]).outcome()
}

const LOCK: &str = "exec 9<\"$(rungate acquire --path deploy)\" && rungate acquire --fd 9 deploy";

/// The slots are free again when the last process that inherited a descriptor has closed it or ended.
#[test]
fn a_descriptor_of_the_shell_keeps_the_slot_until_it_is_closed() {
    let site = site(TWO);
    let mut shell = shell(&site);
    assert_eq!(have(&mut shell, LOCK), "status 0\n");
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    assert_eq!(have(&mut shell, "exec 9<&-"), "status 0\n");
    assert_eq!(site.held("seats.lock"), []);
    assert_eq!(have(&mut shell, LOCK), "status 0\n");
    assert_eq!(have(&mut shell, "sleep 1000 & exec 9<&-"), "status 0\n");
    assert_eq!(site.held_numbers("seats.lock"), [1], "a child inherited it");
    assert_eq!(have(&mut shell, "kill $!; wait; :"), "status 0\n");
    assert_eq!(site.held("seats.lock"), []);
    assert_eq!(have(&mut shell, LOCK), "status 0\n");
    drop(shell);
    eventually("the shell was killed", || site.held("seats.lock").is_empty().then_some(()));
}

/// The record still names the shell, which has closed its descriptor: it waits for its child, not for itself.
#[test]
fn a_script_waits_for_a_child_that_keeps_the_slot() {
    let site = site(TWO);
    let mut shell = shell(&site);
    assert_eq!(have(&mut shell, LOCK), "status 0\n");
    assert_eq!(have(&mut shell, "sleep 1000 & exec 9<&-"), "status 0\n");
    shell.write_line("echo $!");
    let child: i32 = shell.read_line().trim().parse().expect("a PID");
    shell.write_line(&format!("{}; echo \"status $?\"", LOCK.replace("--fd 9", "--fd 9 -w 10m")));
    eventually("it waits", || (site.line("seats.lock").len() == 1).then_some(()));
    kill(Pid::from_raw(child), Signal::SIGKILL).expect("the child");
    assert_eq!(shell.read_line(), "status 0\n");
}

/// The listing names the script, also if it asked from a subshell. An ancestor that has opened the file
/// itself keeps nothing.
#[test]
fn the_script_is_the_holder() {
    let site = site(TWO);
    let mut shell = shell(&site);
    let subshell =
        "exec 9<\"$(rungate acquire --path deploy)\"; out=$(:; rungate acquire --fd 9 deploy; exit $?)";
    assert_eq!(have(&mut shell, subshell), "status 0\n");
    let holders = || {
        let listed = listing(&site.test());
        let of_seats = listed.iter().find(|one| one["repository"] == "seats").expect("it is in use");
        of_seats["holders"].as_array().expect("holders").clone()
    };
    let of_script = holders();
    assert_eq!(of_script.len(), 1);
    assert_eq!(of_script[0]["pid"], shell.pid());
    assert_eq!(of_script[0]["command"], "deploy");
    assert_eq!(of_script[0]["hold"], "descriptor");
    assert_eq!(have(&mut shell, "exec 9<&-; exec 9<\"$(rungate acquire --path deploy)\""), "status 0\n");
    assert_eq!(have(&mut shell, &format!("/bin/bash\n{LOCK}")), "status 0\n");
    shell.write_line("echo $$");
    let below: i32 = shell.read_line().trim().parse().expect("the number of the shell below");
    assert_eq!(holders()[0]["pid"], below);
}

/// A second script is refused with the status of `rungate run`, and waits with `--wait` until the first has closed.
#[test]
fn a_second_script_is_refused_or_waits() {
    let site = site(TWO);
    let mut first = shell(&site);
    assert_eq!(have(&mut first, LOCK), "status 0\n");
    let mut second = shell(&site);
    assert_eq!(have(&mut second, &format!("{LOCK} 2>/dev/null")), "status 75\n");
    second.write_line("rungate acquire --fd 9 --wait 1h deploy 2>/dev/null; echo \"status $?\"");
    eventually("it waits", || (site.line("seats.lock").len() == 1).then_some(()));
    assert_eq!(have(&mut first, "exec 9<&-"), "status 0\n");
    assert_eq!(second.read_line(), "status 0\n");
    assert_eq!(site.held_numbers("seats.lock"), [1]);
}

/// It takes all slots or none: where one of two repositories is full, nothing of the other is held.
#[test]
fn all_or_none() {
    let site = site(TWO);
    let mut first = shell(&site);
    assert_eq!(have(&mut first, LOCK), "status 0\n");
    let mut second = shell(&site);
    let open = "{ read -r a; read -r b; } < <(rungate acquire --path both); exec 7<\"$a\" 8<\"$b\"";
    assert_eq!(have(&mut second, open), "status 0\n");
    assert_eq!(have(&mut second, "rungate acquire --fd 7 --fd 8 both 2>/dev/null"), "status 75\n");
    let per_user = format!("per-user.{}.lock", nix::unistd::getuid());
    assert_eq!(site.held(&per_user), []);
    assert_eq!(have(&mut first, "exec 9<&-"), "status 0\n");
    assert_eq!(have(&mut second, "rungate acquire --fd 7 --fd 8 both"), "status 0\n");
    assert_eq!((site.held_numbers("seats.lock"), site.held_numbers(&per_user)), (vec![1], vec![1]));
    assert_eq!(have(&mut second, "rungate acquire --fd 7 --fd 8 both"), "status 0\n", "it has them");
    assert_eq!(site.held_numbers(&per_user), [1], "as flock does");
}

/// So it is when a signal comes while it takes them: it reports the slots that the descriptors keep.
#[test]
fn a_signal_leaves_all_or_none() {
    needs_strace!();
    let site = site(TWO);
    let mut shell = shell(&site);
    let per_user = format!("per-user.{}.lock", nix::unistd::getuid());
    let held = || ["seats.lock", per_user.as_str()].map(|file| site.held_numbers(file).len());
    let mut acquire = |inject: &str| {
        let open = "{ read -r a; read -r b; } < <(rungate acquire --path both); exec 7<\"$a\" 8<\"$b\"";
        assert_eq!(have(&mut shell, open), "status 0\n");
        let trace = site.path("work/trace");
        let strace = format!("strace -qq -o {} -e trace=fcntl{inject}", trace.display());
        let status = have(&mut shell, &format!("{strace} rungate acquire --fd 7 --fd 8 both"));
        let found = (status, held());
        assert_eq!(have(&mut shell, "exec 7<&- 8<&-"), "status 0\n");
        assert_eq!(held(), [0, 0]);
        (found, fs::read_to_string(trace).expect("the record of the calls"))
    };
    let complete = ("status 0\n".to_owned(), [1, 1]);
    let nothing = ("status 143\n".to_owned(), [0, 0]);
    let (found, calls) = acquire("");
    assert_eq!(found, complete);
    let locks = calls.lines().enumerate().filter(|(_, call)| call.contains("F_OFD_SETLK"));
    let mut completed = 0;
    for (before, call) in locks {
        let (found, _) = acquire(&format!(" -e inject=fcntl:signal=TERM:when={}", before + 1));
        assert!(found == complete || found == nothing, "{call}: {found:?}");
        completed += usize::from(found == complete);
    }
    assert!(completed >= 2, "one for each slot: {completed}\n{calls}");
}

const HELD: &str = r#"
    [repository.a]
    limit = 1

    [repository.b]
    limit = 1

    [repository.soft]
    limit   = 1
    enforce = false

    [repository.pause]
    limit      = 1
    if_elapsed = "1h"

    [[rule]]
    name     = "either"
    commands = ["either"]
    acquire  = [{ any_of = ["a", "b"] }]

    [[rule]]
    name     = "both"
    commands = ["both"]
    acquire  = ["a", "b"]

    [[rule]]
    name     = "one"
    commands = ["one"]
    acquire  = ["a"]

    [[rule]]
    name     = "a-soft"
    commands = ["a-soft"]
    acquire  = ["a", "soft"]

    [[rule]]
    name     = "soft"
    commands = ["soft"]
    acquire  = ["soft"]

    [[rule]]
    name     = "pause"
    commands = ["pause", "free"]
    acquire  = ["pause"]

    [[rule]]
    name     = "free"
    commands = ["free"]
    action   = "exempt"

    [[rule]]
    name     = "of others"
    commands = ["theirs", "*-of-theirs"]
    users    = ["daemon"]
    acquire  = ["a"]
    "#;

/// It changes nothing if the descriptors keep what the command needs, even if some of them keep nothing.
#[test]
fn what_is_held_already_is_enough() {
    let site = site(HELD);
    let mut shell = shell(&site);
    let open = |command: &str| {
        format!("{{ read -r a; read -r b; }} < <(rungate acquire --path {command}); exec 7<\"$a\" 8<\"$b\"")
    };
    assert_eq!(have(&mut shell, &open("either")), "status 0\n");
    for _ in 0..2 {
        assert_eq!(have(&mut shell, "rungate acquire --fd 7 --fd 8 either"), "status 0\n");
        assert_eq!((site.held_numbers("a.lock"), site.held("b.lock").len()), (vec![1], 0));
    }
    assert_eq!(have(&mut shell, "rungate acquire --fd 7 --fd 8 both 2>/dev/null"), "status 64\n");
    assert_eq!(have(&mut shell, "rungate acquire --fd 7 both 2>/dev/null"), "status 64\n", "b is missing");
    // Two descriptors of one file.
    assert_eq!(have(&mut shell, &format!("{}; exec 8<\"$a\"", open("either"))), "status 0\n");
    for _ in 0..2 {
        assert_eq!(have(&mut shell, "rungate acquire --fd 7 --fd 8 one"), "status 0\n");
    }
    // A repository that is full and not enforced.
    let mut other = self::shell(&site);
    let soft = "exec 9<\"$(rungate acquire --path soft)\" && rungate acquire --fd 9 soft";
    assert_eq!(have(&mut other, soft), "status 0\n");
    assert_eq!(have(&mut shell, &open("a-soft")), "status 0\n");
    for _ in 0..2 {
        assert_eq!(have(&mut shell, "rungate acquire --fd 7 --fd 8 a-soft 2>/dev/null"), "status 0\n");
    }
}

/// Slots that are given back because the variables could not be printed begin no pause.
#[test]
fn variables_that_cannot_be_printed_begin_no_pause() {
    let site = site(HELD);
    let open = "exec 9<\"$(rungate acquire --path pause)\";";
    let script = format!("{open} rungate acquire --fd 9 --export pause >/dev/full");
    assert_eq!(outcome(&site, &script).ending, Ending::Status(71));
    assert_eq!(outcome(&site, &format!("{open} rungate acquire --fd 9 pause")).ending, Ending::Status(0));
    assert_eq!(outcome(&site, &format!("{open} rungate acquire --fd 9 pause")).ending, Ending::Status(69));
}

/// So do slots that are given back because the process that was to read the variables has ended, whether SIGPIPE ends
/// the command or is ignored. The descriptor keeps nothing, although it is open.
#[test]
fn variables_that_no_process_reads_begin_no_pause() {
    for (handler, status) in [("-", 128 + 13), ("''", 71)] {
        let site = site(HELD);
        let open = "exec 9<\"$(rungate acquire --path pause)\";";
        let script = format!(
            "{open} trap {handler} PIPE; exec 8> >(:); wait $!; rungate acquire --fd 9 --export pause >&8; echo $?; \
             exec 8>&-; rungate list --json | tr , '\\n' | grep -c '\"pid\"'; true"
        );
        let Outcome { stdout, stderr, .. } = outcome(&site, &script);
        assert_eq!(stdout, format!("{status}\n0\n"), "{stderr}");
        assert_eq!(stderr.contains("standard output cannot be written"), status == 71, "{stderr}");
        let acquire = format!("{open} rungate acquire --fd 9 pause");
        assert_eq!(outcome(&site, &acquire).ending, Ending::Status(0), "{status}");
        assert_eq!(outcome(&site, &acquire).ending, Ending::Status(69), "{status}");
    }
}

/// The script of rungate-acquire(1) continues for a user who is exempt, or whom no rule for the command limits:
/// the command needs no slots. A name that no rule has is refused, even where rules have patterns.
#[test]
fn a_script_that_needs_no_slots_continues() {
    let site = site(HELD);
    for command in ["free", "theirs"] {
        let script = "exec 9<\"$(rungate acquire --path COMMAND)\" || exit
                      rungate acquire --fd 9 COMMAND || exit; echo on";
        let Outcome { stdout, stderr, ending } = outcome(&site, &script.replace("COMMAND", command));
        assert_eq!((stdout.as_str(), stderr.as_str(), ending), ("on\n", "", Ending::Status(0)), "{command}");
    }
    for open in ["--path", "--fd 9 9</dev/null"] {
        let Outcome { stdout, stderr, ending } =
            outcome(&site, &format!("rungate acquire {open} misspelled"));
        assert_eq!((stdout.as_str(), ending), ("", Ending::Status(78)), "{open}: {stderr}");
        assert!(stderr.contains("misspelled: nothing to acquire"), "{open}: {stderr}");
    }
    // A limit of one's own applies whatever the policy exempts from, as with rungate run.
    let Outcome { stdout, .. } = outcome(&site, "rungate acquire --path --limit 1 free");
    assert!(stdout.ends_with("free.lock\n"), "{stdout}");
}

/// The script of rungate-acquire(1) for any number of paths: two, one, that of an exempt user, none.
#[test]
fn a_script_opens_all_that_it_needs() {
    let site = site(HELD);
    for (command, files, status) in [("both", 2, 0), ("pause", 1, 0), ("free", 0, 0), ("unknown", 0, 64)] {
        let script = "fds=(); while read -r path; do exec {fd}<\"$path\" && fds+=(--fd \"$fd\"); done \
                      < <(rungate acquire --path COMMAND); rungate acquire \"${fds[@]}\" COMMAND || exit; \
                      rungate list --json | tr , '\\n' | grep -c '\"pid\"'; true";
        let Outcome { stdout, stderr, ending } = outcome(&site, &script.replace("COMMAND", command));
        let held = if status == 0 { format!("{files}\n") } else { String::new() };
        assert_eq!((stdout, ending), (held, Ending::Status(status)), "{command}: {stderr}");
    }
}

/// A process that has replaced itself by the same command is one holder, however many locks it has.
#[test]
fn a_process_with_several_locks_is_one_holder() {
    let site = site(&seats(1, "hold = \"descriptor\"\nshared_by = \"user\"", &["job"]));
    let script = "exec rungate run --as job -- sh -c 'exec rungate run --as job -- cat'";
    let mut chain = site.test().program("/bin/bash").args(["-c", script]).background();
    chain.write_line("ready");
    assert_eq!(chain.read_line(), "ready\n");
    let listed = listing(&site.test());
    let holders = listed[0]["holders"].as_array().expect("holders");
    let pids: Vec<&serde_json::Value> = holders.iter().map(|one| &one["pid"]).collect();
    assert_eq!(pids, [&serde_json::Value::from(chain.pid())], "{listed:?}");
    assert_eq!(holders[0]["shared_with"], serde_json::json!([]), "{listed:?}");
}

/// No path is printed if one of the lock files cannot be made.
#[test]
fn a_lock_file_that_cannot_be_made_is_no_path() {
    let site = site(TWO);
    site.write("work/file", "");
    site.policy(&format!("version = 1\ndefaults.directory = \"$DIR/work/file/below\"\n{TWO}"));
    let Outcome { stdout, stderr, ending } = outcome(&site, "rungate acquire --path deploy");
    assert_eq!((stdout.as_str(), ending), ("", Ending::Status(74)), "{stderr}");
    assert!(stderr.contains("deploy: "), "{stderr}");
}

/// Each lock file needs a descriptor, and each descriptor a lock file; nothing is taken otherwise.
#[test]
fn what_cannot_keep_a_slot_is_refused() {
    let site = site(TWO);
    let refused = |script: &str, status: i32, text: &str| {
        let Outcome { stderr, ending, .. } = outcome(&site, script);
        assert_eq!(ending, Ending::Status(status), "{script}: {stderr}");
        assert!(stderr.contains(text), "{script}: {stderr}");
        assert_eq!(site.held("seats.lock"), []);
    };
    let path = "p=$(rungate acquire --path deploy);";
    refused("rungate acquire --fd 9 deploy", 64, "descriptor 9 is not open: ");
    refused("exec 9</; rungate acquire --fd 9 deploy", 64, "descriptor 9 is not open for a file");
    refused(&format!("{path} exec 9>>$p; rungate acquire --fd 9 deploy"), 64, "is open only to write");
    refused("exec 9</etc/passwd; rungate acquire --fd 9 deploy", 64, "is not open for a lock file of this");
    refused(
        &format!("{path} exec 9<$p; rungate acquire --fd 9 both"),
        74,
        "none of the descriptors given is open for",
    );
    refused(
        &format!("{path} exec 9<$p; rm $p; rungate acquire --fd 9 deploy"),
        64,
        "is not open for a lock file",
    );
    refused("exec 9</etc/passwd; rungate acquire --fd 9 other", 78, "nothing to acquire");
}

/// A hold that a descriptor cannot keep is refused, never loosened.
#[test]
fn a_stronger_hold_is_never_loosened() {
    let site = site(&seats(1, "hold = \"tree\"", &["deploy"]));
    let Outcome { stderr, ending, .. } = outcome(&site, LOCK);
    assert_eq!(ending, Ending::Status(78), "{stderr}");
    assert!(stderr.contains("the policy demands hold = \"tree\""), "{stderr}");
    assert_eq!(site.held("seats.lock"), []);
}

/// A launch of the same command below the script uses the slot of the script if it learns of it.
#[test]
fn a_launch_below_joins() {
    let site = site(TWO);
    site.copy_of("/bin/true", "deploy");
    let join = format!("{LOCK}; env=$(rungate acquire --fd 9 --export deploy); rungate run -- deploy");
    assert_eq!(
        outcome(&site, &join).ending,
        Ending::Status(75),
        "the descriptor has its slot: nothing to print"
    );
    let join = "exec 9<\"$(rungate acquire --path deploy)\"; env=$(rungate acquire --fd 9 --export deploy) || exit; \
                eval \"$env\"; echo $RUNGATE_HELD; exec rungate run -- deploy";
    let Outcome { stdout, stderr, ending } = outcome(&site, join);
    assert_eq!((stdout.as_str(), stderr.as_str(), ending), ("seats=1\n", "", Ending::Status(0)));
}

/// Below a holder, a descriptor uses the slot of the holder: that is as many as the command needs, so nothing changes
/// when it asks again. It is not once the holder's slot is lost, even if the descriptor still says that it uses it.
#[test]
fn a_descriptor_that_uses_a_slot_of_a_holder_above_keeps_it() {
    for limit in [1, 2] {
        let site = site(&seats(limit, "hold = \"descriptor\"", &["deploy"]));
        site.script("deploy", "#!/bin/bash\nexec /bin/bash\n");
        let mut shell = site.test().args(["run", "--", "deploy"]).background();
        assert_eq!(have(&mut shell, LOCK), "status 0\n");
        assert_eq!(site.held_numbers("seats.lock"), [1], "it is that of the holder");
        for _ in 0..2 {
            assert_eq!(have(&mut shell, "rungate acquire --fd 9 deploy"), "status 0\n", "{limit}");
            assert_eq!(site.held_numbers("seats.lock"), [1], "{limit}");
        }
        let lose = "for fd in /proc/$$/fd/2??; do eval \"exec ${fd##*/}<&-\"; done";
        assert_eq!(have(&mut shell, lose), "status 0\n");
        assert_eq!(site.held("seats.lock"), [], "{limit}: the descriptor of the holder is closed");
        for _ in 0..2 {
            assert_eq!(have(&mut shell, "rungate acquire --fd 9 deploy"), "status 0\n", "{limit}");
            assert_eq!(site.held("seats.lock").len(), 1, "{limit}");
        }
    }
}

/// Without a policy, `--limit` makes a lock of the user's own.
#[test]
fn a_limit_of_its_own() {
    let site = Site::new();
    site.rungate_in_bin();
    let script =
        "exec 9<\"$(rungate acquire --path --limit 1 nightly)\"; rungate acquire --fd 9 --limit 1 nightly";
    let mut first = shell(&site);
    assert_eq!(have(&mut first, script), "status 0\n");
    assert_eq!(outcome(&site, script).ending, Ending::Status(75));
    drop(first);
    eventually("it is free", || (outcome(&site, script).ending == Ending::Status(0)).then_some(()));
}

/// Scripts that acquire, launches, and a limit: never one too many.
#[test]
fn storm_of_scripts_and_launches() {
    let site = site(&seats(1, "wait = \"forever\"", &["job"]));
    let body = "mkdir $DIR/work/in 2>/dev/null || echo two >>$DIR/work/bad; rmdir $DIR/work/in";
    let body = body.replace("$DIR", site.path("").to_str().expect("a plain path").trim_end_matches('/'));
    site.script("job", &body);
    let by_descriptor = format!(
        "for i in 1 2 3 4; do exec 9<\"$(rungate acquire --path job)\"; rungate acquire --fd 9 job 2>/dev/null || exit; \
         {body}; exec 9<&-; done"
    );
    let by_run = "for i in 1 2 3 4; do rungate run -q -- job || exit; done";
    let all: Vec<Running> = (0..8)
        .map(|number| if number % 2 == 0 { by_descriptor.as_str() } else { by_run })
        .map(|script| site.test().program("/bin/bash").args(["-c", script]).background())
        .collect();
    for mut one in all {
        assert_eq!(one.end().ending, Ending::Status(0));
    }
    assert!(!site.path("work/bad").exists(), "{:?}", fs::read_to_string(site.path("work/bad")));
}

/// A descriptor keeps as many slots as it has locked: for a command that wants more, that is not enough.
#[test]
fn a_descriptor_with_too_few_slots_is_not_enough() {
    let site = site(
        r#"
        [repository.seats]
        limit = 4

        [[rule]]
        commands = ["small"]
        acquire  = ["seats"]

        [[rule]]
        commands = ["big"]
        acquire  = [{ repository = "seats", slots = 4 }]
        "#,
    );
    let open = "exec 9<\"$(rungate acquire --path small)\"";
    let few = outcome(&site, &format!("{open}; rungate acquire --fd 9 small && rungate acquire --fd 9 big"));
    let said = "rungate: big: descriptor 9 keeps a slot already, but the command needs others too\n\
                To give it back: exec 9<&-\n";
    assert_eq!((few.ending, few.stderr.as_str()), (Ending::Status(64), said));
    let many = "rungate acquire --fd 9 big && rungate acquire --fd 9 big && rungate acquire --fd 9 small";
    assert_eq!(outcome(&site, &format!("{open}; {many}")).ending, Ending::Status(0));
}
