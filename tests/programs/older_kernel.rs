//! A host as it was before Linux 6.5, and who could have made something of that.
//!
//! ```text
//! older_kernel start COMMAND [ARGUMENT…]   the command, under a kernel that does not know SO_PEERPIDFD
//! older_kernel inherit SOCKET FRAME UID    a process of this user connects, writes the frame (in hexadecimal) and ends; root's
//!                                          cat gets its number. After a line on standard input another process of
//!                                          the user's goes on with the socket, and prints what it is told
//! ```
//!
//! Both are for root, and `inherit` for the initial PID namespace.

#![allow(unsafe_code)]

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::libc;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, UCred, connect, sendmsg, socket_with,
};
use rustix::process::{Pid, getegid, geteuid, getpid};

const SO_PEERPIDFD: u32 = 77;

/// How a message begins: how many bytes follow, and the version.
const HEAD: usize = 5;
const CHALLENGE: u8 = 11;
const RESPONSE: u8 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["start", program, arguments @ ..] => {
            forget_the_option()?;
            Err(Command::new(program).args(arguments).exec().into())
        }
        ["inherit", socket, frame, uid] => inherit(socket, &bytes_of(frame)?, uid.parse()?),
        _ => Err("usage: older_kernel (start COMMAND… | inherit SOCKET FRAME UID)".into()),
    }
}

/// From now on the kernel answers a question for the option as one that has never heard of it.
fn forget_the_option() -> io::Result<()> {
    let instruction = |code: u32, k: u32, yes: u8, no: u8| libc::sock_filter {
        code: u16::try_from(code).expect("codes are small"),
        jt: yes,
        jf: no,
        k,
    };
    let number = u32::try_from(libc::SYS_getsockopt).expect("calls have small numbers");
    // The number of the call stands first; the arguments begin at 16, least byte first, and this is the third.
    let third = if cfg!(target_endian = "little") { 32 } else { 36 };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let (equals, done) = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::BPF_RET | libc::BPF_K);
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOPROTOOPT.cast_unsigned();
    let mut filter = [
        instruction(load, 0, 0, 0),
        instruction(equals, number, 0, 3),
        instruction(load, third, 0, 0),
        instruction(equals, SO_PEERPIDFD, 0, 1),
        instruction(done, unknown, 0, 0),
        instruction(done, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: 6, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its instructions live through the call.
    match unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn inherit(path: &str, frame: &[u8], uid: u32) -> Result<(), Box<dyn Error>> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: this program has one thread, so that the child may do whatever the parent may.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let has_asked = ask(&socket, path, frame, uid).is_ok();
        // SAFETY: ending is always allowed.
        unsafe { libc::_exit(i32::from(!has_asked)) };
    }
    let mut status = 0;
    // SAFETY: the status is ours to write to.
    if unsafe { libc::waitpid(child, &raw mut status, 0) } != child || status != 0 {
        return Err("the child could not ask".into());
    }
    let mut heir = heir_of(child)?;
    become_user(uid)?;
    writeln!(io::stdout(), "{child}")?;
    io::stdin().lock().read_line(&mut String::new())?;
    let mut stream = UnixStream::from(socket);
    let mut told = frame_of(&mut stream)?;
    if told[HEAD] == CHALLENGE {
        told[HEAD] = RESPONSE;
        let number = Pid::from_raw(child).ok_or("no number")?;
        // The kernel does not let it speak for the heir, so it speaks for itself.
        if respond(&stream, &told, number).is_ok() {
            return Err("it can speak for somebody else".into());
        }
        respond(&stream, &told, getpid())?;
        told = frame_of(&mut stream)?;
    }
    let text: String =
        told.iter().filter(|byte| (32..127).contains(*byte)).copied().map(char::from).collect();
    writeln!(io::stdout(), "{text}")?;
    io::stdin().lock().read_line(&mut String::new())?;
    drop(heir.stdin.take());
    heir.wait()?;
    Ok(())
}

/// The next message.
fn frame_of(stream: &mut UnixStream) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut frame = vec![0; HEAD - 1];
    stream.read_exact(&mut frame)?;
    let length = usize::try_from(u32::from_le_bytes(frame.as_slice().try_into()?))?;
    frame.resize(frame.len() + length, 0);
    stream.read_exact(&mut frame[HEAD - 1..])?;
    Ok(frame)
}

fn ask(socket: &OwnedFd, path: &str, frame: &[u8], uid: u32) -> Result<(), Box<dyn Error>> {
    become_user(uid)?;
    connect(socket, &SocketAddrUnix::new(path)?)?;
    UnixStream::from(socket.try_clone()?).write_all(frame)?;
    Ok(())
}

fn become_user(uid: u32) -> nix::Result<()> {
    setgroups(&[])?;
    setgid(Gid::from_raw(uid))?;
    setuid(Uid::from_raw(uid))
}

/// Starts processes until one gets this number. Others may take it for a moment.
fn heir_of(number: i32) -> Result<Child, Box<dyn Error>> {
    for _ in 0..1000 {
        fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string())?;
        let mut heir = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        if i32::try_from(heir.id())? == number {
            return Ok(heir);
        }
        heir.kill()?;
        heir.wait()?;
    }
    Err("somebody else took the number".into())
}

fn respond(stream: &UnixStream, frame: &[u8], pid: Pid) -> Result<usize, Box<dyn Error>> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    beside.push(SendAncillaryMessage::ScmCredentials(UCred { pid, uid: geteuid(), gid: getegid() }));
    Ok(sendmsg(stream, &[IoSlice::new(frame)], &mut beside, SendFlags::NOSIGNAL)?)
}

fn bytes_of(hexadecimal: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    let pairs = hexadecimal.as_bytes().chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned());
    pairs.map(|pair| u8::from_str_radix(&pair, 16)).collect()
}
