//! One table in memory: its slots with their holders, its line, and when it was last used.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, SystemTime},
};

use super::{Held, Place, VerifiedAncestry};
use crate::{
    keeper::{
        Holder,
        hint::slots_to_join,
        line::{Class, Number, Pulse, Waiter},
        occupancy::{Occupancy, Span, Vacancy},
    },
    terms::{admit::Admit, claim::Claim, launch::Launch, merged::Terms},
};

/// One table. Whoever has a clone sees the same slots.
#[derive(Clone, Debug)]
pub struct Table {
    number: usize,
    name: Option<Rc<str>>,
    owner: Option<u32>,
    state: Rc<RefCell<State>>,
}

/// As what somebody stands in line.
pub(super) type Standing = (Number, Class);

#[derive(Debug, Default)]
pub(super) struct State {
    /// Each slot that is held, with its holder where that is known.
    pub(super) held: BTreeMap<u64, Option<Rc<Holder>>>,
    /// Slots that a nested launch uses too; each such launch has a number.
    pub(super) shared: BTreeMap<u64, u64>,
    shares: u64,
    /// Where the next search begins.
    pub(super) cursor: u64,
    pub(super) last_start: Option<SystemTime>,
    pub(super) last_end: Option<SystemTime>,
    /// How long after its last use somebody may have to keep off it; zero where nobody ever had to.
    pub(super) longest_pause: Duration,
    /// Whose launch started last.
    pub(super) started_by: Option<u32>,
    /// The highest number that anybody has had: who gives back what was got under a number comes again under
    /// the same, and nobody who came later may have a lower one.
    highest: Option<Number>,
    /// All places, and what is seen of whoever has them.
    pub(super) places: BTreeMap<Number, Life>,
    /// Oldest first.
    pub(super) line: BTreeMap<Standing, Waiter>,
    /// How many of them are of each class.
    pub(super) classes: BTreeMap<Class, usize>,
}

impl State {
    pub(super) fn join_line(&mut self, waiter: Waiter) {
        let (number, class) = (waiter.number, waiter.class);
        if self.line.insert((number, class), waiter).is_none() {
            *self.classes.entry(class).or_default() += 1;
        }
    }

    pub(super) fn leave_line(&mut self, number: Number, class: Class) {
        if self.line.remove(&(number, class)).is_some()
            && let Some(count) = self.classes.get_mut(&class)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.classes.remove(&class);
            }
        }
    }
}

/// Signs of life. No time passes in memory: whoever waits beats whenever somebody looks.
#[derive(Debug, Default)]
pub(super) struct Life {
    beats: u64,
    pub(super) is_silent: bool,
    /// The conversation in which its launch is served, where this process serves it.
    pub(super) session: Option<u64>,
}

impl Table {
    pub(super) fn new(number: usize, name: Option<&str>, owner: Option<u32>) -> Self {
        Self { number, name: name.map(Rc::from), owner, state: Rc::default() }
    }

    /// On whose account it is there.
    pub(super) fn account(&self) -> Option<u32> {
        self.owner
    }

    pub(super) fn state(&self) -> &RefCell<State> {
        &self.state
    }

    /// Whether it is the one with this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Its name, where it has one.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Which of the store's tables it is.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether both are one table.
    pub fn is(&self, other: &Table) -> bool {
        Rc::ptr_eq(&self.state, &other.state)
    }

    /// Every held slot; neighbours with one holder together.
    pub fn occupancy(&self) -> Occupancy {
        let state = self.state.borrow();
        let mut spans: Vec<Span> = Vec::new();
        let mut last: Option<&Rc<Holder>> = None;
        for (slot, holder) in &state.held {
            let is_same = matches!((last, holder), (Some(one), Some(other)) if Rc::ptr_eq(one, other));
            match spans.last_mut() {
                Some(span) if is_same && span.slots.end() + 1 == *slot => {
                    span.slots = *span.slots.start()..=*slot;
                }
                _ => {
                    let pid = holder.as_ref().and_then(|holder| holder.keeper);
                    spans.push(Span { slots: *slot..=*slot, pid });
                }
            }
            last = holder.as_ref();
        }
        Occupancy::of(spans)
    }

    /// Who holds the slots of an occupancy.
    pub fn holders(&self, occupancy: &Occupancy) -> Vec<Holder> {
        let state = self.state.borrow();
        let of = |Span { slots, .. }: &Span| match state.held.get(slots.start()) {
            Some(Some(holder)) => Holder { slots: slots.clone().into_inner(), ..Holder::clone(holder) },
            _ => Holder::unknown(slots.clone()),
        };
        occupancy.spans().iter().map(of).collect()
    }

    /// The slots that a launch with these terms would take, or why there are none.
    pub fn vacancy(&self, terms: &Terms) -> Vacancy {
        let state = self.state.borrow();
        let fits = (state.held.len() as u64).saturating_add(terms.slots) <= terms.limit;
        if !fits && terms.admit != Admit::Always {
            return Vacancy::Full;
        }
        let enough = usize::try_from(terms.slots).unwrap_or(usize::MAX);
        let order = terms.search_order(state.cursor).into_iter().flatten();
        let free: Vec<u64> = order.filter(|slot| !state.held.contains_key(slot)).take(enough).collect();
        if free.len() == enough {
            return Vacancy::Slots(free);
        }
        if fits { Vacancy::Kept } else { Vacancy::Full }
    }

    /// Holds slots until the answer is dropped; none when one of them is held.
    pub fn take(&self, slots: &[u64]) -> Option<Held> {
        let mut state = self.state.borrow_mut();
        if slots.iter().any(|slot| state.held.contains_key(slot)) {
            return None;
        }
        state.held.extend(slots.iter().map(|slot| (*slot, None)));
        drop(state);
        Some(Held::of(self, slots))
    }

    /// Says who holds slots.
    pub fn describe(&self, slots: &[u64], holder: Holder) {
        let (mut state, holder) = (self.state.borrow_mut(), Rc::new(holder));
        for slot in slots {
            if let Some(held) = state.held.get_mut(slot) {
                *held = Some(Rc::clone(&holder));
            }
        }
    }

    /// Uses an ancestor's slots for these claims, if it was proved that an ancestor has them and nobody else
    /// uses them too.
    pub fn join(&self, claims: &[&Claim<'_>], launch: &Launch<'_>, kin: &VerifiedAncestry) -> Option<Held> {
        let slots = self.slots_to_join(claims, launch, kin)?;
        let mut state = self.state.borrow_mut();
        state.shares += 1;
        let share = state.shares;
        state.shared.extend(slots.iter().map(|slot| (*slot, share)));
        drop(state);
        Some(Held::shared(self, &slots, share))
    }

    /// The slots that it would use.
    pub fn slots_to_join(
        &self,
        claims: &[&Claim<'_>],
        launch: &Launch<'_>,
        kin: &VerifiedAncestry,
    ) -> Option<Vec<u64>> {
        let wanted = slots_to_join(claims, launch)?;
        // The environment may name a million of them.
        if wanted.count() > kin.slots.len() as u64 {
            return None;
        }
        let state = self.state.borrow();
        let is_theirs = |slot: &u64| {
            let holder = state.held.get(slot).and_then(Option::as_ref);
            kin.slots.contains(&(self.number, *slot))
                && holder.is_some_and(|holder| holder.command.as_deref() == Some(launch.command))
                && !state.shared.contains_key(slot)
        };
        let slots: Vec<u64> = wanted.slots().collect();
        slots.iter().all(is_theirs).then_some(slots)
    }

    /// Whether nobody but the ancestors of whoever asks hold these slots, and there are any.
    pub fn is_held_by_kin(&self, occupancy: &Occupancy, kin: &VerifiedAncestry) -> bool {
        let is_kin = |span: &Span| {
            let is_joinable = |slot: u64| kin.slots.contains(&(self.number, slot));
            span.pid.is_some_and(|pid| kin.has(pid)) || span.slots.clone().all(is_joinable)
        };
        !occupancy.spans().is_empty() && occupancy.spans().iter().all(is_kin)
    }

    /// Begins the next search here.
    pub fn search_from(&self, slot: u64) {
        self.state.borrow_mut().cursor = slot;
    }

    /// Somebody has had this number.
    pub fn has_had(&self, number: Number) {
        let mut state = self.state.borrow_mut();
        state.highest = state.highest.max(Some(number));
    }

    /// The highest number of a place.
    pub fn highest_place(&self) -> Option<Number> {
        self.state.borrow().places.keys().next_back().copied()
    }

    /// The highest number that anybody has had here.
    pub fn highest_number(&self) -> Option<Number> {
        self.state.borrow().highest
    }

    /// Takes a place until the answer is dropped; none where somebody has that number.
    pub fn take_place(&self, number: Number) -> Option<Place> {
        let mut state = self.state.borrow_mut();
        if state.places.contains_key(&number) {
            return None;
        }
        state.places.insert(number, Life::default());
        drop(state);
        self.has_had(number);
        Some(Place::of(self, number))
    }

    /// What tells whether a waiter is alive.
    pub fn pulse(&self, number: Number) -> Option<Pulse> {
        let mut state = self.state.borrow_mut();
        let life = state.places.get_mut(&number)?;
        life.beats += u64::from(!life.is_silent);
        Some(Pulse { pid: None, beats: life.beats })
    }
}
