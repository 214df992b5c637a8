//! How a launch ended.

/// The outcome of a launch.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Fate {
    /// It started at once.
    AtOnce,
    /// It waited, and started.
    Waited,
    Refused,
    /// It waited, and its wait timed out.
    TimedOut,
}

impl Fate {
    pub const ALL: [Self; 4] = [Self::AtOnce, Self::Waited, Self::Refused, Self::TimedOut];

    /// Whether a program was started.
    pub fn has_started(self) -> bool {
        matches!(self, Self::AtOnce | Self::Waited)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::AtOnce => "started at once",
            Self::Waited => "started after a wait",
            Self::Refused => "refused",
            Self::TimedOut => "refused after a wait",
        }
    }
}
