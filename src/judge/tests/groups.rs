//! Users and groups: who is meant, what is looked up, and what happens when a look-up fails.

use super::site::under;

fn deny(selector: &str) -> String {
    format!("[[rule]]\nname = \"r\"\naction = \"deny\"\n{selector}\n")
}

#[test]
fn a_literal_user_is_the_one_whose_uid_bears_that_name() {
    under(&deny("users = [\"ann\"]")).gives("denied by r: user \"ann\"").asks(["getpwuid(4711)"]);
    under(&deny("users = [\"bob\"]")).gives("free");
    under(&deny("users = [\"a*\"]")).gives("denied by r: user \"ann\"");
}

#[test]
fn numbers_and_ranges_match_by_number_and_ask_nobody() {
    under(&deny("users = [4711]")).gives("denied by r: uid 4711").asks([]);
    under(&deny("users = [\"4711\"]")).gives("denied by r: uid 4711");
    under(&deny("users = [\"4000-4999\"]")).gives("denied by r: uid 4711").asks([]);
    under(&deny("users = [\"1000-1999\"]")).gives("free").asks([]);
    under(&deny("groups = [100]")).gives("denied by r: your group \"users\"");
}

#[test]
fn a_uid_without_a_name_matches_its_number_and_no_pattern_but_the_star() {
    under(&deny("users = [9999]")).uid(9999).gives("denied by r: uid 9999");
    under(&deny("users = [\"9999\"]")).uid(9999).gives("denied by r: uid 9999");
    under(&deny("users = [\"a*\", \"*z\"]")).uid(9999).gives("free");
    under(&deny("users = [\"*\"]")).uid(9999).gives("denied by r: command \"matlab\"");
}

#[test]
fn a_gid_without_a_name_still_matches_its_number() {
    under(&deny("groups = [7777]")).gids([7777]).gives("denied by r: your group \"7777\"");
    under(&deny("users = [\"%7777\"]")).gids([7777]).gives("denied by r: your group \"7777\"");
    under(&deny("groups = [\"c*\"]")).gids([7777]).gives("free");
    // A star alone is for each caller who is in any group.
    under(&deny("groups = [\"*\"]")).gids([7777]).gives("denied by r: your group \"7777\"");
    under(&deny("groups = [\"*\"]")).gids([]).gives("free").asks([]);
}

#[test]
fn a_literal_group_is_looked_up_by_name_and_held_against_what_the_kernel_says() {
    under(&deny("groups = [\"cad\"]")).groups(["users", "cad"]).gives("denied by r: your group \"cad\"");
    under(&deny("groups = [\"cad\"]")).gives("free").asks(["getgrnam(\"cad\")"]);
    under(&deny("users = [\"%cad\"]")).groups(["cad"]).gives("denied by r: your group \"cad\"");
    under(&deny("groups = [\"c*\"]")).groups(["users", "cad"]).gives("denied by r: your group \"cad\"");
}

#[test]
fn a_name_that_does_not_exist_matches_nobody() {
    under(&deny("groups = [\"nosuch\"]")).gives("free");
    under(&deny("users = [\"nosuch\", \"%nosuch\"]")).gives("free");
}

#[test]
fn a_netgroup_is_asked_with_this_host_and_this_user() {
    under(&deny("users = [\"+lab\"]")).gives("denied by r: netgroup \"lab\"");
    under(&deny("users = [\"+lab\"]")).user("bob").gives("free");
    under(&deny("users = [\"+lab\"]")).host("ws18").gives("free");
}

/// The entries of a netgroup may have the name of the host in full, or up to the first dot. A host without a
/// domain has one name.
#[test]
fn a_netgroup_is_asked_with_both_names_of_the_host() {
    let asked = ["getpwuid(4711)", "innetgr(\"rack\", \"ws17.example\", \"ann\")"];
    let short = "innetgr(\"rack\", \"ws17\", \"ann\")";
    let rack = deny("users = [\"+rack\"]");
    under(&rack).gives("denied by r: netgroup \"rack\"").asks([asked[0], asked[1], short]);
    under(&rack).host("ws17").gives("denied by r: netgroup \"rack\"").asks([asked[0], short]);
    under(&rack).host("ws18.example").gives("free");
    under(&deny("users = [\"+lab\"]")).host("ws17").gives("free");
}

#[test]
fn names_are_looked_up_only_for_rules_whose_other_selectors_match() {
    let policy = deny("commands = [\"comsol\"]\ngroups = [\"cad\"]\nusers = [\"ann\"]");
    under(&policy).gives("free").asks([]);
    under(&deny("groups = [\"cad\"]\nexcept = [{ commands = [\"matlab\"] }]")).gives("free").asks([]);
}

#[test]
fn each_name_is_looked_up_once() {
    let policy = format!(
        "{}{}",
        deny("groups = [\"cad\"]"),
        deny("groups = [\"cad\", \"sim\"]").replace("\"r\"", "\"s\"")
    );
    under(&policy).asks(["getgrnam(\"cad\")", "getgrnam(\"sim\")"]);
    under(&policy.replace("cad", "c*").replace("sim", "s*")).asks(["getgrgid(100)"]);
}

#[test]
fn a_look_up_that_fails_refuses_and_never_turns_into_no_limit() {
    let policy =
        "[repository.a]\nlimit = 1\n[[rule]]\nname = \"r\"\ngroups = [\"students\"]\nacquire = [\"a\"]\n";
    under(policy)
        .broken("getgrnam(\"students\")")
        .gives("r: getgrnam(\"students\"): Connection timed out")
        .traces(["unknown: a look-up failed"]);
    under(&deny("users = [\"ann\"]"))
        .broken("getpwuid(4711)")
        .gives("r: getpwuid(4711): Connection timed out");
}

/// A rule of a family that cannot be judged shadows the rest of the family: it may be the one that counts.
#[test]
fn a_rule_that_cannot_be_judged_shadows_its_family() {
    let rule = |keys: &str| format!("[[rule]]\nfirst_of = \"f\"\nacquire = []\n{keys}\n");
    under(&format!("{}{}", rule("groups = [\"cad\"]"), rule("")))
        .broken("getgrnam(\"cad\")")
        .gives("rule 1: getgrnam(\"cad\"): Connection timed out")
        .traces(["unknown: a look-up failed", "shadowed by \"rule 1\""]);
}

#[test]
fn a_look_up_whose_answer_makes_no_difference_harms_nobody() {
    let broken = "getgrnam(\"students\")";
    under(&deny("users = [\"%students\", 4711]")).broken(broken).gives("denied by r: uid 4711");
    under(&deny("groups = [\"students\"]\nexcept = [{ users = [4711] }]")).broken(broken).gives("free");
    under(&deny("users = [\"%students\"]\ngroups = [7777]")).broken(broken).gives("free");
}

/// Which groups of a rule the caller is in matters only for a repository that is by group.
#[test]
fn a_group_that_is_not_charged_is_not_looked_up() {
    let policy = |per: &str| {
        format!(
            "[repository.a]\nlimit = 2\n{per}\n[[rule]]\nname = \"r\"\ngroups = [\"cad\", \"students\"]\n\
             acquire = [\"a\"]\n"
        )
    };
    let broken = |per: &str| under(&policy(per)).groups(["cad"]).broken("getgrnam(\"students\")");
    broken("").gives("1 of 2 a").asks(["getgrnam(\"cad\")"]);
    broken("per = \"group\"").gives("r: getgrnam(\"students\"): Connection timed out");
}

#[test]
fn a_deny_that_is_certain_refuses_whatever_could_not_be_looked_up() {
    let policy =
        format!("{}{}", deny("groups = [\"cad\"]"), deny("users = [4711]").replace("\"r\"", "\"s\""));
    under(&policy).broken("getgrnam(\"cad\")").gives("denied by s: uid 4711");
}

#[test]
fn after_a_failure_nobody_is_asked_again() {
    let policy =
        format!("{}{}", deny("groups = [\"cad\"]"), deny("groups = [\"sim\"]").replace("\"r\"", "\"s\""));
    under(&policy).broken("getgrnam(\"cad\")").asks(["getgrnam(\"cad\")"]);
}

#[test]
fn an_exception_whose_look_up_fails_refuses_too() {
    let policy = "[repository.a]\nlimit = 1\n[[rule]]\nname = \"r\"\nacquire = [\"a\"]\nexcept = [{ users = [\"%cad\"] }]\n";
    under(policy).broken("getgrnam(\"cad\")").gives("r: getgrnam(\"cad\"): Connection timed out");
}
