//! What is known of a lock file while its mutex is held. With limit L and s wanted slots, a launch is
//! admitted if `held + s <= L`. This is proved, not counted. If no slot above L is held, s free slots within
//! 1…L are the proof. Each slot held above L requires one more free slot. So a launch far from the limit asks
//! the kernel a handful of questions, however many slots are held. If these give no answer, it scans further.
//! The scan ends when enough held slots are seen to refuse the launch, or when everything was seen. It also
//! ends at the maximum that is allowed under the mutex; then the answer is unknown. Only the kernel's answers
//! count: hint and cursor only say where to look first.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{ops::RangeInclusive, time::SystemTime};

use super::{
    Extent, Header, Held, LAST_SLOT, Look, Means, Record, RepositoryError,
    file::LockFile,
    holder,
    layout::{
        everything_above, grouped_at, rank_bytes, record_at, slot_at, slot_byte, slot_bytes, slot_bytes_above,
    },
    scan::highest,
};
use crate::{
    judge::terms::{Admit, Runs, Terms, runs},
    keeper::Vacancy,
};

/// What is known of a file while its mutex is held.
pub struct View<'file> {
    file: &'file LockFile,
    header: Header,
    /// The held slots that were seen.
    look: Look,
    /// How much was seen, if a few queries were not enough.
    extent: Option<Extent>,
    hint_holds: bool,
    /// The last limit that was queried, and whether nothing is locked above it.
    quiet: Option<(u64, bool)>,
}

/// The maximum number of queries before everything is scanned.
const QUERIES: usize = 64;

impl<'file> View<'file> {
    /// Looks at a file. Where this process holds its mutex, what is seen stays true.
    pub fn of(file: &'file LockFile) -> Result<Self, RepositoryError> {
        let (header, look) = (Header::read(file)?, Look::at_slots());
        Ok(Self { file, header, look, extent: None, hint_holds: false, quiet: None })
    }

    /// What the content says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The held slots that were seen until now.
    pub fn look(&self) -> &Look {
        &self.look
    }

    /// Slots that are free and whose taking keeps the limit, or why there are none.
    pub fn vacancy(&mut self, terms: &Terms) -> Result<Vacancy, RepositoryError> {
        // This many held slots refuse the launch, wherever they are.
        let enough = match terms.admit {
            Admit::Always => u64::MAX,
            Admit::WithinLimit | Admit::Unenforced => {
                terms.limit.saturating_add(1).saturating_sub(terms.slots)
            }
        };
        if self.extent.is_none()
            && let Some(beyond) = if self.is_quiet_above(terms.limit)? {
                Some(0)
            } else {
                self.held_beyond(terms.limit, enough)?
            }
            && let Some(slots) = self.search(terms, beyond)?
        {
            return Ok(Vacancy::Slots(slots));
        }
        let extent = self.look.advance(self.file, enough, Means::All)?;
        self.extent = Some(extent);
        match (extent, terms.admit) {
            (Extent::Enough, _) | (Extent::Cut, Admit::Unenforced) => return Ok(Vacancy::Full),
            (Extent::Cut, Admit::WithinLimit) => {
                return Err(RepositoryError::TooManyLocks { path: self.file.path().to_owned() });
            }
            (Extent::All, _) | (Extent::Cut, Admit::Always) => {}
        }
        let seen = self.look.occupancy();
        Ok(match seen.free_for(terms, self.header.cursor) {
            Some(slots) => Vacancy::Slots(slots),
            None if seen.fits(terms) => Vacancy::Kept,
            None => Vacancy::Full,
        })
    }

    /// The slots that the group of these terms has, by rank: as many as are wanted. A lock at a rank belongs
    /// to the group if its slot is also locked, only by readers, and this launch may use it.
    pub fn shared(&self, terms: &Terms) -> Result<Vec<u64>, RepositoryError> {
        let Some(group) = &terms.group else { return Ok(Vec::new()) };
        let mut shared = Vec::new();
        for rank in 0..terms.slots {
            let Some(slot) = self.slot_at_rank(group.hash(), rank, terms, &shared)? else { break };
            shared.push(slot);
        }
        Ok(shared)
    }

    fn slot_at_rank(
        &self,
        group: u64,
        rank: u64,
        terms: &Terms,
        known: &[u64],
    ) -> Result<Option<u64>, RepositoryError> {
        let mut todo = vec![rank_bytes(group, rank)];
        for _ in 0..QUERIES {
            let Some(range) = todo.pop() else { return Ok(None) };
            if range.is_empty() {
                continue;
            }
            let Some(conflict) = self.file.conflict(&range)? else { continue };
            let (first, last) = (*conflict.bytes.start(), *conflict.bytes.end());
            // A lock of more bytes proves nothing about one slot.
            if first == last
                && let Some((_, slot)) = grouped_at(first)
                && terms.allows(slot)
                && !known.contains(&slot)
                && self.file.is_read_locked(&conflict.bytes)?
                && self.file.is_read_locked(&slot_bytes(slot, slot))?
            {
                return Ok(Some(slot));
            }
            todo.extend([last.saturating_add(1)..=*range.end(), *range.start()..=first.saturating_sub(1)]);
        }
        Ok(None)
    }

    /// Whether there is no lock at all behind the slots that the limit, and the hint, reach: then no slot
    /// beyond is held, and no launch waits. One query answers both, and mostly the answer is yes.
    pub fn is_quiet_above(&mut self, limit: u64) -> Result<bool, RepositoryError> {
        if let Some((asked, is_quiet)) = self.quiet
            && asked == limit
        {
            return Ok(is_quiet);
        }
        let Some(hint) = self.header.hint else { return Ok(false) };
        let is_quiet = self.file.conflict(&everything_above(hint.min(limit)))?.is_none();
        self.hint_holds |= is_quiet;
        self.quiet = Some((limit, is_quiet));
        Ok(is_quiet)
    }

    /// How many slots above the limit are held; none if a few queries do not show it, or if these slots are
    /// enough to refuse the launch. Also checks whether the hint is right.
    fn held_beyond(&mut self, limit: u64, enough: u64) -> Result<Option<u64>, RepositoryError> {
        let mut todo = vec![slot_bytes_above(slot_byte(limit))];
        if let Some(hint) = self.header.hint {
            let above = slot_bytes_above(slot_byte(hint.min(limit)));
            let Some(conflict) = self.file.conflict(&above)? else {
                self.hint_holds = true;
                return Ok(Some(0));
            };
            self.look.note(&conflict);
            self.hint_holds =
                hint > limit && self.file.conflict(&slot_bytes_above(slot_byte(hint)))?.is_none();
            if self.hint_holds {
                todo = vec![slot_bytes(limit.saturating_add(1), hint)];
            }
        }
        let mut beyond = 0_u64;
        for _ in 0..QUERIES {
            let Some(range) = todo.pop().filter(|_| beyond < enough) else {
                return Ok((beyond < enough).then_some(beyond));
            };
            if range.is_empty() {
                continue;
            }
            let Some(conflict) = self.file.conflict(&range)? else { continue };
            self.look.note(&conflict);
            let first = *conflict.bytes.start().max(range.start());
            let last = *conflict.bytes.end().min(range.end());
            let above = last.saturating_add(1);
            beyond = above.saturating_sub(first).saturating_add(beyond);
            todo.extend([*range.start()..=first.saturating_sub(1), above..=*range.end()]);
        }
        Ok(None)
    }

    /// Free slots in the order of the terms, and as many more within the limit as are held beyond it.
    fn search(&mut self, terms: &Terms, beyond: u64) -> Result<Option<Vec<u64>>, RepositoryError> {
        if beyond > 0 && !(terms.zones.is_none() && terms.admit == Admit::WithinLimit) {
            return Ok(None);
        }
        // A free slot above the limit proves nothing, and a less preferred one below it is not to be taken
        // for that.
        if terms.zones.iter().flatten().any(|zone| *zone.end() > terms.limit) {
            return Ok(None);
        }
        let wanted = terms.slots.saturating_add(beyond);
        let mut free = Vec::new();
        let mut todo = terms.search_order(self.header.cursor);
        todo.reverse();
        for _ in 0..QUERIES {
            let Some(range) = todo.pop() else { return Ok(None) };
            if range.is_empty() {
                continue;
            }
            let missing = wanted.saturating_sub(free.len() as u64);
            let first = *range.start();
            let last = first.saturating_add(missing.saturating_sub(1)).min(*range.end());
            match self.file.conflict(&slot_bytes(first, last))? {
                None => {
                    free.extend(first..=last);
                    todo.push(last.saturating_add(1)..=*range.end());
                }
                Some(conflict) => {
                    self.look.note(&conflict);
                    todo.push(slot_at(*conflict.bytes.end()).saturating_add(1)..=*range.end());
                    todo.push(first..=slot_at(*conflict.bytes.start()).saturating_sub(1));
                }
            }
            if free.len() as u64 == wanted {
                free.truncate(usize::try_from(terms.slots).unwrap_or(usize::MAX));
                return Ok(Some(free));
            }
        }
        Ok(None)
    }

    /// Records the taken slots: first the records, then the hint and the cursor.
    pub fn write_down(
        &mut self,
        taken: &Held,
        record: &Record,
        now: SystemTime,
    ) -> Result<(), RepositoryError> {
        let is_new = |slot: &u64| !taken.joined().contains(slot);
        let new: Vec<u64> = taken.slots().iter().copied().filter(is_new).collect();
        for run in Runs::of(&new).iter().chain(&self.undescribed(taken, record)?) {
            let record = Record { slots: runs::length(run), ..record.clone() };
            self.file.write_at(&record.encode(), record_at(*run.end()))?;
        }
        let cursor = new.iter().max().map_or(self.header.cursor, |last| last.saturating_add(1));
        Header { cursor, last_start: Some(now), ..self.header.clone() }.write(self.file)?;
        if new.is_empty() && !taken.slots().is_empty() {
            return Ok(());
        }
        if let Some(hint) = self.new_hint(taken.slots())? {
            Header::write_hint(self.file, hint)?;
        }
        Ok(())
    }

    /// Writes the content's moments again as they were seen.
    pub fn withdraw(&self) -> Result<(), RepositoryError> {
        self.header.write(self.file)
    }

    /// The slots of the group whose record is of a member that has ended, or holds them more strongly now: a
    /// living member describes them.
    fn undescribed(
        &self,
        taken: &Held,
        record: &Record,
    ) -> Result<Vec<RangeInclusive<u64>>, RepositoryError> {
        let mut undescribed = Vec::new();
        for run in Runs::of(taken.joined()).iter() {
            if !holder::is_described(self.file, *run.end(), record)? {
                undescribed.push(run.clone());
            }
        }
        Ok(undescribed)
    }

    /// Corrects a hint by which an exectimes peer would overlook a holder. It looks at nothing for this
    /// alone.
    pub fn mend_hint(&mut self) -> Result<(), RepositoryError> {
        if !self.file.is_to_look_at()
            && self.extent.is_some()
            && self.hint_misleads()?
            && let Some(hint) = self.new_hint(&[])?
        {
            Header::write_hint(self.file, hint)?;
        }
        Ok(())
    }

    /// The hint to write once `taken` are taken too: none if the one in the file is right. Only a look at
    /// everything lowers it, or replaces one that was short, impossible or too low.
    fn new_hint(&self, taken: &[u64]) -> Result<Option<u64>, RepositoryError> {
        let highest_taken = taken.iter().copied().max().unwrap_or(0);
        let hint = match self.header.hint {
            Some(hint) if self.hint_holds && !self.is_everything_seen() => hint.max(highest_taken),
            _ => self.highest()?.unwrap_or(0).max(highest_taken).min(LAST_SLOT),
        };
        Ok((self.header.hint != Some(hint)).then_some(hint))
    }

    /// Whether an exectimes peer that believes the hint would overlook a holder.
    fn hint_misleads(&self) -> Result<bool, RepositoryError> {
        if self.hint_holds {
            return Ok(false);
        }
        let hint = self.header.hint;
        if hint == Some(LAST_SLOT) {
            return Ok(false);
        }
        Ok(self.highest()?.is_some_and(|highest| hint.is_none_or(|hint| hint < highest)))
    }

    fn is_everything_seen(&self) -> bool {
        self.extent == Some(Extent::All)
    }

    /// The highest held slot.
    fn highest(&self) -> Result<Option<u64>, RepositoryError> {
        if self.is_everything_seen() { Ok(self.look.occupancy().highest()) } else { highest(self.file) }
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, time::Duration};

    use tempfile::{NamedTempFile, TempPath};

    use super::*;
    use crate::{
        judge::terms::{Creation, Group, Hold, Launch, Seats},
        keeper::file::{
            LockPath, RECORD_SIZE,
            layout::{group_byte, standing_byte},
            prune,
        },
        sys::Bytes,
    };

    /// An empty lock file, and the same file as another program has it open.
    fn file_and_other() -> (LockFile, LockFile, TempPath) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        let other = LockFile::open_to_read(&place).expect("a lock file").expect("the file is there");
        (file, other, path)
    }

    fn hold(other: &LockFile, slot: u64) {
        assert!(other.try_join_shared(&slot_bytes(slot, slot)).expect("a lock file"), "the slot is free");
    }

    /// The record of a launch of this process.
    fn record() -> Record {
        let hold = Hold::Process;
        Record::of(&Launch { command: "matlab", host: "ws17", uid: 7, ancestors: &[], hold })
    }

    /// A refused launch corrects a hint by which an exectimes peer would overlook a holder, and no other one.
    #[test]
    fn a_refused_launch_corrects_a_hint_that_misleads() {
        let (file, other, _path) = file_and_other();
        for slot in [3, 7] {
            hold(&other, slot);
        }
        let terms = Terms { limit: 1, slots: 1, ..Terms::default() };
        let after_refusal = || {
            let mut view = View::of(&file).expect("a lock file");
            assert_eq!(view.vacancy(&terms).expect("a lock file"), Vacancy::Full);
            view.mend_hint().expect("the file can be written");
            Header::read(&file).expect("the file can be read").hint
        };
        file.write_at(&[0xff; 8], 0).expect("the file can be written");
        assert_eq!(after_refusal(), Some(7), "it was impossible");
        for (hint, expected) in [(0, 7), (3, 7), (7, 7), (9, 9)] {
            Header::write_hint(&file, hint).expect("the file can be written");
            assert_eq!(after_refusal(), Some(expected), "{hint}");
        }
        Header::write_hint(&file, 1).expect("the file can be written");
        let mut view = View::of(&file).expect("a lock file");
        view.mend_hint().expect("the file can be written");
        let hint = Header::read(&file).expect("the file can be read").hint;
        assert_eq!(hint, Some(1), "nothing was looked at");
    }

    /// A refused launch lowers no hint, also if it has looked at everything.
    #[test]
    fn a_refused_launch_lowers_no_hint() {
        let (file, other, _path) = file_and_other();
        hold(&other, 1);
        Header::write_hint(&file, 9).expect("the file can be written");
        let mut view = View::of(&file).expect("a lock file");
        let terms = Terms { limit: 5, slots: 1, zones: Some(vec![1..=1]), ..Terms::default() };
        assert_eq!(view.vacancy(&terms).expect("a lock file"), Vacancy::Kept);
        assert_eq!(view.extent, Some(Extent::All));
        view.mend_hint().expect("the file can be written");
        assert_eq!(Header::read(&file).expect("the file can be read").hint, Some(9));
    }

    /// Only a look at everything lowers the hint. It is never above the last slot.
    #[test]
    fn a_look_at_everything_lowers_the_hint() {
        let (file, other, _path) = file_and_other();
        let hint_after = |limit, admit, taken: &[u64]| {
            Header::write_hint(&file, 9).expect("the file can be written");
            let mut view = View::of(&file).expect("a lock file");
            let terms = Terms { limit, slots: 1, admit, ..Terms::default() };
            let found = view.vacancy(&terms).expect("a lock file");
            assert!(matches!(found, Vacancy::Slots(_)), "{found:?}");
            (view.extent, view.new_hint(taken).expect("a lock file"))
        };
        let all = Some(Extent::All);
        // A few queries are enough, also if launches wait.
        assert_eq!(hint_after(5, Admit::WithinLimit, &[1]), (None, None));
        assert_eq!(hint_after(5, Admit::WithinLimit, &[1, 12]), (None, Some(12)));
        let waiter = standing_byte(1, 0, 1);
        assert!(other.try_join_shared(&(waiter..=waiter)).expect("a lock file"), "it is free");
        assert_eq!(hint_after(5, Admit::WithinLimit, &[1]), (None, None));
        let mut view = View::of(&file).expect("a lock file");
        view.extent = Some(view.look.advance(&file, u64::MAX, Means::All).expect("a lock file"));
        assert_eq!(view.new_hint(&[]).expect("a lock file"), Some(0), "nothing is held");
        hold(&other, 3);
        assert_eq!(hint_after(1, Admit::Always, &[1]), (all, Some(3)));
        assert_eq!(hint_after(1, Admit::Always, &[4]), (all, Some(4)));
        assert_eq!(hint_after(1, Admit::Always, &[9]), (all, None), "it is right");
        hold(&other, LAST_SLOT + 5);
        assert_eq!(hint_after(1, Admit::Always, &[1]), (all, Some(LAST_SLOT)));
    }

    /// Free slots are taken in order from where the search begins, whatever is held between them.
    #[test]
    fn free_slots_are_taken_in_order() {
        let (file, other, _path) = file_and_other();
        for slot in [2, 4] {
            hold(&other, slot);
        }
        let free = |slots, cursor| {
            let mut view = View::of(&file).expect("a lock file");
            view.header.cursor = cursor;
            view.vacancy(&Terms { limit: 6, slots, ..Terms::default() }).expect("a lock file")
        };
        assert_eq!(free(2, 0), Vacancy::Slots(vec![1, 3]));
        assert_eq!(free(4, 0), Vacancy::Slots(vec![1, 3, 5, 6]));
        assert_eq!(free(3, 4), Vacancy::Slots(vec![5, 6, 1]));
        assert_eq!(free(5, 0), Vacancy::Full);
    }

    /// A launch joins a slot of its group if only readers have locked the slot and its byte at that rank, and
    /// if the launch may use it.
    #[test]
    fn a_launch_joins_what_its_group_surely_has() {
        let group = Group::of("ann");
        let byte = |rank, slot| group_byte(group.hash(), rank, slot);
        let at = |rank, slot| byte(rank, slot)..=byte(rank, slot);
        let of_slot = |slot| slot_bytes(slot, slot);
        // Slot 3 at the first rank, and these locks of readers and of writers.
        let joined = |slots, first: u64, readers: &[Bytes], writers: &[Bytes]| {
            let (file, other, _path) = file_and_other();
            for bytes in [at(0, 3), of_slot(3)].iter().chain(readers) {
                assert!(other.try_join_shared(bytes).expect("a lock file"), "it is free");
            }
            for bytes in writers {
                assert!(file.try_lock(bytes).expect("a lock file"), "it is free");
            }
            let (zones, group) = (Some(vec![first..=9]), Some(group.clone()));
            let terms = Terms { limit: 9, slots, zones, group, ..Terms::default() };
            View::of(&file).and_then(|view| view.shared(&terms)).expect("a lock file")
        };
        assert_eq!(joined(1, 1, &[at(1, 5), of_slot(5)], &[]), [3], "one slot is wanted");
        assert_eq!(joined(2, 1, &[at(1, 5), of_slot(5)], &[]), [3, 5]);
        assert_eq!(joined(2, 1, &[at(1, 5)], &[]), [3], "slot 5 is free");
        assert_eq!(joined(2, 1, &[at(1, 5)], &[of_slot(5)]), [3], "a writer has slot 5");
        assert_eq!(joined(2, 1, &[of_slot(5)], &[at(1, 5)]), [3], "a writer has the byte");
        assert_eq!(joined(2, 1, &[at(1, 3)], &[]), [3], "it has the slot already");
        let two = [byte(1, 5)..=byte(1, 6), of_slot(5), of_slot(6)];
        assert_eq!(joined(2, 1, &two, &[]), [3], "a lock of two bytes is of no slot");
        assert_eq!(joined(2, 4, &[at(0, 7), of_slot(7)], &[]), [7], "slot 3 is not for this launch");
    }

    /// A launch writes its record at the last of neighbouring slots, the hint, and where the next search
    /// begins.
    #[test]
    fn a_launch_writes_down_what_it_took() {
        let (file, _other, _path) = file_and_other();
        let file = Rc::new(file);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let mut view = View::of(&file).expect("a lock file");
        let mut held = Held::nothing_of(&file, Hold::Process);
        let seats = Seats { shared: Vec::new(), free: vec![5, 2, 3] };
        assert!(held.take(&seats, None).expect("a lock file"), "they are free");
        view.write_down(&held, &record().at(now), now).expect("the file can be written");
        let header = Header::read(&file).expect("the file can be read");
        assert_eq!((header.hint, header.cursor, header.last_start), (Some(5), 6, Some(now)));
        let slots_of = |slot| {
            let bytes = file.read(RECORD_SIZE, record_at(slot)).expect("the file can be read");
            Record::decode(&bytes).map(|record| record.slots)
        };
        assert_eq!([2, 3, 5].map(slots_of), [None, Some(2), Some(1)]);
    }

    /// The record of a slot of a group is that of a member that lives. If that member has ended, the next one
    /// that joins writes its own.
    #[test]
    fn a_living_member_describes_the_slot_of_its_group() {
        let (file, other, _path) = file_and_other();
        let file = Rc::new(file);
        hold(&other, 2);
        let mut held = Held::nothing_of(&file, Hold::Process);
        let seats = Seats { shared: vec![2], free: Vec::new() };
        assert!(held.take(&seats, Some(&Group::of("ann"))).expect("a lock file"), "it can be shared");
        let rule_after = |record: &Record| {
            let mut view = View::of(&file).expect("a lock file");
            view.write_down(&held, record, SystemTime::UNIX_EPOCH).expect("the file can be written");
            let bytes = file.read(RECORD_SIZE, record_at(2)).expect("the file can be read");
            Record::decode(&bytes).map(|record| record.rule)
        };
        let by = |rule: &str| Record { rule: rule.to_owned(), ..record() };
        let ended = Record { start: record().start + 1, ..by("of one that has ended") };
        assert_eq!(rule_after(&ended).as_deref(), Some("of one that has ended"), "there was none");
        assert_eq!(rule_after(&by("first")).as_deref(), Some("first"));
        assert_eq!(rule_after(&by("second")).as_deref(), Some("first"), "the first one lives");
        let header = Header::read(&file).expect("the file can be read");
        assert_eq!((header.hint, header.cursor), (None, 0), "no slot was taken");
    }

    /// A claim on the same file may have a lower limit. That no slot above the higher limit is held does not
    /// say so of the lower one.
    #[test]
    fn each_limit_is_checked_on_its_own() {
        let (file, other, _path) = file_and_other();
        hold(&other, 2);
        Header::write_hint(&file, 2).expect("the file can be written");
        let mut view = View::of(&file).expect("a lock file");
        let mut is_quiet = |limit| view.is_quiet_above(limit).expect("a lock file");
        assert_eq!([4, 1, 2, 1].map(&mut is_quiet), [true, false, true, false]);
        let terms = |limit| Terms { limit, slots: 1, ..Terms::default() };
        let found = [3, 1].map(|limit| view.vacancy(&terms(limit)).expect("a lock file"));
        assert_eq!(found, [Vacancy::Slots(vec![1]), Vacancy::Full]);
    }
}
