//! A file with one JSON object on each line. A line is appended by one write, so that those of launches that happen at the
//! same moment do not run into each other.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::log::event::Event;

/// What `O_NOFOLLOW` and `O_NONBLOCK` guard against: somebody put a link or a FIFO where the log should be.
const GUARDS: i32 = crate::sys::regular_file::LOG_GUARDS;

pub(super) fn append(path: &Path, event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut file =
        OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(GUARDS).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("the log is no regular file"));
    }
    file.write_all(&line)
}
