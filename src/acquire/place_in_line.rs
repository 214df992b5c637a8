//! The position of a waiting launch: one number for all its queues. It has a position under this number in
//! every table that it could need, and waits in some of the queues. It is kept while the launch is evaluated
//! again.

use std::time::{Duration, Instant, SystemTime};

use super::{
    AcquireContext, Blocked, Clocks, HEARTBEAT_INTERVAL, Line, LivenessTracker, QueuePosition, Refused,
    Unmet, Unwaited, WaitCheck, Wants,
};
use crate::keeper::{Class, KeeperError, Number, PATIENCE, TableId, memory, place::Place, table::Table};

/// After it had to leave a queue this many times without being served, a launch waits in all of its queues.
const MOVES: u32 = 8;

/// How long a launch may keep slots idle that others wait for, because it waits in all of its queues.
const LONGEST_IDLE: Duration = Duration::from_secs(10);

/// How soon a launch that was kept out of its queue tries again to join it.
const FIRST_TRY: Duration = Duration::from_millis(5);

/// How many numbers other processes have blocked by locking their positions.
const MOST_NUMBERS: usize = 10_000;

/// A launch's position in the order of arrival, kept over several decisions.
#[derive(Default)]
pub struct PlaceInLine {
    pub(super) number: Option<Number>,
    /// Whether it got its number before it waited in any queue.
    pub(super) is_ahead_of_time: bool,
    /// When it first waited.
    pub(super) since: Option<SystemTime>,
    /// A position in each of the tables.
    pub(super) places: Vec<Place>,
    /// Open while the launch waits: closing one would give up the position in it.
    pub(super) tables: Vec<Table>,
    pub(super) liveness: LivenessTracker,
    /// How long it has waited in each of its queues.
    pub(super) clocks: Clocks,
    /// Queues that it found full when it came.
    shut: Vec<TableId>,
    /// When its time is over, as far as it is known.
    pub(super) over: Option<Instant>,
    /// Whether it has waited for another keeper.
    has_waited_elsewhere: bool,
    moves: u32,
    pub(super) idle_since: Option<Instant>,
    /// How often in a row it was kept out of its own queue, and when it tries again to join it.
    kept_out: u32,
    pub(super) tries_again: Option<Instant>,
}

impl PlaceInLine {
    /// Sends a heartbeat to the queues in which it waits.
    pub fn beat(&mut self) -> Result<(), KeeperError> {
        self.places.iter_mut().try_for_each(Place::beat)
    }

    /// When its time is over; none if that never comes, or is unknown.
    pub fn time_is_over_at(&self) -> Option<Instant> {
        self.over
    }

    /// When it first waited.
    pub fn since(&self) -> Option<SystemTime> {
        self.since
    }

    /// Its claims may have new waits. If one of them is already over, it ends the wait only after a while.
    pub fn spare(&mut self, longest: Duration) {
        self.clocks.spare(longest, self.over);
    }

    pub(super) fn waits(&self, asker: &AcquireContext<'_>) -> WaitCheck<'_> {
        WaitCheck {
            position: self.position(asker),
            is_new: self.is_new(),
            uid: asker.launch.uid,
            clocks: &self.clocks,
            shut: &self.shut,
        }
    }

    /// Whether it has waited in no queue yet.
    pub fn is_new(&self) -> bool {
        self.number.is_none() || self.is_ahead_of_time
    }

    pub(super) fn is_in_line(&self) -> bool {
        !self.places.is_empty()
    }

    /// The launch has waited for another keeper. So it is no newcomer here, although it has no place.
    pub(super) fn waited_elsewhere(&mut self) {
        self.has_waited_elsewhere = true;
    }

    /// Whether it has waited, here or elsewhere. A newcomer gives up sooner.
    pub(super) fn is_waiter(&self) -> bool {
        self.has_waited_elsewhere || self.is_in_line()
    }

    /// Whether it waits in a queue now.
    pub(super) fn stands(&self) -> bool {
        self.places.iter().any(|place| !place.classes().is_empty())
    }

    pub(super) fn position(&self, asker: &AcquireContext<'_>) -> QueuePosition<'_> {
        QueuePosition { number: self.number, generation: asker.generation, liveness: Some(&self.liveness) }
    }

    /// How long it waits for the locks of tables at a time.
    pub(super) fn patience(&self, deadline: Option<Instant>) -> Duration {
        let longest = if self.is_waiter() { HEARTBEAT_INTERVAL } else { PATIENCE };
        deadline.map_or(longest, |deadline| deadline.saturating_duration_since(Instant::now()).min(longest))
    }

    /// Keeps its places in these tables, and gives up those in others.
    pub(super) fn keep(&mut self, wants: &Wants<'_>) {
        let is_wanted = |place: &Place| wants.tables.values().any(|table| table.has(place));
        self.places.retain(is_wanted);
        self.tables = wants.tables.values().cloned().collect();
    }

    /// Gives up everything.
    pub fn leave(&mut self) {
        self.places.clear();
        self.tables.clear();
        self.number = None;
        self.is_ahead_of_time = false;
        self.clocks.run(&[]);
    }

    /// Its turn has come, and it is to wait for another keeper. If it had to leave its queues too often, it
    /// stays there meanwhile, and launches behind it leave it what is free. Returns whether it stays.
    pub(super) fn stays_meanwhile(&mut self) -> bool {
        let stays = self.stands() && self.moves >= MOVES;
        if stays {
            // Nothing blocks it there, so the waits of its claims do not pass.
            self.clocks.run(&[]);
            (self.over, self.tries_again) = (None, None);
            self.idle_since.get_or_insert_with(Instant::now);
        }
        stays
    }

    /// Sends a heartbeat to the queues where it stays meanwhile. It leaves them once it has kept slots idle
    /// for too long.
    pub(super) fn beat_meanwhile(&mut self) -> Result<(), KeeperError> {
        match self.idle_since {
            Some(since) if since.elapsed() > LONGEST_IDLE => {
                self.step_aside()?;
                self.moves = 0;
                Ok(())
            }
            Some(_) => self.beat(),
            None => Ok(()),
        }
    }

    /// Waits in no queue any more. It keeps its places: if it waits again, it comes with its old number.
    pub fn step_aside(&mut self) -> Result<(), KeeperError> {
        self.moves = self.moves.saturating_add(u32::from(self.stands()));
        self.clocks.run(&[]);
        (self.over, self.tries_again, self.idle_since) = (None, None, None);
        self.places.iter_mut().try_for_each(|place| place.stand(&[]))
    }

    /// Gives the launch a position in all tables, and lets it wait in the queues that block it. If it had to
    /// leave a queue too often, it waits in all of its queues. Where it waits in several classes, others see
    /// the highest: no launch that passes this one waits behind another. The tables are locked.
    pub(super) fn stand(
        &mut self,
        wants: &Wants<'_>,
        generation: u16,
        blocked: &Blocked<'_>,
    ) -> Result<(), KeeperError> {
        if self.is_new() {
            self.is_ahead_of_time = false;
            self.since = self.since.or_else(|| Some(SystemTime::now()));
            let refused = blocked.unmet.iter().flat_map(Unmet::claims);
            let is_shut = |refused: &&Refused<'_>| refused.unwaited.is_some_and(Unwaited::is_queue);
            self.shut = refused.filter(is_shut).map(|refused| refused.table).collect();
        }
        self.take_places(wants)?;
        self.clocks.run(&blocked.lines.iter().map(|line| line.table).collect::<Vec<_>>());
        let class = |line: &Line| {
            let generation = wants.generation_on(line.table, generation);
            (line.table, Class { generation, capacity: line.capacity })
        };
        let blocking: Vec<(TableId, Class)> = blocked.lines.iter().map(class).collect();
        let standing = self.standing(wants);
        let mut lines = blocking.clone();
        let is_idle = standing.iter().any(|line| !blocking.contains(line));
        self.moves = self.moves.saturating_add(u32::from(is_idle));
        if self.moves < MOVES || !is_idle {
            self.idle_since = None;
        } else if self.idle_since.get_or_insert_with(Instant::now).elapsed() > LONGEST_IDLE {
            // In a table that does not block it, launches behind it could not use the room.
            self.idle_since = None;
            self.moves = 0;
        } else {
            let is_wanted = |line: &&(TableId, Class)| wants.choices().any(|choice| choice.table == line.0);
            lines.extend(standing.iter().filter(is_wanted));
        }
        let on = |table: &Table| -> Option<Class> {
            let in_force = wants.generation_on(table.id(), generation);
            let classes = lines.iter().filter(|(id, _)| *id == table.id()).map(|(_, class)| *class);
            classes.max_by_key(|class| (class.generation == in_force, class.capacity))
        };
        // It leaves first, so that no launch sees it in more queues than it waits in.
        let mut tables: Vec<&Table> = wants.tables.values().collect();
        tables.sort_by_key(|table| on(table).is_some());
        let mut is_kept_out = false;
        for table in tables {
            let class = on(table);
            let place = self.places.iter_mut().find(|place| table.has(place));
            if let Some(place) = place {
                place.stand(class.as_slice())?;
                if class.is_some() {
                    let claims = wants.claims_on(table.id());
                    place.wants(claims.iter().map(|claim| claim.amount.wanted()).max().unwrap_or(1))?;
                }
                is_kept_out |= class.is_some_and(|class| !place.classes().contains(&class));
            }
        }
        self.note_kept_out(is_kept_out);
        Ok(())
    }

    /// A process that slept on the byte of a position has its lock for a moment when it wakes. One that locks
    /// it on purpose may keep it for ever. Outside of its queue a launch would be overtaken, so it tries
    /// again soon, and then less and less often.
    fn note_kept_out(&mut self, is_kept_out: bool) {
        self.kept_out = if is_kept_out { self.kept_out.saturating_add(1) } else { 0 };
        let rest =
            FIRST_TRY.saturating_mul(1 << self.kept_out.saturating_sub(1).min(10)).min(HEARTBEAT_INTERVAL);
        self.tries_again = is_kept_out.then(|| Instant::now() + rest);
    }

    pub(super) fn standing(&self, wants: &Wants<'_>) -> Vec<(TableId, Class)> {
        let of = |table: &Table| {
            let place = self.places.iter().find(|place| table.has(place));
            let classes = place.map_or(&[][..], Place::classes).to_vec();
            classes.into_iter().map(|class| (table.id(), class)).collect::<Vec<_>>()
        };
        wants.tables.values().flat_map(of).collect()
    }

    /// The same number in all tables: one more than the highest in any of them, so that every wait points to
    /// a smaller one. A launch that needs other tables than before keeps its number, or takes the next one
    /// that is free in all.
    pub(super) fn take_places(&mut self, wants: &Wants<'_>) -> Result<(), KeeperError> {
        let has_place = |table: &Table| self.places.iter().any(|place| table.has(place));
        if wants.tables.values().all(has_place) {
            return Ok(());
        }
        let mut number = match self.number {
            Some(number) => number,
            None => {
                let highest = wants.tables.values().map(Table::highest_place);
                let highest = highest.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().max();
                highest.unwrap_or(Number(0)).next()
            }
        };
        for _ in 0..MOST_NUMBERS {
            if let Some(places) = self.places_under(wants, number)? {
                // Positions under another number are removed only now.
                self.places.retain(|_| self.number == Some(number));
                self.places.extend(places);
                self.number = Some(number);
                return Ok(());
            }
            number = number.next();
        }
        match wants.tables.values().next() {
            Some(table) => Err(table.has_no_place()),
            None => Ok(()),
        }
    }

    /// Adds a position under this number in all tables without one; none if another launch has the number in
    /// one of them.
    pub(super) fn places_under(
        &self,
        wants: &Wants<'_>,
        number: Number,
    ) -> Result<Option<Vec<Place>>, KeeperError> {
        let is_same = self.number == Some(number);
        let mut places = Vec::new();
        for table in wants.tables.values() {
            if is_same && self.places.iter().any(|place| table.has(place)) {
                continue;
            }
            match table.take_place(number)? {
                Some(place) => places.push(place),
                None => return Ok(None),
            }
        }
        Ok(Some(places))
    }
}

// A position in the queue that outlives its keeper: converted into a form that can be saved, and created
// again from it.

/// One of the tables in which a launch has a place.
pub struct PlaceInTable {
    pub table: memory::Table,
    /// The classes in which it waits there; none if it only keeps its number.
    pub classes: Vec<Class>,
    /// For how long it has waited there.
    pub longest: Duration,
    /// How many slots it wants there, if that is known.
    pub wants: Option<u64>,
}

impl PlaceInLine {
    /// Its position in memory, if it has one.
    pub fn saved(&self) -> Vec<PlaceInTable> {
        let in_memory = self.places.iter().filter_map(|place| match place {
            Place::Memory(place) => Some(place),
            Place::File(_) => None,
        });
        let saved = in_memory.map(|place| {
            let table = place.table().clone();
            let longest = self.clocks.stood(Table::Memory(table.clone()).id());
            PlaceInTable { table, classes: place.classes().to_vec(), longest, wants: place.wanted() }
        });
        saved.collect()
    }

    /// The same position as before. The position is lost if another launch has got the number.
    pub fn again(number: Number, since: Option<SystemTime>, saved: &[PlaceInTable]) -> Self {
        let mut place = Self::default();
        place.come_as(number);
        place.since = since;
        for PlaceInTable { table, classes, longest, wants } in saved {
            let Some(mut own) = table.take_place(number) else { continue };
            own.stand(classes);
            if let Some(wants) = wants {
                own.wants(*wants);
            }
            let shared = Table::Memory(table.clone());
            place.clocks.goes_on(shared.id(), *longest, !classes.is_empty());
            place.tables.push(shared);
            place.places.push(Place::Memory(own));
        }
        place
    }
}
