//! A place in the line of a table in memory, kept until dropped.

use super::{Table, table::Whose};
use crate::keeper::line::{Class, Number};

/// A place.
#[must_use = "the place is given up when this is dropped"]
#[derive(Debug)]
pub struct Place {
    table: Table,
    number: Number,
    classes: Vec<Class>,
    /// The process, its user, and how many slots it wants.
    whose: Whose,
}

impl Place {
    pub(super) fn of(table: &Table, number: Number) -> Self {
        Self { table: table.clone(), number, classes: Vec::new(), whose: (None, None, None) }
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
            state.join_line(self.number, *class, self.whose);
        }
        self.classes = classes.to_vec();
    }

    /// Says in which conversation its launch is served.
    pub fn serve_in(&self, session: u64) {
        if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
            life.session = Some(session);
        }
    }

    /// Says how many slots are wanted.
    pub fn wants(&mut self, slots: u64) {
        if self.whose.2 != Some(slots) {
            self.whose.2 = Some(slots);
            let classes = self.classes.clone();
            self.stand(&classes);
        }
    }

    /// Says which process waits, and whose it is.
    pub fn belongs_to(&mut self, pid: i32, user: u32) {
        self.whose = (Some(pid), Some(user), self.whose.2);
        let classes = self.classes.clone();
        self.stand(&classes);
    }

    /// Says whose launch waits, whose process is not to be seen from here.
    pub fn belongs_to_user(&mut self, user: u32) {
        self.whose = (None, Some(user), self.whose.2);
        let classes = self.classes.clone();
        self.stand(&classes);
    }

    /// Says which launch of an imagined world waits, and whose it is.
    pub fn belongs_to_imagined(&mut self, launch: i32, uid: u32) {
        if (self.whose.0, self.whose.1) != (Some(launch), Some(uid)) {
            self.belongs_to(launch, uid);
            if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
                life.uid = Some(uid);
            }
        }
    }

    /// Beats no more.
    pub fn fall_silent(&self) {
        if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
            life.is_silent = true;
        }
    }

    /// Says whether its launch answers.
    pub fn set_away(&self, is_away: bool) {
        if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
            life.is_away = is_away;
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
