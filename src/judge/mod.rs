//! Judgement: a policy and a request in, a decision out. It is pure: it reads no file, and asks the system
//! only through the request. It is the one evaluator of `run`, `explain` and `policy check`.

mod claims;
mod evaluation;
mod listed;
mod locations;
mod personal;
pub mod terms;
#[cfg(test)]
mod tests;
mod verdict;
mod zones;

pub use self::{
    evaluation::{decide, decide_within},
    listed::{Listed, limit_of_most, listed},
    locations::sample_of,
    personal::{Personal, personal},
    verdict::{Decision, Outcome, Start, TraceEntry, Unenforced, Verdict},
};

pub use crate::policy::{Request, Selector};
