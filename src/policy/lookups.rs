//! Look-ups for one decision: each name is asked for once, and after the first failure nobody is asked again.
//! A database that does not answer takes seconds each time, and the launch is refused anyway.

use std::cell::{OnceCell, RefCell};

use super::{names::LookupError, request::Request};

pub(crate) struct Lookups<'a> {
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

    /// Whether the caller is in a netgroup on this host.
    pub(super) fn is_in_netgroup(&self, netgroup: &str) -> Result<bool, LookupError> {
        let Some(user) = self.user_name()? else { return Ok(false) };
        let host = self.request.host.to_string_lossy();
        self.ask(|| self.request.names.in_netgroup(netgroup, &host, user))
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

/// Whether any entry holds. One that does settles it, whatever failed before it; otherwise a failure leaves
/// it open.
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
