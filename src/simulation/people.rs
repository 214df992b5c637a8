//! Who the users and groups of a log are: asked once for each name, of the name service or of files that were
//! brought along from another machine.

use std::{cell::RefCell, collections::HashMap};

use crate::terms::names::{LookupError, Names};

/// The database of the accounts.
pub trait Accounts: Names {
    /// The groups of a user of whom the log says nothing.
    fn groups_of(&self, uid: u32) -> Vec<u32>;
}

/// Remembers every answer.
pub struct Remembered<'a> {
    accounts: &'a dyn Accounts,
    user_names: RefCell<HashMap<u32, Result<Option<String>, LookupError>>>,
    user_ids: RefCell<HashMap<String, Result<Option<u32>, LookupError>>>,
    group_ids: RefCell<HashMap<String, Result<Option<u32>, LookupError>>>,
    group_names: RefCell<HashMap<u32, Result<Option<String>, LookupError>>>,
    groups: RefCell<HashMap<u32, Vec<u32>>>,
}

impl<'a> Remembered<'a> {
    /// Of a database.
    pub fn new(accounts: &'a dyn Accounts) -> Self {
        Self {
            accounts,
            user_names: RefCell::default(),
            user_ids: RefCell::default(),
            group_ids: RefCell::default(),
            group_names: RefCell::default(),
            groups: RefCell::default(),
        }
    }

    /// The groups of a user.
    pub fn groups_of(&self, uid: u32) -> Vec<u32> {
        self.groups.borrow_mut().entry(uid).or_insert_with(|| self.accounts.groups_of(uid)).clone()
    }
}

impl Names for Remembered<'_> {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        let mut known = self.user_names.borrow_mut();
        known.entry(uid).or_insert_with(|| self.accounts.user_name(uid)).clone()
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        let mut known = self.user_ids.borrow_mut();
        known.entry(name.to_owned()).or_insert_with(|| self.accounts.user_id(name)).clone()
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        let mut known = self.group_ids.borrow_mut();
        known.entry(name.to_owned()).or_insert_with(|| self.accounts.group_id(name)).clone()
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        let mut known = self.group_names.borrow_mut();
        known.entry(gid).or_insert_with(|| self.accounts.group_name(gid)).clone()
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        self.accounts.in_netgroup(netgroup, host, user)
    }
}
