//! `rungate explain` without a command: what the policy allows one person, what they hold, where they wait,
//! and how long such waits took. It predicts nothing: past waits do not show how long the next one takes.

mod text;

use std::{
    cell::{LazyCell, RefCell},
    collections::BTreeMap,
    path::Path,
    time::Duration,
};

use super::become_user;
use crate::{
    cli::{ExplainArguments, Span},
    judge::{
        Personal, Request, personal,
        terms::{Claim, Location, Origin, rule_title},
    },
    keeper::{Holder, KeeperError, LockPath, TableSnapshot, Waiter, agent},
    launch::{Situation, SystemNames, log::event::Event},
    policy::{Policy, Rule},
    sys::{NameCache, accounts},
    text::{Clock, Error, ExitStatus, json, print, visible},
    tools::{
        logs::{
            reading::{self, single_tables},
            statistics::{Distribution, Joiner, LaunchOutcome, Launched, Reading, Run, Sink},
        },
        shared::{ListedFile, WaitsFor, wanted},
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Shows the limits, slots and places of the caller, or of another user.
pub(super) fn run(arguments: &ExplainArguments, mut situation: Situation) -> Result<u8, Error> {
    if let Some(user) = &arguments.user {
        become_user(&mut situation, user)?;
    }
    let policy = situation.load_policy()?;
    let request = request(&situation);
    if let Some(faults) = policy.faults_for(&request) {
        return Err(situation.faulty(faults));
    }
    let personal =
        personal(&policy, &request).map_err(|failure| Error::new(ExitStatus::System, failure.to_string()))?;
    let files = wanted(&policy, &situation, &[])?.into_iter().flat_map(|repository| repository.files);
    let tables: Vec<Table> = files.map(|file| Table { survey: file.survey(), file }).collect();
    let mine = Mine {
        situation: &situation,
        policy: &policy,
        limits: limits(&personal, &tables, situation.credentials.uid),
        personal: &personal,
        tables: &tables,
        past: LazyCell::new(|| Past::of_policy(&situation)),
        clock: Clock::now(),
        names: NameCache::new(),
    };
    let is_unseen = mine.unseen().next().is_some();
    print(&if arguments.json { mine.to_json() } else { mine.to_text() })?;
    Ok(if is_unseen { ExitStatus::Repository } else { ExitStatus::Success } as u8)
}

/// The person without a command.
fn request(situation: &Situation) -> Request<'_> {
    Request {
        typed: "".as_ref(),
        arguments: &[],
        path: Path::new(""),
        canonical: Path::new(""),
        uid: situation.credentials.uid,
        gids: &situation.credentials.groups,
        host: &situation.host,
        directory: &situation.directory,
        environment: &|_| None,
        now: Timestamp::now(),
        cpus: &accounts::processors,
        runtime: &situation.runtime,
        names: &SystemNames,
    }
}

/// A table that exists, and what was found there.
struct Table {
    file: ListedFile,
    survey: Result<TableSnapshot, KeeperError>,
}

/// One table that a rule can charge the person for.
struct Limit<'p> {
    /// The claim with the highest limit.
    claim: &'p Claim,
    /// Rules that allow less, each with how much.
    lower: Vec<(u64, &'p Origin)>,
    survey: Result<TableSnapshot, String>,
    /// How many slots the person holds.
    mine: u64,
}

struct Mine<'a, 'p, F: FnOnce() -> Past> {
    situation: &'a Situation,
    policy: &'p Policy,
    personal: &'a Personal<'p>,
    limits: Vec<Limit<'a>>,
    tables: &'a [Table],
    /// Read only if it is shown.
    past: LazyCell<Past, F>,
    clock: Clock,
    names: NameCache,
}

impl<F: FnOnce() -> Past> Mine<'_, '_, F> {
    fn uid(&self) -> u32 {
        self.situation.credentials.uid
    }

    /// The slots that the person holds.
    fn held(&self) -> impl Iterator<Item = (&ListedFile, &Holder)> {
        let uid = self.uid();
        self.seen().flat_map(move |(file, survey)| {
            let is_own = move |holder: &&Holder| holder.uid == Some(uid);
            let own = survey.holders.iter().filter_map(move |holder| holder.all().find(is_own));
            own.map(move |holder| (file, holder))
        })
    }

    /// The places where the person waits.
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let uid = self.uid();
        self.seen().flat_map(move |(file, survey)| {
            let own = survey.waiting.iter().enumerate().filter(move |(_, waiter)| waiter.uid() == Some(uid));
            own.map(move |(index, waiter)| Place {
                file,
                waiter,
                number: index + 1,
                of: survey.waiting.len(),
                waits_for: WaitsFor::of(survey, index, file.limit()),
            })
        })
    }

    fn seen(&self) -> impl Iterator<Item = (&ListedFile, &TableSnapshot)> {
        self.tables.iter().filter_map(|table| Some((&table.file, table.survey.as_ref().ok()?)))
    }

    /// Tables that cannot be checked, each with the reason.
    fn unseen(&self) -> impl Iterator<Item = (String, String)> {
        let tables = self
            .tables
            .iter()
            .filter_map(|table| Some((table.file.title(), table.survey.as_ref().err()?.to_string())));
        let limits = self.limits.iter().filter_map(|limit| {
            Some((limit.claim.title(&SystemNames), limit.survey.as_ref().err()?.clone()))
        });
        let mut known = Vec::new();
        tables.chain(limits).filter(move |(title, _)| {
            let is_new = !known.contains(title);
            known.push(title.clone());
            is_new
        })
    }

    /// The repositories that the person waits for, or could be charged for, each once.
    fn repositories(&self) -> Vec<&str> {
        let places = self.places().map(|place| place.file.name.as_str());
        let limits = self.limits.iter().map(|limit| &*limit.claim.repository);
        let open = self.personal.open.iter().map(|repository| repository.shown_name());
        let mut names = Vec::new();
        for name in places.chain(limits).chain(open) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// A place in a queue.
struct Place<'a> {
    file: &'a ListedFile,
    waiter: &'a Waiter,
    number: usize,
    of: usize,
    waits_for: WaitsFor,
}

/// Each table once, with the claim that allows most.
fn limits<'a>(personal: &'a Personal<'_>, tables: &[Table], uid: u32) -> Vec<Limit<'a>> {
    let mut limits: Vec<Limit<'a>> = Vec::new();
    for claim in &personal.claims {
        let known = limits.iter_mut().find(|known| known.claim.location.is_same_table(&claim.location));
        let Some(known) = known else {
            let survey = survey(claim, tables);
            let own = |survey: &TableSnapshot| {
                let is_own = |holder: &&Holder| holder.all().any(|holder| holder.uid == Some(uid));
                let own = survey.holders.iter().filter(is_own);
                own.map(|holder| holder.slots.1 - holder.slots.0 + 1).sum()
            };
            let mine = survey.as_ref().map_or(0, own);
            limits.push(Limit { claim, lower: Vec::new(), survey, mine });
            continue;
        };
        let (before, now) = (known.claim.amount.usable_slots(), claim.amount.usable_slots());
        if before != now {
            let less = if now > before { std::mem::replace(&mut known.claim, claim) } else { claim };
            known.lower.extend(less.origins.first().map(|origin| (before.min(now), origin)));
        }
    }
    limits
}

/// The state of a claim's table: one that does not exist was never used.
fn survey(claim: &Claim, tables: &[Table]) -> Result<TableSnapshot, String> {
    let is_it = |table: &&Table| match &claim.location {
        Location::File(file) => table.file.path() == Some(&file.path),
        Location::Agent(of) => table.file.table() == Some(&of.table),
        Location::Memory(_) => false,
    };
    if let Some(table) = tables.iter().find(is_it) {
        return table.survey.as_ref().map(Clone::clone).map_err(ToString::to_string);
    }
    match &claim.location {
        Location::File(file) => TableSnapshot::of(&LockPath::of(file)).map_err(|error| error.to_string()),
        Location::Agent(of) => agent::survey(&of.table).map_err(|error| error.to_string()),
        Location::Memory(_) => Ok(TableSnapshot::default()),
    }
}

/// `30 by rule "students"`
fn lower(limit: &Limit<'_>) -> Vec<String> {
    limit.lower.iter().map(|(slots, origin)| format!("{slots} by {}", rule_title(&origin.rule))).collect()
}

/// What decides on everything that the person starts: in a few words, and why.
fn verdict(personal: &Personal<'_>) -> Option<(&'static str, String)> {
    const REFUSED: &str = "everything is refused";
    let by = |rule: &Rule| format!(" by {}, {}", rule.title(), rule.place());
    let denied = personal.denied.map(|rule| (REFUSED, by(rule)));
    let unmatched = || (REFUSED, ": no rule allows it (unmatched = \"refuse\")".to_owned());
    denied
        .or_else(|| personal.unmatched.then(unmatched))
        .or_else(|| personal.exempt.map(|rule| ("nothing is limited", by(rule))))
}

// How long launches waited for repositories, as far as the log shows.

/// How far back the log counts, because old waits say little about today.
const DAYS: u32 = 30;

/// The waits of the last days.
struct Past {
    /// By repository.
    waits: BTreeMap<String, WaitStatistics>,
    /// Why the log cannot be used.
    failure: Option<String>,
}

/// The waits for one repository.
#[derive(Default)]
struct WaitStatistics {
    /// For launches that started.
    took: Distribution,
    /// How many gave up.
    gave_up: u64,
}

impl Past {
    const DAYS: u32 = DAYS;

    /// The facts in the policy's log.
    fn of_policy(situation: &Situation) -> Self {
        let tables = match situation.load_silently() {
            Ok(policy) => Reading { is_by_host: false, single: single_tables(&policy) },
            Err(_) => Reading::default(),
        };
        let span = Span { since: Some(format!("{DAYS}d")), until: None };
        let joiner = RefCell::new((Joiner::new(tables), Self { waits: BTreeMap::new(), failure: None }));
        let read = reading::each_of(situation, &[], &span, &mut |event| {
            let (joiner, past) = &mut *joiner.borrow_mut();
            joiner.see(event, past)
        });
        let (joiner, mut past) = joiner.into_inner();
        joiner.finish(&mut past);
        past.failure = read.err().map(|error| error.what().to_owned());
        past
    }
}

impl Sink for Past {
    fn launched(&mut self, launch: &Launched<'_>) {
        match launch.fate {
            LaunchOutcome::Waited => {
                for taken in launch.taken {
                    self.waits.entry(taken.repository.to_owned()).or_default().took.add(launch.wait());
                }
            }
            LaunchOutcome::TimedOut => {
                for name in launch.event.names_of_repositories() {
                    self.waits.entry(name.to_owned()).or_default().gave_up += 1;
                }
            }
            LaunchOutcome::AtOnce | LaunchOutcome::Refused => {}
        }
    }

    fn freed(&mut self, _table: u32, _repository: &str, _at: u64) {}

    fn ended(&mut self, _run: &Run) {}

    fn noted(&mut self, _event: &Event, _at: u64) {}
}

// `explain` without a command, as JSON.

impl<F: FnOnce() -> Past> Mine<'_, '_, F> {
    fn to_json(&self) -> String {
        let credentials = &self.situation.credentials;
        let held = self.held().map(|(file, holder)| {
            json!({
                "repository": file.name,
                "member": file.member,
                "slot": holder.slots.0,
                "last_slot": holder.slots.1,
                "pid": holder.pid,
                "host": holder.elsewhere(),
                "since": holder.since.and_then(Clock::stamp),
                "command": holder.command,
                "rule": holder.rule,
            })
        });
        let places = self.places().map(|place| {
            json!({
                "repository": place.file.name,
                "member": place.file.member,
                "place": place.number,
                "of": place.of,
                "pid": place.waiter.process.pid,
                "host": place.waiter.process.host.as_deref(),
                "since": place.waiter.since().and_then(Clock::stamp),
                "wants": place.waiter.wants,
                "behind": place.waits_for.waiter().and_then(|ahead| ahead.pid),
                "waits_for": place.waits_for.show(&self.names),
                "command": place.waiter.command(),
            })
        });
        let names = self.repositories();
        let waits = names.iter().filter_map(|name| {
            let waits = self.past.waits.get(*name)?;
            let seconds = |percent| {
                let wait = Duration::from_micros(waits.took.percentile(percent));
                (waits.took.count > 0).then_some(wait.as_secs_f64())
            };
            Some(json!({
                "repository": name,
                "started": waits.took.count,
                "gave_up": waits.gave_up,
                "median_seconds": seconds(50.0),
                "p90_seconds": seconds(90.0),
            }))
        });
        json::render(&json!({
            "user": self.names.user(credentials.uid),
            "uid": credentials.uid,
            "gids": credentials.groups,
            "host": self.situation.host.to_string_lossy(),
            "denied": self.personal.denied.map(Rule::shown_name),
            "unmatched": self.personal.unmatched,
            "exempt": self.personal.exempt.map(Rule::shown_name),
            "limits": self.limits.iter().map(Limit::to_json).collect::<Vec<Value>>(),
            "by_command": self.personal.open.iter().map(|one| one.shown_name()).collect::<Vec<_>>(),
            "held": held.collect::<Vec<Value>>(),
            "waiting": places.collect::<Vec<Value>>(),
            "waits": waits.collect::<Vec<Value>>(),
            "waits_days": Past::DAYS,
            "waits_error": self.past.failure,
        }))
    }
}

impl Limit<'_> {
    fn to_json(&self) -> Value {
        let found = self.survey.as_ref();
        let lower = self.lower.iter().map(|(slots, origin)| json!({ "rule": &*origin.rule, "limit": slots }));
        json!({
            "repository": &*self.claim.repository,
            "member": self.claim.member_name(&SystemNames),
            "path": self.claim.location.path().map(visible),
            "limit": self.claim.amount.usable_slots(),
            "limit_of_all": self.claim.amount.limit,
            "lower": lower.collect::<Vec<Value>>(),
            "mine": found.ok().map(|_| self.mine),
            "used": found.ok().map(|survey| survey.used),
            "waiting": found.ok().map(|survey| survey.waiting.len()),
            "rules": self.claim.origins.iter().map(|origin| &*origin.rule).collect::<Vec<_>>(),
            "error": found.err(),
        })
    }
}
