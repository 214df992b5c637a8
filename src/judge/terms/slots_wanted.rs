//! How many slots a claim is for, and out of how many.

use std::{ffi::OsString, fmt, ops::RangeInclusive, time::Duration};

use super::{group::Group, keyword::Admit, runs::Runs};
use crate::text::Show;

/// The numbers of a claim.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Amount {
    /// How many slots may be held at once, as the repository says for this member; 0 drains.
    pub limit: u64,
    /// A lower limit for this launch alone.
    pub ceiling: Option<u64>,
    /// How many slots are wanted.
    pub slots: Slots,
    /// Where slots may be taken, in order of preference: `1..=limit` where nothing is reserved, nowhere where
    /// the limit is 0.
    pub zones: Vec<RangeInclusive<u64>>,
    /// What happens to the claim when the limit is reached.
    pub admit: Admit,
    /// The group whose slots count as its own.
    pub group: Option<Group>,
    /// How long they stay taken after the end of the program.
    pub linger: Option<Duration>,
}

impl Amount {
    /// This many slots of this many, none of them reserved.
    pub fn plain(slots: Slots, limit: u64) -> Self {
        let zones = if limit == 0 { Vec::new() } else { vec![1..=limit] };
        Self { limit, ceiling: None, slots, zones, admit: Admit::WithinLimit, group: None, linger: None }
    }

    /// The limit for this launch, itself included.
    pub fn effective_limit(&self) -> u64 {
        self.ceiling.map_or(self.limit, |ceiling| ceiling.min(self.limit))
    }

    /// The number of slots that are wanted.
    pub fn wanted(&self) -> u64 {
        self.slots.under(self.effective_limit())
    }

    /// The zones, if they exclude any slot. A single zone from the first slot to the limit excludes nothing:
    /// then the search may begin anywhere. If there is no zone at all, all slots are kept for others.
    pub fn reserved_zones(&self) -> Option<&[RangeInclusive<u64>]> {
        let limit = self.effective_limit();
        match self.zones.as_slice() {
            [] if limit == 0 => None,
            [zone] if *zone.start() == 1 && *zone.end() >= limit => None,
            zones => Some(zones),
        }
    }

    /// How many slots there are for this launch at all: its limit, or fewer where some are kept for others.
    pub fn usable_slots(&self) -> u64 {
        usable_slots(self.effective_limit(), &self.zones)
    }

    /// Whether all of them are kept for others, so that even one slot can never be acquired.
    pub fn is_kept_for_others(&self) -> bool {
        self.admit != Admit::Always && self.usable_slots() == 0
    }
}

/// How many slots a limit and zones leave.
pub(super) fn usable_slots(limit: u64, zones: &[RangeInclusive<u64>]) -> u64 {
    zones.iter().map(|zone| zone.end() + 1 - zone.start()).sum::<u64>().min(limit)
}

// How many slots are wanted.

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

// Where the command line should say how many slots are wanted (`slots_from`), and does not.

/// What is unclear about a number of slots.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unclear {
    pub why: WhyUnclear,
    pub repository: String,
    /// How many slots are wanted nevertheless; none if that refuses the launch.
    pub slots: Option<u32>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WhyUnclear {
    /// No number follows an argument.
    NoNumber {
        after: String,
        /// The argument with what follows it, if anything does.
        text: Option<OsString>,
    },
    /// The number is above the greatest of the table.
    AboveTable { number: u32, greatest: u32 },
}

impl Unclear {
    pub fn refuses(&self) -> bool {
        self.slots.is_none()
    }
}

impl fmt::Display for WhyUnclear {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber { text: Some(text), .. } => {
                write!(formatter, "\"{}\" is not a number of slots", text.shown())
            }
            Self::NoNumber { after, text: None } => {
                write!(formatter, "no number of slots follows \"{}\"", after.shown())
            }
            Self::AboveTable { number, greatest } => {
                // A number that is larger than any that can be kept is the largest one.
                let (more, number) =
                    if *number == u32::MAX { ("more than ", number - 1) } else { ("", *number) };
                write!(
                    formatter,
                    "the command line names {more}{number}, and the table of slots_from ends at {greatest}"
                )
            }
        }
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = match self.slots {
            None => "refused by".to_owned(),
            Some(1) => "it takes 1 slot of".to_owned(),
            Some(number) => format!("it takes {number} slots of"),
        };
        write!(formatter, "{}: {taken} {}", self.why, self.repository.shown())
    }
}

// Slots of a repository, as the environment of a program names them.

/// A repository and its slots.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedSlots {
    /// The repository's name.
    pub name: String,
    /// Counted from 1.
    pub slots: Runs,
    /// Their names, in the same order; empty if slots have no names.
    pub called: Vec<String>,
    /// Those of them that other programs of the group have at that moment.
    pub joined: Runs,
}

impl NamedSlots {
    /// A repository's name as one word: where two files use one name, it is shown with the file's, behind a
    /// blank.
    pub fn word(name: &str) -> String {
        name.replace(' ', "_")
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::terms::slots_wanted::*;

    /// Slots are reserved unless a single zone goes from the first slot to the limit. A limit of 0 has no
    /// slot, and so no zone.
    #[test]
    fn zones_that_leave_out_a_slot_are_reserved() {
        let reserved = |limit: u64, zones: &[RangeInclusive<u64>]| {
            let amount = Amount { zones: zones.to_vec(), ..Amount::plain(Slots::Number(1), limit) };
            amount.reserved_zones().map(<[_]>::to_vec)
        };
        for zones in [&[2..=5][..], &[1..=4], &[1..=2, 3..=5], &[]] {
            assert_eq!(reserved(5, zones).as_deref(), Some(zones));
        }
        assert_eq!((reserved(5, &[1..=5]), reserved(5, &[1..=6]), reserved(0, &[])), (None, None, None));
        assert_eq!(Amount::plain(Slots::Number(1), 1).zones, [1..=1]);
        assert_eq!(Amount::plain(Slots::Number(1), 0).zones, []);
    }

    /// If all slots are kept for others, a launch that is always admitted takes one beyond the limit.
    #[test]
    fn a_slot_beyond_the_limit_is_kept_for_nobody() {
        let kept = |admit: Admit, zones: &[RangeInclusive<u64>]| {
            let plain = Amount::plain(Slots::Number(1), 5);
            Amount { zones: zones.to_vec(), admit, ..plain }.is_kept_for_others()
        };
        assert_eq!([kept(Admit::WithinLimit, &[]), kept(Admit::Unenforced, &[])], [true, true]);
        assert_eq!([kept(Admit::Always, &[]), kept(Admit::WithinLimit, &[5..=5])], [false, false]);
    }
}
