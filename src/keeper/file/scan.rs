//! Which bytes of a file are locked, from the kernel only. One query returns the first conflicting lock in
//! the kernel's own order, which is not that of the offsets, and a lock may cover many bytes or run to the
//! end of the file. So a range is split at each answer, and bytes are counted, never locks. The locks of one
//! inode are one list in the kernel: h queries walk it h times. Beyond a thousand, `/proc/locks` is cheaper,
//! which delays all lockers of the host.
//!
//! A scan ends as soon as it has seen enough. Its work is bounded whatever others have locked, and the rest
//! stays unknown. It queries the largest range first, so that gaps, for which the kernel walks its whole
//! list, come last.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::{
    keeper::{
        Occupancy, Span,
        file::{
            MUTEX, PROBE, RepositoryError,
            file::LockFile,
            layout::{slot_at, slot_byte, slot_bytes_above},
        },
    },
    sys::{Bytes, Conflict, record_lock},
};

/// This many answers cost as much as listing all locks of the host.
const MANY: usize = 1024;

/// The most queries to get them: each answer leaves two ranges, one of which may be free.
const QUERIES: usize = 2 * MANY;

/// How many steps through the kernel's list of locks a scan may cost between the locks that `/proc/locks`
/// shows: a fraction of a second. `/proc/locks` omits other PID namespaces.
const STEPS: usize = 32_000_000;

/// Looks at every slot. The result stays true only while this process holds the mutex.
pub fn scan(file: &LockFile) -> Result<Occupancy, RepositoryError> {
    let mut look = Look::at_slots();
    look.advance(file, u64::MAX, Means::All)?;
    Ok(look.occupancy())
}

/// Every lock on some bytes of a file, each byte once.
pub(super) fn locks_within(file: &LockFile, bytes: &Bytes) -> Result<Vec<Conflict>, RepositoryError> {
    let mut look = Look::at(bytes.clone());
    look.advance(file, u64::MAX, Means::All)?;
    Ok(look.seen)
}

/// The highest held slot. Mostly the first answer is the highest; else each second question halves what is
/// left.
pub(super) fn highest(file: &LockFile) -> Result<Option<u64>, RepositoryError> {
    let all = slot_bytes_above(slot_byte(0));
    // No lock is above `high`, and the one found is below `low`.
    let (mut low, mut high, mut found) = (*all.start(), *all.end(), None);
    let mut is_whole = false;
    while low <= high {
        is_whole = !is_whole;
        let from = if is_whole { low } else { low.saturating_add(high.saturating_sub(low) / 2) };
        match file.conflict(&(from..=high))? {
            Some(conflict) => {
                let last = *conflict.bytes.end().min(all.end());
                found = Some(slot_at(last));
                low = last.saturating_add(1);
            }
            None => high = from.saturating_sub(1),
        }
    }
    Ok(found)
}

/// The locks that `/proc/locks` shows on a file; none if its lines cannot be distinguished from those of
/// others.
pub(super) fn listed(file: &LockFile) -> Result<Option<Vec<Conflict>>, RepositoryError> {
    // Another process may have locked everything to the end of the file, but not the mutex, if this process
    // holds it.
    let proof = if file.try_read_lock(&PROBE)? { PROBE } else { MUTEX };
    let listed = record_lock::locks_on(file.id(), &proof);
    if proof == PROBE {
        file.unlock(&PROBE)?;
    }
    Ok(listed)
}

/// The progress of a scan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Extent {
    /// Everything was seen.
    All,
    /// The requested number was seen.
    Enough,
    /// More would cost too much.
    Cut,
}

/// The means of a scan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Means {
    /// By queries, and `/proc/locks` where there are too many locks for that.
    All,
    /// By queries alone.
    Queries,
}

/// What is known of the locks on some bytes of a file. It is continued if more is needed.
#[derive(Clone, Debug)]
pub struct Look {
    all: Bytes,
    /// In ascending order and without overlap, except for what was noted since.
    seen: Vec<Conflict>,
    extent: Option<Extent>,
}

impl Look {
    /// At these bytes, which are not known yet.
    pub fn at(all: Bytes) -> Self {
        Self { all, seen: Vec::new(), extent: None }
    }

    pub fn at_slots() -> Self {
        Self::at(slot_bytes_above(slot_byte(0)))
    }

    /// Adds other findings.
    pub fn note(&mut self, conflict: &Conflict) {
        let Conflict { bytes, pid } = conflict;
        let bytes = *bytes.start().max(self.all.start())..=*bytes.end().min(self.all.end());
        if !bytes.is_empty() {
            self.seen.push(Conflict { bytes, pid: *pid });
        }
    }

    /// Looks until this many bytes are seen to be locked.
    pub fn advance(&mut self, file: &LockFile, enough: u64, means: Means) -> Result<Extent, RepositoryError> {
        self.straighten();
        let extent = match self.extent {
            _ if self.locked() >= enough => Extent::Enough,
            Some(known @ (Extent::All | Extent::Cut)) => known,
            Some(Extent::Enough) | None => self.search(file, enough, means)?,
        };
        self.straighten();
        self.extent = Some(extent);
        Ok(extent)
    }

    fn search(&mut self, file: &LockFile, enough: u64, means: Means) -> Result<Extent, RepositoryError> {
        // A proof that needs too many answers is not started.
        let is_far = means == Means::All && enough != u64::MAX && enough > MANY as u64;
        if !is_far {
            let extent = self.ask(file, enough, MANY, QUERIES)?;
            if extent != Extent::Cut || means == Means::Queries {
                return Ok(extent);
            }
        }
        let Some(listed) = listed(file)? else {
            return if is_far { self.ask(file, enough, QUERIES, QUERIES) } else { Ok(Extent::Cut) };
        };
        let most = STEPS.checked_div(listed.len()).unwrap_or(STEPS).max(MANY);
        for conflict in &listed {
            self.note(conflict);
        }
        self.straighten();
        self.ask(file, enough, most, most)
    }

    /// Asks about what is not known, until enough is seen, or the bound of answers or queries is reached.
    fn ask(
        &mut self,
        file: &LockFile,
        enough: u64,
        answers: usize,
        queries: usize,
    ) -> Result<Extent, RepositoryError> {
        let mut todo: BinaryHeap<Unknown> = self.gaps().into_iter().map(Unknown).collect();
        let mut locked = self.locked();
        let (mut answered, mut asked) = (0, 0);
        loop {
            if locked >= enough {
                return Ok(Extent::Enough);
            }
            let Some(Unknown(range)) = todo.pop() else { return Ok(Extent::All) };
            if answered == answers || asked == queries {
                return Ok(Extent::Cut);
            }
            asked = asked.saturating_add(1);
            let Some(conflict) = file.conflict(&range)? else { continue };
            answered = answered.saturating_add(1);
            let (first, last) =
                (*conflict.bytes.start().max(range.start()), *conflict.bytes.end().min(range.end()));
            locked = locked.saturating_add(count(&(first..=last)));
            self.note(&Conflict { bytes: first..=last, pid: conflict.pid });
            let sides = [last.saturating_add(1)..=*range.end(), *range.start()..=first.saturating_sub(1)];
            todo.extend(sides.into_iter().filter(|side| !side.is_empty()).map(Unknown));
        }
    }

    fn locked(&self) -> u64 {
        self.seen.iter().map(|conflict| count(&conflict.bytes)).fold(0, u64::saturating_add)
    }

    /// Sorts, and leaves each byte to one conflict: a byte may be read-locked by several.
    fn straighten(&mut self) {
        self.seen.sort_by_key(|conflict| (*conflict.bytes.start(), *conflict.bytes.end()));
        let mut next = 0;
        self.seen.retain_mut(|conflict| {
            conflict.bytes = next.max(*conflict.bytes.start())..=*conflict.bytes.end();
            next = next.max(conflict.bytes.end().saturating_add(1));
            !conflict.bytes.is_empty()
        });
    }

    /// The unknown ranges.
    fn gaps(&self) -> Vec<Bytes> {
        let mut gaps = Vec::new();
        let mut next = *self.all.start();
        for conflict in &self.seen {
            if next < *conflict.bytes.start() {
                gaps.push(next..=conflict.bytes.start().saturating_sub(1));
            }
            next = conflict.bytes.end().saturating_add(1);
        }
        if next <= *self.all.end() {
            gaps.push(next..=*self.all.end());
        }
        gaps
    }

    /// What was seen of slots.
    pub fn occupancy(&self) -> Occupancy {
        let mut look = self.clone();
        look.straighten();
        let span = |Conflict { bytes, pid }: Conflict| Span {
            slots: slot_at(*bytes.start())..=slot_at(*bytes.end()),
            pid,
        };
        Occupancy::of(look.seen.into_iter().map(span).collect())
    }

    pub(super) fn seen(&self) -> &[Conflict] {
        &self.seen
    }
}

/// A range without a query yet; the largest one compares as the greatest.
#[derive(Eq, PartialEq)]
struct Unknown(Bytes);

impl Ord for Unknown {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |Self(range): &Self| (count(range), *range.start());
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Unknown {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn count(bytes: &Bytes) -> u64 {
    bytes.end().saturating_sub(*bytes.start()).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use tempfile::{NamedTempFile, TempPath};

    use super::*;
    use crate::{
        judge::terms::Creation,
        keeper::file::{LockPath, layout::slot_bytes, prune},
    };

    /// A lock file, and the same file as two other programs have it open.
    fn file_and_others() -> (LockFile, [LockFile; 2], TempPath) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        let open = || LockFile::open_to_read(&place).expect("a lock file").expect("the file is there");
        let others = [open(), open()];
        (file, others, path)
    }

    fn hold(other: &LockFile, slot: u64) {
        assert!(other.try_join_shared(&slot_bytes(slot, slot)).expect("a lock file"), "the slot is free");
    }

    /// The highest held slot is found, however many are held below it.
    #[test]
    fn the_highest_slot_is_found() {
        let (file, [one, other], _path) = file_and_others();
        let found = || highest(&file).expect("a lock file");
        assert_eq!(found(), None);
        for slot in (1..=150).step_by(3) {
            hold(&one, slot);
            assert_eq!(found(), Some(slot));
            hold(&other, slot + 1);
            assert_eq!(found(), Some(slot + 1));
            other.unlock_shared(&slot_bytes(slot + 1, slot + 1)).expect("a lock file");
        }
    }

    /// A look asks a bounded number of queries. The list of all locks of the host shows the rest.
    #[test]
    fn what_queries_do_not_show_is_in_the_list_of_all_locks() {
        let (file, [other, _], _path) = file_and_others();
        let many = MANY as u64;
        let seen = |means| {
            let mut look = Look::at_slots();
            let extent = look.advance(&file, u64::MAX, means).expect("a lock file");
            (extent, look.locked())
        };
        for number in 1..many {
            hold(&other, 2 * number - 1);
        }
        assert_eq!(seen(Means::Queries), (Extent::All, many - 1));
        hold(&other, 2 * many - 1);
        assert_eq!(seen(Means::Queries), (Extent::Cut, many));
        hold(&other, 2 * many + 1);
        let in_two_parts = || {
            let mut look = Look::at_slots();
            let mut until = |enough| look.advance(&file, enough, Means::All).expect("a lock file");
            let extents = [5, many + 2].map(&mut until);
            (extents, look.locked())
        };
        // While others on the host take and free locks, the list may lack some, and then it is not used.
        assert!((0..9).any(|_| seen(Means::All) == (Extent::All, many + 1)));
        assert!((0..9).any(|_| in_two_parts() == ([Extent::Enough, Extent::All], many + 1)));
        assert_eq!(other.conflict(&PROBE).expect("a lock file"), None, "nothing else stays locked");
    }

    /// Locks of two programs that overlap count once, whichever the kernel names first.
    #[test]
    fn locks_that_overlap_are_not_enough() {
        for locked in [[(11, 16), (14, 20)], [(14, 20), (11, 16)]] {
            let (file, others, _path) = file_and_others();
            for (other, (first, last)) in others.iter().zip(locked) {
                assert!(other.try_join_shared(&slot_bytes(first, last)).expect("a lock file"), "it is free");
            }
            let mut look = Look::at_slots();
            assert_eq!(look.advance(&file, 11, Means::Queries).expect("a lock file"), Extent::All);
            assert_eq!(look.occupancy().held(), 10);
        }
    }

    /// A lock that was found twice counts once: it refuses no launch for which there is room.
    #[test]
    fn what_was_found_twice_is_not_enough() {
        let (file, [other, _], _path) = file_and_others();
        hold(&other, 3);
        let mut look = Look::at_slots();
        for _ in 0..2 {
            look.note(&Conflict { bytes: slot_bytes(3, 3), pid: None });
        }
        assert_eq!(look.occupancy().held(), 1);
        assert_eq!(look.advance(&file, 2, Means::Queries).expect("a lock file"), Extent::All);
        assert_eq!(look.locked(), 1);
        hold(&other, 5);
        let mut look = Look::at_slots();
        assert_eq!(look.advance(&file, 2, Means::Queries).expect("a lock file"), Extent::Enough);
    }

    #[test]
    fn overlapping_locks_are_counted_once() {
        let mut look = Look::at(8..=100);
        for (first, last) in [(20, 30), (8, 12), (10, 25), (0, 7)] {
            look.note(&Conflict { bytes: first..=last, pid: None });
        }
        look.straighten();
        let bytes: Vec<Bytes> = look.seen().iter().map(|conflict| conflict.bytes.clone()).collect();
        assert_eq!(bytes, [8..=12, 13..=25, 26..=30]);
        assert_eq!((look.locked(), look.gaps()), (23, vec![31..=100]));
        for (first, last) in [(40, 50), (60, 99)] {
            look.note(&Conflict { bytes: first..=last, pid: None });
        }
        assert_eq!(look.gaps(), [31..=39, 51..=59, 100..=100]);
    }

    #[test]
    fn the_largest_range_is_asked_about_first() {
        let mut todo: BinaryHeap<Unknown> = [8..=9, 20..=100, 3..=3].into_iter().map(Unknown).collect();
        let order: Vec<Bytes> = std::iter::from_fn(|| todo.pop()).map(|Unknown(range)| range).collect();
        assert_eq!(order, [20..=100, 8..=9, 3..=3]);
    }
}
