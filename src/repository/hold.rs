//! What keeps a slot taken.

use serde::{Deserialize, Serialize};

/// What keeps a slot taken, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// A lock of the process: free again when the program ends or closes the descriptor. No child keeps it.
    #[default]
    Process,
    /// A lock of the open file: free again when the last process that inherited the descriptor has closed it or ended.
    Descriptor,
    /// The same, with a parent that waits for the command and then gives the slot back.
    Supervisor,
    /// The same, and the parent waits for all descendants of the command.
    Tree,
}

impl Hold {
    /// As policies and listings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Descriptor => "descriptor",
            Self::Supervisor => "supervisor",
            Self::Tree => "tree",
        }
    }
}
