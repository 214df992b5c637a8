//! Where a repository's slots are kept.

use std::path::{Path, PathBuf};

use crate::{
    policy::{Layer, Repository},
    terms::location::{Creation, FileLocation},
};

/// A lock file, and how it comes to be.
pub(super) fn file_location(
    path: PathBuf,
    owner: Option<u32>,
    repository: &Repository,
    layer: &Layer,
    runtime: &Path,
) -> FileLocation {
    let base = repository.path.base(runtime);
    let creation = Creation {
        create_base: !layer.is_of_system(),
        private: base.starts_with(runtime).then(|| runtime.to_owned()),
        base,
        file_mode: layer.create_mode(),
        directory_mode: layer.directory_mode(),
        by_hand: false,
    };
    FileLocation { path, owner, creation }
}

/// The agent's table is called as the lock file would be, without its ending.
pub(super) fn table_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
