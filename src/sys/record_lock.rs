//! Byte-range locks of `fcntl(2)`: of the process (POSIX) or of the open file description (OFD). Offsets and
//! owners are plain values. This file makes no decisions, and closes no descriptor: closing *any* descriptor
//! of a file drops all POSIX locks of the process on it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs::{self, File},
    io::Read,
    ops::RangeInclusive,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{failure::errno_of, process, stamp::FileId};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
    sys::stat::{major, minor},
};

/// Bytes of a lock file, first and last. Only their numbers matter; nothing need be stored there.
pub type Bytes = RangeInclusive<u64>;

/// The highest offset that a lock can have.
pub const LAST_BYTE: u64 = i64::MAX as u64;

/// Who keeps a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ownership {
    /// The process: inherited over exec, never by a child, gone when the process closes any descriptor of the
    /// file.
    Process,
    /// The open file description: shared by all who inherited the descriptor, gone when the last of them
    /// closed it.
    Description,
}

/// What a lock excludes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Excludes writers.
    Read,
    /// Excludes everybody.
    Write,
}

/// A lock that another process holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conflict {
    /// What it covers.
    pub bytes: Bytes,
    /// The process that holds it, if the kernel can say: never for a lock of a description, nor for a
    /// process of another PID namespace or host. Always positive, so that it may be given to `kill`.
    pub pid: Option<i32>,
}

/// The first lock, in the kernel's order (not that of the offsets), that would block a write lock of the
/// description on `bytes`. It sees every lock except those of `descriptor`'s own description. It also sees
/// the POSIX locks of this process.
pub fn conflict(descriptor: BorrowedFd<'_>, bytes: &Bytes) -> Result<Option<Conflict>, Errno> {
    let mut flock = request(libc::F_WRLCK, bytes);
    fcntl(descriptor, FcntlArg::F_OFD_GETLK(&mut flock))?;
    Ok(answer(&flock))
}

/// What the lock that [`conflict`] finds excludes; none if there is none.
pub fn mode(descriptor: BorrowedFd<'_>, bytes: &Bytes) -> Result<Option<Mode>, Errno> {
    let mut flock = request(libc::F_WRLCK, bytes);
    fcntl(descriptor, FcntlArg::F_OFD_GETLK(&mut flock))?;
    Ok(match libc::c_int::from(flock.l_type) {
        libc::F_UNLCK => None,
        libc::F_RDLCK => Some(Mode::Read),
        _ => Some(Mode::Write),
    })
}

/// The same for a lock of the *process*: its own POSIX locks are invisible.
pub fn conflict_with_process(descriptor: BorrowedFd<'_>, bytes: &Bytes) -> Result<Option<Conflict>, Errno> {
    let mut flock = request(libc::F_WRLCK, bytes);
    fcntl(descriptor, FcntlArg::F_GETLK(&mut flock))?;
    Ok(answer(&flock))
}

/// Takes a lock if it is free. Returns whether it was taken.
pub fn try_lock(
    descriptor: BorrowedFd<'_>,
    bytes: &Bytes,
    mode: Mode,
    ownership: Ownership,
) -> Result<bool, Errno> {
    let flock = request(kind(mode), bytes);
    let argument = match ownership {
        Ownership::Process => FcntlArg::F_SETLK(&flock),
        Ownership::Description => FcntlArg::F_OFD_SETLK(&flock),
    };
    match fcntl(descriptor, argument) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Takes a lock of the process, and sleeps until it is free. `EINTR` and `EDEADLK` are returned as they are.
pub fn lock(descriptor: BorrowedFd<'_>, bytes: &Bytes, mode: Mode) -> Result<(), Errno> {
    let flock = request(kind(mode), bytes);
    fcntl(descriptor, FcntlArg::F_SETLKW(&flock)).map(drop)
}

/// Releases bytes, whether they were locked or not.
pub fn unlock(descriptor: BorrowedFd<'_>, bytes: &Bytes, ownership: Ownership) -> Result<(), Errno> {
    let flock = request(libc::F_UNLCK, bytes);
    let argument = match ownership {
        Ownership::Process => FcntlArg::F_SETLK(&flock),
        Ownership::Description => FcntlArg::F_OFD_SETLK(&flock),
    };
    fcntl(descriptor, argument).map(drop)
}

fn kind(mode: Mode) -> libc::c_int {
    match mode {
        Mode::Read => libc::F_RDLCK,
        Mode::Write => libc::F_WRLCK,
    }
}

/// `l_pid` must be 0 for the OFD operations; a length of 0 means "to the end, however long the file".
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the constants of libc fit")]
fn request(kind: libc::c_int, bytes: &Bytes) -> libc::flock {
    let last = (*bytes.end()).min(LAST_BYTE);
    let length = if last == LAST_BYTE { 0 } else { last.saturating_sub(*bytes.start()).saturating_add(1) };
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: *bytes.start() as libc::off_t,
        l_len: length as libc::off_t,
        l_pid: 0,
    }
}

#[expect(clippy::cast_sign_loss, reason = "the kernel's offsets are not negative")]
fn answer(flock: &libc::flock) -> Option<Conflict> {
    if libc::c_int::from(flock.l_type) == libc::F_UNLCK {
        return None;
    }
    let first = flock.l_start as u64;
    let last = if flock.l_len == 0 {
        LAST_BYTE
    } else {
        first.saturating_add((flock.l_len as u64).saturating_sub(1))
    };
    Some(Conflict { bytes: first..=last, pid: (flock.l_pid > 0).then_some(flock.l_pid) })
}

// `/proc/locks`: every lock of the host that this process may see, in one read. It takes milliseconds and
// delays other lockers, so it pays only if queries would cost more. It omits other PID namespaces, so what
// it shows is evidence and what it omits is none.

/// A longer listing, of some 150,000 locks, is not read: only a program that wants to disturb creates so
/// many.
const LONGEST: u64 = 8 << 20;

/// The locks on `file`, whose bytes `known` this process has locked (POSIX). The line of that lock proves
/// which numbers the listing gives to the file: a file system may show other ones here than `fstat` does.
/// Without that proof, none.
pub fn locks_on(file: FileId, known: &Bytes) -> Option<Vec<Conflict>> {
    let mut listing = Vec::with_capacity(1 << 16);
    File::open("/proc/locks").ok()?.take(LONGEST).read_to_end(&mut listing).ok()?;
    if listing.len() as u64 == LONGEST {
        return None;
    }
    let name = format!("{:02x}:{:02x}:{}", major(file.device), minor(file.device), file.inode);
    locks_beside(&listing, process::number_in_proc()?, name.as_bytes(), known)
}

/// The process that has a lease on `file`, which keeps others from opening it. If the file system shows other
/// numbers here than `stat` does, only the inode is compared.
pub fn holder_of_lease(file: FileId) -> Option<i32> {
    let mut listing = Vec::new();
    File::open("/proc/locks").ok()?.take(LONGEST).read_to_end(&mut listing).ok()?;
    lease_on(&listing, file)
}

fn lease_on(listing: &[u8], file: FileId) -> Option<i32> {
    let name = format!("{:02x}:{:02x}:{}", major(file.device), minor(file.device), file.inode);
    let inode = format!(":{}", file.inode);
    let lines = listing.split(|byte| *byte == b'\n').filter_map(Line::parse);
    let leases: Vec<Line<'_>> = lines.filter(|line| line.kind == b"LEASE" && line.pid > 0).collect();
    let exact = leases.iter().find(|line| line.file == name.as_bytes());
    exact.or_else(|| leases.iter().find(|line| line.file.ends_with(inode.as_bytes()))).map(|line| line.pid)
}

fn locks_beside(listing: &[u8], me: i32, name: &[u8], known: &Bytes) -> Option<Vec<Conflict>> {
    let lines: Vec<Line<'_>> = listing.split(|byte| *byte == b'\n').filter_map(Line::parse).collect();
    let is_mine = |line: &&Line<'_>| line.kind == b"POSIX" && line.pid == me && line.bytes == *known;
    let mine: Vec<&[u8]> = lines.iter().filter(is_mine).map(|line| line.file).collect();
    let file = match mine.as_slice() {
        [only] => *only,
        several => several.iter().copied().find(|file| *file == name)?,
    };
    Some(
        lines
            .iter()
            .filter(|line| line.file == file && line.kind != b"FLOCK")
            .map(|line| Conflict { bytes: line.bytes.clone(), pid: (line.pid > 0).then_some(line.pid) })
            .collect(),
    )
}

/// The locks that the entry of a descriptor in `/proc/PID/fdinfo` shows. The kernel shows a lock of a
/// description with every descriptor of it, however that was passed on. It shows a lock of a process only
/// with the acquiring descriptor, and only for the process whose own table of descriptors has the lock. So no
/// process can make one for another.
pub(super) fn locks_of_descriptor(info: &str) -> Vec<(Ownership, Bytes)> {
    info.lines()
        .filter_map(|line| Line::parse(line.strip_prefix("lock:")?.as_bytes()))
        .filter_map(|line| match line.kind {
            b"POSIX" => Some((Ownership::Process, line.bytes)),
            b"OFDLCK" => Some((Ownership::Description, line.bytes)),
            _ => None,
        })
        .collect()
}

/// A line such as `7: POSIX  ADVISORY  WRITE 812 fe:00:1234 8 8`; that of a waiter has `->` in front of the
/// kind.
struct Line<'a> {
    kind: &'a [u8],
    pid: i32,
    file: &'a [u8],
    bytes: Bytes,
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).skip(1);
        let kind = fields.next().filter(|kind| *kind != b"->")?;
        let pid = number(fields.nth(2)?)?;
        let file = fields.next()?;
        let first = number(fields.next()?)?;
        let last = match fields.next()? {
            b"EOF" => LAST_BYTE,
            last => number(last)?,
        };
        Some(Self { kind, pid, file, bytes: first..=last })
    }
}

fn number<N: FromStr>(digits: &[u8]) -> Option<N> {
    str::from_utf8(digits).ok()?.parse().ok()
}

// Which processes have a lock on a file, as the kernel shows it with their descriptors. It names no holder
// for a lock of an open file description, but shows it with every descriptor of that description. It shows a
// lock of a process only if it belongs to the process's own table. Only root can see those of other users.

/// Every lock of a description of `file` that can be seen from here, with a process that has a descriptor of
/// it.
pub fn locks_of_descriptions(file: FileId) -> Vec<(i32, Bytes)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<(i32, Bytes)> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .flat_map(|pid: i32| {
            locks_shown_by(pid, file).unwrap_or_default().into_iter().map(move |lock| (pid, lock))
        })
        .filter_map(|(pid, (ownership, bytes))| (ownership == Ownership::Description).then_some((pid, bytes)))
        .collect();
    found.sort_unstable_by_key(|(pid, bytes)| (*bytes.start(), *pid));
    found
}

/// All locks on `file` that the kernel shows with the descriptors of a process. `statx` tells the file of a
/// descriptor, because the line of a lock may give other numbers. It asks only the kernel's memory: any other
/// descriptor may be of a file on a server that does not answer. No descriptor is opened, because closing it
/// would drop locks of this process.
pub fn locks_shown_by(pid: i32, file: FileId) -> Result<Vec<(Ownership, Bytes)>, Errno> {
    let descriptors_in = |directory: &Path| {
        let entries = fs::read_dir(directory.join("fd")).map_err(|error| errno_of(&error))?;
        Ok(entries.filter_map(Result::ok).collect::<Vec<_>>())
    };
    let mut directory = PathBuf::from(format!("/proc/{pid}"));
    let mut descriptors = descriptors_in(&directory)?;
    if descriptors.is_empty()
        && let Some(thread) = process::thread_left(pid)
    {
        descriptors = descriptors_in(&thread)?;
        directory = thread;
    }
    let infos = directory.join("fdinfo");
    Ok(descriptors
        .iter()
        .filter(|descriptor| FileId::in_memory(&descriptor.path()) == Some(file))
        .filter_map(|descriptor| whole_lines(&infos.join(descriptor.file_name())))
        .flat_map(|info| locks_of_descriptor(&info))
        .collect())
}

/// Locks of others do not need more, unless someone wants to keep readers busy.
const MOST_TEXT: u64 = 1 << 20;

/// The lines of a file, as far as they fit; half a line would be another lock.
fn whole_lines(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MOST_TEXT).read_to_string(&mut text).ok()?;
    text.truncate(text.rfind('\n').unwrap_or(0));
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// Other programs see which bytes a lock covers, also to the end of any file, and which process has it.
    /// For a lock of a description, no process is named.
    #[test]
    fn a_lock_is_seen_as_it_was_taken() {
        let path = tempfile::NamedTempFile::new().expect("a temporary file").into_temp_path();
        let open = || File::options().read(true).write(true).open(&path).expect("the file");
        let (one, other) = (open(), open());
        let take = |file: &File, bytes, mode, ownership| try_lock(file.as_fd(), &bytes, mode, ownership);
        assert_eq!(take(&one, 8..=9, Mode::Write, Ownership::Process), Ok(true));
        assert_eq!(take(&one, 12..=12, Mode::Read, Ownership::Description), Ok(true));
        assert_eq!(take(&one, 20..=LAST_BYTE, Mode::Write, Ownership::Description), Ok(true));
        assert_eq!(take(&other, 9..=9, Mode::Read, Ownership::Description), Ok(false));
        let seen = |bytes| {
            let found = conflict(other.as_fd(), &bytes).expect("the kernel answers");
            found.map(|lock| (lock.bytes, lock.pid))
        };
        let far = 1 << 40;
        assert!([0..=7, 10..=11, 13..=19].into_iter().all(|bytes| seen(bytes).is_none()));
        assert_eq!(seen(9..=11), Some((8..=9, Some(process::own_pid()))));
        assert_eq!(seen(11..=19), Some((12..=12, None)));
        assert_eq!(seen(far..=far), Some((20..=LAST_BYTE, None)));
        assert_eq!(seen(40..=u64::MAX), Some((20..=LAST_BYTE, None)));
        assert_eq!(take(&other, 5..=5, Mode::Read, Ownership::Description), Ok(true));
        let status = nix::sys::stat::fstat(&one).expect("it is open");
        let own = process::own_pid();
        let found = locks_of_descriptions(FileId::from(&status)).into_iter().filter(|(pid, _)| *pid == own);
        let bytes: Vec<Bytes> = found.map(|(_, bytes)| bytes).collect();
        assert_eq!(bytes, [5..=5, 12..=12, 20..=LAST_BYTE]);
        let mode_of = |byte| mode(other.as_fd(), &(byte..=byte)).expect("the kernel answers");
        let (read, write) = (Some(Mode::Read), Some(Mode::Write));
        assert_eq!([8, 11, 12, 20].map(mode_of), [write, None, read, write]);
        let of_others = |byte| conflict_with_process(one.as_fd(), &(byte..=byte)).map(|lock| lock.is_some());
        assert_eq!([8, 12].map(of_others), [Ok(false), Ok(true)]);
        unlock(one.as_fd(), &(30..=LAST_BYTE), Ownership::Description).expect("it is open");
        assert_eq!((seen(far..=far), seen(20..=far)), (None, Some((20..=29, None))));
    }

    /// For a process that is out of sight, the kernel names number 0 or -1.
    #[test]
    fn a_process_that_is_out_of_sight_has_no_number() {
        let named = |l_pid| answer(&libc::flock { l_pid, ..request(libc::F_WRLCK, &(8..=9)) });
        let pids = [-1, 0, 1, 40].map(|pid| named(pid).expect("a lock").pid);
        assert_eq!(pids, [None, None, Some(1), Some(40)]);
    }

    const LISTING: &str = "\
1: POSIX  ADVISORY  WRITE 40 fe:00:77 0 7
1: -> POSIX  ADVISORY  WRITE 41 fe:00:77 0 7
2: POSIX  ADVISORY  WRITE 42 fe:00:77 8 9
3: OFDLCK ADVISORY  READ -1 fe:00:77 10 EOF
4: FLOCK  ADVISORY  WRITE 43 fe:00:77 0 EOF
5: POSIX  ADVISORY  WRITE 44 fe:00:78 8 8
";

    #[track_caller]
    fn found(listing: &str, me: i32, name: &str) -> Option<Vec<(u64, u64, Option<i32>)>> {
        let conflicts = locks_beside(listing.as_bytes(), me, name.as_bytes(), &(0..=7))?;
        Some(conflicts.into_iter().map(|c| (*c.bytes.start(), *c.bytes.end(), c.pid)).collect())
    }

    #[test]
    fn only_locks_of_the_same_file_count() {
        let listing = format!("{LISTING}6: POSIX  ADVISORY  WRITE 1 fe:00:77 12 12\n");
        let expected = [(0, 7, Some(40)), (8, 9, Some(42)), (10, LAST_BYTE, None), (12, 12, Some(1))];
        assert_eq!(found(&listing, 40, "other numbers"), Some(expected.to_vec()));
    }

    #[test]
    fn with_several_files_locked_the_numbers_decide() {
        let listing = format!("{LISTING}6: POSIX  ADVISORY  WRITE 40 fe:00:78 0 7\n");
        let expected = vec![(8, 8, Some(44)), (0, 7, Some(40))];
        assert_eq!(found(&listing, 40, "fe:00:78"), Some(expected));
        assert_eq!(found(&listing, 40, "other numbers"), None);
    }

    #[test]
    fn the_lock_of_a_description_is_seen_with_its_descriptor() {
        let info = "pos:\t0\nflags:\t02100000\nlock:\t1: OFDLCK ADVISORY  READ -1 fe:00:77 10 12\n";
        assert_eq!(locks_of_descriptor(info), [(Ownership::Description, 10..=12)]);
        let of_process = [(Ownership::Process, 10..=12)];
        assert_eq!(locks_of_descriptor(&info.replace("OFDLCK", "POSIX ")), of_process);
        assert_eq!(locks_of_descriptor(&info.replace("OFDLCK", "-> POSIX")), [], "it waits for the lock");
        assert_eq!(locks_of_descriptor(&info.replace("OFDLCK", "FLOCK ")), []);
    }

    #[test]
    fn a_lease_is_found_by_the_file_or_by_its_inode() {
        let listing = "\
1: LEASE  ACTIVE    WRITE 50 fe:00:78 0 EOF
2: LEASE  BREAKING  READ  51 fe:00:77 0 EOF
3: POSIX  ADVISORY  WRITE 52 fe:00:79 0 EOF
4: LEASE  ACTIVE    READ  1 fe:00:80 0 EOF
5: LEASE  ACTIVE    READ  0 fe:00:81 0 EOF
";
        let on = |device, inode| lease_on(listing.as_bytes(), FileId { device, inode });
        let device = nix::sys::stat::makedev(0xfe, 0);
        assert_eq!((on(device, 77), on(device, 78), on(device, 79)), (Some(51), Some(50), None));
        assert_eq!((on(device + 1, 77), on(device, 7)), (Some(51), None));
        assert_eq!((on(device, 80), on(device, 81)), (Some(1), None), "0 is a process out of sight");
    }

    #[test]
    fn a_listing_without_the_known_lock_proves_nothing() {
        assert_eq!(found(LISTING, 41, "fe:00:77"), None, "another process has it");
        assert_eq!(found(LISTING, 44, "other numbers"), None, "the process has another lock");
    }
}
