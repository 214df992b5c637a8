//! To wait in the queue is to have a lock. Where somebody else has that byte, for a moment, a waiter does not
//! stand there, and must not believe that it does.

use crate::support::{Running, Site, Test, eventually};

/// The byte at which a launch with the first number, a limit of one, and no policy, waits in the queue.
const STANDING: i64 = (1 << 61) + (1 << 32) + 1;

/// All bytes at which a launch with the first number can wait: for each policy, and each limit of it.
const STANDING_OF_FIRST: (i64, i64) = ((1 << 61) + (1 << 32), (1 << 61) + (2 << 32));

/// Here a launch with the first number says how many slots it wants.
const WANTS: i64 = (1 << 62) + (1 << 61) + (1 << 20);

/// The place of the first number; one byte more for each beat.
const PLACE: i64 = (1 << 62) + (1 << 20);

fn launch(site: &Site, wait: &str, name: &str) -> Test {
    let lock_file = "$DIR/repositories/seats.lock";
    site.test().args(["run", wait, "--limit", "1", "--repository", lock_file, "--", "job", name])
}

/// A job that says its name, and one that runs.
fn begin() -> (Site, Running) {
    let site = Site::new();
    site.script("job", "#!/bin/sh\necho $1\nexec cat\n");
    let mut holder = launch(&site, "-n", "holder").background();
    assert_eq!(holder.read_line(), "holder\n");
    (site, holder)
}

/// Whoever slept behind a waiter that has left has its byte until it wakes.
#[test]
fn who_could_not_stand_in_line_tries_again() {
    let (site, holder) = begin();
    let somebody = site.holder("seats.lock", ["ofd", "write", &format!("{STANDING}:1")]);
    let mut waiter = launch(&site, "-wforever", "waiter").background();
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

/// The same for one that waits behind another one, although nothing changes there.
#[test]
fn who_could_not_stand_behind_another_tries_again() {
    let (site, _holder) = begin();
    let first = launch(&site, "-wforever", "first").background();
    site.stands_in_line("seats.lock", &first);
    let (standing, place) = (STANDING + (1 << 32), PLACE + (1 << 20));
    let somebody = site.holder("seats.lock", ["ofd", "write", &format!("{standing}:1")]);
    let second = launch(&site, "-wforever", "second").background();
    eventually("it has tried to stand, and beats", || {
        site.lock_between("seats.lock", place, place + 1).filter(|place| place.l_len > 1)
    });
    drop(somebody);
    site.stands_in_line("seats.lock", &second);
}

/// A new policy is a new position, at another byte. A waiter keeps the old one until it has the new one: no
/// newcomer passes it meanwhile.
#[test]
fn who_cannot_stand_by_a_new_policy_stands_by_the_old_one() {
    let policy = |slots: u32| {
        format!(
            "[repository.seats]\nlimit = 3\n\
            [[rule]]\ncommands = [\"small\"]\nacquire = [\"seats\"]\n\
            [[rule]]\ncommands = [\"big\"]\nacquire = [{{ repository = \"seats\", slots = {slots} }}]\n"
        )
    };
    let site = Site::with_policy(&policy(2));
    site.program("small");
    site.program("big");
    let small = site.test().args(["run", "--", "small"]);
    let holders = [(); 2].map(|()| small.spawn());
    let mut big = site.test().args(["run", "-qwforever", "--", "big"]).background();
    site.stands_in_line("seats.lock", &big);
    let (first, end) = STANDING_OF_FIRST;
    let own = site.lock_between("seats.lock", first, end).expect("it stands there").l_start;
    let [before, behind] = [(first, own), (own + 1, end)].map(|(from, to)| format!("{from}:{}", to - from));
    let somebody = site.holder("seats.lock", ["ofd", "write", &before, &behind]);
    site.policy(&policy(3));
    eventually("it is judged by the new policy", || {
        site.lock_between("seats.lock", WANTS + 3, WANTS + 4).map(drop)
    });
    small.clone().stderr("rungate: small: not started: [..]\n...\n").status(75);
    drop(somebody);
    eventually("it stands by the new policy", || {
        site.lock_between("seats.lock", own, own + 1).is_none().then_some(())
    });
    site.stands_in_line("seats.lock", &big);
    drop(holders);
    big.wait_for_echo();
}
