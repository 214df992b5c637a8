//! One table in memory: its slots with their holders, its queue, and when it was last used.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::{Duration, SystemTime},
};

use super::VerifiedAncestry;
use crate::{
    judge::terms::{Admit, Claim, Expiry, Group, Launch, Runs, Seats, Terms},
    keeper::{
        Class, Heartbeat, Holder, Number, Occupancy, Overdue, Span, Vacancy, Vouched, Waiter,
        hint::slots_to_join, outside::Sample,
    },
    sys::process,
};

/// One table. Clones share the same slots.
#[derive(Clone, Debug)]
pub struct Table {
    number: usize,
    name: Option<Rc<str>>,
    state: Rc<RefCell<State>>,
}

/// The class in which a launch waits.
pub(super) type Standing = (Number, Class);

#[derive(Debug, Default)]
pub(super) struct State {
    /// The user for whom it counts.
    account: Option<u32>,
    /// Each slot that is held, with its holder where that is known.
    pub(super) held: BTreeMap<u64, Option<Rc<Holder>>>,
    /// For the slots of groups, the facts besides the holder.
    pub(super) groups: BTreeMap<u64, Grouped>,
    members: u64,
    /// Slots that a nested launch uses too; each such launch has a number.
    pub(super) shared: BTreeMap<u64, u64>,
    shares: u64,
    /// Where the next search begins.
    pub(super) cursor: u64,
    pub(super) last_start: Option<SystemTime>,
    pub(super) last_end: Option<SystemTime>,
    /// How long after its last use a launch may have to wait; zero if none ever had to.
    pub(super) longest_pause: Duration,
    /// The user of the last start.
    pub(super) started_by: Option<u32>,
    /// The start before the last one, and its user.
    start_before: (Option<SystemTime>, Option<u32>),
    /// The use outside rungate, in a simulation.
    pub(super) sample: Option<Rc<Sample>>,
    /// The highest number that was ever used. A launch that releases its slots may join again under its
    /// number, and no later launch may have a lower one.
    highest: Option<Number>,
    /// All places, and what is known about their owners.
    pub(super) places: BTreeMap<Number, Life>,
    /// Oldest first.
    pub(super) line: BTreeMap<Standing, Waiter>,
    /// How many of them are of each class.
    pub(super) classes: BTreeMap<Class, usize>,
    /// For a copy: how many more wait, and how many of them belong to the same user.
    pub(super) unlisted: (u64, u64),
}

/// A slot of a group. It is held as long as there is a member.
#[derive(Debug)]
pub(super) struct Grouped {
    group: Group,
    rank: u64,
    /// The members, each by a number of its own, with the known facts.
    members: BTreeMap<u64, Option<Rc<Holder>>>,
    /// Those of them whose program has ended.
    lingering: BTreeSet<u64>,
}

impl State {
    /// Sets the holder of a slot, or one of several holders.
    fn describe(&mut self, slot: u64, member: Option<u64>, holder: &Rc<Holder>) {
        let Some(held) = self.held.get_mut(&slot) else { return };
        let grouped = member.zip(self.groups.get_mut(&slot));
        match grouped {
            Some((member, grouped)) => {
                grouped.members.insert(member, Some(Rc::clone(holder)));
                *held = grouped.first();
            }
            None => *held = Some(Rc::clone(holder)),
        }
    }

    /// The other processes that share a slot with its named holder.
    fn others_at(&self, slot: u64) -> impl Iterator<Item = &Rc<Holder>> {
        self.groups.get(&slot).into_iter().flat_map(Grouped::known).skip(1)
    }

    fn has_same_members(&self, slot: u64, other: u64) -> bool {
        let members = |slot| self.groups.get(&slot).map(|grouped| grouped.members.keys());
        match (members(slot), members(other)) {
            (Some(one), Some(other)) => one.eq(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Sorts a group's slots in the order in which a member had them.
    fn rank(&mut self, slots: &[u64]) {
        for (rank, slot) in (0..).zip(slots) {
            if let Some(grouped) = self.groups.get_mut(slot) {
                grouped.rank = rank;
            }
        }
    }

    fn linger(&mut self, slot: u64, member: u64, lingers_until: Option<SystemTime>) {
        let Some(grouped) = self.groups.get_mut(&slot) else { return };
        grouped.lingering.insert(member);
        if let Some(holder) = grouped.members.get_mut(&member) {
            let ended = |holder: &Rc<Holder>| {
                let command = holder.command.as_ref().map(|command| format!("{command} (ended)"));
                Rc::new(Holder { command, keeper: None, lingers_until, ..Holder::clone(holder) })
            };
            *holder = holder.as_ref().map(ended);
        }
        self.held.insert(slot, grouped.first());
    }

    fn add_member(&mut self, slot: u64, holder: &Rc<Holder>) {
        let Some(grouped) = self.groups.get_mut(&slot) else { return };
        let number = grouped.members.keys().next_back().map_or(0, |last| last + 1);
        grouped.members.insert(number, Some(Rc::clone(holder)));
    }

    /// Releases a slot, or a member's share of it.
    pub(super) fn give_back(&mut self, slot: u64, member: Option<u64>) {
        if let (Some(member), Some(grouped)) = (member, self.groups.get_mut(&slot)) {
            grouped.members.remove(&member);
            grouped.lingering.remove(&member);
            if !grouped.members.is_empty() {
                self.held.insert(slot, grouped.first());
                return;
            }
            self.groups.remove(&slot);
        }
        self.held.remove(&slot);
        // A launch that shares a slot shares it with its holders, and not with a later one.
        self.shared.remove(&slot);
    }

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

impl Grouped {
    fn of(group: &Group, rank: u64) -> Self {
        Self { group: group.clone(), rank, members: BTreeMap::new(), lingering: BTreeSet::new() }
    }

    /// The members that have it, or had it last.
    fn known(&self) -> impl Iterator<Item = &Rc<Holder>> {
        let is_over = self.is_over();
        let has_it = move |(member, _): &(&u64, _)| is_over || !self.lingering.contains(*member);
        self.members.iter().filter(has_it).filter_map(|(_, holder)| holder.as_ref())
    }

    /// Its first member that is known.
    fn first(&self) -> Option<Rc<Holder>> {
        self.known().next().cloned()
    }

    /// Whether no program has it any more.
    fn is_over(&self) -> bool {
        self.members.keys().all(|member| self.lingering.contains(member))
    }
}

/// Signs of life. No time passes in memory: a waiter beats at every look.
#[derive(Debug, Default)]
pub(super) struct Life {
    beats: u64,
    pub(super) is_silent: bool,
    /// The connection that serves its launch, if this process serves it.
    pub(super) session: Option<u64>,
}

impl Table {
    pub(super) fn new(number: usize, name: Option<&str>) -> Self {
        Self { number, name: name.map(Rc::from), state: Rc::default() }
    }

    pub(super) fn account(&self) -> Option<u32> {
        self.state.borrow().account
    }

    pub(super) fn count_for(&self, uid: Option<u32>) {
        self.state.borrow_mut().account = uid;
    }

    pub(super) fn state(&self) -> &RefCell<State> {
        &self.state
    }

    /// Whether it is the one with this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Its name, if it has one.
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
            let is_same = matches!((last, holder), (Some(one), Some(other)) if Rc::ptr_eq(one, other))
                && state.has_same_members(slot.saturating_sub(1), *slot);
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

    /// Sets the use outside rungate, instead of what is measured.
    pub fn imagine(&self, sample: &Rc<Sample>) {
        self.state.borrow_mut().sample = Some(Rc::clone(sample));
    }

    /// What was set.
    pub fn imagined(&self) -> Option<Rc<Sample>> {
        self.state.borrow().sample.clone()
    }

    /// How many slots are held.
    pub fn used(&self) -> u64 {
        self.state.borrow().held.len() as u64
    }

    /// The holders of an occupancy.
    pub fn holders(&self, occupancy: &Occupancy) -> Vec<Holder> {
        let state = self.state.borrow();
        let of = |Span { slots, .. }: &Span| match state.held.get(slots.start()) {
            Some(Some(holder)) => {
                let mut all: Vec<&Rc<Holder>> = vec![holder];
                for other in state.others_at(*slots.start()) {
                    // A launch that executes another one is a member for each, and one process.
                    match all.iter_mut().find(|known| known.pid.is_some() && known.pid == other.pid) {
                        Some(same) => *same = other,
                        None => all.push(other),
                    }
                }
                let slots = slots.clone().into_inner();
                let mut all = all.into_iter().map(|holder| Holder { slots, ..Holder::clone(holder) });
                let first = all.next().unwrap_or_else(|| Holder::unknown(slots.0..=slots.1));
                Holder { others: all.collect(), ..first }
            }
            _ => Holder::unknown(slots.clone()),
        };
        occupancy.spans().iter().map(of).collect()
    }

    /// Those whose user and age are known.
    pub fn vouched(&self, occupancy: &Occupancy) -> Vec<Vouched> {
        let known = |holder: Holder| {
            let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
            Some(Vouched { uid: holder.uid?, since: holder.taken?, slots, host: holder.host })
        };
        self.holders(occupancy).into_iter().filter_map(known).collect()
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

    /// The slots that the group of these terms has, by rank: as many as are wanted.
    pub fn shared(&self, terms: &Terms) -> Vec<u64> {
        let Some(group) = &terms.group else { return Vec::new() };
        let (state, seen) = (self.state.borrow(), Group::seen(group.hash()));
        let is_it = |grouped: &Grouped| grouped.group == *group || grouped.group == seen;
        if group.is_of_heirs() {
            let lingers = |(slot, grouped): &(&u64, &Grouped)| {
                is_it(grouped) && (grouped.is_over() || grouped.group == seen) && terms.allows(**slot)
            };
            let most = usize::try_from(terms.slots).unwrap_or(usize::MAX);
            return state.groups.iter().filter(lingers).map(|(slot, _)| *slot).take(most).collect();
        }
        let at = |rank: u64| {
            let is_it = |(slot, grouped): &(&u64, &Grouped)| {
                grouped.rank == rank && is_it(grouped) && terms.allows(**slot)
            };
            state.groups.iter().find(is_it).map(|(slot, _)| *slot)
        };
        (0..terms.slots).map_while(at).collect()
    }

    /// The same as [`Table::take`], with slots that the group has already.
    pub fn take_with(&self, seats: &Seats, group: Option<&Group>) -> Option<Held> {
        let Some(group) = group else { return self.take(&seats.free) };
        let mut state = self.state.borrow_mut();
        if seats.free.iter().any(|slot| state.held.contains_key(slot)) {
            return None;
        }
        state.members += 1;
        let member = state.members;
        let lives = |slot: &&u64| state.groups.get(*slot).is_some_and(|grouped| !grouped.is_over());
        let joined = seats.shared.iter().filter(lives).copied().collect();
        for (rank, slot) in (0..).zip(seats.all()) {
            let new = || Grouped::of(group, rank);
            state.groups.entry(slot).or_insert_with(new).members.insert(member, None);
            state.held.entry(slot).or_default();
        }
        drop(state);
        let (table, slots, member) = (self.clone(), seats.all(), Some((member, group.clone())));
        Some(Held { table, slots, share: None, member, joined })
    }

    /// The same for saved slots; each may be shared with others of the group by now.
    pub fn restore(&self, slots: &[u64], group: Option<&Group>) -> Option<Held> {
        let Some(group) = group else { return self.take(slots) };
        let (shared, free) = slots.iter().partition(|slot| self.is_of_group(**slot, group));
        let held = self.take_with(&Seats { shared, free }, Some(group))?;
        self.state.borrow_mut().rank(slots);
        Some(held)
    }

    fn is_of_group(&self, slot: u64, group: &Group) -> bool {
        self.state.borrow().groups.get(&slot).is_some_and(|grouped| grouped.group == *group)
    }

    /// Saved slots of a program that runs. If others have one of them, the lowest free one takes its place,
    /// even beyond the limit: each running program is counted.
    pub fn to_restore(&self, slots: &[u64], group: Option<&Group>) -> Vec<u64> {
        let is_taken = |slot: u64| self.state.borrow().held.contains_key(&slot);
        let is_theirs = |slot: u64| group.is_some_and(|group| self.is_of_group(slot, group));
        let mut free = (1..).filter(|slot| !is_taken(*slot) && !slots.contains(slot));
        let stays = |slot: u64| !is_taken(slot) || is_theirs(slot);
        slots.iter().filter_map(|slot| if stays(*slot) { Some(*slot) } else { free.next() }).collect()
    }

    /// The slots of groups: each with its rank and the number of the group.
    pub fn groups(&self) -> Vec<(u64, u64, u64)> {
        let state = self.state.borrow();
        let of = |(slot, grouped): (&u64, &Grouped)| (*slot, grouped.rank, grouped.group.hash());
        let is_open = |(_, grouped): &(&u64, &Grouped)| !grouped.group.is_of_heirs() || grouped.is_over();
        state.groups.iter().filter(is_open).map(of).collect()
    }

    /// Sets the same: this is a copy of that table.
    pub fn show_group(&self, (slot, rank, hash): (u64, u64, u64)) {
        let mut state = self.state.borrow_mut();
        let Some(holder) = state.held.get(&slot).cloned() else { return };
        let members = BTreeMap::from([(0, holder)]);
        state.groups.insert(slot, Grouped { members, ..Grouped::of(&Group::seen(hash), rank) });
    }

    /// The slots of a member stay taken, although its program has ended.
    pub(super) fn lingers(&self, slots: &[u64], member: u64, until: Option<SystemTime>) {
        let mut state = self.state.borrow_mut();
        for slot in slots {
            state.linger(*slot, member, until);
        }
    }

    /// A held slot gets another number. Returns whether that is possible; then every [`Held`] must follow.
    pub fn move_slot(&self, slot: u64, another: u64) -> bool {
        let mut state = self.state.borrow_mut();
        if state.held.contains_key(&another) {
            return false;
        }
        let Some(holder) = state.held.remove(&slot) else { return false };
        state.held.insert(another, holder);
        let grouped = state.groups.remove(&slot);
        state.groups.extend(grouped.map(|grouped| (another, grouped)));
        let share = state.shared.remove(&slot);
        state.shared.extend(share.map(|share| (another, share)));
        true
    }

    /// Adds a process that shares slots with their holder: this is a copy of that table.
    pub fn show_other_member(&self, (first, last): (u64, u64), holder: Holder) {
        let (mut state, holder) = (self.state.borrow_mut(), Rc::new(holder));
        for slot in first..=last {
            state.add_member(slot, &holder);
        }
    }

    /// Says who holds slots.
    pub fn describe(&self, slots: &[u64], holder: Holder) {
        self.describe_as(slots, None, holder);
    }

    pub(super) fn describe_as(&self, slots: &[u64], member: Option<u64>, holder: Holder) {
        let (mut state, holder) = (self.state.borrow_mut(), Rc::new(holder));
        for slot in slots {
            state.describe(*slot, member, &holder);
        }
    }

    /// Uses an ancestor's slots for these claims, if it was proved that an ancestor has them and no other
    /// launch uses them too.
    pub fn join(&self, claims: &[&Claim], launch: &Launch<'_>, ancestry: &VerifiedAncestry) -> Option<Held> {
        let slots = self.slots_to_join(claims, launch, ancestry)?;
        Some(self.share(&slots))
    }

    fn share(&self, slots: &[u64]) -> Held {
        let mut state = self.state.borrow_mut();
        state.shares += 1;
        let share = state.shares;
        state.shared.extend(slots.iter().map(|slot| (*slot, share)));
        drop(state);
        Held::shared(self, slots, share)
    }

    /// Uses the saved slots of an ancestor again, if they are held and no other launch uses them too.
    pub fn share_again(&self, slots: &[u64]) -> Option<Held> {
        let state = self.state.borrow();
        let can_be = |slot: &u64| state.held.contains_key(slot) && !state.shared.contains_key(slot);
        let can_all = slots.iter().all(can_be);
        drop(state);
        can_all.then(|| self.share(slots))
    }

    /// The slots that it would use.
    pub fn slots_to_join(
        &self,
        claims: &[&Claim],
        launch: &Launch<'_>,
        ancestry: &VerifiedAncestry,
    ) -> Option<Vec<u64>> {
        let state = self.state.borrow();
        let is_theirs = |slot: u64| {
            let holder = state.held.get(&slot).and_then(Option::as_ref);
            ancestry.slots.contains(&(self.number, slot))
                && holder.is_some_and(|holder| holder.command.as_deref() == Some(launch.command))
                && !state.shared.contains_key(&slot)
        };
        // The environment may name a million slots.
        let can_be = |slots: &Runs| slots.count() <= ancestry.slots.len() as u64;
        let found =
            slots_to_join(claims, launch).find(|slots| can_be(slots) && slots.slots().all(is_theirs))?;
        Some(found.slots().collect())
    }

    /// Whether only ancestors of the caller hold these slots, and there are any.
    pub fn is_held_by_ancestor(&self, occupancy: &Occupancy, ancestry: &VerifiedAncestry) -> bool {
        let is_kin = |span: &Span| {
            let is_joinable = |slot: u64| ancestry.slots.contains(&(self.number, slot));
            span.pid.is_some_and(|pid| ancestry.has(pid)) || span.slots.clone().all(is_joinable)
        };
        !occupancy.spans().is_empty() && occupancy.spans().iter().all(is_kin)
    }

    /// Begins the next search here.
    pub fn search_from(&self, slot: u64) {
        self.state.borrow_mut().cursor = slot;
    }

    /// This number was used.
    pub fn has_had(&self, number: Number) {
        let mut state = self.state.borrow_mut();
        state.highest = state.highest.max(Some(number));
    }

    /// The highest number of a place.
    #[cfg(test)]
    pub fn highest_place(&self) -> Option<Number> {
        self.state.borrow().places.keys().next_back().copied()
    }

    /// The highest number that any launch has had here.
    pub fn highest_number(&self) -> Option<Number> {
        self.state.borrow().highest
    }

    /// What tells whether a waiter is alive.
    pub fn pulse(&self, number: Number) -> Option<Heartbeat> {
        let mut state = self.state.borrow_mut();
        let life = state.places.get_mut(&number)?;
        life.beats += u64::from(!life.is_silent);
        Some(Heartbeat { pid: None, beats: life.beats, is_blocked: false })
    }
}

// When a table was last used, and whether that must be remembered.

impl Table {
    /// When a program was last started, and when one last ended.
    pub fn stamps(&self) -> (Option<SystemTime>, Option<SystemTime>) {
        let state = self.state().borrow();
        (state.last_start, state.last_end)
    }

    /// Sets them, as they were recorded elsewhere.
    pub fn set_stamps(&self, start: Option<SystemTime>, end: Option<SystemTime>, started_by: Option<u32>) {
        let mut state = self.state().borrow_mut();
        (state.last_start, state.last_end, state.started_by) = (start, end, started_by);
    }

    /// For this long after its last use, a pause may block launches.
    pub fn pauses_for(&self, length: Duration) {
        let mut state = self.state().borrow_mut();
        state.longest_pause = state.longest_pause.max(length);
    }

    /// The longest pause after its last use.
    pub fn longest_pause(&self) -> Duration {
        self.state().borrow().longest_pause
    }

    /// The user of the launch that started then.
    pub fn who_started(&self, start: SystemTime) -> Option<u32> {
        let state = self.state().borrow();
        state.started_by.filter(|_| state.last_start == Some(start))
    }

    /// Records a start in these slots.
    pub fn started(&self, slots: &[u64], now: SystemTime) {
        let mut state = self.state().borrow_mut();
        state.start_before = (state.last_start, state.started_by);
        state.last_start = Some(now);
        let holder = |slot: &u64| match state.groups.get(slot) {
            Some(grouped) => grouped.members.values().flatten().next_back().cloned(),
            None => state.held.get(slot).cloned().flatten(),
        };
        state.started_by = slots.first().and_then(|slot| holder(slot)?.uid);
        state.cursor = slots.iter().max().map_or(1, |last| last + 1);
    }

    /// Removes the recorded start, because no program was started. The user of an earlier start is known if
    /// that was the last one before it.
    pub fn withdraw(&self, before: Option<SystemTime>) {
        let mut state = self.state().borrow_mut();
        let (start, user) = state.start_before;
        (state.last_start, state.started_by) = (before, user.filter(|_| start == before));
    }

    /// Records the end of a program.
    pub fn ended(&self, now: SystemTime) {
        self.state().borrow_mut().last_end = Some(now);
    }

    /// Forgets when it was last used. Returns whether there was anything to forget.
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

    /// Whether it is not needed: it is not in use, and every pause since its last use is over.
    pub fn is_idle(&self, now: SystemTime) -> bool {
        let state = self.state().borrow();
        let last = state.last_start.max(state.last_end);
        let is_over =
            |last: SystemTime| last.checked_add(state.longest_pause).is_some_and(|over| over <= now);
        state.held.is_empty() && state.places.is_empty() && last.is_none_or(is_over)
    }
}

// Which holders of a table in memory must be ended. Its keeper knows its holders, so no proof is needed here.
// It knows the records of holders on other hosts, by their clocks. That is enough to give notice of them, and
// their own host decides.

/// The overdue among holders, each process once, the longest overdue first.
pub fn overdue(holders: &[Holder], expiry: &Expiry) -> Vec<Overdue> {
    let mut overdue = to_end(holders, |age| age.checked_sub(expiry.after).map(Some));
    overdue.sort_by_key(|overdue| Reverse(overdue.by));
    overdue
}

/// These holders, each process once, however old they are.
pub fn chosen(holders: &[Holder]) -> Vec<Overdue> {
    to_end(holders, |_| Some(None))
}

/// The holders that have ended, and whose slots stay taken.
pub fn lingering(holders: &[Holder]) -> Vec<Overdue> {
    let one = |holder: &Holder| {
        let (pid, _) = holder.pid.zip(holder.lingers_until)?;
        let elsewhere = holder.host.clone().filter(|_| holder.taken.is_none());
        let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
        let (holder, job, with) = (holder.clone(), Ok(pid), Vec::new());
        Some(Overdue { holder, pid, elsewhere, by: None, slots, job, may_be_signalled: true, with })
    };
    each_once(holders.iter().filter_map(one))
}

/// The holders to end, each process once, by their age; it determines by how much they are overdue.
fn to_end(holders: &[Holder], by: impl Fn(Duration) -> Option<Option<Duration>>) -> Vec<Overdue> {
    let Some(now) = process::since_boot() else { return Vec::new() };
    let one = |holder: &Holder| {
        let (age, elsewhere) = match (holder.taken, holder.since, &holder.host) {
            // Its program has ended.
            _ if holder.lingers_until.is_some() => return None,
            (Some(taken), ..) => (now.saturating_sub(taken), None),
            (None, Some(since), Some(host)) => {
                (SystemTime::now().duration_since(since).unwrap_or_default(), Some(host.clone()))
            }
            (None, ..) => return None,
        };
        let (pid, by) = (holder.pid?, by(age)?);
        let job = Ok(holder.keeper.unwrap_or(pid));
        let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
        let holder = holder.clone();
        Some(Overdue { holder, pid, elsewhere, by, slots, job, may_be_signalled: true, with: Vec::new() })
    };
    // All members of a group are ended, or none: a remaining one keeps its slots.
    let groups = holders.iter().filter(|holder| !holder.others.is_empty());
    let spared = groups.filter(|holder| holder.all().any(|member| one(member).is_none()));
    let spared: BTreeSet<_> = spared.flat_map(Holder::all).map(process_of).collect();
    let is_meant = |holder: &&Holder| !holder.all().any(|member| spared.contains(&process_of(member)));
    each_once(holders.iter().filter(is_meant).filter_map(|holder| {
        let with: Option<Vec<Overdue>> = holder.others.iter().map(one).collect();
        let (found, with) = one(holder).zip(with)?;
        Some(Overdue { with, ..found })
    }))
}

/// The process of a holder, with its host if that is another one.
fn process_of(holder: &Holder) -> (Option<i32>, Option<&str>) {
    (holder.pid, holder.host.as_deref().filter(|_| holder.taken.is_none()))
}

/// Each process once, with all its slots, and with all that share one of them.
fn each_once(found: impl Iterator<Item = Overdue>) -> Vec<Overdue> {
    let mut all: Vec<Overdue> = Vec::new();
    for found in found {
        let is_known = |other: &Overdue, one: &Overdue| other.all().any(|known| known.is_same(one));
        match all.iter_mut().find(|other| found.all().any(|one| is_known(other, one))) {
            Some(same) => {
                same.slots = same.slots.saturating_add(found.slots);
                let others: Vec<Overdue> = found.each().filter(|one| !is_known(same, one)).collect();
                same.with.extend(others);
            }
            None => all.push(found),
        }
    }
    all
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
    /// Those that other living members had before.
    joined: Vec<u64>,
}

impl Held {
    pub(super) fn of(table: &Table, slots: &[u64]) -> Self {
        let (table, slots, joined) = (table.clone(), slots.to_vec(), Vec::new());
        Self { table, slots, share: None, member: None, joined }
    }

    pub(super) fn shared(table: &Table, slots: &[u64], share: u64) -> Self {
        let (table, slots, joined) = (table.clone(), slots.to_vec(), Vec::new());
        Self { table, slots, share: Some(share), member: None, joined }
    }

    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// Those of them that other living members had before.
    pub fn joined(&self) -> &[u64] {
        &self.joined
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// They stay taken until this time, although the program has ended.
    pub fn linger(&self, until: Option<SystemTime>) {
        if let Some((member, _)) = &self.member {
            self.table.lingers(&self.slots, *member, until);
        }
    }

    /// The group that has them.
    pub fn group(&self) -> Option<&Group> {
        self.member.as_ref().map(|(_, group)| group)
    }

    /// Those of them that others of the group have too.
    pub fn shared_with_others(&self) -> Vec<u64> {
        let state = self.table.state().borrow();
        let is_shared = |slot: &&u64| state.groups.get(slot).is_some_and(|of| of.members.len() > 1);
        let own = self.slots.iter().filter(|_| self.member.is_some());
        own.filter(is_shared).copied().collect()
    }

    /// Releases the slots that others of the group have too. The rest is not the group's any more, so that no
    /// launch joins it.
    pub fn leave_group(&mut self) {
        let shared = self.shared_with_others();
        let Some((member, _)) = self.member.take() else { return };
        let mut state = self.table.state().borrow_mut();
        self.slots.retain(|slot| {
            let is_last = !shared.contains(slot);
            if is_last {
                state.groups.remove(slot);
            } else {
                state.give_back(*slot, Some(member));
            }
            is_last
        });
    }

    /// A slot of the table has another number now. Returns whether it is one of these.
    pub fn follow(&mut self, slot: u64, another: u64) -> bool {
        let own = self.slots.iter_mut().find(|own| **own == slot);
        own.map(|own| *own = another).is_some()
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

    /// Whether a nested launch uses one of them, which are not an ancestor's, too.
    pub fn is_used_below(&self) -> bool {
        let state = self.table.state().borrow();
        !self.is_shared() && self.slots.iter().any(|slot| state.shared.contains_key(slot))
    }

    /// Releases the slots.
    pub fn release(&mut self) {
        let mut state = self.table.state().borrow_mut();
        for slot in self.slots.drain(..) {
            match self.share {
                None => state.give_back(slot, self.member.as_ref().map(|(number, _)| *number)),
                Some(share) if state.shared.get(&slot) == Some(&share) => drop(state.shared.remove(&slot)),
                Some(_) => {}
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::terms::ExpireKill;
    use std::time::UNIX_EPOCH;

    const EXPIRY: Expiry =
        Expiry { after: Duration::from_millis(1), grace: Duration::ZERO, kill: ExpireKill::Process };

    fn holder(slot: u64, host: &str, since: u64) -> Holder {
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(since));
        Holder { pid: Some(7), host: Some(host.to_owned()), since, ..Holder::unknown(slot..=slot) }
    }

    #[test]
    fn a_process_of_another_host_is_not_that_of_the_same_number_here() {
        let here = Holder { taken: Some(Duration::ZERO), keeper: Some(7), ..holder(1, "lab1", 5) };
        let found =
            overdue(&[here, holder(2, "lab2", 5), holder(3, "lab2", 5), holder(4, "lab3", 6)], &EXPIRY);
        let mut found: Vec<_> = found.into_iter().map(|overdue| (overdue.elsewhere, overdue.slots)).collect();
        found.sort();
        let there = |host: &str| Some(host.to_owned());
        assert_eq!(found, [(None, 1), (there("lab2"), 2), (there("lab3"), 1)]);
    }

    #[test]
    fn the_longest_overdue_is_the_first() {
        // Times since the boot of the host, which was long enough ago.
        let taken = |slot: u64, milliseconds| Holder {
            pid: i32::try_from(slot).ok(),
            keeper: i32::try_from(slot).ok(),
            taken: Some(Duration::from_millis(milliseconds)),
            ..Holder::unknown(slot..=slot)
        };
        let found = overdue(&[taken(1, 2), taken(2, 0), taken(3, 1)], &EXPIRY);
        let found: Vec<i32> = found.iter().map(Overdue::process).collect();
        assert_eq!(found, [2, 3, 1]);
    }

    #[test]
    fn whoever_is_of_the_future_is_not_overdue() {
        assert_eq!(overdue(&[holder(1, "lab2", 1 << 40)], &EXPIRY), []);
    }
}
