//! Which processes have a lock on a file, as the kernel shows it with their descriptors. It names no holder
//! for a lock of an open file description, but shows it with every descriptor of that description; and it
//! shows a lock of a process only where it belongs to the process's own table. What belongs to other users
//! can be seen by root alone.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
};

use nix::errno::Errno;

use crate::sys::{
    failure::errno_of,
    file_id::FileId,
    kernel_locks,
    record_lock::{Bytes, Ownership},
};

/// Every lock of a description of `file` that can be seen from here, with a process that has a descriptor of
/// it.
pub fn locks_of_descriptions(file: FileId) -> Vec<(i32, Bytes)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<(i32, Bytes)> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .flat_map(|pid: i32| {
            locks_shown_by(pid, file).unwrap_or_default().into_iter().map(move |lock| (pid, lock))
        })
        .filter_map(|(pid, (ownership, bytes))| (ownership == Ownership::Description).then_some((pid, bytes)))
        .collect();
    found.sort_unstable_by_key(|(pid, bytes)| (*bytes.start(), *pid));
    found
}

/// All locks on `file` that the kernel shows with the descriptors of a process. Which file a descriptor leads
/// to is asked of `stat`, because the line of a lock may give other numbers; no descriptor is opened, for
/// closing it would drop locks of this very process.
pub fn locks_shown_by(pid: i32, file: FileId) -> Result<Vec<(Ownership, Bytes)>, Errno> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| errno_of(&error))?;
    Ok(descriptors
        .filter_map(Result::ok)
        .filter(|descriptor| {
            fs::metadata(descriptor.path())
                .is_ok_and(|found| FileId { device: found.dev(), inode: found.ino() } == file)
        })
        .filter_map(|descriptor| {
            whole_lines(&Path::new(&format!("/proc/{pid}/fdinfo")).join(descriptor.file_name()))
        })
        .flat_map(|info| kernel_locks::locks_of_descriptor(&info))
        .collect())
}

/// Nobody's locks fill more, unless they want to keep whoever reads them busy.
const MOST_TEXT: u64 = 1 << 20;

/// The lines of a file, as far as they fit; half a line would be another lock.
fn whole_lines(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MOST_TEXT).read_to_string(&mut text).ok()?;
    text.truncate(text.rfind('\n').unwrap_or(0));
    Some(text)
}
