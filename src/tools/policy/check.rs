//! `rungate policy check`: every fault, every warning and every failed test of the policy at once; with
//! `--from` also its effect on the launches of a log.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsStr,
    path::PathBuf,
};

use serde_json::{Value, json};

use super::{
    Candidate, TestResult,
    candidate::{counted, with_lines},
    target::{path_of_system, read_candidate},
};
use crate::{
    cli::CheckArguments,
    judge::terms::Names,
    launch::Situation,
    policy::{Policy, Proposal},
    text::{Diagnostic, Error, ExitStatus, Severity, Style, count, json, print, stream, visible},
    tools::{
        doctor::{self, Context, Finding},
        logs::{
            simulate,
            simulation::{Terms, Trial},
            statistics::LaunchOutcome,
        },
        shared::KnownAccounts,
    },
};

/// Checks the policy in force for the caller, or the files that were named, as if they were the system's.
pub(super) fn run(arguments: &CheckArguments, situation: &Situation) -> Result<u8, Error> {
    let accounts = KnownAccounts::of(situation, arguments.accounts.as_deref())?;
    let (candidate, host) = gather(arguments, situation.clone(), &accounts)?;
    let policy = candidate.policy();
    if policy.is_some_and(Policy::is_empty) {
        return Err(Error::new(ExitStatus::Policy, "there is no policy to check").advise(format!(
            "It would be in {}, or be given with --policy FILE.",
            crate::policy::SYSTEM_POLICY
        )));
    }
    let from_log = match policy {
        Some(policy) if !arguments.from.is_empty() => {
            Some(FromLog::play(policy, &arguments.from, &accounts, situation)?)
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

/// The checked policy, with the findings on this host.
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
    let of_host = host.iter().filter(|_| candidate.policy().is_some()).map(of_host);
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

/// Reports the faults, and their number.
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
        .map(|finding| json!({ "code": finding.code, "message": finding.text, "fix": finding.fix }));
    json::render(&json!({
        "faults": candidate.faults().map(said).collect::<Vec<_>>(),
        "warnings": candidate.warnings().iter().map(said).collect::<Vec<_>>(),
        "host": host.collect::<Vec<_>>(),
        "tests": candidate.tests().iter().map(TestResult::to_json).collect::<Vec<_>>(),
        "from": from_log.map(FromLog::to_json),
    }))
}

/// The faults of this host, with the fixes.
fn of_host(finding: &Finding) -> String {
    let fix: String = finding.fix.iter().map(|how| format!("\n  {how}")).collect();
    format!("{} [{}]{fix}", finding.text, finding.code)
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

// `rungate policy check --from LOG`: the result in the log is what the policy is expected to give. A launch
// that started has to start again, at once or after a wait. A launch that was refused and would start now is
// reported, but is not a failure: most changes have this purpose.

/// Launches of one user with one command that have another result.
pub(super) struct Changed {
    user: String,
    command: String,
    then: LaunchOutcome,
    now: LaunchOutcome,
    launches: u64,
}

/// The result of a log.
pub(super) struct FromLog {
    launches: u64,
    /// Launches that started, and would be refused.
    refused: Vec<Changed>,
    /// Launches that were refused, and would start.
    started: Vec<Changed>,
    /// Launches whose result depends on ends that the log does not have.
    undecided: u64,
    /// What the log does not have, and what is assumed of it.
    assumed: String,
}

impl FromLog {
    /// Simulates the launches of logs under the policy.
    pub(super) fn play(
        policy: &Policy,
        logs: &[PathBuf],
        accounts: &KnownAccounts,
        situation: &Situation,
    ) -> Result<Self, Error> {
        let traffic = simulate::traffic_of(situation, policy, logs)?;
        let trial = Trial { traffic: &traffic, accounts, terms: Terms::default(), seed: 1 };
        let undecided: HashSet<usize> = trial.undecided(policy).into_iter().collect();
        let mut changes: BTreeMap<(u32, LaunchOutcome, LaunchOutcome), u64> = BTreeMap::new();
        trial.play(policy, 0, &mut |launch, outcome| {
            let then = outcome.then.unwrap_or(outcome.fate);
            if undecided.contains(&launch) {
                return;
            }
            if then.has_started() != outcome.fate.has_started() {
                *changes.entry((traffic.launches[launch].kind, then, outcome.fate)).or_default() += 1;
            }
        });
        let mut by_name: BTreeMap<(String, String, LaunchOutcome, LaunchOutcome), u64> = BTreeMap::new();
        for ((kind, then, now), launches) in changes {
            let kind = &traffic.kinds[kind as usize];
            let user = accounts.user_name(kind.uid).ok().flatten().unwrap_or_else(|| kind.uid.to_string());
            *by_name.entry((user, kind.command.clone(), then, now)).or_default() += launches;
        }
        let changed = by_name.into_iter().map(|((user, command, then, now), launches)| Changed {
            user,
            command,
            then,
            now,
            launches,
        });
        let mut changed: Vec<Changed> = changed.collect();
        changed.sort_by_key(|changed| std::cmp::Reverse(changed.launches));
        let (refused, started) = changed.into_iter().partition(|changed| changed.then.has_started());
        Ok(Self {
            launches: traffic.launches.len() as u64,
            refused,
            started,
            undecided: undecided.len() as u64,
            assumed: simulate::assumed(policy, &traffic),
        })
    }

    /// Whether no launch is refused that was not before.
    pub(super) fn has_passed(&self) -> bool {
        self.refused.is_empty()
    }

    /// In words: the launches that it would refuse, and those that would start.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if self.undecided > 0 {
            text = format!(
                "{} launches of the log: unknown for {}, because the log does not tell when programs ended before them\n\
                 To have ends logged, set replay = true in [log] and run \"rungate end --overdue\" every few minutes, or set hold \
                 = \"supervisor\".\n",
                count(self.launches),
                count(self.undecided)
            );
        } else if self.has_passed() {
            text = format!(
                "{} launches of the log: none is refused that was not before\n",
                count(self.launches)
            );
        }
        text.extend(self.refused.iter().chain(&self.started).map(Changed::to_text));
        text + &self.assumed
    }

    /// For scripts.
    pub(super) fn to_json(&self) -> Value {
        let all = |changed: &[Changed]| changed.iter().map(Changed::to_json).collect::<Vec<_>>();
        let (refused, started) = (all(&self.refused), all(&self.started));
        json!({ "launches": self.launches, "refused": refused, "started": started, "unknown": self.undecided })
    }
}

impl Changed {
    fn to_text(&self) -> String {
        format!(
            "{}, {}: {} launches {} then, {} now\n",
            visible(&self.user),
            visible(&self.command),
            count(self.launches),
            self.then.word(),
            self.now.word()
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "user": self.user,
            "command": self.command,
            "launches": self.launches,
            "then": self.then.word(),
            "now": self.now.word(),
        })
    }
}
