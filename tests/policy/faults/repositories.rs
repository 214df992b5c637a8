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
/etc/rungate/policy.toml:3:10: a table of "limits" needs a repository with a file for each of one thing, such as per = "user"; for others write a list: limits = [{ users = ["ann"], limit = 8 }] [limits-without-member]
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
/etc/rungate/policy.toml:4:10: a table of "limits" needs a repository with a file for each of one thing, such as per = "user"; for others write a list: limits = [{ users = ["ann"], limit = 8 }] [limits-without-member]
  |
4 | limits = { ann = 8 }
  |          ^^^^^^^^^^^
"#,
    },
    Case {
        about: "limits for what is no member",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = "user"
limits = { "%students" = 1, "20000-29999" = 1, "@kids" = 1 }
[repository.b]
limit = 5
path = "{group}.lock"
limits = { "+hosts" = 1, 100 = 2 }
[repository.c]
limit = 5
per = "host"
limits = { "@farm" = 1, "1-2" = 3 }
[repository.d]
limit = 5
path = "{arg1}.lock"
limits = { "@what" = 1, "1-2" = 3, "%" = 1 }
[[rule]]
groups = ["cad"]
acquire = ["a", "b", "c", "d"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:48: unknown alias "@kids" [unknown-alias]
  |
4 | limits = { "%students" = 1, "20000-29999" = 1, "@kids" = 1 }
  |                                                ^^^^^^^

/etc/rungate/policy.toml:8:12: "+hosts" selects users; this repository is by group [limits-selector]
  |
8 | limits = { "+hosts" = 1, 100 = 2 }
  |            ^^^^^^^^

/etc/rungate/policy.toml:12:12: unknown alias "@farm" [unknown-alias]
   |
12 | limits = { "@farm" = 1, "1-2" = 3 }
   |            ^^^^^^^

/etc/rungate/policy.toml:12:25: "1-2" selects numbers; this repository is by host [limits-selector]
   |
12 | limits = { "@farm" = 1, "1-2" = 3 }
   |                         ^^^^^

/etc/rungate/policy.toml:16:12: unknown alias "@what" [unknown-alias]
   |
16 | limits = { "@what" = 1, "1-2" = 3, "%" = 1 }
   |            ^^^^^^^

/etc/rungate/policy.toml:16:36: "%" selects users; this repository is by value [limits-selector]
   |
16 | limits = { "@what" = 1, "1-2" = 3, "%" = 1 }
   |                                    ^^^
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
