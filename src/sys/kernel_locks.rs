//! `/proc/locks`: every lock of the host that this process may see, in one read. It costs milliseconds and holds up other
//! lockers while it is made, so it pays only where queries would cost more; and it leaves out what belongs to other PID
//! namespaces, so what it shows is evidence and what it does not show is none.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::fs;

use nix::sys::stat::{major, minor};

use crate::sys::{
    descriptor::FileId,
    process,
    record_lock::{Bytes, Conflict, LAST_BYTE},
};

/// The locks on `file`, whose bytes `known` this process has locked (POSIX). The line of that lock proves which numbers the
/// listing gives to the file: a file system may show other ones here than `fstat` does. Without that proof, none.
pub fn locks_on(file: FileId, known: &Bytes) -> Option<Vec<Conflict>> {
    let listing = fs::read_to_string("/proc/locks").ok()?;
    let name = format!("{:02x}:{:02x}:{}", major(file.device), minor(file.device), file.inode);
    locks_beside(&listing, process::own_pid(), &name, known)
}

fn locks_beside(listing: &str, me: i32, name: &str, known: &Bytes) -> Option<Vec<Conflict>> {
    let lines = || listing.lines().filter_map(Line::parse);
    let mine: Vec<&str> = lines()
        .filter(|line| line.kind == "POSIX" && line.pid == me && line.bytes == *known)
        .map(|line| line.file)
        .collect();
    let file = match mine.as_slice() {
        [only] => *only,
        several => several.iter().copied().find(|file| *file == name)?,
    };
    Some(
        lines()
            .filter(|line| line.file == file && line.kind != "FLOCK")
            .map(|line| Conflict { bytes: line.bytes, pid: (line.pid > 0).then_some(line.pid) })
            .collect(),
    )
}

/// The locks of a description, from the entry of one of its descriptors in `/proc/PID/fdinfo`.
pub(super) fn locks_of_description(info: &str) -> Vec<Bytes> {
    info.lines()
        .filter_map(|line| line.strip_prefix("lock:").and_then(Line::parse))
        .filter(|line| line.kind == "OFDLCK")
        .map(|line| line.bytes)
        .collect()
}

/// A line such as `7: POSIX  ADVISORY  WRITE 812 fe:00:1234 8 8`; that of a waiter has `->` in front of the kind.
struct Line<'a> {
    kind: &'a str,
    pid: i32,
    file: &'a str,
    bytes: Bytes,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let kind = fields.next().filter(|kind| *kind != "->")?;
        let pid = fields.nth(2)?.parse().ok()?;
        let file = fields.next()?;
        let first = fields.next()?.parse().ok()?;
        let last = match fields.next()? {
            "EOF" => LAST_BYTE,
            number => number.parse().ok()?,
        };
        Some(Self { kind, pid, file, bytes: first..=last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\
1: POSIX  ADVISORY  WRITE 40 fe:00:77 0 7
1: -> POSIX  ADVISORY  WRITE 41 fe:00:77 0 7
2: POSIX  ADVISORY  WRITE 42 fe:00:77 8 9
3: OFDLCK ADVISORY  READ -1 fe:00:77 10 EOF
4: FLOCK  ADVISORY  WRITE 43 fe:00:77 0 EOF
5: POSIX  ADVISORY  WRITE 44 fe:00:78 8 8
";

    #[track_caller]
    fn found(listing: &str, me: i32, name: &str) -> Option<Vec<(u64, u64, Option<i32>)>> {
        let conflicts = locks_beside(listing, me, name, &(0..=7))?;
        Some(conflicts.into_iter().map(|c| (*c.bytes.start(), *c.bytes.end(), c.pid)).collect())
    }

    #[test]
    fn only_locks_of_the_same_file_count() {
        let expected = vec![(0, 7, Some(40)), (8, 9, Some(42)), (10, LAST_BYTE, None)];
        assert_eq!(found(LISTING, 40, "other numbers"), Some(expected));
    }

    #[test]
    fn with_several_files_locked_the_numbers_decide() {
        let listing = format!("{LISTING}6: POSIX  ADVISORY  WRITE 40 fe:00:78 0 7\n");
        let expected = vec![(8, 8, Some(44)), (0, 7, Some(40))];
        assert_eq!(found(&listing, 40, "fe:00:78"), Some(expected));
        assert_eq!(found(&listing, 40, "other numbers"), None);
    }

    #[test]
    fn the_lock_of_a_description_is_seen_with_its_descriptor() {
        let info = "pos:\t0\nflags:\t02100000\nlock:\t1: OFDLCK ADVISORY  READ -1 fe:00:77 10 12\n";
        assert_eq!(locks_of_description(info), [10..=12]);
        assert_eq!(locks_of_description(&info.replace("OFDLCK", "POSIX")), []);
    }

    #[test]
    fn a_listing_without_the_known_lock_proves_nothing() {
        assert_eq!(found(LISTING, 41, "fe:00:77"), None);
    }
}
