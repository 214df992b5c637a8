//! Makes things look as if somebody else held a slot.
//!
//! ```text
//! forger serve SOCKET                     takes one descriptor that somebody sends, and echoes its standard input
//! forger give SOCKET FILE START:LENGTH…   read-locks ranges through a description of its own, and sends that
//! forger share FILE START:LENGTH… -- COMMAND [ARGUMENT…]
//!                                         locks ranges in a child that shares its table of descriptors and ends, so that the
//!                                         kernel names the child; then runs the command under the number of that child
//! ```
//!
//! `share` is for root, and for the initial PID namespace: the kernel keeps the number that a lock names as
//! it is there.

#![allow(unsafe_code)]

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

#[path = "../support/lock_range.rs"]
mod lock_range;

use lock_range::lock_range;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", socket] => serve(socket),
        ["give", socket, file, ranges @ ..] => give(socket, file, ranges),
        ["share", file, rest @ ..] => {
            let end = rest.iter().position(|word| *word == "--").ok_or("-- and a command are missing")?;
            share(file, &rest[..end], &rest[end + 1..])
        }
        _ => {
            Err("usage: forger (serve SOCKET | give SOCKET FILE RANGE… | share FILE RANGE… -- COMMAND…)"
                .into())
        }
    }
}

fn serve(socket: &str) -> Result<(), Box<dyn Error>> {
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
    writeln!(io::stdout(), "ready")?;
    let (stream, _) = listener.accept()?;
    let _kept = receive(&stream)?;
    writeln!(io::stdout(), "received")?;
    let mut line = String::new();
    while io::stdin().read_line(&mut line)? > 0 {
        write!(io::stdout(), "{line}")?;
        line.clear();
    }
    Ok(())
}

fn give(socket: &str, path: &str, ranges: &[&str]) -> Result<(), Box<dyn Error>> {
    let file = File::open(path)?;
    for range in ranges {
        let (start, length) = parsed(range)?;
        fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&lock_range(libc::F_RDLCK, start, length)))?;
    }
    send(&UnixStream::connect(socket)?, file.as_raw_fd())?;
    Ok(())
}

fn share(path: &str, ranges: &[&str], command: &[&str]) -> Result<(), Box<dyn Error>> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let ranges = ranges.iter().map(|range| parsed(range)).collect::<Result<Vec<_>, _>>()?;
    let flags = libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: without memory of its own to share it is a fork, and this program has one thread.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if child == 0 {
        let locked = ranges.iter().all(|(start, length)| {
            fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_WRLCK, *start, *length))).is_ok()
        });
        // SAFETY: ending is always allowed.
        unsafe { libc::_exit(i32::from(!locked)) };
    }
    let child = i32::try_from(child)?;
    let mut status = 0;
    // SAFETY: the status is ours to write to.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    if ended != child || status != 0 {
        return Err("the child could not lock".into());
    }
    let [program, arguments @ ..] = command else { return Err("no command".into()) };
    // Until it has its number it does nothing that others see.
    let stopped = ["-c", "kill -STOP $$; exec \"$@\"", "heir", program];
    let mut heir = heir_of(child, || Command::new("sh").args(stopped).args(arguments).spawn())?;
    heir.wait()?;
    // Until now the locks are held.
    drop(file);
    Ok(())
}

/// Starts a process until it gets this number. Others may take it for a moment.
fn heir_of(number: i32, spawn: impl Fn() -> io::Result<Child>) -> Result<Child, Box<dyn Error>> {
    for _ in 0..50 {
        fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string())?;
        let mut heir = spawn()?;
        let process = Pid::from_raw(heir.id().try_into()?);
        waitpid(process, Some(WaitPidFlag::WUNTRACED))?;
        if process.as_raw() == number {
            signal::kill(process, Signal::SIGCONT)?;
            return Ok(heir);
        }
        heir.kill()?;
        heir.wait()?;
    }
    Err("somebody else took the number".into())
}

fn parsed(range: &str) -> Result<(i64, i64), Box<dyn Error>> {
    let (start, length) = range.split_once(':').ok_or("a range is START:LENGTH")?;
    Ok((start.parse()?, length.parse()?))
}

/// Room for one control message with one descriptor.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    descriptor: RawFd,
    _padding: i32,
}

/// Lends a message with one byte and room for one descriptor.
fn with_message<T>(descriptor: RawFd, call: impl FnOnce(&mut libc::msghdr) -> T) -> (T, RawFd) {
    let mut byte = [0_u8; 1];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: zeros are a value of these plain structures.
    let (mut message, mut control) = unsafe { std::mem::zeroed::<(libc::msghdr, Control)>() };
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    control.header.cmsg_len = size_of::<libc::cmsghdr>() + size_of::<RawFd>();
    control.descriptor = descriptor;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<Control>();
    let done = call(&mut message);
    (done, control.descriptor)
}

fn send(stream: &UnixStream, descriptor: RawFd) -> Result<(), Errno> {
    // SAFETY: the message and what it points to live through the call.
    let (sent, _) =
        with_message(descriptor, |message| unsafe { libc::sendmsg(stream.as_raw_fd(), message, 0) });
    Errno::result(sent).map(drop)
}

fn receive(stream: &UnixStream) -> Result<OwnedFd, Errno> {
    // SAFETY: as above.
    let (received, descriptor) =
        with_message(-1, |message| unsafe { libc::recvmsg(stream.as_raw_fd(), message, 0) });
    Errno::result(received)?;
    if descriptor < 0 {
        return Err(Errno::ENODATA);
    }
    // SAFETY: the kernel has just given this process the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
