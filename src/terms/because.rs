//! Why a claim gives what it gives: the entry of the policy that is behind its limit, and those for whom
//! slots are kept.

use std::fmt;

use crate::escape::Show;

/// Whom an entry of the policy is for, and until when.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Because<'p> {
    /// As the policy writes it: `%power`; empty where it is for everybody.
    pub whom: &'p str,
    /// The local time at which it is over: `18:00`.
    pub until: Option<String>,
}

impl Because<'_> {
    /// `limit of %power`, of a limit that is not everybody's.
    pub fn limit(&self) -> String {
        let of = if self.whom.is_empty() { "" } else { " of " };
        let text = format!("limit{of}{self}");
        // One that is for everybody and never ends is so in all its hours.
        if text == "limit" { "limit of this hour".to_owned() } else { text }
    }
}

/// `%cad until 18:00`
impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.whom.shown())?;
        self.until.as_ref().map_or(Ok(()), |until| write!(f, " until {until}"))
    }
}

/// Slots that a launch may not use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept<'p> {
    /// How many.
    pub slots: u64,
    /// For whom.
    pub whom: Because<'p>,
}

/// `4 kept for %cad until 18:00`
impl fmt::Display for Kept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kept for {}", self.slots, self.whom)
    }
}

/// Why a limit is what it is.
pub fn reason(limit_of: Option<String>, out_of_order: usize) -> Option<String> {
    let broken = (out_of_order > 0).then(|| format!("{out_of_order} out of order"));
    let reasons: Vec<String> = limit_of.into_iter().chain(broken).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// Several of them, in the order of the policy.
pub fn list(kept: &[Kept<'_>]) -> String {
    kept.iter().map(Kept::to_string).collect::<Vec<_>>().join(", ")
}
