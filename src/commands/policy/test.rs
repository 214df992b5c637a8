//! `rungate policy test`: the tests that a policy carries, played by the evaluator that every launch goes
//! through.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cli::TestArguments,
    commands::{
        policy::from_log::FromLog,
        shared::{print, situation::Situation},
    },
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    output::{json, stream},
    policy::Policy,
    rehearsal::{Rehearsal, rehearse},
};

/// Plays the tests of the policy in force, or of the files that were named, as if they were the system's.
pub(super) fn run(arguments: &TestArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = if arguments.files.is_empty() {
        situation.load_whole(arguments.policy.policy.clone())?
    } else {
        situation
            .load_files(&arguments.files)
            .map_err(|faults| situation.faulty_files(&faults, &arguments.files))?
    };
    let rehearsals = rehearse(&policy, Timestamp::now());
    let failures: Vec<&Rehearsal<'_>> = rehearsals.iter().filter(|rehearsal| !rehearsal.passed).collect();
    let from_log = match arguments.from.as_slice() {
        [] => None,
        _ => Some(FromLog::play(&situation, &policy, arguments)?),
    };
    let has_passed = failures.is_empty() && from_log.as_ref().is_none_or(FromLog::has_passed);
    if arguments.json {
        let tests: Vec<Value> = rehearsals.iter().map(to_json).collect();
        let mut said = json!({ "tests": tests });
        if let Some(from_log) = &from_log {
            said["from"] = from_log.to_json();
        }
        print(&json::render(&said))?;
        return Ok(if has_passed { ExitStatus::Success } else { ExitStatus::Failure } as u8);
    }
    for failure in &failures {
        stream::complain(&describe(&policy, failure));
    }
    match &from_log {
        Some(from_log) if from_log.has_passed() => drop(print(&from_log.to_text())?),
        Some(from_log) => stream::complain(from_log.to_text().trim_end()),
        None => {}
    }
    let (all, failed) = (rehearsals.len(), failures.len());
    if failed > 0 {
        stream::complain(&format!("rungate: {failed} of {all} tests failed"));
        return Ok(ExitStatus::Failure as u8);
    }
    if !has_passed {
        return Ok(ExitStatus::Failure as u8);
    }
    let tests = if all == 1 { "test" } else { "tests" };
    stream::print(&format!("{all} {tests} passed\n"))
        .map_err(|error| Error::new(ExitStatus::System, error.to_string()))?;
    Ok(ExitStatus::Success as u8)
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
    let Rehearsal { scenario, expected, got, trace, beside, passed: _ } = rehearsal;
    let mut text = format!("{}: test \"{}\" failed", scenario.place, visible(&scenario.name));
    let _ = write!(text, "\n  expected  {}\n  got       {}", visible(expected), visible(got));
    for table in beside {
        let _ = write!(text, "\n  use       {}: the launch does not ask for it", visible(table));
    }
    for entry in trace {
        let _ =
            write!(text, "\n  rule      {}: {}", visible(entry.rule.shown_name()), entry.describe(policy));
    }
    text
}
