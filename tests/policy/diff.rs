//! Print what the policy NEW says otherwise than OLD … not in lines.

use std::fs;

use crate::support::{Site, set_mode};

const OLD: &str = r#"version = 1

[repository.matlab]
limit = 50

[repository.gone]
limit = 1

[[rule]]
name     = "seats"
commands = ["matlab", "mex"]
acquire  = ["matlab"]
"#;

const NEW: &str = r#"version = 1

[log]
to = "syslog"

[repository.matlab]
limit = 40
hold  = "tree"

[[rule]]
name     = "seats"
commands = ["matlab", "mcc"]
acquire  = ["matlab"]

[[rule]]
name     = "students stay below 30"
groups   = ["students"]
commands = ["matlab"]
acquire  = [{ repository = "matlab", ceiling = 30 }]
"#;

fn site() -> Site {
    let site = Site::new();
    site.write("work/old.toml", OLD);
    site.write("work/new.toml", NEW);
    site
}

/// What is new is marked with +, what is gone with -, and what says something else with ~.
#[test]
fn the_difference_is_one_of_rules_and_limits() {
    site()
        .test()
        .args(["policy", "diff", "old.toml", "new.toml"])
        .stdout(
            r#"
            + log
                to  "syslog"
            ~ repository matlab (new.toml:6)
                limit  50 -> 40
                hold   not set -> "tree"
            - repository gone (old.toml:6)
                path    "gone.lock"
                limit   1
                keeper  "file"
            ~ rule "seats" (new.toml:10)
                commands  - "mex"
                commands  + "mcc"
            + rule "students stay below 30" (new.toml:15)
                commands  ["matlab"]
                groups    ["students"]
                acquire   [{ repository = "matlab", ceiling = 30 }]
            "#,
        )
        .status(1);
}

/// Of two rules that refuse a launch, the message is that of the first.
#[test]
fn the_order_of_rules_is_a_difference() {
    let site = site();
    let deny = |name: &str| format!("[[rule]]\nname = \"{name}\"\naction = \"deny\"\nmessage = \"{name}\"\n");
    for (file, order) in [("ab.toml", ["a", "b", "c"]), ("ba.toml", ["b", "a", "c"])] {
        site.write(format!("work/{file}"), &format!("version = 1\n{}", order.map(deny).concat()));
    }
    site.test()
        .args(["policy", "diff", "ab.toml", "ba.toml"])
        .stdout("~ order of rules\n    order  [\"a\", \"b\"] -> [\"b\", \"a\"]\n")
        .status(1);
    site.test().args(["policy", "diff", "ab.toml", "ab.toml"]).status(0);
}

/// The status is 0 when the policies say the same.
#[test]
fn what_says_the_same_is_no_difference() {
    let site = site();
    site.write("work/same.toml", &format!("# reviewed\n{}", OLD.replace("limit = 50", "limit=5_0")));
    site.test().args(["policy", "diff", "old.toml", "same.toml"]).status(0);
    site.test().args(["policy", "diff", "old.toml", "-"]).stdin(OLD).status(0);
    site.test().args(["policy", "diff", "-", "same.toml"]).stdin(OLD).status(0);
}

/// A directory that has `policy.toml` and its drop-ins in `policy.d`: wherever a rule stands, it is the
/// same one.
#[test]
fn directories_are_compared_with_their_drop_ins() {
    let site = site();
    let (head, rule) = OLD.split_at(OLD.find("[[rule]]").expect("a rule"));
    fs::create_dir_all(site.path("work/apart/policy.d")).expect("a directory");
    site.write("work/apart/policy.toml", head);
    site.write("work/apart/policy.d/10-rules.toml", rule);
    site.write("work/apart/policy.d/README", "no drop-in");
    for directory in ["work/apart", "work/apart/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    site.test().args(["policy", "diff", "old.toml", "apart"]).status(0);
    site.write("work/apart/policy.d/20-more.toml", "[repository.more]\nlimit = 1\n");
    site.test()
        .args(["policy", "diff", "old.toml", "apart"])
        .stdout("+ repository more (20-more.toml:1)\n...\n")
        .status(1);
    // Others could have put a drop-in there: that is said, and not left out.
    set_mode(&site.path("work/apart/policy.d"), 0o777);
    site.test()
        .args(["policy", "diff", "old.toml", "apart"])
        .stderr("rungate: the policy has 1 fault\n[..]policy.d: [..][untrusted-file]\n...\n")
        .status(78);
}

/// It is 78 when one of them has faults.
#[test]
fn a_policy_with_faults_is_not_compared() {
    let site = site();
    site.write("work/broken.toml", "[repository.a]\n");
    site.test()
        .args(["policy", "diff", "old.toml", "broken.toml"])
        .stderr("rungate: the policy has 1 fault\nbroken.toml:1:[..]\n...\n")
        .status(78);
    site.test()
        .args(["policy", "diff", "-", "old.toml"])
        .stdin("[repository.a]\n")
        .stderr("rungate: the policy has 1 fault\nstandard input:1:[..]\n...\n")
        .status(78);
    site.test()
        .args(["policy", "diff", "-", "-"])
        .stderr("rungate: standard input can be one of the two policies, and not both\n")
        .status(64);
    site.test()
        .args(["policy", "diff", "old.toml", "nowhere"])
        .stderr("...\nnowhere: there is no such file [missing-file]\n...\n")
        .status(78);
}
