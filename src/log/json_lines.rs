//! A file with one JSON object on each line. Each line is appended by a single write, so that simultaneous
//! launches do not mix their lines.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::{
    log::event::Event,
    output::json::{self, Numbered},
};

/// Against a link or a FIFO that somebody put where the log should be: `O_NOFOLLOW` and `O_NONBLOCK`.
const GUARDS: i32 = crate::sys::regular_file::LOG_GUARDS;

pub(super) fn append(path: &Path, event: &Event) -> io::Result<()> {
    let line = json::line(&Numbered::of(event))? + "\n";
    let mut file =
        OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(GUARDS).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("the log is no regular file"));
    }
    file.write_all(line.as_bytes())
}
