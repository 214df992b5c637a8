//! `docs/words.md`, tried: the policies of the page, and each row of its tables. The files of `tests/docs/words` have for
//! each row what the manual of the original documents, and launches that have this outcome here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::docs::promises::is_there;
use crate::policy::examples::keeps_what_it_intends;
use crate::support::{Ending, Site};

/// The files with the rows, each with the heading of its table.
const TABLES: [(&str, &str); 6] = [
    ("alike", "# The words of others, and ours"),
    ("grid-engine", "## Grid Engine: resource quota sets"),
    ("option-file", "## FlexNet: option files"),
    ("limits-conf", "## limits.conf"),
    ("sudoers", "## sudoers"),
    ("systemd", "## systemd"),
];

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/words.md");
    fs::read_to_string(page).expect("the page")
}

/// The policies of the page with the names in their first lines.
fn policies(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```toml\n# ").skip(1);
    blocks
        .map(|block| {
            let (name, text) = block.split_once('\n').expect("a name");
            (name, text.split("\n```\n").next().expect("an end"))
        })
        .collect()
}

#[test]
fn every_translation_says_what_the_original_does() {
    let page = page();
    let policies = policies(&page);
    let languages = page.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!((policies.len(), page.matches("```toml").count()), (languages, languages));
    let site = Site::new();
    for (name, text) in policies {
        assert!(text.contains("[[test]]"), "{name} does not say what it intends");
        site.write(name, text);
        keeps_what_it_intends(&[site.path(name)]);
    }
}

/// The first cells of the table below a heading.
fn first_cells<'p>(page: &'p str, heading: &str) -> BTreeSet<&'p str> {
    let section = page.split_once(&format!("{heading}\n")).expect("the heading").1;
    let section = section.split("\n## ").next().expect("a section");
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next()).collect()
}

fn rows(table: &str) -> Vec<Table> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/docs/words/{table}.toml"));
    let text = fs::read_to_string(path).expect("the rows");
    let mut parsed: Table = text.parse().unwrap_or_else(|error| panic!("{table}: {error}"));
    match parsed.remove("row") {
        Some(Value::Array(rows)) => rows.into_iter().map(|row| row.try_into().expect("a table")).collect(),
        other => panic!("{table}: {other:?}"),
    }
}

/// The policy of a row: what is left out in most of them is added.
fn policy_of(row: &Table) -> String {
    let text = row["policy"].as_str().expect("a text");
    let rule = "[[rule]]\nname = \"r\"\ncommands = [\"c\"]\nacquire = [\"r\"]\n";
    let rule = if text.contains("[[rule]]") { "" } else { rule };
    format!("version = 1\n{text}{rule}")
}

/// The launches of a row as tests of a policy.
fn tests_of(row: &Table) -> String {
    let played = row["play"].as_array().expect("launches");
    let test = |(number, play): (usize, &Value)| {
        let mut play = play.as_table().expect("a launch").clone();
        play.insert("name".to_owned(), Value::String(format!("launch {}", number + 1)));
        play.entry("command").or_insert_with(|| Value::String("c".to_owned()));
        let keys = play.iter().map(|(key, value)| format!("{key} = {value}\n"));
        format!("[[test]]\n{}", keys.collect::<String>())
    };
    played.iter().enumerate().map(test).collect()
}

/// The outcomes of a row's launches tell its policy from one that starts, or refuses, everything.
fn tells_apart(row: &Table) -> bool {
    let played = row["play"].as_array().expect("launches").iter();
    let outcomes: BTreeSet<bool> =
        played.map(|play| ["start", "exempt"].contains(&play["expect"].as_str().expect("a word"))).collect();
    outcomes.len() == 2
}

/// What is wrong with a row, if anything is.
fn difference(site: &Site, row: &Table) -> Option<String> {
    if row["outcome"].as_str().is_none_or(|outcome| outcome.len() < 10) {
        return Some("it does not say what the original does".to_owned());
    }
    if let Some(test) = row.get("test") {
        let (module, test) = test.as_str().and_then(|test| test.split_once("::")).expect("a path");
        return (!is_there(module, test)).then(|| format!("there is no {module}::{test}"));
    }
    let file = site.path("row.toml");
    if let Some(fault) = row.get("fault") {
        site.write("row.toml", &policy_of(row));
        let outcome = site.test().args(["policy", "check"]).args([&file]).outcome();
        let is_told = outcome.stderr.contains(fault.as_str().expect("a text"));
        return (outcome.ending != Ending::Status(1) || !is_told).then_some(outcome.stderr);
    }
    if !tells_apart(row) {
        return Some("all launches end alike".to_owned());
    }
    site.write("row.toml", &format!("{}{}", policy_of(row), tests_of(row)));
    let outcome = site.test().args(["policy", "check"]).args([&file]).outcome();
    (outcome.ending != Ending::Status(0)).then_some(outcome.stderr)
}

/// "Each row of a table is tried too."
#[test]
fn each_row_is_played_beside_the_outcome_of_the_original() {
    let page = page();
    let site = Site::new();
    let mut differences = Vec::new();
    for (table, heading) in TABLES {
        let rows = rows(table);
        let named: BTreeSet<&str> =
            rows.iter().map(|row| row["original"].as_str().expect("a text")).collect();
        assert_eq!(named, first_cells(&page, heading), "{table}");
        for row in &rows {
            let differs = difference(&site, row);
            differences
                .extend(differs.map(|difference| format!("{table}: {}\n{difference}", row["original"])));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A site with one seat for two commands, in use by one of them.
fn seat(more: &str) -> Site {
    let site = Site::with_policy(&format!(
        "
        [repository.seats]
        limit = 1
        [repository.idle]
        limit = 3
        [[rule]]
        name     = \"one seat\"
        commands = [\"tool\"]
        acquire  = [\"seats\"]
        {more}
        "
    ));
    site.program("tool");
    site
}

/// `qquota`, `qalter -w v`, `sudo -l COMMAND`: "for one command", and nothing is taken.
#[test]
fn what_counts_for_the_caller_is_explained() {
    let site = seat("");
    let explain = || site.test().args(["explain", "--", "tool"]).outcome();
    let before = explain();
    assert_eq!(before.ending, Ending::Status(0));
    assert!(before.stdout.contains("\nnow   starts\n"), "{}", before.stdout);
    let _running = site.test().args(["run", "--", "tool"]).spawn();
    let full = explain();
    assert!(!full.stdout.contains("\nnow   starts\n"), "{}", full.stdout);
    assert!(full.stdout.contains("one seat") && !full.stdout.contains("idle"), "{}", full.stdout);
    // "`rungate status` shows all repositories."
    let status = site.test().args(["status"]).outcome().stdout;
    assert!(status.contains("\nseats ") && status.contains("\nidle "), "{status}");
    assert_eq!(site.held_numbers("seats.lock"), [1]);
}

/// `lmstat`, `qstat`, `list-jobs`: who has a slot, where and since when, and who waits.
#[test]
fn holders_and_waiters_are_listed() {
    let site = seat("");
    let running = site.test().args(["run", "--", "tool"]).spawn();
    let waiting = site.test().args(["run", "--wait", "1h", "--", "tool"]).background();
    site.stands_in_line("seats.lock", &waiting);
    let list = site.test().args(["list", "seats"]).outcome().stdout;
    let line =
        |pid: i32| list.lines().find(|line| line.split_whitespace().any(|word| word == pid.to_string()));
    let holder = line(running.pid()).expect("the holder");
    assert!(holder.contains(" tool") && holder.contains(':'), "{list}");
    assert!(line(waiting.pid()).is_some() && list.contains("1 waiting"), "{list}");
}

/// `lmreread`: "every launch reads the policy".
#[test]
fn a_changed_policy_counts_at_once() {
    let site = seat("");
    let _running = site.test().args(["run", "--", "tool"]).spawn();
    let second = || site.test().args(["run", "--", "tool"]).stdin("").outcome().ending;
    assert_eq!(second(), Ending::Status(75));
    let policy = fs::read_to_string(site.path("policy.toml")).expect("the policy");
    site.policy(&policy.replace("limit = 1\n", "limit = 2\n"));
    assert_eq!(second(), Ending::Status(0));
}

/// `sudo -l`: "`rungate policy show` prints the policy for all users".
#[test]
fn the_policy_is_shown_as_a_whole() {
    let site = seat("[[rule]]\nname = \"for others\"\nusers = [\"nobody\"]\nacquire = [\"idle\"]\n");
    let shown = site.test().args(["policy", "show"]).outcome().stdout;
    assert!(shown.contains("one seat") && shown.contains("for others"), "{shown}");
}

/// `StartLimitIntervalSec`: "of each unit", as the policy of the page has it.
#[test]
fn each_unit_has_a_start_limit_of_its_own() {
    let page = page();
    let (_, text) =
        policies(&page).into_iter().find(|(name, _)| *name == "systemd.toml").expect("the policy");
    let site = Site::new();
    site.policy(&text.replace("version = 1\n", "version = 1\ndefaults.directory = \"$DIR/repositories\"\n"));
    for program in ["backup", "restore"] {
        site.copy_of("/bin/true", program);
    }
    let run = |words: &[&str]| site.test().args(["run", "--"]).args(words).outcome();
    assert_eq!(run(&["backup", "home"]).ending, Ending::Status(0));
    let again = run(&["backup", "home"]);
    assert_eq!(again.ending, Ending::Status(69), "{again:?}");
    assert!(again.stderr.contains("too soon"), "{again:?}");
    // Other units have started as seldom.
    assert_eq!(run(&["backup", "srv"]).ending, Ending::Status(0));
    assert_eq!(run(&["restore"]).ending, Ending::Status(0));
    assert_eq!(run(&["restore"]).ending, Ending::Status(69));
}
