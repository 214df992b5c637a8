//! How many slots are wanted.

/// A number of slots, or all that there are.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Slots {
    /// At least one.
    Number(u32),
    /// Every slot up to the limit: exclusive use.
    All,
}

impl Slots {
    /// The number, under a limit.
    pub fn under(self, limit: u64) -> u64 {
        match self {
            Self::Number(number) => u64::from(number),
            Self::All => limit.max(1),
        }
    }
}
