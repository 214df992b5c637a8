//! A launch keeps only the rules that may be for its command. It makes no difference: what is wrong with the
//! others refuses it, and so does what they share with the rules that it needs.

use crate::support::{Site, Test, needs_root};

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
        ("[[test]]\nname = \"t\"\ncommand = \"mex\"\nexpect = \"refuse\"\nby = \"x\"\n", "[..]\"x\"[..]"),
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
