//! What a launch wants of one lock file. The launcher obeys a claim without having seen a policy: everything it needs
//! is resolved here (paths, limits, zones), everything it shows is carried along (names, rules, places).

use std::path::PathBuf;

use crate::policy::{Member, Names, Nested, Repository, Rule, Slots};

/// One thing that must be had for the launch to start.
#[derive(Debug)]
pub enum Demand<'p> {
    /// This claim.
    One(Claim<'p>),
    /// The first of these that can be had.
    AnyOf(Vec<Claim<'p>>),
}

impl<'p> Demand<'p> {
    /// Its claims, the alternatives one after the other.
    pub fn claims(&self) -> &[Claim<'p>] {
        match self {
            Demand::One(claim) => std::slice::from_ref(claim),
            Demand::AnyOf(claims) => claims,
        }
    }
}

/// Slots `first..=last`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Zone {
    /// The first slot, counted from 1.
    pub first: u32,
    /// The last slot.
    pub last: u32,
}

impl Zone {
    /// How many slots it has.
    pub(super) fn len(self) -> u32 {
        self.last - self.first + 1
    }
}

/// What a launch wants of one lock file.
#[derive(Debug)]
pub struct Claim<'p> {
    /// The repository of the policy.
    pub repository: &'p Repository,
    /// Whose file it is, one for each placeholder; empty where all share one file.
    pub member: Vec<Member>,
    /// The lock file, absolute.
    pub path: PathBuf,
    /// The directory that must exist already; what is missing between it and the file is created.
    pub base: PathBuf,
    /// Whether `base` itself may be created, because it is the caller's own.
    pub create_base: bool,
    /// How many slots may be held at once, resolved for this member; 0 drains.
    pub limit: u32,
    /// A lower limit for this launch alone.
    pub ceiling: Option<u32>,
    /// How many slots are wanted.
    pub slots: Slots,
    /// Where slots may be taken, in the order in which they are to be tried. They cover `1..=limit` where nothing is
    /// reserved, and are empty where the limit is 0.
    pub zones: Vec<Zone>,
    /// Who must own the file where others could have put it there.
    pub owner: Option<u32>,
    /// The mode of the file when it is created, exactly.
    pub create_mode: u32,
    /// The mode of directories that are created.
    pub directory_mode: u32,
    /// What a launch below a holder does.
    pub nested: Nested,
    /// Whether slots beyond the limit are taken if need be.
    pub admit_always: bool,
    /// Whether a full repository refuses the launch; otherwise it is only logged.
    pub enforce: bool,
    /// The rules behind it, the most binding first; never empty.
    pub rules: Vec<&'p Rule>,
}

impl<'p> Claim<'p> {
    /// Takes in another claim on the same file.
    pub(super) fn merge(&mut self, other: Claim<'p>) {
        // The rule that binds first is the one to be named first.
        let binds = other.effective_limit() < self.effective_limit();
        let at = if binds { 0 } else { self.rules.len() };
        self.rules.splice(at..at, other.rules);
        self.ceiling = self.ceiling.into_iter().chain(other.ceiling).min();
        self.limit = self.limit.min(other.limit);
        self.slots = self.slots.max(other.slots);
        self.admit_always |= other.admit_always;
    }

    /// The limit for this launch: what the repository allows, lowered by the ceiling.
    pub fn effective_limit(&self) -> u32 {
        self.ceiling.map_or(self.limit, |ceiling| ceiling.min(self.limit))
    }

    /// Whose file it is, for people: `ann`, `cad`, `ann ws17`. Names that cannot be found are shown as numbers.
    pub fn member_name(&self, names: &dyn Names) -> Option<String> {
        if self.member.is_empty() {
            return None;
        }
        Some(self.member.iter().map(|member| member.name(names)).collect::<Vec<_>>().join(" "))
    }
}
