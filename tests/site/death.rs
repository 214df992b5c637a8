//! Agents and hosts that end.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;

use super::scene::Scene;
use super::{MISSED, REFUSED, held, hosts, hosts_with, seats};
use crate::support::{Etcd, Mishap, eventually, needs_etcd, tell};

/// "An agent restarts within two ttls: nothing is lost, the table is compared with the mirror."
#[test]
fn slots_outlive_the_agent_and_no_longer_than_their_programs() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one, two] = hosts(&etcd, &seats(2, ""), ["lab1", "lab2"]);
    let _stays = one.test().args(["run", "--", "matlab"]).spawn();
    let goes = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("both are seen", || (held(&two) == 2).then_some(()));
    one.agent.signal(Signal::SIGKILL);
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

/// Two hosts delete what a third one left, and the question of one of them comes late, when the slot is somebody
/// else's: whether that one keeps it.
pub(super) fn keeps_what_another_one_left(fault: Option<&'static str>) -> bool {
    let scene = Scene::new("", fault);
    let ((gone, _), (late, way)) = (scene.host_at("lab1", MISSED), scene.host_at("lab2", MISSED));
    // It takes its time, which is longer, so that the other one comes first.
    let (next, slow) = scene.host("lab3");
    Scene::meet(&[&gone, &late, &next]);
    let running = gone.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&late) == 1 && held(&next) == 1).then_some(()));
    let mut waits = next.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    waits.write_line("it runs");
    way.befall(scene.first_slot(), Mishap::Late);
    // The last of what is left goes after the slot, and not yet.
    let last = STANDARD.encode(format!("{}g/lab1", scene.prefix));
    slow.befall_each(last, [Mishap::Asked].into_iter().chain([Mishap::Late; 1000]));
    gone.agent.signal(Signal::SIGKILL);
    running.kill();
    eventually("one of them deletes it", || (way.has_befallen() || held(&late) == 0).then_some(()));
    late.agent.signal(Signal::SIGKILL);
    assert_eq!(waits.read_line(), "it runs\n");
    if !way.has_befallen() {
        tell("the other one was faster");
        return true;
    }
    let taken = scene.revision();
    way.ask_late();
    eventually("the slot is deleted once more", || way.has_been_asked_late().then_some(()));
    scene.has_the_slot_of(taken)
}

/// What was left is deleted only as long as nobody else has it.
#[test]
fn who_has_the_slot_of_a_host_that_is_gone_keeps_it() {
    needs_etcd!();
    assert!(keeps_what_another_one_left(None));
}
