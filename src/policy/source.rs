//! Which files make up the policy, and their text. The only file of this module that reaches the system: everything
//! after it works on text in memory, so that tests and `policy check FILE` judge exactly what a launch would.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    compiled::{self, Compiled},
    fault::Fault,
    layer::LayerKind,
};
use crate::{
    diagnostic::{Change, SourceText},
    sys::{distrust::Distrust, stamp::Stamp, trusted_directory::TrustedDirectory, trusted_file::TrustedFile},
};

/// The system's policy.
pub const SYSTEM_POLICY: &str = "/etc/rungate/policy.toml";

/// Where the policy comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sources {
    /// The system's file. Its drop-ins are in the directory beside it whose name ends in `.d` instead of `.toml`.
    pub system: PathBuf,
    /// What `--policy` or `RUNGATE_POLICY` names; it must exist.
    pub given: Option<PathBuf>,
    /// The caller's own file, `$XDG_CONFIG_HOME/rungate/policy.toml`.
    pub own: Option<PathBuf>,
    /// The caller's real uid: who may own a policy besides root, and whether what is added may loosen.
    pub caller: u32,
}

/// The text of a layer's files, wherever it came from.
#[derive(Debug)]
pub struct LayerText {
    /// Whose they are.
    pub kind: LayerKind,
    /// The files, in the order in which they count.
    pub files: Vec<SourceText>,
}

/// What was found in the places that [`Sources`] names.
#[derive(Default)]
pub(super) struct Found {
    pub(super) layers: Vec<LayerText>,
    /// Files that cannot be used, and why.
    pub(super) faults: Vec<(PathBuf, Fault)>,
    /// Names in the drop-in directory that are no drop-ins, with the directory.
    pub(super) skipped: Vec<(PathBuf, String)>,
    pub(super) stamps: Stamps,
    /// Whether a file was changed while it was read, so that its stamp is not that of its text.
    pub(super) is_torn: bool,
}

/// The state of one file.
pub(super) type FileStamp = Stamp;

/// Every file as it was found, or that it was not there: what tells later whether the policy is still the same.
#[derive(Debug, Default)]
pub(super) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Whether a file came, went or changed since.
    pub(super) fn are_stale(&self) -> bool {
        self.0.iter().any(|(path, stamp)| Stamp::of(path) != *stamp)
    }

    /// The states of the files that were there, in the order in which they were read.
    pub(super) fn of_files(&self) -> Vec<FileStamp> {
        self.0.iter().filter_map(|(_, stamp)| *stamp).collect()
    }

    fn has(&self, file: Stamp) -> bool {
        self.0.iter().filter_map(|(_, stamp)| stamp.as_ref()).any(|known| known.is_of_same_file(&file))
    }

    fn push(&mut self, stamp: (PathBuf, Option<Stamp>)) {
        self.0.push(stamp);
    }
}

impl Sources {
    /// The system's policy alone, for a caller with this real uid.
    pub fn system(caller: u32) -> Self {
        Sources { system: SYSTEM_POLICY.into(), given: None, own: None, caller }
    }

    /// The directory of the system's drop-ins.
    pub fn drop_ins(&self) -> PathBuf {
        self.system.with_extension("d")
    }

    /// The compiled form that is beside the main file, where the policy has one layer only: a layer is compiled alone, and
    /// several have to be held against one another.
    pub(super) fn read_compiled(&self, found: &Found) -> Option<Compiled> {
        let [layer] = found.layers.as_slice() else { return None };
        if found.is_torn || !found.faults.is_empty() {
            return None;
        }
        let main = match layer.kind {
            LayerKind::System => &self.system,
            LayerKind::Given => self.given.as_ref()?,
            LayerKind::Own => self.own.as_ref()?,
        };
        let mut file = TrustedFile::open(&compiled::path_of(main), self.caller).ok()??;
        let mut owners = layer.files.iter().filter_map(SourceText::change).map(|change| change.by);
        // Who could not have written the files must not say what of them can be left out.
        if file.owner() != 0 && !owners.all(|owner| owner == file.owner()) {
            return None;
        }
        Compiled::read(&file.read().ok()?, &found.stamps.of_files())
    }

    pub(super) fn read(&self) -> Found {
        let mut reading = Reading { caller: self.caller, found: Found::default() };
        let mut system = reading.file(&self.system, Need::May);
        reading.drop_ins(&self.drop_ins(), &mut system);
        reading.layer(LayerKind::System, system);
        if let Some(given) = &self.given {
            let files = reading.file(given, Need::Must);
            reading.layer(LayerKind::Given, files);
        }
        if let Some(own) = &self.own {
            let files = reading.file(own, Need::WhereReached);
            reading.layer(LayerKind::Own, files);
        }
        reading.found
    }
}

/// Files that were named one by one, judged together as a system policy.
pub(super) fn read_files(paths: &[PathBuf], caller: u32) -> Found {
    let mut reading = Reading { caller, found: Found::default() };
    let files = paths.iter().flat_map(|path| reading.file(path, Need::Must)).collect();
    reading.layer(LayerKind::System, files);
    reading.found
}

/// Whether a file has to be there.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Need {
    Must,
    May,
    /// It may be missing, and its directory may be closed: whoever changes the user and keeps `HOME` has somebody
    /// else's, and no policy of his own.
    WhereReached,
}

struct Reading {
    caller: u32,
    found: Found,
}

impl Reading {
    /// A file, where it exists and can be used.
    fn file(&mut self, path: &Path, need: Need) -> Vec<SourceText> {
        match TrustedFile::open(path, self.caller) {
            Ok(None) => {
                self.found.stamps.push((path.to_owned(), None));
                if need == Need::Must {
                    self.found.faults.push((path.to_owned(), Fault::Missing));
                }
                Vec::new()
            }
            // The system's policy, given once more, is not added to itself.
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

    fn drop_ins(&mut self, directory: &Path, files: &mut Vec<SourceText>) {
        let opened = match TrustedDirectory::open(directory, self.caller) {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.found.stamps.push((directory.to_owned(), None)),
            Err(distrust) => return self.distrust(directory, &distrust),
        };
        self.found.stamps.push((directory.to_owned(), Some(opened.stamp())));
        let names = opened.names().unwrap_or_else(|distrust| {
            self.distrust(directory, &distrust);
            Vec::new()
        });
        for name in names {
            let path = directory.join(&name);
            if !is_drop_in(&name) {
                self.found.skipped.push((directory.to_owned(), name.to_string_lossy().into_owned()));
                continue;
            }
            match opened.file(&name) {
                // A link to nothing, or a file that went between the listing and now: the next stamp tells.
                Ok(None) => self.found.faults.push((path, Fault::Missing)),
                Ok(Some(file)) => files.extend(self.text(&path, file)),
                Err(distrust) => self.distrust(&path, &distrust),
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
        self.found.is_torn |= !file.is_unchanged();
        let text = String::from_utf8(content).ok();
        if text.is_none() {
            self.found.faults.push((path.to_owned(), Fault::NotText));
        }
        text.map(|text| SourceText::new(path, text).changed(change))
    }

    fn distrust(&mut self, path: &Path, distrust: &Distrust) {
        // The reason names the file it is about only where that is another one: a directory above, or a link.
        let reason = if distrust.path == path { distrust.reason.to_string() } else { distrust.to_string() };
        let fault = if distrust.is_about_trust() {
            Fault::Untrusted { reason }
        } else {
            Fault::Unreadable { reason }
        };
        // A directory above a file and its drop-ins is wrong once, not twice.
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

fn is_drop_in(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".toml") && !name.starts_with(b".")
}
