//! How many slots of a repository may be in use at once. The highest limit is the last slot with a byte of
//! its own (see the layout of a repository). A higher limit could not be counted, and is a fault.

use std::fmt;

use super::{Shape, toml_text::string};

/// The highest limit, and so the highest number of a slot.
pub const HIGHEST_LIMIT: u32 = 1_048_575;

/// The longest queue that a policy can set.
pub(super) const LONGEST_QUEUE: u32 = 1000;

/// The form of a number of slots.
pub(super) const SLOT_COUNT: Shape = Shape::Number { least: 1, most: HIGHEST_LIMIT as i64 };
pub(super) const SLOT_COUNT_OR_SHARE: Shape = Shape::Share { least: 1 };
pub(super) const SLOT_COUNT_OR_NONE: Shape = Shape::Number { least: 0, most: HIGHEST_LIMIT as i64 };

/// A number of digits alone; `parse` would also accept a sign.
pub(super) fn digits(text: &str, radix: u32) -> Option<u32> {
    let is_plain = text.chars().all(|digit| digit.is_digit(radix));
    u32::from_str_radix(text, radix).ok().filter(|_| is_plain)
}

/// A limit as the policy writes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// This many slots; 0 drains the repository.
    Fixed(u32),
    /// This many slots for each online processor: `"2/cpu"`.
    PerCpu(u32),
}

impl Limit {
    pub(super) fn parse(text: &str) -> Option<Limit> {
        let each = digits(text.strip_suffix("/cpu")?.trim_end(), 10)?;
        (1..=HIGHEST_LIMIT).contains(&each).then_some(Limit::PerCpu(each))
    }

    /// The number of slots on a machine with this many processors.
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

    /// The number of slots, if it is the same on every machine.
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

// A number of slots, or a share of a limit: `"60%"`. The value of a share is known once the limit is.

/// A number, or a share of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Share {
    /// A number of slots.
    Slots(u32),
    /// A percentage, from 1 to 100.
    Percent(u32),
}

impl Share {
    pub(super) fn parse(text: &str) -> Option<Share> {
        let text = text.strip_suffix('%').filter(|text| !text.starts_with('0'))?;
        digits(text, 10).filter(|percent| (1..=100).contains(percent)).map(Share::Percent)
    }

    /// The number of slots, rounded down.
    pub fn down(self, limit: u32) -> u32 {
        self.of(limit, 0)
    }

    /// The number of slots, rounded up.
    pub fn up(self, limit: u32) -> u32 {
        self.of(limit, 99)
    }

    /// The same as a ceiling: a share is never 0.
    pub fn ceiling(self, limit: u32) -> u32 {
        match self {
            Share::Slots(slots) => slots,
            Share::Percent(_) => self.down(limit).max(limit.min(1)),
        }
    }

    /// Whether it is at least a limit that admits anything.
    pub(super) fn is_all_of(self, limit: u32) -> bool {
        match self {
            Share::Slots(slots) => slots >= limit && limit > 0,
            Share::Percent(percent) => percent == 100,
        }
    }

    fn of(self, limit: u32, more: u64) -> u32 {
        match self {
            Share::Slots(slots) => slots,
            // A share is never more than the limit, which is a number of this kind.
            Share::Percent(percent) => {
                let share = (u64::from(limit) * u64::from(percent) + more) / 100;
                u32::try_from(share).unwrap_or(limit)
            }
        }
    }

    /// Whether this many slots may be part of it; unknown for a share.
    pub(super) fn holds(self, slots: u32) -> bool {
        matches!(self, Share::Percent(_)) || self.down(0) >= slots
    }

    /// As TOML.
    pub(super) fn printed(self) -> String {
        match self {
            Share::Slots(slots) => slots.to_string(),
            Share::Percent(_) => string(&self.to_string()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Slots(slots) => write!(f, "{slots}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_by_processors_never_exceeds_what_can_be_counted() {
        assert_eq!(Limit::parse("2/cpu").map(|limit| limit.resolve(|| 8)), Some(16));
        assert_eq!(Limit::parse("12 /cpu").map(|limit| limit.resolve(|| 2)), Some(24));
        assert_eq!(Limit::PerCpu(HIGHEST_LIMIT).resolve(|| 64), HIGHEST_LIMIT);
        assert_eq!(Limit::Fixed(3).resolve(|| unreachable!("nobody asks")), 3);
    }

    #[test]
    fn what_is_no_limit() {
        for text in ["", "2", "/cpu", "0/cpu", "-1/cpu", "+2/cpu", "2/core", "a/cpu", "1048576/cpu"] {
            assert_eq!(Limit::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_share_is_rounded_down_what_is_left_up_and_a_ceiling_is_never_nothing() {
        let share = |text| Share::parse(text).expect("a share");
        assert_eq!([1, 2, 7, 10, 1_048_575].map(|limit| share("60%").down(limit)), [0, 1, 4, 6, 629_145]);
        assert_eq!([1, 2, 7, 10].map(|limit| share("60%").up(limit)), [1, 2, 5, 6]);
        assert_eq!([0, 1, 2, 7, 10].map(|limit| share("60%").ceiling(limit)), [0, 1, 1, 4, 6]);
        assert_eq!([0, 3].map(|limit| share("100%").down(limit)), [0, 3]);
        assert_eq!([3, 100].map(|limit| share("33%").down(limit)), [0, 33]);
        assert_eq!(Share::Slots(0).ceiling(5), 0);
    }

    #[test]
    fn what_is_no_share() {
        for text in ["", "%", "0%", "101%", "-1%", "+1%", "07%", "1.5%", "60", "60 %", "60%%", "99999999999%"]
        {
            assert_eq!(Share::parse(text), None, "{text}");
        }
    }
}
