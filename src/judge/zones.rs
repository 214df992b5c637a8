//! Which slots a launch may take, and in which order, if some are reserved. Reservations keep the slots from
//! 1 up, one after the other. Their members take these first, beginning with those that no other user may
//! borrow. Other launches take the slots above, and last the lent ones. Outside its hours a reservation
//! counts as lent, so that its idle slots are free when it begins.

use std::ops::RangeInclusive;

use super::terms::{Kept, Provenance, Reserved, runs::length};
use crate::policy::{Reservation, Standing};

/// What a launch may take, and what it may not.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Zones {
    /// In the order of preference.
    pub(super) open: Vec<RangeInclusive<u64>>,
    pub(super) kept: Vec<Kept>,
    pub(super) reserved: Reserved,
}

/// The zones without these slots, which are in ascending order and given to no launch.
pub(super) fn without(zones: Vec<RangeInclusive<u64>>, slots: &[u32]) -> Vec<RangeInclusive<u64>> {
    if slots.is_empty() {
        return zones;
    }
    let pieces = |zone: RangeInclusive<u64>| {
        let broken: Vec<u64> =
            slots.iter().map(|slot| u64::from(*slot)).filter(|slot| zone.contains(slot)).collect();
        let starts = [*zone.start()].into_iter().chain(broken.iter().map(|slot| slot + 1));
        let ends = broken.iter().copied().chain([zone.end() + 1]);
        let pieces: Vec<_> = starts.zip(ends).map(|(start, end)| start..=end - 1).collect();
        pieces.into_iter().filter(|piece| !piece.is_empty())
    };
    zones.into_iter().flat_map(pieces).collect()
}

/// The slots of one reservation.
struct Stretch<'p> {
    reservation: &'p Reservation,
    /// Those that no other user may borrow, and those that others may.
    only_members: RangeInclusive<u64>,
    lendable: RangeInclusive<u64>,
}

fn stretches(limit: u32, reservations: &[Reservation]) -> impl Iterator<Item = Stretch<'_>> {
    let within = move |first: u32, count: u32| {
        u64::from(first)..=u64::from(first.saturating_add(count).saturating_sub(1).min(limit))
    };
    let mut next = 1u32;
    reservations.iter().map(move |reservation| {
        let (slots, lend) = (reservation.slots(limit), reservation.lend(limit));
        let first_lent = next.saturating_add(slots - lend);
        let stretch = Stretch {
            reservation,
            only_members: within(next, slots - lend),
            lendable: within(first_lent, lend),
        };
        next = next.saturating_add(slots);
        stretch
    })
}

/// The zones of a repository with this limit, for a launch; `standing` says how each reservation applies to
/// it.
pub(super) fn zones<E>(
    limit: u32,
    out_of_order: &[u32],
    reservations: &[Reservation],
    mut standing: impl FnMut(&Reservation) -> Result<Standing, E>,
    because: impl Fn(&Reservation) -> Provenance,
) -> Result<Zones, E> {
    let (mut own, mut lent, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut reserved = Reserved::default();
    for Stretch { reservation, only_members, lendable } in stretches(limit, reservations) {
        match standing(reservation)? {
            Standing::Own => own.extend([only_members, lendable]),
            Standing::Nobodys => lent.extend([only_members, lendable]),
            Standing::Others => {
                let of_members = without(vec![only_members], out_of_order);
                let slots = of_members.iter().filter(|range| !range.is_empty()).map(length).sum();
                reserved.kept.extend(of_members);
                reserved.lent.extend(without(vec![lendable.clone()], out_of_order));
                lent.push(lendable);
                kept.extend((slots > 0).then(|| Kept { slots, whom: because(reservation) }));
            }
        }
    }
    let of_all = reservations.iter().fold(0u32, |sum, one| sum.saturating_add(one.slots(limit)));
    let rest = u64::from(of_all) + 1..=u64::from(limit);
    let open = own.into_iter().chain([rest]).chain(lent).filter(|zone| !zone.is_empty()).collect();
    Ok(Zones { open: without(open, out_of_order), kept, reserved })
}

/// The slots that only the members of a reservation may use during its hours.
pub(super) fn kept_now<'p>(
    limit: u32,
    out_of_order: &[u32],
    reservations: &'p [Reservation],
    is_on: impl Fn(&Reservation) -> bool,
) -> impl Iterator<Item = (RangeInclusive<u64>, &'p Reservation)> {
    let kept = stretches(limit, reservations).filter(move |stretch| is_on(stretch.reservation));
    kept.flat_map(move |stretch| {
        let slots = without(vec![stretch.only_members], out_of_order).into_iter();
        slots.filter(|slots| !slots.is_empty()).map(move |slots| (slots, stretch.reservation))
    })
}

#[cfg(test)]
mod tests {
    use crate::judge::zones::*;

    #[test]
    fn what_is_out_of_order_is_in_no_zone() {
        assert_eq!(without(vec![1..=4], &[]), [1..=4]);
        assert_eq!(without(vec![1..=4], &[3]), [1..=2, 4..=4]);
        assert_eq!(without(vec![3..=4, 1..=2], &[1, 4, 9]), [3..=3, 2..=2]);
        assert_eq!(without(vec![1..=2], &[1, 2]), []);
    }
}
