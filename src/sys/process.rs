//! The kernel's data about a process, from `/proc`. A PID alone proves little, because it may have been given
//! to another process. With the start time it names one process of one boot.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    ffi::{CString, OsString},
    fs::{self, File},
    io::Read,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStringExt, fs::MetadataExt, process::parent_id},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use super::{
    failure::{Failure, errno_of},
    stamp::FileId,
    unsafe_calls::{self, ChildChange},
};
use nix::{
    errno::Errno,
    fcntl::OFlag,
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        resource::{Resource, setrlimit},
        signal::{Signal, kill, killpg},
        stat::fstat,
    },
    time::{ClockId, clock_gettime},
    unistd::{SysconfVar, pipe2, sysconf},
};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

/// How many threads of a process are looked at to see whether it is stopped.
const MOST_THREADS: usize = 64;

/// One process, as `/proc/PID/stat` shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The name of its executable as the kernel keeps it: 15 bytes at most, and chosen by the process.
    pub name: String,
    /// The state of its first thread: `R`, `S`, `D`, `T`, …
    state: char,
    /// The parent's process id; 0 where it is out of sight.
    pub parent: i32,
    pub group: i32,
    /// The process group in the foreground of its terminal; none is -1.
    pub foreground: i32,
    /// When it started, in clock ticks since boot (`CLOCK_BOOTTIME`).
    pub started: u64,
}

impl Process {
    /// Looks a process up; none when it is gone or out of sight.
    pub fn find(pid: i32) -> Option<Self> {
        Self::shown_in(pid, format!("/proc/{pid}"))
    }

    fn shown_in(pid: i32, directory: impl AsRef<Path>) -> Option<Self> {
        Self::parse(pid, &read_within::<1024>(directory.as_ref().join("stat"))?)
    }

    /// This process, under the number that `/proc` has for it.
    pub fn this() -> Option<Self> {
        Self::find(number_in_proc()?)
    }

    /// The name is in parentheses and may hold any character, parentheses and blanks included.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = tail.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let foreground = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(13)?.parse().ok()?;
        Some(Self { pid, name: name.to_owned(), state, parent, group, foreground, started })
    }

    /// Whether job control or a tracer has stopped it.
    pub fn is_stopped(&self) -> bool {
        let is_stop = |state| matches!(state, 'T' | 't');
        is_stop(self.state)
            || self.has_first_thread_ended()
                && threads(self.pid).take(MOST_THREADS).any(|(_, thread)| is_stop(thread.state))
    }

    /// Whether it has ended and only waits to be reaped.
    pub fn is_zombie(&self) -> bool {
        self.has_first_thread_ended() && thread_left(self.pid).is_none()
    }

    /// A process looks ended also if only its first thread is.
    fn has_first_thread_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// How long it has lived, exact to a clock tick.
    pub fn age(&self) -> Option<Duration> {
        Some(since_boot()?.saturating_sub(after_ticks(self.started)?))
    }

    /// When it had certainly started, in time since boot as [`since_boot_of_host`].
    pub fn started_on_host(&self) -> Option<Duration> {
        on_host(after_ticks(self.started.saturating_add(1))?)
    }

    /// When it started, by the wall clock as it is set now.
    pub fn start_time(&self) -> Option<SystemTime> {
        SystemTime::now().checked_sub(self.age()?)
    }
}

/// The time since boot at this clock tick.
fn after_ticks(count: u64) -> Option<Duration> {
    let ticks = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    count.saturating_mul(1000).checked_div(ticks).map(Duration::from_millis)
}

/// Another name for this process, as `ps` and `/proc/PID/comm` show it, until dropped.
pub struct NameWhileWaiting {
    before: Option<CString>,
}

impl NameWhileWaiting {
    /// Takes the name, or as much of it as the kernel keeps.
    pub fn take(name: &str) -> Self {
        let before = prctl::get_name().ok();
        if let Ok(name) = CString::new(name) {
            let _ = prctl::set_name(&name);
        }
        Self { before }
    }
}

impl Drop for NameWhileWaiting {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = prctl::set_name(before);
        }
    }
}

/// Time since boot, sleep included (`CLOCK_BOOTTIME`): it never goes back.
pub fn since_boot() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
}

/// The same for all: as the host counts it, whatever time namespace this process is in. None if that
/// cannot be known.
pub fn since_boot_of_host() -> Option<Duration> {
    on_host(since_boot()?)
}

/// A time since boot as the host counts it.
pub fn on_host(here: Duration) -> Option<Duration> {
    // A process stays in its time namespace until the next exec.
    static AHEAD: OnceLock<Option<(i64, u64)>> = OnceLock::new();
    let (seconds, nanoseconds) = (*AHEAD.get_or_init(ahead_of_host))?;
    let offset = Duration::from_secs(seconds.unsigned_abs());
    let ahead = here.checked_sub(Duration::from_nanos(nanoseconds))?;
    if seconds < 0 { ahead.checked_add(offset) } else { ahead.checked_sub(offset) }
}

/// By how much the boot clock of this process is ahead; none if that cannot be known.
fn ahead_of_host() -> Option<(i64, u64)> {
    let Some(offsets) = read("/proc/self/timens_offsets") else { return Some((0, 0)) };
    // The offsets are those of the children's namespace, which may be another one until the next exec.
    let namespace = |path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    if namespace("/proc/self/ns/time")? != namespace("/proc/self/ns/time_for_children")? {
        return None;
    }
    boot_offset(&offsets)
}

/// By how much the boot clock of a time namespace is ahead: seconds, which may be negative, and nanoseconds,
/// which are not.
fn boot_offset(offsets: &str) -> Option<(i64, u64)> {
    let line = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?;
    let mut fields = line.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The effective user of a process.
pub fn owner(pid: i32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|directory| directory.uid())
}

/// The users of a process who, besides root, may signal it: the real and the saved one.
pub fn users(pid: i32) -> Option<[u32; 2]> {
    let status = read(format!("/proc/{pid}/status"))?;
    let mut ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace();
    Some([ids.next()?.parse().ok()?, ids.nth(1)?.parse().ok()?])
}

/// The user and the groups of a process.
#[cfg(feature = "tools")]
pub(crate) fn credentials(pid: i32) -> Option<super::accounts::Credentials> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let ids = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_ascii_whitespace().map(|id| id.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let gid = *ids("Gid:")?.first()?;
    let mut groups = ids("Groups:")?;
    groups.retain(|group| *group != gid);
    groups.insert(0, gid);
    Some(super::accounts::Credentials { uid: *ids("Uid:")?.first()?, gid, groups })
}

/// The directory in `/proc` of a thread of this process that lives although its first thread has ended. That
/// one shows nothing any more of what all threads have. A tracer can keep thousands of ended threads.
pub(super) fn thread_left(pid: i32) -> Option<PathBuf> {
    threads(pid).find(|(_, thread)| !thread.has_first_thread_ended()).map(|(directory, _)| directory)
}

/// The threads of a process, each with its directory in `/proc`.
fn threads(pid: i32) -> impl Iterator<Item = (PathBuf, Process)> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(move |entry| {
        let directory = entry.path();
        let thread = Process::shown_in(pid, &directory)?;
        Some((directory, thread))
    })
}

/// Whether a process was given privileges when its program was executed (`AT_SECURE`): a set-id program,
/// mostly.
pub fn is_privileged_by_exec(pid: i32) -> Option<bool> {
    let first = fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
    let bytes = if first.is_empty() { fs::read(thread_left(pid)?.join("auxv")).ok()? } else { first };
    let page_size = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
    secure_in(&bytes, page_size)
}

/// The vector is pairs of words, as wide as the process has them. The size of a page confirms the width.
fn secure_in(auxv: &[u8], page_size: u64) -> Option<bool> {
    [4, 8].into_iter().find_map(|width| {
        let words: Vec<u64> = auxv.chunks_exact(width).map(word).collect();
        let value = |kind| words.chunks_exact(2).find(|pair| pair.first() == Some(&kind))?.get(1).copied();
        (value(libc::AT_PAGESZ)? == page_size).then(|| value(libc::AT_SECURE))?.map(|secure| secure != 0)
    })
}

fn word(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(wide) => u64::from_ne_bytes(wide),
        Err(_) => bytes.try_into().map_or(0, |narrow| u64::from(u32::from_ne_bytes(narrow))),
    }
}

/// The words of its command line, as they are now; none if they cannot be seen.
pub fn command_line(pid: i32) -> Vec<OsString> {
    words(&format!("/proc/{pid}/cmdline"))
}

/// The entries of its environment as it began, `NAME=VALUE`; none if they cannot be seen.
pub fn environment(pid: i32) -> Vec<OsString> {
    words(&format!("/proc/{pid}/environ"))
}

/// Its working directory, if it can be seen.
pub fn directory(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

fn words(path: &str) -> Vec<OsString> {
    let bytes = fs::read(path).unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// This process's id.
pub fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// The number of this process in `/proc`: another one than its id where `/proc` is that of another PID
/// namespace. None if it is not shown there.
pub fn number_in_proc() -> Option<i32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// When this process, which has this id, started, in clock ticks since boot, as [`Process::started`]; none
/// without `/proc`. The kernel is asked once, as the answer stays.
pub fn own_start(own_pid: i32) -> Option<u64> {
    static READ: OnceLock<Option<Process>> = OnceLock::new();
    let read = READ.get_or_init(|| Process::find(own_pid)).as_ref();
    // A child has the memory of its parent.
    match read.filter(|this| this.pid == own_pid) {
        Some(this) => Some(this.started),
        None => Process::find(own_pid).map(|this| this.started),
    }
}

/// This process, its parent, and so on up to the first that is out of sight.
pub fn own_lineage() -> impl Iterator<Item = i32> {
    lineage(own_pid())
}

/// The process that started this one, if it can be seen.
pub fn parent() -> Option<i32> {
    own_lineage().nth(1)
}

/// The name of the process that started this one, as the kernel shows it: any that it likes.
pub fn parent_name() -> Option<String> {
    let parent = parent()?;
    let name = fs::read(format!("/proc/{parent}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// A process and its ancestors, as far as they can be seen, the process first.
pub fn lineage(pid: i32) -> impl Iterator<Item = i32> {
    std::iter::successors(Some(pid), |pid| {
        Process::find(*pid).map(|process| process.parent).filter(|parent| *parent > 0)
    })
}

/// How many ancestors of another process are looked at.
const NEAR: usize = 256;

/// A process of another user and its nearest ancestors. It has as many as its user likes, and each costs a
/// read.
pub fn near_lineage(pid: i32) -> impl Iterator<Item = i32> {
    lineage(pid).take(NEAR + 1)
}

/// Every process that can be seen.
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| Process::find(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

/// The children of a process by the kernel's own lists, which are read much faster than all of `/proc`. Some
/// can be missing while others end; all are, if the kernel keeps no such lists.
pub fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children = |list: String| -> Vec<i32> {
        list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
    };
    lists.flat_map(children).collect()
}

/// The children of this process. None are known where `/proc` is that of another PID namespace: it lists
/// other numbers than this process gets from the kernel.
pub fn own_children() -> Vec<i32> {
    let own = number_in_proc().filter(|number| *number == own_pid());
    own.map(children).unwrap_or_default()
}

/// The id of this boot, 32 hexadecimal digits and 4 hyphens, read once. A process start time means nothing in
/// another boot.
pub fn boot_id() -> Option<&'static str> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    ID.get_or_init(|| {
        let text = read_within::<64>("/proc/sys/kernel/random/boot_id")?;
        Some(text.trim_end().to_owned())
    })
    .as_deref()
}

// Reads small files of `/proc` in one piece. Their size is unknown, and querying it, as the standard library
// does, costs more than reading them.

/// The first 4096 bytes of the file, as text; none if it cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    read_within::<4096>(path)
}

/// The content up to this many bytes, of a file that is known to be short: the buffer must be cleared first.
pub(crate) fn read_within<const BYTES: usize>(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = [0; BYTES];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
}

// A process by descriptor: it refers to this process even if another one gets its number, and can be waited
// for without being its parent.

/// An open process.
#[derive(Debug)]
pub struct PidFd {
    pid: i32,
    descriptor: OwnedFd,
}

impl PidFd {
    /// Opens a process. `ESRCH` when it is gone, also if a thread has its number by now.
    pub fn open(pid: i32) -> Result<Self, Errno> {
        let number = Pid::from_raw(pid).filter(|_| pid > 0).ok_or(Errno::ESRCH)?;
        match pidfd_open(number, PidfdFlags::empty()).map_err(|error| Errno::from_raw(error.raw_os_error())) {
            Ok(descriptor) => Ok(Self { pid, descriptor }),
            // A thread that is no process has the number. Linux before 6.16 says EINVAL.
            Err(Errno::EINVAL | Errno::ENOENT) => Err(Errno::ESRCH),
            Err(errno) => Err(errno),
        }
    }

    /// A process that the kernel gave as a descriptor, under its number.
    pub(super) fn of(pid: i32, descriptor: OwnedFd) -> Self {
        Self { pid, descriptor }
    }

    /// Another descriptor of the same process.
    pub fn try_clone(&self) -> Result<Self, Errno> {
        let descriptor = self.descriptor.try_clone().map_err(|error| errno_of(&error))?;
        Ok(Self { pid: self.pid, descriptor })
    }

    /// Its number, which is its own as long as it has not ended.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether `/proc` has this process under the same number. It has not where `/proc` is that of another
    /// PID namespace.
    pub fn is_in_proc(&self) -> bool {
        let info = read(format!("/proc/self/fdinfo/{}", self.descriptor.as_raw_fd()));
        info.is_some_and(|info| info.lines().any(|line| line == format!("Pid:\t{}", self.pid)))
    }

    /// Whether it leads its process group. For number 1 and for all processes the kernel gives the same
    /// answer to a signal, and 0 is the group of the sender.
    pub fn leads_its_group(&self) -> bool {
        self.pid > 1 && Process::find(self.pid).is_some_and(|process| process.group == self.pid)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(Errno::EINVAL)?;
        pidfd_send_signal(&self.descriptor, signal).map_err(|error| Errno::from_raw(error.raw_os_error()))
    }

    /// Sends a signal to the process group that it leads, if it still exists, which proves that the group is
    /// its own.
    pub fn signal_group(&self, signal: Signal) -> Result<(), Errno> {
        if self.pid <= 1 || self.has_ended() {
            return Err(Errno::ESRCH);
        }
        killpg(nix::unistd::Pid::from_raw(self.pid), signal)
    }

    /// Whether this user may send it signals; one that is gone does no harm.
    pub fn may_be_signalled(&self) -> bool {
        kill(nix::unistd::Pid::from_raw(self.pid), None) != Err(Errno::EPERM)
    }

    /// Also true for a zombie.
    pub fn has_ended(&self) -> bool {
        wait_for_any([self], Duration::ZERO) == Ok(true)
    }
}

/// Lets a program begin as the leader of a session of its own: without a terminal, what uses it fails instead
/// of being stopped.
pub fn without_terminal(command: &mut Command) -> &mut Command {
    unsafe_calls::lead_session(command)
}

/// Kills the process group of a child that was not waited for yet, so that its number is nobody else's.
pub fn kill_group_of_child(pid: i32) {
    if pid > 1 {
        let _ = killpg(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Sleeps until one of the processes has ended, or the time is over. Returns which of the two; a signal
/// counts as the latter.
pub fn wait_for_any<'a>(
    processes: impl IntoIterator<Item = &'a PidFd>,
    longest: Duration,
) -> Result<bool, Errno> {
    let mut polled: Vec<PollFd<'_>> = processes
        .into_iter()
        .map(|process| PollFd::new(process.descriptor.as_fd(), PollFlags::POLLIN))
        .collect();
    // Rounded up: waking a moment too early would be useless.
    let milliseconds = longest.as_nanos().div_ceil(1_000_000);
    let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
    match poll(&mut polled, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

// User namespaces. In a user namespace that does not map every user of the system, the files of all unmapped
// users seem to belong to one user, who may be root or a stranger. An unmapped process in it seems to be that
// user too.

/// The user that unmapped users appear as, unless `/proc/sys/kernel/overflowuid` names another.
const OVERFLOW_UID: u32 = 65534;

/// Whether a file that seems to be this user's may belong to any. Without `/proc` that is unknown.
pub(super) fn hides_owner(uid: u32) -> Result<bool, Failure> {
    if uid != OVERFLOW_UID {
        return Ok(false);
    }
    let mut map = String::new();
    match File::open("/proc/self/uid_map").map_err(Failure::of_io("open /proc/self/uid_map")) {
        Err(Failure { errno: Errno::ENOENT, .. }) => return Ok(true),
        Err(failure) => return Err(failure),
        Ok(mut file) => file.read_to_string(&mut map).map_err(Failure::of_io("read /proc/self/uid_map"))?,
    };
    Ok(!maps_everybody(&map))
}

/// The user to whom the user namespace of a process belongs, as called here; none if it is that of this
/// process. A namespace within another one belongs to the maker of the outermost, who let it in. `EPERM` if
/// it was not made within that of this process.
pub(crate) fn owner_of_foreign(pid: i32) -> Result<Option<u32>, Errno> {
    // No program of rungate leaves its own.
    static OURS: OnceLock<FileId> = OnceLock::new();
    let open = |of: &str| File::open(format!("/proc/{of}/ns/user")).map_err(|error| errno_of(&error));
    let id = |namespace: BorrowedFd<'_>| fstat(namespace).map(|status| FileId::from(&status));
    let ours = match OURS.get() {
        Some(ours) => *ours,
        None => {
            let ours = id(open("self")?.as_fd())?;
            *OURS.get_or_init(|| ours)
        }
    };
    let mut namespace = OwnedFd::from(open(&pid.to_string())?);
    if id(namespace.as_fd())? == ours {
        return Ok(None);
    }
    // The kernel allows for 32, one within the other.
    loop {
        let outer = unsafe_calls::parent_of_namespace(namespace.as_fd())?;
        if id(outer.as_fd())? == ours {
            return unsafe_calls::owner_of_namespace(namespace.as_fd()).map(Some);
        }
        namespace = outer;
    }
}

/// Lines of first user inside, first user outside, and how many. Only users that the namespace above maps can
/// be mapped.
fn maps_everybody(map: &str) -> bool {
    let counts = map.lines().map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u32>().ok());
    counts.sum::<Option<u32>>() == Some(u32::MAX)
}

// A child that becomes the program, and its end. A pipe that closes on exec carries the reason if it cannot.
// Nothing waits for that: a server can delay the exec, and the child can be stopped before it. Its parent
// observes it without reaping it, so its process id stays its own.

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It exited with this status.
    Exited(u8),
    /// The signal of this number ended it: real-time signals have no other name.
    Killed(i32),
}

/// What happened to a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// It ended, and waits to be reaped.
    Ended(i32, Ending),
    /// It was stopped, by the signal of this number.
    Stopped(i32, i32),
}

/// A child that becomes the program.
#[derive(Debug)]
pub struct Spawned {
    /// Its process id.
    pub pid: i32,
    reader: OwnedFd,
}

impl Spawned {
    /// Why a child that has ended did not become the program; none if it did, or if a signal ended it before.
    pub fn why_not(&self) -> Option<Errno> {
        let mut bytes = [0; 4];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.reader, &mut bytes)) {
            Ok(4) => Some(Errno::from_raw(i32::from_ne_bytes(bytes))),
            _ => None,
        }
    }
}

/// What a child needs to report why it did not become the program. Nothing is left to be done before the
/// fork.
#[derive(Debug)]
pub struct ReportPipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl ReportPipe {
    pub fn open() -> Result<Self, Failure> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(Failure::of("pipe"))?;
        Ok(Self { reader, writer })
    }

    /// Creates a child that runs `become_program`, which returns only on failure. If no child could be
    /// created, it returns the failed call.
    pub fn spawn(self, become_program: impl FnOnce() -> Errno) -> Result<Spawned, Failure> {
        let Some(pid) = unsafe_calls::fork().map_err(Failure::of("fork"))? else {
            drop(self.reader);
            let errno = become_program();
            let _ = rustix::io::write(&self.writer, &(errno as i32).to_ne_bytes());
            unsafe_calls::exit_now(127);
        };
        Ok(Spawned { pid, reader: self.reader })
    }
}

/// Creates a child that runs `become_program`, which returns only on failure.
pub fn spawn(become_program: impl FnOnce() -> Errno) -> Result<Spawned, Failure> {
    ReportPipe::open()?.spawn(become_program)
}

/// Lets the kernel kill this process when its parent ends, which has this number. `ESRCH` if it has ended.
pub fn die_with(parent: i32) -> Result<(), Errno> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if parent_id() == parent.cast_unsigned() { Ok(()) } else { Err(Errno::ESRCH) }
}

/// The next thing that happened to a child, or to an orphan that became one, without waiting for it. `ECHILD`
/// when there is no child left.
pub fn next_change() -> Result<Option<Change>, Errno> {
    let ended = unsafe_calls::wait_for_child(None, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)?;
    if let Some(change) = ended.and_then(change_of) {
        return Ok(Some(change));
    }
    match unsafe_calls::wait_for_child(None, libc::WSTOPPED | libc::WNOHANG) {
        Ok(stopped) => Ok(stopped.and_then(change_of)),
        // The last child has ended meanwhile: if only stops are requested, the kernel reports that there is
        // no child.
        Err(Errno::ECHILD) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Whether a child whose stop was reported has neither been continued nor ended since. `/proc` may hide it,
/// or have a stranger under its number.
pub fn is_still_stopped(child: i32) -> bool {
    let options = libc::WCONTINUED | libc::WNOHANG | libc::WNOWAIT;
    matches!(unsafe_calls::wait_for_child(Some(child), options), Ok(None))
}

fn change_of(ChildChange { pid, code, status }: ChildChange) -> Option<Change> {
    match code {
        // The kernel keeps the low eight bits.
        libc::CLD_EXITED => {
            Some(Change::Ended(pid, Ending::Exited(u8::try_from(status & 0xff).unwrap_or(u8::MAX))))
        }
        libc::CLD_KILLED | libc::CLD_DUMPED => Some(Change::Ended(pid, Ending::Killed(status))),
        libc::CLD_STOPPED => Some(Change::Stopped(pid, status)),
        _ => None,
    }
}

/// Reaps a child that has ended.
pub fn reap(pid: i32) -> Result<(), Errno> {
    unsafe_calls::wait_for_child(Some(pid), libc::WEXITED).map(drop)
}

/// Makes this process the parent of every orphan among its descendants.
pub fn adopt_orphans() -> Result<(), Errno> {
    nix::sys::prctl::set_child_subreaper(true)
}

/// Ends this process by the signal that ended its child, so that its parent sees the same. Returns only for a
/// signal that cannot end it. The child has already dumped its core; this process must not dump one too.
pub fn die_of(signal: i32) -> u8 {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    unsafe_calls::die_of(signal);
    128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))
}

#[cfg(test)]
mod user_namespace_tests {
    use super::*;

    #[test]
    fn only_a_map_of_all_users_hides_nobody() {
        assert!(maps_everybody("         0          0 4294967295\n"));
        assert!(!maps_everybody("0 1000 1\n"));
        assert!(!maps_everybody("0 1000 1\n1 100000 65536\n"));
        assert!(!maps_everybody(""));
        assert_eq!(hides_owner(0), Ok(false));
    }
}

/// Starts a program that copies its input. It has its name and its arguments when this returns; a child has
/// not yet, when the exec only begins.
#[cfg(test)]
pub(crate) fn answering(copies: &mut std::process::Command) -> std::process::Child {
    use std::{io::Write as _, process::Stdio};
    let mut child = copies.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
    child.stdin.as_mut().expect("a pipe").write_all(b"a").expect("it reads");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("it answers");
    child
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Command, Stdio},
        time::Instant,
    };

    use nix::{
        sys::wait::{WaitPidFlag, waitpid},
        unistd::{gettid, getuid},
    };

    use super::*;

    /// The kernel shows of each process what it tells the process itself.
    #[cfg(feature = "tools")]
    #[test]
    fn the_groups_of_a_process_are_seen() {
        let own = super::super::accounts::Credentials::of_this_process().expect("the kernel answers");
        assert_eq!(credentials(own_pid()), Some(own.clone()));
        if own.uid != 0 {
            return;
        }
        let mut cat = Command::new("/usr/bin/setpriv");
        let mut child = answering(cat.args(["--reuid=5", "--regid=7", "--groups=3,7,9", "/bin/cat"]));
        let seen = credentials(child.id().cast_signed()).expect("it lives");
        assert_eq!((seen.uid, seen.gid, seen.groups), (5, 7, vec![7, 3, 9]));
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
    }

    /// A child is what it was started as, until it is reaped.
    #[test]
    fn a_child_is_seen_as_it_was_started() {
        let begun = Instant::now();
        let place = tempfile::tempdir().expect("a directory");
        let mut cat = Command::new("/bin/cat");
        cat.args(["-u", "-"]).env_clear().env("EMPTY", "").env("SEATS", "3").current_dir(place.path());
        let mut child = answering(cat.process_group(0));
        let pid = child.id().cast_signed();
        let find = || Process::find(pid).expect("it is not reaped");
        let seen = find();
        assert_eq!((seen.name.as_str(), seen.parent, seen.group), ("cat", own_pid(), pid));
        assert!(!seen.is_zombie() && !seen.is_stopped());
        assert!(seen.age().expect("it has one") <= begun.elapsed() + Duration::from_secs(1));
        assert_eq!(command_line(pid), ["/bin/cat", "-u", "-"]);
        assert_eq!(environment(pid), ["EMPTY=", "SEATS=3"]);
        assert_eq!(directory(pid), place.path().canonicalize().ok());
        let user = getuid().as_raw();
        assert_eq!((owner(pid), users(pid)), (Some(user), Some([user, user])));
        assert_eq!(lineage(pid).take(2).collect::<Vec<_>>(), [pid, own_pid()]);
        let last = lineage(pid).last().and_then(Process::find);
        assert!(last.is_none_or(|last| last.parent == 0), "the lineage ends with the first process");

        let open = PidFd::open(pid).expect("it lives");
        assert!(open.is_in_proc() && open.leads_its_group() && open.may_be_signalled());
        assert!(!open.has_ended());
        for _ in 0..2 {
            open.signal(Signal::SIGSTOP).expect("it lives");
            waitpid(nix::unistd::Pid::from_raw(pid), Some(WaitPidFlag::WUNTRACED)).expect("a child");
            assert!(find().is_stopped() && is_still_stopped(pid));
            open.signal(Signal::SIGCONT).expect("it lives");
            assert!(!is_still_stopped(pid) && !is_still_stopped(pid));
        }
        open.signal_group(Signal::SIGKILL).expect("it lives");
        assert_eq!(wait_for_any([&open], Duration::from_secs(60)), Ok(true));
        assert!(open.has_ended() && find().is_zombie() && !is_still_stopped(pid));
        assert_eq!(open.signal_group(Signal::SIGKILL), Err(Errno::ESRCH));
        child.wait().expect("it has ended");
        assert_eq!(open.signal(Signal::SIGKILL), Err(Errno::ESRCH));
    }

    /// No process has a number that is not positive. Of one that is gone, nothing is known.
    #[test]
    fn nothing_is_known_of_what_is_no_process() {
        assert!(PidFd::open(1).is_ok());
        assert_eq!([0, i32::MAX].map(|pid| PidFd::open(pid).err()), [Some(Errno::ESRCH); 2]);
        assert!(command_line(i32::MAX).is_empty() && environment(i32::MAX).is_empty());
        assert_eq!(own_start(own_pid()), Process::this().map(|this| this.started));
        assert_eq!(own_start(i32::MAX), None, "the number of a child is another one");
    }

    /// A thread that does not lead its process may have the number of a process that is gone.
    #[test]
    fn the_number_of_a_thread_is_no_process() {
        let open = || PidFd::open(gettid().as_raw()).err();
        assert_eq!(std::thread::spawn(open).join().expect("a thread"), Some(Errno::ESRCH));
    }

    /// A child that has no process group of its own does not lead that of its parent.
    #[test]
    fn a_child_does_not_lead_the_group_of_its_parent() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().expect("cat(1)");
        let open = PidFd::open(child.id().cast_signed()).expect("it lives");
        assert!(!open.leads_its_group());
        child.wait().expect("it ends with its input");
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) S 1 (b)) T 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = Process::parse(7, stat).expect("it parses");
        assert_eq!((process.name.as_str(), process.state, process.parent), ("a) S 1 (b)", 'T', 3));
        assert_eq!((process.group, process.foreground, process.started), (7, -1, 4711));
    }

    #[test]
    fn the_vector_of_a_process_is_read_in_its_own_width() {
        let wide = |pairs: &[(u64, u64)]| -> Vec<u8> {
            pairs
                .iter()
                .flat_map(|(kind, value)| [kind.to_ne_bytes(), value.to_ne_bytes()])
                .flatten()
                .collect()
        };
        let narrow = |pairs: &[(u32, u32)]| -> Vec<u8> {
            pairs
                .iter()
                .flat_map(|(kind, value)| [kind.to_ne_bytes(), value.to_ne_bytes()])
                .flatten()
                .collect()
        };
        for (secure, expected) in [(0, false), (1, true)] {
            assert_eq!(secure_in(&wide(&[(6, 4096), (23, secure), (0, 0)]), 4096), Some(expected));
            let secure = u32::try_from(secure).expect("a small number");
            assert_eq!(secure_in(&narrow(&[(6, 4096), (23, secure), (0, 0)]), 4096), Some(expected));
        }
        assert_eq!(secure_in(&wide(&[(6, 4096), (0, 0)]), 4096), None, "it does not say");
        assert_eq!(secure_in(&wide(&[(23, 0), (0, 0)]), 4096), None, "nothing tells how wide a word is");
        assert_eq!(secure_in(&[], 4096), None);
        assert_eq!(is_privileged_by_exec(own_pid()), Some(false));
    }

    #[test]
    fn the_clock_of_the_host_does_not_follow_a_time_namespace() {
        assert_eq!(
            boot_offset("monotonic           0         0\nboottime      -86400 500\n"),
            Some((-86400, 500))
        );
        assert_eq!(boot_offset("monotonic           0         0\n"), None);
    }

    /// The age of a process is exact to a clock tick: also after a long time none is counted too many.
    #[test]
    fn clock_ticks_are_parts_of_seconds() {
        let ticks = sysconf(SysconfVar::CLK_TCK).expect("a number").expect("a limit");
        let ticks = u64::try_from(ticks).expect("a positive number");
        assert_eq!(after_ticks(3600 * ticks), Some(Duration::from_secs(3600)));
        assert_eq!(after_ticks(0), Some(Duration::ZERO));
    }

    #[test]
    fn this_process_is_its_own_first_ancestor() {
        // The first process of a PID namespace has no parent there.
        let own = [own_pid(), Process::this().expect("/proc is mounted").parent];
        assert!(own_lineage().take(2).eq(own.into_iter().filter(|pid| *pid > 0)));
    }
}
