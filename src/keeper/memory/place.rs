//! A place in the line of a table in memory, kept until dropped.

use super::Table;
use crate::keeper::line::{Class, Number, Waiter, WaitingProcess};

/// A place.
#[must_use = "the place is given up when this is dropped"]
#[derive(Debug)]
pub struct Place {
    table: Table,
    number: Number,
    classes: Vec<Class>,
    /// How many slots are wanted, and by whom.
    wants: Option<u64>,
    process: WaitingProcess,
    /// Whether its launch is known not to answer now, so that nobody has to look any longer.
    is_away: bool,
}

impl Place {
    pub(super) fn of(table: &Table, number: Number) -> Self {
        let (classes, wants, process) = (Vec::new(), None, WaitingProcess::default());
        Self { table: table.clone(), number, classes, wants, process, is_away: false }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Stands in line in these classes, and in no other.
    pub fn stand(&mut self, classes: &[Class]) {
        let mut state = self.table.state().borrow_mut();
        for class in &self.classes {
            state.leave_line(self.number, *class);
        }
        for class in classes {
            let Self { number, wants, is_away, .. } = *self;
            let process = self.process.clone();
            state.join_line(Waiter { number, class: *class, wants, is_away, process });
        }
        self.classes = classes.to_vec();
    }

    fn stand_as_before(&mut self) {
        let classes = self.classes.clone();
        self.stand(&classes);
    }

    /// Says in which conversation its launch is served.
    pub fn serve_in(&self, session: u64) {
        if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
            life.session = Some(session);
        }
    }

    /// Says how many slots are wanted.
    pub fn wants(&mut self, slots: u64) {
        if self.wants != Some(slots) {
            self.wants = Some(slots);
            self.stand_as_before();
        }
    }

    /// How many slots are wanted, where that is known.
    pub fn wanted(&self) -> Option<u64> {
        self.wants
    }

    /// Says which process waits.
    pub fn belongs_to(&mut self, process: &WaitingProcess) {
        if self.process != *process {
            self.process = process.clone();
            self.stand_as_before();
        }
    }

    /// Beats no more.
    pub fn fall_silent(&self) {
        if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
            life.is_silent = true;
        }
    }

    /// Says whether its launch answers.
    pub fn set_away(&mut self, is_away: bool) {
        if self.is_away != is_away {
            self.is_away = is_away;
            self.stand_as_before();
        }
    }

    /// The classes in which it stands in line.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stand(&[]);
        self.table.state().borrow_mut().places.remove(&self.number);
    }
}
