//! Whether permission bits say all about who may use a file, or a list of users and groups says more.

use std::path::Path;

/// Whether it has such a list.
pub(crate) fn has_acl(path: &Path) -> bool {
    let mut nothing = [0_u8; 0];
    rustix::fs::getxattr(path, "system.posix_acl_access", &mut nothing[..]).is_ok_and(|length| length > 0)
}
