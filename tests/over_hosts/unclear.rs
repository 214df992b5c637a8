//! Answers that did not come: what became of the question is found out, however long that takes.

use super::scene::Scene;
use super::scenes::AT_ONCE;
use crate::support::{Ending, Mishap, eventually, needs_etcd};

/// "It writes `h/HOST` anew first, and then reads": where the key was written once more before it was read,
/// that reading tells nothing, and it is read again.
#[test]
fn what_was_read_too_late_is_read_again() {
    needs_etcd!();
    let scene = Scene::new("", None).of(2);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    // The proof of the first launch, the reading of what became of it, and the proof of the second.
    way.befall_each(scene.any_slot(), [Mishap::Broken, Mishap::Late, Mishap::Broken]);
    let first = one.test().args(AT_ONCE).background();
    eventually("the reading is late", || (way.is_to_befall() == 1).then_some(()));
    let before = scene.revision_of("lab1");
    let second = one.test().args(AT_ONCE).background();
    eventually("the key is written once more", || (scene.revision_of("lab1") > before).then_some(()));
    way.ask_late();
    for mut launch in [first, second] {
        launch.close_stdin();
        let outcome = launch.end();
        // On a slow machine it loses its patience.
        assert!([Ending::Status(0), Ending::Status(74)].contains(&outcome.ending), "{outcome:?}");
    }
    eventually("nothing is left", || (scene.slots() == 0).then_some(()));
}
