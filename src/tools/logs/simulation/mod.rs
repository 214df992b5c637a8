//! Simulates the launches of a log under a policy, at their times and with their durations. It uses the
//! evaluator and the protocol of every launch, over tables in memory and with a simulated clock. Nothing here
//! reads a log or prints: `recording` takes events one by one, and a `tally` counts the results.
//!
//! A year has millions of launches, so a launch takes sixteen bytes ([`traffic`]). Each kind of launch is
//! judged once for each time of day that the policy distinguishes ([`judge`]). Results are added up and not
//! stored.

pub mod accumulator;
pub mod judge;
pub mod sweep;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod traffic;

use self::accumulator::Accumulator;
pub use self::{
    accumulator::See,
    judge::{Accounts, Beside, Judge, Kind, Kinds, Needs, Plan, Remembered, Terms},
    sweep::{Row, Trial},
    tally::{LONG_WAIT, OfRepository, Outcome, Tally},
    traffic::{Dice, Draw, Launch, Reading, Recording, Traffic},
};
