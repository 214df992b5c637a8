//! The one way in which the tests and their programs describe a range of bytes to a lock call.

use nix::libc;

/// A description of `length` bytes from `start` on, for a lock call; a length of 0 reaches to the end of any
/// file.
pub(crate) fn lock_range(kind: libc::c_int, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: kind.try_into().expect("the kinds of locks are small numbers"),
        l_whence: libc::SEEK_SET.try_into().expect("SEEK_SET is zero"),
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}
