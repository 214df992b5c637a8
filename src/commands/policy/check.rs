//! `rungate policy check`: every fault, every warning and every failed test of the policy, at once.

use std::{ffi::OsStr, path::PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cli::CheckArguments,
    commands::{
        doctor::{self, Examination, Finding},
        policy::{
            location::{path_of_system, read_candidate},
            test,
        },
        shared::{print, situation::Situation},
    },
    diagnostic::Diagnostic,
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    output::{json, stream},
    policy::{Faults, Policy, Proposal},
    rehearsal::{Rehearsal, rehearse},
};

/// Checks the policy in force for the caller, or the files that were named, as if they were the system's.
pub(super) fn run(arguments: &CheckArguments) -> Result<u8, Error> {
    let (loaded, host) = match &arguments.in_place {
        _ if arguments.files.is_empty() => on_this_host(Examination::begin(arguments.policy.policy.clone())?),
        None => (Situation::of_this_process()?.load_files(&arguments.files), Vec::new()),
        Some(name) => on_this_host(in_place(&arguments.files, name)?),
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
    if arguments.json {
        print(&to_json(&policy, &host, &failed))?;
    } else {
        complain(&policy, &host, &failed);
    }
    let has_no_warning = |policy: Policy| policy.warnings().is_empty() && host.is_empty();
    let is_fine = failed.is_empty() && policy.is_ok_and(|policy| !arguments.strict || has_no_warning(policy));
    Ok(if is_fine { ExitStatus::Success } else { ExitStatus::Failure } as u8)
}

fn on_this_host(examination: Examination) -> (Result<Policy, Faults>, Vec<Finding>) {
    let host = doctor::concerning_policy(&examination);
    (examination.policy, host)
}

/// The system's policy with a file as it would be under this name.
fn in_place(files: &[PathBuf], name: &OsStr) -> Result<Examination, Error> {
    let [file] = files else {
        return Err(Error::new(ExitStatus::Usage, "--as is for one file"));
    };
    let path = path_of_system(name, "--as")?;
    let situation = Situation::of_this_process()?;
    let text = Some(read_candidate(file, &situation)?);
    Ok(Examination::of_proposal(situation, Proposal { path, text }))
}

fn complain(policy: &Result<Policy, Faults>, host: &[Finding], failed: &[Rehearsal<'_>]) {
    match policy {
        Err(faults) => {
            let shown: Vec<String> = faults.iter().map(with_lines).collect();
            stream::complain(&format!("{}\n{}", shown.join("\n\n"), count(faults.count(), "fault")));
        }
        Ok(policy) => {
            let of_policy = policy.warnings().iter().map(with_lines);
            let shown: Vec<String> = of_policy.chain(host.iter().map(of_host)).collect();
            if !shown.is_empty() {
                stream::complain(&format!("{}\n{}", shown.join("\n\n"), count(shown.len(), "warning")));
            }
            if !failed.is_empty() {
                let shown: Vec<String> =
                    failed.iter().map(|rehearsal| test::describe(policy, rehearsal)).collect();
                stream::complain(&format!("{}\n{}", shown.join("\n"), count(failed.len(), "failed test")));
            }
        }
    }
}

fn to_json(policy: &Result<Policy, Faults>, host: &[Finding], failed: &[Rehearsal<'_>]) -> String {
    let faults: Vec<Value> = policy.as_ref().err().into_iter().flatten().map(said).collect();
    let warnings: Vec<Value> =
        policy.as_ref().map(Policy::warnings).unwrap_or_default().iter().map(said).collect();
    let host: Vec<Value> = host
        .iter()
        .map(|finding| json!({ "code": finding.code, "message": finding.text, "mend": finding.mend }))
        .collect();
    let failed: Vec<Value> = failed.iter().map(test::to_json).collect();
    json::render(&json!({ "faults": faults, "warnings": warnings, "host": host, "failed_tests": failed }))
}

/// A fault or a warning with its lines.
fn with_lines(diagnostic: &Diagnostic) -> String {
    diagnostic.to_string().trim_end().to_owned()
}

/// What is wrong on this host, with what mends it.
fn of_host(finding: &Finding) -> String {
    let mend: String = finding.mend.iter().map(|how| format!("\n  {how}")).collect();
    format!("{} [{}]{mend}", finding.text, finding.code)
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
