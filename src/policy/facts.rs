//! What selectors ask of a request: taken apart, looked up and worked out once for all rules.

use std::{
    cell::{Cell, OnceCell},
    ffi::OsString,
};

use jiff::{civil::DateTime, tz::TimeZone};

use super::{invocation::Invocation, lookups::Lookups, request::Request};

/// One request.
pub(crate) struct Facts<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) lookups: Lookups<'a>,
    pub(super) command: Invocation<'a>,
    effort: Effort,
    local_times: Vec<LocalTime<'a>>,
}

/// What may be compared yet.
struct Effort {
    /// None once it was too much.
    left: Cell<Option<u64>>,
    /// What it takes to compare one pattern with all arguments.
    arguments: OnceCell<u64>,
}

/// The time in the zone of a layer, worked out when it is asked for.
struct LocalTime<'a> {
    zone: Option<&'a TimeZone>,
    time: OnceCell<DateTime>,
}

impl<'a> Facts<'a> {
    /// With the zone of each layer that has one.
    pub(super) fn new(
        request: &'a Request<'a>,
        zones: impl IntoIterator<Item = Option<&'a TimeZone>>,
    ) -> Self {
        Facts {
            request,
            lookups: Lookups::new(request),
            command: Invocation::new(request.typed, request.path, request.canonical),
            effort: Effort { left: Cell::new(Some(u64::MAX)), arguments: OnceCell::new() },
            local_times: zones.into_iter().map(|zone| LocalTime { zone, time: OnceCell::new() }).collect(),
        }
    }

    /// The same for a caller that must not compare more than this: one pattern with 32 bytes is one.
    pub(crate) fn within(mut self, most: u64) -> Self {
        self.effort.left = Cell::new(Some(most));
        self
    }

    /// The cost of comparing this number of patterns with all arguments.
    pub(crate) fn effort_of(&self, patterns: usize) -> u64 {
        let of_argument = |argument: &OsString| 1 + argument.len() as u64 / 32;
        let of_all = || self.request.arguments.iter().map(of_argument).sum();
        (patterns as u64).saturating_mul(*self.effort.arguments.get_or_init(of_all))
    }

    /// Whether that may still be done; from now on it is.
    pub(super) fn spend(&self, effort: u64) -> bool {
        let left = self.effort.left.get().and_then(|left| left.checked_sub(effort));
        self.effort.left.set(left);
        left.is_some()
    }

    /// Whether more should have been compared than may be.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.effort.left.get().is_none()
    }

    /// The command's name as typed, without what leads to it.
    pub(crate) fn command_name(&self) -> &'a [u8] {
        self.command.name()
    }

    /// The time in the zone of a layer, where one of its rules asks for the time.
    pub(super) fn local_time(&self, layer: usize) -> Option<DateTime> {
        let LocalTime { zone, time } = &self.local_times[layer];
        let zone = (*zone)?;
        Some(*time.get_or_init(|| zone.to_datetime(self.request.now)))
    }
}
