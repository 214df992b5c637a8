//! Plays the tests of a policy: one user with their groups, one host, the evaluator, and the protocol of
//! every launch over tables in memory. `policy check` prints the results.
//!
//! A policy in roll-out is not enforced yet, but is tested: each test runs with the policy as it is, and
//! again as if everything were enforced.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ffi::OsString,
    path::Path,
};

use crate::{
    acquire::{AcquireContext, Clock, Grant, Outcome, Refusal, acquire_at_once},
    judge::{
        Decision, Start, TraceEntry, Unenforced, Verdict, decide,
        terms::{
            Admit, Claim, Demand, Group, Hold, LAST_SLOT, Launch, Location, LookupError, Names, Pace, Seats,
            Slots, Terms,
        },
    },
    keeper::{Class, Keepers, Number, Store, WaitingProcess, memory},
    policy::{Expectation, ExpectedClaim, Person, Policy, Repository, Request, Rule, Scenario, Users, Wait},
    sys::Inherited,
};
use jiff::Timestamp;

/// The result of one test.
#[derive(Debug)]
pub(crate) struct Rehearsal<'p> {
    /// The test.
    pub scenario: &'p Scenario,
    /// Whether the result is the expected one.
    pub passed: bool,
    /// The expected result, in words.
    pub expected: String,
    /// The actual result, in the same words.
    pub got: String,
    /// The result of every rule.
    pub trace: Vec<TraceEntry<'p>>,
    /// The slots in use, according to the test, of tables that the launch does not need: `seats [anm]`. Often
    /// this is intended, to show that it does not count. In a failed test, the name may be misspelled.
    pub beside: Vec<String>,
}

/// Runs every test; `now` is the time for tests without one.
pub(crate) fn rehearse(policy: &Policy, now: Timestamp) -> Vec<Rehearsal<'_>> {
    policy.scenarios().iter().map(|scenario| rehearse_one(policy, scenario, now)).collect()
}

/// Runs one of its tests.
pub(crate) fn rehearse_one<'p>(policy: &'p Policy, scenario: &'p Scenario, now: Timestamp) -> Rehearsal<'p> {
    play(Stage { policy, scenario, now })
}

fn play(stage: Stage<'_>) -> Rehearsal<'_> {
    let Stage { policy, scenario, .. } = stage;
    let cast = FakeNames::new(&scenario.person);
    let decision = stage.decide(&cast);
    let mut beside = Vec::new();
    let (actual, intended) = match decision.verdict {
        Verdict::Start(start) => {
            beside = stage.not_asked_for(&start.demands, &cast);
            launch(stage, &cast, &start)
        }
        Verdict::Denied { rule, matches } => {
            let why = format!("refused by \"{}\", which matches {matches}", rule.shown_name());
            (Ending::Refuse(vec![rule.shown_name().into()], why), None)
        }
        Verdict::Unmatched => (unmatched(), None),
        Verdict::LookupFailed { rule, failure } => {
            let why = format!("refused, because a look-up failed: {failure}");
            (Ending::Refuse(vec![rule.shown_name().into()], why), None)
        }
    };
    let critic = Assertion { policy, scenario };
    Rehearsal {
        scenario,
        passed: critic.is_expected(&actual, intended.as_ref()),
        expected: critic.show_expected(),
        got: critic.show(&actual, intended.as_ref()),
        trace: decision.trace,
        beside,
    }
}

fn unmatched<'p>() -> Ending<'p> {
    Ending::Refuse(Vec::new(), "refused, because no rule matches".into())
}

/// The result of a launch that no rule refuses, and the result if everything were enforced, if that differs.
fn launch<'p>(stage: Stage<'p>, cast: &FakeNames<'p>, start: &Start<'p>) -> (Ending<'p>, Option<Ending<'p>>) {
    let hold = start.hold.resolve();
    let would_refuse = start.would_refuse.first().map(|refusal| match refusal {
        Unenforced::Denied(rule) => {
            let why = format!("refused by \"{}\"", rule.shown_name());
            Ending::Refuse(vec![Cow::Borrowed(rule.shown_name())], why)
        }
        Unenforced::Unmatched => unmatched(),
    });
    if let Some(rule) = start.exempt {
        return (Ending::Exempt(rule), would_refuse);
    }
    let actual = acquire(stage, cast, start.demands.clone(), hold);
    let is_trial = |claim: &Claim| claim.amount.admit == Admit::Unenforced;
    let intended = || {
        let is_any_trial = start.demands.iter().flat_map(Demand::claims).any(is_trial);
        is_any_trial
            .then(|| acquire(stage, cast, start.demands.iter().cloned().map(enforced).collect(), hold))
    };
    (actual, would_refuse.or_else(intended))
}

fn enforced(demand: Demand) -> Demand {
    demand.map(|mut claim| {
        if claim.amount.admit == Admit::Unenforced {
            claim.amount.admit = Admit::WithinLimit;
        }
        claim
    })
}

/// Acquires the demands, while others hold slots and wait as the test describes.
fn acquire<'p>(stage: Stage<'p>, cast: &FakeNames<'p>, demands: Vec<Demand>, hold: Hold) -> Ending<'p> {
    let demands: Vec<Demand> = demands.into_iter().map(|demand| in_memory(demand, cast)).collect();
    let inherited = Inherited::default();
    let keepers = Keepers::of(&inherited);
    let _others = match stage.let_others_in(&demands, cast, &keepers.memory) {
        Ok(others) => others,
        Err(why) => return Ending::Impossible(why),
    };
    let Scenario { command, host, .. } = stage.scenario;
    let (command, host) = (command.to_string_lossy(), host.to_string_lossy());
    let launch = Launch { command: &command, host: &host, uid: cast.uid(), ancestors: &[], hold };
    let asker =
        AcquireContext { launch, keepers, generation: 0, on_expired: &|_, _, _| {}, clock: Clock::default() };
    match acquire_at_once(&demands, &asker) {
        Ok(Outcome::Granted(grant)) => {
            Ending::Start(grant.claims().iter().map(|claim| Taken::of(claim, cast)).collect(), hold)
        }
        Ok(Outcome::Refused(refusal)) => Ending::of(&refusal, cast, hold),
        Ok(Outcome::Interrupted) => unreachable!("nobody watches a launch that does not wait"),
        Err(error) => Ending::Refuse(Vec::new(), format!("refused: {error}")),
    }
}

// The result of a test, for comparison and in words.

/// The result of a launch, under the policy as it is or fully enforced.
enum Ending<'p> {
    /// The program starts with these slots, and this hold keeps them.
    Start(Vec<Taken>, Hold),
    /// It starts without slots, because of this exempt rule.
    Exempt(&'p Rule),
    /// It is refused by the rules with these shown names, for this reason.
    Refuse(Vec<Cow<'p, str>>, String),
    /// It waits this long for this, because of these rules; this hold keeps its slots.
    Wait(Vec<Cow<'p, str>>, String, Wait, Hold),
    /// The test itself is wrong: this state is impossible.
    Impossible(String),
}

/// A claim that was met.
struct Taken {
    repository: String,
    member: Option<String>,
    slots: Slots,
    limit: u64,
}

impl Taken {
    fn of(claim: &Claim, cast: &FakeNames<'_>) -> Self {
        Taken {
            repository: claim.repository.to_string(),
            member: claim.member_name(cast),
            slots: claim.amount.slots,
            limit: claim.amount.effective_limit(),
        }
    }
}

impl Ending<'_> {
    /// The result of a refusal by limits: the launch may wait.
    fn of(refusal: &Refusal<'_>, cast: &FakeNames<'_>, hold: Hold) -> Self {
        let names: Vec<String> = refusal.claims().map(|refused| name(refused.claim, cast)).collect();
        let names = names.join(", ");
        let origins = refusal.claims().flat_map(|refused| &refused.claim.origins);
        let rules = origins.map(|origin| Cow::Owned(origin.rule.to_string())).collect();
        match refusal.wait() {
            Some(wait) => Ending::Wait(rules, names, wait, hold),
            None => Ending::Refuse(rules, format!("refused, because there is no room in {names}")),
        }
    }

    /// Whether nothing starts at once.
    fn is_held_up(&self) -> bool {
        matches!(self, Ending::Refuse(..) | Ending::Wait(..))
    }
}

/// The expectation of a policy's test.
struct Assertion<'p> {
    policy: &'p Policy,
    scenario: &'p Scenario,
}

impl Assertion<'_> {
    /// Whether these results, as it is and if everything were enforced, are the expected ones.
    fn is_expected(&self, actual: &Ending<'_>, intended: Option<&Ending<'_>>) -> bool {
        let intention = intended.unwrap_or(actual);
        match (self.scenario.expect, actual) {
            (_, Ending::Impossible(_)) => false,
            (Expectation::Start, Ending::Start(claims, hold)) => {
                self.are_expected(claims) && self.keeps(*hold)
            }
            (Expectation::Exempt, Ending::Exempt(rule)) => self.is_by(rule.shown_name()),
            (Expectation::WouldRefuse, Ending::Start(claims, hold)) => {
                self.are_expected(claims) && self.keeps(*hold) && self.is_held_up_as_expected(intention)
            }
            (Expectation::Refuse, _) => self.is_held_up_as_expected(intention),
            (Expectation::Wait, _) => match intention {
                Ending::Wait(_, _, wait, hold) => {
                    self.scenario.wait.is_none_or(|expected| expected == *wait)
                        && self.keeps(*hold)
                        && self.is_held_up_as_expected(intention)
                }
                _ => false,
            },
            (Expectation::Start | Expectation::Exempt | Expectation::WouldRefuse, _) => false,
        }
    }

    fn is_held_up_as_expected(&self, ending: &Ending<'_>) -> bool {
        let (Ending::Refuse(rules, _) | Ending::Wait(rules, ..)) = ending else { return false };
        self.scenario.by.is_none() || rules.iter().any(|rule| self.is_by(rule))
    }

    fn keeps(&self, hold: Hold) -> bool {
        self.scenario.hold.is_none_or(|expected| expected == hold)
    }

    fn is_by(&self, rule: &str) -> bool {
        let is_shown_so = |known: &&Rule| known.shown_name() == rule;
        let name = self.policy.rules().iter().find(is_shown_so).map_or(rule, Rule::name);
        self.scenario.by.as_ref().is_none_or(|by| by == rule || by == name)
    }

    /// Each claim is expected once, and nothing else is.
    fn are_expected(&self, taken: &[Taken]) -> bool {
        let Some(expected) = &self.scenario.claims else { return true };
        let mut left: Vec<&Taken> = taken.iter().collect();
        for one in expected {
            let Some(found) = left.iter().position(|taken| self.is_as_expected(one, taken)) else {
                return false;
            };
            left.swap_remove(found);
        }
        left.is_empty()
    }

    fn is_as_expected(&self, expected: &ExpectedClaim, taken: &Taken) -> bool {
        let member = expected.member.as_deref();
        let repository = self.policy.repositories().get(expected.repository);
        repository.is_some_and(|known| known.shown_name() == taken.repository)
            && member.is_none_or(|member| is_called(taken.member.as_deref(), member))
            && expected.slots.is_none_or(|slots| slots == taken.slots)
            && expected.limit.is_none_or(|limit| u64::from(limit) == taken.limit)
    }

    /// A result in words, with the enforced result if that differs.
    fn show(&self, actual: &Ending<'_>, intended: Option<&Ending<'_>>) -> String {
        let shown = self.show_one(actual);
        match intended.filter(|intended| intended.is_held_up()) {
            Some(intended) => format!("{shown}; if enforced: {}", self.show_one(intended)),
            None => shown,
        }
    }

    fn show_one(&self, ending: &Ending<'_>) -> String {
        match ending {
            Ending::Start(taken, hold) if taken.is_empty() => {
                format!("starts with no slot{}", self.held(*hold))
            }
            Ending::Start(taken, hold) => {
                let show = |taken: &Taken| {
                    let name = named(&taken.repository, taken.member.as_deref());
                    show_claim(&name, Some(taken.slots), Some(taken.limit))
                };
                let taken = taken.iter().map(show).collect::<Vec<_>>().join(", ");
                format!("starts with {taken}{}", self.held(*hold))
            }
            Ending::Exempt(rule) => format!("starts, exempt by \"{}\"", rule.shown_name()),
            Ending::Refuse(_, how) => how.clone(),
            Ending::Wait(_, names, wait, hold) => {
                format!("waits {} for {names}{}", how_long(*wait), self.held(*hold))
            }
            Ending::Impossible(why) => why.clone(),
        }
    }

    /// What keeps the slots, if the test names it.
    fn held(&self, hold: Hold) -> String {
        self.scenario.hold.map_or_else(String::new, |_| format!(", hold {hold}"))
    }

    /// The expected result, in the same words.
    fn show_expected(&self) -> String {
        let by = self.scenario.by.as_ref().map_or_else(String::new, |by| format!(" by \"{by}\""));
        let hold = self.scenario.hold.map_or_else(String::new, |hold| format!(", hold {hold}"));
        match self.scenario.expect {
            Expectation::Refuse => format!("refused{by}"),
            Expectation::Exempt => format!("starts, exempt{by}"),
            Expectation::Wait => {
                let wait = self.scenario.wait.map_or_else(String::new, |wait| format!(" {}", how_long(wait)));
                format!("waits{wait}{by}{hold}")
            }
            Expectation::WouldRefuse => format!("{}{hold}; if enforced: refused{by}", self.show_start()),
            Expectation::Start => format!("{}{hold}", self.show_start()),
        }
    }

    fn show_start(&self) -> String {
        match self.scenario.claims.as_deref() {
            None => "starts".into(),
            Some([]) => "starts with no slot".into(),
            Some(claims) => {
                let show = |claim: &ExpectedClaim| {
                    let repository = &self.policy.repositories()[claim.repository];
                    let name = named(repository.shown_name(), claim.member.as_deref());
                    show_claim(&name, claim.slots, claim.limit.map(u64::from))
                };
                format!("starts with {}", claims.iter().map(show).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn how_long(wait: Wait) -> String {
    match wait {
        Wait::For(_) => format!("up to {wait}"),
        Wait::Forever => "for ever".into(),
    }
}

/// A claim in words: `3 of 50 matlab`, as far as it is known.
fn show_claim(name: &str, slots: Option<Slots>, limit: Option<u64>) -> String {
    let slots = match slots {
        Some(Slots::Number(number)) => number.to_string(),
        Some(Slots::All) => "all".into(),
        None if limit.is_none() => return name.to_owned(),
        None => "some".into(),
    };
    let limit = limit.map_or_else(String::new, |limit| format!(" {limit}"));
    format!("{slots} of{limit} {name}")
}

// The tables of a test, in memory, with the holders and the waiting launches at the time of its launch.

/// A test, and the policy that carries it.
#[derive(Clone, Copy)]
struct Stage<'p> {
    policy: &'p Policy,
    scenario: &'p Scenario,
    /// The time for tests without one.
    now: Timestamp,
}

/// The holders at the time of the launch, while this value lives.
#[derive(Default)]
struct Others {
    holding: Vec<memory::Held>,
    waiting: Vec<memory::Place>,
}

impl<'p> Stage<'p> {
    /// Judges the command of the test, started by this user.
    fn decide(&self, cast: &FakeNames<'_>) -> Decision<'p> {
        let Self { scenario, .. } = self;
        let environment = |name: &str| -> Option<OsString> {
            scenario.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let mut decision = decide(
            self.policy,
            &Request {
                typed: &scenario.command,
                arguments: &scenario.arguments,
                path: &scenario.path,
                canonical: &scenario.path,
                uid: cast.uid(),
                gids: &cast.gids(),
                host: &scenario.host,
                directory: &scenario.directory,
                environment: &environment,
                now: scenario.time.unwrap_or(self.now),
                cpus: &|| scenario.cpus,
                runtime: Path::new("/run/user/rungate"),
                names: cast,
            },
        );
        // Users of a test are distinguished by their names, because most have the same number.
        if let Verdict::Start(start) = &mut decision.verdict {
            for claim in start.demands.iter_mut().flat_map(Demand::claims_mut) {
                let repositories = self.policy.repositories();
                let known = repositories.iter().find(|known| known.shown_name() == &*claim.repository);
                if known.is_some_and(|known| known.sharing.is_by_user()) {
                    let group = claim.amount.group.take();
                    claim.amount.group = group.map(|group| group.of_member(cast.user()));
                }
            }
        }
        decision
    }

    /// Adds the holders and waiting launches of the test. If a holder would hold no slot, returns the reason.
    fn let_others_in(
        &self,
        demands: &[Demand],
        cast: &FakeNames<'_>,
        store: &Store,
    ) -> Result<Others, String> {
        let mut others = Others::default();
        let mut seen: Vec<&str> = Vec::new();
        for claim in demands.iter().flat_map(Demand::claims) {
            let Some(table) = claim.location.in_memory() else { continue };
            if seen.contains(&table) {
                continue;
            }
            for held in &self.scenario.held {
                if !self.is_about(held.repository, held.member.as_deref(), claim, cast) {
                    continue;
                }
                match &held.by {
                    // They count as users like that of the launch: slots that are kept from one are kept from
                    // all.
                    Users::Alike(slots) => others.hold(claim, table, *slots, None, store),
                    Users::These(holders) => {
                        for holder in holders {
                            if let Some(theirs) = self.claim_of(&holder.person, claim, table, "holds")? {
                                let group = theirs.amount.group.as_ref();
                                others.hold(&theirs, table, holder.slots, group, store);
                            }
                        }
                    }
                }
            }
            for waiting in &self.scenario.waiting {
                if !self.is_about(waiting.repository, waiting.member.as_deref(), claim, cast) {
                    continue;
                }
                match &waiting.by {
                    Users::Alike(launches) => {
                        for _ in 0..*launches {
                            others.wait(claim, table, None, store);
                        }
                    }
                    Users::These(people) => {
                        for person in people {
                            if let Some(theirs) = self.claim_of(person, claim, table, "waits for")? {
                                // Most users of a test have the same number, and so do not count by it.
                                let is_own = (&*person.user, person.uid) == (cast.user(), cast.uid());
                                others.wait(&theirs, table, is_own.then_some(person.uid), store);
                            }
                        }
                    }
                }
            }
            seen.push(table);
        }
        Ok(others)
    }

    /// Slots in use of tables that these demands do not need.
    fn not_asked_for(&self, demands: &[Demand], cast: &FakeNames<'_>) -> Vec<String> {
        let held = self.scenario.held.iter().map(|held| (held.repository, held.member.as_deref()));
        let waiting = self.scenario.waiting.iter().map(|one| (one.repository, one.member.as_deref()));
        let is_asked_for = |(repository, member): (usize, Option<&str>)| {
            demands
                .iter()
                .flat_map(Demand::claims)
                .any(|claim| self.is_about(repository, member, claim, cast))
        };
        let name = |(repository, member): (usize, Option<&str>)| {
            Some(named(self.policy.repositories().get(repository)?.shown_name(), member))
        };
        held.chain(waiting).filter(|entry| !is_asked_for(*entry)).filter_map(name).collect()
    }

    /// The slots of another user's launch of the command in a table; none if it is another member's.
    fn claim_of(
        &self,
        person: &Person,
        claim: &Claim,
        table: &str,
        verb: &str,
    ) -> Result<Option<Claim>, String> {
        let cast = FakeNames::new(person);
        let demands = match self.decide(&cast).verdict {
            Verdict::Start(start) => start.demands,
            _ => Vec::new(),
        };
        let repository = claim.repository.as_ref();
        let claims = || demands.iter().flat_map(Demand::claims);
        let theirs = claims().find(|claim| table_of(claim, &cast) == table);
        if theirs.is_none() && claims().all(|theirs| *theirs.repository != *repository) {
            let (user, command) = (&person.user, self.scenario.command.to_string_lossy());
            return Err(format!("cannot be: {user} {verb} no {repository} by {command}"));
        }
        Ok(theirs.cloned())
    }

    fn is_about(&self, repository: usize, member: Option<&str>, claim: &Claim, cast: &FakeNames<'_>) -> bool {
        let repositories = self.policy.repositories();
        let claimed = repositories.iter().find(|known| known.shown_name() == &*claim.repository);
        // Two repositories can have the same path, and so the same slots.
        let place = |known: &Repository| (known.keeper(), known.path.whole());
        repositories.get(repository).map(place) == claimed.map(place)
            && member.is_none_or(|member| is_called(claim.member_name(cast).as_deref(), member))
    }
}

/// Whether a test means this member: `ann, ws17`, or `ann ws17` as in older policies.
fn is_called(member: Option<&str>, written: &str) -> bool {
    member.is_some_and(|member| member == written || member.replace(", ", " ") == written)
}

impl Others {
    /// Takes free slots in the order of a launch with this claim, and last those that are not for it.
    fn hold(&mut self, claim: &Claim, table: &str, slots: u32, group: Option<&Group>, store: &Store) {
        let table = store.table(table);
        let wanted = Terms { slots: slots.into(), group: group.cloned(), ..Terms::default() };
        let shared = table.shared(&wanted);
        let held: HashSet<u64> =
            table.occupancy().spans().iter().flat_map(|span| span.slots.clone()).collect();
        let is_free = |slot: &u64| !held.contains(slot);
        let preferred = Terms::merge([&claim.amount]).unwrap_or_default().search_order(1);
        let is_preferred = |slot: &u64| preferred.iter().any(|zone| zone.contains(slot));
        let rest = (1..=LAST_SLOT).filter(|slot| !is_preferred(slot));
        let order = preferred.iter().cloned().flatten().chain(rest);
        let free = order.filter(is_free).take((slots as usize).saturating_sub(shared.len())).collect();
        self.holding.extend(table.take_with(&Seats { shared, free }, group));
    }

    /// Adds a waiting launch with this claim, of this user if that is the one of the test.
    fn wait(&mut self, claim: &Claim, table: &str, user: Option<u32>, store: &Store) {
        let table = store.table(table);
        let class = Class { generation: 0, capacity: claim.amount.usable_slots() };
        let number = table.highest_number().unwrap_or(Number(0)).next();
        if let Some(mut place) = table.take_place(number) {
            place.belongs_to(&WaitingProcess { user, ..WaitingProcess::default() });
            place.stand(&[class]);
            self.waiting.push(place);
        }
    }
}

/// The same demand with tables in memory.
fn in_memory(demand: Demand, names: &dyn Names) -> Demand {
    // What is used outside is part of the test's `use`.
    demand.map(|claim| Claim { location: Location::Memory(table_of(&claim, names)), outside: None, ..claim })
}

/// The table of a claim: of one place there is one, whatever repositories it belongs to. Most users of a test
/// have the same number, so it also has their name.
fn table_of(claim: &Claim, names: &dyn Names) -> String {
    let place = match &claim.location {
        Location::File(file) => file.path.to_string_lossy(),
        Location::Agent(agent) => Cow::Borrowed(agent.table.as_str()),
        Location::Memory(table) => return table.clone(),
    };
    named(&place, claim.member_name(names).as_deref())
}

/// The table of a claim in words: `matlab`, `matlab-per-user [ann]`.
fn name(claim: &Claim, names: &dyn Names) -> String {
    named(&claim.repository, claim.member_name(names).as_deref())
}

fn named(repository: &str, member: Option<&str>) -> String {
    member.map_or_else(|| repository.to_owned(), |member| format!("{repository} [{member}]"))
}

// The users of a test: one user with groups at a time, and no database except the test's data.

/// A user and the groups around them. Groups get numbers that no rule is likely to name.
struct FakeNames<'p> {
    person: &'p Person,
    groups: HashMap<&'p str, u32>,
}

/// The numbers are far above the groups of people and below those of containers.
const FIRST_GID: u32 = 3_000_000_000;

impl<'p> FakeNames<'p> {
    fn new(person: &'p Person) -> Self {
        let number = |(gid, name): (u32, &'p String)| (name.as_str(), name.parse().unwrap_or(gid));
        FakeNames { person, groups: (FIRST_GID..).zip(&person.groups).map(number).collect() }
    }

    fn uid(&self) -> u32 {
        self.person.uid
    }

    fn user(&self) -> &str {
        &self.person.user
    }

    fn gids(&self) -> Vec<u32> {
        self.person.groups.iter().filter_map(|name| self.groups.get(name.as_str()).copied()).collect()
    }
}

impl Names for FakeNames<'_> {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        Ok(Some(self.person.user.clone()).filter(|_| uid == self.person.uid))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(Some(self.person.uid).filter(|_| name == self.person.user))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(self.groups.get(name).copied())
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        let named = self.groups.iter().find(|(name, known)| **known == gid && name.parse::<u32>().is_err());
        Ok(named.map(|(name, _)| (*name).to_owned()))
    }

    fn in_netgroup(&self, netgroup: &str, _host: &str, _user: &str) -> Result<bool, LookupError> {
        Ok(self.person.netgroups.iter().any(|known| known.strip_prefix('+') == Some(netgroup)))
    }
}

// Simulates the restart of all running programs, one after the other: which of them a policy would refuse.
// The programs are real, but the tables are in memory, so no program loses a slot.

/// For each of them, in order of arrival, why it would not start; none if it would.
pub(crate) fn refused(policy: &Policy, launches: &[Request<'_>]) -> Vec<Option<String>> {
    let decisions: Vec<Decision<'_>> = launches.iter().map(|launch| decide(policy, launch)).collect();
    let demands: Vec<Vec<Demand>> =
        decisions.iter().zip(launches).map(|(decision, launch)| demands(decision, launch.names)).collect();
    let inherited = Inherited::default();
    let keepers = Keepers::of(&inherited);
    let mut granted: Vec<Grant<'_>> = Vec::new();
    let mut play = |(index, decision): (usize, &Decision<'_>)| {
        if let Some(why) = refused_by_rule(decision) {
            return Some(why);
        }
        let Request { typed, host, uid, names, .. } = &launches[index];
        let (command, host) = (typed.to_string_lossy(), host.to_string_lossy());
        let launch =
            Launch { command: &command, host: &host, uid: *uid, ancestors: &[], hold: Hold::default() };
        let (keepers, clock) = (keepers.clone(), Clock::default());
        let asker = AcquireContext { launch, keepers, generation: 0, on_expired: &|_, _, _| {}, clock };
        match acquire_at_once(&demands[index], &asker) {
            Ok(Outcome::Granted(grant)) => granted.push(grant),
            Ok(Outcome::Refused(refusal)) => return Some(full(&refusal, *names)),
            Ok(Outcome::Interrupted) | Err(_) => {}
        }
        None
    };
    decisions.iter().enumerate().map(&mut play).collect()
}

/// The demands, in memory. The last start does not matter, because they already run.
fn demands(decision: &Decision<'_>, names: &dyn Names) -> Vec<Demand> {
    let Verdict::Start(start) = &decision.verdict else { return Vec::new() };
    let timeless = |claim: Claim| Claim { pace: Pace::default(), ..claim };
    start.demands.iter().cloned().map(|demand| in_memory(demand, names).map(timeless)).collect()
}

fn refused_by_rule(decision: &Decision<'_>) -> Option<String> {
    match &decision.verdict {
        Verdict::Start(_) => None,
        Verdict::Denied { rule, .. } => Some(format!("{} refuses it", rule.title())),
        Verdict::Unmatched => Some("no rule allows it".to_owned()),
        Verdict::LookupFailed { failure, .. } => Some(failure.to_string()),
    }
}

fn full(refusal: &Refusal<'_>, names: &dyn Names) -> String {
    let full = refusal.claims().map(|refused| {
        format!("{} is full (limit {})", name(refused.claim, names), refused.claim.amount.effective_limit())
    });
    full.collect::<Vec<_>>().join(", ")
}
