//! What somebody adds to the system's policy.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "an exempt rule that somebody adds for himself",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
limit = 5
[[rule]]
name = "seats"
acquire = ["a"]
[command.matlab]
exec = "/opt/matlab"
"#,
            ),
            (
                "/home/ann/.config/rungate/policy.toml",
                r#"
[[rule]]
action = "exempt"
"#,
            ),
        ],
        shown: r#"
/home/ann/.config/rungate/policy.toml:2:10: an exempt rule would loosen the system's policy; a policy added to it may only tighten [loosens]
  |
2 | action = "exempt"
  |          ^^^^^^^^
"#,
    },
    Case {
        about: "a launch that is always admitted, added for himself",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
limit = 5
[[rule]]
name = "seats"
acquire = ["a"]
[command.matlab]
exec = "/opt/matlab"
"#,
            ),
            (
                "/home/ann/.config/rungate/policy.toml",
                r#"
[[rule]]
admit = "always"
acquire = ["a"]
"#,
            ),
        ],
        shown: r#"
/home/ann/.config/rungate/policy.toml:2:9: admit = "always" would loosen the system's policy; a policy added to it may only tighten [loosens]
  |
2 | admit = "always"
  |         ^^^^^^^^
"#,
    },
    Case {
        about: "a limit that is not enforced, added for himself",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
limit = 5
[[rule]]
name = "seats"
acquire = ["a"]
[command.matlab]
exec = "/opt/matlab"
"#,
            ),
            (
                "/home/ann/.config/rungate/policy.toml",
                r#"
[[rule]]
enforce = false
acquire = ["a"]
"#,
            ),
        ],
        shown: r"
/home/ann/.config/rungate/policy.toml:2:11: enforce = false would loosen the system's policy; a policy added to it may only tighten [loosens]
  |
2 | enforce = false
  |           ^^^^^
",
    },
    Case {
        about: "limits that are not enforced, added for himself",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
limit = 5
[[rule]]
name = "seats"
acquire = ["a"]
[command.matlab]
exec = "/opt/matlab"
"#,
            ),
            (
                "/home/ann/.config/rungate/policy.toml",
                r"
[defaults]
enforce = false
",
            ),
        ],
        shown: r"
/home/ann/.config/rungate/policy.toml:2:11: enforce = false would loosen the system's policy; a policy added to it may only tighten [loosens]
  |
2 | enforce = false
  |           ^^^^^
",
    },
    Case {
        about: "another program for a command of the system's policy",
        files: &[
            (
                "/etc/rungate/policy.toml",
                r#"
[repository.a]
limit = 5
[[rule]]
name = "seats"
acquire = ["a"]
[command.matlab]
exec = "/opt/matlab"
"#,
            ),
            (
                "/home/ann/.config/rungate/policy.toml",
                r#"
[command.matlab]
exec = "/tmp/matlab"
"#,
            ),
        ],
        shown: r"
/home/ann/.config/rungate/policy.toml:1:10: another program for this command would loosen the system's policy; a policy added to it may only tighten [loosens]
  |
1 | [command.matlab]
  |          ^^^^^^
",
    },
];
