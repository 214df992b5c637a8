//! A launch that stood in line when the agent died, and has not called again.

use std::time::Instant;

use super::saved::SavedPlace;
use crate::{protocol::place_in_line::PlaceInLine, sys::pidfd::PidFd};

/// Such a launch.
pub(super) struct Returning {
    pub(super) saved: SavedPlace,
    pub(super) line: PlaceInLine,
    pub(super) process: PidFd,
    pub(super) due: Instant,
    pub(super) is_away: bool,
}
