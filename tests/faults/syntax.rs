//! What is no TOML, and what of a file is still read after it.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a file that was cut short",
        files: &[("/etc/rungate/policy.toml", "")],
        shown: r#"
/etc/rungate/policy.toml: is empty, as if its writing had been cut short; where nothing is to be limited, write: version = 1 [empty-file]
"#,
    },
    Case {
        about: "a drop-in of comments alone",
        files: &[
            ("/etc/rungate/policy.toml", "version = 1\n"),
            ("/etc/rungate/policy.d/10-more.toml", "# limit = 1\n\n  # and more\n"),
        ],
        shown: r#"
/etc/rungate/policy.d/10-more.toml: is empty, as if its writing had been cut short; where nothing is to be limited, write: version = 1 [empty-file]
"#,
    },
    Case {
        about: "what is no TOML",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[[rule]
acquire = []
",
        )],
        shown: r"
/etc/rungate/policy.toml:1:8: unclosed array table, expected ] [syntax]
  |
1 | [[rule]
  |        ^
",
    },
    Case {
        about: "a value that is missing",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[[rule]]
acquire =
",
        )],
        shown: r"
/etc/rungate/policy.toml:2:10: a value is missing [syntax]
  |
2 | acquire =
  |          ^
",
    },
    Case {
        about: "a string that is not closed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
directory = "/run
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:18: the closing quote of a string is missing [syntax]
  |
2 | directory = "/run
  |                  ^
"#,
    },
    Case {
        about: "a key that stands twice",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 1
limit = 2
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:1: "limit" is defined a second time [duplicate-key]
  |
2 | limit = 1
  | ----- first defined here
3 | limit = 2
  | ^^^^^
"#,
    },
    Case {
        about: "a table that stands twice",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 1
[repository.a]
limit = 2
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:13: "a" is defined a second time [duplicate-key]
  |
1 | [repository.a]
  |             - first defined here
2 | limit = 1
3 | [repository.a]
  |             ^
"#,
    },
    Case {
        about: "a line that is no TOML does not hide what is wrong elsewhere",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = five
[[rule]]
comands = ["x"]
acquire = ["b"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:9: a string must stand in quotes [syntax]
  |
2 | limit = five
  |         ^^^^

/etc/rungate/policy.toml:4:1: unknown key "comands" in a rule; did you mean "commands"? [unknown-key]
  |
4 | comands = ["x"]
  | ^^^^^^^

/etc/rungate/policy.toml:5:12: unknown repository "b" [unknown-repository]
  |
5 | acquire = ["b"]
  |            ^^^
"#,
    },
    Case {
        about: "control characters are shown and never reach the terminal",
        files: &[("/etc/rungate/policy.toml", "[[rule]]\nname = \"\u{1b}[31mred\"\nacquire = []\n")],
        shown: r#"
/etc/rungate/policy.toml:2:9: a control character must be written as an escape, such as \u001B [syntax]
  |
2 | name = "␛[31mred"
  |         ^
"#,
    },
    Case {
        about: "a string without quotes",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[defaults]
hold = tree
",
        )],
        shown: r"
/etc/rungate/policy.toml:2:8: a string must stand in quotes [syntax]
  |
2 | hold = tree
  |        ^^^^
",
    },
];
