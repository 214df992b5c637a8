//! The one way to standard output and standard error. A reader that closed the pipe has read enough, which is
//! no error. A message goes to standard error in one write, so that messages of simultaneous refusals do not
//! mix. A launch with a deadline does not wait for a reader of standard error.

use std::{
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{
    error::{Error, ExitStatus},
    escape::is_unsafe,
    style::{self, cut, fitted},
};
use crate::sys::{Alarm, errno_of, terminal};

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

/// Whether this process has a deadline.
static HAS_DEADLINE: AtomicBool = AtomicBool::new(false);

/// How long a process with a deadline waits for the reader of its standard error.
const PATIENCE: Duration = Duration::from_millis(100);

/// From now on, this process has a deadline. A terminal whose output is stopped (Ctrl-S), or whose connection
/// is dead, takes nothing; nor does a full pipe. What they do not take now is not shown.
pub(crate) fn keep_deadline() {
    HAS_DEADLINE.store(true, Ordering::Relaxed);
}

/// Writes to standard error. A failure cannot be reported. Whether there is room is not asked before, because
/// it can be gone when the write begins.
fn write_error(mut bytes: &[u8]) {
    let begun = Instant::now();
    let alarm = HAS_DEADLINE.load(Ordering::Relaxed).then(|| Alarm::every(PATIENCE)).and_then(Result::ok);
    let mut stderr = io::stderr().lock();
    while !bytes.is_empty() {
        match stderr.write(bytes) {
            Ok(count) if count > 0 => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                if alarm.is_some() && begun.elapsed() >= PATIENCE {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// Writes a message, and its newline, to standard error; on a terminal, long lines are broken between words.
pub(crate) fn complain(message: &str) {
    debug_assert!(is_safe(message), "not escaped where it was made: {message:?}");
    let message = format!("{}\n", fitted(message));
    write_error(style::rendered(&message).as_bytes());
}

/// Rings the bell of a terminal at standard error, and makes this its title.
pub(crate) fn ring(title: &str) {
    debug_assert!(is_safe(title), "not escaped where it was made: {title:?}");
    if io::stderr().is_terminal() {
        write_error(format!("\x07\x1b]2;{title}\x07").as_bytes());
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
        if is_visible {
            let shown = cut(text, terminal::width().saturating_sub(1));
            write_error(format!("{WIPE}{shown}").as_bytes());
        } else if !self.is_written {
            write_error(format!("{text}\n").as_bytes());
        }
        self.is_written = true;
    }
}

impl LivingLine {
    /// Erases the line, so that something else can be written there.
    pub(crate) fn wipe(&mut self) {
        if self.is_written && self.is_living() {
            write_error(WIPE.as_bytes());
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
