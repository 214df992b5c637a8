//! The system's policy, a file that was named, and the caller's own.

use std::{ops::RangeInclusive, time::Duration};

use super::site::{file, under};
use crate::{
    judge::{
        Verdict,
        terms::{Hold, Nested, Provenance, Queue, Wait},
    },
    policy::{LayerKind, LogTarget},
};

const SYSTEM: &str = r#"
    [repository.matlab]
    limit = 50
    [[rule]]
    name = "seats"
    commands = ["matlab"]
    acquire = ["matlab"]
"#;

const OWN: &str = r#"
    [repository.mine]
    limit = 2
    [[rule]]
    name = "my own"
    acquire = ["mine"]
"#;

#[test]
fn where_a_system_policy_exists_the_others_are_added_to_it() {
    under(SYSTEM)
        .own(OWN)
        .gives("1 of 50 matlab, 1 of 2 mine")
        .locks(["/run/rungate/matlab.lock", "/run/user/4711/rungate/mine.lock"]);
    under(SYSTEM)
        .given("[[rule]]\nname = \"no\"\naction = \"deny\"\n")
        .gives("denied by no: command \"matlab\"");
}

#[test]
fn what_the_caller_adds_is_created_for_him_alone() {
    under(SYSTEM).own(OWN).claims(|claims| {
        let modes = |index: usize| {
            let creation = &file(claims[index]).creation;
            (creation.file_mode, creation.directory_mode, creation.create_base)
        };
        assert_eq!(modes(0), (0o666, 0o1777, false));
        assert_eq!(modes(1), (0o600, 0o700, true));
    });
}

/// Without a target the events of the system go to the journal, and those of an added policy nowhere.
#[test]
fn a_log_without_a_target_has_that_of_its_layer() {
    let log = "[log]\nreplay = true\n";
    under(&format!("{SYSTEM}{log}")).own(&format!("{OWN}{log}")).with(|policy, _| {
        let logs = policy.logs().map(|(kind, log)| (kind, log.to.clone()));
        let expected = [(LayerKind::System, LogTarget::Journald), (LayerKind::Own, LogTarget::Off)];
        assert_eq!(logs.collect::<Vec<_>>(), expected);
    });
}

/// "The agent goes by the system's policy alone."
#[test]
fn only_the_systems_policy_names_the_agent() {
    let by = |keeper: &str| under(SYSTEM).own(&format!("[defaults]\nkeeper = \"{keeper}\"\n"));
    by("agent").faults(["agent-outside-system-policy"]);
    by("site").faults(["agent-outside-system-policy"]);
    by("file").gives("1 of 50 matlab");
}

#[test]
fn what_is_added_may_only_tighten() {
    let loosens = |text: &str| under(SYSTEM).own(text).faults(["loosens"]);
    loosens("[[rule]]\naction = \"exempt\"\n");
    loosens("[[rule]]\naction = \"count\"\nacquire = [\"matlab\"]\n");
    loosens("[[rule]]\nenforce = false\nacquire = [\"matlab\"]\n");
    loosens("[defaults]\nenforce = false\n");
    loosens("[repository.a]\nlimit = 1\nenforce = false\n");
    under(&format!("{SYSTEM}[command.matlab]\nexec = \"/opt/matlab\"\n"))
        .own("[command.matlab]\nexec = \"/tmp/matlab\"\n")
        .faults(["loosens"]);
}

#[test]
fn what_is_added_leaves_alone_what_the_system_keeps_in_the_same_file() {
    let system = r#"
        [repository.seats]
        limit = 10
        reserve = [{ users = ["%cad"], slots = 4 }]
        [[rule]]
        acquire = ["seats"]
    "#;
    let own = r#"
        [repository.mine]
        path = "/run/rungate/seats.lock"
        limit = 8
        reserve = [{ users = ["ann"], slots = 4 }]
        [[rule]]
        acquire = ["mine"]
    "#;
    let zones = |own: &str, expected: &[RangeInclusive<u64>]| {
        under(system).own(own).claims(|claims| {
            assert_eq!(claims.len(), 1);
            assert_eq!((claims[0].amount.limit, claims[0].amount.zones.as_slice()), (8, expected));
        });
    };
    zones(own, &[5..=8]);
    zones(&own.replace("\"ann\"", "\"bob\""), &[5..=8]);
    // Who keeps nothing says how many may be held, and not which.
    let keeps_nothing: String =
        own.lines().filter(|line| !line.contains("reserve")).map(|line| format!("{line}\n")).collect();
    zones(&keeps_nothing, &[5..=10]);
}

/// The first claim has the name, and the second is not forgotten.
#[test]
fn the_settings_of_both_repositories_with_one_file_apply() {
    let own = r#"
        [repository.mine]
        path = "/run/rungate/matlab.lock"
        limit = 2
        if_elapsed = "1h"
        nested = "take"
        hold = "supervisor"
        outside = { command = ["/bin/true"] }
        [[rule]]
        acquire = ["mine"]
    "#;
    under(SYSTEM).own(own).gives("1 of 2 matlab").claims(|claims| {
        assert!(claims[0].pace.pause.is_some() && claims[0].outside.is_some());
        assert_eq!(claims[0].nested, Nested::Take);
    });
    under(SYSTEM).own(own).with(|_, decision| {
        let Verdict::Start(start) = &decision.verdict else { panic!("it starts") };
        assert_eq!(start.hold.resolve(), Hold::Supervisor);
    });
}

/// The lower limit counts with its reason, and of each queue the shorter one. What neither sets is as usual.
#[test]
fn of_two_limits_for_one_file_the_lower_one_says_why() {
    let system = r#"
        [defaults]
        time_zone = "UTC"
        [repository.seats]
        limit = 50
        limits = [{ when = ["00:00-24:00"], limit = 40 }]
        queue = 9
        queue_per_user = 1
        [[rule]]
        acquire = ["seats"]
    "#;
    let own = |limit: u32| {
        format!(
            "[repository.mine]\npath = \"/run/rungate/seats.lock\"\nlimit = {limit}\nqueue = 3\n\
             [[rule]]\nacquire = [\"mine\"]\n"
        )
    };
    let reason = |own: &str| {
        under(system).own(own).claims(|claims| {
            assert_eq!(claims.len(), 1);
            assert_eq!(claims[0].queue, Queue { most: Some(3), per_user: Some(1) });
            assert_eq!(claims[0].nested, Nested::Join);
            (claims[0].amount.limit, claims[0].limit_of.as_ref().map(Provenance::limit))
        })
    };
    assert_eq!(reason(&own(45)), (40, Some("limit of this hour".to_owned())));
    assert_eq!(reason(&own(2)), (2, None));
}

/// Of two repositories with one file the names of the slots, and those out of order, are those of the one
/// that has names, whichever of them comes first.
#[test]
fn slots_of_one_file_have_the_names_that_one_of_its_repositories_gives() {
    let (plain, named) = ("limit = 9", "names = [\"a\", \"b\", \"c\"]\nout_of_order = [\"b\"]");
    let rule = |repository: &str| format!("[[rule]]\nacquire = [\"{repository}\"]\n");
    for (system, own) in [(plain, named), (named, plain)] {
        let system = format!("[repository.seats]\n{system}\n{}", rule("seats"));
        let path = "path = \"/run/rungate/seats.lock\"";
        let own = format!("[repository.mine]\n{path}\n{own}\n{}", rule("mine"));
        under(&system).own(&own).gives("1 of 2 seats").claims(|claims| {
            assert_eq!(&claims[0].names[..], ["a", "b", "c"]);
            assert_eq!(claims[0].out_of_order, [2]);
        });
    }
}

/// Slots that several entries have out of order are counted once.
#[test]
fn a_slot_is_out_of_order_once() {
    let broken = "{ \"ws*\" = [\"d\", \"b\"], ws17 = [\"e\", \"d\"], ws18 = [\"c\"] }";
    let names = "names = [\"a\", \"b\", \"c\", \"d\", \"e\"]";
    let policy = format!("[repository.a]\n{names}\nout_of_order = {broken}\n[[rule]]\nacquire = [\"a\"]\n");
    under(&policy).gives("1 of 2 a").claims(|claims| {
        assert_eq!(claims[0].out_of_order, [2, 4, 5]);
        assert_eq!(claims[0].amount.zones, [1..=1, 3..=3]);
    });
    // Those beyond the limit make no difference.
    let limited = policy.replace("[repository.a]", "[repository.a]\nlimit = 3");
    under(&limited).gives("1 of 2 a").claims(|claims| {
        assert_eq!(claims[0].out_of_order, [2]);
        assert_eq!(claims[0].amount.zones, [1..=1, 3..=3]);
    });
}

/// The shortest wait counts. The default of a layer counts only if no rule of this layer names a wait.
#[test]
fn a_wait_replaces_the_default_of_its_own_layer_alone() {
    let wait = |first: &str, second: &str, own: &str| {
        let rule = |keys: &str| format!("[[rule]]\nacquire = [\"a\"]\n{keys}\n");
        let defaults = "[defaults]\nwait = \"10m\"\n[repository.a]\nlimit = 5\n";
        under(&format!("{defaults}{}{}", rule(first), rule(second))).own(&rule(own)).claims(|claims| {
            assert_eq!(claims.len(), 1);
            claims[0].wait.resolve()
        })
    };
    let minutes = |minutes: u64| Wait::For(Duration::from_secs(60 * minutes));
    let other = "commands = [\"comsol\"]";
    assert_eq!(wait("", "", other), minutes(10));
    assert_eq!(wait("", "wait = \"20m\"", other), minutes(20));
    assert_eq!(wait("", "", "wait = \"20m\""), minutes(10));
    assert_eq!(wait("wait = \"30m\"", other, "wait = \"20m\""), minutes(20));
}

/// The default of a later layer counts for a lock file of the system too.
#[test]
fn the_default_wait_of_a_later_layer_counts_in_the_same_file() {
    let own = r#"
        [defaults]
        wait = "5m"
        [repository.mine]
        path = "/run/rungate/matlab.lock"
        limit = 50
        [[rule]]
        acquire = ["mine"]
    "#;
    let wait = |system: &str| {
        under(&format!("{system}{SYSTEM}")).own(own).claims(|claims| {
            assert_eq!(claims.len(), 1);
            claims[0].wait.resolve()
        })
    };
    let minutes = |minutes: u64| Wait::For(Duration::from_secs(60 * minutes));
    assert_eq!(wait(""), minutes(5));
    assert_eq!(wait("[defaults]\nwait = \"3m\"\n"), minutes(3));
    assert_eq!(wait("[defaults]\nwait = \"8m\"\n"), minutes(5));
}

/// A layer that enforces nothing only tries its rules and its repositories out, and no others.
#[test]
fn a_limit_is_only_tried_out_if_the_layer_of_its_rule_or_of_its_repository_says_so() {
    let repository = "[repository.a]\nlimit = 2\n";
    let (rule, tried) = ("[[rule]]\nacquire = [\"a\"]\n", "[defaults]\nenforce = false\n");
    under(repository).given(rule).by_root().gives("1 of 2 a");
    under(repository).given(&format!("{tried}{rule}")).by_root().gives("1 of 2 a tried");
    under(&format!("{tried}{repository}")).given(rule).by_root().gives("1 of 2 a tried");
}

/// The default hold of a layer is for its rules: a layer without a rule for the launch changes nothing.
#[test]
fn the_default_hold_of_a_layer_is_for_launches_of_its_rules() {
    let hold = |own: &str| {
        under(SYSTEM).own(own).with(|_, decision| {
            let Verdict::Start(start) = &decision.verdict else { panic!("it starts") };
            start.hold.resolve()
        })
    };
    let defaults = "[defaults]\nhold = \"supervisor\"\n";
    assert_eq!(hold(defaults), Hold::Process);
    assert_eq!(hold(&format!("{defaults}{OWN}")), Hold::Supervisor);
}

/// The hold of a repository counts for the rules of its layer. The default of another layer stays one.
#[test]
fn the_hold_of_a_repository_replaces_no_default_of_another_layer() {
    let system = format!("[defaults]\nhold = \"tree\"\n{SYSTEM}");
    let own = OWN.replace("limit = 2", "limit = 2\nhold = \"descriptor\"");
    under(&system).own(&own).with(|_, decision| {
        let Verdict::Start(start) = &decision.verdict else { panic!("it starts") };
        assert_eq!((start.hold.bound, start.hold.default), (Some(Hold::Descriptor), Some(Hold::Tree)));
    });
}

#[test]
fn root_may_also_loosen() {
    under(SYSTEM).given("[[rule]]\nname = \"free\"\naction = \"exempt\"\n").by_root().gives("exempt by free");
    let given = "[[rule]]\nname = \"all\"\naction = \"count\"\nacquire = [\"matlab\"]\n";
    under(SYSTEM).given(given).by_root().gives("1 of 50 matlab always");
    let program = |path: &str| format!("[command.matlab]\nexec = \"{path}\"\n");
    under(&format!("{SYSTEM}{}", program("/opt/a"))).given(&program("/opt/b")).by_root().with(|policy, _| {
        let matlab = std::ffi::OsStr::new("matlab");
        assert_eq!(policy.executable(matlab), Some(std::path::Path::new("/opt/b")));
    });
}

/// What is admitted beyond the limit by rules of two policies is so in both.
#[test]
fn the_last_policy_that_admits_beyond_the_limit_counts() {
    let system = format!("{SYSTEM}action = \"count\"\n");
    let given = "[repository.other]\nlimit = 2\n[[rule]]\nacquire = [\"other\"]\n";
    let both = format!("{given}action = \"count\"\n");
    under(&system).given(&both).by_root().gives("1 of 50 matlab always, 1 of 2 other always");
    under(&system).given(given).by_root().gives("1 of 50 matlab always, 1 of 2 other");
}

/// "It does not undo what users add for themselves": nor does it in the same lock file.
#[test]
fn a_rule_that_counts_admits_nobody_beyond_a_limit_of_his_own() {
    let system = format!("{SYSTEM}action = \"count\"\n");
    let own = r#"
        [repository.mine]
        path = "PATH"
        limit = 2
        [[rule]]
        acquire = ["mine"]
    "#;
    under(&system).own(&own.replace("PATH", "/run/rungate/matlab.lock")).gives("1 of 2 matlab");
    let elsewhere = own.replace("PATH", "/run/rungate/../rungate/matlab.lock");
    under(&system).own(&elsewhere).faults(["dots-in-path"]);
    let elsewhere = own.replace("PATH", "/var/run/rungate/matlab.lock");
    under(&system).own(&elsewhere).gives("1 of 50 matlab always, 1 of 2 mine");
}

#[test]
fn a_family_and_its_order_are_a_layers_own() {
    let family = "first_of = \"f\"\n";
    let system = format!("{SYSTEM}{family}");
    let own = format!("[[rule]]\nname = \"mine\"\nacquire = []\norder = -5\n{family}");
    under(&system).own(&own).gives("1 of 50 matlab");
}

#[test]
fn unmatched_refuse_is_not_answered_by_a_rule_that_somebody_adds_for_himself() {
    let system = format!("[defaults]\nunmatched = \"refuse\"\n{SYSTEM}");
    let own = "[[rule]]\ncommands = [\"comsol\"]\nacquire = []\n";
    under(&system).own(own).command("comsol").gives("unmatched");
    under(&system).own(own).gives("1 of 50 matlab");
    under(&system).given(own).by_root().command("comsol").gives("free");
    under(SYSTEM).own(&format!("[defaults]\nunmatched = \"refuse\"\n{own}")).gives("unmatched");
}

#[test]
fn an_exempt_rule_of_the_system_does_not_undo_what_the_caller_adds_for_himself() {
    let system = format!("{SYSTEM}[[rule]]\nname = \"free\"\naction = \"exempt\"\n");
    under(&system).own(OWN).gives("1 of 2 mine");
}

#[test]
fn a_name_means_what_its_own_file_defines_else_what_one_other_file_does() {
    let drop_in = "[[rule]]\nname = \"more\"\nacquire = [{ repository = \"matlab\", ceiling = 9 }]\n";
    under(SYSTEM).drop_in("10.toml", drop_in).gives("1 of 9 matlab");
    let own = format!("[repository.matlab]\nlimit = 3\n{drop_in}");
    under(SYSTEM).own(drop_in).gives("1 of 9 matlab");
    under(SYSTEM)
        .own(&own.replace("ceiling = 9", "ceiling = 2"))
        .gives("1 of 50 matlab, 1 of 2 matlab (/home/ann/.config/rungate/policy.toml)");
}

/// Of two files that a caller adds each is named too. The name of the system's stays as it is.
#[test]
fn where_two_added_files_use_one_name_it_is_shown_with_both() {
    let seats = |limit: u32| {
        let keys = format!("path = \"{limit}.lock\"\nlimit = {limit}");
        format!("[repository.seats]\n{keys}\n[[rule]]\nacquire = [\"seats\"]\n")
    };
    let both = "1 of 1 seats (given.toml), 1 of 2 seats (/home/ann/.config/rungate/policy.toml)";
    under(&seats(9)).given(&seats(1)).own(&seats(2)).gives(&format!("1 of 9 seats, {both}"));
    under(SYSTEM).given(&seats(1)).own(&seats(2)).command("less").gives(both);
}

#[test]
fn where_two_files_use_one_name_it_is_shown_with_the_files() {
    let drop_in = "[repository.matlab]\nlimit = 3\npath = \"cad.lock\"\n[[rule]]\nacquire = [\"matlab\"]\n";
    under(SYSTEM)
        .drop_in("20-cad.toml", drop_in)
        .gives("1 of 50 matlab (policy.toml), 1 of 3 matlab (20-cad.toml)");
    let third = "[[rule]]\nacquire = [\"matlab\"]\n";
    under(SYSTEM).drop_in("20-cad.toml", drop_in).drop_in("30.toml", third).faults(["ambiguous-repository"]);
}
