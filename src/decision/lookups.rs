//! Look-ups for one decision: each name is asked for once, and after the first failure nobody is asked again. A database
//! that does not answer takes seconds each time, and the launch is refused anyway.

use std::cell::{OnceCell, RefCell};

use super::request::Request;
use crate::policy::{GroupEntry, LookupError, Principal};

pub(super) struct Lookups<'a> {
    request: &'a Request<'a>,
    user: OnceCell<Option<String>>,
    group_ids: RefCell<Vec<(String, Option<u32>)>>,
    group_names: RefCell<Vec<(u32, Option<String>)>>,
    failure: OnceCell<LookupError>,
}

impl<'a> Lookups<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Self {
        Lookups {
            request,
            user: OnceCell::new(),
            group_ids: RefCell::default(),
            group_names: RefCell::default(),
            failure: OnceCell::new(),
        }
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
    pub(super) fn user_name(&self) -> Result<Option<&str>, LookupError> {
        if self.user.get().is_none() {
            let name = self.ask(|| self.request.names.user_name(self.request.uid))?;
            self.user.get_or_init(|| name);
        }
        Ok(self.user.get().and_then(Option::as_deref))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        if let Some((_, gid)) = self.group_ids.borrow().iter().find(|(known, _)| known == name) {
            return Ok(*gid);
        }
        let gid = self.ask(|| self.request.names.group_id(name))?;
        self.group_ids.borrow_mut().push((name.to_owned(), gid));
        Ok(gid)
    }

    /// The name of a gid.
    pub(super) fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        if let Some((_, name)) = self.group_names.borrow().iter().find(|(known, _)| *known == gid) {
            return Ok(name.clone());
        }
        let name = self.ask(|| self.request.names.group_name(gid))?;
        self.group_names.borrow_mut().push((gid, name.clone()));
        Ok(name)
    }

    /// Whether the caller is one of those that an entry of `users` names.
    pub(super) fn is(&self, principal: &Principal) -> Result<bool, LookupError> {
        match principal {
            Principal::Uids(uids) => Ok(uids.contains(&self.request.uid)),
            Principal::User(pattern) if pattern.is_everything() => Ok(true),
            Principal::User(pattern) => {
                Ok(self.user_name()?.is_some_and(|name| pattern.matches(name.as_bytes())))
            }
            Principal::Group(group) => self.is_in(group),
            Principal::Netgroup(netgroup) => {
                let Some(user) = self.user_name()? else { return Ok(false) };
                let host = self.request.host.to_string_lossy();
                self.ask(|| self.request.names.in_netgroup(netgroup, &host, user))
            }
        }
    }

    /// Whether the caller is in a group that an entry of `groups` names.
    pub(super) fn is_in(&self, group: &GroupEntry) -> Result<bool, LookupError> {
        match group {
            GroupEntry::Named(pattern) if pattern.is_everything() => Ok(!self.request.gids.is_empty()),
            _ => Ok(!self.gids_of(group)?.is_empty()),
        }
    }

    /// The caller's groups that an entry of `groups` names.
    fn gids_of(&self, group: &GroupEntry) -> Result<Vec<u32>, LookupError> {
        let mine = self.request.gids;
        match group {
            GroupEntry::Gids(gids) => Ok(mine.iter().copied().filter(|gid| gids.contains(gid)).collect()),
            GroupEntry::Named(pattern) => {
                if let Some(name) = pattern.literal() {
                    return Ok(self.group_id(name)?.filter(|gid| mine.contains(gid)).into_iter().collect());
                }
                let mut gids = Vec::new();
                for gid in mine {
                    if self.group_name(*gid)?.is_some_and(|name| pattern.matches(name.as_bytes())) {
                        gids.push(*gid);
                    }
                }
                Ok(gids)
            }
        }
    }

    /// The caller's groups that any of the entries names, each once, in the order of the entries.
    pub(super) fn gids_of_any(&self, groups: &[GroupEntry]) -> Result<Vec<u32>, LookupError> {
        let mut gids = Vec::new();
        for group in groups {
            for gid in self.gids_of(group)? {
                if !gids.contains(&gid) {
                    gids.push(gid);
                }
            }
        }
        Ok(gids)
    }
}

/// Whether any entry holds. One that does settles it, whatever failed before it; otherwise a failure leaves it open.
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
