//! Where everything stands in a lock file. Offsets of locks and offsets of content have nothing to do with each other:
//! nothing is ever written at the byte of a slot. The first eight bytes and the bytes of the slots are those of exectimes
//! (Gamble 2011), so that both may work on one file.

use crate::sys::record_lock::{Bytes, LAST_BYTE};

/// The content of these bytes is the hint; a write lock on them is the mutex.
pub const MUTEX: Bytes = 0..=7;

/// Slots are numbered from 1 to this.
pub const LAST_SLOT: u64 = 1_048_575;

/// The byte before that of slot 1.
const BEFORE_SLOTS: u64 = 7;

/// Locks at and above this are rungate's own and not slots.
const OWN_LOCKS: u64 = 1 << 41;

/// Where rungate's header stands in the content.
pub const HEADER_AT: u64 = 4096;

/// Where the records begin in the content.
const RECORDS_AT: u64 = 8192;

/// The size of one record, its newline included.
pub const RECORD_SIZE: usize = 256;

/// The byte whose lock is slot `slot`.
pub const fn slot_byte(slot: u64) -> u64 {
    BEFORE_SLOTS + slot
}

/// The bytes of a run of slots.
pub fn slot_bytes(first: u64, last: u64) -> Bytes {
    slot_byte(first)..=slot_byte(last)
}

/// Every byte above the one at `offset` that counts as a slot, also beyond the last that a limit can reach.
pub fn slot_bytes_above(offset: u64) -> Bytes {
    offset + 1..=OWN_LOCKS - 1
}

/// Every byte above that of a slot: other slots, what nested launches share, and the places of all who wait.
pub fn everything_above(slot: u64) -> Bytes {
    slot_byte(slot) + 1..=LAST_BYTE
}

/// The slot of a byte that counts as one.
pub const fn slot_at(byte: u64) -> u64 {
    byte.saturating_sub(BEFORE_SLOTS)
}

/// The byte whose write lock says that a nested launch shares slot `slot`.
pub fn shared_byte(slot: u64) -> Bytes {
    let byte = OWN_LOCKS + slot;
    byte..=byte
}

/// Whoever reads `/proc/locks` has a read lock here meanwhile, by which he finds the lines of the file. It excludes nobody.
pub const PROBE: Bytes = 1 << 42..=1 << 42;

/// Tickets of waiters begin here: for each limit a stretch of this many bytes, by number.
const TICKETS: u64 = 1 << 43;

/// The byte of the ticket with `number` in the line of those whose limit is `limit`.
pub fn ticket_byte(limit: u64, number: u64) -> u64 {
    TICKETS * limit.clamp(1, LAST_SLOT) + number.min(TICKETS - 1)
}

/// The bytes of the tickets up to `last`, in the line of those whose limit is `limit`.
pub fn tickets_up_to(limit: u64, last: u64) -> Bytes {
    ticket_byte(limit, 0)..=ticket_byte(limit, last)
}

/// The bytes of all tickets of those whose limit is `limit` or more.
pub fn tickets_from(limit: u64) -> Bytes {
    ticket_byte(limit, 0)..=LAST_BYTE
}

/// Limit and number of the ticket at a byte.
pub fn ticket_at(byte: u64) -> (u64, u64) {
    (byte / TICKETS, byte % TICKETS)
}

/// Where the record of `slot` stands in the content.
pub const fn record_at(slot: u64) -> u64 {
    RECORDS_AT + RECORD_SIZE as u64 * slot.saturating_sub(1)
}
