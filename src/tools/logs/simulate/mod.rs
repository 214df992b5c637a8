//! `rungate simulate`: the launches of a log under another policy.

mod sweep;
mod text;

use std::path::{Path, PathBuf};

use self::{sweep::Sweep, text::Compared};
use super::{
    reading::{self, single_tables},
    simulation::{Accounts, Reading, Recording, Tally, Terms, Traffic, Trial},
    statistics::{Cell, joiner},
};
use crate::{
    cli::{SimulateArguments, Span},
    judge::terms::Names,
    launch::Situation,
    policy::{Policy, Wait, files_of},
    sys::JudgedDirectories,
    text::{Clock, Error, ExitStatus, Show, answer, json, print},
    tools::shared::KnownAccounts,
};

/// Whether a file has the name of a log, including rotated and compressed ones.
fn is_named_as_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.ends_with(".toml") && name.split('.').skip(1).any(|part| matches!(part, "jsonl" | "log"))
}

/// The operand for the policy is a log.
fn log_for_policy(path: &Path) -> Error {
    let text = format!("{} has the name of a log; the policy to try must come first", path.shown());
    let advice = format!("rungate simulate /etc/rungate/policy.toml {}", path.shown());
    Error::new(ExitStatus::Usage, text).advise(advice)
}

/// Simulates the launches of logs under a policy, and reports the results.
pub(crate) fn run(arguments: &SimulateArguments, situation: &Situation) -> Result<u8, Error> {
    if is_named_as_log(&arguments.tried) {
        return Err(log_for_policy(&arguments.tried));
    }
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let files = files_of(&situation.directory.join(&arguments.tried), &judged)
        .map_err(|insecure| Error::new(ExitStatus::Policy, insecure.to_string()))?;
    let load = || situation.load_files(&files).map_err(|faults| situation.faulty_files(&faults, &files));
    let policy = load()?;
    let sweep = arguments.limit.as_deref().map(|text| Sweep::read(text, arguments)).transpose()?;
    if let Some(sweep) = &sweep {
        sweep.check(&policy)?;
    }
    let accounts = KnownAccounts::of(situation, arguments.accounts.as_deref())?;
    let terms = Terms {
        is_enforced: arguments.enforced,
        is_by_host: arguments.each_host,
        wait: arguments.wait.as_deref().map(wait).transpose()?,
    };
    let traffic = traffic(situation, &policy, arguments)?;
    let trial = Trial { traffic: &traffic, accounts: &accounts, terms, seed: 1 };
    let material = Material { arguments, traffic: &traffic, accounts: &accounts, policy: &policy };
    let undecided = if sweep.is_some() { Vec::new() } else { trial.undecided(&policy) };
    if !undecided.is_empty() {
        return print(&if arguments.json {
            json::render(&self::sweep::unknown(&material, &undecided))
        } else {
            answer(&text::unknown(&material, &undecided))
        });
    }
    if let Some(sweep) = sweep {
        let swept = sweep.play(&trial, &load)?;
        return print(&if arguments.json {
            json::render(&swept.to_json(&material))
        } else {
            answer(&swept.to_text(&material))
        });
    }
    let mut compared = Compared::default();
    let draws = trial.draws(&policy, &mut |launch, outcome| compared.see(launch, outcome));
    print(&if arguments.json {
        json::render(&self::sweep::all(&material, &draws))
    } else {
        answer(&text::all(&material, &draws, &compared))
    })
}

fn samples(policy: &Policy, traffic: &Traffic) -> impl Iterator<Item = (String, u64)> {
    let measured = policy.repositories().iter().filter(|repository| repository.outside.is_some());
    measured.map(|repository| {
        let name = repository.shown_name();
        (name.to_owned(), traffic.samples.get(name).copied().unwrap_or(0))
    })
}

/// What is assumed of use outside rungate that the policy takes into account and the log does not have.
pub(crate) fn assumed(policy: &Policy, traffic: &Traffic) -> String {
    let missing = samples(policy, traffic).filter(|(_, samples)| *samples == 0);
    missing.map(|(name, _)| text::unmeasured(&name)).collect()
}

/// The launches in logs, for a policy.
pub(crate) fn traffic_of(situation: &Situation, policy: &Policy, logs: &[PathBuf]) -> Result<Traffic, Error> {
    let tables = joiner::Reading { is_by_host: false, single: single_tables(policy) };
    let reading = Reading { inputs: policy.relevant_inputs(), tables, seed: 1, most: None };
    read(situation, logs, &Span::default(), Recording::new(reading, policy.hours()))
}

/// All events of the logs within a span of time.
fn read(
    situation: &Situation,
    files: &[PathBuf],
    span: &Span,
    mut recording: Recording,
) -> Result<Traffic, Error> {
    reading::each_of(situation, files, span, &mut |event| recording.see(event))?;
    Ok(recording.finish())
}

fn wait(text: &str) -> Result<Wait, Error> {
    Wait::parse(text).ok_or_else(|| {
        usage(format!("--wait takes a time such as 90s, 10m, 1h30m or forever, not \"{}\"", text.shown()))
    })
}

fn traffic(situation: &Situation, policy: &Policy, arguments: &SimulateArguments) -> Result<Traffic, Error> {
    let tables = joiner::Reading { is_by_host: arguments.each_host, single: single_tables(policy) };
    let reading = Reading { inputs: policy.relevant_inputs(), tables, seed: 1, most: None };
    let recording = Recording::new(reading, policy.hours());
    let traffic = read(situation, &arguments.files, &arguments.span, recording)?;
    if traffic.launches.is_empty() {
        return Err(Error::new(ExitStatus::Usage, "the log has no launch")
            .advise("Starts are in it where the policy says: [log] replay = true".to_owned()));
    }
    Ok(traffic)
}

fn usage(text: String) -> Error {
    Error::new(ExitStatus::Usage, text)
}

// The data from which a simulation's output is printed.

/// The log, and the policy for it.
struct Material<'m> {
    arguments: &'m SimulateArguments,
    traffic: &'m Traffic,
    accounts: &'m KnownAccounts,
    policy: &'m Policy,
}

/// Names with launches in both, then and now.
struct Line {
    name: String,
    then: Cell,
    now: Cell,
}

/// The keys by which launches are counted.
#[derive(Clone, Copy)]
enum By {
    User,
    Group,
    Command,
}

impl Material<'_> {
    /// Each of them, those with most changes first.
    fn lines(&self, by: By, now: &Tally) -> Vec<Line> {
        let keys = |kind: usize| -> Vec<String> {
            let kind = &self.traffic.kinds[kind];
            match by {
                By::User => vec![self.user(kind.uid)],
                By::Group => self.groups(kind),
                By::Command => vec![kind.command.clone()],
            }
        };
        let (then, now) = (self.traffic.then.by(keys), now.by(keys));
        let line = |(name, now): (String, Cell)| Line {
            then: then.get(&name).copied().unwrap_or_default(),
            name,
            now,
        };
        let mut lines: Vec<Line> = now.into_iter().map(line).collect();
        lines.sort_by_key(|line| {
            let change = line.now.newly_refused + line.now.newly_started;
            std::cmp::Reverse((change, line.now.refused, line.now.waited, line.now.launches))
        });
        lines
    }

    /// The repositories that take use outside rungate into account, with the number of samples in the log.
    fn samples(&self) -> impl Iterator<Item = (String, u64)> {
        samples(self.policy, self.traffic)
    }

    /// The name of a user.
    fn user(&self, uid: u32) -> String {
        self.accounts.user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string())
    }

    fn groups(&self, kind: &super::simulation::judge::Kind) -> Vec<String> {
        let gids = match &kind.told {
            Some(told) => told.groups.clone(),
            None => self.accounts.groups_of(kind.uid),
        };
        let name = |gid: u32| self.accounts.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        gids.into_iter().map(name).collect()
    }

    /// The time in the policy's zone.
    fn clock(&self) -> Clock {
        Clock::in_zone(self.policy.time_zone())
    }
}
