//! `rungate policy install`: files become those of the policy, checked before, and each of them as a whole.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::support::{Ending, Running, Site, Test, Trace, eventually, needs_root, needs_strace, set_mode};

const MAIN: &str = r#"version = 1

[repository.matlab]
limit = 5

[[rule]]
name     = "seats"
commands = ["matlab"]
acquire  = ["matlab"]
"#;

/// A site with this as the system's policy.
fn site() -> Site {
    let site = Site::new();
    site.directory_over_run();
    site.system_file("policy.toml", MAIN);
    set_mode(&site.path("etc/rungate"), 0o755);
    site
}

fn install<const N: usize>(site: &Site, arguments: [&str; N]) -> Test {
    site.test().args(["policy", "install"]).args(arguments)
}

fn text(site: &Site, path: &str) -> String {
    fs::read_to_string(site.path(path)).expect("a file of the site")
}

/// A file called `policy.toml` becomes the system's, any other a drop-in of its name; `--name` says
/// otherwise.
#[test]
fn files_are_put_where_their_names_say() {
    needs_root!();
    let site = site();
    site.write("work/new.toml", &MAIN.replace("= 5", "= 6"));
    let changed = "~ repository matlab (policy.toml:3)\n    limit  5 -> 6\n";
    install(&site, ["--dry-run", "--name", "policy.toml", "new.toml"])
        .stdout(&format!("{changed}\nWithout --dry-run: replace the main file /etc/rungate/policy.toml\n"))
        .status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    install(&site, ["--name", "policy.toml", "new.toml"])
        .stdout(changed)
        .stderr(
            "rungate: this would replace the main file /etc/rungate/policy.toml, but there is no terminal \
                for the prompt; --yes does it without a prompt\n\
             rungate: nothing was changed\n",
        )
        .status(1);
    install(&site, ["--yes", "--name", "policy.toml", "new.toml"]).stdout(changed).status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN.replace("= 5", "= 6"));
    // Once more it is there already, and there is nothing to say.
    install(&site, ["--yes", "--name", "policy.toml", "new.toml"]).status(0);
    site.write("work/10-more.toml", "[repository.more]\nlimit = 1\n");
    install(&site, ["--yes", "10-more.toml"])
        .stdout("+ repository more (10-more.toml:1)\n...\n")
        .stderr("/etc/rungate/policy.d/10-more.toml:1:[..] warning: [..]\n...\n")
        .status(0);
    let file = fs::metadata(site.path("etc/rungate/policy.d/10-more.toml")).expect("the drop-in");
    assert_eq!((file.uid(), file.mode() & 0o7777), (0, 0o644));
    install(&site, ["--yes", "--name", "../x.toml", "new.toml"])
        .stderr("rungate: --name takes policy.toml or the name of a drop-in, not ../x.toml\n")
        .status(64);
}

/// It says whether the file replaces the main file or becomes a drop-in; a fault says how to do the other.
#[test]
fn what_a_file_becomes_is_said() {
    needs_root!();
    let site = site();
    let wrong = MAIN.replace("= 5", "= 6").replace("[\"matlab\"]\nacq", "[\"maple\"]\nacq");
    site.write("work/new.toml", &wrong);
    site.write("work/policy.toml", "version = 1\nrule = 5\n");
    let add = "add the drop-in /etc/rungate/policy.d/new.toml";
    install(&site, ["--yes", "new.toml"])
        .stderr(&format!(
            "
            ...
            rungate: nothing was changed: 1 fault
            By its name it would {add}. To replace the main file instead: rungate policy install --name policy.toml new.toml
            "
        ))
        .status(1);
    // What is advised works.
    install(&site, ["--yes", "--name", "policy.toml", "new.toml"]).stdout("...").status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), wrong);
    install(&site, ["--yes", "policy.toml"])
        .stderr(
            "
            ...
            rungate: nothing was changed: 1 fault
            By its name it would replace the main file /etc/rungate/policy.toml. To add a drop-in instead: rungate policy install --name 50-local.toml policy.toml
            ",
        )
        .status(1);
    // Whoever gave the name knows.
    install(&site, ["--yes", "--name", "policy.toml", "policy.toml"])
        .stderr("...\nrungate: nothing was changed: 1 fault\n")
        .status(1);
    site.write("work/new.toml", "[repository.more]\nlimit = 1\n[[rule]]\nacquire = [\"more\"]\n");
    let dry = install(&site, ["--dry-run", "new.toml"]).outcome();
    assert!(dry.stdout.ends_with(&format!("\nWithout --dry-run: {add}\n")), "{dry:?}");
}

/// Where it cannot be seen whether slots are held that the new policy would not count, `--yes` alone is not
/// enough either.
#[test]
fn who_may_be_forgotten_is_said_before() {
    needs_root!();
    let site = site();
    let before = MAIN.replace("limit = 5", "limit = 5\nkeeper = \"agent\"");
    site.system_file("policy.toml", &before);
    site.write("work/policy.toml", MAIN);
    let expected = "
        ...
        Slots of matlab may be held, and would not be counted: the agent cannot be reached at [..]: [..].
        Until these programs end, more can run than the limit allows.
        ";
    install(&site, ["--yes", "policy.toml"])
        .stdout(expected)
        .stderr("[..]; slots are held that would not be counted; --yes --allow-uncounted accepts that\n...\n")
        .status(1);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), before);
    install(&site, ["--yes", "--allow-uncounted", "policy.toml"]).stdout(expected).status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
}

/// Where slots are held that the new policy would not count, `--yes` alone is not enough.
#[test]
fn who_would_be_forgotten_is_said_before() {
    needs_root!();
    let site = site();
    site.account("ann", &[]);
    site.program("matlab");
    let running = [(); 2].map(|()| site.test().user("ann").args(["run", "--", "matlab"]).spawn());
    for (key, new) in [("keeper", "keeper = \"agent\""), ("path", "path = \"other.lock\"")] {
        site.write("work/policy.toml", &MAIN.replace("limit = 5", &format!("limit = 5\n{new}")));
        let expected = "
            ...
            2 slots of matlab are held in /run/rungate/matlab.lock, and would not be counted.
            Until these programs end, more can run than the limit allows.
            ";
        install(&site, ["--yes", "policy.toml"])
            .stdout(expected)
            .stderr(
                "
                rungate: this would replace the main file /etc/rungate/policy.toml, but there is no terminal for the prompt; slots are held that would not be counted; --yes --allow-uncounted accepts that
                rungate: nothing was changed
                ",
            )
            .status(1);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN, "{key}");
        // An edit is no other way round.
        site.script("ed-it", &format!("#!/bin/sh\nsed -i 's/limit = 5/&\\n{new}/' \"$1\"\n"));
        let edit = site.test().env("EDITOR", site.path("bin/ed-it").to_str().expect("a path"));
        let edit = edit.args(["policy", "edit", "--yes"]).outcome();
        assert!(
            edit.stderr
                .contains("; slots are held that would not be counted; --yes --allow-uncounted accepts"),
            "{edit:?}"
        );
        assert_eq!(
            (edit.ending, text(&site, "etc/rungate/policy.toml")),
            (Ending::Status(1), MAIN.to_owned())
        );
    }
    // A script says what it accepts; it alone is no answer to the question.
    install(&site, ["--allow-uncounted", "policy.toml"])
        .stdout("...\n")
        .stderr("[..]--yes does it without a prompt\n...\n")
        .status(1);
    let expected = "
        ...
        Until these programs end, more can run than the limit allows.
        ";
    install(&site, ["--yes", "--allow-uncounted", "policy.toml"]).stdout(expected).status(0);
    assert!(text(&site, "etc/rungate/policy.toml").contains("other.lock"));
    site.script("ed-it", "#!/bin/sh\nsed -i /other.lock/d \"$1\"\n");
    let third = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
    let edit = site.test().env("EDITOR", site.path("bin/ed-it").to_str().expect("a path"));
    edit.args(["policy", "edit", "--yes", "--allow-uncounted"]).stdout(expected).status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    drop(third);
    // The limit alone forgets nobody.
    site.write("work/policy.toml", &MAIN.replace("= 5", "= 6"));
    install(&site, ["--yes", "policy.toml"]).stdout("~ repository matlab (policy.toml:3)\n[..]\n").status(0);
    drop(running);
    site.write("work/policy.toml", &MAIN.replace("limit = 5", "limit = 6\nkeeper = \"agent\""));
    install(&site, ["--yes", "policy.toml"]).stdout("~ [..]\n...\n").status(0);
}

/// Where no repository of the new policy has the place of held slots, they are not counted: also if the
/// repository is only renamed, which gives it another lock file.
#[test]
fn who_would_be_forgotten_by_a_new_name_is_said_before() {
    needs_root!();
    let site = site();
    site.program("matlab");
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    let renamed =
        MAIN.replace("repository.matlab", "repository.seats").replace("[\"matlab\"]\n", "[\"seats\"]\n");
    let renamed = renamed.replacen("commands = [\"seats\"]", "commands = [\"matlab\"]", 1);
    site.write("work/policy.toml", &renamed);
    let told = "
        ...
        1 slot of matlab is held in /run/rungate/matlab.lock, and would not be counted.
        Until these programs end, more can run than the limit allows.
        ";
    install(&site, ["--yes", "policy.toml"])
        .stdout(told)
        .stderr("[..]--yes --allow-uncounted accepts that\nrungate: nothing was changed\n")
        .status(1);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    // With its old path it is the same place.
    site.write("work/policy.toml", &renamed.replace("limit = 5", "limit = 5\npath = \"matlab.lock\""));
    install(&site, ["--yes", "policy.toml"]).stdout("...\n").status(0);
}

/// A lock file that has the name of another kind of member does not count for that: `matlab.4711.lock` is the
/// file of a user, and then that of a command.
#[test]
fn who_would_be_forgotten_by_another_kind_of_member_is_said_before() {
    needs_root!();
    let site = site();
    let policy = |per: &str| MAIN.replace("limit = 5", &format!("limit = 5\n{per}"));
    site.system_file("policy.toml", &policy("per = \"user\""));
    site.program("matlab");
    site.account("ann", &[]);
    let uid = site.user("ann").uid;
    let running = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
    let told = format!(
        "
        ...
        1 slot of matlab [ann] is held in /run/rungate/matlab.{uid}.lock, and would not be counted.
        Until these programs end, more can run than the limit allows.
        "
    );
    for per in ["per = \"command\"", "per = \"host\""] {
        site.write("work/policy.toml", &policy(per));
        install(&site, ["--yes", "policy.toml"])
            .stdout(&told)
            .stderr("[..]--yes --allow-uncounted accepts that\nrungate: nothing was changed\n")
            .status(1);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), policy("per = \"user\""), "{per}");
    }
    // The same members by a path of their own count it, and one file for all. If the new files distinguish
    // more, other commands may have slots in this one.
    for (path, is_counted) in [
        ("matlab.{uid}.lock", true),
        ("{command}.{uid}.lock", false),
        ("matlab.{uid}.lock", true),
        (&format!("matlab.{uid}.lock"), true),
    ] {
        site.write("work/policy.toml", &policy(&format!("path = \"{path}\"")));
        let outcome = install(&site, ["--yes", "--allow-uncounted", "policy.toml"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{path}");
        assert_eq!(!outcome.stdout.contains(" would not be counted."), is_counted, "{path}");
    }
    drop(running);
}

/// A lock file of two values does not count for one of them: the new policy would have another file.
#[test]
fn who_would_be_forgotten_by_fewer_values_is_said_before() {
    needs_root!();
    for (before, after, file) in [
        ("per = [\"user\", \"command\"]", "per = \"command\"", "matlab.{uid},matlab"),
        ("path = \"{uid}.{command}.lock\"", "path = \"{command}.lock\"", "{uid}.matlab"),
    ] {
        let site = site();
        let policy = |key: &str| MAIN.replace("limit = 5", &format!("limit = 5\n{key}"));
        site.system_file("policy.toml", &policy(before));
        site.program("matlab");
        site.account("ann", &[]);
        let file = file.replace("{uid}", &site.user("ann").uid.to_string());
        let running = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
        site.write("work/policy.toml", &policy(after));
        let outcome = install(&site, ["--yes", "policy.toml"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(1), "{before}: {outcome:?}");
        let told = format!(
            "1 slot of matlab [ann, matlab] is held in /run/rungate/{file}.lock, and would not be counted.\n"
        );
        assert!(outcome.stdout.contains(&told), "{before}: {outcome:?}");
        assert_eq!(text(&site, "etc/rungate/policy.toml"), policy(before), "{before}");
        drop(running);
    }
}

/// Delegates a drop-in to the user with this number.
const DELEGATES: &str =
    "\n[delegate.\"20-cad.toml\"]\nowner = \"root\"\nusers = [4711]\ncommands = [\"matlab\"]\n";

/// A site with a department whose drop-in has a fault, and this in the main file.
fn site_with_faulty_department(main: &str) -> Site {
    let site = site();
    site.program("matlab");
    site.system_file("policy.toml", main);
    site.system_file("policy.d/20-cad.toml", "unknown = 1\n");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    site
}

/// A fault in the drop-in of a department disarms no check of the rest: tests, changes, held slots.
#[test]
fn a_fault_of_a_department_disarms_no_check() {
    needs_root!();
    let test =
        "\n[[test]]\nname = \"the sixth\"\ncommand = \"matlab\"\nuse = { matlab = 5 }\nexpect = \"refuse\"\n";
    let main = format!("{MAIN}{DELEGATES}{test}");
    let site = site_with_faulty_department(&main);
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    site.write("work/policy.toml", &main.replace("limit = 5", "limit = 6\npath = \"other.lock\""));
    let outcome = install(&site, ["--yes", "policy.toml"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(1), "{outcome:?}");
    for expected in ["test \"the sixth\" failed", "rungate: nothing was changed: 1 failed test\n"] {
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
    }
    for expected in ["limit  5 -> 6\n", "1 slot of matlab is held in /run/rungate/matlab.lock"] {
        assert!(outcome.stdout.contains(expected), "{expected}: {}", outcome.stdout);
    }
    site.write("work/policy.toml", &main.replace("limit = 5", "limit = 5\npath = \"other.lock\""));
    install(&site, ["--yes", "policy.toml"])
        .stdout("...\n1 slot of matlab is held in [..]\n...\n")
        .stderr("...\nrungate: this would [..]; slots are held that would not be counted; [..]\n[..]\n")
        .status(1);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), main);
    // What does no harm is put in place.
    site.write("work/policy.toml", &main.replace("\"seats\"", "\"five seats\""));
    install(&site, ["--yes", "policy.toml"])
        .stdout("~ rule \"five seats\"[..]\n")
        .stderr("[..]20-cad.toml:1:[..]\n...\nThese faults already exist in other files.\n")
        .status(0);
}

/// A fault of a department stops its users alone, so what would make it stop others is a new one.
#[test]
fn a_fault_of_a_department_does_not_become_one_of_others() {
    needs_root!();
    let main = format!("{MAIN}{DELEGATES}");
    let site = site_with_faulty_department(&main);
    for next in [
        MAIN.to_owned(),
        main.replace("[4711]", "[\"*\"]"),
        MAIN.to_owned() + &DELEGATES.replace("[\"matlab\"]", "[\"*\"]"),
    ] {
        site.write("work/new.toml", &next);
        install(&site, ["--yes", "--name", "policy.toml", "new.toml"])
            .stdout("...\n")
            .stderr("[..]20-cad.toml:1:[..]\n...\nrungate: nothing was changed: 1 fault\n")
            .status(1);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), main);
    }
}

/// Nor has the policy another fault in between, because a department's file has one.
#[test]
fn beside_a_fault_of_a_department_no_other_is_made_in_between() {
    needs_root!();
    needs_strace!();
    let site = site_with_faulty_department(&format!("{MAIN}{DELEGATES}"));
    fs::create_dir_all(site.path("work/new/policy.d")).expect("a directory");
    for directory in ["work/new", "work/new/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    let more = MAIN.replace("acquire  = [\"matlab\"]", "acquire  = [\"matlab\", \"more\"]");
    site.write("work/new/policy.toml", &format!("{more}{DELEGATES}"));
    site.write("work/new/policy.d/30-more.toml", "[repository.more]\nlimit = 1\n");
    // The first two calls put the copies of the main file and of the department's file in place.
    let fourth =
        ["strace", "-qq", "-o", "/dev/null", "-e", "inject=rename,renameat,renameat2:error=EIO:when=4"];
    install(&site, ["--yes", "new"])
        .through(fourth)
        .stdout("...\n")
        .stderr(
            "...\nrungate: /etc/rungate/policy.toml cannot be put in place: rename: [..]\n\
             Before that /etc/rungate/policy.d/30-more.toml was put in place.\n",
        )
        .status(71);
    site.test().args(["run", "--", "matlab"]).stdin("").status(0);
    install(&site, ["--yes", "new"]).stdout("...\n").stderr("...\n").status(0);
    site.test().args(["run", "--", "matlab"]).stdin("").status(0);
}

/// A fault never reaches the running system.
#[test]
fn what_has_faults_is_not_put_in_place() {
    needs_root!();
    let site = site();
    site.write("work/policy.toml", "[repository.a]\n");
    install(&site, ["--yes", "policy.toml"])
        .stderr(
            "/etc/rungate/policy.toml:1:[..]\n...\nrungate: nothing was changed: 1 fault\nBy its name [..]\n",
        )
        .status(1);
    install(&site, ["--dry-run", "policy.toml"])
        .stderr("...\nrungate: nothing was [..]\nBy [..]\n")
        .status(1);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    install(&site, ["--yes", "nowhere.toml"]).stderr("rungate: there is no file nowhere.toml\n").status(78);
}

/// A directory without a policy is not a policy without rules.
#[test]
fn a_directory_without_a_policy_is_refused() {
    needs_root!();
    let site = site();
    fs::create_dir_all(site.path("work/empty/policy.d")).expect("a directory");
    for directory in ["work/empty", "work/empty/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    install(&site, ["--yes", "empty"])
        .stderr("rungate: empty has neither policy.toml nor a drop-in\nName the files to install, [..]\n")
        .status(64);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
}

/// "In an order in which the policy has no fault after any step": what uses a repository comes after it.
#[test]
fn several_files_never_make_a_fault_in_between() {
    needs_root!();
    needs_strace!();
    let site = site();
    fs::create_dir_all(site.path("work/new/policy.d")).expect("a directory");
    for directory in ["work/new", "work/new/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    // What stands in the main file now, a drop-in says then; between the two there would be no such
    // repository.
    let (head, rule) = MAIN.split_at(MAIN.find("[[rule]]").expect("a rule"));
    site.write(
        "work/new/policy.toml",
        &format!("version = 1\n{}", rule.replace("\"seats\"", "\"new seats\"")),
    );
    site.write("work/new/policy.d/10-seats.toml", head);
    site.write("work/new/policy.d/README", "no drop-in");
    // Whatever comes second, after the copy of the main file, fails; what came first is in place, and right
    // with the rest.
    let third =
        ["strace", "-qq", "-o", "/dev/null", "-e", "inject=rename,renameat,renameat2:error=EIO:when=3"];
    install(&site, ["--yes", "new"])
        .through(third)
        .stdout("...\n")
        .stderr(
            "rungate: /etc/rungate/policy.toml cannot be put in place: rename: [..]\n\
             Before that /etc/rungate/policy.d/10-seats.toml was put in place. The policy has no fault as it is.\n",
        )
        .status(71);
    site.test().args(["policy", "check"]).stderr("...").status(0);
    install(&site, ["--yes", "new"]).stdout("...\n").status(0);
    site.test().args(["policy", "check"]).stderr("").status(0);
    // And back: the drop-in can only go empty once the main file has the repository.
    site.write("work/new/policy.toml", MAIN);
    site.write("work/new/policy.d/10-seats.toml", "version = 1\n");
    install(&site, ["--yes", "new"]).stdout("...\n").status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
}

/// Where there is no such order, that is said at once, however many other files there are.
#[test]
fn many_files_without_an_order_are_refused_soon() {
    needs_root!();
    let site = site();
    fs::create_dir(site.path("work/new")).expect("a directory");
    set_mode(&site.path("work/new"), 0o755);
    for number in 0..10 {
        site.write(format!("work/new/1{number}-x.toml"), &format!("[repository.x{number}]\nlimit = 1\n"));
    }
    for (one, other) in [("a", "b"), ("b", "a")] {
        let text = format!(
            "[repository.{one}]\nlimit = 1\n\n[[rule]]\nname = \"of {one}\"\ncommands = [\"{one}\"]\n\
             acquire = [\"{other}\"]\n"
        );
        site.write(format!("work/new/30-{one}.toml"), &text);
    }
    let outcome = install(&site, ["--yes", "new"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(1), "{}{}", outcome.stdout, outcome.stderr);
    let told = "rungate: nothing was changed: no order was found in which the files can be replaced without a \
                fault in between\n";
    assert!(outcome.stderr.ends_with(told), "{}", outcome.stderr);
    assert!(!drop_in_is_there(&site, "10-x.toml"));
    // Without these two there is one.
    for name in ["a", "b"] {
        fs::remove_file(site.path(format!("work/new/30-{name}.toml"))).expect("a file");
    }
    let ending = install(&site, ["--yes", "new"]).outcome().ending;
    assert_eq!(ending, Ending::Status(0));
    assert!(drop_in_is_there(&site, "19-x.toml"));
}

fn drop_in_is_there(site: &Site, name: &str) -> bool {
    site.path("etc/rungate/policy.d").join(name).exists()
}

/// Of those who run now, who would be refused if they came again: nobody is ended.
#[test]
fn who_runs_now_and_would_be_refused_is_named() {
    needs_root!();
    let site = site();
    site.program("matlab");
    for (user, groups) in [("ann", &["cad"][..]), ("bob", &[]), ("cid", &[])] {
        site.account(user, groups);
    }
    let mut running: Vec<Running> = Vec::new();
    for user in ["ann", "bob", "cid", "ann"] {
        running.push(site.test().user(user).args(["run", "--", "matlab"]).spawn());
    }
    let pids: Vec<i32> = running.iter().map(Running::pid).collect();
    let rule = "\n[[rule]]\nname = \"not bob\"\nusers = [\"bob\"]\naction = \"deny\"\n";
    site.write("work/policy.toml", &format!("{}{rule}", MAIN.replace("= 5", "= 2")));
    let outcome = install(&site, ["--dry-run", "policy.toml"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    let (_, present) = outcome.stdout.split_once("\nOf 4 that run now, ").expect("those who run");
    let those = present.lines().skip(2).take_while(|line| !line.is_empty());
    let lines: Vec<String> =
        those.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let uid = |user: &str| site.user(user).uid;
    let expected = [
        format!("bob ({}) {} matlab rule \"not bob\" refuses it", uid("bob"), pids[1]),
        format!("ann ({}) {} matlab matlab is full (limit 2)", uid("ann"), pids[3]),
    ];
    assert_eq!(lines, expected, "{}", outcome.stdout);
    assert!(present.starts_with("2 would be refused if they started again. None is ended.\n"), "{present}");
    // What changes nothing for them does not restrict them.
    site.write("work/policy.toml", &MAIN.replace("= 5", "= 4"));
    install(&site, ["--yes", "policy.toml"])
        .stdout("~ repository matlab (policy.toml:3)\n    limit  5 -> 4\n")
        .status(0);
    running.iter_mut().for_each(Running::wait_for_echo);
}

/// Take this drop-in of the system away, with the same checks.
#[test]
fn a_drop_in_is_taken_away_where_nothing_needs_it() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/10-more.toml", "[repository.more]\nlimit = 1\n");
    let rule = "[[rule]]\ncommands = [\"more\"]\nacquire  = [\"more\"]\n";
    site.system_file("policy.d/20-rule.toml", rule);
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    let names = || {
        let entries = fs::read_dir(site.path("etc/rungate/policy.d")).expect("the drop-ins");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    install(&site, ["--yes", "--remove", "10-more.toml"])
        .stderr("/etc/rungate/policy.d/20-rule.toml:3:[..]\n...\nrungate: nothing was changed: 1 fault\n")
        .status(1);
    install(&site, ["--dry-run", "--remove", "20-rule.toml"])
        .stdout("- rule [..]\n...\n")
        .stderr("/etc/rungate/policy.d/10-more.toml:1:[..] warning: [..]\n...\n")
        .status(0);
    assert_eq!(names(), ["10-more.toml", "20-rule.toml"]);
    // The rule has to go first, whichever was named first.
    install(&site, ["--yes", "--remove", "10-more.toml", "--remove", "20-rule.toml"])
        .stdout("...\n")
        .status(0);
    assert_eq!(names(), [] as [&str; 0]);
    install(&site, ["--yes", "--remove", "10-more.toml"])
        .stderr(
            "rungate: there is no drop-in 10-more.toml in /etc/rungate/policy.d\nThere are no \
            drop-ins.\n",
        )
        .status(64);
    install(&site, ["--yes", "--remove", "policy.toml"])
        .stderr("rungate: --remove takes [..]\n[..]\n")
        .status(64);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
}

/// The file, or the link, also where it is one that the policy distrusts, and in one go with what replaces
/// it.
#[test]
fn what_is_distrusted_can_be_taken_away() {
    needs_root!();
    let site = site();
    site.account("ann", &[]);
    site.write("work/theirs.toml", "[repository.more]\nlimit = 1\n");
    fs::create_dir(site.path("etc/rungate/policy.d")).expect("a new directory");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    let link = site.path("etc/rungate/policy.d/20-cad.toml");
    std::os::unix::fs::symlink(site.path("work/theirs.toml"), &link).expect("a link");
    std::os::unix::fs::chown(site.path("work/theirs.toml"), Some(site.user("ann").uid), None).expect("chown");
    site.test().args(["policy", "check"]).stderr("...\nrungate: 1 fault\n").status(1);
    let of_ann = site.test().user("ann").args(["policy", "install", "--yes", "--remove", "20-cad.toml"]);
    of_ann.stderr("rungate: only root can remove a drop-in of the system\n[..]\n").status(71);
    site.write("work/30-new.toml", "version = 1\n");
    // It was a policy with a fault, of which nobody knows what it counts.
    let both = ["--yes", "--allow-uncounted", "--remove", "20-cad.toml", "30-new.toml"];
    let outcome = install(&site, both).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    assert!(fs::symlink_metadata(&link).is_err() && site.path("work/theirs.toml").exists());
    site.test().args(["policy", "check"]).status(0);
    install(&site, ["--remove", "30-new.toml", "30-new.toml"])
        .stderr("rungate: /etc/rungate/policy.d/30-new.toml cannot be installed and removed at once\n")
        .status(64);
}

/// Where two arguments mean the same file or drop-in, nothing is changed.
#[test]
fn the_same_file_cannot_be_named_twice() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/10-one.toml", "version = 1\n");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    site.write("work/policy.toml", &MAIN.replace("= 5", "= 6"));
    for directory in ["work/a", "work/b"] {
        fs::create_dir(site.path(directory)).expect("a directory");
        set_mode(&site.path(directory), 0o755);
        site.write(format!("{directory}/20-cad.toml"), "version = 1\n");
    }
    let twice: [(&[&str], &str); 4] = [
        (&[".", "policy.toml"], "policy.toml"),
        (&["a/20-cad.toml", "b/20-cad.toml"], "policy.d/20-cad.toml"),
        (&["a/20-cad.toml", "policy.toml", "b"], "policy.d/20-cad.toml"),
        (&["--remove", "10-one.toml", "--remove", "10-one.toml"], "policy.d/10-one.toml"),
    ];
    for (arguments, name) in twice {
        install(&site, ["--yes"])
            .args(arguments)
            .stderr(&format!("rungate: /etc/rungate/{name} is named twice\n"))
            .status(64);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN, "{arguments:?}");
        let there = ["10-one.toml", "20-cad.toml"].map(|name| drop_in_is_there(&site, name));
        assert_eq!(there, [true, false], "{arguments:?}");
    }
}

/// A file that belongs to a user becomes root's, also if its text stays the same: the policy distrusts it
/// until then. The file of a delegation stays the user's.
#[test]
fn a_distrusted_file_becomes_roots_also_with_the_same_text() {
    needs_root!();
    let site = site();
    site.account("ann", &[]);
    let ann = site.user("ann").uid;
    let one = "version = 1\n";
    site.system_file("policy.d/20-cad.toml", one);
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    site.write("work/20-cad.toml", one);
    site.write("work/policy.toml", MAIN);
    for (name, place) in [("policy.toml", "policy.toml"), ("20-cad.toml", "policy.d/20-cad.toml")] {
        let file = site.path("etc/rungate").join(place);
        std::os::unix::fs::chown(&file, Some(ann), None).expect("chown");
        let check = site.test().args(["policy", "check"]);
        assert_eq!(check.outcome().ending, Ending::Status(1), "{name} is distrusted");
        let outcome = install(&site, ["--yes", "--allow-uncounted", name]).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{name}: {}{}", outcome.stdout, outcome.stderr);
        let status = fs::metadata(&file).expect("the file");
        assert_eq!((status.uid(), status.mode() & 0o7777), (0, 0o644), "{name}");
        assert_eq!(check.outcome().ending, Ending::Status(0), "{name} is trusted again");
    }

    // A delegation that comes in the same change counts; without it the file becomes root's.
    let drop_in = site.path("etc/rungate/policy.d/20-cad.toml");
    std::os::unix::fs::chown(&drop_in, Some(ann), None).expect("chown");
    let owner_and_inode = || fs::metadata(&drop_in).map(|status| (status.uid(), status.ino())).expect("it");
    let before = owner_and_inode();
    for (main, owner) in
        [(MAIN.to_owned() + &DELEGATES.replace("\"root\"", "\"ann\""), ann), (MAIN.to_owned(), 0)]
    {
        site.write("work/policy.toml", &main);
        let both = ["--yes", "--allow-uncounted", "policy.toml", "20-cad.toml"];
        let outcome = install(&site, both).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), main);
        let after = owner_and_inode();
        assert_eq!((after.0, after == before), (owner, owner == ann));
    }
}

/// Owner and mode stay, and so do access control lists and labels.
#[test]
fn what_else_a_file_has_is_kept() {
    needs_root!();
    let site = site();
    let path = site.path("etc/rungate/policy.toml");
    // As acl(5) has it on disk: version 2, then tag, permissions and id of the owner, user 7, the group, the
    // mask, others.
    let entries =
        [(1_u16, 6_u16, u32::MAX), (2, 4, 7), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, 4, u32::MAX)];
    let bytes = |(tag, bits, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let acl = [&2_u32.to_le_bytes()[..], &entries.map(bytes).concat()].concat();
    let noted: [(&str, &[u8]); 3] = [
        ("system.posix_acl_access", &acl),
        ("security.selinux", b"system_u:object_r:etc_t:s0\0"),
        ("user.by", b"ann"),
    ];
    for (name, value) in noted {
        if set(&path, name, value).is_err() {
            return crate::support::skip("this file system has no extended attributes");
        }
    }
    let lower = |limit: &str| site.write("work/policy.toml", &MAIN.replace("= 5", limit));
    lower("= 6");
    install(&site, ["--yes", "policy.toml"]).stdout("...\n").status(0);
    assert!(text(&site, "etc/rungate/policy.toml").contains("limit = 6"));
    for (name, value) in noted {
        assert_eq!(get(&path, name).as_deref(), Some(value), "{name}");
    }
    // A directory lends its list to new files; the one that stood there had none.
    rustix::fs::removexattr(&path, "system.posix_acl_access").expect("a list");
    set(path.parent().expect("a directory"), "system.posix_acl_default", &acl).expect("a list");
    lower("= 7");
    install(&site, ["--yes", "policy.toml"]).stdout("...\n").status(0);
    assert_eq!(get(&path, "system.posix_acl_access"), None);
    assert_eq!(fs::metadata(&path).expect("the policy").mode() & 0o7777, 0o644);
    set(&path, "security.ima", &[3, 2, 4]).expect("a signature");
    lower("= 8");
    install(&site, ["--yes", "policy.toml"])
        .stderr(
            "rungate: /etc/rungate/policy.toml cannot be replaced: it has a signature, which would not \
                match other content\nChange it where it is, and then: rungate policy check\n",
        )
        .status(71);
    assert!(text(&site, "etc/rungate/policy.toml").contains("limit = 7"));
}

fn set(path: &Path, name: &str, value: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty())
}

fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1024];
    let length = rustix::fs::getxattr(path, name, &mut buffer[..]).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

/// Where one of them cannot be kept it is not replaced.
#[test]
fn what_cannot_be_kept_is_not_lost() {
    needs_root!();
    needs_strace!();
    let site = site();
    let path = site.path("etc/rungate/policy.toml");
    if set(&path, "security.selinux", b"system_u:object_r:etc_t:s0\0").is_err() {
        return crate::support::skip("this file system has no extended attributes");
    }
    site.write("work/policy.toml", &MAIN.replace("= 5", "= 6"));
    let fails = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=fsetxattr:error=EPERM"];
    install(&site, ["--yes", "policy.toml"])
        .through(fails)
        .stdout("...\n")
        .stderr(
            "rungate: /etc/rungate/policy.toml cannot be put in place: its SELinux label cannot be kept: Operation not \
             permitted\nNothing was changed.\n",
        )
        .status(71);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    let left: Vec<_> = fs::read_dir(site.path("etc/rungate")).expect("the directory").collect();
    assert_eq!(left.len(), 2, "the policy, and what it was before: {left:?}");
}

/// A change that failed is none of the last ones. Undoing one that was undone by hand changes nothing, and says so.
#[test]
fn a_change_that_failed_is_not_known() {
    needs_root!();
    needs_strace!();
    let site = site();
    let log = site.test().args(["policy", "log"]);
    site.write("work/policy.toml", &MAIN.replace("= 5", "= 6"));
    let fails = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO"];
    let outcome = install(&site, ["--yes", "policy.toml"]).through(fails).outcome();
    assert_eq!(outcome.ending, Ending::Status(71), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with("\nNothing was changed.\n"), "{}", outcome.stderr);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    let none = "No change of the system's policy by rungate policy edit or install is known.\n";
    log.clone().stdout(none).status(0);

    install(&site, ["--yes", "policy.toml"]).stdout("...\n").status(0);
    site.system_file("policy.toml", MAIN);
    let same = "rungate: there is nothing to undo: the policy is the same as before the change\n";
    site.test().args(["policy", "undo", "--yes"]).stderr(same).status(0);
    assert_eq!(log.outcome().stdout.lines().count(), 2, "a title, and one change");
}

/// Present files are read while no other change can happen. So a change that ends just before the lock is taken
/// is not mistaken for the state that is wanted.
#[test]
fn present_files_are_read_under_the_lock() {
    needs_root!();
    needs_strace!();
    let site = site();
    site.write("work/policy.toml", &MAIN.replace("= 5", "= 6"));
    install(&site, ["--yes", "policy.toml"]).stdout("...\n").status(0);
    site.system_file("policy.toml", MAIN);
    site.write("work/policy.toml", MAIN);
    // Neither has anything to do, so that nothing else reads the files.
    for change in [&["install", "policy.toml"][..], &["undo"]] {
        let test = site.test().args(["policy"]).args(change).args(["--yes"]);
        let (mut running, trace) = Trace::begin(&test, "openat", &[]);
        assert_eq!(running.end().ending, Ending::Status(0), "{change:?}");
        eventually("the file is opened after the lock", || {
            let calls = trace.calls();
            let last = |name: &str| calls.iter().rposition(|call| call.text.contains(name));
            (last("\".policy.toml.lock\"")? < last("\"policy.toml\"")?).then_some(())
        });
    }
}

/// Killed at any instruction it leaves the old text or the new one: at each call that changes anything.
#[test]
fn killed_at_any_call_it_leaves_the_old_or_the_new() {
    needs_root!();
    needs_strace!();
    let site = site();
    let new = MAIN.replace("= 5", "= 6");
    site.write("work/policy.toml", &new);
    let path = site.path("etc/rungate/policy.toml");
    let mut seen = Vec::new();
    for call in ["openat", "write", "fchown", "fchmod", "fsync", "/^rename", "unlinkat"] {
        let mut killed = 0;
        // strace counts each call for itself; the last run is the one that has no further one.
        for nth in 1.. {
            let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
            let trace = ["strace", "-qq", "-o", "/dev/null", "-e", &inject];
            let outcome = install(&site, ["--yes", "policy.toml"]).through(trace).outcome();
            let text = fs::read_to_string(&path).expect("the policy");
            assert!(text == MAIN || text == new, "killed at {call} {nth}: {text}");
            if outcome.ending == Ending::Status(0) {
                assert_eq!(text, new, "nothing stopped it: {outcome:?}");
                break;
            }
            killed += 1;
            seen.push(text == new);
            // The next one finds nothing in its way.
            site.system_file("policy.toml", MAIN);
        }
        assert!(killed > 0, "it makes no call of {call}");
        site.system_file("policy.toml", MAIN);
    }
    assert!(seen.contains(&false) && seen.contains(&true), "it was killed before and after: {seen:?}");
    install(&site, ["--yes", "policy.toml"]).stdout("...\n").status(0);
    let left: Vec<_> = fs::read_dir(site.path("etc/rungate")).expect("the directory").collect();
    assert_eq!(left.len(), 2, "what was left is removed by the next: {left:?}");
    let past: Vec<_> =
        fs::read_dir(site.path("etc/rungate/policy.past")).expect("the copies").flatten().collect();
    assert!(past.iter().all(|copy| !copy.file_name().as_encoded_bytes().starts_with(b".")), "{past:?}");
}

/// The last ten changes are known, and each can be taken back, with the checks and the output of an installation.
#[test]
fn changes_are_taken_back() {
    needs_root!();
    let site = site();
    let log = || site.test().args(["policy", "log"]);
    let undo = |words: &[&str]| site.test().args(["policy", "undo", "--yes"]).args(words);
    log().stdout("No change of the system's policy by rungate policy edit or install is known.\n").status(0);
    let none = "rungate: 0 of the last changes are known, not 1\nTo see them: rungate policy log\n";
    undo(&[]).stderr(none).status(64);
    site.write("work/new.toml", &MAIN.replace("= 5", "= 6"));
    site.write("work/10-more.toml", "[log]\nto = \"off\"\n");
    let by_ann = install(&site, ["--yes", "--name", "policy.toml", "new.toml"]).env("SUDO_USER", "ann");
    by_ann.stdout("...").status(0);
    // Of a change that was killed.
    fs::create_dir(site.path("etc/rungate/policy.past/.new.1")).expect("a directory");
    assert_eq!(install(&site, ["--yes", "10-more.toml"]).outcome().ending, Ending::Status(0));
    let head = "UNDO[gap]WHEN[gap]BY[gap]CHANGE\n";
    let second = "1[gap][time][gap][..][gap]add the drop-in /etc/rungate/policy.d/10-more.toml\n";
    let first = "2[gap][time][gap]ann[gap]replace the main file /etc/rungate/policy.toml\n";
    assert!(!site.path("etc/rungate/policy.past/.new.1").exists());
    log().stdout(&format!("{head}   {second}   {first}")).status(0);
    // Both, and then both again.
    let changed = "~ repository matlab (policy.toml:3)\n    limit  6 -> 5\n";
    let outcome = undo(&["2"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains(changed), "{}", outcome.stdout);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN);
    assert!(!site.path("etc/rungate/policy.d/10-more.toml").exists());
    assert_eq!(undo(&[]).outcome().ending, Ending::Status(0));
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN.replace("= 5", "= 6"));
    assert!(site.path("etc/rungate/policy.d/10-more.toml").exists());
    for limit in 10..22 {
        site.write("work/new.toml", &MAIN.replace("= 5", &format!("= {limit}")));
        let ended = install(&site, ["--yes", "--name", "policy.toml", "new.toml"]).outcome().ending;
        assert_eq!(ended, Ending::Status(0));
    }
    assert_eq!(log().outcome().stdout.lines().count(), 11);
    assert_eq!(undo(&["10"]).outcome().ending, Ending::Status(0));
    assert_eq!(text(&site, "etc/rungate/policy.toml"), MAIN.replace("= 5", "= 11"));
    assert_eq!(undo(&["11"]).outcome().ending, Ending::Status(64));
}
