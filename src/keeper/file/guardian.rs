//! What proves that a process is the job that holds a slot: a lock of the process on a byte that says which
//! slot, since when, and who is to be signalled when it is overdue. It stays over exec, no child inherits it,
//! and nobody can make one for another process. What a file says, who has a descriptor, and the number that
//! the kernel keeps with a lock can all be made to point to an innocent; so they say at most where to look.
//!
//! It is a read lock, so that no other lock on the same byte hides it, and the same through every descriptor.
//! It is gone when the process closes any descriptor of the file: then its holder is named, and not ended.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::Duration;

use crate::{
    keeper::file::layout::{guardian_at, guardian_byte},
    sys::{process, record_lock::Bytes},
    terms::hold::Hold,
};

/// Moments in a second.
const MOMENTS: u64 = 16;

/// The guardian of a slot and of those that were taken right behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Guardian {
    /// The first of the slots.
    pub slot: u64,
    /// What keeps them, and so who is to be signalled: the process, its children, its descendants.
    pub hold: Hold,
    /// When it was taken, in moments since the host's boot.
    moment: u64,
}

impl Guardian {
    /// That of slots which are taken now; none where nobody can say when that is.
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

    /// The guardian that a lock is. One of several bytes is somebody's lock of the whole file, say.
    pub(super) fn of(bytes: &Bytes) -> Option<Self> {
        let (slot, moment, kind) = guardian_at(*bytes.start())?;
        let hold = *KINDS.get(usize::try_from(kind).ok()?)?;
        (bytes.start() == bytes.end()).then_some(Self { slot, hold, moment })
    }

    /// How long ago it was taken, to a sixteenth of a second. None for a moment in the future, which nobody
    /// honest writes.
    pub fn age(self) -> Option<Duration> {
        let taken = Duration::from_millis(self.moment.saturating_mul(1000) / MOMENTS);
        process::since_boot_of_host()?.checked_sub(taken)
    }
}

/// By the number that stands in the byte.
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

    #[test]
    fn a_lock_of_several_bytes_is_no_guardian() {
        let byte = *Guardian::begin(7, Hold::Process).expect("/proc is mounted").byte().start();
        assert_eq!(Guardian::of(&(byte..=byte + 1)), None);
        assert_eq!(Guardian::of(&(0..=u64::MAX)), None);
    }
}
