//! The manual pages are written by hand, and kept complete by these tests: each option, subcommand, key and
//! exit status of the code stands in its page, and no page tells of an option that there is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;
use rungate::cli::CommandLine;
use serde_json::Value;

use crate::policy::examples::has_nothing_doubtful;
use crate::support::{Site, skip};

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A page as a reader sees it, without overstriking and with single blanks.
fn page(name: &str) -> String {
    let path = package().join("man").join(name);
    let output = Command::new("mandoc").args(["-T", "ascii"]).arg(&path).output().expect("mandoc runs");
    let text = String::from_utf8(output.stdout).expect("ASCII");
    assert!(!text.is_empty(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    let mut plain = String::new();
    for c in text.chars() {
        // Bold is a letter, a backspace, and the letter again.
        if c == '\u{8}' {
            plain.pop();
        } else {
            plain.push(c);
        }
    }
    plain.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn has_mandoc() -> bool {
    Command::new("mandoc").arg("-V").output().is_ok()
}

/// The words of a page, without the punctuation around them.
fn words(page: &str) -> BTreeSet<&str> {
    page.split(|c: char| c.is_whitespace() || "[](){}|,;:\"'`=".contains(c))
        .map(|word| word.trim_end_matches('.'))
        .collect()
}

/// Every command of the tree with its path: `policy check`.
fn commands(command: &clap::Command, path: &str) -> Vec<(String, clap::Command)> {
    let mut found = vec![(path.to_owned(), command.clone())];
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        found.extend(commands(inner, format!("{path} {}", inner.get_name()).trim_start()));
    }
    found
}

/// The names of all pages.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(package().join("man")).expect("man");
    let mut pages: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect();
    pages.sort();
    assert!(pages.len() > 15, "{pages:?}");
    pages
}

/// The page of a subcommand by its path: `policy check` is in rungate-policy(1).
fn page_of(path: &str) -> String {
    match path.split_whitespace().next() {
        None => "rungate.1".to_owned(),
        Some("shim") => "rungate-shim.8".to_owned(),
        Some(subcommand) => format!("rungate-{subcommand}.1"),
    }
}

/// Each subcommand has a page, which has all of its options or, if several commands have one, the overview.
/// The overview names the page.
#[test]
fn every_command_and_option_is_in_the_manual() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let overview = page("rungate.1");
    let common = words(&overview);
    let mut missing = Vec::new();
    for (path, command) in commands(&CommandLine::command(), "") {
        let name = page_of(&path);
        let own = page(&name);
        let words = words(&own);
        let (title, section) = name.split_once('.').expect("a section");
        let is_listed = path.is_empty() || overview.contains(&format!("{title}({section})"));
        if !is_listed || !own.contains(format!("rungate {path}").trim_end()) {
            missing.push(format!("rungate {path}"));
        }
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            let is_told = |name: &String| words.contains(name.as_str()) || common.contains(name.as_str());
            let names = [long, short].into_iter().flatten();
            missing.extend(names.filter(|name| !is_told(name)).map(|name| format!("{path} {name}")));
        }
    }
    assert!(missing.is_empty(), "not in the manual: {missing:#?}");
}

#[test]
fn every_option_in_the_manual_exists() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let known: BTreeSet<String> = commands(&CommandLine::command(), "")
        .iter()
        .flat_map(|(_, command)| {
            command
                .get_arguments()
                .filter_map(|argument| argument.get_long().map(str::to_owned))
                .collect::<Vec<String>>()
        })
        .chain(["help", "version"].map(str::to_owned))
        .collect();
    // The agent and the measuring commands are other programs, and recipes name options of many.
    let others = ["rungate-agent.8", "rungate-measure.1", "rungate-recipes.7"];
    let is_ours = |name: &String| !others.contains(&name.as_str());
    for name in pages().into_iter().filter(is_ours) {
        let page = page(&name);
        let is_option = |word: &&str| word.len() > 2 && word.starts_with("--") && !word.starts_with("---");
        for word in words(&page).into_iter().filter(is_option) {
            assert!(known.contains(&word[2..]), "{name} tells of {word}");
        }
    }
}

/// The keys are those that the reader of policies knows: the schema is written from the same tables.
#[test]
fn every_key_of_a_policy_is_in_the_manual() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let keys = keys_of_a_policy();
    assert!(keys.contains("limit") && keys.contains("commands") && keys.len() > 60, "{keys:?}");
    let page = page("rungate-policy.5");
    let words = words(&page);
    let missing: Vec<&String> = keys.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "not in rungate-policy(5): {missing:?}");
}

/// The same of the agent's settings.
#[test]
fn every_key_of_the_agents_settings_is_in_the_manual() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let page = page("rungate-agent.8");
    let words = words(&page);
    let missing: Vec<&str> = rungate::policy::AgentFile::keys().filter(|key| !words.contains(key)).collect();
    assert!(missing.is_empty(), "not in rungate-agent(8): {missing:?}");
}

/// Every key that a policy can have.
pub(crate) fn keys_of_a_policy() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    add_keys(&rungate::policy::schema(), &mut keys);
    keys
}

/// The keys of all tables of a schema.
fn add_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        keys.extend(properties.keys().cloned());
    }
    let below = schema.as_object().into_iter().flat_map(|object| object.values());
    below.chain(schema.as_array().into_iter().flatten()).for_each(|schema| add_keys(schema, keys));
}

/// The examples of rungate-policy(5), each with all of its files. One that begins with the path of a drop-in
/// belongs to the policy before it. One that only shows repositories gets a rule for each of them.
fn examples() -> Vec<Vec<(String, String)>> {
    let page = fs::read_to_string(package().join("man/rungate-policy.5")).expect("a page");
    let mut examples: Vec<Vec<(String, String)>> = Vec::new();
    for block in page.split("\n.Bd -literal").skip(1) {
        let (_, block) = block.split_once('\n').expect("a first line");
        let text = block.split("\n.Ed").next().expect("an end").replace(r"\&", "");
        let drop_in = text.lines().next().and_then(|line| line.strip_prefix("# /etc/rungate/policy.d/"));
        match (drop_in.map(str::to_owned), examples.last_mut()) {
            (Some(name), Some(example)) => example.push((name, text)),
            _ => examples.push(vec![("policy.toml".into(), with_rules(text))]),
        }
    }
    examples
}

/// A policy with a rule for each of its repositories, if it has no rule.
fn with_rules(mut policy: String) -> String {
    if policy.contains("acquire") {
        return policy;
    }
    let words = policy.clone();
    for part in words.split("repository.").skip(1) {
        let name = part.split([']', ' ', '=']).next().expect("a name").trim();
        let groups = if part.contains("\"group\"") { "groups = [\"cad\", \"sim\"]\n" } else { "" };
        policy += &format!("\n[[rule]]\ncommands = [\"x\"]\n{groups}acquire = [\"{name}\"]\n");
    }
    policy
}

/// Each key with a full example: all of them are policies that start something, and no key is without one.
#[test]
fn every_example_is_a_policy_and_every_key_is_in_one() {
    let mut missing = keys_of_a_policy();
    let examples = examples();
    assert!(examples.len() > 20, "{}", examples.len());
    for example in examples {
        let site = Site::new();
        for (name, text) in &example {
            site.write(name, text);
            missing.retain(|key| !has_key(text, key));
        }
        let files: Vec<PathBuf> = example.iter().map(|(name, _)| site.path(name)).collect();
        has_nothing_doubtful(&files);
    }
    assert!(missing.is_empty(), "no example in rungate-policy(5) has {missing:?}");
}

/// Whether a line or a table of a policy gives this key a value, or a header has it.
pub(crate) fn has_key(text: &str, key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(key).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + key.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        is_word && (after.trim_start_matches(' ').starts_with('=') || before.ends_with('['))
    })
}

#[test]
fn every_code_of_a_fault_is_in_the_manual() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let page = page("rungate-policy.5");
    let words = words(&page);
    let missing: Vec<&str> = rungate::policy::codes().filter(|code| !words.contains(code)).collect();
    assert!(missing.is_empty(), "not in rungate-policy(5): {missing:?}");
}

#[test]
fn every_placeholder_is_in_the_manual() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let page = page("rungate-policy.5");
    for name in
        ["runtime", "user", "uid", "group", "gid", "command", "host", "cwd", "arg1", "args", "env.NAME"]
    {
        assert!(page.contains(&format!("{{{name}}}")), "{{{name}}} is not in rungate-policy(5)");
    }
}

#[test]
fn every_exit_status_is_in_the_manual() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let source = fs::read_to_string(package().join("src/text/error.rs")).expect("the statuses");
    let statuses: Vec<&str> =
        source.lines().filter_map(|line| line.trim().strip_suffix(',')?.split(" = ").nth(1)).collect();
    assert!(statuses.contains(&"75") && statuses.len() > 9, "{statuses:?}");
    let page = page("rungate.1");
    let section = page.split("EXIT STATUS").nth(1).expect("a section on exit statuses");
    let words = words(section);
    let missing: Vec<&&str> = statuses.iter().filter(|status| !words.contains(**status)).collect();
    assert!(missing.is_empty(), "not in rungate(1): {missing:?}");
}

/// The pages that say more than one subcommand: those of the programs, of the policy, and of a launch.
const PAGES: [&str; 4] = ["rungate.1", "rungate-agent.8", "rungate-policy.5", "rungate-shim.8"];

/// The source of a page from one heading up to the next.
fn section(name: &str, heading: &str) -> String {
    let text = fs::read_to_string(package().join("man").join(name)).expect("a page");
    let (_, after) = text
        .split_once(&format!("\n.Sh {heading}\n"))
        .unwrap_or_else(|| panic!("{name} has no section {heading}"));
    after.split("\n.Sh ").next().expect("a first part").to_owned()
}

/// Each page with examples and what to read next; the main ones with EXIT STATUS, FILES and ENVIRONMENT. What
/// cooperative means, NFS, absolute paths, cron and sudo are in NOTES.
#[test]
fn every_page_has_what_one_looks_for() {
    for name in pages() {
        for heading in ["NAME", "DESCRIPTION", "SEE ALSO"] {
            assert!(section(&name, heading).len() > 20, "{name}: {heading}");
        }
        // Recipes are examples.
        assert!(name == "rungate-recipes.7" || section(&name, "EXAMPLES").len() > 20, "{name}");
    }
    for name in PAGES {
        for heading in ["ENVIRONMENT", "FILES", "EXIT STATUS"] {
            assert!(section(name, heading).len() > 20, "{name}: {heading}");
        }
    }
    for name in ["rungate-run.1", "rungate-agent.8", "rungate-policy.5", "rungate-shim.8"] {
        let notes = section(name, "NOTES");
        for word in ["cooperative", "absolute path", "cron", "sudo", "PATH"] {
            assert!(notes.contains(word), "the notes of {name} do not speak of {word}");
        }
    }
    assert!(section("rungate-run.1", "NOTES").contains("NFS"), "the notes do not speak of NFS");
}

/// The overview fits on few screens, and `man -k rungate` lists every page with what it is for.
#[test]
fn the_overview_is_short_and_every_page_says_what_it_is_for() {
    let overview = fs::read_to_string(package().join("man/rungate.1")).expect("the overview");
    for name in pages() {
        let what =
            section(&name, "NAME").lines().find_map(|line| line.strip_prefix(".Nd ").map(str::to_owned));
        let what = what.unwrap_or_default();
        assert!(what.split_whitespace().count() > 3 && what.len() < 75, "{name}: {what}");
        let (title, section) = name.split_once('.').expect("a section");
        assert!(title == "rungate" || overview.contains(&format!(".Sy {title} Ns No ({section})")), "{name}");
    }
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let shown = Command::new("mandoc").args(["-T", "ascii"]).arg(package().join("man/rungate.1")).output();
    let lines = shown.expect("mandoc runs").stdout.split(|byte| *byte == b'\n').count();
    assert!(lines < 180, "{lines} lines");
}

/// No page tells of a status that there is not.
#[test]
fn every_exit_status_in_the_manual_exists() {
    let source = fs::read_to_string(package().join("src/text/error.rs")).expect("the statuses");
    let known: BTreeSet<&str> =
        source.lines().filter_map(|line| line.trim().strip_suffix(',')?.split(" = ").nth(1)).collect();
    for name in PAGES {
        let section = section(name, "EXIT STATUS");
        let told = section.lines().filter_map(|line| line.strip_prefix(".It "));
        let told: Vec<&str> = told.filter(|status| status.parse::<u8>().is_ok()).collect();
        assert!(told.len() > 1 || section.contains(".Sy rungate Ns No (1)"), "{name}: {told:?}");
        for status in told {
            assert!(known.contains(status), "{name} tells of {status}");
        }
    }
}

/// The names in capitals that stand in quotes in the sources, if they are names of variables of the
/// environment: those that are read, and those that programs get.
fn variables() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut todo = vec![package().join("src")];
    while let Some(path) = todo.pop() {
        if path.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            todo.extend(fs::read_dir(path).expect("sources").map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.split("#[cfg(test)]").next().expect("a first part");
        for line in code.lines() {
            let is_read = ["var_os(", "env::var(", "absolute("].iter().any(|call| line.contains(call));
            for word in line.split('"').skip(1).step_by(2) {
                let is_name = word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                let is_ours = word.starts_with("RUNGATE_") && line.contains("const ");
                let is_list = line.contains("LC_ALL") && word.chars().next().is_some_and(char::is_uppercase);
                if is_name && (is_read || is_ours || is_list) {
                    found.insert(word.to_owned());
                }
            }
        }
    }
    found
}

/// Every variable that the code reads or sets is in a section on the environment, and none else.
#[test]
fn every_variable_is_in_the_manual() {
    let known = variables();
    for name in ["RUNGATE_POLICY", "RUNGATE_HELD", "NO_COLOR", "LANG", "HOME", "PATH"] {
        assert!(known.contains(name), "{name} is not found in the sources: {known:?}");
    }
    let pages = PAGES.into_iter().chain(["rungate-run.1", "rungate-policy.1"]);
    let sections: String = pages.map(|name| section(name, "ENVIRONMENT")).collect();
    for name in known.iter().filter(|name| !name.starts_with('_')) {
        // `RUNGATE_SLOT_` goes on with the name of a repository.
        assert!(sections.contains(&format!("Ev {name}")) || sections.contains(&format!("${name}")), "{name}");
    }
    for name in sections.lines().filter_map(|line| line.strip_prefix(".It Ev ")) {
        for name in name.split(" , Ev ") {
            let is_known =
                known.iter().any(|known| name == known || known.ends_with('_') && name.starts_with(known));
            assert!(is_known, "the manual tells of {name}");
        }
    }
}

/// Every metric that the sources name is in the table of rungate-metrics(1), which `formats::names` promises.
#[test]
fn every_metric_is_in_the_manual() {
    let page = fs::read_to_string(package().join("man/rungate-metrics.1")).expect("the page");
    let mut named = 0;
    for path in crate::modules::sources() {
        let source = fs::read_to_string(package().join(&path)).expect("a source");
        for (at, _) in source.match_indices("\"rungate_") {
            let metric = source[at + 1..].split('"').next().expect("a first part");
            if !metric.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                continue;
            }
            assert!(page.contains(&format!("\n.It Cm {metric}\n")), "{}: {metric}", path.display());
            named += 1;
        }
    }
    assert!(named > 25, "{named}");
}

/// Nothing that mandoc would rather have otherwise.
#[test]
fn the_pages_are_well_formed() {
    if !has_mandoc() {
        return skip("mandoc is not installed");
    }
    let pages = pages().into_iter().map(|name| package().join("man").join(name));
    let output = Command::new("mandoc").args(["-T", "lint"]).args(pages).output().expect("mandoc runs");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The table at the head of "How many": each of its policies does what its line says, and the next launch
/// does not start.
#[test]
fn the_table_of_limits_is_played() {
    let page = fs::read_to_string(package().join("man/rungate-policy.5")).expect("a page");
    let blocks: Vec<&str> = page
        .split("\n.Bd -unfilled -compact\n")
        .skip(1)
        .map(|block| block.split("\n.Ed").next().expect("an end"))
        .collect();
    let names = ["for-each-user", "for-each-project", "more-for-power", "kept-for-cad"];
    assert_eq!(blocks.len(), names.len() + 1);
    let test = |more: &str, used: &str, expect: &str| {
        format!(
            "[[test]]\nname = '{used} {expect}'\ncommand = \"matlab\"\n{more}\nuse = {{ {used} }}\nexpect = \"{expect}\"\n"
        )
    };
    let rule = |name: &str, more: &str| {
        format!("[[rule]]\ncommands = [\"matlab\"]\n{more}\nacquire = [\"{name}\"]\n")
    };
    let both = |more: &str, used: &dyn Fn(u32) -> String, most: u32| {
        test(more, &used(most - 1), "start") + &test(more, &used(most), "refuse")
    };
    let (ann, cad, power) = ("user = \"ann\"", "groups = [\"cad\"]", "user = \"ann\"\ngroups = [\"power\"]");
    let each = |name: &'static str| move |slots| format!("\"{name} [ann]\" = {slots}");
    let by = |group: &'static str| {
        move |slots| format!("kept-for-cad = [{{ user = \"bob\", groups = [\"{group}\"], slots = {slots} }}]")
    };
    let kept = both("user = \"eve\"", &by("sim"), 40) + &both(cad, &by("cad"), 50);
    let project = "arguments = [\"-project=x\"]";
    let of_project = |slots| format!("\"for-each-project [x]\" = {slots}");
    for (block, policy) in blocks.iter().zip([
        rule(names[0], "") + &both(ann, &each("for-each-user"), 4),
        rule(names[1], "arguments = [\"-project={project}\"]") + &both(project, &of_project, 2),
        rule(names[2], "")
            + &both(ann, &each("more-for-power"), 4)
            + &both(power, &each("more-for-power"), 8),
        rule(names[3], "") + &kept,
        blocks[3].to_owned() + "\n" + &both("groups = [\"students\"]", &by("students"), 30),
    ]) {
        let site = Site::new();
        site.write("policy.toml", &format!("{block}\n{policy}"));
        let played = site.test().args(["policy", "check", "$DIR/policy.toml"]).outcome();
        assert!(played.stdout.ends_with(" tests passed\n"), "{played:?}");
    }
}
