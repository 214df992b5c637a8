//! `rungate policy check`: every fault, every warning and every failed test of the policy, at once.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::{
    commands::{names::SystemNames, policy_test, situation::Situation},
    decision::rehearse,
    error::Error,
    exit_status::ExitStatus,
    output::stream,
    policy::{Faults, Policy},
};

/// Checks the policy in force for the caller, or the files that were named, as if they were the system's.
pub(super) fn check(files: &[PathBuf], strict: bool, named: Option<PathBuf>) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let loaded = if files.is_empty() {
        Policy::check(&situation.sources(named), &SystemNames)
    } else {
        policy_test::load_files(&situation, files)
    };
    match loaded {
        Err(faults) => Ok(faulty(&faults)),
        Ok(policy) if policy.is_empty() => Err(Error::new(ExitStatus::Policy, "there is no policy to check")
            .advise(format!(
                "It would stand in {}, or be given with --policy FILE.",
                crate::policy::SYSTEM_POLICY
            ))),
        Ok(policy) => {
            let failed: Vec<String> = rehearse(&policy, Timestamp::now())
                .iter()
                .filter(|rehearsal| !rehearsal.passed)
                .map(|rehearsal| policy_test::describe(&policy, rehearsal))
                .collect();
            let warned = warned(&policy, strict);
            if failed.is_empty() {
                return Ok(warned);
            }
            stream::complain(&format!("{}\n{}", failed.join("\n"), count(failed.len(), "failed test")));
            Ok(ExitStatus::Failure as u8)
        }
    }
}

fn faulty(faults: &Faults) -> u8 {
    stream::complain(&format!("{}\n{}", faults.to_string().trim_end(), count(faults.count(), "fault")));
    ExitStatus::Failure as u8
}

fn warned(policy: &Policy, strict: bool) -> u8 {
    let warnings = policy.warnings();
    if warnings.is_empty() {
        return ExitStatus::Success as u8;
    }
    let shown: Vec<String> =
        warnings.iter().map(|warning| warning.to_string().trim_end().to_owned()).collect();
    stream::complain(&format!("{}\n{}", shown.join("\n"), count(warnings.len(), "warning")));
    if strict { ExitStatus::Failure as u8 } else { ExitStatus::Success as u8 }
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("rungate: {number} {what}{plural}")
}
