//! `nested` of a repository says what a launch below a holder does.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Account, Site, Test, answered, needs_root, seats};

fn site(limit: u32, nested: &str, wrapper: &str) -> Site {
    let site = Site::with_policy(&seats(limit, &format!("nested = \"{nested}\""), &["matlab"]));
    let wrapper = wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path"));
    site.script("matlab", &wrapper);
    site
}

/// A wrapper that becomes its own shim would otherwise block itself.
const EXECS_ITSELF: &str = "#!/bin/sh\n[ \"$1\" = inner ] && exec cat\nexec LAUNCHER run -- matlab inner\n";

/// The same with a child.
const FORKS_ITSELF: &str = "#!/bin/sh\n[ \"$1\" = inner ] && exec cat\nLAUNCHER run -- matlab inner\n";

/// `join` (the default) uses the ancestor's slot when that was taken for the same command.
#[test]
pub(crate) fn join_uses_the_slot_of_the_same_process() {
    let site = site(1, "join", EXECS_ITSELF);
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!(site.held("seats.lock").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [running.pid()]);
    let refused = "rungate: matlab: not started: [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(refused).status(75);
}

/// A slot that is a lock of the process is not enough for a stronger hold: it would be free as soon as the
/// process ends, while a daemon of the program runs.
#[test]
fn join_does_not_weaken_the_hold() {
    for hold in ["descriptor", "supervisor", "tree"] {
        let wrapper = EXECS_ITSELF.replace("run --", &format!("run --hold {hold} --"));
        let alone = site(1, "join", &wrapper);
        let outcome = alone.test().args(["run", "--", "matlab"]).outcome();
        let reason = "held by a process that waits for this command: it would wait forever\n";
        let advice = "An administrator can let it share that slot: hold = \"descriptor\".\n";
        assert!(outcome.stderr.contains(reason) && outcome.stderr.ends_with(advice), "{}", outcome.stderr);
        let site = site(2, "join", &wrapper);
        let _running = site.test().args(["run", "--", "matlab"]).spawn();
        assert_eq!(site.held_numbers("seats.lock"), [1, 2], "{hold}");
    }
}

/// The program still learns which slot is its own.
#[test]
pub(crate) fn join_tells_the_program_the_slot_it_uses() {
    let site = site(
        2,
        "join",
        "#!/bin/sh\n[ \"$1\" = inner ] && exec printenv RUNGATE_HELD\nexec LAUNCHER run -- matlab inner\n",
    );
    site.test().args(["run", "--", "matlab"]).stdout("seats=1\n").status(0);
}

/// The log says of each repository whether a launch uses the slot of an ancestor there.
#[test]
fn the_log_says_which_slots_are_those_of_an_ancestor() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"
        replay = true

        [repository.seats]
        limit = 1

        [repository.tokens]
        limit = 1

        [[rule]]
        name     = "seats"
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        name      = "tokens"
        commands  = ["matlab"]
        arguments = ["inner"]
        acquire   = ["tokens"]
        "#,
    );
    let wrapper = EXECS_ITSELF.replace("LAUNCHER", site.rungate().to_str().expect("a plain path"));
    site.script("matlab", &wrapper);
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let shared = |line: &str| -> Vec<(Value, bool)> {
        let event: Value = serde_json::from_str(line).expect("an event");
        let tables = event["tables"].as_array().expect("the repositories").iter();
        tables.map(|table| (table["repository"].clone(), table["shared"] == true)).collect()
    };
    let events: Vec<_> = log.lines().map(shared).collect();
    let [outer, inner] = events.as_slice() else { panic!("two starts: {log}") };
    assert_eq!(*outer, [(json!("seats"), false)]);
    assert_eq!(*inner, [(json!("seats"), true), (json!("tokens"), false)]);
}

/// A repository with a table for each group, and a wrapper that is limited in two of them.
fn per_group(keys: &str, groups: &str, wrapper: &str) -> Site {
    let site = Site::with_policy(&format!(
        "{keys}\n[[rule]]\ncommands = [\"matlab\"]\ngroups = {groups}\nacquire = [\"seats\"]\n"
    ));
    site.script("matlab", &wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path")));
    site
}

/// `matlab` of a user in these groups.
fn in_groups(site: &Site, groups: &[&str]) -> Test {
    site.test().user("games").groups(groups.iter().copied()).args(["run", "--", "matlab"])
}

/// How many slots of the table of a member are held.
fn used(site: &Site, member: &str) -> Option<u64> {
    let tables = answered(&site.test().args(["status", "--json"]));
    let table = tables.as_array()?.iter().find(|table| table["member"] == member)?;
    table["used"].as_u64()
}

/// A launch that needs slots of two tables of one repository has another slot in each. The launch below it
/// uses both of them, whichever the environment names first.
#[test]
pub(crate) fn join_uses_the_slots_in_every_table_of_a_repository() {
    needs_root!();
    for (hold, wrapper) in [("process", EXECS_ITSELF), ("descriptor", FORKS_ITSELF)] {
        for groups in ["[\"audio\", \"video\"]", "[\"video\", \"audio\"]"] {
            let keys = format!("[repository.seats]\nper = \"group\"\nlimit = 2\nhold = \"{hold}\"");
            let site = per_group(&keys, groups, wrapper);
            let _other = in_groups(&site, &["audio"]).args(["inner"]).spawn();
            let _running = in_groups(&site, &["audio", "video"]).spawn();
            let both = (used(&site, "audio"), used(&site, "video"));
            assert_eq!(both, (Some(2), Some(1)), "{hold} {groups}");
        }
    }
}

/// Between a launch and the slot of its ancestor may be one that has a slot of another member. What that one
/// has is no slot of this member's table.
#[test]
pub(crate) fn join_finds_a_slot_above_that_of_another_member() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        per   = "{project}"
        limit = 2

        [[rule]]
        commands    = ["matlab"]
        directories = ["$DIR/work/proj/{project}/**"]
        acquire     = ["seats"]
        "#,
    );
    for project in ["apollo", "gemini"] {
        fs::create_dir_all(site.path("work/proj").join(project)).expect("a project");
    }
    let wrapper = "#!/bin/sh
        case $1 in
        inner) exec cat ;;
        back) cd ../apollo && exec LAUNCHER run -- matlab inner ;;
        esac
        cd ../gemini && exec LAUNCHER run -- matlab back
        ";
    site.script("matlab", &wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path")));
    let at =
        |project: &str| site.test().directory(&format!("work/proj/{project}")).args(["run", "--", "matlab"]);
    let _other = at("gemini").args(["inner"]).spawn();
    let _running = at("apollo").spawn();
    assert_eq!((used(&site, "apollo"), used(&site, "gemini")), (Some(1), Some(2)));
}

/// The log has the slots of each table, and none that is another table's.
#[test]
fn the_log_has_the_slots_of_every_table_of_a_repository() {
    needs_root!();
    let keys = "[log]\nto = \"$DIR/work/log.jsonl\"\nreplay = true\n\
                [repository.seats]\nper = \"group\"\nlimit = 2";
    let site = per_group(keys, "[\"audio\", \"video\"]", EXECS_ITSELF);
    let _other = in_groups(&site, &["audio"]).args(["inner"]).spawn();
    let _running = in_groups(&site, &["audio", "video"]).spawn();
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let [_, outer, inner] = events.as_slice() else { panic!("three starts: {log}") };
    let table = |event: &Value, group: &str| {
        let member = format!("gid {}", Account::group_id(group));
        let tables = event["tables"].as_array().expect("the repositories").iter();
        let mut of_group = tables.filter(|table| table["member"] == *member);
        of_group.next().map(|table| (table["held"].clone(), table["shared"] == true))
    };
    for (event, is_shared) in [(outer, false), (inner, true)] {
        assert_eq!(event["repositories"], json!(["seats=2", "seats=1"]), "{log}");
        assert_eq!(table(event, "audio"), Some((json!("1,2"), is_shared)), "{log}");
        assert_eq!(table(event, "video"), Some((json!("1"), is_shared)), "{log}");
    }
}

/// Its end is not the end of the program whose slot it is, so no pause begins.
#[test]
pub(crate) fn the_end_of_who_joined_begins_no_pause() {
    for hold in ["supervisor", "tree"] {
        let keys = format!("if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"{hold}\"");
        let site = Site::with_policy(&seats(2, &keys, &["matlab"]));
        let wrapper =
            "#!/bin/sh\n[ \"$1\" = inner ] && exit\nLAUNCHER run -- matlab inner\necho $?\nexec cat\n";
        site.script("matlab", &wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path")));
        let mut running = site.test().args(["run", "--", "matlab"]).background();
        assert_eq!(running.read_line(), "0\n", "{hold}");
        site.test().args(["run", "--", "matlab", "inner"]).status(0);
    }
}

/// `explain` below a holder says that the launch would start, with the holder's slot.
#[test]
pub(crate) fn explain_knows_that_a_launch_would_join() {
    for nested in ["join", "take"] {
        let site = site(1, nested, "#!/bin/sh\nexec LAUNCHER explain -- matlab inner\n");
        let outcome = site.test().args(["run", "--", "matlab"]).outcome();
        let joins = outcome.stdout.contains("ok: a slot of the program above is used\n\nnow   starts\n");
        assert_eq!(joins, nested == "join", "{outcome:?}");
    }
}

/// "`take` always takes its own."
#[test]
pub(crate) fn take_takes_another_slot() {
    let site = site(2, "take", EXECS_ITSELF);
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
}

/// A launch whose only obstacles are its own ancestors is refused with that reason: waiting for oneself
/// would last forever.
#[test]
pub(crate) fn a_launch_that_only_its_ancestors_block_is_told_so() {
    for wrapper in [EXECS_ITSELF, FORKS_ITSELF] {
        let site = site(1, "take", wrapper);
        site.test()
            .args(["run", "--", "matlab"])
            .stderr(
                "
                rungate: matlab: not started: the limit is reached
                  seats  1 of 1 used
                      rule [..]
                      PID [pid] [..] matlab, since [time] ([age])
                      held by a process that waits for this command: it would wait forever
                Start it outside of the program that holds the slot.
                An administrator can let it share that slot: nested = \"join\" and hold = \"descriptor\".
                ",
            )
            .status(75);
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// What an administrator is told to set is only what is not set already.
#[test]
pub(crate) fn the_advice_names_only_what_is_missing() {
    let start = "Start it outside of the program that holds the slot.\n";
    let share = "An administrator can let it share that slot: ";
    for (nested, hold, inner, advice) in [
        ("take", "process", "matlab", format!("{share}nested = \"join\" and hold = \"descriptor\".")),
        ("take", "descriptor", "matlab", format!("{share}nested = \"join\".")),
        ("join", "process", "matlab", format!("{share}hold = \"descriptor\".")),
        (
            "join",
            "descriptor",
            "simulink",
            "The slot can be shared, but only for the same command, and by one program at a time.".to_owned(),
        ),
    ] {
        let wrapper = "#!/bin/sh\nLAUNCHER run -- INNER inner\n".replace("INNER", inner);
        let keys = format!("nested = \"{nested}\"\nhold = \"{hold}\"");
        let site = Site::with_policy(&seats(1, &keys, &["matlab", "simulink"]));
        site.script("matlab", &wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path")));
        site.program("simulink");
        let stderr = site.test().args(["run", "--", "matlab"]).outcome().stderr;
        assert!(stderr.ends_with(&format!("{start}{advice}\n")), "{nested} {hold}: {stderr}");
    }
}

/// Where two files use one name, it is shown with the file's; in the environment it is one word all the
/// same, and a launch below finds its slot by it.
#[test]
pub(crate) fn a_name_with_that_of_its_file_is_one_word() {
    needs_root!();
    let site = Site::new();
    site.system_policy("version = 1\n[defaults]\ndirectory = \"$DIR/repositories\"\n");
    for (file, command, path) in [("10-a.toml", "matlab", "a.lock"), ("20-b.toml", "other", "b.lock")] {
        site.system_file(
            &format!("policy.d/{file}"),
            &format!(
                "version = 1\n[repository.seats]\nlimit = 1\npath = \"{path}\"\nhold = \"descriptor\"\n\
                 [[rule]]\nname = \"{command}\"\ncommands = [\"{command}\"]\nacquire = [\"seats\"]\n"
            ),
        );
    }
    let rungate = site.rungate().display();
    site.script(
        "matlab",
        &format!(
            "#!/bin/sh\n[ \"$1\" = inner ] && exec printenv RUNGATE_HELD\n{rungate} run -- matlab inner\n"
        ),
    );
    site.test().args(["run", "--", "matlab"]).stdout("seats_(10-a.toml)=1\n").status(0);
}

/// A slot that was taken for another command is not shared.
#[test]
pub(crate) fn join_is_for_the_same_command_only() {
    let site = Site::with_policy(&seats(2, "", &["matlab", "simulink"]));
    site.program("simulink");
    let rungate = site.rungate().to_str().expect("a plain path").to_owned();
    site.script("matlab", &format!("#!/bin/sh\nexec {rungate} run -- simulink\n"));
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
}

/// The environment is only a hint: that an ancestor holds the slot is proved with the kernel.
#[test]
pub(crate) fn a_forged_environment_joins_nothing() {
    let site = site(1, "join", "#!/bin/sh\nexec cat\n");
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    for held in [
        "seats=1",
        "seats=2",
        "seats=0",
        "seats=-1",
        "seats=1,1,1",
        "seats=18446744073709551616",
        "=",
        "seats",
    ] {
        site.test()
            .env("RUNGATE_HELD", held)
            .args(["run", "--", "matlab"])
            .stderr("rungate: matlab: not started: [..]\n...\n")
            .status(75);
    }
    drop(running);
    let running = site.test().env("RUNGATE_HELD", "seats=1").args(["run", "--", "matlab"]).spawn();
    assert_eq!(site.held("seats.lock")[0].pid, running.pid(), "it takes a slot of its own");
}

/// A launch joins no more slots than its process holds: the record of an earlier holder proves nothing.
#[test]
fn a_forged_environment_joins_no_slots_that_are_free() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "one"
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        name      = "three"
        commands  = ["matlab"]
        arguments = ["large", "honest"]
        acquire   = [{ repository = "seats", slots = 3 }]
        "#,
    );
    let wrapper = "#!/bin/sh
        case $1 in
        honest) exec LAUNCHER run -- matlab large ;;
        forged) export RUNGATE_HELD=seats=1-3; exec LAUNCHER run -- matlab large ;;
        esac
        echo $RUNGATE_HELD
        ";
    site.script("matlab", &wrapper.replace("LAUNCHER", site.rungate().to_str().expect("a plain path")));
    let run = |argument: &str| site.test().args(["run", "--", "matlab", argument]);
    run("honest").stdout("seats=1-3\n").status(0);
    run("forged").stderr("rungate: matlab: not started: [..]\n...\n").status(75);
}
