//! Paths of repositories, directories, programs, logs.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a placeholder that nobody knows",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "{usr}.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: unknown placeholder "{usr}"; did you mean "{user}"? [unknown-placeholder]
  |
3 | path = "{usr}.lock"
  |        ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "an argument beyond the ninth",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "{arg10}.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: unknown placeholder "{arg10}"; did you mean "{arg1}"? [unknown-placeholder]
  |
3 | path = "{arg10}.lock"
  |        ^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a brace that is not closed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "{user.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "{" opens a placeholder that is not closed, or "}" closes none [open-brace]
  |
3 | path = "{user.lock"
  |        ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a brace that closes nothing",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "user}.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "{" opens a placeholder that is not closed, or "}" closes none [open-brace]
  |
3 | path = "user}.lock"
  |        ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "the runtime directory within a path",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "x/{runtime}/a"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: {runtime} is a directory and can only stand at the start of a path [runtime-not-first]
  |
3 | path = "x/{runtime}/a"
  |        ^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a path that leads up",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "../a.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "." and ".." are not allowed in this path [dots-in-path]
  |
3 | path = "../a.lock"
  |        ^^^^^^^^^^^
"#,
    },
    Case {
        about: "a path that names no file",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "locks/"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: the path names no file [empty-path]
  |
3 | path = "locks/"
  |        ^^^^^^^^
"#,
    },
    Case {
        about: "an empty path",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = ""
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: the path names no file [empty-path]
  |
3 | path = ""
  |        ^^
"#,
    },
    Case {
        about: "a control character in a path",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "a\nb"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: control characters are not allowed in a path [control-character]
  |
3 | path = "a\nb"
  |        ^^^^^^
"#,
    },
    Case {
        about: "a name that is too long",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: this name is longer than 199 bytes [name-too-long]
  |
3 | ... = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
  |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a directory that is relative",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
directory = "locks"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:13: "directory" must be an absolute path [relative-path]
  |
2 | directory = "locks"
  |             ^^^^^^^
"#,
    },
    Case {
        about: "a directory that differs from launch to launch",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
directory = "/run/{user}"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:13: the directory must be the same for every launch; only {runtime} may stand at its start [placeholder-in-directory]
  |
2 | directory = "/run/{user}"
  |             ^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a program by a relative path",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[command.matlab]
exec = "bin/matlab"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:8: "exec" must be an absolute path [relative-path]
  |
2 | exec = "bin/matlab"
  |        ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a log at a relative path",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "log/rungate.jsonl"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: "to" must be an absolute path [relative-path]
  |
2 | to = "log/rungate.jsonl"
  |      ^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a user in the path of a log",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "/var/log/{user}.jsonl"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: only {host} may stand in the path of a log [placeholder-in-log]
  |
2 | to = "/var/log/{user}.jsonl"
  |      ^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "the runtime directory in the path of a log",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "/{runtime}/rungate.jsonl"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: only {host} may stand in the path of a log [placeholder-in-log]
  |
2 | to = "/{runtime}/rungate.jsonl"
  |      ^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a placeholder in the path of a log that nobody knows",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "/var/log/{hots}.jsonl"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: unknown placeholder "{hots}"; did you mean "{host}"? [unknown-placeholder]
  |
2 | to = "/var/log/{hots}.jsonl"
  |      ^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a brace in the path of a log",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "/var/log/{host.jsonl"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: "{" opens a placeholder that is not closed, or "}" closes none [open-brace]
  |
2 | to = "/var/log/{host.jsonl"
  |      ^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a log that is a directory",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "/var/log/"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: the path names no file [empty-path]
  |
2 | to = "/var/log/"
  |      ^^^^^^^^^^^
"#,
    },
    Case {
        about: "two repositories with one path and different settings",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[repository.b]
limit = 6
path = "/run/rungate/a.lock"
[[rule]]
acquire = ["a", "b"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:8: repository "a" has the same path and other settings [same-path]
  |
1 | [repository.a]
  |             - first defined here
...
5 | path = "/run/rungate/a.lock"
  |        ^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a path beside a file for each member",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "a.lock"
per = "user"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "path" and "per" do not go together [contradiction]
  |
3 | path = "a.lock"
  |        ^^^^^^^^
"#,
    },
    Case {
        about: "a repository whose name is too long",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]
limit = 1
[[rule]]
acquire = ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
"#,
        )],
        shown: r"
/etc/rungate/policy.toml:1:13: this name is longer than 100 bytes [name-too-long]
  |
1 | [repository.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]
  |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
",
    },
];
