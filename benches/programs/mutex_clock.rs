//! A library to be preloaded: records how long a program keeps the mutex of a lock file, from the return
//! of the call that took it to the call that gives it back, in nanoseconds, to the file that `MUTEX_CLOCK`
//! names.
#![allow(unsafe_code, reason = "it stands in for a function of the C library")]

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;

use nix::libc::{self, c_int, c_long};

static TAKEN: Mutex<Option<Instant>> = Mutex::new(None);

/// fcntl(2), watched.
///
/// # Safety
///
/// As the C library's: the third argument is what the command says that it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: *mut libc::flock) -> c_int {
    let is_lock = matches!(command, libc::F_SETLK | libc::F_SETLKW);
    // SAFETY: for these commands it is a lock.
    let kind = is_lock.then(|| unsafe { &*argument }).filter(|lock| (lock.l_start, lock.l_len) == (0, 8));
    let kind = kind.map(|lock| c_int::from(lock.l_type));
    let taken =
        if kind == Some(libc::F_UNLCK) { TAKEN.lock().ok().and_then(|mut taken| taken.take()) } else { None };
    let kept = taken.map(|taken| taken.elapsed());
    // SAFETY: the arguments are the caller's.
    let answer =
        unsafe { libc::syscall(libc::SYS_fcntl, c_long::from(descriptor), c_long::from(command), argument) };
    if let (Some(kept), Some(path)) = (kept, std::env::var_os("MUTEX_CLOCK"))
        && let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path)
    {
        let _ = writeln!(file, "{}", kept.as_nanos());
    }
    if answer == 0
        && kind == Some(libc::F_WRLCK)
        && let Ok(mut taken) = TAKEN.lock()
    {
        *taken = Some(Instant::now());
    }
    c_int::try_from(answer).unwrap_or(-1)
}
