//! "A policy with faults": it starts nothing, and whoever looks what runs still sees it, below the faults.

use std::fs;

use crate::support::{Ending, Site, needs_root, set_mode};

/// A host with two repositories in use, and a third that the agent would keep.
fn site() -> Site {
    let site = Site::of_system(POLICY);
    site.program("matlab");
    site.program("maple");
    site
}

const POLICY: &str = r#"
    version = 1
    [repository.seats]
    limit = 2
    [repository.maple]
    limit = 3
    [[rule]]
    commands = ["matlab"]
    acquire  = ["seats"]
    [[rule]]
    commands = ["maple"]
    acquire  = ["maple"]
"#;

const LINE: &str = "
            rungate: the policy has 1 fault
            /etc/rungate/policy.toml:[..]
            ...
            ";

/// "`status` and `list` show the repositories that the faults leave as they are."
#[test]
fn what_runs_is_shown_below_the_faults() {
    needs_root!();
    let site = site();
    let _one = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
    let _two = site.test().user("ann").args(["run", "--", "maple"]).spawn();
    let whole = site.expand(&fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy"));
    let status = |args: &[&str]| site.test().args(["status"]).args(args).stderr(LINE);
    // In a rule: nothing of a repository is in doubt.
    site.system_file("policy.toml", &whole.replace("commands = [\"matlab\"]", "comands = [\"matlab\"]"));
    status(&[])
        .stdout(
            "
            REPOSITORY USED LIMIT FREE WAIT OLDEST NOTE
            seats         1     2    1    0[gap][age]
            maple         1     3    2    0[gap][age]
            ",
        )
        .status(78);
    // A quote is missing in a rule.
    site.system_file("policy.toml", &whole.replace("commands = [\"matlab\"]", "commands = [\"matlab]"));
    status(&[])
        .stdout(
            "
            REPOSITORY USED LIMIT FREE WAIT OLDEST NOTE
            seats         1     2    1    0[gap][age]
            maple         1     3    2    0[gap][age]
            ",
        )
        .status(78);
    // In a repository: its limit is not known, and its lock file is there.
    site.system_file("policy.toml", &whole.replace("limit = 2", "limit = 2 0"));
    let stdout = "
            REPOSITORY[gap]USED LIMIT FREE WAIT OLDEST NOTE
            maple[gap]1     3    2    0[gap][age]
            /run/rungate/seats.lock    1     -    -    0[gap][age]
            ";
    status(&[]).stdout(stdout).status(78);
    site.test()
        .args(["list", "seats"])
        .stderr(LINE)
        .stdout(
            "
            /run/rungate/seats.lock: 1 used
            [..]
            [gap]1[gap][pid] ann [..] matlab[..]
            ",
        )
        .status(78);
    // Names that mean nothing are no way to see less than the fault.
    site.test().args(["list", "nothing"]).stderr(LINE).status(78);
    // The caller's part of it is never shown as if it were all.
    site.test().user("ann").args(["run", "--", "maple"]).stdin("").stderr("...\n").status(78);
}

/// A policy that its reader cannot open leaves nothing, and the lock files are there.
#[test]
fn lock_files_are_shown_without_any_policy() {
    needs_root!();
    let site = site();
    let _one = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
    set_mode(&site.path("etc/rungate/policy.toml"), 0o600);
    let outcome = site.test().user("ann").args(["status"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(78));
    assert!(outcome.stdout.contains("/run/rungate/seats.lock    1 "), "{outcome:?}");
    assert!(outcome.stderr.contains("[unreadable-file]"), "{outcome:?}");
}

/// "`rungate_policy_valid` is 0 while the policy has faults; the rest is there as far as it can be."
#[test]
fn metrics_say_that_the_policy_has_faults() {
    needs_root!();
    let site = site();
    let _one = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
    let has = |text: &str, line: &str| assert!(text.lines().any(|known| known == line), "{line}: {text}");
    let outcome = site.test().args(["metrics"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0));
    has(&outcome.stdout, "rungate_policy_valid 1");
    let whole = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &whole.replace("[\"maple\"]", "\"maple\""));
    let outcome = site.test().args(["metrics", "--output", "metrics"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(78));
    assert!(outcome.stderr.starts_with("rungate: the policy has "), "{}", outcome.stderr);
    let text = fs::read_to_string(site.path("work/metrics")).expect("the metrics");
    has(&text, "rungate_policy_valid 0");
    has(&text, "rungate_slots_used{repository=\"seats\"} 1");
    has(&text, "rungate_slots_limit{repository=\"seats\"} 2");
}

/// Tables of the agent are shown as well.
#[test]
fn tables_of_the_agent_are_shown_without_their_policy() {
    needs_root!();
    let policy = "
        version = 1
        [repository.tokens]
        keeper = \"agent\"
        limit  = 2
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"tokens\"]
        ";
    let (site, _agent) = Site::with_agent(policy);
    site.program("matlab");
    let _one = site.test().args(["run", "--", "matlab"]).spawn();
    let whole = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &whole.replace("limit  = 2", "limit  = two"));
    site.test()
        .args(["status"])
        .stderr(LINE)
        .stdout(
            "
            REPOSITORY USED LIMIT FREE WAIT OLDEST NOTE
            tokens        1     -    -    0[gap][age]
            ",
        )
        .status(78);
}
