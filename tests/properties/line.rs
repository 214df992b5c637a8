//! "Blocked … when an older live ticket stands there whose limit is not lower": whoever comes finds the youngest of those, as a
//! look at every ticket would.

use std::{
    fs::{File, OpenOptions},
    os::fd::AsFd,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use proptest::{collection::vec, prelude::*};
use rungate::repository::{
    file::LockFile,
    line::{Number, nearest_older, waiters},
};
use tempfile::NamedTempFile;

use crate::support::lock_range;

/// Where the tickets of waiters with each limit begin.
const TICKETS: u64 = 1 << 43;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_youngest_of_the_older_is_found(tickets in vec((1..6_u64, 0..3000_u64), 0..60), limit in 1..7_u64) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let lock = |(limit, number): &(u64, u64)| -> File {
            let file = OpenOptions::new().read(true).open(&path).expect("the file");
            let range = lock_range(libc::F_RDLCK, (TICKETS * limit + number).cast_signed(), 1);
            fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&range)).expect("read locks do not conflict");
            file
        };
        let _locks: Vec<File> = tickets.iter().map(lock).collect();
        let file = LockFile::open_to_read(&path).expect("the file").expect("the file is there");
        let found = nearest_older(&file, limit, Number::now()).expect("the kernel answers");
        let all = waiters(&file).expect("the kernel answers");
        let expected = all.iter().filter(|waiter| waiter.limit >= limit).map(|waiter| waiter.number).max();
        prop_assert_eq!(found.map(|waiter| waiter.number), expected);
        let youngest = tickets.iter().filter(|(other, _)| *other >= limit).map(|(_, number)| *number).max();
        prop_assert_eq!(youngest.is_some(), expected.is_some());
    }
}
