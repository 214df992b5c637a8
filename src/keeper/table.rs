//! One table of slots, open. The claim's location selects its keeper once.

use std::{
    mem,
    rc::Rc,
    thread,
    time::{Duration, SystemTime},
};

use super::{
    BaseDirectories, Client, Ending, EvictionOutcome, Extent, Header, Heartbeat, Holder, KeeperError, Known,
    LockPath, Look, Means, MutexGuard, Number, Occupancy, Overdue, RepositoryError, Span, View, Vouched,
    Waiter, Woken,
    file::{
        expiry,
        file::{LockFile, Opening},
        held, holder,
        layout::slot_bytes,
        line,
    },
    held::Held,
    hint, memory,
    outside::{NoSample, Sample},
    place::Place,
};
use crate::{
    judge::terms::{AgentLocation, Claim, Expiry, Group, Hold, Launch, Location, Outside, Runs, Seats},
    sys::{Bytes, FileId, Inherited, process, record_lock::locks_shown_by},
};

/// What the keepers need of this process.
#[derive(Clone, Debug)]
pub struct Keepers<'a> {
    /// The descriptors that the caller left open.
    pub inherited: &'a Inherited,
    /// The tables in memory.
    pub memory: memory::Store,
}

impl<'a> Keepers<'a> {
    /// With tables in memory that only this process has.
    pub fn of(inherited: &'a Inherited) -> Self {
        Self { inherited, memory: memory::Store::default() }
    }

    /// Opens the table of a claim to take slots of it.
    pub fn open(
        &self,
        claim: &Claim,
        launch: &Launch<'_>,
        bases: &BaseDirectories,
    ) -> Result<Table, KeeperError> {
        Ok(match &claim.location {
            Location::File(file) => {
                let opening = Opening { inherited: self.inherited, hold: launch.hold, bases };
                Table::File(Rc::new(LockFile::open_to_lock(&LockPath::of(file), &file.creation, &opening)?))
            }
            Location::Agent(_) => unreachable!("the agent grants its slots itself"),
            Location::Memory(name) => Table::Memory(self.memory.table(name)),
        })
    }

    /// Opens it only to look. A lock file that does not exist is an unused table.
    pub fn look(&self, claim: &Claim) -> Result<Table, KeeperError> {
        Ok(match &claim.location {
            Location::File(file) => match LockFile::open_to_read(&LockPath::of(file))? {
                Some(file) => {
                    let file = Rc::new(file);
                    // To close it would drop these locks.
                    if self.inherited.may_carry_locks_of_the_process(file.id()) {
                        mem::forget(Rc::clone(&file));
                    }
                    Table::File(file)
                }
                None => Table::Memory(self.memory.unused()),
            },
            Location::Agent(AgentLocation { table, .. }) => {
                let tables = Client::connect()?.look(vec![table.clone()])?;
                let seen = tables.iter().find(|seen| seen.name == *table);
                Table::Memory(seen.map_or_else(|| self.memory.unused(), |seen| seen.to_memory(&self.memory)))
            }
            Location::Memory(name) => Table::Memory(self.memory.table(name)),
        })
    }
}

/// Which table it is. Tables are locked in this order, the same for every launch. So launches cannot wait for
/// each other in a circle.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TableId {
    /// A lock file, by device and inode.
    File(FileId),
    /// A table in memory, by its number.
    Memory(usize),
}

#[derive(Clone)]
pub enum Table {
    File(Rc<LockFile>),
    Memory(memory::Table),
}

/// A table that no other code can change until this is dropped.
#[must_use = "the table is unlocked when this is dropped"]
pub enum TableGuard {
    /// The mutex of a lock file.
    File(MutexGuard),
    /// There is only this process.
    Memory,
}

impl Table {
    /// Whether these slots of it are an ancestor's.
    pub fn is_shared_by(&self, held: &Held) -> bool {
        match (held, self) {
            (Held::File(held), Self::File(file)) => held.is_shared() && Rc::ptr_eq(held.file(), file),
            (Held::Memory(held), Self::Memory(table)) => held.is_shared() && held.table().is(table),
            (Held::File(_) | Held::Agent(_) | Held::Memory(_), _) => false,
        }
    }

    pub fn id(&self) -> TableId {
        match self {
            Self::File(file) => TableId::File(file.id()),
            Self::Memory(table) => TableId::Memory(table.number()),
        }
    }

    /// The table in memory, if it is one.
    pub fn in_memory(&self) -> Option<&memory::Table> {
        match self {
            Self::File(_) => None,
            Self::Memory(table) => Some(table),
        }
    }

    /// Locks it against changes by others, and waits at most this long for the lock.
    pub fn lock(&self, longest: Duration) -> Result<TableGuard, KeeperError> {
        Ok(match self {
            Self::File(file) => TableGuard::File(MutexGuard::lock(file, longest)?),
            Self::Memory(_) => TableGuard::Memory,
        })
    }

    /// Whether the claim's location still leads here.
    pub fn is_still_at(&self, location: &Location) -> bool {
        match (self, location) {
            (Self::File(file), Location::File(location)) => file.is_still_at(&LockPath::of(location)),
            (Self::Memory(table), Location::Memory(name)) => table.is_called(name),
            (Self::File(_) | Self::Memory(_), _) => false,
        }
    }

    /// Looks at it.
    pub fn view(&self) -> Result<View<'_>, KeeperError> {
        Ok(match self {
            Self::File(file) => View::File(super::file::view::View::of(file)?),
            Self::Memory(table) => View::Memory(table),
        })
    }

    /// Holds slots that were proved to be free, and shares those of its group; none if another program has
    /// taken one of them nevertheless. If their holder can become overdue, is taken off a sample, or a
    /// supervisor keeps them, it is proved from now on that this process is the one.
    pub fn take(
        &self,
        seats: &Seats,
        group: Option<&Group>,
        launch: &Launch<'_>,
        is_guarded: bool,
    ) -> Result<Option<Held>, KeeperError> {
        Ok(match self {
            Self::File(file) => {
                let mut held = held::Held::nothing_of(file, launch.hold);
                if !held.take(seats, group)? {
                    return Ok(None);
                }
                // A supervisor holds its slots by a description, which proves nothing.
                if is_guarded || launch.hold >= Hold::Supervisor {
                    held.guard()?;
                }
                Some(Held::File(held))
            }
            Self::Memory(table) => table.take_with(seats, group).map(Held::Memory),
        })
    }

    /// Tries to use an ancestor's slots for these claims on this table.
    pub fn join(
        &self,
        claims: &[&Claim],
        launch: &Launch<'_>,
        keepers: &Keepers<'_>,
    ) -> Result<Option<Held>, KeeperError> {
        Ok(match self {
            Self::File(file) => held::join(file, claims, launch, keepers.inherited)?.map(Held::File),
            Self::Memory(table) => table.join(claims, launch, keepers.memory.ancestry()).map(Held::Memory),
        })
    }

    /// Whether [`Table::join`] would find slots to use now.
    pub fn could_join(
        &self,
        claims: &[&Claim],
        launch: &Launch<'_>,
        keepers: &Keepers<'_>,
    ) -> Result<bool, KeeperError> {
        Ok(match self {
            Self::File(file) => held::could_join(file, claims, launch, keepers.inherited)?,
            Self::Memory(table) => table.slots_to_join(claims, launch, keepers.memory.ancestry()).is_some(),
        })
    }

    /// The held slots, and whether these are all; continues an earlier scan.
    pub fn occupancy(&self, seen: Option<Look>, means: Means) -> Result<(Occupancy, bool), KeeperError> {
        Ok(match self {
            Self::File(file) => {
                let mut look = seen.unwrap_or_else(Look::at_slots);
                let extent = look.advance(file, u64::MAX, means)?;
                (look.occupancy(), extent == Extent::All)
            }
            Self::Memory(table) => (table.occupancy(), true),
        })
    }

    /// The holders of an occupancy.
    pub fn holders(&self, occupancy: &Occupancy) -> Result<Vec<Holder>, KeeperError> {
        Ok(match self {
            Self::File(file) => holder::holders(file, occupancy)?,
            Self::Memory(table) => table.holders(occupancy),
        })
    }

    /// The holders whose user and age the kernel, or the agent, vouches for.
    pub fn vouched(&self, occupancy: &Occupancy) -> Result<Vec<Vouched>, KeeperError> {
        Ok(match self {
            Self::File(file) => expiry::vouched(file, occupancy)?,
            Self::Memory(table) => table.vouched(occupancy),
        })
    }

    /// The last sample of use outside rungate.
    pub fn sample(&self, outside: &Outside) -> Result<Rc<Sample>, NoSample> {
        let imagined = self.in_memory().and_then(memory::Table::imagined);
        imagined.map_or_else(|| Sample::read(outside).map(Rc::new), Ok)
    }

    /// The same for people: with a search for holders without a record. `/proc` is asked about a limited
    /// number of processes with a lock of their own.
    pub fn known_holders(&self, occupancy: &Occupancy, most_asked: usize) -> Result<Known, KeeperError> {
        Ok(match self {
            Self::File(file) => {
                let mut known = holder::known_holders(file, occupancy, most_asked)?;
                holder::search(file, &mut known.holders);
                known
            }
            Self::Memory(_) => Known { holders: self.holders(occupancy)?, others: 0 },
        })
    }

    /// Whether this process and its ancestors hold all slots of an occupancy, and there are any. Slots of a
    /// description are held by every process that has a descriptor of it, this one included.
    pub fn is_held_by_ancestors(
        &self,
        occupancy: &Occupancy,
        claim: &Claim,
        launch: &Launch<'_>,
        keepers: &Keepers<'_>,
    ) -> Result<bool, KeeperError> {
        let file = match self {
            Self::File(file) => file,
            Self::Memory(table) => return Ok(table.is_held_by_ancestor(occupancy, keepers.memory.ancestry())),
        };
        let above: Vec<&Runs> = hint::slots_above(&[claim], launch).collect();
        let lineage: Vec<i32> = process::own_lineage().collect();
        let is_strange = |span: &Span| span.pid.is_some_and(|pid| !lineage.contains(&pid));
        if occupancy.spans().is_empty() || occupancy.spans().iter().any(is_strange) {
            return Ok(false);
        }
        // One after the other: mostly the first already belongs to another process, and there may be
        // thousands.
        for span in occupancy.spans() {
            let holders = holder::holders(file, &Occupancy::of(vec![span.clone()]))?;
            // A record stays when its process has closed the descriptor, and a child keeps the slot. A user
            // who can open the file can write that a process which cannot be inspected has the slot. So the
            // kernel must say it too, or the environment of this launch.
            let is_above = |slot| above.iter().any(|above| above.has(slot));
            let keeps = |keeper: i32, slot: u64, slots: &Bytes| match locks_shown_by(keeper, file.id()) {
                Ok(shown) => shown.iter().any(|(_, bytes)| bytes.contains(slots.start())),
                Err(_) => span.pid == Some(keeper) || is_above(slot),
            };
            let is_kin = |Holder { keeper, slots: (first, last), .. }: &Holder| {
                let slots = slot_bytes(*first, *last);
                keeper.is_some_and(|keeper| lineage.contains(&keeper) && keeps(keeper, *first, &slots))
                    || held::is_inherited(file, &slots, keepers.inherited)
            };
            if !holders.iter().all(is_kin) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The user of the launch whose start was recorded at `start`, if that is still known.
    pub fn who_started(&self, start: SystemTime) -> Result<Option<u32>, KeeperError> {
        Ok(match self {
            Self::File(file) => holder::who_started(file, &Header::read(file)?, start)?,
            Self::Memory(table) => table.who_started(start),
        })
    }

    /// The overdue among holders: first those that can be ended, the longest overdue first.
    pub fn overdue(
        &self,
        holders: &[Holder],
        expiry: &Expiry,
        now: SystemTime,
    ) -> Result<Vec<Overdue>, KeeperError> {
        Ok(match self {
            Self::File(file) => expiry::overdue(file, holders, expiry, now)?,
            Self::Memory(_) => memory::overdue(holders, expiry),
        })
    }

    /// Begins to end an overdue holder, or returns its outcome at once.
    pub fn begin_to_end(&self, overdue: &Overdue, expiry: &Expiry) -> Result<Ending, EvictionOutcome> {
        match self {
            Self::File(file) => Ending::begin(file, overdue, *expiry),
            // The agent ends its own holders, and tests end none.
            Self::Memory(_) => Err(EvictionOutcome::NotPermitted),
        }
    }

    /// Sends the next signal, if that is due. Returns the outcome of the holder once it is certain.
    pub fn advance(&self, ending: &mut Ending) -> Result<Option<EvictionOutcome>, KeeperError> {
        Ok(match self {
            Self::File(file) => ending.advance(file)?,
            Self::Memory(_) => Some(EvictionOutcome::NotPermitted),
        })
    }

    /// Whether a holder that is being ended is still proved to be the job.
    pub fn proves(&self, ending: &Ending) -> bool {
        match self {
            Self::File(file) => ending.is_proved(file),
            Self::Memory(_) => false,
        }
    }

    /// The outcome of a holder that is being ended, if it has released its slot.
    pub fn has_released(&self, ending: &Ending) -> Result<Option<EvictionOutcome>, KeeperError> {
        Ok(match self {
            Self::File(file) => ending.has_released(file)?,
            Self::Memory(_) => Some(EvictionOutcome::NotPermitted),
        })
    }

    /// Prepares to keep slots by the hold of this launch.
    pub fn prepare(&self, launch: &Launch<'_>) -> Result<(), KeeperError> {
        match self {
            Self::File(file) => Ok(file.prepare(launch.hold)?),
            Self::Memory(_) => Ok(()),
        }
    }

    /// For a launch that gives up because the location leads to another table again and again.
    pub fn replaced_too_often(&self) -> KeeperError {
        match self {
            Self::File(file) => RepositoryError::ReplacedTooOften { path: file.path().to_owned() }.into(),
            Self::Memory(_) => unreachable!("a table in memory is never replaced"),
        }
    }

    /// For a launch that gives up because others take slots without locking the table.
    pub fn taken_without_lock(&self) -> KeeperError {
        match self {
            Self::File(file) => RepositoryError::LockedMeanwhile { path: file.path().to_owned() }.into(),
            Self::Memory(_) => unreachable!("nobody else takes slots of a table in memory"),
        }
    }
}

// The queue of a table: its waiters, and a position in it.

impl Table {
    /// All waiters, oldest first.
    pub fn waiters(&self) -> Result<Vec<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::waiters(file)?,
            Self::Memory(table) => table.waiters(),
        })
    }

    /// The same for callers that must not overlook any.
    pub fn all_waiters(&self) -> Result<Vec<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::all_waiters(file)?,
            Self::Memory(table) => table.waiters(),
        })
    }

    /// The youngest waiter before `number`, or of all.
    pub fn youngest(&self, before: Option<Number>) -> Result<Option<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::youngest(file, before)?,
            Self::Memory(table) => table.youngest(before),
        })
    }

    /// The oldest waiter from `from` on and before `before`.
    pub fn oldest(&self, from: Number, before: Option<Number>) -> Result<Option<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::oldest(file, from, before)?,
            Self::Memory(table) => table.oldest(from, before),
        })
    }

    /// How many slots a waiter wants, if that can be seen.
    pub fn wants(&self, waiter: &Waiter) -> Option<u64> {
        match self {
            Self::File(file) => line::wants(file, waiter).ok().flatten(),
            Self::Memory(_) => waiter.wants,
        }
    }

    /// Whether it is visible that a waiter is stopped, and would not take free slots.
    pub fn is_stopped(&self, waiter: &Waiter) -> bool {
        match self {
            Self::File(_) => waiter.is_stopped(),
            Self::Memory(_) => waiter.is_away,
        }
    }

    /// Whether a waiter is alive: one that shows no new heartbeat for some seconds is not.
    pub fn pulse(&self, number: Number) -> Result<Option<Heartbeat>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::pulse(file, number)?,
            Self::Memory(table) => table.pulse(number),
        })
    }

    /// The highest number of a place; in memory also of those that have been given up.
    pub fn highest_place(&self) -> Result<Option<Number>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::highest_place(file)?,
            Self::Memory(table) => table.highest_number(),
        })
    }

    /// Takes a place; none if another launch has that number. The table must be locked.
    pub fn take_place(&self, number: Number) -> Result<Option<Place>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::Place::take(file, number)?.map(Place::File),
            Self::Memory(table) => table.take_place(number).map(Place::Memory),
        })
    }

    /// Whether a place is here.
    pub fn has(&self, place: &Place) -> bool {
        match (self, place) {
            (Self::File(file), Place::File(place)) => Rc::ptr_eq(place.file(), file),
            (Self::Memory(table), Place::Memory(place)) => place.table().is(table),
            (Self::File(_), Place::Memory(_)) | (Self::Memory(_), Place::File(_)) => false,
        }
    }

    /// Sleeps until `ahead` leaves the queue, at most this long. In memory none leaves while this process
    /// sleeps.
    pub fn sleep_behind(&self, ahead: &Waiter, longest: Duration) -> Result<Woken, KeeperError> {
        Ok(match self {
            Self::File(file) => line::sleep_behind(file, ahead, longest)?,
            Self::Memory(_) => {
                thread::sleep(longest);
                Woken::Time
            }
        })
    }

    /// For a launch that gives up because all places are taken.
    pub fn has_no_place(&self) -> KeeperError {
        match self {
            Self::File(file) => RepositoryError::LineLocked { path: file.path().to_owned() }.into(),
            Self::Memory(_) => unreachable!("nobody else takes places in memory"),
        }
    }
}
