//! The facts of a request that selectors need: parsed, looked up and computed once for all rules.

use std::{
    cell::{Cell, OnceCell, RefCell},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::judge::terms::{LookupError, Names};

/// One request.
pub(crate) struct EvalContext<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) lookups: Lookups<'a>,
    pub(super) command: Invocation<'a>,
    effort: Effort,
    local_times: Vec<LocalTime<'a>>,
}

/// The remaining number of comparisons.
struct Effort {
    /// None after it was exceeded.
    left: Cell<Option<u64>>,
    /// The cost of comparing one pattern with all arguments.
    arguments: OnceCell<u64>,
}

/// The time in the zone of a layer, computed on request.
struct LocalTime<'a> {
    zone: Option<&'a TimeZone>,
    time: OnceCell<DateTime>,
}

impl<'a> EvalContext<'a> {
    /// With the zone of each layer that has one.
    pub(super) fn new(
        request: &'a Request<'a>,
        zones: impl IntoIterator<Item = Option<&'a TimeZone>>,
    ) -> Self {
        EvalContext {
            request,
            lookups: Lookups::new(request),
            command: Invocation::new(request.typed, request.path, request.canonical),
            effort: Effort { left: Cell::new(Some(u64::MAX)), arguments: OnceCell::new() },
            local_times: zones.into_iter().map(|zone| LocalTime { zone, time: OnceCell::new() }).collect(),
        }
    }

    /// The same for a caller with a maximum of comparisons; comparing one pattern with 32 bytes counts as
    /// one.
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

    /// Whether that is still allowed; if so, it counts as done.
    pub(super) fn spend(&self, effort: u64) -> bool {
        let left = self.effort.left.get().and_then(|left| left.checked_sub(effort));
        self.effort.left.set(left);
        left.is_some()
    }

    /// Whether the maximum was exceeded.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.effort.left.get().is_none()
    }

    /// The command's name as typed, without its directory.
    pub(crate) fn command_name(&self) -> &'a [u8] {
        self.command.name()
    }

    /// The time in the zone of a layer, where one of its rules uses the time.
    pub(super) fn local_time(&self, layer: usize) -> Option<DateTime> {
        let LocalTime { zone, time } = &self.local_times[layer];
        let zone = (*zone)?;
        Some(*time.get_or_init(|| zone.to_datetime(self.request.now)))
    }
}

// Look-ups for one decision: each name is looked up once, and after the first failure there are no more
// look-ups. A database that does not answer takes seconds each time, and the launch is refused anyway.

pub(crate) struct Lookups<'a> {
    request: &'a Request<'a>,
    user: OnceCell<Option<String>>,
    group_ids: RefCell<Vec<(String, Option<u32>)>>,
    group_names: RefCell<Vec<(u32, Option<String>)>>,
    netgroups: RefCell<Vec<(String, bool)>>,
    failure: OnceCell<LookupError>,
}

impl<'a> Lookups<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Self {
        Lookups {
            request,
            user: OnceCell::new(),
            group_ids: RefCell::default(),
            group_names: RefCell::default(),
            netgroups: RefCell::default(),
            failure: OnceCell::new(),
        }
    }

    /// Whether the caller is in a netgroup on this host: by its name in full, or up to the first dot.
    pub(super) fn is_in_netgroup(&self, netgroup: &str) -> Result<bool, LookupError> {
        if let Some((_, is_in)) = self.netgroups.borrow().iter().find(|(known, _)| known == netgroup) {
            return Ok(*is_in);
        }
        let Some(user) = self.user_name()? else { return Ok(false) };
        let host = self.request.host.to_string_lossy();
        let is_in = |host: &str| self.ask(|| self.request.names.in_netgroup(netgroup, host, user));
        let is_in = match host.split_once('.') {
            Some((label, _)) => is_in(&host)? || is_in(label)?,
            None => is_in(&host)?,
        };
        self.netgroups.borrow_mut().push((netgroup.to_owned(), is_in));
        Ok(is_in)
    }

    fn ask<T>(&self, ask: impl FnOnce() -> Result<T, LookupError>) -> Result<T, LookupError> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        ask().inspect_err(|failure| {
            self.failure.get_or_init(|| failure.clone());
        })
    }

    /// The name of the caller's uid.
    pub(crate) fn user_name(&self) -> Result<Option<&str>, LookupError> {
        if self.user.get().is_none() {
            let name = self.ask(|| self.request.names.user_name(self.request.uid))?;
            self.user.get_or_init(|| name);
        }
        Ok(self.user.get().and_then(Option::as_deref))
    }

    /// The gid of a group's name.
    pub(super) fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        if let Some((_, gid)) = self.group_ids.borrow().iter().find(|(known, _)| known == name) {
            return Ok(*gid);
        }
        let gid = self.ask(|| self.request.names.group_id(name))?;
        self.group_ids.borrow_mut().push((name.to_owned(), gid));
        Ok(gid)
    }

    pub(crate) fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        if let Some((_, name)) = self.group_names.borrow().iter().find(|(known, _)| *known == gid) {
            return Ok(name.clone());
        }
        let name = self.ask(|| self.request.names.group_name(gid))?;
        self.group_names.borrow_mut().push((gid, name.clone()));
        Ok(name)
    }
}

/// Whether any entry matches. A matching entry decides, even if an earlier look-up failed; otherwise a
/// failure leaves the result open.
pub(super) fn any<T>(
    entries: &[T],
    holds: impl Fn(&T) -> Result<bool, LookupError>,
) -> Result<bool, LookupError> {
    let mut open = Ok(false);
    for entry in entries {
        match holds(entry) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(failure) => open = open.and(Err(failure)),
        }
    }
    open
}

// A command as the entries of `commands` see it: by its names, and by the paths of its program.

/// The names and paths of one command.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The last components: as typed, and of the canonical path.
    names: [&'a [u8]; 2],
    /// The path that would be executed, and the canonical one.
    paths: [&'a [u8]; 2],
}

impl<'a> Invocation<'a> {
    /// The command as typed, with the two absolute paths of its program.
    pub fn new(typed: &'a OsStr, path: &'a Path, canonical: &'a Path) -> Self {
        let paths = [path, canonical].map(|path| path.as_os_str().as_bytes());
        Invocation { names: [last_component(typed.as_bytes()), last_component(paths[1])], paths }
    }

    /// Its name as typed, without its directory.
    pub(crate) fn name(&self) -> &'a [u8] {
        self.names[0]
    }

    /// Whether any of its paths, or of its names, is what `matches` looks for.
    pub(crate) fn any(&self, is_path: bool, matches: impl Fn(&[u8]) -> bool) -> bool {
        let [first, second] = if is_path { self.paths } else { self.names };
        matches(first) || (second != first && matches(second))
    }
}

fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

// A request: all facts about one launch that a policy can use. Plain values, and closures for facts that are
// expensive and rarely needed.

/// One launch, as the evaluator sees it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The command as typed, or as `--as` names it.
    pub typed: &'a OsStr,
    /// Its arguments, without the command.
    pub arguments: &'a [OsString],
    /// The absolute path that would be executed.
    pub path: &'a Path,
    /// The same with every link resolved.
    pub canonical: &'a Path,
    /// The caller's real uid.
    pub uid: u32,
    /// The real gid and the supplementary gids, as the kernel has them.
    pub gids: &'a [u32],
    /// The node name.
    pub host: &'a OsStr,
    /// The working directory.
    pub directory: &'a Path,
    /// Reads the environment.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    /// The time for `when`.
    pub now: Timestamp,
    /// How many processors are online.
    pub cpus: &'a dyn Fn() -> u32,
    /// The directory that `{runtime}` means.
    pub runtime: &'a Path,
    /// Look-ups of users and groups.
    pub names: &'a dyn Names,
}
// The inputs that a policy uses. Launches that differ only in other inputs are equal for it.

/// The facts of a launch that can matter, beside its command, its caller and the time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RelevantInputs {
    /// Where it is started.
    pub directories: bool,
    pub arguments: bool,
    pub environment: bool,
    /// The machine.
    pub hosts: bool,
}

impl RelevantInputs {
    pub(super) const NONE: Self =
        Self { directories: false, arguments: false, environment: false, hosts: false };
    pub(super) const DIRECTORIES: Self = Self { directories: true, ..Self::NONE };
    pub(super) const ARGUMENTS: Self = Self { arguments: true, ..Self::NONE };
    pub(super) const ENVIRONMENT: Self = Self { environment: true, ..Self::NONE };
    pub(super) const HOSTS: Self = Self { hosts: true, ..Self::NONE };

    /// The union of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            directories: self.directories || other.directories,
            arguments: self.arguments || other.arguments,
            environment: self.environment || other.environment,
            hosts: self.hosts || other.hosts,
        }
    }
}
