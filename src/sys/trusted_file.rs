//! A file that only root or the caller can have written. The bytes that are read are those that were checked:
//! the path is resolved once, and every directory in it is checked.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
    rc::Rc,
    time::{Duration, SystemTime},
};

use super::{
    failure::Failure,
    regular_file::{self, Access, ExtendedAttributes, Status, create_directory_at},
    stamp::Stamp,
    trust::{InsecurePath, LONGEST, Reason, Trust, is_private_group, judge_writers},
};
use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, open, openat, readlinkat},
    libc,
    sys::stat::{FileStat, Mode, fstat, fstatat},
    unistd::{UnlinkatFlags, unlinkat},
};
use rustix::{
    buffer::spare_capacity,
    fs::{Dir, RawDir},
};

/// A checked file that was not read yet.
#[derive(Debug)]
pub struct TrustedFile {
    file: File,
    path: PathBuf,
    status: FileStat,
}

impl TrustedFile {
    /// Opens a file; `None` when there is none. A relative path starts in the working directory.
    pub fn open(path: &Path, judged: &JudgedDirectories) -> Result<Option<TrustedFile>, InsecurePath> {
        judged.sparingly(|| Self::at_the_end_of(Walk::from_root(path, judged)?, &judged.trust()))
    }

    /// The same for a caller with this real uid, of a file that may belong to this user too.
    pub fn open_of(path: &Path, caller: u32, owner: u32) -> Result<Option<TrustedFile>, InsecurePath> {
        let trust = Trust::of_either(caller, owner);
        Self::at_the_end_of(Walk::from_root_trusting(path, trust.clone(), None)?, &trust)
    }

    pub(super) fn at_the_end_of(walk: Walk<'_>, trust: &Trust) -> Result<Option<TrustedFile>, InsecurePath> {
        let found = walk.end(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        found.map(|found| TrustedFile::judged(found, trust)).transpose()
    }

    fn judged(found: Found, trust: &Trust) -> Result<TrustedFile, InsecurePath> {
        let Found { descriptor, path, status } = found;
        let blame = |reason| InsecurePath { path: path.clone(), reason };
        if kind(&status) != libc::S_IFREG {
            return Err(blame(Reason::NotAFile(kind(&status))));
        }
        trust.judge_owner(&status).map_err(blame)?;
        // Unlike a directory, a file gains nothing from group 0: its members would be trusted.
        let mode = status.st_mode & 0o7777;
        if mode & 0o002 != 0 {
            return Err(blame(Reason::WorldWritable(mode)));
        }
        if mode & 0o020 != 0 && !is_private_group(&status) {
            return Err(blame(Reason::GroupWritable(mode)));
        }
        Ok(TrustedFile { file: descriptor.into(), path, status })
    }

    /// The same, if only its owner can read it.
    pub fn of_its_owner_alone(self) -> Result<TrustedFile, InsecurePath> {
        let mode = self.status.st_mode & 0o7777;
        match mode & 0o077 {
            0 => Ok(self),
            _ => Err(InsecurePath { path: self.path, reason: Reason::ForOthers(mode) }),
        }
    }

    /// Its content.
    pub fn read(&mut self) -> Result<Vec<u8>, InsecurePath> {
        let reason = match self.read_all() {
            Ok(content) if content.len() as u64 <= LONGEST << 20 => return Ok(content),
            Ok(_) => Reason::TooLong,
            Err(error) => Reason::System("read", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))),
        };
        Err(InsecurePath { path: self.path.clone(), reason })
    }

    /// If exactly as many bytes as `fstat` reported were read, and there was room for more, the file is
    /// complete. Otherwise reading continues to the end.
    fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.status.st_size).unwrap_or(0).min(1 << 20);
        // Not filled with zeros first: a sample of use outside may be long.
        let mut content = Vec::with_capacity(length + 1);
        let read = loop {
            match rustix::io::read(&self.file, spare_capacity(&mut content)) {
                Err(rustix::io::Errno::INTR) => {}
                read => break read?,
            }
        };
        if i64::try_from(read) != Ok(self.status.st_size) {
            let rest = ((LONGEST << 20) + 1).saturating_sub(read as u64);
            self.file.by_ref().take(rest).read_to_end(&mut content)?;
        }
        Ok(content)
    }

    /// Its state when it was opened.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }

    /// Who owns it.
    pub fn owner(&self) -> u32 {
        self.status.st_uid
    }

    pub fn group(&self) -> u32 {
        self.status.st_gid
    }

    /// Its permission bits.
    pub fn mode(&self) -> u32 {
        self.status.st_mode & 0o7777
    }

    /// Its access control lists and labels.
    pub(crate) fn extended_attributes(&self) -> Result<ExtendedAttributes, Failure> {
        ExtendedAttributes::of(&self.file)
    }

    /// When it was last written.
    pub fn modified(&self) -> SystemTime {
        let seconds = Duration::from_secs(self.status.st_mtime.unsigned_abs());
        if self.status.st_mtime < 0 {
            SystemTime::UNIX_EPOCH - seconds
        } else {
            SystemTime::UNIX_EPOCH + seconds
        }
    }
}

// A directory that only root or the caller can have changed, and the files in it, opened relative to the
// checked descriptor.

/// A checked directory; its files are opened relative to it.
#[derive(Debug)]
pub struct TrustedDirectory {
    descriptor: Rc<OwnedFd>,
    path: PathBuf,
    status: FileStat,
    names: OnceCell<Vec<OsString>>,
    caller: u32,
}

impl TrustedDirectory {
    /// Opens a directory; `None` when there is none.
    pub fn open(path: &Path, judged: &JudgedDirectories) -> Result<Option<TrustedDirectory>, InsecurePath> {
        judged.sparingly(|| Self::open_once(path, judged))
    }

    fn open_once(path: &Path, judged: &JudgedDirectories) -> Result<Option<TrustedDirectory>, InsecurePath> {
        let Some(found) = Walk::from_root(path, judged)?.end(OFlag::O_RDONLY | OFlag::O_DIRECTORY)? else {
            return Ok(None);
        };
        let Found { descriptor, path, status } = found;
        let judgement = judged.trust().judge_directory(&status);
        judgement.map_err(|reason| InsecurePath { path: path.clone(), reason })?;
        let (descriptor, names) = (Rc::new(descriptor), OnceCell::new());
        Ok(Some(TrustedDirectory { descriptor, path, status, names, caller: judged.caller }))
    }

    /// Opens a directory of the system: root's, or that of the owner of the directory above it, who could
    /// replace it. No other user may have added a name, and the files in it must belong to one of the two.
    pub fn open_systems(
        path: &Path,
        judged: &JudgedDirectories,
    ) -> Result<Option<TrustedDirectory>, InsecurePath> {
        let Some(directory) = Self::open(path, judged)? else { return Ok(None) };
        let owner = directory.status.st_uid;
        let above = || fstatat(&directory.descriptor, "..", AtFlags::empty()).map(|above| above.st_uid);
        let reason = if owner != 0 && above() != Ok(owner) {
            Reason::NotRoots(owner)
        } else if let Err(reason) = judge_writers(&directory.status) {
            reason
        } else {
            return Ok(Some(TrustedDirectory { caller: owner, ..directory }));
        };
        Err(InsecurePath { path: directory.path, reason })
    }

    /// Opens a directory that gets another owner or mode: only what leads to it is judged.
    pub(crate) fn open_to_change(
        path: &Path,
        judged: &JudgedDirectories,
    ) -> Result<Option<OwnedFd>, InsecurePath> {
        let found = Walk::from_root(path, judged)?.end(OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        Ok(found.map(|found| found.descriptor))
    }

    /// Creates a directory with exactly these permission bits, and missing ones above it.
    pub(crate) fn create(path: &Path, mode: u32, judged: &JudgedDirectories) -> Result<(), InsecurePath> {
        let failed = |errno| InsecurePath { path: path.to_owned(), reason: Reason::System("mkdir", errno) };
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(failed(Errno::EINVAL));
        };
        let above = Walk::from_root(above, judged)?.directory(Some(0o755))?;
        let above = above.ok_or_else(|| failed(Errno::ENOENT))?;
        create_directory_at(&above.descriptor, name, mode).map_err(failed)
    }

    /// The names in it at the first call, in byte order, without `.` and `..`.
    pub fn names(&self) -> Result<&[OsString], InsecurePath> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let failed = |error: rustix::io::Errno| InsecurePath {
            path: self.path.clone(),
            reason: Reason::System("getdents", Errno::from_raw(error.raw_os_error())),
        };
        // By the checked descriptor itself, which can be read to the end once.
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&self.descriptor, &mut buffer);
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let name = OsString::from_vec(entry.map_err(failed)?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(self.names.get_or_init(|| names))
    }

    /// Opens a file in it; `None` when it has gone.
    pub fn file(&self, name: &OsStr) -> Result<Option<TrustedFile>, InsecurePath> {
        self.file_trusting(name, &Trust::of_caller(self.caller))
    }

    /// The same, but the file, and directories and links in its path, may also belong to this user.
    pub fn file_of(&self, name: &OsStr, owner: u32) -> Result<Option<TrustedFile>, InsecurePath> {
        self.file_trusting(name, &Trust::of_either(self.caller, owner))
    }

    fn file_trusting(&self, name: &OsStr, trust: &Trust) -> Result<Option<TrustedFile>, InsecurePath> {
        let walk = Walk::within(Rc::clone(&self.descriptor), &self.path, Path::new(name), trust.clone());
        TrustedFile::at_the_end_of(walk, trust)
    }

    /// The path by which it was reached.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Where it is, every link followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its state when it was opened: a different state means that a file was added or removed.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }
}

// A path, walked from `/` down by descriptor. Each directory is checked by the descriptor with which it is
// entered, and links are followed step by step. So no process can replace a component between check and use.

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// The end of a walk: opened, but not checked yet.
pub(super) struct Found {
    pub(super) descriptor: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) status: FileStat,
}

/// A directory that a walk has reached.
pub(super) struct Reached {
    pub(super) descriptor: Rc<OwnedFd>,
    pub(super) path: PathBuf,
    /// None if the walk has not begun.
    pub(super) status: Option<FileStat>,
}

/// A path that is being walked.
pub(super) struct Walk<'j> {
    at: Rc<OwnedFd>,
    path: PathBuf,
    status: Option<FileStat>,
    left: VecDeque<OsString>,
    links: u32,
    trust: Trust,
    /// Directories that need not be checked again. None after `..`: the parent of a directory is not always
    /// the one in its path.
    judged: Option<&'j JudgedDirectories>,
}

impl<'j> Walk<'j> {
    /// A walk that begins in a directory that was judged.
    pub(super) fn within(at: Rc<OwnedFd>, path: &Path, below: &Path, trust: Trust) -> Self {
        let (path, left) = (path.to_owned(), VecDeque::new());
        let mut walk = Walk { at, path, status: None, left, links: 0, trust, judged: None };
        walk.queue(below);
        walk
    }

    /// A walk from the root directory, or, for a relative path, from the working directory.
    pub(super) fn from_root(path: &Path, judged: &'j JudgedDirectories) -> Result<Self, InsecurePath> {
        Self::from_root_trusting(path, judged.trust(), Some(judged))
    }

    /// The same for the given trusted users; the file must have been checked for the same users.
    pub(super) fn from_root_trusting(
        path: &Path,
        trust: Trust,
        judged: Option<&'j JudgedDirectories>,
    ) -> Result<Self, InsecurePath> {
        let failed =
            |call, errno| InsecurePath { path: path.to_owned(), reason: Reason::System(call, errno) };
        let absolute = if path.is_absolute() {
            Cow::Borrowed(path)
        } else {
            Cow::Owned(std::path::absolute(path).map_err(|error| {
                failed("getcwd", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL)))
            })?)
        };
        let root = root(&trust, judged)?;
        Ok(Walk { judged, ..Self::within(root, Path::new("/"), &absolute, trust) })
    }

    /// Inserts the components of a path before the remaining ones.
    fn queue(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    fn open(&self, name: &OsStr, flags: OFlag) -> Result<OwnedFd, Errno> {
        openat(&self.at, name, flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
    }

    /// Walks to the last component and opens it with these flags; `None` if a component is missing.
    pub(super) fn end(mut self, flags: OFlag) -> Result<Option<Found>, InsecurePath> {
        while let Some(name) = self.left.pop_front() {
            let here = self.join(&name);
            if self.left.is_empty() {
                match self.open(&name, flags) {
                    Ok(descriptor) => {
                        let status = status(&descriptor, &here)?;
                        return Ok(Some(Found { descriptor, path: here, status }));
                    }
                    Err(Errno::ENOENT) => return Ok(None),
                    // A link; or, if a directory was requested, something else.
                    Err(Errno::ELOOP | Errno::ENOTDIR) => {}
                    Err(errno) => {
                        return Err(InsecurePath { path: here, reason: Reason::System("open", errno) });
                    }
                }
            }
            if !self.step(&name, here)? {
                return Ok(None);
            }
        }
        Err(InsecurePath { path: self.path, reason: Reason::NotAFile(libc::S_IFDIR) })
    }

    /// Walks through all remaining components, and creates missing directories with these permission bits, if
    /// given. None if a component is missing.
    pub(super) fn directory(mut self, missing: Option<u32>) -> Result<Option<Reached>, InsecurePath> {
        while let Some(name) = self.left.pop_front() {
            let here = self.join(&name);
            if self.step(&name, here.clone())? {
                continue;
            }
            let Some(mode) = missing else { return Ok(None) };
            create_directory_at(&self.at, name.as_os_str(), mode).map_err(|errno| InsecurePath {
                path: here.clone(),
                reason: Reason::System("mkdirat", errno),
            })?;
            if !self.step(&name, here)? {
                return Ok(None);
            }
        }
        Ok(Some(Reached { descriptor: self.at, path: self.path, status: self.status }))
    }

    /// Enters a directory or follows a link; false if it does not exist.
    fn step(&mut self, name: &OsStr, here: PathBuf) -> Result<bool, InsecurePath> {
        let blame = |reason| InsecurePath { path: here.clone(), reason };
        if name == ".." {
            self.judged = None;
        } else if let Some(known) = self.judged.and_then(|judged| judged.find(&here)) {
            (self.at, self.path) = (known, here);
            return Ok(true);
        }
        let next = match self.open(name, OFlag::O_PATH) {
            Ok(next) => next,
            Err(Errno::ENOENT) => return Ok(false),
            Err(errno) => return Err(blame(Reason::System("open", errno))),
        };
        let status = status(&next, &here)?;
        match kind(&status) {
            libc::S_IFDIR => {
                self.trust.judge_directory(&status).map_err(blame)?;
                self.at = Rc::new(next);
                if let Some(judged) = self.judged {
                    judged.keep(&here, &self.at);
                }
                (self.path, self.status) = (here, Some(status));
            }
            libc::S_IFLNK => {
                // In a sticky directory any user can leave a link, which decides where the walk continues.
                self.trust.judge_owner(&status).map_err(blame)?;
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(blame(Reason::TooManyLinks));
                }
                let target =
                    readlinkat(&next, "").map_err(|errno| blame(Reason::System("readlink", errno)))?;
                if target.as_bytes().starts_with(b"/") {
                    self.at = root(&self.trust, self.judged)?;
                    self.path = PathBuf::from("/");
                }
                self.queue(Path::new(&target));
            }
            _ => return Err(blame(Reason::NotADirectory)),
        }
        Ok(true)
    }

    /// The path of an entry of the directory that was reached, for messages.
    fn join(&self, name: &OsStr) -> PathBuf {
        if name == ".." { self.path.parent().unwrap_or(&self.path).to_owned() } else { self.path.join(name) }
    }
}

fn root(trust: &Trust, judged: Option<&JudgedDirectories>) -> Result<Rc<OwnedFd>, InsecurePath> {
    let root = Path::new("/");
    if let Some(known) = judged.and_then(|judged| judged.find(root)) {
        return Ok(known);
    }
    let blame = |reason| InsecurePath { path: root.to_owned(), reason };
    let descriptor = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|errno| blame(Reason::System("open", errno)))?;
    trust.judge_directory(&status(&descriptor, root)?).map_err(blame)?;
    let descriptor = Rc::new(descriptor);
    if let Some(judged) = judged {
        judged.keep(root, &descriptor);
    }
    Ok(descriptor)
}

fn status(descriptor: impl AsFd, path: &Path) -> Result<FileStat, InsecurePath> {
    fstat(descriptor)
        .map_err(|errno| InsecurePath { path: path.to_owned(), reason: Reason::System("fstat", errno) })
}

pub(super) fn kind(status: &FileStat) -> u32 {
    status.st_mode & libc::S_IFMT
}

// The checked directories of one file's path, kept open for the next file: within one launch the policy's
// files share most of their path. An open descriptor stays the checked directory, even if its path leads
// elsewhere by then. So files that are read one after the other come from the same directory.

/// Directories that were entered and checked for one caller. Drop it as soon as all files are open: a later
/// look-up must resolve the current paths.
#[derive(Debug)]
pub struct JudgedDirectories {
    pub(super) caller: u32,
    known: RefCell<Vec<(PathBuf, Rc<OwnedFd>)>>,
    /// Whether the caller has so few descriptors that none can be kept.
    has_few: Cell<bool>,
}

impl JudgedDirectories {
    /// None yet, for a caller with this real uid.
    pub fn for_caller(caller: u32) -> Self {
        Self { caller, known: RefCell::default(), has_few: Cell::new(false) }
    }

    /// The user for whom they are judged.
    pub fn caller(&self) -> u32 {
        self.caller
    }

    pub(super) fn trust(&self) -> Trust {
        Trust::of_caller(self.caller)
    }

    /// The directory that a walk has reached by this path, if any.
    pub(super) fn find(&self, path: &Path) -> Option<Rc<OwnedFd>> {
        let known = self.known.borrow();
        known.iter().find(|(other, _)| other == path).map(|(_, directory)| Rc::clone(directory))
    }

    /// Opens a file. If there are too few descriptors, it drops the kept ones and tries again.
    pub(super) fn sparingly<T>(&self, open: impl Fn() -> Result<T, InsecurePath>) -> Result<T, InsecurePath> {
        open().or_else(|distrust| match distrust.reason {
            Reason::System(_, Errno::EMFILE | Errno::ENFILE) if !self.has_few.replace(true) => {
                self.known.take();
                open()
            }
            _ => Err(distrust),
        })
    }

    /// Keeps a directory. The path must be the one by which it was entered, name by name, without links and
    /// `..`.
    pub(super) fn keep(&self, path: &Path, directory: &Rc<OwnedFd>) {
        if !self.has_few.get() {
            self.known.borrow_mut().push((path.to_owned(), Rc::clone(directory)));
        }
    }
}

// A directory in which a file is searched, opened or created, although other users may have prepared its
// path. It is reached by a walk that checks each directory by its descriptor, and the file is opened
// relative to the checked descriptor.

/// A directory that was reached, open.
#[derive(Clone, Debug)]
pub(crate) struct WalkedDirectory {
    descriptor: Rc<OwnedFd>,
    path: PathBuf,
    status: FileStat,
    trust: Trust,
}

impl WalkedDirectory {
    /// Opens a directory that the caller trusts, together with its owner: links are followed.
    pub(crate) fn named(path: &Path) -> Result<Self, Failure> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let descriptor = open(path, flags, Mode::empty()).map_err(Failure::of("open"))?;
        let status = fstat(&descriptor).map_err(Failure::of("fstat"))?;
        let trust = Trust { owners: vec![status.st_uid], common: true };
        Ok(Self { descriptor: Rc::new(descriptor), path: path.to_owned(), status, trust })
    }

    /// Also trusts another user below it.
    pub(crate) fn trust(&mut self, uid: u32) {
        self.trust.owners.push(uid);
    }

    /// Walks to a directory below, and creates missing ones with exactly these permission bits, if given.
    /// None when something does not exist.
    pub(crate) fn below(self, path: &Path, missing: Option<u32>) -> Result<Option<Self>, InsecurePath> {
        if path.as_os_str().is_empty() {
            return Ok(Some(self));
        }
        let Self { descriptor, path: at, status: before, trust } = self;
        let walk = Walk::within(descriptor, &at, path, trust.clone());
        let Some(Reached { descriptor, path, status }) = walk.directory(missing)? else { return Ok(None) };
        Ok(Some(Self { descriptor, path, status: status.unwrap_or(before), trust }))
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of directory it is.
    pub(crate) fn status(&self) -> Status {
        Status::from(self.status)
    }

    /// Whether an untrusted user could have put a file here.
    pub(crate) fn is_open_to_others(&self) -> bool {
        !self.trust.is_closed_to_others(&self.status)
    }

    /// What the name leads to now, links not followed.
    pub(crate) fn status_of(&self, name: &OsStr) -> Result<Status, Errno> {
        regular_file::status_at(&self.descriptor, name)
    }

    /// Opens an existing file. `ELOOP` means that it is a symbolic link.
    pub(crate) fn open(&self, name: &OsStr, access: Access) -> Result<OwnedFd, Errno> {
        regular_file::open_existing_at(&self.descriptor, name, access)
    }

    /// Creates a file that must not be there yet, with exactly these permission bits.
    pub(crate) fn create(&self, name: &OsStr, mode: u32) -> Result<OwnedFd, Errno> {
        regular_file::create_new_at(&self.descriptor, name, mode)
    }

    /// Removes a name of a file.
    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), Errno> {
        unlinkat(self.descriptor.as_fd(), name, UnlinkatFlags::NoRemoveDir)
    }

    /// The names in it, without `.` and `..`; none if it may not be read.
    pub(crate) fn names(&self) -> Vec<OsString> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let Ok(readable) = openat(self.descriptor.as_fd(), ".", flags, Mode::empty()) else {
            return Vec::new();
        };
        let entries = Dir::read_from(readable).into_iter().flatten().filter_map(Result::ok);
        let names = entries.map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
        names.filter(|name| name != "." && name != "..").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{TrustedDirectory, *};
    use nix::{sys::stat::Mode, unistd::getuid};
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, chown, symlink},
    };
    use tempfile::TempDir;

    struct Tree {
        root: TempDir,
    }

    fn judged() -> JudgedDirectories {
        JudgedDirectories::for_caller(getuid().as_raw())
    }

    impl Tree {
        fn new() -> Self {
            let tree = Tree { root: TempDir::new().expect("a temporary directory") };
            fs::create_dir(tree.at("d")).expect("a directory");
            tree.mode("d", 0o755);
            fs::write(tree.at("d/policy.toml"), "version = 1\n").expect("a file");
            tree.mode("d/policy.toml", 0o644);
            tree
        }

        fn at(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.at(name), Permissions::from_mode(mode)).expect("chmod");
        }

        fn open(&self, name: &str) -> Result<Option<Vec<u8>>, Reason> {
            let opened = TrustedFile::open(&self.at(name), &judged());
            opened
                .map_err(|distrust| distrust.reason)?
                .map(|mut file| file.read().map_err(|d| d.reason))
                .transpose()
        }
    }

    #[test]
    fn a_file_of_the_caller_is_read() {
        let tree = Tree::new();
        assert_eq!(tree.open("d/policy.toml"), Ok(Some(b"version = 1\n".to_vec())));
        assert_eq!(tree.open("d/../d/./policy.toml"), Ok(Some(b"version = 1\n".to_vec())));
    }

    #[test]
    fn a_file_may_be_older_than_1970() {
        let tree = Tree::new();
        let day = Duration::from_secs(24 * 60 * 60);
        for written in [SystemTime::UNIX_EPOCH - day, SystemTime::UNIX_EPOCH + day] {
            let file = fs::File::open(tree.at("d/policy.toml")).expect("the file");
            file.set_modified(written).expect("a time");
            let opened = TrustedFile::open(&tree.at("d/policy.toml"), &judged()).ok().flatten();
            assert_eq!(opened.map(|file| file.modified()), Some(written));
        }
    }

    #[test]
    fn absence_is_no_fault() {
        let tree = Tree::new();
        assert_eq!(tree.open("d/none"), Ok(None));
        assert_eq!(tree.open("none/policy.toml"), Ok(None));
        assert_eq!(tree.open("none/d/policy.toml"), Ok(None));
        let own = TrustedFile::open(Path::new("Cargo.toml"), &judged());
        assert!(!matches!(own, Ok(None)), "a relative path begins in the working directory");
    }

    #[test]
    fn who_can_write_is_judged_on_the_file_and_on_every_directory() {
        let tree = Tree::new();
        tree.mode("d/policy.toml", 0o664);
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::GroupWritable(0o664)));
        tree.mode("d/policy.toml", 0o646);
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::WorldWritable(0o646)));
        tree.mode("d/policy.toml", 0o644);
        tree.mode("d", 0o777);
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::WorldWritable(0o777)));
        tree.mode("d", 0o1777);
        assert!(
            tree.open("d/policy.toml").is_ok(),
            "a sticky directory is as good as one that is not writable"
        );
    }

    #[test]
    fn another_owner_is_refused_for_a_file_a_directory_and_a_link() {
        if !getuid().is_root() {
            return;
        }
        let tree = Tree::new();
        chown(tree.at("d/policy.toml"), Some(4711), None).expect("chown");
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::Owner(4711)));
        chown(tree.at("d/policy.toml"), Some(0), None).expect("chown");
        chown(tree.at("d"), Some(4711), None).expect("chown");
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::Owner(4711)));
        chown(tree.at("d"), Some(0), None).expect("chown");
        symlink("d/policy.toml", tree.at("link")).expect("a link");
        std::os::unix::fs::lchown(tree.at("link"), Some(4711), None).expect("lchown");
        assert_eq!(tree.open("link"), Err(Reason::Owner(4711)));
    }

    #[test]
    fn links_are_followed_and_what_they_lead_through_is_judged() {
        let tree = Tree::new();
        symlink("d", tree.at("relative")).expect("a link");
        symlink(tree.at("relative/policy.toml"), tree.at("absolute")).expect("a link");
        assert!(matches!(tree.open("absolute"), Ok(Some(_))));
        tree.mode("d", 0o777);
        assert_eq!(tree.open("absolute"), Err(Reason::WorldWritable(0o777)));
        symlink("loop", tree.at("loop")).expect("a link");
        assert_eq!(tree.open("loop"), Err(Reason::TooManyLinks));
    }

    /// A caller that may open few files keeps no directories open, and opens the file nevertheless.
    #[test]
    fn with_few_descriptors_no_directory_is_kept() {
        let (judged, path) = (judged(), Path::new("/"));
        let kept = root(&judged.trust(), Some(&judged)).expect("a trusted directory");
        assert!(judged.find(path).is_some());
        let too_many =
            || InsecurePath { path: path.to_owned(), reason: Reason::System("open", Errno::EMFILE) };
        let attempts = Cell::new(0);
        let attempt = |is_possible: bool| {
            attempts.set(attempts.get() + 1);
            if is_possible { Ok(()) } else { Err(too_many()) }
        };
        assert_eq!(judged.sparingly(|| attempt(judged.find(path).is_none())), Ok(()));
        judged.keep(path, &kept);
        assert!(judged.find(path).is_none());
        assert_eq!(judged.sparingly(|| attempt(false)), Err(too_many()));
        assert_eq!(attempts.get(), 3, "twice, and then once");
    }

    /// As many links are followed as the kernel follows in one path.
    #[test]
    fn forty_links_are_followed() {
        let tree = Tree::new();
        let root = tree.root.path().canonicalize().expect("a directory");
        let link = |number: u32| root.join(number.to_string());
        symlink("d/policy.toml", link(1)).expect("a link");
        (1..=40).for_each(|number| symlink(link(number), link(number + 1)).expect("a link"));
        let open = |number| {
            let opened = TrustedFile::open(&link(number), &judged());
            opened.map(|file| file.is_some()).map_err(|distrust| distrust.reason)
        };
        assert_eq!((open(40), open(41)), (Ok(true), Err(Reason::TooManyLinks)));
    }

    /// What is wrong behind a link is named by its own path, whether the link is absolute or not.
    #[test]
    fn what_is_wrong_behind_a_link_is_named_by_its_own_path() {
        let tree = Tree::new();
        let root = tree.root.path().canonicalize().expect("a directory");
        fs::create_dir(tree.at("links")).expect("a directory");
        tree.mode("links", 0o755);
        symlink("../d/policy.toml", tree.at("links/relative")).expect("a link");
        symlink(root.join("d/policy.toml"), tree.at("links/absolute")).expect("a link");
        tree.mode("d", 0o777);
        for link in ["links/relative", "links/absolute"] {
            let distrust = TrustedFile::open(&root.join(link), &judged()).expect_err("no trust");
            assert_eq!((distrust.path, distrust.reason), (root.join("d"), Reason::WorldWritable(0o777)));
        }
    }

    /// A directory to which others can add names is not closed to them, though a sticky one is trusted.
    #[test]
    fn a_sticky_directory_is_not_closed_to_others() {
        let (tree, trust) = (Tree::new(), judged().trust());
        let status = || nix::sys::stat::stat(&tree.at("d")).expect("a directory");
        for (mode, is_closed) in [(0o755, true), (0o1755, true), (0o777, false), (0o1777, false)] {
            tree.mode("d", mode);
            assert_eq!(trust.is_closed_to_others(&status()), is_closed, "{mode:o}");
        }
        if getuid().is_root() {
            tree.mode("d", 0o755);
            chown(tree.at("d"), Some(4711), None).expect("chown");
            assert!(!trust.is_closed_to_others(&status()));
        }
    }

    /// A directory lists the names in it, and neither itself nor the directory above.
    #[test]
    fn a_walked_directory_lists_what_is_in_it() {
        let tree = Tree::new();
        fs::create_dir(tree.at("d/below")).expect("a directory");
        let mut names = WalkedDirectory::named(&tree.at("d")).expect("a directory").names();
        names.sort();
        assert_eq!(names, ["below", "policy.toml"]);
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_blocks() {
        let tree = Tree::new();
        nix::unistd::mkfifo(&tree.at("fifo"), Mode::from_bits_truncate(0o644)).expect("a FIFO");
        assert_eq!(tree.open("fifo"), Err(Reason::NotAFile(libc::S_IFIFO)));
        assert_eq!(tree.open("d"), Err(Reason::NotAFile(libc::S_IFDIR)));
        assert_eq!(tree.open("d/policy.toml/x"), Err(Reason::NotADirectory));
    }

    #[test]
    fn a_directory_lists_in_byte_order_and_opens_relative_to_itself() {
        let tree = Tree::new();
        fs::write(tree.at("d/10-b.toml"), "b").expect("a file");
        symlink("policy.toml", tree.at("d/05-link.toml")).expect("a link");
        let directory = TrustedDirectory::open(&tree.at("d"), &judged()).expect("trusted").expect("there");
        assert_eq!(directory.names().expect("names"), ["05-link.toml", "10-b.toml", "policy.toml"]);
        fs::rename(tree.at("d"), tree.at("moved")).expect("rename");
        let mut file = directory.file("05-link.toml".as_ref()).expect("trusted").expect("there");
        assert_eq!(file.read().expect("content"), b"version = 1\n");
        assert!(TrustedDirectory::open(&tree.at("d"), &judged()).expect("absent").is_none());
        assert!(TrustedDirectory::open(&tree.at("moved/policy.toml"), &judged()).is_err());
    }

    #[test]
    fn a_directory_stays_what_was_judged_until_all_files_are_open() {
        let (tree, judged) = (Tree::new(), judged());
        let content = || {
            let mut file =
                TrustedFile::open(&tree.at("d/policy.toml"), &judged).expect("trusted").expect("there");
            file.read().expect("content")
        };
        assert_eq!(content(), b"version = 1\n");
        fs::rename(tree.at("d"), tree.at("aside")).expect("rename");
        fs::create_dir(tree.at("d")).expect("a directory");
        fs::write(tree.at("d/policy.toml"), "version = 2\n").expect("a file");
        tree.mode("d", 0o777);
        assert_eq!(content(), b"version = 1\n");
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::WorldWritable(0o777)));
    }

    #[test]
    fn what_is_above_a_directory_is_asked_of_the_directory() {
        let (tree, judged) = (Tree::new(), judged());
        for name in ["e", "elsewhere"] {
            fs::create_dir(tree.at(name)).expect("a directory");
            tree.mode(name, 0o755);
        }
        fs::write(tree.at("e/file"), "").expect("a file");
        let is_there = |name| TrustedFile::open(&tree.at(name), &judged).expect("trusted").is_some();
        assert!(is_there("e/file") && is_there("d/policy.toml") && is_there("d/../e/file"));
        fs::rename(tree.at("d"), tree.at("elsewhere/d")).expect("rename");
        assert!(is_there("d/policy.toml") && !is_there("d/../e/file"));
    }

    #[test]
    fn a_file_that_grows_or_tells_no_length_is_read_to_the_end() {
        let tree = Tree::new();
        let path = tree.at("d/policy.toml");
        let mut file = TrustedFile::open(&path, &judged()).expect("trusted").expect("there");
        fs::write(&path, "version = 1 # longer\n").expect("a file");
        assert_eq!(file.read().expect("content"), b"version = 1 # longer\n");
        for (length, expected) in [(8 << 20, Ok(Some(8 << 20))), ((8 << 20) + 1, Err(Reason::TooLong))] {
            fs::File::options().write(true).open(&path).and_then(|file| file.set_len(length)).expect("room");
            assert_eq!(tree.open("d/policy.toml").map(|content| content.map(|bytes| bytes.len())), expected);
        }
        let told =
            |name| TrustedFile::open(Path::new(name), &judged()).expect("trusted").expect("there").read();
        assert!(told("/proc/self/status").expect("content").len() > 500);
    }

    #[test]
    fn a_stamp_tells_one_state_from_the_next() {
        let tree = Tree::new();
        let path = tree.at("d/policy.toml");
        let file = TrustedFile::open(&path, &judged()).expect("trusted").expect("there");
        assert_eq!(Some(file.stamp()), Stamp::of(&path));
        fs::write(&path, "version = 1 # longer\n").expect("a file");
        assert_ne!(Some(file.stamp()), Stamp::of(&path));
        assert_eq!(Stamp::of(&tree.at("none")), None);
    }
}
