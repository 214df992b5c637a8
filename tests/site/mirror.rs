//! What an agent knows of the site is what etcd has, whatever it was told.

use std::time::{Duration, Instant};

use super::scene::Scene;
use super::{held, listed};
use crate::support::{Host, eventually, needs_etcd};

/// Who is wrong on purpose is watched for so long: several times as long as it takes a sound agent.
const LONGEST: Duration = Duration::from_secs(25);

/// The slot that is held, as a host sees it.
fn slot(host: &Host) -> serde_json::Value {
    listed(host)[0]["holders"][0]["slot"].clone()
}

/// A host is told of another slot than was taken: whether it finds out which it was.
pub(super) fn is_put_right(fault: Option<&'static str>) -> bool {
    let scene = Scene::new("", fault);
    let ((one, _way), (two, misled)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    misled.misquote(&scene.first_slot(), &scene.slot(2));
    let _running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("a slot is seen", || (held(&two) == 1).then_some(()));
    assert!(misled.has_misquoted() || fault.is_none());
    let begun = Instant::now();
    eventually("it is known which", || {
        let is_right = slot(&two) == 1;
        (is_right || (fault.is_some() && begun.elapsed() > LONGEST)).then_some(is_right)
    })
}

/// "Every third of the ttl the mirror is compared with a linearizable read."
#[test]
fn what_was_told_wrongly_is_read_anew() {
    needs_etcd!();
    assert!(is_put_right(None));
}
