//! A number of slots, or a share of a limit: `"60%"`. What a share comes to is known when the limit is.

use std::fmt;

use super::toml_text::string;

/// So many, or so much of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Share {
    /// So many slots.
    Slots(u32),
    /// So many of a hundred; from 1 to 100.
    Percent(u32),
}

impl Share {
    pub(super) fn parse(text: &str) -> Option<Share> {
        let digits = text.strip_suffix('%')?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let percent = digits.parse().ok().filter(|percent| is_plain && (1..=100).contains(percent))?;
        Some(Share::Percent(percent))
    }

    /// The number of slots, rounded down.
    pub fn down(self, limit: u32) -> u32 {
        self.of(limit, 0)
    }

    /// The number of slots, rounded up.
    pub fn up(self, limit: u32) -> u32 {
        self.of(limit, 99)
    }

    /// The same as a ceiling: a share of something is never nothing.
    pub fn ceiling(self, limit: u32) -> u32 {
        match self {
            Share::Slots(slots) => slots,
            Share::Percent(_) => self.down(limit).max(limit.min(1)),
        }
    }

    /// Whether it is no less than a limit that lets anything through.
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

    /// Whether so many slots may be part of it; of a share nobody knows yet.
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
    fn a_share_is_rounded_down_what_is_left_up_and_a_ceiling_is_never_nothing() {
        let share = |text| Share::parse(text).expect("a share");
        assert_eq!([1, 2, 7, 10, 1_048_575].map(|limit| share("60%").down(limit)), [0, 1, 4, 6, 629_145]);
        assert_eq!([1, 2, 7, 10].map(|limit| share("60%").up(limit)), [1, 2, 5, 6]);
        assert_eq!([0, 1, 2, 7, 10].map(|limit| share("60%").ceiling(limit)), [0, 1, 1, 4, 6]);
        assert_eq!([0, 3].map(|limit| share("100%").down(limit)), [0, 3]);
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
