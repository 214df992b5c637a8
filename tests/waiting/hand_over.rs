//! "It is the kernel that wakes": a slot that becomes free goes to the head of the line at once, and not at
//! the next look.
//!
//! The figures that it prints, beside those of flock(1) waiting for the same, are to be read from a release
//! build: `cargo test --release --test tests hand_over -- --nocapture`.

use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{Running, Site, Test, eventually};

const HAND_OVERS: usize = 100;

/// Far below a look, and far above what it takes, on a slow machine under full load too.
const AT_ONCE: Duration = Duration::from_millis(250);

fn site() -> Site {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 1

        [[rule]]
        name     = "seats"
        commands = ["matlab"]
        acquire  = ["seats"]
        "#,
    );
    site.program("matlab");
    site
}

/// A program that has a line to answer as soon as it runs, and so shows when it does.
#[track_caller]
fn waiting(test: &Test) -> Running {
    let mut running = test.background();
    running.write_line("it runs");
    running
}

/// From the death of each holder until the next one runs, in ascending order.
#[track_caller]
fn hand_overs(test: &Test, is_asleep: impl Fn(&Running) -> bool) -> Vec<Duration> {
    let mut holder = waiting(test);
    holder.read_line();
    let mut times: Vec<Duration> = (0..HAND_OVERS)
        .map(|_| {
            let mut next = waiting(test);
            eventually("the next one sleeps", || is_asleep(&next).then_some(()));
            holder.signal(Signal::SIGKILL);
            let freed = Instant::now();
            assert_eq!(next.read_line(), "it runs\n");
            let took = freed.elapsed();
            holder = next;
            took
        })
        .collect();
    times.sort();
    times
}

fn tell(text: &str) {
    // A test runner without standard output has nobody to tell.
    let _ = writeln!(io::stdout(), "{text}");
}

#[test]
fn a_free_slot_goes_to_the_head_of_the_line_at_once() {
    let site = site();
    let rungate = site.test().args(["run", "--quiet", "--wait", "forever", "--", "matlab"]);
    let of_rungate = || {
        hand_overs(&rungate, |running| {
            site.line("seats.lock").iter().any(|waiter| waiter.pid == running.pid()) && running.state() == 'S'
        })
    };
    let flock = site.test().program("/usr/bin/flock").args(["--no-fork", "$DIR/work/file", "cat"]);
    let of_flock = || {
        hand_overs(&flock, |running| {
            let executable = fs::read_link(format!("/proc/{}/exe", running.pid()));
            executable.is_ok_and(|path| path.ends_with("flock")) && running.state() == 'S'
        })
    };
    let median = |name: &str, times: &[Duration]| {
        tell(&format!(
            "hand-over, {name}: median {:?}, 95th percentile {:?}, longest {:?}",
            times[HAND_OVERS / 2],
            times[HAND_OVERS * 95 / 100],
            times[HAND_OVERS - 1]
        ));
        times[HAND_OVERS / 2]
    };
    // Whoever is woken by looks alone takes half a second in the middle, however often that is tried; and on
    // a machine on which flock is as slow nothing can be seen.
    let is_at_once = (0..5).any(|_| {
        let (ours, flocks) = (median("rungate", &of_rungate()), median("flock", &of_flock()));
        ours < AT_ONCE.max(10 * flocks)
    });
    assert!(is_at_once, "a free slot waits for the next look");
}
