//! Keys of a rule and of its claims that do not go together, and claims that can never be had.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a rule that says nothing to do",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
commands = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:1:1: the rule says nothing to do; write acquire, or action = "deny" or "exempt" [nothing-to-do]
  |
1 | [[rule]]
  | ^^^^^^^^
"#,
    },
    Case {
        about: "a rule that denies and acquires",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
action = "deny"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:11: "acquire" and action = "deny" do not go together [contradiction]
  |
4 | acquire = ["a"]
  |           ^^^^^
"#,
    },
    Case {
        about: "a rule that is exempt and waits",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
action = "exempt"
wait = "5m"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "wait" and action = "exempt" do not go together [contradiction]
  |
3 | wait = "5m"
  |        ^^^^
"#,
    },
    Case {
        about: "an exempt rule within a family",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
action = "exempt"
first_of = "f"
[[rule]]
acquire = []
first_of = "f"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:12: an exempt rule would free the launch of every other rule too; in first_of write acquire = [] [exempt-in-first-of]
  |
3 | first_of = "f"
  |            ^^^
"#,
    },
    Case {
        about: "exemptions of a rule that does not exempt",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
from = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:8: "from" says nothing without action = "exempt" [needs-key]
  |
5 | from = ["a"]
  |        ^^^^^
"#,
    },
    Case {
        about: "slots from the command line beside all slots",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", slots = "all", slots_from = { after = "-np" } }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:60: "slots_from" and slots = "all" do not go together [contradiction]
  |
4 | acquire = [{ repository = "a", slots = "all", slots_from = { after = "-np" } }]
  |                                                            ^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a repository beside alternatives",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", any_of = ["a"] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:27: "repository" and "any_of" do not go together [contradiction]
  |
4 | acquire = [{ repository = "a", any_of = ["a"] }]
  |                           ^^^
"#,
    },
    Case {
        about: "alternatives within alternatives",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ any_of = [{ any_of = ["a"] }] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:24: an alternative needs "repository" [missing-key]
  |
4 | acquire = [{ any_of = [{ any_of = ["a"] }] }]
  |                        ^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:4:26: unknown key "any_of" in an alternative [unknown-key]
  |
4 | acquire = [{ any_of = [{ any_of = ["a"] }] }]
  |                          ^^^^^^
"#,
    },
    Case {
        about: "no alternatives at all",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a", { any_of = [] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:28: "any_of" is empty; name at least one claim [empty-list]
  |
4 | acquire = ["a", { any_of = [] }]
  |                            ^^
"#,
    },
    Case {
        about: "a file for each group, and no groups",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = "group"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:12: repository "a" has a file for each group, so the rule needs "groups" [group-without-groups]
  |
5 | acquire = ["a"]
  |            ^^^
"#,
    },
    Case {
        about: "an alternative that would charge several groups",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = "group"
[[rule]]
groups = ["cad", "sim"]
acquire = [{ any_of = ["a"] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:6:24: repository "a" would charge several groups at once, which an alternative cannot; write charge = "first" or "any" [charge-in-any-of]
  |
6 | acquire = [{ any_of = ["a"] }]
  |                        ^^^
"#,
    },
    Case {
        about: "a wait for nothing",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
acquire = []
wait = "2h"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "wait" needs a claim [wait-without-claim]
  |
3 | wait = "2h"
  |        ^^^^
"#,
    },
    Case {
        about: "a wait that is longer than the repository allows",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
wait = "2h"
max_wait = "1h"
[[rule]]
acquire = [{ repository = "a", wait = "forever" }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: repository "a" is waited for no longer than its max_wait, 1h [wait-above-max]
  |
3 | wait = "2h"
  |        ^^^^

/etc/rungate/policy.toml:6:39: repository "a" is waited for no longer than its max_wait, 1h [wait-above-max]
  |
6 | acquire = [{ repository = "a", wait = "forever" }]
  |                                       ^^^^^^^^^
"#,
    },
    Case {
        about: "more slots than there are",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", slots = 6 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:40: 6 slots can never be had of repository "a", which gives 5 [slots-above-limit]
  |
4 | acquire = [{ repository = "a", slots = 6 }]
  |                                        ^
"#,
    },
    Case {
        about: "more slots than a ceiling leaves",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", slots = 3, ceiling = 2 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:40: 3 slots can never be had of repository "a", which gives 2 [slots-above-limit]
  |
4 | acquire = [{ repository = "a", slots = 3, ceiling = 2 }]
  |                                        ^
"#,
    },
];
