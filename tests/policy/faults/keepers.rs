//! Who keeps slots: what goes with the agent, and what does not.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "the agent in a policy of the caller's own",
        files: &[(
            "/home/ann/policy.toml",
            r#"
[repository.a]
keeper = "agent"
limit = 5
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/home/ann/policy.toml:2:10: the agent goes by the system's policy alone, so that keeper = "agent" can stand nowhere else [agent-outside-system-policy]
  |
2 | keeper = "agent"
  |          ^^^^^^^
"#,
    },
    Case {
        about: "what is about lock files",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
keeper = "agent"
limit = 5
path = "a.lock"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:8: "path" and keeper = "agent" do not go together [contradiction]
  |
4 | path = "a.lock"
  |        ^^^^^^^^
"#,
    },
    Case {
        about: "a keeper that there is not",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
keeper = "sites"
limit = 5
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:10: "sites" is not known to "keeper", which is one of "file", "agent", "site"; did you mean "site"? [unknown-word]
  |
2 | keeper = "sites"
  |          ^^^^^^^
"#,
    },
    Case {
        about: "what does not go with the site, and more than one transaction can take",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
keeper = "site"
limit = 500
path = "a.lock"
expire_after = "1h"
queue = 5
[repository.b]
keeper = "agent"
limit = 5
on_lost = "stop"
[[rule]]
acquire = [{ repository = "a", slots = 101 }, "b"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:8: "path" and keeper = "site" do not go together [contradiction]
  |
4 | path = "a.lock"
  |        ^^^^^^^^

/etc/rungate/policy.toml:10:11: "on_lost" says nothing without keeper = "site" [needs-key]
   |
10 | on_lost = "stop"
   |           ^^^^^^

/etc/rungate/policy.toml:12:12: with keeper = "site" a launch can take at most 100 slots at once, because one transaction of etcd has room for no more [too-many-for-site]
   |
12 | acquire = [{ repository = "a", slots = 101 }, "b"]
   |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "defaults about lock files, where the agent keeps everything",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
keeper = "agent"
directory = "/srv"
create_mode = "0600"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:13: "directory" and keeper = "agent" do not go together [contradiction]
  |
3 | directory = "/srv"
  |             ^^^^^^

/etc/rungate/policy.toml:4:15: "create_mode" and keeper = "agent" do not go together [contradiction]
  |
4 | create_mode = "0600"
  |               ^^^^^^
"#,
    },
    Case {
        about: "what is unreachable is not a lock file",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
unreachable = "start"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:15: "unreachable" says nothing without keeper = "agent" [needs-key]
  |
3 | unreachable = "start"
  |               ^^^^^^^
"#,
    },
    Case {
        about: "alternatives of different keepers",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[repository.b]
keeper = "agent"
limit = 5
[[rule]]
acquire = [{ any_of = ["a", "b"] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:7:29: repository "b" has another keeper than the first alternative; all of any_of need the same [mixed-keepers]
  |
7 | acquire = [{ any_of = ["a", "b"] }]
  |                             ^^^
"#,
    },
    Case {
        about: "two files, one table of the agent's",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
keeper = "agent"
limit = 5
[[rule]]
name = "a"
acquire = ["a"]
"#,
            ),
            (
                "/etc/rungate/policy.d/b.toml",
                r#"
[repository.a]
keeper = "agent"
limit = 5
[[rule]]
name = "b"
acquire = ["a"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/b.toml:1:13: several files define a repository "a"; give one of them another name [ambiguous-repository]
  |
1 | [repository.a]
  |             ^
  |
 ::: /etc/rungate/policy.toml:1:13
  |
1 | [repository.a]
  |             - first defined here
"#,
    },
    Case {
        about: "two files, one name of which each has another keeper",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
limit = 5
[[rule]]
name = "a"
acquire = ["a"]
"#,
            ),
            (
                "/etc/rungate/policy.d/b.toml",
                r#"
[repository.a]
keeper = "agent"
limit = 5
[[rule]]
name = "b"
acquire = ["a"]
"#,
            ),
        ],
        shown: r#"
/etc/rungate/policy.d/b.toml:1:13: several files define a repository "a"; give one of them another name [ambiguous-repository]
  |
1 | [repository.a]
  |             ^
  |
 ::: /etc/rungate/policy.toml:1:13
  |
1 | [repository.a]
  |             - first defined here
"#,
    },
];
