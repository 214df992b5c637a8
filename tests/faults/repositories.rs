//! Reservations, limits by member, too soon and too late.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "reservations beyond the limit",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
reserve = [{ for = ["ann"], slots = 3 }, { for = ["bob"], slots = 3 }]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:67: 6 slots are reserved of a limit of 5 [reserved-above-limit]
  |
3 | reserve = [{ for = ["ann"], slots = 3 }, { for = ["bob"], slots = 3 }]
  |                                                                   ^
"#,
    },
    Case {
        about: "more lent than reserved",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
reserve = [{ for = ["ann"], slots = 3, lend = 4 }]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:47: 4 of 3 reserved slots cannot be lent [lend-above-slots]
  |
3 | reserve = [{ for = ["ann"], slots = 3, lend = 4 }]
  |                                               ^
"#,
    },
    Case {
        about: "limits where the limit was meant: one mistake, one fault",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limits = 1
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:10: "limits" is a whole number; it must be a table of members, such as { ann = 8 }; one limit for all is "limit" [wrong-type]
  |
2 | limits = 1
  |          ^
"#,
    },
    Case {
        about: "limits by member where all share one file",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
limits = { ann = 8 }
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:10: "limits" needs a repository with a file for each of one thing, such as per = "user" [limits-without-member]
  |
3 | limits = { ann = 8 }
  |          ^^^^^^^^^^^
"#,
    },
    Case {
        about: "limits by member of two things",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = ["user", "host"]
limits = { ann = 8 }
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:10: "limits" needs a repository with a file for each of one thing, such as per = "user" [limits-without-member]
  |
4 | limits = { ann = 8 }
  |          ^^^^^^^^^^^
"#,
    },
    Case {
        about: "what is too soon, without a time that must elapse",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
too_soon = "ok"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:12: "too_soon" says nothing without "if_elapsed" [needs-key]
  |
3 | too_soon = "ok"
  |            ^^^^
"#,
    },
    Case {
        about: "a grace without an expiry",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
expire_grace = "5s"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:16: "expire_grace" says nothing without "expire_after" [needs-key]
  |
3 | expire_grace = "5s"
  |                ^^^^
"#,
    },
    Case {
        about: "an end that nobody watches for",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
if_elapsed = "5m"
if_elapsed_from = "end"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:19: only a supervisor knows when a program ends; write hold = "supervisor" or "tree" beside it [end-needs-supervisor]
  |
4 | if_elapsed_from = "end"
  |                   ^^^^^
"#,
    },
];
