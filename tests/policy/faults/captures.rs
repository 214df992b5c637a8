//! Captures: what nothing uses, what nobody captures, and what cannot be one.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a word in braces that nothing uses",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
directories = ["/proj/{apollo}/**"]
except = [{ environment = { SITE = ["{berlin}"] } }]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:16: nothing uses {apollo}; for the word itself write apollo [unused-capture]
  |
4 | directories = ["/proj/{apollo}/**"]
  |                ^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:5:37: nothing uses {berlin}; for the word itself write berlin [unused-capture]
  |
5 | except = [{ environment = { SITE = ["{berlin}"] } }]
  |                                     ^^^^^^^^^^
"#,
    },
    Case {
        about: "a repository by what its rule does not capture",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.project]
per = "{project}"
limit = 5
[[rule]]
directories = ["/proj/{project}/**"]
acquire = ["project"]
[[rule]]
acquire = ["project"]
[[rule]]
arguments = ["--job={job}"]
acquire = [{ any_of = ["project"] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:8:12: "project" is by {project}, which this rule does not capture [not-captured]
  |
8 | acquire = ["project"]
  |            ^^^^^^^^^

/etc/rungate/policy.toml:10:14: nothing uses {job}; for the word itself write job [unused-capture]
   |
10 | arguments = ["--job={job}"]
   |              ^^^^^^^^^^^^^

/etc/rungate/policy.toml:11:24: "project" is by {project}, which this rule does not capture [not-captured]
   |
11 | acquire = [{ any_of = ["project"] }]
   |                        ^^^^^^^^^
"#,
    },
    Case {
        about: "captures that are no whole part, and what stands before them",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.x]
path = "{a}.lock"
limit = 5
[[rule]]
directories = ["/proj/x{a}/**"]
acquire = ["x"]
[[rule]]
directories = ["/*/{a}"]
acquire = ["x"]
[[rule]]
arguments = [["--job", "{a}.cfg"]]
acquire = ["x"]
[[rule]]
environment = { PROJECT = ["p-?{a}"] }
acquire = ["x"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:16: {a} must be a whole part, or end its argument [partial-capture]
  |
5 | directories = ["/proj/x{a}/**"]
  |                ^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:8:16: only literal text may stand before {a} [capture-after-pattern]
  |
8 | directories = ["/*/{a}"]
  |                ^^^^^^^^

/etc/rungate/policy.toml:11:24: {a} must be a whole part, or end its argument [partial-capture]
   |
11 | arguments = [["--job", "{a}.cfg"]]
   |                        ^^^^^^^^^

/etc/rungate/policy.toml:14:28: only literal text may stand before {a} [capture-after-pattern]
   |
14 | environment = { PROJECT = ["p-?{a}"] }
   |                            ^^^^^^^^
"#,
    },
    Case {
        about: "what every path knows already",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.home]
per = "{user}"
limit = 5
[[rule]]
directories = ["/home/{user}/**"]
acquire = ["home"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:7: "{user}" is not known to "per", which is one of "user", "group", "host", "command", "directory"; did you mean "user"? [unknown-word]
  |
2 | per = "{user}"
  |       ^^^^^^^^

/etc/rungate/policy.toml:5:16: {user} has its meaning in every path; call what is captured {the_user} [capture-of-placeholder]
  |
5 | directories = ["/home/{user}/**"]
  |                ^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "entries of one list that capture differently",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.project]
per = ["{project}", "{block}"]
limit = 5
[[rule]]
directories = ["/proj/{project}/{block}/**", "/scratch/{project}/**"]
acquire = ["project"]
[[rule]]
arguments = [["--in", "{project}", "{block}"], "--all"]
acquire = ["project"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:16: every entry of "directories" must capture {block}, or none [uneven-captures]
  |
5 | directories = ["/proj/{project}/{block}/**", "/scratch/{project}/**"]
  |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:8:23: every entry of "arguments" must capture {project}, or none [uneven-captures]
  |
8 | arguments = [["--in", "{project}", "{block}"], "--all"]
  |                       ^^^^^^^^^^^

/etc/rungate/policy.toml:8:36: every entry of "arguments" must capture {block}, or none [uneven-captures]
  |
8 | arguments = [["--in", "{project}", "{block}"], "--all"]
  |                                    ^^^^^^^^^
"#,
    },
    Case {
        about: "a name that is captured twice",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.project]
per = "{project}"
limit = 5
[[rule]]
directories = ["/proj/{project}/**"]
environment = { PROJECT = ["{project}"] }
acquire = ["project"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:6:28: {project} is captured a second time [captured-twice]
  |
5 | directories = ["/proj/{project}/**"]
  |                -------------------- first defined here
6 | environment = { PROJECT = ["{project}"] }
  |                            ^^^^^^^^^^^
"#,
    },
    Case {
        about: "a capture twice in per",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.project]
per = ["{project}", "{project}"]
limit = 5
[[rule]]
directories = ["/proj/{project}/**"]
acquire = ["project"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:21: "{project}" stands here twice [repeated]
  |
2 | per = ["{project}", "{project}"]
  |                     ^^^^^^^^^^^
"#,
    },
    Case {
        about: "a capture in an alias, which is at fault where it stands",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
projects = ["/proj/{project}/**"]
[repository.a]
limit = 5
[[rule]]
directories = ["@projects"]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:13: nothing uses {project}; for the word itself write project [unused-capture]
  |
2 | projects = ["/proj/{project}/**"]
  |             ^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a capture in a limit, where nothing can use it",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
per = "directory"
limit = 5
limits = [{ directories = ["/proj/{project}/**"], limit = 2 }]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:28: nothing uses {project}; for the word itself write project [unused-capture]
  |
4 | limits = [{ directories = ["/proj/{project}/**"], limit = 2 }]
  |                            ^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a cap for each project that everybody can leave behind",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.project]
per = "{project}"
limit = 2
limits = { apollo = 3 }
[[rule]]
environment = { PROJECT = ["{project}"] }
acquire = ["project"]
[[rule]]
arguments = ["--project={project}"]
groups = ["cad"]
acquire = ["project"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:7:12: warning: repository "project" has a file for each {project}, which the caller chooses: who chooses another one begins anew with the limit; what they cannot choose are their groups: per = "group" [chosen-by-caller]
  |
7 | acquire = ["project"]
  |            ^^^^^^^^^

/etc/rungate/policy.toml:11:12: warning: repository "project" has a file for each {project}, which the caller chooses: who chooses another one begins anew with the limit; what they cannot choose are their groups: per = "group" [chosen-by-caller]
   |
11 | acquire = ["project"]
   |            ^^^^^^^^^
"#,
    },
    Case {
        about: "a cap for the projects that are listed, and a lock for each of any, which are no limit to callers",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.project]
per = "{project}"
limit = 0
limits = { apollo = 3 }
[repository.job]
per = "{job}"
limit = 1
[[rule]]
directories = ["/proj/{project}/**"]
arguments = [["--job", "{job}"], "--job={job}"]
acquire = ["project", "job"]
"#,
        )],
        shown: r#"
"#,
    },
];
