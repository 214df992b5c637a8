//! The rooms of the house: which may use which. Judgement (`judge` over `policy`) and mechanism (`acquire` over
//! `keeper` over `sys`) know nothing of each other but the terms of claims, they meet in `launch`, `agent` and
//! `tools`, and only `sys` speaks to the system.

mod circles;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each room, and the rooms that it may use besides itself and the leaves.
const MAY_USE: [(&str, &[&str]); 12] = [
    ("main", &["launch"]),
    ("bin", &["agent", "tools"]),
    ("tools", &["acquire", "agent", "judge", "keeper", "launch", "policy", "sys"]),
    ("agent", &["acquire", "judge", "keeper", "launch", "policy", "sys"]),
    ("launch", &["acquire", "judge", "keeper", "policy", "sys"]),
    ("acquire", &["judge", "keeper", "sys"]),
    ("keeper", &["judge", "sys"]),
    ("judge", &["policy"]),
    ("policy", &["judge"]),
    ("cli", &["sys"]),
    ("text", &["sys"]),
    ("sys", &[]),
];

/// Rooms that know of judgement nothing but the words of a claim.
const TERMS_ALONE: [&str; 3] = ["acquire", "keeper", "policy"];

/// What everybody may use.
const LEAVES: [&str; 2] = ["cli", "text"];

/// The one file that reaches beyond its module: it reads policy files, and must know whom they belong to.
const EXCEPTION: (&str, &str) = ("src/policy/source.rs", "sys");

/// The crates that speak to the system or to a terminal, and where they may stand.
const SPEAKERS: [(&str, &[&str]); 9] = [
    ("ureq", &[ETCD]),
    ("rustls", &[ETCD]),
    ("base64", &[ETCD]),
    ("nix", &["src/sys/"]),
    ("libc", &["src/sys/"]),
    ("rustix", &["src/sys/"]),
    ("users", &["src/sys/"]),
    ("crossterm", &["src/tools/inspect/screen.rs"]),
    ("ratatui", &["src/tools/inspect/screen.rs", WATCH]),
];

/// The only part that speaks over a network.
const ETCD: &str = "src/agent/site/etcd/";

/// The only part that fills the terminal, so that no launch has anything to do with it.
const WATCH: &str = "src/tools/inspect/watch/";

/// The one file with calls that the compiler cannot check, and those that must stand under the name that C
/// gives to the start of a program.
const UNSAFE: [&str; 3] = ["src/sys/unsafe_calls.rs", "src/main.rs", "src/bin/tools.rs"];

/// Every source file, relative to the package.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(package().join(&directory)).expect("a directory of sources") {
            let entry = entry.expect("an entry of the directory");
            let path = directory.join(entry.file_name());
            if entry.file_type().expect("the type of an entry").is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 10, "the sources are not where this test looks for them");
    found
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `src/policy/source.rs` and `src/policy.rs` are both `policy`.
fn module_of(path: &Path) -> String {
    let first = path.components().nth(1).expect("a source file is below src").as_os_str();
    first.to_str().expect("modules have plain names").trim_end_matches(".rs").to_owned()
}

/// The lines of code, with their numbers: no comments, no tests. An import that goes over several lines is
/// one.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(package().join(path)).expect("a source file");
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_start()))
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.starts_with("//"));
    let mut code: Vec<(usize, String)> = Vec::new();
    for (number, line) in lines {
        match code.last_mut() {
            Some((_, last)) if is_import(last) && !last.ends_with(';') => last.push_str(line),
            _ => code.push((number, line.to_owned())),
        }
    }
    code
}

fn is_import(line: &str) -> bool {
    line.trim_start_matches("pub ")
        .trim_start_matches("pub(super) ")
        .trim_start_matches("pub(crate) ")
        .starts_with("use ")
}

/// The names that follow `crate::` in a line of code, also in a group: `use crate::{policy::{Rule, Place},
/// sys};`.
fn names_after(prefix: &str, line: &str) -> Vec<String> {
    let first_word =
        |text: &str| text.trim().chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
    line.match_indices(prefix)
        .map(|(at, _)| (line[..at].chars().next_back(), &line[at + prefix.len()..]))
        .filter(|(before, _)| before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':'))
        .flat_map(|(_, rest)| if rest.starts_with('{') { members(rest) } else { vec![rest] })
        .map(first_word)
        .filter(|name: &String| !name.is_empty())
        .collect()
}

/// What stands between the commas of the group that the text begins with, inner groups left whole.
fn members(group: &str) -> Vec<&str> {
    let mut members = Vec::new();
    let (mut depth, mut start) = (0, 1);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => {
                members.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 1 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members
}

/// The design: Judgement and mechanism are two wings that know nothing of each other; only `launch`, `agent`
/// and `tools` turn a decision's claims into slots.
#[test]
fn each_module_uses_only_the_floors_below() {
    let mut wrong = Vec::new();
    for path in sources() {
        let module = module_of(&path);
        if module == "lib" {
            continue;
        }
        let allowed = MAY_USE.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed);
        let prefix = if ["main", "bin"].contains(&module.as_str()) { "rungate::" } else { "crate::" };
        for (number, line) in code(&path) {
            for used in names_after(prefix, &line) {
                let exception = path.starts_with(EXCEPTION.0) && used == EXCEPTION.1;
                let below = allowed.is_some_and(|allowed| allowed.contains(&used.as_str()))
                    && !(used == "judge"
                        && TERMS_ALONE.contains(&module.as_str())
                        && line.split("judge::").skip(1).any(|rest| !rest.starts_with("terms::")));
                if used != module && !exception && !below && !LEAVES.contains(&used.as_str()) {
                    wrong.push(format!("{}:{number}: {module} uses {used}: {line}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The seam: the protocol says who may have what, and a keeper what is held and where. So the protocol meets
/// keepers through their enums alone, and no keeper knows another one, or the protocol.
#[test]
fn the_protocol_knows_no_byte_no_path_and_no_descriptor() {
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|path| module_of(path) == "acquire") {
        for (number, line) in code(&path) {
            let names = ["file::", "FileLocation", "std::path", "std::fs", "os::fd", "record_lock", "layout"];
            if let Some(name) = names.iter().find(|name| line.contains(**name)) {
                wrong.push(format!("{}:{number}: {name}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The design: `sys`: the only place with nix, libc, rustix, users, and `screen` the only one with
/// crossterm.
#[test]
fn each_crate_that_speaks_has_its_place() {
    let mut wrong = Vec::new();
    for path in sources() {
        for (number, line) in code(&path) {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let parts: Vec<&str> = words.flat_map(|word| word.rsplit("::").skip(1)).collect();
            for (name, places) in SPEAKERS {
                if parts.contains(&name) && !places.iter().any(|place| path.starts_with(place)) {
                    wrong.push(format!("{}:{number}: {line}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The design: unsafe code forbidden except where a system call leaves no choice (one file).
#[test]
fn unsafe_code_is_where_it_is_looked_at() {
    for path in sources() {
        let here = code(&path)
            .iter()
            .any(|(_, line)| line.contains("unsafe ") || line.contains("allow(unsafe_code"));
        assert!(
            !here || UNSAFE.iter().any(|file| path == Path::new(file)),
            "{} has unsafe code",
            path.display()
        );
    }
}

/// Files that read what others can write: contents and locks of a repository, logs, `/proc`, the environment.
const READS_OF_OTHERS: [&str; 23] = [
    "src/text/escape.rs",
    "src/launch/environment.rs",
    "src/launch/log/event.rs",
    "src/tools/logs/parsers.rs",
    "src/text/json.rs",
    "src/keeper/agent/frame.rs",
    "src/keeper/agent/wire.rs",
    "src/keeper/file/content.rs",
    "src/keeper/file/expiry.rs",
    "src/keeper/file/expiry/grouped.rs",
    "src/keeper/file/header.rs",
    "src/keeper/file/holder.rs",
    "src/keeper/file/layout.rs",
    "src/keeper/file/line.rs",
    "src/keeper/file/held.rs",
    "src/keeper/file/scan.rs",
    "src/keeper/file/record.rs",
    "src/keeper/file/prune.rs",
    "src/keeper/file/view.rs",
    "src/keeper/occupancy.rs",
    "src/sys/descriptor.rs",
    "src/sys/record_lock.rs",
    "src/sys/process.rs",
];

/// CONTRIBUTING.md: Where a file reads what others can write, lints on arithmetic and indexing are errors.
#[test]
fn what_others_can_write_is_read_without_overflow_or_index() {
    let line = "deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice)";
    for path in READS_OF_OTHERS {
        let text = fs::read_to_string(package().join(path)).expect("a source file");
        assert!(text.contains(line), "{path} does not deny what it should");
    }
}

/// Every subcommand is entered in one way: `run`, with its arguments as the command line defines them,
/// and with who asks and from where if it needs that.
#[test]
fn subcommands_are_entered_in_one_way() {
    let code = code(Path::new("src/tools/dispatch.rs"));
    let lines = code.iter().map(|(_, line)| line.trim_end_matches(','));
    let arms: Vec<&str> = lines.filter(|line| line.starts_with("Action::")).collect();
    assert!(arms.len() > 10, "the subcommands are not where this test looks for them");
    for arm in arms {
        let (action, entry) = arm.split_once(" => ").expect("an arm of one line");
        let (module, call) = entry.split_once("::").expect("a function of a module");
        assert!(action.eq_ignore_ascii_case(&format!("Action::{module}(arguments)")), "{arm}");
        let ways = ["", ", policy", ", here()?", ", &here()?"].map(|more| format!("run(arguments{more})"));
        assert!(ways.iter().any(|way| way == call), "{arm}");
    }
}

/// The house rule: every file opens with a paragraph that says what it is and what it must not do.
#[test]
fn every_file_opens_with_a_paragraph() {
    for path in sources() {
        let text = fs::read_to_string(package().join(&path)).expect("a source file");
        assert!(text.starts_with("//! "), "{} does not open with a //! paragraph", path.display());
    }
}

/// What writes text that others chose as it is, or by a list of its own of what is escaped.
const BARE: [&str; 7] =
    [".display()", "escape_debug", "escape_default", "escape_unicode", "escape_ascii", ":?}", ":#?}"];

/// The one list of what is escaped, and what stops a test run with its text.
const ESCAPES: [&str; 3] = ["src/text/escape.rs", "src/text/stream.rs", "src/text/stream.rs"];

/// CONTRIBUTING.md: "Text that others chose is escaped where a message is made of it."
/// A file that has grown beyond this is about two things: a shorter cap cut types into chapters with open fields.
#[test]
fn files_are_short() {
    for path in sources() {
        let lines = fs::read_to_string(package().join(&path)).expect("a source file").lines().count();
        assert!(lines <= 900, "{} has {lines} lines", path.display());
    }
}

/// What comments say is as wide as the code beside them; what is drawn in columns, and what has no gap, may
/// be wider.
#[test]
fn comments_obey_the_width_of_the_code() {
    let width = fs::read_to_string(package().join("rustfmt.toml")).expect("the settings of rustfmt");
    let width: usize =
        width.lines().find_map(|line| line.strip_prefix("max_width = ")?.parse().ok()).expect("a width");
    for path in sources() {
        let text = fs::read_to_string(package().join(&path)).expect("a source file");
        for (index, line) in text.lines().enumerate() {
            let comment = line.trim_start();
            let could_be_broken = comment.starts_with("//") && comment.matches(' ').count() > 1;
            let is_drawn = comment.contains("   ") || comment.contains('|');
            let is_fine = line.chars().count() <= width || !could_be_broken || is_drawn;
            assert!(is_fine, "{}:{} is wider than {width}", path.display(), index + 1);
        }
    }
}

#[test]
fn text_of_others_is_escaped_in_one_way() {
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|path| !ESCAPES.iter().any(|file| path == Path::new(file))) {
        for (number, line) in code(&path) {
            if BARE.iter().any(|bare| line.contains(bare)) {
                wrong.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Crates that no launch needs.
const NOT_FOR_LAUNCHES: [&str; 9] =
    ["clap_builder", "comfy_table", "crossterm", "flate2", "ratatui", "ring", "rustls", "ureq", "uzers"];

/// The crates whose code is in a program, by the names of its symbols.
fn crates_in(program: &Path) -> BTreeSet<String> {
    let symbols =
        Command::new("nm").arg("--demangle").arg(program).output().expect("nm(1) of binutils, as ld(1)");
    let symbols = String::from_utf8(symbols.stdout).expect("demangled names are text");
    let words = symbols.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    words.filter_map(|word| word.split_once("::")).map(|(name, _)| name.to_owned()).collect()
}

/// The launcher stays a small program: what only the rest needs is in the second one, and no terminal or
/// HTTP library ever goes into the launcher.
#[test]
fn the_launcher_has_nothing_that_launches_do_not_need() {
    let launcher = Path::new(env!("CARGO_BIN_EXE_rungate"));
    let (launcher, tools) = (crates_in(launcher), crates_in(&launcher.with_file_name("rungate-tools")));
    for name in NOT_FOR_LAUNCHES {
        assert!(!launcher.contains(name), "{name} is in the launcher: {launcher:?}");
    }
    assert!(launcher.contains("rungate") && tools.contains("clap_builder") && tools.contains("comfy_table"));
}

/// CONTRIBUTING.md: Each has a reason. A new one needs a row here.
#[test]
fn every_dependency_has_its_reason() {
    let read = |name: &str| fs::read_to_string(package().join(name)).expect("a file of the package");
    let (manifest, reasons) = (read("Cargo.toml"), read("CONTRIBUTING.md"));
    let rows: Vec<&str> = reasons.lines().filter(|line| line.starts_with("| ")).collect();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let ("[dependencies]" | "[dev-dependencies]", Some((name, _))) =
            (section, line.split_once(" = "))
        {
            let has_row = |row: &&str| row.split('|').nth(1).is_some_and(|cell| cell.contains(name));
            assert!(rows.iter().any(has_row), "{name} has no row in CONTRIBUTING.md");
        }
    }
}

#[test]
fn names_are_found_wherever_they_stand() {
    assert_eq!(names_after("crate::", "use crate::policy::Rule;"), ["policy"]);
    assert_eq!(names_after("crate::", "use crate::{sys::Lock, policy};"), ["sys", "policy"]);
    let nested = "use crate::{commands::{print, names::{A, B}}, decision, exit_status::ExitStatus,};";
    assert_eq!(names_after("crate::", nested), ["commands", "decision", "exit_status"]);
    assert_eq!(names_after("crate::", "let a = crate::sys::now() + crate::output::b();"), ["sys", "output"]);
}
