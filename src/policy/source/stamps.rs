//! Every file of a policy as it was found, or its absence, to detect later whether the policy is still the
//! same.

use std::path::{Path, PathBuf};

use crate::sys::stamp::Stamp;

/// The files with their states.
#[derive(Clone, Debug, Default)]
pub(in crate::policy) struct Stamps {
    files: Vec<(PathBuf, Option<Stamp>)>,
    /// Those of delegated files, which do not apply to all users.
    delegated: Vec<(PathBuf, Option<Stamp>)>,
    /// Stamps of time zones, which are the same policy elsewhere.
    zones: Vec<(PathBuf, Option<Stamp>)>,
}

impl Stamps {
    /// Whether a file was added, removed or changed since.
    pub(in crate::policy) fn are_stale(&self) -> bool {
        self.all().any(|(path, stamp)| Stamp::of(path) != *stamp)
    }

    /// Whether they are certainly unchanged, without waiting for a disk.
    pub(in crate::policy) fn are_surely_fresh(&self) -> bool {
        self.all().all(|(path, stamp)| Stamp::is_surely_still(path, *stamp))
    }

    /// Whether that can be known, because no file is anywhere but on this host. The absence of a file is
    /// known on any file system.
    pub(in crate::policy) fn are_local(&self) -> bool {
        self.all().all(|(path, stamp)| stamp.is_none() || Stamp::is_local(path))
    }

    /// The inputs that are the same for all users while the system's policy in this directory is unchanged,
    /// without delegated files. Without one, for all users of these files.
    pub(in crate::policy) fn shared(&self, systems: Option<&Path>) -> impl Iterator<Item = &Stamp> {
        let is_of_system = move |path: &Path| systems.is_some_and(|systems| path.starts_with(systems));
        let has_systems = self.files.iter().any(|(path, stamp)| stamp.is_some() && is_of_system(path));
        let shared = self.files.iter().filter(move |(path, _)| !has_systems || is_of_system(path));
        shared.filter_map(|(_, stamp)| stamp.as_ref())
    }

    pub(super) fn has(&self, file: Stamp) -> bool {
        self.all().filter_map(|(_, stamp)| stamp.as_ref()).any(|known| known.is_of_same_file(&file))
    }

    /// Whether two policies are the same, without delegated files.
    pub(in crate::policy) fn are_those_of_everybody(&self, other: &Stamps) -> bool {
        self.files == other.files
    }

    fn all(&self) -> impl Iterator<Item = &(PathBuf, Option<Stamp>)> {
        self.files.iter().chain(&self.delegated).chain(&self.zones)
    }

    /// The current stamps of files.
    pub(in crate::policy) fn of(paths: impl Iterator<Item = PathBuf>) -> Self {
        let files = paths.map(|path| (Stamp::of(&path), path)).map(|(stamp, path)| (path, stamp));
        Self { files: files.collect(), ..Self::default() }
    }

    /// Adds delegated files that were not read.
    pub(in crate::policy) fn add_delegated(&mut self, Stamps { files, .. }: Stamps) {
        self.delegated.extend(files);
    }

    pub(super) fn push(&mut self, stamp: (PathBuf, Option<Stamp>)) {
        self.files.push(stamp);
    }

    /// Notes the file of a time zone as it is now.
    pub(in crate::policy) fn see_zone(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path);
        self.zones.push((path, stamp));
    }

    /// Marks the last file as delegated.
    pub(super) fn is_delegated(&mut self) {
        self.delegated.extend(self.files.pop());
    }
}
