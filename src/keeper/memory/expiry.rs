//! Who is overdue in a table in memory. Whoever keeps it knows its holders, so that nothing has to be proved
//! here.

use std::cmp::Reverse;

use crate::{
    keeper::{Holder, Overdue},
    sys::process,
    terms::pace::Expiry,
};

/// The overdue among holders, each process once, the longest overdue first.
pub fn overdue(holders: &[Holder], expiry: &Expiry) -> Vec<Overdue> {
    let Some(now) = process::since_boot() else { return Vec::new() };
    let mut overdue: Vec<Overdue> = Vec::new();
    for holder in holders {
        let (Some(pid), Some(taken)) = (holder.pid, holder.taken) else { continue };
        let Some(by) = now.saturating_sub(taken).checked_sub(expiry.after) else { continue };
        let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
        match overdue.iter_mut().find(|other| other.pid == pid) {
            Some(same) => same.slots = same.slots.saturating_add(slots),
            None => {
                let (holder, job) = (holder.clone(), Ok(pid));
                overdue.push(Overdue { holder, pid, by, slots, job, may_be_signalled: true });
            }
        }
    }
    overdue.sort_by_key(|overdue| Reverse(overdue.by));
    overdue
}
