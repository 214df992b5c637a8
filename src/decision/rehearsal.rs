//! Plays the tests that a policy carries: a cast of one user and his groups, a stage of one host, and an evaluator that
//! does not know it is a play. `policy test` and `policy check` print what comes out of it.

use std::{collections::HashMap, ffi::OsString, path::Path};

use jiff::Timestamp;

use super::{
    claim::{Claim, Demand},
    evaluation::decide,
    request::Request,
    trace::TraceEntry,
    verdict::{Decision, Terms, Verdict},
};
use crate::policy::{
    Expectation, ExpectedClaim, Held, LookupError, Names, Policy, Repository, Rule, Scenario, Slots,
};

/// How one test went.
#[derive(Debug)]
pub struct Rehearsal<'p> {
    /// The test.
    pub scenario: &'p Scenario,
    /// Whether what came out is what was expected.
    pub passed: bool,
    /// What was expected, in words.
    pub expected: String,
    /// What came out, in the same words.
    pub got: String,
    /// What became of every rule.
    pub trace: Vec<TraceEntry<'p>>,
}

/// Plays every test; `now` is the time for those that do not say.
pub fn rehearse(policy: &Policy, now: Timestamp) -> Vec<Rehearsal<'_>> {
    policy.scenarios().iter().map(|scenario| play(policy, scenario, now)).collect()
}

fn play<'p>(policy: &'p Policy, scenario: &'p Scenario, now: Timestamp) -> Rehearsal<'p> {
    let cast = Cast::new(scenario);
    let environment = |name: &str| -> Option<OsString> {
        scenario.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let decision = decide(
        policy,
        &Request {
            typed: &scenario.command,
            arguments: &scenario.arguments,
            path: &scenario.path,
            canonical: &scenario.path,
            uid: scenario.uid,
            gids: &cast.gids(),
            host: &scenario.host,
            directory: &scenario.directory,
            environment: &environment,
            now: scenario.time.unwrap_or(now),
            cpus: &|| scenario.cpus,
            runtime: Path::new("/run/user/rungate"),
            names: &cast,
        },
    );
    let stage = Stage { policy, scenario, cast: &cast };
    stage.rehearsal(decision)
}

/// The user of a test and the groups around him. Groups get numbers that no rule is likely to name.
struct Cast<'p> {
    scenario: &'p Scenario,
    groups: HashMap<&'p str, u32>,
}

/// Far above the groups of people and below those of containers.
const FIRST_GID: u32 = 3_000_000_000;

impl<'p> Cast<'p> {
    fn new(scenario: &'p Scenario) -> Self {
        let number = |(gid, name): (u32, &'p String)| (name.as_str(), name.parse().unwrap_or(gid));
        Cast { scenario, groups: (FIRST_GID..).zip(&scenario.groups).map(number).collect() }
    }

    fn gids(&self) -> Vec<u32> {
        self.scenario.groups.iter().filter_map(|name| self.groups.get(name.as_str()).copied()).collect()
    }
}

impl Names for Cast<'_> {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        Ok(Some(self.scenario.user.clone()).filter(|_| uid == self.scenario.uid))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(Some(self.scenario.uid).filter(|_| name == self.scenario.user))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(self.groups.get(name).copied())
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        let named = self.groups.iter().find(|(name, known)| **known == gid && name.parse::<u32>().is_err());
        Ok(named.map(|(name, _)| (*name).to_owned()))
    }

    fn in_netgroup(&self, netgroup: &str, _host: &str, _user: &str) -> Result<bool, LookupError> {
        Ok(self.scenario.netgroups.iter().any(|known| known == netgroup))
    }
}

struct Stage<'p, 'c> {
    policy: &'p Policy,
    scenario: &'p Scenario,
    cast: &'c Cast<'p>,
}

/// What comes out of a test.
enum Ending<'p> {
    /// The program starts with these claims.
    Start(Vec<Claim<'p>>),
    /// It starts, and this rule spares it every slot.
    Exempt(&'p Rule),
    /// It is refused, by these rules.
    Refuse(Vec<&'p Rule>, String),
}

impl<'p> Stage<'p, '_> {
    fn rehearsal(&self, decision: Decision<'p>) -> Rehearsal<'p> {
        let ending = match decision.verdict {
            Verdict::Start(terms) => self.admit(terms),
            Verdict::Denied { rule, matches } => Ending::Refuse(
                vec![rule],
                format!("refused by \"{}\", which matches {matches}", rule.shown_name()),
            ),
            Verdict::Unmatched => Ending::Refuse(Vec::new(), "refused, because no rule matches".into()),
            Verdict::LookupFailed { rule, failure } => {
                Ending::Refuse(vec![rule], format!("refused, because a look-up failed: {failure}"))
            }
        };
        Rehearsal {
            scenario: self.scenario,
            passed: self.is_expected(&ending),
            expected: self.show_expected(),
            got: self.show(&ending),
            trace: decision.trace,
        }
    }

    /// Which claims are had while so many slots are held as the test says.
    fn admit(&self, terms: Terms<'p>) -> Ending<'p> {
        if let Some(rule) = terms.exempt {
            return Ending::Exempt(rule);
        }
        let mut had = Vec::new();
        let mut full = Vec::new();
        for demand in terms.demands {
            match demand {
                Demand::One(claim) if self.has_room(&claim) => had.push(claim),
                Demand::One(claim) => full.push(claim),
                Demand::AnyOf(alternatives) => {
                    let mut alternatives = alternatives;
                    match alternatives.iter().position(|claim| self.has_room(claim)) {
                        Some(first) => had.push(alternatives.swap_remove(first)),
                        None => full.extend(alternatives),
                    }
                }
            }
        }
        if full.is_empty() {
            return Ending::Start(had);
        }
        let names: Vec<String> = full.iter().map(|claim| self.name(claim)).collect();
        let rules = full.iter().flat_map(|claim| claim.rules.iter().copied()).collect();
        Ending::Refuse(rules, format!("refused, because there is no room in {}", names.join(", ")))
    }

    fn has_room(&self, claim: &Claim<'_>) -> bool {
        if claim.admit_always || !claim.enforce {
            return true;
        }
        let held =
            self.scenario.held.iter().filter(|held| self.is_about(held, claim)).map(|held| held.slots).sum();
        // Those who hold the slots are taken to be like the one who asks: what is kept from him is kept from them.
        let usable: u32 = claim.zones.iter().map(|zone| zone.len()).sum();
        let limit = claim.effective_limit().min(usable);
        match claim.slots {
            Slots::Number(wanted) => wanted.saturating_add(held) <= limit,
            // All of them can never be had by somebody for whom some are not.
            Slots::All => held == 0 && limit > 0 && limit == claim.effective_limit(),
        }
    }

    fn is_about(&self, held: &Held, claim: &Claim<'_>) -> bool {
        let member = held.member.as_deref();
        self.is_repository(held.repository, claim.repository)
            && member.is_none_or(|member| claim.member_name(self.cast).as_deref() == Some(member))
    }

    fn is_repository(&self, index: usize, repository: &Repository) -> bool {
        self.policy.repositories().get(index).is_some_and(|known| std::ptr::eq(known, repository))
    }

    fn is_expected(&self, ending: &Ending<'p>) -> bool {
        let by = |rule: &Rule| {
            self.scenario
                .by
                .as_ref()
                .is_none_or(|by| rule.name() == by.as_str() || rule.shown_name() == by.as_str())
        };
        match (self.scenario.expect, ending) {
            (Expectation::Start, Ending::Start(claims)) => self.are_expected(claims),
            (Expectation::Exempt, Ending::Exempt(rule)) => by(rule),
            (Expectation::Refuse, Ending::Refuse(rules, _)) => {
                self.scenario.by.is_none() || rules.iter().any(|rule| by(rule))
            }
            _ => false,
        }
    }

    /// Each claim is expected once, and nothing else is.
    fn are_expected(&self, claims: &[Claim<'_>]) -> bool {
        let Some(expected) = &self.scenario.claims else { return true };
        let mut left: Vec<&Claim<'_>> = claims.iter().collect();
        for one in expected {
            let Some(found) = left.iter().position(|claim| self.is_as_expected(one, claim)) else {
                return false;
            };
            left.swap_remove(found);
        }
        left.is_empty()
    }

    fn is_as_expected(&self, expected: &ExpectedClaim, claim: &Claim<'_>) -> bool {
        let member = expected.member.as_deref();
        self.is_repository(expected.repository, claim.repository)
            && member.is_none_or(|member| claim.member_name(self.cast).as_deref() == Some(member))
            && expected.slots.is_none_or(|slots| slots == claim.slots)
            && expected.limit.is_none_or(|limit| limit == claim.effective_limit())
    }

    fn name(&self, claim: &Claim<'_>) -> String {
        name(claim.repository.shown_name(), claim.member_name(self.cast).as_deref())
    }

    fn show(&self, ending: &Ending<'_>) -> String {
        match ending {
            Ending::Start(claims) if claims.is_empty() => "starts with no slot".into(),
            Ending::Start(claims) => {
                let show = |claim: &Claim<'_>| {
                    show_claim(&self.name(claim), Some(claim.slots), Some(claim.effective_limit()))
                };
                format!("starts with {}", claims.iter().map(show).collect::<Vec<_>>().join(", "))
            }
            Ending::Exempt(rule) => format!("starts, exempt by \"{}\"", rule.shown_name()),
            Ending::Refuse(_, how) => how.clone(),
        }
    }

    fn show_expected(&self) -> String {
        let by = self.scenario.by.as_ref().map_or_else(String::new, |by| format!(" by \"{by}\""));
        match self.scenario.expect {
            Expectation::Refuse => format!("refused{by}"),
            Expectation::Exempt => format!("starts, exempt{by}"),
            Expectation::Start => match self.scenario.claims.as_deref() {
                None => "starts".into(),
                Some([]) => "starts with no slot".into(),
                Some(claims) => {
                    let show = |claim: &ExpectedClaim| {
                        let repository = &self.policy.repositories()[claim.repository];
                        let name = name(repository.shown_name(), claim.member.as_deref());
                        show_claim(&name, claim.slots, claim.limit)
                    };
                    format!("starts with {}", claims.iter().map(show).collect::<Vec<_>>().join(", "))
                }
            },
        }
    }
}

fn name(repository: &str, member: Option<&str>) -> String {
    member.map_or_else(|| repository.to_owned(), |member| format!("{repository} [{member}]"))
}

/// A claim in words: `3 of 50 matlab`, as far as it is known.
fn show_claim(name: &str, slots: Option<Slots>, limit: Option<u32>) -> String {
    let slots = slots.map(|slots| match slots {
        Slots::Number(number) => number.to_string(),
        Slots::All => "all".into(),
    });
    let limit = limit.map(|limit| format!("of {limit}"));
    let parts: Vec<String> = slots.into_iter().chain(limit).chain([name.to_owned()]).collect();
    parts.join(" ")
}
