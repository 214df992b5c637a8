//! The referee beside a storm: see `tests/programs/referee` for what it sees and how it knows.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::support::Site;

/// A running referee.
pub(super) struct Referee {
    child: Child,
    lines: Receiver<String>,
    violations: Vec<String>,
}

impl Referee {
    /// Starts watching, and returns when it looks.
    pub(super) fn watch(site: &Site, slack: Duration) -> Self {
        let mut child = Command::new(site.helper("referee"))
            .args(
                [site.path(""), site.rungate().to_owned()]
                    .map(|path| path.to_str().expect("a plain path").trim_end_matches('/').to_owned()),
            )
            .arg(slack.as_secs().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the referee");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut referee = Self { child, lines, violations: Vec::new() };
        referee.looks();
        referee
    }

    /// Whether it has seen anything yet.
    pub(super) fn has_seen(&mut self) -> bool {
        self.violations.extend(self.lines.try_iter());
        !self.violations.is_empty()
    }

    /// How often it has looked until now, and at least once since this was called.
    fn looks(&mut self) -> u64 {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"report\n").expect("the referee listens");
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => match line.strip_prefix("looks ") {
                    Some(looks) => return looks.parse().expect("a number"),
                    None => self.violations.push(line),
                },
                Err(RecvTimeoutError::Timeout) => panic!("the referee does not answer"),
                Err(RecvTimeoutError::Disconnected) => panic!("the referee has ended"),
            }
        }
    }

    /// Lets it look once more, and says how often it has looked and what was wrong.
    pub(super) fn end(mut self) -> (u64, Vec<String>) {
        let looks = self.looks();
        (looks, std::mem::take(&mut self.violations))
    }
}

impl Drop for Referee {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
