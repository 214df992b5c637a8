//! What a launch is put through, again and again, each time with another fault.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::judgement::{Expected, judge};
use crate::support::{Fault, Report, Running, Sabotage, Site, Test, TracedCall, eventually};

/// One kind of launch.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// Options of `rungate run`.
    options: &'static [&'static str],
    command: &'static str,
    /// More of the policy: of its repositories, and of its rule.
    keys: &'static str,
    selectors: &'static str,
    /// Who launches; whoever runs the tests where none is given.
    user: Option<&'static str>,
    around: Around,
    /// How it ends when nothing fails.
    status: i32,
}

/// What goes on around the launch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Around {
    /// Nobody else is there.
    Nothing,
    /// The lock files, and a directory above one of them, do not exist yet.
    NoFiles,
    /// Somebody holds a slot, and goes on.
    AHolder,
    /// Somebody holds a slot, and leaves once the launch waits in the queue.
    AHolderThatLeaves,
    /// The same, with somebody in the queue before the launch, who leaves first.
    AHolderAndAWaiterThatLeave,
}

const PLAIN: Scenario = Scenario {
    name: "launch",
    options: &[],
    command: "quick",
    keys: "",
    selectors: "",
    user: None,
    around: Around::Nothing,
    status: 0,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "launch", ..PLAIN },
    Scenario { name: "first launch", around: Around::NoFiles, ..PLAIN },
    Scenario { name: "refused launch", around: Around::AHolder, status: 75, ..PLAIN },
    Scenario { name: "wait", around: Around::AHolderThatLeaves, options: &["--wait", "50s"], ..PLAIN },
    Scenario {
        name: "wait behind another",
        around: Around::AHolderAndAWaiterThatLeave,
        options: &["--wait", "50s"],
        ..PLAIN
    },
    // A failed look-up must not turn into a rule that does not match.
    Scenario {
        name: "launch under rules with names",
        user: Some("games"),
        selectors: "users = [\"games\"]\ngroups = [\"games\"]",
        ..PLAIN
    },
    Scenario { name: "launch, descriptor", options: &["--hold", "descriptor"], ..PLAIN },
    Scenario { name: "launch, supervisor", options: &["--hold", "supervisor"], ..PLAIN },
    Scenario { name: "launch, tree", options: &["--hold", "tree"], ..PLAIN },
    Scenario {
        name: "expiry",
        keys: "expire_after = \"1ms\"\nexpire_grace = \"150ms\"",
        around: Around::AHolder,
        ..PLAIN
    },
    Scenario { name: "program that cannot be executed", command: "broken", status: 127, ..PLAIN },
    Scenario {
        name: "supervised program that cannot be executed",
        command: "broken",
        options: &["--hold", "supervisor"],
        status: 127,
        ..PLAIN
    },
];

impl Scenario {
    /// Whether others than the one who runs the tests take part.
    pub(super) fn needs_root(&self) -> bool {
        self.user.is_some()
    }
}

const FILES: [&str; 2] = ["first.lock", "deep/second.lock"];

/// A site where a scenario is played.
pub(super) struct Stage {
    site: Site,
    scenario: &'static Scenario,
}

impl Stage {
    pub(super) fn build(scenario: &'static Scenario) -> Self {
        let Scenario { keys, selectors, .. } = scenario;
        let site = Site::with_policy(&format!(
            r#"
            log = {{ to = "$DIR/work/log.jsonl" }}

            [repository.first]
            limit = 1
            {keys}

            [repository.second]
            path  = "deep/second.lock"
            limit = 1
            {keys}

            [[rule]]
            name     = "both"
            commands = ["quick", "broken", "answering"]
            acquire  = ["first", "second"]
            {selectors}
            "#
        ));
        site.copy_of("/bin/true", "quick");
        site.program("answering");
        site.script("broken", "#!/no/such/interpreter\n");
        let stage = Self { site, scenario };
        stage.answering(&[]).spawn().kill();
        stage
    }

    fn answering(&self, options: &[&str]) -> Test {
        self.test().args(["run"]).args(options).args(["--", "answering"])
    }

    fn test(&self) -> Test {
        match self.scenario.user {
            Some(user) => self.site.test().user(user),
            None => self.site.test(),
        }
    }

    /// Every call that it makes when nothing fails.
    #[track_caller]
    pub(super) fn usual_calls(&self) -> Vec<TracedCall> {
        let report = self.play(Fault::List);
        let complaints = self.judged(Fault::List, 0, &report);
        assert!(complaints.is_empty(), "{}: {complaints:?}", self.scenario.name);
        report.calls
    }

    /// Plays it once with this fault, and says what was wrong.
    #[track_caller]
    /// Of the first `loaded` calls the dynamic linker makes its own of what fails.
    pub(super) fn trial(&self, fault: Fault, loaded: usize) -> Vec<String> {
        let report = self.play(fault);
        self.judged(fault, loaded, &report)
    }

    pub(super) fn judged(&self, fault: Fault, loaded: usize, report: &Report) -> Vec<String> {
        let Scenario { status, around, .. } = *self.scenario;
        let expected = Expected { files: &FILES, status, may_be_refused: around == Around::AHolder, loaded };
        let complaints = judge(fault, report, &expected).into_iter().chain(self.aftermath());
        let call = report.calls.first().map(|call| format!("{} {}", call.name, call.about));
        complaints
            .map(|complaint| {
                format!(
                    "{}, {fault:?}, {}: {complaint}\n    {:?} {:?}\n    {}",
                    self.scenario.name,
                    call.clone().unwrap_or_default(),
                    report.ending,
                    report.starts,
                    report.stderr.trim_end().replace('\n', "\n    ")
                )
            })
            .collect()
    }

    #[track_caller]
    pub(super) fn play(&self, fault: Fault) -> Report {
        self.play_with(fault, "")
    }

    /// The same for a launcher that was built with this fault.
    #[track_caller]
    pub(super) fn play_with(&self, fault: Fault, deliberate: &str) -> Report {
        let around = self.scenario.around;
        if around == Around::NoFiles {
            fs::remove_file(self.site.repository("first.lock")).expect("a lock file");
            fs::remove_dir_all(self.site.repository("deep")).expect("a directory");
        }
        let mut holder = None;
        if !matches!(around, Around::Nothing | Around::NoFiles) {
            holder = Some(self.answering(&[]).spawn());
        }
        let mut waiter = None;
        if around == Around::AHolderAndAWaiterThatLeave {
            let first = self.answering(&["--wait", "50s"]).background();
            self.site.stands_in_line("first.lock", &first);
            waiter = Some(first);
        }
        let Scenario { options, command, .. } = self.scenario;
        let launch =
            self.test().args(["run"]).args(*options).args(["--", command]).env("RUNGATE_WRONG", deliberate);
        let sabotage = Sabotage::begin(&launch, fault, &FILES);
        if matches!(around, Around::AHolderThatLeaves | Around::AHolderAndAWaiterThatLeave) {
            let others = usize::from(waiter.is_some());
            eventually("the launch stands in line, or has ended", || {
                let stands = self.site.line("first.lock").len() > others;
                (stands || sabotage.has_ended()).then_some(())
            });
            for leaving in [waiter.take(), holder.take()].into_iter().flatten() {
                leave(leaving);
            }
        }
        let report = sabotage.end(&self.site);
        if let Some(mut holder) = holder {
            // An overdue one has ended already.
            let _ = holder.is_zombie() || {
                holder.signal(Signal::SIGKILL);
                true
            };
            holder.end();
        }
        report
    }

    /// No slot is held, no line is stuck, the next launch is admitted and correct, records and header
    /// parse, and an exectimes peer agrees.
    fn aftermath(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut expect = |holds: bool, what: String| {
            if !holds {
                complaints.push(what);
            }
        };
        // A program that outlives its supervisor ends soon; a killed launcher has ended.
        for file in FILES {
            if self.site.repository(file).exists() {
                eventually(&format!("{file} is free"), || {
                    self.site.lock_between(file, 0, i64::MAX).is_none().then_some(())
                });
            }
        }
        let mut names: Vec<String> = fs::read_dir(self.site.repository(""))
            .expect("the directory of repositories")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        expect(
            ["deep", "first.lock"].iter().rev().all(|name| names.iter().any(|n| n == name))
                || self.scenario.around == Around::NoFiles,
            format!("files are missing: {names:?}"),
        );
        expect(names.len() <= 2, format!("something was left behind: {names:?}"));
        let mut next = self.answering(&[]).spawn();
        let pid = next.pid();
        for file in FILES {
            let held = self.site.held(file);
            expect(held.len() == 1 && held[0].pid == pid, format!("{file} after it: {held:?}, not {pid}"));
            // Where the kernel protects files in shared directories, the owner alone may open one as a peer
            // does.
            let peer = self.test().program(self.site.helper("peer"));
            let answer = peer.args([self.site.repository(file)]).args(["check"]).outcome();
            expect(answer.stdout == "1\n", format!("a peer counts {answer:?} in {file}"));
        }
        // The directory on the way is the user's, and nobody else's policy leads there.
        let listed = self.test().args(["list", "--json"]).outcome();
        expect(listed.stderr.is_empty(), format!("list says: {}", listed.stderr));
        let holders = holders_of(&listed.stdout);
        expect(
            holders == [(i64::from(pid), "answering"); 2].map(|(pid, name)| (pid, name.to_owned())),
            format!("list shows {holders:?} of {pid}: {}", listed.stdout),
        );
        next.close_stdin();
        let outcome = next.end();
        expect(outcome.stderr.is_empty(), format!("the next launch says: {}", outcome.stderr));
        let status = self.site.test().args(["status", "--json"]).outcome();
        expect(status.stderr.is_empty(), format!("status says: {}", status.stderr));
        complaints
    }
}

#[track_caller]
fn leave(mut running: Running) {
    running.signal(Signal::SIGKILL);
    running.end();
}

/// Process and command of each holder.
fn holders_of(listing: &str) -> Vec<(i64, String)> {
    let listing: Value = serde_json::from_str(listing).unwrap_or_default();
    let repositories = listing.as_array().cloned().unwrap_or_default();
    let holders = repositories.iter().filter_map(|repository| repository["holders"].as_array());
    holders
        .flatten()
        .map(|holder| {
            let command = holder["command"].as_str().unwrap_or("?");
            (holder["pid"].as_i64().unwrap_or(0), command.to_owned())
        })
        .collect()
}
