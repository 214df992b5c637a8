//! A terminal that hands over every key as it is pressed and shows none by itself. How it was before is remembered outside
//! the guard, because a program that panics may end without dropping anything.

use std::{io, sync::Mutex};

use nix::errno::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// How the terminal was before, while it is raw.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Makes the terminal of standard input raw, or makes it so again after this process was stopped.
pub fn begin() -> Result<(), Errno> {
    let failed = |errno: rustix::io::Errno| Errno::from_raw(errno.raw_os_error());
    let mut modes = tcgetattr(io::stdin()).map_err(failed)?;
    if let Ok(mut before) = BEFORE.lock() {
        before.get_or_insert_with(|| modes.clone());
    }
    modes.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Drain, &modes).map_err(failed)
}

/// Makes the terminal what it was before. Says whether it was raw.
pub fn end() -> bool {
    let before = BEFORE.try_lock().ok().and_then(|mut before| before.take());
    // Who has no terminal any more needs none.
    before.map(|modes| tcsetattr(io::stdin(), OptionalActions::Drain, &modes)).is_some()
}
