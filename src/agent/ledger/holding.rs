//! A holder of slots, and what keeps them: the requesting process, a FIFO whose other end it and its
//! descendants inherit, or both.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::state::{SavedHolding, SavedSlots, at};
use crate::{
    agent::log::{Level, Topic, log},
    judge::terms::{Hold, OnLost, Runs, name_on_site},
    keeper::{Holder, agent::message::Granted, held::Held, memory, open_unchanged},
    sys::{Errno, Failure, Fifo, FileId, PidFd, Process, Signal, descriptor, process},
    text::visible,
};

/// A process with slots.
#[derive(Debug)]
pub(in crate::agent) struct Holding {
    pub(in crate::agent) saved: SavedHolding,
    /// The process; none if it has ended and only the FIFO keeps the slots.
    pub(in crate::agent) process: Option<Arc<PidFd>>,
    pub(in crate::agent) fifo: Option<Fifo>,
    pub(in crate::agent) held: Vec<memory::Held>,
    /// The tables that it needed no slots of because they are not enforced; reported once.
    pub(in crate::agent) without: Vec<String>,
    /// The number of its admission at the site; 0 if it has none, or a failed agent had it admitted.
    pub(in crate::agent) launch: u64,
    /// Whether the log says of a process that it was not ended with the holder.
    pub(in crate::agent) has_spared: Cell<bool>,
}

/// Slots that stay taken for some time, although their program has ended.
#[derive(Debug)]
pub(in crate::agent) struct Lingering {
    pub(in crate::agent) saved: SavedHolding,
    /// The slots of each table, and until when they stay taken, since boot.
    pub(in crate::agent) held: Vec<(memory::Held, Duration)>,
}

impl Lingering {
    /// Keeps the slots of each table for as long as the repository says.
    pub(in crate::agent) fn new(mut saved: SavedHolding, held: Vec<memory::Held>) -> Option<Self> {
        let now = process::since_boot()?;
        let until = |held: memory::Held| {
            let until = saved.lingers_on(held.table().name())?;
            held.linger(SystemTime::now().checked_add(until.saturating_sub(now)));
            Some((held, until))
        };
        let held: Vec<_> = held.into_iter().map(until).collect::<Option<_>>()?;
        saved.give_up(|of| !held.iter().any(|(held, _)| held.table().is_called(&of.table)));
        Some(Self { saved, held })
    }

    /// These of its slots do not linger any more. They are free when the answer is dropped.
    pub(in crate::agent) fn give_up(
        &mut self,
        is_over: impl Fn(&memory::Held, Duration) -> bool,
    ) -> Vec<memory::Held> {
        let over: Vec<_> = self.held.extract_if(.., |(held, until)| is_over(held, *until)).collect();
        self.saved.give_up(|of| over.iter().any(|(held, _)| held.table().is_called(&of.table)));
        over.into_iter().map(|(held, _)| held).collect()
    }

    /// When the first of the slots are free.
    pub(in crate::agent) fn next(&self) -> Duration {
        self.held.iter().map(|(_, until)| *until).min().unwrap_or_default()
    }

    /// Whether it has this slot.
    pub(in crate::agent) fn has(&self, table: &str, slot: u64) -> bool {
        self.held.iter().any(|(held, _)| held.table().is_called(table) && held.slots().contains(&slot))
    }

    /// Whether the slots of the other are among these, and none of them stays taken for longer than these.
    pub(in crate::agent) fn covers(&self, other: &Self) -> bool {
        other.held.iter().all(|(theirs, until)| {
            self.held.iter().any(|(own, own_until)| {
                own.table().is(theirs.table())
                    && own_until >= until
                    && theirs.slots().iter().all(|slot| own.slots().contains(slot))
            })
        })
    }
}

impl Holding {
    /// Whether anything keeps its slots.
    pub(in crate::agent) fn is_kept(&self) -> bool {
        if self.saved.lingers_until.is_some() {
            return process::since_boot() < self.saved.lingers_until;
        }
        self.is_used_below() || !self.saved.is_given_back && self.keeps_itself()
    }

    /// Whether its process or its FIFO keeps its slots, unless it has given them back.
    pub(in crate::agent) fn keeps_itself(&self) -> bool {
        let has_fifo = || self.fifo.as_ref().is_some_and(Fifo::is_held);
        let lives = || self.process.as_ref().is_some_and(|process| !process.has_ended());
        match self.saved.hold {
            Hold::Process => lives(),
            // A launch that drops the descriptor, or does not get it, may ask for its slots again. A script
            // has its FIFO open whether it was told or not.
            Hold::Descriptor => {
                has_fifo() || !self.saved.is_started && self.saved.opened.is_none() && lives()
            }
            Hold::Supervisor | Hold::Tree => lives() || has_fifo(),
        }
    }

    /// Whether it is a nested launch, which uses slots of others.
    pub(in crate::agent) fn is_nested(&self) -> bool {
        self.saved.tables.iter().any(|of| of.is_shared)
    }

    /// Whether a nested launch uses its slots too.
    pub(in crate::agent) fn is_used_below(&self) -> bool {
        self.held.iter().any(memory::Held::is_used_below)
    }

    /// Notes the process of its program, if that is a child of the requesting process. Other hosts show slots
    /// of the site by the requesting process.
    pub(in crate::agent) fn runs_as(&mut self, program: i32) -> bool {
        let is_child = Process::find(program).is_some_and(|child| child.parent == self.saved.pid);
        if self.saved.hold < Hold::Supervisor || !is_child {
            return false;
        }
        self.saved.program = Some(program);
        self.describe(|held| name_on_site(held.table().name()).is_none());
        true
    }

    /// Says who has these of its own slots.
    pub(in crate::agent) fn describe(&self, which: impl Fn(&memory::Held) -> bool) {
        self.describe_as(self, which);
    }

    /// The same where another holder keeps them now; they were taken as long ago as before. Another process
    /// may have the number of one that has ended.
    pub(in crate::agent) fn describe_as(&self, other: &Self, which: impl Fn(&memory::Held) -> bool) {
        let keeper = other.living_process();
        for held in self.held.iter().filter(|held| !held.is_shared() && which(held)) {
            let mut of_table = self.saved.tables.iter().filter(|of| of.table == held.table().name());
            if let Some(of) = of_table.find(|of| !of.is_shared) {
                let Holder { since, taken, .. } = self.saved.holder(&of.rule);
                held.describe(Holder { keeper, since, taken, ..other.saved.holder(&of.rule) });
            }
        }
    }

    /// What it got, for its launch.
    pub(in crate::agent) fn granted(&self, has_waited: bool) -> Granted {
        let slots = |of: &SavedSlots| (of.table.clone(), Runs::of(&of.slots).to_string());
        let slots = self.saved.tables.iter().map(slots).collect();
        let joined = self.held.iter().filter(|held| !held.joined().is_empty());
        let joined = joined.map(|held| (held.table().name().to_owned(), Runs::of(held.joined()).to_string()));
        let joined = Some(joined.collect()).filter(|joined: &Vec<_>| !joined.is_empty());
        Granted { slots, without: Vec::new(), hold: self.saved.hold, has_waited, joined }
    }

    /// Whether it has its own slots of the site, not an ancestor's.
    pub(in crate::agent) fn is_of_site(&self) -> bool {
        self.held.iter().any(|held| !held.is_shared() && name_on_site(held.table().name()).is_some())
    }

    /// Whether its program is ended if others have its slots of this table.
    pub(in crate::agent) fn stops_without(&self, table: &str) -> bool {
        self.saved.tables.iter().any(|of| of.table == table && of.on_lost == Some(OnLost::Stop))
    }

    /// What happens to it when the site is lost; none if it has no slots of the site. An ancestor's slot is
    /// kept by this launch, too.
    pub(in crate::agent) fn on_lost(&self) -> Option<OnLost> {
        self.saved.tables.iter().filter_map(|of| of.on_lost).max()
    }

    /// Whether it has this slot.
    pub(in crate::agent) fn has(&self, table: &str, slot: u64) -> bool {
        self.held.iter().any(|held| held.table().name() == table && held.slots().contains(&slot))
    }

    /// The same without an ancestor's slots.
    pub(in crate::agent) fn has_own(&self, table: &str, slot: u64) -> bool {
        let mut own = self.held.iter().filter(|held| !held.is_shared());
        own.any(|held| held.table().is_called(table) && held.slots().contains(&slot))
    }

    /// The site's table with this name, if it has slots of it.
    pub(in crate::agent) fn table(&self, name: &str) -> Option<&memory::Table> {
        let mut tables = self.held.iter().map(memory::Held::table);
        tables.find(|table| name_on_site(table.name()) == Some(name))
    }

    /// Sends TERM to it and to everything that keeps its slots.
    pub(in crate::agent) fn terminate(&self, alive: &Alive) {
        let (own, below) = (self.process.as_deref(), self.below(alive));
        for process in own.into_iter().chain(&below).filter(|process| self.may_signal(process)) {
            let _ = process.signal(Signal::SIGTERM);
        }
    }

    /// Kills it, with everything alive that keeps its slots. Returns how many were found besides the process
    /// itself. If all its descendants keep the slots, it is killed last: while it exists, orphans stay below
    /// it.
    pub(in crate::agent) fn kill(&self, alive: &Alive) -> usize {
        let mut below = self.below(alive);
        below.retain(|process| self.may_signal(process));
        for process in &below {
            let _ = process.signal(Signal::SIGKILL);
        }
        let found = below.len() + self.kill_children();
        if (found == 0 || self.saved.hold < Hold::Tree)
            && let Some(process) = self.process.as_deref().filter(|process| self.may_signal(process))
        {
            let _ = process.signal(Signal::SIGKILL);
        }
        found
    }

    /// Kills its children, if all its descendants keep the slots: its orphans are children too. That is much
    /// quicker than a look at all processes. Returns how many there were.
    pub(in crate::agent) fn kill_children(&self) -> usize {
        let Some(pid) = self.living_process().filter(|_| self.saved.hold == Hold::Tree) else { return 0 };
        let is_child = |process: &Process| process.parent == pid && !process.is_zombie();
        let children = process::children(pid).into_iter().filter_map(Process::find).filter(is_child);
        let children = children.filter(|child| self.has_started(child));
        let mut children: Vec<PidFd> = children.filter_map(|child| open_unchanged(&child)).collect();
        if self.living_process().is_none() {
            return 0;
        }
        children.retain(|child| self.may_signal(child));
        for child in &children {
            let _ = child.signal(Signal::SIGKILL);
        }
        children.len()
    }

    /// The number of its process, which is no other's as long as this one lives.
    fn living_process(&self) -> Option<i32> {
        self.process.as_deref().filter(|process| !process.has_ended()).map(PidFd::pid)
    }

    /// The other processes that keep its slots: those with its FIFO, and those that its process has started
    /// since it has them, if it is a supervisor that lives.
    fn below(&self, alive: &Alive) -> Vec<PidFd> {
        let job = self.living_process();
        let started = match (self.saved.hold, job) {
            (Hold::Supervisor, Some(pid)) => alive.children_of(pid, self),
            (Hold::Tree, Some(pid)) => alive.descendants_of(pid, self),
            _ => BTreeSet::new(),
        };
        let mut below = alive.among(&started, self.fifo.as_ref().map(Fifo::id));
        below.retain(|process| Some(process.pid()) != job);
        below
    }

    /// When it got the slots, as [`Process::started_on_host`] counts.
    pub(in crate::agent) fn taken_on_host(&self) -> Option<Duration> {
        self.saved.taken.map(Duration::from_millis).and_then(process::on_host)
    }

    /// Whether its process has started another one since it has the slots, and not before it became a
    /// supervisor.
    fn has_started(&self, child: &Process) -> bool {
        child.started_on_host().zip(self.taken_on_host()).is_none_or(|(started, taken)| started > taken)
    }

    /// Whether a process gets its signals: one of its user does, and so does every process that a launch of
    /// root has started, or given its FIFO to.
    fn may_signal(&self, process: &PidFd) -> bool {
        let user = self.saved.uid;
        let Some(users) = process::users(process.pid()) else { return false };
        let may_signal = user == 0 || is_of_user(process, users, user);
        if !may_signal && !self.has_spared.replace(true) {
            let (other, job, command) = (process.pid(), self.saved.pid, visible(&self.saved.command));
            let text = format!(
                "the site is lost: PID {other}, which keeps slots of PID {job} ({command}), was not ended, \
                because it runs as another user"
            );
            log(Level::Warning, Topic::End, &text);
        }
        may_signal
    }

    /// Whether a process with this FIFO may use its slots in a nested launch, or this process itself, if
    /// nothing else has to keep them. Its slots are kept while the nested launch has them.
    pub(in crate::agent) fn may_be_joined_by(
        &self,
        (pid, uid): (i32, u32),
        hold: Hold,
        fifos: &[FileId],
    ) -> bool {
        let has_fifo = || self.fifo.as_ref().is_some_and(|fifo| fifos.contains(&fifo.id()));
        let is_it = || (self.saved.pid, self.saved.hold, hold) == (pid, Hold::Process, Hold::Process);
        uid == self.saved.uid && (has_fifo() || is_it())
    }

    /// The slots that stay taken although its program has ended, and the state to save for them.
    pub(in crate::agent) fn lingering(&mut self) -> Option<Lingering> {
        let saved = self.saved.lingering()?;
        let stays = |held: &mut memory::Held| {
            let name = held.table().name();
            held.group().is_some() && saved.tables.iter().any(|of| of.table == name)
        };
        let held = self.held.extract_if(.., stays).collect();
        Lingering::new(saved, held)
    }

    /// Removes the recorded starts, because no program was started. Those of a later start stay.
    pub(in crate::agent) fn withdraw_stamps(&self) {
        self.held.iter().for_each(|held| self.withdraw_stamp(held));
    }

    fn withdraw_stamp(&self, held: &memory::Held) {
        let name = held.table().name();
        if let Some(started) = self.saved.started.and_then(at)
            && !held.is_shared()
            && held.table().stamps().0 == Some(started)
            && let Some(of) = self.saved.tables.iter().find(|of| of.table == name)
        {
            held.table().withdraw(of.before.and_then(at));
        }
    }

    /// Releases these slots, because no program was started, and removes their recorded start. Returns their
    /// tables.
    pub(in crate::agent) fn withdraw(&mut self, which: impl Fn(&memory::Held) -> bool) -> Vec<memory::Table> {
        let over: Vec<memory::Held> = self.held.extract_if(.., |held| which(held)).collect();
        let withdrawn = |held: &memory::Held| {
            self.withdraw_stamp(held);
            held.table().clone()
        };
        over.iter().map(withdrawn).collect()
    }

    /// A recorded process, if it is still the same; none if its slots are free. If a nested launch uses them,
    /// they are taken until that has ended.
    pub(in crate::agent) fn restore(
        saved: &SavedHolding,
        fifo: Option<Fifo>,
        store: &memory::Store,
        is_used_below: bool,
    ) -> Result<Option<Self>, Failure> {
        let opened = match PidFd::open(saved.pid) {
            Ok(process) => Some(process),
            Err(Errno::ESRCH) => None,
            Err(errno) => return Err(Failure { call: "pidfd_open", errno }),
        };
        let is_same =
            |_: &PidFd| Process::find(saved.pid).is_some_and(|process| process.started == saved.start);
        let mut holding = Self {
            saved: saved.clone(),
            process: opened.filter(is_same).map(Arc::new),
            fifo,
            held: Vec::new(),
            without: Vec::new(),
            launch: 0,
            has_spared: Cell::default(),
        };
        if !holding.is_kept() {
            if !is_used_below {
                return Ok(None);
            }
            holding.saved.is_given_back = true;
        }
        let (lingers, now) = (saved.lingers_until.is_some(), process::since_boot());
        for of in holding.saved.tables.iter_mut().filter(|of| !of.is_shared) {
            let (table, group) = (store.table(&of.table), of.group());
            if !lingers {
                of.slots = table.to_restore(&of.slots, group.as_ref());
            } else if saved.lingers_on(&of.table) <= now {
                continue;
            }
            holding.held.extend(table.restore(&of.slots, group.as_ref()));
        }
        holding.describe(|_| true);
        Ok(Some(holding))
    }
}

/// The own slots of a holder by their saved numbers, each with its number now. Others may have had it when
/// the holder was restored.
pub(in crate::agent) type Restored = BTreeMap<(String, u64), u64>;

impl Holding {
    /// Its own slots, after it was restored from this.
    pub(in crate::agent) fn restored_from(&self, saved: &SavedHolding) -> Restored {
        let own = saved.tables.iter().zip(&self.saved.tables).filter(|(of, _)| !of.is_shared);
        let slots = own.flat_map(|(of, now)| {
            of.slots.iter().zip(&now.slots).map(|(slot, now)| ((of.table.clone(), *slot), *now))
        });
        slots.collect()
    }

    /// Uses the slots of ancestors again, once these have been restored: of each, only its own.
    pub(in crate::agent) fn share_again(
        &mut self,
        restored: &BTreeMap<u64, Restored>,
        store: &memory::Store,
    ) {
        for of in self.saved.tables.iter_mut().filter(|of| of.is_shared) {
            let now = |(slot, owner): (&u64, &u64)| {
                Some((*restored.get(owner)?.get(&(of.table.clone(), *slot))?, *owner))
            };
            (of.slots, of.owners) = of.slots.iter().zip(&of.owners).filter_map(now).unzip();
        }
        self.saved.tables.retain(|of| !of.is_shared || !of.slots.is_empty());
        let shared = self.saved.tables.iter().filter(|of| of.is_shared);
        self.held.extend(shared.filter_map(|of| store.known(&of.table)?.share_again(&of.slots)));
    }
}

/// Whether a process that runs as these users, the real and the saved one, is this user's. In a user
/// namespace of theirs all users are theirs.
pub(in crate::agent) fn is_of_user(process: &PidFd, users: [u32; 2], user: u32) -> bool {
    users == [user, user] || user != 0 && process::owner_of_foreign(process.pid()) == Ok(Some(user))
}

/// A slot of a table has another number now. Returns whether this holder has it.
pub(in crate::agent) fn follow<'h>(
    saved: &mut SavedHolding,
    held: impl Iterator<Item = &'h mut memory::Held>,
    (table, slot, another): (&memory::Table, u64, u64),
) -> bool {
    let of_table = held.filter(|held| held.table().is(table));
    let is_concerned = of_table.fold(false, |any, held| any | held.follow(slot, another));
    let of_table = saved.tables.iter_mut().filter(|of| is_concerned && of.table == table.name());
    for own in of_table.flat_map(|of| &mut of.slots).filter(|own| **own == slot) {
        *own = another;
    }
    is_concerned
}

/// The part of a grant that is held in memory: all of it.
pub(in crate::agent) fn in_memory(held: Vec<Held>) -> Vec<memory::Held> {
    let in_memory = |held| match held {
        Held::Memory(held) => Some(held),
        Held::File(_) | Held::Agent(_) => None,
    };
    held.into_iter().filter_map(in_memory).collect()
}

/// Another write end of a FIFO, for a launch.
pub(in crate::agent) fn writer(path: &std::path::Path) -> Result<OwnedFd, Failure> {
    Fifo::writer(path).map_err(Failure::of("open"))
}

// All processes of the host, from one read of `/proc`: their parents, and which FIFOs each has open.

pub(in crate::agent) struct Alive {
    processes: BTreeMap<i32, Process>,
    children: BTreeMap<i32, Vec<i32>>,
    /// The FIFOs of launches that each of them has open.
    fifos: BTreeMap<i32, Vec<FileId>>,
}

impl Alive {
    pub(in crate::agent) fn look() -> Self {
        let own = process::own_pid();
        let all = process::all().into_iter().filter(|process| process.pid != own && !process.is_zombie());
        let processes: BTreeMap<i32, Process> = all.map(|process| (process.pid, process)).collect();
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for process in processes.values() {
            children.entry(process.parent).or_default().push(process.pid);
        }
        let fifos = processes.keys().map(|pid| (*pid, descriptor::of_process(*pid)));
        let fifos = fifos.filter(|(_, fifos)| !fifos.is_empty()).collect();
        Self { processes, children, fifos }
    }

    /// The children of the process of a holding that are its own.
    fn children_of(&self, pid: i32, holding: &Holding) -> BTreeSet<i32> {
        let children = self.children.get(&pid).into_iter().flatten();
        let is_its = |child: &i32| self.processes.get(child).is_some_and(|child| holding.has_started(child));
        children.copied().filter(is_its).collect()
    }

    /// These, with all that are below them.
    fn descendants_of(&self, pid: i32, holding: &Holding) -> BTreeSet<i32> {
        let own: Vec<i32> = self.children_of(pid, holding).into_iter().collect();
        descendants(pid, |of| match self.children.get(&of) {
            _ if of == pid => &own,
            children => children.map_or(&[][..], Vec::as_slice),
        })
    }

    /// These processes, and all others that have this FIFO open.
    fn among(&self, some: &BTreeSet<i32>, fifo: Option<FileId>) -> Vec<PidFd> {
        let has_fifo =
            |of: i32| self.fifos.get(&of).is_some_and(|all| fifo.is_some_and(|fifo| all.contains(&fifo)));
        let is_meant = |process: &&Process| some.contains(&process.pid) || has_fifo(process.pid);
        self.processes.values().filter(is_meant).filter_map(open_unchanged).collect()
    }

    /// The processes with this FIFO open; each is opened by pidfd and then checked again.
    pub(in crate::agent) fn heirs(&self, fifo: FileId) -> Vec<PidFd> {
        let has_it = |open: &PidFd| descriptor::of_process(open.pid()).contains(&fifo);
        let had_it = self.fifos.iter().filter(|(_, fifos)| fifos.contains(&fifo));
        let heirs = had_it.filter_map(|(pid, _)| self.processes.get(pid));
        heirs.filter_map(open_unchanged).filter(has_it).collect()
    }
}

/// A process with all that are below it. Each is visited once, however deep a user stacks them: a reused
/// process id could even form a cycle.
fn descendants<'c>(of: i32, children: impl Fn(i32) -> &'c [i32]) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([of]);
    let mut left = vec![of];
    while let Some(next) = left.pop() {
        left.extend(children(next).iter().filter(|child| found.insert(**child)));
    }
    found
}

#[cfg(test)]
mod tests;
