//! Which slots of a file are held, all of them, from the kernel alone. One query answers with the first conflicting lock in
//! the kernel's own order, which is not that of the offsets, and a lock may cover many bytes or run to the end of the file;
//! so a range is split at each answer, and bytes are counted, never locks. One inode's locks are one list in the kernel:
//! asking h times walks it h times, and beyond a hundred or two `/proc/locks` is cheaper.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::ops::RangeInclusive;

use crate::{
    repository::{
        error::RepositoryError,
        file::LockFile,
        layout::{LAST_SLOT, MUTEX, PROBE, slot_at, slot_byte, slot_bytes_above},
    },
    sys::{
        kernel_locks,
        record_lock::{Bytes, Conflict},
    },
};

/// Neighbouring slots with one holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Span {
    /// The slots. Beyond the last that a limit can reach there may be more of them than anybody wants to see.
    pub slots: RangeInclusive<u64>,
    /// The process that holds them, where the kernel can say.
    pub pid: Option<i32>,
}

impl Span {
    fn count(&self) -> u64 {
        self.slots.end().saturating_sub(*self.slots.start()).saturating_add(1)
    }
}

/// Every held slot of a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Occupancy {
    /// In ascending order, without overlap.
    spans: Vec<Span>,
}

/// As many answers make the listing of all locks of the host cheaper than more queries.
const MANY: usize = 128;

impl Occupancy {
    /// Looks at every slot. The mutex must be held by this process where the answer is to stay true.
    pub fn scan(file: &LockFile) -> Result<Self, RepositoryError> {
        let all = slot_bytes_above(slot_byte(0));
        let mut found = Found::default();
        if found.search(file, vec![all.clone()], MANY)?.is_some() {
            let listed = listed(file)?;
            found.add_listed(listed, &all);
            let gaps = found.gaps(&all);
            found.search(file, gaps, usize::MAX)?;
        }
        Ok(Self { spans: found.into_spans() })
    }

    /// How many slots are held.
    pub fn held(&self) -> u64 {
        self.spans.iter().map(Span::count).sum()
    }

    /// The same for people: slots that no limit can reach are not counted.
    pub fn shown(&self) -> u64 {
        let within = |span: &Span| {
            span.slots.end().min(&LAST_SLOT).saturating_add(1).saturating_sub(*span.slots.start())
        };
        self.spans.iter().map(within).sum()
    }

    /// The highest held slot.
    pub fn highest(&self) -> Option<u64> {
        self.spans.last().map(|span| *span.slots.end())
    }

    /// The spans, in ascending order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The free slots among `slots`, ascending.
    pub fn free_among(&self, slots: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        let mut spans = self.spans.iter().peekable();
        slots.filter(move |slot| {
            while spans.next_if(|span| span.slots.end() < slot).is_some() {}
            spans.peek().is_none_or(|span| slot < span.slots.start())
        })
    }
}

/// The locks that `/proc/locks` shows on a file; none where its lines cannot be told from those of others.
fn listed(file: &LockFile) -> Result<Vec<Conflict>, RepositoryError> {
    // Somebody may have locked everything to the end of the file, but not the mutex, where this process holds it.
    let proof = if file.try_lock_to_be_found(&PROBE)? { PROBE } else { MUTEX };
    let listed = kernel_locks::locks_on(file.id(), &proof);
    if proof == PROBE {
        file.unlock(&PROBE)?;
    }
    Ok(listed.unwrap_or_default())
}

#[derive(Default)]
struct Found {
    conflicts: Vec<Conflict>,
}

impl Found {
    /// Asks for everything in `todo`. Stops after `most` answers, and then says so.
    fn search(
        &mut self,
        file: &LockFile,
        mut todo: Vec<Bytes>,
        most: usize,
    ) -> Result<Option<TooMany>, RepositoryError> {
        while let Some(range) = todo.pop() {
            if range.is_empty() {
                continue;
            }
            let Some(conflict) = file.conflict(&range)? else { continue };
            let (Conflict { bytes, pid }, whole) = (conflict, range);
            let (first, last) = (*bytes.start().max(whole.start()), *bytes.end().min(whole.end()));
            todo.push(last.saturating_add(1)..=*whole.end());
            todo.push(*whole.start()..=first.saturating_sub(1));
            self.conflicts.push(Conflict { bytes: first..=last, pid });
            if self.conflicts.len() >= most {
                return Ok(Some(TooMany));
            }
        }
        Ok(None)
    }

    fn add_listed(&mut self, listed: Vec<Conflict>, all: &Bytes) {
        self.conflicts.extend(
            listed
                .into_iter()
                .map(|Conflict { bytes, pid }| Conflict {
                    bytes: *bytes.start().max(all.start())..=*bytes.end().min(all.end()),
                    pid,
                })
                .filter(|conflict| !conflict.bytes.is_empty()),
        );
        self.straighten();
    }

    /// Sorts, and leaves each byte to one conflict: a byte may be read-locked by several.
    fn straighten(&mut self) {
        self.conflicts.sort_by_key(|conflict| (*conflict.bytes.start(), *conflict.bytes.end()));
        let mut next = 0;
        self.conflicts.retain_mut(|conflict| {
            conflict.bytes = next.max(*conflict.bytes.start())..=*conflict.bytes.end();
            next = next.max(conflict.bytes.end().saturating_add(1));
            !conflict.bytes.is_empty()
        });
    }

    fn gaps(&self, all: &Bytes) -> Vec<Bytes> {
        let mut gaps = Vec::new();
        let mut next = *all.start();
        for conflict in &self.conflicts {
            if next < *conflict.bytes.start() {
                gaps.push(next..=conflict.bytes.start().saturating_sub(1));
            }
            next = conflict.bytes.end().saturating_add(1);
        }
        if next <= *all.end() {
            gaps.push(next..=*all.end());
        }
        gaps
    }

    fn into_spans(mut self) -> Vec<Span> {
        self.straighten();
        self.conflicts
            .into_iter()
            .map(|Conflict { bytes, pid }| Span {
                slots: slot_at(*bytes.start())..=slot_at(*bytes.end()),
                pid,
            })
            .collect()
    }
}

/// There are more conflicts than it makes sense to ask for one by one.
struct TooMany;

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(spans: &[(u64, u64)]) -> Occupancy {
        let spans = spans.iter().map(|(first, last)| Span { slots: *first..=*last, pid: None });
        Occupancy { spans: spans.collect() }
    }

    #[test]
    fn free_slots_are_those_between_the_spans() {
        let occupancy = occupancy(&[(1, 2), (4, 4), (7, 1 << 40)]);
        assert_eq!(occupancy.free_among(1..=9).collect::<Vec<_>>(), [3, 5, 6]);
        assert_eq!(occupancy.free_among(4..=4).count(), 0);
        assert_eq!(occupancy.held(), 3 + (1 << 40) - 6);
    }

    #[test]
    fn overlapping_locks_are_counted_once() {
        let mut found = Found::default();
        let conflict = |first, last| Conflict { bytes: first..=last, pid: None };
        found.add_listed(
            vec![conflict(20, 30), conflict(8, 12), conflict(10, 25), conflict(0, 7)],
            &(8..=100),
        );
        let bytes: Vec<Bytes> = found.conflicts.iter().map(|conflict| conflict.bytes.clone()).collect();
        assert_eq!(bytes, [8..=12, 13..=25, 26..=30]);
        assert_eq!(found.gaps(&(8..=100)), [31..=100]);
    }
}
