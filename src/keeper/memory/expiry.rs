//! Which holders of a table in memory are to be ended. Whoever keeps it knows its holders, so that nothing
//! has to be proved here. Of holders on other hosts, which keep that table too, it knows what they wrote
//! down, by a clock of theirs: that is enough to give notice of them, and their own host decides.

use std::{
    cmp::Reverse,
    time::{Duration, SystemTime},
};

use crate::{
    keeper::{Holder, Overdue},
    sys::process,
    terms::pace::Expiry,
};

/// The overdue among holders, each process once, the longest overdue first.
pub fn overdue(holders: &[Holder], expiry: &Expiry) -> Vec<Overdue> {
    let mut overdue = to_end(holders, |age| age.checked_sub(expiry.after).map(Some));
    overdue.sort_by_key(|overdue| Reverse(overdue.by));
    overdue
}

/// These holders, each process once, however old they are.
pub fn chosen(holders: &[Holder]) -> Vec<Overdue> {
    to_end(holders, |_| Some(None))
}

/// The holders that are to be ended, each process once: by their age, which gives by how much they are
/// overdue.
fn to_end(holders: &[Holder], by: impl Fn(Duration) -> Option<Option<Duration>>) -> Vec<Overdue> {
    let Some(now) = process::since_boot() else { return Vec::new() };
    let mut overdue: Vec<Overdue> = Vec::new();
    for holder in holders {
        let (age, elsewhere) = match (holder.taken, holder.since, &holder.host) {
            (Some(taken), ..) => (now.saturating_sub(taken), None),
            (None, Some(since), Some(host)) => {
                (SystemTime::now().duration_since(since).unwrap_or_default(), Some(host.clone()))
            }
            (None, ..) => continue,
        };
        let (Some(shown), Some(by)) = (holder.pid, by(age)) else { continue };
        let process = holder.keeper.unwrap_or(shown);
        let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
        let is_same = |other: &&mut Overdue| {
            other.process() == process
                && other.elsewhere == elsewhere
                && (elsewhere.is_none() || other.holder.since == holder.since)
        };
        match overdue.iter_mut().find(is_same) {
            Some(same) => same.slots = same.slots.saturating_add(slots),
            None => {
                let (holder, pid, job) = (holder.clone(), shown, Ok(process));
                overdue.push(Overdue { holder, pid, elsewhere, by, slots, job, may_be_signalled: true });
            }
        }
    }
    overdue
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::terms::pace::ExpireKill;

    const EXPIRY: Expiry =
        Expiry { after: Duration::from_millis(1), grace: Duration::ZERO, kill: ExpireKill::Process };

    fn holder(slot: u64, host: &str, since: u64) -> Holder {
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(since));
        Holder { pid: Some(7), host: Some(host.to_owned()), since, ..Holder::unknown(slot..=slot) }
    }

    #[test]
    fn a_process_of_another_host_is_not_that_of_the_same_number_here() {
        let here = Holder { taken: Some(Duration::ZERO), ..holder(1, "lab1", 5) };
        let found =
            overdue(&[here, holder(2, "lab2", 5), holder(3, "lab2", 5), holder(4, "lab3", 6)], &EXPIRY);
        let mut found: Vec<_> = found.into_iter().map(|overdue| (overdue.elsewhere, overdue.slots)).collect();
        found.sort();
        let there = |host: &str| Some(host.to_owned());
        assert_eq!(found, [(None, 1), (there("lab2"), 2), (there("lab3"), 1)]);
    }

    #[test]
    fn the_longest_overdue_is_the_first() {
        // Since the start of the machine, which was longer ago.
        let taken = |slot: u64, milliseconds| Holder {
            pid: i32::try_from(slot).ok(),
            taken: Some(Duration::from_millis(milliseconds)),
            ..Holder::unknown(slot..=slot)
        };
        let found = overdue(&[taken(1, 2), taken(2, 0), taken(3, 1)], &EXPIRY);
        let found: Vec<i32> = found.iter().map(Overdue::process).collect();
        assert_eq!(found, [2, 3, 1]);
    }

    #[test]
    fn whoever_is_of_the_future_is_not_overdue() {
        assert_eq!(overdue(&[holder(1, "lab2", 1 << 40)], &EXPIRY), []);
    }
}
