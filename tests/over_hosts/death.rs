//! Agents and hosts that end.

use super::{MISSED, REFUSED, held, hosts, hosts_with, seats};
use crate::support::{Etcd, eventually, needs_etcd};

/// "An agent restarts within two ttls: nothing is lost, the table is compared with the mirror."
#[test]
fn slots_outlive_the_agent_and_no_longer_than_their_programs() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one, two] = hosts(&etcd, &seats(2, ""), ["lab1", "lab2"]);
    let _stays = one.test().args(["run", "--", "matlab"]).spawn();
    let goes = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("both are seen", || (held(&two) == 2).then_some(()));
    one.agent.signal(nix::sys::signal::Signal::SIGKILL);
    two.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    goes.kill();
    one.restart();
    // What ended meanwhile is free, and what did not is not.
    eventually("one is free", || (held(&two) == 1).then_some(()));
    let _third = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("both are seen", || (held(&one) == 2).then_some(()));
    one.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}

/// "A host dies: its slots and tickets are free after two ttls."
#[test]
fn the_end_of_a_host_frees_its_seats() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts_with(&etcd, MISSED, &seats(1, ""), ["lab1", "lab2"]);
    let running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    one.agent.kill();
    running.kill();
    two.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    let mut waits = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    waits.write_line("it runs");
    assert_eq!(waits.read_line(), "it runs\n");
}
