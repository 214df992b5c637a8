//! Files that are opened, judged and read, each with its faults.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Proposal,
    found::{Found, LayerText},
};
use crate::{
    policy::{delegation::Delegation, fault::Fault, layer::LayerKind, malformed, preview::delegations_of},
    sys::{
        accounts,
        regular_file::{self, Kind},
        trust::InsecurePath,
        trusted_file::{JudgedDirectories, TrustedDirectory, TrustedFile},
    },
    text::diagnostic::{Change, SourceText},
};

/// Whether a file must exist.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Need {
    Must,
    /// It may be missing, but a dangling link shows that one was meant to exist.
    May,
    /// It may be missing, and its directory may be closed: a caller who changes the user and keeps `HOME` has
    /// another user's directory, and no own policy.
    WhereReached,
}

pub(super) struct Reading<'p> {
    /// Every directory is judged once.
    judged: JudgedDirectories,
    /// The text to read instead of the existing file.
    proposals: &'p [Proposal],
    pub(super) found: Found,
}

impl<'p> Reading<'p> {
    pub(super) fn for_caller(caller: u32) -> Self {
        Reading { judged: JudgedDirectories::for_caller(caller), proposals: &[], found: Found::default() }
    }

    /// The same, with these texts at their paths.
    pub(super) fn with(self, proposals: &'p [Proposal]) -> Self {
        Reading { proposals, ..self }
    }

    fn proposal(&self, path: &Path) -> Option<&'p Proposal> {
        self.proposals.iter().find(|proposal| proposal.path == path)
    }

    /// A file, where it exists and can be used.
    pub(super) fn file(&mut self, path: &Path, need: Need) -> Vec<SourceText> {
        if let Some(proposal) = self.proposal(path) {
            return Vec::from_iter(proposal.source());
        }
        let opened = TrustedFile::open(path, &self.judged);
        self.opened(path, need, opened)
    }

    /// A file that the caller names, and may own too.
    pub(super) fn given(&mut self, path: &Path, by: u32) -> Vec<SourceText> {
        if by == self.judged.caller() {
            return self.file(path, Need::Must);
        }
        self.opened(path, Need::Must, TrustedFile::open_of(path, self.judged.caller(), by))
    }

    fn opened(
        &mut self,
        path: &Path,
        need: Need,
        opened: Result<Option<TrustedFile>, InsecurePath>,
    ) -> Vec<SourceText> {
        match opened {
            Ok(None) => {
                self.found.stamps.push((path.to_owned(), None));
                if need == Need::Must {
                    self.found.faults.push((path.to_owned(), Fault::Missing));
                } else if need == Need::May && path.is_symlink() {
                    let reason = "is a link to a file that is not there".to_owned();
                    self.found.faults.push((path.to_owned(), Fault::Unreadable { reason }));
                }
                Vec::new()
            }
            // The system's policy is not added to itself if it is named.
            Ok(Some(file)) if self.found.stamps.has(file.stamp()) => Vec::new(),
            Ok(Some(file)) => self.text(path, file).into_iter().collect(),
            Err(distrust) => {
                if !(need == Need::WhereReached && distrust.is_out_of_reach()) {
                    self.distrust(path, &distrust);
                }
                Vec::new()
            }
        }
    }

    /// The drop-ins in a directory, without delegated ones; `None` if there is no such directory.
    pub(super) fn drop_ins_in(&mut self, directory: &Path) -> Option<Vec<PathBuf>> {
        let found = TrustedDirectory::open(directory, &self.judged).and_then(|opened| {
            let Some(opened) = opened else { return Ok(None) };
            let names = opened.names()?.iter().filter(|name| is_drop_in(name));
            Ok(Some(names.map(|name| directory.join(name)).collect()))
        });
        found.unwrap_or_else(|distrust| {
            self.distrust(directory, &distrust);
            Some(Vec::new())
        })
    }

    /// Adds the drop-ins of the system to its files; returns those that are delegated.
    pub(super) fn drop_ins(
        &mut self,
        directory: &Path,
        files: &mut Vec<SourceText>,
        delegations: &[Delegation],
        is_wanted: &dyn Fn(&Delegation) -> bool,
    ) -> Vec<SourceText> {
        let opened = self.open_drop_ins(directory);
        let names = self.names_of_drop_ins(directory, opened.as_ref());
        let mut delegated = Vec::new();
        for name in names.iter() {
            let path = directory.join(name);
            if !is_drop_in(name) {
                self.found.skipped.push((directory.to_owned(), name.to_string_lossy().into_owned()));
                continue;
            }
            let delegation = delegations.iter().find(|delegation| delegation.is_of(&path));
            if delegation.is_some_and(|delegation| !is_wanted(delegation)) {
                continue;
            }
            if let Some(proposal) = self.proposal(&path) {
                let list = if delegation.is_some() { &mut delegated } else { &mut *files };
                list.extend(proposal.source());
                continue;
            }
            let Some(opened) = &opened else { continue };
            if let Some(delegation) = delegation {
                delegated.extend(self.delegated(&path, delegation, |owner| opened.file_of(name, owner)));
                continue;
            }
            match opened.file(name) {
                // A dangling link, or a file that was removed since the listing: the next stamp tells.
                Ok(None) => self.found.faults.push((path, Fault::Missing)),
                Ok(Some(file)) => files.extend(self.text(&path, file)),
                Err(distrust) => self.distrust(&path, &distrust.for_roots()),
            }
        }
        delegated
    }

    fn open_drop_ins(&mut self, directory: &Path) -> Option<TrustedDirectory> {
        let opened = TrustedDirectory::open_systems(directory, &self.judged).unwrap_or_else(|distrust| {
            self.distrust(directory, &distrust);
            None
        });
        self.found.stamps.push((directory.to_owned(), opened.as_ref().map(TrustedDirectory::stamp)));
        opened
    }

    /// Every name in the directory, and those that are proposed, in byte order.
    fn names_of_drop_ins<'d>(
        &mut self,
        directory: &Path,
        opened: Option<&'d TrustedDirectory>,
    ) -> Cow<'d, [OsString]> {
        let names = opened.map_or(Ok(&[][..]), TrustedDirectory::names).unwrap_or_else(|distrust| {
            self.distrust(directory, &distrust);
            &[]
        });
        let here = self.proposals.iter().filter(|proposal| proposal.path.parent() == Some(directory));
        let mut proposed: Vec<OsString> =
            here.filter_map(|proposal| proposal.path.file_name()).map(OsStr::to_owned).collect();
        if proposed.is_empty() {
            return Cow::Borrowed(names);
        }
        proposed.extend_from_slice(names);
        proposed.sort();
        proposed.dedup();
        Cow::Owned(proposed)
    }

    /// A file that may belong to the owner of its delegation.
    pub(super) fn delegated(
        &mut self,
        path: &Path,
        delegation: &Delegation,
        open: impl FnOnce(u32) -> Result<Option<TrustedFile>, InsecurePath>,
    ) -> Option<SourceText> {
        let owner = match delegation.owner().parse() {
            Ok(uid) => Ok(Some(uid)),
            Err(_) => accounts::account_of_name(delegation.owner()).map(|owner| owner.map(|owner| owner.uid)),
        };
        let owner = match owner {
            // Where there is no such user it can only be root's.
            Ok(owner) => owner.unwrap_or(0),
            Err(failure) => {
                let reason = failure.to_string();
                self.found.faults.push((path.to_owned(), Fault::Unreadable { reason }));
                return None;
            }
        };
        match open(owner) {
            Ok(None) => {
                self.found.faults.push((path.to_owned(), Fault::Missing));
                None
            }
            Ok(Some(file)) => {
                let text = self.text(path, file);
                self.found.stamps.is_delegated();
                text
            }
            Err(distrust) => {
                self.distrust(path, &distrust.for_delegate(owner));
                None
            }
        }
    }

    fn text(&mut self, path: &Path, mut file: TrustedFile) -> Option<SourceText> {
        self.found.stamps.push((path.to_owned(), Some(file.stamp())));
        let change = Change { at: file.modified(), by: file.owner() };
        let content = match file.read() {
            Ok(content) => content,
            Err(distrust) => {
                self.distrust(path, &distrust);
                return None;
            }
        };
        match String::from_utf8(content) {
            Ok(text) => Some(SourceText::new(path, text).changed(change)),
            Err(error) => {
                self.found.faults.push((path.to_owned(), malformed::not_text(error.as_bytes())));
                None
            }
        }
    }

    fn distrust(&mut self, path: &Path, distrust: &InsecurePath) {
        // The reason names the file only if it is a different one: a directory above, or a link.
        let reason = if distrust.path == path { distrust.reason.to_string() } else { distrust.to_string() };
        let chown = distrust.chown().map_or_else(String::new, |chown| format!("; {chown} fixes that"));
        let reason = reason + &chown;
        let fault = if distrust.is_about_trust() {
            Fault::Untrusted { reason }
        } else {
            Fault::Unreadable { reason }
        };
        // A directory above a file and its drop-ins is reported once.
        let elsewhere = distrust.path != path;
        if !elsewhere || !self.found.faults.iter().any(|(_, known)| *known == fault) {
            self.found.faults.push((path.to_owned(), fault));
        }
    }

    pub(super) fn layer(&mut self, kind: LayerKind, files: Vec<SourceText>) {
        if !files.is_empty() {
            self.found.layers.push(LayerText { kind, files });
        }
    }
}

/// Whether a file with this name in the directory of drop-ins is one.
pub(super) fn is_drop_in(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".toml") && !name.starts_with(b".")
}

// Files that the caller named, instead of those in force.

/// Files that were named one by one, read together as a system policy.
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
