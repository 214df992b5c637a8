//! For a keeper that owns all its tables and serves many launches from one thread: it checks everything once,
//! and never sleeps. A launch that must wait is in the queue when this returns, and is judged again when
//! something has happened.

use super::{
    AcquireContext, Acquisition, Decided, Eviction, Grant, Known, PlaceInLine, QueuePosition, Refusal,
    Refused, blocked::leaves_room, waiting::earlier,
};
use crate::{
    judge::terms::Demand,
    keeper::{KeeperError, Number, WaitingProcess, held::Held, memory, place::Place, table::Table},
};
use std::time::{Duration, Instant, SystemTime};

/// The result of a look.
pub enum AtOnce<'c> {
    /// Everything was taken. The launch still has its position in the queue.
    Granted(Grant<'c>),
    /// Nothing was taken.
    Blocked(Standing<'c>),
}

/// The state of a launch that got nothing.
pub struct Standing<'c> {
    /// What blocks it.
    pub refusal: Refusal<'c>,
    /// Whether it waits in a queue for that. If not, waiting is useless, or the launch may not wait.
    pub waits: bool,
    /// When the time of one of its claims is over, or that of the launch.
    pub next: Option<Instant>,
}

impl<'c> Standing<'c> {
    /// Holders that must be ended for it, and how, and those of the known ones whose end is still of use.
    pub fn to_end(&self, known: &Known<'_>) -> Result<Vec<Eviction<'c>>, KeeperError> {
        let (chosen, makes_room) = known.choose(&self.refusal.unmet, SystemTime::now())?;
        Ok(if makes_room { chosen } else { Vec::new() })
    }

    /// Whether it leaves free slots to older launches that would be enough for it.
    pub fn leaves_room(&self) -> Result<bool, KeeperError> {
        leaves_room(&self.refusal.unmet)
    }
}

/// Acquires everything if it is available. Otherwise puts the launch into the queues that block it, for as
/// long as its claims may wait, and until `deadline`.
pub fn at_once<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
    place: &mut PlaceInLine,
    deadline: Option<Instant>,
) -> Result<AtOnce<'c>, KeeperError> {
    let mut acquisition = Acquisition::open(demands, asker, &place.tables)?;
    place.keep(&acquisition.wants);
    let position = match place.number {
        Some(_) => place.position(asker),
        None => QueuePosition::newcomer(asker.generation, None),
    };
    let (decided, locked) = acquisition.attempt(position, Duration::ZERO)?;
    let mut blocked = match decided {
        Decided::Granted(grant) => return Ok(AtOnce::Granted(grant)),
        Decided::Blocked(blocked) => blocked,
    };
    place.waits(asker).mark(&acquisition.wants, &mut blocked)?;
    if position.number.is_none() {
        blocked.fail_without_sample()?;
    }
    if !asker.keepers.memory.ancestry().is_nobody() {
        blocked.look_for_ancestors(asker)?;
    }
    let waits = !blocked.is_final() && !blocked.is_unwaited() && !place.clocks.is_after(deadline);
    if waits {
        place.keep(&acquisition.wants);
        place.stand(&acquisition.wants, asker.generation, &blocked)?;
        place.over = place.clocks.next(&blocked);
    }
    drop(locked);
    let next = earlier(place.clocks.next(&blocked), deadline);
    let refusal = Refusal { unmet: blocked.unmet, waited: None };
    Ok(AtOnce::Blocked(Standing { refusal, waits, next }))
}

impl PlaceInLine {
    /// Uses a number that another process assigned, unless it has one.
    pub fn come_as(&mut self, number: Number) {
        self.number = self.number.or(Some(number));
    }

    /// Uses a number until it waits in a queue; before that it may get another one. It finds queues full like
    /// every newcomer.
    pub fn begin_as(&mut self, number: Number) {
        if self.is_new() {
            (self.number, self.is_ahead_of_time) = (Some(number), true);
        }
    }

    /// The places in memory under which it waits.
    pub fn standing_in(&self) -> impl Iterator<Item = &memory::Place> {
        let in_memory = self.places.iter().filter_map(|place| match place {
            Place::Memory(place) => Some(place),
            Place::File(_) => None,
        });
        in_memory.filter(|place| !place.classes().is_empty())
    }

    /// Its number, if it has one.
    pub fn number(&self) -> Option<Number> {
        self.number
    }

    /// How many places it has.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// The tables in memory in which it may have a place.
    pub fn tables(&self) -> Vec<memory::Table> {
        self.tables.iter().filter_map(Table::in_memory).cloned().collect()
    }

    /// Sets the time for the launch, until it is set again.
    pub fn imagine(&mut self, now: Instant) {
        self.clocks.imagine(now);
    }

    /// Says which process waits there, if that is not this one.
    pub fn belongs_to(&mut self, process: &WaitingProcess) {
        self.places.iter_mut().for_each(|place| place.belongs_to(process));
    }

    /// Sets the connection that serves the launch, in all tables in memory.
    pub fn serve_in(&self, session: u64) {
        self.places.iter().for_each(|place| place.serve_in(session));
    }

    /// Sets whether the launch responds. One that does not is passed over, and keeps its position.
    pub fn set_away(&mut self, is_away: bool) {
        self.places.iter_mut().for_each(|place| place.set_away(is_away));
    }
}

impl Refusal<'_> {
    /// The number of launches ahead of this number, in the queue of the first claim that blocks it.
    pub fn ahead(&self, number: Option<Number>) -> usize {
        let line = self.claims().find_map(Refused::table_of_line);
        line.and_then(Table::in_memory).map_or(0, |table| table.count_ahead(number))
    }
}

impl Grant<'_> {
    /// The held slots, for a keeper that keeps them for others.
    pub fn into_held(self) -> Vec<Held> {
        self.held
    }

    /// When it was acquired, and the previous recorded starts, in the order of the held slots.
    pub fn stamps(&self) -> (std::time::SystemTime, &[Option<std::time::SystemTime>]) {
        (self.started, &self.before)
    }
}
