//! What keeps a slot: the table of the manual, each cell with real processes, and what the manual says below
//! it.
//!
//! | what happens | `process` | `descriptor` | `supervisor` | `tree` |
//! | --- | --- | --- | --- | --- |
//! | the program ends | free | free | free | free |
//! | the program closes every descriptor | free | free | kept | kept |
//! | the program ends and leaves a daemon that inherited everything | free | kept | free | kept |
//! | … and the daemon ends | free | free | free | free |
//! | the program ends and leaves a daemon that closed everything | free | free | free | kept |
//! | the launcher, or the supervisor, is killed with SIGKILL | free | free | kept | kept |
//! | … and the program ends | free | free | free | free |
//! | … which had closed every descriptor | free | free | free | free |
//! | the program is stopped | kept | kept | kept | kept |

use std::fs::{self, File, OpenOptions};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::support::{Ending, Running, Site, eventually, listing, needs_root, seats, state_of};

const HOLDS: [&str; 4] = ["process", "descriptor", "supervisor", "tree"];

/// One seat, and a program named `matlab` that does what it reads from its standard input, as a shell does.
fn site(hold: &str) -> Site {
    let site = Site::with_policy(&seats(1, &format!("hold = \"{hold}\""), &["matlab"]));
    site.copy_of("/bin/bash", "matlab");
    mkfifo(&site.path("daemon"), Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    site
}

fn matlab(site: &Site) -> Running {
    let mut running = site.test().args(["run", "--", "matlab"]).background();
    running.write_line("echo $$");
    running.read_line();
    assert_eq!(site.held_numbers("seats.lock"), [1], "what is free afterwards is held before");
    running
}

/// Has the program do something, and returns when it is done.
#[track_caller]
fn have(running: &mut Running, what: &str) {
    running.write_line(&format!("{what}\necho done"));
    assert_eq!(running.read_line(), "done\n", "{what}");
}

/// The process id of the program itself.
#[track_caller]
fn program(running: &mut Running) -> Pid {
    running.write_line("echo $$");
    Pid::from_raw(running.read_line().trim_end().parse().expect("a process id"))
}

const CLOSE_EVERYTHING: &str =
    "for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done";

/// Leaves a daemon that lives until the guard goes.
#[track_caller]
fn leave_a_daemon(site: &Site, running: &mut Running, first: &str) -> File {
    have(
        running,
        &format!("({first}; setsid cat <$DIR/daemon >/dev/null 2>&1 &)")
            .replace("$DIR", site.path("").to_str().expect("a plain path")),
    );
    OpenOptions::new().write(true).open(site.path("daemon")).expect("the daemon reads")
}

/// A row of the table in rungate-run(1): whether each of the holds keeps the slot.
#[track_caller]
fn manual(what: &str) -> [&'static str; 4] {
    let page = include_str!("../../man/rungate-run.1");
    let row = page.lines().find_map(|line| line.strip_prefix(&format!(".It {what} Ta ")));
    let cells: Vec<&str> =
        row.unwrap_or_else(|| panic!("no row \"{what}\" in rungate-run(1)")).split(" Ta ").collect();
    cells.try_into().expect("four holds")
}

/// The four cells of a row.
#[track_caller]
fn row(cells: [&str; 4], cell: impl Fn(&Site, &str) -> (Option<Running>, Option<File>)) {
    for (hold, expected) in HOLDS.into_iter().zip(cells) {
        let site = site(hold);
        let _guards = cell(&site, hold);
        match expected {
            "kept" => assert_eq!(site.held_numbers("seats.lock"), [1], "{hold}"),
            "free" => eventually(&format!("{hold}: the slot is free"), || {
                site.held("seats.lock").is_empty().then_some(())
            }),
            other => panic!("{hold}: {other}"),
        }
    }
}

#[test]
pub(crate) fn when_the_program_ends() {
    row(manual("ends"), |site, _| {
        let mut running = matlab(site);
        assert_eq!(site.held_numbers("seats.lock"), [1]);
        running.close_stdin();
        assert_eq!(running.end().ending, Ending::Status(0));
        assert_eq!(site.held("seats.lock"), [], "at once: whoever saw its end finds room");
        (None, None)
    });
}

#[test]
pub(crate) fn when_the_program_closes_every_descriptor() {
    row(manual("closes all descriptors"), |site, _| {
        let mut running = matlab(site);
        have(&mut running, CLOSE_EVERYTHING);
        (Some(running), None)
    });
}

#[test]
pub(crate) fn when_the_program_leaves_a_daemon_that_inherited_everything() {
    row(manual("leaves a daemon behind"), |site, hold| {
        let mut running = matlab(site);
        let program = program(&mut running);
        let daemon = leave_a_daemon(site, &mut running, ":");
        running.close_stdin();
        if hold == "tree" {
            eventually("the program is gone", || state_of(program.as_raw()).is_none().then_some(()));
            return (Some(running), Some(daemon));
        }
        assert_eq!(running.end().ending, Ending::Status(0));
        (None, Some(daemon))
    });
}

#[test]
pub(crate) fn when_the_daemon_ends() {
    row(["free", "free", "free", "free"], |site, _| {
        let mut running = matlab(site);
        let daemon = leave_a_daemon(site, &mut running, ":");
        running.close_stdin();
        drop(daemon);
        assert_eq!(running.end().ending, Ending::Status(0));
        (None, None)
    });
}

#[test]
pub(crate) fn when_the_program_leaves_a_daemon_that_closed_everything() {
    row(["free", "free", "free", "kept"], |site, hold| {
        let mut running = matlab(site);
        let program = program(&mut running);
        let daemon = leave_a_daemon(site, &mut running, &CLOSE_EVERYTHING.replace("$$", "$BASHPID"));
        running.close_stdin();
        if hold == "tree" {
            eventually("the program is gone", || state_of(program.as_raw()).is_none().then_some(()));
            return (Some(running), Some(daemon));
        }
        assert_eq!(running.end().ending, Ending::Status(0));
        (None, Some(daemon))
    });
}

#[test]
pub(crate) fn when_the_launcher_or_the_supervisor_is_killed() {
    row(manual("loses its launcher"), |site, _| {
        let running = matlab(site);
        running.signal(Signal::SIGKILL);
        eventually("it is dead", || running.is_zombie().then_some(()));
        (Some(running), None)
    });
}

#[test]
pub(crate) fn when_the_supervisor_is_killed_and_then_the_program_ends() {
    row(["free", "free", "free", "free"], |site, _| {
        let mut running = matlab(site);
        running.signal(Signal::SIGKILL);
        running.close_stdin();
        (Some(running), None)
    });
}

#[test]
pub(crate) fn when_the_supervisor_is_killed_and_the_program_had_closed_every_descriptor() {
    row(["free", "free", "free", "free"], |site, _| {
        let mut running = matlab(site);
        have(&mut running, CLOSE_EVERYTHING);
        running.signal(Signal::SIGKILL);
        (Some(running), None)
    });
}

#[test]
pub(crate) fn when_the_program_is_stopped() {
    row(manual("is stopped"), |site, _| {
        let mut running = matlab(site);
        let program = program(&mut running);
        kill(program, Signal::SIGSTOP).expect("a child can be stopped");
        eventually("the program is stopped", || (state_of(program.as_raw()) == Some('T')).then_some(()));
        assert_eq!(site.held_numbers("seats.lock"), [1]);
        running.signal(Signal::SIGCONT);
        have(&mut running, ":");
        (Some(running), None)
    });
}

/// The program cannot write to the repository: nor make it shorter, through anything that it inherited.
#[test]
pub(crate) fn the_program_cannot_write_to_the_repository_through_what_it_inherited() {
    for hold in ["descriptor", "supervisor", "tree"] {
        let site = site(hold);
        let mut running = matlab(&site);
        let program = program(&mut running);
        let ours = |number: &str| {
            fs::read_link(format!("/proc/{program}/fd/{number}"))
                .is_ok_and(|file| file == site.repository("seats.lock"))
        };
        let descriptors: Vec<String> = fs::read_dir(format!("/proc/{program}/fd"))
            .expect("the descriptors of a child")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a number"))
            .filter(|number| ours(number))
            .collect();
        let [number] = descriptors.as_slice() else { panic!("{hold}: {descriptors:?}") };
        let flags = fs::read_to_string(format!("/proc/{program}/fdinfo/{number}")).expect("its flags");
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).expect("its flags").trim();
        let flags = i32::from_str_radix(flags, 8).expect("an octal number");
        assert_eq!(flags & libc::O_ACCMODE, libc::O_RDONLY, "{hold}");
        let content = || fs::read(site.repository("seats.lock")).expect("the repository");
        // A supervisor records the process id of its command when that runs already.
        let named = format!("\"pid\":{program},");
        eventually("the record names the program", || {
            String::from_utf8_lossy(&content()).contains(&named).then_some(())
        });
        let before = content();
        let attempt = format!(
            "echo x >&{number}; echo $?; perl -e 'open my $f, \"<&=\", {number}; print truncate($f, 0) ? 0 : 1, \"\\n\"'"
        );
        running.write_line(&attempt);
        assert_eq!(running.read_line(), "1\n", "{hold}: writing fails");
        assert_eq!(running.read_line(), "1\n", "{hold}: truncating fails");
        assert!(content() == before, "{hold}");
    }
}

/// A rule or repository that does not say adds nothing; of those that say … the strongest hold; where none
/// says, the defaults. `--hold` overrides the defaults, and tightens, never loosens, what a rule or
/// repository says.
#[test]
pub(crate) fn the_strongest_hold_counts() {
    let cases = [
        ("", "", "", "process"),
        ("descriptor", "", "", "descriptor"),
        ("descriptor", "", "process", "process"),
        ("process", "", "tree", "tree"),
        ("tree", "descriptor", "", "descriptor"),
        ("", "descriptor", "process", "descriptor"),
        ("", "supervisor", "tree", "tree"),
        ("", "tree", "supervisor", "tree"),
    ];
    for (default, rule, option, expected) in cases {
        let line = |hold: &str| if hold.is_empty() { String::new() } else { format!("hold = \"{hold}\"\n") };
        let site = Site::with_policy(&format!(
            "version = 1\n[defaults]\ndirectory = \"$DIR/repositories\"\n{}\
            [repository.seats]\nlimit = 2\n\
            [[rule]]\nname = \"seats\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n{}\
            [[rule]]\nname = \"the same\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n{}",
            line(default),
            line(rule),
            line(if rule.is_empty() { "" } else { "process" })
        ));
        site.program("matlab");
        let options = if option.is_empty() { vec![] } else { vec!["--hold", option] };
        let _running = site.test().args(["run"]).args(options).args(["--", "matlab"]).spawn();
        let listed = site.test().args(["list", "--json", "seats"]).outcome().stdout;
        assert!(listed.contains(&format!("\"hold\": \"{expected}\"")), "{default} {rule} {option}: {listed}");
    }
}

/// `list` names the holder of a slot whose lock has no PID.
#[test]
pub(crate) fn a_holder_whose_lock_has_no_process_is_listed_all_the_same() {
    for (hold, shown) in [("descriptor", "descr."), ("supervisor", "superv."), ("tree", "tree")] {
        let site = site(hold);
        let mut running = matlab(&site);
        assert_eq!(site.held("seats.lock")[0].pid, -1, "the kernel names nobody");
        let program = program(&mut running);
        eventually("the program is written down", || {
            let listed = listing(&site.test());
            (listed[0]["holders"][0]["pid"].as_i64() == Some(program.as_raw().into())).then_some(())
        });
        site.test()
            .args(["list", "seats"])
            .stdout(&format!(
                "
                seats: 1 of 1 used
                SLOT[gap]PID USER[gap]HOST[gap]SINCE[gap]AGE HOLD[gap]COMMAND RULE
                   1[gap]{program}[gap][..][gap][time][gap][age] {shown}[gap]matlab[gap]seats
                "
            ))
            .status(0);
    }
}

/// And a daemon that keeps a slot when the command is gone, about whom there is no record.
#[test]
pub(crate) fn whoever_keeps_a_slot_that_no_record_accounts_for_is_searched() {
    let site = site("descriptor");
    let mut running = matlab(&site);
    let daemon = leave_a_daemon(&site, &mut running, ":");
    running.close_stdin();
    assert_eq!(running.end().ending, Ending::Status(0));
    site.test()
        .args(["list", "seats"])
        .stdout("seats: 1 of 1 used\nSLOT[..]\n   1[gap][pid] [..]\n")
        .status(0);
    drop(daemon);
}

/// A search for a holder without a record leaves the records of the others.
#[test]
fn a_search_for_one_holder_leaves_the_others() {
    let site = Site::with_seats(2, "hold = \"descriptor\"", &["matlab"]);
    let known = site.test().args(["run", "--", "matlab"]).spawn();
    // Slot 2.
    let unknown = site.holder("seats.lock", ["ofd", "write", "9:1"]);
    let listed = listing(&site.test())[0]["holders"].clone();
    let holder = |slot: usize| (listed[slot - 1]["pid"].as_i64(), listed[slot - 1]["rule"].is_string());
    assert_eq!(holder(1), (Some(known.pid().into()), true), "{listed}");
    assert_eq!(holder(2), (Some(unknown.pid().into()), false), "{listed}");
}

/// A record has the numbers of its own PID namespace, which are those of strangers here.
#[test]
fn a_supervisor_in_a_container_is_listed_by_its_number_here() {
    needs_root!();
    for hold in ["supervisor", "tree"] {
        let site = site(hold);
        let apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let mut running = site.test().args(["run", "--", "matlab"]).through(apart).background();
        running.write_line("echo runs");
        assert_eq!(running.read_line(), "runs\n");
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.pid()));
        let supervisor: i64 = children.expect("it runs").trim().parse().expect("one child");
        assert_eq!(listing(&site.test())[0]["holders"][0]["pid"].as_i64(), Some(supervisor), "{hold}");
        running.close_stdin();
        assert_eq!(running.end().ending, Ending::Status(0));
    }
}
