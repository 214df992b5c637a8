//! "Seen by everybody as ever": `status`, `list`, `explain` and `metrics` ask the agent and show the same
//! columns.

use super::seats;
use crate::support::needs_root;

#[test]
fn everything_that_shows_repositories_shows_the_agents() {
    needs_root!();
    let (site, agent) = seats(2, "per = \"user\"\nwait = \"1h\"");
    let _running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    site.test()
        .args(["status"])
        .stdout(
            "
            REPOSITORY USED LIMIT FREE WAIT OLDEST NOTE
            seats         -     2    -    -      - 1 in use or used before
              games       1     2    1    0[gap][age]
            ",
        )
        .status(0);
    site.test()
        .args(["list"])
        .stdout(
            "
            seats [games]: 1 of 2 used
            SLOT[..] PID USER  HOST SINCE[..] AGE HOLD    COMMAND RULE
               1[..] games [..] process matlab  seats
            ",
        )
        .status(0);
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    assert!(metrics.contains("rungate_slots_used{repository=\"seats\",member=\"games\"} 1\n"), "{metrics}");
    let explained = site.test().user("games").args(["explain", "--", "matlab"]).outcome().stdout;
    assert!(explained.contains("seats [games]    1    1     2       0   1h ok"), "{explained}");
    let json = site.test().args(["status", "--json"]).outcome().stdout;
    assert!(json.contains("\"path\": null") && json.contains("\"used\": 1"), "{json}");
    agent.kill();
    let status = site.test().args(["status"]).outcome();
    assert!(status.stdout.contains("the agent cannot be reached"), "{}", status.stdout);
}

/// What is printed decides as the original does: `per` and `keeper`, and no path.
#[test]
fn the_policy_is_shown_as_it_is() {
    needs_root!();
    let (site, _agent) = seats(2, "per = [\"user\", \"host\"]\nunreachable = \"start\"");
    let shown = site.test().args(["policy", "show"]).outcome().stdout;
    for line in ["keeper", "per", "unreachable"] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line}: {shown}");
    }
    assert!(!shown.contains("path"), "{shown}");
}
