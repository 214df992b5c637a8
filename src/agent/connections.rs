//! What belongs to the sockets: who calls, who is heard next, how much each user may have, and who has to
//! wait until more is heard.

use std::{collections::BTreeSet, time::Instant};

use super::{quota::Quotas, turns::Turns};
use crate::sys::local_socket::Listener;

/// The owner of the sockets.
pub(super) struct Connections {
    pub(super) listener: Listener,
    /// Those who have said something, or were not heard to the end.
    pub(super) speakers: Turns,
    /// How much each user has.
    pub(super) quotas: Quotas,
    /// Until when nothing more is heard in conversations in which too much was said at once.
    pub(super) pauses: BTreeSet<(Instant, u64)>,
    /// Since when nobody is answered, for want of descriptors.
    pub(super) full: Option<Instant>,
}

impl Connections {
    /// Of those who will call here.
    pub(super) fn new(listener: Listener, quotas: Quotas) -> Self {
        Self { listener, speakers: Turns::default(), quotas, pauses: BTreeSet::new(), full: None }
    }
}
