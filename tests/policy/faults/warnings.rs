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
        about: "an alternative that is never reached",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.drc]
limit = 5
[repository.lvs]
limit = 5
[[rule]]
acquire = [{ any_of = ["drc", ["drc", "lvs"], { repository = "drc", slots = 2 }, "lvs"] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:6:31: warning: never reached: "drc" before it wants less [never-reached]
  |
6 | acquire = [{ any_of = ["drc", ["drc", "lvs"], { repository = "drc", slots = 2 }, "lvs"] }]
  |                               ^^^^^^^^^^^^^^

/etc/rungate/policy.toml:6:47: warning: never reached: "drc" before it wants less [never-reached]
  |
6 | acquire = [{ any_of = ["drc", ["drc", "lvs"], { repository = "drc", slots = 2 }, "lvs"] }]
  |                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
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
        about: "a member of what has none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
[[test]]
name = "full"
command = "vi"
expect = "start"
use = { "a [ann]" = 5 }
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:9:9: warning: repository "a" is one for all and has no members, so that this counts for nothing [no-members]
  |
9 | use = { "a [ann]" = 5 }
  |         ^^^^^^^^^
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
        about: "several programs of several rules that let go of their slots",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
name = "remote"
acquire = ["a"]
commands = ["ssh", "make", "scp"]
[[rule]]
name = "more"
acquire = ["a"]
commands = ["ssh", "sftp", "tmux"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:8: warning: "ssh", "scp", "sftp" let go of their slots while they still run; write hold = "supervisor" in rules "remote", "more" [weak-hold]
  |
4 | name = "remote"
  |        ^^^^^^^^

/etc/rungate/policy.toml:8:8: warning: "tmux" lets go of its slot while it still runs; write hold = "tree" [weak-hold]
  |
8 | name = "more"
  |        ^^^^^^
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
        about: "an entry of an alias that several rules use",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
staff = ["ann", "nosuch"]
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
users = ["@staff"]
[[rule]]
commands = ["x"]
action = "deny"
users = ["@staff"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:17: warning: there is no user "nosuch" [unknown-user]
  |
2 | staff = ["ann", "nosuch"]
  |                 ^^^^^^^^
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
    Case {
        about: "members that do not exist",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = "user"
limits = { ann = 8, studnets = 1, "x*" = 2, 4711 = 3 }
[repository.b]
limit = 5
per = "group"
limits = { cda = 8 }
[[rule]]
groups = ["cad"]
acquire = ["a", "b"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:21: warning: there is no user "studnets" [unknown-user]
  |
4 | limits = { ann = 8, studnets = 1, "x*" = 2, 4711 = 3 }
  |                     ^^^^^^^^

/etc/rungate/policy.toml:8:12: warning: there is no group "cda" [unknown-group]
  |
8 | limits = { cda = 8 }
  |            ^^^
"#,
    },
    Case {
        about: "a directory that the caller chooses",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
path = "{runtime}/a.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: warning: {runtime} follows XDG_RUNTIME_DIR: who changes it begins anew with every limit; write an absolute path [runtime-of-caller]
  |
3 | path = "{runtime}/a.lock"
  |        ^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a default directory that the caller chooses, and a policy of one's own that may have it",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[defaults]
directory = "{runtime}"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
"#,
            ),
            (
                "/home/ann/policy.toml",
                r#"
[repository.b]
limit = 5
path = "{runtime}/{arg1}.lock"
[[rule]]
users = ["ann"]
acquire = ["b"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.toml:3:13: warning: {runtime} follows XDG_RUNTIME_DIR: who changes it begins anew with every limit; write an absolute path [runtime-of-caller]
  |
3 | [repository.a]
  |             ^
"#,
    },
    Case {
        about: "files that the caller chooses, and a rule that is about who they are",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.cwd]
limit = 5
per = "directory"
[repository.arg]
limit = 5
path = "{arg2}.lock"
[repository.args]
limit = 5
path = "{user}-{args}.lock"
[repository.env]
limit = 5
path = "{env.PROJECT}/a.lock"
[[rule]]
users = ["ann"]
acquire = ["cwd", { any_of = ["arg", "args"] }]
[[rule]]
groups = ["cad"]
acquire = [{ repository = "env", slots = 2 }]
[[rule]]
commands = ["rsync"]
acquire = ["cwd", "arg", "args", "env"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:15:12: warning: repository "cwd" has a file for each {cwd}, which the caller chooses: who chooses another one begins anew with the limit; what they cannot choose are their groups: per = "group" [chosen-by-caller]
   |
15 | acquire = ["cwd", { any_of = ["arg", "args"] }]
   |            ^^^^^

/etc/rungate/policy.toml:15:31: warning: repository "arg" has a file for each {arg2}, which the caller chooses: who chooses another one begins anew with the limit; what they cannot choose are their groups: per = "group" [chosen-by-caller]
   |
15 | acquire = ["cwd", { any_of = ["arg", "args"] }]
   |                               ^^^^^

/etc/rungate/policy.toml:15:38: warning: repository "args" has a file for each {args}, which the caller chooses: who chooses another one begins anew with the limit; what they cannot choose are their groups: per = "group" [chosen-by-caller]
   |
15 | acquire = ["cwd", { any_of = ["arg", "args"] }]
   |                                      ^^^^^^

/etc/rungate/policy.toml:18:27: warning: repository "env" has a file for each {env.PROJECT}, which the caller chooses: who chooses another one begins anew with the limit; what they cannot choose are their groups: per = "group" [chosen-by-caller]
   |
18 | acquire = [{ repository = "env", slots = 2 }]
   |                           ^^^^^
"#,
    },
    Case {
        about: "an exception for everybody, from a rule for everybody",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
except = [{ users = ["*"] }]
[[rule]]
acquire = ["a"]
commands = ["x"]
except = [{ hosts = ["ws*", "*"], groups = ["*"], commands = ["*"] }]
"#,
        )],
        shown: r"
/etc/rungate/policy.toml:3:1: warning: the rule can never match: an exception matches whatever its selectors match [never-matches]
  |
3 | [[rule]]
  | ^^^^^^^^

/etc/rungate/policy.toml:6:1: warning: the rule can never match: an exception matches whatever its selectors match [never-matches]
  |
6 | [[rule]]
  | ^^^^^^^^
",
    },
    Case {
        about: "a family whose first rule is for everybody in other words",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
name = "all"
users = ["*"]
first_of = "f"
acquire = ["a"]
[[rule]]
name = "rest"
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
9 | name = "rest"
  |        ^^^^^^
"#,
    },
];
