//! Files that can be executed, as `execve` decides: with the effective ids, following links. Also the file
//! that this process executes, so that it is recognized under another name. In a process that the launcher
//! became, that is the launcher's file.

use std::{
    borrow::Cow,
    convert::Infallible,
    ffi::{CStr, CString, OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    sys::stat::{SFlag, stat},
    unistd::{AccessFlags, execve, faccessat},
};

use super::{stamp::FileId, unsafe_calls};

/// The link that the kernel keeps to the file of this process.
const OWN: &str = "/proc/self/exe";

/// The launcher, in a process that represents it.
static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();

/// From now on, this file counts as the file of this process.
pub fn stand_for(launcher: PathBuf) {
    let _ = LAUNCHER.set(launcher);
}

/// The file that would be executed, or why none can be.
pub fn check(path: &Path) -> Result<FileId, Errno> {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
    let status = stat(path)?;
    if status.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits() {
        Ok(FileId::from(&status))
    } else {
        Err(Errno::EACCES)
    }
}

/// Whether it cannot be determined from here if there is such a file.
pub fn is_out_of_sight(path: &Path) -> bool {
    stat(path) == Err(Errno::EACCES)
}

/// The file or directory that a path leads to.
pub fn identity(path: &Path) -> Option<FileId> {
    stat(path).ok().map(|status| FileId::from(&status))
}

/// The file that this process executes; none if `/proc` is missing.
pub fn own() -> Option<FileId> {
    identity(LAUNCHER.get().map_or(Path::new(OWN), PathBuf::as_path))
}

/// The path of that file, every link resolved. Without `/proc`, the executed path is used.
pub fn own_path() -> Option<PathBuf> {
    let executed = || executed_path()?.canonicalize().ok();
    LAUNCHER.get().cloned().or_else(|| fs::read_link(OWN).ok()).or_else(executed)
}

/// The path that the kernel was given to execute: a link stays a link. For a script it is the script's.
pub fn executed_path() -> Option<PathBuf> {
    unsafe_calls::executed_path().map(|path| PathBuf::from(OsString::from_vec(path.into_bytes())))
}

/// Whether this process may write to it, as a file is opened: with the effective ids.
pub fn can_write(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok()
}

// Becoming the program. Only `execve`: the standard library would change the disposition of `SIGPIPE`, and
// the caller's settings must not be changed.

/// An entry of the environment, mostly unchanged.
pub type Entry = Cow<'static, CStr>;

/// The environment of this process, entry by entry, unchanged.
pub fn environment() -> Vec<Entry> {
    unsafe_calls::environment().into_iter().map(Cow::Borrowed).collect()
}

/// Replaces this process with `program`. Returns only on failure, with the reason.
pub fn execute(program: &Path, arguments: &[CString], environment: &[Entry]) -> Errno {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return Errno::EINVAL };
    let Err(errno): Result<Infallible, Errno> = execve(&path, arguments, environment);
    errno
}

/// The same for a typed command: a file without a `#!` line is given to the shell, as `execvp(3)` does.
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

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    /// A program is a regular file that may be executed, by any path that leads to it.
    #[test]
    fn only_a_file_that_may_be_executed_is_a_program() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, link, missing] = ["file", "link", "missing"].map(|name| directory.path().join(name));
        fs::write(&file, "").expect("a file");
        symlink(&file, &link).expect("a link");
        let mode = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).expect("chmod");
        mode(0o644);
        assert_eq!((check(&file), check(&link)), (Err(Errno::EACCES), Err(Errno::EACCES)));
        mode(0o755);
        let id = identity(&file).expect("a file");
        assert_eq!((check(&file), check(&link)), (Ok(id), Ok(id)));
        assert_eq!((check(directory.path()), check(&missing)), (Err(Errno::EACCES), Err(Errno::ENOENT)));
    }
}
