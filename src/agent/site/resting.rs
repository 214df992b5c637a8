//! A launch that waits for etcd to be as it needs it.

use std::time::Instant;

use crate::agent::request::AcquireRequest;

/// A launch that rests.
#[derive(Debug)]
pub(super) struct Resting {
    pub(super) since: Instant,
    /// When it was looked at last.
    pub(super) looked: Instant,
    pub(super) order: AcquireRequest,
}
