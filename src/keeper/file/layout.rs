//! The layout of a lock file. Offsets of locks and offsets of content are independent: nothing is ever
//! written at the byte of a slot. The first eight bytes and the bytes of the slots are those of exectimes
//! (Gamble 2011), so that both may use one file.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use crate::sys::Bytes;

/// The content of these bytes is the hint; a write lock on them is the mutex.
pub const MUTEX: Bytes = 0..=7;

// Slots are numbered from 1 to this.
pub use crate::judge::terms::LAST_SLOT;
use crate::judge::terms::MOST_SHARED;

/// The byte before that of slot 1.
const BEFORE_SLOTS: u64 = 7;

/// Locks at and above this are rungate's own and not slots.
const OWN_LOCKS: u64 = 1 << 41;

/// Where rungate's header is in the content.
pub const HEADER_AT: u64 = 4096;

/// Where the records begin in the content.
const RECORDS_AT: u64 = 8192;

/// The size of one record, its newline included.
pub const RECORD_SIZE: usize = 256;

/// The byte whose lock is slot `slot`.
pub const fn slot_byte(slot: u64) -> u64 {
    BEFORE_SLOTS.saturating_add(slot)
}

/// The bytes of a run of slots.
pub fn slot_bytes(first: u64, last: u64) -> Bytes {
    slot_byte(first)..=slot_byte(last)
}

/// Every byte above the one at `offset` that counts as a slot, also beyond the last that a limit can reach.
pub fn slot_bytes_above(offset: u64) -> Bytes {
    offset.saturating_add(1)..=OWN_LOCKS - 1
}

/// Every byte above that of a slot: other slots, what nested launches share, and all waiters. Places are not
/// included, because a launch that this file does not block has one too.
pub fn everything_above(slot: u64) -> Bytes {
    slot_byte(slot).saturating_add(1)..=PLACES - 1
}

/// The slot of a byte that counts as one.
pub const fn slot_at(byte: u64) -> u64 {
    byte.saturating_sub(BEFORE_SLOTS)
}

/// The bytes whose write lock says that a nested launch shares these slots.
pub fn shared_bytes(first: u64, last: u64) -> Bytes {
    OWN_LOCKS.saturating_add(first)..=OWN_LOCKS.saturating_add(last)
}

/// A reader of `/proc/locks` has a read lock here meanwhile, to find the lines of this file. It excludes
/// nothing.
pub const PROBE: Bytes = 1 << 42..=1 << 42;

/// The locks of waiters begin here: by number, then by the policy that gave the limit, then by limit.
const STANDING: u64 = 1 << 61;

/// Bytes for each number.
const STANDING_STRETCH: u64 = 1 << 32;

/// Bytes for each policy, one for each limit.
const GENERATION_STRETCH: u64 = 1 << 20;

/// The places of waiters begin here, by number.
const PLACES: u64 = 1 << 62;

/// Bytes for each place: the first is the place, the others are beats.
const PLACE_STRETCH: u64 = 1 << 20;

/// The highest number that a waiter can have.
pub const LAST_NUMBER: u64 = (1 << 29) - 1;

/// The most beats that a place can show.
pub const MOST_BEATS: u64 = PLACE_STRETCH - 1;

/// The highest generation of a policy.
pub const LAST_GENERATION: u16 = (1 << 12) - 1;

/// The byte of a waiter with this number, whose limit, of this generation, is `limit`.
pub fn standing_byte(number: u64, generation: u16, limit: u64) -> u64 {
    let generation = u64::from(generation.min(LAST_GENERATION)).saturating_mul(GENERATION_STRETCH);
    standing_at(number).saturating_add(generation).saturating_add(limit.min(LAST_SLOT))
}

fn standing_at(number: u64) -> u64 {
    STANDING.saturating_add(number.min(LAST_NUMBER).saturating_mul(STANDING_STRETCH))
}

/// The bytes of all waiters with these numbers.
pub fn standing_bytes(first: u64, last: u64) -> Bytes {
    standing_at(first)..=standing_at(last).saturating_add(STANDING_STRETCH - 1)
}

/// Number, generation and limit of a waiter whose lock covers these bytes; none if no waiter has such a lock.
pub fn standing_of(bytes: &Bytes) -> Option<(u64, u16, u64)> {
    let stretch = |byte: &u64| byte / GENERATION_STRETCH;
    if stretch(bytes.start()) != stretch(bytes.end()) {
        return None;
    }
    let within = bytes.end().checked_sub(STANDING)?;
    let generation = u16::try_from(within % STANDING_STRETCH / GENERATION_STRETCH).ok()?;
    Some((within / STANDING_STRETCH, generation, within % GENERATION_STRETCH))
}

/// The byte of a place after this many beats.
pub fn place_byte(number: u64, beats: u64) -> u64 {
    PLACES
        .saturating_add(number.min(LAST_NUMBER).saturating_mul(PLACE_STRETCH))
        .saturating_add(beats.min(MOST_BEATS))
}

/// The bytes of all places with these numbers.
pub fn place_bytes(first: u64, last: u64) -> Bytes {
    place_byte(first, 0)..=place_byte(last, MOST_BEATS)
}

/// The number of a place that covers these bytes; none if they are more than one place.
pub fn place_of(bytes: &Bytes) -> Option<u64> {
    let number = |byte: &u64| byte.checked_sub(PLACES).map(|within| within / PLACE_STRETCH);
    number(bytes.start()).filter(|first| number(bytes.end()) == Some(*first))
}

/// The numbers of wanted slots begin here, by waiter: far above the guardians of slots.
const WANTS: u64 = (1 << 62) + (1 << 61);

/// The byte whose lock says how many slots the waiter with this number wants.
pub fn wants_byte(number: u64, slots: u64) -> u64 {
    wants_at(number).saturating_add(slots.min(LAST_SLOT))
}

/// The bytes that can say what the waiter with this number wants.
pub fn wants_bytes(number: u64) -> Bytes {
    wants_at(number)..=wants_byte(number, LAST_SLOT)
}

/// How many slots a lock on these bytes says are wanted; none if it is on more.
pub fn wants_of(bytes: &Bytes) -> Option<u64> {
    let within = bytes.start().checked_sub(WANTS)? % PLACE_STRETCH;
    (bytes.start() == bytes.end()).then_some(within)
}

fn wants_at(number: u64) -> u64 {
    WANTS.saturating_add(number.min(LAST_NUMBER).saturating_mul(PLACE_STRETCH))
}

/// The guardians of slots begin here, with a stretch of [`GUARDIAN_TIMES`] bytes for each slot.
const GUARDIANS: u64 = (1 << 62) + (1 << 60);

/// The bytes for the guardians of one slot: a moment and a kind each.
const GUARDIAN_TIMES: u64 = 1 << 36;

/// What is stored beside the moment has two bits.
const GUARDIAN_KINDS: u64 = 4;

/// The byte of the guardian of `slot` that was taken at `moment` and is of this kind (0 to 3).
pub fn guardian_byte(slot: u64, moment: u64, kind: u64) -> u64 {
    let within = moment.saturating_mul(GUARDIAN_KINDS).saturating_add(kind).min(GUARDIAN_TIMES - 1);
    GUARDIANS.saturating_add(GUARDIAN_TIMES.saturating_mul(slot.min(LAST_SLOT))).saturating_add(within)
}

/// Slot, moment and kind of the guardian at a byte; none if no slot has its guardians.
pub fn guardian_at(byte: u64) -> Option<(u64, u64, u64)> {
    let byte = byte.checked_sub(GUARDIANS)?;
    let (slot, within) = (byte / GUARDIAN_TIMES, byte % GUARDIAN_TIMES);
    (1..=LAST_SLOT).contains(&slot).then_some((slot, within / GUARDIAN_KINDS, within % GUARDIAN_KINDS))
}

/// The bytes of the guardians of one slot.
pub fn guardians_of(slot: u64) -> Bytes {
    guardian_byte(slot, 0, 0)..=guardian_byte(slot, u64::MAX, 0)
}

/// The bytes of the guardians of all slots.
pub fn guardians() -> Bytes {
    guardian_byte(1, 0, 0)..=guardian_byte(LAST_SLOT, u64::MAX, 0)
}

/// The slots of groups begin here: behind everything that waiters want. By group, then by rank, then by slot.
const GROUPS: u64 = (1 << 62) + (1 << 61) + (1 << 49);

/// Bytes for each group.
const GROUP_STRETCH: u64 = 1 << 26;

/// Bytes for each of its ranks, one for each slot.
const RANK_STRETCH: u64 = 1 << 20;

/// The number of groups that have bytes of their own. With 1,000 groups, two have the same bytes in one of
/// 70,000 files.
const GROUP_COUNT: u64 = (1 << 35) - (1 << 23) - 1;

/// The byte whose lock, beside that of the slot, says that the slot is the group's at this rank.
pub fn group_byte(group: u64, rank: u64, slot: u64) -> u64 {
    let rank = rank.min(MOST_SHARED - 1).saturating_mul(RANK_STRETCH);
    GROUPS
        .saturating_add((group % GROUP_COUNT).saturating_mul(GROUP_STRETCH))
        .saturating_add(rank)
        .saturating_add(slot.min(LAST_SLOT))
}

/// The bytes of all slots that a group can have at this rank.
pub fn rank_bytes(group: u64, rank: u64) -> Bytes {
    group_byte(group, rank, 1)..=group_byte(group, rank, LAST_SLOT)
}

/// The bytes of all slots of all groups.
pub fn groups() -> Bytes {
    group_byte(0, 0, 1)..=group_byte(GROUP_COUNT - 1, MOST_SHARED - 1, LAST_SLOT)
}

/// The group, in the order of the bytes, and the slot at a byte; none where no group has slots.
pub fn grouped_at(byte: u64) -> Option<(u64, u64)> {
    let byte = byte.checked_sub(GROUPS)?;
    let (group, slot) = (byte / GROUP_STRETCH, byte % RANK_STRETCH);
    (group < GROUP_COUNT && slot > 0).then_some((group, slot))
}

/// Where the record of `slot` is in the content.
pub const fn record_at(slot: u64) -> u64 {
    RECORDS_AT.saturating_add((RECORD_SIZE as u64).saturating_mul(slot.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::LAST_BYTE;

    #[test]
    fn a_guardian_reads_back_as_it_was() {
        for slot in [1, 2, LAST_SLOT] {
            for (moment, kind) in [(0, 0), (1, 3), ((1 << 34) - 1, 2)] {
                assert_eq!(guardian_at(guardian_byte(slot, moment, kind)), Some((slot, moment, kind)));
            }
        }
        for slot in [1, 2, LAST_SLOT - 1] {
            assert_eq!(guardians_of(slot), guardian_byte(slot, 0, 0)..=guardian_byte(slot + 1, 0, 0) - 1);
        }
        assert_eq!(guardians(), *guardians_of(1).start()..=*guardians_of(LAST_SLOT).end());
        assert_eq!(guardian_at(GUARDIANS), None, "there is no slot 0");
        assert_eq!(guardian_at(slot_byte(3)), None);
        assert_eq!(guardian_at(LAST_BYTE), None);
    }

    #[test]
    fn the_slots_of_groups_read_back_and_never_touch() {
        for group in [0, 1, GROUP_COUNT - 1] {
            for rank in [0, 1, MOST_SHARED - 2, MOST_SHARED - 1] {
                for slot in [1, LAST_SLOT] {
                    assert_eq!(grouped_at(group_byte(group, rank, slot)), Some((group, slot)));
                }
                // The kernel would merge adjacent locks into one, which would be ignored.
                let next = if rank == MOST_SHARED - 1 { (group + 1, 0) } else { (group, rank + 1) };
                assert!(
                    *rank_bytes(group, rank).end() + 1 < *rank_bytes(next.0, next.1).start()
                        || next.0 == GROUP_COUNT
                );
            }
        }
        assert_eq!(group_byte(u64::MAX, 0, 1), group_byte(u64::MAX % GROUP_COUNT, 0, 1));
        assert_eq!(grouped_at(GROUPS), None, "there is no slot 0");
        assert_eq!(grouped_at(*wants_bytes(u64::MAX).end()), None);
        assert_eq!(grouped_at(LAST_BYTE), None);
    }

    /// A lock that covers more than one place, or more than the byte of one waiter's limit, may be one of the
    /// whole file.
    #[test]
    fn a_lock_on_more_bytes_is_no_place_and_no_waiter() {
        let (first, last) = (place_byte(7, 0), place_byte(7, MOST_BEATS));
        assert_eq!((place_of(&(first..=last)), place_of(&(first..=last + 1))), (Some(7), None));
        assert_eq!((place_of(&(first..=LAST_BYTE)), place_of(&(0..=last))), (None, None));
        let standing = standing_byte(7, 3, 5);
        assert_eq!(standing_of(&(standing..=standing)), Some((7, 3, 5)));
        assert_eq!(standing_of(&(standing..=standing + GENERATION_STRETCH)), None);
        let wants = wants_byte(7, 3);
        assert_eq!(wants_of(&(wants..=wants + 1)), None);
    }

    /// Each slot has a byte of its own for nested launches, behind the bytes of all slots.
    #[test]
    fn nested_launches_have_a_byte_for_each_slot() {
        assert_eq!(shared_bytes(2, 4), *shared_bytes(2, 2).start()..=*shared_bytes(4, 4).end());
        for slot in [1, 2, LAST_SLOT] {
            let (first, last) = shared_bytes(slot, slot).into_inner();
            assert_eq!((first, last), (OWN_LOCKS + slot, OWN_LOCKS + slot));
            assert!(!slot_bytes_above(0).contains(&first) && everything_above(slot).contains(&first));
        }
    }

    /// All waiters with some numbers are looked for at once: every byte that one of them can have is among
    /// these bytes, and none of a waiter with another number.
    #[test]
    fn the_bytes_of_some_waiters_are_all_that_they_can_have() {
        let standing = standing_bytes(7, 8);
        assert_eq!(*standing.start(), standing_byte(7, 0, 0));
        assert!(standing.contains(&standing_byte(8, LAST_GENERATION, LAST_SLOT)));
        assert!(!standing.contains(&standing_byte(6, LAST_GENERATION, LAST_SLOT)));
        assert_eq!(standing.end() + 1, *standing_bytes(9, 9).start());
        assert_eq!(place_bytes(7, 8), place_byte(7, 0)..=place_byte(9, 0) - 1);
        let wants = wants_bytes(7);
        assert!(wants.contains(&wants_byte(7, 0)) && wants.contains(&wants_byte(7, LAST_SLOT)));
        assert!(!wants.contains(&wants_byte(6, LAST_SLOT)) && !wants.contains(&wants_byte(8, 0)));
        assert_eq!(wants_byte(7, LAST_SLOT + 1), wants_byte(7, LAST_SLOT));
    }

    /// One query checks that there is no lock beyond, and no waiter; a guardian must not answer it.
    #[test]
    fn guardians_lie_beyond_everything_that_admits() {
        assert!(*everything_above(0).end() < *guardians().start());
        assert!(*place_bytes(0, u64::MAX).end() < *guardians().start());
        assert!(*guardians().end() < *wants_bytes(0).start());
        assert!(*wants_bytes(u64::MAX).end() < LAST_BYTE);
        assert!(*wants_bytes(u64::MAX).end() < *rank_bytes(0, 0).start());
        assert!(*rank_bytes(GROUP_COUNT - 1, MOST_SHARED - 1).end() < LAST_BYTE);
        assert_eq!(wants_of(&(wants_byte(7, 3)..=wants_byte(7, 3))), Some(3));
    }
}
