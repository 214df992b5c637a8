//! Scenes in which an agent could be wrong: somebody's way to etcd is cut, or what comes over it is late.
//! Sound agents pass each of them; that each would see an agent that is wrong is shown by
//! `deliberate_faults`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::loss::Pair;
use super::scene::Scene;
use super::{TTL, held, listed, status, waiting};
use crate::support::{Ending, Etcd, Host, Mishap, eventually, is_alive, needs_etcd};

fn is_connected(host: &Host) -> bool {
    status(host)["site"]["connected"] == true
}

pub(super) const AT_ONCE: [&str; 5] = ["run", "-q", "-n", "--", "matlab"];

/// Whether a launch starts at once. Where it has to because of a fault, it may be too slow some times.
fn starts_at_once(host: &Host, fault: Option<&str>) -> bool {
    let tries = if fault.is_some() { 5 } else { 1 };
    (0..tries).any(|_| host.test().args(AT_ONCE).outcome().ending == Ending::Status(0))
}

/// A host hears of nothing, and somebody else has the slot: how many programs there are then.
pub(super) fn two_at_once(fault: Option<&'static str>) -> usize {
    let scene = Scene::new("", fault);
    let ((one, _way), (two, deaf)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    deaf.deafen(true);
    let _running = one.test().args(["run", "--", "matlab"]).spawn();
    1 + usize::from(starts_at_once(&two, fault))
}

/// Somebody waits in the queue, and a newcomer has not heard of it: whether it gets the slot before. In
/// between another launch has waited and left, so the newcomer's host knows an earlier revision than that at
/// which the first comes.
pub(super) fn is_overtaken(fault: Option<&'static str>) -> bool {
    let scene = Scene::new("", fault);
    let ((one, way), (two, deaf), (three, _way)) =
        (scene.host("lab1"), scene.host("lab2"), scene.host("lab3"));
    Scene::meet(&[&one, &two, &three]);
    let holder = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1 && held(&two) == 1).then_some(()));
    deaf.deafen(true);
    let other = three.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("another stands in line", || (waiting(&one) == 1).then_some(()));
    drop(other);
    eventually("it has left", || (waiting(&one) == 0).then_some(()));
    let mut first = one.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    first.write_line("first");
    eventually("it stands in line", || (waiting(&three) == 1).then_some(()));
    way.deafen(true);
    drop(holder);
    eventually("the slot is free", || (scene.slots() == 0).then_some(()));
    let overtakes = starts_at_once(&two, fault);
    way.deafen(false);
    deaf.deafen(false);
    assert_eq!(first.read_line(), "first\n");
    overtakes
}

/// One launch stands in a queue that has room for one, and a newcomer has not heard of it: whether it joins.
///
/// The launch stands in the queue when etcd has its ticket. Its own agent lists it sooner, while the ticket
/// is on its way, and until then the newcomer may be the first.
pub(super) fn joins_a_full_line(fault: Option<&'static str>) -> bool {
    let scene = Scene::new("queue = 1", fault);
    let ((one, _way), (two, deaf)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let _holder = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1 && held(&two) == 1).then_some(()));
    deaf.deafen(true);
    let first = one.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it stands in line", || (scene.tickets(0).len() == 1).then_some(()));
    let ticket = scene.tickets(0);
    let newcomer = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    let joins = eventually("it joins, or is refused", || {
        if scene.tickets(0).len() == 2 { Some(true) } else { newcomer.is_zombie().then_some(false) }
    });
    assert!(!first.is_zombie(), "the first is refused");
    assert!(scene.tickets(0).contains(&ticket[0]), "the first has lost its ticket");
    joins
}

/// Somebody waits on one host, which may have a fault, for what ends on another: whether it gets its turn.
pub(super) fn has_its_turn(fault: Option<&'static str>) -> bool {
    let scene = Scene::new("", None);
    let (one, _way) = scene.host("lab1");
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    let scene = scene.with_fault(fault);
    let (two, _way) = scene.host("lab2");
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    // Who does not hear of it gets no turn at all.
    let longest = if fault.is_some() { "25s" } else { "forever" };
    let mut waits = two.test().args(["run", "-q", "--wait", longest, "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&two) == 1).then_some(()));
    drop(holder);
    waits.close_stdin();
    waits.end().ending == Ending::Status(0)
}

/// Slots were taken, and nobody heard of it: how often they were taken until the program started.
pub(super) fn takes(fault: Option<&'static str>) -> usize {
    let scene = Scene::at(Etcd::new(), "", fault);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    eventually("a launch starts though no answer comes", || {
        let before = scene.revision();
        way.befall(scene.first_slot(), Mishap::Unanswered);
        let outcome = one.test().args(AT_ONCE).outcome();
        eventually("nothing is left", || (scene.slots() == 0).then_some(()));
        if outcome.ending == Ending::Status(0) {
            assert!(way.has_befallen(), "nothing was lost on the way: {}", outcome.stderr);
            return Some(scene.taken_since(before));
        }
        // The machine was too slow for the patience of launches, or the launch stood in its own way.
        eventually("it is there again", || is_connected(&one).then_some(()));
        None
    })
}

/// A host is cut off, and its slot goes to another: how many programs there are then.
pub(super) fn both_run(fault: Option<&'static str>) -> usize {
    // A sound agent has the more time to end what it has lost, and need not be scheduled at once.
    let scene = Scene::new("on_lost = \"stop\"", fault).with(if fault.is_some() { TTL } else { "12s" });
    let mut pair = Pair::of(scene, |_| ());
    pair.way.cut(true);
    pair.second_runs();
    1 + usize::from(is_alive(pair.first.pid()))
}

/// Each wanted slot key does not exist: what a host has not heard of counts nevertheless.
#[test]
fn who_hears_of_nothing_gets_nothing() {
    needs_etcd!();
    assert_eq!(two_at_once(None), 1);
}

/// Nobody older stands in the line.
#[test]
fn nobody_is_overtaken_by_who_hears_of_nothing() {
    needs_etcd!();
    assert!(!is_overtaken(None));
}

#[test]
fn who_waits_hears_what_ends_elsewhere() {
    needs_etcd!();
    assert!(has_its_turn(None));
}

/// An answer that does not come leaves the outcome unknown: a transaction cut after its commit.
#[test]
fn what_was_taken_unheard_is_the_launchs() {
    needs_etcd!();
    assert_eq!(takes(None), 1);
}

/// The network between an agent and etcd is cut for longer than the ttl.
#[test]
fn a_host_that_is_cut_off_ends_its_programs_in_time() {
    needs_etcd!();
    assert_eq!(both_run(None), 1);
}

/// A transaction cut before its commit, and committed late: nothing comes of it, because the host's key was
/// written again.
#[test]
fn what_comes_late_takes_nothing() {
    needs_etcd!();
    let scene = Scene::new("", None);
    let ((one, way), (two, _way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    way.befall(scene.first_slot(), Mishap::Late);
    // On a slow machine it may lose its patience before, and even before it asks.
    eventually("a question is late", || {
        let _ = one.test().args(AT_ONCE).outcome();
        way.has_befallen().then_some(())
    });
    eventually("the slot is free", || (scene.slots() == 0).then_some(()));
    let revision = || scene.etcd.control(&["get", "nothing", "-w", "json"]).expect("the revision");
    let before = revision();
    way.ask_late();
    for _ in 0..20 {
        let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
        two.test().args(wait).status(0);
        eventually("the slot is free", || (scene.slots() == 0).then_some(()));
    }
    assert_ne!(revision(), before);
}

/// The admission of a launch without contention is one round trip, and its end is another.
#[test]
fn a_launch_costs_two_transactions() {
    needs_etcd!();
    let scene = Scene::at(Etcd::new(), "", None);
    let (one, _way) = scene.host("lab1");
    Scene::meet(&[&one]);
    let cost = || {
        let before = scene.revision();
        one.test().args(AT_ONCE).status(0);
        eventually("the slot is free", || (scene.slots() == 0).then_some(()));
        scene.revision() - before
    };
    // On a slow machine a lease may be lost in between, which costs something too.
    assert!((0..5).any(|_| cost() == 2), "{} transactions", cost());
}

/// Whoever comes to a line while the key of its host turns out to be another one keeps its number.
#[test]
fn nobody_is_passed_for_a_key_that_changed() {
    needs_etcd!();
    // So long that the agent does not look for its key meanwhile.
    let scene = Scene::new("", None).with("10m");
    let ((one, _way), (two, way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let key = format!("{}h/lab2", scene.prefix);
    let value = scene.etcd.control(&["get", "--print-value-only", &key]).expect("the key of the host");
    let lease = status(&two)["site"]["hosts"][1]["lease"].as_str().expect("a lease").to_owned();
    scene.etcd.control(&["put", &format!("--lease={lease}"), &key, value.trim()]).expect("it is written");
    let line = format!("{}w/seats/", scene.prefix);
    way.befall(STANDARD.encode(&line[..line.len() / 3 * 3]), Mishap::Asked);
    let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
    let _first = two.test().args(wait).background();
    eventually("it comes to the line", || way.has_befallen().then_some(()));
    let _second = one.test().args(wait).background();
    eventually("both wait", || (waiting(&one) == 2).then_some(()));
    drop(holder);
    eventually("one has started", || (waiting(&one) == 1 && held(&one) == 1).then_some(()));
    assert_eq!(listed(&one)[0]["holders"][0]["host"], "lab2");
}
