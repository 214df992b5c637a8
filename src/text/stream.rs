//! The one way to standard output and standard error. A reader that closed the pipe has read enough, which is
//! no error. A message goes to standard error in one write, so that messages of simultaneous refusals do not
//! mix.

use std::io::{self, IsTerminal, Write};

use super::{
    error::{Error, ExitStatus},
    escape::is_unsafe,
    style::{self, cut, fitted},
};
use crate::sys::{errno_of, terminal};

/// Writes the requested output to standard output, and reports a failure.
pub(crate) fn write_out(text: &str) -> io::Result<()> {
    debug_assert!(is_safe(text), "not escaped where it was made: {text:?}");
    pass_on(style::rendered(text).as_bytes())
}

/// The same for any bytes, which only programs read.
pub(crate) fn pass_on(bytes: &[u8]) -> io::Result<()> {
    while_read(write(bytes)).map(|_is_read| ())
}

/// Writes a part of an endless output. Returns whether the reader is still there.
pub(crate) fn print_part(text: &str) -> io::Result<bool> {
    debug_assert!(is_safe(text), "not escaped where it was made: {text:?}");
    while_read(write(text.as_bytes()))
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Whether the reader is still there.
fn while_read(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes a message, and its newline, to standard error; on a terminal, long lines are broken between words.
/// A failure cannot be reported.
pub(crate) fn complain(message: &str) {
    debug_assert!(is_safe(message), "not escaped where it was made: {message:?}");
    let message = format!("{}\n", fitted(message));
    let _ = io::stderr().lock().write_all(style::rendered(&message).as_bytes());
}

/// Rings the bell of a terminal at standard error, and makes this its title.
pub(crate) fn ring(title: &str) {
    debug_assert!(is_safe(title), "not escaped where it was made: {title:?}");
    if io::stderr().is_terminal() {
        let _ = io::stderr().lock().write_all(format!("\x07\x1b]2;{title}\x07").as_bytes());
    }
}

/// Text is escaped where it is composed. Test builds verify that here.
pub(super) fn is_safe(text: &str) -> bool {
    style::without(text).chars().all(|character| character == '\n' || !is_unsafe(character))
}

// One line on a terminal that is updated repeatedly, for a long task. Without a terminal, and in the
// background of one, it is written once, when it begins.

/// The line, erased when dropped.
pub(crate) struct LivingLine {
    is_living: bool,
    is_written: bool,
}

impl Default for LivingLine {
    fn default() -> Self {
        Self { is_living: terminal::is_error_in_front(), is_written: false }
    }
}

/// Moves to the start of the line, and erases it.
const WIPE: &str = "\r\x1b[K";

impl LivingLine {
    /// Whether what is shown after the first time is visible. A process can be put into the background.
    pub(crate) fn is_living(&self) -> bool {
        self.is_living && terminal::is_error_in_front()
    }

    /// Shows a text without newline, cut at the width of the terminal, because a wrapped line cannot be
    /// overwritten.
    pub(crate) fn show(&mut self, text: &str) {
        debug_assert!(is_safe(text), "not escaped where it was made: {text:?}");
        let is_visible = self.is_living();
        let mut stderr = io::stderr().lock();
        let _ = if is_visible {
            let shown = cut(text, terminal::width().saturating_sub(1));
            stderr.write_all(format!("{WIPE}{shown}").as_bytes())
        } else if self.is_written {
            Ok(())
        } else {
            stderr.write_all(format!("{text}\n").as_bytes())
        };
        self.is_written = true;
    }
}

impl LivingLine {
    /// Erases the line, so that something else can be written there.
    pub(crate) fn wipe(&mut self) {
        if self.is_written && self.is_living() {
            let _ = io::stderr().lock().write_all(WIPE.as_bytes());
        }
    }
}

impl Drop for LivingLine {
    fn drop(&mut self) {
        self.wipe();
    }
}

// Answers on standard output: the result of a subcommand, and its status.

/// Prints the requested output; the status is success if it was written.
pub(crate) fn print(text: &str) -> Result<u8, Error> {
    printed(write_out(text))
}

/// Prints what its reader must get: it is lost if the reader closed the pipe, and that is a failure.
pub(crate) fn hand_over(text: &str) -> Result<u8, Error> {
    debug_assert!(is_safe(text), "not escaped where it was made: {text:?}");
    printed(write(style::rendered(text).as_bytes()))
}

/// The status after printing.
pub(crate) fn printed(written: io::Result<()>) -> Result<u8, Error> {
    match written {
        Ok(()) => Ok(ExitStatus::Success as u8),
        Err(error) => Err(Error::new(
            ExitStatus::System,
            format!("standard output cannot be written: {}", errno_of(&error).desc()),
        )),
    }
}
