//! When a table was last used, and whether anybody has to know.

use std::time::{Duration, SystemTime};

use super::Table;

impl Table {
    /// When a program was last started, and when one last ended.
    pub fn stamps(&self) -> (Option<SystemTime>, Option<SystemTime>) {
        let state = self.state().borrow();
        (state.last_start, state.last_end)
    }

    /// Sets them, as they were written down elsewhere.
    pub fn set_stamps(&self, start: Option<SystemTime>, end: Option<SystemTime>, started_by: Option<u32>) {
        let mut state = self.state().borrow_mut();
        (state.last_start, state.last_end, state.started_by) = (start, end, started_by);
    }

    /// Launches keep off it for so long after its last use.
    pub fn pauses_for(&self, length: Duration) {
        let mut state = self.state().borrow_mut();
        state.longest_pause = state.longest_pause.max(length);
    }

    /// The longest time after its last use for which launches keep off it.
    pub fn longest_pause(&self) -> Duration {
        self.state().borrow().longest_pause
    }

    /// The user of the launch that started then.
    pub fn who_started(&self, start: SystemTime) -> Option<u32> {
        let state = self.state().borrow();
        state.started_by.filter(|_| state.last_start == Some(start))
    }

    /// Writes down a start in these slots.
    pub fn started(&self, slots: &[u64], now: SystemTime) {
        let mut state = self.state().borrow_mut();
        state.last_start = Some(now);
        state.started_by = slots.first().and_then(|slot| state.held.get(slot)?.as_ref()?.uid);
        state.cursor = slots.iter().max().map_or(1, |last| last + 1);
    }

    /// Takes the stamp of the start back, because no program was started.
    pub fn withdraw(&self, before: Option<SystemTime>) {
        self.state().borrow_mut().last_start = before;
    }

    /// Writes down the end of a program.
    pub fn ended(&self, now: SystemTime) {
        self.state().borrow_mut().last_end = Some(now);
    }

    /// Forgets when it was last used. Says whether there was anything to forget.
    pub fn reset(&self) -> bool {
        let mut state = self.state().borrow_mut();
        let had_any = (state.last_start, state.last_end) != (None, None);
        (state.last_start, state.last_end, state.started_by) = (None, None, None);
        had_any
    }

    /// Whether there is nothing to know of it.
    pub fn is_unused(&self) -> bool {
        let state = self.state().borrow();
        let stamps = (state.last_start, state.last_end);
        state.held.is_empty() && state.places.is_empty() && stamps == (None, None)
    }

    /// Whether nobody would miss it: it is used by nobody, and no pause since its last use is on.
    pub fn is_idle(&self, now: SystemTime) -> bool {
        let state = self.state().borrow();
        let last = state.last_start.max(state.last_end);
        let is_over =
            |last: SystemTime| last.checked_add(state.longest_pause).is_some_and(|over| over <= now);
        state.held.is_empty() && state.places.is_empty() && last.is_none_or(is_over)
    }
}
