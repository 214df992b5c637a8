//! Blocked … when an older launch stands there: whoever comes finds the youngest and the oldest of those,
//! and the highest of all places, as a look at every lock would.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    os::fd::AsFd,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use proptest::{collection::btree_set, prelude::*};
use rungate::keeper::{
    file::{
        file::LockFile,
        line::{highest_place, oldest, waiters, youngest},
        lock_path::LockPath,
    },
    line::Number,
};
use tempfile::NamedTempFile;

use crate::support::lock_range;

/// Where those who wait in the queue have their locks, and where they have their places.
const STANDING: u64 = 1 << 61;
const PLACES: u64 = 1 << 62;

proptest! {
    #![proptest_config(super::cases(500))]

    #[test]
    fn the_ends_of_the_line_are_found(
        standing in btree_set((1..3000_u64, 0..3_u64, 0..6_u64), 0..60),
        places in btree_set(1..5000_u64, 0..60),
        from in 1..3500_u64,
        before in 1..3500_u64,
    ) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let lock = |byte: u64| -> File {
            let file = OpenOptions::new().read(true).open(&path).expect("the file");
            let range = lock_range(libc::F_RDLCK, byte.cast_signed(), 1);
            fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&range)).expect("read locks do not conflict");
            file
        };
        let bytes = standing.iter().map(|(number, policy, limit)| STANDING + (number << 32) + (policy << 20) + limit);
        let _locks: Vec<File> = bytes.chain(places.iter().map(|number| PLACES + (number << 20))).map(lock).collect();
        let file = LockFile::open_to_read(&LockPath::named(&path)).expect("the file").expect("the file is there");
        let numbers: BTreeSet<u64> = standing.iter().map(|(number, ..)| *number).collect();
        let all = waiters(&file).expect("the kernel answers");
        prop_assert_eq!(all.len(), standing.len());
        let found = youngest(&file, Some(Number(before))).expect("the kernel answers");
        prop_assert_eq!(found.map(|waiter| waiter.number.0), numbers.range(..before).next_back().copied());
        let found = youngest(&file, None).expect("the kernel answers");
        prop_assert_eq!(found.map(|waiter| waiter.number.0), numbers.last().copied());
        let found = oldest(&file, Number(from), Some(Number(before))).expect("the kernel answers");
        let expected = numbers.iter().find(|number| (from..before.max(from)).contains(number));
        prop_assert_eq!(found.map(|waiter| waiter.number.0), expected.copied());
        let found = highest_place(&file).expect("the kernel answers");
        prop_assert_eq!(found.map(|number| number.0), places.last().copied());
    }
}
