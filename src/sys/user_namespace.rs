//! User namespaces. In one that does not map every user of the system, the files of all unmapped users seem
//! to belong to one user, which may be root or a stranger. An unmapped process in it seems to be that user
//! too.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use nix::sys::stat::fstat;

use super::{
    failure::{Errno, Failure, errno_of},
    stamp::FileId,
    unsafe_calls,
};

/// The user that unmapped users appear as, unless `/proc/sys/kernel/overflowuid` names another.
const OVERFLOW_UID: u32 = 65534;

/// Whether a file that seems to be this user's may belong to any. Without `/proc` that is unknown.
pub(super) fn hides_owner(uid: u32) -> Result<bool, Failure> {
    if uid != OVERFLOW_UID {
        return Ok(false);
    }
    let mut map = String::new();
    match File::open("/proc/self/uid_map").map_err(Failure::of_io("open /proc/self/uid_map")) {
        Err(Failure { errno: Errno::ENOENT, .. }) => return Ok(true),
        Err(failure) => return Err(failure),
        Ok(mut file) => file.read_to_string(&mut map).map_err(Failure::of_io("read /proc/self/uid_map"))?,
    };
    Ok(!maps_everybody(&map))
}

/// The user to whom the user namespace of a process belongs, as called here; none if it is that of this
/// process. A namespace within another one belongs to the maker of the outermost, who let it in. `EPERM` if
/// it was not made within that of this process.
pub(crate) fn owner_of_foreign(pid: i32) -> Result<Option<u32>, Errno> {
    let open = |of: &str| File::open(format!("/proc/{of}/ns/user")).map_err(|error| errno_of(&error));
    let id = |namespace: BorrowedFd<'_>| fstat(namespace).map(|status| FileId::from(&status));
    let ours = id(open("self")?.as_fd())?;
    let mut namespace = OwnedFd::from(open(&pid.to_string())?);
    if id(namespace.as_fd())? == ours {
        return Ok(None);
    }
    // The kernel allows for 32, one within the other.
    loop {
        let outer = unsafe_calls::parent_of_namespace(namespace.as_fd())?;
        if id(outer.as_fd())? == ours {
            return unsafe_calls::owner_of_namespace(namespace.as_fd()).map(Some);
        }
        namespace = outer;
    }
}

/// Lines of first user inside, first user outside, and how many. Only users that the namespace above maps can
/// be mapped.
fn maps_everybody(map: &str) -> bool {
    let counts = map.lines().map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u32>().ok());
    counts.sum::<Option<u32>>() == Some(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_map_of_all_users_hides_nobody() {
        assert!(maps_everybody("         0          0 4294967295\n"));
        assert!(!maps_everybody("0 1000 1\n"));
        assert!(!maps_everybody("0 1000 1\n1 100000 65536\n"));
        assert!(!maps_everybody(""));
        assert_eq!(hides_owner(0), Ok(false));
    }
}
