//! `rungate metrics`: what a monitoring system reads, checked by Prometheus' own tool.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::support::{Account, Ending, Outcome, Site, eventually, needs_root, set_mode, skip};

fn site() -> Site {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"

        [repository.seats]
        limit   = 2
        reserve = [{ users = ["%adm"], slots = 1 }]

        [repository.per-directory]
        per   = "directory"
        limit = 4

        [[rule]]
        name     = "seats"
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        name     = "builds"
        commands = ["build"]
        acquire  = ["per-directory"]

        [[rule]]
        name     = "not here"
        commands = ["virtuoso"]
        action   = "deny"
        "#,
    );
    for program in ["matlab", "build", "virtuoso"] {
        site.program(program);
    }
    site
}

#[track_caller]
fn metrics(site: &Site) -> String {
    let Outcome { stdout, stderr, ending } = site.test().args(["metrics"]).outcome();
    assert_eq!((ending, stderr.as_str()), (Ending::Status(0), ""));
    stdout
}

#[track_caller]
fn has(text: &str, sample: &str) {
    assert!(text.lines().any(|line| line == sample), "{sample} is not in\n{text}");
}

/// The metrics are limit, use, what is kept, who waits, and the age of the oldest holder of every
/// repository; and starts and refusals where the policy logs to a file of JSON lines.
#[test]
fn every_repository_has_its_samples() {
    let site = site();
    has(&metrics(&site), "rungate_refusals_total{repository=\"seats\",reason=\"full\",enforced=\"true\"} 0");
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    let waiting = site.test().args(["run", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &waiting);
    let _build = site.test().directory("work").args(["run", "--", "build"]).spawn();
    assert_eq!(site.test().args(["run", "--", "matlab"]).outcome().ending, Ending::Status(75));
    assert_eq!(site.test().args(["run", "--", "virtuoso"]).outcome().ending, Ending::Status(77));
    let text = metrics(&site);
    for sample in [
        "rungate_repository_readable{repository=\"seats\"} 1",
        "rungate_slots_limit{repository=\"seats\"} 2",
        "rungate_slots_used{repository=\"seats\"} 1",
        "rungate_slots_kept{repository=\"seats\"} 1",
        "rungate_launches_waiting{repository=\"seats\"} 1",
        "rungate_slots_unaccounted{repository=\"seats\"} 0",
        "rungate_refusals_total{repository=\"seats\",reason=\"full\",enforced=\"true\"} 1",
        "rungate_refusals_total{reason=\"denied\",enforced=\"true\"} 1",
        "rungate_starts_total{repository=\"seats\"} 1",
        "rungate_starts_total{repository=\"per-directory\"} 1",
        "rungate_expired_holders_total{repository=\"seats\"} 0",
    ] {
        has(&text, sample);
    }
    for name in ["rungate_oldest_holder_age_seconds", "rungate_oldest_waiter_age_seconds"] {
        let sample = format!("{name}{{repository=\"seats\"}} ");
        let age = text.lines().find_map(|line| line.strip_prefix(&sample)?.parse::<f64>().ok());
        assert!((0.0..3600.0).contains(&age.expect(name)), "{text}");
    }
    assert!(text.contains("rungate_slots_used{repository=\"per-directory\",member=\""), "{text}");
    drop((running, waiting));
}

/// A member may be called anything.
#[test]
fn a_member_may_be_called_anything() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        path  = "seats-{command}"
        limit = 1

        [[rule]]
        name    = "all"
        acquire = ["seats"]
        "#,
    );
    let name = "a\"b\\c\n# HELP d";
    site.program(name);
    let _running = site.test().args(["run", "--", name]).spawn();
    let text = metrics(&site);
    assert!(
        text.contains("rungate_slots_used{repository=\"seats\",member=\"a\\\"b\\\\\\\\c\\\\n# HELP d\"} 1"),
        "{text}"
    );
    promtool_accepts(&site, &text);
}

fn promtool_accepts(site: &Site, text: &str) {
    if !Path::new("/usr/bin/promtool").exists() {
        return skip("promtool(1) is not installed: it is in Debian's package prometheus");
    }
    let promtool = site.test().program("/usr/bin/promtool").args(["check", "metrics"]);
    promtool.clone().stdin(text).status(0);
    let wrong =
        promtool.stdin(text.replace("# TYPE rungate_slots_used gauge", "# TYPE rungate_slots_used g"));
    assert_ne!(wrong.outcome().ending, Ending::Status(0), "it would say so");
}

/// What is shipped for monitoring, with its own tests: when each alert is raised and when not.
#[test]
fn the_alerts_are_raised_when_they_should_be() {
    if !Path::new("/usr/bin/promtool").exists() {
        return skip("promtool(1) is not installed: it is in Debian's package prometheus");
    }
    let site = Site::new();
    for file in ["rungate.rules.yml", "rungate.tests.yml"] {
        site.write(format!("work/{file}"), &shipped(file));
    }
    let promtool = |arguments: [&str; 3]| {
        site.test().program("/usr/bin/promtool").directory("work").args(arguments).outcome().ending
    };
    assert_eq!(promtool(["check", "rules", "rungate.rules.yml"]), Ending::Status(0));
    assert_eq!(promtool(["test", "rules", "rungate.tests.yml"]), Ending::Status(0));
    site.write("work/rungate.rules.yml", &shipped("rungate.rules.yml").replace("for: 1h", "for: 2h"));
    assert_ne!(promtool(["test", "rules", "rungate.tests.yml"]), Ending::Status(0), "they would fail");
}

fn shipped(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/monitoring").join(file);
    fs::read_to_string(path).expect("it is there")
}

/// Alerts and dashboard ask for nothing that there is not.
#[test]
fn what_is_asked_for_is_there() {
    let known = metrics(&site());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut asked = 0;
    for file in ["rungate.rules.yml", "grafana-dashboard.json"] {
        let text = shipped(file);
        for name in text.split(|c| !is_word(c)).filter(|word| word.starts_with("rungate_")) {
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(known.contains(&format!("# TYPE {family} ")), "{file} asks for {name}");
            asked += 1;
        }
    }
    assert!(asked > 10, "{asked}");
    let dashboard: serde_json::Value =
        serde_json::from_str(&shipped("grafana-dashboard.json")).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ends: Vec<u64> = panels
        .iter()
        .map(|panel| ["x", "w"].map(|side| panel["gridPos"][side].as_u64().expect("a number")).iter().sum())
        .collect();
    assert!(ends.iter().all(|end| *end <= 24), "a panel beyond the edge: {ends:?}");
}

/// Whatever a panel asks for, Prometheus understands, once Grafana has put values in the place of its
/// variables.
#[test]
fn the_panels_speak_the_language_of_prometheus() {
    if !Path::new("/usr/bin/promtool").exists() {
        return skip("promtool(1) is not installed: it is in Debian's package prometheus");
    }
    let dashboard: serde_json::Value =
        serde_json::from_str(&shipped("grafana-dashboard.json")).expect("it is JSON");
    let names = dashboard["templating"]["list"].as_array().expect("variables").iter();
    let names: Vec<&str> = names.map(|variable| variable["name"].as_str().expect("a name")).collect();
    let mut rules = String::from("groups:\n- name: panels\n  rules:\n");
    for target in
        dashboard["panels"].as_array().expect("panels").iter().filter_map(|panel| panel["targets"].as_array())
    {
        for query in target {
            let query = query["expr"].as_str().expect("a question");
            let known = names.iter().fold(query.replace("$__rate_interval", "5m"), |query, name| {
                query.replace(&format!("${name}"), "x")
            });
            assert!(!known.contains('$'), "a variable that the dashboard does not have: {query}");
            rules += &format!(
                "  - record: panel\n    expr: {known:?}\n    labels: {{number: \"{}\"}}\n",
                rules.len()
            );
        }
    }
    let site = Site::new();
    let check = |rules: &str| {
        site.write("work/panels.yml", rules);
        site.test()
            .program("/usr/bin/promtool")
            .directory("work")
            .args(["check", "rules", "panels.yml"])
            .outcome()
    };
    let outcome = check(&rules);
    assert_eq!(outcome.ending, Ending::Status(0), "{}{}", outcome.stdout, outcome.stderr);
    assert_ne!(check(&rules.replacen('(', "((", 1)).ending, Ending::Status(0), "it would say so");
}

/// `promtool check metrics` accepts them: names, units, kinds and escapes follow the conventions.
#[test]
fn promtool_has_nothing_to_say() {
    let site = site();
    promtool_accepts(&site, &metrics(&site));
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!(site.test().args(["run", "--", "matlab"]).outcome().ending, Ending::Status(75));
    promtool_accepts(&site, &metrics(&site));
}

/// The agent says of itself how long its decisions take, whom it declined, and who waits and holds.
#[test]
fn the_agent_counts_what_it_does() {
    needs_root!();
    let policy = "[repository.seats]\nkeeper = \"agent\"\nlimit = 1\n\
                  [[rule]]\nname = \"seats\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n";
    let (site, agent) = Site::with_agent(policy);
    agent.kill();
    site.program("matlab");
    site.system_file("agent.toml", "[agent]\nlaunches = 1\n");
    set_mode(&site.path("etc/rungate/agent.toml"), 0o600);
    let _agent = site.agent();
    let figure = |name: &str| -> String {
        let text = metrics(&site);
        promtool_accepts(&site, &text);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in\n{text}")).to_owned()
    };
    let decisions = "rungate_agent_decision_duration_seconds_count";
    assert_eq!([figure(decisions), figure("rungate_agent_launches_holding")], ["0", "0"]);
    let _running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let refused = site.test().user("nobody").args(["run", "--", "matlab"]).outcome();
    assert_eq!(refused.ending, Ending::Status(75));
    assert_eq!([figure(decisions), figure("rungate_agent_launches_holding")], ["2", "1"]);
    assert_eq!(figure("rungate_agent_declined_total"), "0");
    // The second launch of the same user is more than the quota.
    let declined = site.test().user("games").args(["run", "--", "matlab"]).outcome();
    assert_eq!(declined.ending, Ending::Status(74), "{}", declined.stderr);
    assert_eq!(figure("rungate_agent_declined_total"), "1");
    let in_all = "rungate_agent_decision_duration_seconds_bucket{le=\"+Inf\"}";
    assert_eq!(figure(in_all), figure(decisions));
    let sum: f64 = figure("rungate_agent_decision_duration_seconds_sum").parse().expect("a number");
    assert!(sum > 0.0, "{sum}");
    let waiting = site.test().user("nobody").args(["run", "-w", "forever", "--", "matlab"]).background();
    eventually("it waits", || (figure("rungate_agent_launches_waiting") == "1").then_some(()));
    drop(waiting);
}

/// With --output the file is replaced as a whole, with mode 0644, whatever the umask.
#[test]
fn a_file_is_replaced_as_a_whole() {
    let site = site();
    let output = site.path("work/rungate.prom");
    let elsewhere = site.path("work/elsewhere");
    fs::write(&elsewhere, "not to be touched\n").expect("a file");
    std::os::unix::fs::symlink(&elsewhere, &output).expect("a link in place of the file");
    let test = site.test().program("/bin/sh").args(["-c", "umask 0777; exec \"$0\" \"$@\""]);
    test.args([site.rungate().as_os_str()]).args(["metrics", "--output", "rungate.prom"]).status(0);
    let metadata = fs::symlink_metadata(&output).expect("the file");
    assert!(metadata.is_file(), "the link was replaced");
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o644);
    assert_eq!(fs::read_to_string(&elsewhere).expect("the other file"), "not to be touched\n");
    has(&fs::read_to_string(&output).expect("the metrics"), "rungate_slots_limit{repository=\"seats\"} 2");
    site.test()
        .args(["metrics", "--output", "missing/rungate.prom"])
        .stderr(
            "rungate: $DIR/work/missing/rungate.prom cannot be written: open: No such file or directory\n",
        )
        .status(71);
    site.test()
        .args(["metrics", "--output", "."])
        .stderr("rungate: $DIR/work/. cannot be written: rename: [..]\n")
        .status(71);
    let names: Vec<String> = fs::read_dir(site.path("work"))
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("prom"))
        .collect();
    assert_eq!(names, ["rungate.prom"], "nothing is left behind");
    assert_eq!(metadata.uid(), Account::own().uid);
}

/// What cannot be checked is missing, and the rest is there nevertheless.
#[test]
fn what_cannot_be_read_does_not_hide_the_rest() {
    needs_root!();
    let site = site();
    drop(site.test().args(["run", "--", "matlab"]).spawn());
    drop(site.test().args(["run", "--", "build"]).spawn());
    set_mode(&site.repository("seats.lock"), 0o600);
    let outcome = site.test().user("games").args(["metrics"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(71));
    assert_eq!(
        outcome.stderr,
        site.expand(
            "rungate: seats: cannot open $DIR/repositories/seats.lock: open: Permission denied\n\
             rungate: the log $DIR/work/log.jsonl cannot be read: Permission denied\n"
        )
    );
    has(&outcome.stdout, "rungate_repository_readable{repository=\"seats\"} 0");
    assert!(
        outcome.stdout.contains("rungate_slots_used{repository=\"per-directory\","),
        "{}",
        outcome.stdout
    );
    assert!(!outcome.stdout.contains("rungate_refusals_total"), "{}", outcome.stdout);
}
