//! Delegation: what only the main file can say, and what a delegated file cannot.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "what only the site may say",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[delegate."20-cad.toml"]
owner = "ann"
users = ["%cad"]
commands = ["matlab"]
[repository.matlab]
limit = 8
[[rule]]
acquire = ["matlab"]
"#,
            ),
            (
                "/etc/rungate/policy.d/20-cad.toml",
                r#"
[defaults]
wait = "1h"
[log]
to = "off"
[command.matlab]
exec = "/home/ann/matlab"
[delegate."30-sim.toml"]
owner = "bob"
users = ["*"]
commands = ["*"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/20-cad.toml:1:2: a delegated file may not say "defaults" [delegated-key]
  |
1 | [defaults]
  |  ^^^^^^^^

/etc/rungate/policy.d/20-cad.toml:3:2: a delegated file may not say "log" [delegated-key]
  |
3 | [log]
  |  ^^^

/etc/rungate/policy.d/20-cad.toml:5:2: a delegated file may not say "command" [delegated-key]
  |
5 | [command.matlab]
  |  ^^^^^^^

/etc/rungate/policy.d/20-cad.toml:7:2: a delegated file may not say "delegate" [delegated-key]
  |
7 | [delegate."30-sim.toml"]
  |  ^^^^^^^^
"#,
    },
    Case {
        about: "a delegated file that claims what is not its own",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[delegate."20-cad.toml"]
owner = "ann"
users = ["%cad"]
commands = ["matlab"]
[repository.matlab]
limit = 8
[[rule]]
acquire = ["matlab"]
"#,
            ),
            (
                "/etc/rungate/policy.d/20-cad.toml",
                r#"
[repository.pool]
limit = 2
[[rule]]
acquire = ["matlab"]
[[rule]]
acquire = [{ repository = "matlab", ceiling = 3, slots = 2 }]
[[rule]]
acquire = [{ any_of = ["pool", { repository = "matlab", ceiling = 3 }] }]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/20-cad.toml:4:12: may only lower "matlab": write ceiling [may-only-lower]
  |
4 | acquire = ["matlab"]
  |            ^^^^^^^^

/etc/rungate/policy.d/20-cad.toml:6:12: may only lower "matlab": write ceiling [may-only-lower]
  |
6 | acquire = [{ repository = "matlab", ceiling = 3, slots = 2 }]
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.d/20-cad.toml:8:32: "any_of" and a repository of others do not go together [contradiction]
  |
8 | acquire = [{ any_of = ["pool", { repository = "matlab", ceiling = 3 }] }]
  |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a delegated file that names a path elsewhere, loosens, and does not know its neighbour",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[alias]
sim = ["vsim"]
[delegate."20-cad.toml"]
owner = "ann"
users = ["%cad"]
commands = ["matlab", "@sim"]
[repository.matlab]
limit = 8
[[rule]]
acquire = ["matlab"]
"#,
            ),
            (
                "/etc/rungate/policy.d/20-cad.toml",
                r#"
[repository.pool]
limit = 2
path = "/run/rungate/matlab.lock"
[[rule]]
acquire = ["pool"]
admit = "always"
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/20-cad.toml:3:8: a delegated file has its repositories in a directory of its own; write a relative path [delegated-path]
  |
3 | path = "/run/rungate/matlab.lock"
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.d/20-cad.toml:6:9: admit = "always" would loosen the system's policy; a policy added to it may only tighten [loosens]
  |
6 | admit = "always"
  |         ^^^^^^^^
"#,
    },
    Case {
        about: "a neighbour's names are not known",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[delegate."20-cad.toml"]
owner = "ann"
users = ["%cad"]
commands = ["matlab"]
[repository.matlab]
limit = 8
[[rule]]
acquire = ["matlab"]
[delegate."30-sim.toml"]
owner = "bob"
users = ["%sim"]
commands = ["*"]
"#,
            ),
            (
                "/etc/rungate/policy.d/20-cad.toml",
                r#"
[alias]
tools = ["mex"]
[repository.pool]
limit = 2
[[rule]]
commands = ["@tools"]
acquire = ["pool"]
"#,
            ),
            (
                "/etc/rungate/policy.d/30-sim.toml",
                r#"
[[rule]]
commands = ["@tools"]
acquire = ["pool"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/30-sim.toml:2:13: unknown alias "@tools" [unknown-alias]
  |
2 | commands = ["@tools"]
  |             ^^^^^^^^

/etc/rungate/policy.d/30-sim.toml:3:12: unknown repository "pool" [unknown-repository]
  |
3 | acquire = ["pool"]
  |            ^^^^^^
"#,
    },
    Case {
        about: "delegations that are none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[delegate."../cad.toml"]
owner = "%cad"
users = ["*"]
commands = ["*"]
[delegate."20-sim.toml"]
users = []
[delegate."30-x.toml"]
owner = "ann"
users = ["@nobody"]
commands = ["*"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:1:11: "../cad.toml" is no name of a drop-in: letters, digits, "_", "-" and ".", and ".toml" at its end [bad-delegate]
  |
1 | [delegate."../cad.toml"]
  |           ^^^^^^^^^^^^^

/etc/rungate/policy.toml:2:9: "%cad" is not one user; write a name or a uid [bad-owner]
  |
2 | owner = "%cad"
  |         ^^^^^^

/etc/rungate/policy.toml:5:1: a delegation needs "owner" [missing-key]
  |
5 | [delegate."20-sim.toml"]
  | ^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:5:1: a delegation needs "commands" [missing-key]
  |
5 | [delegate."20-sim.toml"]
  | ^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:6:9: "users" is empty; for all of them write "*" [empty-list]
  |
6 | users = []
  |         ^^

/etc/rungate/policy.toml:9:10: unknown alias "@nobody" [unknown-alias]
  |
9 | users = ["@nobody"]
  |          ^^^^^^^^^
"#,
    },
    Case {
        about: "a delegation in a drop-in, and in somebody's own policy",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
version = 1
"#,
            ),
            (
                "/etc/rungate/policy.d/10-site.toml",
                r#"
[delegate."20-cad.toml"]
owner = "ann"
users = ["*"]
commands = ["*"]
"#,
            ),
            (
                "/home/ann/.config/rungate/policy.toml",
                r#"
[delegate."20-cad.toml"]
owner = "ann"
users = ["*"]
commands = ["*"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/10-site.toml:1:11: only the system's main file can delegate [delegate-elsewhere]
  |
1 | [delegate."20-cad.toml"]
  |           ^^^^^^^^^^^^^

/home/ann/.config/rungate/policy.toml:1:11: only the system's main file can delegate [delegate-elsewhere]
  |
1 | [delegate."20-cad.toml"]
  |           ^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a delegation to somebody who does not exist",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[delegate."20-cad.toml"]
owner = "nobody-here"
users = ["%cads"]
commands = ["*"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:9: warning: there is no user "nobody-here" [unknown-user]
  |
2 | owner = "nobody-here"
  |         ^^^^^^^^^^^^^

/etc/rungate/policy.toml:3:10: warning: there is no group "cads" [unknown-group]
  |
3 | users = ["%cads"]
  |          ^^^^^^^
"#,
    },
];
