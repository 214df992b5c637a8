//! A double of the system's databases, with a few users and groups.

use std::cell::RefCell;

use crate::judge::terms::{LookupError, Names};

pub(super) const USERS: &[(u32, &str)] =
    &[(0, "root"), (4711, "ann"), (4712, "bob"), (4713, "stu07"), (4714, "tutor1")];
pub(super) const GROUPS: &[(u32, &str)] =
    &[(0, "root"), (100, "users"), (201, "cad"), (202, "sim"), (203, "students"), (204, "contractors")];

/// The databases of the site; what is asked is remembered, and what is named in `broken` fails.
#[derive(Default)]
pub(super) struct Databases {
    pub(super) broken: Vec<String>,
    pub(super) asked: RefCell<Vec<String>>,
}

impl Databases {
    fn ask(&self, call: String) -> Result<(), LookupError> {
        self.asked.borrow_mut().push(call.clone());
        if self.broken.contains(&call) {
            return Err(LookupError { call, error: "Connection timed out".into() });
        }
        Ok(())
    }
}

impl Names for Databases {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        self.ask(format!("getpwuid({uid})"))?;
        Ok(USERS.iter().find(|(known, _)| *known == uid).map(|(_, name)| (*name).to_owned()))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        self.ask(format!("getpwnam(\"{name}\")"))?;
        Ok(USERS.iter().find(|(_, known)| *known == name).map(|(uid, _)| *uid))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        self.ask(format!("getgrnam(\"{name}\")"))?;
        Ok(GROUPS.iter().find(|(_, known)| *known == name).map(|(gid, _)| *gid))
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        self.ask(format!("getgrgid({gid})"))?;
        Ok(GROUPS.iter().find(|(known, _)| *known == gid).map(|(_, name)| (*name).to_owned()))
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        self.ask(format!("innetgr(\"{netgroup}\", \"{host}\", \"{user}\")"))?;
        let hosts = [("lab", "ws17.example"), ("rack", "ws17")];
        Ok(hosts.contains(&(netgroup, host)) && user == "ann")
    }
}
