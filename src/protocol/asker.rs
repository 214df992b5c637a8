//! Who asks for slots, and of whom.

use super::clock::Clock;
use crate::{
    keeper::{Fate, Overdue, table::Keepers},
    terms::{claim::Claim, launch::Launch},
};

/// A launch, and what it meets.
pub struct Asker<'a> {
    /// The launch.
    pub launch: Launch<'a>,
    /// Whoever keeps the slots.
    pub keepers: Keepers<'a>,
    /// Which policy gives the limits of its claims: 12 bits that differ where policies do.
    pub generation: u16,
    /// Called for each overdue holder that was ended, or could not be.
    pub on_expired: &'a dyn Fn(&Claim<'_>, &Overdue, Fate),
    /// When it asks.
    pub clock: Clock,
}
