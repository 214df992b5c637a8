//! Refusals, `check` and `list` beside those of a program in the manner of the original
//! (`tests/programs/peer.rs`), as whole processes; and how long an admission keeps the mutex, by
//! `benches/programs/mutex_clock.rs`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::crowd::Crowd;
use super::row::{Row, Side, in_turn, timed};
use super::site::{Site, rungate};

/// A full repository, for our refusals and for theirs.
const FULL: i32 = 75;

/// As many refusals at once.
const AT_ONCE: usize = 1000;

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    let ours = Binaries {
        rungate: site.installed(Path::new(rungate())),
        peer: site.installed(&site.program("peer")),
    };
    let mut rows = vec![mutex(site, &ours)];
    for held in [0, 100, 1000, 3000] {
        let file = site.path(&format!("held-{held}"));
        fs::write(&file, "").expect("a file");
        let _crowd = (held > 0).then(|| Crowd::of(site, &file, held));
        rows.extend(ours.refusals(&file, held));
        if held == 1000 {
            rows.push(ours.at_once(&file, held));
            rows.extend(["check", "list"].map(|what| ours.look(&file, what, held)));
        }
    }
    let file = site.path("random-order");
    let _crowd = Crowd::in_random_order(site, &file, 10_000);
    rows.push(ours.beside_a_scan(&file, 10_000));
    rows
}

/// Copies of both programs: neither costs anything more for where it was built.
struct Binaries {
    rungate: std::path::PathBuf,
    peer: std::path::PathBuf,
}

impl Binaries {
    fn exectimes(&self, file: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.rungate);
        command.arg("exectimes").arg(file).args(words);
        quiet(command)
    }

    fn run(&self, options: &[&str], file: &Path, limit: u64) -> Command {
        let mut command = Command::new(&self.rungate);
        command.arg("run").args(options).args(["--limit", &limit.to_string(), "--repository"]).arg(file);
        command.args(["--", "true"]);
        quiet(command)
    }

    fn peer(&self, file: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.peer);
        command.arg(file).args(words);
        quiet(command)
    }

    fn refusals(&self, file: &Path, held: u64) -> [Row; 3] {
        let limit = held.to_string();
        let words = [limit.as_str(), "true"];
        let (mut form, mut peer) = (self.exectimes(file, &words), self.peer(file, &words));
        let (mut silent, mut told) = (self.run(&["-q"], file, held), self.run(&[], file, held));
        let rounds = if held < 1000 { 200 } else { 30 };
        let [form, silent, told, peer] = in_turn(
            rounds,
            [
                ("`rungate exectimes`", &mut || ends(&mut form, 1)),
                ("`rungate run -q`", &mut || ends(&mut silent, FULL)),
                ("`rungate run`", &mut || ends(&mut told, FULL)),
                ("the original's", &mut || ends(&mut peer, FULL)),
            ],
        );
        let row = |how: &str, ours: Side| Row {
            what: format!("one refusal, {held} of {held} held, {how}"),
            ours,
            against: peer.clone(),
            reach: 1.2,
        };
        [row("exectimes form", form), row("`-q`", silent), row("with its message", told)]
    }

    fn at_once(&self, file: &Path, held: u64) -> Row {
        let limit = held.to_string();
        let [ours, against] = in_turn(
            3,
            [
                ("`rungate run -q`", &mut || storm(|| self.run(&["-q"], file, held))),
                ("the original's", &mut || storm(|| self.peer(file, &[&limit, "true"]))),
            ],
        );
        Row { what: format!("{AT_ONCE} refusals at once, {held} of {held} held"), ours, against, reach: 1.2 }
    }

    fn look(&self, file: &Path, what: &str, held: u64) -> Row {
        let (mut form, mut peer) = (self.exectimes(file, &[what]), self.peer(file, &[what]));
        let [ours, against] = in_turn(
            30,
            [
                ("`rungate exectimes`", &mut || ends(&mut form, 0)),
                ("the original's", &mut || ends(&mut peer, 0)),
            ],
        );
        Row { what: format!("{what} of {held}"), ours, against, reach: 1.2 }
    }

    fn beside_a_scan(&self, file: &Path, held: u64) -> Row {
        let (mut refusal, mut scan) = (self.run(&["-q"], file, held), self.peer(file, &["check"]));
        let [ours, against] = in_turn(
            10,
            [
                ("`rungate run -q`", &mut || ends(&mut refusal, FULL)),
                ("the article's scan", &mut || ends(&mut scan, 0)),
            ],
        );
        let what = format!("refusal, {held} of {held} held, taken in random order");
        Row { what, ours, against, reach: 0.06 }
    }
}

fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn ends(command: &mut Command, status: i32) -> Duration {
    timed(|| assert_eq!(command.status().expect("it starts").code(), Some(status)))
}

/// So many at once, of which none may end otherwise.
fn storm(command: impl Fn() -> Command) -> Duration {
    let begun = Instant::now();
    let children: Vec<Child> = (0..AT_ONCE).map(|_| command().spawn().expect("it starts")).collect();
    for mut child in children {
        assert_eq!(child.wait().expect("a child").code(), Some(FULL));
    }
    begun.elapsed()
}

/// From the moment when an admission has the mutex to that when it gives it back.
fn mutex(site: &Site, binaries: &Binaries) -> Row {
    let (file, report) = (site.path("mutex"), site.path("mutex-times"));
    let clock = site.program("libmutex_clock.so");
    for _ in 0..300 {
        let mut launch = binaries.run(&["-q"], &file, 5);
        launch.env("LD_PRELOAD", &clock).env("MUTEX_CLOCK", &report);
        assert!(launch.status().expect("it starts").success());
    }
    let times = fs::read_to_string(&report).expect("the clock reports");
    let times = times.lines().map(|line| line.parse::<f64>().expect("nanoseconds") / 1e3).collect();
    Row {
        what: "mutex held in an admission".into(),
        ours: Side::new("rungate", "µs", times),
        against: Side::new("8 µs", "µs", vec![8.0]),
        reach: 1.0,
    }
}
