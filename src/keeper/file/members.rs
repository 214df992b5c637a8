//! Who has a slot together: the members of its group. A query names one reader of a byte and no more, so all
//! locks of the file are listed, after the decision, for people and for the end of a whole group.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use super::{
    error::RepositoryError,
    file::LockFile,
    holder::{Holder, describe},
    layout::{grouped_at, groups},
    scan::listed,
};
use crate::sys::{
    kernel_locks,
    process::Process,
    record_lock::{Bytes, Conflict},
};

/// What one member has locked of one slot of its group.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// The group, by its place in the file.
    pub(super) group: u64,
    pub(super) slot: u64,
    /// The byte that says so.
    pub(super) byte: u64,
    /// Its process, where a process has locked it.
    pub(super) pid: Option<i32>,
}

/// Every lock of the file, if groups have slots and the kernel lists the locks; otherwise none.
pub(super) fn locks(file: &LockFile) -> Result<Vec<Conflict>, RepositoryError> {
    if file.conflict(&groups())?.is_none() {
        return Ok(Vec::new());
    }
    Ok(listed(file)?.unwrap_or_default())
}

/// The memberships among these locks.
pub(super) fn memberships(locks: &[Conflict]) -> Vec<Membership> {
    let of = |Conflict { bytes, pid }: &Conflict| {
        let byte = *bytes.start();
        let (group, slot) = grouped_at(byte).filter(|_| bytes.start() == bytes.end())?;
        Some(Membership { group, slot, byte, pid: *pid })
    };
    locks.iter().filter_map(of).collect()
}

/// More slots of one holder are not taken apart.
const MOST_SLOTS: u64 = 256;

/// The same holders with those who have their slots together with them. Who cannot be seen from here is an
/// unknown one.
pub(super) fn with_others(file: &LockFile, holders: Vec<Holder>) -> Result<Vec<Holder>, RepositoryError> {
    let memberships = memberships(&locks(file)?);
    if memberships.is_empty() {
        return Ok(holders);
    }
    let has_description = memberships.iter().any(|member| member.pid.is_none());
    let descriptions =
        if has_description { kernel_locks::locks_of_descriptions(file.id()) } else { Vec::new() };
    let mut all = Vec::new();
    for holder in holders {
        let (first, last) = holder.slots;
        let is_grouped = memberships.iter().any(|member| (first..=last).contains(&member.slot));
        if !is_grouped || last.saturating_sub(first) >= MOST_SLOTS {
            all.push(holder);
            continue;
        }
        for slot in first..=last {
            let members: Vec<&Membership> = memberships.iter().filter(|member| member.slot == slot).collect();
            all.push(with_members(Holder { slots: (slot, slot), ..holder.clone() }, &members, &descriptions));
        }
    }
    Ok(all)
}

fn with_members(holder: Holder, members: &[&Membership], descriptions: &[(i32, Bytes)]) -> Holder {
    let mut seen: Vec<i32> = members.iter().filter_map(|member| member.pid).collect();
    seen.extend(owners(members, descriptions));
    seen.sort_unstable();
    seen.dedup();
    seen.truncate(members.len());
    let unseen = members.len().saturating_sub(seen.len());
    let own = |pid: i32| holder.pid == Some(pid) || holder.keeper == Some(pid);
    let is_seen = seen.iter().any(|pid| own(*pid));
    let mut others: Vec<Holder> = seen
        .into_iter()
        .filter(|pid| !own(*pid))
        .map(|pid| describe(holder.slots, Some(pid), None))
        .collect();
    // One of them is the holder itself.
    let unseen = if is_seen { unseen } else { unseen.saturating_sub(1) };
    others.extend((0..unseen).map(|_| Holder::unknown(holder.slots.0..=holder.slots.1)));
    Holder { others, ..holder }
}

/// The processes that brought the descriptions along: what they start has the same ones.
fn owners(members: &[&Membership], descriptions: &[(i32, Bytes)]) -> Vec<i32> {
    let is_theirs = |bytes: &Bytes| members.iter().any(|member| bytes.contains(&member.byte));
    let have: Vec<i32> =
        descriptions.iter().filter(|(_, bytes)| is_theirs(bytes)).map(|(pid, _)| *pid).collect();
    let is_first = |pid: &i32| Process::find(*pid).is_none_or(|process| !have.contains(&process.parent));
    have.iter().copied().filter(is_first).collect()
}
