//! By what the agent sees that it stood still: while somebody waits, for slots or to be answered, it looks
//! around every second at least, and then it was longer.

use std::time::{Duration, Instant};

/// So often it looks around.
pub(super) const PULSE: Duration = Duration::from_secs(1);

/// When it looked around last.
#[derive(Debug)]
pub(super) struct Pulse(Instant);

impl Pulse {
    /// It looks around now.
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    /// How long it waits at most until it looks around, if it has to, where it could wait so long otherwise.
    pub(super) fn longest(is_needed: bool, longest: Option<Duration>) -> Option<Duration> {
        if is_needed { Some(longest.map_or(PULSE, |longest| longest.min(PULSE))) } else { longest }
    }

    /// It looks around, after it wanted to wait so long at most. Says whether it stood still meanwhile.
    pub(super) fn beat(&mut self, longest: Option<Duration>) -> bool {
        let now = Instant::now();
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.0, now));
        longest.is_some_and(|longest| passed > longest + PULSE)
    }
}
