//! From matching rules to a verdict: which of them apply, and their effect together.

use std::{collections::HashMap, ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{
    claims,
    terms::{LookupError, Setting},
    verdict::{Decision, Outcome, Start, TraceEntry, Unenforced, Verdict},
};
use crate::policy::{Action, Delegation, EvalContext, Layer, Policy, Request, Rule, Selector, Unmatched};

/// Judges one request.
pub fn decide<'p>(policy: &'p Policy, request: &Request<'_>) -> Decision<'p> {
    let facts = &policy.facts(request);
    let mut judged = Judged::for_launch(policy, facts, true);
    let verdict = judged.verdict(facts);
    let entry = |(rule, outcome): (&'p Rule, Outcome)| {
        let takes = rule.captures && matches!(outcome, Outcome::Counts | Outcome::CountsFirstOf(_));
        let captured = if takes { rule.selectors.captured(facts) } else { Vec::new() };
        TraceEntry { rule, outcome, captured }
    };
    let trace = policy.rules().iter().zip(judged.outcomes).map(entry).collect();
    Decision { verdict, trace }
}

/// The verdict of a judge that serves other users too. It compares at most this number of patterns with
/// arguments, each with 32 bytes; where a rule needs more, that rule is the answer.
pub fn decide_within<'p>(
    policy: &'p Policy,
    request: &Request<'_>,
    most: u64,
) -> Result<Verdict<'p>, &'p Rule> {
    let facts = &policy.facts(request).within(most);
    let mut judged = Judged::for_launch(policy, facts, false);
    judged.costly.map_or_else(|| Ok(judged.verdict(facts)), Err)
}

/// After delegated rules with more patterns together, each one is first checked for whether it applies to the
/// caller: others pay no more for the files of departments.
const COSTLY: u64 = 100_000;

/// Every rule, judged for itself and within its family.
pub(super) struct Judged<'p> {
    policy: &'p Policy,
    outcomes: Vec<Outcome>,
    /// The first look-up that failed, and the rule that needed it.
    failure: Option<(&'p Rule, LookupError)>,
    /// The first rule that compares more than may be compared.
    costly: Option<&'p Rule>,
    /// What the delegated rules so far may have compared.
    delegated: u64,
}

/// A rule that acquires something.
pub(super) struct Applying<'p> {
    pub(super) rule: &'p Rule,
    /// Whether it does so beyond the limits.
    pub(super) admit_always: bool,
    /// The repositories that exemptions take out of it.
    pub(super) spared: Vec<usize>,
}

impl<'p> Judged<'p> {
    /// For one launch; `is_traced` says whether the outcomes of rules without an effect are shown.
    fn for_launch(policy: &'p Policy, facts: &EvalContext<'_>, is_traced: bool) -> Self {
        Self::by(policy, |judged, index, before| {
            let outcome = judged.outcome(&policy.rules()[index], before, facts, is_traced);
            // A rule that cannot be judged also shadows the rest of its family: either it counts, or the
            // launch is refused.
            let shadows = matches!(outcome, Outcome::Counts | Outcome::Unknown);
            (outcome, shadows)
        })
    }

    /// By the outcome of each rule, given the rule that shadows it, and whether it shadows the rest of its
    /// family.
    pub(super) fn by(
        policy: &'p Policy,
        mut outcome: impl FnMut(&mut Self, usize, Option<usize>) -> (Outcome, bool),
    ) -> Self {
        let mut judged = Judged {
            policy,
            outcomes: vec![Outcome::Unknown; policy.rules().len()],
            failure: None,
            costly: None,
            delegated: 0,
        };
        let mut first: HashMap<usize, usize> = HashMap::new();
        let mut members: HashMap<usize, usize> = HashMap::new();
        for &index in policy.sequence() {
            let rule = &policy.rules()[index];
            if let Some(family) = rule.family {
                *members.entry(family).or_default() += 1;
            }
            let before = rule.family.and_then(|family| first.get(&family).copied());
            let (outcome, shadows) = outcome(&mut judged, index, before);
            if let Some(family) = rule.family.filter(|_| shadows) {
                first.insert(family, index);
            }
            judged.outcomes[index] = outcome;
        }
        for (family, index) in first {
            if judged.outcomes[index] == Outcome::Counts {
                judged.outcomes[index] = Outcome::CountsFirstOf(members[&family]);
            }
        }
        judged
    }

    fn outcome(
        &mut self,
        rule: &'p Rule,
        before: Option<usize>,
        facts: &EvalContext<'_>,
        is_traced: bool,
    ) -> Outcome {
        let delegation = self.policy.layers()[rule.layer].delegation();
        let is_strange = |delegation: &Delegation| matches!(delegation.is_for_user(facts), Ok(false));
        if let Some(delegation) = delegation.filter(|delegation| delegation.is_for_command(facts)) {
            let tables = std::iter::once(&rule.selectors).chain(&rule.except);
            let effort = tables.fold(0, |sum: u64, table| sum.saturating_add(table.effort(facts)));
            self.delegated = self.delegated.saturating_add(effort);
            if self.delegated > COSTLY && is_strange(delegation) {
                return Outcome::NotDelegated;
            }
        }
        if let Some(before) = before {
            // The rule has no effect, and only a trace says why. The caller no longer matters, so no name is
            // looked up.
            let mismatch = is_traced.then(|| mismatch_without_lookup(rule, delegation, facts));
            return mismatch.flatten().map_or(Outcome::Shadowed(before), Outcome::No);
        }
        let outcome = judge(rule, delegation, facts);
        if facts.is_exhausted() {
            self.costly.get_or_insert(rule);
            return Outcome::Unknown;
        }
        outcome.unwrap_or_else(|failure| {
            self.failure.get_or_insert((rule, failure));
            Outcome::Unknown
        })
    }

    fn counts(&self, index: usize) -> bool {
        matches!(self.outcomes[index], Outcome::Counts | Outcome::CountsFirstOf(_))
    }

    /// The rules that count and do this, in the order of the files.
    pub(super) fn counting(&self, does: impl Fn(Action) -> bool) -> Vec<usize> {
        let rules = self.policy.rules();
        (0..rules.len()).filter(|&index| does(rules[index].action()) && self.counts(index)).collect()
    }

    fn verdict(&mut self, facts: &EvalContext<'_>) -> Verdict<'p> {
        let would_refuse = match self.refusal(facts) {
            Ok(would_refuse) => would_refuse,
            Err(refusal) => return refusal,
        };
        match self.start(facts, would_refuse) {
            Ok(start) => Verdict::Start(start),
            Err((rule, failure)) => Verdict::LookupFailed { rule, failure },
        }
    }

    /// The verdict, if the rules refuse; otherwise what would refuse if it were enforced.
    pub(super) fn refusal(&mut self, facts: &EvalContext<'_>) -> Result<Vec<Unenforced<'p>>, Verdict<'p>> {
        let rules = self.policy.rules();
        let mut would_refuse = Vec::new();
        for index in self.counting(|action| action == Action::Deny) {
            let rule = &rules[index];
            if is_enforced(self.policy, rule) {
                return Err(Verdict::Denied { rule, matches: what_matches(rule, facts) });
            }
            would_refuse.push(Unenforced::Denied(rule));
            self.outcomes[index] = Outcome::WouldRefuse;
        }
        if let Some((rule, failure)) = self.failure.take() {
            return Err(Verdict::LookupFailed { rule, failure });
        }
        for layer in self.unmatched_layers() {
            if layer.enforce {
                return Err(Verdict::Unmatched);
            }
            would_refuse.push(Unenforced::Unmatched);
        }
        Ok(would_refuse)
    }

    /// The layers that refuse what none of their rules matches. A rule whose author may only tighten does not
    /// decide for the system.
    fn unmatched_layers(&self) -> impl Iterator<Item = &'p Layer> {
        let layers = self.policy.layers();
        let matched: Vec<usize> = (0..self.outcomes.len())
            .filter(|&index| {
                self.counts(index) || matches!(self.outcomes[index], Outcome::WouldRefuse | Outcome::Unknown)
            })
            .map(|index| self.policy.rules()[index].layer)
            .collect();
        let speaks = move |by: usize, layer: usize| by == layer || by > layer && layers[by].may_loosen;
        layers.iter().enumerate().filter_map(move |(index, layer)| {
            let named = matched.iter().any(|&by| speaks(by, index));
            (layer.unmatched == Unmatched::Refuse && !named).then_some(layer)
        })
    }

    /// The rules that acquire something, in the order of the files.
    pub(super) fn applying(&mut self) -> Vec<Applying<'p>> {
        let rules = self.policy.rules();
        let exempting = self.counting(|action| action == Action::Exempt);
        let limiting = self.counting(Action::acquires);
        // A rule that exempts, or admits beyond the limit, does so in its own layer and earlier ones. It does
        // not undo what users add for themselves on top of the system's policy.
        let exempts = |layer: usize| exempting.iter().copied().filter(move |&by| rules[by].layer >= layer);
        let admitted = limiting.iter().map(|&index| &rules[index]).filter(|rule| rule.is_always_admitted());
        let admitted_layer = admitted.map(|rule| rule.layer).max();
        let mut applying = Vec::with_capacity(limiting.len());
        for index in limiting {
            let rule = &rules[index];
            if let Some(by) = exempts(rule.layer).find(|&by| rules[by].from.is_none()) {
                self.outcomes[index] = Outcome::Exempted(by);
                continue;
            }
            let admit_always = admitted_layer.is_some_and(|layer| layer >= rule.layer);
            let spared =
                exempts(rule.layer).flat_map(|by| rules[by].from.iter().flatten().copied()).collect();
            applying.push(Applying { rule, admit_always, spared });
        }
        applying
    }

    /// The rules that exempt from everything.
    pub(super) fn exempting(&self) -> impl Iterator<Item = &'p Rule> {
        let rules = self.policy.rules();
        let exempting = self.counting(|action| action == Action::Exempt).into_iter();
        exempting.map(|index| &rules[index]).filter(|rule| rule.from.is_none())
    }

    fn start(
        &mut self,
        facts: &EvalContext<'_>,
        would_refuse: Vec<Unenforced<'p>>,
    ) -> Result<Start<'p>, (&'p Rule, LookupError)> {
        let mut demands = claims::Demands::new(self.policy, facts);
        for Applying { rule, admit_always, spared } in self.applying() {
            let exempt = |repository| spared.contains(&repository);
            demands.add(rule, admit_always, exempt).map_err(|failure| (rule, failure))?;
        }
        // Of each layer with a rule: what its rules and repositories name, else its default.
        let mut hold = Setting::default();
        for (index, layer) in self.policy.layers().iter().enumerate() {
            let involved = || demands.rules.iter().filter(|rule| rule.layer == index);
            if involved().next().is_none() {
                continue;
            }
            let repositories = demands.repositories(index).filter_map(|repository| repository.settings.hold);
            match involved().filter_map(|rule| rule.hold()).chain(repositories).max() {
                None => hold.default = hold.default.max(layer.hold),
                named => hold.bound = hold.bound.max(named),
            }
        }
        let exempt = self.exempting().next();
        let unclear = demands.unclear.clone();
        let demands = demands.into_demands();
        Ok(Start { exempt: exempt.filter(|_| demands.is_empty()), demands, hold, would_refuse, unclear })
    }
}

/// Whether a rule that denies refuses.
pub(super) fn is_enforced(policy: &Policy, rule: &Rule) -> bool {
    rule.enforce.unwrap_or(policy.layers()[rule.layer].enforce)
}

// Whether a rule matches a request. What costs nothing is judged first; names are looked up only when
// everything else already matches.

/// The first selector that does not match, of those that need no look-up. The commands of the rule's
/// delegation count like its own.
fn mismatch_without_lookup(
    rule: &Rule,
    delegation: Option<&Delegation>,
    facts: &EvalContext<'_>,
) -> Option<Selector> {
    let delegation = delegation.filter(|delegation| !delegation.is_for_command(facts));
    delegation
        .map(|_| Selector::Commands)
        .or_else(|| rule.selectors.mismatch_without_lookup(facts, rule.layer))
}

/// The outcome of a rule by itself.
fn judge(
    rule: &Rule,
    delegation: Option<&Delegation>,
    facts: &EvalContext<'_>,
) -> Result<Outcome, LookupError> {
    if let Some(selector) = mismatch_without_lookup(rule, delegation, facts) {
        return Ok(Outcome::No(selector));
    }
    let excepted = |asking_who: bool| {
        let tables =
            rule.except.iter().enumerate().filter(move |(_, table)| table.need_lookup() == asking_who);
        tables.filter(|(_, table)| table.mismatch_without_lookup(facts, rule.layer).is_none())
    };
    // An exception that can be judged without a look-up avoids the look-ups of the rule.
    if let Some((index, _)) = excepted(false).next() {
        return Ok(Outcome::Excepted(index));
    }
    let mut open = match delegation.map(|delegation| delegation.is_for_user(facts)) {
        Some(Ok(false)) => return Ok(Outcome::NotDelegated),
        Some(Ok(true)) | None => None,
        Some(Err(failure)) => Some(failure),
    };
    match rule.selectors.mismatch_with_lookup(facts, rule.layer) {
        Ok(Some(selector)) => return Ok(Outcome::No(selector)),
        Ok(None) => {}
        Err(failure) => open = open.or(Some(failure)),
    }
    for (index, table) in excepted(true) {
        match table.mismatch_with_lookup(facts, rule.layer) {
            Ok(None) => return Ok(Outcome::Excepted(index)),
            Ok(Some(_)) => {}
            Err(failure) => open = open.or(Some(failure)),
        }
    }
    open.map_or(Ok(Outcome::Counts), Err)
}

/// The matched part of the request, the most personal first, for people.
fn what_matches(rule: &Rule, facts: &EvalContext<'_>) -> String {
    let group = rule.selectors.groups.iter().flatten().find_map(|group| group.what_matches(facts));
    let user = || rule.selectors.users.iter().flatten().find_map(|user| user.what_matches(facts));
    group.or_else(user).unwrap_or_else(|| {
        let name = OsStr::from_bytes(facts.command_name()).to_string_lossy();
        format!("command \"{name}\"")
    })
}
