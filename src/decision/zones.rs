//! Which slots a launch may take, and in which order, where some are reserved. Reservations keep the slots from 1 up,
//! one after the other. Their members take those first, and of them those first that nobody else may borrow; others take
//! only what lies above, and last of all what is lent.

use super::claim::Zone;
use crate::policy::Reservation;

/// The zones of a repository with this limit, for a caller of whom `member` says which reservations are for him.
pub(super) fn zones<E>(
    limit: u32,
    reservations: &[Reservation],
    mut member: impl FnMut(&Reservation) -> Result<bool, E>,
) -> Result<Vec<Zone>, E> {
    let mut own = Vec::new();
    let mut lent = Vec::new();
    let mut next = 1;
    for reservation in reservations {
        let kept = Zone { first: next, last: next + (reservation.slots - reservation.lend) - 1 };
        let lendable = Zone { first: kept.last + 1, last: kept.last + reservation.lend };
        next += reservation.slots;
        if member(reservation)? {
            own.extend([kept, lendable]);
        } else {
            lent.push(lendable);
        }
    }
    let others = Zone { first: next, last: limit };
    let ordered = own.into_iter().chain([others]).chain(lent);
    let within = |zone: Zone| Zone { last: zone.last.min(limit), ..zone };
    Ok(ordered.map(within).filter(|zone| zone.first <= zone.last).collect())
}
