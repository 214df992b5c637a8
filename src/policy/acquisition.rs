//! What a rule takes of repositories, as it was validated: repositories are indices, numbers are within their
//! limits.

use super::{share::Share, span_of_time::Wait};
pub(super) use crate::terms::slots::Slots;

/// One entry of `acquire`.
#[derive(Debug)]
pub(crate) enum Acquisition {
    /// This.
    One(ClaimTerms),
    /// The first of these that can be had, each as a whole.
    AnyOf(Vec<Vec<ClaimTerms>>),
}

impl Acquisition {
    /// Its claims, the alternatives one after the other.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &ClaimTerms> {
        let (only, alternatives) = match self {
            Acquisition::One(terms) => (Some(terms), None),
            Acquisition::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(alternatives.into_iter().flatten().flatten())
    }
}

/// What is wanted of one repository.
#[derive(Debug)]
pub(crate) struct ClaimTerms {
    /// Its index among the repositories of the policy.
    pub(crate) repository: usize,
    pub(crate) ceiling: Option<Share>,
    /// 0 where only the command line can ask for any.
    pub(crate) slots: Slots,
    pub(crate) slots_from: Option<SlotsFrom>,
    pub(crate) wait: Option<Wait>,
    /// Whether it makes no claim, and only lowers what others claim of the repository.
    pub(crate) lowers: bool,
}

impl ClaimTerms {
    /// Whether this can certainly be had wherever the other can: the same slots of the same repository, or
    /// fewer of them, and no lower limit.
    pub(super) fn wants_no_more_than(&self, other: &ClaimTerms) -> bool {
        // A share and a number are not compared.
        let no_lower = match (other.ceiling, self.ceiling) {
            (_, None) => true,
            (Some(Share::Slots(less)), Some(Share::Slots(more)))
            | (Some(Share::Percent(less)), Some(Share::Percent(more))) => less <= more,
            _ => false,
        };
        self.repository == other.repository
            && self.slots <= other.slots
            && self.slots_from == other.slots_from
            && no_lower
    }
}

/// Where on the command line the number of slots stands.
#[derive(Debug, PartialEq)]
pub(crate) struct SlotsFrom {
    /// The argument before the number.
    pub(crate) after: String,
    /// No more than this, whatever the number is.
    pub(crate) most: Option<u32>,
}
