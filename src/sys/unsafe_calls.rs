//! Every line of the library that needs `unsafe`, each with its reason, and nothing else.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    errno::Errno,
    libc,
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
    unistd::ForkResult,
};

/// A descriptor that the caller may have left open: a call through one that is not open returns `EBADF`.
/// rungate never closes a descriptor that it did not open itself; it exchanges standard input and output.
pub(super) fn inherited(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the number is not -1, and no code of this crate closes inherited descriptors, so that it stays
    // what it is.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Whether no descriptor of this process can have this number or a higher one: its table ends before. The
/// kernel ignores what is asked about the numbers behind the table (`select(2)`, BUGS).
pub(super) fn is_beyond_descriptors(number: RawFd) -> bool {
    let Ok(place) = usize::try_from(number) else { return false };
    let bits = libc::c_ulong::BITS as usize;
    let mut words: Vec<libc::c_ulong> = vec![0; place / bits + 1];
    words[place / bits] = 1 << (place % bits);
    let mut at_once = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let nothing = std::ptr::null_mut();
    // SAFETY: the kernel reads and writes at most `number + 1` bits of the set, which has that many.
    let ready =
        unsafe { libc::select(number + 1, words.as_mut_ptr().cast(), nothing, nothing, &raw mut at_once) };
    // It clears the bit of a descriptor that is not ready.
    ready == 0 && words[place / bits] != 0
}

unsafe extern "C" {
    static environ: *const *const libc::c_char;
}

/// The unchanged environment, including malformed entries (the standard library leaves out those without
/// `=`).
pub(super) fn environment() -> Vec<&'static CStr> {
    let mut entries = Vec::new();
    // SAFETY: `environ` is a null-terminated array of C strings, and nothing in this single-threaded program
    // changes it as long as it runs.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            entries.push(CStr::from_ptr(*entry));
            entry = entry.add(1);
        }
    }
    entries
}

/// The path that the kernel was given to execute, as the auxiliary vector has it; none if it has none.
pub(super) fn executed_path() -> Option<CString> {
    // SAFETY: the vector is read, not changed, and its string lies on the stack that this process was started
    // with, where it stays for as long as the process lives.
    unsafe {
        let path = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        (!path.is_null()).then(|| CStr::from_ptr(path).to_owned())
    }
}

/// Set when a signal came that our own timer did not send.
static FROM_ELSEWHERE: AtomicBool = AtomicBool::new(false);

extern "C" fn note_origin(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid structure.
    let code = unsafe { (*info).si_code };
    if code != libc::SI_TIMER {
        FROM_ELSEWHERE.store(true, Ordering::Relaxed);
    }
}

/// Lets `signal` interrupt blocking calls (they end with `EINTR`) and do nothing else. Returns the previous
/// setting.
pub(super) fn interrupt_on(signal: Signal) -> Result<SigAction, Errno> {
    let handler = SigHandler::SigAction(note_origin);
    let action = SigAction::new(handler, SaFlags::SA_SIGINFO, SigSet::empty());
    // SAFETY: the handler reads one field and stores to an atomic, which is safe at any instruction.
    unsafe { sigaction(signal, &action) }
}

/// Waits for one of these signals, and takes it. Returns its number, and whether a process sent it and not
/// the kernel.
pub(super) fn wait_for_signal(signals: &SigSet) -> Result<(libc::c_int, bool), Errno> {
    // SAFETY: it is a plain structure for which zeros are a value, and the call writes to nothing else.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above; the set is only read.
    let signal = Errno::result(unsafe { libc::sigwaitinfo(signals.as_ref(), &raw mut info) })?;
    Ok((signal, info.si_code <= 0))
}

/// The signals that wait for this process because they are blocked.
pub(super) fn pending() -> Result<SigSet, Errno> {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: the call writes the whole set, if it does not fail.
    unsafe {
        Errno::result(libc::sigpending(set.as_mut_ptr()))?;
        Ok(SigSet::from_sigset_t_unchecked(set.assume_init()))
    }
}

/// Whether a signal for this process was lost since the last call.
pub(super) fn has_swallowed() -> bool {
    FROM_ELSEWHERE.swap(false, Ordering::Relaxed)
}

/// Gives a signal its default disposition. Returns the previous setting.
pub(super) fn set_default(signal: Signal) -> Result<SigAction, Errno> {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed.
    unsafe { sigaction(signal, &action) }
}

/// Ignores a signal. Returns the previous setting.
pub(super) fn ignore(signal: Signal) -> Result<SigAction, Errno> {
    let action = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed.
    unsafe { sigaction(signal, &action) }
}

/// Lets a program begin as the leader of a session of its own, which has no terminal.
pub(super) fn lead_session(command: &mut Command) -> &mut Command {
    // SAFETY: setsid(2) may be called between fork and exec.
    unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) }
}

/// Creates a copy of this process: returns none in the child, its process id in the parent.
pub(super) fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: this program has one thread, so that the child may do whatever the parent may.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child.as_raw())),
        ForkResult::Child => Ok(None),
    }
}

/// The result of `waitid(2)` for a child, in its own numbers, because nix cannot express an end by a
/// real-time signal.
pub(super) struct ChildChange {
    pub(super) pid: i32,
    /// `CLD_EXITED` and its like.
    pub(super) code: libc::c_int,
    /// The exit status, or the signal.
    pub(super) status: libc::c_int,
}

/// Waits for a change of this child, or of any. None when there was none, with `WNOHANG`.
pub(super) fn wait_for_child(pid: Option<i32>, options: libc::c_int) -> Result<Option<ChildChange>, Errno> {
    let (kind, id) = match pid {
        Some(pid) => (libc::P_PID, pid.cast_unsigned()),
        None => (libc::P_ALL, 0),
    };
    // SAFETY: it is a plain structure for which zeros are a value, and the call writes to nothing else.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    while let Err(errno) = Errno::result(unsafe { libc::waitid(kind, id, &raw mut info, options) }) {
        if errno != Errno::EINTR {
            return Err(errno);
        }
    }
    // SAFETY: the kernel has filled in the fields of a SIGCHLD, or left all of them zero.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok((pid != 0).then_some(ChildChange { pid, code: info.si_code, status }))
}

/// Lets a signal of any number end this process. Returns if it cannot.
pub(super) fn die_of(signal: libc::c_int) {
    // SAFETY: the default disposition runs no code; the set is initialized before it is used; raising a
    // signal that has its default ends the process or does nothing.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Discards a pending signal, by ignoring it for a moment.
pub(super) fn forget_pending(signal: Signal) -> Result<(), Errno> {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed, and the one that was in force is put back.
    unsafe { sigaction(signal, &ignore).and_then(|before| sigaction(signal, &before)).map(drop) }
}

/// Ends this process at once, without the usual actions at exit: for a child that could not become the
/// program.
pub(super) fn exit_now(status: u8) -> ! {
    // SAFETY: ending is always allowed.
    unsafe { libc::_exit(libc::c_int::from(status)) }
}

/// Restores a disposition that one of the calls here returned.
pub(super) fn restore(signal: Signal, action: &SigAction) -> Result<(), Errno> {
    // SAFETY: the disposition was in force in this process before, and what it points to is still there.
    unsafe { sigaction(signal, action).map(drop) }
}

/// All users that the databases list.
#[cfg(feature = "tools")]
pub(super) fn all_users() -> Vec<users::User> {
    // SAFETY: no other thread reads the database meanwhile: this process has one thread.
    unsafe { users::all_users() }.collect()
}

unsafe extern "C" {
    fn innetgr(
        netgroup: *const libc::c_char,
        host: *const libc::c_char,
        user: *const libc::c_char,
        domain: *const libc::c_char,
    ) -> libc::c_int;
}

/// Whether a netgroup has an entry for this host and user, of any domain (`innetgr(3)`).
pub(super) fn in_netgroup(netgroup: &CStr, host: &CStr, user: &CStr) -> bool {
    // SAFETY: the strings live through the call, and a null pointer stands for any domain.
    unsafe { innetgr(netgroup.as_ptr(), host.as_ptr(), user.as_ptr(), std::ptr::null()) == 1 }
}

/// A socket option (`getsockopt(2)`), as far as it fits; and its length in bytes.
pub(super) fn socket_option(
    socket: BorrowedFd<'_>,
    option: libc::c_int,
    room: &mut [u8],
) -> Result<usize, Errno> {
    let mut length = libc::socklen_t::try_from(room.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `room`, which has that many.
    let answered = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match Errno::result(answered) {
        // `ERANGE` comes with the length that is needed.
        Ok(_) | Err(Errno::ERANGE) => Ok(length as usize),
        Err(errno) => Err(errno),
    }
}

/// Sets an option that the libraries do not name yet.
pub(super) fn set_socket_option(
    socket: BorrowedFd<'_>,
    option: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel reads `length` bytes of `value`, which has that many.
    let answered = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), length)
    };
    Errno::result(answered).map(drop)
}

/// Shows what one sender has written to a local socket that asks for senders (`SO_PASSCRED`), with its
/// process and user; none if the kernel names none. It stays in the socket. `EPERM` if a descriptor came with
/// it.
pub(super) fn peek_with_sender(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> Result<(usize, Option<(i32, u32)>), Errno> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // As large as one message with credentials, and aligned like its header: a descriptor has no room.
    let mut beside = [0_u64; 4];
    // SAFETY: it is a plain structure for which zeros are a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = beside.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&beside);
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_PEEK;
    // SAFETY: `bytes` and `beside` live through the call, and each is as long as the kernel is told.
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let count = Errno::result(read)?.cast_unsigned();
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(Errno::EPERM);
    }
    // SAFETY: the kernel has filled in the header, which these read as `cmsg(3)` says: the first message, if
    // there is one, lies within `beside`, and one of this kind has a `ucred` for its content.
    let sender = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        (!first.is_null()
            && (*first).cmsg_level == libc::SOL_SOCKET
            && (*first).cmsg_type == libc::SCM_CREDENTIALS)
            .then(|| libc::CMSG_DATA(first).cast::<libc::ucred>().read_unaligned())
    };
    Ok((count, sender.filter(|sender| sender.pid > 0).map(|sender| (sender.pid, sender.uid))))
}

/// The user namespace in which another one was made; `EPERM` where that is out of sight
/// (`ioctl_ns(2)`).
pub(super) fn parent_of_namespace(namespace: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // SAFETY: this request takes no argument, and answers with a new descriptor.
    let answered = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT) };
    owned(Errno::result(answered)?).ok_or(Errno::EBADF)
}

/// The user who created a user namespace, by the number in this namespace.
pub(super) fn owner_of_namespace(namespace: BorrowedFd<'_>) -> Result<u32, Errno> {
    let mut uid: libc::uid_t = 0;
    // SAFETY: this request writes one user to where it is told.
    let answered = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID, &raw mut uid) };
    Errno::result(answered).map(|_| uid)
}

/// `_IO(0xb7, 2)` and `_IO(0xb7, 4)` of `linux/nsfs.h`.
const NS_GET_PARENT: libc::Ioctl = 0xb702;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;

/// An unguessable number.
pub(super) fn random() -> Result<u128, Errno> {
    let mut bytes = [0; size_of::<u128>()];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match Errno::result(count)? {
        // So few bytes are always read in one call.
        16 => Ok(u128::from_ne_bytes(bytes)),
        _ => Err(Errno::EAGAIN),
    }
}

/// A descriptor that the kernel has just made for this process, under a number that it recorded.
pub(super) fn owned(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the caller has the number from the kernel, which gave it to no other owner.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
}
