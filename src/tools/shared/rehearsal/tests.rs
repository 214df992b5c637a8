//! `[[test]]` tables.

use super::rehearse;
use crate::policy::Policy;

const POLICY: &str = r#"
[defaults]
time_zone = "UTC"
[repository.matlab]
limit = 50
reserve = [{ users = ["%cad"], slots = 10, lend = 6 }]
[repository.matlab-per-group]
per = "group"
limit = 10
limits = { cad = 20 }
[repository.overflow]
limit = "2/cpu"
[[rule]]
name = "seats"
commands = ["matlab"]
acquire = ["matlab"]
[[rule]]
name = "departments"
commands = ["matlab"]
groups = ["cad", "sim"]
acquire = ["matlab-per-group"]
[[rule]]
name = "students"
commands = ["matlab"]
groups = ["students"]
when = ["Mon-Fri 08:00-18:00"]
acquire = [{ repository = "matlab", ceiling = 30 }]
[[rule]]
name = "contractors"
users = ["+outside"]
action = "deny"
[[rule]]
name = "root"
users = [0]
action = "exempt"
[[rule]]
name = "exclusive"
commands = ["benchmark"]
acquire = [{ repository = "matlab", slots = "all" }]
[[rule]]
name = "solver"
commands = ["solver"]
arguments = ["-big"]
environment = { PROJECT = ["apollo"] }
directories = ["/proj"]
hosts = ["farm*"]
acquire = [{ any_of = [{ repository = "matlab", slots = 3 }, "overflow"] }]
"#;

/// What comes out of one test, and whether that was expected.
#[track_caller]
fn play(test: &str, passes: bool, got: &str) {
    let text = format!("{POLICY}\n[[test]]\nname = \"t\"\n{test}\n");
    let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
    let rehearsals = rehearse(&policy, "2026-11-20T14:02:00Z".parse().expect("a time"));
    assert_eq!(
        (rehearsals[0].got.as_str(), rehearsals[0].passed),
        (got, passes),
        "{}",
        rehearsals[0].expected
    );
}

#[test]
fn a_test_says_which_claims_a_launch_takes() {
    let ann = "user = \"ann\"\ngroups = [\"users\", \"cad\"]\ncommand = \"matlab\"\nexpect = \"start\"\n";
    let got = "starts with 1 of 50 matlab, 1 of 20 matlab-per-group [cad]";
    play(ann, true, got);
    play(&format!("{ann}claims = [\"matlab\", \"matlab-per-group\"]"), true, got);
    play(&format!("{ann}claims = [\"matlab-per-group [cad]\", \"matlab\"]"), true, got);
    play(
        &format!(
            "{ann}claims = [{{ repository = \"matlab\", limit = 50, slots = 1 }}, \"matlab-per-group\"]"
        ),
        true,
        got,
    );
    play(&format!("{ann}claims = [\"matlab\"]"), false, got);
    play(&format!("{ann}claims = [\"matlab\", \"matlab-per-group [sim]\"]"), false, got);
    play(&format!("{ann}claims = [\"matlab\", \"matlab\"]"), false, got);
    play("command = \"comsol\"\nexpect = \"start\"\nclaims = []", true, "starts with no slot");
}

#[test]
fn a_test_says_who_refuses() {
    let outside = "command = \"matlab\"\ngroups = [\"+outside\"]\n";
    let got = "refused by \"contractors\", which matches netgroup \"outside\"";
    play(&format!("{outside}expect = \"refuse\""), true, got);
    play(&format!("{outside}expect = \"refuse\"\nby = \"contractors\""), true, got);
    play(&format!("{outside}expect = \"refuse\"\nby = \"seats\""), false, got);
    play(&format!("{outside}expect = \"start\""), false, got);
}

#[test]
fn a_test_says_who_is_exempt() {
    play(
        "user = \"root\"\ncommand = \"matlab\"\nexpect = \"exempt\"\nby = \"root\"",
        true,
        "starts, exempt by \"root\"",
    );
    play("user = \"ann\"\ncommand = \"matlab\"\nexpect = \"exempt\"", false, "starts with 1 of 50 matlab");
}

#[test]
fn a_test_says_how_many_slots_are_held() {
    let students = "command = \"matlab\"\ngroups = [\"students\"]\ntime = \"2026-11-20 14:02\"\n";
    let full = "refused, because there is no room in matlab";
    play(
        &format!("{students}use = {{ matlab = 29 }}\nexpect = \"start\""),
        true,
        "starts with 1 of 30 matlab",
    );
    play(&format!("{students}use = {{ matlab = 30 }}\nexpect = \"refuse\"\nby = \"students\""), true, full);
    let evening = students.replace("14:02", "18:00");
    play(
        &format!("{evening}use = {{ matlab = 30 }}\nexpect = \"start\""),
        true,
        "starts with 1 of 50 matlab",
    );
}

#[test]
fn slots_that_are_kept_for_others_are_no_room() {
    let use_ = |held: u32, groups: &str| {
        format!("command = \"matlab\"\ngroups = [{groups}]\nuse = {{ matlab = {held} }}\nexpect = \"start\"")
    };
    play(&use_(45, ""), true, "starts with 1 of 50 matlab");
    play(&use_(46, ""), false, "refused, because there is no room in matlab");
    play(&use_(46, "\"cad\""), true, "starts with 1 of 50 matlab, 1 of 20 matlab-per-group [cad]");
    let member = "command = \"matlab\"\ngroups = [\"cad\"]\nexpect = \"refuse\"\n";
    play(
        &format!("{member}use = {{ \"matlab-per-group [cad]\" = 20 }}"),
        true,
        "refused, because there is no room in matlab-per-group [cad]",
    );
    play(
        &format!("{member}use = {{ \"matlab-per-group [sim]\" = 20 }}"),
        false,
        "starts with 1 of 50 matlab, 1 of 20 matlab-per-group [cad]",
    );
}

#[test]
fn all_slots_are_had_only_by_whom_none_is_kept_from() {
    let benchmark = "command = \"benchmark\"\n";
    let full = "refused, because there is no room in matlab";
    let all = "starts with all of 50 matlab";
    play(&format!("{benchmark}groups = [\"cad\"]\nexpect = \"start\""), true, all);
    play(&format!("{benchmark}groups = [\"cad\"]\nuse = {{ matlab = 1 }}\nexpect = \"refuse\""), true, full);
    play(&format!("{benchmark}expect = \"refuse\""), true, full);
}

#[test]
fn a_test_sets_every_thing_that_a_policy_can_ask_about() {
    let solver = r#"
        command = "solver"
        path = "/opt/solver/bin/solver"
        arguments = ["-big"]
        environment = { PROJECT = "apollo" }
        directory = "/proj"
        host = "farm2"
        cpus = 4
        use = { matlab = 44 }
        expect = "start"
    "#;
    play(solver, true, "starts with 1 of 8 overflow");
    play(&solver.replace("44", "43"), true, "starts with 3 of 50 matlab");
    for (was, is) in [("-big", "-small"), ("apollo", "x"), ("/proj", "/"), ("farm2", "ws1")] {
        play(&solver.replace(was, is), true, "starts with no slot");
    }
}

#[test]
fn what_was_expected_is_said_in_full() {
    let says = |claim: &str, expected: &str| {
        let test = format!("command = \"benchmark\"\nexpect = \"start\"\nclaims = [{claim}]");
        let text = format!("{POLICY}\n[[test]]\nname = \"t\"\n{test}\n");
        let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
        let rehearsals = rehearse(&policy, "2026-11-20T14:02:00Z".parse().expect("a time"));
        assert_eq!(rehearsals[0].expected, expected);
    };
    says("\"matlab\"", "starts with matlab");
    says("{ repository = \"matlab\", slots = 3 }", "starts with 3 of matlab");
    says(
        "{ repository = \"matlab-per-group [cad]\", limit = 6 }",
        "starts with some of 6 matlab-per-group [cad]",
    );
    says("{ repository = \"matlab\", slots = \"all\", limit = 6 }", "starts with all of 6 matlab");
}

/// A policy of its own, and what comes out of one test.
#[track_caller]
fn play_under(policy: &str, test: &str, passes: bool, got: &str) {
    let text = format!("[defaults]\ntime_zone = \"UTC\"\n{policy}\n[[test]]\nname = \"t\"\n{test}\n");
    let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
    let rehearsals = rehearse(&policy, "2026-11-20T14:02:00Z".parse().expect("a time"));
    assert_eq!(
        (rehearsals[0].got.as_str(), rehearsals[0].passed),
        (got, passes),
        "{}",
        rehearsals[0].expected
    );
}

#[test]
fn those_who_hold_slots_take_what_is_kept_for_them_first() {
    let ann = "command = \"matlab\"\nexpect = \"start\"\n";
    let others = |held: &str| format!("{ann}use = {{ matlab = [{held}] }}");
    let starts = "starts with 1 of 50 matlab";
    let full = "refused, because there is no room in matlab";
    // Members of cad take what is kept for them first, so that others find the rest; and the other way round.
    play(&others("{ groups = [\"cad\"], slots = 10 }, { slots = 39 }"), true, starts);
    play(&others("{ groups = [\"cad\"], slots = 10 }, { slots = 40 }"), false, full);
    play(&others("{ slots = 40 }, { groups = [\"cad\"], slots = 6 }"), true, starts);
    play(&others("{ slots = 46 }, { groups = [\"cad\"], slots = 4 }"), false, full);
    play(&others("{ user = \"root\" }"), false, "cannot be: root holds no matlab by matlab");
    let sim = "command = \"matlab\"\ngroups = [\"sim\"]\nexpect = \"start\"\nuse = { matlab-per-group = [{ groups = [\"cad\"], slots = 20 }] }";
    play(sim, true, "starts with 1 of 50 matlab, 1 of 10 matlab-per-group [sim]");
}

/// Two repositories in one file have the same slots, in whichever name they are used or acquired.
#[test]
fn repositories_of_one_file_share_its_slots() {
    const ONE_FILE: &str = "[repository.a]\npath = \"m.lock\"\nlimit = 2\n[repository.b]\npath = \"m.lock\"\nlimit = 2\n\
        [[rule]]\ncommands = [\"either\"]\nacquire = [{ any_of = [\"a\", \"b\"] }]\n\
        [[rule]]\ncommands = [\"one\"]\nacquire = [\"b\"]";
    let case = |more: &str, passes, got| play_under(ONE_FILE, more, passes, got);
    let full = "refused, because there is no room in a, b";
    case("command = \"either\"\nuse = { a = 2 }\nexpect = \"refuse\"", true, full);
    case("command = \"either\"\nuse = { a = 1, b = 1 }\nexpect = \"refuse\"", true, full);
    case("command = \"either\"\nuse = { b = 1 }\nexpect = \"start\"", true, "starts with 1 of 2 a");
    let full = "refused, because there is no room in b";
    case("command = \"one\"\nuse = { a = 2 }\nexpect = \"refuse\"", true, full);
    case("command = \"one\"\nuse = { a = [{ user = \"bob\", slots = 2 }] }\nexpect = \"refuse\"", true, full);
}

const LINE: &str = "[repository.a]\nlimit = 1\nwait = \"2h\"\nqueue = 3\nhold = \"tree\"\n\
    [repository.b]\nlimit = 1\nwait = \"0s\"\n[[rule]]\nname = \"r\"\nacquire = [\"a\", \"b\"]";

#[test]
fn a_test_says_who_waits_and_for_how_long() {
    let case = |more: &str, passes, got| play_under(LINE, &format!("command = \"x\"\n{more}"), passes, got);
    case("use = { a = 1 }\nexpect = \"wait\"", true, "waits up to 2h for a");
    case("use = { a = 1 }\nexpect = \"wait\"\nwait = \"2h\"\nby = \"r\"", true, "waits up to 2h for a");
    case("use = { a = 1 }\nexpect = \"wait\"\nwait = \"1h\"", false, "waits up to 2h for a");
    case("use = { a = 1 }\nexpect = \"refuse\"", true, "waits up to 2h for a");
    case("waiting = { a = 2 }\nexpect = \"wait\"", true, "waits up to 2h for a");
    case("waiting = { a = 3 }\nexpect = \"wait\"", false, "refused, because there is no room in a");
    case("use = { b = 1 }\nexpect = \"wait\"", false, "refused, because there is no room in b");
    case("expect = \"start\"\nhold = \"tree\"", true, "starts with 1 of 1 a, 1 of 1 b, hold tree");
    case("expect = \"start\"\nhold = \"process\"", false, "starts with 1 of 1 a, 1 of 1 b, hold tree");
    case("use = { a = 1 }\nexpect = \"wait\"\nhold = \"tree\"", true, "waits up to 2h for a, hold tree");
}

/// Launches of the user of the test count for `queue_per_user`. Those of others do not, although both have
/// the same number. Each waits below its own limit.
#[test]
fn a_test_says_whose_launches_wait() {
    let line = LINE.replacen("queue = 3", "queue = 3\nqueue_per_user = 2", 1)
        + "\n[[rule]]\ngroups = [\"students\"]\nacquire = [{ repository = \"a\", ceiling = 0 }]";
    let case = |waiting: &str, passes, got| {
        let test = "command = \"x\"\nuser = \"ann\"\nuse = { a = 1 }\nexpect = \"wait\"";
        play_under(&line, &format!("{test}\nwaiting = {{ a = {waiting} }}"), passes, got);
    };
    let [waits, refused] = ["waits up to 2h for a", "refused, because there is no room in a"];
    let [ann, bob] = ["{ user = \"ann\" }", "{ user = \"bob\" }"];
    let student = "{ user = \"bob\", groups = [\"students\"] }";
    case("2", true, waits);
    case(&format!("[{bob}, {ann}]"), true, waits);
    case(&format!("[{ann}, {ann}]"), false, refused);
    case(&format!("[{bob}, {bob}, {ann}]"), false, refused);
    case(&format!("[{student}, {student}, {student}, {ann}]"), true, waits);
}

#[test]
fn a_test_judges_what_is_intended_where_nothing_is_enforced_yet() {
    let trial = LINE.replacen("[repository.a]", "enforce = false\n[repository.a]", 1);
    let full = "use = { b = 1 }\n";
    let got = "starts with 1 of 1 a, 1 of 1 b; if enforced: refused, because there is no room in b";
    let case = |more: &str, passes, got| play_under(&trial, &format!("command = \"x\"\n{more}"), passes, got);
    for expected in ["refuse", "would-refuse", "start"] {
        case(&format!("{full}expect = \"{expected}\""), true, got);
    }
    case(&format!("{full}expect = \"wait\""), false, got);
    case("expect = \"would-refuse\"", false, "starts with 1 of 1 a, 1 of 1 b");
    case("expect = \"start\"", true, "starts with 1 of 1 a, 1 of 1 b");
    let waits = "starts with 1 of 1 a, 1 of 1 b; if enforced: waits up to 2h for a";
    case("use = { a = 1 }\nexpect = \"wait\"\nwait = \"2h\"", true, waits);
    play_under(
        LINE,
        &format!("command = \"x\"\n{full}expect = \"would-refuse\""),
        false,
        "refused, because there is no room in b",
    );
    let denied = "[[rule]]\nname = \"no\"\naction = \"deny\"\nenforce = false";
    let got = "starts with no slot; if enforced: refused by \"no\"";
    play_under(denied, "command = \"x\"\nexpect = \"would-refuse\"\nby = \"no\"", true, got);
    play_under(denied, "command = \"x\"\nexpect = \"refuse\"\nby = \"no\"", true, got);
    play_under(denied, "command = \"x\"\nexpect = \"exempt\"", false, got);
}

#[test]
fn an_option_that_is_not_there_makes_no_claim() {
    let policy = "[repository.a]\nlimit = 9\n[repository.b]\nlimit = 9\n[[rule]]\n\
        acquire = [{ repository = \"a\", slots = 0, slots_from = { after = \"-np\" } }, \
        { any_of = [[\"b\", { repository = \"a\", slots = 0, slots_from = { after = \"-j1\" } }], \"a\"] }]";
    let case = |arguments: &str, got| {
        play_under(
            policy,
            &format!("command = \"x\"\narguments = [{arguments}]\nexpect = \"start\""),
            true,
            got,
        );
    };
    case("", "starts with 1 of 9 b");
    case("\"-np\"", "starts with 1 of 9 b");
    case("\"-np8\"", "starts with 8 of 9 a, 1 of 9 b");
    case("\"-np\", \"3\", \"-np=5\"", "starts with 5 of 9 a, 1 of 9 b");
    case("\"-npx\"", "starts with 1 of 9 b");
    case("\"-np0\"", "starts with 1 of 9 b");
    // Behind a digit a digit is a part of the option.
    case("\"-j12\"", "starts with 1 of 9 b");
    case("\"-j1=2\"", "starts with 1 of 9 b, 2 of 9 a");
}

#[test]
fn exempt_claims_leave_their_list() {
    let policy = "[repository.a]\nlimit = 1\n[repository.b]\nlimit = 1\n[repository.c]\nlimit = 1\n\
        [[rule]]\nacquire = [{ any_of = [[\"a\", \"b\"], \"c\"] }]\n\
        [[rule]]\nname = \"free\"\nusers = [\"root\"]\naction = \"exempt\"\nfrom = [\"a\"]\n\
        [[rule]]\nname = \"freer\"\nusers = [\"bob\"]\naction = \"exempt\"\nfrom = [\"c\"]";
    play_under(policy, "command = \"x\"\nexpect = \"start\"", true, "starts with 1 of 1 a, 1 of 1 b");
    play_under(policy, "user = \"root\"\ncommand = \"x\"\nexpect = \"start\"", true, "starts with 1 of 1 b");
    play_under(policy, "user = \"bob\"\ncommand = \"x\"\nexpect = \"start\"", true, "starts with no slot");
}

#[test]
fn arguments_are_all_or_exactly_these() {
    let case = |selector: &str, arguments: &str, counts: bool| {
        let policy =
            format!("[repository.a]\nlimit = 1\n[[rule]]\narguments = {selector}\nacquire = [\"a\"]");
        let test = format!("command = \"x\"\narguments = [{arguments}]\nexpect = \"start\"");
        play_under(&policy, &test, true, if counts { "starts with 1 of 1 a" } else { "starts with no slot" });
    };
    let all = "{ all = [\"-batch\", [\"-np\", \"*\"]] }";
    case(all, "\"-np\", \"8\", \"-batch\"", true);
    case(all, "\"-batch\"", false);
    case(all, "\"-batch\", \"-np\"", false);
    let exactly = "{ exactly = [\"push\", \"**\", \"-f*\", \"**\"] }";
    case(exactly, "\"push\", \"-f\"", true);
    case(exactly, "\"push\", \"a\", \"-f\", \"-x\", \"-force\", \"b\"", true);
    case(exactly, "\"push\", \"a\"", false);
    case(exactly, "\"-f\", \"push\"", false);
    case("{ exactly = [] }", "", true);
    case("{ exactly = [] }", "\"a\"", false);
    case("{ exactly = [\"a\", \"**\", \"b\", \"c\"] }", "\"a\", \"b\", \"c\", \"b\", \"c\"", true);
    case("{ exactly = [\"a\", \"**\", \"b\", \"c\"] }", "\"a\", \"b\", \"c\", \"b\"", false);
}
