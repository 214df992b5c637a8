//! A repository as it was validated: a lock file, or a family of lock files, whose bytes are slots. Which file a launch
//! uses depends on the request and is worked out with the decision.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    choice::Choice,
    hold::Hold,
    limit::Limit,
    pattern::Pattern,
    place::Place,
    principal::Principal,
    span_of_time::Wait,
    template::{PathTemplate, Placeholder},
};

/// What a launch below a holder of the same repository does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Nested {
    /// It uses the ancestor's slot, when that was taken for the same command.
    #[default]
    Join,
    /// It takes a slot of its own.
    Take,
}

impl Choice for Nested {
    const WORDS: &'static [(&'static str, Self)] = &[("join", Nested::Join), ("take", Nested::Take)];
}

/// For whom or what a repository has a file each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Per {
    User,
    Group,
    Host,
    Command,
    Directory,
}

impl Choice for Per {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("user", Per::User),
        ("group", Per::Group),
        ("host", Per::Host),
        ("command", Per::Command),
        ("directory", Per::Directory),
    ];
}

/// Which groups are charged where a repository has a file for each group, and the caller is in several of the rule's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Charge {
    /// All of them.
    #[default]
    All,
    /// The first, in the order of the rule's `groups`.
    First,
    /// The first that has room.
    Any,
}

impl Choice for Charge {
    const WORDS: &'static [(&'static str, Self)] =
        &[("all", Charge::All), ("first", Charge::First), ("any", Charge::Any)];
}

/// What `if_elapsed` counts from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ElapsedFrom {
    /// The last start.
    #[default]
    Start,
    /// The last end.
    End,
}

impl Choice for ElapsedFrom {
    const WORDS: &'static [(&'static str, Self)] =
        &[("start", ElapsedFrom::Start), ("end", ElapsedFrom::End)];
}

/// What becomes of a start that comes too soon.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TooSoon {
    /// It is refused.
    #[default]
    Refuse,
    /// Nothing is started, silently and with success.
    Ok,
}

impl Choice for TooSoon {
    const WORDS: &'static [(&'static str, Self)] = &[("refuse", TooSoon::Refuse), ("ok", TooSoon::Ok)];
}

/// What is ended when a holder is overdue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ExpireKill {
    /// The holder.
    #[default]
    Process,
    /// Its process group.
    Group,
}

impl Choice for ExpireKill {
    const WORDS: &'static [(&'static str, Self)] =
        &[("process", ExpireKill::Process), ("group", ExpireKill::Group)];
}

/// The time between the signals that end an overdue holder, where the policy says nothing.
pub const EXPIRE_GRACE: Duration = Duration::from_secs(5);

/// When a repository may be used again, and how long one may keep it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pace {
    /// Not again within this time.
    pub if_elapsed: Option<Duration>,
    /// What that counts from.
    pub if_elapsed_from: ElapsedFrom,
    /// What becomes of a start that comes too soon.
    pub too_soon: TooSoon,
    /// A holder older than this is ended when the next launch wants its slot.
    pub expire_after: Option<Duration>,
    /// The time between the signals that end it; [`EXPIRE_GRACE`] where the policy says nothing.
    pub expire_grace: Option<Duration>,
    /// What is ended.
    pub expire_kill: ExpireKill,
}

impl Pace {
    /// Whether the end of a program must be known.
    pub(super) fn counts_from_end(&self) -> bool {
        self.if_elapsed_from == ElapsedFrom::End
    }
}

/// Slots that are kept for some.
#[derive(Debug)]
pub struct Reservation {
    pub(crate) principals: Vec<Principal>,
    /// How many slots are kept.
    pub slots: u32,
    /// How many of them, the last ones, others may use while they are idle.
    pub lend: u32,
    /// For whom, as the policy writes it.
    pub shown: String,
}

/// A member's own limit.
#[derive(Debug)]
pub(crate) struct MemberLimit {
    pub(crate) member: Pattern,
    pub(crate) limit: Limit,
}

/// One `[repository.NAME]`.
#[derive(Debug)]
pub struct Repository {
    pub(super) name: String,
    pub(super) shown_name: String,
    pub(super) place: Place,
    pub(crate) layer: usize,
    pub(crate) path: PathTemplate,
    pub(super) limit: Limit,
    pub(crate) limits: Vec<MemberLimit>,
    pub(crate) charge: Option<Charge>,
    pub(super) reservations: Vec<Reservation>,
    pub(super) nested: Nested,
    pub(super) pace: Pace,
    pub(crate) enforce: Option<bool>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
}

impl Repository {
    /// The name as the file says it: letters, digits, `.`, `_` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name to show: with the file's where two files use it.
    pub fn shown_name(&self) -> &str {
        &self.shown_name
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How many slots may be held, save for members with a limit of their own.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// The slots that are kept for some, from slot 1 up.
    pub fn reservations(&self) -> &[Reservation] {
        &self.reservations
    }

    /// The slots that nobody may use but the members of a reservation, each stretch with those for whom it is kept.
    pub fn kept(&self) -> Vec<(RangeInclusive<u32>, &str)> {
        let mut kept = Vec::new();
        let mut next = 1;
        for reservation in &self.reservations {
            let slots = next..=next + (reservation.slots - reservation.lend) - 1;
            next += reservation.slots;
            if !slots.is_empty() {
                kept.push((slots, reservation.shown.as_str()));
            }
        }
        kept
    }

    /// What a launch below a holder does.
    pub fn nested(&self) -> Nested {
        self.nested
    }

    /// Too soon and too late.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The file, where it is the same for every launch: where its path has no placeholder.
    pub fn fixed_path(&self, runtime: &Path) -> Option<PathBuf> {
        self.path.fixed(runtime)
    }

    /// Whether its file depends on a group.
    pub(crate) fn is_by_group(&self) -> bool {
        self.path
            .placeholders()
            .any(|placeholder| matches!(placeholder, Placeholder::Group | Placeholder::Gid))
    }

    /// The highest limit that any member has, where it is the same on every machine.
    pub(super) fn highest_fixed_limit(&self) -> Option<u32> {
        let limits = self.limits.iter().map(|member| member.limit).chain([self.limit]);
        limits.map(Limit::fixed).try_fold(0, |highest, limit| limit.map(|limit| limit.max(highest)))
    }

    /// Whether another one treats its file in the same way.
    pub(super) fn has_same_settings(&self, other: &Repository) -> bool {
        let limits = |repository: &Repository| -> Vec<(String, Limit)> {
            let limits = repository.limits.iter();
            limits.map(|limit| (limit.member.text().to_owned(), limit.limit)).collect()
        };
        let reservations = |repository: &Repository| -> Vec<(String, u32, u32)> {
            let reservations = repository.reservations.iter();
            reservations.map(|kept| (kept.shown.clone(), kept.slots, kept.lend)).collect()
        };
        let rest = |repository: &Repository| {
            (
                repository.limit,
                repository.nested,
                repository.pace,
                repository.enforce,
                repository.wait,
                repository.hold,
            )
        };
        rest(self) == rest(other)
            && self.charge == other.charge
            && limits(self) == limits(other)
            && reservations(self) == reservations(other)
    }
}
