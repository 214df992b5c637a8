//! `rungate policy check`: every fault, every warning and every failed test of the policy, at once; and on
//! demand what the launches of a log would come to under it.

use std::{ffi::OsStr, path::PathBuf};

use serde_json::{Value, json};

use super::{
    candidate::{Candidate, TestResult, counted, with_lines},
    from_log::FromLog,
    location::{path_of_system, read_candidate},
};
use crate::{
    cli::CheckArguments,
    launch::situation::Situation,
    policy::{Policy, Proposal},
    text::{
        diagnostic::{Diagnostic, Severity},
        error::Error,
        escape::visible,
        exit_status::ExitStatus,
        json,
        print::print,
        stream,
        style::Style,
    },
    tools::{
        doctor::{self, Context, Finding},
        shared::file_accounts::KnownAccounts,
    },
};

/// Checks the policy in force for the caller, or the files that were named, as if they were the system's.
pub(super) fn run(arguments: &CheckArguments, situation: Situation) -> Result<u8, Error> {
    let accounts = KnownAccounts::of(&situation, arguments.accounts.as_deref())?;
    let (candidate, host) = gather(arguments, situation.clone(), &accounts)?;
    let policy = candidate.policy().ok();
    if policy.is_some_and(Policy::is_empty) {
        return Err(Error::new(ExitStatus::Policy, "there is no policy to check").advise(format!(
            "It would stand in {}, or be given with --policy FILE.",
            crate::policy::SYSTEM_POLICY
        )));
    }
    let from_log = match policy {
        Some(policy) if !arguments.from.is_empty() => {
            Some(FromLog::play(policy, &arguments.from, &accounts, &situation)?)
        }
        _ => None,
    };
    if arguments.json {
        print(&to_json(&candidate, &host, from_log.as_ref()))?;
    } else {
        show(&candidate, &host, from_log.as_ref())?;
    }
    let is_fine = candidate.is_sound()
        && from_log.as_ref().is_none_or(FromLog::has_passed)
        && (!arguments.strict || candidate.warnings().is_empty() && host.is_empty());
    Ok(if is_fine { ExitStatus::Success } else { ExitStatus::Failure } as u8)
}

/// The policy that is checked, with what is wrong with it on this host.
fn gather(
    arguments: &CheckArguments,
    situation: Situation,
    accounts: &KnownAccounts,
) -> Result<(Candidate, Vec<Finding>), Error> {
    let examination = match &arguments.in_place {
        _ if arguments.files.is_empty() => Context::begin(situation),
        Some(name) => in_place(&arguments.files, name, situation)?,
        None => {
            let policy = Policy::check_files(&arguments.files, situation.credentials.uid, accounts);
            return Ok((Candidate::as_it_is(policy), Vec::new()));
        }
    };
    let host = doctor::concerning_policy(&examination);
    Ok((Candidate::as_it_is(examination.policy), host))
}

/// The system's policy with a file as it would be under this name.
fn in_place(files: &[PathBuf], name: &OsStr, situation: Situation) -> Result<Context, Error> {
    let [file] = files else {
        return Err(Error::new(ExitStatus::Usage, "--as is for one file"));
    };
    let path = path_of_system(name, "--as")?;
    let text = Some(read_candidate(file, &situation)?);
    Ok(Context::of_proposal(situation, Proposal { path, text }))
}

fn show(candidate: &Candidate, host: &[Finding], from_log: Option<&FromLog>) -> Result<(), Error> {
    let of_policy = candidate.warnings().iter().map(in_colour);
    let of_host = host.iter().filter(|_| candidate.policy().is_ok()).map(of_host);
    let warnings: Vec<String> = of_policy.chain(of_host).collect();
    complain(&candidate.faults().map(in_colour).collect::<Vec<_>>(), "fault");
    complain(&warnings, "warning");
    let (tests, failed) = (candidate.tests().len(), candidate.failed_tests().collect::<Vec<_>>());
    if !failed.is_empty() {
        stream::complain(&failed.join("\n"));
        stream::complain(&format!("rungate: {} of {} failed", failed.len(), counted(tests, "test")));
    }
    match from_log {
        Some(from_log) if from_log.has_passed() => drop(print(&from_log.to_text())?),
        Some(from_log) => stream::complain(from_log.to_text().trim_end()),
        None => {}
    }
    if tests > 0 && failed.is_empty() {
        print(&format!("{} passed\n", counted(tests, "test")))?;
    }
    Ok(())
}

/// Says what is wrong, and how much of it there is.
fn complain(parts: &[String], what: &str) {
    if !parts.is_empty() {
        let style = if what == "warning" { Style::Warning } else { Style::Fault };
        let count = style.paint_message(&counted(parts.len(), what));
        stream::complain(&format!("{}\nrungate: {count}", parts.join("\n\n")));
    }
}

/// A fault or a warning with its lines, for people who look.
fn in_colour(diagnostic: &Diagnostic) -> String {
    let text = with_lines(diagnostic);
    let (headline, excerpt) = text.split_once('\n').unwrap_or((text.as_str(), ""));
    let headline = match (diagnostic.severity, headline.split_once(": ")) {
        (Severity::Fault, Some((place, what))) => {
            format!("{}: {}", Style::Name.paint_message(place), Style::Fault.paint_message(what))
        }
        (Severity::Warning, Some((place, what))) => {
            let what = what.replacen("warning:", &Style::Warning.paint_message("warning:"), 1);
            format!("{}: {what}", Style::Name.paint_message(place))
        }
        (_, None) => headline.to_owned(),
    };
    if excerpt.is_empty() { headline } else { format!("{headline}\n{excerpt}") }
}

fn to_json(candidate: &Candidate, host: &[Finding], from_log: Option<&FromLog>) -> String {
    let host = host
        .iter()
        .map(|finding| json!({ "code": finding.code, "message": finding.text, "mend": finding.mend }));
    json::render(&json!({
        "faults": candidate.faults().map(said).collect::<Vec<_>>(),
        "warnings": candidate.warnings().iter().map(said).collect::<Vec<_>>(),
        "host": host.collect::<Vec<_>>(),
        "tests": candidate.tests().iter().map(TestResult::to_json).collect::<Vec<_>>(),
        "from": from_log.map(FromLog::to_json),
    }))
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
