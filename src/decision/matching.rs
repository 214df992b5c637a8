//! Whether a rule matches a request. What costs nothing is judged first; names are looked up only when everything else
//! already matches.

use std::{
    cell::OnceCell,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use jiff::civil::DateTime;

use super::{
    lookups::{Lookups, any},
    request::Request,
};
use crate::policy::{
    ArgumentEntry, CommandEntry, EnvironmentEntry, EnvironmentValue, GroupEntry, Invocation, Layer,
    LookupError, Pattern, Principal, Rule, Selector, Selectors, Window,
};

/// What a rule's selectors say.
#[derive(Debug)]
pub(super) enum Judgement {
    Matches,
    No(Selector),
    /// This table of `except` matches.
    Excepted(usize),
    /// A look-up failed.
    Unknown(LookupError),
}

/// A request, taken apart once for all rules.
pub(super) struct Matcher<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) lookups: Lookups<'a>,
    layers: &'a [Layer],
    command: Invocation<'a>,
    local_times: Vec<OnceCell<DateTime>>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(request: &'a Request<'a>, layers: &'a [Layer]) -> Self {
        Matcher {
            request,
            lookups: Lookups::new(request),
            layers,
            command: Invocation::new(request.typed, request.path, request.canonical),
            local_times: layers.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    /// The command's name as typed, without what leads to it.
    pub(super) fn command_name(&self) -> &'a [u8] {
        self.command.name()
    }

    pub(super) fn judge(&self, rule: &Rule) -> Judgement {
        if let Some(selector) = self.mismatch(&rule.selectors, rule.layer) {
            return Judgement::No(selector);
        }
        let excepted = |asks_who: bool| {
            let tables =
                rule.except.iter().enumerate().filter(move |(_, table)| asks_who == asks_for_names(table));
            tables.filter(|(_, table)| self.mismatch(table, rule.layer).is_none())
        };
        // An exception that can be judged without a look-up spares those of the rule.
        if let Some((index, _)) = excepted(false).next() {
            return Judgement::Excepted(index);
        }
        let mut open = match self.stranger(&rule.selectors) {
            Ok(Some(selector)) => return Judgement::No(selector),
            Ok(None) => None,
            Err(failure) => Some(failure),
        };
        for (index, table) in excepted(true) {
            match self.stranger(table) {
                Ok(None) => return Judgement::Excepted(index),
                Ok(Some(_)) => {}
                Err(failure) => open = open.or(Some(failure)),
            }
        }
        open.map_or(Judgement::Matches, Judgement::Unknown)
    }

    /// The first selector that does not match, of those that need no look-up.
    pub(super) fn mismatch(&self, selectors: &Selectors, layer: usize) -> Option<Selector> {
        let here = self.request.directory.as_os_str().as_bytes();
        if !any_of(selectors.commands.as_ref(), |entry| self.is_command(entry)) {
            Some(Selector::Commands)
        } else if !any_of(selectors.arguments.as_ref(), |entry| self.has_arguments(entry)) {
            Some(Selector::Arguments)
        } else if !any_of(selectors.hosts.as_ref(), |entry| self.is_host(entry)) {
            Some(Selector::Hosts)
        } else if !any_of(selectors.directories.as_ref(), |entry| entry.matches(here)) {
            Some(Selector::Directories)
        } else if !selectors.environment.iter().all(|entry| self.has_variable(entry)) {
            Some(Selector::Environment)
        } else if !any_of(selectors.when.as_ref(), |window| self.is_now(window, layer)) {
            Some(Selector::When)
        } else {
            None
        }
    }

    /// The first selector that does not match, of those that ask who the caller is.
    fn stranger(&self, selectors: &Selectors) -> Result<Option<Selector>, LookupError> {
        let user = |principal: &Principal| self.lookups.is(principal);
        let group = |group: &GroupEntry| self.lookups.is_in(group);
        let users = selectors.users.as_deref().map_or(Ok(true), |users| any(users, user));
        if let Ok(false) = users {
            return Ok(Some(Selector::Users));
        }
        // A group that does not match settles it even where the users could not be looked up.
        let groups = selectors.groups.as_deref().map_or(Ok(true), |groups| any(groups, group));
        if let Ok(false) = groups {
            return Ok(Some(Selector::Groups));
        }
        users.and(groups).map(|_| None)
    }

    fn is_command(&self, entry: &CommandEntry) -> bool {
        self.command.any(entry.is_path, |value| entry.pattern.matches(value))
    }

    fn has_arguments(&self, entry: &ArgumentEntry) -> bool {
        let matches = |(pattern, argument): (&Pattern, &OsString)| pattern.matches(argument.as_bytes());
        let mut windows = self.request.arguments.windows(entry.patterns.len().max(1));
        windows.any(|consecutive| entry.patterns.iter().zip(consecutive).all(matches))
    }

    fn is_host(&self, entry: &Pattern) -> bool {
        let host = self.request.host.as_bytes();
        let label = host.split(|byte| *byte == b'.').next().unwrap_or(host);
        entry.matches(host) || entry.matches(label)
    }

    fn has_variable(&self, entry: &EnvironmentEntry) -> bool {
        let value = (self.request.environment)(&entry.variable);
        match &entry.value {
            EnvironmentValue::Unset => value.is_none(),
            EnvironmentValue::Set => value.is_some(),
            EnvironmentValue::OneOf(patterns) => {
                value.is_some_and(|value| patterns.iter().any(|pattern| pattern.matches(value.as_bytes())))
            }
        }
    }

    fn is_now(&self, window: &Window, layer: usize) -> bool {
        let Some(zone) = &self.layers[layer].zone else { return false };
        window.contains(*self.local_times[layer].get_or_init(|| zone.to_datetime(self.request.now)))
    }

    /// What of the request a rule matches, the most personal first, for people.
    pub(super) fn what_matches(&self, rule: &Rule) -> String {
        let group = |entry: &GroupEntry| {
            let gid = self.lookups.gids_of_any(std::slice::from_ref(entry)).ok()?.first().copied()?;
            let name = self.lookups.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
            Some(format!("your group \"{name}\""))
        };
        let user = |principal: &Principal| match principal {
            Principal::Group(entry) => group(entry),
            principal if !self.lookups.is(principal).unwrap_or(false) => None,
            Principal::User(_) => self.lookups.user_name().ok()?.map(|name| format!("user \"{name}\"")),
            Principal::Uids(_) => Some(format!("uid {}", self.request.uid)),
            Principal::Netgroup(netgroup) => Some(format!("netgroup \"{netgroup}\"")),
        };
        let groups = rule.selectors.groups.iter().flatten().find_map(group);
        groups.or_else(|| rule.selectors.users.iter().flatten().find_map(user)).unwrap_or_else(|| {
            let name = OsStr::from_bytes(self.command_name()).to_string_lossy();
            format!("command \"{name}\"")
        })
    }
}

/// Whether any entry of a selector matches; one that is missing matches everything.
fn any_of<T>(entries: Option<&Vec<T>>, matches: impl Fn(&T) -> bool) -> bool {
    entries.is_none_or(|entries| entries.iter().any(matches))
}

fn asks_for_names(selectors: &Selectors) -> bool {
    selectors.users.is_some() || selectors.groups.is_some()
}
