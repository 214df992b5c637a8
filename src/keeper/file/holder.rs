//! The holder of a slot, as far as proved. The kernel says that the slot is held, and mostly by which
//! process. The record adds user and start, and counts only if it agrees with the kernel. A holder without
//! proof is shown as unknown, never hidden.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    iter,
    ops::RangeInclusive,
    time::{Duration, SystemTime},
};

use super::{
    Header, LAST_SLOT, LockPath, RECORD_SIZE, Record, RepositoryError,
    error::call,
    file::LockFile,
    job::Guardian,
    layout::{grouped_at, groups, guardians, guardians_of, record_at, slot_byte},
    line,
    record::short_boot_id,
    scan::{listed, locks_within, scan},
};
use crate::{
    judge::terms::Hold,
    keeper::{Occupancy, Span, Waiter, line::shown_pid},
    sys::{Bytes, Conflict, Errno, Process, process, record_lock},
};

/// The holder of a slot, or of neighbouring slots with the same holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// First and last slot.
    pub slots: (u64, u64),
    /// The process, if it can be seen from here.
    pub pid: Option<i32>,
    /// The process whose end frees the slot: the supervisor, if there is one.
    pub keeper: Option<i32>,
    pub uid: Option<u32>,
    /// The node name that it recorded.
    pub host: Option<String>,
    /// Since when it holds the slot, by the clock as it was set then. For a program without records: since
    /// when it runs.
    pub since: Option<SystemTime>,
    /// The same as time since boot, if it recorded that.
    pub taken: Option<Duration>,
    /// What keeps the slot.
    pub hold: Option<Hold>,
    pub command: Option<String>,
    /// The rule that asked for the slot.
    pub rule: Option<String>,
    /// Until when the slot stays taken, if its program has ended.
    pub lingers_until: Option<SystemTime>,
    /// The others that share the slot with it, if they were looked for.
    pub others: Vec<Holder>,
}

impl Holder {
    /// All that share the slot, itself first.
    pub fn all(&self) -> impl Iterator<Item = &Holder> {
        iter::once(self).chain(&self.others)
    }

    /// An unknown holder.
    pub fn unknown(slots: RangeInclusive<u64>) -> Self {
        let (pid, keeper, uid, host) = (None, None, None, None);
        let (since, taken, hold, command, rule) = (None, None, None, None, None);
        let (slots, lingers_until, others) = (slots.into_inner(), None, Vec::new());
        Self { slots, pid, keeper, uid, host, since, taken, hold, command, rule, lingers_until, others }
    }

    /// The one that wrote a record, and keeps its slots itself.
    pub fn of_record(slots: (u64, u64), record: Record) -> Self {
        Self {
            slots,
            pid: Some(record.pid),
            keeper: Some(record.pid),
            uid: Some(record.uid),
            since: Some(record.since()),
            taken: record.taken.map(Duration::from_millis),
            host: Some(record.host),
            hold: Some(record.hold),
            command: Some(record.command),
            rule: Some(record.rule),
            lingers_until: None,
            others: Vec::new(),
        }
    }

    /// Its host, if its process cannot be seen here: a process id means nothing on another host.
    pub fn elsewhere(&self) -> Option<&str> {
        let has_ended_here = self.lingers_until.is_some() && self.taken.is_some();
        let is_elsewhere = self.pid.is_some() && self.keeper.is_none() && !has_ended_here;
        self.host.as_deref().filter(|_| is_elsewhere)
    }

    /// Its process for people: `9001`, or `9001@lab2` on another host.
    pub fn shown_pid(&self) -> Option<String> {
        Some(shown_pid(self.pid?, self.elsewhere()))
    }

    /// How long it has held the slot, even if the clock was set meanwhile. If it recorded only the time of
    /// day, and the clock was set back, it is zero.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        if let (Some(taken), Some(now)) = (self.taken, process::since_boot()) {
            return Some(now.saturating_sub(taken));
        }
        self.since.map(|since| now.duration_since(since).unwrap_or_default())
    }
}

/// A span with more slots than this is one holder without records, for example with a lock to the end of the
/// file.
const LONG: u64 = 256;

/// The same, after a search through the descriptors of all processes for holders of slots without a record.
/// It takes milliseconds, and is done only if there is such a slot.
pub fn holders_with_search(file: &LockFile, occupancy: &Occupancy) -> Result<Vec<Holder>, RepositoryError> {
    let mut holders = holders(file, occupancy)?;
    search(file, &mut holders);
    with_others(file, holders)
}

/// Looks for the processes of holders that neither the kernel's lock nor a record names.
pub fn search(file: &LockFile, holders: &mut [Holder]) {
    if holders.iter().all(|holder| holder.pid.is_some()) {
        return;
    }
    let locks = record_lock::locks_of_descriptions(file.id());
    for holder in holders.iter_mut().filter(|holder| holder.pid.is_none()) {
        let byte = slot_byte(holder.slots.0);
        if let Some((pid, _)) = locks.iter().find(|(_, bytes)| bytes.contains(&byte)) {
            *holder = describe(holder.slots, Some(*pid), None);
        }
    }
}

/// All holders of a file, by slot.
pub fn holders(file: &LockFile, occupancy: &Occupancy) -> Result<Vec<Holder>, RepositoryError> {
    known_holders(file, occupancy, usize::MAX).map(|known| known.holders)
}

/// What to report of holders.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// By slot.
    pub holders: Vec<Holder>,
    /// How many more hold slots that were not looked up in `/proc`.
    pub others: u64,
}

/// The same, asking `/proc` about this many processes at most.
pub fn known_holders(
    file: &LockFile,
    occupancy: &Occupancy,
    most_asked: usize,
) -> Result<Known, RepositoryError> {
    let boot = process::boot_id().map(short_boot_id);
    let mut records = Records { file, first: 0, bytes: Vec::new() };
    let mut known = Known::default();
    let mut asked =
        ProcessQueries { most: most_asked, count: 0, processes: BTreeMap::new(), left_out: BTreeSet::new() };
    let supervisors = Supervisors::of(file);
    for Span { slots, pid } in occupancy.spans() {
        let (first, last) = (*slots.start(), *slots.end());
        let mut of_span = Vec::new();
        let mut end = last.min(LAST_SLOT.max(first));
        // Backwards, because the record is at the last of the slots that were taken together.
        while end >= first {
            let record =
                records.of(end, first)?.filter(|record| may_be_believed(record, *pid, boot.as_deref()));
            // If the lock has no process, only /proc shows whether the record is still true.
            let is_to_prove = pid.is_none() && record.is_some();
            if is_to_prove && !asked.may_ask() {
                known.others = known.others.saturating_add(1);
                end = end.saturating_sub(record.map_or(1, |record| record.slots.max(1)));
                continue;
            }
            let supervisor = record.as_ref().map_or(Ok(None), |record| supervisors.of_record(record, end))?;
            let record = record.filter(|record| !is_to_prove || supervisor.is_some() || is_alive(record));
            let long = |from: u64| end.saturating_sub(from) >= LONG;
            let from = match &record {
                Some(record) => end.saturating_sub(record.slots.saturating_sub(1)).max(first),
                None if long(first) => first,
                None => end,
            };
            let keeper = supervisor.filter(|_| record.is_some());
            let holder = asked.about(record, *pid);
            match holder.map(|holder| Holder { keeper: keeper.or(holder.keeper), ..holder }) {
                Some(holder) if long(from) => of_span.push(Holder { slots: (from, end), ..holder }),
                Some(holder) => {
                    let each = |slot| Holder { slots: (slot, slot), ..holder.clone() };
                    of_span.extend((from..=end).rev().map(each));
                }
                None => {}
            }
            end = from.saturating_sub(1);
        }
        known.holders.extend(of_span.into_iter().rev());
    }
    known.others = known.others.saturating_add(asked.left_out.len() as u64);
    Ok(known)
}

/// The answers of `/proc`, each process once, if the kernel names it and no record does.
struct ProcessQueries {
    most: usize,
    count: usize,
    processes: BTreeMap<i32, Holder>,
    left_out: BTreeSet<i32>,
}

impl ProcessQueries {
    /// The holder, without its slots; none if the maximum number of queries is reached.
    fn about(&mut self, record: Option<Record>, pid: Option<i32>) -> Option<Holder> {
        let nowhere = (0, 0);
        let (None, Some(process)) = (&record, pid) else { return Some(describe(nowhere, pid, record)) };
        if let Some(known) = self.processes.get(&process) {
            return Some(known.clone());
        }
        if !self.may_ask() {
            self.left_out.insert(process);
            return None;
        }
        let holder = describe(nowhere, pid, None);
        self.processes.insert(process, holder.clone());
        Some(holder)
    }

    fn may_ask(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.count <= self.most
    }
}

/// The user of the launch that wrote `start` into the header: the record of its slot is still there, even if
/// another launch came later.
pub fn who_started(
    file: &LockFile,
    header: &Header,
    start: SystemTime,
) -> Result<Option<u32>, RepositoryError> {
    let Some(slot) = header.cursor.checked_sub(1).filter(|slot| (1..=LAST_SLOT).contains(slot)) else {
        return Ok(None);
    };
    let record = Records { file, first: 0, bytes: Vec::new() }.of(slot, slot)?;
    Ok(record.filter(|record| record.since() == start).map(|record| record.uid))
}

/// Whether the record of a slot is of a process that lives. That of this process for an earlier, weaker hold
/// does not count: the kernel contradicts it.
pub(super) fn is_described(file: &LockFile, slot: u64, launch: &Record) -> Result<bool, RepositoryError> {
    let record = Records { file, first: 0, bytes: Vec::new() }.of(slot, slot)?;
    let boot = process::boot_id().map(short_boot_id);
    let is_replaced = |record: &Record| record.pid == launch.pid && record.hold < launch.hold;
    let is_current = |record: &Record| Some(&record.boot) == boot.as_ref() && !is_replaced(record);
    let Some(record) = record.filter(is_current) else { return Ok(false) };
    Ok(is_alive(&record) || Supervisors::of(file).of_record(&record, slot)?.is_some())
}

/// Whether a record does not contradict the kernel: its process is that of the lock, if the lock has one.
fn may_be_believed(record: &Record, pid: Option<i32>, boot: Option<&str>) -> bool {
    Some(record.boot.as_str()) == boot
        && match pid {
            Some(pid) => record.hold == Hold::Process && record.pid == pid,
            None => record.hold != Hold::Process,
        }
}

/// The holder according to its record, if the record is believed.
pub(super) fn describe(slots: (u64, u64), pid: Option<i32>, record: Option<Record>) -> Holder {
    if let Some(record) = record {
        return Holder::of_record(slots, record);
    }
    let process = pid.and_then(Process::find);
    Holder {
        slots,
        pid,
        keeper: pid,
        uid: pid.and_then(process::owner),
        host: None,
        since: process.as_ref().and_then(Process::start_time),
        taken: None,
        hold: None,
        command: process.map(|process| process.name),
        rule: None,
        lingers_until: None,
        others: Vec::new(),
    }
}

/// If the lock has no process: whether the recorded command lives. A killed process keeps nothing, even
/// before its parent has reaped it.
fn is_alive(record: &Record) -> bool {
    Process::find(record.pid).is_some_and(|process| process.started == record.start && !process.is_zombie())
}

/// The guardians of a file, read when they are needed.
struct Supervisors<'file> {
    file: &'file LockFile,
    guardians: OnceCell<Vec<(Guardian, i32)>>,
}

impl<'file> Supervisors<'file> {
    fn of(file: &'file LockFile) -> Self {
        Self { file, guardians: OnceCell::new() }
    }

    /// The supervisor that the record of this slot names, if it lives and took the slot. In another PID
    /// namespace its number is that of a stranger. But the kernel shows its guardian with its number here.
    fn of_record(&self, record: &Record, slot: u64) -> Result<Option<i32>, RepositoryError> {
        let Some(pid) = record.supervisor else { return Ok(None) };
        let first = slot.saturating_sub(record.slots.saturating_sub(1)).max(1);
        let is_its_own = match self.file.conflict(&guardians_of(first))? {
            Some(lock) if lock.pid == Some(pid) => true,
            // Of those who share a slot, the kernel names only one.
            _ => self.all()?.iter().any(|(guardian, by)| *by == pid && guardian.slot <= slot),
        };
        Ok(is_its_own.then_some(pid))
    }

    fn all(&self) -> Result<&[(Guardian, i32)], RepositoryError> {
        if self.guardians.get().is_none() {
            let _ = self.guardians.set(all_guardians(self.file)?.seen);
        }
        Ok(self.guardians.get().map_or(&[], Vec::as_slice))
    }
}

/// The guardians of a file.
pub(super) struct Guardians {
    /// Each with its process.
    pub(super) seen: Vec<(Guardian, i32)>,
    /// The slots of those whose process is in another PID namespace: a query names none then. The list of all
    /// locks omits them.
    pub(super) hidden: Vec<u64>,
}

pub(super) fn all_guardians(file: &LockFile) -> Result<Guardians, RepositoryError> {
    let mut all = Guardians { seen: Vec::new(), hidden: Vec::new() };
    for lock in locks_within(file, &guardians())? {
        match (Guardian::of(&lock.bytes), lock.pid) {
            (Some(guardian), Some(pid)) => all.seen.push((guardian, pid)),
            (Some(guardian), None) => all.hidden.push(guardian.slot),
            (None, _) => {}
        }
    }
    Ok(all)
}

/// Reads records through a window, because thousands of them are next to each other.
struct Records<'file> {
    file: &'file LockFile,
    first: u64,
    bytes: Vec<u8>,
}

/// How many records are read at once.
const WINDOW: usize = 64;

impl Records<'_> {
    /// The record of a slot; `from` is the first that may be asked for next.
    fn of(&mut self, slot: u64, from: u64) -> Result<Option<Record>, RepositoryError> {
        if slot > LAST_SLOT {
            return Ok(None);
        }
        if let Some(bytes) = self.in_window(slot) {
            return Ok(Record::decode(bytes));
        }
        self.first = slot.saturating_add(1).saturating_sub(WINDOW as u64).max(from);
        self.bytes.resize(RECORD_SIZE * WINDOW, 0);
        let length = self.file.read_at(&mut self.bytes, record_at(self.first))?;
        self.bytes.iter_mut().skip(length).for_each(|byte| *byte = 0);
        Ok(self.in_window(slot).and_then(Record::decode))
    }

    fn in_window(&self, slot: u64) -> Option<&[u8]> {
        let index = usize::try_from(slot.checked_sub(self.first)?).ok()?;
        self.bytes.chunks_exact(RECORD_SIZE).nth(index)
    }
}

// Those who share a slot.

/// More slots of one holder are not examined one by one.
const MOST_SLOTS: u64 = 256;

/// The same holders with those who have their slots together with them. A member that cannot be seen from
/// here is unknown.
fn with_others(file: &LockFile, holders: Vec<Holder>) -> Result<Vec<Holder>, RepositoryError> {
    let memberships = memberships(&locks(file)?.unwrap_or_default());
    if memberships.is_empty() {
        return Ok(holders);
    }
    let has_description = memberships.iter().any(|member| member.pid.is_none());
    let descriptions =
        if has_description { record_lock::locks_of_descriptions(file.id()) } else { Vec::new() };
    let mut all = Vec::new();
    for holder in holders {
        let (first, last) = holder.slots;
        let is_grouped = memberships.iter().any(|member| (first..=last).contains(&member.slot));
        if !is_grouped || last.saturating_sub(first) >= MOST_SLOTS {
            all.push(holder);
            continue;
        }
        for slot in first..=last {
            let members: Vec<&Membership> = memberships.iter().filter(|member| member.slot == slot).collect();
            all.push(with_members(Holder { slots: (slot, slot), ..holder.clone() }, &members, &descriptions));
        }
    }
    Ok(all)
}

fn with_members(holder: Holder, members: &[&Membership], descriptions: &[(i32, Bytes)]) -> Holder {
    let mut seen: Vec<i32> = members.iter().filter_map(|member| member.pid).collect();
    // A process that has replaced itself may have several locks.
    let owners = owners(members, descriptions);
    let unseen = members.len().saturating_sub(seen.len()).saturating_sub(owners.len());
    seen.extend(owners);
    seen.sort_unstable();
    seen.dedup();
    seen.truncate(members.len());
    let own = |pid: i32| holder.pid == Some(pid) || holder.keeper == Some(pid);
    let is_seen = seen.iter().any(|pid| own(*pid));
    let mut others: Vec<Holder> = seen
        .into_iter()
        .filter(|pid| !own(*pid))
        .map(|pid| describe(holder.slots, Some(pid), None))
        .collect();
    // One of them is the holder itself.
    let unseen = if is_seen { unseen } else { unseen.saturating_sub(1) };
    others.extend((0..unseen).map(|_| Holder::unknown(holder.slots.0..=holder.slots.1)));
    Holder { others, ..holder }
}

/// The processes that created the descriptions: their children have the same ones.
fn owners(members: &[&Membership], descriptions: &[(i32, Bytes)]) -> Vec<i32> {
    let is_theirs = |bytes: &Bytes| members.iter().any(|member| bytes.contains(&member.byte));
    let have: Vec<i32> =
        descriptions.iter().filter(|(_, bytes)| is_theirs(bytes)).map(|(pid, _)| *pid).collect();
    let is_first = |pid: &i32| Process::find(*pid).is_none_or(|process| !have.contains(&process.parent));
    have.iter().copied().filter(is_first).collect()
}

// The members of a group, who share its slots. A query names only one reader of a byte. So all locks of the
// file are listed, after the decision, for listings and to end a whole group.

/// What one member has locked of one slot of its group.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// The group, by its place in the file.
    pub(super) group: u64,
    pub(super) slot: u64,
    /// The byte of the membership.
    pub(super) byte: u64,
    /// Its process, where a process has locked it.
    pub(super) pid: Option<i32>,
}

/// Every lock of the file, if groups have slots. None if they have, and the locks cannot be listed.
pub(super) fn locks(file: &LockFile) -> Result<Option<Vec<Conflict>>, RepositoryError> {
    if file.conflict(&groups())?.is_none() {
        return Ok(Some(Vec::new()));
    }
    listed(file)
}

/// The memberships among these locks.
pub(super) fn memberships(locks: &[Conflict]) -> Vec<Membership> {
    let of = |Conflict { bytes, pid }: &Conflict| {
        let byte = *bytes.start();
        let (group, slot) = grouped_at(byte).filter(|_| bytes.start() == bytes.end())?;
        Some(Membership { group, slot, byte, pid: *pid })
    };
    locks.iter().filter_map(of).collect()
}

// Looks at a repository without taking anything, for listings and explanations. It creates nothing; a file
// that does not exist is an unused repository.

/// A repository at one moment.
#[derive(Clone, Debug, Default)]
pub struct TableSnapshot {
    /// How many slots are held.
    pub used: u64,
    /// The holders, by slot.
    pub holders: Vec<Holder>,
    /// The waiters, oldest first.
    pub waiting: Vec<Waiter>,
    /// When a program was last started under it.
    pub last_start: Option<SystemTime>,
    /// When one was last seen to end under it.
    pub last_end: Option<SystemTime>,
}

/// Which slots of a file are held, and by which processes where the kernel names them: all that exectimes
/// tells. A file that does not exist has none.
pub fn held_slots(place: &LockPath<'_>) -> Result<Occupancy, RepositoryError> {
    LockFile::open_to_read(place)?.map_or(Ok(Occupancy::default()), |file| scan(&file))
}

/// The processes that have slots of a file, and those that wait, as far as the kernel names them. By a
/// record, any process could seem to have a slot.
pub fn processes(place: &LockPath<'_>) -> Result<BTreeSet<i32>, RepositoryError> {
    let Some(file) = LockFile::open_to_read(place)? else { return Ok(BTreeSet::new()) };
    let held = scan(&file)?;
    let mut processes: BTreeSet<i32> = held.spans().iter().filter_map(|span| span.pid).collect();
    if held.spans().iter().any(|span| span.pid.is_none()) {
        // Whose descriptors have the locks of descriptions. The first process never runs a job.
        let slots = slot_byte(1)..=slot_byte(LAST_SLOT);
        let of_slots = |(pid, bytes): &(i32, Bytes)| *pid > 1 && slots.contains(bytes.start());
        let found = record_lock::locks_of_descriptions(file.id()).into_iter().filter(of_slots);
        processes.extend(found.map(|(pid, _)| pid));
    }
    processes.extend(all_guardians(&file)?.seen.into_iter().map(|(_, pid)| pid));
    processes.extend(line::waiters(&file)?.into_iter().filter_map(|waiter| waiter.process.pid));
    Ok(processes)
}

type HoldersOf = fn(&LockFile, &Occupancy) -> Result<Vec<Holder>, RepositoryError>;

impl TableSnapshot {
    /// Looks at a lock file of a policy: one that does not exist was never used.
    pub fn of(place: &LockPath<'_>) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(place)?
            .map_or(Ok(Self::default()), |file| Self::of_file(&file, holders_with_search))
    }

    /// The same, for callers that look repeatedly: it does not search for a holder without a record.
    pub fn at_a_glance(place: &LockPath<'_>) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(place)?.map_or(Ok(Self::default()), |file| Self::of_file(&file, holders))
    }

    /// Looks at a lock file that the caller named, which should exist.
    pub fn of_existing(place: &LockPath<'_>) -> Result<Self, RepositoryError> {
        match LockFile::open_to_read(place)? {
            Some(file) => Self::of_file(&file, holders_with_search),
            None => Err(call("open", place.path, "open", Errno::ENOENT)),
        }
    }

    fn of_file(file: &LockFile, holders: HoldersOf) -> Result<Self, RepositoryError> {
        let header = Header::read(file)?;
        let occupancy = scan(file)?;
        let mut waiting = line::waiters(file)?;
        for waiter in &mut waiting {
            waiter.wants = line::wants(file, waiter)?;
        }
        Ok(Self {
            used: occupancy.shown(),
            holders: holders(file, &occupancy)?,
            waiting,
            last_start: header.last_start,
            last_end: header.last_end,
        })
    }

    /// How many of `slots` are free.
    pub fn free_among(&self, slots: &RangeInclusive<u64>) -> u64 {
        let held =
            |slot: &u64| self.holders.iter().any(|holder| (holder.slots.0..=holder.slots.1).contains(slot));
        slots.clone().filter(|slot| !held(slot)).count() as u64
    }

    /// The holder that has held its slot for longest.
    pub fn oldest(&self) -> Option<&Holder> {
        self.holders.iter().filter(|holder| holder.since.is_some()).min_by_key(|holder| holder.since)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tempfile::{NamedTempFile, TempPath};

    use super::*;
    use crate::{
        judge::terms::Creation,
        keeper::file::{
            layout::{group_byte, slot_bytes},
            prune,
        },
    };

    /// An empty lock file, and the same file as another program has it open.
    fn file_and_other() -> (LockFile, LockFile, TempPath) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        let other = LockFile::open_to_read(&place).expect("a lock file").expect("the file is there");
        (file, other, path)
    }

    fn record() -> Record {
        Record {
            pid: 7,
            supervisor: None,
            start: 1,
            uid: 1000,
            since: 0,
            taken: None,
            slots: 1,
            hold: Hold::Process,
            boot: "01234567".to_owned(),
            host: "ws17".to_owned(),
            rule: "seats".to_owned(),
            command: "matlab".to_owned(),
        }
    }

    /// Each record is that of its slot, in whatever order slots are looked at. There is none behind the last
    /// slot, and none behind the end of the file.
    #[test]
    fn a_record_is_found_by_its_slot() {
        let (file, _other, _path) = file_and_other();
        let write = |slot: u64| {
            let record = Record { start: slot, ..record() };
            file.write_at(&record.encode(), record_at(slot)).expect("the file can be written");
        };
        let written = [1, 2, 63, 64, 65, 128, 200];
        written.into_iter().for_each(write);
        let mut records = Records { file: &file, first: 0, bytes: Vec::new() };
        let mut found = |slot, from| {
            let record = records.of(slot, from).expect("the file can be read");
            record.map(|record| record.start)
        };
        for slot in (1..=210).rev() {
            assert_eq!(found(slot, 1), written.contains(&slot).then_some(slot));
        }
        assert_eq!([found(200, 200), found(5_000, 1), found(128, 100)], [Some(200), None, Some(128)]);
        [LAST_SLOT, LAST_SLOT + 1].into_iter().for_each(write);
        assert_eq!([found(LAST_SLOT, 1), found(LAST_SLOT + 1, 1)], [Some(LAST_SLOT), None]);
    }

    /// A bounded number of processes is looked up for a report; the others are counted. A record is believed
    /// only if its process lives.
    #[test]
    fn processes_that_are_not_looked_up_are_counted() {
        let (file, other, _path) = file_and_other();
        let own = process::own_pid();
        for slot in [5, 7] {
            assert!(file.try_lock(&slot_bytes(slot, slot)).expect("a lock file"), "the slot is free");
        }
        assert!(other.try_join_shared(&slot_bytes(2, 3)).expect("a lock file"), "the slots are free");
        let known = |most| {
            let seen = scan(&file).and_then(|held| known_holders(&file, &held, most));
            let seen = seen.expect("a lock file");
            let holders = seen.holders.iter().map(|holder| (holder.slots.0, holder.pid, holder.hold));
            (holders.collect::<Vec<_>>(), seen.others)
        };
        let (unknown, mine) =
            ([(2, None, None), (3, None, None)], [(5, Some(own), None), (7, Some(own), None)]);
        assert_eq!(known(0), (unknown.to_vec(), 1));
        assert_eq!(known(1), ([unknown, mine].concat(), 0));
        let (hold, start) = (Hold::Descriptor, process::own_start(own).expect("/proc is mounted"));
        let boot = process::boot_id().map(short_boot_id).expect("/proc is mounted");
        let living = Record { pid: own, start, slots: 2, hold, boot, ..record() };
        let ended = Record { start: start + 1, ..living.clone() };
        let write = |record: &Record, slot| {
            file.write_at(&record.encode(), record_at(slot)).expect("the file can be written");
        };
        write(&ended, 3);
        assert_eq!(known(usize::MAX), ([unknown, mine].concat(), 0));
        write(&living, 3);
        let described = [(2, Some(own), Some(hold)), (3, Some(own), Some(hold))];
        assert_eq!(known(usize::MAX), ([described, mine].concat(), 0));
        assert_eq!(known(1), (described.to_vec(), 1), "to look whether it lives counts too");
        assert_eq!(known(0), (Vec::new(), 2));
        write(&ended, 3);
        write(&Record { slots: 1, ..living }, 2);
        assert_eq!(known(usize::MAX), ([[described[0], unknown[1]], mine].concat(), 0));
    }

    /// A killed process keeps nothing, also before its parent has waited for it.
    #[test]
    fn a_process_that_was_killed_does_not_live() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat(1)");
        let pid = child.id().cast_signed();
        let start = Process::find(pid).expect("it lives").started;
        let living = Record { pid, start, ..record() };
        assert!(is_alive(&living));
        assert!(!is_alive(&Record { start: start + 1, ..living.clone() }), "it had another process's number");
        let open = process::PidFd::open(pid).expect("it lives");
        child.kill().expect("it is ours");
        assert_eq!(process::wait_for_any([&open], Duration::from_secs(60)), Ok(true));
        assert!(!is_alive(&living));
        child.wait().expect("it has ended");
    }

    /// A record is not believed to have a supervisor that has no guardian for its slot. The supervisor of a
    /// command that has ended still keeps the slot.
    #[test]
    fn a_supervisor_has_a_guardian() {
        let own = process::own_pid();
        let guardian = |hold| Guardian::begin(2, hold).expect("/proc is mounted").byte();
        for is_shared in [false, true] {
            let (file, other, _path) = file_and_other();
            if is_shared {
                // The kernel names this one first.
                assert!(other.try_join_shared(&guardian(Hold::Tree)).expect("a lock file"), "it is free");
            }
            assert!(file.try_read_lock(&guardian(Hold::Supervisor)).expect("a lock file"), "it is free");
            let supervisor_of = |slot, slots, supervisor| {
                let record = Record { supervisor, slots, ..record() };
                Supervisors::of(&file).of_record(&record, slot).expect("a lock file")
            };
            assert_eq!(supervisor_of(2, 1, Some(own)), Some(own), "{is_shared}");
            assert_eq!(supervisor_of(3, 2, Some(own)), Some(own), "it took two slots");
            assert_eq!(supervisor_of(1, 1, Some(own)), None, "its guardian is that of another slot");
            assert_eq!(supervisor_of(2, 1, Some(own + 1)), None, "it is another process");
            assert_eq!(supervisor_of(2, 1, None), None);
        }

        let (file, other, _path) = file_and_other();
        assert!(file.try_read_lock(&guardian(Hold::Supervisor)).expect("a lock file"), "it is free");
        assert!(other.try_join_shared(&slot_bytes(2, 2)).expect("a lock file"), "it is free");
        let (pid, hold, supervisor) = (i32::MAX, Hold::Supervisor, Some(own));
        let boot = process::boot_id().map(short_boot_id).expect("/proc is mounted");
        let ended = Record { pid, supervisor, hold, boot, ..record() };
        file.write_at(&ended.encode(), record_at(2)).expect("the file can be written");
        let holders = scan(&file).and_then(|held| holders(&file, &held)).expect("a lock file");
        let seen: Vec<_> = holders.iter().map(|holder| (holder.pid, holder.keeper)).collect();
        assert_eq!(seen, [(Some(pid), Some(own))]);
    }

    /// A holder of very many slots without a record is one holder, up to the last slot that limits can reach.
    #[test]
    fn a_holder_of_very_many_slots_is_listed_once() {
        let (file, other, _path) = file_and_other();
        for (first, last) in [(1000, 999 + LONG), (2000, 2000 + LONG), (5000, LAST_SLOT + 9)] {
            assert!(other.try_join_shared(&slot_bytes(first, last)).expect("a lock file"), "it is free");
        }
        let holders = scan(&file).and_then(|held| holders(&file, &held)).expect("a lock file");
        let (short, long): (Vec<_>, Vec<_>) =
            holders.iter().map(|holder| holder.slots).partition(|(first, last)| first == last);
        assert_eq!(short, (1000..1000 + LONG).map(|slot| (slot, slot)).collect::<Vec<_>>());
        assert_eq!(long, [(2000, 2000 + LONG), (5000, LAST_SLOT)]);
    }

    /// Those who share a slot with its holder are each listed once, by process id. One of the members is the
    /// holder itself, also if it cannot be seen. A member that cannot be seen is unknown.
    #[test]
    fn the_others_of_a_slot_are_each_listed_once() {
        // Numbers that no process has.
        let [one, two, three] = [1, 2, 3].map(|number| i32::MAX - 3 + number);
        let others = |(pid, keeper), members: &[Option<i32>], descriptions: &[(i32, Bytes)]| {
            let member = |(byte, pid)| Membership { group: 0, slot: 3, byte, pid };
            let members: Vec<Membership> = (1..).zip(members.iter().copied()).map(member).collect();
            let holder = Holder { pid, keeper, ..Holder::unknown(3..=3) };
            let shared = with_members(holder, &members.iter().collect::<Vec<_>>(), descriptions);
            shared.others.iter().map(|other| other.pid).collect::<Vec<_>>()
        };
        let first = (Some(one), Some(one));
        let several = [Some(three), Some(one), Some(two), Some(three)];
        assert_eq!(others(first, &several, &[]), [Some(two), Some(three)]);
        assert_eq!(others((Some(three), Some(one)), &[Some(one), Some(two)], &[]), [Some(two)]);
        assert_eq!(others(first, &[Some(one), Some(two), None], &[]), [Some(two), None]);
        assert_eq!(others((None, None), &[Some(two), None, None], &[]), [Some(two), None]);
        // Members without a process are known by the locks of their descriptions.
        let second = (Some(two), Some(two));
        let seen = [(two, 1..=1), (three, 2..=2), (one, 9..=9)];
        assert_eq!(others(second, &[None, None], &seen), [Some(three)]);
        assert!(others(second, &[None], &[(two, 1..=1), (three, 1..=1)]).is_empty(), "there is one member");
    }

    /// A child has the descriptions of its parent, and is no other member.
    #[test]
    fn who_inherited_a_description_is_no_member() {
        let (own, ended) = (process::own_pid(), i32::MAX);
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat(1)");
        let inherited = [(child.id().cast_signed(), 1..=1), (own, 1..=1), (ended, 2..=2)];
        let members = [1, 2].map(|byte| Membership { group: 0, slot: 3, byte, pid: None });
        let found = owners(&members.iter().collect::<Vec<_>>(), &inherited);
        assert_eq!(found, [own, ended]);
        child.wait().expect("it ends with its input");
    }

    /// Each slot of a group is listed on its own, with its members. A holder without a group stays as it is,
    /// and so does one of very many slots.
    #[test]
    fn slots_of_groups_are_listed_one_by_one() {
        let (file, other, _path) = file_and_other();
        // While others on the host take and free locks, the list of all locks may lack some.
        let is_listed = |held: &[RangeInclusive<u64>], expected: &[((u64, u64), usize)]| {
            (0..9).any(|_| {
                let holders = held.iter().cloned().map(Holder::unknown).collect();
                let listed = with_others(&file, holders).expect("a lock file");
                listed.iter().map(|holder| (holder.slots, holder.others.len())).eq(expected.iter().copied())
            })
        };
        assert!(is_listed(&[1..=3], &[((1, 3), 0)]), "there is no group");
        for (rank, slot) in [(0, 2), (1, 10), (2, 300)] {
            let byte = group_byte(7, rank, slot);
            for bytes in [slot_bytes(slot, slot), byte..=byte] {
                assert!(other.try_join_shared(&bytes).expect("a lock file"), "the bytes are free");
            }
        }
        assert!(is_listed(&[1..=3, 5..=6], &[((1, 1), 0), ((2, 2), 1), ((3, 3), 0), ((5, 6), 0)]));
        let each: Vec<((u64, u64), usize)> =
            (10..10 + MOST_SLOTS).map(|slot| ((slot, slot), usize::from(slot == 10))).collect();
        assert!(is_listed(&[10..=9 + MOST_SLOTS], &each));
        assert!(is_listed(&[300..=300 + MOST_SLOTS], &[((300, 300 + MOST_SLOTS), 0)]));
    }

    /// Listings show the age of the oldest holder. Holders with an unknown start are not compared.
    #[test]
    fn the_oldest_holder_is_the_one_with_the_first_start() {
        let since = |hour: u64| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(3600 * hour));
        let holder = |slot, since| Holder { since, ..Holder::unknown(slot..=slot) };
        let holders = vec![holder(1, None), holder(2, since(5)), holder(3, since(4)), holder(4, None)];
        let seen = TableSnapshot { holders, ..TableSnapshot::default() };
        assert_eq!(seen.oldest().map(|holder| holder.slots), Some((3, 3)));
        assert_eq!(seen.free_among(&(2..=7)), 3);
        assert_eq!(TableSnapshot::default().oldest(), None);
    }

    /// A process id means nothing on another host. A program that has ended here was not on another one.
    #[test]
    fn a_process_of_another_host_is_shown_with_it() {
        let shown = |pid, keeper, taken, has_ended: bool| {
            let lingers_until = has_ended.then_some(SystemTime::UNIX_EPOCH);
            let (host, unknown) = (Some("lab2".to_owned()), Holder::unknown(1..=1));
            Holder { pid, keeper, host, taken, lingers_until, ..unknown }.shown_pid()
        };
        let (pid, taken) = (Some(7), Some(Duration::ZERO));
        assert_eq!(shown(pid, pid, taken, false).as_deref(), Some("7"));
        assert_eq!(shown(pid, None, None, false).as_deref(), Some("7@lab2"));
        assert_eq!(shown(pid, None, taken, true).as_deref(), Some("7"));
        assert_eq!(shown(pid, None, None, true).as_deref(), Some("7@lab2"));
        assert_eq!(shown(None, None, taken, false), None);
    }

    /// A slot may have another holder than its record says: a peer writes no record, and a record stays when
    /// its process has ended.
    #[test]
    fn a_record_is_believed_only_if_the_lock_agrees() {
        let is_believed = |hold, pid, boot| {
            let record = Record { hold, ..record() };
            may_be_believed(&record, pid, boot)
        };
        let boot = Some("01234567");
        assert!(is_believed(Hold::Process, Some(7), boot) && is_believed(Hold::Tree, None, boot));
        assert!(!is_believed(Hold::Process, Some(8), boot), "another process has locked the slot");
        assert!(!is_believed(Hold::Tree, Some(7), boot), "a description would keep the slot");
        assert!(!is_believed(Hold::Process, None, boot), "a process would keep the slot");
        for other in [Some("76543210"), None] {
            assert!(!is_believed(Hold::Process, Some(7), other), "the number is from another boot");
        }
    }
}
