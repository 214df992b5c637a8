//! Several faults at once.

use super::case::Case;

pub(super) const CASES: &[Case] = &[Case {
    about: "every fault of every file at once, sorted by place",
    files: &[
        (
            "/etc/rungate/policy.toml",
            r#"
[defaults]
hold = "tre"
[[rule]]
name = "a"
acquire = ["seats"]
[repository.seat]
limit = -1
"#,
        ),
        (
            "/etc/rungate/policy.d/20.toml",
            r#"
versoin = 1
[[rule]]
users = ["!ann"]
acquire = ["seat"]
"#,
        ),
    ],
    shown: r#"
/etc/rungate/policy.toml:2:8: "tre" is not known to "hold", which is one of "process", "descriptor", "supervisor", "tree"; did you mean "tree"? [unknown-word]
  |
2 | hold = "tre"
  |        ^^^^^

/etc/rungate/policy.toml:5:12: unknown repository "seats"; did you mean "seat"? [unknown-repository]
  |
5 | acquire = ["seats"]
  |            ^^^^^^^

/etc/rungate/policy.toml:7:9: "limit" goes from 0 to 1048575 [out-of-range]
  |
7 | limit = -1
  |         ^^

/etc/rungate/policy.d/20.toml:1:1: unknown key "versoin" in a policy; did you mean "version"? [unknown-key]
  |
1 | versoin = 1
  | ^^^^^^^

/etc/rungate/policy.d/20.toml:3:10: "!ann" excludes nothing; write except = [{ users = ["ann"] }] [negation]
  |
3 | users = ["!ann"]
  |          ^^^^^^
"#,
}];
