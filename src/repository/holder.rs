//! Who holds a slot, as far as it can be vouched for. The kernel says that the slot is held, and mostly by which process;
//! the record adds who and since when, and is believed only where the two agree. What nobody can vouch for is shown as an
//! unknown holder, never hidden.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::{Duration, SystemTime};

use crate::{
    repository::{
        error::RepositoryError,
        file::LockFile,
        header::Header,
        hold::Hold,
        layout::{LAST_SLOT, RECORD_SIZE, record_at, slot_byte},
        occupancy::{Occupancy, Span},
        record::{Record, short_boot_id},
    },
    sys::{
        open_files,
        process::{self, Process},
    },
};

/// The holder of a slot, or of neighbouring slots that nothing tells apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// First and last slot.
    pub slots: (u64, u64),
    /// The process, where it can be seen from here.
    pub pid: Option<i32>,
    /// The process whose end frees the slot: the supervisor, where there is one.
    pub keeper: Option<i32>,
    /// Its user.
    pub uid: Option<u32>,
    /// The node name that it wrote down.
    pub host: Option<String>,
    /// Since when it holds the slot or, for a program that keeps no records, since when it runs: by the clock as it was set then.
    pub since: Option<SystemTime>,
    /// The same as time since boot, where it wrote that down.
    pub taken: Option<Duration>,
    /// What keeps the slot.
    pub hold: Option<Hold>,
    /// The command.
    pub command: Option<String>,
    /// The rule that asked for the slot.
    pub rule: Option<String>,
}

impl Holder {
    /// How long it has held the slot, however the clock was set meanwhile; for one that wrote down nothing but the time of day
    /// a clock that was set back makes it zero.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        if let (Some(taken), Some(now)) = (self.taken, process::since_boot()) {
            return Some(now.saturating_sub(taken));
        }
        self.since.map(|since| now.duration_since(since).unwrap_or_default())
    }
}

/// A span with more slots than this is one holder that keeps no records (a lock to the end of the file, say).
const LONG: u64 = 256;

/// The same, with what a search through the descriptors of all processes adds: it finds who keeps a slot that no record
/// accounts for. It takes milliseconds, and is for listings.
pub fn holders_with_search(file: &LockFile, occupancy: &Occupancy) -> Result<Vec<Holder>, RepositoryError> {
    let mut holders = holders(file, occupancy)?;
    if holders.iter().all(|holder| holder.pid.is_some()) {
        return Ok(holders);
    }
    let locks = open_files::locks_of_descriptions(file.id());
    for holder in holders.iter_mut().filter(|holder| holder.pid.is_none()) {
        let byte = slot_byte(holder.slots.0);
        if let Some((pid, _)) = locks.iter().find(|(_, bytes)| bytes.contains(&byte)) {
            *holder = describe(holder.slots, Some(*pid), None, None);
        }
    }
    Ok(holders)
}

/// All holders of a file, by slot.
pub fn holders(file: &LockFile, occupancy: &Occupancy) -> Result<Vec<Holder>, RepositoryError> {
    let boot = process::boot_id().map(|id| short_boot_id(&id));
    let mut records = Records { file, first: 0, bytes: Vec::new() };
    let mut holders = Vec::new();
    for Span { slots, pid } in occupancy.spans() {
        let (first, last) = (*slots.start(), *slots.end());
        if last.saturating_sub(first) >= LONG {
            holders.push(describe((first, last.min(LAST_SLOT)), *pid, None, boot.as_deref()));
            continue;
        }
        for slot in first..=last {
            let record = if slot > LAST_SLOT { None } else { records.of(slot)? };
            holders.push(describe((slot, slot), *pid, record, boot.as_deref()));
        }
    }
    Ok(holders)
}

/// The user of the launch that wrote `start` into the header: the record of its slot is still there, whoever came after it.
pub(super) fn who_started(
    file: &LockFile,
    header: &Header,
    start: SystemTime,
) -> Result<Option<u32>, RepositoryError> {
    let Some(slot) = header.cursor.checked_sub(1).filter(|slot| (1..=LAST_SLOT).contains(slot)) else {
        return Ok(None);
    };
    let record = Records { file, first: 0, bytes: Vec::new() }.of(slot)?;
    Ok(record.filter(|record| record.since() == start).map(|record| record.uid))
}

fn describe(slots: (u64, u64), pid: Option<i32>, record: Option<Record>, boot: Option<&str>) -> Holder {
    let believed = record.filter(|record| Some(record.boot.as_str()) == boot && agrees(record, pid));
    if let Some(record) = believed {
        return Holder {
            slots,
            pid: Some(record.pid),
            keeper: live_supervisor(&record).or(Some(record.pid)),
            uid: Some(record.uid),
            since: Some(record.since()),
            taken: record.taken.map(Duration::from_millis),
            host: Some(record.host),
            hold: Some(record.hold),
            command: Some(record.command),
            rule: Some(record.rule),
        };
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
    }
}

/// The kernel's word on the holder: the process of the lock or, where the lock has none, that the recorded command or its
/// supervisor lives. A number that was given to another process since has a later start.
fn agrees(record: &Record, pid: Option<i32>) -> bool {
    if let Some(pid) = pid {
        return record.hold == Hold::Process && record.pid == pid;
    }
    record.hold != Hold::Process
        && (lives(record.pid, |started| started == record.start) || live_supervisor(record).is_some())
}

/// The supervisor, if it lives. One that was killed keeps nothing, also before its parent has reaped it.
fn live_supervisor(record: &Record) -> Option<i32> {
    record.supervisor.filter(|pid| lives(*pid, |started| started <= record.start))
}

fn lives(pid: i32, started: impl Fn(u64) -> bool) -> bool {
    Process::find(pid).is_some_and(|process| started(process.started) && !process.is_zombie())
}

/// Reads records through a window, because thousands of them stand next to each other.
struct Records<'file> {
    file: &'file LockFile,
    first: u64,
    bytes: Vec<u8>,
}

/// How many records are read at once.
const WINDOW: usize = 64;

impl Records<'_> {
    fn of(&mut self, slot: u64) -> Result<Option<Record>, RepositoryError> {
        if let Some(bytes) = self.in_window(slot) {
            return Ok(Record::decode(bytes));
        }
        self.first = slot;
        self.bytes.resize(RECORD_SIZE * WINDOW, 0);
        let length = self.file.read_at(&mut self.bytes, record_at(slot))?;
        self.bytes.iter_mut().skip(length).for_each(|byte| *byte = 0);
        Ok(self.in_window(slot).and_then(Record::decode))
    }

    fn in_window(&self, slot: u64) -> Option<&[u8]> {
        let index = usize::try_from(slot.checked_sub(self.first)?).ok()?;
        self.bytes.chunks_exact(RECORD_SIZE).nth(index)
    }
}
