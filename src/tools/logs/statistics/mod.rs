//! The statistics of a log: the one place where events are joined and counted. `history`, `report`, `metrics`
//! and `simulate` all use it, so that they cannot disagree.
//!
//! It takes one pass, in bounded memory: a [`joiner::Joiner`] makes launches and runs of events, and passes
//! each to a [`joiner::Sink`]; [`counts::Statistics`] is the sink that counts.

pub mod counts;
pub mod distribution;
pub mod joiner;
mod tables;
pub mod usage;

pub(crate) use self::counts::without_member;
pub use self::{
    counts::{Bounded, Cell, Counts, Party, Reason, Repository, Rule, Statistics},
    distribution::{Distribution, Percentiles, seconds},
    joiner::{Closing, EXACT, End, Held, Joiner, LaunchOutcome, Launched, Reading, Run, Sink, Taken},
    usage::{Bounds, Ends, MINUTE, Step, Usage},
};
