//! Plays the tests that a policy carries: a cast of one user and their groups, a stage of one host, an
//! evaluator that does not know it is a play, and the protocol of every launch over tables in memory. `policy
//! test` and `policy check` print what comes out of it.
//!
//! A policy that is being rolled out is not enforced yet, and is tested all the same: each test is played as
//! the policy is, and once more as if everything in it were enforced.

mod assertion;
mod stage;
#[cfg(test)]
mod tests;

pub use self::stage::refused;

use std::borrow::Cow;

use jiff::Timestamp;

use self::{
    assertion::{Assertion, Ending, Taken},
    stage::{FakeNames, Stage, in_memory},
};
use crate::{
    acquire::{
        acquire_context::{AcquireContext, Clock},
        acquisition::Outcome,
        without_waiting::acquire_at_once,
    },
    judge::{
        Start, TraceEntry, Unenforced, Verdict,
        terms::{
            claim::{Claim, Demand, Launch},
            keyword::{Admit, Hold},
        },
    },
    keeper::table::Keepers,
    policy::{Policy, Scenario},
    sys::descriptor::Inherited,
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
    /// What the test has others use of tables that the launch does not ask for: `seats [anm]`. Often that is
    /// meant, to show that it does not count; in a test that fails it may be misspelled.
    pub beside: Vec<String>,
}

/// Plays every test; `now` is the time for those that do not say.
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

/// How a launch ends that no rule refuses; and how it would end if everything were enforced, where that is
/// something else.
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

/// Takes what is demanded while others hold slots and wait, as the test says.
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
