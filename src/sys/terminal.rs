//! The size of the terminals behind standard output and standard error, and a message on the terminal of
//! another user.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    ops::RangeInclusive,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, open, statx},
    process::getpgrp,
    termios::{Winsize, isatty, tcgetpgrp, tcgetwinsize},
};

use crate::sys::process;

/// Terminals, by the numbers of their devices: those of the console and of lines, and pseudoterminals.
const DEVICES: [RangeInclusive<u32>; 2] = [4..=4, 136..=143];

/// Writes a line to the terminal behind standard error, output or input of a process, if one of them is its
/// user's terminal. Another file there is not even opened.
pub(crate) fn tell(pid: i32, line: &str) -> bool {
    let Some(user) = process::owner(pid) else { return false };
    [2, 1, 0].iter().any(|number| write_to(&format!("/proc/{pid}/fd/{number}"), user, line).is_ok())
}

fn write_to(path: &str, user: u32, line: &str) -> io::Result<()> {
    // It may be a file on a server that does not answer, so only the kernel's memory is asked.
    let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(&place, "", flags, StatxFlags::BASIC_STATS)?;
    let is_device = DEVICES.iter().any(|device| device.contains(&status.stx_rdev_major));
    let kind = FileType::from_raw_mode(status.stx_mode.into());
    if !is_device || kind != FileType::CharacterDevice || status.stx_uid != user {
        return Err(io::ErrorKind::NotFound.into());
    }
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let mut terminal = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    if !isatty(&terminal) {
        return Err(io::ErrorKind::NotFound.into());
    }
    // The program may have it in raw mode.
    terminal.write_all(format!("\r\n{line}\r\n").as_bytes())
}

/// Whether standard output is a terminal.
pub(crate) fn is_output() -> bool {
    isatty(io::stdout())
}

/// Whether standard error is a terminal.
pub(crate) fn is_error() -> bool {
    isatty(io::stderr())
}

/// Whether standard error is a terminal at which this process does not write over what its user types: one of
/// whose foreground it is, or which is not its own.
pub(crate) fn is_error_in_front() -> bool {
    is_error() && tcgetpgrp(io::stderr()).map_or(true, |group| group == getpgrp())
}

/// The columns of the terminal behind standard error; 80 if unknown.
pub(crate) fn width() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col >= 20 => usize::from(size.ws_col),
        _ => 80,
    }
}

/// The columns of the terminal behind standard output; none if there is none, or unknown.
pub(crate) fn columns() -> Option<u16> {
    tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col).filter(|columns| *columns >= 20)
}

/// The same for standard error.
pub(crate) fn error_columns() -> Option<u16> {
    tcgetwinsize(io::stderr()).ok().map(|size| size.ws_col).filter(|columns| *columns >= 20)
}

/// The columns and rows of the terminal behind standard output; 80 and 24 if unknown.
pub(crate) fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(Winsize { ws_col: columns @ 1.., ws_row: rows @ 1.., .. }) => (columns, rows),
        _ => (80, 24),
    }
}
