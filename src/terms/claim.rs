//! What a launch wants of one repository. Whoever obeys a claim need not have seen a policy: everything it
//! takes is resolved here, and everything that is shown of it is carried along.

use std::{borrow::Cow, ops::RangeInclusive};

use super::{
    admit::Admit,
    amount::Amount,
    because::{self, Because, Kept},
    location::{FileLocation, Location},
    member::{self, Member},
    names::Names,
    nested::Nested,
    origin::Origin,
    pace::{Pace, Pause},
    queue::Queue,
    setting::Setting,
    span_of_time::Wait,
};

/// A claim on one repository.
#[derive(Clone, Debug)]
pub struct Claim<'p> {
    /// The repository's name, as messages and `RUNGATE_HELD` write it.
    pub repository: Cow<'p, str>,
    /// Whose table it is, one for each placeholder; empty where all share one.
    pub member: Vec<Member>,
    /// Who asks, the most binding first; never empty.
    pub origins: Vec<Origin<'p>>,
    /// Where the slots are kept.
    pub location: Location,
    /// How many.
    pub amount: Amount,
    /// Why the limit is not everybody's, where it is not.
    pub limit_of: Option<Because<'p>>,
    /// The slots of it that others may use and this launch may not.
    pub kept: Vec<Kept<'p>>,
    /// Which slots others have reserved.
    pub reserved: Reserved,
    /// The names of the slots, from the first on, where they have any.
    pub names: &'p [String],
    /// How many slots are given to nobody.
    pub out_of_order: usize,
    /// When.
    pub pace: Pace,
    /// What a launch below a holder does.
    pub nested: Nested,
    /// How long it is waited for.
    pub wait: Setting<Wait>,
    /// Where its line ends.
    pub queue: Queue,
}

/// Slots that are reserved for others than whoever claims.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reserved {
    /// Those that they keep.
    pub kept: Vec<RangeInclusive<u64>>,
    /// Those that they lend.
    pub lent: Vec<RangeInclusive<u64>>,
}

impl<'p> Claim<'p> {
    /// A claim on a lock file that no policy names. It is called after the file, and never shares a slot.
    pub fn outside_the_policy(file: FileLocation, amount: Amount, because: &'p str) -> Self {
        let name = file.path.file_stem().unwrap_or(file.path.as_os_str()).to_string_lossy();
        Self {
            repository: name.replace([' ', '=', ','], "_").into(),
            member: Vec::new(),
            origins: vec![Origin::outside_the_policy(because)],
            location: Location::File(file),
            amount,
            limit_of: None,
            kept: Vec::new(),
            reserved: Reserved::default(),
            names: &[],
            out_of_order: 0,
            pace: Pace::default(),
            nested: Nested::Take,
            wait: Setting::default(),
            queue: Queue::default(),
        }
    }

    /// `seats-per-user [ann]`, `cache [ann, /opt/matlab/bin]`: for people.
    pub fn title(&self, names: &dyn Names) -> String {
        if self.member.is_empty() {
            return self.repository.clone().into_owned();
        }
        format!("{} [{}]", self.repository, member::shown(&self.member, names))
    }

    /// Whose table it is, as tests and programs write it: `ann`, `cad`, `ann ws17`. Names that cannot be
    /// found are numbers.
    pub fn member_name(&self, names: &dyn Names) -> Option<String> {
        if self.member.is_empty() {
            return None;
        }
        Some(self.member.iter().map(|member| member.name(names)).collect::<Vec<_>>().join(" "))
    }

    /// `limit of %power, 1 out of order`, where the limit that counts for this launch is not everybody's.
    pub fn reason_of_limit(&self) -> Option<String> {
        let binds = self.amount.effective_limit() >= self.amount.limit;
        let limit_of = self.limit_of.as_ref().map(Because::limit);
        because::reason(limit_of, self.out_of_order).filter(|_| binds)
    }

    /// The pause that can refuse a launch.
    pub fn enforced_pause(&self) -> Option<Pause> {
        self.pace.pause.filter(|_| self.amount.admit != Admit::Unenforced)
    }
}

/// One thing that must be had for the launch to start.
#[derive(Clone, Debug)]
pub enum Demand<'p> {
    /// This claim.
    One(Claim<'p>),
    /// The first of these that can be had, each as a whole.
    AnyOf(Vec<Vec<Claim<'p>>>),
}

impl<'p> Demand<'p> {
    /// Whether the agent keeps what it asks for. Alternatives all have one keeper.
    pub fn is_of_agent(&self) -> bool {
        self.claims().any(|claim| matches!(claim.location, Location::Agent(_)))
    }

    /// What can be had instead of each other, in order of preference.
    pub fn alternatives(&self) -> impl Iterator<Item = &[Claim<'p>]> {
        let (only, several) = match self {
            Self::One(claim) => (Some(std::slice::from_ref(claim)), None),
            Self::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(several.into_iter().flatten().map(Vec::as_slice))
    }

    /// Every claim.
    pub fn claims(&self) -> impl Iterator<Item = &Claim<'p>> {
        self.alternatives().flatten()
    }

    /// Every claim, to be changed.
    pub fn claims_mut(&mut self) -> impl Iterator<Item = &mut Claim<'p>> {
        let (only, several) = match self {
            Self::One(claim) => (Some(claim), None),
            Self::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(several.into_iter().flatten().flatten())
    }

    /// The same with its claims changed.
    #[must_use]
    pub fn map(self, change: impl Fn(Claim<'p>) -> Claim<'p>) -> Self {
        match self {
            Self::One(claim) => Self::One(change(claim)),
            Self::AnyOf(alternatives) => {
                let changed = |claims: Vec<Claim<'p>>| claims.into_iter().map(&change).collect();
                Self::AnyOf(alternatives.into_iter().map(changed).collect())
            }
        }
    }
}
