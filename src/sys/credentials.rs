//! The user of this process, from the kernel: never from the environment or a look-up.

use std::ffi::OsString;

use nix::{
    errno::Errno,
    unistd::{SysconfVar, geteuid, getgid, gethostname, getresgid, getresuid, getuid, sysconf},
};
use rustix::process::getgroups;

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
pub fn is_set_id() -> bool {
    // If these calls are refused, the answer is unknown, and a program must not be started because of that.
    let is_other_user = getresuid().map_or(true, |ids| ids.real != ids.effective);
    is_other_user || getresgid().map_or(true, |ids| ids.real != ids.effective)
}

/// Whether this process may signal all processes.
pub fn is_root() -> bool {
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
