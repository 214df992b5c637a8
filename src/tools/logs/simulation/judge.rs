//! The policy's decision on each kind of launch: computed once for each time that the policy distinguishes,
//! and cached.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    rc::Rc,
};

use crate::{
    judge::{
        Unenforced, Verdict, decide,
        terms::{Admit, Amount, Claim, Demand, Hold, Location, LookupError, Names, Of, Slots},
    },
    launch::log::event::{Circumstances, Event},
    policy::{Policy, RelevantInputs, Request, UNNAMED, Wait},
    sys::accounts,
};
use jiff::Timestamp;

/// Within a minute the time makes no difference to a policy.
const MINUTE: u64 = 60_000_000;

/// The decision on a launch.
#[derive(Debug)]
pub enum Plan<'p> {
    /// It needs these, in memory.
    Needs(Needs),
    /// It is refused: by this rule, if it is one.
    Refused(Option<&'p str>),
}

/// What a launch needs.
#[derive(Debug)]
pub struct Needs {
    /// The claims, each on a table in memory.
    pub demands: Vec<Demand>,
    /// How long the launch waits at most, for all of them together.
    pub longest: Option<Wait>,
    /// What keeps its slots.
    pub hold: Hold,
    /// Each table with the number of its repository.
    pub tables: Vec<(String, usize)>,
    /// Those of them whose use outside rungate is in the log.
    pub beside: Vec<Beside>,
}

/// A table, and the samples that count for it: those of one host or of all.
#[derive(Clone, Debug)]
pub struct Beside {
    pub table: String,
    pub repository: String,
    pub host: Option<String>,
}

/// A change of the policy for a trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Whether everything counts as enforced.
    pub is_enforced: bool,
    /// Whether each host has lock files of its own.
    pub is_by_host: bool,
    /// How long launches wait at most, if this replaces their own waits.
    pub wait: Option<Wait>,
}

/// A policy with a cache of its decisions.
pub struct Judge<'p> {
    policy: &'p Policy,
    people: &'p Remembered<'p>,
    terms: Terms,
    /// For each time, and each kind, the number of the plan.
    numbers: Vec<Vec<u32>>,
    plans: Vec<Rc<Plan<'p>>>,
    by_text: HashMap<String, u32>,
    times: HashMap<Vec<bool>, usize>,
    generations: Vec<u16>,
    /// The minute of the last decision, and its time.
    last: (u64, usize),
    repositories: Vec<String>,
    /// The repositories whose use outside rungate is in the log.
    measured: &'p BTreeMap<String, u64>,
}

/// Not judged yet.
const UNKNOWN: u32 = u32::MAX;

impl<'p> Judge<'p> {
    /// For a policy; limits for each processor count those of this host.
    pub fn new(
        policy: &'p Policy,
        people: &'p Remembered<'p>,
        terms: Terms,
        measured: &'p BTreeMap<String, u64>,
    ) -> Self {
        Self {
            measured,
            policy,
            people,
            terms,
            numbers: Vec::new(),
            plans: Vec::new(),
            by_text: HashMap::new(),
            times: HashMap::new(),
            generations: Vec::new(),
            last: (u64::MAX, 0),
            repositories: policy.repositories().iter().map(|known| known.shown_name().to_owned()).collect(),
        }
    }

    /// The names of the repositories, by number.
    pub fn repositories(&self) -> &[String] {
        &self.repositories
    }

    /// The index of the time among those that the policy distinguishes. As long as that stays the same, so do
    /// its plans.
    pub fn time_at(&mut self, micros: u64) -> usize {
        let minute = micros / MINUTE;
        if self.last.0 != minute {
            let now = timestamp(micros);
            let times = self.policy.times_at(now);
            let next = self.times.len();
            let time = *self.times.entry(times).or_insert(next);
            if time == next {
                self.generations.push(self.policy.generation(now));
                self.numbers.push(Vec::new());
            }
            self.last = (minute, time);
        }
        self.last.1
    }

    /// The policy's generation at that time.
    pub fn generation(&self, time: usize) -> u16 {
        self.generations.get(time).copied().unwrap_or(0)
    }

    /// The decision on a launch of this kind, at this moment.
    pub fn plan(&mut self, number: u32, kind: &Kind, time: usize, micros: u64) -> Rc<Plan<'p>> {
        let known = self.numbers[time].get(number as usize).copied().unwrap_or(UNKNOWN);
        if let Some(plan) = self.plans.get(known as usize) {
            return Rc::clone(plan);
        }
        let plan = self.judge(kind, micros);
        let text = text_of(&plan);
        let plans = &mut self.plans;
        let place = *self.by_text.entry(text).or_insert_with(|| {
            plans.push(Rc::new(plan));
            u32::try_from(plans.len() - 1).unwrap_or(UNKNOWN)
        });
        let numbers = &mut self.numbers[time];
        if numbers.len() <= number as usize {
            numbers.resize(number as usize + 1, UNKNOWN);
        }
        numbers[number as usize] = place;
        Rc::clone(&self.plans[place as usize])
    }

    fn judge(&self, kind: &Kind, micros: u64) -> Plan<'p> {
        let told = kind.told.as_deref();
        let groups = told.map_or_else(|| self.people.groups_of(kind.uid), |told| told.groups.clone());
        let program = told.map_or_else(|| kind.command.clone(), |told| told.program.clone());
        let canonical = told.and_then(|told| told.canonical.clone()).unwrap_or_else(|| program.clone());
        // A value that no rule names exists, but matches no rule.
        let untold = |text: &Option<String>| OsString::from(text.as_deref().unwrap_or(UNNAMED));
        let arguments: Vec<OsString> =
            told.map_or_else(Vec::new, |told| told.arguments.iter().map(untold).collect());
        let environment = |name: &str| -> Option<OsString> { told?.environment.get(name).map(untold) };
        let directory = told.map_or("", |told| told.directory.as_str());
        let verdict = decide(
            self.policy,
            &Request {
                typed: OsStr::new(&kind.command),
                arguments: &arguments,
                path: Path::new(&program),
                canonical: Path::new(&canonical),
                uid: kind.uid,
                gids: &groups,
                host: OsStr::new(&kind.host),
                directory: Path::new(directory),
                environment: &environment,
                now: timestamp(micros),
                cpus: &accounts::processors,
                runtime: &PathBuf::from(format!("/run/user/{}/rungate", kind.uid)),
                names: self.people,
            },
        )
        .verdict;
        let start = match verdict {
            Verdict::Start(start) => start,
            Verdict::Denied { rule, .. } | Verdict::LookupFailed { rule, .. } => {
                return Plan::Refused(Some(rule.shown_name()));
            }
            Verdict::Unmatched => return Plan::Refused(None),
        };
        if let Some(refusal) = start.would_refuse.first().filter(|_| self.terms.is_enforced) {
            return Plan::Refused(match refusal {
                Unenforced::Denied(rule) => Some(rule.shown_name()),
                Unenforced::Unmatched => None,
            });
        }
        let said = told.and_then(|told| Wait::parse(told.wait.as_deref()?));
        let wait = self.terms.wait.or(said);
        let hold = start.hold.resolve();
        let mut tables = Vec::new();
        let demands =
            start.demands.into_iter().filter_map(|demand| self.in_memory(demand, kind, wait, &mut tables));
        let demands: Vec<Demand> = demands.collect();
        let claims = demands.iter().flat_map(Demand::claims).filter(|claim| claim.outside.is_some());
        let beside = claims.filter_map(|claim| self.beside(claim, kind)).collect();
        Plan::Needs(Needs { demands, longest: wait, hold, tables, beside })
    }

    fn beside(&self, claim: &Claim, kind: &Kind) -> Option<Beside> {
        let table = claim.location.in_memory()?.to_owned();
        let mut repositories = self.policy.repositories().iter();
        let known = repositories.find(|known| known.shown_name() == &*claim.repository)?;
        let is_of_host = known.outside.as_ref()?.of == Of::Host;
        let repository = claim.repository.to_string();
        Some(Beside { table, repository, host: is_of_host.then(|| kind.host.clone()) })
    }

    /// The same demand with tables in memory; none if an ancestor's slots are enough.
    fn in_memory(
        &self,
        demand: Demand,
        kind: &Kind,
        wait: Option<Wait>,
        tables: &mut Vec<(String, usize)>,
    ) -> Option<Demand> {
        if demand.claims().all(|claim| kind.shared.iter().any(|name| **name == *claim.repository)) {
            return None;
        }
        let demand = demand.map(|claim| {
            let mut name = match &claim.location {
                Location::File(file) => file.path.to_string_lossy().into_owned(),
                Location::Agent(agent) => agent.table.clone(),
                Location::Memory(table) => table.clone(),
            };
            if self.terms.is_by_host {
                name.extend(["@", &kind.host]);
            }
            let mut amount = claim.amount.clone();
            if self.terms.is_enforced && amount.admit == Admit::Unenforced {
                amount.admit = Admit::WithinLimit;
            }
            let (location, wait) = (Location::Memory(name), claim.wait.with(wait));
            let outside = claim.outside.filter(|_| self.measured.contains_key(&*claim.repository));
            Claim { location, amount, outside, wait, ..claim }
        });
        for claim in demand.claims() {
            let Some(name) = claim.location.in_memory() else { continue };
            let number = self.repositories.iter().position(|known| **known == *claim.repository);
            if let Some(number) = number.filter(|_| tables.iter().all(|(known, _)| known != name)) {
                tables.push((name.to_owned(), number));
            }
        }
        Some(demand)
    }
}

fn timestamp(micros: u64) -> Timestamp {
    let moment = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    moment.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Equal plans have the same number.
fn text_of(plan: &Plan<'_>) -> String {
    let needs = match plan {
        Plan::Needs(needs) => needs,
        Plan::Refused(rule) => return format!("refused by {}", rule.unwrap_or_default()),
    };
    let mut text = needs.hold.to_string();
    if let Some(longest) = needs.longest {
        text.push_str(&format!(" within {longest}"));
    }
    for demand in &needs.demands {
        text.push_str(" all of");
        for alternative in demand.alternatives() {
            text.push_str(" one of");
            for claim in alternative {
                add_claim(&mut text, claim);
            }
        }
    }
    text
}

fn add_claim(text: &mut String, claim: &Claim) {
    let Amount { limit, ceiling, slots, zones, admit, group, linger: _ } = &claim.amount;
    let table = claim.location.in_memory().unwrap_or_default();
    let slots = match slots {
        Slots::Number(number) => u64::from(*number),
        Slots::All => u64::MAX,
    };
    text.push_str(&format!(" {slots} of {limit} below {} of {table}", ceiling.unwrap_or(u64::MAX)));
    for zone in zones {
        text.push_str(&format!(" {}-{}", zone.start(), zone.end()));
    }
    if let Some(group) = group {
        text.extend([" shared by ", group.text()]);
    }
    if let Some(outside) = &claim.outside {
        text.push_str(&format!(" beside uid {} on {}", outside.uid, outside.host));
    }
    text.push_str(&format!(" admit {} wait {}", *admit as u8, claim.wait.resolve()));
    claim.origins.iter().for_each(|origin| text.extend([" by ", &*origin.rule]));
}

// The users and groups of a log. Each name is looked up once, in the name service or in files from another
// machine.

/// The database of the accounts.
pub trait Accounts: Names {
    /// The groups of a user without groups in the log.
    fn groups_of(&self, uid: u32) -> Vec<u32>;
}

/// Remembers every answer.
pub struct Remembered<'a> {
    accounts: &'a dyn Accounts,
    user_names: RefCell<HashMap<u32, Result<Option<String>, LookupError>>>,
    user_ids: RefCell<HashMap<String, Result<Option<u32>, LookupError>>>,
    group_ids: RefCell<HashMap<String, Result<Option<u32>, LookupError>>>,
    group_names: RefCell<HashMap<u32, Result<Option<String>, LookupError>>>,
    groups: RefCell<HashMap<u32, Vec<u32>>>,
}

impl<'a> Remembered<'a> {
    /// Of a database.
    pub fn new(accounts: &'a dyn Accounts) -> Self {
        Self {
            accounts,
            user_names: RefCell::default(),
            user_ids: RefCell::default(),
            group_ids: RefCell::default(),
            group_names: RefCell::default(),
            groups: RefCell::default(),
        }
    }

    /// The groups of a user.
    pub fn groups_of(&self, uid: u32) -> Vec<u32> {
        self.groups.borrow_mut().entry(uid).or_insert_with(|| self.accounts.groups_of(uid)).clone()
    }
}

impl Names for Remembered<'_> {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        let mut known = self.user_names.borrow_mut();
        known.entry(uid).or_insert_with(|| self.accounts.user_name(uid)).clone()
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        let mut known = self.user_ids.borrow_mut();
        known.entry(name.to_owned()).or_insert_with(|| self.accounts.user_id(name)).clone()
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        let mut known = self.group_ids.borrow_mut();
        known.entry(name.to_owned()).or_insert_with(|| self.accounts.group_id(name)).clone()
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        let mut known = self.group_names.borrow_mut();
        known.entry(gid).or_insert_with(|| self.accounts.group_name(gid)).clone()
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        self.accounts.in_netgroup(netgroup, host, user)
    }
}

// Kinds of launches: those of one kind differ only in their time, as far as a policy can see.

/// The inputs of a decision.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Kind {
    /// The caller.
    pub uid: u32,
    /// The command, as it was typed.
    pub command: String,
    /// Where it ran.
    pub host: String,
    /// The rest, if the log has it.
    pub told: Option<Box<Circumstances>>,
    /// The repositories for which an ancestor's slots were enough.
    pub shared: Vec<String>,
}

/// The facts of an event that a policy uses.
#[derive(Clone, Copy)]
struct Seen<'e> {
    event: &'e Event,
    looks: RelevantInputs,
    host: &'e str,
}

impl<'e> Seen<'e> {
    fn of(event: &'e Event, looks: RelevantInputs, is_by_host: bool) -> Self {
        Self { event, looks, host: if looks.hosts || is_by_host { &event.host } else { "" } }
    }

    fn shared(self) -> impl Iterator<Item = &'e str> {
        let shared = self.event.tables.iter().filter(|table| table.shared);
        shared.map(|table| table.repository.as_str())
    }

    /// The facts in the log that rules of the policy use.
    fn told(self) -> Option<LoggedFacts<'e>> {
        let Circumstances { groups, program, canonical, directory, arguments, environment, wait } =
            self.event.launch.as_deref()?;
        let RelevantInputs { directories, arguments: at_arguments, environment: at_environment, hosts: _ } =
            self.looks;
        Some(LoggedFacts {
            groups,
            program,
            canonical: canonical.as_deref(),
            directory: if directories { directory } else { "" },
            arguments: if at_arguments { arguments } else { &[] },
            environment: Some(environment).filter(|_| at_environment && !environment.is_empty()),
            wait: wait.as_deref(),
        })
    }

    /// Equal kinds have the same number; different kinds nearly never.
    fn hash(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.event.uid, &self.event.command, self.host, self.told()).hash(&mut hasher);
        self.shared().for_each(|name| name.hash(&mut hasher));
        hasher.finish()
    }

    fn is(self, kind: &Kind) -> bool {
        let Kind { uid, command, host, told, shared } = kind;
        *uid == self.event.uid
            && *command == self.event.command
            && *host == self.host
            && told.as_deref().map(LoggedFacts::of) == self.told()
            && self.shared().eq(shared.iter().map(String::as_str))
    }

    fn to_kind(self) -> Kind {
        Kind {
            uid: self.event.uid,
            command: self.event.command.clone(),
            host: self.host.to_owned(),
            told: self.told().map(|told| Box::new(told.to_circumstances())),
            shared: self.shared().map(str::to_owned).collect(),
        }
    }
}

/// Facts of another user's launch.
#[derive(Eq, Hash, PartialEq)]
struct LoggedFacts<'e> {
    groups: &'e [u32],
    program: &'e str,
    canonical: Option<&'e str>,
    directory: &'e str,
    arguments: &'e [Option<String>],
    environment: Option<&'e BTreeMap<String, Option<String>>>,
    wait: Option<&'e str>,
}

impl<'e> LoggedFacts<'e> {
    fn of(circumstances: &'e Circumstances) -> Self {
        let Circumstances { groups, program, canonical, directory, arguments, environment, wait } =
            circumstances;
        Self {
            groups,
            program,
            canonical: canonical.as_deref(),
            directory,
            arguments,
            environment: Some(environment).filter(|environment| !environment.is_empty()),
            wait: wait.as_deref(),
        }
    }

    fn to_circumstances(&self) -> Circumstances {
        Circumstances {
            groups: self.groups.to_vec(),
            program: self.program.to_owned(),
            canonical: self.canonical.map(str::to_owned),
            directory: self.directory.to_owned(),
            arguments: self.arguments.to_vec(),
            environment: self.environment.cloned().unwrap_or_default(),
            wait: self.wait.map(str::to_owned),
        }
    }
}

/// All kinds, by number.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Kind>,
    /// The numbers of the kinds with the same hash. Nothing is copied from an event whose kind is known.
    numbers: HashMap<u64, Vec<u32>>,
}

impl Kinds {
    /// The number of the kind of an event, by the facts that rules of the policy use.
    pub fn number(&mut self, event: &Event, looks: RelevantInputs, is_by_host: bool) -> u32 {
        let seen = Seen::of(event, looks, is_by_host);
        let alike = self.numbers.entry(seen.hash()).or_default();
        if let Some(number) = alike.iter().find(|number| seen.is(&self.kinds[**number as usize])) {
            return *number;
        }
        let number = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        alike.push(number);
        self.kinds.push(seen.to_kind());
        number
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The user of a kind.
    pub fn uid(&self, number: u32) -> u32 {
        self.kinds.get(number as usize).map_or(0, |kind| kind.uid)
    }

    /// In the order of their numbers.
    pub fn into_list(self) -> Vec<Kind> {
        self.kinds
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::launch::log::event::{Kind as EventKind, TableSeen};

    fn event(change: impl Fn(&mut Event, &mut Circumstances)) -> Event {
        let mut event = Event::now(EventKind::Started, "matlab", 7, OsStr::new("ws17"));
        let mut told = Circumstances { groups: vec![1], ..Circumstances::default() };
        change(&mut event, &mut told);
        event.launch = Some(Box::new(told));
        event
    }

    #[test]
    fn what_a_policy_looks_at_makes_a_kind_and_nothing_else() {
        let all = RelevantInputs { directories: true, arguments: true, environment: true, hosts: true };
        let shared = TableSeen { repository: "seats".to_owned(), shared: true, ..TableSeen::default() };
        let same = [
            event(|event, _| event.time += 1),
            event(|event, _| event.pid += 1),
            event(|event, _| event.tables = vec![TableSeen { shared: false, ..shared.clone() }]),
        ];
        let always = [
            event(|event, _| event.uid = 8),
            event(|event, _| event.command = "spectre".to_owned()),
            event(|event, _| event.tables = vec![shared.clone()]),
            event(|_, told| told.groups.push(2)),
            event(|_, told| told.program = "/opt/matlab".to_owned()),
            event(|_, told| told.canonical = Some("/opt/matlab".to_owned())),
            event(|_, told| told.wait = Some("1m".to_owned())),
        ];
        let looked_at = [
            event(|event, _| event.host = "ws18".to_owned()),
            event(|_, told| told.directory = "/home".to_owned()),
            event(|_, told| told.arguments.push(None)),
            event(|_, told| drop(told.environment.insert("DISPLAY".to_owned(), None))),
        ];
        let count = |looks: RelevantInputs, is_by_host: bool| {
            let mut kinds = Kinds::default();
            let first = kinds.number(&event(|_, _| {}), looks, is_by_host);
            assert!(same.iter().all(|event| kinds.number(event, looks, is_by_host) == first));
            for _ in 0..2 {
                always.iter().chain(&looked_at).for_each(|event| {
                    kinds.number(event, looks, is_by_host);
                });
            }
            kinds.into_list().len()
        };
        assert_eq!((count(RelevantInputs::default(), false), count(RelevantInputs::default(), true)), (8, 9));
        assert_eq!(count(all, false), 12);
    }
}
