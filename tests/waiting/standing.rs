//! To wait in the queue is to have a lock. Where somebody else has that byte, for a moment, a waiter does not
//! stand there, and must not believe that it does.

use crate::support::{Site, eventually};

/// The byte at which a launch with the first number, a limit of one, and no policy, waits in the queue.
const STANDING: i64 = (1 << 61) + (1 << 32) + 1;

/// The place of the first number; one byte more for each beat.
const PLACE: i64 = (1 << 62) + (1 << 20);

/// Whoever slept behind a waiter that has left has its byte until it wakes.
#[test]
fn who_could_not_stand_in_line_tries_again() {
    let site = Site::new();
    site.script("job", "#!/bin/sh\necho $1\nexec cat\n");
    let lock_file = "$DIR/repositories/seats.lock";
    let launch = |wait: &str, name: &str| {
        site.test().args(["run", wait, "--limit", "1", "--repository", lock_file, "--", "job", name])
    };
    let mut holder = launch("-n", "holder").background();
    assert_eq!(holder.read_line(), "holder\n");
    let somebody = site.holder("seats.lock", ["ofd", "write", &format!("{STANDING}:1")]);
    let mut waiter = launch("-wforever", "waiter").background();
    eventually("it has tried to stand, and beats", || {
        site.lock_between("seats.lock", PLACE, PLACE + 1).filter(|place| place.l_len > 1)
    });
    let line: Vec<i32> = site.line("seats.lock").iter().map(|waiter| waiter.pid).collect();
    assert_eq!(line, [-1], "somebody else has its byte");
    drop(somebody);
    site.stands_in_line("seats.lock", &waiter);
    holder.kill();
    assert_eq!(waiter.read_line(), "waiter\n");
}
