//! `[[test]]` tables.

use crate::{decision::rehearse, policy::Policy};

const POLICY: &str = r#"
[defaults]
time_zone = "UTC"
[repository.matlab]
limit = 50
reserve = [{ for = ["%cad"], slots = 10, lend = 6 }]
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
    let outside = "command = \"matlab\"\nnetgroups = [\"outside\"]\n";
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
