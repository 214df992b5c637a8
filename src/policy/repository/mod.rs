//! A validated repository: a lock file, or a family of lock files, whose bytes are slots. The decision works
//! out which file a launch uses.

pub(super) mod keeping;
pub(super) mod limits;
pub(super) mod names;
pub(crate) mod outside;
pub(super) mod pace;
pub(super) mod reservation;
pub(super) mod settings;
pub(super) mod sharing;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub(super) use self::limits::Whom;
use self::{
    keeping::Keeping,
    limits::LIMITS,
    names::SlotNames,
    outside::{Measuring, OUTSIDE},
    reservation::RESERVE,
    settings::Settings,
    sharing::Sharing,
};
pub(crate) use self::{
    limits::{FileOf, OtherLimit},
    reservation::Standing,
};
pub use self::{reservation::Reservation, settings::Charge};
use super::{Keys, Limit, PathTemplate, Per, Placeholder, Shape, Together, key::key, selector::Window};
use crate::judge::terms::{Keeper, Keyword, Nested, Pace, Place, Queue};

pub(super) static REPOSITORY: Keys = Keys {
    what: "a repository",
    groups: &[
        &[
            key(
                "path",
                Shape::Text,
                "The lock file, with placeholders; default: NAME.lock.",
                "Lock files that another program uses too, such as exectimes.",
            ),
            key(
                "per",
                Shape::Per(Per::words),
                "One lock file for each user, group, host, command, directory, or captured value.",
                "Sites with a number for each user, group or project.",
            )
            .filled(),
            key(
                "limit",
                Shape::Limit,
                "How many slots may be in use at once; 0 drains. Default: the number of names.",
                "Every repository.",
            ),
            key(
                "limits",
                Shape::Limits(&LIMITS),
                "Other limits for some members of `per`, or at some hours.",
                "Fewer for students, more at night.",
            ),
            key(
                "reserve",
                Shape::Tables(&RESERVE),
                "Slots that are kept for some users or hosts.",
                "A department that paid for two of the ten seats.",
            ),
            key(
                "names",
                Shape::Texts,
                "Names of the slots. The program finds its own in RUNGATE_NAME_ and the name of the repository.",
                "GPUs, ports, scratch disks: when the program must know which one it has.",
            )
            .filled(),
            key(
                "out_of_order",
                Shape::TextsOrTextsByName,
                "Names of slots that no launch gets, everywhere or by host.",
                "A broken GPU.",
            ),
            key(
                "outside",
                Shape::Table(&OUTSIDE),
                "How use is measured that rungate did not start, and that takes room.",
                "Licences that other clients use too, GPUs that others log in to.",
            ),
        ],
        sharing::KEYS,
        settings::KEYS,
        keeping::KEYS,
        pace::KEYS,
    ],
    together: &[
        Together::Some("limit", "names"),
        Together::Needs("out_of_order", "names"),
        Together::Needs("if_elapsed_from", "if_elapsed"),
        Together::Needs("too_soon", "if_elapsed"),
        Together::Needs("expire_grace", "expire_after"),
        Together::Needs("expire_kill", "expire_after"),
        Together::Either("path", "per"),
    ],
};

/// One `[repository.NAME]`.
#[derive(Debug)]
pub struct Repository {
    pub(super) name: String,
    pub(crate) shown_name: Arc<str>,
    pub(super) place: Place,
    pub(crate) layer: usize,
    pub(crate) path: PathTemplate,
    pub(super) limit: Limit,
    pub(crate) limits: Vec<OtherLimit>,
    pub(super) reservations: Vec<Reservation>,
    pub(crate) names: SlotNames,
    pub(crate) outside: Option<Measuring>,
    pub(crate) settings: Settings,
    pub(crate) keeping: Keeping,
    pub(super) pace: Pace,
    pub(crate) sharing: Sharing,
}

impl Repository {
    /// The name as the file says it: letters, digits, `.`, `_` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name to show: with the file's if two files use it.
    pub fn shown_name(&self) -> &str {
        &self.shown_name
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How many slots may be held, except for members and hours with a limit of their own.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// The slots that are kept for some, from slot 1 up.
    pub fn reservations(&self) -> &[Reservation] {
        &self.reservations
    }

    /// The time windows of its limits and reservations.
    pub(super) fn times(&self) -> impl Iterator<Item = &[Window]> {
        let limits = self.limits.iter().map(|other| other.when.as_slice());
        limits.chain(self.reservations.iter().map(|reservation| reservation.when.as_slice()))
    }

    /// What keeps its slots: lock files, the agent, or the site.
    pub fn keeper(&self) -> Keeper {
        self.keeping.keeper
    }

    /// What a launch does that a holder of the repository started.
    pub fn nested(&self) -> Nested {
        self.settings.nested
    }

    /// The maximum of its queue.
    pub fn queue(&self) -> Queue {
        self.settings.queue
    }

    /// Its pause and expiry.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The file, if it is the same for every launch: its path has no placeholder.
    pub fn fixed_path(&self, runtime: &Path) -> Option<PathBuf> {
        self.path.fixed(runtime)
    }

    /// Whether its file depends on a group.
    pub(crate) fn is_by_group(&self) -> bool {
        self.path
            .placeholders()
            .any(|placeholder| matches!(placeholder, Placeholder::Group | Placeholder::Gid))
    }

    /// Whether each of its files is for one user alone.
    pub(crate) fn is_by_user(&self) -> bool {
        self.path
            .placeholders()
            .any(|placeholder| matches!(placeholder, Placeholder::User | Placeholder::Uid))
    }

    /// The highest limit that any member has, if it is the same on every machine.
    pub(super) fn highest_fixed_limit(&self) -> Option<u32> {
        let limits = self.all_limits();
        limits.map(Limit::fixed).try_fold(0, |highest, limit| limit.map(|limit| limit.max(highest)))
    }

    /// The limits of its members and hours, and that of all others.
    pub(super) fn all_limits(&self) -> impl Iterator<Item = Limit> {
        self.limits.iter().map(|other| other.limit).chain([self.limit])
    }

    /// Whether another one treats its file in the same way.
    pub(super) fn has_same_settings(&self, other: &Repository) -> bool {
        // Its name and its place do not affect its file.
        let Repository {
            name: _,
            shown_name: _,
            place: _,
            layer: _,
            path: _,
            limit,
            limits,
            reservations,
            names,
            outside,
            settings,
            keeping,
            pace,
            sharing,
        } = self;
        *limit == other.limit
            && *limits == other.limits
            && *reservations == other.reservations
            && *names == other.names
            && *outside == other.outside
            && *settings == other.settings
            && *keeping == other.keeping
            && *pace == other.pace
            && *sharing == other.sharing
    }
}
