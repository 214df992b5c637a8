//! The terminal behind standard error.

use std::io;

/// How many columns it has; 80 where it does not say.
pub fn width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col >= 20 => usize::from(size.ws_col),
        _ => 80,
    }
}
