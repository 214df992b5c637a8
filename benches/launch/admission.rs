//! Admission and refusal where many slots are held, within this process: what the calls cost, without the
//! start of a process.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::admit::is_admitted;
use super::crowd::Crowd;
use super::row::{Row, in_turn, timed};
use super::site::{Site, rungate};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

#[path = "../../tests/support/lock_range.rs"]
mod lock_range;

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    let mut rows = Vec::new();
    let file = site.path("crowded-10000");
    let crowd = Crowd::of(site, &file, 10_000);
    let [ours, four_calls, scan] = in_turn(
        15,
        [
            ("admission", &mut || timed(|| assert!(is_admitted(&file, 20_000)))),
            ("four F_SETLK", &mut || four_calls(&file)),
            ("the article's scan", &mut || scan(site, &file)),
        ],
    );
    let what = "admission, 10,000 held, limit 20,000";
    rows.push(Row { what: what.into(), ours: ours.clone(), against: four_calls, reach: 3.0 });
    rows.push(Row { what: what.into(), ours, against: scan, reach: 0.01 });
    rows.push(refusal(site, &file, 10_000, 0.05));
    rows.push(listing(site, &file));
    drop(crowd);

    let file = site.path("crowded-at-random");
    let crowd = Crowd::in_random_order(site, &file, 10_000);
    let what = "refusal, 10,000 of 10,000 held, taken in random order".into();
    rows.push(Row { what, ..refusal(site, &file, 10_000, 0.06) });
    drop(crowd);

    let file = site.path("crowded-1000");
    let _crowd = Crowd::of(site, &file, 1000);
    rows.push(refusal(site, &file, 1000, 0.5));
    rows
}

fn refusal(site: &Site, file: &Path, held: u64, reach: f64) -> Row {
    let [ours, against] = in_turn(
        15,
        [
            ("refusal", &mut || timed(|| assert!(!is_admitted(file, held)))),
            ("the article's scan", &mut || scan(site, file)),
        ],
    );
    Row { what: format!("refusal, {held} of {held} held"), ours, against, reach }
}

fn listing(site: &Site, file: &Path) -> Row {
    let mut list = Command::new(rungate());
    list.arg("list").arg(file).stdout(Stdio::null());
    let [ours, against] = in_turn(
        10,
        [
            ("list", &mut || timed(|| assert!(list.status().expect("rungate runs").success()))),
            ("the article's scan", &mut || scan(site, file)),
        ],
    );
    Row { what: "list of 10,000 holders".into(), ours, against, reach: 0.5 }
}

/// The least that taking a slot under a mutex could be: to lock the mutex, to lock a slot, and to unlock
/// both.
fn four_calls(file: &Path) -> Duration {
    let file = OpenOptions::new().read(true).write(true).open(file).expect("the file");
    timed(|| {
        let calls = [
            (libc::F_WRLCK, 0, 8),
            (libc::F_WRLCK, 15_000, 1),
            (libc::F_UNLCK, 15_000, 1),
            (libc::F_UNLCK, 0, 8),
        ];
        for (kind, start, length) in calls {
            let lock = lock_range::lock_range(kind, start, length);
            fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock)).expect("a lock");
        }
    })
}

/// A peer in the manner of exectimes asks about every byte.
pub(crate) fn scan(site: &Site, file: &Path) -> Duration {
    let mut check = Command::new(site.program("peer"));
    check.arg(file).arg("check").stdout(Stdio::null());
    timed(|| assert!(check.status().expect("the peer runs").success()))
}
