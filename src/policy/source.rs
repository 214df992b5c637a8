//! Which files make up the policy, and their text. Only this folder of the module reads files. Everything
//! after it works on text in memory, so that tests and `policy check FILE` judge exactly as a launch.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Delegation, LayerKind, SYSTEM_POLICY, fault::Fault, malformed, validation::delegations_of};
use crate::{
    sys::{
        InsecurePath, JudgedDirectories, Kind, LookupFailure, Stamp, TrustedDirectory, TrustedFile, accounts,
        regular_file,
    },
    text::{Change, Show, SourceText},
};

/// Which delegated files are read.
pub(super) type IsWanted<'w> = &'w dyn Fn(&Delegation) -> bool;

/// Where the policy comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sources {
    /// The system's file. Its drop-ins are in the directory beside it whose name ends in `.d` instead of
    /// `.toml`.
    pub system: PathBuf,
    /// What `--policy` or `RUNGATE_POLICY` names; it must exist.
    pub given: Option<PathBuf>,
    /// The user who names the file, and may also own it, because a caller may act for another user.
    pub given_by: u32,
    /// The caller's own file, `$XDG_CONFIG_HOME/rungate/policy.toml`.
    pub own: Option<PathBuf>,
    /// The caller's real uid: the only owner of a policy besides root, and whether added layers may loosen.
    pub caller: u32,
}

/// A text that may be put at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Proposal {
    /// Where.
    pub path: PathBuf,
    /// None if it is not a regular file.
    pub text: Option<String>,
}

impl Proposal {
    fn source(&self) -> Option<SourceText> {
        self.text.as_deref().map(|text| SourceText::new(&self.path, text))
    }
}

impl Sources {
    /// The system's policy alone, for a caller with this real uid.
    pub fn system(caller: u32) -> Self {
        Sources { system: SYSTEM_POLICY.into(), given: None, given_by: caller, own: None, caller }
    }

    /// The directory of the system's drop-ins.
    pub fn drop_ins(&self) -> PathBuf {
        self.system.with_extension("d")
    }

    pub(super) fn is_drop_in(&self, file: &Path) -> bool {
        file.parent() == Some(&self.drop_ins())
    }

    /// Whether a fault there is one of the system's policy, also if the caller names the same file.
    pub(super) fn is_of_system(&self, path: &Path) -> bool {
        path == self.system || path == self.drop_ins() || self.is_drop_in(path)
    }

    /// Reads every file, and the delegated files that `is_wanted` selects: no others are even opened.
    pub(super) fn read(&self, is_wanted: IsWanted<'_>) -> Found {
        self.read_with(&[], is_wanted)
    }

    /// The same as if these texts were at their paths.
    pub(super) fn read_with(&self, proposals: &[Proposal], is_wanted: IsWanted<'_>) -> Found {
        self.read_by(Reading::for_caller(self.caller).with(proposals), is_wanted)
    }

    /// What the main file delegates, with these texts at their paths.
    pub(crate) fn delegations_with(&self, proposals: &[Proposal]) -> Vec<Delegation> {
        self.read_with(proposals, &|_| false).delegations
    }

    /// The one of these that delegates a file.
    pub(crate) fn delegation_of<'d>(
        &self,
        delegations: &'d [Delegation],
        file: &Path,
    ) -> Option<&'d Delegation> {
        delegations.iter().find(|known| self.is_drop_in(file) && known.is_of(file))
    }

    /// Who may own a file besides root, with these texts at their paths.
    pub(crate) fn delegate_with(
        &self,
        proposals: &[Proposal],
        file: &Path,
    ) -> Result<Option<u32>, LookupFailure> {
        self.delegation_of(&self.delegations_with(proposals), file).map(owner_of).transpose()
    }

    /// Reads every file like [`read`](Self::read), where others watch.
    pub(super) fn read_watched(&self, watch: &dyn Watch, is_wanted: IsWanted<'_>) -> Found {
        self.read_by(Reading { watch: Some(watch), ..Reading::for_caller(self.caller) }, is_wanted)
    }

    fn read_by(&self, mut reading: Reading<'_>, is_wanted: IsWanted<'_>) -> Found {
        let mut system = reading.file(&self.system, Need::May);
        let lacks_main = system.is_empty();
        let delegations = system.first().map_or_else(Vec::new, |main| delegations_of(main.text()));
        let delegated = reading.drop_ins(&self.drop_ins(), &mut system, &delegations, is_wanted);
        reading.found.stamps.of_system = reading.found.stamps.files.len();
        reading.layer(LayerKind::System, system);
        for file in delegated {
            reading.layer(LayerKind::Delegated, vec![file]);
        }
        if let Some(given) = &self.given {
            let files = reading.given(given, self.given_by);
            reading.layer(LayerKind::Given, files);
        }
        if let Some(own) = &self.own {
            let files = reading.file(own, Need::WhereReached);
            reading.layer(LayerKind::Own, files);
        }
        Found { delegations, lacks_main, ..reading.found }
    }
}

// The files of a policy that were found: their texts and their faults.

/// The text of a layer's files, wherever it came from.
#[derive(Debug)]
pub struct LayerText {
    pub kind: LayerKind,
    /// The files, in the order in which they count.
    pub files: Vec<SourceText>,
}

/// The files that were found in the places of a policy.
#[derive(Default)]
pub(super) struct Found {
    pub(in crate::policy) layers: Vec<LayerText>,
    /// Files that cannot be used, and why.
    pub(in crate::policy) faults: Vec<(PathBuf, Fault)>,
    /// Names in the drop-in directory that are no drop-ins, with the directory.
    pub(in crate::policy) skipped: Vec<(PathBuf, String)>,
    pub(in crate::policy) stamps: Stamps,
    /// What the system's main file delegates.
    pub(in crate::policy) delegations: Vec<Delegation>,
    /// Whether the first file is not the system's main file, because there is none.
    pub(in crate::policy) lacks_main: bool,
}

// Every file of a policy as it was found, or its absence, to detect later whether the policy is still the
// same.

/// The files with their states.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    files: Vec<(PathBuf, Option<Stamp>)>,
    /// How many of them, the first ones, are the system's.
    of_system: usize,
    /// Those of delegated files, which do not apply to all users.
    delegated: Vec<(PathBuf, Option<Stamp>)>,
    /// Stamps of time zones, which do not distinguish policies.
    zones: Vec<(PathBuf, Option<Stamp>)>,
}

impl Stamps {
    /// Whether a file was added, removed or changed since. A file that does not answer counts as changed.
    pub(in crate::policy) fn are_stale(&self, watch: Option<&dyn Watch>) -> bool {
        let is_same = |(path, stamp): &(PathBuf, Option<Stamp>)| Stamp::of(path) == *stamp;
        let mut of_everybody = self.files.iter().chain(&self.zones);
        !(of_everybody.all(is_same)
            && self.delegated.iter().all(|file| watched(watch, &file.0, || is_same(file)) == Some(true)))
    }

    /// Whether they are certainly unchanged, without waiting for a disk.
    pub(in crate::policy) fn are_surely_fresh(&self) -> bool {
        self.all().all(|(path, stamp)| Stamp::is_surely_still(path, *stamp))
    }

    /// Whether that can be known, because all files are on this host. The absence of a file is known on any
    /// file system.
    pub(in crate::policy) fn are_local(&self, watch: Option<&dyn Watch>) -> bool {
        let is_local = |(path, stamp): &(PathBuf, Option<Stamp>)| stamp.is_none() || Stamp::is_local(path);
        let mut of_everybody = self.files.iter().chain(&self.zones);
        of_everybody.all(is_local)
            && self.delegated.iter().all(|file| watched(watch, &file.0, || is_local(file)) == Some(true))
    }

    /// The inputs that are the same for all users while the system's policy is unchanged, without delegated
    /// files. Without a system policy, for all users of these files.
    pub(in crate::policy) fn shared(&self, has_systems: bool) -> impl Iterator<Item = &Stamp> {
        let count = if has_systems { self.of_system } else { self.files.len() };
        self.files.iter().take(count).filter_map(|(_, stamp)| stamp.as_ref())
    }

    /// Whether it is one that is read for every user: which delegated files are read depends on the launch,
    /// and must not change what else is.
    fn has(&self, file: Stamp) -> bool {
        self.files.iter().filter_map(|(_, stamp)| stamp.as_ref()).any(|known| known.is_of_same_file(&file))
    }

    /// Whether two policies are the same, without delegated files.
    pub(in crate::policy) fn are_those_of_everybody(&self, other: &Stamps) -> bool {
        self.files == other.files
    }

    fn all(&self) -> impl Iterator<Item = &(PathBuf, Option<Stamp>)> {
        self.files.iter().chain(&self.delegated).chain(&self.zones)
    }

    /// The current stamps of files, without those that do not answer.
    pub(in crate::policy) fn of(paths: impl Iterator<Item = PathBuf>, watch: Option<&dyn Watch>) -> Self {
        let stamp = |path: PathBuf| watched(watch, &path, || Stamp::of(&path)).map(|stamp| (path, stamp));
        Self { files: paths.filter_map(stamp).collect(), ..Self::default() }
    }

    /// Adds delegated files that were not read.
    pub(in crate::policy) fn add_delegated(&mut self, Stamps { files, .. }: Stamps) {
        self.delegated.extend(files);
    }

    fn push(&mut self, stamp: (PathBuf, Option<Stamp>)) {
        self.files.push(stamp);
    }

    /// Notes the file of a time zone as it is now.
    pub(in crate::policy) fn see_zone(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path);
        self.zones.push((path, stamp));
    }

    /// The last file is a delegated one.
    fn move_last_to_delegated(&mut self) {
        self.delegated.extend(self.files.pop());
    }
}

// Files that are opened, judged and read, each with its faults.

/// Whether a file must exist.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Need {
    Must,
    /// It may be missing, but a dangling link shows that one was meant to exist.
    May,
    /// It may be missing, and its directory may be closed. A caller who changed the user and kept `HOME` has
    /// another user's directory, and no own policy.
    WhereReached,
}

struct Reading<'p> {
    /// Every directory is judged once.
    judged: JudgedDirectories,
    /// The text to read instead of the existing file.
    proposals: &'p [Proposal],
    watch: Option<&'p dyn Watch>,
    found: Found,
}

/// Watches whoever reads delegated files, or looks at their state: they may be on a server that does not
/// answer.
pub(crate) trait Watch {
    /// This file comes now. False if it is left out, because its file system does not answer.
    fn begin(&self, file: &Path) -> bool;

    /// It has answered.
    fn end(&self);
}

/// What is seen of a file that may not answer; none if it is left out.
fn watched<T>(watch: Option<&dyn Watch>, file: &Path, look: impl FnOnce() -> T) -> Option<T> {
    let Some(watch) = watch else { return Some(look()) };
    watch.begin(file).then(|| {
        let seen = look();
        watch.end();
        seen
    })
}

impl<'p> Reading<'p> {
    fn for_caller(caller: u32) -> Self {
        let judged = JudgedDirectories::for_caller(caller);
        Reading { judged, proposals: &[], watch: None, found: Found::default() }
    }

    /// The same, with these texts at their paths.
    fn with(self, proposals: &'p [Proposal]) -> Self {
        Reading { proposals, ..self }
    }

    fn proposal(&self, path: &Path) -> Option<&'p Proposal> {
        self.proposals.iter().find(|proposal| proposal.path == path)
    }

    /// A file, where it exists and can be used.
    fn file(&mut self, path: &Path, need: Need) -> Vec<SourceText> {
        if let Some(proposal) = self.proposal(path) {
            return Vec::from_iter(proposal.source());
        }
        let opened = TrustedFile::open(path, &self.judged);
        self.opened(path, need, opened)
    }

    /// A file that the caller names, and may also own.
    fn given(&mut self, path: &Path, by: u32) -> Vec<SourceText> {
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
                } else if need == Need::May {
                    self.found.faults.extend(dangling(path).map(|fault| (path.to_owned(), fault)));
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

    /// Adds the drop-ins of the system to its files; returns those that are delegated.
    fn drop_ins(
        &mut self,
        directory: &Path,
        files: &mut Vec<SourceText>,
        delegations: &[Delegation],
        is_wanted: IsWanted<'_>,
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
                // A dangling link, or a file that was removed since the listing: the next stamp shows it.
                Ok(None) => self.found.faults.push((path, Fault::Missing)),
                Ok(Some(file)) => files.extend(self.text(&path, file)),
                Err(distrust) => self.distrust(&path, &distrust.for_roots()),
            }
        }
        delegated
    }

    fn open_drop_ins(&mut self, directory: &Path) -> Option<TrustedDirectory> {
        let opened = match TrustedDirectory::open_systems(directory, &self.judged) {
            Ok(Some(opened)) => Some(opened),
            Ok(None) => {
                // If it is missing with the directory above it, that of the file says so.
                if directory.is_symlink() {
                    let reason = "is a link to a directory that is not there".to_owned();
                    self.found.faults.push((directory.to_owned(), Fault::Unreadable { reason }));
                }
                None
            }
            Err(distrust) => {
                self.distrust(directory, &distrust);
                None
            }
        };
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
    fn delegated(
        &mut self,
        path: &Path,
        delegation: &Delegation,
        open: impl FnOnce(u32) -> Result<Option<TrustedFile>, InsecurePath>,
    ) -> Option<SourceText> {
        let text = watched(self.watch, path, || self.read_delegated(path, delegation, open));
        text.unwrap_or_else(|| {
            let reason = "its file system, or the look-up of its owner, does not answer".to_owned();
            self.found.faults.push((path.to_owned(), Fault::Unreadable { reason }));
            None
        })
    }

    fn read_delegated(
        &mut self,
        path: &Path,
        delegation: &Delegation,
        open: impl FnOnce(u32) -> Result<Option<TrustedFile>, InsecurePath>,
    ) -> Option<SourceText> {
        let owner = match owner_of(delegation) {
            Ok(owner) => owner,
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
                self.found.stamps.move_last_to_delegated();
                text
            }
            Err(distrust) => {
                // Also if another delegated file has the same: each has its own people.
                self.found.faults.push((path.to_owned(), fault_of(path, &distrust.for_delegate(owner))));
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
        let fault = fault_of(path, distrust);
        // A directory above a file and its drop-ins is reported once.
        let elsewhere = distrust.path != path;
        if !elsewhere || !self.found.faults.iter().any(|(_, known)| *known == fault) {
            self.found.faults.push((path.to_owned(), fault));
        }
    }

    fn layer(&mut self, kind: LayerKind, files: Vec<SourceText>) {
        if !files.is_empty() {
            self.found.layers.push(LayerText { kind, files });
        }
    }
}

/// What is wrong if a file is missing because it, or its directory, is a link that leads nowhere, as to a
/// share that is not mounted: it may be meant to be there.
fn dangling(path: &Path) -> Option<Fault> {
    let there = |at| Some((at, Path::symlink_metadata(at).ok()?));
    let (last, status) = path.ancestors().take(2).find_map(there)?;
    let is_gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    if !status.is_symlink() || !last.metadata().is_err_and(is_gone) {
        return None;
    }
    let reason = if last == path {
        "is a link to a file that is not there".to_owned()
    } else {
        format!("{} is a link to a directory that is not there", last.shown())
    };
    Some(Fault::Unreadable { reason })
}

fn fault_of(path: &Path, distrust: &InsecurePath) -> Fault {
    // The reason names the file only if it is a different one: a directory above, or a link.
    let reason = if distrust.path == path { distrust.reason.to_string() } else { distrust.to_string() };
    let chown = distrust.chown().map_or_else(String::new, |chown| format!("; {chown} fixes that"));
    let reason = reason + &chown;
    if distrust.is_about_trust() { Fault::Untrusted { reason } } else { Fault::Unreadable { reason } }
}

/// The user who may own a delegated file besides root. If there is no such user, it can only belong to root.
fn owner_of(delegation: &Delegation) -> Result<u32, LookupFailure> {
    if let Ok(uid) = delegation.owner().parse() {
        return Ok(uid);
    }
    Ok(accounts::account_of_name(delegation.owner())?.map_or(0, |owner| owner.uid))
}

/// Whether a file with this name in the directory of drop-ins is one.
pub(crate) fn is_drop_in(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".toml") && !name.starts_with(b".")
}

/// The files of the policy that a path leads to: a file, or a directory with a `policy.toml` and its
/// `policy.d`, or with drop-ins alone. Without any of these it names the `policy.toml` that is missing.
pub(crate) fn files_of(path: &Path, judged: &JudgedDirectories) -> Result<Vec<PathBuf>, InsecurePath> {
    if !regular_file::status_of_target(path).is_ok_and(|status| status.kind == Kind::Directory) {
        return Ok(vec![path.to_owned()]);
    }
    let drop_ins = |directory: &Path| -> Result<Option<Vec<PathBuf>>, InsecurePath> {
        let Some(opened) = TrustedDirectory::open(directory, judged)? else {
            // A link that leads nowhere is no reason to leave them out: it cannot be read as a file.
            return Ok(directory.is_symlink().then(|| vec![directory.to_owned()]));
        };
        let names = opened.names()?.iter().filter(|name| is_drop_in(name));
        Ok(Some(names.map(|name| directory.join(name)).collect()))
    };
    let main = path.join("policy.toml");
    let main = regular_file::status_of_path(&main).is_ok().then_some(main);
    let mut files: Vec<PathBuf> = match (drop_ins(&path.join("policy.d"))?, main) {
        (None, None) => drop_ins(path)?.unwrap_or_default(),
        (beside, main) => main.into_iter().chain(beside.into_iter().flatten()).collect(),
    };
    if files.is_empty() {
        files.push(path.join("policy.toml"));
    }
    Ok(files)
}

// Files that the caller named, instead of those in force.

/// Files that were named one by one, read together as a system policy. The first is the main file.
pub(super) fn read_files(paths: &[PathBuf], caller: u32) -> Found {
    read_all(Reading::for_caller(caller), paths, true, caller)
}

/// The policy that a path leads to, see [`files_of`].
pub(super) fn read_place(path: &Path, caller: u32) -> Found {
    let mut reading = Reading::for_caller(caller);
    let files = match files_of(path, &reading.judged) {
        Ok(files) => files,
        Err(insecure) => {
            reading.distrust(path, &insecure);
            Vec::new()
        }
    };
    // A directory may have drop-ins alone.
    let has_main = files.first().is_some_and(|first| first == path || *first == path.join("policy.toml"));
    read_all(reading, &files, has_main, caller)
}

fn read_all(mut reading: Reading, paths: &[PathBuf], has_main: bool, caller: u32) -> Found {
    let (main, others) = paths.split_at(usize::from(has_main).min(paths.len()));
    let mut system: Vec<SourceText> = main.iter().flat_map(|path| reading.file(path, Need::Must)).collect();
    let lacks_main = system.is_empty();
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
    Found { lacks_main, ..reading.found }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::policy::Policy;

    /// A file may be missing because a link leads nowhere: itself, or its directory. A link to something, in
    /// which it is missing, is no reason.
    #[test]
    fn a_link_that_leads_nowhere_is_found_in_a_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("there")).expect("a directory");
        for (name, to) in [("good", "there"), ("bad", "gone"), ("worse", "bad")] {
            symlink(to, at(name)).expect("a link");
        }
        let reason = |name: &str| match dangling(&at(name)) {
            Some(Fault::Unreadable { reason }) => Some(reason),
            other => other.map(|_| String::new()),
        };
        for name in ["there", "good", "gone", "there/gone", "good/gone", "bad/d/x"] {
            assert_eq!(reason(name), None, "{name}");
        }
        for name in ["bad", "worse"] {
            assert_eq!(reason(name).as_deref(), Some("is a link to a file that is not there"), "{name}");
        }
        let above = format!("{} is a link to a directory that is not there", at("bad").shown());
        assert_eq!(reason("bad/policy.toml"), Some(above));
    }

    /// The agent's loop never waits for a server: it asks about a policy itself only if every file of it is
    /// on a file system of this host.
    #[test]
    fn one_file_elsewhere_makes_a_policy_not_local() {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path().join("policy.toml");
        std::fs::write(&here, "").expect("a file");
        let made_up = PathBuf::from("/proc/self/status");
        let of = |paths: &[&Path]| Stamps::of(paths.iter().map(|path| path.to_path_buf()), None);
        assert!(of(&[&here, Path::new("/nowhere")]).are_local(None));
        assert!(!of(&[&here, &made_up]).are_local(None));
        for number in 0..2 {
            let mut stamps = of(&[&here]);
            match number {
                0 => stamps.add_delegated(of(&[&made_up])),
                _ => stamps.see_zone(made_up.clone()),
            }
            assert!(!stamps.are_local(None));
        }
    }

    /// A policy is stale if one of its files has changed: a delegated one, that of a time zone, or one that
    /// was missing, too.
    #[test]
    fn a_policy_is_stale_if_any_of_its_files_has_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let of = |names: &[&str]| Stamps::of(names.iter().map(|name| path(name)), None);
        for name in ["policy.toml", "20-cad.toml", "zone"] {
            std::fs::write(path(name), "version = 1\n").expect("a file");
        }
        for changed in ["policy.toml", "20-cad.toml", "zone", "missing.toml"] {
            let mut stamps = of(&["policy.toml", "missing.toml"]);
            stamps.add_delegated(of(&["20-cad.toml"]));
            stamps.see_zone(path("zone"));
            assert!(!stamps.are_stale(None), "{changed}");
            let before = std::fs::read_to_string(path(changed)).unwrap_or_default();
            std::fs::write(path(changed), format!("{before}# changed\n")).expect("a file");
            assert!(stamps.are_stale(None) && !stamps.are_surely_fresh(), "{changed}");
        }
    }

    /// The zone that a policy names is watched. Without a name that of the system is, if the time matters.
    #[test]
    fn the_time_zone_of_a_policy_is_watched() {
        let zones = |defaults: &str, rule: &str| {
            let text = format!("[defaults]\n{defaults}\n[[rule]]\nacquire = []\n{rule}\n");
            let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
            let zones = policy.stamps.zones.iter().map(|(path, _)| path.clone());
            zones.collect::<Vec<_>>()
        };
        let (named, timed) = ("time_zone = \"UTC\"", "when = [\"Fri\"]");
        assert_eq!(zones("", ""), [] as [PathBuf; 0]);
        assert_eq!(zones("", timed), [PathBuf::from("/etc/localtime")]);
        for rule in ["", timed] {
            assert_eq!(zones(named, rule), [PathBuf::from("/usr/share/zoneinfo/UTC")]);
        }
    }

    /// What is the same for all users are the files of the system, or, without a policy of the system, all.
    #[test]
    fn without_a_policy_of_the_system_all_files_are_shared() {
        let here = tempfile::tempdir().expect("a directory");
        let of = |count: usize| Stamps::of((0..count).map(|_| here.path().to_owned()), None);
        let stamps = Stamps { of_system: 1, ..of(3) };
        assert_eq!((stamps.shared(true).count(), stamps.shared(false).count()), (1, 3));
    }

    /// The owner of a delegated file is a number or a name. A file of a user who does not exist can only
    /// belong to root.
    #[test]
    fn a_file_of_a_user_who_does_not_exist_is_of_root() {
        let owner = |owner: &str| {
            let sources = Sources { system: "/nowhere/policy.toml".into(), ..Sources::system(0) };
            let keys = format!("owner = {owner}\nusers = [\"*\"]\ncommands = [\"*\"]\n");
            let text = format!("[delegate.\"20-cad.toml\"]\n{keys}");
            let main = Proposal { path: sources.system.clone(), text: Some(text) };
            let main = [main];
            let of = |file: PathBuf| sources.delegate_with(&main, &file).ok().flatten();
            // Another file, or one with this name elsewhere, is not delegated.
            assert_eq!(of(sources.drop_ins().join("30-sim.toml")), None);
            assert_eq!(of("/elsewhere/20-cad.toml".into()), None);
            of(sources.drop_ins().join("20-cad.toml"))
        };
        assert_eq!(owner("4711"), Some(4711));
        assert_eq!(owner("\"no-such-user-here\""), Some(0));
    }
}
