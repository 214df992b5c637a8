//! Becoming the program. `execve` alone: the standard library's way would change the disposition of
//! `SIGPIPE`, and nothing that the caller arranged may be changed.

use std::{
    borrow::Cow,
    convert::Infallible,
    ffi::{CStr, CString, OsStr},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use nix::{errno::Errno, unistd::execve};

use crate::sys::unsafe_calls;

/// An entry of the environment, mostly as it came.
pub type Entry = Cow<'static, CStr>;

/// The environment of this process, entry by entry, as it came.
pub fn environment() -> Vec<Entry> {
    unsafe_calls::environment().into_iter().map(Cow::Borrowed).collect()
}

/// Replaces this process with `program`. Comes back only with the reason why it did not work.
pub fn execute(program: &Path, arguments: &[CString], environment: &[Entry]) -> Errno {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return Errno::EINVAL };
    let Err(errno): Result<Infallible, Errno> = execve(&path, arguments, environment);
    errno
}

/// The same for a command that somebody typed: a file without a `#!` line is given to the shell, as
/// `execvp(3)` does.
pub fn replace_process(program: &Path, arguments: &[CString], environment: &[Entry]) -> Errno {
    let errno = execute(program, arguments, environment);
    if errno != Errno::ENOEXEC {
        return errno;
    }
    let Some(path) = c_string(program.as_os_str()) else { return errno };
    let script = [CString::from(c"sh"), path];
    let with_shell: Vec<&CStr> =
        script.iter().chain(arguments.iter().skip(1)).map(CString::as_c_str).collect();
    let Err(errno): Result<Infallible, Errno> = execve(c"/bin/sh", &with_shell, environment);
    errno
}

/// A C string of bytes that came from the kernel and so hold no zero byte; none when they do.
pub fn c_string(bytes: &OsStr) -> Option<CString> {
    CString::new(bytes.as_bytes()).ok()
}
