//! Who is at the other end of a local socket: what the kernel wrote down when the connection was made, and
//! never what is said over it.

use std::os::fd::BorrowedFd;

use nix::libc;

use crate::sys::{failure::Errno, pidfd::PidFd, process::Process, unsafe_calls, user_namespace};

/// The option of Linux 6.5 that gives the process itself, and not its number. The C library does not name it
/// yet.
const SO_PEERPIDFD: libc::c_int = 77;

/// As many groups as the kernel lets a process have.
const MOST_GROUPS: usize = 65_536;

/// A process, and on whose behalf it connected.
#[derive(Debug)]
pub struct Peer {
    /// Its number.
    pub pid: i32,
    /// The process itself, where the kernel cannot give it again; elsewhere [`Connection::process`] asks for
    /// it when it is needed, so that a conversation takes one descriptor.
    ///
    /// [`Connection::process`]: crate::sys::local_socket::Connection::process
    pub process: Option<PidFd>,
    /// When it started: with the number it names one process of one boot.
    pub started: u64,
    /// On whose behalf: its effective user when it connected; from within another user namespace the one to
    /// whom that belongs, because there one user may be many.
    pub uid: u32,
    /// Its effective user in any case.
    pub own_uid: u32,
    /// Its effective group and its supplementary groups, each once; none from within another user namespace,
    /// where they are no groups of its user's.
    pub groups: Option<Vec<u32>>,
    /// A number that the process has to send itself, where the kernel could not give it: who connected may
    /// have ended since, and its number be somebody else's, while a child of its still has the socket.
    pub challenge: Option<u128>,
}

impl Peer {
    /// Of a connection. `ESRCH` when it has ended: its number may be somebody else's.
    pub(super) fn of(socket: BorrowedFd<'_>) -> Result<Self, Errno> {
        let (pid, uid, gid) = credentials(socket)?;
        let (process, challenge) = match opened(socket, pid) {
            Ok(process) => (process, None),
            // Linux before 6.5. The number is made after the process was opened: who sends it was there then.
            Err(Errno::ENOPROTOOPT) => (PidFd::open(pid)?, Some(unsafe_calls::random()?)),
            Err(errno) => return Err(errno),
        };
        let started = Process::find(pid).ok_or(Errno::ESRCH)?.started;
        let owner = user_namespace::owner_of_foreign(pid)?;
        // What /proc said was of this very process if that is still there, unreaped.
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
