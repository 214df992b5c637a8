//! The three scenarios of the paper on adaptive locks (Burgess and Skipitaris), with the log as evidence: a
//! job that starts itself, a job that hangs, and a job that is started again and again.

use serde_json::Value;

use crate::support::{Ending, Site, eventually, given_time, state_of};

/// One job at a time, with a log of everything.
fn site(keys: &str) -> Site {
    let site = Site::with_policy(&format!(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"

        [repository.job]
        limit = 1
        {keys}

        [[rule]]
        name     = "one job at a time"
        commands = ["job"]
        acquire  = ["job"]
        "#
    ));
    site.program("job");
    site
}

/// What the log says, event by event.
fn log(site: &Site) -> Vec<Value> {
    let text = std::fs::read_to_string(site.path("work/log.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object on each line")).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("the name of an event")).collect()
}

/// The tower of the paper's figure: a job that starts itself does not get higher than the locks allow, under
/// any hold, and every floor ends by itself.
#[test]
fn a_job_that_starts_itself_comes_to_an_end() {
    let cases = [
        // Its own child is refused: too soon, or because the slot is its parent's.
        ("process", "if_elapsed = \"1h\"", vec!["started", "too-soon"], 69),
        ("process", "", vec!["started", "refused"], 75),
        // Its child may use its slot, as a wrapper's would, and the child of that one may not.
        ("descriptor", "", vec!["started", "started", "refused"], 75),
        ("supervisor", "", vec!["started", "started", "refused", "ended", "ended"], 75),
        ("tree", "nested = \"take\"", vec!["started", "refused", "ended"], 75),
    ];
    for (hold, keys, expected, status) in cases {
        let site = site(&format!("hold = \"{hold}\"\n{keys}"));
        let launcher = site.rungate().display().to_string();
        site.script("job", &format!("#!/bin/sh\n{launcher} run --quiet -- job\nexit $?\n"));
        site.test().args(["run", "--quiet", "--", "job"]).status(status);
        let log = log(&site);
        assert_eq!(names(&log), expected, "{hold} {keys}");
        assert_eq!(site.held("job.lock"), []);
    }
}

/// A job that hangs: the ones that come while it is not yet overdue are refused, the first that comes later
/// ends it and starts in its place. Nobody had to look after it.
#[test]
fn a_job_that_hangs_is_replaced() {
    // Whoever is killed must be gone within another grace.
    given_time(&["150ms", "3s", "20s"], a_job_that_hangs_is_replaced_after);
}

fn a_job_that_hangs_is_replaced_after(grace: &str) {
    let site = site(&format!("expire_after = \"2s\"\nexpire_grace = \"{grace}\""));
    let witness = site.helper("witness");
    let mut hung = site
        .test()
        .args(["run", "--as", "job", "--"])
        .args([&witness])
        .through(["env", "--default-signal"])
        .spawn();
    let next = site.test().args(["run", "--quiet", "--", "job"]);
    let mut refused = 0;
    eventually("one starts in its place", || match next.outcome().ending {
        Ending::Status(75) => {
            refused += 1;
            None
        }
        Ending::Status(0) => Some(()),
        other => panic!("{other:?}"),
    });
    assert_eq!(hung.end().ending, Ending::Signal(9));
    let log = log(&site);
    let expected: Vec<&str> =
        ["started"].into_iter().chain(vec!["refused"; refused]).chain(["expired", "started"]).collect();
    assert_eq!(names(&log), expected);
    let expired = &log[log.len() - 2];
    assert_eq!(expired["holder"], hung.pid());
    assert_eq!(expired["status"], "SIGKILL");
    assert_eq!(expired["pid"], log[log.len() - 1]["pid"], "whoever ended it has started");
    let waited = expired["time"].as_u64().expect("a time") - log[0]["time"].as_u64().expect("a time");
    assert!(waited >= 2000, "not before its time: {waited} ms");
    assert!(state_of(hung.pid()).is_none());
}

/// A job that is started again and again, by an impatient user or a wild loop: it runs once.
#[test]
fn a_job_that_is_started_again_and_again_runs_once() {
    let site = site("if_elapsed = \"1h\"\ntoo_soon = \"ok\"");
    site.script("job", "#!/bin/sh\necho runs >>$DIR/work/runs\n");
    for _ in 0..30 {
        site.test().args(["run", "--", "job"]).status(0);
    }
    let runs = std::fs::read_to_string(site.path("work/runs")).expect("it has run");
    assert_eq!(runs, "runs\n");
    let log = log(&site);
    assert_eq!(names(&log)[0], "started");
    assert_eq!(names(&log)[1..], ["too-soon"; 29]);
    let rungate = site.test().args(["report", "--json", "$DIR/work/log.jsonl"]).outcome();
    let summary: Value = serde_json::from_str(&rungate.stdout).expect("JSON");
    assert_eq!(summary["programs"]["job"]["started"], 1);
    assert_eq!(summary["programs"]["job"]["too_soon"], 29);
}
