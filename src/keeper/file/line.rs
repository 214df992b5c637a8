//! The queue. A waiter has one number, the same in every file. It keeps a *place* under this number in all of
//! its files until it starts. A place is a lock that grows by a byte each second, so that others can see
//! whether the waiter is alive. If a file blocks it, it also locks the byte of its number and of its limit
//! there. The queue consists of these locks only: a process that dies has left it.
//!
//! A number is one more than the highest in any of its files. So every wait points to a smaller number, and
//! no circle can form. No clock is used. A process cannot make a lock for another one, so a waiter can give
//! false information only about itself.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{os::fd::AsFd, rc::Rc, time::Duration};

use super::{
    Extent, LAST_NUMBER, Look, MOST_BEATS, Means, RepositoryError,
    error::{call, failed_call},
    file::LockFile,
    layout::{
        place_byte, place_bytes, place_of, standing_byte, standing_bytes, standing_of, wants_byte,
        wants_bytes, wants_of,
    },
};
use crate::{
    keeper::{Class, Heartbeat, Number, Waiter, WaitingProcess, Woken},
    sys::{Alarm, Bytes, Conflict, Errno, Mode, record_lock},
};

/// A place in one file, kept until dropped.
#[must_use = "the place is given up when this is dropped"]
pub struct Place {
    file: Rc<LockFile>,
    number: Number,
    beats: u64,
    classes: Vec<Class>,
    /// How many slots the launch wants, where others can see that.
    wants: Option<u64>,
}

impl Place {
    /// Takes a place; none if another launch has that number. To be called under the mutex.
    pub fn take(file: &Rc<LockFile>, number: Number) -> Result<Option<Self>, RepositoryError> {
        let byte = place_byte(number.0, 0);
        let place = Self { file: Rc::clone(file), number, beats: 0, classes: Vec::new(), wants: None };
        Ok(file.try_lock(&(byte..=byte))?.then_some(place))
    }

    pub fn file(&self) -> &Rc<LockFile> {
        &self.file
    }

    /// Shows that its launch is alive.
    pub fn beat(&mut self) -> Result<(), RepositoryError> {
        let next = self.beats.saturating_add(1);
        let byte = place_byte(self.number.0, next);
        if next <= MOST_BEATS && self.file.try_lock(&(byte..=byte))? {
            self.beats = next;
            return Ok(());
        }
        // After twelve days, or if another process has locked that byte, it starts again, which is also
        // visible. If that is the first one, it cannot show any, and `pulse` says so.
        self.beats = 0;
        self.file.unlock(&(place_byte(self.number.0, 1)..=place_byte(self.number.0, MOST_BEATS)))
    }

    /// Waits in these classes, and in no other. To be called under the mutex, except to leave. If it cannot
    /// have one of them yet, it also stays in those that it has: in none it would lose its turn.
    pub fn stand(&mut self, classes: &[Class]) -> Result<(), RepositoryError> {
        let mut has_all = true;
        for class in classes {
            // A process that slept on this byte may have its lock for a moment, and is then taken for its
            // waiter. The real waiter tries again at its next check.
            if self.classes.contains(class) {
                continue;
            }
            if self.file.try_lock(&byte_of(self.number, *class))? {
                self.classes.push(*class);
            } else {
                has_all = false;
            }
        }
        if !has_all {
            return Ok(());
        }
        for class in &self.classes {
            if !classes.contains(class) {
                self.file.unlock(&byte_of(self.number, *class))?;
            }
        }
        self.classes.retain(|class| classes.contains(class));
        Ok(())
    }

    /// Lets listings see how many slots the launch wants. Nothing depends on it: if another process has
    /// locked that byte, it is not shown.
    pub fn wants(&mut self, slots: u64) -> Result<(), RepositoryError> {
        if self.wants == Some(slots) {
            return Ok(());
        }
        self.file.unlock(&wants_bytes(self.number.0))?;
        let byte = wants_byte(self.number.0, slots);
        self.wants = self.file.try_lock(&(byte..=byte))?.then_some(slots);
        Ok(())
    }

    /// The classes in which it waits.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A lock that cannot be released ends with the process.
        let _ = self.stand(&[]);
        let _ = self.file.unlock(&wants_bytes(self.number.0));
        let _ = self.file.unlock(&place_bytes(self.number.0, self.number.0));
    }
}

fn byte_of(number: Number, class: Class) -> Bytes {
    let byte = standing_byte(number.0, class.generation, class.capacity);
    byte..=byte
}

/// The highest number of a place in this file.
pub fn highest_place(file: &LockFile) -> Result<Option<Number>, RepositoryError> {
    let place =
        |first| Ok(within(file, place_bytes(first, LAST_NUMBER), place_of)?.map(|(number, _)| number));
    Ok(last(place, |number| *number)?.map(Number))
}

/// The highest number, where `from` finds any number from a given one on. They are close together, so the
/// search grows its steps and then narrows down.
fn last<T>(
    from: impl Fn(u64) -> Result<Option<T>, RepositoryError>,
    number: impl Fn(&T) -> u64,
) -> Result<Option<T>, RepositoryError> {
    let Some(mut found) = from(1)? else { return Ok(None) };
    // No waiter is above `high`.
    let (mut high, mut step) = (LAST_NUMBER, 1_u64);
    while number(&found) < high {
        let left = high.saturating_sub(number(&found));
        let next = number(&found).saturating_add(step.min(left.div_ceil(2)));
        match from(next)? {
            Some(other) => {
                found = other;
                step = step.saturating_mul(4);
            }
            None => high = next.saturating_sub(1),
        }
    }
    Ok(Some(found))
}

/// The heartbeat of a position; none if there is none. Its first byte is queried: no other process can have
/// locked that. If it has locked no more, a lock on the next byte alone is that of another process.
pub fn pulse(file: &LockFile, number: Number) -> Result<Option<Heartbeat>, RepositoryError> {
    let [byte, next] = [0, 1].map(|beats| place_byte(number.0, beats));
    let Some(lock) = file.conflict(&(byte..=byte))? else { return Ok(None) };
    let beats = lock.bytes.end().saturating_sub(*lock.bytes.start());
    let is_blocked =
        beats == 0 && file.conflict(&(next..=next))?.is_some_and(|other| !other.bytes.contains(&byte));
    Ok(Some(Heartbeat { pid: lock.pid, beats, is_blocked }))
}

/// All waiters, oldest first, as far as a bounded amount of work shows them.
pub fn waiters(file: &LockFile) -> Result<Vec<Waiter>, RepositoryError> {
    let mut look = Look::at(standing_bytes(1, LAST_NUMBER));
    look.advance(file, u64::MAX, Means::All)?;
    Ok(in_order(&look))
}

/// How many slots a waiter says that it wants.
pub fn wants(file: &LockFile, waiter: &Waiter) -> Result<Option<u64>, RepositoryError> {
    let lock = file.conflict(&wants_bytes(waiter.number.0))?;
    Ok(lock.filter(|lock| lock.pid == waiter.process.pid).and_then(|lock| wants_of(&lock.bytes)))
}

/// The same for callers that must not overlook any.
pub fn all_waiters(file: &LockFile) -> Result<Vec<Waiter>, RepositoryError> {
    let mut look = Look::at(standing_bytes(1, LAST_NUMBER));
    match look.advance(file, u64::MAX, Means::All)? {
        Extent::All | Extent::Enough => Ok(in_order(&look)),
        Extent::Cut => Err(too_many(file)),
    }
}

fn in_order(look: &Look) -> Vec<Waiter> {
    let mut waiters: Vec<Waiter> = look.seen().iter().filter_map(waiter).collect();
    waiters.sort_by_key(|waiter| (waiter.number, waiter.class));
    waiters
}

fn too_many(file: &LockFile) -> RepositoryError {
    RepositoryError::TooManyLocks { path: file.path().to_owned() }
}

/// The youngest waiter before `number`, or of all.
pub fn youngest(file: &LockFile, before: Option<Number>) -> Result<Option<Waiter>, RepositoryError> {
    let standing = |first, last| within(file, standing_bytes(first, last), standing_of);
    let Some(before) = before else {
        let lock = |first| Ok(standing(first, LAST_NUMBER)?.map(|(_, lock)| lock));
        return Ok(last(lock, number_of)?.and_then(|lock| waiter(&lock)));
    };
    let last = before.0.saturating_sub(1);
    if last == 0 {
        return Ok(None);
    }
    let Some((_, mut found)) = standing(1, last)? else { return Ok(None) };
    // The queue may be long and its youngest waiter near, so the search goes back in growing steps and then
    // narrows down. No waiter is above `high`.
    let (mut low, mut high, mut step) = (last, last, 1_u64);
    while low > number_of(&found) {
        if let Some((_, lock)) = standing(low, high)? {
            found = lock;
            break;
        }
        high = low.saturating_sub(1);
        low = low.saturating_sub(step).max(1);
        step = step.saturating_mul(4);
    }
    // There is a waiter at or above the one found: each query halves the range up to `high`.
    while number_of(&found) < high {
        let number = number_of(&found);
        let middle = number.saturating_add(high.saturating_sub(number).div_ceil(2));
        match standing(middle, high)? {
            Some((_, lock)) => found = lock,
            None => high = middle.saturating_sub(1),
        }
    }
    Ok(waiter(&found))
}

/// The oldest waiter from `from` on and before `before`.
pub fn oldest(
    file: &LockFile,
    from: Number,
    before: Option<Number>,
) -> Result<Option<Waiter>, RepositoryError> {
    let standing = |first, last| within(file, standing_bytes(first, last), standing_of);
    let last = before.map_or(LAST_NUMBER, |number| number.0.saturating_sub(1));
    let mut low = from.0;
    let Some((_, mut found)) = standing(low, last)? else { return Ok(None) };
    // Mostly the kernel names the oldest first.
    while number_of(&found) > low && standing(low, number_of(&found).saturating_sub(1))?.is_some() {
        let middle = low.saturating_add(number_of(&found).saturating_sub(low) / 2);
        match standing(low, middle)? {
            Some((_, lock)) => found = lock,
            None => low = middle.saturating_add(1),
        }
    }
    Ok(waiter(&found))
}

fn number_of(lock: &Conflict) -> u64 {
    standing_of(&lock.bytes).map_or(0, |(number, ..)| number)
}

fn waiter(lock: &Conflict) -> Option<Waiter> {
    let (number, generation, capacity) = standing_of(&lock.bytes)?;
    Some(Waiter {
        number: Number(number),
        class: Class { generation, capacity },
        wants: None,
        is_away: false,
        process: WaitingProcess { pid: lock.pid, ..WaitingProcess::default() },
    })
}

/// The maximum number of meaningless locks that are ignored. A lock on the whole file counts once.
const MEANINGLESS: usize = 16;

/// A meaningful lock among these bytes. A lock that covers more may be one of the whole file, but is not a
/// position in a queue. Two processes cannot both have locked a waiter's bytes.
fn within<T>(
    file: &LockFile,
    bytes: Bytes,
    meaning: impl Fn(&Bytes) -> Option<T>,
) -> Result<Option<(T, Conflict)>, RepositoryError> {
    let (mut todo, mut meaningless) = (vec![bytes], 0_usize);
    while let Some(range) = todo.pop() {
        if range.is_empty() {
            continue;
        }
        let Some(lock) = file.conflict(&range)? else { continue };
        if let Some(meaning) = meaning(&lock.bytes) {
            return Ok(Some((meaning, lock)));
        }
        if meaningless == MEANINGLESS {
            return Err(too_many(file));
        }
        meaningless = meaningless.saturating_add(1);
        todo.push(*range.start()..=lock.bytes.start().saturating_sub(1));
        todo.push(lock.bytes.end().saturating_add(1)..=*range.end());
    }
    Ok(None)
}

/// Sleeps until `ahead` leaves the queue, at most this long. The kernel wakes it, and only the waiter right
/// behind the one that left.
pub fn sleep_behind(file: &LockFile, ahead: &Waiter, longest: Duration) -> Result<Woken, RepositoryError> {
    let byte = byte_of(ahead.number, ahead.class);
    let interval = longest.max(Duration::from_millis(1));
    let alarm = Alarm::every(interval).map_err(failed_call("wait at", file.path()))?;
    let slept = record_lock::lock(file.as_fd(), &byte, Mode::Read);
    drop(alarm);
    match slept {
        Ok(()) => {
            file.unlock(&byte)?;
            Ok(Woken::Left)
        }
        Err(Errno::EINTR) => Ok(Woken::Time),
        Err(Errno::EDEADLK) => {
            std::thread::sleep(longest);
            Ok(Woken::Time)
        }
        Err(errno) => Err(call("wait at", file.path(), "fcntl(F_SETLKW)", errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tempfile::{NamedTempFile, TempPath};

    use super::*;
    use crate::{
        acquire::{HEARTBEAT_INTERVAL, LivenessTracker, MISSED_HEARTBEATS},
        judge::terms::Creation,
        keeper::{
            file::{LAST_SLOT, LockPath, layout::LAST_GENERATION, prune},
            table::Table,
        },
        sys::own_pid,
    };

    const FIRST: Number = Number(1);

    /// A waiter with the first number, and the same file as another program has it open.
    fn waiter_and_other() -> (Place, LockFile, TempPath) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        let waiter = Place::take(&Rc::new(file), FIRST).expect("a lock file").expect("the number is free");
        let other = LockFile::open_to_read(&place).expect("a lock file").expect("the file is there");
        (waiter, other, path)
    }

    fn lock(other: &LockFile, byte: u64) {
        assert!(other.try_join_shared(&(byte..=byte)).expect("a lock file"), "the byte is free");
    }

    /// A waiter without heartbeats is passed over. Another program that has locked a byte of the place cannot
    /// silence it.
    #[test]
    fn a_heartbeat_that_another_program_blocks_is_seen() {
        let (mut waiter, other, _path) = waiter_and_other();
        lock(&other, place_byte(FIRST.0, 2));
        let mut before = pulse(&other, FIRST).expect("a lock file");
        assert_eq!(before, Some(Heartbeat { pid: Some(own_pid()), beats: 0, is_blocked: false }));
        for _ in 0..6 {
            waiter.beat().expect("a lock file");
            let now = pulse(&other, FIRST).expect("a lock file");
            assert_ne!(now, before);
            before = now;
        }
    }

    /// If another program has locked its first heartbeat, a waiter can show none, and counts as alive.
    /// Without such a lock it is silent.
    #[test]
    fn a_waiter_that_can_show_no_heartbeat_is_not_silent() {
        let (mut waiter, other, path) = waiter_and_other();
        let looker = LockFile::open_to_read(&LockPath::named(&path)).expect("a lock file");
        let table = Table::File(Rc::new(looker.expect("the file is there")));
        let class = Class { generation: 0, capacity: 4 };
        waiter.stand(&[class]).expect("a lock file");
        let seen = youngest(waiter.file(), None).expect("a lock file").expect("it waits");
        let liveness = LivenessTracker::default();
        let is_silent = |waiter: &mut Place, beats: bool| {
            for _ in 0..MISSED_HEARTBEATS + 2 {
                if beats {
                    waiter.beat().expect("a lock file");
                }
                liveness.look_ahead(&table, None, class).expect("a lock file");
                thread::sleep(HEARTBEAT_INTERVAL);
            }
            liveness.is_silent(&table, &seen).expect("a lock file")
        };
        let first = place_byte(FIRST.0, 1);
        assert!(is_silent(&mut waiter, false));
        lock(&other, first);
        assert!(!is_silent(&mut waiter, true));
        assert_eq!(waiter.beats, 0);
        other.unlock_shared(&(first..=first)).expect("a lock file");
        assert!(is_silent(&mut waiter, false));
        assert!(!is_silent(&mut waiter, true));
    }

    /// The first waiter of all is found like any other.
    #[test]
    fn the_first_waiter_is_found() {
        let (mut waiter, other, _path) = waiter_and_other();
        let found = || {
            let youngest = |before| youngest(&other, before);
            let found = [
                youngest(None),
                youngest(Some(Number(1))),
                youngest(Some(Number(2))),
                oldest(&other, FIRST, None),
            ];
            found.map(|waiter| waiter.expect("a lock file").map(|waiter| waiter.number))
        };
        assert_eq!(found(), [None; 4]);
        waiter.stand(&[Class { generation: 0, capacity: 4 }]).expect("a lock file");
        assert_eq!(found(), [Some(FIRST), None, Some(FIRST), Some(FIRST)]);
        waiter.stand(&[]).expect("a lock file");
        assert_eq!(found(), [None; 4], "it has left");
        waiter.stand(&[Class { generation: 0, capacity: 4 }]).expect("a lock file");
        assert_eq!(found(), [Some(FIRST), None, Some(FIRST), Some(FIRST)], "it is back");
        assert_eq!(all_waiters(&other).expect("a lock file").len(), 1);
    }

    /// A launch whose limit is 0 cannot start, so every other launch passes it.
    #[test]
    fn a_waiter_without_any_slot_blocks_no_launch() {
        let (mut waiter, other, _path) = waiter_and_other();
        let class = |capacity| Class { generation: 3, capacity };
        let seen =
            || youngest(&other, None).expect("a lock file").map(|waiter| (waiter.number, waiter.class));
        waiter.stand(&[class(0)]).expect("a lock file");
        assert_eq!(seen(), Some((FIRST, class(0))));
        assert!(class(1).passes(class(0)));
        waiter.stand(&[class(1)]).expect("a lock file");
        assert_eq!(seen(), Some((FIRST, class(1))));
        waiter.stand(&[]).expect("a lock file");
        assert_eq!(seen(), None);
    }

    /// A waiter whose new class is locked by another program keeps its turn in the old one. To leave needs no
    /// lock.
    #[test]
    fn a_waiter_leaves_its_class_for_one_that_it_has() {
        let (mut waiter, other, _path) = waiter_and_other();
        let [old, new] = [3, 4].map(|generation| Class { generation, capacity: 4 });
        let seen = || youngest(&other, None).expect("a lock file").map(|waiter| waiter.class);
        waiter.stand(&[old]).expect("a lock file");
        lock(&other, standing_byte(FIRST.0, new.generation, new.capacity));
        waiter.stand(&[new]).expect("a lock file");
        assert_eq!(waiter.classes(), [old]);
        assert_eq!(seen(), Some(old));
        other.unlock_shared(&byte_of(FIRST, new)).expect("a lock file");
        waiter.stand(&[new]).expect("a lock file");
        assert_eq!((waiter.classes(), seen()), (&[new][..], Some(new)));
        waiter.stand(&[]).expect("a lock file");
        assert_eq!(seen(), None);
    }

    /// The older waiter comes first, whichever the kernel names first.
    #[test]
    fn waiters_are_listed_oldest_first() {
        let (waiter, other, path) = waiter_and_other();
        let later = LockFile::open_to_read(&LockPath::named(&path)).expect("a lock file");
        let later = later.expect("the file is there");
        lock(&other, standing_byte(5, 0, 4));
        lock(&later, standing_byte(4, 0, 4));
        let file = waiter.file();
        let listed = waiters(file).expect("a lock file").into_iter().map(|waiter| waiter.number.0);
        assert_eq!(listed.collect::<Vec<_>>(), [4, 5]);
        let first = oldest(file, FIRST, None).expect("a lock file").map(|waiter| waiter.number);
        assert_eq!(first, Some(Number(4)));
    }

    /// After very many heartbeats a waiter begins again, and stays within its place.
    #[test]
    fn heartbeats_begin_again() {
        let (mut waiter, other, _path) = waiter_and_other();
        waiter.beats = MOST_BEATS - 1;
        waiter.beat().expect("a lock file");
        assert_eq!(waiter.beats, MOST_BEATS);
        let last = place_byte(FIRST.0, MOST_BEATS);
        assert!(other.conflict(&(last..=last)).expect("a lock file").is_some());
        waiter.beat().expect("a lock file");
        assert_eq!(waiter.beats, 0);
        assert_eq!(pulse(&other, FIRST).expect("a lock file").map(|heart| heart.beats), Some(0));
        assert!(other.conflict(&(last..=last)).expect("a lock file").is_none());
    }

    /// A lock that covers more than one place means nothing. A few of them hide no place; more are an error.
    #[test]
    fn a_few_locks_without_a_meaning_are_ignored() {
        let (waiter, other, _path) = waiter_and_other();
        let lock_two = |number: u64| {
            let bytes = place_byte(3 * number, 0)..=place_byte(3 * number + 1, 0);
            assert!(other.try_join_shared(&bytes).expect("a lock file"), "the bytes are free");
        };
        (1..=MEANINGLESS as u64).for_each(lock_two);
        assert_eq!(highest_place(waiter.file()).expect("a lock file"), Some(FIRST));
        lock_two(MEANINGLESS as u64 + 1);
        assert!(matches!(highest_place(waiter.file()), Err(RepositoryError::TooManyLocks { .. })));
    }

    /// The waiters right before and right behind such a lock are seen.
    #[test]
    fn the_neighbours_of_a_lock_without_a_meaning_are_seen() {
        let (waiter, other, path) = waiter_and_other();
        let wide = LockFile::open_to_read(&LockPath::named(&path)).expect("a lock file");
        let wide = wide.expect("the file is there");
        let (before, behind) = (standing_byte(4, LAST_GENERATION, LAST_SLOT), standing_byte(8, 0, 1));
        assert!(wide.try_join_shared(&(before + 1..=behind - 1)).expect("a lock file"), "it is free");
        for byte in [before, behind] {
            lock(&other, byte);
        }
        let seen = |from, before| {
            let found = oldest(waiter.file(), Number(from), Some(Number(before))).expect("a lock file");
            found.map(|waiter| waiter.number)
        };
        assert_eq!([seen(2, 6), seen(6, 9), seen(5, 8)], [Some(Number(4)), Some(Number(8)), None]);
    }

    /// The last number that the waiter gave counts, and not what another program has locked.
    #[test]
    fn a_waiter_itself_says_how_many_slots_it_wants() {
        let (mut waiter, other, _path) = waiter_and_other();
        waiter.stand(&[Class { generation: 0, capacity: 4 }]).expect("a lock file");
        let [seen]: [Waiter; 1] =
            waiters(waiter.file()).expect("a lock file").try_into().expect("one waiter");
        let file = Rc::clone(waiter.file());
        let wanted = || wants(&file, &seen).expect("a lock file");
        lock(&other, wants_byte(FIRST.0, 4));
        assert_eq!(wanted(), None);
        other.unlock_shared(&wants_bytes(FIRST.0)).expect("a lock file");
        for slots in [2, 3] {
            waiter.wants(slots).expect("a lock file");
            assert_eq!(wanted(), Some(slots));
        }
    }
}
