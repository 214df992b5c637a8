//! Too late: an overdue holder is ended when another launch needs its slot (`ExpireAfter` of adaptive locks).
//! `rungate end` ends a holder in the same way, at any age. The kernel must prove the holder: by its
//! [`guardian`](crate::keeper::file::job) or, if its age does not matter, by a slot that is a lock of the
//! process itself. A record, or the number that the kernel keeps with a lock, only says where to look. A
//! holder that cannot be proved to be the job is named, and gets no signal.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

mod grouped;

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use self::grouped::Grouped;
use super::{
    error::RepositoryError,
    file::LockFile,
    holder::{self, Holder, Membership},
    job::{Guardian, Job, MOMENT, UnverifiedTarget},
    layout::{LAST_SLOT, guardians, slot_bytes},
    scan::locks_within,
};
use crate::{
    judge::terms::{claim::Expiry, keyword::Hold, span_of_time::show_duration},
    keeper::{
        eviction_outcome::EvictionOutcome,
        occupancy::{Occupancy, Span},
        outside::Vouched,
        signalling::{Delivery, SIGNALS},
    },
    sys::{
        accounts,
        failure::Errno,
        process::{self, PidFd, Process},
        record_lock::Conflict,
        signals::Signal,
        terminal,
    },
    text::escape::Show,
};

/// A holder that must be ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Overdue {
    /// The holder of the first of its slots, for people.
    pub holder: Holder,
    /// Its process: the command, where a supervisor took the slots for it.
    pub pid: i32,
    /// The host that it runs on, if that is another one.
    pub elsewhere: Option<String>,
    /// By how much it is overdue; none if a user asks for its end, however old it is.
    pub by: Option<Duration>,
    /// How many slots it holds.
    pub slots: u64,
    /// The process that is proved to be the job, or why none is.
    pub job: Result<i32, UnverifiedTarget>,
    /// Whether this user may signal it.
    pub may_be_signalled: bool,
    /// The holders that are ended together with it: the others of its group, because its end alone would free
    /// nothing.
    pub with: Vec<Overdue>,
}

impl Overdue {
    fn of_job(job: &Job, holder: &Holder, by: Option<Duration>, slots: u64) -> Self {
        let process = job.process();
        let holder = shown(holder, process.pid());
        // The user whose process it is, whatever its record says.
        let uid = process::users(process.pid()).map_or(holder.uid, |[real, _]| Some(real));
        let holder = Holder { uid, ..holder };
        Self {
            pid: holder.pid.unwrap_or(process.pid()),
            elsewhere: None,
            holder,
            by,
            slots,
            job: Ok(process.pid()),
            may_be_signalled: process.may_be_signalled(),
            with: Vec::new(),
        }
    }

    /// The process that distinguishes it from others: the proved one, if there is one.
    pub fn process(&self) -> i32 {
        self.job.unwrap_or(self.pid)
    }

    /// Whether it will be tried to end it.
    pub fn can_be_ended(&self) -> bool {
        self.all().all(|one| one.job.is_ok() && one.may_be_signalled)
    }

    fn together_with(self, with: Vec<Overdue>) -> Self {
        Self { with, ..self }
    }

    /// The holder, and those that are ended together with it.
    pub fn all(&self) -> impl Iterator<Item = &Overdue> {
        std::iter::once(self).chain(&self.with)
    }

    /// The same, each separately.
    pub fn each(mut self) -> impl Iterator<Item = Overdue> {
        let with = std::mem::take(&mut self.with);
        std::iter::once(self).chain(with)
    }

    /// Whether its process lives here: no other has its number.
    fn is_of_living(&self) -> bool {
        self.elsewhere.is_none() && self.holder.lingers_until.is_none()
    }

    /// Whether both are the same process.
    pub fn is_same(&self, other: &Overdue) -> bool {
        other.process() == self.process()
            && other.elsewhere == self.elsewhere
            && (self.is_of_living() || other.holder.since == self.holder.since)
    }
}

/// How many processes at most are asked whether they hold a slot: other programs may have locked bytes to
/// point to themselves.
const MOST_CANDIDATES: usize = 8;

/// The overdue among `holders`, each process once: first those that can be ended, the longest overdue first.
/// Holders with an unknown start are not included.
pub fn overdue(
    file: &LockFile,
    holders: &[Holder],
    expiry: &Expiry,
    now: SystemTime,
) -> Result<Vec<Overdue>, RepositoryError> {
    to_end(file, holders, Some((expiry, now)))
}

/// These holders, each process once, however old they are: also those that have started this process.
pub fn chosen(file: &LockFile, holders: &[Holder]) -> Result<Vec<Overdue>, RepositoryError> {
    to_end(file, holders, None)
}

/// The holders to be ended: the overdue ones if the caller says when they are, otherwise all.
fn to_end(
    file: &LockFile,
    holders: &[Holder],
    overdue_by: Option<(&Expiry, SystemTime)>,
) -> Result<Vec<Overdue>, RepositoryError> {
    // Who names a holder learns why it is not ended.
    let lineage: Vec<i32> = overdue_by.map_or_else(Vec::new, |_| process::own_lineage().collect());
    let guardians = holder::all_guardians(file)?;
    let mut overdue: Vec<Overdue> = Vec::new();
    let mut jobs: Vec<Job> = Vec::new();
    let locks = holder::locks(file)?;
    let listed = locks.as_deref().unwrap_or_default();
    let memberships = holder::memberships(listed);
    let mut groups: Vec<u64> = Vec::new();
    for holder in holders {
        let is_its_own = |member: &&Membership| (holder.slots.0..=holder.slots.1).contains(&member.slot);
        if let Some(Membership { group, .. }) = memberships.iter().find(is_its_own) {
            if !groups.contains(group) {
                groups.push(*group);
                let of = Grouped { file, locks: listed, guardians: &guardians, lineage: &lineage };
                let members = memberships.iter().filter(|member| member.group == *group);
                overdue.extend(of.to_end(holder, &members.collect::<Vec<_>>(), overdue_by));
            }
            continue;
        }
        let candidates = candidates(holder, &guardians.seen);
        if overdue_by.is_some_and(|(expiry, _)| candidates.iter().all(|pid| is_young(*pid, expiry))) {
            continue;
        }
        let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
        let job = jobs.iter().find(|job| job.holds(holder.slots.0)).map(|job| job.process().pid());
        let is_same = |other: &&mut Overdue| match job {
            Some(pid) => other.job == Ok(pid),
            None => other.job.is_err() && Some(other.pid) == holder.pid,
        };
        if let Some(same) = overdue.iter_mut().find(is_same) {
            same.slots = same.slots.saturating_add(slots);
        } else if job.is_none() {
            // A read lock may be that of a group, and it is not known whether all of its members are overdue.
            let first = slot_bytes(holder.slots.0, holder.slots.0);
            let is_unclear = locks.is_none() && overdue_by.is_some() && file.is_read_locked(&first)?;
            let proof = if is_unclear {
                Err(UnverifiedTarget::NoGuardian)
            } else {
                proved(file, holder, &candidates, overdue_by.is_some())
            };
            match proof {
                Ok(job) => {
                    let by = match overdue_by {
                        Some((expiry, _)) => time_overdue(&job, expiry).map(Some),
                        None => Some(None),
                    };
                    // No process ends the job that started it.
                    let by = by.filter(|_| !lineage.contains(&job.process().pid()));
                    overdue.extend(by.map(|by| Overdue::of_job(&job, holder, by, slots)));
                    jobs.push(job);
                }
                Err(doubt) => overdue.extend(unproved(holder, doubt, slots, overdue_by)),
            }
        }
    }
    overdue.sort_by_key(|overdue| (!overdue.can_be_ended(), Reverse(overdue.by)));
    Ok(overdue)
}

/// Those of the holders whom the kernel vouches for. A process that has locked a slot itself is its holder,
/// and its guardian says since when: every user sees that. Any other holder is proved like a job.
pub fn vouched(file: &LockFile, held: &Occupancy) -> Result<Vec<Vouched>, RepositoryError> {
    let guardians = holder::all_guardians(file)?.seen;
    let mut known: BTreeMap<i32, Option<(u32, Duration)>> = BTreeMap::new();
    let mut vouched = Vec::new();
    for Span { slots, pid } in held.spans().iter().filter(|span| *span.slots.end() <= LAST_SLOT) {
        for slot in slots.clone() {
            let of_slot = |(guardian, by): &&(Guardian, i32)| {
                (*slots.start()..=slot).contains(&guardian.slot) && pid.is_none_or(|pid| pid == *by)
            };
            let last = guardians.iter().filter(of_slot).max_by_key(|(guardian, _)| guardian.slot);
            let Some((guardian, by)) = last else { continue };
            if pid.is_none() && Job::prove(*by, file.id(), slot, true).is_err() {
                continue;
            }
            let process = known.entry(*by).or_insert_with(|| {
                Some((process::users(*by).map(|[real, _]| real)?, Process::find(*by)?.started_on_host()?))
            });
            let Some(((uid, started), taken)) = (*process).zip(guardian.taken()) else { continue };
            // A guardian rounds down, to a moment.
            let since = taken.saturating_add(MOMENT).max(started);
            vouched.push(Vouched { uid, since, slots: 1, host: None });
        }
    }
    Ok(vouched)
}

/// The processes that may be the job behind a slot, the likeliest first.
fn candidates(holder: &Holder, guardians: &[(Guardian, i32)]) -> Vec<i32> {
    let slot = holder.slots.0;
    let mut near: Vec<&(Guardian, i32)> =
        guardians.iter().filter(|(guardian, _)| guardian.slot <= slot).collect();
    near.sort_by_key(|(guardian, _)| Reverse(guardian.slot));
    let mut candidates = Vec::new();
    let hinted = holder.keeper.into_iter().chain(holder.pid);
    for pid in hinted.chain(near.into_iter().map(|(_, pid)| *pid)) {
        if candidates.len() < MOST_CANDIDATES && !candidates.contains(&pid) {
            candidates.push(pid);
        }
    }
    candidates
}

/// Whether a process has not even lived for long enough to be overdue.
fn is_young(pid: i32, expiry: &Expiry) -> bool {
    Process::find(pid).and_then(|process| process.age()).is_none_or(|age| age < expiry.after)
}

/// The job behind a slot.
fn proved(
    file: &LockFile,
    holder: &Holder,
    candidates: &[i32],
    since_when: bool,
) -> Result<Job, UnverifiedTarget> {
    let mut doubt = UnverifiedTarget::NoGuardian;
    for pid in candidates {
        match Job::prove(*pid, file.id(), holder.slots.0, since_when) {
            Ok(job) => return Ok(job),
            // The first is the likeliest, and is reported.
            Err(other) if doubt == UnverifiedTarget::NoGuardian && other != UnverifiedTarget::Gone => {
                doubt = other;
            }
            Err(_) => {}
        }
    }
    Err(doubt)
}

/// By how much a job is overdue, if it is. It cannot have had its slot for longer than it has lived, whatever
/// its guardian says.
fn time_overdue(job: &Job, expiry: &Expiry) -> Option<Duration> {
    let lived = Process::find(job.process().pid())?.age()?;
    job.guardian()?.age()?.min(lived).checked_sub(expiry.after)
}

/// A holder as messages name it: a record is used only if it matches the proved process.
fn shown(holder: &Holder, pid: i32) -> Holder {
    let goes_with =
        |other: i32| other == pid || Process::find(other).is_none_or(|process| process.parent == pid);
    if holder.pid.is_some_and(goes_with) {
        return holder.clone();
    }
    let command = Process::find(pid).map(|process| process.name);
    Holder { pid: Some(pid), keeper: Some(pid), uid: process::owner(pid), command, ..holder.clone() }
}

/// A holder without proof of its slot; if overdue holders are meant, one that is overdue by its own record.
/// For those without a record the start is unknown.
fn unproved(
    holder: &Holder,
    doubt: UnverifiedTarget,
    slots: u64,
    overdue_by: Option<(&Expiry, SystemTime)>,
) -> Option<Overdue> {
    let lives = |pid| Process::find(pid).filter(|process| !process.is_zombie());
    let pid = holder.pid.filter(|_| holder.hold.is_some() || overdue_by.is_none())?;
    // After the end of a tree's command, the supervisor is left.
    let process = lives(pid).or_else(|| lives(holder.keeper?))?;
    let by = match overdue_by {
        Some((expiry, now)) => Some(holder.age(now)?.min(process.age()?).checked_sub(expiry.after)?),
        None => None,
    };
    let may_be_signalled = PidFd::open(process.pid).is_ok_and(|process| process.may_be_signalled());
    let (holder, elsewhere, job) = (holder.clone(), None, Err(doubt));
    Some(Overdue { holder, pid, elsewhere, by, slots, job, may_be_signalled, with: Vec::new() })
}

/// Ends holders of files carefully, all at the same time; `told` gets the outcome of each, with the number of
/// its file. Never call it under a mutex: it takes up to three times the longest grace.
pub fn end_all<'f>(
    files: impl IntoIterator<Item = (&'f LockFile, (Vec<Overdue>, Expiry))>,
    mut told: impl FnMut(usize, &Overdue, Result<EvictionOutcome, RepositoryError>),
) {
    let mut running = Vec::new();
    for (number, (file, (all, expiry))) in files.into_iter().enumerate() {
        for overdue in all.into_iter().flat_map(Overdue::each) {
            // Its end for another file frees this slot too.
            if running.iter().any(|(_, _, other, _): &(_, _, Overdue, _)| other.is_same(&overdue)) {
                continue;
            }
            match Ending::begin(file, &overdue, expiry) {
                Ok(ending) => running.push((number, file, overdue, ending)),
                Err(fate) => told(number, &overdue, Ok(fate)),
            }
        }
    }
    while !running.is_empty() {
        for (number, file, overdue, mut ending) in std::mem::take(&mut running) {
            match ending.advance(file).transpose() {
                Some(fate) => told(number, &overdue, fate),
                None => running.push((number, file, overdue, ending)),
            }
        }
        if let Some(left) = running.iter().map(|(.., ending)| ending.left()).min() {
            let _ = process::wait_for_any(running.iter().map(|(.., ending)| ending.process()), left);
        }
    }
}

/// The end of a holder, signal by signal, for a caller that waits for other things meanwhile.
pub struct Ending {
    job: Job,
    slot: u64,
    is_overdue: bool,
    expiry: Expiry,
    sent: Option<(Signal, Delivery)>,
    next: usize,
    due: Instant,
    was_out_of_sight: bool,
}

impl Ending {
    /// Begins, if the holder is still proved to be the job, and this user may signal it.
    pub fn begin(file: &LockFile, overdue: &Overdue, expiry: Expiry) -> Result<Self, EvictionOutcome> {
        let (slot, is_overdue) = (overdue.holder.slots.0, overdue.by.is_some());
        let proved = overdue.job.and_then(|pid| Job::prove(pid, file.id(), slot, is_overdue));
        let job = proved.map_err(|doubt| match doubt {
            UnverifiedTarget::Gone => EvictionOutcome::HadLeft,
            _ if !overdue.may_be_signalled => EvictionOutcome::NotPermitted,
            doubt => EvictionOutcome::NotProved(doubt),
        })?;
        // Checked before, because every process of the same session may be continued.
        if !job.process().may_be_signalled() {
            return Err(EvictionOutcome::NotPermitted);
        }
        let due = Instant::now();
        Ok(Self { job, slot, is_overdue, expiry, sent: None, next: 0, due, was_out_of_sight: false })
    }

    /// The process whose end ends the job. A supervisor releases the slot before it ends.
    pub fn process(&self) -> &PidFd {
        self.job.process()
    }

    /// How long it has until the next signal.
    pub fn left(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Continues where another end of the same process is, which is for another file.
    pub fn follow(&mut self, other: &Self) {
        (self.sent, self.next, self.due) = (other.sent, other.next, other.due);
    }

    /// Whether the process is still proved to be the job.
    pub fn is_proved(&self, file: &LockFile) -> bool {
        let process = self.job.process();
        !process.has_ended() && Job::prove(process.pid(), file.id(), self.slot, self.is_overdue).is_ok()
    }

    /// Checks whether it has ended, and sends the next signal if that is due. Proves each time that the
    /// process is still the job.
    pub fn advance(&mut self, file: &LockFile) -> Result<Option<EvictionOutcome>, RepositoryError> {
        loop {
            if self.job.process().has_ended() {
                return self.left_behind(file).map(Some);
            }
            match Job::prove(self.job.process().pid(), file.id(), self.slot, self.is_overdue) {
                Ok(job) => self.job = job,
                Err(UnverifiedTarget::Gone) => return self.left_behind(file).map(Some),
                Err(doubt) => return Ok(self.on_doubt(doubt)),
            }
            if !self.left().is_zero() {
                return Ok(None);
            }
            let Some(signal) = SIGNALS.get(self.next).copied() else {
                let is_partly = matches!(self.sent, Some((_, Delivery::Partly)));
                return Ok(Some(if is_partly {
                    EvictionOutcome::NotPermitted
                } else {
                    EvictionOutcome::Survived
                }));
            };
            if signal != Signal::SIGCONT && self.sent.is_none() {
                self.tell_user(file);
            }
            let delivery = match self.job.signal(signal, self.expiry.kill) {
                Ok(delivery) => delivery,
                // An ended process may leave a running one: a supervisor that is about to release the slot.
                Err(Errno::ESRCH) => Delivery::Full,
                Err(_) => return Ok(Some(EvictionOutcome::NotPermitted)),
            };
            self.next = self.next.saturating_add(1);
            if signal != Signal::SIGCONT {
                self.sent = Some((signal, delivery));
                self.wait_for_grace();
                return Ok(None);
            }
            // No wait is necessary after SIGCONT: it only lets the process receive the next signal.
        }
    }

    /// The result if its process lives, and is not proved to be the job any more.
    fn on_doubt(&mut self, doubt: UnverifiedTarget) -> Option<EvictionOutcome> {
        match doubt {
            // It has given up its memory, and is about to end.
            UnverifiedTarget::OutOfSight if !self.was_out_of_sight => {
                self.was_out_of_sight = true;
                self.wait_for_grace();
                None
            }
            UnverifiedTarget::OutOfSight if !self.left().is_zero() => None,
            _ if self.next == SIGNALS.len() => Some(EvictionOutcome::Survived),
            doubt => Some(EvictionOutcome::NotProved(doubt)),
        }
    }

    /// If the user's program ends on this terminal, the user sees why.
    fn tell_user(&self, file: &LockFile) {
        let pid = self.job.process().pid();
        let name = Process::find(pid).map_or_else(String::new, |process| process.name);
        let (name, path, after) = (name.shown(), file.path().shown(), show_duration(self.expiry.after));
        let why = if self.is_overdue {
            format!("it has had a slot of {path} for more than {after} (expire_after)")
        } else {
            let uid = accounts::own_uid();
            let user = accounts::user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string());
            format!("{} ended the holder of a slot of {path} (rungate end)", user.shown())
        };
        terminal::tell(pid, &format!("rungate: {name} (PID {pid}) is ended: {why}"));
    }

    /// Its outcome, if it has released its slot: a process releases its locks a moment before it has ended.
    pub fn has_released(&self, file: &LockFile) -> Result<Option<EvictionOutcome>, RepositoryError> {
        // Another member of its group may have the same guardian, and a query names only one of them.
        if self.is_proved(file) {
            return Ok(None);
        }
        let pid = Some(self.job.process().pid());
        let is_its_own = |lock: &Conflict| {
            lock.pid == pid && Guardian::of(&lock.bytes).is_some_and(|guardian| guardian.slot == self.slot)
        };
        if locks_within(file, &guardians())?.iter().any(is_its_own) {
            return Ok(None);
        }
        self.left_behind(file).map(Some)
    }

    fn wait_for_grace(&mut self) {
        self.due = Instant::now().checked_add(self.expiry.grace).unwrap_or(self.due);
    }

    /// The result once the job is gone.
    fn left_behind(&self, file: &LockFile) -> Result<EvictionOutcome, RepositoryError> {
        let Some((signal, delivery)) = self.sent else { return Ok(EvictionOutcome::HadLeft) };
        let bytes = slot_bytes(self.slot, self.slot);
        // A lock of the process itself passes to no other process.
        let is_orphaned = self.job.hold() != Hold::Process
            && file.conflict(&bytes)?.is_some_and(|lock| lock.pid.is_none())
            && !locks_within(file, &guardians())?
                .iter()
                .any(|lock| Guardian::of(&lock.bytes).is_some_and(|guardian| guardian.slot == self.slot));
        Ok(if is_orphaned {
            EvictionOutcome::LeftOthers(signal)
        } else {
            EvictionOutcome::Ended(signal, delivery)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tempfile::{NamedTempFile, TempPath};

    use super::*;
    use crate::{
        judge::terms::{Creation, ExpireKill},
        keeper::file::{
            LockPath,
            layout::{group_byte, guardians_of},
            prune,
        },
        sys::{Bytes, LAST_BYTE},
    };

    /// An empty lock file, and the same file as another program has it open.
    fn file_and_other() -> (LockFile, LockFile, TempPath) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        let other = LockFile::open_to_read(&place).expect("a lock file").expect("the file is there");
        (file, other, path)
    }

    /// The holder of slot 1, a process that can be ended.
    fn holder_to_end(pid: i32) -> Overdue {
        Overdue {
            holder: Holder::unknown(1..=1),
            pid,
            elsewhere: None,
            by: None,
            slots: 1,
            job: Ok(pid),
            may_be_signalled: true,
            with: Vec::new(),
        }
    }

    const EXPIRY: Expiry = Expiry { after: Duration::ZERO, grace: Duration::ZERO, kill: ExpireKill::Process };

    /// This process takes slot 1 with this guardian, and is to be ended.
    fn begun(file: &LockFile, expiry: Expiry) -> (Ending, Bytes) {
        let guardian = Guardian::begin(1, Hold::Process).expect("/proc is mounted").byte();
        for bytes in [&slot_bytes(1, 1), &guardian] {
            assert!(file.try_lock(bytes).expect("a lock file"), "it is free");
        }
        let ending = Ending::begin(file, &holder_to_end(process::own_pid()), expiry);
        (ending.expect("this process holds the slot"), guardian)
    }

    /// A process that lives here is known by its number. On another host, or after its end, another process
    /// may have the same number.
    #[test]
    fn two_holders_are_the_same_if_their_process_is() {
        let moment = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let holder = |pid, host: Option<&str>, since, has_ended: bool| {
            let lingers_until = moment(9).filter(|_| has_ended);
            let holder = Holder { since: moment(since), lingers_until, ..Holder::unknown(1..=1) };
            Overdue { holder, elsewhere: host.map(str::to_owned), ..holder_to_end(pid) }
        };
        let here = holder(7, None, 1, false);
        assert!(here.is_same(&holder(7, None, 2, false)));
        assert!(!here.is_same(&holder(8, None, 1, false)));
        assert!(!here.is_same(&holder(7, Some("lab2"), 1, false)));
        for (host, has_ended) in [(Some("lab2"), false), (None, true)] {
            let one = holder(7, host, 1, has_ended);
            assert!(one.is_same(&one) && !one.is_same(&holder(7, host, 2, has_ended)));
        }
    }

    /// Holders that are ended together can be ended only if each of them can.
    #[test]
    fn holders_can_be_ended_together_if_each_can() {
        let one = holder_to_end(7);
        let unproved = Overdue { job: Err(UnverifiedTarget::NoGuardian), ..holder_to_end(8) };
        let of_others = Overdue { may_be_signalled: false, ..holder_to_end(9) };
        assert!(one.can_be_ended() && !unproved.can_be_ended() && !of_others.can_be_ended());
        for (other, can_be) in [(holder_to_end(8), true), (unproved, false), (of_others, false)] {
            let together = one.clone().together_with(vec![other.clone()]);
            assert_eq!(together.can_be_ended(), can_be);
            assert_eq!(together.each().map(|one| one.pid).collect::<Vec<_>>(), [7, other.pid]);
        }
    }

    /// A holder of several slots without proof is named once, with all its slots; each process on its own.
    #[test]
    fn holders_without_proof_are_named_once() {
        let (file, _other, _path) = file_and_other();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat(1)");
        let (own, of_child) = (process::own_pid(), child.id().cast_signed());
        let holder = |slots: (u64, u64), pid| Holder { slots, pid: Some(pid), ..Holder::unknown(1..=1) };
        let holders = [holder((1, 1), own), holder((2, 4), of_child), holder((5, 6), own)];
        let named = chosen(&file, &holders).expect("a lock file");
        let named: Vec<(i32, u64, bool)> =
            named.iter().map(|one| (one.pid, one.slots, one.job.is_ok())).collect();
        assert_eq!(named, [(own, 3, false), (of_child, 3, false)]);
        child.wait().expect("it ends with its input");
    }

    /// A message names the command of the record if its process is the proved one, or a child of that, or has
    /// ended. Otherwise it names the proved process.
    #[test]
    fn a_record_of_another_process_is_not_used() {
        let mut child = process::answering(&mut Command::new("cat"));
        let (own, of_child, gone) = (process::own_pid(), child.id().cast_signed(), i32::MAX);
        let named = |pid, proved| {
            let command = Some("matlab".to_owned());
            let holder = shown(&Holder { pid, command, ..Holder::unknown(1..=1) }, proved);
            (holder.pid, holder.command)
        };
        let matlab = || Some("matlab".to_owned());
        assert_eq!(named(Some(of_child), of_child), (Some(of_child), matlab()));
        assert_eq!(named(Some(of_child), own), (Some(of_child), matlab()), "the child of a supervisor");
        assert_eq!(named(Some(gone), of_child), (Some(gone), matlab()));
        for other in [Some(own), None] {
            assert_eq!(named(other, of_child), (Some(of_child), Some("cat".to_owned())), "{other:?}");
        }
        child.wait().expect("it ends with its input");
    }

    /// A group without proof is named once, with each of its slots, whichever of them are looked at.
    #[test]
    fn a_group_without_proof_is_named_once() {
        let (file, other, path) = file_and_other();
        let third = LockFile::open_to_read(&LockPath::named(&path)).expect("a lock file");
        let third = third.expect("the file is there");
        let join = |member: &LockFile, group, rank, slot| {
            let byte = group_byte(group, rank, slot);
            for bytes in [slot_bytes(slot, slot), byte..=byte] {
                assert!(member.try_join_shared(&bytes).expect("a lock file"), "readers may share it");
            }
        };
        for member in [&other, &third] {
            join(member, 1, 0, 2);
            join(member, 1, 1, 3);
        }
        join(&other, 2, 0, 5);
        let own = process::own_pid();
        let holder = |slot| Holder { pid: Some(own), ..Holder::unknown(slot..=slot) };
        let named = || {
            let named = chosen(&file, &[holder(2), holder(3), holder(5)]).expect("a lock file");
            named.iter().map(|one| (one.slots, one.job.err())).collect::<Vec<_>>()
        };
        let doubt = Some(UnverifiedTarget::NoGuardian);
        // While others on the host take and free locks, the list of all locks may lack some.
        assert!((0..9).any(|_| named() == [(2, doubt), (1, doubt)]), "{:?}", named());
    }

    /// If a guardian has no process, a member is in another PID namespace. The list of all locks may omit it.
    #[test]
    fn a_group_with_a_member_out_of_sight_has_no_proof() {
        let (file, other, _path) = file_and_other();
        let guardian = |hold| Guardian::begin(2, hold).expect("/proc is mounted").byte();
        let member = group_byte(1, 0, 2);
        for bytes in [slot_bytes(2, 2), member..=member, guardian(Hold::Process)] {
            assert!(file.try_read_lock(&bytes).expect("a lock file"), "it is free");
        }
        let holder = [Holder { pid: Some(process::own_pid()), ..Holder::unknown(2..=2) }];
        let job = || chosen(&file, &holder).expect("a lock file").first().map(|one| one.job);
        assert_eq!(job(), Some(Ok(process::own_pid())));
        assert!(other.try_join_shared(&guardian(Hold::Tree)).expect("a lock file"), "it is free");
        assert!((0..9).any(|_| job() == Some(Err(UnverifiedTarget::NoGuardian))));
    }

    /// A lock of the process passes to no other process: who has the slot afterwards took it later.
    #[test]
    fn a_job_with_a_lock_of_the_process_leaves_nothing() {
        let (file, other, _path) = file_and_other();
        let (mut ending, _) = begun(&file, EXPIRY);
        ending.sent = Some((Signal::SIGINT, Delivery::Full));
        file.unlock(&(0..=LAST_BYTE)).expect("a lock file");
        assert!(other.try_join_shared(&slot_bytes(1, 1)).expect("a lock file"), "it is free");
        let released = ending.has_released(&file).expect("a lock file");
        assert_eq!(released, Some(EvictionOutcome::Ended(Signal::SIGINT, Delivery::Full)));
    }

    /// What a job has started may keep its slot when the job is gone. The outcome says so, unless another job
    /// has the slot by now.
    #[test]
    fn what_a_job_has_left_keeps_its_slot() {
        let (file, other, _path) = file_and_other();
        let guardian = |slot| Guardian::begin(slot, Hold::Descriptor).expect("/proc is mounted").byte();
        let hold = |bytes: &Bytes| assert!(other.try_join_shared(bytes).expect("a lock file"), "it is free");
        let own = guardian(1);
        assert!(file.try_read_lock(&own).expect("a lock file"), "it is free");
        hold(&slot_bytes(1, 1));
        let ending = Ending::begin(&file, &holder_to_end(process::own_pid()), EXPIRY);
        let mut ending = ending.expect("this process has the guardian of the slot");
        let released = |ending: &Ending| ending.has_released(&file).expect("a lock file");
        assert_eq!(released(&ending), None);
        file.unlock(&own).expect("a lock file");
        assert_eq!(released(&ending), Some(EvictionOutcome::HadLeft), "it got no signal");
        ending.sent = Some((Signal::SIGTERM, Delivery::Full));
        assert_eq!(released(&ending), Some(EvictionOutcome::LeftOthers(Signal::SIGTERM)));
        hold(&guardian(5));
        assert_eq!(released(&ending), Some(EvictionOutcome::LeftOthers(Signal::SIGTERM)), "of another slot");
        hold(&guardian(1));
        let ended = Some(EvictionOutcome::Ended(Signal::SIGTERM, Delivery::Full));
        assert_eq!(released(&ending), ended, "another job has it");
        other.unlock_shared(&(0..=LAST_BYTE)).expect("a lock file");
        assert_eq!(released(&ending), ended, "it is free");
    }

    /// The guardian says since when a slot is held, exact to a moment, however long others are examined
    /// before.
    #[test]
    fn a_holder_is_vouched_for_since_its_guardian() {
        let (file, _other, _path) = file_and_other();
        let guardian = Guardian::begin(1, Hold::Process).expect("/proc is mounted");
        for bytes in [&slot_bytes(1, 1), &guardian.byte()] {
            assert!(file.try_lock(bytes).expect("a lock file"), "it is free");
        }
        let started = Process::this().and_then(|this| this.started_on_host()).expect("/proc is mounted");
        let latest = guardian.taken().expect("the past") + MOMENT;
        let held = Occupancy::of(vec![Span { slots: 1..=1, pid: Some(process::own_pid()) }]);
        let since: Vec<Duration> =
            vouched(&file, &held).expect("a lock file").iter().map(|one| one.since).collect();
        assert_eq!(since, [latest.max(started)]);
    }

    /// Only some processes are asked whether they hold a slot: those that the record and the lock name, and
    /// the nearest guardians before it.
    #[test]
    fn the_nearest_guardians_are_asked_first() {
        let guardian = |slot| Guardian::begin(slot, Hold::Tree).expect("/proc is mounted");
        let guardians: Vec<(Guardian, i32)> =
            (1..=20).zip(101..).map(|(slot, pid)| (guardian(slot), pid)).collect();
        let holder = Holder { pid: Some(7), keeper: Some(8), ..Holder::unknown(18..=18) };
        assert_eq!(candidates(&holder, &guardians), [8, 7, 118, 117, 116, 115, 114, 113]);
        let holder = Holder { pid: Some(7), keeper: Some(7), ..Holder::unknown(2..=2) };
        assert_eq!(candidates(&holder, &guardians), [7, 102, 101]);
    }

    /// The guardian of a later holder does not hide that the earlier one has released the slot.
    #[test]
    fn a_later_holder_of_the_same_slot_is_not_the_one_that_was_to_end() {
        let (file, other, _path) = file_and_other();
        let (ending, guardian) = begun(&file, EXPIRY);
        let later = Guardian::begin(1, Hold::Descriptor).expect("/proc is mounted").byte();
        let released = || ending.has_released(&file).expect("a lock file");
        let of_others = Guardian::begin(5, Hold::Process).expect("/proc is mounted").byte();
        assert!(other.try_join_shared(&of_others).expect("a lock file"), "the byte is free");
        assert_eq!(released(), None);
        let of_other_slot = Guardian::begin(7, Hold::Process).expect("/proc is mounted").byte();
        assert!(file.try_read_lock(&of_other_slot).expect("a lock file"), "the byte is free");
        for bytes in [&slot_bytes(1, 1), &guardian] {
            file.unlock(bytes).expect("a lock file");
        }
        assert!(other.try_join_shared(&later).expect("a lock file"), "the byte is free");
        assert!(file.try_lock(&guardians_of(9)).expect("a lock file"), "the bytes are free");
        assert_eq!(released(), Some(EvictionOutcome::HadLeft), "a lock of several bytes is no guardian");
    }

    /// Members of a group that started in the same moment have the same guardian, and the kernel names only
    /// one of them. The other one has not released its slot.
    #[test]
    fn a_member_whose_guardian_is_hidden_has_not_released_its_slot() {
        let (file, other, _path) = file_and_other();
        let guardian = Guardian::begin(1, Hold::Process).expect("/proc is mounted").byte();
        for bytes in [&slot_bytes(1, 1), &guardian] {
            // The kernel names this one first.
            assert!(other.try_join_shared(bytes).expect("a lock file"), "it is free");
            assert!(file.try_read_lock(bytes).expect("a lock file"), "readers may share it");
        }
        let named = file.conflict(&guardian).expect("a lock file").expect("it is locked");
        assert_eq!(named.pid, None, "that of this process is hidden");
        let ending = Ending::begin(&file, &holder_to_end(process::own_pid()), EXPIRY);
        let ending = ending.expect("this process has the guardian of the slot");
        let released = || ending.has_released(&file).expect("a lock file");
        assert_eq!(released(), None);
        file.unlock(&(0..=LAST_BYTE)).expect("a lock file");
        assert_eq!(released(), Some(EvictionOutcome::HadLeft));
    }

    /// A process that is out of sight is about to end. It has the grace for that, however often it is looked
    /// at meanwhile. Any other doubt counts at once.
    #[test]
    fn who_is_out_of_sight_has_a_grace_to_end() {
        let (file, _other, _path) = file_and_other();
        let (mut ending, _) = begun(&file, Expiry { grace: Duration::from_secs(3600), ..EXPIRY });
        let (unseen, left_behind) = (UnverifiedTarget::OutOfSight, UnverifiedTarget::NoGuardian);
        assert_eq!([unseen; 3].map(|doubt| ending.on_doubt(doubt)), [None; 3]);
        assert!(ending.left() > Duration::from_secs(1800), "that is the grace");
        assert_eq!(ending.on_doubt(left_behind), Some(EvictionOutcome::NotProved(left_behind)));
        ending.due = Instant::now();
        assert_eq!(ending.on_doubt(unseen), Some(EvictionOutcome::NotProved(unseen)));
        ending.next = SIGNALS.len();
        assert_eq!(ending.on_doubt(unseen), Some(EvictionOutcome::Survived));
    }

    /// A holder that is not proved any more gets no signal, and the outcome says why.
    #[test]
    fn who_is_not_proved_is_not_ended() {
        let (file, _other, _path) = file_and_other();
        let begun = |job, may_be_signalled| {
            let holder = Overdue { job, may_be_signalled, ..holder_to_end(process::own_pid()) };
            Ending::begin(&file, &holder, EXPIRY).err()
        };
        let doubt = UnverifiedTarget::Privileged;
        assert_eq!(begun(Err(doubt), true), Some(EvictionOutcome::NotProved(doubt)));
        assert_eq!(begun(Err(doubt), false), Some(EvictionOutcome::NotPermitted));
        for may_be_signalled in [true, false] {
            let gone = begun(Ok(process::own_pid()), may_be_signalled);
            assert_eq!(gone, Some(EvictionOutcome::HadLeft), "this process does not hold the slot");
        }
    }
}
