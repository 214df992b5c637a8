//! Tries what an ordinary user can do: on a thread with the ids of `nobody`, and without the capabilities of
//! root.

use std::{path::Path, thread};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, faccessat, geteuid},
};
use rustix::{
    fs::statvfs,
    process::{Gid, Uid},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

/// The overflow user of the kernel, `nobody` on every distribution.
const NOBODY: u32 = 65534;

/// Runs a task as an ordinary user; a caller that is not root is one already. None if root may not become
/// another user here. The task looks up no names, for a C library may act for the whole process.
pub(crate) fn as_ordinary_user<T: Send>(task: impl FnOnce() -> T + Send) -> Option<T> {
    if !geteuid().is_root() {
        return Some(task());
    }
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    // These calls change one thread, which ends with its task.
    let changed = move || {
        set_thread_groups(&[])
            .and_then(|()| set_thread_res_gid(gid, gid, gid))
            .and_then(|()| set_thread_res_uid(uid, uid, uid))
    };
    thread::scope(|scope| scope.spawn(move || changed().ok().map(|()| task())).join().ok().flatten())
}

/// Whether this thread may use a file in this way: 4 to read it, 2 to write, 1 to execute or to enter.
pub(crate) fn access(path: &Path, bits: u32) -> Result<(), Errno> {
    let flags = [(4, AccessFlags::R_OK), (2, AccessFlags::W_OK), (1, AccessFlags::X_OK)];
    let wanted = flags.into_iter().filter(|(bit, _)| bits & bit != 0);
    let flags = wanted.fold(AccessFlags::empty(), |flags, (_, flag)| flags | flag);
    faccessat(AT_FDCWD, path, flags, AtFlags::AT_EACCESS)
}

/// Whether the file system of a path has no block left for ordinary users.
pub(crate) fn is_full(path: &Path) -> bool {
    statvfs(path).is_ok_and(|status| status.f_blocks > 0 && status.f_bavail == 0)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use nix::unistd::getegid;

    use super::*;

    #[test]
    fn the_thread_is_nobody_and_the_process_stays_what_it_is() {
        let ids = || (geteuid().as_raw(), getegid().as_raw());
        let (before, own) = (geteuid(), ids());
        let nobody = if before.is_root() { (65534, 65534) } else { own };
        assert_eq!(as_ordinary_user(ids), Some(nobody));
        assert_eq!(ids(), own);
        if before.is_root() {
            let closed = Path::new("/proc/1/environ");
            assert_eq!(access(closed, 4), Ok(()));
            assert_eq!(as_ordinary_user(|| access(closed, 4)), Some(Err(Errno::EACCES)));
        }
    }

    /// A file can be used in a way if it has each of the permission bits for it.
    #[test]
    fn each_permission_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "").expect("a file");
        let mode =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
        mode(directory.path(), 0o755);
        for has in 0..8 {
            mode(&path, (has << 6) | has);
            for wanted in 1..8 {
                let expected = if has & wanted == wanted { Ok(()) } else { Err(Errno::EACCES) };
                assert_eq!(as_ordinary_user(|| access(&path, wanted)), Some(expected), "{has} {wanted}");
            }
        }
    }

    /// A file system without blocks is not full.
    #[test]
    fn only_what_has_blocks_can_be_full() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!is_full(Path::new("/proc")) && !is_full(directory.path()));
    }
}
