//! Pairs of policies, and what differs between them.

use super::*;
use crate::policy::PartKind;

const BEFORE: &str = r#"
    [alias]
    tools = ["matlab", "mex"]

    [repository.matlab]
    limit  = 50

    [repository.each]
    per    = "user"
    limit  = 4
    limits = { ann = 8, bob = 2 }

    [[rule]]
    name     = "seats"
    commands = ["@tools"]
    acquire  = ["matlab", "each"]

    [[rule]]
    users    = ["cid"]
    acquire  = ["matlab"]
"#;

fn policy(text: &str) -> Policy {
    Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn show(detail: &Detail<'_>) -> String {
    match detail {
        Detail::Value { key, old, new } => {
            format!("{key}: {} -> {}", old.unwrap_or("none"), new.unwrap_or("none"))
        }
        Detail::Lost { key, value } => format!("{key}: - {value}"),
        Detail::Gained { key, value } => format!("{key}: + {value}"),
    }
}

fn between(old: &str, new: &str) -> Vec<String> {
    let difference = Difference::between(&policy(old), &policy(new));
    let lines = difference.changes().iter().flat_map(|change| {
        let head = format!("{} {} {}", change.turn.word(), change.kind.word(), change.name);
        let whole = matches!(change.turn, Turn::Added | Turn::Removed);
        let details = change.keys.iter().filter(move |_| !whole).flat_map(KeyChange::details);
        std::iter::once(head).chain(details.map(|detail| format!("  {}", show(&detail)))).collect::<Vec<_>>()
    });
    lines.collect()
}

/// What becomes of the first policy when some text in it is another.
#[track_caller]
fn case(edits: &[(&str, &str)], expected: &[&str]) {
    let new = edits.iter().fold(BEFORE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    assert_eq!(between(BEFORE, &new), expected);
    let turned = between(&new, BEFORE);
    assert_eq!(turned.is_empty(), expected.is_empty());
}

#[test]
fn spelling_comments_and_order_of_tables_are_no_difference() {
    case(
        &[("[repository.matlab]", "# seats\n[repository.\"matlab\"]"), ("limit  = 50", "limit = 0x32")],
        &[],
    );
    case(&[("\"@tools\"", "\"matlab\", \"mex\"")], &[]);
}

/// Of patterns that both match a member, the first counts.
/// A default that is written is no difference.
#[test]
fn charge_is_all_by_default() {
    let group = |charge: &str| {
        format!(
            "[repository.g]\nper = \"group\"\nlimit = 1\n{charge}\n[[rule]]\ngroups = [\"cad\"]\nacquire = [\"g\"]\n"
        )
    };
    assert_eq!(between(&group(""), &group("charge = \"all\"")), Vec::<String>::new());
    let first = between(&group("charge = \"all\""), &group("charge = \"first\""));
    assert_eq!(first, ["changed repository g", "  charge: none -> \"first\""]);
}

#[test]
fn the_order_of_members_is_told_as_a_whole() {
    case(
        &[("{ ann = 8, bob = 2 }", "{ bob = 2, ann = 8 }")],
        &["changed repository each", "  limits: { ann = 8, bob = 2 } -> { bob = 2, ann = 8 }"],
    );
}

#[test]
fn limits_and_members_are_told_by_their_keys() {
    case(&[("= 50", "= 40")], &["changed repository matlab", "  limit: 50 -> 40"]);
    case(
        &[("ann = 8, bob = 2", "ann = 9, dan = 1")],
        &[
            "changed repository each",
            "  limits.ann: 8 -> 9",
            "  limits.bob: 2 -> none",
            "  limits.dan: none -> 1",
        ],
    );
}

#[test]
fn of_a_list_what_it_lost_and_gained_is_told() {
    case(
        &[("\"mex\"]", "\"mcc\"]")],
        &["changed rule seats", "  commands: - \"mex\"", "  commands: + \"mcc\""],
    );
    case(
        &[("[\"matlab\", \"each\"]", "[\"each\", { repository = \"matlab\", ceiling = 2 }]")],
        &[
            "changed rule seats",
            "  acquire: - \"matlab\"",
            "  acquire: + { repository = \"matlab\", ceiling = 2 }",
        ],
    );
}

#[test]
fn a_rule_is_known_by_its_name_or_by_what_it_says() {
    case(&[("\"seats\"", "\"all seats\"")], &["renamed rule all seats"]);
    case(
        &[("[[rule]]\n    name", "[[rule]]\n    hosts = [\"x\"]\n    acquire = []\n[[rule]]\n    name")],
        &["added rule rule 1"],
    );
    case(&[("[\"cid\"]", "[\"dan\"]")], &["changed rule rule 2", "  users: - \"cid\"", "  users: + \"dan\""]);
}

#[test]
fn the_order_of_rules_is_a_difference() {
    let family = |first, second| {
        format!(
            "[[rule]]\nname = \"{first}\"\nfirst_of = \"f\"\nacquire = []\n[[rule]]\nname = \"{second}\"\nfirst_of = \"f\"\nacquire = []\n"
        )
    };
    assert_eq!(
        between(&family("a", "b"), &family("b", "a")),
        ["changed family f", "  order: [\"a\", \"b\"] -> [\"b\", \"a\"]"]
    );
    let plain =
        |names: [&str; 2]| names.map(|name| format!("[[rule]]\nname = \"{name}\"\nacquire = []\n")).concat();
    assert_eq!(
        between(&plain(["a", "b"]), &plain(["b", "a"])),
        ["changed order of rules ", "  order: [\"a\", \"b\"] -> [\"b\", \"a\"]"]
    );
    // What is new, gone or renamed has no other order for that.
    let changed = |old: &str, new: &str| between(old, new).iter().any(|line| line.contains("order"));
    assert!(!changed(&plain(["a", "b"]), &plain(["new", "b"])));
    assert!(!changed(&plain(["a", "b"]), &(plain(["c", "a"]) + &plain(["d", "b"]))));
    let unnamed = |users: [&str; 2]| {
        users.map(|user| format!("[[rule]]\nusers = [\"{user}\"]\nacquire = []\n")).concat()
    };
    assert!(changed(&unnamed(["ann", "bob"]), &unnamed(["bob", "ann"])));
    assert!(!changed(&unnamed(["ann", "bob"]), &(unnamed(["cid", "ann"]) + &unnamed(["dan", "bob"]))));
    // What comes before a family comes after it.
    let parts = |order: [&str; 2]| {
        order.map(|part| if part == "f" { family("a", "b") } else { plain(["c", "d"]) }).concat()
    };
    assert_eq!(
        between(&parts(["f", "plain"]), &parts(["plain", "f"])),
        ["changed order of rules ", "  order: [\"a\", \"b\", \"c\", \"d\"] -> [\"c\", \"d\", \"a\", \"b\"]"]
    );
}

#[test]
fn a_first_policy_is_compared_with_one_that_sets_nothing() {
    let nothing = Policy::default();
    let difference = Difference::between(&nothing, &policy("[defaults]\nwait = \"1h\"\n"));
    let [change] = difference.changes() else { panic!("there is one change") };
    assert_eq!((change.kind, change.keys.len()), (PartKind::Defaults, 1));
    assert!(Difference::between(&policy("version = 1\n"), &nothing).is_empty());
}

#[test]
fn a_test_that_expects_something_else_is_a_difference() {
    let test = |limit| {
        format!(
            "{BEFORE}\n[[test]]\nname = \"t\"\ncommand = \"mex\"\nexpect = \"start\"\n\
             claims = [\"each\", {{ repository = \"matlab\", limit = {limit} }}]\n"
        )
    };
    assert_eq!(
        between(&test(50), &test(49)),
        [
            "changed test t",
            "  claims: - { repository = \"matlab\", limit = 50 }",
            "  claims: + { repository = \"matlab\", limit = 49 }"
        ]
    );
    assert_eq!(between(BEFORE, &test(50)), ["added test t"]);
}

/// Which program a command starts, and where events go, are differences.
#[test]
fn another_program_and_another_log_are_differences() {
    let command = |program: &str| format!("{BEFORE}\n[command.matlab]\nexec = \"{program}\"\n");
    assert_eq!(
        between(&command("/opt/a"), &command("/opt/b")),
        ["changed command matlab", "  exec: \"/opt/a\" -> \"/opt/b\""]
    );
    assert_eq!(between(BEFORE, &command("/opt/a")), ["added command matlab"]);
    let log = |keys: &str| format!("{BEFORE}\n[log]\nto = \"/var/log/a\"\n{keys}\n");
    assert_eq!(
        between(&log("replay = false"), &log("replay = true")),
        ["changed log ", "  replay: none -> true"]
    );
}

/// Each key of a test is compared, and told by its name.
#[test]
fn each_key_of_a_test_is_a_difference() {
    let test = |keys: &str| {
        format!("{BEFORE}\n[[test]]\nname = \"t\"\ncommand = \"mex\"\nexpect = \"start\"\n{keys}\n")
    };
    for keys in [
        "groups = [\"cad\"]",
        "groups = [\"+lab\"]",
        "path = \"/opt/mex\"",
        "arguments = [\"-x\"]",
        "host = \"ws1\"",
        "directory = \"/proj\"",
        "environment = { X = \"y\" }",
        "time = \"2026-11-20 14:02\"",
        "cpus = 2",
        "use = { matlab = 1 }",
        "use = { \"each [ann]\" = [{ user = \"bob\", slots = 2 }] }",
        "waiting = { matlab = 1 }",
        "claims = [\"matlab\"]",
        "hold = \"tree\"",
    ] {
        told_by_its_key(&test(""), &test(keys), "changed test t", keys);
    }
}

/// Each key of a repository is compared, and told by its name.
#[test]
fn each_key_of_a_repository_is_a_difference() {
    let rule = "[[rule]]\ncommands = [\"r\"]\nacquire = [\"r\"]\n";
    let repository = |keys: &str| format!("{BEFORE}\n[repository.r]\nlimit = 1\n{keys}\n{rule}");
    for keys in [
        "path = \"other.lock\"",
        "limits = [{ when = [\"Fri\"], limit = 2 }]",
        "reserve = [{ users = [\"ann\"], slots = 1 }]",
        "names = [\"x\"]",
        "shared_by = \"user\"",
        "outside = { command = [\"/bin/true\"] }",
        "nested = \"take\"",
        "enforce = false",
        "wait = \"1m\"",
        "max_wait = \"1m\"",
        "queue = 5",
        "queue_per_user = 5",
        "hold = \"tree\"",
        "if_elapsed = \"1m\"",
        "expire_after = \"1m\"",
        "keeper = \"agent\"",
    ] {
        told_by_its_key(&repository(""), &repository(keys), "changed repository r", keys);
    }
}

/// Each key of a rule is compared, and told by its name.
#[test]
fn each_key_of_a_rule_is_a_difference() {
    let rule = |keys: &str| format!("{BEFORE}\n[[rule]]\nname = \"r\"\nacquire = [\"matlab\"]\n{keys}\n");
    for keys in [
        "commands = [\"r\"]",
        "arguments = [\"-x\"]",
        "users = [\"ann\"]",
        "groups = [\"cad\"]",
        "hosts = [\"ws1\"]",
        "directories = [\"/proj\"]",
        "environment = { X = true }",
        "when = [\"Fri\"]",
        "except = [{ users = [\"ann\"] }]",
        "action = \"count\"",
        "message = \"no\"",
        "contact = \"ann\"",
        "enforce = false",
        "wait = \"1m\"",
        "hold = \"tree\"",
    ] {
        told_by_its_key(&rule(""), &rule(keys), "changed rule r", keys);
    }
}

/// The change of one key stands below the head of its table, with its name.
#[track_caller]
fn told_by_its_key(old: &str, new: &str, head: &str, keys: &str) {
    let told = between(old, new);
    let key = format!("  {}", keys.split(' ').next().unwrap_or_default());
    assert_eq!(told[0], head, "{keys}");
    assert!(told[1..].iter().any(|line| line.starts_with(&key)), "{}", told.join("\n"));
}

/// Each layer is printed with the tables that are in it.
#[test]
fn a_layer_is_printed_with_its_own_tables() {
    let layer = |kind, path: &str, text: &str| LayerText { kind, files: vec![SourceText::new(path, text)] };
    let own = "[repository.mine]\nlimit = 2\n[[rule]]\nname = \"own\"\nacquire = [\"mine\"]\n";
    let layers = vec![
        layer(LayerKind::System, "/p.toml", BEFORE),
        layer(LayerKind::Own, "/home/ann/policy.toml", own),
    ];
    let policy = Policy::of_layers(layers, false).unwrap_or_else(|faults| panic!("{faults}"));
    let printed = policy.print();
    assert_eq!(printed.len(), 2);
    for (text, index) in
        [("[repository.matlab]", 0), ("name = \"seats\"", 0), ("[repository.mine]", 1), ("name = \"own\"", 1)]
    {
        let is_in = |layer: usize| printed[layer].1.contains(text);
        assert_eq!((is_in(0), is_in(1)), (index == 0, index == 1), "{text}");
    }
}

/// The user of a test is shown by name, or by number if that is not the number of the name.
#[test]
fn a_test_of_another_user_is_a_difference() {
    let test = |user: &str| {
        format!("{BEFORE}\n[[test]]\nname = \"t\"\ncommand = \"mex\"\nexpect = \"start\"\nuser = {user}\n")
    };
    for (old, new) in [("\"ann\"", "\"bob\""), ("\"ann\"", "4711"), ("0", "\"root\""), ("4711", "4712")] {
        let told = ["changed test t".to_owned(), format!("  user: {old} -> {new}")];
        assert_eq!(between(&test(old), &test(new)), told);
    }
    assert_eq!(between(&test("1000"), &test("\"user\"")), Vec::<String>::new());
}
