//! Which processes have a lock of an open file description: the kernel names no holder for such a lock, but shows it with
//! every descriptor of that description. What belongs to other users can be seen by root alone.

use std::{fs, os::unix::fs::MetadataExt};

use crate::sys::{descriptor::FileId, kernel_locks, proc_file};

/// Whether a process has a descriptor of `file` whose description has a lock on `byte`.
pub fn has_lock(pid: i32, file: FileId, byte: u64) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.filter_map(Result::ok).any(|descriptor| {
        let leads_there = fs::metadata(descriptor.path())
            .is_ok_and(|metadata| FileId { device: metadata.dev(), inode: metadata.ino() } == file);
        leads_there
            && proc_file::read(format!("/proc/{pid}/fdinfo/{}", descriptor.file_name().to_string_lossy()))
                .is_some_and(|info| kernel_locks::shows_lock_of_description(&info, byte))
    })
}

/// Every process in sight that has such a descriptor.
pub fn processes_with_lock(file: FileId, byte: u64) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<i32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| has_lock(*pid, file, byte))
        .collect();
    found.sort_unstable();
    found
}
