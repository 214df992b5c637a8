//! What is likely not meant and stops no launch.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a repository that no rule uses",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[repository.b]
limit = 5
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:13: warning: no rule uses repository "b" [unused-repository]
  |
3 | [repository.b]
  |             ^
"#,
    },
    Case {
        about: "an alias that no rule uses",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
x = ["y"]
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:1: warning: no rule uses alias "x" [unused-alias]
  |
2 | x = ["y"]
  | ^
"#,
    },
    Case {
        about: "an order outside a family",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
order = 5
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:9: warning: "order" says nothing without "first_of" [order-without-first-of]
  |
5 | order = 5
  |         ^
"#,
    },
    Case {
        about: "a family of one",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
first_of = "f"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:12: warning: "f" is the first_of of this rule alone, so that it shadows nothing [family-of-one]
  |
5 | first_of = "f"
  |            ^^^
"#,
    },
    Case {
        about: "a ceiling that says nothing",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", ceiling = 5 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:42: warning: a ceiling of 5 says nothing beside a limit of 5 [never-binds]
  |
4 | acquire = [{ repository = "a", ceiling = 5 }]
  |                                          ^
"#,
    },
    Case {
        about: "a rule that its exception takes out",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["ann", "bob"]
except = [{ users = ["*"] }]
"#,
        )],
        shown: r"
/etc/rungate/policy.toml:3:1: warning: the rule can never match: an exception matches whatever its selectors match [never-matches]
  |
3 | [[rule]]
  | ^^^^^^^^
",
    },
    Case {
        about: "a rule that is shadowed in its family",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
name = "all"
commands = ["mat*"]
first_of = "f"
acquire = ["a"]
[[rule]]
name = "one"
commands = ["matlab"]
users = ["ann"]
first_of = "f"
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:9:8: warning: the rule never counts: whatever it matches, rule "all" matches before it [shadowed]
  |
4 | name = "all"
  |        ----- this rule comes first
...
9 | name = "one"
  |        ^^^^^
"#,
    },
    Case {
        about: "a limit that an exempt rule takes back",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
name = "seats"
commands = ["matlab"]
[[rule]]
name = "free"
action = "exempt"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:8: warning: the rule never binds: whatever it matches, rule "free" decides [overruled]
  |
5 | name = "seats"
  |        ^^^^^^^
...
8 | name = "free"
  |        ------ this rule decides
"#,
    },
    Case {
        about: "a program that lets go of its slot",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
commands = ["ssh"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:1: warning: "ssh" lets go of its slot while it still runs; write hold = "supervisor" [weak-hold]
  |
3 | [[rule]]
  | ^^^^^^^^
"#,
    },
    Case {
        about: "a program that leaves a process behind",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
commands = ["tmux"]
hold = "supervisor"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:1: warning: "tmux" lets go of its slot while it still runs; write hold = "tree" [weak-hold]
  |
3 | [[rule]]
  | ^^^^^^^^
"#,
    },
    Case {
        about: "a user and a group that do not exist",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["ann", "nosuch", "%nosuch"]
groups = ["cad", "cda"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:17: warning: there is no user "nosuch" [unknown-user]
  |
5 | users = ["ann", "nosuch", "%nosuch"]
  |                 ^^^^^^^^

/etc/rungate/policy.toml:5:27: warning: there is no group "nosuch" [unknown-group]
  |
5 | users = ["ann", "nosuch", "%nosuch"]
  |                           ^^^^^^^^^

/etc/rungate/policy.toml:6:18: warning: there is no group "cda" [unknown-group]
  |
6 | groups = ["cad", "cda"]
  |                  ^^^^^
"#,
    },
    Case {
        about: "a user of a reservation that does not exist",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
reserve = [{ for = ["nosuch"], slots = 3 }]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:21: warning: there is no user "nosuch" [unknown-user]
  |
3 | reserve = [{ for = ["nosuch"], slots = 3 }]
  |                     ^^^^^^^^
"#,
    },
    Case {
        about: "a look-up that fails while the policy is checked",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["%broken"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: warning: a look-up failed: getgrnam("broken"): Connection timed out [look-up-failed]
  |
5 | users = ["%broken"]
  |          ^^^^^^^^^
"#,
    },
    Case {
        about: "a time to expire that is not above the time to elapse",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
if_elapsed = "15m"
expire_after = "10m"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:16: warning: "expire_after" should be longer than "if_elapsed": a holder must be able to become overdue [expire-not-above-elapsed]
  |
4 | expire_after = "10m"
  |                ^^^^^
"#,
    },
];
