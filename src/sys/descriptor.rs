//! Descriptors that must reach the program, and those that the caller passed. A descriptor is moved to a high
//! number *before* it carries a lock, because closing the low one would drop every POSIX lock of the process
//! on that file. For the same reason, no descriptor of a file on which the process has locks is closed.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    ffi::OsStr,
    fs,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    failure::errno_of,
    process,
    record_lock::{self, Bytes, Ownership},
    stamp::FileId,
    unsafe_calls,
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        eventfd::{EfdFlags, EventFd},
        resource::{Resource, getrlimit, setrlimit},
        stat::{FileStat, Mode, SFlag, fstat},
    },
    unistd::{dup2_stdin, dup2_stdout, mkfifo, read},
};

/// The lowest number for descriptors that go to the program: out of the way of scripts, which number theirs
/// from 3.
const FLOOR: RawFd = 200;

/// The descriptors of regular files that this process was started with: no lock file is anything else.
#[derive(Debug, Default)]
pub struct Inherited {
    files: Vec<(RawFd, FileId)>,
    /// Those that must keep the slots after this process has ended: the caller keeps them open for lock
    /// files, or for a FIFO of the agent.
    carriers: Vec<(RawFd, FileId)>,
}

/// Why a descriptor of the caller cannot keep slots.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unfit {
    /// It is not open.
    Closed,
    /// It is open for neither a regular file nor a FIFO.
    NoFile,
    /// A lock for readers, and the read end of a FIFO, need one that can be read.
    WriteOnly,
}

impl Inherited {
    /// Records the descriptors that the caller left open. To be called before rungate opens files of its own
    /// that it keeps.
    pub fn scan() -> Self {
        let standard: Vec<(RawFd, FileStat)> = (0..=2).filter_map(look_at).collect();
        // Since Linux 6.2 the size of this directory is the number of open descriptors: in the usual case the
        // whole answer. Before it is 0.
        let open = fs::metadata("/proc/self/fd").map_or(0, |directory| directory.size());
        let is_all = open > 0 && open == standard.len() as u64;
        let mut files: Vec<(RawFd, FileId)> = standard.iter().filter_map(regular).collect();
        if is_all {
            return Self { files, carriers: Vec::new() };
        }
        match fs::read_dir("/proc/self/fd") {
            Ok(entries) => files.extend(
                entries
                    .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                    .filter(|number| *number > 2)
                    .filter_map(look_at)
                    .filter_map(|found| regular(&found)),
            ),
            Err(_) => {
                files.extend((3..end_of_table()).filter_map(look_at).filter_map(|found| regular(&found)));
            }
        }
        Self { files, carriers: Vec::new() }
    }

    /// Has the caller's descriptor with this number keep slots.
    pub fn carry_by(&mut self, number: RawFd) -> Result<(), Unfit> {
        let open = unsafe_calls::inherited(number);
        let flags = fcntl(open, FcntlArg::F_GETFL).map_err(|_| Unfit::Closed)?;
        let (_, status) = look_at(number).ok_or(Unfit::Closed)?;
        if ![SFlag::S_IFREG, SFlag::S_IFIFO].contains(&kind(&status)) {
            return Err(Unfit::NoFile);
        }
        if OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE == OFlag::O_WRONLY {
            return Err(Unfit::WriteOnly);
        }
        self.carriers.push((number, FileId::from(&status)));
        Ok(())
    }

    /// Whether descriptors of the caller must keep the slots, and none of ours.
    pub fn has_carriers(&self) -> bool {
        !self.carriers.is_empty()
    }

    /// The descriptor of the caller that must keep the slots of `file`.
    pub fn carrier(&self, file: FileId) -> Option<BorrowedFd<'static>> {
        let of_file = self.carriers.iter().find(|(_, id)| *id == file);
        of_file.map(|(number, _)| unsafe_calls::inherited(*number))
    }

    /// The numbers and files of the descriptors that must keep slots.
    pub fn carriers(&self) -> impl Iterator<Item = (RawFd, FileId)> {
        self.carriers.iter().copied()
    }

    /// How many of these bytes the description of a carrier has locked.
    pub fn count_locked(&self, carrier: RawFd, bytes: &Bytes) -> u64 {
        let locks = own_locks(carrier, Ownership::Description).unwrap_or_default();
        let within = |lock: &Bytes| {
            let (first, last) = (lock.start().max(bytes.start()), lock.end().min(bytes.end()));
            last.saturating_add(1).saturating_sub(*first)
        };
        locks.iter().map(within).fold(0, u64::saturating_add)
    }

    /// The outermost ancestor that has the description of a carrier, or its FIFO, under the same number: the
    /// script, and not its subshell that calls rungate.
    pub fn keeper_of_carriers(&self) -> Option<i32> {
        let (number, file) = *self.carriers.first()?;
        let is_lock = look_at(number).is_some_and(|(_, status)| kind(&status) == SFlag::S_IFREG);
        let has_lock = |pid: i32| {
            let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
            let locks = record_lock::locks_of_descriptor(&info);
            locks.iter().any(|(ownership, _)| *ownership == Ownership::Description)
        };
        let has_it = |pid: &i32| if is_lock { has_lock(*pid) } else { has_open(*pid, number, file) };
        process::own_lineage().skip(1).take_while(has_it).last()
    }

    /// Whether any regular file was inherited.
    pub fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Whether this process may have POSIX locks on `file`: only if they were acquired through an inherited
    /// descriptor, because closing any would have dropped them.
    pub fn may_carry_locks_of_the_process(&self, file: FileId) -> bool {
        self.of(file)
            .any(|number| own_locks(number, Ownership::Process).is_none_or(|locks| !locks.is_empty()))
    }

    /// Whether this process has POSIX locks through any of them, because it was another program before.
    pub fn carry_locks_of_the_process(&self) -> bool {
        let has_locks = |number| own_locks(number, Ownership::Process).is_some_and(|locks| !locks.is_empty());
        self.files.iter().any(|(number, _)| has_locks(*number))
    }

    /// Whether inherited descriptions lock each of these bytes. Locks of a description are shown only with
    /// its own descriptors, so another process's lock proves nothing here.
    pub fn have_locked(&self, file: FileId, bytes: &Bytes) -> bool {
        let mut locks: Vec<Bytes> =
            self.of(file).filter_map(|number| own_locks(number, Ownership::Description)).flatten().collect();
        locks.sort_unstable_by_key(|lock| *lock.start());
        let mut next = *bytes.start();
        for lock in locks {
            if *lock.start() <= next {
                next = next.max(lock.end().saturating_add(1));
            }
        }
        next > *bytes.end()
    }

    fn of(&self, file: FileId) -> impl Iterator<Item = RawFd> {
        self.files.iter().filter(move |(_, id)| *id == file).map(|(number, _)| *number)
    }
}

/// The locks of this ownership that were taken through a descriptor of this process; none if the kernel
/// cannot be asked.
fn own_locks(number: RawFd, wanted: Ownership) -> Option<Vec<Bytes>> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    let locks = record_lock::locks_of_descriptor(&info).into_iter();
    Some(locks.filter_map(|(ownership, bytes)| (ownership == wanted).then_some(bytes)).collect())
}

fn look_at(number: RawFd) -> Option<(RawFd, FileStat)> {
    Some((number, fstat(unsafe_calls::inherited(number)).ok()?))
}

fn kind(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits())
}

fn regular((number, status): &(RawFd, FileStat)) -> Option<(RawFd, FileId)> {
    (kind(status) == SFlag::S_IFREG).then(|| (*number, FileId::from(status)))
}

/// Whether a process has this file open under this number.
pub fn has_open(pid: i32, number: RawFd, file: FileId) -> bool {
    FileId::in_memory(Path::new(&format!("/proc/{pid}/fd/{number}"))) == Some(file)
}

/// One more than the highest number that a new descriptor may get.
fn soft_limit() -> RawFd {
    getrlimit(Resource::RLIMIT_NOFILE)
        .ok()
        .and_then(|(soft, _)| RawFd::try_from(soft).ok())
        .unwrap_or(RawFd::MAX)
}

/// A number that no open descriptor has, and no higher one either: the kernel's table of this process ends
/// before. The limit may be a thousand million, where containers have none.
fn end_of_table() -> RawFd {
    let ends = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];
    ends.into_iter().find(|end| unsafe_calls::is_beyond_descriptors(*end)).unwrap_or_else(soft_limit)
}

/// Raises the maximum number of descriptors of this process as far as allowed, and returns it.
pub fn raise_limit() -> usize {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    usize::try_from(soft_limit()).unwrap_or(usize::MAX)
}

/// Moves a descriptor that carries no lock yet to the lowest free number at or above the floor, or as high as
/// the soft limit of open files allows. It stays close-on-exec.
pub fn move_high(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    if descriptor.as_raw_fd() >= FLOOR {
        return Ok(descriptor);
    }
    match duplicate_at_or_above(&descriptor, FLOOR) {
        Err(Errno::EINVAL | Errno::EMFILE) => {}
        moved => return moved,
    }
    let ceiling = soft_limit().min(FLOOR);
    (3..ceiling)
        .rev()
        .take_while(|number| *number > descriptor.as_raw_fd())
        .find_map(|number| duplicate_at_or_above(&descriptor, number).ok())
        .or_else(|| (descriptor.as_raw_fd() > 2).then_some(descriptor))
        .ok_or(Errno::EMFILE)
}

fn duplicate_at_or_above(descriptor: &OwnedFd, number: RawFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, number).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

/// Exchanges the caller's standard input and output for `/dev/null` if they are pipes or sockets, so that
/// their other ends see when the program closes them. A lock file is neither, so no lock is dropped.
pub fn let_go_of_pipes() {
    // A number that the caller left closed can be that of a descriptor of ours, which is close-on-exec.
    let is_pipe = |number| {
        let flags = fcntl(unsafe_calls::inherited(number), FcntlArg::F_GETFD);
        let pipes = [SFlag::S_IFIFO, SFlag::S_IFSOCK];
        flags == Ok(0) && look_at(number).is_some_and(|(_, status)| pipes.contains(&kind(&status)))
    };
    let (input, output) = (is_pipe(0), is_pipe(1));
    if !input && !output {
        return;
    }
    let Ok(nothing) = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()) else { return };
    if input {
        let _ = dup2_stdin(&nothing);
    }
    if output {
        let _ = dup2_stdout(&nothing);
    }
}

/// Opens the same file once more, only to be read, with a description of its own. Through `/proc`, because
/// the path may lead elsewhere by now.
pub fn reopen_to_read(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    open(path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
}

/// Takes every free number below the floor, or below the soft limit. Until they are dropped, new descriptors
/// get higher numbers, because a descriptor that must not be closed cannot be moved.
pub fn occupy_low() -> Vec<OwnedFd> {
    let mut taken: Vec<OwnedFd> = Vec::new();
    let Ok(first) = open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) else { return taken };
    taken.push(first);
    while let Some(next) = taken.last().and_then(|last| duplicate_at_or_above(last, 0).ok()) {
        if next.as_raw_fd() >= FLOOR {
            return taken;
        }
        taken.push(next);
    }
    // The maximum number; the last two are for a file and the descriptor to read it through.
    taken.truncate(taken.len().saturating_sub(3));
    taken
}

/// Leaves a descriptor open for good, here and in the program that this process becomes.
pub fn leave_open(descriptor: OwnedFd) -> Result<BorrowedFd<'static>, Errno> {
    let number = descriptor.into_raw_fd();
    let open = unsafe_calls::inherited(number);
    keep_across_exec(open).map(|()| open)
}

/// Lets a descriptor live on in the program that this process becomes.
pub fn keep_across_exec(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
}

/// The identity of the file behind a descriptor, with the other data of `fstat`.
pub fn stat(descriptor: impl AsFd) -> Result<FileStat, Errno> {
    fstat(descriptor)
}

// A FIFO without data: each end shows whether any process has the other end open. So it shows whether a
// program, or a process that inherited from it, is still alive, and it outlives the process that watches it.
// A program gets the write end. A script opens the read end, as it opens a lock file.

/// The suffix of the names of these FIFOs.
pub const FIFO_ENDING: &str = ".fifo";

/// The path of the file that a descriptor of this process is open for; none if it is not open.
pub fn path_of(number: RawFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

/// The lowest descriptors of a process, which are checked for FIFOs: what it inherits is there.
const MOST: usize = 1024;

/// The FIFOs of this kind that a process has open. Only files with the name of one are checked, and only in
/// the kernel's memory, so no server has to answer.
pub fn of_process(pid: i32) -> Vec<FileId> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let found = entries.take(MOST).filter_map(|entry| {
        let path = entry.ok()?.path();
        let target = fs::read_link(&path).ok()?;
        target
            .file_name()
            .map(OsStr::as_bytes)?
            .ends_with(FIFO_ENDING.as_bytes())
            .then(|| FileId::in_memory(&path))?
    });
    found.collect()
}

/// One end, and whether any process has the other one.
#[derive(Debug)]
pub struct Fifo {
    end: OwnedFd,
    id: FileId,
    is_writer: bool,
}

impl Fifo {
    /// Creates one for its owner only. Nothing may be at the path.
    pub fn create(path: &Path) -> Result<Self, Errno> {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Self::open(path).inspect_err(|_| {
            let _ = Self::remove(path);
        })
    }

    /// The read end.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let end = open_end(path, OFlag::O_RDONLY)?;
        let id = FileId::from(&fstat(&end)?);
        Ok(Self { end, id, is_writer: false })
    }

    /// The write end; none if no process has the read end.
    pub fn open_to_write(path: &Path) -> Result<Option<Self>, Errno> {
        let end = match open_end(path, OFlag::O_WRONLY) {
            Err(Errno::ENXIO) => return Ok(None),
            end => end?,
        };
        let id = FileId::from(&fstat(&end)?);
        Ok(Some(Self { end, id, is_writer: true }))
    }

    /// Another write end.
    pub fn writer(path: &Path) -> Result<OwnedFd, Errno> {
        open_end(path, OFlag::O_WRONLY)
    }

    /// Both ends. While they are open, no other process waits when it opens one.
    pub fn both_ends(path: &Path) -> Result<OwnedFd, Errno> {
        open_end(path, OFlag::O_RDWR)
    }

    /// Whether any process has the other end. What is written into it is ignored: its users may write faster
    /// than anybody can read.
    pub fn is_held(&self) -> bool {
        let closed = if self.is_writer { PollFlags::POLLERR } else { PollFlags::POLLHUP };
        let mut end = [PollFd::new(self.end.as_fd(), PollFlags::empty())];
        let count = poll(&mut end, PollTimeout::ZERO);
        let [end] = end;
        if count == Ok(1) && end.revents().is_some_and(|is| is.contains(closed)) {
            return false;
        }
        // A read end that was opened when there was no writer is not told of that otherwise.
        self.is_writer || read(&self.end, &mut [0]) != Ok(0)
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// Takes the name away.
    pub fn remove(path: &Path) -> Result<(), Errno> {
        fs::remove_file(path).map_err(|error| errno_of(&error))
    }
}

impl AsFd for Fifo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

fn open_end(path: &Path, access: OFlag) -> Result<OwnedFd, Errno> {
    open(path, access | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())
}

// Waits for many descriptors at once. Idle ones cost nothing, however many there are.

/// How many are reported at once.
const AT_ONCE: usize = 1024;

/// What is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interest {
    /// Only its end, whatever is written before.
    End,
    /// Something to read, or the end.
    Read,
    /// Room to write, or the end.
    Write,
    /// Any of these.
    ReadAndWrite,
}

impl Interest {
    fn flags(self) -> EpollFlags {
        match self {
            Self::End => EpollFlags::empty(),
            Self::Read => EpollFlags::EPOLLIN,
            Self::Write => EpollFlags::EPOLLOUT,
            Self::ReadAndWrite => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        }
    }
}

/// A set of descriptors, each with a number by which it is reported.
#[derive(Debug)]
pub struct Poller(Epoll);

impl Poller {
    /// An empty one.
    pub fn new() -> Result<Self, Errno> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self)
    }

    /// Adds a descriptor. It is removed when it is closed, if no process has a copy of it.
    pub fn add(&self, descriptor: impl AsFd, number: u64, interest: Interest) -> Result<(), Errno> {
        self.0.add(descriptor, EpollEvent::new(interest.flags(), number))
    }

    /// Waits for something else.
    pub fn change(&self, descriptor: impl AsFd, number: u64, interest: Interest) -> Result<(), Errno> {
        self.0.modify(descriptor, &mut EpollEvent::new(interest.flags(), number))
    }

    /// Takes a descriptor out.
    pub fn remove(&self, descriptor: impl AsFd) -> Result<(), Errno> {
        self.0.delete(descriptor)
    }

    /// Sleeps until something happens, at most this long, and says with which of them.
    pub fn wait(&self, longest: Option<Duration>) -> Result<Vec<u64>, Errno> {
        let mut events = [EpollEvent::empty(); AT_ONCE];
        // Rounded up: waking a moment too early would be useless.
        let timeout = longest.map_or(EpollTimeout::NONE, |longest| {
            EpollTimeout::try_from(longest.as_nanos().div_ceil(1_000_000)).unwrap_or(EpollTimeout::NONE)
        });
        match self.0.wait(&mut events, timeout) {
            Ok(count) => Ok(events.iter().take(count).map(EpollEvent::data).collect()),
            Err(Errno::EINTR) => Ok(Vec::new()),
            Err(errno) => Err(errno),
        }
    }
}

/// Used by other threads to wake the waiting one.
#[derive(Debug)]
pub struct Bell(EventFd);

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Result<Self, Errno> {
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map(Self)
    }

    /// Wakes the waiting thread. It is not a failure if the bell has already rung and was not heard yet.
    pub fn ring(&self) {
        let _ = self.0.write(1);
    }

    /// Is silent again.
    pub fn hush(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks of a description are counted as far as they are within a range. A range is locked if each of its
    /// bytes is. Locks of the process are others.
    #[test]
    fn the_locks_of_a_description_are_known_byte_by_byte() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let file = fs::File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        let lock = |bytes: Bytes, ownership: Ownership| {
            let taken = record_lock::try_lock(file.as_fd(), &bytes, record_lock::Mode::Write, ownership);
            assert_eq!(taken, Ok(true));
        };
        lock(8..=10, Ownership::Description);
        lock(12..=12, Ownership::Description);
        lock(20..=21, Ownership::Process);
        let id = |descriptor: BorrowedFd<'_>| FileId::from(&fstat(descriptor).expect("a file"));
        let (number, this) = (file.as_raw_fd(), id(file.as_fd()));
        let inherited = Inherited { files: vec![(number, this)], carriers: Vec::new() };
        for (bytes, count) in [(0..=30, 4), (9..=12, 3), (10..=11, 1), (11..=11, 0), (13..=30, 0)] {
            assert_eq!(inherited.count_locked(number, &bytes), count, "{bytes:?}");
        }
        for bytes in [8..=10, 8..=8, 9..=10, 12..=12] {
            assert!(inherited.have_locked(this, &bytes), "{bytes:?}");
        }
        for bytes in [7..=10, 8..=11, 8..=12, 11..=11, 12..=13, 20..=21] {
            assert!(!inherited.have_locked(this, &bytes), "{bytes:?}");
        }
        let other = fs::File::open(directory.path()).expect("a directory");
        assert!(!inherited.have_locked(id(other.as_fd()), &(8..=10)));
        assert!(inherited.may_carry_locks_of_the_process(this) && inherited.carry_locks_of_the_process());
        assert!(!inherited.may_carry_locks_of_the_process(id(other.as_fd())));
        let again = fs::File::open(&path).expect("the file");
        let taken =
            record_lock::try_lock(again.as_fd(), &(11..=11), record_lock::Mode::Read, Ownership::Description);
        assert_eq!(taken, Ok(true));
        let of_others = Inherited { files: vec![(again.as_raw_fd(), this)], carriers: Vec::new() };
        assert!(!of_others.carry_locks_of_the_process(), "they were not taken through this descriptor");
        let files = vec![(again.as_raw_fd(), this), (number, this)];
        let both = Inherited { files, carriers: Vec::new() };
        assert!(both.have_locked(this, &(8..=12)) && !both.have_locked(this, &(8..=13)), "in any order");
        let hidden = Inherited { files: vec![(RawFd::MAX, this)], carriers: Vec::new() };
        assert!(hidden.may_carry_locks_of_the_process(this), "the kernel does not say that it has none");
    }

    /// The kernel's table of descriptors ends behind the highest one that is open.
    #[test]
    fn no_open_descriptor_is_beyond_the_table() {
        let highest = soft_limit().min(5000) - 1;
        let file = OwnedFd::from(fs::File::open("/").expect("a directory"));
        let open = duplicate_at_or_above(&file, highest).expect("a free number");
        assert_eq!(open.as_raw_fd(), highest);
        assert!((0..=highest).all(|number| !unsafe_calls::is_beyond_descriptors(number)));
        assert!((highest + 1..=1 << 14).contains(&end_of_table()), "{}", end_of_table());
        assert!(unsafe_calls::is_beyond_descriptors(1 << 20));
    }

    /// A FIFO is held while a process has its other end. The poll does not tell a reader that came before
    /// all writers, or after them, that there is none.
    #[test]
    fn a_fifo_is_held_while_its_other_end_is_open() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fifo");
        let reader = Fifo::create(&path).expect("a FIFO");
        assert!(!reader.is_held(), "it has no writer yet");
        let writer = Fifo::open_to_write(&path).expect("the FIFO").expect("it has a reader");
        let another = Fifo::writer(&path).expect("the FIFO");
        assert!(reader.is_held() && writer.is_held());
        drop(writer);
        assert!(reader.is_held(), "it has another writer");
        rustix::io::write(&another, b"not read").expect("room");
        drop(another);
        assert!(!reader.is_held(), "it has no writer any more, whatever was written");
        drop(reader);
        let late = Fifo::open(&path).expect("the FIFO");
        assert!(!late.is_held(), "it came after the writers");
        let writer = Fifo::open_to_write(&path).expect("the FIFO").expect("it has a reader");
        assert!(late.is_held() && writer.is_held());
        drop(late);
        assert!(!writer.is_held(), "it has no reader any more");
        assert!(Fifo::open_to_write(&path).expect("the FIFO").is_none());
    }
}
