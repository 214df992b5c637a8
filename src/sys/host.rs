//! This host.

use std::ffi::OsString;

use nix::{errno::Errno, unistd::gethostname};

/// The node name, as `uname -n` prints it.
pub fn name() -> Result<OsString, Errno> {
    gethostname()
}
