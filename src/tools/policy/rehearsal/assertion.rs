//! What comes out of a test, for comparison and in words.

use std::borrow::Cow;

use super::stage::{FakeNames, name, named};
use crate::{
    acquire::refusal::Refusal,
    judge::terms::{claim::Claim, keyword::Hold, slots_wanted::Slots},
    policy::{Expectation, ExpectedClaim, Policy, Rule, Scenario, Wait},
};

/// How a launch ends, as the policy is or as it is meant to be.
pub(super) enum Ending<'p> {
    /// The program starts with this, and this keeps it.
    Start(Vec<Taken>, Hold),
    /// It starts, and this rule spares it every slot.
    Exempt(&'p Rule),
    /// It is refused by the rules of these names, as they are shown; and why.
    Refuse(Vec<Cow<'p, str>>, String),
    /// It waits this long because of these rules, for this; and this keeps its slots.
    Wait(Vec<Cow<'p, str>>, String, Wait, Hold),
    /// The test is wrong: this cannot be.
    Impossible(String),
}

/// A claim that was met.
pub(super) struct Taken {
    repository: String,
    member: Option<String>,
    slots: Slots,
    limit: u64,
}

impl Taken {
    pub(super) fn of(claim: &Claim<'_>, cast: &FakeNames<'_>) -> Self {
        Taken {
            repository: claim.repository.clone().into_owned(),
            member: claim.member_name(cast),
            slots: claim.amount.slots,
            limit: claim.amount.effective_limit(),
        }
    }
}

impl Ending<'_> {
    /// What a refusal by limits is: it may be that the launch waits.
    pub(super) fn of(refusal: &Refusal<'_>, cast: &FakeNames<'_>, hold: Hold) -> Self {
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
    pub(super) fn is_held_up(&self) -> bool {
        matches!(self, Ending::Refuse(..) | Ending::Wait(..))
    }
}

/// What a policy's test expects of an ending.
pub(super) struct Assertion<'p> {
    pub(super) policy: &'p Policy,
    pub(super) scenario: &'p Scenario,
}

impl Assertion<'_> {
    /// Whether a launch that ends so, and would end so if everything were enforced, is as expected.
    pub(super) fn is_expected(&self, actual: &Ending<'_>, intended: Option<&Ending<'_>>) -> bool {
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

    /// An ending in words, with what is intended where that is something else.
    pub(super) fn show(&self, actual: &Ending<'_>, intended: Option<&Ending<'_>>) -> String {
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

    /// What keeps the slots, where the test asks.
    fn held(&self, hold: Hold) -> String {
        self.scenario.hold.map_or_else(String::new, |_| format!(", hold {hold}"))
    }

    /// What is expected, in the same words.
    pub(super) fn show_expected(&self) -> String {
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
