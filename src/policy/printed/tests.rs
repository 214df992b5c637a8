//! Policies in the form in which they are printed: each key of each table, in its order.

use crate::{
    policy::{LayerKind, LayerText, Policy},
    text::SourceText,
};

const LOCK_FILES: &str = r#"version = 1

[defaults]
create_mode = "0640"
directory = "/srv/locks"
unmatched = "refuse"
enforce = false
wait = "1m"
hold = "descriptor"
contact = "help@example.org"
time_zone = "UTC"

[delegate."20-cad.toml"]
owner = "tutor1"
users = ["%cad", "ann"]
commands = ["matlab", "mex"]

[log]
to = "/var/log/rungate/{host}.jsonl"
replay = true

[command.a]
exec = "/opt/a"

[command.b]
exec = "/opt/b"

[command.c]
exec = "/opt/c"

[command.d]
exec = "/opt/d"

[command."e.f"]
exec = "/opt/e"

[repository.seats]
path = "seats/{user}-{host}.lock"
limit = 9
limits = [{ hosts = ["ws*"], users = ["ann"], when = ["Fri"], limit = 4 }]
reserve = [{ users = ["%cad"], hosts = ["ws1"], when = ["Fri"], slots = 2, lend = 1 }]
shared_by = ["user", "host"]
outside = { command = ["/bin/true", "-x"], counts = "others", of = "host", every = "16s", stale_after = "3m", settle = "31s", when_stale = "ignore" }
enforce = false
wait = "2m"
max_wait = "1h"
queue = 9
queue_per_user = 2
hold = "supervisor"
keeper = "file"
if_elapsed = "10m"
if_elapsed_from = "end"
too_soon = "ok"
expire_after = "20m"
expire_grace = "6s"
expire_kill = "group"

[repository.gpus]
path = "gpus.lock"
limit = 3
names = ["a", "b", "c"]
out_of_order = { ws1 = ["a", "c"], "ws*" = ["b"] }
outside = { command = ["/bin/true"] }
nested = "take"
keeper = "file"

[repository.by_group-1]
path = "groups.{gid}.lock"
limit = "2/cpu"
limits = { cad = 2, "s*" = 5 }
charge = "first"
keeper = "file"

[[rule]]
name = "first"
commands = ["matlab", "/opt/**/mex"]
arguments = { all = ["-a", ["-n", "*"]] }
users = ["ann", "%cad", "+lab", "1000", "2000-2999"]
groups = ["cad", "sim"]
hosts = ["ws1"]
directories = ["/proj/**"]
environment = { A = ["x"], B = false, C = true }
when = ["Mon-Fri 08:00-18:00"]
except = [{ users = ["bob"], hosts = ["ws2"] }]
first_of = "f"
order = -2
action = "count"
acquire = ["seats", { repository = "by_group-1", ceiling = 3, slots = 2, wait = "5m" }]
enforce = true
wait = "3m"
hold = "tree"
message = "Please wait."
contact = "ann"

[[rule]]
name = "second"
arguments = { exactly = ["-a", "**", "*"] }
first_of = "f"
acquire = [{ any_of = ["gpus", [{ repository = "gpus", slots = "all" }, { repository = "seats", slots_from = { after = "-n", most = 9, table = { 1 = 1, 4 = 6 }, unclear = "absent" } }]] }]

[[rule]]
name = "third"
arguments = [["@x"], "-b", ["-n", "4"]]
acquire = [{ repository = "gpus", ceiling = "50%", slots = 0, slots_from = { after = ["-x", "-y"] } }]

[[rule]]
name = "free"
users = ["root"]
action = "exempt"
from = ["gpus"]

[[rule]]
name = "no"
commands = ["rm"]
action = "deny"
enforce = false
"#;

const AGENT: &str = r#"version = 1

[defaults]
unmatched = "run"
enforce = true
keeper = "agent"

[log]
to = "syslog"

[repository.each]
per = ["user", "host"]
limit = 3
linger = "1m30s"
keeper = "agent"
unreachable = "start"

[repository.site]
per = ["{project}"]
limit = 2
shared_by = ["host"]
keeper = "site"
on_lost = "stop"

[[rule]]
name = "one"
directories = ["/proj/{project}/**"]
acquire = ["each", "site"]
"#;

/// A policy that is written as it would be printed is printed so. No key is left out, and none is added.
#[test]
fn a_printed_policy_has_each_key() {
    for text in [LOCK_FILES, AGENT] {
        let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
        let printed = policy.print();
        assert_eq!(printed.len(), 1);
        assert_eq!(printed[0].0, LayerKind::System);
        let lines = printed[0].1.lines().collect::<Vec<_>>();
        assert_eq!(lines, text.lines().collect::<Vec<_>>());
    }
}

/// A delegated file is printed without defaults, which are the system's. A rule that only lowers a limit is
/// printed without slots.
#[test]
fn a_delegated_file_is_printed_as_it_is() {
    let layer = |kind, path: &str, text: &str| LayerText { kind, files: vec![SourceText::new(path, text)] };
    let main = r#"
        [delegate."20-cad.toml"]
        owner = "tutor1"
        users = ["%cad"]
        commands = ["*"]
        [repository.seats]
        limit = 5
    "#;
    let acquire = "acquire = [{ repository = \"seats\", ceiling = 3 }]\n";
    let own = &format!("version = 1\n\n[[rule]]\nname = \"few\"\n{acquire}");
    let layers =
        vec![layer(LayerKind::System, "/p.toml", main), layer(LayerKind::Delegated, "/p.d/20-cad.toml", own)];
    let policy = Policy::of_layers(layers, false).unwrap_or_else(|faults| panic!("{faults}"));
    let printed = policy.print();
    assert_eq!(printed.len(), 2);
    assert_eq!(printed[1], (LayerKind::Delegated, own.to_owned()));
}

#[test]
fn a_file_for_each_member_is_printed_as_a_path() {
    let keys = "per = [\"user\", \"host\", \"{project}\"]\nlimit = 2\n";
    let rule = "[[rule]]\ndirectories = [\"/proj/{project}/**\"]\nacquire = [\"a\"]\n";
    let policy = Policy::of_text("/p.toml", format!("[repository.a]\n{keys}{rule}"));
    let printed = policy.unwrap_or_else(|faults| panic!("{faults}")).print();
    assert!(printed[0].1.contains("\npath = \"a.{uid},{host},{project}.lock\"\n"), "{}", printed[0].1);
}
