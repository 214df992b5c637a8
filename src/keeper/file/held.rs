//! Slots that were taken. The value owns what keeps them. If it is dropped, the slots are free again; if it
//! is kept across exec, they belong to the program.
//!
//! A slot of the process is a POSIX write lock on the descriptor that has the mutex. Any stronger hold is a
//! read lock of an open file description that is only for reading, so the program cannot write to the
//! repository. A read lock would not exclude another one, so it is taken after a query, under the mutex. The
//! members of a group have read locks together, whatever the hold. The slot and the byte that names its group
//! have the same owner, so both are released together. If a holder can become overdue, the process also takes
//! a guardian. With [`Hold::Descriptor`] the program then inherits the writable descriptor as well, because
//! closing it would drop the guardian.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    ops::RangeInclusive,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use super::{
    Guardian, LAST_SLOT, RECORD_SIZE, Record, RepositoryError,
    file::LockFile,
    layout::{group_byte, guardians_of, record_at, shared_bytes, slot_byte, slot_bytes},
};
use crate::{
    judge::terms::{Claim, Group, Hold, Launch, Runs, Seats, runs},
    keeper::hint,
    sys::{Bytes, Inherited, own_pid},
};

/// How long another supervisor of the group may need to release the same slot.
const LONGEST_MOMENT: Duration = Duration::from_secs(1);

/// The slots of one file that a launch holds, or shares with an ancestor.
#[must_use = "the slots are free again when this is dropped"]
pub struct Held {
    file: Rc<LockFile>,
    hold: Hold,
    slots: Vec<u64>,
    /// Those of them that the group had already.
    joined: Vec<u64>,
    /// What was locked for them, and is released with them.
    locked: Vec<Bytes>,
    guardians: Vec<Guardian>,
    shared: bool,
    /// Whether others of its group have them too.
    is_of_group: bool,
}

impl Held {
    /// Nothing yet of this file.
    pub fn nothing_of(file: &Rc<LockFile>, hold: Hold) -> Self {
        let (slots, joined, locked, guardians) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (shared, is_of_group) = (false, false);
        Self { file: Rc::clone(file), hold, slots, joined, locked, guardians, shared, is_of_group }
    }

    /// Locks slots that were proved to be free, and those that the group has already. Returns false if
    /// another program locked one of them nevertheless, or the group has lost one. The locks until then are
    /// released when the value is dropped.
    pub fn take(&mut self, seats: &Seats, group: Option<&Group>) -> Result<bool, RepositoryError> {
        if let Some(group) = group {
            return self.take_with(seats, group);
        }
        for run in Runs::of(&seats.free).iter() {
            if !self.lock(slot_bytes(*run.start(), *run.end()))? {
                return Ok(false);
            }
            self.slots.extend(run.clone());
        }
        Ok(true)
    }

    /// The same for a group: read locks on the byte of each slot and on that of its rank, so that others can
    /// join. Existing locks of this process are enough if the process is to keep the slots: they stay, and
    /// must not be released here. Any stronger hold replaces them.
    fn take_with(&mut self, seats: &Seats, group: &Group) -> Result<bool, RepositoryError> {
        let (own, group) = (self.file.own_locks(), group.hash());
        let mut replaced = Vec::new();
        self.is_of_group = true;
        for (rank, slot) in (0..).zip(seats.all()) {
            let slot_byte = slot_bytes(slot, slot);
            let is_joined = seats.shared.contains(&slot);
            // Members end without the mutex. If the last one did so before the search for free slots, the
            // search may have found its slot.
            if self.file.conflict(&slot_byte)?.is_some() != is_joined {
                return Ok(false);
            }
            let byte = group_byte(group, rank, slot);
            for bytes in [slot_byte, byte..=byte] {
                let is_own = own.iter().any(|own| own.contains(bytes.start()));
                if is_own && self.hold == Hold::Process {
                    continue;
                }
                if !self.lock_beside_readers(bytes.clone())? {
                    return Ok(false);
                }
                replaced.extend(is_own.then_some(bytes));
            }
            self.joined.extend(is_joined.then_some(slot));
            self.slots.push(slot);
        }
        replaced.iter().try_for_each(|bytes| self.file.unlock(bytes))?;
        Ok(true)
    }

    /// Proves from now on that this process is the job that holds these slots, so that it can be ended when
    /// it is overdue. If another lock is in the way, there is no proof, and the process will not be ended.
    pub fn guard(&mut self) -> Result<(), RepositoryError> {
        let is_own = |slot: &u64| self.locked.iter().any(|bytes| bytes.contains(&slot_byte(*slot)));
        // This process may have been a member before. Two guardians in one moment would merge into none.
        for slot in self.joined.iter().filter(|slot| is_own(slot)) {
            self.file.unlock(&guardians_of(*slot))?;
        }
        let runs = Runs::of(&self.slots.iter().copied().filter(is_own).collect::<Vec<_>>());
        for guardian in runs.iter().filter_map(|run| Guardian::begin(*run.start(), self.hold)) {
            if self.file.try_read_lock(&guardian.byte())? {
                self.guardians.push(guardian);
            }
        }
        Ok(())
    }

    /// Uses an ancestor's slots, if no other launch does.
    pub fn share(&mut self, slots: &Runs) -> Result<bool, RepositoryError> {
        self.shared = true;
        for run in slots.iter() {
            if !self.lock(shared_bytes(*run.start(), *run.end()))? {
                return Ok(false);
            }
            self.slots.extend(run.clone());
        }
        Ok(true)
    }

    fn lock(&mut self, bytes: Bytes) -> Result<bool, RepositoryError> {
        let is_locked = match self.hold {
            Hold::Process => self.file.try_lock(&bytes)?,
            Hold::Descriptor | Hold::Supervisor | Hold::Tree => self.file.try_lock_shared(&bytes)?,
        };
        self.locked.extend(is_locked.then_some(bytes));
        Ok(is_locked)
    }

    fn lock_beside_readers(&mut self, bytes: Bytes) -> Result<bool, RepositoryError> {
        let is_locked = match self.hold {
            Hold::Process => self.file.try_read_lock(&bytes)?,
            Hold::Descriptor | Hold::Supervisor | Hold::Tree => self.file.try_join_shared(&bytes)?,
        };
        self.locked.extend(is_locked.then_some(bytes));
        Ok(is_locked)
    }

    pub fn file(&self) -> &Rc<LockFile> {
        &self.file
    }

    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// The same, neighbours together.
    pub fn runs(&self) -> Runs {
        Runs::of(&self.slots)
    }

    /// Those that the group had before this launch.
    pub fn joined(&self) -> &[u64] {
        &self.joined
    }

    /// Whether the slots are an ancestor's.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Hands the slots over to the program that this process, or a child of it, is about to become. Until it
    /// does, they are still released when this value is dropped.
    pub fn keep_across_exec(&self) -> Result<(), RepositoryError> {
        if self.hold == Hold::Descriptor && !self.guardians.is_empty() {
            // Exec would close it, and with it go all locks that the process has on the file.
            self.file.keep_writable_across_exec()?;
        }
        self.file.keep_across_exec(self.hold)
    }

    /// Whether no nested launch uses these slots, and none can begin to. Supervisors of a group that release
    /// the same slot meet here, each for a moment.
    fn lock_to_release(&self, bytes: &Bytes) -> bool {
        let begun = Instant::now();
        // A supervisor writes, and a nested launch with a descriptor reads.
        let is_nested = || self.file.is_read_locked(bytes).unwrap_or(true);
        loop {
            match self.file.try_lock(bytes) {
                Ok(false) if self.is_of_group && begun.elapsed() < LONGEST_MOMENT && !is_nested() => {
                    thread::sleep(Duration::from_millis(1));
                }
                locked => return matches!(locked, Ok(true)),
            }
        }
    }

    /// Releases the slots, although other processes may still have their descriptors. Those that a nested
    /// launch uses stay with the descriptors that it inherited.
    pub fn release(&mut self) -> Result<(), RepositoryError> {
        let runs = Runs::of(&std::mem::take(&mut self.slots));
        let shared: Vec<Bytes> = runs.iter().map(|run| shared_bytes(*run.start(), *run.end())).collect();
        // Only a supervisor releases what others have inherited. While it has these locks, no launch can
        // begin to use the slots; if it cannot have them, one does.
        let is_supervisor = !self.shared && self.hold >= Hold::Supervisor;
        let is_used = is_supervisor && !shared.iter().all(|bytes| self.lock_to_release(bytes));
        for bytes in std::mem::take(&mut self.locked) {
            match self.hold {
                Hold::Process => self.file.unlock(&bytes)?,
                Hold::Descriptor | Hold::Supervisor | Hold::Tree if is_used => {}
                Hold::Descriptor | Hold::Supervisor | Hold::Tree => self.file.unlock_shared(&bytes)?,
            }
        }
        if is_supervisor {
            shared.iter().try_for_each(|bytes| self.file.unlock(bytes))?;
        }
        self.guardians.drain(..).try_for_each(|guardian| self.file.unlock(&guardian.byte()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The file may stay open, for another attempt or because it was inherited, and so would the locks on
        // it. If this fails, the process ends anyway.
        let _ = self.release();
    }
}

// A launch below a holder: a wrapper that calls its own shim would block itself, so a launch of the same
// command uses the slot of its ancestor, one descendant at a time. The environment only says where to look.
// The kernel proves that an ancestor holds the slot, and the slot must stay held while this launch lives.
// With a lock of the process, that is true only within the same process, and for a launch with that hold: the
// slot is free as soon as the process ends.

/// Tries to use an ancestor's slots for these claims on one file, whose mutex is held. None if there are no
/// such slots, too few, or another launch uses them already.
pub fn join(
    file: &Rc<LockFile>,
    claims: &[&Claim],
    launch: &Launch<'_>,
    inherited: &Inherited,
) -> Result<Option<Held>, RepositoryError> {
    for slots in hint::slots_to_join(claims, launch) {
        if !may_join(file, slots, launch, inherited)? {
            continue;
        }
        let mut held = Held::nothing_of(file, launch.hold);
        // A supervisor may have released them just before. From now on it does not.
        if held.share(slots)? && may_join(file, slots, launch, inherited)? {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

/// Whether [`join`] would find slots to use now.
pub fn could_join(
    file: &LockFile,
    claims: &[&Claim],
    launch: &Launch<'_>,
    inherited: &Inherited,
) -> Result<bool, RepositoryError> {
    for slots in hint::slots_to_join(claims, launch) {
        if may_join(file, slots, launch, inherited)? && !is_shared(file, slots)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an ancestor holds these slots in this file, for the command of this launch.
fn may_join(
    file: &LockFile,
    slots: &Runs,
    launch: &Launch<'_>,
    inherited: &Inherited,
) -> Result<bool, RepositoryError> {
    for run in slots.iter() {
        if !is_ours(file, run, launch.hold, inherited)? || !is_for(file, run, launch.command)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether another launch uses some of these slots of an ancestor.
fn is_shared(file: &LockFile, slots: &Runs) -> Result<bool, RepositoryError> {
    for run in slots.iter() {
        if file.conflict(&shared_bytes(*run.start(), *run.end()))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this process holds these slots, or a description that it inherited does, for as long as a launch
/// with this hold must have them.
fn is_ours(
    file: &LockFile,
    run: &RangeInclusive<u64>,
    hold: Hold,
    inherited: &Inherited,
) -> Result<bool, RepositoryError> {
    if *run.start() < 1 || *run.end() > LAST_SLOT {
        return Ok(false);
    }
    let bytes = slot_bytes(*run.start(), *run.end());
    let Some(holder) = file.conflict(&bytes)? else { return Ok(false) };
    if let Some(pid) = holder.pid {
        let covers = holder.bytes.contains(bytes.start()) && holder.bytes.contains(bytes.end());
        return Ok(hold == Hold::Process && pid == own_pid() && covers);
    }
    Ok(is_inherited(file, &bytes, inherited))
}

/// Whether these slots are held by descriptions that this process inherited.
pub fn is_inherited(file: &LockFile, bytes: &Bytes, inherited: &Inherited) -> bool {
    inherited.have_locked(file.id(), bytes)
}

/// Whether these slots were taken together, and for this command.
fn is_for(file: &LockFile, run: &RangeInclusive<u64>, command: &str) -> Result<bool, RepositoryError> {
    let mut bytes = [0; RECORD_SIZE];
    let length = file.read_at(&mut bytes, record_at(*run.end()))?;
    let record = bytes.get(..length).and_then(Record::decode);
    Ok(record.is_some_and(|record| record.command == command && record.slots >= runs::length(run)))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        os::fd::AsFd,
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use tempfile::{NamedTempFile, TempPath};

    use super::*;
    use crate::{
        judge::terms::{Amount, Creation, FileLocation, NamedSlots, Nested, Slots},
        keeper::file::{LockPath, layout::guardians, prune},
        sys::{LAST_BYTE, Mode, Ownership, record_lock},
    };

    /// A lock file that is ready for this hold, and the same file as another program has it open.
    fn file_and_other(hold: Hold) -> (Rc<LockFile>, LockFile, TempPath) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        file.prepare(hold).expect("a lock file");
        let other = LockFile::open_to_read(&place).expect("a lock file").expect("the file is there");
        (Rc::new(file), other, path)
    }

    fn take(held: &mut Held, group: Option<&Group>) {
        let seats = Seats { shared: Vec::new(), free: vec![2, 3, 5] };
        assert!(held.take(&seats, group).expect("a lock file"), "the slots are free");
    }

    /// A launch that gives its slots back leaves no lock, whatever kept the slots, with a group or without.
    #[test]
    fn no_lock_is_left_of_released_slots() {
        for hold in [Hold::Process, Hold::Descriptor, Hold::Supervisor, Hold::Tree] {
            let (file, other, _path) = file_and_other(hold);
            let is_locked = |bytes: Bytes| other.conflict(&bytes).expect("a lock file").is_some();
            for group in [None, Some(Group::of("ann"))] {
                let mut held = Held::nothing_of(&file, hold);
                take(&mut held, group.as_ref());
                held.guard().expect("a lock file");
                let slots = [1, 2, 3, 4, 5, 6].map(|slot| is_locked(slot_bytes(slot, slot)));
                assert_eq!(slots, [false, true, true, false, true, false], "{hold:?}");
                let guarded: Vec<u64> = held.guardians.iter().map(|guardian| guardian.slot).collect();
                assert!(guarded == [2, 5] && is_locked(guardians()), "{hold:?}");
                held.release().expect("a lock file");
                assert!(held.slots().is_empty() && !is_locked(0..=LAST_BYTE), "{hold:?}");
            }
        }
    }

    /// A slot that another program has locked meanwhile is not taken.
    #[test]
    fn a_slot_that_is_locked_meanwhile_is_not_taken() {
        for group in [None, Some(Group::of("ann"))] {
            let (file, other, _path) = file_and_other(Hold::Process);
            assert!(other.try_join_shared(&slot_bytes(3, 3)).expect("a lock file"), "it is free");
            let mut held = Held::nothing_of(&file, Hold::Process);
            let seats = Seats { shared: Vec::new(), free: vec![2, 3] };
            assert!(!held.take(&seats, group.as_ref()).expect("a lock file"));
        }
    }

    /// A launch takes slots of its group, and free ones beside them, only while a member still has the
    /// former. If the last one has ended meanwhile, the search may have found its slot, or one that the limit
    /// does not allow.
    #[test]
    fn slots_that_the_group_has_lost_are_not_taken_as_its_own() {
        let group = Group::of("ann");
        for hold in [Hold::Process, Hold::Descriptor, Hold::Supervisor, Hold::Tree] {
            let (file, member, _path) = file_and_other(hold);
            let joined = [slot_bytes(2, 2), slot_bytes(4, 4)];
            let takes = |shared: &[u64], free: &[u64]| {
                let mut held = Held::nothing_of(&file, hold);
                let seats = Seats { shared: shared.to_vec(), free: free.to_vec() };
                let is_taken = held.take(&seats, Some(&group)).expect("a lock file");
                is_taken.then(|| held.slots().to_vec())
            };
            for bytes in &joined {
                assert!(member.try_join_shared(bytes).expect("a lock file"), "it is free");
            }
            assert_eq!(takes(&[2, 4], &[1, 3]), Some(vec![2, 4, 1, 3]), "{hold:?}");
            assert_eq!(takes(&[2], &[4]), None, "{hold:?}: it is held");
            member.unlock_shared(&joined[1]).expect("a lock file");
            assert_eq!(takes(&[2], &[4]), Some(vec![2, 4]), "{hold:?}");
            assert_eq!(takes(&[2, 4], &[3]), None, "{hold:?}: limit 3, after 1 and 2 of others");
            member.unlock_shared(&joined[0]).expect("a lock file");
            assert_eq!(takes(&[2], &[2]), None, "{hold:?}: both looks found it");
            assert_eq!(takes(&[2], &[]), None, "{hold:?}");
            assert_eq!(takes(&[], &[2]), Some(vec![2]), "{hold:?}");
            assert_eq!(file.conflict(&(0..=LAST_BYTE)).expect("a lock file"), None, "{hold:?}");
        }
    }

    /// The program inherits what keeps its slots, and no descriptor by which it can write without need.
    #[test]
    fn the_program_inherits_what_keeps_its_slots() {
        for (hold, is_guarded, can_write) in [
            (Hold::Process, false, true),
            (Hold::Descriptor, false, false),
            (Hold::Descriptor, true, true),
            (Hold::Supervisor, true, false),
            (Hold::Tree, true, false),
        ] {
            let (file, _other, _path) = file_and_other(hold);
            let mut held = Held::nothing_of(&file, hold);
            take(&mut held, None);
            if is_guarded {
                held.guard().expect("a lock file");
            }
            held.keep_across_exec().expect("a lock file");
            let flags = rustix::io::fcntl_getfd(&*file).expect("it is open");
            assert_eq!(!flags.contains(rustix::io::FdFlags::CLOEXEC), can_write, "{hold:?} {is_guarded}");
        }
    }

    /// A launch below a holder uses the slots that the same process has for the same command, if they were
    /// taken together and no other launch uses them.
    #[test]
    fn a_nested_launch_joins_slots_of_the_same_process() {
        let (file, other, path) = file_and_other(Hold::Process);
        let mut held = Held::nothing_of(&file, Hold::Process);
        take(&mut held, None);
        let launch = Launch { command: "matlab", host: "ws17", uid: 7, ancestors: &[], hold: Hold::Process };
        let write = |slots| {
            let record = Record { slots, ..Record::of(&launch) };
            file.write_at(&record.encode(), record_at(3)).expect("the file can be written");
        };
        let joins = |slots: &str, launch: &Launch<'_>| {
            let slots = Runs::parse(slots).expect("slots");
            let amount = Amount::plain(Slots::Number(1), 9);
            let location = FileLocation::named(path.to_path_buf(), 0o600);
            let claim = Claim::outside_the_policy(location, amount, "--limit");
            let claim = Claim { repository: "seats".into(), nested: Nested::Join, ..claim };
            let (called, joined) = (Vec::new(), Runs::default());
            let ancestors = [NamedSlots { name: "seats".to_owned(), slots, called, joined }];
            let launch = Launch { ancestors: &ancestors, ..*launch };
            could_join(&file, &[&claim], &launch, &Inherited::default()).expect("a lock file")
        };
        write(2);
        assert!(joins("2,3", &launch) && joins("3", &launch));
        for slots in ["1-3", "3,4", "2,3,5", "9"] {
            assert!(!joins(slots, &launch), "{slots}");
        }
        assert!(!joins("2,3", &Launch { command: "octave", ..launch }), "they are for another command");
        assert!(!joins("2,3", &Launch { hold: Hold::Descriptor, ..launch }), "they are no description's");
        write(1);
        assert!(!joins("2,3", &launch) && joins("3", &launch), "one was taken alone");
        assert!(other.try_join_shared(&shared_bytes(3, 3)).expect("a lock file"), "it is free");
        assert!(!joins("3", &launch), "another launch uses it");
    }

    /// Slots that a nested launch uses stay taken when the supervisor above it releases them. The supervisor
    /// keeps no lock by which other nested launches would be refused.
    #[test]
    fn a_supervisor_leaves_slots_that_a_nested_launch_uses() {
        for hold in [Hold::Supervisor, Hold::Tree] {
            let (file, other, _path) = file_and_other(hold);
            let is_locked = |bytes: Bytes| other.conflict(&bytes).expect("a lock file").is_some();
            let mut held = Held::nothing_of(&file, hold);
            take(&mut held, None);
            assert!(other.try_join_shared(&shared_bytes(5, 5)).expect("a lock file"), "it is free");
            held.release().expect("a lock file");
            assert!(is_locked(slot_bytes(5, 5)), "{hold:?}");
            assert!(!is_locked(shared_bytes(1, 9)), "{hold:?}");
        }
    }

    /// A supervisor that meets another one of its group at the same slot waits for it, whenever that one
    /// locks and unlocks: it is no nested launch, for which the slot would stay taken.
    #[test]
    fn supervisors_of_a_group_are_no_nested_launch_for_each_other() {
        let (file, other, path) = file_and_other(Hold::Supervisor);
        let mut held = Held::nothing_of(&file, Hold::Supervisor);
        take(&mut held, Some(&Group::of("ann")));
        let bytes = shared_bytes(2, 3);
        let beside = File::options().read(true).write(true).open(&path).expect("the file is there");
        let lock = |mode| record_lock::try_lock(beside.as_fd(), &bytes, mode, Ownership::Description);
        let (is_over, met) = (AtomicBool::new(false), AtomicUsize::new(0));
        let nested = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let has_met = !lock(Mode::Write).expect("the file can be locked");
                    met.fetch_add(usize::from(has_met), Ordering::Relaxed);
                    record_lock::unlock(beside.as_fd(), &bytes, Ownership::Description).expect("it is open");
                }
            });
            let begun = Instant::now();
            let mut nested = 0;
            while begun.elapsed() < Duration::from_secs(2) {
                nested += usize::from(!held.lock_to_release(&bytes));
                file.unlock(&bytes).expect("it is open");
            }
            is_over.store(true, Ordering::Relaxed);
            nested
        });
        assert!(met.load(Ordering::Relaxed) > 0, "they have not met");
        assert_eq!(nested, 0);
        // The lock of a nested launch is not waited for.
        assert_eq!(lock(Mode::Read), Ok(true));
        assert!(!held.lock_to_release(&bytes) && other.is_read_locked(&bytes).expect("a lock file"));
    }
}
