//! The policy: whether its users can read it, and its faults and warnings. A policy that only root can read
//! is the worst fault, because root does not notice it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{Context, Finding, NO_POLICY, Section, Want, finding::counted, repositories::barrier};
use crate::{
    cli::Topic,
    policy::{Faults, Policy, SYSTEM_POLICY, is_drop_in},
    text::{Diagnostic, Show},
    tools::shared::rehearsal::rehearse,
};

/// How many faults are named one by one.
const MOST: usize = 5;

pub(super) fn look(examination: &Context) -> Section {
    let mut findings = if examination.is_root() { unreadable(examination) } else { Vec::new() };
    let summary = match &examination.policy {
        Err(faults) => {
            findings.extend(of_faults(faults));
            "refuses every launch that it applies to".to_owned()
        }
        Ok(policy) if policy.is_empty() => {
            findings.push(none());
            "there is none: rungate run starts nothing without --limit".to_owned()
        }
        Ok(policy) => {
            findings.extend(of_sound(policy));
            summary(policy)
        }
    };
    Section::new(Topic::Policy, summary, findings)
}

fn none() -> Finding {
    Finding::note(NO_POLICY, format!("{SYSTEM_POLICY} is not there")).fix("rungate init COMMAND")
}

/// `/etc/rungate/policy.toml and 2 more files: 5 rules, 3 repositories`
fn summary(policy: &Policy) -> String {
    let mut files = policy.files();
    let first = files.next().map_or_else(String::new, |file| file.path().shown().to_string());
    let more = match files.count() {
        0 => String::new(),
        more => format!(" and {}", counted(more, "more file")),
    };
    let repositories = match policy.repositories().len() {
        1 => "1 repository".to_owned(),
        count => format!("{count} repositories"),
    };
    format!("{first}{more}: {}, {repositories}", counted(policy.rules().len(), "rule"))
}

/// The barriers between ordinary users and the system's policy files, each once.
pub(super) fn unreadable(examination: &Context) -> Vec<Finding> {
    let directory = examination.sources.drop_ins();
    let drop_ins = || directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_policy = |path: &PathBuf| path.file_name().is_some_and(is_drop_in);
    let files = [examination.sources.system.clone()].into_iter().chain(drop_ins().filter(is_policy));
    let mut findings: Vec<Finding> = Vec::new();
    let delegated = |path: &Path| {
        let delegations = examination.policy().map_or(&[][..], Policy::delegations);
        delegations.iter().any(|delegation| path.file_name() == Some(delegation.file().as_ref()))
    };
    for barrier in files
        .filter_map(|file| barrier(&file, Want::Read).map(|barrier| (delegated(&file), barrier)))
        .chain(barrier(&directory, Want::Read).map(|barrier| (false, barrier)))
    {
        let (is_delegated, barrier) = barrier;
        let whom = if is_delegated {
            "launches that it applies to are refused (78)"
        } else {
            "every launch of theirs is refused (78)"
        };
        let text = format!("{}: users cannot read the policy, and {whom}", barrier.text());
        let finding = Finding::fault("policy-unreadable", text).fix(barrier.fix());
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

fn of_faults(faults: &Faults) -> Vec<Finding> {
    let named = faults.iter().take(MOST).map(|fault| Finding::fault("policy-fault", fault.headline()));
    let mut findings: Vec<Finding> = named.collect();
    if faults.count() > MOST {
        findings.push(Finding::fault("policy-fault", format!("and {} more", faults.count() - MOST)));
    }
    if let Some(last) = findings.pop() {
        findings.push(last.fix("rungate policy check"));
    }
    findings
}

fn of_sound(policy: &Policy) -> Vec<Finding> {
    let mut findings: Vec<Finding> = policy.warnings().iter().map(warning).collect();
    if policy.rules().is_empty() {
        findings.push(
            Finding::note("no-rules", "it has no rule, so nothing is limited").fix("rungate policy check"),
        );
    }
    let rehearsals = rehearse(policy, Timestamp::now());
    let failed = rehearsals.iter().filter(|rehearsal| !rehearsal.passed).count();
    if failed > 0 {
        let text = format!("{failed} of its {} fail", counted(rehearsals.len(), "test"));
        findings.push(Finding::fault("failed-tests", text).fix("rungate policy check"));
    }
    if findings.iter().all(|finding| !finding.is_wrong()) {
        let tests = match rehearsals.len() {
            0 => "it has no tests".to_owned(),
            count => format!("its {} pass", counted(count, "test")),
        };
        findings.push(Finding::fine("policy", format!("no faults and no warnings; {tests}")));
    }
    findings
}

fn warning(warning: &Diagnostic) -> Finding {
    Finding::warning("policy-warning", warning.plain_headline())
}
