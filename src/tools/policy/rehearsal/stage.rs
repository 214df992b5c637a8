//! The tables of a test, in memory, with the holders and the waiting launches at the time of its launch.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    path::Path,
};

use jiff::Timestamp;

use crate::{
    acquire::{
        acquire_context::{AcquireContext, Clock},
        acquisition::Outcome,
        grant::Grant,
        refusal::Refusal,
        without_waiting::acquire_at_once,
    },
    judge::{
        Decision, Verdict, decide,
        terms::{
            claim::{Claim, Demand, LAST_SLOT, Launch, Terms},
            group::{Group, Seats},
            keyword::Hold,
            location::Location,
            names::{LookupError, Names},
            pace::Pace,
        },
    },
    keeper::{
        Class, Number,
        memory::{self, Store},
        table::Keepers,
    },
    policy::{Holders, Person, Policy, Request, Scenario},
    sys::descriptor::Inherited,
};

/// A test, and the policy that carries it.
#[derive(Clone, Copy)]
pub(super) struct Stage<'p> {
    pub(super) policy: &'p Policy,
    pub(super) scenario: &'p Scenario,
    /// The time for tests without one.
    pub(super) now: Timestamp,
}

/// The holders at the time of the launch, while this value lives.
#[derive(Default)]
pub(super) struct Others {
    holding: Vec<memory::Held>,
    waiting: Vec<memory::Place>,
}

impl<'p> Stage<'p> {
    /// Judges the command of the test, started by this user.
    pub(super) fn decide(&self, cast: &FakeNames<'_>) -> Decision<'p> {
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
                let known = repositories.iter().find(|known| known.shown_name() == claim.repository);
                if known.is_some_and(|known| known.sharing.is_by_user()) {
                    let group = claim.amount.group.take();
                    claim.amount.group = group.map(|group| group.of_member(cast.user()));
                }
            }
        }
        decision
    }

    /// Adds the holders and waiting launches of the test. If a holder would hold no slot, returns the reason.
    pub(super) fn let_others_in(
        &self,
        demands: &[Demand<'_>],
        cast: &FakeNames<'_>,
        store: &Store,
    ) -> Result<Others, String> {
        let mut others = Others::default();
        let mut seen: Vec<String> = Vec::new();
        for claim in demands.iter().flat_map(Demand::claims) {
            let table = name(claim, cast);
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
                    Holders::Alike(slots) => others.hold(claim, &table, *slots, None, store),
                    Holders::These(holders) => {
                        for holder in holders {
                            if let Some(theirs) = self.claim_of(&holder.person, claim, &table)? {
                                let group = theirs.amount.group.as_ref();
                                others.hold(&theirs, &table, holder.slots, group, store);
                            }
                        }
                    }
                }
            }
            for waiting in &self.scenario.waiting {
                if self.is_about(waiting.repository, waiting.member.as_deref(), claim, cast) {
                    others.wait(claim, &table, waiting.launches, store);
                }
            }
            seen.push(table);
        }
        Ok(others)
    }

    /// Slots in use of tables that these demands do not need.
    pub(super) fn not_asked_for(&self, demands: &[Demand<'_>], cast: &FakeNames<'_>) -> Vec<String> {
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
    fn claim_of(&self, person: &Person, claim: &Claim<'_>, table: &str) -> Result<Option<Claim<'p>>, String> {
        let cast = FakeNames::new(person);
        let demands = match self.decide(&cast).verdict {
            Verdict::Start(start) => start.demands,
            _ => Vec::new(),
        };
        let repository = claim.repository.as_ref();
        let claims: Vec<&Claim<'p>> = demands.iter().flat_map(Demand::claims).collect();
        let claims: Vec<&Claim<'p>> =
            claims.into_iter().filter(|theirs| theirs.repository == repository).collect();
        if claims.is_empty() {
            let (user, command) = (&person.user, self.scenario.command.to_string_lossy());
            return Err(format!("cannot be: {user} holds no {repository} by {command}"));
        }
        Ok(claims.into_iter().find(|claim| name(claim, &cast) == table).cloned())
    }

    pub(super) fn is_about(
        &self,
        repository: usize,
        member: Option<&str>,
        claim: &Claim<'_>,
        cast: &FakeNames<'_>,
    ) -> bool {
        let repository = self.policy.repositories().get(repository);
        repository.is_some_and(|known| known.shown_name() == claim.repository)
            && member.is_none_or(|member| claim.member_name(cast).as_deref() == Some(member))
    }
}

impl Others {
    /// Takes free slots in the order of a launch with this claim, and last those that are not for it.
    fn hold(&mut self, claim: &Claim<'_>, table: &str, slots: u32, group: Option<&Group>, store: &Store) {
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

    /// Adds this many waiting launches with this claim.
    fn wait(&mut self, claim: &Claim<'_>, table: &str, launches: u32, store: &Store) {
        let table = store.table(table);
        let class = Class { generation: 0, reach: claim.amount.reach() };
        for _ in 0..launches {
            let number = table.highest_number().unwrap_or(Number(0)).next();
            let Some(mut place) = table.take_place(number) else { continue };
            place.stand(&[class]);
            self.waiting.push(place);
        }
    }
}

/// The same demand with tables in memory, a table for each member.
pub(super) fn in_memory<'p>(demand: Demand<'p>, names: &dyn Names) -> Demand<'p> {
    // What is used outside is part of the test's `use`.
    demand.map(|claim| Claim { location: Location::Memory(name(&claim, names)), outside: None, ..claim })
}

/// The name of a table: `matlab`, `matlab-per-user [ann]`.
pub(super) fn name(claim: &Claim<'_>, names: &dyn Names) -> String {
    named(&claim.repository, claim.member_name(names).as_deref())
}

pub(super) fn named(repository: &str, member: Option<&str>) -> String {
    member.map_or_else(|| repository.to_owned(), |member| format!("{repository} [{member}]"))
}

// The users of a test: one user with groups at a time, and no database except the test's data.

/// A user and the groups around them. Groups get numbers that no rule is likely to name.
pub(super) struct FakeNames<'p> {
    person: &'p Person,
    groups: HashMap<&'p str, u32>,
}

/// The numbers are far above the groups of people and below those of containers.
const FIRST_GID: u32 = 3_000_000_000;

impl<'p> FakeNames<'p> {
    pub(super) fn new(person: &'p Person) -> Self {
        let number = |(gid, name): (u32, &'p String)| (name.as_str(), name.parse().unwrap_or(gid));
        FakeNames { person, groups: (FIRST_GID..).zip(&person.groups).map(number).collect() }
    }

    pub(super) fn uid(&self) -> u32 {
        self.person.uid
    }

    fn user(&self) -> &str {
        &self.person.user
    }

    pub(super) fn gids(&self) -> Vec<u32> {
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
pub fn refused(policy: &Policy, launches: &[Request<'_>]) -> Vec<Option<String>> {
    let decisions: Vec<Decision<'_>> = launches.iter().map(|launch| decide(policy, launch)).collect();
    let demands: Vec<Vec<Demand<'_>>> =
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
fn demands<'p>(decision: &Decision<'p>, names: &dyn Names) -> Vec<Demand<'p>> {
    let Verdict::Start(start) = &decision.verdict else { return Vec::new() };
    let timeless = |claim: Claim<'p>| Claim { pace: Pace::default(), ..claim };
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
