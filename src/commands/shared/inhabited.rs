//! Directories that somebody is in. The name of a lock file tells only that of its directory as it was made
//! safe; whoever is there tells the rest.

use std::{cell::OnceCell, collections::BTreeSet, env, os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{
    policy::{is_changed, is_name_of},
    sys::process,
};

/// The working directories of all processes, looked up when they are first needed.
#[derive(Debug, Default)]
pub(super) struct Inhabited(OnceCell<BTreeSet<PathBuf>>);

impl Inhabited {
    /// The name of a member for people: of a directory its path, where somebody is in it.
    pub(super) fn shown(&self, name: &str) -> String {
        let is_it = |path: &&PathBuf| is_name_of(name, path.as_os_str().as_bytes());
        let path = is_changed(name).then(|| self.directories().iter().find(is_it)).flatten();
        path.map_or_else(|| name.to_owned(), |path| path.to_string_lossy().into_owned())
    }

    fn directories(&self) -> &BTreeSet<PathBuf> {
        self.0.get_or_init(|| {
            let of_others = process::all().into_iter().filter_map(|process| process::directory(process.pid));
            of_others.chain(env::current_dir()).collect()
        })
    }
}
