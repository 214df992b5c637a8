//! The referee is shown to see: launchers with a fault on purpose (`src/deliberate_fault.rs`) are caught in each of the ways that
//! it knows, and the same storm without a fault passes.
//!
//! ```sh
//! cargo test --features deliberate-faults --test tests deliberate_faults
//! ```

use std::time::Duration;

use super::climate::Climate;
use super::{Calm, STORM, Storm, stage};
use crate::support::needs_root;

/// Everybody wants one of two slots, and nothing else happens.
const QUIET: Storm = Storm { seed: 1, is_wild: false, ..STORM };

#[test]
fn nothing_is_wrong_without_a_fault() {
    needs_root!();
    let calm = rage(QUIET);
    assert_eq!((calm.violations, calm.odd), (vec![], vec![]));
}

#[test]
fn a_mutex_that_is_left_out_is_caught() {
    is_caught("no-mutex", "lost", Storm { hold: Some("descriptor"), work: (150, 300), ..QUIET });
}

#[test]
fn one_too_many_is_caught() {
    is_caught("one-too-many", "crowded", QUIET);
}

#[test]
fn a_slot_that_a_stray_descriptor_drops_is_caught() {
    is_caught("stray-descriptor", "lost", QUIET);
}

#[test]
fn a_slot_that_is_kept_is_caught() {
    is_caught("kept-slot", "leaked", Storm { hold: Some("supervisor"), daemons: 50, ..QUIET });
}

#[test]
fn a_newcomer_that_overtakes_is_caught() {
    is_caught("overtaking", "overtaken", Storm { work: (300, 300), ..QUIET });
}

#[test]
fn a_launcher_that_is_blocked_is_caught() {
    let slack = Duration::from_secs(5);
    is_caught("no-deadline", "blocked", Storm { wait: Some("1s"), work: (1500, 2000), slack, ..QUIET });
}

#[track_caller]
fn is_caught(fault: &'static str, how: &str, storm: Storm) {
    needs_root!();
    let calm = rage(Storm { fault: Some(fault), longest: Duration::from_secs(60), ..storm });
    assert!(calm.violations.iter().any(|line| line.starts_with(how)), "{fault}: {calm:?}");
}

fn rage(storm: Storm) -> Calm {
    let climate = Climate::narrow();
    storm.rage(&stage(&climate), climate)
}
