//! The floors of the house: which module may use which. Judgement (`decision` over `policy`) and mechanism (`launch`
//! over `repository` over `sys`) know nothing of each other, and only `sys` speaks to the system.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module, and the modules of the crate that it may use besides itself and the leaves.
const MAY_USE: [(&str, &[&str]); 9] = [
    ("main", &["commands"]),
    ("commands", &["decision", "policy", "launch", "repository", "log", "sys"]),
    ("decision", &["policy"]),
    ("policy", &["diagnostic"]),
    ("launch", &["repository", "sys"]),
    ("repository", &["sys"]),
    ("log", &["sys"]),
    ("output", &["sys"]),
    ("sys", &[]),
];

/// What everybody may use, because it uses nobody but its like.
const LEAVES: [&str; 6] = ["cli", "output", "exit_status", "error", "diagnostic", "deliberate_fault"];

/// The one file that reaches beyond its module: it reads policy files, and must know whom they belong to.
const EXCEPTION: (&str, &str) = ("src/policy/source.rs", "sys");

/// The crates that speak to the system.
const SYSTEM: [&str; 4] = ["nix", "libc", "rustix", "users"];

/// The one file with calls that the compiler cannot check, and the one that must stand under the name that C gives to
/// the start of a program.
const UNSAFE: [&str; 2] = ["src/sys/unsafe_calls.rs", "src/main.rs"];

/// Every source file, relative to the package.
fn sources() -> Vec<PathBuf> {
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

/// The lines of code, with their numbers: no comments, no tests. An import that goes over several lines is one.
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

/// The names that follow `crate::` in a line of code, also in a group: `use crate::{policy::{Rule, Place}, sys};`.
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

/// The design: "Judgement and mechanism are two wings that know nothing of each other; only `commands` turns a
/// decision's claims into slots."
#[test]
fn each_module_uses_only_the_floors_below() {
    let mut wrong = Vec::new();
    for path in sources() {
        let module = module_of(&path);
        if module == "lib" {
            continue;
        }
        let allowed = MAY_USE.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed);
        let prefix = if module == "main" { "rungate::" } else { "crate::" };
        for (number, line) in code(&path) {
            for used in names_after(prefix, &line) {
                let exception = path == Path::new(EXCEPTION.0) && used == EXCEPTION.1;
                let below = allowed.is_some_and(|allowed| allowed.contains(&used.as_str()));
                if used != module && !exception && !below && !LEAVES.contains(&used.as_str()) {
                    wrong.push(format!("{}:{number}: {module} uses {used}: {line}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The design: "`sys`: the only place with nix, libc, rustix, users".
#[test]
fn only_one_module_speaks_to_the_system() {
    let mut wrong = Vec::new();
    for path in sources().into_iter().filter(|path| module_of(path) != "sys") {
        for (number, line) in code(&path) {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            if words.into_iter().any(|word| SYSTEM.iter().any(|name| word.starts_with(&format!("{name}::"))))
            {
                wrong.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The design: "unsafe code forbidden except where a system call leaves no choice (one file)".
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
const READS_OF_OTHERS: [&str; 24] = [
    "src/launch/depth.rs",
    "src/launch/environment.rs",
    "src/log/event.rs",
    "src/log/history.rs",
    "src/output/json.rs",
    "src/output/visible.rs",
    "src/repository/admission.rs",
    "src/repository/admitted.rs",
    "src/repository/expiry.rs",
    "src/repository/header.rs",
    "src/repository/holder.rs",
    "src/repository/layout.rs",
    "src/repository/line.rs",
    "src/repository/nested.rs",
    "src/repository/occupancy.rs",
    "src/repository/record.rs",
    "src/repository/reset.rs",
    "src/repository/survey.rs",
    "src/sys/descriptor.rs",
    "src/sys/kernel_locks.rs",
    "src/sys/open_files.rs",
    "src/sys/proc_file.rs",
    "src/sys/process.rs",
    "src/sys/record_lock.rs",
];

/// CONTRIBUTING.md: "Where a file reads what others can write, lints on arithmetic and indexing are errors."
#[test]
fn what_others_can_write_is_read_without_overflow_or_index() {
    let line = "deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice)";
    for path in READS_OF_OTHERS {
        let text = fs::read_to_string(package().join(path)).expect("a source file");
        assert!(text.contains(line), "{path} does not deny what it should");
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

/// CONTRIBUTING.md: "Each has a reason. A new one needs a row here."
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
