//! A shim: a link to rungate with the name of a command. rungate must find out under which name it was
//! started. The kernel's `AT_EXECFN` counts if it leads to rungate. For an interpreter it names the script.
//! Then only argv\[0\] is left, which the caller can choose.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs, io,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    process,
};

use crate::{
    sys::{Errno, executable, failure, regular_file},
    text::visible,
};

/// Names that no shim may have, because too many programs start through them, rungate itself included.
const REFUSED: [&str; 12] =
    ["ash", "bash", "busybox", "csh", "dash", "env", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"];

/// A link to rungate, and its command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shim {
    /// The command.
    pub name: OsString,
    /// The link, as it was executed.
    pub path: PathBuf,
}

/// How this process was started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CalledAs {
    Rungate,
    Exectimes,
    /// As something else.
    Shim(Shim),
}

impl CalledAs {
    /// How this process was started, with this argv\[0\].
    pub fn of_this_process(argv0: Option<&OsStr>) -> Self {
        let typed = argv0.map(Path::new);
        let executed = executable::executed_path();
        let told = executed.as_deref().filter(|executed| {
            let Some(name) = executable_name(executed) else { return false };
            let agree = typed.and_then(Path::file_name) == Some(name);
            // If both the link and the program are named rungate, no proof is needed; without /proc there is
            // none.
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

    /// Why no shim may have this name.
    pub fn fault_of(name: &OsStr) -> Option<&'static str> {
        if is_own_name(name) {
            Some("rungate itself has that name")
        } else if REFUSED.iter().any(|refused| name == *refused) {
            Some("shells and env start other programs, and must not be replaced")
        } else if name.is_empty() || name == "." || name == ".." || name.as_bytes().contains(&b'/') {
            Some("that is not the name of a command")
        } else {
            None
        }
    }
}

/// Whether a path leads to the file that this process executes, if that can be known.
fn is_rungate(path: &Path) -> Option<bool> {
    Some(executable::identity(path) == Some(executable::own()?))
}

/// The last component of a path; for an execution by descriptor it is a number.
fn executable_name(path: &Path) -> Option<&OsStr> {
    if path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd") { None } else { path.file_name() }
}

/// The names under which rungate is not a shim: its own, also with a version, and that of exectimes.
pub fn is_own_name(name: &OsStr) -> bool {
    name == "exectimes"
        || name.as_bytes().strip_prefix(b"rungate").is_some_and(|rest| matches!(rest, [] | [b'-' | b'.', ..]))
}

/// The names under which installations have it: `rungate`, `rungate-0.1`, and `rungate-tools`, to which a
/// link may lead by mistake. Any other may be another program, such as `rungate-agent` or a script of the
/// site.
fn is_installed_name(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(b"rungate");
    rest.is_some_and(|rest| matches!(rest, [] | b"-tools" | [b'-', b'0'..=b'9', ..]))
}

// A directory with shims: the kinds of names in it, and how links are created and removed. Only links to
// rungate are ever replaced or removed, and of several links all are created, or none.

#[derive(Clone, Debug)]
pub struct ShimDirectory {
    path: PathBuf,
}

/// The file with this name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Nothing.
    Free,
    /// A link to rungate: to this one, to another, or to one that does not exist any more.
    Shim,
    /// Anything else.
    Taken(&'static str),
}

/// A call that failed, and on what.
#[derive(Debug)]
pub struct DirectoryError {
    call: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = failure::errno_of(&self.error).desc();
        write!(formatter, "{} {}: {why}", self.call, visible(&self.path))
    }
}

impl std::error::Error for DirectoryError {}

impl ShimDirectory {
    /// The directory of this path, which must be absolute.
    pub fn open(path: PathBuf) -> Result<Self, DirectoryError> {
        match fs::read_dir(&path) {
            Ok(_) => Ok(Self { path }),
            Err(error) => Err(DirectoryError { call: "opendir", path, error }),
        }
    }

    /// The same; it is created with the first shim if it is missing.
    pub fn to_make(path: PathBuf) -> Result<Self, DirectoryError> {
        match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path }),
            _ => Self::open(path),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name in it.
    pub fn link(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// The names of all shims in it, in order.
    pub fn shims(&self) -> Result<Vec<OsString>, DirectoryError> {
        let failed = |error| DirectoryError { call: "readdir", path: self.path.clone(), error };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let name = entry.file_name();
            if is_link && !is_own_name(&name) && self.standing(&name) == Standing::Shim {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The file with this name.
    pub fn standing(&self, name: &OsStr) -> Standing {
        let path = self.link(name);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Standing::Free,
            Err(_) => Standing::Taken("cannot be inspected"),
            Ok(found) if found.is_symlink() && leads_to_rungate(&path) => Standing::Shim,
            Ok(found) if found.is_symlink() => Standing::Taken("is a link to something else"),
            Ok(found) if found.is_dir() => Standing::Taken("is a directory"),
            Ok(_) if executable::own().is_some_and(|own| executable::identity(&path) == Some(own)) => {
                Standing::Taken("is rungate itself, not a symbolic link to it")
            }
            Ok(_) => Standing::Taken("is a file, not a link to rungate"),
        }
    }

    /// Creates links to `target`, all or none, under free names and in place of links to rungate.
    pub fn make(&self, names: &[&OsStr], target: &Path) -> Result<(), DirectoryError> {
        // Regardless of the umask: each shell passes over a directory that its user cannot search.
        let missing: Vec<&Path> = self.path.ancestors().take_while(|path| !path.exists()).collect();
        for path in missing.into_iter().rev() {
            let failed =
                |errno: Errno| DirectoryError { call: "mkdir", path: path.to_owned(), error: errno.into() };
            match regular_file::create_directory(path, 0o755) {
                // A default ACL, or the file system, may give it another mode.
                Err(Errno::EPERM) if path.is_dir() => {}
                made => made.map_err(failed)?,
            }
        }
        let mut made: Vec<(PathBuf, Option<PathBuf>)> = Vec::new();
        for name in names {
            let path = self.link(name);
            let before = fs::read_link(&path).ok().filter(|_| self.standing(name) == Standing::Shim);
            let linked = if before.is_some() { self.replace(target, &path) } else { symlink(target, &path) };
            if let Err(error) = linked {
                for (path, before) in made {
                    // The links are again what they were; the first failure is reported.
                    let _ = match before {
                        Some(before) => self.replace(&before, &path),
                        None => fs::remove_file(&path),
                    };
                }
                return Err(DirectoryError { call: "symlink", path, error });
            }
            made.push((path, before));
        }
        Ok(())
    }

    /// Puts a link in place of another in one step, so that no program starts past the shim meanwhile.
    fn replace(&self, target: &Path, path: &Path) -> io::Result<()> {
        let new = self.link(format!("rungate-{}", process::id()).as_ref());
        symlink(target, &new)?;
        fs::rename(&new, path).inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    }

    /// Removes the links under these names, all or none.
    pub fn remove(&self, names: &[&OsStr]) -> Result<(), DirectoryError> {
        let mut removed: Vec<(PathBuf, PathBuf)> = Vec::new();
        for name in names {
            let path = self.link(name);
            let target = fs::read_link(&path);
            if let Err(error) = fs::remove_file(&path) {
                for (path, target) in &removed {
                    let _ = symlink(target, path);
                }
                return Err(DirectoryError { call: "unlink", path, error });
            }
            removed.extend(target.ok().map(|target| (path, target)));
        }
        Ok(())
    }
}

/// Whether a symbolic link points to this rungate, to that of another installation, or to one that no longer
/// exists.
fn leads_to_rungate(link: &Path) -> bool {
    let is_rungate = |path: &Path| path.file_name().is_some_and(is_installed_name);
    if executable::own().is_some_and(|own| executable::identity(link) == Some(own)) {
        return true;
    }
    match link.canonicalize() {
        Ok(target) => is_rungate(&target),
        Err(_) => fs::read_link(link).is_ok_and(|target| is_rungate(&target)),
    }
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

    /// The last part of the path says what rungate does: it is exectimes, a shim, or rungate itself. An
    /// execution by a descriptor has no name.
    #[test]
    fn the_name_says_what_rungate_does() {
        let called = |path: &str| match CalledAs::of(Path::new(path)) {
            CalledAs::Shim(shim) => format!("{} at {}", visible(&shim.name), visible(&shim.path)),
            CalledAs::Exectimes => "exectimes".to_owned(),
            CalledAs::Rungate => "rungate".to_owned(),
        };
        assert_eq!([called("/usr/bin/exectimes"), called("exectimes")], ["exectimes", "exectimes"]);
        assert_eq!([called("/bin/matlab"), called("mex")], ["matlab at /bin/matlab", "mex at mex"]);
        for path in ["rungate", "/opt/rungate-0.1", "/dev/fd/3", "/proc/self/fd/3", "/", ""] {
            assert_eq!(called(path), "rungate", "{path}");
        }
    }

    /// Of several links all are made or removed, or none.
    #[test]
    fn a_link_that_cannot_be_made_or_removed_changes_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let shims = ShimDirectory::open(directory.path().to_owned()).expect("a directory");
        let rungate = Path::new("/opt/rungate");
        let names = |names: &[&'static str]| -> Vec<&'static OsStr> {
            names.iter().copied().map(OsStr::new).collect()
        };
        let are_there = |links: &[&'static str]| {
            links.iter().all(|name| fs::read_link(shims.link(OsStr::new(name))).is_ok_and(|to| to == rungate))
        };
        fs::write(shims.link(OsStr::new("taken")), "").expect("a file");
        assert!(shims.make(&names(&["one", "two", "taken"]), rungate).is_err());
        assert!(!are_there(&["one"]) && !are_there(&["two"]));
        shims.make(&names(&["one", "two"]), rungate).expect("two links");
        assert!(are_there(&["one", "two"]));
        assert!(shims.remove(&names(&["one", "two", "missing"])).is_err());
        assert!(are_there(&["one", "two"]));
        shims.remove(&names(&["one", "two"])).expect("two links");
        assert!(!are_there(&["one"]) && !are_there(&["two"]));
    }

    /// A link to another rungate, also to one that is gone, is replaced. If a later link cannot be made, it
    /// leads again where it led before.
    #[test]
    fn a_link_to_another_rungate_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let shims = ShimDirectory::open(directory.path().to_owned()).expect("a directory");
        let (old, new, other) =
            (Path::new("/gone/rungate"), Path::new("/opt/rungate"), Path::new("/bin/true"));
        let [shim, free, foreign] = ["shim", "free", "foreign"].map(OsStr::new);
        let target = |name: &OsStr| fs::read_link(shims.link(name)).ok();
        shims.make(&[shim], old).expect("a link");
        symlink(other, shims.link(foreign)).expect("a link");
        assert!(shims.make(&[shim, free, foreign], new).is_err());
        assert_eq!([shim, free, foreign].map(target), [Some(old.into()), None, Some(other.into())]);
        shims.make(&[shim, free], new).expect("links");
        assert_eq!([shim, free].map(target), [Some(new.into()), Some(new.into())]);
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 3);
    }

    /// A directory that cannot be created is what the error is about, and not the first link.
    #[test]
    fn a_directory_that_cannot_be_created_is_said() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("file/shims");
        fs::write(directory.path().join("file"), "").expect("a file");
        let shims = ShimDirectory { path: below.clone() };
        let error =
            shims.make(&[OsStr::new("one")], Path::new("/opt/rungate")).expect_err("a file is no directory");
        assert_eq!((error.call, error.path), ("mkdir", below));
    }

    /// Shims are listed in the order of their names. Files, links to other programs and links with a name of
    /// rungate's own are no shims.
    #[test]
    fn shims_are_listed_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let shims = ShimDirectory::open(directory.path().to_owned()).expect("a directory");
        let names = ["e", "b", "d", "a", "f", "c", "rungate", "exectimes"].map(OsStr::new);
        shims.make(&names, Path::new("/opt/rungate")).expect("links");
        for other in ["other", "exectimes", "rungate-agent", "rungate-report.sh", "rungate.old", "rungates"] {
            let link = OsString::from(format!("to-{other}"));
            shims.make(&[&link], &Path::new("/opt").join(other)).expect("a link");
        }
        shims.make(&[OsStr::new("to-root")], Path::new("/")).expect("a link");
        fs::write(shims.link(OsStr::new("file")), "").expect("a file");
        assert_eq!(shims.shims().expect("a directory"), ["a", "b", "c", "d", "e", "f"]);
        for (link, target) in [("g", "rungate-0.1"), ("h", "rungate-tools")] {
            shims.make(&[OsStr::new(link)], &Path::new("/opt").join(target)).expect("a link");
        }
        assert_eq!(shims.shims().expect("a directory"), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    }
}
