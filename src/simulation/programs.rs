//! The programs that run, each with what it holds.

use crate::keeper::memory;

/// A program that runs.
#[derive(Default)]
pub(super) struct Running {
    pub(super) held: Vec<memory::Held>,
    /// Slots of repositories, by number.
    pub(super) slots: Vec<(usize, u64)>,
}

/// All of them, by number.
#[derive(Default)]
pub(super) struct Programs {
    running: Vec<Running>,
    free: Vec<u32>,
}

impl Programs {
    /// One more. Says its number.
    pub(super) fn start(&mut self, running: Running) -> u32 {
        if let Some(place) = self.free.pop() {
            self.running[place as usize] = running;
            return place;
        }
        self.running.push(running);
        u32::try_from(self.running.len() - 1).unwrap_or(u32::MAX)
    }

    /// One ends.
    pub(super) fn end(&mut self, number: u32) -> Running {
        self.free.push(number);
        std::mem::take(&mut self.running[number as usize])
    }
}
