//! A system call that failed: which one, on what, and why, in the words of the C library. The text is for
//! people: it has no number and no debug form.

use std::{error::Error, fmt, io};

pub use nix::errno::Errno;

/// A failed system call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The call, as its manual page names it: `open`, `fcntl(F_SETLK)`.
    pub call: &'static str,
    /// Why it failed.
    pub errno: Errno,
}

impl Failure {
    /// For `map_err`: a failure of `call`.
    pub fn of(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self { call, errno }
    }

    /// For `map_err` with errors of the standard library.
    pub fn of_io(call: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self { call, errno: errno_of(&error) }
    }
}

/// The number behind an error of the standard library; `EIO` if there is none (a write of no bytes, say).
pub fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.call, self.errno.desc())
    }
}

impl Error for Failure {}
