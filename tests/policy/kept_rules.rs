//! A launch keeps only the rules that may be for its command. It makes no difference: what is wrong with the
//! others refuses it, and so does what they share with the rules that it needs.

use crate::support::{Ending, Site, Test, needs_root};

const POLICY: &str = r#"
    [repository.seats]
    limit = 1

    [[rule]]
    commands = ["other"]
    acquire  = ["seats"]

    [[rule]]
    commands = ["matlab", "/opt/*/matlab"]
    acquire  = ["seats"]
    message  = "One at a time."
"#;

/// The second rule of the file, which bears no name, in its line.
const FULL: &str = r#"rungate: matlab: not started: the limit is reached
  seats  1 of 1 used
      rule 2, $DIR/policy.toml:11
...
One at a time.
...
"#;

fn launch(site: &Site, command: &str) -> Test {
    site.test().args(["run", "--", command])
}

fn site(more: &str) -> Site {
    let site = Site::with_policy(&format!("{POLICY}{more}"));
    site.program("matlab");
    site
}

#[test]
fn what_is_kept_is_named_by_its_number_and_its_line_in_the_file() {
    let site = site("");
    let _running = launch(&site, "matlab").spawn();
    launch(&site, "matlab").stderr(FULL).status(75);
}

#[test]
fn a_fault_in_a_rule_for_another_command_refuses() {
    for (more, fault) in [
        ("[[rule]]\ncommands = [\"mex\"]\nacquire = [\"seat\"]\n", "unknown repository \"seat\"[..]"),
        ("[[rule]]\ncommands = [\"mex\", \"@none\"]\nacquire = [\"seats\"]\n", "[..]\"@none\"[..]"),
        ("[[rule]]\ncommands = [\"mex\"]\nacquire = [\"seats\"]\nwaits = \"1h\"\n", "[..]waits[..]"),
        ("[[rule]]\ncommands = [\"mex\"]\n", "[..]"),
    ] {
        let site = site(more);
        let faulty = format!(
            "rungate: matlab: not started: the policy has 1 fault\n$DIR/policy.toml:[..]{fault}\n...\n"
        );
        launch(&site, "matlab").stderr(&faulty).status(78);
        // And before it is asked whether the program is there.
        launch(&site, "no-such").stderr(&faulty.replace("matlab:", "no-such:")).status(78);
    }
    launch(&site(""), "no-such").stderr("rungate: no-such: [..]not found[..]\n...\n").status(127);
}

/// Launches do not read tests: whatever is wrong with one, `policy check` says it and no launch is refused.
#[test]
fn a_fault_in_a_test_stops_no_launch() {
    for wrong in ["", "expect = \"refuse\"\nby = \"x\"\n", "expect = \"start\"\nuses = 1\n", "expect = 7\n"] {
        let site = site(&format!("[[test]]\nname = \"t\"\ncommand = \"mex\"\n{wrong}"));
        launch(&site, "matlab").stdin("").status(0);
        let check = site.test().args(["policy", "check"]).outcome();
        assert_eq!(check.ending, Ending::Status(1), "{check:?}");
        assert!(check.stderr.ends_with("rungate: 1 fault\n"), "{check:?}");
    }
    // Text that is not TOML is a fault wherever it is.
    let site = site("[[test]]\nname = \"t\n");
    launch(&site, "matlab").stderr("rungate: matlab: not started: the policy has 1 fault\n...\n").status(78);
}

/// A test may name a rule of a delegated drop-in, which is not read for other commands, and a rule by the name
/// that it has because another file has one with the same.
#[test]
fn a_test_may_name_a_rule_that_is_not_read_for_a_launch() {
    needs_root!();
    let site = Site::new();
    site.program("other");
    site.system_policy(
        r#"
        [delegate."20-cad.toml"]
        owner    = "root"
        users    = ["root"]
        commands = ["matlab"]

        [repository.a]
        limit = 5

        [[rule]]
        commands = ["matlab"]
        acquire  = ["a"]

        [[test]]
        name    = "the third of cad"
        user    = "root"
        command = "matlab"
        use     = { a = 2 }
        expect  = "refuse"
        by      = "cad keeps to two"

        [[test]]
        name    = "no mex"
        command = "mex"
        expect  = "refuse"
        by      = "rule 1 (30-mex.toml)"
        "#,
    );
    site.system_file(
        "policy.d/20-cad.toml",
        "[[rule]]\nname = \"cad keeps to two\"\nacquire = [{ repository = \"a\", ceiling = 2 }]\n",
    );
    site.system_file("policy.d/30-mex.toml", "[[rule]]\ncommands = [\"mex\"]\naction = \"deny\"\n");
    site.test().args(["policy", "check"]).stdout("2 tests passed\n").status(0);
    launch(&site, "other").stdin("").status(0);
}

#[test]
fn a_name_that_a_rule_shares_with_one_for_another_command_is_told_with_its_file() {
    needs_root!();
    let site = Site::new();
    site.program("matlab");
    let drop_in = "[[rule]]\ncommands = [\"other\"]\nacquire = [\"seats\"]\n";
    site.system_policy(POLICY);
    site.system_file("policy.d/1.toml", &format!("{drop_in}{drop_in}"));
    let _running = launch(&site, "matlab").spawn();
    let told = FULL
        .replace("rule 2", "rule 2 (policy.toml)")
        .replace("$DIR/policy.toml:11", "[..]/policy.toml:[..]");
    launch(&site, "matlab").stderr(&told).status(75);
}
