//! The two programs of an installation: the launcher `rungate`, and `rungate-tools`, which it executes for
//! everything but a launch. So the launcher stays small. Each finds the other by its own place, never by
//! `PATH` or the environment. The launcher executes a file only if every user who could have written it could
//! also have replaced the launcher.

use std::{
    env,
    ffi::{CString, OsString},
    fmt, fs, io, iter,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::Search;
use crate::{
    sys::{Errno, errno_of, executable},
    text::visible,
};

/// The second program.
pub const TOOLS: &str = "rungate-tools";

/// Where it is, relative to the directory of the launcher: beside it, or where packages put programs that no
/// user types.
const PLACES: [&[&str]; 2] = [&[TOOLS], &["..", "lib", "rungate", TOOLS]];

/// Where the launcher is, relative to that.
const WAYS_BACK: [&[&str]; 2] = [&["rungate"], &["..", "..", "bin", "rungate"]];

/// Why the second program cannot be executed.
#[derive(Debug)]
pub enum NoTools {
    /// The launcher cannot say where it is itself.
    Lost,
    /// It is in none of these places.
    Missing(Vec<PathBuf>),
    /// Users who cannot change the launcher can change this.
    Distrusted(PathBuf),
    /// This cannot be checked, or not be executed.
    Failed(PathBuf, Errno),
}

impl NoTools {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Lost => "Mount /proc. Launches, as in rungate run, work without it.",
            Self::Missing(_) | Self::Failed(..) => {
                "Install both programs, side by side; in a checkout: cargo build. Launches, as in rungate run, work without it."
            }
            Self::Distrusted(_) => {
                "Give it the owner and the mode that the launcher has, or install both again."
            }
        }
    }
}

impl fmt::Display for NoTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => write!(f, "{TOOLS} cannot be found: /proc is not mounted"),
            Self::Missing(places) => {
                write!(f, "{TOOLS}, which does this, is not installed")?;
                places.iter().try_for_each(|place| write!(f, "\n  looked for {}", visible(place)))
            }
            Self::Distrusted(path) => write!(
                f,
                "{}: not started: it is not a regular file or directory, or users can change it who cannot \
                    change rungate",
                visible(path)
            ),
            Self::Failed(path, errno) => write!(f, "{}: not started: {}", visible(path), errno.desc()),
        }
    }
}

impl std::error::Error for NoTools {}

/// Becomes the second program of the launcher that this process executes, with these arguments, argv\[0\]
/// included. Returns only on failure, with the reason.
pub fn become_tools(arguments: &[OsString]) -> NoTools {
    let tools = executable::own_path().ok_or(NoTools::Lost).and_then(|launcher| tools_of(&launcher));
    match tools {
        Ok(tools) => {
            let words: Vec<CString> =
                arguments.iter().filter_map(|word| executable::c_string(word)).collect();
            let errno = executable::execute(&tools, &words, &executable::environment());
            NoTools::Failed(tools, errno)
        }
        Err(failure) => failure,
    }
}

fn tools_of(launcher: &Path) -> Result<PathBuf, NoTools> {
    let places = PLACES.map(|way| go(launcher, way));
    for place in &places {
        match fs::symlink_metadata(place) {
            Ok(_) => return judge(place, launcher).map(|()| place.clone()),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(NoTools::Failed(place.clone(), errno_of(&error))),
        }
    }
    Err(NoTools::Missing(places.to_vec()))
}

/// The launcher that executed this program, by the name that was typed, if `argv0` and `PATH` show it: after
/// an upgrade, a link of that name leads to the next version. Wherever it is, this must be its second
/// program; none if there is no such launcher.
pub fn launcher(argv0: &Path) -> Option<PathBuf> {
    let tools = executable::own_path()?;
    let is_ours = |path: &PathBuf| {
        let path = path.canonicalize().ok().filter(|path| *path != tools);
        path.is_some_and(|path| tools_of(&path).is_ok_and(|found| found == tools))
    };
    let called = if argv0.components().count() > 1 {
        vec![env::current_dir().ok()?.join(argv0)]
    } else {
        Search::of_environment().entries().iter().map(|entry| entry.join(argv0)).collect()
    };
    let called = called.into_iter().find(|path| executable::check(path).is_ok());
    called.into_iter().chain(WAYS_BACK.map(|way| go(&tools, way))).find(is_ours)
}

/// The path that leads from a file's directory there. The file's path is canonical, so that `..` is the
/// parent by name too.
fn go(file: &Path, way: &[&str]) -> PathBuf {
    let directory = file.parent().unwrap_or(file).to_owned();
    way.iter().fold(directory, |path, step| match *step {
        ".." => path.parent().map_or(PathBuf::from("/"), Path::to_owned),
        step => path.join(step),
    })
}

/// No directory on the path to the second program may be writable for more users than on the path to the
/// launcher.
fn judge(tools: &Path, launcher: &Path) -> Result<(), NoTools> {
    let look = |path: &Path| {
        fs::symlink_metadata(path).map_err(|error| NoTools::Failed(path.to_owned(), errno_of(&error)))
    };
    let directory = launcher.parent().unwrap_or(launcher);
    let directories = tools.ancestors().skip(1).take_while(|above| !launcher.starts_with(above));
    for (path, model) in iter::once((tools, launcher)).chain(directories.map(|above| (above, directory))) {
        if !is_as_safe(&look(path)?, &look(model)?) {
            return Err(NoTools::Distrusted(path.to_owned()));
        }
    }
    Ok(())
}

fn is_as_safe(found: &fs::Metadata, model: &fs::Metadata) -> bool {
    let writable = found.mode() & 0o022;
    found.file_type() == model.file_type()
        && (found.uid() == 0 || found.uid() == model.uid())
        && writable & !model.mode() == 0
        && (writable & 0o020 == 0 || found.gid() == model.gid())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, chown, symlink},
    };

    use super::*;

    /// The second program is beside the launcher, or where packages put it. All users who can change it, or a
    /// directory on its path, must be able to change the launcher too.
    #[test]
    fn a_second_program_that_more_users_can_change_is_not_executed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().canonicalize().expect("it is there");
        let (bin, lib) = (root.join("bin"), root.join("lib/rungate"));
        let (launcher, beside, tools) = (bin.join("rungate"), bin.join(TOOLS), lib.join(TOOLS));
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is this user's");
        };
        for path in [&bin, &lib] {
            fs::create_dir_all(path).expect("a directory");
            set(path, 0o755);
        }
        set(&root.join("lib"), 0o755);
        fs::write(&launcher, "").expect("a file");
        set(&launcher, 0o755);
        let places = [beside.clone(), tools.clone()];
        assert!(matches!(tools_of(&launcher), Err(NoTools::Missing(missing)) if missing == places));
        fs::write(&tools, "").expect("a file");
        set(&tools, 0o755);
        let distrusted = || match tools_of(&launcher) {
            Ok(found) => {
                assert_eq!(found, tools);
                None
            }
            Err(NoTools::Distrusted(path)) => Some(path),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(distrusted(), None);
        for path in [&tools, &lib] {
            for mode in [0o775, 0o757] {
                set(path, mode);
                assert_eq!(distrusted().as_ref(), Some(path), "{mode:o}");
            }
            set(path, 0o755);
        }
        // Then the same users can change both.
        for path in [&tools, &launcher] {
            set(path, 0o777);
        }
        assert_eq!(distrusted(), None);
        // Not if others are in its group. Only root can give it away.
        if chown(&tools, None, Some(1)).is_ok() {
            assert_eq!(distrusted().as_ref(), Some(&tools));
            let group = fs::metadata(&launcher).expect("a file").gid();
            chown(&tools, None, Some(group)).expect("it is this user's");
        }
        // A link may lead elsewhere later.
        symlink(&tools, &beside).expect("a link");
        assert_eq!(distrusted(), Some(beside.clone()));
        fs::remove_file(&beside).expect("it is there");
        fs::write(&beside, "").expect("a file");
        assert_eq!(tools_of(&launcher).ok(), Some(beside.clone()));
        // What cannot be looked at may be there.
        fs::remove_file(&beside).expect("it is there");
        fs::remove_dir_all(root.join("lib")).expect("it is there");
        symlink("lib", root.join("lib")).expect("a link to itself");
        assert!(matches!(tools_of(&launcher), Err(NoTools::Failed(path, _)) if path == tools));
    }

    /// This program is no second program, so no launcher belongs to it.
    #[test]
    fn no_launcher_is_found_where_there_is_none() {
        assert_eq!(super::launcher(Path::new("/nowhere/rungate")), None);
    }
}
