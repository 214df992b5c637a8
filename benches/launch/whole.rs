//! Whole processes, from outside: from the request to start one to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::callgrind::instructions;
use super::processor::OneProcessor;
use super::row::{Row, Side, in_turn, timed};
use super::site::{Site, rungate};

const ROUNDS: usize = 400;

/// Both, because half of what flock does is to read the files of its locale: there are none in that of cron.
const LOCALES: [&str; 2] = ["C.UTF-8", "C"];

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    let _pinned = OneProcessor::alone();
    let mut rows: Vec<Row> = LOCALES.into_iter().flat_map(|locale| beside_others(site, locale)).collect();
    rows.extend(by_length(site));
    rows
}

/// What a launch costs beside others that do part of the same.
fn beside_others(site: &Site, locale: &str) -> Vec<Row> {
    let mut ten = under(&site.policy(10, 2));
    let mut flock = of("/usr/bin/flock", &["-n"], &site.path("flock"), &["true"]);
    let mut no_fork = of("/usr/bin/flock", &["-n", "--no-fork"], &site.path("flock"), &["true"]);
    let setlock = Path::new("/usr/bin/setlock");
    let has_setlock = setlock.exists();
    let mut setlock = if has_setlock {
        of("/usr/bin/setlock", &["-n"], &site.path("setlock"), &["true"])
    } else {
        of("/usr/bin/flock", &["-n", "--no-fork"], &site.path("flock"), &["true"])
    };
    let mut original = of(site.program("peer"), &[], &site.path("original"), &["5", "true"]);
    let mut null = Command::new(site.program("null_launcher"));
    null.arg("true");
    let mut ad_hoc = ad_hoc(site);
    for command in [&mut ten, &mut flock, &mut no_fork, &mut setlock, &mut original, &mut null, &mut ad_hoc] {
        command.env("LC_ALL", locale).env_remove("RUNGATE_POLICY");
    }
    let sides = in_turn(
        ROUNDS,
        [
            ("10 rules", &mut || run(&mut ten)),
            ("ad hoc", &mut || run(&mut ad_hoc)),
            ("`flock -n FILE true`", &mut || run(&mut flock)),
            ("`flock -n --no-fork`", &mut || run(&mut no_fork)),
            ("`setlock -n FILE true`", &mut || run(&mut setlock)),
            ("the original", &mut || run(&mut original)),
            ("null launcher", &mut || run(&mut null)),
        ],
    );
    let [ten, ad_hoc, flock, no_fork, setlock, original, null] = sides;
    let is_cron = locale == "C";
    let reach = |usual, cron| if is_cron { cron } else { usual };
    let row = |what: &str, ours: &Side, against: &Side, reach| {
        Row::new(format!("{what}, LC_ALL={locale}"), ours, against, reach)
    };
    let mut rows = vec![
        row("10 rules, two repositories", &ten, &flock, reach(0.9, 1.05)),
        row("10 rules, two repositories", &ten, &no_fork, reach(1.2, 1.3)),
        row("10 rules, two repositories", &ten, &null, 1.3),
        row("ad hoc, one repository, no policy", &ad_hoc, &flock, reach(0.9, 1.0)),
        row("ad hoc, one repository, no policy", &ad_hoc, &original, 1.1),
        row("ad hoc, one repository, no policy", &ad_hoc, &null, 1.06),
    ];
    if has_setlock {
        rows.push(row("ad hoc, one repository, no policy", &ad_hoc, &setlock, 1.4));
    }
    rows
}

/// What more rules and more repositories cost.
fn by_length(site: &Site) -> Vec<Row> {
    let [mut ten, mut hundred, mut thousand] = [10, 100, 1000].map(|rules| under(&site.policy(rules, 2)));
    let [mut one, mut eight] = [1, 8].map(|repositories| under(&site.policy(1, repositories)));
    let sides = in_turn(
        ROUNDS,
        [
            ("10 rules", &mut || run(&mut ten)),
            ("100 rules", &mut || run(&mut hundred)),
            ("1,000 rules", &mut || run(&mut thousand)),
            ("one repository", &mut || run(&mut one)),
            ("eight repositories", &mut || run(&mut eight)),
        ],
    );
    let [ten, hundred, thousand, one, eight] = sides;
    vec![
        Row::new("100 rules, two repositories".into(), &hundred, &ten, 1.05),
        Row::new("1,000 rules (3,000 patterns), two repositories".into(), &thousand, &ten, 1.5),
        Row::new("eight repositories".into(), &eight, &one, 1.25),
    ]
}

fn of(program: impl AsRef<OsStr>, options: &[&str], file: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(options).arg(file).args(words);
    command
}

fn ad_hoc(site: &Site) -> Command {
    let file = site.path("ad-hoc.lock");
    of(rungate(), &["run", "--limit", "5", "--repository"], &file, &["--", "true"])
}

/// Memory and instructions: nearly the same every time.
pub(crate) fn sizes(site: &Site) -> Vec<Row> {
    let file = site.path("flock");
    let ten = site.policy(10, 2);
    let null = site.program("null_launcher");
    let [flock, rungate, n, run, option, dashes, command] =
        ["/usr/bin/flock", rungate(), "-n", "run", "--policy", "--", "true"].map(OsStr::new);
    let mut rows = Vec::new();
    for locale in LOCALES {
        let peak = |name, command: &[&OsStr]| {
            let sample = || {
                let mut peak = Command::new(site.program("peak"));
                let output = peak.args(command).env("LC_ALL", locale).output().expect("peak runs");
                String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().expect("a number")
            };
            Side::new(name, "KiB", (0..25).map(|_| sample()).collect())
        };
        let ours = peak("rungate", &[rungate, run, option, ten.as_os_str(), dashes, command]);
        let theirs = peak("`flock`", &[flock, n, file.as_os_str(), command]);
        rows.push(Row::new(format!("peak memory, 10 rules, LC_ALL={locale}"), &ours, &theirs, 1.5));
    }
    let count = |name, words: &[&OsStr]| {
        let counted = [0; 2].map(|_| instructions(&site.path(""), &ten, words));
        counted[1].map(|count| Side::new(name, "", vec![count as f64]))
    };
    if let (Some(ours), Some(theirs)) = (
        count("rungate", &[rungate, run, dashes, command]),
        count("null launcher", &[null.as_os_str(), command]),
    ) {
        rows.push(Row::new("instructions, 10 rules (callgrind, user space)".into(), &ours, &theirs, 1.4));
    }
    rows
}

fn under(policy: &Path) -> Command {
    let mut command = Command::new(rungate());
    command.args(["run", "--policy"]).arg(policy).args(["--", "true"]);
    command
}

fn run(command: &mut Command) -> std::time::Duration {
    command.stdin(Stdio::null());
    timed(|| assert!(command.status().expect("it starts").success()))
}
