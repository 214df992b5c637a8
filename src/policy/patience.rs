//! How long a launch may stand in line, and how strongly its slots are held. Both have an order, because several rules
//! and repositories may speak about one launch: of the waits the shortest counts, of the holds the strongest.

use std::time::Duration;

/// How long a launch may wait for its slots. The order is that of strictness turned round: the smallest is the shortest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Wait {
    /// No longer than this; zero refuses at once.
    For(Duration),
    /// Until there is room.
    Forever,
}

/// What keeps a slot taken, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Hold {
    /// The program itself, by a lock that its children never keep.
    #[default]
    Process,
    /// Every process that inherited the descriptor.
    Descriptor,
    /// A parent that waits for the command and then unlocks.
    Supervisor,
    /// The same, until all descendants have ended.
    Tree,
}

impl Wait {
    /// tmp
    pub fn parse(text: &str) -> Option<Wait> {
        if text == "forever" {
            Some(Wait::Forever)
        } else {
            text.trim_end_matches('s').parse().ok().map(|s| Wait::For(Duration::from_secs(s)))
        }
    }
}
impl Hold {
    /// tmp
    pub fn parse(text: &str) -> Option<Hold> {
        match text {
            "process" => Some(Hold::Process),
            "descriptor" => Some(Hold::Descriptor),
            "supervisor" => Some(Hold::Supervisor),
            "tree" => Some(Hold::Tree),
            _ => None,
        }
    }
}
