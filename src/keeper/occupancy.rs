//! Which slots of a table are held, and whether the rest is enough.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::ops::RangeInclusive;

use crate::judge::terms::{Admit, LAST_SLOT, Runs, Terms};

/// Neighbouring slots with one holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Span {
    /// The slots. Beyond the last slot that a limit can reach, there may be too many to list.
    pub slots: RangeInclusive<u64>,
    /// The process that holds them, where the keeper can say.
    pub pid: Option<i32>,
}

impl Span {
    fn count(&self) -> u64 {
        self.slots.end().saturating_sub(*self.slots.start()).saturating_add(1)
    }
}

/// The result for a launch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Vacancy {
    /// These slots are free, and taking them keeps the limit.
    Slots(Vec<u64>),
    /// The limit leaves room, in slots that are not for this launch.
    Kept,
    /// The limit is reached.
    Full,
}

/// Held slots of a table: all of them, unless the caller says less.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Occupancy {
    /// In ascending order, without overlap.
    spans: Vec<Span>,
}

impl Occupancy {
    /// From spans in ascending order, without overlap.
    pub fn of(spans: Vec<Span>) -> Self {
        Self { spans }
    }

    /// How many slots are held.
    pub fn held(&self) -> u64 {
        self.spans.iter().map(Span::count).sum()
    }

    /// The same for people: slots that no limit can reach are not counted.
    pub fn shown(&self) -> u64 {
        let within = |span: &Span| {
            span.slots.end().min(&LAST_SLOT).saturating_add(1).saturating_sub(*span.slots.start())
        };
        self.spans.iter().map(within).sum()
    }

    /// The same as runs, without those that no limit can reach.
    pub fn runs(&self) -> Runs {
        let within = |span: &Span| *span.slots.start()..=*span.slots.end().min(&LAST_SLOT);
        Runs::joined(self.spans.iter().map(within).collect())
    }

    /// The highest held slot.
    pub fn highest(&self) -> Option<u64> {
        self.spans.last().map(|span| *span.slots.end())
    }

    /// The spans, in ascending order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether `slot` is held.
    pub fn holds(&self, slot: u64) -> bool {
        self.spans.iter().any(|span| span.slots.contains(&slot))
    }

    /// How many slots among `slots` are held.
    pub fn held_among(&self, slots: RangeInclusive<u64>) -> u64 {
        let within = |span: &Span| {
            let (first, last) = (span.slots.start().max(slots.start()), span.slots.end().min(slots.end()));
            last.saturating_add(1).saturating_sub(*first)
        };
        self.spans.iter().map(within).sum()
    }

    /// The free slots among `slots`, ascending.
    pub fn free_among(&self, slots: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        let mut spans = self.spans.iter().peekable();
        slots.filter(move |slot| {
            while spans.next_if(|span| span.slots.end() < slot).is_some() {}
            spans.peek().is_none_or(|span| slot < span.slots.start())
        })
    }

    /// Whether the limit leaves room for what is wanted, wherever it may be taken.
    pub fn fits(&self, terms: &Terms) -> bool {
        self.held().saturating_add(terms.slots) <= terms.limit
    }

    /// The slots that a launch with these terms would take, in the order of its preference; none if it has
    /// to be refused.
    pub fn free_for(&self, terms: &Terms, cursor: u64) -> Option<Vec<u64>> {
        if !self.fits(terms) && terms.admit != Admit::Always {
            return None;
        }
        let enough = usize::try_from(terms.slots).unwrap_or(usize::MAX);
        let order = terms.search_order(cursor).into_iter();
        let free: Vec<u64> = order.flat_map(|range| self.free_among(range)).take(enough).collect();
        (free.len() == enough).then_some(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_are_those_between_the_spans() {
        let spans = [(1, 2), (4, 4), (7, 1 << 40)];
        let spans = spans.iter().map(|&(first, last)| Span { slots: first..=last, pid: None });
        let occupancy = Occupancy::of(spans.collect());
        assert_eq!(occupancy.free_among(1..=9).collect::<Vec<_>>(), [3, 5, 6]);
        assert_eq!(occupancy.free_among(4..=4).count(), 0);
        assert_eq!(occupancy.held(), 3 + (1 << 40) - 6);
    }

    /// Of a range only the held slots within it count, and for people only slots that a limit can reach: a
    /// lock may continue to the end of any file.
    #[test]
    fn held_slots_are_counted_where_they_are() {
        let spans = [(1, 2), (5, 8), (LAST_SLOT - 1, 1 << 40)];
        let spans = spans.iter().map(|&(first, last)| Span { slots: first..=last, pid: None });
        let occupancy = Occupancy::of(spans.collect());
        let among = [(1, 4), (2, 5), (6, 7), (3, 4), (7, 100)];
        assert_eq!(among.map(|(first, last)| occupancy.held_among(first..=last)), [2, 2, 2, 0, 2]);
        assert_eq!((occupancy.shown(), occupancy.runs().count()), (8, 8));
        assert!(occupancy.runs().has(LAST_SLOT) && !occupancy.runs().has(LAST_SLOT + 1));
    }
}
