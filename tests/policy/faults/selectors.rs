//! Entries of selectors.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "an entry that tries to exclude",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["!ann"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: "!ann" excludes nothing; write except = [{ users = ["ann"] }] [negation]
  |
5 | users = ["!ann"]
  |          ^^^^^^
"#,
    },
    Case {
        about: "a pattern that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["ann[0-9"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: this is no pattern: unclosed character class; missing ']' [bad-pattern]
  |
5 | users = ["ann[0-9"]
  |          ^^^^^^^^^
"#,
    },
    Case {
        about: "a pattern of an alias that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
x = ["{a,b"]
[[rule]]
users = ["@x"]
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: this is no pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?) [bad-pattern]
  |
2 | x = ["{a,b"]
  |      ^^^^^^
"#,
    },
    Case {
        about: "an empty entry",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
groups = [""]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:11: an empty entry matches nothing [empty-entry]
  |
5 | groups = [""]
  |           ^^
"#,
    },
    Case {
        about: "a group without a name",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["%"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: an empty entry matches nothing [empty-entry]
  |
5 | users = ["%"]
  |          ^^^
"#,
    },
    Case {
        about: "a list that is empty",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
commands = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:12: "commands" is empty; leave it out to match everything [empty-list]
  |
5 | commands = []
  |            ^^
"#,
    },
    Case {
        about: "a uid that nobody can have",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["4294967295"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: no user or group can have this number [id-too-large]
  |
5 | users = ["4294967295"]
  |          ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a range that is empty",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["1999-1000"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: the range is empty: its end is below its start [empty-range]
  |
5 | users = ["1999-1000"]
  |          ^^^^^^^^^^^
"#,
    },
    Case {
        about: "a command by a path that does not begin at the root",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
commands = ["bin/matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:13: "bin/matlab" can match no path, because paths begin with "/"; write the name alone, or "/**/bin/matlab" [relative-command]
  |
5 | commands = ["bin/matlab"]
  |             ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a path that a shell would make of it",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
commands = ["$HOME/bin/matlab"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:13: "$HOME/bin/matlab" can match no path, because nothing is put in for "$HOME" here; write the name alone, or "/home/*/bin/matlab" [relative-command]
  |
5 | commands = ["$HOME/bin/matlab"]
  |             ^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a directory that does not begin at the root",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
directories = ["apollo"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:16: "apollo" can match no directory, because directories begin with "/"; did you mean "/**/apollo"? [relative-directory-pattern]
  |
5 | directories = ["apollo"]
  |                ^^^^^^^^
"#,
    },
    Case {
        about: "a day that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
when = ["Weekdays 08:00-18:00"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:9: this is no time: days are written Mon, Mon-Fri or Sat,Sun [bad-time]
  |
5 | when = ["Weekdays 08:00-18:00"]
  |         ^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "hours that are none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
when = ["08-18"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:9: this is no time: hours are written 08:00-18:00, up to 24:00 [bad-time]
  |
5 | when = ["08-18"]
  |         ^^^^^^^
"#,
    },
    Case {
        about: "hours that are empty",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
when = ["Mon 08:00-08:00"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:9: this is no time: the hours are empty; a whole day is 00:00-24:00 [bad-time]
  |
5 | when = ["Mon 08:00-08:00"]
  |         ^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a date that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
when = ["2026-02-30"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:9: this is no time: dates are written 2026-12-24 or 2026-12-24..2027-01-01 [bad-time]
  |
5 | when = ["2026-02-30"]
  |         ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a time zone that the system does not know",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
time_zone = "Europe/Bonn"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:13: this system knows no time zone "Europe/Bonn" [unknown-time-zone]
  |
2 | time_zone = "Europe/Bonn"
  |             ^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a variable that cannot be",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
environment = { "A=B" = false }
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:17: "A=B" cannot be the name of a variable [bad-variable]
  |
5 | environment = { "A=B" = false }
  |                 ^^^^^
"#,
    },
    Case {
        about: "an exception that would match everything",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
except = [{}]
"#,
        )],
        shown: r"
/etc/rungate/policy.toml:5:11: an exception without selectors would take the rule out altogether [empty-exception]
  |
5 | except = [{}]
  |           ^^
",
    },
    Case {
        about: "a moment of a test that is none",
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
time = "noon"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:9:8: this is no time: a moment is written 2026-11-20 14:02 [bad-time]
  |
9 | time = "noon"
  |        ^^^^^^
"#,
    },
];
