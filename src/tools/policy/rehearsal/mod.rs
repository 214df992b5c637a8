//! Plays the tests of a policy: one user with their groups, one host, the evaluator, and the protocol of
//! every launch over tables in memory. `policy check` prints the results.
//!
//! A policy in roll-out is not enforced yet, but is tested: each test runs with the policy as it is, and
//! again as if everything were enforced.

mod stage;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jiff::Timestamp;

pub use self::stage::refused;
use self::stage::{FakeNames, Stage, in_memory, name, named};
use crate::{
    acquire::{
        acquire_context::{AcquireContext, Clock},
        acquisition::Outcome,
        refusal::Refusal,
        without_waiting::acquire_at_once,
    },
    judge::{
        Start, TraceEntry, Unenforced, Verdict,
        terms::{
            claim::{Claim, Demand, Launch},
            keyword::{Admit, Hold},
            slots_wanted::Slots,
        },
    },
    keeper::table::Keepers,
    policy::{Expectation, ExpectedClaim, Policy, Rule, Scenario, Wait},
    sys::descriptor::Inherited,
};

/// The result of one test.
#[derive(Debug)]
pub struct Rehearsal<'p> {
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
pub fn rehearse(policy: &Policy, now: Timestamp) -> Vec<Rehearsal<'_>> {
    let play_one = |scenario| play(Stage { policy, scenario, now });
    policy.scenarios().iter().map(play_one).collect()
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
    let is_trial = |claim: &Claim<'_>| claim.amount.admit == Admit::Unenforced;
    let intended = || {
        let is_any_trial = start.demands.iter().flat_map(Demand::claims).any(is_trial);
        is_any_trial
            .then(|| acquire(stage, cast, start.demands.iter().cloned().map(enforced).collect(), hold))
    };
    (actual, would_refuse.or_else(intended))
}

fn enforced(demand: Demand<'_>) -> Demand<'_> {
    demand.map(|mut claim| {
        if claim.amount.admit == Admit::Unenforced {
            claim.amount.admit = Admit::WithinLimit;
        }
        claim
    })
}

/// Acquires the demands, while others hold slots and wait as the test describes.
fn acquire<'p>(stage: Stage<'p>, cast: &FakeNames<'p>, demands: Vec<Demand<'p>>, hold: Hold) -> Ending<'p> {
    let demands: Vec<Demand<'p>> = demands.into_iter().map(|demand| in_memory(demand, cast)).collect();
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
    fn of(claim: &Claim<'_>, cast: &FakeNames<'_>) -> Self {
        Taken {
            repository: claim.repository.clone().into_owned(),
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
        let rules = origins.map(|origin| Cow::Owned(origin.rule.to_owned())).collect();
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
            && member.is_none_or(|member| taken.member.as_deref() == Some(member))
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
