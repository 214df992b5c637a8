//! Sockets of this host: a listener that every user may connect to, and connections that carry bytes and one
//! descriptor at a time. Nothing here blocks longer than its timeout.

use std::{
    env,
    fs::{self, File, Permissions},
    io::{self, IoSlice, IoSliceMut, Read},
    mem::MaybeUninit,
    net::Shutdown,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::{
            fs::{FileTypeExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::Path,
    time::{Duration, Instant},
};

use nix::{
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use rustix::{
    io::ioctl_fionbio,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, UCred,
        connect, listen, recvmsg, sendmsg, socket_with,
        sockopt::{Timeout, set_socket_oobinline, set_socket_passcred, set_socket_timeout},
    },
    process::{getegid, geteuid, getpid},
};

use super::{
    descriptor,
    failure::{Errno, errno_of},
    process::{self, PidFd, Process},
    unsafe_calls,
};

/// How many callers may queue at the listener. Clients that connect in a loop can always fill it; those that
/// wait for it are served in order.
const CALLERS: i32 = 128;

/// The first descriptor that `systemd` hands over (`sd_listen_fds(3)`).
const FIRST_HANDED_OVER: RawFd = 3;

/// A socket that others connect to.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// The one that the service manager opened for this process, if any.
    pub fn handed_over() -> Option<Self> {
        let number = |text: String| text.parse::<i32>().ok();
        let pid = env::var("LISTEN_PID").ok().and_then(number);
        let count = env::var("LISTEN_FDS").ok().and_then(number);
        if pid != Some(process::own_pid()) || count != Some(1) {
            return None;
        }
        let listener = Self(UnixListener::from(unsafe_calls::owned(FIRST_HANDED_OVER)?));
        listener.0.set_nonblocking(true).ok()?;
        listener.refuse_descriptors().ok()?;
        Some(listener)
    }

    /// Creates one that all users can connect to. A leftover socket of an ended process is replaced, and no
    /// other file.
    pub fn at(path: &Path) -> Result<Self, Errno> {
        let is_other = || fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket());
        match UnixStream::connect(path) {
            Ok(_) => return Err(Errno::EADDRINUSE),
            Err(error) if errno_of(&error) == Errno::ECONNREFUSED => {
                if is_other() {
                    return Err(Errno::ENOTSOCK);
                }
                match fs::remove_file(path) {
                    Err(error) if errno_of(&error) != Errno::ENOENT => return Err(errno_of(&error)),
                    _ => {}
                }
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(|error| errno_of(&error))?;
        let for_all = fs::set_permissions(path, Permissions::from_mode(0o666));
        for_all.and_then(|()| listener.set_nonblocking(true)).map_err(|error| errno_of(&error))?;
        listen(&listener, CALLERS).map_err(errno)?;
        let listener = Self(listener);
        listener.refuse_descriptors()?;
        Ok(listener)
    }

    /// No client that connects from now on can send a descriptor, if the kernel can refuse that.
    fn refuse_descriptors(&self) -> Result<(), Errno> {
        match unsafe_calls::set_socket_option(self.as_fd(), SO_PASSRIGHTS, 0) {
            Err(Errno::ENOPROTOOPT) => Ok(()),
            set => set,
        }
    }

    /// The next connection; none while no client calls.
    pub fn accept(&self) -> Result<Option<Connection>, Errno> {
        match self.0.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true).map_err(|error| errno_of(&error))?;
                // Otherwise a read would drop an urgent byte, and its descriptor, without showing it first.
                set_socket_oobinline(&stream, true).map_err(errno)?;
                Ok(Some(Connection(stream)))
            }
            // The client has already closed the connection.
            Err(error) if matches!(errno_of(&error), Errno::EAGAIN | Errno::ECONNABORTED | Errno::EINTR) => {
                Ok(None)
            }
            Err(error) => Err(errno_of(&error)),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A connection. It is never inherited by the program.
#[derive(Debug)]
pub struct Connection(UnixStream);

impl Connection {
    /// Connects, within this time, also if the listener's queue is full. A client that retries would be
    /// served after all those that wait.
    pub fn to(path: &Path, longest: Duration) -> Result<Self, Errno> {
        let address = SocketAddrUnix::new(path).map_err(errno)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(errno)?;
        // Where the caller has closed standard error, messages must not go to the other end.
        let socket = descriptor::move_high(socket)?;
        let (mut waits, until) = (false, Instant::now() + longest);
        loop {
            match connect(&socket, &address).map_err(errno) {
                Ok(()) if waits => {
                    ioctl_fionbio(&socket, true).map_err(errno)?;
                    return Ok(Self(UnixStream::from(socket)));
                }
                Ok(()) => return Ok(Self(UnixStream::from(socket))),
                Err(Errno::EAGAIN | Errno::EINTR) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Errno::ETIMEDOUT);
                    }
                    ioctl_fionbio(&socket, false).map_err(errno)?;
                    set_socket_timeout(&socket, Timeout::Send, Some(left)).map_err(errno)?;
                    waits = true;
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// The process at the other end.
    pub fn peer(&self) -> Result<Peer, Errno> {
        Peer::of(self.as_fd())
    }

    /// The process at the other end, from the kernel (Linux 6.5 and newer).
    pub fn process(&self) -> Result<PidFd, Errno> {
        Peer::process_of(self.as_fd())
    }

    /// The user who connected, or opened the listener.
    pub fn peer_uid(&self) -> Result<u32, Errno> {
        Peer::uid_of(self.as_fd())
    }

    /// Sends as many of these bytes as the other end takes now, with a descriptor beside the first of them.
    pub fn send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> Result<usize, Errno> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        if !descriptors.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL).map_err(errno)
    }

    /// The same without a descriptor.
    pub fn send_plain(&self, bytes: &[u8]) -> Result<usize, Errno> {
        self.send(bytes, None)
    }

    /// The same, and the kernel confirms the sending process.
    pub fn send_as_oneself(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        beside.push(SendAncillaryMessage::ScmCredentials(UCred {
            pid: getpid(),
            uid: geteuid(),
            gid: getegid(),
        }));
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL).map_err(errno)
    }

    /// Whether whatever is read has the credentials of its sender beside it: for
    /// [`Connection::read_with_sender`], and not for [`Connection::read`].
    pub fn ask_for_senders(&self, asks: bool) -> Result<(), Errno> {
        set_socket_passcred(&self.0, asks).map_err(errno)
    }

    /// Reads as [`Connection::read`] does, data of one sender, with the process and user that the kernel
    /// confirms, if it does.
    pub fn read_with_sender(&self, bytes: &mut [u8]) -> Result<(usize, Option<(i32, u32)>), Errno> {
        let (count, sender) = unsafe_calls::peek_with_sender(self.as_fd(), bytes)?;
        Ok((self.consume(bytes, count)?, sender))
    }

    /// Reads what has come, and the descriptor beside it. Nothing read means that the other end closed the
    /// connection.
    pub fn receive(&self, bytes: &mut [u8]) -> Result<(usize, Option<OwnedFd>), Errno> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let received = recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
            .map_err(errno)?;
        let descriptors = beside.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        Ok((received.bytes, descriptors.flatten().next()))
    }

    /// Reads what has come, if no descriptor came with it. Otherwise it stays in the socket (`EPERM`):
    /// the process that closes a descriptor last may have to wait as long as its owner wants (`SO_LINGER`).
    pub fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        let mut nothing = RecvAncillaryBuffer::default();
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::PEEK;
        let seen = recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut nothing, flags).map_err(errno)?;
        if seen.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Errno::EPERM);
        }
        self.consume(bytes, seen.bytes)
    }

    /// Reads this many bytes that were seen already.
    fn consume(&self, bytes: &mut [u8], count: usize) -> Result<usize, Errno> {
        let seen = bytes.get_mut(..count).unwrap_or_default();
        (&self.0).read(seen).map_err(|error| errno_of(&error))
    }

    /// Accepts no more input, and drops what was not read. Returns whether all is gone: a descriptor stays,
    /// as for [`Connection::read`].
    pub fn drop_input(&self) -> bool {
        let _ = self.0.shutdown(Shutdown::Read);
        let mut bytes = [0; 4096];
        loop {
            match self.read(&mut bytes) {
                Ok(0) => return true,
                // The other end closed the connection, and had not read everything. It is reported once.
                Ok(_) | Err(Errno::EINTR | Errno::ECONNRESET) => {}
                Err(_) => return false,
            }
        }
    }

    /// Sleeps until there is something to read, or room to write, at most this long. Returns whether there
    /// is; a signal counts as nothing.
    pub fn wait(&self, to_write: bool, longest: Duration) -> Result<bool, Errno> {
        let flags = if to_write { PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let timeout =
            PollTimeout::try_from(longest.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.as_fd(), flags)], timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Its number, as long as it is open.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

// The process at the other end of a local socket, as the kernel recorded it at connect, never as the client
// claims.

/// The option of Linux 6.5 that gives the process itself, and not its number. The C library does not name it
/// yet.
const SO_PEERPIDFD: libc::c_int = 77;

/// The option of Linux 6.16 by which a socket and the connections to it accept no descriptors.
const SO_PASSRIGHTS: libc::c_int = 83;

/// As many groups as the kernel lets a process have.
const MOST_GROUPS: usize = 65_536;

/// A process, and on whose behalf it connected.
#[derive(Debug)]
pub struct Peer {
    /// Its number.
    pub pid: i32,
    /// The process itself, if the kernel cannot return it again. Otherwise [`Connection::process`] opens it
    /// when needed, so that a connection needs one descriptor.
    ///
    /// [`Connection::process`]: crate::sys::local_socket::Connection::process
    pub process: Option<PidFd>,
    /// Its start time, which with its number identifies one process of one boot.
    pub started: u64,
    /// Its effective user when it connected; from within another user namespace the owner of that namespace,
    /// because one user may be many there.
    pub uid: u32,
    /// Its effective user in any case.
    pub own_uid: u32,
    /// Its effective group and its supplementary groups, each once; none from within another user namespace,
    /// where they are no groups of its user's.
    pub groups: Option<Vec<u32>>,
    /// A number that the process must send itself, if the kernel could not identify it. The process that
    /// connected may have ended and another may have its number, while its child still has the socket.
    pub challenge: Option<u128>,
}

impl Peer {
    /// Of a connection. `ESRCH` if it has ended: its number may belong to another process.
    pub(super) fn of(socket: BorrowedFd<'_>) -> Result<Self, Errno> {
        let (pid, uid, gid) = credentials(socket)?;
        let (process, challenge) = match opened(socket, pid) {
            Ok(process) => (process, None),
            // Linux before 6.5. The number is created after the process was opened, so a process that sends
            // it existed then.
            Err(Errno::ENOPROTOOPT) => (PidFd::open(pid)?, Some(unsafe_calls::random()?)),
            Err(errno) => return Err(errno),
        };
        let started = Process::find(pid).ok_or_else(|| why_unseen(pid))?.started;
        let owner = process::owner_of_foreign(pid)?;
        // The data of /proc are about this process if it still exists, unreaped.
        if process.has_ended() {
            return Err(Errno::ESRCH);
        }
        let process = challenge.is_some().then_some(process);
        let groups = if owner.is_none() { Some(groups_of(socket, gid)?) } else { None };
        Ok(Self { pid, process, started, uid: owner.unwrap_or(uid), own_uid: uid, groups, challenge })
    }

    /// The process at the other end of a connection.
    pub(super) fn process_of(socket: BorrowedFd<'_>) -> Result<PidFd, Errno> {
        opened(socket, credentials(socket)?.0)
    }

    /// The user alone.
    pub(super) fn uid_of(socket: BorrowedFd<'_>) -> Result<u32, Errno> {
        credentials(socket).map(|(_, uid, _)| uid)
    }
}

/// Why there is nothing about a process in `/proc`: `ESRCH` if it has ended, or is out of sight.
fn why_unseen(pid: i32) -> Errno {
    match File::open(format!("/proc/{pid}/stat")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => errno_of(&error),
        _ => Errno::ESRCH,
    }
}

/// Process, user and group.
fn credentials(socket: BorrowedFd<'_>) -> Result<(i32, u32, u32), Errno> {
    let mut words = [0; 12];
    if unsafe_calls::socket_option(socket, libc::SO_PEERCRED, &mut words)? != words.len() {
        return Err(Errno::EINVAL);
    }
    let [pid, uid, gid] = words.as_chunks().0 else { return Err(Errno::EINVAL) };
    Ok((i32::from_ne_bytes(*pid), u32::from_ne_bytes(*uid), u32::from_ne_bytes(*gid)))
}

/// This one and the supplementary ones, each once.
fn groups_of(socket: BorrowedFd<'_>, gid: u32) -> Result<Vec<u32>, Errno> {
    let mut groups = vec![gid];
    for group in supplementary(socket)? {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups)
}

fn supplementary(socket: BorrowedFd<'_>) -> Result<Vec<u32>, Errno> {
    let mut room = vec![0; 64 * size_of::<u32>()];
    loop {
        let length = unsafe_calls::socket_option(socket, libc::SO_PEERGROUPS, &mut room)?;
        if length <= room.len() {
            let groups = room.get(..length).unwrap_or_default().as_chunks().0;
            return Ok(groups.iter().copied().map(u32::from_ne_bytes).collect());
        }
        if length > MOST_GROUPS * size_of::<u32>() {
            return Err(Errno::EINVAL);
        }
        room.resize(length, 0);
    }
}

/// The process itself.
fn opened(socket: BorrowedFd<'_>, pid: i32) -> Result<PidFd, Errno> {
    let mut word = [0; 4];
    unsafe_calls::socket_option(socket, SO_PEERPIDFD, &mut word)?;
    let descriptor = unsafe_calls::owned(i32::from_ne_bytes(word)).ok_or(Errno::EINVAL)?;
    Ok(PidFd::of(pid, descriptor))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_getfl};

    use super::*;
    use crate::sys::{Credentials, FileId};

    fn pair() -> [Connection; 2] {
        let (one, other) = UnixStream::pair().expect("two sockets");
        [one, other].map(Connection)
    }

    fn id(file: impl AsFd) -> FileId {
        FileId::from(&descriptor::stat(file).expect("an open file"))
    }

    /// A descriptor comes beside the bytes that it was sent with.
    #[test]
    fn a_descriptor_comes_beside_the_bytes() {
        let [one, other] = pair();
        let file = tempfile::tempfile().expect("a file");
        let mut bytes = [0; 8];
        assert_eq!(other.wait(false, Duration::ZERO), Ok(false));
        assert_eq!(other.wait(true, Duration::ZERO), Ok(true), "there is room");
        assert_eq!(one.send(b"take", Some(file.as_fd())), Ok(4));
        assert_eq!(other.wait(false, Duration::ZERO), Ok(true));
        let (count, received) = other.receive(&mut bytes).expect("an open socket");
        assert_eq!((&bytes[..count], received.map(id)), (&b"take"[..], Some(id(&file))));
        assert_eq!(one.send_plain(b"no"), Ok(2));
        let (count, received) = other.receive(&mut bytes).expect("an open socket");
        assert_eq!((&bytes[..count], received.map(id)), (&b"no"[..], None));
        drop(one);
        let (count, received) = other.receive(&mut bytes).expect("an open socket");
        assert_eq!((count, received.map(id)), (0, None));
    }

    /// To close a descriptor may take as long as its sender wants. So it stays in the socket, with its bytes.
    #[test]
    fn a_descriptor_that_is_not_wanted_stays_in_the_socket() {
        let [one, other] = pair();
        let file = tempfile::tempfile().expect("a file");
        let mut bytes = [0; 8];
        assert_eq!(one.send_plain(b"plain"), Ok(5));
        assert_eq!((other.read(&mut bytes), &bytes[..5]), (Ok(5), &b"plain"[..]));
        assert_eq!(one.send(b"take", Some(file.as_fd())), Ok(4));
        for _ in 0..2 {
            assert_eq!(other.read(&mut bytes), Err(Errno::EPERM));
        }
        other.ask_for_senders(true).expect("an open socket");
        assert_eq!(other.read_with_sender(&mut bytes), Err(Errno::EPERM));
        other.ask_for_senders(false).expect("an open socket");
        assert!(!other.drop_input(), "it is still there");
        let [one, other] = pair();
        assert_eq!(one.send_plain(&[b'x'; 9000]), Ok(9000));
        assert!(other.drop_input(), "there were only bytes");
    }

    /// The kernel says which process has sent something, if it was asked to before.
    #[test]
    fn the_kernel_names_the_sender() {
        let [one, other] = pair();
        let mut bytes = [0; 8];
        assert_eq!(one.send_plain(b"early"), Ok(5));
        other.ask_for_senders(true).expect("an open socket");
        assert_eq!(other.read_with_sender(&mut bytes), Ok((5, None)));
        let this = (process::own_pid(), geteuid().as_raw());
        assert_eq!(one.send_as_oneself(b"me"), Ok(2));
        assert_eq!(other.read_with_sender(&mut bytes), Ok((2, Some(this))));
        assert_eq!(bytes[..2], *b"me");
    }

    /// The process at the other end is what the kernel says of it.
    #[test]
    fn the_kernel_says_who_is_at_the_other_end() {
        let [one, _other] = pair();
        let own = Credentials::of_this_process().expect("the kernel knows it");
        let peer = one.peer().expect("the kernel knows it");
        let started = Process::this().map(|process| process.started);
        assert_eq!((peer.pid, Some(peer.started)), (process::own_pid(), started));
        assert_eq!((peer.uid, peer.own_uid, peer.groups), (own.uid, own.uid, Some(own.groups)));
        assert_eq!(one.peer_uid(), Ok(own.uid));
        assert_eq!(why_unseen(i32::MAX), Errno::ESRCH, "no process has this number");
    }

    /// All users may connect to a listener. It takes the place of a socket whose process has ended, and of no
    /// other one. No call on it waits.
    #[test]
    fn a_listener_takes_the_place_of_one_that_has_ended() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let connect = || Connection::to(&path, Duration::from_secs(60));
        let never_waits =
            |socket: BorrowedFd<'_>| fcntl_getfl(socket).expect("it is open").contains(OFlags::NONBLOCK);
        assert_eq!(connect().err(), Some(Errno::ENOENT));
        let listener = Listener::at(&path).expect("nothing is there");
        let mode = fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        assert!(never_waits(listener.as_fd()));
        assert!(matches!(listener.accept(), Ok(None)));
        let client = connect().expect("it listens");
        let accepted = listener.accept().expect("it is open").expect("a client called");
        assert!(never_waits(client.as_fd()) && never_waits(accepted.as_fd()));
        assert_eq!(client.send_plain(b"hello"), Ok(5));
        assert_eq!(accepted.read(&mut [0; 8]), Ok(5));
        assert_eq!(Listener::at(&path).err(), Some(Errno::EADDRINUSE));
        drop(listener);
        assert_eq!(connect().err(), Some(Errno::ECONNREFUSED));
        let listener = Listener::at(&path).expect("its process has ended");
        assert!(connect().is_ok() && matches!(listener.accept(), Ok(Some(_))));
        let file = directory.path().join("file");
        fs::write(&file, "something else").expect("a file");
        assert_eq!(Listener::at(&file).err(), Some(Errno::ENOTSOCK));
        assert!(file.exists(), "only sockets are replaced");
    }

    /// Only some clients may wait at a listener. Who may not wait for them hears so at once.
    #[test]
    fn the_queue_at_a_listener_is_bounded() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = Listener::at(&path).expect("nothing is there");
        let connect = || Connection::to(&path, Duration::ZERO);
        let waiting: Vec<Connection> = (0..200).map_while(|_| connect().ok()).collect();
        assert!((100..200).contains(&waiting.len()), "{}", waiting.len());
        assert_eq!(connect().err(), Some(Errno::ETIMEDOUT));
        assert!(matches!(listener.accept(), Ok(Some(_))));
        assert!(connect().is_ok(), "there is room again");
    }
}
