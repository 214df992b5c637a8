//! `rungate policy check`: every fault, every warning and every failed test of the policy, at once.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    commands::{names::SystemNames, policy_test, print, situation::Situation},
    decision::{Rehearsal, rehearse},
    diagnostic::Diagnostic,
    error::Error,
    exit_status::ExitStatus,
    output::{json, stream, visible::visible},
    policy::{Faults, Policy},
};

/// Checks the policy in force for the caller, or the files that were named, as if they were the system's.
pub(super) fn check(
    files: &[PathBuf],
    strict: bool,
    json: bool,
    named: Option<PathBuf>,
) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let loaded = if files.is_empty() {
        Policy::check(&situation.sources(named), &SystemNames)
    } else {
        policy_test::load_files(&situation, files)
    };
    let policy = match loaded {
        Ok(policy) if policy.is_empty() => {
            return Err(Error::new(ExitStatus::Policy, "there is no policy to check").advise(format!(
                "It would stand in {}, or be given with --policy FILE.",
                crate::policy::SYSTEM_POLICY
            )));
        }
        loaded => loaded,
    };
    let failed: Vec<Rehearsal<'_>> = match &policy {
        Ok(policy) => {
            rehearse(policy, Timestamp::now()).into_iter().filter(|rehearsal| !rehearsal.passed).collect()
        }
        Err(_) => Vec::new(),
    };
    if json {
        print(&to_json(&policy, &failed))?;
    } else {
        complain(&policy, &failed);
    }
    let is_fine = failed.is_empty() && policy.is_ok_and(|policy| !strict || policy.warnings().is_empty());
    Ok(if is_fine { ExitStatus::Success } else { ExitStatus::Failure } as u8)
}

fn complain(policy: &Result<Policy, Faults>, failed: &[Rehearsal<'_>]) {
    match policy {
        Err(faults) => {
            stream::complain(&format!(
                "{}\n{}",
                faults.to_string().trim_end(),
                count(faults.count(), "fault")
            ));
        }
        Ok(policy) => {
            let warnings = policy.warnings();
            if !warnings.is_empty() {
                let shown: Vec<String> =
                    warnings.iter().map(|warning| warning.to_string().trim_end().to_owned()).collect();
                stream::complain(&format!("{}\n{}", shown.join("\n"), count(warnings.len(), "warning")));
            }
            if !failed.is_empty() {
                let shown: Vec<String> =
                    failed.iter().map(|rehearsal| policy_test::describe(policy, rehearsal)).collect();
                stream::complain(&format!("{}\n{}", shown.join("\n"), count(failed.len(), "failed test")));
            }
        }
    }
}

fn to_json(policy: &Result<Policy, Faults>, failed: &[Rehearsal<'_>]) -> String {
    let faults: Vec<Value> = policy.as_ref().err().into_iter().flatten().map(said).collect();
    let warnings: Vec<Value> =
        policy.as_ref().map(Policy::warnings).unwrap_or_default().iter().map(said).collect();
    let failed: Vec<Value> = failed.iter().map(policy_test::to_json).collect();
    json::render(&json!({ "faults": faults, "warnings": warnings, "failed_tests": failed }))
}

/// A fault or a warning; one of a whole file has no line.
fn said(diagnostic: &Diagnostic) -> Value {
    let place = diagnostic.line_column();
    json!({
        "path": visible(&diagnostic.path),
        "line": place.map(|(line, _)| line),
        "column": place.map(|(_, column)| column),
        "code": diagnostic.code,
        "message": diagnostic.message,
    })
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("rungate: {number} {what}{plural}")
}
