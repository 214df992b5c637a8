//! What a rule takes of repositories, as it was validated: repositories are indices, numbers are within their limits.

/// How many slots are wanted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Slots {
    /// So many, at least one.
    Number(u32),
    /// Every slot up to the limit: exclusive use.
    All,
}

/// One entry of `acquire`.
#[derive(Debug)]
pub(crate) enum Acquisition {
    /// This.
    One(ClaimTerms),
    /// The first of these that can be had.
    AnyOf(Vec<ClaimTerms>),
}

impl Acquisition {
    /// Its claims, the alternatives one after the other.
    pub(crate) fn terms(&self) -> &[ClaimTerms] {
        match self {
            Acquisition::One(terms) => std::slice::from_ref(terms),
            Acquisition::AnyOf(terms) => terms,
        }
    }
}

/// What is wanted of one repository.
#[derive(Debug)]
pub(crate) struct ClaimTerms {
    /// Its index among the repositories of the policy.
    pub(crate) repository: usize,
    pub(crate) ceiling: Option<u32>,
    pub(crate) leave: Option<u32>,
    pub(crate) slots: Slots,
    pub(crate) slots_from: Option<SlotsFrom>,
}

/// Where on the command line the number of slots stands.
#[derive(Debug)]
pub(crate) struct SlotsFrom {
    /// The argument before the number.
    pub(crate) after: String,
    /// No more than this, whatever the number is.
    pub(crate) most: Option<u32>,
}
