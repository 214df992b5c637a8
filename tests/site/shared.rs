//! `shared_by` at the site: launches of a group are on one host, whose agent knows them, and have one key.

use super::loss::Pair;
use super::scene::Scene;
use super::scenes::AT_ONCE;
use super::{MISSED, REFUSED, held};
use crate::support::{Ending, Host, Mishap, Running, Test, eventually, is_alive, needs_etcd};

const SHARED: &str = "shared_by = [\"user\", \"host\"]";

fn matlab(host: &Host, user: &str) -> Test {
    host.test().user(user).args(["run", "--", "matlab"])
}

#[track_caller]
fn ends(mut running: Running) {
    running.close_stdin();
    running.end();
}

/// At no moment since this revision another number of keys was there.
#[track_caller]
fn always_has(scene: &Scene, keys: usize, since: u64) {
    for revision in since..=scene.revision() {
        assert_eq!(scene.told(revision)["kvs"].as_array().map_or(0, Vec::len), keys, "at {revision}");
    }
}

/// All windows of a user on a host are one slot, which is free when the last of them has ended. Other users,
/// and the same user on another host, find it taken. An agent that is started again knows all of them.
#[test]
fn a_group_has_one_slot_until_its_last_member_ends() {
    needs_etcd!();
    let scene = Scene::new(SHARED, None);
    let ((mut one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let first = matlab(&one, "games").spawn();
    let since = scene.revision();
    let second = matlab(&one, "games").spawn();
    matlab(&one, "backup").stderr(REFUSED).status(75);
    matlab(&two, "games").stderr(REFUSED).status(75);
    let explain = one.test().user("games").args(["explain", "--", "matlab"]);
    explain.stdout("...\nseats[..]ok: shares slot 1\n...\n").status(0);
    ends(first);
    let third = matlab(&one, "games").spawn();
    one.restart();
    ends(second);
    matlab(&two, "games").stderr(REFUSED).status(75);
    let fourth = matlab(&one, "games").spawn();
    ends(third);
    matlab(&two, "games").stderr(REFUSED).status(75);
    always_has(&scene, 1, since);
    let mut waits = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    ends(fourth);
    waits.wait_for_echo();
    ends(waits);
    eventually("nothing is left", || (scene.slots() == 0).then_some(()));
}

/// Nobody joins a slot whose key is being deleted: the launch takes a slot of its own after that.
#[test]
fn nobody_joins_after_the_deletion_was_sent() {
    needs_etcd!();
    let scene = Scene::new(SHARED, None);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    let first = matlab(&one, "games").spawn();
    way.befall(scene.first_slot(), Mishap::Late);
    ends(first);
    eventually("the deletion is under way", || way.has_befallen().then_some(()));
    let mut again = one.test().user("games").args(["run", "-q", "-w", "1h", "--", "matlab"]).background();
    again.wait_for_echo();
    let since = scene.revision();
    way.ask_late();
    eventually("all that was asked is done", || way.has_been_asked_late().then_some(()));
    always_has(&scene, 1, since);
    assert!(again.answers());
}

/// Nobody joins a slot that is not proved yet: whose proof is never carried out got none, and neither did who
/// would have joined.
#[test]
fn nobody_joins_before_the_key_is_proved() {
    needs_etcd!();
    let scene = Scene::new(SHARED, None);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    way.befall(scene.first_slot(), Mishap::Late);
    let first = matlab(&one, "games").background();
    eventually("the proof is under way", || way.has_befallen().then_some(()));
    let second = matlab(&one, "games").spawn();
    assert_eq!(scene.slots(), 1, "it runs without a slot");
    drop(first);
    ends(second);
    way.ask_late();
    eventually("nothing is left", || (scene.slots() == 0).then_some(()));
}

/// `on_lost = "stop"`: all members end before others can get the slot.
#[test]
fn all_members_end_before_others_can_get_their_slot() {
    needs_etcd!();
    let stop = format!("{SHARED}\non_lost = \"stop\"");
    let mut pair = Pair::of(Scene::new(&stop, None).with("12s"), |_| ());
    let other = pair.one.test().args(["run", "--", "matlab"]).spawn();
    pair.way.cut(true);
    pair.second_runs();
    assert!(!is_alive(pair.first.pid()) && !is_alive(other.pid()), "two programs run");
}

/// `on_lost = "keep"`: when the host is back, its group has another slot, beyond the limit, also for who
/// joins then, and for an agent that is started again. While it is away nobody joins.
#[test]
fn a_group_that_lost_its_slot_has_another_one() {
    needs_etcd!();
    let mut pair = Pair::of(Scene::new(SHARED, None).with(MISSED), |_| ());
    let mut other = pair.one.test().args(["run", "--", "matlab"]).spawn();
    pair.way.cut(true);
    pair.second_runs();
    assert_eq!(pair.one.test().args(AT_ONCE).outcome().ending, Ending::Status(74));
    pair.way.cut(false);
    eventually("both are counted", || (held(&pair.two) == 2 && held(&pair.one) == 2).then_some(()));
    let since = pair.scene.revision();
    let joins = eventually("somebody joins", || {
        let mut joins = pair.one.test().args(AT_ONCE).background();
        joins.answers().then_some(joins)
    });
    pair.first.kill();
    pair.one.restart();
    eventually("both are counted", || (held(&pair.two) == 2 && held(&pair.one) == 2).then_some(()));
    ends(joins);
    other.wait_for_echo();
    assert_eq!(pair.one.test().args(AT_ONCE).outcome().ending, Ending::Status(0), "it joins");
    assert_eq!(pair.scene.slots(), 2);
    always_has(&pair.scene, 2, since);
    ends(other);
    eventually("one is counted", || (pair.scene.slots() == 1).then_some(()));
}
