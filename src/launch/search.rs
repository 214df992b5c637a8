//! The search path, and the part of it that lies behind a shim: what comes after the entry that led to the
//! shim. Entries are compared by the directory that they lead to, so that a trailing slash or a link makes no
//! difference.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::sys::executable;

/// The search path where the environment has none: that of the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// `PATH`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    text: OsString,
    /// An empty entry is the working directory.
    entries: Vec<PathBuf>,
}

impl Search {
    /// That of the environment.
    pub fn of_environment() -> Self {
        Self::of(env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH)))
    }

    /// The directories that a text names.
    pub fn of(text: OsString) -> Self {
        let entries = env::split_paths(&text)
            .map(|entry| if entry.as_os_str().is_empty() { PathBuf::from(".") } else { entry })
            .collect();
        Self { text, entries }
    }

    /// As it is written.
    pub fn text(&self) -> &OsStr {
        &self.text
    }

    /// Its directories, in order.
    pub fn entries(&self) -> &[PathBuf] {
        &self.entries
    }

    /// The place of the first entry that leads to a directory.
    pub fn position(&self, directory: &Path) -> Option<usize> {
        self.entries.iter().position(|entry| entry == directory).or_else(|| {
            let wanted = executable::identity(directory)?;
            self.entries.iter().position(|entry| executable::identity(entry) == Some(wanted))
        })
    }

    /// What lies behind a shim. All of it, where no entry leads to the shim: somebody called it by its path.
    pub fn behind(&self, shim: &Path) -> &[PathBuf] {
        match self.position(directory_of(shim)) {
            Some(position) => &self.entries[position + 1..],
            None => &self.entries,
        }
    }
}

/// The directory of a file, as its path says it.
pub fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(path: &str, shim: &str, behind: &[&str]) {
        let search = Search::of(path.into());
        assert_eq!(search.behind(Path::new(shim)), behind.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn behind_a_shim_is_what_comes_after_its_entry() {
        case("/a:/b:/c", "/a/x", &["/b", "/c"]);
        case("/a:/b:/c", "/c/x", &[]);
        case("/a/:/b", "/a/x", &["/b"]);
        case("/usr/./bin:/b", "/usr/bin/x", &["/b"]);
        case("/usr/sbin/../bin:/b", "/usr/bin/x", &["/b"]);
        case(":/b", "x", &["/b"]);
        case("/b:", "./x", &[]);
        case("/a::/b", "./x", &["/b"]);
    }

    #[test]
    fn a_shim_that_no_entry_leads_to_has_all_of_them_behind_it() {
        case("/a:/b", "/nowhere/x", &["/a", "/b"]);
        case("", "/nowhere/x", &["."]);
    }
}
