//! A launch below a holder: a wrapper that calls its own shim would block itself, so a launch of the same
//! command uses the slot of its ancestor, one descendant at a time. The environment only says where to look.
//! The kernel proves that an ancestor holds the slot, and the slot must stay held while this launch lives.
//! With a lock of the process, that is true only within the same process: the slot would be free as soon as
//! the ancestor ends.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{ops::RangeInclusive, rc::Rc};

use super::{
    error::RepositoryError,
    file::LockFile,
    held::Held,
    layout::{LAST_SLOT, RECORD_SIZE, record_at, shared_bytes, slot_bytes},
    record::Record,
};
use crate::{
    judge::terms::{
        claim::{Claim, Launch},
        runs::{self, Runs},
    },
    keeper::hint,
    sys::{descriptor::Inherited, process::own_pid, record_lock::Bytes},
};

/// Tries to use an ancestor's slots for these claims on one file, whose mutex is held. None if there are no
/// such slots, too few, or another launch uses them already.
pub fn join(
    file: &Rc<LockFile>,
    claims: &[&Claim<'_>],
    launch: &Launch<'_>,
    inherited: &Inherited,
) -> Result<Option<Held>, RepositoryError> {
    let Some(slots) = slots_to_join(file, claims, launch, inherited)? else { return Ok(None) };
    let mut held = Held::nothing_of(file, launch.hold);
    Ok(held.share(slots)?.then_some(held))
}

/// Whether [`join`] would find slots to use now.
pub fn could_join(
    file: &LockFile,
    claims: &[&Claim<'_>],
    launch: &Launch<'_>,
    inherited: &Inherited,
) -> Result<bool, RepositoryError> {
    let Some(slots) = slots_to_join(file, claims, launch, inherited)? else { return Ok(false) };
    for run in slots.iter() {
        if file.conflict(&shared_bytes(*run.start(), *run.end()))?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn slots_to_join<'l>(
    file: &LockFile,
    claims: &[&Claim<'_>],
    launch: &Launch<'l>,
    inherited: &Inherited,
) -> Result<Option<&'l Runs>, RepositoryError> {
    let Some(slots) = hint::slots_to_join(claims, launch) else { return Ok(None) };
    for run in slots.iter() {
        if !is_ours(file, run, inherited)? || !is_for(file, run, launch.command)? {
            return Ok(None);
        }
    }
    Ok(Some(slots))
}

/// Whether this process holds these slots, or a description that it inherited does.
fn is_ours(
    file: &LockFile,
    run: &RangeInclusive<u64>,
    inherited: &Inherited,
) -> Result<bool, RepositoryError> {
    if *run.start() < 1 || *run.end() > LAST_SLOT {
        return Ok(false);
    }
    let bytes = slot_bytes(*run.start(), *run.end());
    let Some(holder) = file.conflict(&bytes)? else { return Ok(false) };
    if let Some(pid) = holder.pid {
        let covers = holder.bytes.contains(bytes.start()) && holder.bytes.contains(bytes.end());
        return Ok(pid == own_pid() && covers);
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
