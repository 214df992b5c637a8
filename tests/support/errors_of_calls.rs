//! The errors that the system calls of rungate can give. It is compiled into the tests and into the saboteur.

use nix::libc::{self, c_int};

const ERRORS: &[(&str, c_int)] = &[
    ("EACCES", libc::EACCES),
    ("EAGAIN", libc::EAGAIN),
    ("EDQUOT", libc::EDQUOT),
    ("EINTR", libc::EINTR),
    ("EIO", libc::EIO),
    ("EMFILE", libc::EMFILE),
    ("ENOLCK", libc::ENOLCK),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSPC", libc::ENOSPC),
    ("ESTALE", libc::ESTALE),
];

/// The number of an error.
pub(crate) fn error_named(name: &str) -> Option<i64> {
    ERRORS.iter().find(|(known, _)| *known == name).map(|(_, number)| i64::from(*number))
}

/// The errors that a call can give, on one file system or another.
pub(crate) fn errors_of(call: &str, about: &str) -> &'static [&'static str] {
    match call {
        // What was never written cannot be lost when it is closed.
        "close" if about.starts_with("/proc/") => &["EINTR"],
        "read" if about.starts_with("pipe:") => &["EINTR"],
        "open" | "openat" => &["EACCES", "EDQUOT", "EINTR", "EIO", "EMFILE", "ENOMEM", "ENOSPC", "ESTALE"],
        "read" | "pread64" => &["EAGAIN", "EINTR", "EIO", "ENOMEM", "ESTALE"],
        "write" | "pwrite64" | "writev" => {
            &["EAGAIN", "EDQUOT", "EINTR", "EIO", "ENOMEM", "ENOSPC", "ESTALE"]
        }
        "fcntl(F_SETLK)" | "fcntl(F_OFD_SETLK)" => {
            &["EACCES", "EAGAIN", "EINTR", "EIO", "ENOLCK", "ENOMEM", "ESTALE"]
        }
        "fcntl(F_SETLKW)" | "fcntl(F_GETLK)" | "fcntl(F_OFD_GETLK)" => {
            &["EINTR", "EIO", "ENOLCK", "ENOMEM", "ESTALE"]
        }
        "fcntl(F_DUPFD)" | "fcntl(F_DUPFD_CLOEXEC)" | "dup" => &["EMFILE"],
        "fstat" | "newfstatat" | "stat" | "lstat" | "statx" | "access" | "faccessat" | "faccessat2"
        | "readlink" | "readlinkat" => &["EACCES", "EIO", "ENOMEM", "ESTALE"],
        "fstatfs" | "statfs" => &["EINTR", "EIO", "ENOMEM"],
        "getcwd" => &["EACCES", "ENOMEM"],
        "getdents64" => &["EIO", "ESTALE"],
        "ftruncate" => &["EDQUOT", "EINTR", "EIO", "ENOSPC", "ESTALE"],
        "mkdir" | "mkdirat" => &["EACCES", "EDQUOT", "EIO", "ENOMEM", "ENOSPC", "ESTALE"],
        "close" => &["EDQUOT", "EINTR", "EIO", "ENOSPC"],
        "brk" => &["ENOMEM"],
        "mmap" | "mremap" | "munmap" | "mprotect" | "clone" | "clone3" | "timer_create" => {
            &["EAGAIN", "ENOMEM"]
        }
        "execve" => &["EACCES", "EAGAIN", "EIO", "EMFILE", "ENOMEM", "ESTALE"],
        "pipe2" | "pidfd_open" => &["EMFILE", "ENOMEM"],
        "socket" => &["EACCES", "EMFILE", "ENOMEM"],
        "connect" | "sendto" | "sendmsg" | "recvmsg" => &["EACCES", "EAGAIN", "EINTR", "ENOMEM"],
        "poll" | "ppoll" => &["EINTR", "ENOMEM"],
        // EAGAIN is for those who wait for a signal with a timeout.
        "clock_nanosleep" | "nanosleep" | "futex" | "rt_sigtimedwait" => &["EINTR"],
        "ioctl" => &["EIO"],
        // The rest cannot fail with arguments that are right, or only for want of rights that nobody needs
        // here.
        _ => &[],
    }
}
