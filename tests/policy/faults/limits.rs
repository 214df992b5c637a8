//! Limits by member, as tables and as lists, shares, and reservations for hosts and hours.

use super::case::Case;

pub(crate) const CASES: &[Case] = &[
    Case {
        about: "a table of limits in which nothing can match",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.u]
limit  = 3
per    = "user"
limits = { "%power" = 1, "20000-29999" = 1, "@kids" = 1, "!ann" = 4 }
[repository.g]
limit  = 3
per    = "group"
limits = { "+hosts" = 1, "%cad" = 2, "100-199" = 2 }
[repository.h]
limit  = 3
per    = "host"
limits = { "%power" = 1, "1-2" = 3 }
[repository.c]
limit  = 3
per    = "command"
limits = { "/usr/bin/x" = 1 }
[repository.d]
limit  = 3
per    = "directory"
limits = { "proj/apollo" = 1, "/proj/**" = 2 }
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:45: unknown alias "@kids" [unknown-alias]
  |
4 | limits = { "%power" = 1, "20000-29999" = 1, "@kids" = 1, "!ann" = 4 }
  |                                             ^^^^^^^

/etc/rungate/policy.toml:4:58: "!ann" excludes nothing; the first entry that matches counts [limits-negation]
  |
4 | limits = { "%power" = 1, "20000-29999" = 1, "@kids" = 1, "!ann" = 4 }
  |                                                          ^^^^^^

/etc/rungate/policy.toml:8:12: "+hosts" selects users; this repository is by group [limits-selector]
  |
8 | limits = { "+hosts" = 1, "%cad" = 2, "100-199" = 2 }
  |            ^^^^^^^^

/etc/rungate/policy.toml:8:26: "%cad" selects users; this repository is by group [limits-selector]
  |
8 | limits = { "+hosts" = 1, "%cad" = 2, "100-199" = 2 }
  |                          ^^^^^^

/etc/rungate/policy.toml:12:12: "%power" selects users; this repository is by host [limits-selector]
   |
12 | limits = { "%power" = 1, "1-2" = 3 }
   |            ^^^^^^^^

/etc/rungate/policy.toml:12:26: "1-2" selects numbers; this repository is by host [limits-selector]
   |
12 | limits = { "%power" = 1, "1-2" = 3 }
   |                          ^^^^^

/etc/rungate/policy.toml:16:12: "/usr/bin/x" selects paths; this repository is by command [limits-selector]
   |
16 | limits = { "/usr/bin/x" = 1 }
   |            ^^^^^^^^^^^^

/etc/rungate/policy.toml:20:12: "proj/apollo" can match no directory, because directories begin with "/"; did you mean "/**/proj/apollo"? [relative-directory-pattern]
   |
20 | limits = { "proj/apollo" = 1, "/proj/**" = 2 }
   |            ^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a list of limits by what the repository is not by",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.u]
limit  = 3
per    = "user"
limits = [{ groups = ["leads"], limit = 4 }, { limit = 5 }, { hosts = ["a*"], users = ["ann"], limit = 5 },
          { users = ["ann"] }, { user = ["ann"], limit = 1 }, { arguments = ["-x"], limit = 1 }]
[repository.h]
limit  = 3
limits = [{ groups = ["leads"], limit = 4 }, { when = ["Fri 18:00-Sun 20:00"], limit = 0 }]
[repository.l]
limit  = 3
limits = 4
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:22: "groups" needs per = "group"; for members write users = ["%leads"] [limits-not-by]
  |
4 | limits = [{ groups = ["leads"], limit = 4 }, { limit = 5 }, { hosts = ["a*"], users = ["ann"], limit = 5 },
  |                      ^^^^^^^^^

/etc/rungate/policy.toml:4:46: this would be everybody's limit; write it as "limit" [limit-for-all]
  |
4 | limits = [{ groups = ["leads"], limit = 4 }, { limit = 5 }, { hosts = ["a*"], users = ["ann"], limit = 5 },
  |                                              ^^^^^^^^^^^^^

/etc/rungate/policy.toml:4:71: "hosts" needs per = "host" [limits-not-by]
  |
4 | limits = [{ groups = ["leads"], limit = 4 }, { limit = 5 }, { hosts = ["a*"], users = ["ann"], limit = 5 },
  |                                                                       ^^^^^^

/etc/rungate/policy.toml:5:11: a limit needs "limit" [missing-key]
  |
5 |           { users = ["ann"] }, { user = ["ann"], limit = 1 }, { arguments = ["-x"], limit = 1 }]
  |           ^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:5:34: unknown key "user" in a limit; did you mean "users"? [unknown-key]
  |
5 |           { users = ["ann"] }, { user = ["ann"], limit = 1 }, { arguments = ["-x"], limit = 1 }]
  |                                  ^^^^

/etc/rungate/policy.toml:5:65: unknown key "arguments" in a limit [unknown-key]
  |
5 |           { users = ["ann"] }, { user = ["ann"], limit = 1 }, { arguments = ["-x"], limit = 1 }]
  |                                                                 ^^^^^^^^^

/etc/rungate/policy.toml:8:22: "groups" needs per = "group" [limits-not-by]
  |
8 | limits = [{ groups = ["leads"], limit = 4 }, { when = ["Fri 18:00-Sun 20:00"], limit = 0 }]
  |                      ^^^^^^^^^

/etc/rungate/policy.toml:8:56: this is no time: write "Fri 18:00..Sun 20:00" [bad-time]
  |
8 | limits = [{ groups = ["leads"], limit = 4 }, { when = ["Fri 18:00-Sun 20:00"], limit = 0 }]
  |                                                        ^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:11:10: "limits" is a whole number; it must be a table of members, such as { ann = 8 }; one limit for all is "limit" [wrong-type]
   |
11 | limits = 4
   |          ^
"#,
    },
    Case {
        about: "shares that are none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit   = 5
reserve = [{ for = ["ann"], slots = "0%" }, { for = ["bob"], slots = "60%", lend = "10%" },
           { for = ["ann"], slots = "50%" }]
[[rule]]
acquire = [{ repository = "a", ceiling = "110%" }, { repository = "a", ceiling = "half" }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:37: "0%" is no share for "slots"; write a number of slots, or "60%" [bad-share]
  |
3 | reserve = [{ for = ["ann"], slots = "0%" }, { for = ["bob"], slots = "60%", lend = "10%" },
  |                                     ^^^^

/etc/rungate/policy.toml:3:84: "lend" is a string; it must be a whole number [wrong-type]
  |
3 | reserve = [{ for = ["ann"], slots = "0%" }, { for = ["bob"], slots = "60%", lend = "10%" },
  |                                                                                    ^^^^^

/etc/rungate/policy.toml:6:42: "110%" is no share for "ceiling"; write a number of slots, or "60%" [bad-share]
  |
6 | acquire = [{ repository = "a", ceiling = "110%" }, { repository = "a", ceiling = "half" }]
  |                                          ^^^^^^

/etc/rungate/policy.toml:6:82: "half" is no share for "ceiling"; write a number of slots, or "60%" [bad-share]
  |
6 | acquire = [{ repository = "a", ceiling = "110%" }, { repository = "a", ceiling = "half" }]
  |                                                                                  ^^^^^^
"#,
    },
    Case {
        about: "reservations for everybody",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit   = 5
reserve = [{ when = ["Mon-Fri 08:00-18:00"], slots = 2 }, { slots = 1 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:21: "when" alone keeps slots for everybody; add "for" or "hosts" [kept-for-everybody]
  |
3 | reserve = [{ when = ["Mon-Fri 08:00-18:00"], slots = 2 }, { slots = 1 }]
  |                     ^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:3:59: this keeps slots for everybody; add "for" or "hosts" [kept-for-everybody]
  |
3 | reserve = [{ when = ["Mon-Fri 08:00-18:00"], slots = 2 }, { slots = 1 }]
  |                                                           ^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "limits and reservations for those who do not exist, and a ceiling of everything",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[alias]
leads = ["zoe"]
[repository.u]
limit   = 3
per     = "user"
limits  = { "%pwoer" = 1, "@leads" = 2 }
reserve = [{ for = ["%cda"], hosts = ["a*"], slots = 1 }]
[repository.g]
limit   = 3
limits  = [{ when = ["22:00-06:00"], limit = 8 }]
[[rule]]
acquire = ["u", { repository = "g", ceiling = "100%" }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:10: warning: there is no user "zoe" [unknown-user]
  |
2 | leads = ["zoe"]
  |          ^^^^^

/etc/rungate/policy.toml:6:13: warning: there is no group "pwoer" [unknown-group]
  |
6 | limits  = { "%pwoer" = 1, "@leads" = 2 }
  |             ^^^^^^^^

/etc/rungate/policy.toml:7:21: warning: there is no group "cda" [unknown-group]
  |
7 | reserve = [{ for = ["%cda"], hosts = ["a*"], slots = 1 }]
  |                     ^^^^^^

/etc/rungate/policy.toml:12:47: warning: a ceiling of 100% says nothing beside a limit of 8 [never-binds]
   |
12 | acquire = ["u", { repository = "g", ceiling = "100%" }]
   |                                               ^^^^^^
"#,
    },
    Case {
        about: "spans of time",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
when    = ["Fri 18:00-Sun 20:00", "2026-11-20 18:00 - 2026-11-22 20:00", "Fri 18:00..Sun", "Fri..Sun 20:00",
           "Fri 18:00..2026-11-22 20:00", "Fri 18:00..Fri 18:00", "2026-11-22 20:00..2026-11-20 18:00"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:12: this is no time: write "Fri 18:00..Sun 20:00" [bad-time]
  |
5 | when    = ["Fri 18:00-Sun 20:00", "2026-11-20 18:00 - 2026-11-22 20:00", "Fri 18:00..Sun", "Fri..Sun 20:00",
  |            ^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:5:35: this is no time: write "2026-11-20 18:00..2026-11-22 20:00" [bad-time]
  |
5 | when    = ["Fri 18:00-Sun 20:00", "2026-11-20 18:00 - 2026-11-22 20:00", "Fri 18:00..Sun", "Fri..Sun 20:00",
  |                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:5:74: this is no time: a span has hours at both ends: Fri 18:00..Sun 20:00 [bad-time]
  |
5 | when    = ["Fri 18:00-Sun 20:00", "2026-11-20 18:00 - 2026-11-22 20:00", "Fri 18:00..Sun", "Fri..Sun 20:00",
  |                                                                          ^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:5:92: this is no time: a span has hours at both ends: Fri 18:00..Sun 20:00 [bad-time]
  |
5 | when    = ["Fri 18:00-Sun 20:00", "2026-11-20 18:00 - 2026-11-22 20:00", "Fri 18:00..Sun", "Fri..Sun 20:00",
  |                                                                                            ^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:6:12: this is no time: both ends of a span are days of the week, or both are dates [bad-time]
  |
6 |            "Fri 18:00..2026-11-22 20:00", "Fri 18:00..Fri 18:00", "2026-11-22 20:00..2026-11-20 18:00"]
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:6:43: this is no time: the span ends where it begins [bad-time]
  |
6 |            "Fri 18:00..2026-11-22 20:00", "Fri 18:00..Fri 18:00", "2026-11-22 20:00..2026-11-20 18:00"]
  |                                           ^^^^^^^^^^^^^^^^^^^^^^

/etc/rungate/policy.toml:6:67: this is no time: the span ends before it begins [bad-time]
  |
6 |            "Fri 18:00..2026-11-22 20:00", "Fri 18:00..Fri 18:00", "2026-11-22 20:00..2026-11-20 18:00"]
  |                                                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "names of slots",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit        = 8
names        = ["0", "1", "0", "a b", "c,d", "", "x"]
out_of_order = ["x", "y", 3]
[repository.b]
per          = "host"
names        = ["one", "two"]
limits       = { ws1 = 3 }
out_of_order = { ws1 = ["tow"], "!ws2" = [], "[" = ["one"] }
[repository.c]
limit        = 2
out_of_order = ["0"]
[repository.d]
names        = []
[repository.e]
limit        = 1
names        = ["one"]
out_of_order = "one"
[[rule]]
acquire = ["b"]
admit   = "always"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:16: limit 8 is above 7 names [limit-above-names]
  |
2 | limit        = 8
  |                ^

/etc/rungate/policy.toml:3:27: two slots are called "0" [name-twice]
  |
3 | names        = ["0", "1", "0", "a b", "c,d", "", "x"]
  |                           ^^^

/etc/rungate/policy.toml:3:32: "a b" cannot be the name of a slot: no blanks and no commas [bad-slot-name]
  |
3 | names        = ["0", "1", "0", "a b", "c,d", "", "x"]
  |                                ^^^^^

/etc/rungate/policy.toml:3:39: "c,d" cannot be the name of a slot: no blanks and no commas [bad-slot-name]
  |
3 | names        = ["0", "1", "0", "a b", "c,d", "", "x"]
  |                                       ^^^^^

/etc/rungate/policy.toml:3:46: "" cannot be the name of a slot: no blanks and no commas [bad-slot-name]
  |
3 | names        = ["0", "1", "0", "a b", "c,d", "", "x"]
  |                                              ^^

/etc/rungate/policy.toml:4:22: no slot is called "y" [unknown-name]
  |
4 | out_of_order = ["x", "y", 3]
  |                      ^^^

/etc/rungate/policy.toml:4:27: "out_of_order" is a whole number; it must be a string [wrong-type]
  |
4 | out_of_order = ["x", "y", 3]
  |                           ^

/etc/rungate/policy.toml:8:24: limit 3 is above 2 names [limit-above-names]
  |
8 | limits       = { ws1 = 3 }
  |                        ^

/etc/rungate/policy.toml:9:25: no slot is called "tow"; did you mean "two"? [unknown-name]
  |
9 | out_of_order = { ws1 = ["tow"], "!ws2" = [], "[" = ["one"] }
  |                         ^^^^^

/etc/rungate/policy.toml:9:42: "!ws2" is empty; leave it out where all are in order [empty-list]
  |
9 | out_of_order = { ws1 = ["tow"], "!ws2" = [], "[" = ["one"] }
  |                                          ^^

/etc/rungate/policy.toml:9:46: this is no pattern: unclosed character class; missing ']' [bad-pattern]
  |
9 | out_of_order = { ws1 = ["tow"], "!ws2" = [], "[" = ["one"] }
  |                                              ^^^

/etc/rungate/policy.toml:12:16: "out_of_order" says nothing without "names" [needs-key]
   |
12 | out_of_order = ["0"]
   |                ^^^^^

/etc/rungate/policy.toml:14:16: "names" is empty; leave it out for slots without names [empty-list]
   |
14 | names        = []
   |                ^^

/etc/rungate/policy.toml:18:16: "out_of_order" is a string; it must be a list of names, or a table of hosts with such lists [wrong-type]
   |
18 | out_of_order = "one"
   |                ^^^^^

/etc/rungate/policy.toml:21:11: admit = "always": no name beyond the last of repository "b" [beyond-names]
   |
21 | admit   = "always"
   |           ^^^^^^^^
"#,
    },
];
