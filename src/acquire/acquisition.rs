//! All or none. A launch opens the tables of all claims first. Once it has a lock on a lock file, it may not
//! close any descriptor of it. It locks them in one fixed order, which rules out deadlocks. Then it decides
//! everything, and takes slots only if all claims have room. If a table was replaced between opening and
//! locking, it starts over.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::{Duration, Instant, SystemTime},
};

use super::{
    AcquireContext, Allocation, Blocked, ClaimOnTable, Grant, HEARTBEAT_INTERVAL, Line, QueuePosition,
    Refusal, Room, TableView, TableViews, Wants, wants::terms_on,
};
use crate::{
    judge::terms::{Admit, Claim, Demand, NamedSlots, Runs},
    keeper::{
        BaseDirectories, Class, Entry, KeeperError, TableGuard, TableId, Waiter, held::Held, table::Table,
    },
    sys::SignalsBlocked,
};

/// How a launch's attempt to take its slots ended.
#[must_use]
pub enum Outcome<'c> {
    /// Everything was taken.
    Granted(Grant<'c>),
    /// Nothing was taken.
    Refused(Refusal<'c>),
    /// Nothing was taken: the launch must be judged again, because the observer of its wait said so.
    Interrupted,
}

/// How often everything starts over when tables are replaced, or changed by a process that does not lock
/// them.
const ATTEMPTS: usize = 50;

/// How long a launch that has locked a table waits for another one that stays locked by one process.
const MOMENT: Duration = Duration::from_millis(20);

/// The result of one look at all tables.
pub(super) enum Decided<'c> {
    Granted(Grant<'c>),
    Blocked(Blocked<'c>),
}

/// Why an attempt has to start over.
enum Disturbance {
    /// The location leads to another table now.
    Replaced(Table),
    /// Another process took a slot without locking the table.
    Taken(Table),
}

impl From<Disturbance> for KeeperError {
    fn from(disturbance: Disturbance) -> Self {
        match disturbance {
            Disturbance::Replaced(table) => table.replaced_too_often(),
            Disturbance::Taken(table) => table.taken_without_lock(),
        }
    }
}

/// The claims of a launch, and the requesting process.
pub(super) struct Acquisition<'c, 'a> {
    pub(super) asker: &'a AcquireContext<'a>,
    demands: &'c [Demand],
    pub(super) wants: Wants<'c>,
    /// The record of the launch, looked up before any table is locked.
    entry: Entry,
    /// Whether it takes what is available. Otherwise the grant is empty.
    pub(super) takes: bool,
}

/// All tables, locked. Ctrl-Z does not stop this process meanwhile.
#[must_use = "the tables are unlocked when this is dropped"]
pub(super) struct Locked {
    _tables: Vec<TableGuard>,
    // Dropped after the tables: a process that is asked to stop unlocks them first.
    _stops: Option<SignalsBlocked>,
    ends: Vec<SignalsBlocked>,
}

impl<'c, 'a> Acquisition<'c, 'a> {
    /// Opens all tables that are not open yet. Open tables stay open, because the launch may have its
    /// position there.
    pub(super) fn open(
        demands: &'c [Demand],
        asker: &'a AcquireContext<'a>,
        known: &[Table],
    ) -> Result<Self, KeeperError> {
        let is_imagined = asker.clock.is_imagined();
        let entry = if is_imagined { Entry::imagined() } else { Entry::of(&asker.launch) };
        Ok(Self { asker, demands, wants: open(demands, asker, known)?, entry, takes: true })
    }

    /// Decides from this queue position, and acquires everything if it is available. The tables are still
    /// locked when this returns. It waits at most this long for their locks.
    pub(super) fn attempt(
        &mut self,
        position: QueuePosition<'_>,
        patience: Duration,
    ) -> Result<(Decided<'c>, Locked), KeeperError> {
        let mut attempts = 1;
        loop {
            let mut locked = self.lock(patience)?;
            let disturbance = match self.replaced() {
                Some(table) => Disturbance::Replaced(table),
                None => match self.decide(position)? {
                    Ok(Decided::Granted(grant)) => {
                        let ends = mem::take(&mut locked.ends);
                        return Ok((Decided::Granted(Grant { ends, ..grant }), locked));
                    }
                    Ok(decided) => return Ok((decided, locked)),
                    Err(disturbance) => disturbance,
                },
            };
            drop(locked);
            if attempts == ATTEMPTS {
                return Err(disturbance.into());
            }
            attempts += 1;
            if matches!(disturbance, Disturbance::Replaced(_)) {
                let known: Vec<Table> = self.wants.tables.values().cloned().collect();
                self.wants = open(self.demands, self.asker, &known)?;
            }
        }
    }

    /// Locks all tables, in their order. A launch that has some of them waits for the next one for a moment
    /// only, or while it is handed on. Then it releases them, waits for that one alone, and begins again. So
    /// a stopped process with the lock of one table does not block other launches on the rest.
    fn lock(&self, patience: Duration) -> Result<Locked, KeeperError> {
        let begun = Instant::now();
        let mut is_handed_on = false;
        // Before the first lock, because a stop could come right after it.
        let stops = (!self.asker.clock.is_imagined()).then(SignalsBlocked::stops);
        loop {
            let (mut tables, mut ends) = (Vec::new(), Vec::new());
            let all = self.wants.tables.values().try_for_each(|table| {
                let left = patience.saturating_sub(begun.elapsed());
                let guard = if tables.is_empty() {
                    table.lock(left)?
                } else {
                    lock_beside_others(table, left.min(HEARTBEAT_INTERVAL), is_handed_on)?
                };
                if tables.is_empty() && !self.asker.clock.is_imagined() {
                    let is_for_caller = self.asker.keepers.inherited.has_carriers();
                    ends.extend(is_for_caller.then(SignalsBlocked::ends));
                }
                tables.push(guard);
                Ok::<(), KeeperError>(())
            });
            match all {
                Ok(()) => return Ok(Locked { _tables: tables, _stops: stops, ends }),
                Err(error) if !error.is_busy() => return Err(error),
                Err(_) if begun.elapsed() < patience => {}
                Err(error) => return Err(error.after(begun.elapsed(), is_handed_on)),
            }
            let busy = self.wants.tables.values().nth(tables.len());
            drop((tables, ends));
            let left = patience.saturating_sub(begun.elapsed());
            let waited = busy.map(|table| table.lock(left)).transpose();
            drop(waited.map_err(|error| error.after(begun.elapsed(), is_handed_on))?);
            is_handed_on = true;
        }
    }

    /// Checks all launches ahead, and returns whether one of them is alive.
    pub(super) fn look_ahead(
        &self,
        blocked: &Blocked<'c>,
        position: QueuePosition<'_>,
    ) -> Result<bool, KeeperError> {
        let mut is_any_alive = false;
        for line in &blocked.lines {
            if let Some(liveness) = position.liveness {
                let generation = self.wants.generation_on(line.table, position.generation);
                let class = Class { generation, capacity: line.capacity };
                is_any_alive |= liveness.look_ahead(self.wants.table(line.table), position.number, class)?;
            }
        }
        Ok(is_any_alive)
    }

    /// The launch directly ahead in one queue.
    pub(super) fn nearest_ahead(
        &self,
        line: &Line,
        position: QueuePosition<'_>,
    ) -> Result<Option<Waiter>, KeeperError> {
        let generation = self.wants.generation_on(line.table, position.generation);
        QueuePosition { generation, ..position }.nearest_ahead(self.wants.table(line.table), line.capacity)
    }

    fn replaced(&self) -> Option<Table> {
        let mut tables =
            self.wants.choices().map(|choice| (self.wants.table(choice.table), &choice.claim.location));
        tables.find(|(table, location)| !table.is_still_at(location)).map(|(table, _)| table.clone())
    }

    fn decide(&self, position: QueuePosition<'_>) -> Result<Result<Decided<'c>, Disturbance>, KeeperError> {
        let joined = self.join()?;
        let mut views = TableViews::new();
        for (id, table) in &self.wants.tables {
            if !joined.contains_key(id) {
                let generation = self.wants.generation_on(*id, position.generation);
                let position = QueuePosition { generation, ..position };
                views.insert(*id, TableView::of(table, position, self.wants.all_on(*id))?);
            }
        }
        let now = self.asker.clock.now();
        Ok(match self.wants.deliberate(&mut views, now)? {
            Allocation::Start(_) if !self.takes => {
                Ok(Decided::Granted(Grant::without_slots(Vec::new(), now)))
            }
            Allocation::Start(picked) => self.take(views, joined, &picked, now)?.map(Decided::Granted),
            Allocation::Blocked(blocked) => {
                views.values_mut().try_for_each(|seen| seen.view.repair())?;
                Ok(Decided::Blocked(blocked))
            }
            Allocation::Disturbed => match self.wants.tables.values().next() {
                Some(table) => Err(Disturbance::Taken(table.clone())),
                None => unreachable!("nothing disturbs a launch that wants nothing"),
            },
        })
    }

    /// The tables in which slots of an ancestor satisfy every claim.
    fn join(&self) -> Result<BTreeMap<TableId, Held>, KeeperError> {
        let AcquireContext { launch, keepers, .. } = self.asker;
        let mut joined = BTreeMap::new();
        if launch.ancestors.is_empty() {
            return Ok(joined);
        }
        for (id, table) in &self.wants.tables {
            if let Some(held) = table.join(&self.wants.claims_on(*id), launch, keepers)? {
                joined.insert(*id, held);
            }
        }
        Ok(joined)
    }

    fn take(
        &self,
        mut views: TableViews<'_>,
        mut joined: BTreeMap<TableId, Held>,
        picked: &[ClaimOnTable<'c>],
        now: SystemTime,
    ) -> Result<Result<Grant<'c>, Disturbance>, KeeperError> {
        let launch = &self.asker.launch;
        // Another nested launch may use what this one does not.
        joined.retain(|id, _| picked.iter().any(|choice| choice.table == *id));
        let mut held: BTreeMap<TableId, Held> = BTreeMap::new();
        for (id, seen) in &mut views {
            if !picked.iter().any(|choice| choice.table == *id) {
                continue;
            }
            let table = self.wants.table(*id);
            let terms = terms_on(*id, picked);
            let seats = match seen.room(&terms)? {
                Room::Free(seats) => seats,
                _ if terms.admit == Admit::Unenforced => continue,
                // There was room when the claim was chosen. Whatever has changed since: no launch starts
                // without its slots.
                _ => return Ok(Err(Disturbance::Taken(table.clone()))),
            };
            let is_guarded = |claim: &Claim| claim.pace.expiry.is_some() || claim.outside.is_some();
            let is_guarded = picked.iter().any(|choice| choice.table == *id && is_guarded(choice.claim));
            match table.take(&seats, terms.group.as_ref(), launch, is_guarded)? {
                Some(taken) => held.insert(*id, taken),
                None => return Ok(Err(Disturbance::Taken(table.clone()))),
            };
        }
        let mut entry = self.entry.at(now);
        let mut before = Vec::new();
        let written = held.iter().try_for_each(|(id, taken)| {
            let Some(seen) = views.get_mut(id) else { return Ok(()) };
            before.push(seen.view.stamps().0);
            let claim = picked.iter().find(|choice| choice.table == *id).map(|choice| choice.claim);
            entry.because_of(claim.map_or("", Claim::rule));
            seen.view.write_down(taken, &entry)
        });
        if let Err(error) = written {
            // No program starts, so no pause begins: not in this table, and not in those before it.
            for id in held.keys() {
                let _ = views.get(id).map(|seen| seen.view.withdraw());
            }
            return Err(error);
        }
        let of = |id: &TableId| held.get(id).or_else(|| joined.get(id));
        let slots = named_slots(of, picked);
        let own = picked
            .iter()
            .filter_map(|choice| Some((choice.claim, Runs::of(of(&choice.table)?.slots()))))
            .collect();
        let unenforced =
            picked.iter().filter(|choice| of(&choice.table).is_none()).map(|choice| choice.claim).collect();
        // Slots with a recorded start come first.
        let held = held.into_values().chain(joined.into_values()).collect();
        let claims = picked.iter().map(|choice| choice.claim).collect();
        let tables = picked.iter().map(|choice| self.wants.table(choice.table).clone()).collect();
        Ok(Ok(Grant { held, slots, own, claims, unenforced, tables, started: now, before, ends: Vec::new() }))
    }
}

/// Locks one more table. If a single process has its lock for more than a moment, that one may be stopped,
/// unless it is known that the lock is handed on.
fn lock_beside_others(
    table: &Table,
    longest: Duration,
    is_handed_on: bool,
) -> Result<TableGuard, KeeperError> {
    let (begun, moment) = (Instant::now(), if is_handed_on { longest } else { MOMENT.min(longest) });
    loop {
        match table.lock(moment) {
            Err(error) if error.is_crowded() && begun.elapsed() < longest => {}
            locked => return locked,
        }
    }
}

fn open<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
    known: &[Table],
) -> Result<Wants<'c>, KeeperError> {
    let AcquireContext { keepers, launch, .. } = asker;
    let bases = BaseDirectories::default();
    // The store has the tables in memory, also those with a place of this launch. One without places may be
    // forgotten by now, and then the store has another one under the name.
    let known = || known.iter().filter(|table| table.in_memory().is_none());
    Wants::open(demands, |claim| match known().find(|table| table.is_still_at(&claim.location)) {
        // Opening it again would mean closing it again, which would give up the position in it.
        Some(table) => table.prepare(launch).map(|()| table.clone()),
        None => keepers.open(claim, launch, &bases),
    })
}

/// The names of a claim's slots.
pub(super) fn names_of(claim: &Claim, slots: &Runs) -> Vec<String> {
    if claim.names.is_empty() {
        return Vec::new();
    }
    let name = |slot: u64| claim.names.get(usize::try_from(slot).ok()?.checked_sub(1)?).cloned();
    slots.slots().filter_map(name).collect()
}

/// Each table's slots with the name of its repository, in the order of the claims. A repository may have many
/// tables, and two repositories may lead to one.
fn named_slots<'h>(
    held: impl Fn(&TableId) -> Option<&'h Held>,
    picked: &[ClaimOnTable<'_>],
) -> Vec<NamedSlots> {
    let (mut seen, mut named) = (BTreeSet::new(), Vec::new());
    for choice in picked {
        let Some(taken) = held(&choice.table) else { continue };
        if seen.insert((choice.table, &choice.claim.repository)) {
            let slots = Runs::of(taken.slots());
            let called = names_of(choice.claim, &slots);
            let (name, joined) = (choice.claim.repository.to_string(), Runs::of(taken.joined()));
            named.push(NamedSlots { name, slots, called, joined });
        }
    }
    named
}
