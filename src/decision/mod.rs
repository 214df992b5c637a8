//! Judgement: a policy and a request in, a decision out. Pure: it reads no file, asks the system nothing except through
//! the request, and is the one evaluator behind `run`, `explain`, `policy check` and `policy test`.

mod claim;
mod request;
mod trace;
mod verdict;

pub use claim::{Claim, Demand, Member, Slots, Zone};
pub use request::Request;
pub use trace::{Outcome, Selector, TraceEntry};
pub use verdict::{Decision, Setting, Terms, Verdict};

use crate::policy::Policy;

/// Judges one request.
pub fn decide<'p>(_policy: &'p Policy, _request: &Request<'_>) -> Decision<'p> {
    let terms = Terms {
        demands: Vec::new(),
        exempt: None,
        wait: Setting::default(),
        hold: Setting::default(),
        would_refuse: Vec::new(),
    };
    Decision { verdict: Verdict::Start(terms), trace: Vec::new() }
}
