//! Numbers of users and groups, which are compared as numbers and need no look-up.

use std::{fmt, ops::RangeInclusive};

use crate::policy::fault::Fault;

/// One number, or a range of them.
#[derive(Debug)]
pub(crate) struct Ids(RangeInclusive<u32>);

impl Ids {
    /// Reads `1000` or `1000-1999`; `None` when the text is neither.
    pub(in crate::policy) fn parse(text: &str) -> Result<Option<Ids>, Fault> {
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        if !all_digits(first) || !all_digits(last) {
            return Ok(None);
        }
        // The highest number is what system calls take for "nobody said".
        let number =
            |text: &str| text.parse().ok().filter(|number| *number != u32::MAX).ok_or(Fault::IdTooLarge);
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(Fault::EmptyRange) } else { Ok(Some(Ids(first..=last))) }
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    pub(super) fn covers(&self, narrow: &Ids) -> bool {
        self.contains(*narrow.0.start()) && self.contains(*narrow.0.end())
    }

    pub(in crate::policy) fn is_one(&self) -> bool {
        self.0.start() == self.0.end()
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}
