//! What becomes of a claim when its limit is reached.

/// From the strictest on.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Admit {
    /// The launch is refused.
    #[default]
    WithinLimit,
    /// The launch starts without the slot, and the log says so.
    Unenforced,
    /// A slot beyond the limit is taken.
    Always,
}
