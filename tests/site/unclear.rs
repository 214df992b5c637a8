//! Answers that did not come: what became of the question is found out, however long that takes.

use super::launches::finds_it_too_soon;
use super::scenes::AT_ONCE;
use super::{held, scene::Scene, waiting};
use crate::agent::{
    hostility::{LONG, request},
    numbers::Caller,
};
use crate::support::{Ending, Mishap, eventually, needs_etcd};

use rungate::keeper::agent::message::{Answer, Request};

/// It writes `h/HOST` again first, and then looks: before the mirror has the new key, what it says of the
/// slots tells nothing. Whoever took it for an outcome would take slots once more.
#[test]
fn an_answer_that_did_not_come_is_settled_by_the_mirror() {
    needs_etcd!();
    let scene = Scene::new("", None).of(2);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    let (before, registered) = (scene.revision(), scene.revision_of("lab1"));
    way.deafen(true);
    way.befall_each(scene.any_slot(), [Mishap::Broken]);
    let mut launch = one.test().args(AT_ONCE).background();
    eventually("the key is written once more", || (scene.revision_of("lab1") > registered).then_some(()));
    assert_eq!(scene.slots(), 1, "the proof was done");
    way.deafen(false);
    launch.close_stdin();
    let outcome = launch.end();
    // On a slow machine it loses its patience.
    assert!([Ending::Status(0), Ending::Status(74)].contains(&outcome.ending), "{outcome:?}");
    assert_eq!(scene.taken_since(before), 1, "it is not taken twice");
    eventually("nothing is left", || (scene.slots() == 0).then_some(()));
}

/// What is proved late is for the question that was asked. A launch that wants nothing more, or something
/// else, does not get it, and no pause begins with it.
#[test]
fn what_is_proved_late_for_a_question_that_is_over_is_free_again() {
    needs_etcd!();
    for instead in [Request::GiveBack(false), Request::Take(request("other", LONG))] {
        let scene = Scene::new("if_elapsed = \"1h\"", None);
        let ((one, way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
        Scene::meet(&[&one, &two]);
        let registered = scene.revision_of("lab1");
        way.deafen(true);
        way.befall_each(scene.any_slot(), [Mishap::Broken]);
        let mut launch = Caller::new(&one.site);
        launch.takes(false);
        eventually("the key is written once more", || (scene.revision_of("lab1") > registered).then_some(()));
        assert_eq!(scene.slots(), 1, "the proof was done");
        eventually("a start is heard of", || finds_it_too_soon(&two).then_some(()));
        launch.says(&instead);
        // On a slow machine the agent gives up before that, and says so.
        while matches!(launch.hears(), Answer::Anew | Answer::Failed(_)) {}
        way.deafen(false);
        eventually("the slot is free", || (scene.slots() == 0).then_some(()));
        for host in [&one, &two] {
            eventually("there was none", || (!finds_it_too_soon(host)).then_some(()));
        }
        two.test().args(AT_ONCE).status(0);
    }
}

/// The launch may only join a slot of its group, and then no key of a slot tells that it was proved. What it said
/// of its start is withdrawn all the same.
#[test]
fn a_start_of_who_joins_and_gets_no_answer_is_withdrawn() {
    needs_etcd!();
    let scene = Scene::new("if_elapsed = \"1h\"\nshared_by = [\"user\", \"host\"]", None).of(2);
    let ((one, way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let _first = one.test().args(["run", "--", "matlab"]).spawn();
    one.test().args(["reset", "seats"]).status(0);
    eventually("that is forgotten", || (!finds_it_too_soon(&two)).then_some(()));
    let registered = scene.revision_of("lab1");
    way.deafen(true);
    way.befall_each(scene.any_slot(), [Mishap::Broken]);
    let mut launch = Caller::new(&one.site);
    launch.takes(false);
    eventually("the key is written once more", || (scene.revision_of("lab1") > registered).then_some(()));
    eventually("a start is heard of", || finds_it_too_soon(&two).then_some(()));
    assert_eq!(scene.slots(), 1, "it has joined");
    launch.says(&Request::GiveBack(false));
    while matches!(launch.hears(), Answer::Anew | Answer::Failed(_)) {}
    way.deafen(false);
    for host in [&one, &two] {
        eventually("there was none", || (!finds_it_too_soon(host)).then_some(()));
    }
}

/// The slots of the agent's own tables do not wait for the outcome: nothing is granted after the answer.
#[test]
fn what_the_agent_keeps_itself_is_free_while_a_proof_is_unclear() {
    needs_etcd!();
    let scene = Scene::new("", None).with_a_bench();
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    way.befall(scene.any_slot(), Mishap::Unanswered);
    let mut launch = one.test().args(AT_ONCE).background();
    eventually("the proof was asked for", || way.has_befallen().then_some(()));
    way.cut(true);
    let outcome = launch.end();
    assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
    one.test().args(["run", "--as", "bench", "--", "true"]).status(0);
    way.cut(false);
    eventually("nothing is left", || (scene.slots() == 0).then_some(()));
}

/// A launch whose turn has come, and whose proof stays unclear for the whole outage, waits on: it can leave when
/// its time is over, and is told that it was.
#[test]
fn who_waits_and_gets_no_proof_is_refused_when_its_time_is_over() {
    needs_etcd!();
    let scene = Scene::new("", None);
    let ((one, way), (two, _way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let holder = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1).then_some(()));
    let mut waits = one.test().args(["run", "-q", "--wait", "15s", "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&two) == 1).then_some(()));
    way.befall(scene.any_slot(), Mishap::Unanswered);
    drop(holder);
    eventually("the proof was asked for", || way.has_befallen().then_some(()));
    way.cut(true);
    let outcome = waits.end();
    assert_eq!(outcome.ending, Ending::Status(124), "{outcome:?}");
    way.cut(false);
    eventually("nothing is left", || (scene.slots() == 0 && scene.tickets(0).is_empty()).then_some(()));
    eventually("the next one starts", || {
        (one.test().args(AT_ONCE).outcome().ending == Ending::Status(0)).then_some(())
    });
}

/// It keeps its place as well, although its proof deleted the ticket: whoever comes meanwhile, on another host,
/// gets the slot after it.
#[test]
fn who_waits_and_gets_no_proof_keeps_its_place() {
    needs_etcd!();
    let scene = Scene::new("", None);
    let ((one, way), (two, _way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let holder = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1).then_some(()));
    let mut first = Caller::new(&one.site);
    first.takes(false);
    assert!(matches!(first.hears(), Answer::Waits(_)));
    // It counts as away where it is silent for some seconds.
    eventually("it stands in line", || {
        first.says(&Request::Beat);
        (waiting(&two) == 1).then_some(())
    });
    way.befall(scene.any_slot(), Mishap::Unanswered);
    drop(holder);
    eventually("the proof was asked for", || {
        first.says(&Request::Beat);
        way.has_befallen().then_some(())
    });
    way.cut(true);
    eventually("the ticket is gone, and the slot is its own", || {
        (scene.tickets(0).is_empty() && scene.slots() == 1).then_some(())
    });
    let mut next = || {
        first.says(&Request::Beat);
        first.hears()
    };
    assert!(matches!(next(), Answer::Waits(_)));
    let mut second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    // It counts as away where it is silent for some seconds.
    eventually("the other stands in line", || {
        assert!(matches!(next(), Answer::Waits(_)));
        (scene.tickets(0).len() == 1).then_some(())
    });
    way.cut(false);
    eventually("it has the slot", || {
        let answer = next();
        assert!(matches!(answer, Answer::Waits(_) | Answer::Granted(_)), "{answer:?}");
        matches!(answer, Answer::Granted(_)).then_some(())
    });
    assert_eq!(waiting(&two), 1);
    first.says(&Request::GiveBack(false));
    assert!(second.answers());
}
