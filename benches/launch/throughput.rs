//! What a launch takes where eight launchers start one after the other without a pause: all on one lock file,
//! where each has to have the mutex for a moment, and each on a file of its own, where nobody is in the way.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::row::{Row, Side};
use super::site::{Site, rungate};

const LAUNCHERS: u32 = 8;

/// Of each launcher, in each round.
const LAUNCHES: u32 = 50;

const ROUNDS: usize = 7;

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    let peer = site.program("peer");
    let ours = |file: &Path| {
        let mut command = Command::new(rungate());
        command.args(["run", "--limit", "100", "--repository"]).arg(file).args(["--", "true"]);
        command
    };
    let original = |file: &Path| {
        let mut command = Command::new(&peer);
        command.arg(file).args(["100", "true"]);
        command
    };
    let flock = |file: &Path| {
        let mut command = Command::new("/usr/bin/flock");
        command.arg("--shared").arg(file).arg("true");
        command
    };
    let mut rows = Vec::new();
    for (what, is_common) in [("one file", true), ("files of their own", false)] {
        let mut sides = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            let [a, b, c] = &mut sides;
            a.push(each(site, "rungate", is_common, ours));
            b.push(each(site, "original", is_common, original));
            c.push(each(site, "flock", is_common, flock));
        }
        let names = ["rungate", "the original", "`flock --shared`"];
        let mut sides = sides.into_iter().zip(names).map(|(times, name)| Side::of_times(name, times));
        let [ours, original, flock] = std::array::from_fn(|_| sides.next().expect("three sides"));
        let per_second = 1e3 / ours.median();
        let what = format!("{LAUNCHERS} launchers at once, {what}: {per_second:.0} launches per second");
        rows.push(Row::new(what.clone(), &ours, &original, 1.4));
        rows.push(Row::new(what, &ours, &flock, 1.25));
    }
    rows
}

/// How long all launchers together take for one launch.
fn each(site: &Site, name: &str, is_common: bool, command: impl Fn(&Path) -> Command + Sync) -> Duration {
    let begun = Instant::now();
    thread::scope(|scope| {
        for launcher in 0..LAUNCHERS {
            let file = site.path(&format!("{name}-{}", if is_common { 0 } else { launcher }));
            let mut command = command(&file);
            command.stdin(Stdio::null());
            scope.spawn(move || {
                for _ in 0..LAUNCHES {
                    assert!(command.status().expect("it starts").success());
                }
            });
        }
    });
    begun.elapsed() / (LAUNCHERS * LAUNCHES)
}
