//! Plays the launches of a log under a policy: at their times and with their durations, judged by the
//! evaluator and served by the protocol of every launch, over tables in memory and by a clock that stands
//! still between events. Nothing here reads a log or prints: `recording` takes events one by one, and what
//! comes out is counted in a `tally`.
//!
//! A year has millions of launches, so a launch is sixteen bytes ([`traffic`]), each kind of launch is judged
//! once for each time of day that the policy knows ([`judge`]), and what came of it is added up and not kept.

pub mod accumulator;
pub mod judge;
pub mod kind;
pub mod sweep;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod traffic;
