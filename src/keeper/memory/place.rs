//! A place in the queue of a table in memory, kept until dropped.

use super::Table;
use crate::{
    judge::terms::group::Group,
    keeper::{
        Holder,
        line::{Class, Number, Waiter, WaitingProcess},
    },
};

#[must_use = "the place is given up when this is dropped"]
#[derive(Debug)]
pub struct Place {
    table: Table,
    number: Number,
    classes: Vec<Class>,
    /// How many slots are wanted, and by whom.
    wants: Option<u64>,
    process: WaitingProcess,
    /// Whether its launch is known not to respond, so that no further check is needed.
    is_away: bool,
}

impl Place {
    pub(super) fn of(table: &Table, number: Number) -> Self {
        let (classes, wants, process) = (Vec::new(), None, WaitingProcess::default());
        Self { table: table.clone(), number, classes, wants, process, is_away: false }
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Waits in these classes, and in no other.
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

    /// Sets the connection that serves its launch.
    pub fn serve_in(&self, session: u64) {
        if let Some(life) = self.table.state().borrow_mut().places.get_mut(&self.number) {
            life.session = Some(session);
        }
    }

    /// Sets how many slots are wanted.
    pub fn wants(&mut self, slots: u64) {
        if self.wants != Some(slots) {
            self.wants = Some(slots);
            self.stand_as_before();
        }
    }

    /// How many slots are wanted, if known.
    pub fn wanted(&self) -> Option<u64> {
        self.wants
    }

    /// Sets the waiting process.
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

    /// Sets whether its launch responds.
    pub fn set_away(&mut self, is_away: bool) {
        if self.is_away != is_away {
            self.is_away = is_away;
            self.stand_as_before();
        }
    }

    /// The classes in which it waits.
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

// Slots of a table in memory, held until dropped.

/// Slots that were taken, or are shared with an ancestor.
#[must_use = "the slots are free again when this is dropped"]
#[derive(Debug)]
pub struct Held {
    table: Table,
    slots: Vec<u64>,
    /// The number of the nested launch that uses an ancestor's slots.
    share: Option<u64>,
    /// The group that has them, and the number of this member.
    member: Option<(u64, Group)>,
}

impl Held {
    pub(super) fn of(table: &Table, slots: &[u64]) -> Self {
        Self { table: table.clone(), slots: slots.to_vec(), share: None, member: None }
    }

    pub(super) fn of_member(table: &Table, slots: &[u64], member: (u64, Group)) -> Self {
        Self { table: table.clone(), slots: slots.to_vec(), share: None, member: Some(member) }
    }

    pub(super) fn shared(table: &Table, slots: &[u64], share: u64) -> Self {
        Self { table: table.clone(), slots: slots.to_vec(), share: Some(share), member: None }
    }

    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// They stay taken although the program has ended.
    pub fn linger(&self) {
        if let Some((member, _)) = &self.member {
            self.table.lingers(&self.slots, *member);
        }
    }

    /// The group that has them.
    pub fn group(&self) -> Option<&Group> {
        self.member.as_ref().map(|(_, group)| group)
    }

    /// Sets the holder.
    pub fn describe(&self, holder: Holder) {
        let member = self.member.as_ref().map(|(number, _)| *number);
        self.table.describe_as(&self.slots, member, holder);
    }

    /// Whether they are an ancestor's.
    pub fn is_shared(&self) -> bool {
        self.share.is_some()
    }

    /// Releases the slots.
    pub fn release(&mut self) {
        let mut state = self.table.state().borrow_mut();
        for slot in self.slots.drain(..) {
            // A launch that shares a slot shares it with its holder, and not with a later one.
            if self.share.is_none_or(|share| state.shared.get(&slot) == Some(&share)) {
                state.shared.remove(&slot);
            }
            if self.share.is_none() {
                state.give_back(slot, self.member.as_ref().map(|(number, _)| *number));
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}
