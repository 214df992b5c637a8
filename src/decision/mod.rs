//! Judgement: a policy and a request in, a decision out. Pure: it reads no file, asks the system nothing except through
//! the request, and is the one evaluator behind `run`, `explain`, `policy check` and `policy test`.

mod claim;
mod claims;
mod evaluation;
mod lookups;
mod matching;
mod rehearsal;
mod request;
mod setting;
#[cfg(test)]
mod tests;
mod trace;
mod values;
mod verdict;
mod zones;

pub use claim::{Claim, Demand, Zone};
pub use evaluation::decide;
pub use rehearsal::{Rehearsal, rehearse};
pub use request::Request;
pub use setting::Setting;
pub use trace::{Outcome, TraceEntry};
pub use verdict::{Decision, Terms, Unenforced, Verdict};

pub use crate::policy::{Member, Names, Selector, Slots};
