//! What becomes of programs when their host loses the site that keeps their slots.

use serde::{Deserialize, Serialize};

use super::choice::Choice;

/// A key of repositories that the site keeps.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// They go on, and their slots are taken anew when the site is back.
    #[default]
    Keep,
    /// They are ended before others can get their slots.
    Stop,
}

impl Choice for OnLost {
    const WORDS: &'static [(&'static str, Self)] = &[("keep", OnLost::Keep), ("stop", OnLost::Stop)];
}
