//! Launches that share one seat, for example those of one user on one host (`shared_by`). A launch that finds
//! slots of its group in a table sees them as its own, and takes only what it wants beyond them. The keeper
//! knows to which group a slot belongs, by locks or from its memory.

use std::sync::Arc;

/// The most slots that a group can have: as many ranks can be told apart by the locks of a file.
pub const MOST_SHARED: u64 = 64;

/// The group of a launch in one table.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Group {
    text: Arc<str>,
    is_of_heirs: bool,
}

impl Group {
    /// The values of the group as one text, different for all other values.
    pub fn of(values: &str) -> Self {
        Self { text: values.into(), is_of_heirs: false }
    }

    /// The same for launches that share nothing: one takes over the lingering slots of another (`linger`).
    pub fn of_heirs(values: &str) -> Self {
        Self { is_of_heirs: true, ..Self::of(values) }
    }

    /// The values.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a launch shares nothing with a living one.
    pub fn is_of_heirs(&self) -> bool {
        self.is_of_heirs
    }

    /// The same with a name that distinguishes it from others with the same values.
    #[must_use]
    pub fn of_member(&self, name: &str) -> Self {
        Self { text: format!("{} {name}", self.text).into(), ..self.clone() }
    }

    /// The number that others see instead of its values, which may be secret.
    #[must_use]
    pub fn seen(hash: u64) -> Self {
        Self::of(&format!("#{hash:016x}"))
    }

    /// A number that is nearly always different for different groups. It is FNV-1a, which is the same in
    /// every version: launches of two versions find each other by it.
    pub fn hash(&self) -> u64 {
        let feed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.text.bytes().fold(0xcbf2_9ce4_8422_2325, feed)
    }
}

/// The slots that a launch gets of one table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Seats {
    /// Those that its group has already, by rank: each living member keeps the first ones that it wants.
    pub shared: Vec<u64>,
    /// Those that are free until now.
    pub free: Vec<u64>,
}

impl Seats {
    /// All of them.
    pub fn all(&self) -> Vec<u64> {
        self.shared.iter().chain(&self.free).copied().collect()
    }
}
