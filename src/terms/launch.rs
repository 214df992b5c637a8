//! A launch, as the keepers of slots see it: who asks, and what is to keep the slots.

use super::{hold::Hold, named_slots::NamedSlots};

/// Who asks for slots.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The command as typed, for the records.
    pub command: &'a str,
    /// The node name, for the records.
    pub host: &'a str,
    /// The real user.
    pub uid: u32,
    /// What the environment says of slots that ancestors hold: a hint, proved by nothing.
    pub ancestors: &'a [NamedSlots],
    /// What is to keep the slots.
    pub hold: Hold,
}
