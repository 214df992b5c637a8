//! Those who appear in a test: one user with their groups at a time, and no database but what the test says
//! of them.

use std::collections::HashMap;

use crate::{
    policy::Person,
    terms::names::{LookupError, Names},
};

/// A user and the groups around them. Groups get numbers that no rule is likely to name.
pub(super) struct Cast<'p> {
    person: &'p Person,
    groups: HashMap<&'p str, u32>,
}

/// Far above the groups of people and below those of containers.
const FIRST_GID: u32 = 3_000_000_000;

impl<'p> Cast<'p> {
    pub(super) fn new(person: &'p Person) -> Self {
        let number = |(gid, name): (u32, &'p String)| (name.as_str(), name.parse().unwrap_or(gid));
        Cast { person, groups: (FIRST_GID..).zip(&person.groups).map(number).collect() }
    }

    pub(super) fn uid(&self) -> u32 {
        self.person.uid
    }

    pub(super) fn gids(&self) -> Vec<u32> {
        self.person.groups.iter().filter_map(|name| self.groups.get(name.as_str()).copied()).collect()
    }
}

impl Names for Cast<'_> {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        Ok(Some(self.person.user.clone()).filter(|_| uid == self.person.uid))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(Some(self.person.uid).filter(|_| name == self.person.user))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(self.groups.get(name).copied())
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        let named = self.groups.iter().find(|(name, known)| **known == gid && name.parse::<u32>().is_err());
        Ok(named.map(|(name, _)| (*name).to_owned()))
    }

    fn in_netgroup(&self, netgroup: &str, _host: &str, _user: &str) -> Result<bool, LookupError> {
        Ok(self.person.netgroups.iter().any(|known| known == netgroup))
    }
}
