//! What this host knows of a holder of its own of which another host has given notice.

use std::time::Instant;

use super::record::Reply;
use crate::agent::ending::Ending;

/// The holder.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    pub(super) slot: u64,
    /// Who gave notice.
    pub(super) host: String,
    /// When it was asked last whether it is overdue.
    pub(super) asked: Option<Instant>,
    pub(super) ending: Option<Ending>,
    /// What is to be told.
    pub(super) reply: Option<Reply>,
}
