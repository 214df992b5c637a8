//! `rungate explain`: how the policy applies to a command, and why. It uses the evaluator of `run`, and takes
//! nothing.

mod mine;
mod text;

use std::{ffi::OsString, fmt::Write as _, path::Path};

use crate::{
    acquire::{AcquireContext, DryRun, Found, Prospect, Refusal, acquire_context, outlook},
    cli::ExplainArguments,
    judge::{
        Decision, Request, Verdict, decide,
        terms::{Claim, Demand, Hold, Launch, Provenance, provenance},
    },
    keeper::Keepers,
    launch::{
        Program, Situation, SystemNames, account, ancestors, failed, find,
        refusals::{
            foretold::{self, title},
            limits::contacts,
        },
    },
    policy::{Captured, Policy, Repository},
    sys::{Inherited, accounts},
    text::{Clock, Error, ExitStatus, answer, json, print, visible},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Explains a command; without one, what the policy allows the caller.
pub(crate) fn run(arguments: &ExplainArguments, mut situation: Situation) -> Result<u8, Error> {
    let Some((command, words)) = arguments.command.split_first() else {
        return mine::run(arguments, situation);
    };
    if let Some(user) = &arguments.user {
        become_user(&mut situation, user)?;
    }
    let policy = situation.load_policy()?;
    let found = find(|name| policy.executable(name), command, None, &situation.directory);
    let missing = found.as_ref().err().map(Error::status);
    let program = found.unwrap_or_else(|_| Program::supposed(command, &situation.directory));
    let now = arguments.at.as_deref().map_or_else(|| Ok(Timestamp::now()), |text| time(text, &policy))?;
    if let Some(host) = &arguments.host {
        situation.host.clone_from(host);
    }
    let typed = arguments.typed_as.as_ref().unwrap_or(command);
    let request = Request { now, ..situation.request(typed, words, &program) };
    if let Some(faults) = policy.faults_for(&request) {
        return Err(situation.faulty(faults));
    }
    let decision = decide(&policy, &request);
    let (inherited, ancestors) = (Inherited::scan(), ancestors());
    let name = Path::new(typed).file_name().unwrap_or(typed).to_string_lossy();
    let demands = match &decision.verdict {
        Verdict::Start(start) => start.demands.as_slice(),
        _ => &[],
    };
    let asker = AcquireContext {
        launch: Launch {
            command: &name,
            host: &situation.host.to_string_lossy(),
            uid: situation.credentials.uid,
            ancestors: &ancestors,
            hold: Hold::default(),
        },
        keepers: Keepers::of(&inherited),
        generation: policy.generation(request.now),
        on_expired: &|_, _, _| {},
        clock: acquire_context::Clock::default(),
    };
    let explained = Explained {
        arguments,
        situation: &situation,
        policy: &policy,
        program: &program,
        missing,
        decision: &decision,
        now,
        clock: Clock::in_zone(policy.time_zone()),
        other_limits: other_limits(&policy, &request, demands),
        outlook: outlook(demands, &asker),
    };
    let text = if arguments.json { explained.to_json(command) } else { answer(&explained.to_text(command)) };
    print(&text)
}

/// A time that `--at` names: in the policy's zone, as in a rule's `when`.
fn time(text: &str, policy: &Policy) -> Result<Timestamp, Error> {
    Clock::in_zone(policy.time_zone()).read(text).ok_or_else(|| {
        let text =
            format!("--at takes a time such as 14:02 or \"2026-11-20 14:02\", not \"{}\"", visible(text));
        Error::new(ExitStatus::Usage, text)
    })
}

/// Another user's groups are those of the database: there is no process of theirs to ask.
fn become_user(situation: &mut Situation, user: &str) -> Result<(), Error> {
    let account = account(user)?;
    let lookup = |error| Error::new(ExitStatus::System, failed(error).to_string());
    situation.credentials.groups = accounts::groups_of(&account).map_err(lookup)?;
    situation.credentials.gid = account.gid;
    if situation.credentials.uid != account.uid {
        situation.credentials.uid = account.uid;
        situation.forget_caller();
    }
    Ok(())
}

struct Explained<'d, 'p> {
    arguments: &'d ExplainArguments,
    situation: &'d Situation,
    policy: &'p Policy,
    program: &'d Program,
    /// The exit status of a launch whose command does not exist on this host. Rules are judged by its name.
    missing: Option<ExitStatus>,
    decision: &'d Decision<'p>,
    now: Timestamp,
    clock: Clock,
    /// The message about limits that the database's groups would change.
    other_limits: String,
    outlook: DryRun<'d>,
}

/// The position of a claim among the demands of the rules, each counted from 0.
#[derive(Clone, Copy)]
struct Standing {
    demand: usize,
    alternative: usize,
    /// The position among the claims that belong together.
    place: usize,
}

impl Explained<'_, '_> {
    /// Every claim, and its position.
    fn prospects(&self) -> impl Iterator<Item = (Standing, &Prospect<'_>)> {
        let demands = match &self.decision.verdict {
            Verdict::Start(start) => start.demands.as_slice(),
            _ => &[],
        };
        let standings = demands.iter().enumerate().flat_map(|(demand, wanted)| {
            wanted.alternatives().enumerate().flat_map(move |(alternative, claims)| {
                (0..claims.len()).map(move |place| Standing { demand, alternative, place })
            })
        });
        standings.zip(&self.outlook.prospects)
    }

    /// The contacts that a refusal would name.
    fn contacts(&self) -> Vec<&str> {
        match &self.decision.verdict {
            Verdict::Denied { rule, .. } | Verdict::LookupFailed { rule, .. } => {
                rule.contact().into_iter().collect()
            }
            Verdict::Unmatched => self.policy.contact().into_iter().collect(),
            Verdict::Start(_) => match &self.outlook.refusal {
                Ok(Some(refusal)) => contacts(refusal),
                Ok(None) => Vec::new(),
                Err(_) => self.policy.contact().into_iter().collect(),
            },
        }
    }

    /// What would happen now, and the status of a refusal.
    fn verdict(&self) -> (String, Option<ExitStatus>) {
        foretold::verdict(self.policy, self.decision, &self.outlook)
    }
}

// The differences between the groups of the session and of the database, and their limits: a frequent
// surprise after a change of groups.

impl Explained<'_, '_> {
    /// The groups that only the session or only the database has.
    fn session(&self) -> String {
        let credentials = &self.situation.credentials;
        let Ok(Some(account)) = accounts::account_of_uid(credentials.uid) else { return String::new() };
        let Ok(database) = accounts::groups_of(&account) else { return String::new() };
        let name = |gid: &u32| accounts::group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        let missing: Vec<String> =
            database.iter().filter(|gid| !credentials.groups.contains(gid)).map(name).collect();
        let extra: Vec<String> =
            credentials.groups.iter().filter(|gid| !database.contains(gid)).map(name).collect();
        let mut text = String::new();
        if !missing.is_empty() {
            let _ = writeln!(
                text,
                "note     not in this session, only in the database: {} (log in again)",
                visible(missing.join(" "))
            );
        }
        if !extra.is_empty() {
            let _ = writeln!(
                text,
                "note     only in this session, not in the database: {}",
                visible(extra.join(" "))
            );
        }
        text + &self.other_limits
    }
}

/// Claims whose limit would differ with the groups of the database, which listings use.
fn other_limits(policy: &Policy, request: &Request<'_>, demands: &[Demand]) -> String {
    let mut text = String::new();
    if !policy.repositories().iter().any(Repository::asks_for_groups) {
        return text;
    }
    let Ok(Some(account)) = accounts::account_of_uid(request.uid) else { return text };
    let Ok(database) = accounts::groups_of(&account) else { return text };
    let decision = decide(policy, &Request { gids: &database, ..*request });
    let Verdict::Start(start) = &decision.verdict else { return text };
    let limit = |claim: &Claim| {
        let why =
            claim.limit_of.as_ref().map_or_else(String::new, |limit_of| format!(" ({})", limit_of.limit()));
        format!("{}{why}", claim.amount.limit)
    };
    for claim in demands.iter().flat_map(Demand::claims) {
        let mut others = start.demands.iter().flat_map(Demand::claims);
        let other = others.find(|other| other.location.is_same_table(&claim.location));
        if let Some(other) = other.filter(|other| other.amount.limit != claim.amount.limit) {
            let _ = writeln!(
                text,
                "note     {}: the limit is {} in this session, and {} by the database",
                title(claim),
                limit(claim),
                limit(other)
            );
        }
    }
    text
}

// `explain` as JSON.

impl Explained<'_, '_> {
    fn to_json(&self, command: &OsString) -> String {
        let Situation { credentials, host, directory, .. } = self.situation;
        let (verdict, status) = self.verdict();
        let rules: Vec<Value> =
            self.decision
                .trace
                .iter()
                .map(|entry| {
                    let captured = entry.captured.iter().map(|Captured { name, value }| {
                        (name.clone(), String::from_utf8_lossy(value).into())
                    });
                    json!({
                        "rule": entry.rule.shown_name(),
                        "place": entry.rule.place().to_string(),
                        "matches": entry.matches(),
                        "captured": captured.collect::<Map<String, Value>>(),
                        "result": entry.describe(self.policy),
                    })
                })
                .collect();
        let claims: Vec<Value> = self.prospects().map(claim_as_json).collect();
        let refusal = self.outlook.refusal.as_ref().ok().and_then(Option::as_ref);
        let in_the_way: Vec<&str> = refusal
            .iter()
            .flat_map(|refusal| refusal.told())
            .map(|refused| &*refused.claim.repository)
            .collect();
        let value = json!({
            "command": command.to_string_lossy(),
            "path": visible(&self.program.path),
            "canonical": visible(&self.program.canonical),
            "found": self.missing.is_none(),
            "shim": self.program.shim.as_ref().map(visible),
            "uid": credentials.uid,
            "gids": credentials.groups,
            "host": host.to_string_lossy(),
            "directory": visible(directory),
            "rules": rules,
            "claims": claims,
            "starts": status.is_none(),
            "status": status.map(|status| status as u8),
            "in_the_way": in_the_way,
            "waits": refusal.and_then(Refusal::wait).map(|wait| wait.to_string()),
            "verdict": verdict,
            "contacts": self.contacts(),
        });
        json::render(&value)
    }
}

fn claim_as_json((standing, prospect): (Standing, &Prospect<'_>)) -> Value {
    let Prospect { claim, found } = prospect;
    let path = claim.location.path().map(visible);
    let found = found.as_ref();
    json!({
        "demand": standing.demand,
        "alternative": standing.alternative,
        "repository": &*claim.repository,
        "member": claim.member_name(&SystemNames),
        "path": path,
        "wanted": claim.amount.wanted(),
        "limit": claim.amount.effective_limit(),
        "limit_of": claim.limit_of.as_ref().map(Provenance::limit),
        "out_of_order": claim.out_of_order.len(),
        "kept_for": (!claim.kept.is_empty()).then(|| provenance::list(&claim.kept)),
        "used": found.ok().map(|found| found.occupancy.shown()),
        "waiting": found.ok().map(|found| found.waiting.len()),
        "error": found.err().map(ToString::to_string),
        "has_room": found.is_ok_and(Found::has_room),
        "wait": claim.wait.resolve().to_string(),
        "max_wait": claim.wait.bound.map(|longest| longest.to_string()),
        "queue": claim.queue.most,
        "queue_per_user": claim.queue.per_user,
        "rules": claim.origins.iter().map(|origin| &*origin.rule).collect::<Vec<_>>(),
    })
}
