//! A command that is killed at one of its system calls, or has one of them fail: see
//! `tests/programs/saboteur`.

use std::fs;
use std::path::PathBuf;

use super::outcome::{Ending, Outcome};
use super::running::Running;
use super::site::{Site, set_mode};
use super::test::Test;

/// What is done to a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Nothing; each of its calls is recorded.
    List,
    /// It is killed at this call, the first being 1.
    Kill(usize),
    /// This call fails.
    Fail(usize, &'static str),
    /// This call fails, and so does every later one of its name.
    KeepFailing(usize, &'static str),
}

/// A call of a command, as its manual page names it, and what it was about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TracedCall {
    pub(crate) name: String,
    pub(crate) about: String,
}

/// A program that started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Start {
    pub(crate) pid: i32,
    /// The slots that were held at that moment: file, number, and the process that the kernel names.
    pub(crate) held: Vec<(String, i64, i32)>,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// All calls, or those to which something was done.
    pub(crate) calls: Vec<TracedCall>,
    pub(crate) starts: Vec<Start>,
    pub(crate) ending: Ending,
    pub(crate) stderr: String,
}

/// A command under sabotage.
pub(crate) struct Sabotage {
    report: PathBuf,
    running: Running,
}

impl Sabotage {
    /// Starts the command. The slots of these repositories are checked when its program starts.
    #[track_caller]
    pub(crate) fn begin(test: &Test, fault: Fault, repositories: &[&str]) -> Self {
        let site = test.site();
        let report = site.path("sabotage");
        fs::write(&report, "").expect("a new report");
        set_mode(&report, 0o666);
        let mut words: Vec<String> = vec![plain(&site.helper("saboteur")), plain(&report)];
        match fault {
            Fault::List => words.push("list".into()),
            Fault::Kill(at) => words.extend(["kill".into(), at.to_string()]),
            Fault::Fail(at, error) => words.extend(["fail".into(), at.to_string(), error.into()]),
            Fault::KeepFailing(at, error) => {
                words.extend(["keep-failing".into(), at.to_string(), error.into()]);
            }
        }
        words.extend(repositories.iter().map(|name| plain(&site.repository(name))));
        words.push("--".into());
        Self { report, running: test.clone().through(words).background() }
    }

    /// Whether the command, and whatever it left behind of itself, has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.running.is_zombie()
    }

    /// How many calls it has made by now.
    pub(crate) fn calls_so_far(&self) -> usize {
        let text = fs::read_to_string(&self.report).expect("the report");
        text.lines().filter(|line| line.starts_with("call ")).count()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self, site: &Site) -> Report {
        let Outcome { stdout, stderr, ending } = self.running.end();
        assert_eq!((ending, stdout.as_str()), (Ending::Status(0), ""), "the saboteur itself: {stderr}");
        let text = fs::read_to_string(&self.report).expect("the report");
        let mut report = Report { calls: Vec::new(), starts: Vec::new(), ending: Ending::Status(-1), stderr };
        for line in text.lines() {
            match line.split(' ').collect::<Vec<&str>>().as_slice() {
                ["call", _, name, about @ ..] => {
                    report.calls.push(TracedCall { name: (*name).into(), about: about.join(" ") });
                }
                ["start", pid, held @ ..] => {
                    let held = held.iter().map(|slot| held_slot(site, slot)).collect();
                    report.starts.push(Start { pid: number(pid), held });
                }
                ["ended", "status", status] => report.ending = Ending::Status(number(status)),
                ["ended", "signal", signal] => report.ending = Ending::Signal(number(signal)),
                _ => panic!("not a line of a report: {line:?}"),
            }
        }
        report
    }
}

fn plain(path: &std::path::Path) -> String {
    path.to_str().expect("temporary directories have plain names").to_owned()
}

/// `FILE=SLOT:PID`
fn held_slot(site: &Site, text: &str) -> (String, i64, i32) {
    let (path, slot) = text.rsplit_once('=').expect("FILE=SLOT:PID");
    let (slot, pid) = slot.split_once(':').expect("FILE=SLOT:PID");
    let directory = plain(&site.repository(""));
    (path.trim_start_matches(&directory).to_owned(), number(slot), number(pid))
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text:?}"))
}
