//! The job that holds a slot, proved by the kernel at this moment, and its signals. The process is opened
//! first, and checked to be alive last. So all answers in between are about this process.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{thread, time::Duration};

use super::layout::{guardian_at, guardian_byte, slot_byte};
use crate::{
    judge::terms::{ExpireKill, Hold},
    keeper::{Delivery, Whom},
    sys::{Bytes, Errno, FileId, Ownership, PidFd, Process, Signal, accounts, process, record_lock},
};

/// A process that is the job which holds a slot.
#[derive(Debug)]
pub struct Job {
    process: PidFd,
    proof: Proof,
    user: u32,
    shown: Vec<(Ownership, Bytes)>,
}

/// What proves that a process is the job which holds a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Proof {
    /// Its guardian, which also says since when.
    Guardian(Guardian),
    /// The slot itself is a lock of the process, which no process can take for another one. It does not say
    /// since when.
    Slot,
}

impl Proof {
    /// What keeps the slot.
    fn hold(self) -> Hold {
        match self {
            Self::Guardian(guardian) => guardian.hold,
            Self::Slot => Hold::Process,
        }
    }
}

/// Why a process is not proved to be the job that holds a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnverifiedTarget {
    /// It has ended, or does not hold the slot.
    Gone,
    /// It has no guardian: it was not launched under `expire_after` or with a supervisor, it closed a
    /// descriptor of the file, or the job left it behind.
    NoGuardian,
    /// It runs a set-id program, which others may rely on.
    Privileged,
    /// It cannot be inspected from here.
    OutOfSight,
    /// It has ended, and the descriptor that keeps its slot is in the queue of a socket.
    InTransit,
}

impl Job {
    /// Proves that this process is the job which holds the slot; with `since_when` by its guardian alone.
    pub(super) fn prove(
        pid: i32,
        file: FileId,
        slot: u64,
        since_when: bool,
    ) -> Result<Self, UnverifiedTarget> {
        let process = PidFd::open(pid).map_err(|_| UnverifiedTarget::Gone)?;
        if !process.is_in_proc() {
            return Err(UnverifiedTarget::OutOfSight);
        }
        let shown = record_lock::locks_shown_by(pid, file);
        let privileged = process::is_privileged_by_exec(pid);
        let users = process::users(pid);
        if process.has_ended() {
            return Err(UnverifiedTarget::Gone);
        }
        let (Ok(shown), Some(privileged), Some([user, _])) = (shown, privileged, users) else {
            return Err(UnverifiedTarget::OutOfSight);
        };
        let proof = proof_of(&shown, slot)?;
        if since_when && proof == Proof::Slot {
            return Err(UnverifiedTarget::NoGuardian);
        }
        if privileged {
            return Err(UnverifiedTarget::Privileged);
        }
        Ok(Self { process, proof, user, shown })
    }

    /// Its process: the supervisor, if there is one.
    pub(super) fn process(&self) -> &PidFd {
        &self.process
    }

    /// Its guardian, if it has one.
    pub(super) fn guardian(&self) -> Option<Guardian> {
        match self.proof {
            Proof::Guardian(guardian) => Some(guardian),
            Proof::Slot => None,
        }
    }

    /// What keeps the slot.
    pub(super) fn hold(&self) -> Hold {
        self.proof.hold()
    }

    /// Whether the same proves that it holds this slot too.
    pub(super) fn holds(&self, slot: u64) -> bool {
        proof_of(&self.shown, slot) == Ok(self.proof)
    }

    /// Whether it has locked this byte.
    pub(super) fn shows(&self, byte: u64) -> bool {
        self.shown.iter().any(|(_, bytes)| bytes.contains(&byte))
    }

    /// Sends a signal to all processes that must end. Root does not signal processes that the user of the job
    /// could not signal either, for example a service that the job started through a set-id program.
    pub(super) fn signal(&self, signal: Signal, kill: ExpireKill) -> Result<Delivery, Errno> {
        let spares_others = accounts::is_root() && self.user != 0;
        let may_signal = |_: &PidFd, users: [u32; 2]| !spares_others || users.contains(&self.user);
        let own_group = Process::this().map(|process| process.group);
        let (hold, taken) = (self.hold(), self.guardian().and_then(Guardian::taken));
        let whom = Whom { hold, taken, kill, spares_others, own_group, may_signal: &may_signal };
        whom.signal(&self.process, signal)
    }
}

/// What proves that the process which shows these locks holds a slot.
fn proof_of(shown: &[(Ownership, Bytes)], slot: u64) -> Result<Proof, UnverifiedTarget> {
    let is_own = |(ownership, bytes): &(Ownership, Bytes)| {
        *ownership == Ownership::Process && bytes.contains(&slot_byte(slot))
    };
    match guardian_of(shown, slot) {
        Ok(guardian) => Ok(Proof::Guardian(guardian)),
        Err(UnverifiedTarget::NoGuardian) if shown.iter().any(is_own) => Ok(Proof::Slot),
        Err(doubt) => Err(doubt),
    }
}

/// The guardian of a slot among the locks of a process: the last one at or before the slot, if it covers the
/// slot.
fn guardian_of(shown: &[(Ownership, Bytes)], slot: u64) -> Result<Guardian, UnverifiedTarget> {
    let byte = slot_byte(slot);
    let run = shown.iter().map(|(_, bytes)| bytes).filter(|bytes| bytes.contains(&byte));
    let first = run.map(|bytes| *bytes.start()).min().ok_or(UnverifiedTarget::Gone)?;
    let is_proof = |ownership| ownership == Ownership::Process;
    let guardians = shown.iter().filter(|(ownership, _)| is_proof(*ownership));
    guardians
        .filter_map(|(_, bytes)| Guardian::of(bytes))
        .filter(|guardian| (first..=byte).contains(&slot_byte(guardian.slot)))
        .max_by_key(|guardian| guardian.slot)
        .ok_or(UnverifiedTarget::NoGuardian)
}

// Proves that a process is the job that holds a slot: a lock of the process on one byte. The byte encodes the
// slot, the start time, and which processes to signal when it is overdue. It survives exec, no child inherits
// it, and no process can make one for another. The content of a file, the owner of a descriptor, and the
// process id of a lock can all be made to point to another process. So they only show where to look.
//
// It is a read lock, so that no other lock on the same byte hides it, and the same through every descriptor.
// It is gone when the process closes any descriptor of the file: then its holder is named, and not ended.

/// Moments in a second.
const MOMENTS: u64 = 16;

/// How long one is.
pub(super) const MOMENT: Duration = Duration::from_nanos(1_000_000_000 / MOMENTS);

const QUARTER_MOMENT: Duration = Duration::from_nanos(250_000_000 / MOMENTS);

/// The guardian of a slot and of those that were taken right behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Guardian {
    /// The first of the slots.
    pub slot: u64,
    /// The hold of the slots, which says whom to signal: the process, its children, or its descendants.
    pub hold: Hold,
    /// When it was taken, in moments since the host's boot.
    moment: u64,
}

impl Guardian {
    /// The guardian of slots that are acquired now; none if the time is unknown.
    pub(super) fn begin(slot: u64, hold: Hold) -> Option<Self> {
        let since = process::since_boot_of_host()?;
        let part = u64::from(since.subsec_nanos()).saturating_mul(MOMENTS) / 1_000_000_000;
        Some(Self { slot, hold, moment: since.as_secs().saturating_mul(MOMENTS).saturating_add(part) })
    }

    /// The byte that it locks.
    pub(super) fn byte(self) -> Bytes {
        let kind = KINDS.iter().position(|hold| *hold == self.hold).unwrap_or(0);
        let byte = guardian_byte(self.slot, self.moment, kind as u64);
        byte..=byte
    }

    /// The guardian that a lock is. A lock of several bytes is not one: it may be a lock of the whole file.
    pub(super) fn of(bytes: &Bytes) -> Option<Self> {
        let (slot, moment, kind) = guardian_at(*bytes.start())?;
        let hold = *KINDS.get(usize::try_from(kind).ok()?)?;
        (bytes.start() == bytes.end()).then_some(Self { slot, hold, moment })
    }

    /// How long ago it was taken, to a sixteenth of a second. None for a moment in the future, which no
    /// correct program writes.
    pub fn age(self) -> Option<Duration> {
        process::since_boot_of_host()?.checked_sub(self.since_boot())
    }

    /// When it was taken, in time since the host's boot, unless that is in the future.
    pub(super) fn taken(self) -> Option<Duration> {
        self.age().map(|_| self.since_boot())
    }

    fn since_boot(self) -> Duration {
        Duration::from_millis(self.moment.saturating_mul(1000) / MOMENTS)
    }

    /// Waits for the moment in which a guardian is younger than every child that this process has already: a
    /// script may have started some before it became rungate, and they are not the job.
    pub(crate) fn wait_for_older_children() {
        let own = process::number_in_proc();
        let children = own.into_iter().flat_map(process::children).filter_map(Process::find);
        let Some(last) = children.filter_map(|child| child.started_on_host()).max() else { return };
        // Within two moments it is, unless a clock is wrong.
        for _ in 0..8 {
            let now = Self::begin(1, Hold::Supervisor).and_then(Self::taken);
            if now.is_none_or(|now| now >= last) {
                return;
            }
            thread::sleep(QUARTER_MOMENT);
        }
    }
}

/// The hold by its number in the byte.
const KINDS: [Hold; 4] = [Hold::Process, Hold::Descriptor, Hold::Supervisor, Hold::Tree];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guardian_is_what_its_byte_says() {
        for hold in KINDS {
            let begun = std::time::Instant::now();
            let guardian = Guardian::begin(7, hold).expect("/proc is mounted");
            assert_eq!(Guardian::of(&guardian.byte()), Some(guardian));
            let age = guardian.age().expect("the past");
            assert!(age <= begun.elapsed() + Duration::from_secs(1), "{age:?}");
        }
    }

    /// A guardian proves its slot and the slots behind it that the same lock covers, up to the next guardian.
    /// The locks of a description prove nothing: any process may have got its descriptor.
    #[test]
    fn a_slot_is_proved_by_the_last_guardian_at_or_before_it() {
        let lock = |first, last| (Ownership::Process, slot_byte(first)..=slot_byte(last));
        let guard = |slot| (Ownership::Process, Guardian { slot, hold: Hold::Tree, moment: slot }.byte());
        let shown = [lock(3, 5), guard(3), guard(5), lock(8, 9), guard(9)];
        let proved = |slot| guardian_of(&shown, slot).map(|guardian| guardian.slot);
        let (none, gone) = (Err(UnverifiedTarget::NoGuardian), Err(UnverifiedTarget::Gone));
        assert_eq!([3, 4, 5, 6, 8, 9].map(proved), [Ok(3), Ok(3), Ok(5), gone, none, Ok(9)]);
        assert_eq!(
            (proof_of(&shown, 8), proof_of(&shown, 6)),
            (Ok(Proof::Slot), Err(UnverifiedTarget::Gone))
        );
        let within = [lock(3, 5), guard(3), (Ownership::Description, slot_byte(4)..=slot_byte(4))];
        let of_whole = guardian_of(&within, 4).map(|guardian| guardian.slot);
        assert_eq!(of_whole, Ok(3), "another lock on the same slot is shorter");
        let given = shown.map(|(_, bytes)| (Ownership::Description, bytes));
        let unproved = [3, 8].map(|slot| proof_of(&given, slot));
        assert_eq!(unproved, [Err(UnverifiedTarget::NoGuardian); 2]);
    }

    /// A job holds the slots for which it has the same proof.
    #[test]
    fn a_job_holds_what_its_guardian_proves() {
        let lock = |first, last| (Ownership::Process, slot_byte(first)..=slot_byte(last));
        let guardian = |slot| Guardian { slot, hold: Hold::Tree, moment: slot };
        let shown = [lock(3, 4), lock(8, 9)].into_iter();
        let shown = shown.chain([3, 8].map(|slot| (Ownership::Process, guardian(slot).byte()))).collect();
        let process = PidFd::open(process::own_pid()).expect("this process lives");
        let job = Job { process, proof: Proof::Guardian(guardian(3)), user: 0, shown };
        assert_eq!([3, 4, 5, 8, 9].map(|slot| job.holds(slot)), [true, true, false, false, false]);
        assert_eq!([2, 3, 7, 9].map(|slot| job.shows(slot_byte(slot))), [false, true, false, true]);
    }

    #[test]
    fn a_lock_of_several_bytes_is_no_guardian() {
        let byte = *Guardian::begin(7, Hold::Process).expect("/proc is mounted").byte().start();
        assert_eq!(Guardian::of(&(byte..=byte + 1)), None);
        assert_eq!(Guardian::of(&(0..=u64::MAX)), None);
    }
}
