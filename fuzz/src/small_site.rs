//! Databases for requests that were made up: a few users and groups by number, and failure for one group,
//! because a look-up that fails must never turn into "no limit".

use rungate::judge::terms::claim::{LookupError, Names};

/// The name service of a small site.
pub struct SmallSite;

/// The first user and the first group have this number, the next ones the next.
pub const FIRST: u32 = 2000;

const USERS: [&str; 4] = ["ann", "bob", "../root", "tutor1"];

const GROUPS: [&str; 4] = ["cad", "sim", "students", "a\nb"];

/// The group that cannot be looked up.
pub const FAILING: &str = "broken";

fn named(names: &[&str], number: u32) -> Option<String> {
    names.get(usize::try_from(number.checked_sub(FIRST)?).ok()?).map(|name| (*name).to_owned())
}

fn numbered(names: &[&str], name: &str) -> Option<u32> {
    (FIRST..).zip(names).find(|(_, known)| **known == name).map(|(number, _)| number)
}

impl Names for SmallSite {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        Ok(named(&USERS, uid))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(numbered(&USERS, name))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        if name == FAILING {
            let call = format!("getgrnam(\"{name}\")");
            return Err(LookupError { call, error: "Connection timed out".to_owned() });
        }
        Ok(numbered(&GROUPS, name))
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        Ok(named(&GROUPS, gid))
    }

    fn in_netgroup(&self, netgroup: &str, _: &str, user: &str) -> Result<bool, LookupError> {
        Ok(netgroup == "lab" && user == "ann")
    }
}
