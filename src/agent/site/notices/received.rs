//! What this host knows of a holder of its own of which another host has given notice.

use std::time::Instant;

use crate::agent::{eviction::RunningEviction, site::record::Reply};

/// The holder.
#[derive(Debug, Default)]
pub(in crate::agent::site) struct ReceivedNotice {
    pub(super) slot: u64,
    /// Who gave notice.
    pub(super) host: String,
    /// The user at whose request it is ended, however old it is.
    pub(super) by: Option<u32>,
    /// When it was asked last whether it is overdue.
    pub(super) asked: Option<Instant>,
    pub(super) ending: Option<RunningEviction>,
    /// Since when nobody gives notice of it any more.
    pub(super) withdrawn: Option<Instant>,
    /// What is to be told.
    pub(super) reply: Option<Reply>,
}

impl ReceivedNotice {
    /// Whether it is being ended, and somebody wants that still.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some() && self.withdrawn.is_none()
    }
}
