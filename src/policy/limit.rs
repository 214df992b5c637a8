//! How many slots of a repository may be held at once. Limits go up to the last slot that has a byte of its
//! own (see the layout of a repository); anything beyond that cannot be counted and is a fault of the policy.

use std::fmt;

use super::{key::Shape, toml_text::string};

/// The highest limit, and so the highest number of a slot.
pub const HIGHEST_LIMIT: u32 = 1_048_575;

/// The longest line that a policy can speak of.
pub(super) const LONGEST_QUEUE: u32 = 1000;

/// How a number of slots is written.
pub(super) const SLOT_COUNT: Shape = Shape::Number { least: 1, most: HIGHEST_LIMIT as i64 };
pub(super) const SLOT_COUNT_OR_SHARE: Shape = Shape::Share { least: 1 };
pub(super) const SLOT_COUNT_OR_NONE: Shape = Shape::Number { least: 0, most: HIGHEST_LIMIT as i64 };

/// A limit as the policy says it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// So many slots; 0 drains the repository.
    Fixed(u32),
    /// So many slots for each processor that is online: `"2/cpu"`.
    PerCpu(u32),
}

impl Limit {
    pub(super) fn parse(text: &str) -> Option<Limit> {
        let each: u32 = text.strip_suffix("/cpu")?.trim_end().parse().ok()?;
        (1..=HIGHEST_LIMIT).contains(&each).then_some(Limit::PerCpu(each))
    }

    /// The number of slots on a machine with so many processors.
    pub fn resolve(self, cpus: impl FnOnce() -> u32) -> u32 {
        match self {
            Limit::Fixed(limit) => limit,
            Limit::PerCpu(each) => each.saturating_mul(cpus()).min(HIGHEST_LIMIT),
        }
    }

    /// As TOML.
    pub(super) fn printed(self) -> String {
        match self {
            Limit::Fixed(slots) => slots.to_string(),
            Limit::PerCpu(_) => string(&self.to_string()),
        }
    }

    /// The number of slots, where it is the same on every machine.
    pub fn fixed(self) -> Option<u32> {
        match self {
            Limit::Fixed(limit) => Some(limit),
            Limit::PerCpu(_) => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Fixed(limit) => write!(f, "{limit}"),
            Limit::PerCpu(each) => write!(f, "{each}/cpu"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_by_processors_never_exceeds_what_can_be_counted() {
        assert_eq!(Limit::parse("2/cpu").map(|limit| limit.resolve(|| 8)), Some(16));
        assert_eq!(Limit::PerCpu(HIGHEST_LIMIT).resolve(|| 64), HIGHEST_LIMIT);
        assert_eq!(Limit::Fixed(3).resolve(|| unreachable!("nobody asks")), 3);
    }

    #[test]
    fn what_is_no_limit() {
        for text in ["", "2", "/cpu", "0/cpu", "-1/cpu", "2/core", "1048576/cpu"] {
            assert_eq!(Limit::parse(text), None, "{text}");
        }
    }
}
