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
/etc/rungate/policy.toml:1:8: a closing bracket of a header is missing [syntax]
  |
1 | [[rule]
  |        ^
",
    },
    Case {
        about: "a merge that was left unfinished",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
<<<<<<< HEAD
repository.a.limit = 4
=======
repository.a.limit = 3
>>>>>>> more seats
",
        )],
        shown: r"
/etc/rungate/policy.toml:1:1: a merge stopped here at a conflict; keep one of its sides, and delete the marks [syntax]
  |
1 | <<<<<<< HEAD
  | ^^^^^^^

/etc/rungate/policy.toml:3:1: a merge stopped here at a conflict; keep one of its sides, and delete the marks [syntax]
  |
3 | =======
  | ^^^^^^^

/etc/rungate/policy.toml:5:1: a merge stopped here at a conflict; keep one of its sides, and delete the marks [syntax]
  |
5 | >>>>>>> more seats
  | ^^^^^^^
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
    Case {
        about: "a closing bracket that is missing is named where the next line shows it",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = 2
[[rule]]
commands = ["matlab"
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:6:1: the closing bracket of a list is missing [syntax]
  |
6 | acquire  = ["matlab"]
  | ^
"#,
    },
    Case {
        about: "lines of another language",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit: 2
wait:
[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:6: between a key and its value stands =, not : [syntax]
  |
3 | limit: 2
  |      ^

/etc/rungate/policy.toml:4:6: between a key and its value stands =, not : [syntax]
  |
4 | wait:
  |      ^
"#,
    },
    Case {
        about: "a brace that is missing",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
per = "user"
limits = { ann = 2,
limit = 2
[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:6:1: the closing brace of a table is missing [syntax]
  |
6 | [[rule]]
  | ^
"#,
    },
    Case {
        about: "a key alone",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = 2
wait
[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:5: = and a value are missing behind this key [syntax]
  |
4 | wait
  |     ^
"#,
    },
    Case {
        about: "a value without a key",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = 2
= "10m"
[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:1: a name is missing here [syntax]
  |
4 | = "10m"
  | ^
"#,
    },
    Case {
        about: "a header with a blank in it",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = 2
[[the rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:6: a name with other characters than letters, digits, "_" and "-" stands in quotes [syntax]
  |
4 | [[the rule]]
  |      ^
"#,
    },
    Case {
        about: "two values",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = 2
[[rule]]
commands = "matlab" "mex"
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:21: something follows the value; several stand in brackets: [1, 2] [syntax]
  |
5 | commands = "matlab" "mex"
  |                     ^
"#,
    },
    Case {
        about: "a word of another language",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = True
[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:9: true and false are written in small letters [syntax]
  |
3 | limit = True
  |         ^^^^
"#,
    },
    Case {
        about: "a string in single quotes that is not closed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = 2
[[rule]]
commands = ['matlab]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:21: the closing quote of a string is missing [syntax]
  |
5 | commands = ['matlab]
  |                     ^
"#,
    },
    Case {
        about: "a string over several lines that is not closed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
version = 1
[repository.matlab]
limit = '''two
[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:9: the closing quotes ''' of this string are missing [syntax]
  |
3 | limit = '''two
  |         ^^^
"#,
    },
    Case {
        about: "what is left of a file after a crash",
        files: &[(
            "/etc/rungate/policy.toml",
            "version = 1\n[repository.matlab]\nlimit = 2\n[[rule]]\ncommands = [\"matlab\"]\nacquire  = [\"matlab\"]\n\0\0\0\0\n",
        )],
        shown: r#"
/etc/rungate/policy.toml:7:1: NUL bytes stand here, as after a crash, or in UTF-16; restore the file, or save it as UTF-8 [syntax]
  |
7 | ␀␀␀␀
  | ^
"#,
    },
    Case {
        about: "a file of an old Macintosh",
        files: &[(
            "/etc/rungate/policy.toml",
            "version = 1\r[repository.matlab]\rlimit = 2\r[[rule]]\rcommands = [\"matlab\"]\racquire  = [\"matlab\"]\r",
        )],
        shown: r#"
/etc/rungate/policy.toml:1:13: a carriage return stands here alone; lines end in a line feed [syntax]
  |
1 | version = 1␍[repository.matlab]␍limit = 2␍[[rule]]␍commands = ["matlab"]␍acquire  = ["matlab"]␍
  |             ^
"#,
    },
];
