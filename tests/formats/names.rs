//! The names that are promised: subcommands and options, exit statuses, keys of policies, codes of faults, metrics,
//! variables and paths. `names.txt` is the sample: each name of it is there in every version 1.x, and new ones are added to
//! it. That a name keeps its meaning is for the tests of its own page.

use std::{collections::BTreeSet, fs, path::Path};

use clap::CommandFactory;
use rungate::cli::{AgentArguments, CommandLine};
use serde_json::Value;

use super::sample;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

fn words(command: &clap::Command, above: &str, names: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        names.extend(long.into_iter().chain(short).map(|option| format!("option {above} {option}")));
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let path = format!("{above} {}", inner.get_name());
        names.insert(format!("subcommand {path}"));
        words(inner, &path, names);
    }
}

fn keys(schema: &Value, above: &str, names: &mut BTreeSet<String>) {
    if !schema.is_object() {
        return;
    }
    if let Some(properties) = schema["properties"].as_object() {
        for (name, of) in properties.iter().filter(|(name, _)| !name.is_empty()) {
            let path = format!("{above}{name}");
            names.insert(format!("key {path}"));
            keys(of, &format!("{path}."), names);
        }
    }
    for inner in ["additionalProperties", "items"] {
        keys(&schema[inner], above, names);
    }
    for inner in ["oneOf", "anyOf", "allOf"].iter().filter_map(|inner| schema[*inner].as_array()).flatten() {
        keys(inner, above, names);
    }
}

/// The words after a macro of a section of a manual page.
fn listed(page: &str, section: &str, kind: &str) -> Vec<String> {
    let page = text(page);
    let section = page.split(&format!(".Sh {section}\n")).nth(1).expect("the section");
    let section = section.split("\n.Sh ").next().expect("its end");
    let lines = section.lines().filter_map(|line| line.strip_prefix(".It "));
    let parts = lines.flat_map(|line| line.split(" , ").map(str::to_owned).collect::<Vec<String>>());
    parts.filter_map(|part| part.trim().strip_prefix(kind).map(|rest| rest.trim().to_owned())).collect()
}

/// All that is there now.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    words(&CommandLine::command(), "rungate", &mut names);
    words(&AgentArguments::command(), "rungate-agent", &mut names);
    keys(&serde_json::from_str(&text("packaging/policy.schema.json")).expect("a schema"), "", &mut names);
    names.extend(rungate::policy::codes().map(|code| format!("code {code}")));
    let is_number = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit());
    names.extend(
        listed("man/rungate.1", "EXIT STATUS", "")
            .into_iter()
            .filter(is_number)
            .map(|of| format!("status {of}")),
    );
    let metrics = text("man/rungate-metrics.1");
    let metrics = metrics.lines().filter_map(|line| line.strip_prefix(".It Cm rungate_")?.split(' ').next());
    names.extend(metrics.map(|metric| format!("metric rungate_{metric}")));
    for page in ["man/rungate.1", "man/rungate-run.1"] {
        let variables = listed(page, "ENVIRONMENT", "Ev");
        let own = variables.into_iter().filter(|name| name.starts_with("RUNGATE_"));
        names.extend(own.map(|name| format!("variable {name}")));
    }
    names.extend(listed("man/rungate.1", "FILES", "Pa").into_iter().map(|path| format!("path {path}")));
    names.extend(listed("man/rungate-agent.8", "FILES", "Pa").into_iter().map(|path| format!("path {path}")));
    names
}

/// No promised name is gone, and each new one is in the sample from its first version on.
#[test]
fn every_promised_name_is_there() {
    let promised = sample("names.txt");
    let promised: BTreeSet<String> = promised
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let now = names();
    let gone: Vec<&String> = promised.difference(&now).collect();
    assert!(gone.is_empty(), "promised for all versions 1.x, and gone: {gone:#?}");
    let new: Vec<&String> = now.difference(&promised).collect();
    if std::env::var_os("RUNGATE_SNAPSHOTS").is_some() && !new.is_empty() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/names.txt");
        let lines = promised.union(&now).map(|name| name.clone() + "\n");
        let head = "# Names that stay in all versions 1.x. A line is added, and never changed or removed.\n";
        fs::write(path, head.to_owned() + &lines.collect::<String>()).expect("the sample");
        return;
    }
    assert!(
        new.is_empty(),
        "new names: RUNGATE_SNAPSHOTS=write adds them to tests/formats/names.txt: {new:#?}"
    );
    for kind in ["subcommand", "option", "key", "code", "status", "metric", "variable", "path"] {
        assert!(now.iter().filter(|name| name.starts_with(kind)).count() > 3, "{kind}");
    }
}
