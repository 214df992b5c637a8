//! Users and groups in the databases of the system. Absence and failure differ here, because a rule about a
//! group that cannot be looked up must refuse the launch. The C library returns 0 if it queried every
//! database and none has the entry. It returns an error number (also `ENOENT`, if a database is gone) if it
//! could not query one.

use std::{
    cell::RefCell,
    collections::HashMap,
    error::Error,
    ffi::{CString, OsString},
    fmt, fs,
};

use super::{failure::errno_of, unsafe_calls};
use crate::text::Show;
use nix::{
    errno::Errno,
    unistd::{
        Gid, Group, SysconfVar, Uid, User, geteuid, getgid, getgrouplist, gethostname, getresgid, getresuid,
        getuid, sysconf,
    },
};
use rustix::process::getgroups;

/// An entry of the user database.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    /// The group that the user logs in with.
    pub(crate) gid: u32,
}

/// A look-up that failed. An empty result is not an error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LookupFailure {
    /// The call with its argument: `getgrnam("students")`.
    pub(crate) call: String,
    pub(crate) errno: Errno,
}

impl fmt::Display for LookupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.errno.desc())
    }
}

impl Error for LookupFailure {}

fn failed(call: &'static str, argument: impl fmt::Display) -> impl FnOnce(Errno) -> LookupFailure {
    move |errno| LookupFailure { call: format!("{call}({argument})"), errno }
}

/// A name as an argument in a message: in quotes, control characters escaped.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.shown())
}
pub(crate) fn account_of_uid(uid: u32) -> Result<Option<Account>, LookupFailure> {
    OwnDatabase::Passwd
        .find(Key::Id(uid), || User::from_uid(Uid::from_raw(uid)))
        .map(|user| user.map(Account::from))
        .map_err(failed("getpwuid", uid))
}
pub(crate) fn account_of_name(name: &str) -> Result<Option<Account>, LookupFailure> {
    OwnDatabase::Passwd
        .find(Key::Name(name), || User::from_name(name))
        .map(|user| user.map(Account::from))
        .map_err(failed("getpwnam", quoted(name)))
}
pub(crate) fn user_name(uid: u32) -> Result<Option<String>, LookupFailure> {
    Ok(account_of_uid(uid)?.map(|account| account.name))
}
pub(crate) fn group_name(gid: u32) -> Result<Option<String>, LookupFailure> {
    OwnDatabase::Group
        .find(Key::Id(gid), || Group::from_gid(Gid::from_raw(gid)))
        .map(|group| group.map(|group| group.name))
        .map_err(failed("getgrgid", gid))
}
pub(crate) fn group_id(name: &str) -> Result<Option<u32>, LookupFailure> {
    OwnDatabase::Group
        .find(Key::Name(name), || Group::from_name(name))
        .map(|group| group.map(|group| group.gid.as_raw()))
        .map_err(failed("getgrnam", quoted(name)))
}

/// The groups that the database gives a user who logs in, their own among them. A running process may have
/// others.
pub(crate) fn groups_of(account: &Account) -> Result<Vec<u32>, LookupFailure> {
    let failure = failed("getgrouplist", quoted(&account.name));
    let Ok(name) = CString::new(account.name.as_str()) else {
        return Err(failure(Errno::EINVAL));
    };
    let groups = getgrouplist(&name, Gid::from_raw(account.gid)).map_err(failure)?;
    Ok(groups.into_iter().map(Gid::as_raw).collect())
}

impl From<User> for Account {
    fn from(user: User) -> Self {
        Account { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }
    }
}

/// Whether a netgroup holds this user on this host, in any domain. The call cannot tell failure from absence:
/// a name service that is down looks like a netgroup that is empty. Neither can setnetgrent(3), which fails
/// for a netgroup that does not exist, too.
pub(crate) fn in_netgroup(netgroup: &str, host: &str, user: &str) -> bool {
    let text = |text: &str| CString::new(text).ok();
    match (text(netgroup), text(host), text(user)) {
        (Some(netgroup), Some(host), Some(user)) => unsafe_calls::in_netgroup(&netgroup, &host, &user),
        _ => false,
    }
}

/// Whether a group is that of one user alone: their login group with their name, and no other user is listed
/// in it.
pub(crate) fn is_private_group(uid: u32, gid: u32) -> bool {
    let (Ok(Some(user)), Ok(Some(group))) =
        (User::from_uid(Uid::from_raw(uid)), Group::from_gid(Gid::from_raw(gid)))
    else {
        return false;
    };
    user.gid == group.gid && user.name == group.name && group.mem.iter().all(|member| *member == user.name)
}

/// The names of all users that the databases list, as getpwent(3) does; many directories list none.
#[cfg(feature = "tools")]
pub(crate) fn user_names() -> Vec<OsString> {
    unsafe_calls::all_users().into_iter().map(|user| user.name().to_owned()).collect()
}

/// A user in a message: `backup (34)`, or `user 3434` where there is no name.
pub(crate) fn shown(uid: u32) -> String {
    match user_name(uid) {
        Ok(Some(name)) => format!("{} ({uid})", name.shown()),
        _ => format!("user {uid}"),
    }
}

/// Names for listings, each looked up once. Here a failure counts as absence: the number is shown instead.
#[derive(Default)]
pub(crate) struct NameCache {
    users: RefCell<HashMap<u32, String>>,
    groups: RefCell<HashMap<u32, String>>,
}

impl NameCache {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The user's name, or the number if there is none.
    pub(crate) fn user(&self, uid: u32) -> String {
        let name = || user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string());
        self.users.borrow_mut().entry(uid).or_insert_with(name).clone()
    }

    pub(crate) fn group(&self, gid: u32) -> String {
        let name = || group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        self.groups.borrow_mut().entry(gid).or_insert_with(name).clone()
    }
}

// The machine's own files of users and groups, to verify that a name is absent. With several databases the C
// library returns the result of the last one: if that has no entry, the failure of another one is not
// reported. If those files cannot be read either, the name is not known to be absent.

/// A file with a line for each entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OwnDatabase {
    Passwd,
    Group,
}

impl OwnDatabase {
    /// Asks the C library. None, if it has no entry, and the given files have none either.
    pub(super) fn find<T>(
        self,
        key: Key<'_>,
        ask: impl Fn() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        if let Some(found) = ask()? {
            return Ok(Some(found));
        }
        if !self.has(key)? {
            return Ok(None);
        }
        // It could not be read a moment ago.
        ask()?.map(Some).ok_or(Errno::EAGAIN)
    }

    fn has(self, key: Key<'_>) -> Result<bool, Errno> {
        let path = match self {
            Self::Passwd => "/etc/passwd",
            Self::Group => "/etc/group",
        };
        match fs::read(path).map_err(|error| errno_of(&error)) {
            Ok(bytes) => Ok(bytes.split(|byte| *byte == b'\n').any(|line| key.is_of(line))),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// The key of a look-up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Key<'a> {
    Name(&'a str),
    Id(u32),
}

impl Key<'_> {
    /// For the C library too, comments and references to other databases are not entries.
    fn is_of(self, line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        if matches!(line.first(), None | Some(b'#' | b'+' | b'-')) {
            return false;
        }
        let mut fields = line.split(|byte| *byte == b':');
        match self {
            Self::Name(name) => fields.next() == Some(name.as_bytes()),
            Self::Id(id) => fields.nth(2) == Some(id.to_string().as_bytes()),
        }
    }
}

// The user of this process, from the kernel: never from the environment or a look-up.

/// The calling process's user and groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Credentials {
    /// The real user id.
    pub uid: u32,
    /// The real group id.
    pub gid: u32,
    /// The real group and the supplementary groups, each once, the real one first.
    pub groups: Vec<u32>,
}

impl Credentials {
    pub fn of_this_process() -> Result<Self, Errno> {
        let gid = getgid().as_raw();
        let mut groups = vec![gid];
        // The C library's call would first read from /proc how many there may be.
        let supplementary = getgroups().map_err(|error| Errno::from_raw(error.raw_os_error()))?;
        for group in supplementary {
            if !groups.contains(&group.as_raw()) {
                groups.push(group.as_raw());
            }
        }
        Ok(Self { uid: getuid().as_raw(), gid, groups })
    }
}

/// Whether this program was started set-user-id or set-group-id.
pub(crate) fn is_set_id() -> bool {
    // If these calls are refused, the answer is unknown, and a program must not be started because of that.
    let is_other_user = getresuid().map_or(true, |ids| ids.real != ids.effective);
    is_other_user || getresgid().map_or(true, |ids| ids.real != ids.effective)
}

/// Whether this process may signal all processes.
pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// The real user id of this process.
pub fn own_uid() -> u32 {
    getuid().as_raw()
}

// This host.

/// The node name, as `uname -n` prints it.
pub(crate) fn name() -> Result<OsString, Errno> {
    gethostname()
}

/// How many processors are online; 1 if unknown. Not how many of them this process may use: the limit is that
/// of the host, and the same for a launch that is bound to one processor.
pub(crate) fn processors() -> u32 {
    let online = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    online.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_by_number() {
        let root = account_of_uid(0).expect("a user database").expect("root");
        assert_eq!(account_of_name(&root.name).expect("a user database"), Some(root.clone()));
        assert!(groups_of(&root).expect("a group database").contains(&root.gid));
        assert_eq!(NameCache::new().user(0), root.name);
    }

    #[test]
    fn a_name_that_does_not_exist_is_absent_and_no_failure() {
        assert_eq!(account_of_name("no such user"), Ok(None));
        assert_eq!(group_id("no such group"), Ok(None));
        assert_eq!(group_name(3_999_999_999), Ok(None));
        assert_eq!(NameCache::new().user(3_999_999_999), "3999999999");
    }

    #[test]
    fn no_user_is_in_a_netgroup_that_does_not_exist() {
        assert!(!in_netgroup("no such netgroup", "ws1", "root"));
    }

    #[test]
    fn a_failure_names_the_call_and_escapes_its_argument() {
        let failure = failed("getgrnam", quoted("stu\ndents"))(Errno::ETIMEDOUT);
        assert_eq!(failure.to_string(), r#"getgrnam("stu\ndents"): Connection timed out"#);
    }

    #[test]
    fn an_entry_has_its_name_first_and_its_number_third() {
        let line = b"games:x:60:ann,bob";
        assert!(Key::Name("games").is_of(line) && Key::Id(60).is_of(line));
        for key in [Key::Name("game"), Key::Name("x"), Key::Name(""), Key::Id(6), Key::Id(600)] {
            assert!(!key.is_of(line), "{key:?}");
        }
    }

    #[test]
    fn a_comment_is_no_entry() {
        for line in [&b"#games:x:60:"[..], b" #games:x:60:", b"+games:x:60:", b"-games:x:60:", b""] {
            assert!(!Key::Id(60).is_of(line) && !Key::Name("#games").is_of(line), "{line:?}");
        }
    }

    #[test]
    fn an_absence_is_believed_where_the_files_have_nothing_either() {
        assert_eq!(OwnDatabase::Passwd.find(Key::Id(0), || Ok(None::<()>)), Err(Errno::EAGAIN));
        assert_eq!(OwnDatabase::Group.find(Key::Name("no such group"), || Ok(None::<()>)), Ok(None));
        assert_eq!(OwnDatabase::Group.find(Key::Id(0), || Ok(Some(7))), Ok(Some(7)));
        assert_eq!(
            OwnDatabase::Passwd.find(Key::Id(0), || Err::<Option<()>, _>(Errno::EIO)),
            Err(Errno::EIO)
        );
    }
}
