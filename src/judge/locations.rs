//! Where a repository's slots are kept.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::terms::{Creation, FileLocation, LookupError, Member, Outside, SAMPLES};
use crate::policy::{Captured, EvalContext, Layer, Placeholder, Policy, Repository, Request, member_of};

/// A lock file, and how it is created.
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

/// Where the last sample of a repository is: root's for the policy of the system, otherwise the caller's.
pub(super) fn outside(policy: &Policy, repository: &Repository, request: &Request<'_>) -> Option<Outside> {
    let measuring = repository.outside.as_ref()?;
    let layer = &policy.layers()[repository.layer];
    let (sample, owner) = sample_of(repository, layer, request.runtime, request.uid);
    Some(Outside {
        sample,
        owner,
        counts: measuring.counts,
        stale_after: measuring.stale_after,
        when_stale: measuring.when_stale,
        settle: measuring.settle,
        uid: request.uid,
        is_by_user: repository.is_by_user(),
        host: request.host.to_string_lossy().into_owned(),
        is_by_host: repository.path.placeholders().any(|placeholder| *placeholder == Placeholder::Host),
        shared_by: repository.sharing.of_seats(),
    })
}

/// The file of a repository's samples, and who may write it besides root.
pub fn sample_of(repository: &Repository, layer: &Layer, runtime: &Path, uid: u32) -> (PathBuf, u32) {
    let (directory, owner) =
        if layer.is_of_system() { (PathBuf::from(SAMPLES), 0) } else { (runtime.join("outside"), uid) };
    (directory.join(format!("{}.jsonl", repository.name())), owner)
}

/// The agent's table is called as the lock file would be, without its ending.
pub(super) fn table_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

// The values of the placeholders of a path in one request.

/// The value as bytes, not yet safe for a file name. `gid` is the group that is charged, `captured` what its
/// rule took.
pub(super) fn value(
    placeholder: &Placeholder,
    gid: Option<u32>,
    captured: &[Captured],
    request: &Request<'_>,
    facts: &EvalContext<'_>,
) -> Result<Vec<u8>, LookupError> {
    let bytes = match placeholder {
        Placeholder::Uid => request.uid.to_string().into_bytes(),
        // No name contains a `#`, so a user whose name is a number is not taken for one without a name.
        Placeholder::User => match facts.lookups.user_name()? {
            Some(name) => name.as_bytes().to_vec(),
            None => format!("#{}", request.uid).into_bytes(),
        },
        Placeholder::Gid => gid.map_or_else(Vec::new, |gid| gid.to_string().into_bytes()),
        Placeholder::Group => match gid {
            Some(gid) => match facts.lookups.group_name(gid)? {
                Some(name) => name.into_bytes(),
                None => format!("#{gid}").into_bytes(),
            },
            None => Vec::new(),
        },
        Placeholder::Command => facts.command_name().to_vec(),
        Placeholder::Host => request.host.as_bytes().to_vec(),
        Placeholder::Directory => request.directory.as_os_str().as_bytes().to_vec(),
        Placeholder::Argument(number) => {
            request.arguments.get(number - 1).map_or_else(Vec::new, |argument| argument.as_bytes().to_vec())
        }
        Placeholder::Arguments => {
            let arguments: Vec<&[u8]> =
                request.arguments.iter().map(|argument| argument.as_bytes()).collect();
            // No argument holds a NUL, so that ["a b"] and ["a", "b"] stay apart.
            arguments.join(&0)
        }
        Placeholder::Captured(name) => {
            let known = captured.iter().find(|captured| captured.name == *name);
            known.map_or_else(Vec::new, |captured| captured.value.clone())
        }
        Placeholder::Environment(variable) => {
            (request.environment)(variable).map_or_else(Vec::new, |value| value.as_bytes().to_vec())
        }
    };
    Ok(bytes)
}

/// The member whose file it is, as people know them.
pub(super) fn member(
    placeholder: &Placeholder,
    value: &[u8],
    gid: Option<u32>,
    request: &Request<'_>,
) -> Member {
    match (placeholder, gid) {
        (Placeholder::User | Placeholder::Uid, _) => Member::User(request.uid),
        (Placeholder::Group | Placeholder::Gid, Some(gid)) => Member::Group(gid),
        _ => member_of(placeholder, value.to_vec()),
    }
}
