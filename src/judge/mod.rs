//! Judgement: a policy and a request in, a decision out. Pure: it reads no file, asks the system nothing
//! except through the request, and is the one evaluator behind `run`, `explain`, `policy check` and `policy
//! test`.

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

pub use self::verdict::{Outcome, TraceEntry};
pub use evaluation::{decide, decide_within};
pub use listed::{Listed, limit_of_most, listed};
pub use personal::{Personal, personal};
pub use verdict::{Decision, Start, Unclear, Unenforced, Verdict};

pub use crate::policy::{Request, Selector};
