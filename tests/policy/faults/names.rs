//! Names: of repositories, rules, aliases, commands, and defaults that files disagree about.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a repository that nobody defines",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.matlab]
limit = 5
[[rule]]
acquire = ["matlab", "matalb"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:22: unknown repository "matalb"; did you mean "matlab"? [unknown-repository]
  |
4 | acquire = ["matlab", "matalb"]
  |                      ^^^^^^^^
"#,
    },
    Case {
        about: "a repository with a name that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository."my seats"]
limit = 5
[[rule]]
acquire = ["my seats"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:1:13: "my seats" is not a name: letters, digits, "_", "-" and, not at its start, "." [bad-name]
  |
1 | [repository."my seats"]
  |             ^^^^^^^^^^
"#,
    },
    Case {
        about: "a repository with a hidden name",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.".a"]
limit = 5
[[rule]]
acquire = [".a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:1:13: ".a" is not a name: letters, digits, "_", "-" and, not at its start, "." [bad-name]
  |
1 | [repository.".a"]
  |             ^^^^
"#,
    },
    Case {
        about: "a repository that two other files define",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[[rule]]
acquire = ["a"]
"#,
            ),
            (
                "/etc/rungate/policy.d/10.toml",
                r#"
[repository.a]
limit = 1
path = "1"
[[rule]]
acquire = ["a"]
"#,
            ),
            (
                "/etc/rungate/policy.d/20.toml",
                r#"
[repository.a]
limit = 2
path = "2"
[[rule]]
acquire = ["a"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.toml:2:12: several files define a repository "a"; give one of them another name [ambiguous-repository]
  |
2 | acquire = ["a"]
  |            ^^^
  |
 ::: /etc/rungate/policy.d/10.toml:1:13
  |
1 | [repository.a]
  |             - first defined here
"#,
    },
    Case {
        about: "two rules with one name in one file",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
name = "seats"
acquire = ["a"]
[[rule]]
name = "seats"
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:7:8: a second rule is called "seats" [duplicate-rule]
  |
4 | name = "seats"
  |        ------- first defined here
...
7 | name = "seats"
  |        ^^^^^^^
"#,
    },
    Case {
        about: "an alias that nobody defines",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
matlab = ["matlab"]
[[rule]]
commands = ["@matlab", "@matalb"]
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:24: unknown alias "@matalb"; did you mean "@matlab"? [unknown-alias]
  |
4 | commands = ["@matlab", "@matalb"]
  |                        ^^^^^^^^^
"#,
    },
    Case {
        about: "an alias that two other files define",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[[rule]]
users = ["@staff"]
acquire = []
"#,
            ),
            (
                "/etc/rungate/policy.d/10.toml",
                r#"
[alias]
staff = ["ann"]
"#,
            ),
            (
                "/etc/rungate/policy.d/20.toml",
                r#"
[alias]
staff = ["bob"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.toml:2:10: several files define an alias "staff"; give one of them another name [ambiguous-alias]
  |
2 | users = ["@staff"]
  |          ^^^^^^^^
  |
 ::: /etc/rungate/policy.d/10.toml:2:1
  |
2 | staff = ["ann"]
  | ----- first defined here
"#,
    },
    Case {
        about: "an alias that leads back to itself",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
a = ["x", "@b"]
b = ["@a"]
[[rule]]
users = ["@a"]
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:6: alias "a" leads back to itself [alias-loop]
  |
3 | b = ["@a"]
  |      ^^^^
"#,
    },
    Case {
        about: "a loop of aliases that is entered twice",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
a = ["x", "@b"]
b = ["@a"]
c = ["@c"]
[[rule]]
users = ["@a"]
acquire = []
[[rule]]
users = ["@b", "@c"]
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:6: alias "a" leads back to itself [alias-loop]
  |
3 | b = ["@a"]
  |      ^^^^

/etc/rungate/policy.toml:4:6: alias "c" leads back to itself [alias-loop]
  |
4 | c = ["@c"]
  |      ^^^^
"#,
    },
    Case {
        about: "a command with two programs in one layer",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[command.matlab]
exec = "/opt/a"
"#,
            ),
            (
                "/etc/rungate/policy.d/10.toml",
                r#"
[command.matlab]
exec = "/opt/b"
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/10.toml:1:10: command "matlab" is defined a second time [duplicate-command]
  |
1 | [command.matlab]
  |          ^^^^^^
  |
 ::: /etc/rungate/policy.toml:2:8
  |
2 | exec = "/opt/a"
  |        -------- first defined here
"#,
    },
    Case {
        about: "a default that two files give different values",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[defaults]
wait = "10m"
"#,
            ),
            (
                "/etc/rungate/policy.d/10.toml",
                r#"
[defaults]
wait = "5m"
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/10.toml:2:8: another file gives "wait" a different default [conflicting-default]
  |
2 | wait = "5m"
  |        ^^^^
  |
 ::: /etc/rungate/policy.toml:2:8
  |
2 | wait = "10m"
  |        ----- first defined here
"#,
    },
    Case {
        about: "a rule of a test that nobody defines",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
name = "seats"
acquire = []
[[test]]
name = "t"
command = "x"
expect = "refuse"
by = "seat"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:8:6: unknown rule "seat"; did you mean "seats"? [unknown-rule]
  |
8 | by = "seat"
  |      ^^^^^^
"#,
    },
    Case {
        about: "a repository of a test that nobody defines",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
[[test]]
name = "t"
command = "x"
expect = "start"
use = { b = 5 }
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:9:9: unknown repository "b" [unknown-repository]
  |
9 | use = { b = 5 }
  |         ^
"#,
    },
];
