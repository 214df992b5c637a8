//! Launches keep the rules that may be for their command: the others cannot matter to them, and have no fault.

use std::{cell::RefCell, fmt::Write as _, fs};

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{TestError, TestRunner},
};

use super::mutations::{Damage, EVERYTHING, damage, damages};
use crate::{
    corpora::{
        launches::{NEXT_FILE, Tally, compare},
        policy::words,
    },
    policy::examples::policies,
};

/// Every form of a rule, in a system's file with a drop-in, a given file and one of the caller's own.
const PLAIN: &str = r#"version = 1 # of the language
[defaults]
directory = "/run/rungate"
time_zone = "UTC"
[alias]
tools = ["mex", "@more", "m*"]
more  = ["sol?er", "/opt/*/bin/x"]
people = ["ann", "%cad", 2001]
[command.matlab]
exec = "/opt/matlab" # not the one that is found
[repository.a]
limit = 5
[repository.each]
per = "user"
limit = 2
[repository.group]
per = "group"
limit = 3
[[rule]]
name     = "one"     # the first
commands = ["matlab", '/opt/x/**/mex',
            "tool-?", # in two lines
           ]
acquire  = ["a", { repository = "each", ceiling = 1 }]
wait     = "2h"
hold     = "tree"
message  = "One ä."
[[rule]]
commands = ["@tools"]
users    = ["ann", "%cad", "+lab", "1000-9999", 5, "@people"]
groups   = ["cad", "sim*"]
hosts    = ["ws*"]
acquire  = [ "group" ]
except   = [{ users = ["bob"], directories = ["/proj/**"] }, { environment = { PROJECT = ["apollo"], X = false } }]
[[rule]]
name     = "night"
commands = ["backup"]
when     = ["22:00-06:00", "2026-12-24..2026-12-26"]
first_of = "f"
order    = -1
acquire  = ["a"]
[[rule]]
name      = "no"
first_of  = "f"
commands  = ["solver", "m"]
arguments = ["-batch", ["-np", "*"], "@people"]
action    = "deny"
message   = ""
[[rule]]
acquire = ["a"]
enforce = true
[rule.environment]
PROJECT = true
[[rule]]
commands = ["mex"]
acquire = ["each"]
[[rule.except]]
users = ["root"]
[[test]]
name = "t"
user = "ann"
groups = ["cad", 2001]
command = "matlab"
arguments = ["-batch"]
environment = { PROJECT = "apollo" }
time = "2026-11-20 14:02"
cpus = 4
use = { a = 3, "each [ann]" = 1 }
expect = "refuse"
by = "rule 2"
[[test]]
name = "u"
command = "mex"
expect = "start"
claims = ["a", { repository = "each [ann]", slots = 1, limit = 2 }]
# next file
[repository.a]
limit = 7
path = "own.lock"
[[rule]]
name     = "one"
commands = ["svc-*", "matlab"]
acquire  = ["a"]
[[rule]]
commands = ["@tools"]
acquire  = ["a", "each"]
# next file
[alias]
tools = ["zip"]
[[rule]]
name = "rule 2"
commands = ["@tools", "mex"]
acquire = ["each"]
# next file
[log]
to = "off"
[[rule]]
commands = ["*"]
acquire = ["each"]
"#;

/// A main file with a department's: aliases and repositories of the same names, and rules that take what is
/// the department's own and lower what is the site's.
const DELEGATED: &str = r#"version = 1
[alias]
tools = ["mex"]
[delegate."20-cad.toml"]
owner = 1
users = ["%cad", "ann", 2000]
commands = ["ma*", "@tools", "tool*"]
[repository.a]
limit = 5
[repository.each]
per = "user"
limit = 2
[[rule]]
name = "one"
commands = ["@tools", "matlab", "zip"]
acquire = ["a", "each"]
[[rule]]
name = "two"
commands = ["solver"]
acquire = [{ repository = "a", ceiling = 3 }]
# next file
[alias]
tools = ["matlab"]
[repository.own]
limit = 2
[repository.each]
per = "user"
limit = 1
[[rule]]
name = "one"
commands = ["@tools"]
acquire = [{ repository = "a", ceiling = 4 }]
[[rule]]
commands = ["mex", "zip"]
acquire = ["own", "each", { repository = "a", ceiling = 1 }]
when = ["22:00-06:00"]
[[rule]]
commands = ["tool-?"]
users = ["ann"]
action = "deny"
[[test]]
name = "t"
command = "mex"
user = "ann"
groups = ["cad"]
time = "2026-11-20 23:00"
expect = "start"
# next file
[[rule]]
commands = ["zip", "@tools"]
acquire = ["a"]
"#;

/// The policies that come with rungate, each with all of its files, and those in which every form stands.
fn texts() -> Vec<String> {
    let read = |path| fs::read_to_string(path).expect("a policy");
    let of_files = |files: Vec<_>| files.into_iter().map(read).collect::<Vec<_>>().join(NEXT_FILE);
    let ours = [PLAIN, DELEGATED, EVERYTHING].map(str::to_owned);
    policies().into_iter().map(of_files).chain(ours).collect()
}

/// For words that stand in them, be they commands or not: each fifth, and in each text from another on.
#[test]
fn every_policy_here_is_the_same_for_a_launch() {
    for (place, text) in texts().into_iter().enumerate() {
        let mut tally = Tally::default();
        compare(&text, (place % 5..words(&text, usize::MAX).len()).step_by(5), &mut tally);
        assert!(tally.judged > 0 && tally.faulty == 0, "{tally:?}\n{text}");
    }
}

/// What is wrong with a rule for another command is a fault of the policy.
#[test]
fn no_fault_is_left_out() {
    let faults = [
        "[[rule]]\nname = \"z\"\ncommands = [\"q\"]\nacquire = [\"a\"]\n[[rule]]\nname = \"z\"\ncommands = [\"q\"]\nacquire = [\"a\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nusers = [\"@nobody\"]\nacquire = [\"a\"]\n",
        "[[rule]]\ncommands = [\"q\"]\narguments = [\"@nobody\"]\nacquire = [\"a\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\n[rule.enviroment]\nX = true\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\naction = \"deny\"\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\nacquire = [\"a\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\nusers = [\"!ann\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\nusers = [\"9-1\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\nmessage = \"\\q\"\n",
        "[[rule]]\ncommands = [\"q/q\"]\nacquire = [\"a\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"group\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"b\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\nwhen = [\"25:00-26:00\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"] [[rule]]\n",
        "[[rule]]\ncommands = [\"q\"]\n",
        "[rule]\n",
        "[log]\nrule = 1\n",
    ];
    for fault in faults {
        let mut tally = Tally::default();
        compare(&PLAIN.replacen(NEXT_FILE, &format!("{fault}{NEXT_FILE}"), 1), 0..3, &mut tally);
        assert!(tally.judged == 0 && tally.faulty > 0, "{tally:?} {fault}");
    }
}

/// What is wrong with a test is no fault for launches.
#[test]
fn tests_are_left_out() {
    let faults = [
        "[[test]]\nname = \"t\"\ncommand = \"q\"\nexpect = \"refuse\"\nby = \"nothing\"\n",
        "[[test]]\nname = \"t\"\ncommand = \"q\"\nexpect = \"start\"\nclaims = [\"b [x]\"]\n",
        "[[test]]\nname = \"t\"\ncommand = \"q\"\nexpect = \"start\"\ntime = \"noon\"\n",
        "[[test]]\nname = \"t\"\nexpect = \"start\"\n",
    ];
    for fault in faults {
        let mut tally = Tally::default();
        compare(&PLAIN.replacen(NEXT_FILE, &format!("{fault}{NEXT_FILE}"), 1), 0..3, &mut tally);
        assert!(tally.judged > 0 && tally.faulty == 0, "{tally:?} {fault}");
    }
}

/// What a department may not say is a fault for its launches.
#[test]
fn no_fault_of_a_department_is_left_out() {
    let faults = [
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"own\", { repository = \"a\", slots = 1 }]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [{ repository = \"a\" }]\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"own\"]\nenforce = false\n",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"of nobody\"]\n",
        "[[rule]]\ncommands = [\"@others\"]\nacquire = [\"own\"]\n",
        "[command.q]\nexec = \"/opt/q\"\n",
        "[log]\nto = \"off\"\n",
        "[defaults]\nwait = \"1m\"\n",
    ];
    for fault in faults {
        let mut tally = Tally::default();
        let [main, cad, given] = DELEGATED.splitn(3, NEXT_FILE).collect::<Vec<_>>()[..] else {
            panic!("three files")
        };
        let text = [main, &format!("{cad}{fault}"), given].join(NEXT_FILE);
        compare(&text, 0..3, &mut tally);
        assert!(tally.judged == 0 && tally.faulty > 0, "{tally:?} {fault}");
    }
}

/// Most of what is damaged so is still a policy, and another one.
fn slips() -> impl Strategy<Value = Damage> {
    let words = [
        "\"@tools\", ",
        "\"matlab\", ",
        "\"a\"",
        "\"!x\"",
        "\"{p}\"",
        "name = \"one\"\n",
        "commands = [\"m*\"]\n",
        "acquire = [\"a\"]\n",
        "acquire = [\"group\"]\n",
        "action = \"deny\"\n",
        "when = [\"22:00-06:00\"]\n",
        "[[test]]\n",
        "[rule.x]\n",
        "[log]\n",
        "# next file\n",
        "'''",
        "rule = 1\n",
        "x.y = 2\n",
        "users = [4294967295]\n",
        "wait = \"1x\"\n",
        " ",
        "\t",
        "[[rule]]\ncommands = [\"q\"]\nacquire = [\"a\"]\n",
        "[[rule]]\nname = \"rule 2\"\ncommands = [\"q\"]\naction = \"deny\"\n",
        "\"/x/\"",
        "order = 08\n",
        "expect = \"start\"\n",
        "by = \"one\"\n",
        "_",
        "+",
    ];
    (0..10_000usize, select(words.to_vec())).prop_map(|(at, word)| Damage::Insert(at, word))
}

/// More of them: `RUNGATE_STORM=200 cargo test --test tests damaged_texts -- --nocapture`.
#[test]
fn damaged_texts_are_the_same_for_a_launch() {
    let tally = RefCell::new(Tally::default());
    let texts = (select(texts()), vec(prop_oneof![damages(), slips()], 0..4), 0..7usize);
    let ran = TestRunner::new(super::cases(300)).run(&texts, |(text, damages, first)| {
        let text = damages.iter().fold(text, |text, one| damage(&text, one));
        compare(&text, (first..words(&text, usize::MAX).len()).step_by(7), &mut tally.borrow_mut());
        Ok(())
    });
    if let Err(TestError::Fail(reason, (_, damages, first))) = &ran {
        panic!("{reason}\n{damages:?} {first}");
    }
    let tally = tally.borrow();
    crate::support::tell(&format!("{tally:?}"));
    assert!(tally.judged > 20 && tally.omitted > 20 && tally.faulty > 20, "{tally:?}");
}

/// So many rules as a large site has, in so many files, and how many of them a launch leaves out.
fn site(rules: usize, files: usize) -> Tally {
    let mut texts = vec![String::new(); files];
    texts[0].push_str(
        "version = 1\n[repository.r0]\nlimit = 50\n[[rule]]\ncommands = [\"true\"]\nacquire = [\"r0\"]\n",
    );
    for number in 1..rules {
        let _ = writeln!(
            texts[number * files / rules],
            "[[rule]]\nname = \"rule {number}\"\n\
             commands = [\"cmd{number}\", \"tool{number}-*\", \"/opt/x{number}/*/bin/y\"]\n\
             groups = [\"games\"]\nacquire = [\"r0\"]"
        );
    }
    let mut tally = Tally::default();
    compare(&texts.join(NEXT_FILE), 0..1, &mut tally);
    tally
}

#[test]
fn of_a_thousand_rules_all_but_one_are_left_out() {
    for files in [1, 4] {
        let tally = site(1000, files);
        // As root and as somebody else.
        assert_eq!((tally.judged, tally.omitted, tally.faulty), (2, 2 * 999, 0), "{tally:?}");
    }
}
