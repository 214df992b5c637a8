//! How large the terminals behind standard output and standard error are.

use std::io;

use rustix::termios::{Winsize, tcgetwinsize};

/// How many columns the one behind standard error has; 80 where it does not say.
pub fn width() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col >= 20 => usize::from(size.ws_col),
        _ => 80,
    }
}

/// How many columns and rows the one behind standard output has; 80 and 24 where it does not say.
pub fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(Winsize { ws_col: columns @ 1.., ws_row: rows @ 1.., .. }) => {
            (usize::from(columns), usize::from(rows))
        }
        _ => (80, 24),
    }
}
