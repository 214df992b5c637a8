//! What is taken: limits, ceilings, slots, members, reservations.

use super::site::under;
use crate::{judge::terms::Hold, policy::Wait};

#[test]
fn a_ceiling_lowers_the_limit_for_the_launches_of_one_rule() {
    let policy = |claim: &str| format!("[repository.a]\nlimit = 50\n[[rule]]\nacquire = [{claim}]\n");
    under(&policy("{ repository = \"a\", ceiling = 30 }")).gives("1 of 30 a");
    under(&policy("{ repository = \"a\", slots = 3 }")).gives("3 of 50 a");
    under(&policy("{ repository = \"a\", slots = \"all\" }")).gives("all of 50 a");
}

#[test]
fn rules_that_name_the_same_file_make_one_claim_with_the_lowest_limit_and_the_largest_slots() {
    let policy = r#"
        [repository.a]
        limit = 50
        [repository.same]
        path = "/run/rungate/a.lock"
        limit = 50
        [[rule]]
        name = "all"
        acquire = ["a"]
        [[rule]]
        name = "students"
        acquire = [{ repository = "same", ceiling = 30, slots = 2 }]
    "#;
    under(policy).gives("2 of 30 a").claims(|claims| {
        let rules: Vec<&str> = claims[0].origins.iter().map(|origin| &*origin.rule).collect();
        assert_eq!(rules, ["students", "all"], "the rule that binds comes first");
    });
}

/// Of two ceilings for the launches of two rules the lower one counts, whichever comes first.
#[test]
fn the_lower_of_two_ceilings_counts() {
    let rule =
        |ceiling: u32| format!("[[rule]]\nacquire = [{{ repository = \"a\", ceiling = {ceiling} }}]\n");
    for (first, second) in [(30, 20), (20, 30)] {
        let policy = format!("[repository.a]\nlimit = 50\n{}{}", rule(first), rule(second));
        under(&policy).gives("1 of 20 a");
    }
}

/// Of two rules that bind alike the first is named first.
#[test]
fn rules_that_bind_alike_are_named_in_their_order() {
    let rule = |name: &str| format!("[[rule]]\nname = \"{name}\"\nacquire = [\"a\"]\n");
    under(&format!("[repository.a]\nlimit = 50\n{}{}", rule("one"), rule("two"))).claims(|claims| {
        let rules: Vec<&str> = claims[0].origins.iter().map(|origin| &*origin.rule).collect();
        assert_eq!(rules, ["one", "two"]);
    });
}

/// All slots of a limit of 0 are one slot, which is not there: no launch starts without any.
#[test]
fn all_of_no_slots_is_one_slot() {
    under("[repository.a]\nlimit = 0\n[[rule]]\nacquire = [{ repository = \"a\", slots = \"all\" }]\n")
        .claims(|claims| assert_eq!(claims[0].amount.wanted(), 1));
}

#[test]
fn limit_0_drains() {
    under("[repository.a]\nlimit = 0\n[[rule]]\nacquire = [{ repository = \"a\", slots = 5 }]\n")
        .gives("5 of 0 a");
}

#[test]
fn a_limit_may_be_so_many_for_each_processor() {
    under("[repository.a]\nlimit = \"2/cpu\"\n[[rule]]\nacquire = [\"a\"]\n").gives("1 of 16 a");
    under("[repository.a]\nlimit = \"2/cpu\"\n[[rule]]\nacquire = [{ repository = \"a\", ceiling = \"80%\" }]\n")
        .gives("1 of 12 a");
}

#[test]
fn there_are_no_more_slots_than_names() {
    under("[repository.a]\nlimit = \"1/cpu\"\nnames = [\"x\", \"y\", \"z\"]\n[[rule]]\nacquire = [\"a\"]\n")
        .gives("1 of 3 a");
}

#[test]
fn any_of_is_the_first_that_can_be_had_in_order() {
    let policy = r#"
        [repository.own]
        limit = 5
        [repository.overflow]
        limit = 3
        [[rule]]
        acquire = [{ any_of = ["own", { repository = "overflow", slots = 2 }] }]
    "#;
    under(policy).gives("1 of 5 own or 2 of 3 overflow");
}

/// Every claim of every rule is taken: an alternative of one rule does not meet the claim of another one.
#[test]
fn what_one_rule_claims_is_no_alternative_of_another() {
    let repositories = "[repository.a]\nlimit = 5\n[repository.b]\nlimit = 3\n";
    let any = "[[rule]]\nacquire = [{ any_of = [\"a\", \"b\"] }]\n";
    let one = "[[rule]]\nacquire = [\"a\"]\n";
    under(&format!("{repositories}{any}{one}")).gives("1 of 5 a or 1 of 3 b, 1 of 5 a");
    under(&format!("{repositories}{one}{any}")).gives("1 of 5 a, 1 of 5 a or 1 of 3 b");
}

/// "Claims from which the launch is exempt leave their list." The rest of the list is wanted nevertheless; a
/// list of which nothing is left is always available.
#[test]
fn a_list_of_which_the_launch_is_exempt_in_part_wants_the_rest() {
    let policy = |exempt: &str| {
        format!(
            r#"
            [repository]
            drc.limit = 5
            lvs.limit = 5
            bundle.limit = 3
            [[rule]]
            acquire = [{{ any_of = [["drc", "lvs"], "bundle"] }}]
            [[rule]]
            name = "free"
            action = "exempt"
            from = [{exempt}]
            "#
        )
    };
    under(&policy("\"drc\"")).claims(|claims| {
        let wanted: Vec<&str> = claims.iter().map(|claim| claim.repository.as_ref()).collect();
        assert_eq!(wanted, ["lvs", "bundle"]);
    });
    under(&policy("\"drc\", \"lvs\"")).claims(|claims| assert!(claims.is_empty()));
}

/// "slots = 0": nothing is wanted unless the command line says how much.
#[test]
fn what_only_the_command_line_asks_for_is_wanted_when_it_does() {
    let policy = r#"
        [repository.gpus]
        limit = 4
        [[rule]]
        acquire = [{ repository = "gpus", slots = 0, slots_from = { after = "--gpus" } }]
    "#;
    under(policy).arguments(["--gpus", "2"]).gives("2 of 4 gpus");
    under(policy).arguments(["--cpus", "2"]).claims(|claims| assert!(claims.is_empty()));
}

const BY_GROUP: &str = r#"
    [repository.seats]
    per = "group"
    limit = 10
    limits = { cad = 20, 202 = 15 }
    [[rule]]
    groups = ["sim", "cad", "students"]
    acquire = ["seats"]
"#;

#[test]
fn a_user_in_two_capped_groups_counts_against_both() {
    under(BY_GROUP)
        .groups(["users", "cad", "sim"])
        .gives("1 of 15 seats [sim], 1 of 20 seats [cad]")
        .locks(["/run/rungate/seats.202.lock", "/run/rungate/seats.201.lock"]);
    under(BY_GROUP).groups(["students"]).gives("1 of 10 seats [students]");
    // So it is beside a repository that is one for all.
    let plain = BY_GROUP.replace("acquire = [", "acquire = [\"plain\", ");
    under(&format!("[repository.plain]\nlimit = 9\n{plain}"))
        .groups(["cad", "sim"])
        .gives("1 of 9 plain, 1 of 15 seats [sim], 1 of 20 seats [cad]");
}

#[test]
fn charge_first_is_the_first_of_the_rule_and_any_the_first_with_room() {
    let first = BY_GROUP.replace("limit = 10", "limit = 10\ncharge = \"first\"");
    under(&first).groups(["cad", "sim"]).gives("1 of 15 seats [sim]");
    let any = BY_GROUP.replace("limit = 10", "limit = 10\ncharge = \"any\"");
    under(&any).groups(["cad", "sim"]).gives("1 of 15 seats [sim] or 1 of 20 seats [cad]");
    under(&any).groups(["cad"]).gives("1 of 20 seats [cad]");
    // A group that several entries name is charged once.
    let twice = any.replace("\"sim\", \"cad\", \"students\"", "\"sim\", \"s*\"");
    under(&twice).groups(["sim", "students"]).gives("1 of 15 seats [sim] or 1 of 10 seats [students]");
}

/// A star is for each group, also for one without a name.
#[test]
fn a_limit_of_all_groups_is_for_those_without_a_name_too() {
    let limits = "limits = [{ groups = [\"201\"], limit = 9 }, { groups = [\"*\"], limit = 7 }]";
    let rule = "[[rule]]\ngroups = [\"cad\", 7777]\nacquire = [\"a\"]\n";
    let policy = format!("[repository.a]\nper = \"group\"\nlimit = 4\n{limits}\n{rule}");
    under(&policy).gids([7777]).gives("1 of 7 a [7777]");
    under(&policy).groups(["cad"]).gives("1 of 9 a [cad]");
}

#[test]
fn a_group_that_cannot_be_looked_up_refuses_where_it_would_be_charged() {
    under(BY_GROUP)
        .groups(["cad"])
        .broken("getgrnam(\"students\")")
        .gives("rule 1: getgrnam(\"students\"): Connection timed out");
}

#[test]
fn limits_are_exceptions_by_member_and_an_exact_name_counts_before_a_pattern() {
    let policy = |limits: &str| {
        format!(
            "[repository.a]\nper = \"user\"\nlimit = 4\nlimits = {{ {limits} }}\n[[rule]]\nacquire = [\"a\"]\n"
        )
    };
    under(&policy("ann = 8")).gives("1 of 8 a [ann]");
    under(&policy("ann = 8")).user("bob").gives("1 of 4 a [bob]");
    under(&policy("\"a*\" = 9, ann = 8")).gives("1 of 8 a [ann]");
    under(&policy("\"a*\" = 9, \"*\" = 1")).gives("1 of 9 a [ann]");
    under(&policy("4711 = 7, 4712 = 6")).gives("1 of 7 a [ann]").asks([]);
    under(&policy("ann = 8")).broken("getpwuid(4711)").gives("rule 1: getpwuid(4711): Connection timed out");
    let host =
        "[repository.a]\nper = \"host\"\nlimit = 4\nlimits = { ws17 = 9 }\n[[rule]]\nacquire = [\"a\"]\n";
    under(host).gives("1 of 9 a [ws17.example]");
    under(host).host("ws18").gives("1 of 4 a [ws18]");
    under(&host.replace("ws17", "WS17")).gives("1 of 9 a [ws17.example]");
    under(&host.replace("ws17", "\"Ws1*.EXAMPLE\"")).gives("1 of 9 a [ws17.example]");
}

/// The reason of a limit that a ceiling lowers is the ceiling, and not whose limit it is.
#[test]
fn a_limit_below_that_of_the_member_has_another_reason() {
    let reason = |claim: &str| {
        under(&format!(
            "[repository.a]\nper = \"user\"\nlimit = 4\nlimits = {{ \"a*\" = 9 }}\n[[rule]]\nacquire = [{claim}]\n"
        ))
        .claims(|claims| claims[0].reason_of_limit())
    };
    assert_eq!(reason("\"a\"").as_deref(), Some("limit of a*"));
    assert_eq!(reason("{ repository = \"a\", ceiling = 9 }").as_deref(), Some("limit of a*"));
    assert_eq!(reason("{ repository = \"a\", ceiling = 8 }"), None);
}

/// The reason of a limit names the users first, and then the places.
#[test]
fn a_limit_of_users_on_hosts_names_both() {
    let limits = "{ hosts = [\"ws*\"], users = [\"a*\", \"bob\"], limit = 9 }";
    let keys = format!("per = [\"user\", \"host\"]\nlimit = 4\nlimits = [{limits}]\n");
    let policy = format!("[repository.a]\n{keys}[[rule]]\nacquire = [\"a\"]\n");
    under(&policy).gives("1 of 9 a [ann, ws17.example]").claims(|claims| {
        assert_eq!(claims[0].reason_of_limit().as_deref(), Some("limit of a*, bob on ws*"));
    });
}

#[test]
fn the_number_of_slots_may_stand_on_the_command_line() {
    let policy = r#"
        [repository.cores]
        limit = 64
        [[rule]]
        acquire = [{ repository = "cores", slots_from = { after = "-np", most = 16 } }]
    "#;
    let none: [&str; 0] = [];
    under(policy).arguments(none).gives("1 of 64 cores");
    under(policy).arguments(["-np", "8"]).gives("8 of 64 cores");
    under(policy).arguments(["-np=8"]).gives("8 of 64 cores");
    under(policy).arguments(["-np", "32"]).gives("16 of 64 cores");
    under(policy).arguments(["-np", "2", "-np", "5", "-np", "3"]).gives("5 of 64 cores");
    under(policy).arguments(["-np", "many"]).gives("1 of 64 cores");
    under(policy).arguments(["-np", "0"]).gives("1 of 64 cores");
    under(policy).arguments(["-np", "99999999999999"]).gives("16 of 64 cores");
    under(&policy.replace(", most = 16", "")).arguments(["-np", "65"]).gives("65 of 64 cores");
    under(&policy.replace("slots_from", "slots = 2, slots_from")).arguments(none).gives("2 of 64 cores");
    let unclear = |arguments: &[&str]| {
        under(policy).arguments(arguments).with(|_, decision| {
            let crate::judge::Verdict::Start(start) = &decision.verdict else { panic!("it starts") };
            start.unclear.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    for (arguments, why) in [
        (&["-np", "many"][..], "\"-np many\" is not a number of slots"),
        (&["-np=x"][..], "\"-np=x\" is not a number of slots"),
        (&["-np", "8x"][..], "\"-np 8x\" is not a number of slots"),
        (&["8", "-np"][..], "no number of slots follows \"-np\""),
    ] {
        assert_eq!(unclear(arguments), [format!("{why}: it takes 1 slot of cores")]);
    }
    assert_eq!(unclear(&["-np", "8", "-np"]), [] as [&str; 0]);
}

#[test]
fn numbers_of_several_arguments_add_up_and_a_table_says_how_many_slots_they_are() {
    let policy = r#"
        [repository.tokens]
        limit = 200
        [[rule]]
        acquire = [{ repository = "tokens", slots_from = { after = ["cpus", "gpus"], absent = 1, most = 5,
                     table = { 1 = 50, 2 = 59, 4 = 76 } } }]
    "#;
    let none: [&str; 0] = [];
    under(policy).arguments(none).gives("50 of 200 tokens");
    under(policy).arguments(["gpus=1"]).gives("59 of 200 tokens");
    under(policy).arguments(["cpus=2", "gpus=1"]).gives("76 of 200 tokens");
    under(policy).arguments(["cpus=2", "gpus=0"]).gives("59 of 200 tokens");
    // The order of a table does not count.
    let turned = policy.replace("1 = 50, 2 = 59, 4 = 76", "4 = 76, 2 = 59, 1 = 50");
    under(&turned).arguments(none).gives("50 of 200 tokens");
    under(&turned).arguments(["cpus=3"]).gives("76 of 200 tokens");
    let unknown = "4294967295 of 200 tokens";
    for arguments in [["cpus=9"], ["cpus=x"], ["cpus=0"], ["cpus"], ["gpus="]] {
        under(policy).arguments(arguments).gives(unknown);
    }
    let absent = policy.replace("most = 5", "unclear = \"absent\"");
    under(&absent).arguments(["cpus=x"]).gives("50 of 200 tokens");
    under(&absent).arguments(["cpus=x", "gpus=1"]).gives("59 of 200 tokens");
    under(&policy.replace("most = 5", "most = 4")).arguments(["cpus=99"]).gives("76 of 200 tokens");
    under(&policy.replace("most = 5", "most = 1")).arguments(["cpus=99"]).gives("50 of 200 tokens");
    let nothing = policy.replace("absent = 1", "absent = 0");
    under(&nothing).arguments(none).claims(|claims| assert!(claims.is_empty()));
    under(&nothing).arguments(["gpus=2"]).gives("59 of 200 tokens");
    let sum = "[repository.a]\nlimit = 9\n[[rule]]\nacquire = [{ repository = \"a\", slots_from = { after = [\"-x\", \"-y\"] } }]";
    under(sum).arguments(["-x4", "-y", "3"]).gives("7 of 9 a");
    under(&sum.replace("] } }", "], unclear = \"refuse\" } }"))
        .arguments(["-y", "z"])
        .gives("4294967295 of 9 a");
}

/// A rule that wants all slots does not change what another rule refuses, or wants beyond the limit.
#[test]
fn a_number_that_can_never_be_had_counts_beside_all_slots() {
    let repository = "[repository.a]\nlimit = 4\n";
    let rule = |claim: &str| format!("[[rule]]\nacquire = [{{ repository = \"a\", {claim} }}]\n");
    let case = |number: &str, arguments: &[&str], expected: &str, is_refused: bool| {
        let (number, all) = (rule(number), rule("slots = \"all\""));
        for rules in [[&number, &all, &all], [&all, &number, &number], [&all, &number, &all]] {
            let policy = rules.into_iter().fold(repository.to_owned(), |policy, rule| policy + rule);
            let launch = under(&policy).arguments(arguments).gives(expected);
            launch.claims(|claims| assert_eq!(claims[0].unclear.is_some(), is_refused));
        }
    };
    let table = "slots_from = { after = \"cpus\", table = { 1 = 1, 2 = 2 } }";
    case(table, &["cpus=9"], "4294967295 of 4 a", true);
    case(table, &["cpus=all"], "4294967295 of 4 a", true);
    case(table, &["cpus=2"], "all of 4 a", false);
    let plain = "slots_from = { after = \"-np\" }";
    case(plain, &["-np", "8"], "8 of 4 a", false);
    case(plain, &["-np", "4"], "all of 4 a", false);
    // What counts is the limit that all rules together leave.
    let low = format!("{repository}{}{}", rule(plain), rule("slots = \"all\""));
    for low in [format!("{low}{}", rule("ceiling = 2")), low.replace("\"all\"", "\"all\", ceiling = 2")] {
        under(&low).arguments(["-np", "3"]).gives("3 of 2 a");
        under(&low).arguments(["-np", "2"]).gives("all of 2 a");
    }
}

/// A number above the table is shown as it is, or as the greatest that can be shown.
#[test]
fn a_number_above_the_table_is_told() {
    let from = "slots_from = { after = \"-n\", table = { 1 = 1, 4 = 2 } }";
    let policy =
        format!("[repository.a]\nlimit = 9\n[[rule]]\nacquire = [{{ repository = \"a\", {from} }}]\n");
    for (number, told) in [("5", "5"), ("4294967294", "4294967294"), ("99999999999", "more than 4294967294")]
    {
        under(&policy).arguments(["-n", number]).claims(|claims| {
            let unclear = claims[0].unclear.as_ref().expect("an unclear number").to_string();
            let names = format!("the command line names {told}, and the table of slots_from ends at 4");
            assert_eq!(unclear, format!("{names}: refused by a"));
        });
    }
    under(&policy).arguments(["-n", "4"]).claims(|claims| assert_eq!(claims[0].unclear, None));
}

/// A number on the command line counts also if it is lower, and `most` limits only such a number. A digit
/// behind an option that ends in one is a part of that option.
#[test]
fn only_a_number_of_the_command_line_replaces_the_slots_of_the_policy() {
    let policy = |slots: u32, after: &str| {
        format!(
            "[repository.cores]\nlimit = 64\n[[rule]]\nacquire = [{{ repository = \"cores\", slots = {slots}, \
             slots_from = {{ after = \"{after}\", most = 16 }} }}]\n"
        )
    };
    let none: [&str; 0] = [];
    under(&policy(2, "-np")).arguments(["-np", "1"]).gives("1 of 64 cores");
    under(&policy(20, "-np")).arguments(none).gives("20 of 64 cores");
    under(&policy(20, "-np")).arguments(["-np", "18"]).gives("16 of 64 cores");
    under(&policy(2, "-x1")).arguments(["-x12"]).gives("2 of 64 cores");
    under(&policy(2, "-x1")).arguments(["-x1=12"]).gives("12 of 64 cores");
}

#[track_caller]
fn zones(groups: [&str; 1], policy: &str, expected: &[(u64, u64)]) {
    let expected: Vec<_> = expected.iter().map(|&(first, last)| first..=last).collect();
    under(policy).groups(groups).claims(|claims| assert_eq!(claims[0].amount.zones, expected));
}

#[test]
fn reserve_keeps_the_first_slots_for_its_members_and_lends_the_last_of_them() {
    let policy = r#"
        [repository.a]
        limit = 50
        reserve = [{ users = ["%cad"], slots = 10, lend = 6 }, { users = ["%sim"], slots = 5 }]
        [[rule]]
        acquire = ["a"]
    "#;
    zones(["users"], policy, &[(16, 50), (5, 10)]);
    zones(["cad"], policy, &[(1, 4), (5, 10), (16, 50)]);
    zones(["sim"], policy, &[(11, 15), (16, 50), (5, 10)]);
    zones(["users"], &policy.replace("50", "15"), &[(5, 10)]);
    zones(["users"], &policy.replace("50", "\"1/cpu\""), &[(5, 8)]);
    zones(["users"], &policy.replace("50", "0"), &[]);
    // No more is lent than is kept: of a fifth of 8 one.
    zones(
        ["users"],
        &policy.replace("50", "\"1/cpu\"").replace("slots = 10", "slots = \"20%\""),
        &[(7, 8), (1, 1)],
    );
    zones(["users"], "[repository.a]\nlimit = 5\n[[rule]]\nacquire = [\"a\"]\n", &[(1, 5)]);
}

/// A refusal says how many slots are kept for whom: once, however many rules claim them, and only where any
/// are.
#[test]
fn slots_that_are_kept_are_named_once_and_only_if_there_are_any() {
    let kept = |limit: &str, reserve: &str| {
        let rules = "[[rule]]\nacquire = [\"a\"]\n[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"a\"]\n";
        under(&format!("[repository.a]\nlimit = {limit}\nreserve = [{reserve}]\n{rules}")).claims(|claims| {
            assert_eq!(claims.len(), 1);
            claims[0].kept.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    assert_eq!(kept("50", "{ users = [\"%cad\"], slots = 4, lend = 1 }"), ["3 kept for %cad"]);
    assert_eq!(kept("50", "{ users = [\"%cad\"], slots = 4, lend = 4 }"), [] as [&str; 0]);
    // The second begins behind the last of 8 slots.
    let both = "{ users = [\"%cad\"], slots = 10, lend = 6 }, { users = [\"%sim\"], slots = 5 }";
    assert_eq!(kept("\"1/cpu\"", both), ["4 kept for %cad"]);
}

/// A listing shows the slots that are kept now: not those that are lent, nor those of other hours, nor any
/// beyond the limit.
#[test]
fn a_listing_shows_which_slots_are_kept_now() {
    let listed = |limit: &str, reserve: &str| {
        let zone = "[defaults]\ntime_zone = \"UTC\"\n";
        under(&format!("{zone}[repository.a]\nlimit = {limit}\nreserve = [{reserve}]\n")).listed_as_kept()
    };
    let (cad, sim) = ("{ users = [\"%cad\"], slots = 10, lend = 6 }", "{ users = [\"%sim\"], slots = 5");
    assert_eq!(listed("50", &format!("{cad}, {sim} }}")), ["1-4 for %cad", "11-15 for %sim"]);
    assert_eq!(listed("\"1/cpu\"", &format!("{cad}, {sim} }}")), ["1-4 for %cad"]);
    assert_eq!(listed("50", &format!("{cad}, {sim}, when = [\"Sat\"] }}")), ["1-4 for %cad"]);
    assert_eq!(listed("50", &format!("{sim}, lend = 5 }}")), [] as [&str; 0]);
}

#[test]
fn a_reservation_may_be_for_whoever_is_on_some_hosts() {
    let policy = r#"
        [repository.a]
        limit = 50
        reserve = [{ hosts = ["ws17"], slots = 10 }]
        [[rule]]
        acquire = ["a"]
    "#;
    zones(["users"], policy, &[(1, 10), (11, 50)]);
    zones(["users"], &policy.replace("ws17", "ws18"), &[(11, 50)]);
    let both = policy.replace("hosts", "users = [\"%cad\"], hosts");
    zones(["users"], &both, &[(11, 50)]);
    zones(["cad"], &both, &[(1, 10), (11, 50)]);
    zones(["cad"], &both.replace("ws17", "ws18"), &[(11, 50)]);
}

#[test]
fn the_shortest_wait_and_the_strongest_hold_of_those_that_say_count_and_else_the_defaults() {
    let policy = |repository: &str, rule: &str| {
        format!(
            "[defaults]\nwait = \"10m\"\nhold = \"descriptor\"\n[repository.a]\nlimit = 1\n{repository}\n\
             [[rule]]\nacquire = [\"a\"]\n{rule}\n"
        )
    };
    let minutes = |minutes: u64| Wait::For(std::time::Duration::from_secs(60 * minutes));
    let settled = |policy: &str, wait, hold| {
        under(policy).with(|_, decision| {
            let crate::judge::Verdict::Start(terms) = &decision.verdict else { panic!("it does not start") };
            let claim = terms.demands[0].claims().next().expect("a claim");
            (claim.wait.with(wait).resolve(), terms.hold.with(hold).resolve())
        })
    };
    assert_eq!(settled(&policy("", ""), None, None), (minutes(10), Hold::Descriptor));
    assert_eq!(
        settled(&policy("", ""), Some(minutes(30)), Some(Hold::Process)),
        (minutes(30), Hold::Process)
    );
    let said = policy("wait = \"5m\"\nhold = \"supervisor\"", "wait = \"forever\"\nhold = \"process\"");
    assert_eq!(settled(&said, None, None), (minutes(5), Hold::Supervisor));
    // A wait of the command line replaces each of them, up to what the repository allows.
    assert_eq!(settled(&said, Some(minutes(30)), Some(Hold::Process)), (minutes(30), Hold::Supervisor));
    let most = said.replace("wait = \"5m\"", "wait = \"5m\"\nmax_wait = \"20m\"");
    assert_eq!(settled(&most, Some(minutes(30)), Some(Hold::Process)), (minutes(20), Hold::Supervisor));
    assert_eq!(settled(&most, None, None), (minutes(5), Hold::Supervisor));
    assert_eq!(settled(&said, Some(minutes(1)), Some(Hold::Tree)), (minutes(1), Hold::Tree));
    assert_eq!(settled(&policy("", "wait = \"forever\""), None, None), (Wait::Forever, Hold::Descriptor));
}
