//! One line on a terminal that is written over and over, for something that takes long. Where nobody looks it
//! is written once, when it begins.

use std::io::{self, IsTerminal, Write};

use crate::{
    output::{columns::cut, stream::is_safe},
    sys::terminal,
};

/// The line, wiped away when dropped.
pub(crate) struct LivingLine {
    is_terminal: bool,
    is_written: bool,
}

impl Default for LivingLine {
    fn default() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), is_written: false }
    }
}

/// Back to the start of the line, and everything on it away.
const WIPE: &str = "\r\x1b[K";

impl LivingLine {
    /// Whether somebody sees what is shown after the first time.
    pub(crate) fn is_living(&self) -> bool {
        self.is_terminal
    }

    /// Shows a text without newline; it is cut where the terminal ends, because a line that wraps cannot be
    /// written over.
    pub(crate) fn show(&mut self, text: &str) {
        debug_assert!(is_safe(text), "not escaped where it was made: {text:?}");
        let mut stderr = io::stderr().lock();
        let _ = if self.is_terminal {
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
    /// Wipes the line away, so that something else can be written there.
    pub(crate) fn wipe(&mut self) {
        if self.is_terminal && self.is_written {
            let _ = io::stderr().lock().write_all(WIPE.as_bytes());
        }
    }
}

impl Drop for LivingLine {
    fn drop(&mut self) {
        self.wipe();
    }
}
