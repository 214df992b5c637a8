//! `rungate policy test`: the tests that a policy carries, played by the evaluator that every launch goes through.

use std::{fmt::Write as _, path::PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    commands::{names::SystemNames, print, situation::Situation},
    decision::{Rehearsal, rehearse},
    error::Error,
    exit_status::ExitStatus,
    output::{json, stream, visible::visible},
    policy::{Faults, Policy},
};

/// Plays the tests of the policy in force, or of the files that were named, as if they were the system's.
pub(super) fn test(files: &[PathBuf], json: bool, named: Option<PathBuf>) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = if files.is_empty() {
        situation.load_policy(named)?
    } else {
        load_files(&situation, files).map_err(|faults| situation.faulty(&faults))?
    };
    let rehearsals = rehearse(&policy, Timestamp::now());
    let failures: Vec<&Rehearsal<'_>> = rehearsals.iter().filter(|rehearsal| !rehearsal.passed).collect();
    if json {
        let tests: Vec<Value> = rehearsals.iter().map(to_json).collect();
        print(&json::render(&json!({ "tests": tests })))?;
        return Ok(if failures.is_empty() { ExitStatus::Success } else { ExitStatus::Failure } as u8);
    }
    for failure in &failures {
        stream::complain(&describe(&policy, failure));
    }
    let (all, failed) = (rehearsals.len(), failures.len());
    if failed > 0 {
        stream::complain(&format!("rungate: {failed} of {all} tests failed"));
        return Ok(ExitStatus::Failure as u8);
    }
    let tests = if all == 1 { "test" } else { "tests" };
    stream::print(&format!("{all} {tests} passed\n"))
        .map_err(|error| Error::new(ExitStatus::System, error.to_string()))?;
    Ok(ExitStatus::Success as u8)
}

/// The files that were named, which messages name as they were typed.
pub(super) fn load_files(situation: &Situation, files: &[PathBuf]) -> Result<Policy, Faults> {
    Policy::check_files(files, situation.credentials.uid, &SystemNames)
}

/// A test, for scripts.
pub(super) fn to_json(rehearsal: &Rehearsal<'_>) -> Value {
    let Rehearsal { scenario, passed, expected, got, .. } = rehearsal;
    json!({
        "name": scenario.name,
        "path": visible(scenario.place.path()),
        "line": scenario.place.line(),
        "passed": passed,
        "expected": expected,
        "got": got,
    })
}

/// What was expected, what came out, and what became of every rule.
pub(super) fn describe(policy: &Policy, rehearsal: &Rehearsal<'_>) -> String {
    let Rehearsal { scenario, expected, got, trace, .. } = rehearsal;
    let mut text = format!("{}: test \"{}\" failed", scenario.place, visible(&scenario.name));
    let _ = write!(text, "\n  expected  {}\n  got       {}", visible(expected), visible(got));
    for entry in trace {
        let _ =
            write!(text, "\n  rule      {}: {}", visible(entry.rule.shown_name()), entry.describe(policy));
    }
    text
}
