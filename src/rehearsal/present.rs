//! Those who run now, played as if all of them came anew, one after the other: who of them a policy would
//! refuse. They are real, the tables are in memory, and nothing is taken from anybody.

use super::stage::{in_memory, name};
use crate::{
    decision::{Decision, Verdict, decide},
    keeper::table::Keepers,
    policy::{Policy, Request},
    protocol::{
        acquisition::Outcome, asker::Asker, clock::Clock, grant::Grant, refusal::Refusal,
        without_waiting::acquire_at_once,
    },
    sys::descriptor::Inherited,
    terms::{
        claim::{Claim, Demand},
        hold::Hold,
        launch::Launch,
        names::Names,
        pace::Pace,
    },
};

/// For each of them, in the order in which they came, why it would not start; nothing where it would.
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
        let asker = Asker { launch, keepers, generation: 0, on_expired: &|_, _, _| {}, clock };
        match acquire_at_once(&demands[index], &asker) {
            Ok(Outcome::Granted(grant)) => granted.push(grant),
            Ok(Outcome::Refused(refusal)) => return Some(full(&refusal, *names)),
            Ok(Outcome::Interrupted) | Err(_) => {}
        }
        None
    };
    decisions.iter().enumerate().map(&mut play).collect()
}

/// What is demanded, in memory. When something was last started does not matter: they run already.
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
