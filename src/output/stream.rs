//! The one way out. A reader that closed the pipe has read enough: that is no error. Standard error is written in one piece,
//! so that the messages of launches that are refused at the same moment do not run into each other.

use std::io::{self, IsTerminal, Write};

/// Writes what was asked for to standard output, and sees to it that it got there.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a message, and its newline, to standard error. There is nobody to tell when that fails.
pub fn complain(message: &str) {
    let _ = io::stderr().lock().write_all(format!("{message}\n").as_bytes());
}

/// Whether somebody is looking at standard error.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
