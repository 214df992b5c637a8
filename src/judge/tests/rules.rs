//! Which rules count, and what they say together.

use super::site::under;

const SEATS: &str = r#"
[repository.matlab]
limit = 50
[repository.matlab-per-user]
per = "user"
limit = 4
"#;

#[test]
fn all_rules_that_match_count_and_every_claim_of_every_one_of_them_is_taken() {
    let policy = format!(
        r#"{SEATS}
        [[rule]]
        name = "seats"
        commands = ["matlab"]
        acquire = ["matlab"]
        [[rule]]
        name = "other"
        commands = ["comsol"]
        acquire = ["matlab"]
        [[rule]]
        name = "each"
        acquire = ["matlab-per-user"]
        "#
    );
    under(&policy).gives("1 of 50 matlab, 1 of 4 matlab-per-user [ann]").traces([
        "counts",
        "no: commands",
        "counts",
    ]);
}

#[test]
fn where_no_rule_matches_the_program_starts_or_is_refused_as_unmatched_says() {
    let rule = r#"
        [[rule]]
        commands = ["comsol"]
        acquire = []
    "#;
    under(rule).gives("free");
    under(&format!("[defaults]\nunmatched = \"refuse\"\n{rule}")).gives("unmatched");
    under(&format!("[defaults]\nunmatched = \"refuse\"\n{rule}")).command("comsol").gives("free");
    under(&format!("[defaults]\nunmatched = \"refuse\"\nenforce = false\n{rule}"))
        .gives("would be unmatched");
}

#[test]
fn an_exception_always_wins_over_inclusion() {
    let policy = r#"
        [[rule]]
        name = "students"
        groups = ["students"]
        except = [{ users = ["tutor*"] }, { hosts = ["lab1"], commands = ["matlab"] }]
        action = "deny"
    "#;
    under(policy).user("stu07").groups(["students"]).gives("denied by students: your group \"students\"");
    under(policy).user("tutor1").groups(["students"]).gives("free").traces(["no: except users (tutor*)"]);
    under(policy).user("stu07").groups(["students"]).host("lab1").gives("free");
    under(policy)
        .user("stu07")
        .groups(["students"])
        .host("lab1")
        .command("comsol")
        .gives("denied by students: your group \"students\"");
}

#[test]
fn the_first_that_matches_of_a_first_of_family_shadows_the_rest() {
    let policy = r#"
        [repository.cad]
        limit = 20
        [repository.rest]
        limit = 10
        [[rule]]
        name = "cad has twenty"
        groups = ["cad"]
        first_of = "departments"
        acquire = ["cad"]
        [[rule]]
        name = "others have ten"
        first_of = "departments"
        acquire = ["rest"]
    "#;
    under(policy)
        .groups(["cad"])
        .gives("1 of 20 cad")
        .traces(["counts (first of 2)", "shadowed by \"cad has twenty\""]);
    under(policy).gives("1 of 10 rest").traces(["no: groups (cad)", "counts (first of 2)"]);
}

#[test]
fn order_lets_a_drop_in_stand_before_the_main_file() {
    let main = r#"
        [[rule]]
        name = "nobody"
        first_of = "access"
        action = "deny"
    "#;
    let drop_in = r#"
        [[rule]]
        name = "ann may"
        users = ["ann"]
        first_of = "access"
        order = -1
        acquire = []
    "#;
    under(main).gives("denied by nobody: command \"matlab\"");
    under(main)
        .drop_in("10-ann.toml", drop_in)
        .gives("free")
        .traces(["shadowed by \"ann may\"", "counts (first of 2)"]);
    under(main)
        .drop_in("10-ann.toml", &drop_in.replace("-1", "0"))
        .gives("denied by nobody: command \"matlab\"");
}

#[test]
fn deny_beats_exempt_beats_limit() {
    let limit = format!("{SEATS}[[rule]]\nname = \"seats\"\nacquire = [\"matlab\"]\n");
    let exempt = format!("{limit}[[rule]]\nname = \"free\"\naction = \"exempt\"\n");
    let deny = format!("{exempt}[[rule]]\nname = \"never\"\naction = \"deny\"\n");
    under(&limit).gives("1 of 50 matlab");
    under(&exempt).gives("exempt by free").traces(["exempted by \"free\"", "counts"]);
    under(&deny).gives("denied by never: command \"matlab\"");
}

#[test]
fn there_is_no_fall_through_a_rule_with_nothing_to_acquire_leaves_the_others_alone() {
    let policy = format!(
        "{SEATS}[[rule]]\nusers = [\"ann\"]\nacquire = []\n[[rule]]\nname = \"seats\"\nacquire = [\"matlab\"]\n"
    );
    under(&policy).gives("1 of 50 matlab");
}

#[test]
fn exempt_may_name_what_it_exempts_from() {
    let policy = format!(
        r#"{SEATS}
        [[rule]]
        name = "seats"
        acquire = ["matlab", "matlab-per-user"]
        [[rule]]
        name = "power users"
        users = ["bob"]
        action = "exempt"
        from = ["matlab-per-user"]
        "#
    );
    under(&policy).gives("1 of 50 matlab, 1 of 4 matlab-per-user [ann]");
    under(&policy).user("bob").gives("1 of 50 matlab").traces(["counts", "counts"]);
}

#[test]
fn an_alternative_from_which_a_launch_is_exempt_can_always_be_had() {
    let policy = format!(
        r#"{SEATS}
        [[rule]]
        name = "seats"
        acquire = [{{ any_of = ["matlab-per-user", "matlab"] }}]
        [[rule]]
        users = ["bob"]
        action = "exempt"
        from = ["matlab"]
        "#
    );
    under(&policy).gives("1 of 4 matlab-per-user [ann] or 1 of 50 matlab");
    under(&policy).user("bob").gives("free");
}

#[test]
fn a_rule_that_counts_takes_its_slots_and_never_refuses_whatever_other_rules_want() {
    let policy = format!(
        r#"{SEATS}
        [[rule]]
        name = "seats"
        acquire = ["matlab", "matlab-per-user"]
        [[rule]]
        name = "services"
        users = ["bob"]
        action = "count"
        acquire = ["matlab"]
        "#
    );
    under(&policy).gives("1 of 50 matlab, 1 of 4 matlab-per-user [ann]");
    under(&policy).user("bob").gives("1 of 50 matlab always, 1 of 4 matlab-per-user [bob] always");
}

#[test]
fn enforce_false_on_a_rule_a_repository_or_in_the_defaults_only_tries_a_limit_out() {
    let policy = |defaults: &str, repository: &str, rule: &str| {
        format!(
            "[defaults]\n{defaults}\n[repository.a]\nlimit = 2\n{repository}\n[[rule]]\nacquire = [\"a\"]\n{rule}"
        )
    };
    under(&policy("", "", "")).gives("1 of 2 a");
    under(&policy("enforce = false", "", "")).gives("1 of 2 a tried");
    under(&policy("", "enforce = false", "")).gives("1 of 2 a tried");
    under(&policy("", "", "enforce = false")).gives("1 of 2 a tried");
    under(&policy("enforce = false", "", "enforce = true")).gives("1 of 2 a");
    under(&policy("", "enforce = false", "enforce = true")).gives("1 of 2 a tried");
}

/// A trace shows the first three entries of a list that did not match.
#[test]
fn a_long_list_is_cut_in_the_trace() {
    let policy = |hosts: &str| format!("[[rule]]\nhosts = [{hosts}]\naction = \"exempt\"\n");
    under(&policy("\"a\", \"b\", \"c\"")).traces(["no: hosts (a, b, c)"]);
    under(&policy("\"a\", \"b\", \"c\", \"d\"")).traces(["no: hosts (a, b, c, …)"]);
}

#[test]
fn a_deny_rule_that_is_not_enforced_only_says_so() {
    let policy = "[[rule]]\nname = \"no\"\naction = \"deny\"\nenforce = false\n";
    under(policy).gives("would be denied by no").traces(["would refuse, but is not enforced"]);
}

/// A rule that would deny a launch has matched it: only that is not enforced, and no rule is missing.
#[test]
fn a_launch_that_would_be_denied_is_not_unmatched() {
    let policy = "[defaults]\nunmatched = \"refuse\"\n[[rule]]\nname = \"no\"\ncommands = [\"matlab\"]\n\
                  action = \"deny\"\nenforce = false\n";
    under(policy).gives("would be denied by no");
    under(policy).command("comsol").gives("unmatched");
}

#[test]
fn a_limit_that_is_tried_out_does_not_bind_the_one_that_holds() {
    let policy = format!(
        r#"{SEATS}
        [[rule]]
        name = "seats"
        acquire = ["matlab"]
        [[rule]]
        name = "fewer"
        acquire = [{{ repository = "matlab", ceiling = 5 }}]
        enforce = false
        "#
    );
    under(&policy).gives("1 of 50 matlab, 1 of 5 matlab tried");
}
