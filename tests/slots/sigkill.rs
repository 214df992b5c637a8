//! "The slots are kernel byte-range locks, so they are free again the moment the program ends, however it
//! ends": when the program is killed, when the launcher is killed before it became the program, and when a
//! launcher is killed or stopped while it has the mutex.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Site, eventually, needs_strace};

const ONE_SEAT: &str = r#"
    [repository.seats]
    limit = 1

    [[rule]]
    name     = "one seat"
    commands = ["matlab"]
    acquire  = ["seats"]
"#;

fn site() -> Site {
    let site = Site::with_policy(ONE_SEAT);
    site.program("matlab");
    site
}

#[test]
fn a_killed_program_gives_its_slot_back_at_once() {
    let site = site();
    let matlab = site.test().args(["run", "--", "matlab"]);
    let running = matlab.spawn();
    assert_eq!(site.held("seats.lock").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [running.pid()]);
    running.kill();
    assert_eq!(site.held("seats.lock"), []);
    matlab.status(0);
}

/// Stops a launcher at the first call of this name, waits until it holds the bytes from `start` up to `end`,
/// kills it, and returns when nothing is locked any more.
#[track_caller]
fn kill_launcher(site: &Site, call: &str, start: i64, end: i64) {
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:delay_enter=60s:when=1"));
    let strace = ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let slow = site.test().args(["run", "--", "matlab"]).through(strace).background();
    let owner = eventually("the launcher has the lock", || {
        site.lock_between("seats.lock", start, end).map(|lock| lock.l_pid)
    });
    assert_ne!(owner, slow.pid(), "strace(1) itself locks nothing");
    kill(Pid::from_raw(owner), Signal::SIGKILL).expect("the launcher can be killed");
    // It would keep what it traces from dying until the delay is over.
    drop(slow);
    eventually("nothing is locked any more", || {
        site.lock_between("seats.lock", 0, i64::MAX).is_none().then_some(())
    });
}

#[test]
fn a_launcher_killed_just_before_exec_gives_its_slot_back_at_once() {
    needs_strace!();
    let site = site();
    let matlab = site.test().args(["run", "--", "matlab"]);
    matlab.status(0);
    // strace(1) does not count the call with which it starts the launcher itself.
    kill_launcher(&site, "execve", 8, 9);
    matlab.status(0);
}

#[test]
fn a_launcher_killed_with_the_mutex_leaves_it_free() {
    needs_strace!();
    let site = site();
    let matlab = site.test().args(["run", "--", "matlab"]);
    matlab.status(0);
    // The record is written under the mutex.
    kill_launcher(&site, "pwrite64", 0, 8);
    matlab.status(0);
}

/// "The wait for a mutex is bounded (10 s): the error names its holder and says if that process is stopped."
#[test]
fn a_stopped_process_with_the_mutex_is_named() {
    let site = site();
    let matlab = site.test().args(["run", "--", "matlab"]);
    matlab.status(0);
    let holder = site.holder("seats.lock", ["posix", "write", "0:8"]);
    holder.signal(Signal::SIGSTOP);
    matlab
        .clone()
        .stderr(&format!("rungate: [..]seats.lock[..]PID {} [..]stopped[..]\n...\n", holder.pid()))
        .status(74);
    assert_eq!(site.held("seats.lock"), []);
    holder.kill();
    matlab.status(0);
}

/// An error "names the call and the thing it failed on": the wait for a mutex needs a timer.
#[test]
fn a_wait_for_the_mutex_that_cannot_be_bounded_says_so() {
    needs_strace!();
    let site = site();
    let matlab = site.test().args(["run", "--", "matlab"]);
    matlab.status(0);
    let _holder = site.holder("seats.lock", ["posix", "write", "0:8"]);
    let fails = ["-e", "trace=timer_create", "-e", "inject=timer_create:error=EAGAIN"];
    matlab
        .through(["strace", "-qq", "-o", "/dev/null"].into_iter().chain(fails))
        .stderr("rungate: matlab: not started: cannot lock [..]seats.lock: timer_create: [..]\n")
        .status(74);
}
