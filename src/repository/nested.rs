//! A launch below a holder: a wrapper that calls its own shim would block itself, so a launch of the same command uses the
//! slot of its ancestor, one descendant at a time. The environment only says where to look; that an ancestor holds the slot
//! is proved with the kernel, and the slot must be one that stays while this launch lives. For a lock of the process that
//! is so in the very process alone: its slot would be free as soon as the ancestor ends.

use std::rc::Rc;

use crate::{
    repository::{
        acquisition::Launch,
        claim::{Claim, NamedSlots, Nested},
        error::RepositoryError,
        file::LockFile,
        held::Held,
        layout::{LAST_SLOT, RECORD_SIZE, record_at, slot_bytes},
        record::Record,
    },
    sys::{
        process::own_pid,
        record_lock::{self, Bytes},
    },
};

/// Whether the environment means this claim's repository; it writes each name as one word.
fn is_named(claim: &Claim, hint: &NamedSlots) -> bool {
    claim.name == hint.name || NamedSlots::word(&claim.name) == hint.name
}

/// Tries to use an ancestor's slots for these claims on one file, whose mutex is held. None when there are no such slots, when
/// they are too few, or when somebody uses them already.
pub(super) fn join(
    file: &Rc<LockFile>,
    claims: &[&Claim],
    launch: &Launch<'_>,
) -> Result<Option<Held>, RepositoryError> {
    if claims.iter().any(|claim| claim.nested == Nested::Take) {
        return Ok(None);
    }
    let Some(hint) = launch.ancestors.iter().find(|hint| claims.iter().any(|claim| is_named(claim, hint)))
    else {
        return Ok(None);
    };
    let wanted = claims.iter().map(|claim| claim.slots.under(claim.limit)).max().unwrap_or(0);
    if (hint.slots.len() as u64) < wanted {
        return Ok(None);
    }
    for slot in &hint.slots {
        if !is_ours(file, *slot, launch)? || !is_for(file, *slot, launch.command)? {
            return Ok(None);
        }
    }
    let mut held = Held::nothing_of(file, launch.opening.hold);
    Ok(held.share(&hint.slots)?.then_some(held))
}

/// Whether this process holds the slot, or a description that it inherited does: one whose own query finds the slot free,
/// while everybody else's finds it held.
fn is_ours(file: &LockFile, slot: u64, launch: &Launch<'_>) -> Result<bool, RepositoryError> {
    if !(1..=LAST_SLOT).contains(&slot) {
        return Ok(false);
    }
    let bytes = slot_bytes(slot, slot);
    let Some(holder) = file.conflict(&bytes)? else { return Ok(false) };
    if let Some(pid) = holder.pid {
        return Ok(pid == own_pid());
    }
    is_inherited(file, &bytes, launch)
}

/// Whether these slots are held by a description that this process inherited. In this order: what is free for the description
/// and held all the same is its own, and does not go away meanwhile.
pub(super) fn is_inherited(
    file: &LockFile,
    bytes: &Bytes,
    launch: &Launch<'_>,
) -> Result<bool, RepositoryError> {
    let mut inherited = launch.opening.inherited.of(file.id());
    Ok(inherited.any(|descriptor| matches!(record_lock::conflict(descriptor, bytes), Ok(None)))
        && file.conflict(bytes)?.is_some())
}

fn is_for(file: &LockFile, slot: u64, command: &str) -> Result<bool, RepositoryError> {
    let mut bytes = [0; RECORD_SIZE];
    let length = file.read_at(&mut bytes, record_at(slot))?;
    Ok(Record::decode(&bytes[..length]).is_some_and(|record| record.command == command))
}
