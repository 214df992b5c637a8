//! A shim: a link to rungate that bears the name of a command. Whoever starts it starts rungate, which must
//! find out under which name. The kernel's word counts (`AT_EXECFN`), where it leads to rungate; it does not
//! for an interpreter, because there it names the script. Then argv\[0\] is all there is, which the caller
//! may make up.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::sys::executable;

/// Names that no shim may have: too much goes through them, rungate itself among it.
const REFUSED: [&str; 12] =
    ["ash", "bash", "busybox", "csh", "dash", "env", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"];

/// A link to rungate, and the command that it stands for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shim {
    /// The command.
    pub name: OsString,
    /// The link, as it was executed.
    pub path: PathBuf,
}

/// As what this process was started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CalledAs {
    /// As rungate.
    Rungate,
    /// As exectimes.
    Exectimes,
    /// As something else.
    Shim(Shim),
}

impl CalledAs {
    /// As what this process was started, with this argv\[0\].
    pub fn of_this_process(argv0: Option<&OsStr>) -> Self {
        let typed = argv0.map(Path::new);
        let executed = executable::executed_path();
        let told = executed.as_deref().filter(|executed| {
            let Some(name) = executable_name(executed) else { return false };
            let agree = typed.and_then(Path::file_name) == Some(name);
            // What is called rungate by both needs no proof, and without /proc there is none.
            (agree && is_own_name(name)) || is_rungate(executed).unwrap_or(agree)
        });
        match told.or(typed) {
            Some(path) => Self::of(path),
            None => Self::Rungate,
        }
    }

    fn of(path: &Path) -> Self {
        match executable_name(path) {
            Some(name) if name == "exectimes" => Self::Exectimes,
            Some(name) if !is_own_name(name) => {
                Self::Shim(Shim { name: name.to_owned(), path: path.to_owned() })
            }
            _ => Self::Rungate,
        }
    }
}

impl Shim {
    /// The shim that a path leads to, if it is one.
    pub fn at(path: &Path) -> Option<Self> {
        if !path.as_os_str().as_bytes().contains(&b'/') || is_rungate(path) != Some(true) {
            return None;
        }
        match CalledAs::of(path) {
            CalledAs::Shim(shim) => Some(shim),
            CalledAs::Rungate | CalledAs::Exectimes => None,
        }
    }

    /// Why there must be no shim of this name.
    pub fn fault_of(name: &OsStr) -> Option<&'static str> {
        if is_own_name(name) {
            Some("rungate itself has that name")
        } else if REFUSED.iter().any(|refused| name == *refused) {
            Some("shells and env start other programs, and must stay what they are")
        } else if name.is_empty() || name == "." || name == ".." || name.as_bytes().contains(&b'/') {
            Some("that is not a name of a command")
        } else {
            None
        }
    }
}

/// Whether a path leads to the file that this process executes, where that can be known.
fn is_rungate(path: &Path) -> Option<bool> {
    Some(executable::identity(path) == Some(executable::own()?))
}

/// The last component of a path; what is executed by descriptor has a number there, and no name.
fn executable_name(path: &Path) -> Option<&OsStr> {
    if path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd") { None } else { path.file_name() }
}

/// The names under which rungate is no shim: its own, also with a version, and that of exectimes.
pub fn is_own_name(name: &OsStr) -> bool {
    name == "exectimes"
        || name.as_bytes().strip_prefix(b"rungate").is_some_and(|rest| matches!(rest, [] | [b'-' | b'.', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_names_are_no_shims() {
        for name in ["rungate", "rungate-0.1", "rungate.new", "exectimes"] {
            assert!(is_own_name(OsStr::new(name)), "{name}");
        }
        for name in ["rungates", "run", "matlab", ""] {
            assert!(!is_own_name(OsStr::new(name)), "{name}");
        }
        for name in ["sh", "env", "bash", "rungate", "", ".", "..", "a/b"] {
            assert!(Shim::fault_of(OsStr::new(name)).is_some(), "{name}");
        }
        assert_eq!(Shim::fault_of(OsStr::new("matlab")), None);
    }
}
