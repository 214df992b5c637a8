//! What the policy may demand of one person, for all commands: the claims of all rules whose users, groups
//! and hosts match. Commands, arguments, directories, the environment and hours are not considered.

use super::{
    claims::Demands,
    terms::{Claim, LookupError},
};
use crate::policy::{Action, Delegation, EvalContext, Policy, Repository, Request, Rule, Selector};

/// The effect of the rules for one person.
#[derive(Debug, Default)]
pub struct Personal<'p> {
    /// The claims, in the order of the rules: several rules may claim one table, with other ceilings.
    pub claims: Vec<Claim<'p>>,
    /// Repositories whose table depends on a command, an argument or a directory.
    pub open: Vec<&'p Repository>,
    /// The rule that exempts the person from everything.
    pub exempt: Option<&'p Rule>,
    /// The rule that refuses everything that they start.
    pub denied: Option<&'p Rule>,
}

/// The effect of the rules for the user of a request.
pub fn personal<'p>(policy: &'p Policy, request: &Request<'_>) -> Result<Personal<'p>, LookupError> {
    let facts = policy.facts(request);
    let mut personal = Personal::default();
    let mut rules = Vec::new();
    let mut spared: Vec<usize> = Vec::new();
    for rule in policy.rules() {
        if !is_for_person(rule, policy.layers()[rule.layer].delegation(), &facts)? {
            continue;
        }
        let is_for_everything = rule.selectors.selectors().all(Selector::is_personal);
        match rule.action() {
            Action::Limit | Action::Count => rules.push(rule),
            Action::Deny if is_for_everything => personal.denied = personal.denied.or(Some(rule)),
            Action::Exempt if is_for_everything => match &rule.from {
                Some(from) => spared.extend(from),
                None => personal.exempt = personal.exempt.or(Some(rule)),
            },
            Action::Deny | Action::Exempt => {}
        }
    }
    if personal.exempt.is_some() {
        return Ok(personal);
    }
    let mut demands = Demands::new(policy, &facts);
    for rule in rules {
        let (claims, open) = demands.for_person(rule, |repository| spared.contains(&repository))?;
        personal.claims.extend(claims);
        for repository in open {
            if !personal.open.iter().any(|known| std::ptr::eq(*known, repository)) {
                personal.open.push(repository);
            }
        }
    }
    Ok(personal)
}

fn is_for_person(
    rule: &Rule,
    delegation: Option<&Delegation>,
    facts: &EvalContext<'_>,
) -> Result<bool, LookupError> {
    if delegation.map(|delegation| delegation.is_for_user(facts)).transpose()? == Some(false)
        || rule.selectors.personal_mismatch(facts, rule.layer)?.is_some()
    {
        return Ok(false);
    }
    for except in &rule.except {
        let is_personal = except.selectors().all(Selector::is_personal);
        if is_personal && except.personal_mismatch(facts, rule.layer)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
