//! The claims of a launch on one table are one claim: the lowest limit, the most slots (not their sum), the
//! zones that all of them allow.

use std::ops::RangeInclusive;

use super::{
    admit::Admit,
    amount::{Amount, reach},
};
use crate::deliberate_fault::DeliberateFault;

/// The highest slot that has a byte of its own, and so the highest limit.
pub const LAST_SLOT: u64 = 1_048_575;

/// What is asked of one table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// How many slots may be held at once, this launch included.
    pub limit: u64,
    /// How many are wanted.
    pub slots: u64,
    /// Where they may be taken, in order of preference; anywhere within the limit where nothing is kept for
    /// anybody.
    pub zones: Option<Vec<RangeInclusive<u64>>>,
    /// The strictest.
    pub admit: Admit,
}

impl Terms {
    /// Of claims on one table; none when there are no claims. One that is not enforced adds nothing to one
    /// that is.
    pub fn merge<'a>(amounts: impl IntoIterator<Item = &'a Amount, IntoIter: Clone>) -> Option<Self> {
        let amounts = amounts.into_iter();
        let enforced = amounts.clone().any(|amount| amount.admit != Admit::Unenforced);
        let count = amounts.filter(|amount| !enforced || amount.admit != Admit::Unenforced);
        count.map(Self::of).reduce(|mut terms, other| {
            terms.limit = terms.limit.min(other.limit);
            terms.slots = terms.slots.max(other.slots);
            terms.admit = terms.admit.min(other.admit);
            terms.zones = common(terms.zones.as_deref(), other.zones.as_deref());
            terms
        })
    }

    fn of(amount: &Amount) -> Self {
        let limit = amount.effective_limit();
        let limit = limit.saturating_add(u64::from(DeliberateFault::OneTooMany.is_on())).min(LAST_SLOT);
        let zones = amount.reserved_zones().map(<[_]>::to_vec);
        Self { limit, slots: amount.slots.under(limit), zones, admit: amount.admit }
    }

    /// How many slots there are for this launch at all. It counts in the line: who may not use what is
    /// reserved for others must not hold them up.
    pub fn reach(&self) -> u64 {
        self.zones.as_ref().map_or(self.limit, |zones| reach(self.limit, zones))
    }

    /// Whether this slot may be taken.
    pub fn allows(&self, slot: u64) -> bool {
        self.zones.as_ref().is_none_or(|zones| zones.iter().any(|zone| zone.contains(&slot)))
    }

    /// The slots to look at, in order, each once. A limit that is lower than the repository's says how many
    /// slots may be held and not which of them, so zones go on above it. `cursor` is where to begin when any
    /// will do.
    pub fn search_order(&self, cursor: u64) -> Vec<RangeInclusive<u64>> {
        let mut order: Vec<RangeInclusive<u64>> = match &self.zones {
            None => {
                let start = if (1..=self.limit).contains(&cursor) { cursor } else { 1 };
                vec![start..=self.limit, 1..=start.saturating_sub(1)]
            }
            Some(zones) => zones.clone(),
        };
        if self.admit == Admit::Always {
            let highest = order.iter().map(|range| *range.end()).max().unwrap_or(0);
            order.push(highest.max(self.limit).saturating_add(1)..=LAST_SLOT);
        }
        order
    }
}

/// The slots that both of two claims on one table may take, in the order of the first. Where nothing is kept
/// for anybody, all may be taken.
pub fn common(
    first: Option<&[RangeInclusive<u64>]>,
    second: Option<&[RangeInclusive<u64>]>,
) -> Option<Vec<RangeInclusive<u64>>> {
    let (Some(first), Some(second)) = (first, second) else { return first.or(second).map(<[_]>::to_vec) };
    let within = |zone: &RangeInclusive<u64>, other: &RangeInclusive<u64>| {
        *zone.start().max(other.start())..=*zone.end().min(other.end())
    };
    let both = first.iter().flat_map(|zone| second.iter().map(move |other| within(zone, other)));
    Some(both.filter(|zone| !zone.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_only_get_fewer_whichever_claim_comes_last() {
        let others: Option<&[RangeInclusive<u64>]> = Some(&[6..=10, 4..=5]);
        let case = |second: &[RangeInclusive<u64>], both: &[RangeInclusive<u64>]| {
            assert_eq!(common(others, Some(second)).as_deref(), Some(both));
        };
        case(&[1..=5, 6..=10], &[6..=10, 4..=5]);
        case(&[1..=3], &[]);
        case(&[], &[]);
        case(&[1..=4, 8..=20], &[8..=10, 4..=4]);
        assert_eq!(common(others, None).as_deref(), others);
        assert_eq!(common(None, others).as_deref(), others);
        assert_eq!(common(None, None), None);
    }
}
