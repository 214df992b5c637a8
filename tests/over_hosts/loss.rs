//! A host that loses the site while programs run.

use nix::sys::signal::Signal;

use super::{held, hosts, seats};
use crate::support::{Etcd, eventually, needs_etcd, state_of};

/// "`on_lost = \"stop\"`: the program gets TERM, then KILL, so early that it is gone before the deadline."
#[test]
fn a_program_is_ended_before_others_can_get_its_slot() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [one] = hosts(&etcd, &seats(1, "on_lost = \"stop\""), ["lab1"]);
    let running = one.test().args(["run", "--", "matlab"]).spawn();
    etcd.signal(Signal::SIGSTOP);
    let stopped = std::time::Instant::now();
    eventually("the program is ended", || {
        state_of(running.pid()).is_none_or(|state| state == 'Z').then_some(())
    });
    let ended = stopped.elapsed();
    etcd.signal(Signal::SIGCONT);
    // The last read was sent before the members were stopped; a machine under load only makes that sooner.
    assert!(ended < std::time::Duration::from_millis(2900), "{ended:?}");
    eventually("the slot is free", || (held(&one) == 0).then_some(()));
}

/// "`keep`: the program goes on; on the first contact again the agent takes its slots anew, above the limit
/// if others have them, so that the count is honest."
#[test]
fn a_program_goes_on_and_is_counted_again() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [one, two] = hosts(&etcd, &seats(1, ""), ["lab1", "lab2"]);
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    // The agent is stopped rather than cut off: to others it is the same.
    one.agent.signal(Signal::SIGSTOP);
    let mut second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    second.write_line("it runs");
    assert_eq!(second.read_line(), "it runs\n");
    one.agent.signal(Signal::SIGCONT);
    eventually("both are counted", || (held(&two) == 2 && held(&one) == 2).then_some(()));
    running.wait_for_echo();
    drop(running);
    eventually("one is counted", || (held(&two) == 1).then_some(()));
}
