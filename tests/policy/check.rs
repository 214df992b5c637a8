//! Every fault of every file is reported at once as `path:line:col: message` with the line, a caret and,
//! if there is one, the nearest valid spelling; then nothing is applied (78).

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Ending, Site, Terminal, Test, needs_root, needs_tmux, set_mode, storm_size};

/// Ten mistakes, of ten kinds, the line of each told by its comment.
const TEN_MISTAKES: &str = r#"version = 1

[defaults]
directory = "/run/rungate"
unmached = "refuse"                                 # 5: a key that does not exist

[repository.seats]
limit = "many"                                      # 8: no limit

[repository.unlimited]                              # 10: no limit at all
path = "unlimited.lock"

[repository.outside]
path = "../outside.lock"                            # 14: leads out of the directory
limit = 1

[[rule]]
name = "one"
commands = ["matlab"]
acquire = ["saets"]                                 # 20: a repository that does not exist

[[rule]]
name = "one"                                        # 23: a name that was given before
acquire = ["seats"]

[[rule]]
name = "two"
users = ["!alice"]                                  # 28: excludes nothing
acquire = ["seats"]

[[rule]]
name = "three"
first_of = "family"                                 # 33: not with an exemption
action = "exempt"

[[rule]]
name = "four"
action = "allow"                                    # 38: no such action

[[rule]]
name = "five"
acquire = [{ repository = "unlimited", slots = 0 }] # 42: out of range
"#;

/// Reported at once: ten places in one run, in the order in which they stand, each with its line and a
/// caret.
#[test]
fn ten_mistakes_are_ten_places_in_one_run() {
    let site = Site::new();
    site.write("policy.toml", TEN_MISTAKES);
    let outcome = site.test().args(["policy", "check", "$DIR/policy.toml"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(1), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    let prefix = site.expand("$DIR/policy.toml:");
    let places: Vec<(usize, usize, &str)> = outcome
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .filter(|line| !line.contains(": warning: "))
        .map(|line| {
            let mut parts = line.splitn(3, ':');
            let mut number = || parts.next().and_then(|part| part.parse().ok()).expect("path:line:col:");
            let (line, column) = (number(), number());
            (line, column, parts.next().expect("a message"))
        })
        .collect();
    let lines: Vec<usize> = places.iter().map(|(line, _, _)| *line).collect();
    assert_eq!(lines, [5, 8, 10, 14, 20, 23, 28, 33, 38, 42], "{}", outcome.stderr);
    // Each has a code of its own, and where something similar exists, it is named.
    let mut codes: Vec<&str> =
        places.iter().map(|(_, _, text)| &text[text.rfind('[').expect("a code")..]).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 10, "{codes:?}");
    assert!(places[0].2.contains("did you mean \"unmatched\"?"), "{}", places[0].2);
    assert!(places[4].2.contains("did you mean \"seats\"?"), "{}", places[4].2);
    // The line itself follows, with a caret below the column.
    for ((line, column, _), text) in places.iter().zip(lines_of_mistakes()) {
        let gutter = format!("{line} | ");
        let shown = format!("{gutter}{text}");
        let at = outcome
            .stderr
            .find(&shown)
            .unwrap_or_else(|| panic!("line {line} is not shown: {}", outcome.stderr));
        let below = outcome.stderr[at..].lines().nth(1).expect("a line with a caret");
        let caret = below.find('^').expect("a caret");
        assert_eq!(below[..caret].chars().count(), gutter.len() + column - 1, "{shown}\n{below}");
    }
}

fn lines_of_mistakes() -> Vec<&'static str> {
    let number = |line: &str| -> Option<usize> { line.split("# ").nth(1)?.split(':').next()?.parse().ok() };
    TEN_MISTAKES.lines().filter(|line| number(line).is_some()).collect()
}

/// A policy that has any fault starts nothing (78): each of the ten alone is enough.
#[test]
fn any_fault_starts_nothing() {
    let site = Site::new();
    site.program("matlab");
    site.write("policy.toml", TEN_MISTAKES);
    site.test()
        .args(["run", "--policy", "$DIR/policy.toml", "--", "matlab"])
        .stderr("rungate: matlab: not started: the policy has 10 faults\n...\n")
        .status(78);
}

/// Of several files the first is the main file, which alone can delegate, wherever it is.
#[test]
fn the_first_file_is_the_main_one() {
    let site = Site::new();
    let delegates =
        "version = 1\n[delegate.\"20-cad.toml\"]\nowner = \"root\"\nusers = [1]\ncommands = [\"x\"]\n";
    fs::create_dir(site.path("work/site.d")).expect("a directory");
    set_mode(&site.path("work/site.d"), 0o755);
    site.write("work/site.d/policy.toml", delegates);
    site.write("work/policy.toml", "version = 1\n");
    let check = |files: &[&str]| site.test().args(["policy", "check"]).args(files);
    check(&["site.d/policy.toml"]).status(0);
    check(&["policy.toml", "site.d/policy.toml"]).stderr("[..][delegate-elsewhere]\n...\n").status(1);
    site.write("work/30-more.toml", delegates);
    check(&["policy.toml", "30-more.toml"]).stderr("[..][delegate-elsewhere]\n...\n").status(1);
    // A directory with drop-ins alone has no main file. Files with other names are none.
    site.write("work/site.d/0-notes", "no policy\n");
    fs::rename(site.path("work/site.d/policy.toml"), site.path("work/site.d/10-more.toml")).expect("rename");
    site.test()
        .args(["policy", "diff", "policy.toml", "site.d"])
        .stderr("[..]\n[..][delegate-elsewhere]\n...\n")
        .status(78);
}

/// A test has the result of a launch, also if two repositories have one file.
#[test]
fn a_test_agrees_with_a_launch_about_a_file_of_two_repositories() {
    let site = Site::with_policy(
        r#"
        repository.a = { path = "m.lock", limit = 1 }
        repository.b = { path = "m.lock", limit = 1 }

        [[rule]]
        commands = ["matlab"]
        acquire  = [{ any_of = ["a", "b"] }]

        [[test]]
        name    = "the second"
        command = "matlab"
        use     = { a = 1 }
        expect  = "refuse"
        "#,
    );
    site.program("matlab");
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    site.test().args(["run", "--", "matlab"]).stderr("rungate: matlab: not started: [..]\n...\n").status(75);
    site.test().args(["policy", "check"]).stdout("1 test passed\n").status(0);
}

#[test]
fn a_policy_without_faults_is_fine() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 1

        [[rule]]
        name    = "seats"
        acquire = ["seats"]
        "#,
    );
    site.test().args(["policy", "check"]).status(0);
    site.test().args(["policy", "check", "--strict"]).status(0);
    // "Warnings alone give 0, with `--strict` 1."
    site.policy("[repository.seats]\nlimit = 1\n");
    let warned = "
        $DIR/policy.toml:4:13: warning: no rule uses repository \"seats\" [unused-repository]
          |
        4 | [repository.seats]
          |             ^^^^^
        rungate: 1 warning
    ";
    site.test().args(["policy", "check"]).stderr(warned).status(0);
    site.test().args(["policy", "check", "--strict"]).stderr(warned).status(1);
}

#[test]
fn files_are_checked_by_name() {
    let site = Site::new();
    site.write("good.toml", "version = 1\n");
    site.write("bad.toml", "version = 2\n");
    let check = |files: &[&str]| site.test().args(["policy", "check"]).args(files);
    let version = "$DIR/bad.toml:1:11: unsupported version; this rungate supports version 1 \
        [unknown-version]\n...\nrungate: 1 fault\n";
    check(&["$DIR/good.toml"]).status(0);
    check(&["$DIR/bad.toml"]).stderr(version).status(1);
    check(&["$DIR/good.toml", "$DIR/bad.toml"]).stderr(version).status(1);
    check(&["$DIR/none.toml"])
        .stderr("$DIR/none.toml: there is no such file [missing-file]\nrungate: 1 fault\n")
        .status(1);
}

/// `policy show`: the merged policy. What it prints is a policy, and it prints that again.
#[test]
fn show_prints_a_policy() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [repository.each]
        per   = "user"
        limit = 1

        [[rule]]
        name     = "seats"
        commands = ["matlab", "m*"]
        users    = ["%users", "1000-1999", "0"]
        except   = [{ users = ["root"], hosts = ["ws*"] }]
        acquire  = [{ repository = "seats", ceiling = 2 }, { any_of = ["each", "seats"] }]
        message  = "a \"quoted\" word"
        "#,
    );
    let first = site.test().args(["policy", "show"]).outcome();
    assert_eq!(first.ending, Ending::Status(0), "{first:?}");
    assert_eq!(first.stderr, "");
    for word in ["seats", "each", "limit = 3", "ceiling = 2", "any_of", "1000-1999", "ws*"] {
        assert!(first.stdout.contains(word), "{word}: {}", first.stdout);
    }
    site.write("shown.toml", &first.stdout);
    let shown = site.test().env_remove("RUNGATE_POLICY");
    shown.clone().args(["policy", "check", "$DIR/shown.toml"]).status(0);
    let second = shown.args(["policy", "show", "--policy", "$DIR/shown.toml"]).outcome();
    let body = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(body(&second.stdout), body(&first.stdout));
}

/// A policy with something of everything, of which nothing lets `tool` start.
const REFUSING: &str = r#"
version = 1

[defaults]
directory = "$DIR/repositories"
unmatched = "refuse"
create_mode = "0666"

[repository.none]
limit = 0

[repository.each]
per = ["user", "command"]
limit = 0
nested = "take"

[repository.path]
path = "deep/{user}-{arg1}.lock"
limit = 3

[command.other]
exec = "/bin/true"

[[rule]]
name = "full"
commands = ["tool", "/**/tool"]
users = ["*", "%users", "0-99"]
except = [{ users = ["somebody"] }]
acquire = ["none", { repository = "path", ceiling = 0 }]

[[rule]]
name = "family"
first_of = "family"
order = 2
arguments = [["-n", "*"]]
acquire = [{ any_of = ["none", "each"] }]

[[rule]]
name = "denied"
commands = ["t*"]
action = "deny"
message = "no"
"#;

/// What may be put into a policy in the place of something else.
const PIECES: [&str; 36] = [
    "",
    "\n",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    "#",
    ".",
    "..",
    "/",
    "\\",
    "*",
    "**",
    "!",
    "%",
    "@",
    "-1",
    "0",
    "1e9",
    "18446744073709551616",
    "true",
    "\u{0}",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{fffd}",
    "rule",
    "tool",
    "{arg1}",
    "{runtime}",
    "\"\"\"",
];

#[derive(Clone, Debug)]
enum Mutation {
    /// Replaces so many characters from here on by one of the pieces. Positions are taken modulo the length.
    Replace {
        at: usize,
        length: usize,
        piece: usize,
    },
    DropLine(usize),
    RepeatLine(usize),
    SwapLines(usize, usize),
    Cut(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let position = 0..2_000_usize;
    prop_oneof![
        6 => (position.clone(), 0..9_usize, 0..PIECES.len())
            .prop_map(|(at, length, piece)| Mutation::Replace { at, length, piece }),
        2 => position.clone().prop_map(Mutation::DropLine),
        1 => position.clone().prop_map(Mutation::RepeatLine),
        1 => (position.clone(), position.clone()).prop_map(|(one, other)| Mutation::SwapLines(one, other)),
        1 => position.prop_map(Mutation::Cut),
    ]
}

fn mutate(text: &str, mutations: &[Mutation]) -> String {
    mutations.iter().fold(text.to_owned(), |text, mutation| {
        let mut lines: Vec<&str> = text.lines().collect();
        let (count, length) = (lines.len().max(1), text.chars().count().max(1));
        match *mutation {
            Mutation::Replace { at, length: removed, piece } => {
                let at = at % length;
                let before = text.chars().take(at);
                return before.chain(PIECES[piece].chars()).chain(text.chars().skip(at + removed)).collect();
            }
            Mutation::Cut(at) => return text.chars().take(at % length).collect(),
            _ if lines.is_empty() => {}
            Mutation::DropLine(at) => drop(lines.remove(at % count)),
            Mutation::RepeatLine(at) => lines.insert(at % count, lines[at % count]),
            Mutation::SwapLines(one, other) => lines.swap(one % count, other % count),
        }
        lines.join("\n") + "\n"
    })
}

/// Mutated policies never panic and never start anything by accident: whatever has a fault starts nothing,
/// and what starts something has no fault.
#[test]
fn storm_of_mutated_policies_never_panics_and_starts_nothing_by_accident() {
    let site = Site::new();
    site.script("tool", "#!/bin/sh\necho started\n");
    let run = site.test().args(["run", "--policy", "$DIR/mutated.toml", "--", "tool", "-n", "4"]);
    // The launcher would only become it.
    let tools = site.rungate().with_file_name("rungate-tools");
    let check = site.test().program(tools).args(["policy", "check", "$DIR/mutated.toml"]);
    // The policy as it stands refuses, so that a start can only come of a mutation.
    site.write("mutated.toml", REFUSING);
    run.clone().stderr("rungate: tool: refused: [..]\n...\n").status(77);

    let cases = storm_size(200).try_into().expect("a number of cases");
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&prop::collection::vec(mutation(), 1..4), |mutations| {
        site.write("mutated.toml", &mutate(REFUSING, &mutations));
        judge(&run, &check)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn judge(run: &Test, check: &Test) -> Result<(), TestCaseError> {
    let ran = run.outcome();
    prop_assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    let Ending::Status(status) = ran.ending else { return Err(TestCaseError::fail(format!("{ran:?}"))) };
    prop_assert!([0, 71, 74, 75, 77, 78, 127].contains(&status), "{ran:?}");
    prop_assert_eq!(ran.stdout == "started\n", status == 0, "{:?}", ran);
    prop_assert_eq!(ran.stderr.is_empty(), status == 0, "{:?}", ran);
    // The check agrees with the launch on whether there is a fault. It is asked where it matters.
    if status == 0 {
        let checked = check.outcome();
        prop_assert_eq!(checked.ending, Ending::Status(0), "{:?}", checked);
    }
    Ok(())
}

/// On a terminal a long line is broken between words, and what is to be copied is not; whatever reads what
/// was redirected gets each fault as one line.
#[test]
fn on_a_terminal_lines_are_broken_between_words() {
    needs_tmux!();
    let site = Site::new();
    site.write("work/p.toml", "[repository.a]\nper = [\"user\", \"machine\"]\nlimit = 1\n");
    let check = format!("{} policy check --policy p.toml", site.rungate().display());
    let terminal = Terminal::open_for(site.test(), (72, 20));
    terminal.command(&format!("{check} 2>redirected; clear; {check}"));
    let screen = terminal.shows("rungate: 1 fault");
    let said: Vec<&str> = screen.lines().take_while(|line| line.trim() != "|").collect();
    let redirected = fs::read_to_string(site.path("work/redirected")).expect("what was redirected");
    let whole = redirected.lines().next().expect("a fault");
    assert!(said.len() > 1 && said.iter().skip(1).all(|line| line.starts_with("  ")), "{screen}");
    let joined = said.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    assert_eq!(joined, whole, "{screen}");
}

/// A command of which only a neighbour exists on this host is a warning.
#[test]
fn a_command_that_is_misspelt_is_a_warning() {
    needs_root!();
    let site = Site::new();
    site.directory_over_run();
    let rule = |name: &str| format!("[[rule]]\ncommands = [\"{name}\"]\nacquire = [\"seats\"]\n");
    let policy = |name: &str| {
        site.system_policy(&format!("version = 1\n[repository.seats]\nlimit = 1\n{}", rule(name)));
        site.path("etc/rungate/policy.toml")
    };
    site.program("matlab");
    fs::write(site.path("system-run/rungate/seats.lock"), "").expect("a lock file");
    set_mode(&site.path("system-run/rungate/seats.lock"), 0o666);
    let check = || site.test().args(["policy", "check", "--strict"]);
    policy("matlab");
    check().status(0);
    policy("matlb");
    check()
        .stderr(
            "
            matlb was not found on this host; did you mean matlab? [program-misspelt]
              Correct the name; or, if users have the program in another place: [command.matlb] exec = \"/path/matlb\"
            rungate: 1 warning
            ",
        )
        .status(1);
    // A name for `--as` is no program, and resembles none.
    policy("nightly-sync");
    check().status(0);
}

/// No program has a path over a link, because programs are known by directories without links. The check resolves the
/// paths of a policy, which no launch does.
#[test]
fn a_path_over_a_link_is_found() {
    needs_root!();
    let site = Site::new();
    site.directory_over_run();
    let policy = |pattern: &str| {
        site.system_policy(&format!(
            "version = 1\n[[rule]]\nname = \"tools\"\ncommands = [\"{pattern}\"]\naction = \"deny\"\n"
        ));
    };
    fs::create_dir(site.path("real")).expect("a directory");
    symlink(site.path("real"), site.path("current")).expect("a link");
    let check = || site.test().args(["policy", "check", "--strict"]);
    for name in ["*", "tool", "{a,b}/c"] {
        policy(&format!("$DIR/current/{name}"));
        let warning = format!(
            "rule \"tools\": no program has the path $DIR/current/{name}, because $DIR/current leads to $DIR/real [program-linked]\n  Write $DIR/real/{name}\nrungate: 1 warning\n"
        );
        check().stderr(&warning).status(1);
    }
    for pattern in ["$DIR/real/*", "$DIR/real/tool", "$DIR/missing/*", "/*/tool", "/tool", "tool*"] {
        policy(pattern);
        check().status(0);
    }
}

/// "Check one FILE as if it were already in place."
#[test]
fn a_file_is_checked_as_it_would_be_in_place() {
    needs_root!();
    let site = Site::new();
    site.directory_over_run();
    site.program("matlab");
    let main = "version = 1\n[repository.seats]\nlimit = 5\n";
    site.system_policy(main);
    let rule = "[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n";
    // It needs a repository of the main file.
    site.write("work/tmp.1234", &format!("version = 1\n{rule}"));
    let check = |name: &str| site.test().args(["policy", "check", "--as", name, "tmp.1234"]);
    site.test().args(["policy", "check", "tmp.1234"]).stderr("...\nrungate: 1 fault\n").status(1);
    check("20-x.toml").status(0);
    assert!(!site.path("etc/rungate/policy.d").exists(), "nothing is made by a look");
    check("20-x")
        .stderr("rungate: [..]/20-x would not be read: the name of a drop-in ends in .toml\n")
        .status(64);
    check("../x.toml").stderr("rungate: --as takes policy.toml or [..]\n").status(64);
    // As the main file it has no such repository; what stands there now does not count.
    check("policy.toml")
        .stderr("/etc/rungate/policy.toml:[..] [unknown-repository]\n...\nrungate: 1 fault\n")
        .status(1);
    // And with slots that the agent keeps.
    let kept = format!(
        "version = 1\n[repository.tokens]\nkeeper = \"agent\"\nlimit = 1\n{}",
        rule.replace("seats", "tokens")
    );
    site.write("work/tmp.1234", &kept);
    check("20-x.toml").stderr("...\nrungate: 1 warning\n").status(0);
    check("policy.toml").status(0);
    site.test()
        .args(["policy", "check", "--as", "policy.toml", "tmp.1234", "tmp.1234"])
        .stderr("rungate: --as is for one file\n")
        .status(64);
}
