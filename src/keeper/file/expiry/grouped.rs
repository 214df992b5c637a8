//! The end of holders that share their slots as a group.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{cmp::Reverse, time::SystemTime};

use super::{Overdue, is_young, time_overdue, unproved};
use crate::{
    judge::terms::Expiry,
    keeper::file::{
        file::LockFile,
        holder::{Guardians, Holder, Membership},
        job::{Guardian, Job, UnverifiedTarget},
    },
    sys::Conflict,
};

/// The known facts about the groups of a file.
pub(super) struct Grouped<'f> {
    pub(super) file: &'f LockFile,
    /// The list of all locks, which may lack some.
    pub(super) locks: &'f [Conflict],
    /// By queries.
    pub(super) guardians: &'f Guardians,
    pub(super) lineage: &'f [i32],
}

/// The maximum number of processes that are checked for membership.
const MOST_MEMBERS: usize = 256;

impl Grouped<'_> {
    /// A group is ended as a whole: if one member is not proved, is too young, or started the caller, none is
    /// ended.
    pub(super) fn to_end(
        &self,
        holder: &Holder,
        members: &[&Membership],
        overdue_by: Option<(&Expiry, SystemTime)>,
    ) -> Option<Overdue> {
        let mut slots: Vec<u64> = members.iter().map(|member| member.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let is_young = |member: &&Membership| {
            let pid_and_expiry = member.pid.zip(overdue_by);
            pid_and_expiry.is_some_and(|(pid, (expiry, _))| is_young(pid, expiry))
        };
        if members.iter().any(is_young) {
            return None;
        }
        let Some(jobs) = self.jobs(&slots, members, overdue_by.is_some()) else {
            return unproved(holder, UnverifiedTarget::NoGuardian, slots.len() as u64, overdue_by);
        };
        let mut all = Vec::new();
        for (slot, job) in &jobs {
            let by = match overdue_by {
                Some((expiry, _)) => Some(time_overdue(job, expiry)?),
                None => None,
            };
            if self.lineage.contains(&job.process().pid()) {
                return None;
            }
            let holder = Holder { slots: (*slot, *slot), others: Vec::new(), ..holder.clone() };
            all.push(Overdue::of_job(job, &holder, by, 0));
        }
        all.sort_by_key(|one| Reverse(one.by));
        let mut all = all.into_iter();
        Some(Overdue { slots: slots.len() as u64, ..all.next()?.together_with(all.collect()) })
    }

    /// The jobs of all members, each with one of its slots; none if another process has also locked one of
    /// their bytes, or a member is out of sight.
    fn jobs(&self, slots: &[u64], members: &[&Membership], since_when: bool) -> Option<Vec<(u64, Job)>> {
        let is_here = |lock: &Conflict| Guardian::of(&lock.bytes).is_some_and(|of| slots.contains(&of.slot));
        let guardian = |lock: &Conflict| lock.pid.filter(|_| is_here(lock));
        let mut candidates: Vec<i32> = self.locks.iter().filter_map(guardian).collect();
        candidates.extend(members.iter().filter_map(|member| member.pid));
        candidates.sort_unstable();
        candidates.dedup();
        let of_slots = self.guardians.seen.iter().filter(|(of, _)| slots.contains(&of.slot));
        let unlisted: Vec<(u64, i32)> =
            of_slots.map(|(of, pid)| (of.slot, *pid)).filter(|(_, pid)| !candidates.contains(pid)).collect();
        let is_out_of_sight = slots.iter().any(|slot| self.guardians.hidden.contains(slot));
        if is_out_of_sight || candidates.len().saturating_add(unlisted.len()) > MOST_MEMBERS {
            return None;
        }
        // One that the list lacks may be a member. If it can be neither proved nor excluded, none is ended.
        let is_unclear = |(slot, pid): &(u64, i32)| {
            let proof = Job::prove(*pid, self.file.id(), *slot, since_when);
            proof.is_err_and(|doubt| doubt != UnverifiedTarget::Gone)
        };
        if unlisted.iter().any(is_unclear) {
            return None;
        }
        let prove = |pid: &i32| {
            let mut proved = slots
                .iter()
                .filter_map(|slot| Some((*slot, Job::prove(*pid, self.file.id(), *slot, since_when).ok()?)));
            proved.find(|(slot, job)| {
                members.iter().any(|member| member.slot == *slot && job.shows(member.byte))
            })
        };
        let mut jobs: Vec<(u64, Job)> = candidates.iter().filter_map(prove).collect();
        let are_all = |byte: u64| {
            let locked = members.iter().filter(|member| member.byte == byte).count();
            jobs.iter().filter(|(_, job)| job.shows(byte)).count() == locked
        };
        if !members.iter().all(|member| are_all(member.byte)) {
            return None;
        }
        // The list may lack members, and each of them counts.
        jobs.extend(unlisted.iter().filter_map(|(_, pid)| prove(pid)));
        Some(jobs)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path, thread};

    use tempfile::NamedTempFile;

    use super::*;
    use crate::{
        judge::terms::{Creation, Hold},
        keeper::file::{
            LockPath, holder,
            layout::{group_byte, slot_bytes},
            prune,
        },
        sys::{Bytes, Errno, PidFd, Signal, executable, process},
    };

    /// The list of all locks may lack those of a member. That has the slot nevertheless, so it is ended with
    /// the others, or none is. It replaces no member that is listed and not proved.
    #[test]
    fn a_member_that_is_not_listed_is_ended_with_the_others() {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = prune::open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        let member = group_byte(1, 0, 2);
        let [first, second] = [Hold::Process, Hold::Descriptor]
            .map(|hold| Guardian::begin(2, hold).expect("/proc is mounted").byte());
        let joins = |guardian: &Bytes| {
            let all = [slot_bytes(2, 2), member..=member, guardian.clone()];
            all.iter().all(|bytes| matches!(file.try_read_lock(bytes), Ok(true)))
        };
        let own = process::own_pid();
        assert!(joins(&first), "the slot is free");
        let (program, environment) = (Path::new("/bin/sleep"), executable::environment());
        let words = ["sleep", "600"].map(|word| executable::c_string(word.as_ref()));
        let words = words.map(|word| word.expect("a word without a zero byte"));
        let child = process::spawn(|| {
            if process::die_with(own).is_err()
                || !joins(&second)
                || file.keep_across_exec(Hold::Process).is_err()
            {
                return Errno::EAGAIN;
            }
            executable::replace_process(program, &words, &environment)
        });
        let child = child.expect("a child");
        assert_eq!(child.why_not(), None, "it has the slot too");
        // Its descriptors of ours are closed before /proc shows with which privileges it was executed.
        while process::is_privileged_by_exec(child.pid).is_none() {
            thread::yield_now();
        }
        let guardians = holder::all_guardians(&file).expect("a lock file");
        let holder = Holder { pid: Some(own), ..Holder::unknown(2..=2) };
        let ended = |pids: &[i32]| {
            let lock = |pid: &i32| Conflict { bytes: member..=member, pid: Some(*pid) };
            let listed: Vec<Conflict> = pids.iter().map(lock).collect();
            let memberships = holder::memberships(&listed);
            let of = Grouped { file: &file, locks: &listed, guardians: &guardians, lineage: &[] };
            let group = of.to_end(&holder, &memberships.iter().collect::<Vec<_>>(), None);
            let group = group.expect("it is named").each().map(|one| one.job);
            group.collect::<Result<BTreeSet<i32>, _>>()
        };
        let both = Ok(BTreeSet::from([own, child.pid]));
        assert_eq!(ended(&[own, child.pid]), both);
        assert_eq!(ended(&[own]), both);
        assert_eq!(ended(&[own, i32::MAX]), Err(UnverifiedTarget::NoGuardian));
        PidFd::open(child.pid).and_then(|child| child.signal(Signal::SIGKILL)).expect("it is there");
        process::reap(child.pid).expect("it has ended");
    }
}
