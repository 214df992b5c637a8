//! What the agent keeps: the tables, the holders, the launches that waited when the agent died, and recently
//! ended programs. Only this owner writes to the disk, and it writes before the agent answers.

mod given_back;
pub(super) mod holding;
pub(super) mod state;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use self::{
    given_back::GivenBack,
    holding::{Holding, Lingering, follow, in_memory, writer},
    state::{
        SavedHolding, SavedNumber, SavedPlace, SavedSlots, SavedStamps, State, Unused, all_opened, at_millis,
        in_millis, limit_unused, new_opened, remove_opened, since_1970, unused_again,
    },
};
use super::{
    AWAY, AcquireRequest, Blocked, Eviction, FIFO, Fatal, KINDS, PROCESS, RECOVERED, Session,
    request::{asker, refused},
};
use crate::{
    acquire::{
        AtOnce, Grant, Known, LONGEST_ABSENCE, PlaceInLine, PlaceInTable, Progress, Standing,
        at_once::at_once,
    },
    judge::terms::{Claim, Group, Hold, name_on_site},
    keeper::{
        KeeperError, Keepers, Number, Overdue, Store, VerifiedAncestry, WaitingProcess,
        agent::{
            message::{End, Table},
            path_of_opened,
        },
        memory,
    },
    policy::Wait,
    sys::{Errno, Failure, Fifo, FileId, Inherited, Interest, PidFd, Poller, Process, descriptor, process},
};

/// How many ends are remembered: what a busy host has between two looks.
const MOST_ENDS: usize = 10_000;

/// The owner of the tables.
pub(super) struct Ledger {
    poller: Rc<Poller>,
    store: Store,
    state: State,
    holdings: BTreeMap<u64, Holding>,
    /// Slots that stay taken for some time after the end of their program.
    lingering: BTreeMap<u64, Lingering>,
    /// The launches that waited when the agent died, and have not called again.
    recovered: BTreeMap<u64, RecoveredWaiter>,
    /// The ends of programs of each user, oldest first, so that a user whose programs end all the time does
    /// not push out those of others. The launcher executed the program and cannot write the end into the log;
    /// the regular look does, and asks here for the moment.
    ends: BTreeMap<u32, VecDeque<End>>,
    /// The holders that only a nested launch keeps, or nothing any more.
    given_back: GivenBack,
    /// The FIFOs of each user's scripts that keep no slots yet, or that a script waits with, oldest first.
    unused: BTreeMap<u32, VecDeque<Unused>>,
    /// The holders that have ended while no agent ran, until the site knows them.
    ended_unseen: Vec<SavedHolding>,
    /// The launches that the site was asked for when the agent died, and that were never answered.
    unproved: Vec<SavedHolding>,
    /// It has inherited nothing that could hold a slot.
    inherited: Inherited,
}

impl Ledger {
    /// Restores the state that was saved before the agent died. Returns the first unused number.
    pub(super) fn open(poller: Rc<Poller>, directory: &Path) -> Result<(Self, u64), Fatal> {
        let mut ledger = Self {
            poller,
            store: Store::default(),
            state: State::open(directory)?,
            holdings: BTreeMap::new(),
            lingering: BTreeMap::new(),
            recovered: BTreeMap::new(),
            ends: BTreeMap::new(),
            given_back: GivenBack::default(),
            unused: BTreeMap::new(),
            ended_unseen: Vec::new(),
            unproved: Vec::new(),
            inherited: Inherited::default(),
        };
        let found = ledger.state.read()?;
        ledger.unproved = found.unproved;
        let last = found.holdings.keys().chain(found.places.keys()).max().copied().unwrap_or(0);
        for (table, stamps) in &found.stamps {
            stamps.put_into(&ledger.store_of(stamps.started_by).table(table));
        }
        let (used_below, mut lent) = (ledger.state.used_below(&found.holdings), BTreeMap::new());
        // A slot that a running program and an ended one claim is that of the former.
        let (ended, running): (Vec<_>, Vec<_>) =
            found.holdings.into_iter().partition(|(_, saved)| saved.lingers_until.is_some());
        for (number, saved) in running.into_iter().chain(ended) {
            let fifo = ledger.state.fifo_of(number, &saved);
            let fifo = fifo.map_err(|(path, errno)| Fatal::State(path, Failure { call: "open", errno }))?;
            let store = ledger.store_of(Some(saved.uid));
            let is_used = used_below.contains(&number);
            let restore =
                |saved, fifo, is_used| Holding::restore(saved, fifo, &store, is_used).map_err(Fatal::Call);
            let mut restored = restore(&saved, fifo, is_used)?;
            if restored.is_none() {
                ledger.ended_unseen(&saved);
                // Whether a program had started does not matter, as for an end that is seen.
                let is_new = saved.lingers_until.is_none();
                if let Some(lingering) = saved.lingering().filter(|_| is_new) {
                    ledger.state.write_end(number, &saved, &lingering);
                    restored = restore(&lingering, None, false)?;
                } else {
                    ledger.state.forget_ended(number, &saved);
                }
            }
            let Some(holding) = restored else { continue };
            if let Some(served) = holding.saved.served_as {
                holding.held.iter().for_each(|held| held.table().has_had(Number(served.number)));
            }
            if holding.saved.lingers_until.is_some() {
                let Holding { saved, held, .. } = holding;
                ledger.lingering.extend(Lingering::new(saved, held).map(|lingering| (number, lingering)));
                continue;
            }
            if is_used {
                lent.insert(number, holding.restored_from(&saved));
            }
            ledger.watch(number, &holding).map_err(Fatal::Call)?;
            ledger.given_back.note(number, &holding);
            ledger.holdings.insert(number, holding);
        }
        for holding in ledger.holdings.values_mut() {
            holding.share_again(&lent, &ledger.store);
        }
        while let Some(number) = ledger.left_over() {
            drop(ledger.release(number, true));
        }
        for (number, saved) in found.places {
            ledger.recover(number, saved)?;
        }
        for (uid, opened) in all_opened() {
            ledger.keep_unused(uid, opened);
        }
        Ok((ledger, last + 1))
    }

    /// A program has ended unseen: for pauses, now. If it only lingered, that is over.
    fn ended_unseen(&mut self, saved: &SavedHolding) {
        if saved.lingers_until.is_none() {
            let own = saved.tables.iter().filter(|of| !of.is_shared && saved.paced.contains(&of.table));
            for table in own.filter_map(|of| self.store.known(&of.table)) {
                table.ended(SystemTime::now());
                let _ = self.state.write_stamps(table.name(), &SavedStamps::of(&table, saved.uid));
            }
            if !saved.paced_at_site.is_empty() {
                self.ended_unseen.push(saved.clone());
            }
        }
    }

    /// The holders that have ended while no agent ran.
    pub(super) fn take_ended_unseen(&mut self) -> Vec<SavedHolding> {
        mem::take(&mut self.ended_unseen)
    }

    /// The launches that the site was asked for when the agent died, and that were never answered.
    pub(super) fn take_unproved(&mut self) -> Vec<SavedHolding> {
        mem::take(&mut self.unproved)
    }

    /// The tables.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The tables; those that count for no user yet count for this one.
    pub(super) fn store_of(&self, uid: Option<u32>) -> Store {
        self.store.for_asker(VerifiedAncestry::of_user(uid))
    }

    /// The saved state of the site.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The holder of slots.
    pub(super) fn holdings(&self) -> &BTreeMap<u64, Holding> {
        &self.holdings
    }

    /// Slots that stay taken after the end of their program.
    pub(super) fn lingering(&self) -> &BTreeMap<u64, Lingering> {
        &self.lingering
    }

    /// Saves that a launch has slots, and watches it. Returns the write end that keeps the slots besides the
    /// process. On failure, releases the slots and returns the reason.
    pub(super) fn grant(
        &mut self,
        number: u64,
        mut holding: Holding,
    ) -> Result<Option<OwnedFd>, (Box<Holding>, String)> {
        let written = self.write_down(number, &mut holding);
        // Answered only once it is certain that the end of the process will be seen.
        let watched = written.and_then(|end| {
            self.watch(number, &holding).map(|()| end).map_err(|failure| failure.to_string())
        });
        match watched {
            Ok(end) => {
                self.given_back.note(number, &holding);
                self.holdings.insert(number, holding);
                Ok(end)
            }
            Err(why) => {
                self.unwatch(&holding);
                self.state.forget(number);
                self.give_back_opened(&mut holding);
                holding.withdraw_stamps();
                // Some tables may have been saved with this start.
                let _ = self.write_stamps(&holding);
                Err((Box::new(holding), why))
            }
        }
    }

    fn write_down(&mut self, number: u64, holding: &mut Holding) -> Result<Option<OwnedFd>, String> {
        if let Some(opened) = holding.saved.opened {
            holding.fifo = self.fifo_of_script(number, opened, &holding.saved)?;
        }
        let mut write = || -> Result<Option<OwnedFd>, Failure> {
            let mut end = None;
            if holding.saved.hold > Hold::Process && holding.saved.opened.is_none() {
                holding.fifo = Some(self.state.new_fifo(number)?);
                end = Some(writer(&self.state.fifo(number))?);
            }
            self.state.write(number, &holding.saved)?;
            self.write_stamps(holding)?;
            Ok(end)
        };
        write().map_err(|failure| format!("it cannot save its state: {failure}"))
    }

    /// The end of the FIFO that a script has opened. Slots that nothing keeps would be free at once, and the
    /// script would not learn of it; so it fails if no process but this one has the other end. It also fails
    /// if the script has got slots with it meanwhile.
    fn fifo_of_script(
        &mut self,
        number: u64,
        opened: u64,
        saved: &SavedHolding,
    ) -> Result<Option<Fifo>, String> {
        if self.is_taken(saved.uid, opened) {
            return Err("the descriptor keeps slots already".to_owned());
        }
        if let Some(unused) = self.unused.get_mut(&saved.uid) {
            unused.retain(|(known, _)| *known != opened);
        }
        let fifo = self.state.fifo_of(number, saved);
        let fifo =
            fifo.map_err(|(_, errno)| format!("it cannot open the FIFO of the script: {}", errno.desc()))?;
        if fifo.is_none() {
            return Err("no process has the FIFO of the script open".to_owned());
        }
        Ok(fifo)
    }

    /// A script that got nothing may ask again with the same FIFO.
    fn give_back_opened(&mut self, holding: &mut Holding) {
        if let Some(opened) = holding.saved.opened {
            holding.fifo = None;
            self.keep_unused(holding.saved.uid, opened);
        }
    }

    /// The FIFO of a script may be used once more, if it keeps no slots.
    fn keep_unused(&mut self, uid: u32, opened: u64) {
        if self.is_taken(uid, opened) {
            return;
        }
        match unused_again(uid, opened) {
            Ok(unused) => self.unused.entry(uid).or_default().push_back(unused),
            // One that does not count must not stay.
            Err(_) => remove_opened(uid, opened),
        }
    }

    /// How many FIFOs of this user's scripts are open here although they keep no slots.
    pub(super) fn unused_of(&self, uid: u32) -> usize {
        self.unused.get(&uid).map_or(0, VecDeque::len)
    }

    /// The users who have such FIFOs.
    pub(super) fn users_of_unused(&self) -> impl Iterator<Item = u32> {
        self.unused.keys().copied()
    }

    fn write_stamps(&self, holding: &Holding) -> Result<(), Failure> {
        for name in &holding.saved.paced {
            if let Some(table) = self.store.known(name) {
                self.state.write_stamps(name, &SavedStamps::of(&table, holding.saved.uid))?;
            }
        }
        Ok(())
    }

    fn watch(&self, number: u64, holding: &Holding) -> Result<(), Failure> {
        let number = number * KINDS;
        if let Some(process) = &holding.process {
            self.poller
                .add(process.as_fd(), number + PROCESS, Interest::Read)
                .map_err(Failure::of("epoll_ctl"))?;
        }
        if let Some(fifo) = &holding.fifo {
            self.poller.add(fifo.as_fd(), number + FIFO, Interest::End).map_err(Failure::of("epoll_ctl"))?;
        }
        Ok(())
    }

    /// Stops watching a holder whose slots are free. Closing the descriptors would not be enough: the
    /// connection with the process may have a copy.
    fn unwatch(&self, holding: &Holding) {
        let _ = holding.process.as_ref().map(|process| self.poller.remove(process.as_fd()));
        let _ = holding.fifo.as_ref().map(|fifo| self.poller.remove(fifo.as_fd()));
    }

    /// The process of a holder has ended, or its FIFO was closed. Returns whether nothing keeps its slots.
    pub(super) fn on_end(&mut self, number: u64, is_fifo: bool) -> bool {
        let Some(holding) = self.holdings.get_mut(&number) else { return false };
        if !holding.is_kept() {
            return true;
        }
        // An ended program does not end again. The FIFO of a script may be open again by now.
        let _ = match (&holding.fifo, &holding.process) {
            (Some(fifo), _) if is_fifo && !fifo.is_held() => self.poller.remove(fifo.as_fd()),
            (_, Some(process)) if !is_fifo => self.poller.remove(process.as_fd()),
            _ => Ok(()),
        };
        // If only a nested launch keeps the slots from now on, no later event says when they are free.
        holding.saved.is_given_back |= !holding.keeps_itself();
        holding.describe(|_| true);
        self.given_back.note(number, holding);
        false
    }

    /// The program of a holder is about to start. Returns whether nothing keeps the slots from then on.
    pub(super) fn on_start(&mut self, number: u64) -> bool {
        let Some(holding) = self.holdings.get_mut(&number) else { return false };
        holding.saved.is_started = true;
        // A failed write only delays the release of a slot.
        let _ = self.state.write_start(number);
        holding.saved.is_given_back |= !holding.keeps_itself();
        self.given_back.note(number, holding);
        !holding.is_kept()
    }

    /// The program is this process.
    pub(super) fn runs_as(&mut self, number: u64, program: i32) {
        if let Some(holding) = self.holdings.get_mut(&number)
            && holding.runs_as(program)
        {
            self.given_back.note(number, holding);
            // That is information for people only, so a failure does not matter.
            let _ = self.state.write(number, &holding.saved);
        }
    }

    /// A new FIFO for a script of this user, whose scripts wait with these.
    pub(super) fn new_fifo(&mut self, uid: u32, in_use: &BTreeSet<u64>) -> Result<PathBuf, Failure> {
        let (new, path) = new_opened(uid)?;
        let unused = self.unused.entry(uid).or_default();
        unused.push_back(new);
        limit_unused(uid, unused, in_use);
        Ok(path)
    }

    /// The holding whose slots this FIFO of a user keeps.
    pub(super) fn kept_by(&self, uid: u32, opened: u64) -> Option<(u64, &Holding)> {
        let is_kept = |holding: &Holding| (holding.saved.uid, holding.saved.opened) == (uid, Some(opened));
        self.holdings.iter().find(|(_, holding)| is_kept(holding)).map(|(number, holding)| (*number, holding))
    }

    /// Whether this FIFO of a user is that of a holding, or of slots that linger. Then no other may use it:
    /// the agent does not start with a holding whose FIFO is missing.
    pub(super) fn is_taken(&self, uid: u32, opened: u64) -> bool {
        let lingering = self.lingering.values().map(|of| &of.saved);
        let mut all = self.holdings.values().map(|of| &of.saved).chain(lingering);
        all.any(|saved| (saved.uid, saved.opened) == (uid, Some(opened)))
    }

    /// Whether a launch has slots that no program has used, its own or that of a nested launch.
    pub(super) fn is_unused(&self, number: u64) -> bool {
        self.holdings.get(&number).is_some_and(|of| !of.saved.is_started && !of.is_used_below())
    }

    /// The slots that this process, by number, start and user, has for a program that it supervises.
    pub(super) fn supervised_by(&self, whose: (i32, u64, u32)) -> Option<u64> {
        let is_theirs = |SavedHolding { pid, start, uid, hold, .. }: &SavedHolding| {
            (*pid, *start, *uid) == whose && *hold >= Hold::Supervisor
        };
        let mut all = self.holdings.iter();
        all.find(|(_, holding)| is_theirs(&holding.saved)).map(|(number, _)| *number)
    }

    /// Forgets a holder; `has_run` if a program had the slots. They are free when the answer is dropped.
    pub(super) fn release(&mut self, number: u64, has_run: bool) -> Option<Holding> {
        let mut holding = self.holdings.remove(&number)?;
        self.given_back.forget(number, &holding);
        self.unwatch(&holding);
        if has_run {
            self.remember_end(&holding.saved);
            // A program that used an ancestor's slots has ended, and not the one whose slots they are.
            for held in holding.held.iter().filter(|held| !held.is_shared()) {
                held.table().ended(SystemTime::now());
            }
        } else {
            holding.withdraw_stamps();
        }
        // A pause that was not saved ends with the agent, but not earlier.
        let _ = self.write_stamps(&holding);
        let lingering = if has_run { holding.lingering() } else { None };
        if let Some(lingering) = lingering {
            self.state.write_end(number, &holding.saved, &lingering.saved);
            let covered = self.lingering.iter().filter(|(_, other)| lingering.covers(other));
            // A user who starts a short program again and again leaves one entry, not thousands.
            for other in covered.map(|(other, _)| *other).collect::<Vec<_>>() {
                drop(self.end_lingering(other, Duration::MAX));
            }
            self.lingering.insert(number, lingering);
        } else if has_run {
            self.state.forget_ended(number, &holding.saved);
        } else {
            self.state.forget(number);
            self.give_back_opened(&mut holding);
        }
        Some(holding)
    }

    /// The lingering slots that are free first, and when.
    pub(super) fn next_lingering(&self) -> Option<(Instant, u64)> {
        let (until, number) = self.lingering.iter().map(|(number, of)| (of.next(), *number)).min()?;
        let left = until.saturating_sub(process::since_boot().unwrap_or(until));
        Some((Instant::now() + left, number))
    }

    /// The slots of an entry that stay taken until this time, or less. They are free when the answer is
    /// dropped.
    pub(super) fn end_lingering(&mut self, number: u64, until: Duration) -> Vec<memory::Held> {
        self.give_up(number, |_, end| end <= until)
    }

    /// The slots of ended programs that include this one. They are free when the answer is dropped.
    pub(super) fn end_lingering_at(&mut self, table: &str, slot: u64) -> Vec<memory::Held> {
        let numbers: Vec<u64> = self.lingering.keys().copied().collect();
        let has_it = |held: &memory::Held, _| held.table().is_called(table) && held.slots().contains(&slot);
        numbers.into_iter().flat_map(|number| self.give_up(number, has_it)).collect()
    }

    /// Slots of an entry do not linger any more. That is saved before they are free: another launch may have
    /// them when the agent starts again.
    fn give_up(
        &mut self,
        number: u64,
        is_over: impl Fn(&memory::Held, Duration) -> bool,
    ) -> Vec<memory::Held> {
        let Some(lingering) = self.lingering.get_mut(&number) else { return Vec::new() };
        let over = lingering.give_up(is_over);
        if lingering.held.is_empty() {
            if let Some(lingering) = self.lingering.remove(&number) {
                self.state.forget_ended(number, &lingering.saved);
            }
        } else if !over.is_empty() {
            // A failed write costs at most a slot that lingers again from the agent's next start on.
            let _ = self.state.write(number, &lingering.saved);
        }
        over
    }

    /// A program ends now. If there are too many, the user who has most of them loses the oldest.
    fn remember_end(&mut self, saved: &SavedHolding) {
        let since = at_millis(saved.since).unwrap_or(UNIX_EPOCH);
        let end = End { pid: saved.pid, since, until: SystemTime::now() };
        self.ends.entry(saved.uid).or_default().push_back(end);
        if self.ends.values().map(VecDeque::len).sum::<usize>() > MOST_ENDS
            && let Some(most) = self.ends.values_mut().max_by_key(|ends| ends.len())
        {
            most.pop_front();
        }
    }

    /// The ends that are remembered, oldest first.
    pub(super) fn ends(&self) -> Vec<End> {
        let mut all: Vec<End> = self.ends.values().flatten().cloned().collect();
        all.sort_by_key(|end| end.until);
        all
    }

    /// Replaces a slot that another host has got meanwhile, for all who have it. Returns whether that is
    /// possible.
    pub(super) fn move_slot(&mut self, table: &memory::Table, slot: u64, another: u64) -> bool {
        if !table.move_slot(slot, another) {
            return false;
        }
        let holdings = self.holdings.iter_mut().filter_map(|(number, of)| {
            let is_theirs = follow(&mut of.saved, of.held.iter_mut(), (table, slot, another));
            is_theirs.then_some((number, &of.saved))
        });
        let lingering = self.lingering.iter_mut().filter_map(|(number, of)| {
            let held = of.held.iter_mut().map(|(held, _)| held);
            let is_theirs = follow(&mut of.saved, held, (table, slot, another));
            is_theirs.then_some((number, &of.saved))
        });
        for (number, saved) in holdings.chain(lingering) {
            // A failed write costs at most another search after the agent's next start.
            let _ = self.state.write(*number, saved);
        }
        true
    }

    /// These tables, each once, or all.
    pub(super) fn tables(&self, names: &[String]) -> Vec<Table> {
        let all = |(name, table): &(String, memory::Table)| Table::of(name, table, usize::MAX, usize::MAX, 0);
        if names.is_empty() {
            return self.store.all().iter().map(all).collect();
        }
        let names: BTreeSet<&String> = names.iter().collect();
        let known = |name: &String| Some(all(&(name.clone(), self.store.known(name)?)));
        names.into_iter().filter_map(known).collect()
    }

    /// Forgets when a table was last used. Returns whether there was anything to forget.
    pub(super) fn reset(&self, name: &str) -> bool {
        let is_changed = self.store.known(name).is_some_and(|table| table.reset());
        self.state.forget_stamps(name);
        self.store.forget_if_unused(name);
        is_changed
    }

    /// The same for all of these.
    pub(super) fn reset_all(&self, names: &[String]) -> bool {
        names.iter().fold(false, |any, name| self.reset(name) | any)
    }

    /// Forgets the unneeded tables that count for a user, except those with entries of the site. The last use
    /// of a table is remembered until the memory is needed, because `list` shows it.
    pub(super) fn forget_idle(&self, uid: u32, is_of_site: impl Fn(&str) -> bool) {
        let may_be = |table: &str| !name_on_site(table).is_some_and(&is_of_site);
        for table in self.store.forget_idle(uid, SystemTime::now(), may_be) {
            self.state.forget_stamps(&table);
        }
    }
}

// Launches that waited when the agent failed. Each gets its position back when it reconnects, and until then
// no newcomer comes before it. One that does not reconnect is passed over like any launch that does not
// respond. It is removed when its process has ended, or would no longer reconnect: it is not stopped, and has
// not reconnected for so long.

/// A launch that waited when the agent failed, and has not reconnected.
pub(in crate::agent) struct RecoveredWaiter {
    pub(in crate::agent) saved: SavedPlace,
    pub(in crate::agent) line: PlaceInLine,
    process: PidFd,
    pub(in crate::agent) due: Instant,
    pub(in crate::agent) is_away: bool,
    /// Whether its process was stopped when it was last checked.
    was_stopped: bool,
}

impl RecoveredWaiter {
    /// Whether it may still reconnect: a stopped process does when it continues, which takes a moment.
    fn may_come(&mut self) -> bool {
        let is_stopped = !self.process.has_ended()
            && Process::find(self.saved.pid).is_some_and(|process| process.is_stopped());
        mem::replace(&mut self.was_stopped, is_stopped) || is_stopped
    }
}

impl Ledger {
    /// Saves the launch's position in its queues, if it has changed. A failure to save it matters only if the
    /// agent fails.
    pub(in crate::agent) fn write_place(
        &self,
        number: u64,
        written: &mut Option<(u64, SavedPlace)>,
        wanted: Option<SavedPlace>,
    ) {
        match (&written, wanted) {
            (Some((_, before)), Some(wanted)) if before.is_where(&wanted) => {}
            (before, Some(wanted)) => {
                let file = before.as_ref().map_or(number, |(file, _)| *file);
                let _ = self.state.write_place(file, &wanted);
                *written = Some((file, wanted));
            }
            (Some((file, _)), None) => {
                self.state.forget_place(*file);
                *written = None;
            }
            (None, None) => {}
        }
    }

    /// Restores a saved position, if its launch still lives.
    fn recover(&mut self, number: u64, saved: SavedPlace) -> Result<(), Fatal> {
        let call = |call| move |errno| Fatal::Call(Failure { call, errno });
        let process = match PidFd::open(saved.pid) {
            Err(Errno::ESRCH) => None,
            opened => Some(opened.map_err(call("pidfd_open"))?),
        };
        let is_same = |_: &PidFd| Process::find(saved.pid).is_some_and(|found| found.started == saved.start);
        let Some(process) = process.filter(is_same) else {
            self.state.forget_place(number);
            return Ok(());
        };
        let store = self.store_of(Some(saved.uid));
        let places: Vec<PlaceInTable> =
            saved.lines.iter().map(|line| line.to_place(store.table(&line.table))).collect();
        let mut line = PlaceInLine::again(Number(saved.number.number), saved.since(), &places);
        line.belongs_to(&saved.process());
        self.poller.add(&process, number * KINDS + RECOVERED, Interest::Read).map_err(call("epoll_ctl"))?;
        let due = Instant::now() + AWAY;
        let (is_away, was_stopped) = (false, false);
        self.recovered.insert(number, RecoveredWaiter { saved, line, process, due, is_away, was_stopped });
        Ok(())
    }

    /// The launches that waited when the agent failed, and have not reconnected.
    pub(in crate::agent) fn recovered(&self) -> &std::collections::BTreeMap<u64, RecoveredWaiter> {
        &self.recovered
    }

    /// When the next of them will have been away for too long, and which one.
    pub(in crate::agent) fn next_recovered(&self) -> Option<(Instant, u64)> {
        self.recovered.iter().map(|(number, waiter)| (waiter.due, *number)).min()
    }

    /// One of them waits no longer, or has reconnected.
    pub(in crate::agent) fn take_recovered(&mut self, number: u64) -> Option<RecoveredWaiter> {
        let waiter = self.recovered.remove(&number)?;
        let _ = self.poller.remove(&waiter.process);
        Some(waiter)
    }

    /// One of them has been away for so long that it is passed over from now on. Returns the affected queues;
    /// none if it was passed over before, and has had the time to reconnect.
    pub(in crate::agent) fn pass_over(&mut self, number: u64) -> Option<Vec<memory::Table>> {
        let waiter = self.recovered.get_mut(&number)?;
        let may_come = waiter.may_come();
        if mem::replace(&mut waiter.is_away, true) {
            waiter.due = Instant::now() + LONGEST_ABSENCE;
            return may_come.then(Vec::new);
        }
        waiter.line.set_away(true);
        waiter.due += LONGEST_ABSENCE.saturating_sub(AWAY);
        Some(waiter.line.tables())
    }

    /// Launches that are not passed over yet have until then to reconnect.
    pub(in crate::agent) fn wait_for_recovered(&mut self, due: Instant) {
        for waiter in self.recovered.values_mut().filter(|waiter| !waiter.is_away) {
            waiter.due = due;
        }
    }

    /// Forgets the positions of one of them.
    pub(in crate::agent) fn forget_place(&self, number: u64) {
        self.state.forget_place(number);
    }
}

// One check of the tables for a launch, and its result.

/// The result of a check of the tables.
pub(in crate::agent) enum CheckOutcome {
    Granted(Box<Holding>),
    Blocked(Blocked),
    /// It would have been granted, or a holder ended for it, but the decision about its claims is too old.
    Stale,
    Failed(String),
}

impl Ledger {
    /// One check: then everything is acquired, or the launch is in the queue. `is_shared` if other hosts keep
    /// the tables of the site too; `process` opens the process that asks.
    pub(in crate::agent) fn look(
        &self,
        number: u64,
        session: &mut Session,
        request: &AcquireRequest,
        is_shared: bool,
        process: impl FnOnce() -> Result<PidFd, Failure>,
    ) -> CheckOutcome {
        session.place.beaten.get_or_insert_with(Instant::now);
        let deadline = match request.longest {
            Some(Wait::For(longest)) => session.place.begun.and_then(|begun| begun.checked_add(longest)),
            Some(Wait::Forever) | None => None,
        };
        let memory = self.store.for_asker(self.ancestry(session, request));
        let keepers = Keepers { inherited: &self.inherited, memory };
        let asker = asker(request, keepers);
        let looked = match at_once(&request.demands, &asker, &mut session.place.line, deadline) {
            Ok(AtOnce::Granted(grant)) if !request.is_fresh() => {
                let _ = grant.withdraw();
                return CheckOutcome::Stale;
            }
            Ok(AtOnce::Granted(grant)) => match script_of(session).map_or_else(process, Ok) {
                Ok(process) => {
                    let mut holding = holding(session, request, grant, is_shared, process);
                    holding.saved.note_owners(self.holdings.iter().map(|(number, of)| (number, &of.saved)));
                    Ok(CheckOutcome::Granted(Box::new(holding)))
                }
                Err(failure) => {
                    let _ = grant.withdraw();
                    Err(failure.to_string())
                }
            },
            Ok(AtOnce::Blocked(standing)) => match blocked(number, session, request, &standing) {
                // Holders are ended by the policy as it is now.
                Ok(blocked) if blocked.ends_others() && !request.is_fresh() => return CheckOutcome::Stale,
                Ok(blocked) => Ok(CheckOutcome::Blocked(blocked)),
                Err(error) => Err(error.to_string()),
            },
            Err(error) => Err(error.to_string()),
        };
        looked.unwrap_or_else(CheckOutcome::Failed)
    }

    /// The slots of ancestors that a launch claims to have, if this is proved.
    fn ancestry(&self, session: &mut Session, request: &AcquireRequest) -> VerifiedAncestry {
        let (pid, uid) = (session.peer.pid, session.peer.uid);
        let mut ancestry = VerifiedAncestry::of_process(pid, uid);
        if request.ancestors.is_empty() {
            return ancestry;
        }
        // Once for each request: a process can have many descriptors, and a waiting launch checks often.
        let fifos = session.fifos.get_or_insert_with(|| descriptor::of_process(pid));
        let may_join = |of: &&Holding| of.may_be_joined_by((pid, uid), request.hold, fifos);
        let joinable = self.holdings.values().filter(may_join);
        ancestry.slots.extend(joinable.flat_map(|holding| &holding.held).flat_map(|held| {
            let number = held.table().number();
            held.slots().iter().map(move |slot| (number, *slot))
        }));
        ancestry
    }
}

/// The script that requests slots: the outermost ancestor of the process that has the FIFO open under the
/// same number. None if it is a launch, or no ancestor has it.
fn script_of(session: &Session) -> Option<PidFd> {
    let take = session.take.as_deref()?;
    let (opened, through) = (take.opened?, take.through?);
    let fifo = FileId::in_memory(&path_of_opened(session.peer.uid, opened))?;
    // A holder may be ended for its user, so it must be a process of that user.
    let has_it = |pid: &i32| {
        process::owner(*pid) == Some(session.peer.uid) && descriptor::has_open(*pid, through, fifo)
    };
    let ancestors = process::near_lineage(session.peer.pid).skip(1);
    let script = ancestors.take_while(has_it).last()?;
    PidFd::open(script).ok().filter(|open| has_it(&open.pid()))
}

/// What to do about a launch that got nothing.
fn blocked(
    number: u64,
    session: &mut Session,
    request: &AcquireRequest,
    standing: &Standing<'_>,
) -> Result<Blocked, KeeperError> {
    let Standing { refusal, waits, next, .. } = standing;
    let (pid, user, line) = (session.peer.pid, session.peer.uid, &mut session.place.line);
    let ahead = if *waits {
        line.belongs_to(&WaitingProcess {
            pid: Some(pid),
            host: None,
            user: Some(user),
            command: Some(request.command.as_str().into()),
            since: line.since(),
        });
        line.serve_in(number);
        u32::try_from(refusal.ahead(line.number())).unwrap_or(u32::MAX)
    } else {
        0
    };
    let evictions = if request.may_end_others() { evictions(session, standing)? } else { Vec::new() };
    let refused = refused(refusal, *waits || session.place.has_waited, user);
    Ok(Blocked { refused, waits: *waits, ahead, next: *next, evictions })
}

/// Which holders to end, besides those that are being ended. The latter rest unless their end makes room.
/// None of the caller's nearest ancestors is one.
fn evictions(session: &mut Session, standing: &Standing<'_>) -> Result<Vec<Eviction>, KeeperError> {
    let lineage: Vec<i32> = process::near_lineage(session.peer.pid).collect();
    let progress = |overdue: &Overdue| match session.progress_of(overdue) {
        Progress::Untried if is_above(&lineage, overdue) => Progress::Spared,
        progress => progress,
    };
    // Here a holder is released and forgotten at the same moment.
    let mut chosen = standing.to_end(&Known { progress: &progress, leaving: &|_, _, _| 0 })?;
    if session.room_for_older.is_new(!chosen.is_empty() && standing.leaves_room()?) {
        chosen.clear();
    }
    session.let_rest_except(chosen.iter().flat_map(|of| of.overdue.iter().chain(&of.running)));
    Ok(chosen.into_iter().filter_map(Eviction::of).collect())
}

/// Whether one of these processes is the holder: a process that lives, on this host.
pub(in crate::agent) fn is_above(lineage: &[i32], Overdue { holder, elsewhere, .. }: &Overdue) -> bool {
    elsewhere.is_none() && holder.keeper.is_some_and(|keeper| lineage.contains(&keeper))
}

/// The grant of a launch; `is_shared` if other hosts also keep the tables of the site, and so the pauses.
fn holding(
    session: &Session,
    request: &AcquireRequest,
    grant: Grant<'_>,
    is_shared: bool,
    process: PidFd,
) -> Holding {
    let (started, before) = grant.stamps();
    // Shared slots have none, and come last.
    let before = before.to_vec();
    let table = |claim: &Claim| claim.location.in_memory().map(str::to_owned);
    let without = grant.unenforced().iter().filter_map(|claim| table(claim));
    let without = without.chain(request.without.iter().cloned()).collect();
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    for claim in grant.claims() {
        if let Some(table) = table(claim) {
            rules.entry(table).or_insert_with(|| claim.rule().to_owned());
        }
    }
    let held = in_memory(grant.into_held());
    let saved_slots = held.iter().enumerate().map(|(index, held)| SavedSlots {
        table: held.table().name().to_owned(),
        rule: rules.get(held.table().name()).cloned().unwrap_or_default(),
        slots: held.slots().to_vec(),
        is_shared: held.is_shared(),
        owners: Vec::new(),
        on_lost: request.on_lost(held.table().name()),
        group: held.group().map(|group| group.text().to_owned()),
        is_of_heirs: held.group().is_some_and(Group::is_of_heirs),
        linger: request.linger_on(held.table().name()),
        before: before.get(index).copied().flatten().and_then(since_1970),
    });
    let millis = |since: Duration| u64::try_from(since.as_millis()).unwrap_or(0);
    let is_of_site = |table: &String| is_shared && name_on_site(table).is_some();
    let (paced_at_site, paced): (Vec<String>, Vec<String>) =
        request.paced().map(str::to_owned).partition(is_of_site);
    let numbered = session.place.line.number().zip(session.take.as_deref());
    let found = Process::find(process.pid()).filter(|_| !process.has_ended());
    let script = found.filter(|found| found.pid != session.peer.pid);
    let (pid, start) = script.map_or((session.peer.pid, session.peer.started), |of| (of.pid, of.started));
    let saved = SavedHolding {
        pid,
        start,
        program: None,
        uid: session.peer.uid,
        hold: request.hold,
        host: request.host.clone(),
        command: request.command.clone(),
        since: in_millis(started),
        taken: session.place.taken.or_else(|| process::since_boot().map(millis)),
        is_started: false,
        served_as: numbered.map(|(number, take)| SavedNumber::of(number, take)),
        paced,
        paced_at_site,
        started: since_1970(started),
        tables: saved_slots.collect(),
        lingers_until: None,
        is_given_back: false,
        opened: session.take.as_ref().and_then(|take| take.opened),
    };
    for (held, slots) in held.iter().zip(&saved.tables).filter(|(held, _)| !held.is_shared()) {
        request.pause_on(&slots.table).into_iter().for_each(|length| held.table().pauses_for(length));
        held.describe(saved.holder(&slots.rule));
    }
    let (process, has_spared) = (Some(process.into()), Cell::default());
    Holding { saved, process, fifo: None, held, without, launch: 0, has_spared }
}

#[cfg(test)]
mod tests;
