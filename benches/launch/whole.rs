//! Whole processes, from outside: from the request to start one to its end.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::callgrind::instructions;
use super::row::{Row, Side, in_turn, timed};
use super::site::{Site, rungate};

const ROUNDS: usize = 400;

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    let [ten, hundred, thousand] = [10, 100, 1000].map(|rules| site.compiled_policy(rules, 2));
    let whole = [10, 100].map(|rules| site.policy(rules + 1, 2));
    let mut one = under(site.policy(1, 1).as_os_str());
    let mut eight = under(site.policy(1, 8).as_os_str());
    let [mut ten, mut hundred, mut thousand] =
        [ten, hundred, thousand].map(|policy| under(policy.as_os_str()));
    let [mut ten_whole, mut hundred_whole] = whole.map(|policy| under(policy.as_os_str()));
    let mut flock = Command::new("/usr/bin/flock");
    flock.arg("-n").arg(site.path("flock")).arg("true");
    let mut null = Command::new(site.program("null_launcher"));
    null.arg("true");
    let mut ad_hoc = Command::new(rungate());
    ad_hoc.args(["run", "--limit", "5", "--repository"]).arg(site.path("ad-hoc.lock")).args(["--", "true"]);
    let sides = in_turn(
        ROUNDS,
        [
            ("`flock -n FILE true`", &mut || run(&mut flock)),
            ("null launcher", &mut || run(&mut null)),
            ("10 rules", &mut || run(&mut ten)),
            ("100 rules", &mut || run(&mut hundred)),
            ("1,000 rules", &mut || run(&mut thousand)),
            ("10 rules, not compiled", &mut || run(&mut ten_whole)),
            ("100 rules, not compiled", &mut || run(&mut hundred_whole)),
            ("ad hoc", &mut || run(&mut ad_hoc)),
            ("one repository", &mut || run(&mut one)),
            ("eight repositories", &mut || run(&mut eight)),
        ],
    );
    let [flock, null, ten, hundred, thousand, ten_whole, hundred_whole, ad_hoc, one, eight] = sides;
    let row = |what: &str, ours: &Side, against: &Side, reach| Row {
        what: what.into(),
        ours: ours.clone(),
        against: against.clone(),
        reach,
    };
    vec![
        row("`rungate run`, 10 rules, two repositories", &ten, &flock, 0.95),
        row("the same, 100 rules", &hundred, &ten, 1.08),
        row("the same, 1,000 rules (3,000 patterns)", &thousand, &ten, 1.5),
        row("10 rules, not compiled", &ten_whole, &flock, 0.95),
        row("100 rules, not compiled", &hundred_whole, &ten_whole, 1.08),
        row("ad hoc, one repository, no policy", &ad_hoc, &null, 1.1),
        row("eight repositories", &eight, &one, 1.25),
    ]
}

/// Memory and instructions: the same every time.
pub(crate) fn sizes(site: &Site) -> Vec<Row> {
    let peak = |command: &[&OsStr]| {
        let output = Command::new(site.program("peak")).args(command).output().expect("peak runs");
        String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().expect("a number")
    };
    let side = |name: &str, unit, sample: f64| Side::new(name, unit, vec![sample]);
    let policy = site.compiled_policy(100, 2);
    let file = site.path("flock");
    let [flock, rungate, n, run, option, dashes, command] =
        ["/usr/bin/flock", rungate(), "-n", "run", "--policy", "--", "true"].map(OsStr::new);
    let ours = peak(&[rungate, run, option, policy.as_os_str(), dashes, command]);
    let theirs = peak(&[flock, n, file.as_os_str(), command]);
    let mut rows = vec![Row {
        what: "peak memory, 100 rules".into(),
        ours: side("rungate", "KiB", ours),
        against: side("`flock`", "KiB", theirs),
        reach: 2.0,
    }];
    let ten = site.compiled_policy(10, 2);
    let null = site.program("null_launcher");
    let count = |words: &[&OsStr]| {
        let counted = [0; 2].map(|_| instructions(&site.path(""), &ten, words));
        counted[1].map(|count| count as f64)
    };
    if let (Some(ours), Some(theirs)) =
        (count(&[rungate, run, dashes, command]), count(&[null.as_os_str(), command]))
    {
        rows.push(Row {
            what: "instructions, 10 rules (callgrind, user space)".into(),
            ours: side("rungate", "", ours),
            against: side("null launcher", "", theirs),
            reach: 2.0,
        });
    }
    rows
}

fn under(policy: &OsStr) -> Command {
    let mut command = Command::new(rungate());
    command.args(["run", "--policy"]).arg(policy).args(["--", "true"]);
    command
}

fn run(command: &mut Command) -> std::time::Duration {
    command.stdin(Stdio::null());
    timed(|| assert!(command.status().expect("it starts").success()))
}
