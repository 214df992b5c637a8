//! Opens a file that must be a regular one, in a directory where other users may have prepared a trap. It
//! follows no link, waits for no FIFO, and judges the opened file by its descriptor, never again by its path.
//! Modes are exact, regardless of the umask, and are set in one step.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::Write,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::Path,
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{failure::Failure, stamp::FileId, unsafe_calls};
use nix::{
    NixPath,
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, OFlag, openat},
    libc::RLIM_INFINITY,
    sys::{
        resource::{Resource, getrlimit},
        signal::Signal,
        stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, lstat, mkdirat, stat, umask},
    },
    unistd::{Gid, Uid, fchown},
};
use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Look only.
    Read,
    /// Look, write and lock.
    ReadWrite,
}

/// What kind of thing a path leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Regular,
    Directory,
    SymbolicLink,
    Fifo,
    Socket,
    /// A character or block device.
    Device,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Regular => "a regular file",
            Self::Directory => "a directory",
            Self::SymbolicLink => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

/// The data of `fstat` that matter here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status {
    pub id: FileId,
    pub kind: Kind,
    pub uid: u32,
    pub gid: u32,
    /// How many names it has.
    pub links: u64,
    /// Permission bits, the sticky bit included.
    pub mode: u32,
}

impl From<FileStat> for Status {
    fn from(stat: FileStat) -> Self {
        let kind = match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFREG => Kind::Regular,
            SFlag::S_IFDIR => Kind::Directory,
            SFlag::S_IFLNK => Kind::SymbolicLink,
            SFlag::S_IFIFO => Kind::Fifo,
            SFlag::S_IFSOCK => Kind::Socket,
            _ => Kind::Device,
        };
        Self {
            id: FileId::from(&stat),
            kind,
            uid: stat.st_uid,
            gid: stat.st_gid,
            // It has 32 bits on arm64, and 64 on x86-64.
            #[allow(clippy::useless_conversion)]
            links: stat.st_nlink.into(),
            mode: stat.st_mode & 0o7777,
        }
    }
}

/// What the path leads to now, links not followed.
pub fn status_of_path(path: &Path) -> Result<Status, Errno> {
    lstat(path).map(Status::from)
}

/// What the path leads to now, links followed.
pub fn status_of_target(path: &Path) -> Result<Status, Errno> {
    stat(path).map(Status::from)
}

/// What a name in a directory leads to now, links not followed.
pub(super) fn status_at(directory: impl AsFd, name: &(impl NixPath + ?Sized)) -> Result<Status, Errno> {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(Status::from)
}

/// What an open descriptor leads to.
pub fn status(descriptor: impl AsFd) -> Result<Status, Errno> {
    fstat(descriptor).map(Status::from)
}

/// When the content of a file was last changed; a time before 1970 counts as 1970.
pub fn changed(descriptor: impl AsFd) -> Result<SystemTime, Errno> {
    let seconds = u64::try_from(fstat(descriptor)?.st_mtime).unwrap_or(0);
    Ok(UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH))
}

/// Opens an existing file. `ELOOP` means that the last component is a symbolic link.
pub(super) fn open_existing_at(
    directory: impl AsFd,
    name: &(impl NixPath + ?Sized),
    access: Access,
) -> Result<OwnedFd, Errno> {
    let access = match access {
        Access::Read => OFlag::O_RDONLY,
        Access::ReadWrite => OFlag::O_RDWR,
    };
    openat(directory, name, access | GUARDED, Mode::empty())
}

/// For files that are only appended to, opened by way of the standard library.
pub const LOG_GUARDS: i32 = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).bits();

/// Opens a log, or a file beside it, to read it. Another user may have put a FIFO or a link in its place.
#[cfg(feature = "tools")]
pub(crate) fn open_log(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = File::options().read(true).custom_flags(LOG_GUARDS).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is no regular file")) }
}

const GUARDED: OFlag =
    OFlag::O_NOFOLLOW.union(OFlag::O_CLOEXEC).union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY);

/// Creates a file that must not be there yet, with exactly these permission bits.
pub fn create_new(path: &Path, mode: u32) -> Result<OwnedFd, Errno> {
    create_new_at(AT_FDCWD, path, mode)
}

/// The same in a directory.
pub(super) fn create_new_at(
    directory: impl AsFd,
    name: &(impl NixPath + ?Sized),
    mode: u32,
) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | GUARDED;
    with_exact_mode(|| openat(directory, name, flags, Mode::from_bits_truncate(mode)))
}

/// Whether a mode is for a group: others may not use the file, or new files in the directory get its group.
pub fn is_for_group(mode: u32) -> bool {
    mode & 0o2000 != 0 || mode & 0o111 == 0 && mode & 0o006 != 0o006
}

/// Makes an open file root's, with exactly these permission bits, and this group's if they are for a group.
pub fn give_to_root(descriptor: impl AsFd, mode: u32, group: u32) -> Result<(), Failure> {
    let gid = Gid::from_raw(if is_for_group(mode) { group } else { 0 });
    fchown(&descriptor, Some(Uid::from_raw(0)), Some(gid)).map_err(Failure::of("fchown"))?;
    fchmod(&descriptor, Mode::from_bits_truncate(mode)).map_err(Failure::of("fchmod"))
}

/// Creates a directory with exactly these permission bits; one that exists already is left as it is.
pub fn create_directory(path: &Path, mode: u32) -> Result<(), Errno> {
    create_directory_at(AT_FDCWD, path, mode)
}

pub(super) fn create_directory_at(
    directory: impl AsFd,
    name: &(impl NixPath + ?Sized),
    mode: u32,
) -> Result<(), Errno> {
    match with_exact_mode(|| mkdirat(&directory, name, Mode::from_bits_truncate(mode))) {
        // mkdir(2) takes the sticky bit on Linux; some file systems drop it, and then the files in it are not
        // safe.
        Ok(()) if status_at(&directory, name)?.mode & 0o1777 != mode => Err(Errno::EPERM),
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The default permission bits of a new file: read and write for all, less the umask.
pub fn mode_for_new_files() -> u32 {
    #[cfg(test)]
    have_own_umask();
    let mask = umask(Mode::empty());
    umask(mask);
    0o666 & !mask.bits()
}

/// The umask belongs to the whole process; of this program, one thread alone makes files in this way.
fn with_exact_mode<T>(make: impl FnOnce() -> T) -> T {
    #[cfg(test)]
    have_own_umask();
    let before = umask(Mode::empty());
    let made = make();
    umask(before);
    made
}

/// Tests make files in many threads of one process: each needs its own umask.
#[cfg(test)]
fn have_own_umask() {
    let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS);
}

/// Whether a directory belongs to the caller and no other user may write to it.
pub fn is_private_directory(status: &Status) -> bool {
    status.kind == Kind::Directory && status.uid == Uid::current().as_raw() && status.mode & 0o022 == 0
}

// Reading and writing at an offset, whole: short reads end at the end of the file, short writes are
// continued. A write beyond the process's file-size limit is refused here, because the kernel would answer it
// with a deadly `SIGXFSZ`.

/// Fills `buffer` from `offset` on, as far as the file goes. Returns how many bytes there were.
pub(crate) fn read_at(descriptor: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(descriptor, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
    Ok(filled)
}

/// Reads this many bytes from `offset` on, as far as the file goes, into memory that is not cleared before.
pub(crate) fn read(descriptor: BorrowedFd<'_>, length: usize, offset: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(length);
    loop {
        let from = offset + bytes.len() as u64;
        match rustix::io::pread(descriptor, rustix::buffer::spare_capacity(&mut bytes), from) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() >= length => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
}

/// The process's file-size limit, looked up once, to save time under a mutex.
fn longest_file() -> Result<u64, Errno> {
    static LONGEST: OnceLock<u64> = OnceLock::new();
    if let Some(longest) = LONGEST.get() {
        return Ok(*longest);
    }
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    Ok(*LONGEST.get_or_init(|| limit))
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_at(descriptor: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    if offset + bytes.len() as u64 > longest_file()? {
        return Err(Errno::EFBIG);
    }
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::pwrite(descriptor, &bytes[written..], offset + written as u64) {
            Ok(0) => return Err(Errno::EIO),
            Ok(count) => written += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
    Ok(())
}

/// Appends a line to a log, in one write, so that those of other processes do not mix with it. Above the size
/// limit of this process nothing is written. Others can append meanwhile, and the signal for what is too long
/// would end this process.
pub(crate) fn append(mut log: &File, length: u64, line: &[u8]) -> std::io::Result<()> {
    let longest = longest_file()?;
    if length.saturating_add(line.len() as u64) > longest {
        return Err(Errno::EFBIG.into());
    }
    if longest == RLIM_INFINITY {
        return log.write_all(line);
    }
    let before = unsafe_calls::ignore(Signal::SIGXFSZ)?;
    let written = log.write_all(line);
    unsafe_calls::restore(Signal::SIGXFSZ, &before)?;
    written
}

// Properties of a file besides owner and permission bits: access control lists, security labels, and other
// attributes. A file that replaces another one has the same, or is not put in place.

/// Users and groups besides those of the permission bits. A directory can pass it on to files that are
/// created in it.
const ACL: &str = "system.posix_acl_access";

/// A hash or a signature of the content, which does not match other content.
const MEASURED: [&str; 2] = ["security.ima", "security.evm"];

/// The beginning of a signature; a hash is renewed by the kernel.
const SIGNATURE: u8 = 3;

/// Names with values, as the kernel keeps them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ExtendedAttributes(Vec<(OsString, Vec<u8>)>);

impl ExtendedAttributes {
    /// The attributes of an open file; none if its file system has none.
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Failure> {
        let listed = growing(|buffer| flistxattr(&file, buffer)).map_err(failed("flistxattr"))?;
        let names = listed.unwrap_or_default();
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut attributes = Vec::new();
        for name in names.map(|name| OsString::from_vec(name.to_vec())) {
            let value = growing(|buffer| fgetxattr(&file, name.as_os_str(), buffer));
            if let Some(value) = value.map_err(failed(call(&name)))? {
                attributes.push((name, value));
            }
        }
        Ok(Self(attributes))
    }

    /// Whether the content is signed: then no other content can have the attributes of this file.
    pub(crate) fn is_signed(&self) -> bool {
        self.0.iter().any(|(name, value)| is_measured(name) && value.first() == Some(&SIGNATURE))
    }

    /// Sets them on another file, which already has its owner and mode.
    pub(crate) fn give_to(&self, file: impl AsFd) -> Result<(), Failure> {
        let there = Self::of(&file)?;
        if there.value(ACL).is_some() && self.value(ACL).is_none() {
            fremovexattr(&file, ACL).map_err(failed(call(ACL)))?;
        }
        for (name, value) in self.0.iter().filter(|(name, _)| !is_measured(name)) {
            // No process here may be able to set a label that the file already has.
            if there.value(name) != Some(value) {
                fsetxattr(&file, name.as_os_str(), value, XattrFlags::empty()).map_err(failed(call(name)))?;
            }
        }
        Ok(())
    }

    fn value(&self, name: impl AsRef<OsStr>) -> Option<&Vec<u8>> {
        self.0.iter().find(|(known, _)| known == name.as_ref()).map(|(_, value)| value)
    }
}

fn is_measured(name: &OsStr) -> bool {
    MEASURED.iter().any(|measured| name == *measured)
}

/// The kernel's value, with a buffer of its size; none if there is none.
fn growing(mut get: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; 256];
    loop {
        match get(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(Some(buffer));
            }
            Err(io::Errno::RANGE) if buffer.len() < 1 << 20 => buffer = vec![0; buffer.len() * 8],
            Err(io::Errno::OPNOTSUPP | io::Errno::NODATA | io::Errno::NOSYS) => return Ok(None),
            Err(errno) => return Err(errno),
        }
    }
}

fn failed(call: &'static str) -> impl Fn(io::Errno) -> Failure {
    move |errno| Failure { call, errno: Errno::from_raw(errno.raw_os_error()) }
}

/// The subject of a failure, in a common name.
fn call(name: impl AsRef<OsStr>) -> &'static str {
    match name.as_ref().to_str() {
        Some(ACL | "system.nfs4_acl" | "system.richacl") => "its access control list cannot be kept",
        Some("security.selinux") => "its SELinux label cannot be kept",
        Some("security.SMACK64") => "its Smack label cannot be kept",
        _ => "its extended attributes cannot be kept",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_before_1970_counts_as_one_in_1970() {
        let file = tempfile::tempfile().expect("a file");
        let day = Duration::from_secs(24 * 60 * 60);
        for (written, seen) in [(UNIX_EPOCH - day, UNIX_EPOCH), (UNIX_EPOCH + day, UNIX_EPOCH + day)] {
            file.set_modified(written).expect("a time");
            assert_eq!(changed(&file), Ok(seen));
        }
    }

    /// A group matters where others may not read and write, and where new files get it.
    #[test]
    fn a_mode_is_for_a_group_or_for_all() {
        for mode in [0o660, 0o600, 0o664, 0o3770, 0o2755, 0o3777] {
            assert!(is_for_group(mode), "{mode:o}");
        }
        for mode in [0o666, 0o777, 0o1777, 0o755, 0o775] {
            assert!(!is_for_group(mode), "{mode:o}");
        }
    }

    /// Files and directories have exactly the mode that was asked for. The umask stays what it was.
    #[test]
    fn the_umask_changes_no_mode_and_stays() {
        have_own_umask();
        umask(Mode::from_bits_truncate(0o027));
        let directory = tempfile::tempdir().expect("a directory");
        let [file, common] = ["file", "common"].map(|name| directory.path().join(name));
        assert_eq!(mode_for_new_files(), 0o640);
        drop(create_new(&file, 0o666).expect("nothing is there"));
        assert_eq!(create_new(&file, 0o666).err(), Some(Errno::EEXIST));
        assert_eq!(create_directory(&common, 0o1777), Ok(()));
        assert_eq!(create_directory(&common, 0o700), Ok(()), "it is left as it is");
        let mode = |path| status_of_path(path).expect("it was created").mode;
        assert_eq!((mode(&file), mode(&common)), (0o666, 0o1777));
        assert_eq!(mode_for_new_files(), 0o640);
    }

    #[test]
    fn a_private_directory_is_the_callers_and_no_other_user_writes_to_it() {
        let own = Uid::current().as_raw();
        let is_private = |kind, uid, mode| {
            is_private_directory(&Status {
                id: FileId { device: 1, inode: 1 },
                kind,
                uid,
                gid: 0,
                links: 2,
                mode,
            })
        };
        assert!(is_private(Kind::Directory, own, 0o755) && is_private(Kind::Directory, own, 0o1700));
        assert!(!is_private(Kind::Regular, own, 0o700) && !is_private(Kind::Directory, own + 1, 0o700));
        assert!(!is_private(Kind::Directory, own, 0o720) && !is_private(Kind::Directory, own, 0o702));
    }

    #[test]
    fn content_is_read_as_far_as_it_goes() {
        let file = tempfile::tempfile().expect("a file");
        write_at(file.as_fd(), b"0123456789", 3).expect("room");
        let read = |length, offset| read(file.as_fd(), length, offset);
        assert_eq!([read(4, 5), read(9, 11)], [Ok(b"2345".to_vec()), Ok(b"89".to_vec())]);
        assert_eq!([read(4, 0), read(4, 13)], [Ok(b"\0\0\x000".to_vec()), Ok(Vec::new())]);
        let mut buffer = *b"....";
        assert_eq!((read_at(file.as_fd(), &mut buffer, 11), &buffer), (Ok(2), b"89.."));
    }

    /// No other content has the signature of a file. A hash is renewed by the kernel.
    #[test]
    fn a_signature_is_told_from_a_hash() {
        let with = |name: &str, first| {
            ExtendedAttributes(vec![("user.note".into(), vec![SIGNATURE]), (name.into(), vec![first, 7])])
        };
        for name in MEASURED {
            assert!(with(name, SIGNATURE).is_signed() && !with(name, 1).is_signed(), "{name}");
        }
        assert!(!with(ACL, SIGNATURE).is_signed());
        let attributes = with(ACL, 1);
        assert_eq!(attributes.value(ACL), Some(&vec![1, 7]));
        assert_eq!(attributes.value("user.other"), None);
    }

    /// A long attribute is read as a whole. A file system without attributes has none.
    #[test]
    fn an_attribute_of_any_length_is_read() {
        let value = growing(|buffer| match buffer.get_mut(..1000) {
            Some(room) => {
                room.fill(b'x');
                Ok(1000)
            }
            None => Err(io::Errno::RANGE),
        });
        assert_eq!(value, Ok(Some(vec![b'x'; 1000])));
        assert_eq!(growing(|_| Err(io::Errno::OPNOTSUPP)), Ok(None));
        assert_eq!(growing(|_| Err(io::Errno::ACCESS)), Err(io::Errno::ACCESS));
    }
}
