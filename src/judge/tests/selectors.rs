//! What a rule is for: commands, arguments, hosts, directories, environment.

use super::site::{Launch, under};

fn deny(selector: &str) -> Launch {
    under(&format!("[[rule]]\nname = \"r\"\naction = \"deny\"\n{selector}\n"))
}

#[track_caller]
fn matches(launch: &Launch) {
    launch.with(|_, decision| assert!(decision.trace[0].matches(), "it should match"));
}

#[track_caller]
fn differs(launch: Launch, why: &str) {
    launch.traces([&format!("no: {why}")]);
}

#[test]
fn a_command_without_a_slash_is_the_name_as_typed_or_of_the_canonical_path() {
    matches(&deny("commands = [\"matlab\"]"));
    matches(&deny("commands = [\"matlab\"]").command("/tmp/matlab"));
    matches(&deny("commands = [\"matlab\"]").command("./matlab"));
    matches(&deny("commands = [\"matlab\"]").command("m").canonical("/opt/matlab"));
    matches(&deny("commands = [\"mat*\"]"));
    matches(&deny("commands = [\"*\"]"));
    differs(deny("commands = [\"mex\", \"comsol\"]"), "commands");
}

#[test]
fn a_command_with_a_slash_is_the_path_that_would_be_executed_or_its_canonical_path() {
    matches(&deny("commands = [\"/opt/rungate/bin/matlab\"]"));
    matches(&deny("commands = [\"/opt/matlab/*/bin/matlab\"]"));
    differs(deny("commands = [\"/opt/*/matlab\"]"), "commands");
    matches(&deny("commands = [\"/opt/**/matlab\"]"));
    differs(deny("commands = [\"/usr/bin/matlab\"]"), "commands");
}

#[test]
fn an_argument_is_matched_wherever_it_stands_and_a_list_against_consecutive_ones() {
    matches(&deny("arguments = [\"-batch\"]").arguments(["-r", "-batch"]));
    matches(&deny("arguments = [\"-b*\"]").arguments(["-batch"]));
    matches(&deny("arguments = [\"*.m\"]").arguments(["/a/b.m"]));
    differs(deny("arguments = [\"-batch\"]").arguments(["-r"]), "arguments (-batch)");
    matches(&deny("arguments = [[\"-np\", \"*\"]]").arguments(["-x", "-np", "8"]));
    differs(deny("arguments = [[\"-np\", \"*\"]]").arguments(["8", "-np"]), "arguments (-np *)");
    differs(deny("arguments = [[\"-np\", \"8\"]]").arguments(["-np", "4", "8"]), "arguments (-np 8)");
    differs(deny("arguments = [\"*\"]"), "arguments (*)");
}

#[test]
fn an_argument_that_is_no_text_is_matched_as_bytes() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    matches(&deny("arguments = [\"a?\"]").arguments([OsStr::from_bytes(b"a\xff")]));
}

#[test]
fn a_host_is_the_node_name_or_its_first_label_in_any_case() {
    matches(&deny("hosts = [\"ws17\"]"));
    matches(&deny("hosts = [\"WS17.example\"]"));
    matches(&deny("hosts = [\"ws*\"]"));
    differs(deny("hosts = [\"ws1\"]"), "hosts (ws1)");
}

#[test]
fn a_directory_is_the_working_directory_and_a_star_stops_at_a_slash() {
    matches(&deny("directories = [\"/home/*\"]"));
    matches(&deny("directories = [\"/home/ann/\"]"));
    differs(deny("directories = [\"/home\"]"), "directories (/home)");
    differs(deny("directories = [\"/home/*\"]").directory("/home/ann/x"), "directories (/home/*)");
    matches(&deny("directories = [\"/home/**\"]").directory("/home/ann/x"));
    matches(&deny("directories = [\"/home/ann/**\"]"));
    // A launch whose directory is unknown is in none.
    matches(&deny("directories = [\"/**\"]"));
    differs(deny("directories = [\"/**\"]").directory(""), "directories (/**)");
}

#[test]
fn a_variable_has_one_of_some_values_or_is_unset_or_is_set() {
    let apollo = || deny("environment = { PROJECT = [\"apollo\", \"gem*\"] }");
    matches(&apollo().variable("PROJECT", "apollo"));
    matches(&apollo().variable("PROJECT", "gemini"));
    differs(apollo().variable("PROJECT", "x"), "environment (PROJECT)");
    differs(apollo(), "environment (PROJECT)");
    matches(&deny("environment = { PROJECT = false }"));
    differs(deny("environment = { PROJECT = false }").variable("PROJECT", ""), "environment (PROJECT)");
    matches(&deny("environment = { PROJECT = true }").variable("PROJECT", ""));
    matches(&deny("environment = { PROJECT = [\"\"] }").variable("PROJECT", ""));
    differs(deny("environment = { A = false, B = true }"), "environment (A, B)");
}

#[test]
fn different_selectors_must_all_match() {
    matches(&deny("commands = [\"matlab\"]\nhosts = [\"ws17\"]"));
    differs(deny("commands = [\"matlab\"]\nhosts = [\"ws18\"]"), "hosts (ws18)");
}

#[test]
fn an_alias_stands_for_its_entries_wherever_it_is_used() {
    let policy = r#"
        [alias]
        matlab = ["mex", "@more"]
        more = ["matlab", "/opt/x/*"]
        team = ["bob", "%cad"]
        [[rule]]
        commands = ["@matlab"]
        users = ["@team"]
        action = "deny"
    "#;
    under(policy).groups(["cad"]).gives("denied by rule 1: your group \"cad\"");
    under(policy).gives("free").traces(["no: users (bob, %cad)"]);
    under(policy).groups(["cad"]).command("comsol").gives("free");
}
