//! What the policy may demand of one person, whatever they start: the claims of all rules whose users, groups
//! and hosts match. Commands, arguments, directories, the environment and hours are open: some launches have
//! them and others do not.

use super::{
    claims::Demands,
    evaluation::{Applying, Judged, is_enforced},
    terms::{Claim, LookupError},
    verdict::{Outcome, Verdict},
};
use crate::policy::{Action, Delegation, EvalContext, Policy, Repository, Request, Rule, Selector};

/// The effect of the rules for one person.
#[derive(Debug, Default)]
pub struct Personal<'p> {
    /// The claims, in the order of the rules: several rules may claim one table, with other ceilings.
    pub claims: Vec<Claim>,
    /// Repositories whose table depends on a command, an argument or a directory.
    pub open: Vec<&'p Repository>,
    /// The rule that exempts the person from everything.
    pub exempt: Option<&'p Rule>,
    /// The rule that refuses everything that they start.
    pub denied: Option<&'p Rule>,
    /// Whether everything is refused because no rule allows anything.
    pub unmatched: bool,
}

/// The effect of the rules for the user of a request.
pub fn personal<'p>(policy: &'p Policy, request: &Request<'_>) -> Result<Personal<'p>, LookupError> {
    let facts = policy.facts(request);
    let standing = |rule: &Rule| Standing::of(rule, policy.layers()[rule.layer].delegation(), &facts);
    let standings = policy.rules().iter().map(standing).collect::<Result<Vec<Standing>, LookupError>>()?;
    let mut personal = Personal::default();
    match judged(policy, &standings, Counts::Surely).refusal(&facts) {
        Err(Verdict::Denied { rule, .. }) => return Ok(Personal { denied: Some(rule), ..personal }),
        Err(Verdict::Unmatched) => return Ok(Personal { unmatched: true, ..personal }),
        Ok(_) | Err(Verdict::Start(_) | Verdict::LookupFailed { .. }) => {}
    }
    let mut most = judged(policy, &standings, Counts::Perhaps);
    let mut demands = Demands::new(policy, &facts);
    for Applying { rule, admit_always, spared } in most.applying() {
        for repository in
            demands.add_for_person(rule, admit_always, |repository| spared.contains(&repository))?
        {
            if !personal.open.iter().any(|known| std::ptr::eq(*known, repository)) {
                personal.open.push(repository);
            }
        }
    }
    personal.claims = demands.into_claims();
    let is_limited = !personal.claims.is_empty() || !personal.open.is_empty();
    personal.exempt = most.exempting().next().filter(|_| !is_limited);
    Ok(personal)
}

/// Which rules count.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Counts {
    /// Those that count for everything: an open rule may shadow the rest of its family.
    Surely,
    /// Those that may count: an open rule that acquires something counts, and need not shadow others.
    Perhaps,
}

fn judged<'p>(policy: &'p Policy, standings: &[Standing], which: Counts) -> Judged<'p> {
    Judged::by(policy, |_, index, before| {
        let rule = &policy.rules()[index];
        match &standings[index] {
            Standing::Same(Outcome::Counts) => {
                before.map_or((Outcome::Counts, true), |before| (Outcome::Shadowed(before), false))
            }
            Standing::Same(outcome) => (outcome.clone(), false),
            // What it refuses starts by no other rule either.
            Standing::Open(selector) if rule.action() == Action::Deny && is_enforced(policy, rule) => {
                (Outcome::No(*selector), false)
            }
            Standing::Open(_) => match before {
                Some(before) => (Outcome::Shadowed(before), false),
                None if which == Counts::Perhaps && rule.action().acquires() => (Outcome::Counts, false),
                None => (Outcome::Unknown, which == Counts::Surely),
            },
        }
    })
}

/// The outcome of a rule for the launches of one person.
enum Standing {
    /// The same for all of them.
    Same(Outcome),
    /// It depends on this selector, of the rule or of an exception.
    Open(Selector),
}

impl Standing {
    fn of(
        rule: &Rule,
        delegation: Option<&Delegation>,
        facts: &EvalContext<'_>,
    ) -> Result<Self, LookupError> {
        if delegation.map(|delegation| delegation.is_for_user(facts)).transpose()? == Some(false) {
            return Ok(Self::Same(Outcome::NotDelegated));
        }
        if let Some(selector) = rule.selectors.personal_mismatch(facts, rule.layer)? {
            return Ok(Self::Same(Outcome::No(selector)));
        }
        let is_narrow = delegation.is_some_and(|delegation| !delegation.is_for_all_commands());
        let mut open = rule.selectors.first_open().or(is_narrow.then_some(Selector::Commands));
        for (index, except) in rule.except.iter().enumerate() {
            if except.personal_mismatch(facts, rule.layer)?.is_none() {
                match except.first_open() {
                    None => return Ok(Self::Same(Outcome::Excepted(index))),
                    Some(selector) => open = open.or(Some(selector)),
                }
            }
        }
        Ok(open.map_or(Self::Same(Outcome::Counts), Self::Open))
    }
}
