//! The waiting line: how soon a slot that is free is used again.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::row::{Row, Side};
use super::site::{Site, rungate};

pub(crate) const HAND_OVERS: usize = 60;
const LAUNCHES: u32 = 1000;
const LIMIT: u32 = 8;
const RUN_TIME: Duration = Duration::from_millis(50);

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    let mut ours = Waiters::new({
        let mut command = Command::new(rungate());
        command
            .args(["run", "-q", "-w", "forever", "--limit", "1", "--repository"])
            .arg(site.path("line.lock"));
        command.args(["--", "cat"]);
        command
    });
    let mut theirs = Waiters::new({
        let mut command = Command::new("/usr/bin/flock");
        command.arg("--no-fork").arg(site.path("line.flock")).arg("cat");
        command
    });
    // In turn, so that what disturbs one disturbs the other.
    for _ in 0..HAND_OVERS {
        ours.hand_over();
        theirs.hand_over();
    }
    vec![
        Row {
            what: "hand-over of a freed slot to the head of the line".into(),
            ours: Side::of_times("rungate", std::mem::take(&mut ours.times)),
            against: Side::of_times("`flock`, waiting", std::mem::take(&mut theirs.times)),
            reach: 1.5,
        },
        thousand(site),
    ]
}

/// One that runs, and one that waits for it to end.
pub(crate) struct Waiters {
    command: Command,
    running: Option<Waiter>,
    pub(crate) times: Vec<Duration>,
}

struct Waiter {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Waiters {
    pub(crate) fn new(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self { command, running: None, times: Vec::new() }
    }

    /// A program that answers as soon as it runs.
    fn start(&mut self) -> Waiter {
        let mut child = self.command.spawn().expect("it starts");
        child.stdin.as_mut().expect("a pipe").write_all(b"it runs\n").expect("a pipe has room");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Waiter { child, output }
    }

    pub(crate) fn hand_over(&mut self) {
        let mut before = self.running.take().unwrap_or_else(|| {
            let mut first = self.start();
            first.answer();
            first
        });
        let mut next = self.start();
        next.sleeps();
        let freed = Instant::now();
        before.child.kill().expect("it runs");
        next.answer();
        self.times.push(freed.elapsed());
        before.child.wait().expect("it was killed");
        self.running = Some(next);
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Waiter {
    fn answer(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line, "it runs\n");
    }

    /// Returns when it has been asleep for a while: it reads nothing before it runs, so it sleeps in the
    /// queue.
    fn sleeps(&self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        let mut asleep = 0;
        while asleep < 20 {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            let is_asleep = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
            asleep = if is_asleep { asleep + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A thousand at once, of which eight may run.
fn thousand(site: &Site) -> Row {
    let sleep = RUN_TIME.as_secs_f64().to_string();
    let begun = Instant::now();
    let launch = |file: &Path| {
        let mut command = Command::new(rungate());
        command.args(["run", "-q", "-w", "forever", "--limit", &LIMIT.to_string(), "--repository"]).arg(file);
        command.args(["--", "sleep", &sleep]).stdin(Stdio::null()).spawn().expect("it starts")
    };
    let file = site.path("thousand.lock");
    let children: Vec<Child> = (0..LAUNCHES).map(|_| launch(&file)).collect();
    for mut child in children {
        assert!(child.wait().expect("a child").success());
    }
    Row {
        what: "1,000 launches at once, limit 8, all waiting".into(),
        ours: Side::of_times("rungate", vec![begun.elapsed()]),
        against: Side::of_times("the sum of their run times over 8", vec![RUN_TIME * LAUNCHES / LIMIT]),
        reach: 1.5,
    }
}
