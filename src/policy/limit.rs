//! How many slots of a repository may be held at once. Limits go up to the last slot that has a byte of its own (see
//! the layout of a repository); anything beyond that cannot be counted and is a fault of the policy.

/// The highest limit, and so the highest number of a slot.
pub const HIGHEST_LIMIT: u32 = 1_048_575;

/// A limit as the policy says it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// So many slots; 0 drains the repository.
    Fixed(u32),
    /// So many slots for each processor that is online: `"2/cpu"`.
    PerCpu(u32),
}

impl Limit {
    /// The number of slots on a machine with so many processors.
    pub fn resolve(self, cpus: impl FnOnce() -> u32) -> u32 {
        match self {
            Limit::Fixed(limit) => limit,
            Limit::PerCpu(each) => each.saturating_mul(cpus()).min(HIGHEST_LIMIT),
        }
    }
}
