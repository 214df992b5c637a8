//! This host.

use std::ffi::OsString;

use nix::{
    errno::Errno,
    unistd::{SysconfVar, gethostname, sysconf},
};

/// The node name, as `uname -n` prints it.
pub(crate) fn name() -> Result<OsString, Errno> {
    gethostname()
}

/// How many processors are online; 1 where nobody knows. Not how many of them this process may use: a limit
/// is the host's, and a launch that is bound to one processor has the same as every other.
pub(crate) fn processors() -> u32 {
    let online = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    online.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1)
}
