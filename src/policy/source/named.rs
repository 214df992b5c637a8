//! Files that were named by whoever asks, instead of those in force.

use std::path::{Path, PathBuf};

use super::{
    found::Found,
    reading::{Need, Reading},
};
use crate::{
    diagnostic::SourceText,
    policy::{layer::LayerKind, preview::delegations_of},
    sys::{
        regular_file::{self, Kind},
        trusted_file::TrustedFile,
    },
};

/// Files that were named one by one, judged together as a system policy.
pub(in crate::policy) fn read_files(paths: &[PathBuf], caller: u32) -> Found {
    read_all(Reading::for_caller(caller), paths, caller)
}

/// The policy that a path leads to: a file, or a directory with a `policy.toml` and its `policy.d`, or with
/// drop-ins alone.
pub(in crate::policy) fn read_place(path: &Path, caller: u32) -> Found {
    let mut reading = Reading::for_caller(caller);
    if !regular_file::status_of_target(path).is_ok_and(|status| status.kind == Kind::Directory) {
        return read_all(reading, &[path.to_owned()], caller);
    }
    let main = path.join("policy.toml");
    let is_main_there = regular_file::status_of_path(&main).is_ok();
    let files = match reading.drop_ins_in(&path.join("policy.d")) {
        Some(beside) => is_main_there.then_some(main).into_iter().chain(beside).collect(),
        None if is_main_there => vec![main],
        None => reading.drop_ins_in(path).filter(|alone| !alone.is_empty()).unwrap_or(vec![main]),
    };
    read_all(reading, &files, caller)
}

fn read_all(mut reading: Reading, paths: &[PathBuf], caller: u32) -> Found {
    let (main, others) = paths.split_first().map_or((&[][..], &[][..]), |(_, others)| (&paths[..1], others));
    let mut system: Vec<SourceText> = main.iter().flat_map(|path| reading.file(path, Need::Must)).collect();
    let delegations = system.first().map_or_else(Vec::new, |main| delegations_of(main.text()));
    let mut delegated = Vec::new();
    for path in others {
        match delegations.iter().find(|delegation| delegation.is_of(path)) {
            None => system.extend(reading.file(path, Need::Must)),
            Some(delegation) => delegated.extend(
                reading.delegated(path, delegation, |owner| TrustedFile::open_of(path, caller, owner)),
            ),
        }
    }
    reading.layer(LayerKind::System, system);
    for file in delegated {
        reading.layer(LayerKind::Delegated, vec![file]);
    }
    reading.found
}
