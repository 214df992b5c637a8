//! Never one program too many, never a slot lost: a launch that is killed at any of its system calls leaves
//! nothing behind, and one of whose calls fails either starts with all of its slots or says what failed, on
//! what, and starts nothing.
//!
//! The ordinary tests take a sample, the same each time. All calls and all errors, in some minutes:
//!
//! ```sh
//! cargo test --test tests campaign -- --ignored --nocapture
//! ```

mod judgement;
mod scenario;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::support::{Fault, TracedCall, errors_of, is_root, skip, storm_size, tell};
use scenario::{SCENARIOS, Stage};

/// So many trials of each scenario in the ordinary tests.
const SAMPLE: usize = 30;

#[test]
fn killed_at_a_sample_of_the_system_calls() {
    campaign("killed", kills, storm_size(SAMPLE));
}

#[test]
fn a_sample_of_the_system_calls_fails() {
    campaign("failed", failures, storm_size(2 * SAMPLE));
}

#[test]
#[ignore = "takes minutes"]
fn killed_at_every_system_call() {
    campaign("killed", kills, usize::MAX);
}

#[test]
#[ignore = "takes minutes"]
fn every_system_call_fails() {
    campaign("failed", failures, usize::MAX);
}

#[test]
#[ignore = "takes minutes"]
fn every_system_call_keeps_failing() {
    campaign("failed for good", lasting_failures, usize::MAX);
}

/// "All or none": a slot that was proved free and cannot be locked nevertheless, because somebody locks slots
/// without the mutex, makes the launch look again. What it has locked by then must not be in its own way.
#[test]
fn a_slot_that_is_locked_meanwhile_is_looked_for_again() {
    for scenario in ["launch", "launch, descriptor"] {
        let scenario = SCENARIOS.iter().find(|other| other.name == scenario).expect("a scenario");
        let stage = Stage::build(scenario);
        let calls = stage.usual_calls();
        let of_slots =
            |call: &TracedCall| call.about.ends_with("second.lock") && call.name.ends_with("SETLK)");
        // The first lock is the mutex, the last gives it back.
        let slot =
            calls.iter().enumerate().filter(|(_, call)| of_slots(call)).nth(1).expect("it takes a slot");
        let report = stage.play(Fault::Fail(slot.0 + 1, "EAGAIN"));
        assert_eq!((report.starts.len(), report.stderr.as_str()), (1, ""), "{report:?}");
        assert_eq!(stage.judged(Fault::List, 0, &report), [""; 0]);
    }
}

/// "Nobody overtakes": whoever sleeps on the byte of a place has it for a moment when it wakes. A launch that
/// finds its place taken so is out of its line, where it could be overtaken, and must not sleep there until
/// something happens.
#[test]
fn whoever_is_kept_out_of_its_line_tries_again() {
    let scenario = SCENARIOS.iter().find(|other| other.name == "wait behind another").expect("a scenario");
    let stage = Stage::build(scenario);
    let calls = stage.usual_calls();
    let is_lock = |call: &&TracedCall| call.about.ends_with("first.lock") && call.name.ends_with("SETLK)");
    let locks = calls.iter().enumerate().filter(|(_, call)| is_lock(call)).map(|(index, _)| index + 1);
    for lock in locks.take(12) {
        assert_eq!(stage.trial(Fault::Fail(lock, "EAGAIN"), 0), [""; 0]);
    }
}

/// The judge is shown to see: a program that starts without a slot of its own.
#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn deliberate_faults_are_complained_about() {
    let stage = Stage::build(&SCENARIOS[0]);
    let report = stage.play_with(Fault::List, "stray-descriptor");
    let complaints = stage.judged(Fault::List, 0, &report);
    assert!(complaints.iter().any(|text| text.contains("without its slots")), "{complaints:?}");
}

fn kills(at: usize, _: &TracedCall) -> Vec<Fault> {
    vec![Fault::Kill(at)]
}

fn failures(at: usize, call: &TracedCall) -> Vec<Fault> {
    errors_of(&call.name, &call.about).iter().map(|error| Fault::Fail(at, error)).collect()
}

/// An interruption that comes each time would be no fault but the end of the world.
fn lasting_failures(at: usize, call: &TracedCall) -> Vec<Fault> {
    let errors = errors_of(&call.name, &call.about).iter();
    errors
        .filter(|error| !matches!(**error, "EINTR" | "EAGAIN"))
        .map(|error| Fault::KeepFailing(at, error))
        .collect()
}

/// Runs each scenario once for each fault, or for `most` of them, evenly spread over what it does once it has
/// come to the repositories.
fn campaign(what: &str, faults: fn(usize, &TracedCall) -> Vec<Fault>, most: usize) {
    let begun = Instant::now();
    let (next, tried) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let complaints = Mutex::new(Vec::new());
    let only = std::env::var("RUNGATE_SCENARIO").ok();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(scenario) = SCENARIOS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if only.as_ref().is_some_and(|only| !scenario.name.contains(only.as_str())) {
                        continue;
                    }
                    if scenario.needs_root() && !is_root() {
                        skip("only root can start processes as several users");
                        continue;
                    }
                    let stage = Stage::build(scenario);
                    let calls = stage.usual_calls();
                    let loaded =
                        calls.iter().position(|call| call.name == "munmap").map_or(0, |index| index + 1);
                    let arrival = calls.iter().position(|call| call.about.contains("/repositories/"));
                    let from = if most == usize::MAX { 0 } else { arrival.unwrap_or(0) };
                    let trials: Vec<Fault> =
                        (from..calls.len()).flat_map(|index| faults(index + 1, &calls[index])).collect();
                    let count = trials.len().min(most);
                    let mut found = Vec::new();
                    for fault in (0..count).map(|index| trials[index * trials.len() / count]) {
                        found.extend(stage.trial(fault, loaded));
                    }
                    tried.fetch_add(count, Ordering::Relaxed);
                    complaints.lock().expect("no thread panicked").append(&mut found);
                }
            });
        }
    });
    let tried = tried.into_inner();
    tell(&format!("{tried} system calls {what} in {} s", begun.elapsed().as_secs()));
    let complaints = complaints.into_inner().expect("no thread panicked");
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
