//! Compares the defaults in the manual with the program. A policy that sets a key to its default must mean the
//! same as the policy without the key, and another value must make a difference. A documented default without
//! a row or a test here is an error.

use std::{fs, path::Path};

use rungate::policy::AgentFile;

use crate::support::{Account, Site, needs_root, unindent};

const POLICY: &str = include_str!("../../man/rungate-policy.5");
const AGENT: &str = include_str!("../../man/rungate-agent.8");

/// How the manual marks a default.
const WORDS: [&str; 4] = ["Default:", "(the default)", "(default:", "by default"];

/// A policy with everything on which a default can depend. A key goes to the place that a `KEYS:` names.
const BASE: &str = r#"
    version = 1

    [defaults]
    # KEYS:defaults

    [log]
    to = "/var/log/rungate.jsonl"
    # KEYS:log

    [repository.seats]
    limit   = 4
    # KEYS:repository

    [repository.kept]
    limit   = 4
    reserve = [{ users = ["ann"], slots = 2 }]

    [repository.group]
    per     = "group"
    limit   = 4

    [repository.paused]
    limit      = 4
    hold       = "supervisor"
    if_elapsed = "1m"
    # KEYS:pause

    [repository.late]
    limit        = 4
    expire_after = "1m"
    # KEYS:expiry

    [repository.measured]
    limit   = 4
    [repository.measured.outside]
    command = ["/bin/true"]
    # KEYS:outside

    [repository.agents]
    keeper  = "agent"
    limit   = 4
    # KEYS:agent

    [repository.sites]
    keeper  = "site"
    limit   = 4
    # KEYS:site

    [[rule]]
    commands = ["x"]
    acquire  = ["seats"]
    # KEYS:rule

    [[rule]]
    commands = ["y"]
    groups   = ["staff"]
    acquire  = ["group"]

    [[rule]]
    commands = ["z"]
    first_of = "z"
    acquire  = ["seats"]
    # KEYS:family

    [[rule]]
    commands = ["z"]
    first_of = "z"
    acquire  = ["kept"]
"#;

/// The key as the manual names it, where it goes, its default, and another value.
const ROWS: &[(&str, &str, &str, &str)] = &[
    ("path", "repository", "path = \"seats.lock\"", "path = \"other.lock\""),
    ("nested", "repository", "nested = \"join\"", "nested = \"take\""),
    ("if_elapsed_from", "pause", "if_elapsed_from = \"start\"", "if_elapsed_from = \"end\""),
    ("too_soon", "pause", "too_soon = \"refuse\"", "too_soon = \"ok\""),
    ("expire_grace", "expiry", "expire_grace = \"5s\"", "expire_grace = \"6s\""),
    ("expire_kill", "expiry", "expire_kill = \"process\"", "expire_kill = \"group\""),
    ("keeper", "repository", "keeper = \"file\"", "keeper = \"agent\""),
    ("counts", "outside", "counts = \"all\"", "counts = \"others\""),
    ("of", "outside", "of = \"site\"", "of = \"host\""),
    ("every", "outside", "every = \"15s\"", "every = \"16s\""),
    ("settle", "outside", "settle = \"30s\"", "settle = \"31s\""),
    ("stale_after", "outside", "stale_after = \"2m\"", "stale_after = \"3m\""),
    ("when_stale", "outside", "when_stale = \"refuse\"", "when_stale = \"ignore\""),
    ("unreachable", "agent", "unreachable = \"refuse\"", "unreachable = \"start\""),
    ("on_lost", "site", "on_lost = \"keep\"", "on_lost = \"stop\""),
    ("limit", "rule", "action = \"limit\"", "action = \"count\""),
    ("name", "rule", "name = \"rule 1\"", "name = \"one\""),
    ("order", "family", "order = 0", "order = 1"),
    ("unmatched", "defaults", "unmatched = \"run\"", "unmatched = \"refuse\""),
    ("enforce", "defaults", "enforce = true", "enforce = false"),
    ("directory", "defaults", "directory = \"/run/rungate\"", "directory = \"/run/other\""),
    ("create_mode", "defaults", "create_mode = \"0666\"", "create_mode = \"0600\""),
    ("keeper", "defaults", "keeper = \"file\"", "keeper = \"agent\""),
    ("replay", "log", "replay = false", "replay = true"),
];

fn policy(place: &str, key: &str) -> String {
    let text = unindent(BASE);
    let at = format!("# KEYS:{place}\n");
    assert_eq!(text.matches(&at).count(), 1, "{place}");
    text.replace(&at, &format!("{key}\n"))
}

/// The entries of a key in the manual. Several lists can have the same key.
fn said(page: &str, key: &str) -> Vec<String> {
    let entries = page.split("\n.It Cm ").skip(1);
    let of_key = entries.filter(|entry| {
        let head = entry.lines().next().unwrap_or_default();
        head.split([' ', ',']).any(|word| word == key)
    });
    of_key.map(|entry| entry.replace('\n', " ")).collect()
}

#[test]
fn an_explicit_default_changes_nothing() {
    let site = Site::new();
    let compared = |place: &str, key: &str| {
        site.write("old.toml", &unindent(BASE));
        site.write("new.toml", &policy(place, key));
        let outcome = site.test().args(["policy", "diff", "$DIR/old.toml", "$DIR/new.toml"]).outcome();
        assert_eq!(outcome.stderr, "", "{key}");
        outcome.stdout
    };
    for (key, place, default, other) in ROWS {
        assert_eq!(compared(place, default), "", "{default}");
        assert_ne!(compared(place, other), "", "{other}");
        let value = default.split_once(" = ").expect("a key and its value").1.trim_matches('"');
        let in_words = match (value.strip_suffix('s'), value.strip_suffix('m')) {
            (Some(number), _) if number.parse::<u32>().is_ok() => format!("{number} seconds"),
            (_, Some(number)) if number.parse::<u32>().is_ok() => format!("{number} minutes"),
            _ => value.to_owned(),
        };
        let says_so = |entry: &String| {
            WORDS.iter().any(|word| entry.contains(word)) && entry.contains(&in_words)
                || entry.contains("NAME.lock") && value == "seats.lock"
                || entry.contains("rule 3") && value == "rule 1"
        };
        assert!(said(POLICY, key).iter().any(says_so), "the manual says another default of {key}");
    }
}

/// "2 minutes, or four times every if that is longer": a slow command has samples that count until the next one.
#[test]
fn samples_that_are_taken_seldom_stay_longer() {
    let site = Site::new();
    for (every, stale_after, is_default) in [
        ("5m", "20m", true),
        ("5m", "5m", false),
        ("30s", "2m", true),
        ("31s", "2m4s", true),
        ("31s", "2m", false),
    ] {
        let every = format!("every = \"{every}\"");
        site.write("old.toml", &policy("outside", &every));
        site.write("new.toml", &policy("outside", &format!("{every}\nstale_after = \"{stale_after}\"")));
        let outcome = site.test().args(["policy", "diff", "$DIR/old.toml", "$DIR/new.toml"]).outcome();
        assert_eq!(
            (outcome.stderr.as_str(), outcome.stdout.is_empty()),
            ("", is_default),
            "{every}, {stale_after}"
        );
    }
}

#[test]
fn unset_fields_of_a_test_have_the_documented_values() {
    let site = Site::new();
    site.write(
        "policy.toml",
        r#"
        version = 1
        defaults.directory = "$DIR/repositories"

        [repository.processors]
        limit = "1/cpu"

        [[rule]]
        name     = "as the manual says"
        commands = ["/usr/bin/x"]
        users    = ["user"]
        hosts    = ["localhost"]
        directories = ["/"]
        arguments = { exactly = [] }
        action   = "deny"

        [[rule]]
        name     = "by number"
        commands = ["y"]
        users    = [1000]
        except   = [{ groups = ["*"] }]
        action   = "deny"

        [[rule]]
        name     = "root"
        commands = ["z"]
        users    = ["0"]
        action   = "deny"

        [[rule]]
        commands = ["processor"]
        acquire  = ["processors"]

        [[test]]
        name    = "user, host, directory, path and arguments"
        command = "x"
        expect  = "refuse"
        by      = "as the manual says"

        [[test]]
        name    = "number"
        command = "y"
        expect  = "refuse"
        by      = "by number"

        [[test]]
        name    = "root's number"
        user    = "root"
        command = "z"
        expect  = "refuse"
        by      = "root"

        [[test]]
        name    = "one processor has room for one"
        command = "processor"
        expect  = "start"

        [[test]]
        name    = "and for no more; who is in a list has one slot"
        command = "processor"
        use     = { processors = [{ user = "ann" }] }
        expect  = "refuse"

        [[test]]
        name    = "and no more than one"
        command = "processor"
        cpus    = 2
        use     = { processors = [{ user = "ann" }] }
        expect  = "start"
        "#,
    );
    site.test()
        .args(["policy", "check", "$DIR/policy.toml"])
        .stdout("6 tests passed\n")
        .stderr("...\nrungate: 2 warnings\n")
        .status(0);
}

const TESTS: &str = "policy/defaults::unset_fields_of_a_test_have_the_documented_values";

/// Defaults that another test checks, each with that test.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "lend",
        "judge::tests::claims::reserve_keeps_the_first_slots_for_its_members_and_lends_the_last_of_them",
    ),
    ("charge", "policy/defaults::a_caller_in_two_groups_takes_a_slot_of_each"),
    ("queue", "waiting/the_line::a_raised_limit_lets_nobody_pass_the_line"),
    ("from", "judge::tests::rules::deny_beats_exempt_beats_limit"),
    ("slots", "slots/limits::a_lowered_limit_kills_nobody_and_admits_nobody_until_use_falls_below"),
    ("user", TESTS),
    ("groups", TESTS),
    ("arguments", TESTS),
    ("path", TESTS),
    ("host , Cm directory , Cm environment", TESTS),
    ("time", "policy/hours::a_time_without_a_date_is_one_of_today"),
    ("cpus", TESTS),
    ("use", TESTS),
    ("waiting", TESTS),
    ("wait", "launch/exit_status::full"),
    (
        "max_wait",
        "judge::tests::claims::the_shortest_wait_and_the_strongest_hold_of_those_that_say_count_and_else_the_defaults",
    ),
    ("hold", "slots/holds::the_strongest_hold_counts"),
    ("contact", "tools/looking::the_last_line_of_a_refusal_says_whom_to_contact"),
    ("time_zone", "policy/hours::without_a_zone_in_the_policy_the_systems_counts"),
    ("to", "tools/log::without_a_target_the_systems_policy_logs_to_the_journal"),
];

/// Each documented default needs a row in one of the two tables.
#[test]
fn every_documented_default_has_a_test() {
    let looked_at: Vec<&str> =
        ROWS.iter().map(|row| row.0).chain(ELSEWHERE.iter().map(|row| row.0)).collect();
    // The list of all keys at its end is written from the code, and says less.
    let described = POLICY.split("\n.Sh KEYS").next().expect("the sections before");
    for entry in described.split("\n.It Cm ").skip(1) {
        let (head, _) = entry.split_once('\n').expect("a line");
        let entry = entry.split("\n.El").next().expect("an entry").replace('\n', " ");
        if WORDS.iter().any(|word| entry.contains(word)) {
            assert!(looked_at.contains(&head), "{head}");
        }
    }
    for (default, test) in ELSEWHERE {
        let (file, name) = test.rsplit_once("::").expect("a file and a test");
        let file = format!("{}.rs", file.replace("::", "/"));
        let paths = ["tests", "src"].map(|of| Path::new(env!("CARGO_MANIFEST_DIR")).join(of).join(&file));
        let source = paths.iter().find_map(|path| fs::read_to_string(path).ok()).expect("a file of tests");
        assert!(source.contains(&format!("fn {name}(")), "{default}: {test}");
    }
}

/// `charge`: `all` (the default): a slot in the file of each group of the rule that the caller is in.
#[test]
fn a_caller_in_two_groups_takes_a_slot_of_each() {
    needs_root!();
    for (charge, held) in [("", [1, 1]), ("charge = \"all\"", [1, 1]), ("charge = \"first\"", [1, 0])] {
        let site = Site::with_policy(&format!(
            "[repository.seats]\nper = \"group\"\nlimit = 1\n{charge}\n\
            [[rule]]\ncommands = [\"job\"]\ngroups = [\"audio\", \"video\"]\nacquire = [\"seats\"]\n"
        ));
        site.program("job");
        let job = site.test().user("games").groups(["video", "audio", "users"]).args(["run", "--", "job"]);
        let _running = job.spawn();
        let files = ["audio", "video"].map(|group| format!("seats.{}.lock", Account::group_id(group)));
        let exist = files.map(|file| usize::from(site.repository(&file).exists()));
        assert_eq!(exist, held, "{charge}");
    }
}

/// "Without the file, or a key, the defaults hold": the manual shows them beside the keys.
#[test]
fn agent_settings_have_the_documented_defaults() {
    let read = |text: &str| {
        AgentFile::read(std::path::Path::new("agent.toml"), text.into()).unwrap_or_else(|_| panic!("{text}"))
    };
    let of_site = "[site]\nendpoints = [\"http://127.0.0.1:2379\"]\n";
    let mut compared = 0;
    for line in AGENT.lines().filter_map(|line| line.strip_prefix(".It Ic ")) {
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let value = value.replace("\\(dq", "\"");
        let table = match key {
            "prefix" | "ttl" | "margin" => of_site,
            "message" | "rate" | "connections" | "launches" | "slots" | "places" | "members" => "[agent]\n",
            _ => continue,
        };
        assert_eq!(
            read(&format!("version = 1\n{table}{key} = {value}\n")),
            read(&format!("version = 1\n{table}")),
            "{line}"
        );
        let other = value.parse::<u32>().map_or_else(
            |_| {
                if key == "prefix" {
                    "\"/other/\"".into()
                } else {
                    format!("\"1{}", &value[1..]).replace("160s", "61s").replace("15s", "4s")
                }
            },
            |number| (number + 1).to_string(),
        );
        assert_ne!(
            read(&format!("version = 1\n{table}{key} = {other}\n")),
            read(&format!("version = 1\n{table}")),
            "{key} = {other}"
        );
        compared += 1;
    }
    assert_eq!(
        compared, 10,
        "message, rate, connections, launches, slots, places, members, prefix, ttl, margin"
    );
    // A missing file means the same as an empty table.
    assert_eq!(AgentFile::default(), read("version = 1\n[agent]\n"));
}
