//! Which processes have a lock of an open file description: the kernel names no holder for such a lock, but shows it with
//! every descriptor of that description. What belongs to other users can be seen by root alone.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{fs, os::unix::fs::MetadataExt};

use crate::sys::{descriptor::FileId, kernel_locks, proc_file, record_lock::Bytes};

/// Whether a process has a descriptor of `file` whose description has a lock on `byte`.
pub fn has_lock(pid: i32, file: FileId, byte: u64) -> bool {
    locks_of(pid, file).iter().any(|bytes| bytes.contains(&byte))
}

/// Every lock of a description of `file` that can be seen from here, with a process that has a descriptor of it.
pub fn locks_of_descriptions(file: FileId) -> Vec<(i32, Bytes)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<(i32, Bytes)> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .flat_map(|pid: i32| locks_of(pid, file).into_iter().map(move |bytes| (pid, bytes)))
        .collect();
    found.sort_unstable_by_key(|(pid, bytes)| (*bytes.start(), *pid));
    found
}

fn locks_of(pid: i32, file: FileId) -> Vec<Bytes> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    descriptors
        .filter_map(Result::ok)
        .filter(|descriptor| {
            fs::metadata(descriptor.path())
                .is_ok_and(|found| FileId { device: found.dev(), inode: found.ino() } == file)
        })
        .filter_map(|descriptor| {
            proc_file::read(format!("/proc/{pid}/fdinfo/{}", descriptor.file_name().to_string_lossy()))
        })
        .flat_map(|info| kernel_locks::locks_of_description(&info))
        .collect()
}
