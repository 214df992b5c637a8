//! Puts a file in place as a whole: it is written beside its place, synced, and renamed. So readers see the
//! old text or the new one, also after a crash of this process or of the host. The directory is the checked
//! one, by its descriptor.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use super::{
    failure::Failure,
    regular_file::{ExtendedAttributes, create_new_at},
    trust::InsecurePath,
    trusted_file::{JudgedDirectories, TrustedDirectory, TrustedFile, Walk},
};
use nix::{
    errno::Errno,
    fcntl::{OFlag, renameat},
    sys::stat::{Mode, fchmod},
    unistd::{Gid, Uid, UnlinkatFlags, fchown, fsync, geteuid, mkdtemp, symlinkat, unlinkat},
};

/// The owner and the permissions of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Attributes {
    /// The attributes of the previous file; without one, those of a new file of this process in its
    /// directory.
    pub(crate) before: Option<Before>,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// The attributes of the replaced file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Before {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Its access control lists and labels.
    pub(crate) extended: ExtendedAttributes,
}

impl TrustedFile {
    /// The path, without links, of the file that is replaced under a path, if no other user can have chosen
    /// that; `None` when there is none. The file itself is not judged.
    pub(crate) fn resolve(path: &Path, judged: &JudgedDirectories) -> Result<Option<PathBuf>, InsecurePath> {
        let found =
            Walk::from_root(path, judged)?.end(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        Ok(found.map(|found| found.path))
    }
}

impl TrustedDirectory {
    /// Puts a text under a name, with exactly these attributes.
    pub(crate) fn place(&self, name: &OsStr, text: &[u8], attributes: &Attributes) -> Result<(), Failure> {
        self.place_by(name, |directory, beside| write_beside(directory, beside, text, attributes))
    }

    /// Puts a link under a name.
    pub(crate) fn place_link(&self, name: &OsStr, to: &Path) -> Result<(), Failure> {
        self.place_by(name, |directory, beside| {
            symlinkat(to, directory, beside).map_err(Failure::of("symlink"))
        })
    }

    /// Puts under a name what is made beside it.
    fn place_by(
        &self,
        name: &OsStr,
        make: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let directory = self.descriptor().as_fd();
        let beside = beside(name);
        // A leftover of a killed process: only the holder of the lock writes here.
        match unlinkat(directory, beside.as_os_str(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(Failure { call: "unlink", errno }),
        }
        let placed = make(directory, &beside).and_then(|()| {
            renameat(directory, beside.as_os_str(), directory, name).map_err(Failure::of("rename"))
        });
        if placed.is_err() {
            let _ = unlinkat(directory, beside.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
        placed.and_then(|()| fsync(directory).map_err(Failure::of("fsync")))
    }

    /// Removes a name from it, whatever it leads to.
    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), Failure> {
        let directory = self.descriptor().as_fd();
        unlinkat(directory, name, UnlinkatFlags::NoRemoveDir).map_err(Failure::of("unlink"))?;
        fsync(directory).map_err(Failure::of("fsync"))
    }
}

/// Hidden, and without the ending of drop-ins.
fn beside(name: &OsStr) -> OsString {
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(".new");
    beside
}

fn is_group_like_others(mode: u32) -> bool {
    (mode >> 3) & 0o7 == mode & 0o7
}

fn write_beside(
    directory: impl AsFd,
    beside: &OsStr,
    text: &[u8],
    attributes: &Attributes,
) -> Result<(), Failure> {
    // No other process reads it before it is complete and has its owner.
    let file: OwnedFd = create_new_at(directory, beside, 0o600).map_err(Failure::of("open"))?;
    let mut file = File::from(file);
    file.write_all(text).map_err(Failure::of_io("write"))?;
    if let Some(Before { uid, gid, .. }) = &attributes.before {
        match fchown(&file, Some(Uid::from_raw(*uid)), Some(Gid::from_raw(*gid))) {
            // An owner may not be in the group of the file. That makes no difference if the group has the
            // same permissions as others.
            Err(Errno::EPERM) if geteuid().as_raw() == *uid && is_group_like_others(attributes.mode) => {}
            changed => changed.map_err(Failure::of("fchown"))?,
        }
    }
    fchmod(&file, Mode::from_bits_truncate(attributes.mode)).map_err(Failure::of("fchmod"))?;
    if let Some(Before { extended, .. }) = &attributes.before {
        extended.give_to(&file)?;
    }
    fsync(&file).map_err(Failure::of("fsync"))
}

// A directory of the caller for files that no other user may read or change, in a place that survives a
// reboot if there is one.

/// Where it is created, unless `TMPDIR` names a trusted directory.
const PLACES: [&str; 2] = ["/var/tmp", "/tmp"];

/// Creates one whose name begins with this, with mode 0700.
pub(crate) fn create(beginning: &str, caller: u32) -> Result<PathBuf, Errno> {
    let own = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut failure = Errno::ENOENT;
    for place in own.into_iter().chain(PLACES.map(PathBuf::from)).filter(|place| is_trusted(place, caller)) {
        match mkdtemp(&place.join(format!("{beginning}XXXXXX"))) {
            Ok(made) => return Ok(made),
            Err(errno) => failure = errno,
        }
    }
    Err(failure)
}

/// Whether no other user can replace a directory that is created there.
fn is_trusted(place: &Path, caller: u32) -> bool {
    matches!(TrustedDirectory::open(place, &JudgedDirectories::for_caller(caller)), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::sys::{own_uid, regular_file::status_of_path};

    use super::*;

    /// A file is put in place as a whole, with its mode. If that fails, nothing is left beside it either.
    #[test]
    fn a_file_is_put_in_place_as_a_whole() {
        let temporary = tempfile::tempdir().expect("a directory");
        let at = |name: &str| temporary.path().join(name);
        let judged = JudgedDirectories::for_caller(own_uid());
        let directory = TrustedDirectory::open(temporary.path(), &judged).expect("trusted").expect("there");
        let (name, attributes) = (OsStr::new("lab.toml"), Attributes { before: None, mode: 0o640 });
        fs::write(at(".lab.toml.new"), "of a killed process").expect("a file");
        for text in ["one", "another"] {
            directory.place(name, text.as_bytes(), &attributes).expect("the directory can be written to");
            assert_eq!(fs::read_to_string(at("lab.toml")).expect("a file"), text);
            assert_eq!(status_of_path(&at("lab.toml")).expect("a file").mode, 0o640);
        }
        directory.remove(name).expect("the directory can be written to");
        directory.place_link(name, Path::new("elsewhere")).expect("the directory can be written to");
        assert_eq!(fs::read_link(at("lab.toml")).expect("a link"), Path::new("elsewhere"));
        fs::create_dir(at("taken")).expect("a directory");
        let failed =
            directory.place(OsStr::new("taken"), b"text", &attributes).expect_err("a directory is there");
        assert_eq!((failed.call, failed.errno), ("rename", Errno::EISDIR));
        let mut names = directory.names().expect("names").to_vec();
        names.sort();
        assert_eq!(names, ["lab.toml", "taken"]);
    }

    /// No program takes the unfinished file for a drop-in.
    #[test]
    fn the_file_beside_is_hidden() {
        assert_eq!(beside(OsStr::new("10-lab.toml")), ".10-lab.toml.new");
    }

    /// A new file may have another group than the old one only if the group may do the same as others.
    #[test]
    fn a_group_is_like_others_if_both_have_the_same_permissions() {
        for mode in [0o644, 0o600, 0o755, 0o666, 0o2755] {
            assert!(is_group_like_others(mode), "{mode:o}");
        }
        for mode in [0o640, 0o664, 0o604, 0o750, 0o660] {
            assert!(!is_group_like_others(mode), "{mode:o}");
        }
    }
}
