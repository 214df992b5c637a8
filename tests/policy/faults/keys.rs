//! Keys, and the shape of their values.

use super::case::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a key that nobody knows",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
comands = ["matlab"]
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:1: unknown key "comands" in a rule; did you mean "commands"? [unknown-key]
  |
2 | comands = ["matlab"]
  | ^^^^^^^
"#,
    },
    Case {
        about: "a key that goes into a table",
        files: &[("/etc/rungate/policy.toml", "enforce = false\n")],
        shown: r#"
/etc/rungate/policy.toml:1:1: unknown key "enforce" in a policy; did you mean "defaults.enforce"? [unknown-key]
  |
1 | enforce = false
  | ^^^^^^^
"#,
    },
    Case {
        about: "a key that is near to nothing",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[[rule]]
quota = 5
acquire = []
",
        )],
        shown: r#"
/etc/rungate/policy.toml:2:1: unknown key "quota" in a rule [unknown-key]
  |
2 | quota = 5
  | ^^^^^
"#,
    },
    Case {
        about: "a table that nobody knows",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[repositories.a]
limit = 1
",
        )],
        shown: r#"
/etc/rungate/policy.toml:1:2: unknown key "repositories" in a policy; did you mean "repository"? [unknown-key]
  |
1 | [repositories.a]
  |  ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a key of another table",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 1
ceiling = 1
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:1: unknown key "ceiling" in a repository [unknown-key]
  |
3 | ceiling = 1
  | ^^^^^^^
"#,
    },
    Case {
        about: "a key of an exception",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
except = [{ user = ["ann"] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:13: unknown key "user" in an exception; did you mean "users"? [unknown-key]
  |
5 | except = [{ user = ["ann"] }]
  |             ^^^^
"#,
    },
    Case {
        about: "another version",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
version = 2
",
        )],
        shown: r"
/etc/rungate/policy.toml:1:11: this rungate knows version 1 of the language and no other [unknown-version]
  |
1 | version = 2
  |           ^
",
    },
    Case {
        about: "a repository without a limit",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:1:13: repository "a" has no limit; write how many may run at once: limit = 5 [no-limit]
  |
1 | [repository.a]
  |             ^
"#,
    },
    Case {
        about: "a claim without a repository",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a", { slots = 2 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:17: a claim needs "repository" [missing-key]
  |
4 | acquire = ["a", { slots = 2 }]
  |                 ^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a reservation without slots",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
reserve = [{ for = ["ann"] }]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:12: a reservation needs "slots" [missing-key]
  |
3 | reserve = [{ for = ["ann"] }]
  |            ^^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a command without a program",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[command.matlab]
",
        )],
        shown: r#"
/etc/rungate/policy.toml:1:1: a command needs "exec" [missing-key]
  |
1 | [command.matlab]
  | ^^^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a string where a list is needed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
commands = "matlab"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:12: "commands" is a string; it must be a list of strings [wrong-type]
  |
5 | commands = "matlab"
  |            ^^^^^^^^
"#,
    },
    Case {
        about: "a list where a string is needed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
message = ["no"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:11: "message" is a list; it must be a string [wrong-type]
  |
5 | message = ["no"]
  |           ^^^^^^
"#,
    },
    Case {
        about: "a string where a number is needed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
reserve = [{ for = ["ann"], slots = "2" }]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:37: "2" is no share for "slots"; write a number of slots, or "60%" [bad-share]
  |
3 | reserve = [{ for = ["ann"], slots = "2" }]
  |                                     ^^^
"#,
    },
    Case {
        about: "a number with a fraction",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 2.5
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:9: "limit" is a number with a fraction; it must be a number of slots, or "2/cpu" [wrong-type]
  |
2 | limit = 2.5
  |         ^^^
"#,
    },
    Case {
        about: "a string where true or false is needed",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
enabled = "no"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:11: "enabled" is a string; it must be true or false [wrong-type]
  |
5 | enabled = "no"
  |           ^^^^
"#,
    },
    Case {
        about: "a list of tables where each has its name in the heading",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[repository]]
name = "a"
limit = 5
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:1:1: "repository" is a list; it must be a table for each, under [repository.NAME] [wrong-type]
  |
1 | [[repository]]
  | ^^^^^^^^^^^^^^
"#,
    },
    Case {
        about: "a table where a list of tables is needed",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[rule]
acquire = []
",
        )],
        shown: r#"
/etc/rungate/policy.toml:1:1: "rule" is a table; it must be a list of tables, each under [[rule]] [wrong-type]
  |
1 | [rule]
  | ^^^^^^
"#,
    },
    Case {
        about: "a number in a list of strings",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
hosts = [true]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:10: "hosts" is true or false; it must be a string [wrong-type]
  |
5 | hosts = [true]
  |          ^^^^
"#,
    },
    Case {
        about: "a variable that is a string",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
environment = { PROJECT = "apollo" }
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:27: "PROJECT" is a string; it must be a list of strings, or false where it must be unset [wrong-type]
  |
5 | environment = { PROJECT = "apollo" }
  |                           ^^^^^^^^
"#,
    },
    Case {
        about: "a claim that is a number",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a", 5]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:17: "acquire" is a whole number; it must be the name of a repository, or a table with one [wrong-type]
  |
4 | acquire = ["a", 5]
  |                 ^
"#,
    },
    Case {
        about: "slots that are a word",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", slots = "every" }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:40: "slots" is a string; it must be a number of slots, or "all" [wrong-type]
  |
4 | acquire = [{ repository = "a", slots = "every" }]
  |                                        ^^^^^^^
"#,
    },
    Case {
        about: "a word that is not one of those that are known",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
hold = "supervised"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:8: "supervised" is not known to "hold", which is one of "process", "descriptor", "supervisor", "tree"; did you mean "supervisor"? [unknown-word]
  |
5 | hold = "supervised"
  |        ^^^^^^^^^^^^
"#,
    },
    Case {
        about: "an action that is not known",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
action = "refuse"
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:10: "refuse" is not known to "action", which is one of "limit", "deny", "exempt" [unknown-word]
  |
4 | action = "refuse"
  |          ^^^^^^^^
"#,
    },
    Case {
        about: "a member that is not known",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = ["user", "machine"]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:16: "machine" is not known to "per", which is one of "user", "group", "host", "command", "directory" [unknown-word]
  |
3 | per = ["user", "machine"]
  |                ^^^^^^^^^
"#,
    },
    Case {
        about: "a member that stands twice",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = ["user", "user"]
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:16: "user" stands here twice [repeated]
  |
3 | per = ["user", "user"]
  |                ^^^^^^
"#,
    },
    Case {
        about: "a target of the log that is not known",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[log]
to = "journal"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:6: "journal" is not known to "to", which is one of "journald", "syslog", "off"; did you mean "journald"? [unknown-word]
  |
2 | to = "journal"
  |      ^^^^^^^^^
"#,
    },
    Case {
        about: "a number beyond its bounds",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 1048576
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:9: "limit" goes from 0 to 1048575 [out-of-range]
  |
2 | limit = 1048576
  |         ^^^^^^^
"#,
    },
    Case {
        about: "a number below its bounds",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", slots = -1 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:40: "slots" goes from 0 to 1048575 [out-of-range]
  |
4 | acquire = [{ repository = "a", slots = -1 }]
  |                                        ^^
"#,
    },
    Case {
        about: "no slot, and nowhere to read how many",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ repository = "a", slots = 0 }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:40: slots = 0 needs "slots_from" [no-slots-from]
  |
4 | acquire = [{ repository = "a", slots = 0 }]
  |                                        ^
"#,
    },
    Case {
        about: "a line that ends where it begins",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
queue = 0
queue_per_user = 1001
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:9: "queue" goes from 1 to 1000 [out-of-range]
  |
3 | queue = 0
  |         ^

/etc/rungate/policy.toml:4:18: "queue_per_user" goes from 1 to 1000 [out-of-range]
  |
4 | queue_per_user = 1001
  |                  ^^^^
"#,
    },
    Case {
        about: "a list in a list of claims that are had together",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = [{ any_of = [["a", ["a"]], 3] }]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:4:30: an alternative is a claim or a list of claims [no-alternative]
  |
4 | acquire = [{ any_of = [["a", ["a"]], 3] }]
  |                              ^^^^^

/etc/rungate/policy.toml:4:38: an alternative is a claim or a list of claims [no-alternative]
  |
4 | acquire = [{ any_of = [["a", ["a"]], 3] }]
  |                                      ^
"#,
    },
    Case {
        about: "arguments that are all and exactly these",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
arguments = { all = ["-a"], exactly = ["-a"] }
acquire = []
[[rule]]
arguments = {}
acquire = []
[[rule]]
arguments = { all = [] }
acquire = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:39: "exactly" and "all" do not go together [contradiction]
  |
2 | arguments = { all = ["-a"], exactly = ["-a"] }
  |                                       ^^^^^^

/etc/rungate/policy.toml:5:13: a table of arguments without "exactly" needs "all" [missing-key]
  |
5 | arguments = {}
  |             ^^

/etc/rungate/policy.toml:8:21: "all" is empty; leave it out to match everything [empty-list]
  |
8 | arguments = { all = [] }
  |                     ^^
"#,
    },
    Case {
        about: "a test that says how it goes on where it does not",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[test]]
name = "t"
command = "x"
expect = "refuse"
wait = "2h"
hold = "tree"
use = { a = true }
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:8: "wait" says nothing without expect = "wait" [needs-key]
  |
5 | wait = "2h"
  |        ^^^^

/etc/rungate/policy.toml:6:8: "hold" and expect = "refuse" do not go together [contradiction]
  |
6 | hold = "tree"
  |        ^^^^^^

/etc/rungate/policy.toml:7:13: "a" is true or false; it must be a number of slots, or a list of holders [wrong-type]
  |
7 | use = { a = true }
  |             ^^^^
"#,
    },
    Case {
        about: "a length of time without a unit",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
[[rule]]
acquire = ["a"]
wait = "15"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:5:8: "15" is not a length of time for "wait"; write "10m" or "1h30m" [bad-duration]
  |
5 | wait = "15"
  |        ^^^^
"#,
    },
    Case {
        about: "a length of time that is a number",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
if_elapsed = 15
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:14: "if_elapsed" is a whole number; it must be a length of time such as "10m" [wrong-type]
  |
3 | if_elapsed = 15
  |              ^^
"#,
    },
    Case {
        about: "forever where only a length of time can be",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
expire_after = "forever"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:16: "forever" is not a length of time for "expire_after"; write "10m" or "1h30m" [bad-duration]
  |
3 | expire_after = "forever"
  |                ^^^^^^^^^
"#,
    },
    Case {
        about: "a mode that is a number",
        files: &[(
            "/etc/rungate/policy.toml",
            r"
[defaults]
create_mode = 666
",
        )],
        shown: r#"
/etc/rungate/policy.toml:2:15: "create_mode" is a whole number; it must be a string such as "0666" [wrong-type]
  |
2 | create_mode = 666
  |               ^^^
"#,
    },
    Case {
        about: "a mode that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
create_mode = "0888"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:15: "0888" is not a file mode; write "0666" [bad-mode]
  |
2 | create_mode = "0888"
  |               ^^^^^^
"#,
    },
    Case {
        about: "a contact of two lines, and one of none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[defaults]
contact = "ann\nbob"
[[rule]]
contact = " "
action = "deny"
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:11: "ann\nbob" is not a contact; write one line of at most 200 characters, such as "help@example.org" [bad-contact]
  |
2 | contact = "ann\nbob"
  |           ^^^^^^^^^^

/etc/rungate/policy.toml:4:11: " " is not a contact; write one line of at most 200 characters, such as "help@example.org" [bad-contact]
  |
4 | contact = " "
  |           ^^^
"#,
    },
    Case {
        about: "a limit that is none",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = "2 per cpu"
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:2:9: "2 per cpu" is not a limit; write a number or "2/cpu" [bad-limit]
  |
2 | limit = "2 per cpu"
  |         ^^^^^^^^^^^
"#,
    },
    Case {
        about: "an empty list of members",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[repository.a]
limit = 5
per = []
[[rule]]
acquire = ["a"]
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:7: "per" is empty; leave it out for one file that all share [empty-list]
  |
3 | per = []
  |       ^^
"#,
    },
    Case {
        about: "a list of exemptions that is empty",
        files: &[(
            "/etc/rungate/policy.toml",
            r#"
[[rule]]
action = "exempt"
from = []
"#,
        )],
        shown: r#"
/etc/rungate/policy.toml:3:8: "from" is empty; leave it out to exempt from everything [empty-list]
  |
3 | from = []
  |        ^^
"#,
    },
];
