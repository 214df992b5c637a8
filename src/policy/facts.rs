//! What selectors ask of a request: taken apart, looked up and worked out once for all rules.

use std::cell::OnceCell;

use jiff::{civil::DateTime, tz::TimeZone};

use super::{invocation::Invocation, lookups::Lookups, request::Request};

/// One request.
pub(crate) struct Facts<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) lookups: Lookups<'a>,
    pub(super) command: Invocation<'a>,
    local_times: Vec<LocalTime<'a>>,
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
            local_times: zones.into_iter().map(|zone| LocalTime { zone, time: OnceCell::new() }).collect(),
        }
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
