//! The queue of a table in memory.

use super::{Table, table::Life};
use crate::keeper::{Class, Number, Waiter, WaitingProcess};

impl Table {
    /// Takes a place until the answer is dropped; none if another launch has that number.
    pub fn take_place(&self, number: Number) -> Option<Place> {
        let mut state = self.state().borrow_mut();
        if state.places.contains_key(&number) {
            return None;
        }
        state.places.insert(number, Life::default());
        drop(state);
        self.has_had(number);
        Some(Place::of(self, number))
    }

    /// The class of the waiter with this number.
    pub fn classes_of(&self, number: Number) -> Vec<Class> {
        let state = self.state().borrow();
        let theirs =
            state.line.range((number, Class::LOWEST)..).take_while(|((other, _), _)| *other == number);
        theirs.map(|((_, class), _)| *class).collect()
    }

    /// Whether there is no waiter.
    pub fn has_no_line(&self) -> bool {
        self.state().borrow().line.is_empty()
    }

    /// The oldest waiters, up to this number.
    pub fn first_waiters(&self, most: usize) -> Vec<Waiter> {
        self.state().borrow().line.values().take(most).cloned().collect()
    }

    /// All waiters, oldest first.
    pub fn waiters(&self) -> Vec<Waiter> {
        self.state().borrow().line.values().cloned().collect()
    }

    /// The youngest before a number, or at all.
    pub fn youngest(&self, before: Option<Number>) -> Option<Waiter> {
        let state = self.state().borrow();
        let found = match before {
            Some(before) => state.line.range(..(before, Class::LOWEST)).next_back(),
            None => state.line.iter().next_back(),
        };
        found.map(|(_, waiter)| waiter.clone())
    }

    /// The oldest from a number on and before another.
    pub fn oldest(&self, from: Number, before: Option<Number>) -> Option<Waiter> {
        let state = self.state().borrow();
        let (_, found) = state.line.range((from, Class::LOWEST)..).next()?;
        Some(found).filter(|found| before.is_none_or(|before| found.number < before)).cloned()
    }

    /// The next launch in the queue that responds and that no blocked class blocks; none if these classes
    /// block all others.
    pub fn next_to_look(&self, after: Option<Number>, blocked: &[Class]) -> Option<Number> {
        let state = self.state().borrow();
        let may_pass = |class: &Class| blocked.iter().all(|ahead| class.passes(*ahead));
        if !state.classes.keys().any(may_pass) {
            return None;
        }
        let from = (after.map_or(Number(0), Number::next), Class::LOWEST);
        let mut behind = state.line.range(from..).map(|(_, waiter)| waiter);
        behind.find(|waiter| may_pass(&waiter.class) && !waiter.is_away).map(|waiter| waiter.number)
    }

    /// The connections of the oldest waiters that are known not to respond, up to this number.
    pub fn first_away(&self, most: usize) -> Vec<u64> {
        let state = self.state().borrow();
        let away = state.line.values().filter(|waiter| waiter.is_away);
        away.filter_map(|waiter| state.places.get(&waiter.number)?.session).take(most).collect()
    }

    /// The connection that serves the launch with this number.
    pub fn session_of(&self, number: Number) -> Option<u64> {
        self.state().borrow().places.get(&number)?.session
    }

    /// The connections of the waiters, oldest first.
    pub fn sessions(&self) -> Vec<u64> {
        let state = self.state().borrow();
        let mut sessions: Vec<u64> =
            state.line.keys().filter_map(|(number, _)| state.places.get(number)?.session).collect();
        sessions.dedup();
        sessions
    }

    /// How many launches precede this number; without one, how many wait.
    pub fn count_ahead(&self, number: Option<Number>) -> usize {
        let state = self.state().borrow();
        let mut last = None;
        let standing = state.line.keys().map(|(other, _)| *other);
        let ahead = standing.take_while(|other| number.is_none_or(|number| *other < number));
        ahead.filter(|other| last.replace(*other) != Some(*other)).count()
    }

    /// How many wait after the first ones, and how many of them are of this user.
    pub fn count_after(&self, first: usize, user: u32) -> (u64, u64) {
        let state = self.state().borrow();
        let after = state.line.values().skip(first);
        after.fold((0, 0), |(all, own), waiter| (all + 1, own + u64::from(waiter.uid() == Some(user))))
    }

    /// Adds a waiter of another process to the queue: this is a copy of that table.
    pub fn show_waiter(&self, waiter: Waiter) {
        self.state().borrow_mut().join_line(waiter);
    }

    /// The same for waiters that are only counted: how many there are, and how many belong to the same user.
    pub fn show_unlisted(&self, unlisted: (u64, u64)) {
        self.state().borrow_mut().unlisted = unlisted;
    }

    /// How many wait and are not named.
    pub fn unlisted(&self) -> (u64, u64) {
        self.state().borrow().unlisted
    }
}

// A place in the queue of a table in memory, kept until dropped.

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
    #[cfg(test)]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keeper::memory::Store;

    fn class() -> impl Strategy<Value = Class> {
        (0..2_u16, 1..4_u64).prop_map(|(generation, capacity)| Class { generation, capacity })
    }

    proptest! {
        /// From the head of a queue it returns exactly the launches that respond and that no earlier one
        /// blocks. The first launch is always included. At most one launch of each class checks without
        /// success.
        #[test]
        fn those_look_whom_nobody_holds_up(
            queue in proptest::collection::vec((class(), any::<bool>(), any::<bool>()), 0..20),
        ) {
            let table = Store::default().table("seats");
            let mut places = Vec::new();
            for (index, (class, is_away, _)) in queue.iter().enumerate() {
                let mut place = table.take_place(Number(index as u64 * 3 + 1)).expect("nobody has it");
                place.stand(&[*class]);
                place.set_away(*is_away);
                places.push(Some(place));
            }
            let (mut last, mut blocked, mut looked) = (None, Vec::new(), Vec::new());
            while let Some(number) = table.next_to_look(last, &blocked) {
                let index = (number.0 / 3) as usize;
                let starts = queue[index].2;
                looked.push(index);
                last = Some(number);
                if starts {
                    places[index] = None;
                }
                blocked.extend(table.classes_of(number));
            }
            let mut ahead: Vec<Class> = Vec::new();
            for (index, (class, is_away, starts)) in queue.iter().enumerate() {
                let liveness = !is_away && ahead.iter().all(|other| class.passes(*other));
                prop_assert_eq!(looked.contains(&index), liveness, "{} of {:?}", index, queue);
                if liveness && !starts {
                    ahead.push(*class);
                }
            }
            let in_vain = looked.iter().filter(|index| !queue[**index].2).count();
            prop_assert!(in_vain <= 6, "one of each class: {}", in_vain);
            drop(places);
            prop_assert!(table.state().borrow().classes.is_empty(), "a class has waiters that left");
        }
    }

    /// A launch that released its number may use it again, and precedes all later ones.
    #[test]
    fn numbers_do_not_begin_again_when_nobody_waits() {
        let table = Store::default().table("seats");
        drop(table.take_place(Number(7)).expect("nobody has it"));
        assert_eq!((table.highest_place(), table.highest_number()), (None, Some(Number(7))));
    }

    /// Of a long queue only the first waiters are described. The others are counted: all, and those of one
    /// user.
    #[test]
    fn waiters_that_are_not_described_are_counted() {
        let table = Store::default().table("seats");
        let wait = |(number, user)| {
            let mut place = table.take_place(Number(number)).expect("the number is free");
            place.belongs_to(&WaitingProcess { user: Some(user), ..WaitingProcess::default() });
            place.stand(&[Class { generation: 0, capacity: 1 }]);
            place
        };
        let _places = [(1, 7), (2, 8), (3, 7), (4, 7)].map(wait);
        assert_eq!(table.first_waiters(2).iter().map(Waiter::uid).collect::<Vec<_>>(), [Some(7), Some(8)]);
        assert_eq!((table.count_after(2, 7), table.count_after(2, 8)), ((2, 2), (2, 0)));
        assert_eq!((table.count_after(0, 7), table.count_after(4, 7)), ((4, 3), (0, 0)));
    }

    /// The launch directly ahead of a number is the youngest before it.
    #[test]
    fn the_ends_of_a_queue_are_found_from_any_number() {
        let table = Store::default().table("seats");
        let _places = [3, 5, 7].map(|number| {
            let mut place = table.take_place(Number(number)).expect("the number is free");
            place.stand(&[Class { generation: 0, capacity: 1 }]);
            place
        });
        let number = |waiter: Option<Waiter>| waiter.map(|waiter| waiter.number.0);
        let youngest = |before| number(table.youngest(before));
        assert_eq!([None, Some(Number(5)), Some(Number(3))].map(youngest), [Some(7), Some(3), None]);
        let oldest = |(from, before)| number(table.oldest(Number(from), before));
        let asked = [(1, None), (4, None), (4, Some(Number(6))), (4, Some(Number(5))), (8, None)];
        assert_eq!(asked.map(oldest), [Some(3), Some(5), Some(5), None, None]);
    }

    #[test]
    fn a_launch_in_two_classes_is_counted_once() {
        let table = Store::default().table("seats");
        let mut place = table.take_place(Number(1)).expect("nobody has it");
        place.stand(&[Class { generation: 0, capacity: 1 }, Class { generation: 0, capacity: 2 }]);
        assert_eq!((table.count_ahead(None), table.count_ahead(Some(Number(1)))), (1, 0));
    }
}
