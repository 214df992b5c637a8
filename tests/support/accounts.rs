//! The users that tests become: those that every Debian has, and only where the tests run as root.

use std::io::Write;
use std::thread;

use nix::unistd::{Group, User, geteuid};

/// Whether this process can start others under any user id.
pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// Says on the real standard error, which the test runner does not capture, that the current test shows
/// nothing here.
pub(crate) fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("SKIPPED {}: {reason}\n", thread.name().unwrap_or("a test"));
    // A test runner without standard error has nobody to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// One account of the system's user database.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The account of that name. The names that tests use are in Debian's base-passwd, so one that is missing
    /// is a fault of the test.
    #[track_caller]
    pub(crate) fn named(name: &str) -> Self {
        let found = User::from_name(name).expect("the user database answers");
        let user = found.unwrap_or_else(|| panic!("there is no user {name:?} on this machine"));
        Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }
    }

    /// The account that runs the tests.
    pub(crate) fn own() -> Self {
        let found = User::from_uid(geteuid()).expect("the user database answers");
        let user = found.expect("the user that runs the tests has a name");
        Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }
    }

    /// The number of a group of Debian's base-passwd.
    #[track_caller]
    pub(crate) fn group_id(name: &str) -> u32 {
        let found = Group::from_name(name).expect("the group database answers");
        found.unwrap_or_else(|| panic!("there is no group {name:?} on this machine")).gid.as_raw()
    }
}
