//! One queue in which a launch may have to wait.

use crate::keeper::table::TableId;

/// A table that blocks a launch, and the class of the launch there.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub table: TableId,
    /// How many slots there are for the launch there.
    pub reach: u64,
    /// Whether the room was not checked, because older launches wait.
    pub is_behind: bool,
}
