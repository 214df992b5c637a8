//! The referee is shown to see: launchers with a fault on purpose (`tests/wrong`) are caught in
//! each of the ways that it knows, and the same storm without a fault passes.
//!
//! ```sh
//! tests/wrong/run
//! ```

use std::time::Duration;

use super::climate::Climate;
use super::weather::Sky;
use super::{Calm, STORM, Storm, stage};
use crate::support::{Dice, needs_root};

/// A storm ends with the first thing that the referee sees. That is a matter of seconds, and of minutes where
/// the machine has much else to do.
const LONGEST: Duration = Duration::from_secs(240);

/// Everybody wants one of two slots, and nothing else happens.
const QUIET: Storm =
    Storm { seed: 1, sky: Sky::Clear, peers: 0, is_hostile: false, is_changing: false, apart: 0, ..STORM };

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn nothing_is_wrong_without_a_fault() {
    needs_root!();
    let calm = rage(QUIET);
    assert_eq!((calm.violations, calm.odd), (vec![], vec![]));
}

/// Nobody waits: a line lets one after the other look, even those who take no mutex.
#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_mutex_that_is_left_out_is_caught() {
    let storm = Storm { hold: Some("descriptor"), wait: Some("0s"), work: (150, 300), ..QUIET };
    is_caught("no-mutex", "lost", storm);
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn one_too_many_is_caught() {
    is_caught("one-too-many", "crowded", QUIET);
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_slot_that_a_stray_descriptor_drops_is_caught() {
    is_caught("stray-descriptor", "lost", QUIET);
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_slot_that_is_kept_is_caught() {
    is_caught("kept-slot", "leaked", Storm { hold: Some("supervisor"), daemons: 50, ..QUIET });
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_newcomer_that_overtakes_is_caught() {
    is_caught("overtaking", "overtaken", Storm { work: (300, 300), ..QUIET });
}

/// In a line of those who are allowed less, as long as they have not seen the new policy.
#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_newcomer_that_overtakes_after_a_change_is_caught() {
    is_caught("one-policy", "overtaken", Storm { is_changing: true, work: (300, 300), ..QUIET });
}

/// Nobody sees that somebody in another PID namespace is stopped.
#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_line_behind_somebody_silent_is_caught() {
    is_caught("no-looks", "idle", Storm { sky: Sky::Silent, apart: 100, wait: Some("25s"), ..QUIET });
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_donated_proof_is_caught() {
    is_harmful("donated-proof", "a daemon was ended");
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_link_of_a_strangers_is_caught() {
    is_harmful("strangers-links", "a treasure was touched");
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn a_launcher_that_is_blocked_is_caught() {
    let slack = Duration::from_secs(5);
    is_caught("no-deadline", "blocked", Storm { wait: Some("1s"), work: (1500, 2000), slack, ..QUIET });
}

#[track_caller]
fn is_caught(fault: &'static str, how: &str, storm: Storm) {
    needs_root!();
    let calm = rage(Storm { fault: Some(fault), longest: LONGEST, ..storm });
    assert!(calm.violations.iter().any(|line| line.starts_with(how)), "{fault}: {calm:?}");
}

#[track_caller]
fn is_harmful(fault: &'static str, how: &str) {
    needs_root!();
    let storm = Storm { fault: Some(fault), is_hostile: true, longest: LONGEST, ..QUIET };
    let climate = Climate::any(&mut Dice::new(storm.seed));
    let calm = storm.rage(&stage(&climate), climate);
    assert!(calm.hostility.harm.iter().any(|line| line.starts_with(how)), "{fault}: {calm:?}");
}

fn rage(storm: Storm) -> Calm {
    let climate = Climate::narrow();
    storm.rage(&stage(&climate), climate)
}
