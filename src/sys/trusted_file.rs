//! Opens files that only root or the caller can have written. Every directory from `/` down is opened by descriptor and
//! judged on that descriptor, symbolic links are followed by hand, and what is read is what was judged: no path is
//! looked up twice, so nobody can swap a component between the check and the use.

use std::{
    collections::VecDeque,
    error::Error,
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::Read,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat, readlinkat},
    libc,
    sys::stat::{FileStat, Mode, fstat, stat},
};
use rustix::fs::Dir;

use crate::sys::accounts;

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// A file that is longer is no policy that a person wrote.
const LONGEST: u64 = 8 << 20;

/// Why a file cannot be read, or must not be believed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Distrust {
    /// The file, or the directory above it, or the link that led to it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a file or with a directory above it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// A system call failed.
    System(&'static str, Errno),
    /// It belongs to neither root nor the caller, but to this uid.
    Owner(u32),
    /// Its group may write to it.
    GroupWritable(u32),
    /// Everybody may write to it.
    WorldWritable(u32),
    /// It stands where a directory is needed.
    NotADirectory,
    /// It is a directory, a device, a FIFO.
    NotAFile,
    /// Following it never ends.
    TooManyLinks,
    /// It is longer than any policy.
    TooLong,
}

impl Distrust {
    /// Whether the file could be had but must not be believed, as against one that could not be read.
    pub fn is_about_trust(&self) -> bool {
        matches!(self.reason, Reason::Owner(_) | Reason::GroupWritable(_) | Reason::WorldWritable(_))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::System(call, errno) => write!(f, "{call}: {}", errno.desc()),
            Reason::Owner(uid) => {
                write!(f, "belongs to {}, neither to root nor to you", accounts::shown(*uid))
            }
            Reason::GroupWritable(mode) => {
                write!(f, "its group can write to it (mode {mode:04o}); chmod g-w mends that")
            }
            Reason::WorldWritable(mode) => {
                write!(f, "everybody can write to it (mode {mode:04o}); chmod o-w mends that")
            }
            Reason::NotADirectory => f.write_str("is not a directory"),
            Reason::NotAFile => f.write_str("is not a regular file"),
            Reason::TooManyLinks => f.write_str("too many symbolic links"),
            Reason::TooLong => write!(f, "is longer than {} MiB", LONGEST >> 20),
        }
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display().to_string().escape_debug(), self.reason)
    }
}

impl Error for Distrust {}

/// What tells one state of a file from the next, as cheaply as one `stat`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The state of whatever stands at a path now; `None` when nothing can be seen there.
    pub fn of(path: &Path) -> Option<Stamp> {
        stat(path).ok().as_ref().map(Stamp::from)
    }
}

impl From<&FileStat> for Stamp {
    fn from(status: &FileStat) -> Self {
        Stamp {
            device: status.st_dev,
            inode: status.st_ino,
            size: status.st_size,
            modified: (status.st_mtime, status.st_mtime_nsec),
            changed: (status.st_ctime, status.st_ctime_nsec),
        }
    }
}

/// A file that was judged and not yet read.
#[derive(Debug)]
pub struct TrustedFile {
    file: File,
    path: PathBuf,
    status: FileStat,
}

impl TrustedFile {
    /// Opens a file for a caller with this real uid; `None` when there is none. A relative path starts in the working
    /// directory.
    pub fn open(path: &Path, caller: u32) -> Result<Option<TrustedFile>, Distrust> {
        let found =
            Walk::from_root(path, caller)?.end(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        found.map(|found| TrustedFile::judged(found, caller)).transpose()
    }

    fn judged(found: Found, caller: u32) -> Result<TrustedFile, Distrust> {
        let Found { descriptor, path, status } = found;
        let blame = |reason| Distrust { path: path.clone(), reason };
        if kind(&status) != libc::S_IFREG {
            return Err(blame(Reason::NotAFile));
        }
        judge_owner(&status, caller).map_err(blame)?;
        // Unlike a directory, a file gains nothing from group 0: whoever is in it would be believed.
        let mode = status.st_mode & 0o7777;
        if mode & 0o002 != 0 {
            return Err(blame(Reason::WorldWritable(mode)));
        }
        if mode & 0o020 != 0 && !is_private_group(&status) {
            return Err(blame(Reason::GroupWritable(mode)));
        }
        Ok(TrustedFile { file: descriptor.into(), path, status })
    }

    /// Its content.
    pub fn read(mut self) -> Result<Vec<u8>, Distrust> {
        let mut content = Vec::with_capacity(usize::try_from(self.status.st_size).unwrap_or(0).min(1 << 20));
        let read = self.file.by_ref().take(LONGEST + 1).read_to_end(&mut content);
        let reason = match read {
            Ok(length) if length as u64 <= LONGEST => return Ok(content),
            Ok(_) => Reason::TooLong,
            Err(error) => Reason::System("read", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))),
        };
        Err(Distrust { path: self.path, reason })
    }

    /// Its state when it was opened.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }

    /// Who owns it.
    pub fn owner(&self) -> u32 {
        self.status.st_uid
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

/// A directory that was judged; its files are opened relative to it.
#[derive(Debug)]
pub struct TrustedDirectory {
    descriptor: OwnedFd,
    path: PathBuf,
    status: FileStat,
    caller: u32,
}

impl TrustedDirectory {
    /// Opens a directory for a caller with this real uid; `None` when there is none.
    pub fn open(path: &Path, caller: u32) -> Result<Option<TrustedDirectory>, Distrust> {
        let Some(found) = Walk::from_root(path, caller)?.end(OFlag::O_RDONLY | OFlag::O_DIRECTORY)? else {
            return Ok(None);
        };
        let Found { descriptor, path, status } = found;
        judge_directory(&status, caller).map_err(|reason| Distrust { path: path.clone(), reason })?;
        Ok(Some(TrustedDirectory { descriptor, path, status, caller }))
    }

    /// The names in it, in byte order, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<OsString>, Distrust> {
        let failed = |error: rustix::io::Errno| Distrust {
            path: self.path.clone(),
            reason: Reason::System("getdents", Errno::from_raw(error.raw_os_error())),
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor).map_err(failed)? {
            let name = OsString::from_vec(entry.map_err(failed)?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a file in it; `None` when it has gone.
    pub fn file(&self, name: &OsStr) -> Result<Option<TrustedFile>, Distrust> {
        let descriptor = self.descriptor.try_clone().map_err(|error| Distrust {
            path: self.path.clone(),
            reason: Reason::System(
                "fcntl(F_DUPFD_CLOEXEC)",
                Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)),
            ),
        })?;
        let walk = Walk {
            at: descriptor,
            path: self.path.clone(),
            left: VecDeque::from([name.to_owned()]),
            links: 0,
            caller: self.caller,
        };
        let found = walk.end(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        found.map(|found| TrustedFile::judged(found, self.caller)).transpose()
    }

    /// Its state when it was opened: another one says that a file came or went.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }
}

/// The end of a walk: opened, not yet judged.
struct Found {
    descriptor: OwnedFd,
    path: PathBuf,
    status: FileStat,
}

/// A path on the way down.
struct Walk {
    at: OwnedFd,
    path: PathBuf,
    left: VecDeque<OsString>,
    links: u32,
    caller: u32,
}

impl Walk {
    fn from_root(path: &Path, caller: u32) -> Result<Walk, Distrust> {
        let failed = |call, errno| Distrust { path: path.to_owned(), reason: Reason::System(call, errno) };
        let absolute = std::path::absolute(path).map_err(|error| {
            failed("getcwd", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL)))
        })?;
        let mut walk = Walk {
            at: open_root(caller)?,
            path: PathBuf::from("/"),
            left: VecDeque::new(),
            links: 0,
            caller,
        };
        walk.queue(&absolute);
        Ok(walk)
    }

    /// Puts the components of a path before those that are left.
    fn queue(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// Goes down to the last component and opens it with these flags; `None` when something on the way is absent.
    fn end(mut self, flags: OFlag) -> Result<Option<Found>, Distrust> {
        while let Some(name) = self.left.pop_front() {
            let here = self.join(&name);
            if self.left.is_empty() {
                match openat(
                    &self.at,
                    name.as_os_str(),
                    flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
                    Mode::empty(),
                ) {
                    Ok(descriptor) => {
                        let status = status(&descriptor, &here)?;
                        return Ok(Some(Found { descriptor, path: here, status }));
                    }
                    Err(Errno::ENOENT) => return Ok(None),
                    // A link, or, where a directory was asked for, something that is none.
                    Err(Errno::ELOOP | Errno::ENOTDIR) => {}
                    Err(errno) => return Err(Distrust { path: here, reason: Reason::System("open", errno) }),
                }
            }
            if !self.step(&name, here)? {
                return Ok(None);
            }
        }
        Err(Distrust { path: self.path, reason: Reason::NotAFile })
    }

    /// Enters a directory or follows a link; false when there is nothing.
    fn step(&mut self, name: &OsStr, here: PathBuf) -> Result<bool, Distrust> {
        let blame = |reason| Distrust { path: here.clone(), reason };
        let next =
            match openat(&self.at, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
            {
                Ok(next) => next,
                Err(Errno::ENOENT) => return Ok(false),
                Err(errno) => return Err(blame(Reason::System("open", errno))),
            };
        let status = status(&next, &here)?;
        match kind(&status) {
            libc::S_IFDIR => {
                judge_directory(&status, self.caller).map_err(blame)?;
                self.at = next;
                self.path = here;
            }
            libc::S_IFLNK => {
                // In a sticky directory anybody can leave a link, and it says where to go on.
                judge_owner(&status, self.caller).map_err(blame)?;
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(blame(Reason::TooManyLinks));
                }
                let target =
                    readlinkat(&next, "").map_err(|errno| blame(Reason::System("readlink", errno)))?;
                if target.as_bytes().starts_with(b"/") {
                    self.at = open_root(self.caller)?;
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

fn open_root(caller: u32) -> Result<OwnedFd, Distrust> {
    let root = Path::new("/");
    let blame = |reason| Distrust { path: root.to_owned(), reason };
    let descriptor = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|errno| blame(Reason::System("open", errno)))?;
    judge_directory(&status(&descriptor, root)?, caller).map_err(blame)?;
    Ok(descriptor)
}

fn status(descriptor: impl AsFd, path: &Path) -> Result<FileStat, Distrust> {
    fstat(descriptor)
        .map_err(|errno| Distrust { path: path.to_owned(), reason: Reason::System("fstat", errno) })
}

fn kind(status: &FileStat) -> u32 {
    status.st_mode & libc::S_IFMT
}

fn judge_owner(status: &FileStat, caller: u32) -> Result<(), Reason> {
    if status.st_uid == 0 || status.st_uid == caller { Ok(()) } else { Err(Reason::Owner(status.st_uid)) }
}

/// Whether the group is the owner's alone, as distributions set it up that give every user a group of his name: what such a
/// group can write, only he can. Root's is none, because others are put into it.
fn is_private_group(status: &FileStat) -> bool {
    status.st_uid != 0 && accounts::is_private_group(status.st_uid, status.st_gid)
}

/// A sticky directory is as good as one that is not writable: others can add names, but not replace ours. Group 0 is
/// root's, and some distributions let it write to system directories.
fn judge_directory(status: &FileStat, caller: u32) -> Result<(), Reason> {
    judge_owner(status, caller)?;
    let mode = status.st_mode & 0o7777;
    if mode & libc::S_ISVTX != 0 {
        return Ok(());
    }
    if mode & 0o002 != 0 {
        return Err(Reason::WorldWritable(mode));
    }
    if mode & 0o020 != 0 && status.st_gid != 0 && !is_private_group(status) {
        return Err(Reason::GroupWritable(mode));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, chown, symlink},
    };

    use nix::{sys::stat::Mode, unistd::getuid};
    use tempfile::TempDir;

    use super::*;

    struct Tree {
        root: TempDir,
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
            let opened = TrustedFile::open(&self.at(name), getuid().as_raw());
            opened
                .map_err(|distrust| distrust.reason)?
                .map(|file| file.read().map_err(|d| d.reason))
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
    fn absence_is_no_fault() {
        let tree = Tree::new();
        assert_eq!(tree.open("d/none"), Ok(None));
        assert_eq!(tree.open("none/policy.toml"), Ok(None));
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

    #[test]
    fn only_regular_files_are_read_and_nothing_blocks() {
        let tree = Tree::new();
        nix::unistd::mkfifo(&tree.at("fifo"), Mode::from_bits_truncate(0o644)).expect("a FIFO");
        assert_eq!(tree.open("fifo"), Err(Reason::NotAFile));
        assert_eq!(tree.open("d"), Err(Reason::NotAFile));
        assert_eq!(tree.open("d/policy.toml/x"), Err(Reason::NotADirectory));
    }

    #[test]
    fn a_directory_lists_in_byte_order_and_opens_relative_to_itself() {
        let tree = Tree::new();
        fs::write(tree.at("d/10-b.toml"), "b").expect("a file");
        symlink("policy.toml", tree.at("d/05-link.toml")).expect("a link");
        let uid = getuid().as_raw();
        let directory = TrustedDirectory::open(&tree.at("d"), uid).expect("trusted").expect("there");
        assert_eq!(directory.names().expect("names"), ["05-link.toml", "10-b.toml", "policy.toml"]);
        fs::rename(tree.at("d"), tree.at("moved")).expect("rename");
        let file = directory.file("05-link.toml".as_ref()).expect("trusted").expect("there");
        assert_eq!(file.read().expect("content"), b"version = 1\n");
        assert!(TrustedDirectory::open(&tree.at("d"), uid).expect("absent").is_none());
        assert!(TrustedDirectory::open(&tree.at("moved/policy.toml"), uid).is_err());
    }

    #[test]
    fn a_stamp_tells_one_state_from_the_next() {
        let tree = Tree::new();
        let path = tree.at("d/policy.toml");
        let file = TrustedFile::open(&path, getuid().as_raw()).expect("trusted").expect("there");
        assert_eq!(Some(file.stamp()), Stamp::of(&path));
        fs::write(&path, "version = 1 # longer\n").expect("a file");
        assert_ne!(Some(file.stamp()), Stamp::of(&path));
        assert_eq!(Stamp::of(&tree.at("none")), None);
    }
}
