//! `rungate doctor`: what is not right on this host, with the command that mends it. Each test breaks
//! something as an evening does, reads what the doctor says, types the command that it names, and asks again.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;

use serde_json::Value;

use crate::support::{Account, Ending, Site, Test, copy_program, eventually, needs_root, set_mode};

/// A host with a policy of the system's for one command, and all that it needs.
pub(crate) fn host() -> Site {
    let site = Site::of_system(
        "
        version = 1
        [repository.seats]
        limit = 1
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"seats\"]
        ",
    );
    site.program("matlab");
    let lock = site.path("system-run/rungate/seats.lock");
    fs::write(&lock, "").expect("a lock file");
    set_mode(&lock, 0o666);
    site
}

/// The doctor, asked for one topic.
pub(crate) fn doctor(site: &Site, topic: &str) -> Test {
    site.test().args(["doctor", topic])
}

/// All that it finds: how each thing is, the code for it, and what mends it.
#[track_caller]
pub(crate) fn all_found(test: &Test) -> Vec<(String, String, Vec<String>)> {
    let outcome = test.clone().args(["--json"]).outcome();
    let page: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let findings = list(&page["topics"]).into_iter().flat_map(|topic| list(&topic["findings"]));
    let mend = |finding: &Value| list(&finding["fix"]).iter().map(text).collect();
    findings.map(|finding| (text(&finding["status"]), text(&finding["code"]), mend(&finding))).collect()
}

/// What it finds that is wrong: the code of each finding, and what mends it.
#[track_caller]
fn found(test: &Test) -> Vec<(String, Vec<String>)> {
    let wrong =
        all_found(test).into_iter().filter(|(status, ..)| ["fault", "warning"].contains(&status.as_str()));
    wrong.map(|(_, code, mend)| (code, mend)).collect()
}

/// Types the commands that a finding names, and expects that nothing is wrong any more.
#[track_caller]
fn mended(site: &Site, topic: &str, code: &str) {
    let wrong = found(&doctor(site, topic));
    assert_eq!(wrong.iter().map(|(code, _)| code.as_str()).collect::<Vec<&str>>(), [code], "{wrong:?}");
    for command in wrong.iter().flat_map(|(_, mend)| mend) {
        site.test().program("/bin/sh").args(["-c", command]).status(0);
    }
    assert_eq!(found(&doctor(site, topic)), []);
    assert_eq!(doctor(site, topic).outcome().ending, Ending::Status(0));
}

/// A policy that root can read and users cannot.
#[test]
fn a_policy_that_users_cannot_read_is_a_fault() {
    needs_root!();
    let site = host();
    // "If nothing is wrong it prints one line with what was checked." Details are for those who ask.
    doctor(&site, "policy").stdout("Nothing to fix: policy checked (details: rungate doctor -v)\n").status(0);
    doctor(&site, "policy")
        .args(["repositories", "programs", "names", "-v"])
        .stdout(
            "ok       policy        /etc/rungate/policy.toml: 1 rule, 1 repository\n...\nNothing to fix.\n",
        )
        .status(0);
    doctor(&site, "policy")
        .args(["repositories", "programs", "names"])
        .stdout("Nothing to fix: 4 topics checked[..] (details: rungate doctor -v)\n")
        .status(0);
    set_mode(&site.path("etc/rungate/policy.toml"), 0o600);
    doctor(&site, "policy")
        .stdout(
            "
            fault    policy        /etc/rungate/policy.toml: 1 rule, 1 repository
              fault    /etc/rungate/policy.toml has mode 0600: users cannot read the policy,
                       and every launch of theirs is refused (78)
                         chmod o+r /etc/rungate/policy.toml

            1 fault.
            ",
        )
        .status(1);
    let ann = site.test().user("ann").args(["run", "--", "matlab"]);
    ann.clone()
        .stderr(
            "
            rungate: matlab: not started: the policy has 1 fault
            /etc/rungate/policy.toml: cannot be read: open: Permission denied [unreadable-file]
            Tell your administrator: rungate doctor
            ",
        )
        .status(78);
    site.test()
        .args(["policy", "check", "--strict"])
        .stderr(
            "
            /etc/rungate/policy.toml has mode 0600: users cannot read the policy, and every launch of theirs is refused (78) [policy-unreadable]
              chmod o+r /etc/rungate/policy.toml
            rungate: 1 warning
            ",
        )
        .status(1);
    mended(&site, "policy", "policy-unreadable");
    ann.stdin("").status(0);
    site.test().args(["policy", "check", "--strict"]).status(0);
    set_mode(&site.path("etc/rungate"), 0o750);
    mended(&site, "policy", "policy-unreadable");
    fs::create_dir(site.path("etc/rungate/policy.d")).expect("a new directory");
    site.system_file("policy.d/10-more.toml", "version = 1\n");
    set_mode(&site.path("etc/rungate/policy.d/10-more.toml"), 0o640);
    mended(&site, "policy", "policy-unreadable");
    set_mode(&site.path("etc/rungate/policy.d"), 0o711);
    mended(&site, "policy", "policy-unreadable");
}

/// A name that begins with a dot is no drop-in: users need not read what was put aside.
#[test]
fn a_drop_in_that_was_put_aside_needs_no_readers() {
    needs_root!();
    let site = host();
    let directory = site.path("etc/rungate/policy.d");
    fs::create_dir(&directory).expect("a new directory");
    set_mode(&directory, 0o755);
    for name in [".10-aside.toml", "10-aside.toml"] {
        site.system_file(&format!("policy.d/{name}"), "version = 1\n");
        set_mode(&directory.join(name), 0o600);
    }
    // The other file shows that the doctor looks here. That the name is no drop-in's is a warning.
    let aside = ("policy-warning".to_owned(), Vec::new());
    let chmod = "chmod o+r /etc/rungate/policy.d/10-aside.toml".to_owned();
    let other = ("policy-unreadable".to_owned(), vec![chmod]);
    assert_eq!(found(&doctor(&site, "policy")), [other, aside.clone()]);
    set_mode(&directory.join("10-aside.toml"), 0o644);
    assert_eq!(found(&doctor(&site, "policy")), [aside]);
}

/// The first user of matlab owned matlab.lock, and could delete it.
#[test]
fn directories_and_lock_files_have_an_owner_and_a_mode() {
    needs_root!();
    let site = host();
    let directory = site.path("system-run/rungate");
    let lock = directory.join("seats.lock");
    assert_eq!(found(&doctor(&site, "repositories")), []);
    set_mode(&lock, 0o600);
    mended(&site, "repositories", "lock-file-closed");
    set_mode(&directory, 0o777);
    mended(&site, "repositories", "directory-mode");
    chown(&directory, Some(site.user("ann").uid), None).expect("chown");
    mended(&site, "repositories", "directory-owner");

    let codes =
        || found(&doctor(&site, "repositories")).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    chown(&lock, Some(site.user("ann").uid), None).expect("chown");
    assert_eq!(codes(), ["lock-file-owner"]);
    fs::remove_file(&lock).expect("a lock file");
    assert_eq!(codes(), ["lock-file-missing"]);
    fs::remove_dir(&directory).expect("an empty directory");
    assert_eq!(codes(), ["directory-missing"]);
    assert_eq!(doctor(&site, "repositories").outcome().ending, Ending::Status(1));
    let check = site.test().args(["policy", "check", "--strict"]).outcome();
    assert_eq!(check.ending, Ending::Status(1));
    assert!(check.stderr.contains("[directory-missing]\n"), "{}", check.stderr);
}

/// "Repositories of your own policy are created when they are first used": their directory too, in one that
/// exists.
#[test]
fn a_directory_of_ones_own_need_not_exist_yet() {
    let site = Site::with_policy(
        "
        version = 1
        defaults.directory = \"$DIR/work/above/locks\"
        [repository.seats]
        limit = 1
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"seats\"]
        ",
    );
    site.program("matlab");
    let launch = site.test().args(["run", "--", "matlab"]).stdin("");
    let check = site.test().args(["policy", "check", "--strict"]);
    let make = format!("mkdir -p {}", site.path("work/above/locks").display());
    assert_eq!(found(&doctor(&site, "repositories")), [("directory-missing".to_owned(), vec![make])]);
    assert_eq!(check.outcome().ending, Ending::Status(1));
    assert_eq!(launch.outcome().ending, Ending::Status(74));
    mended(&site, "repositories", "directory-missing");
    launch.status(0);

    fs::remove_dir_all(site.path("work/above/locks")).expect("the directory");
    assert_eq!(found(&doctor(&site, "repositories")), []);
    check.status(0);
    assert!(!site.path("work/above/locks").exists());
    launch.status(0);
    assert!(site.path("work/above/locks/seats.lock").exists());
}

/// What is done to the file systems of a host, what a launch of ann's comes to then, and what the doctor
/// finds.
#[track_caller]
fn under(site: &Site, how: &str, topic: &str) -> (Ending, Vec<String>) {
    let ann = site.user("ann");
    let ids = [format!("--reuid={}", ann.uid), format!("--regid={}", ann.gid), "--init-groups".to_owned()];
    let commands = format!("{how} && exec \"$@\"");
    let through = ["unshare", "--mount", "sh", "-ec", &commands, "sh"];
    let launch =
        site.test().args(["run", "--", "matlab"]).through(through).through(["setpriv"]).through(&ids);
    let ending = launch.stdin("").outcome().ending;
    (ending, found(&doctor(site, topic).through(through)).into_iter().map(|(code, _)| code).collect())
}

/// The doctor does what a launch of an ordinary user does: what refuses a launch is never right.
#[test]
fn what_refuses_a_launch_is_no_ok() {
    needs_root!();
    let site = host();
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let refused = |code: &str| (Ending::Status(74), vec![code.to_owned()]);
    let fine = (Ending::Status(0), Vec::new());
    let fill = "mount -t tmpfs -o size=16k,mode=1777 tmpfs /run/rungate; touch /run/rungate/seats.lock; \
                chmod 666 /run/rungate/seats.lock; cat /dev/zero >/run/rungate/filler 2>/dev/null || true";
    let read_only = "mount --bind /run/rungate /run/rungate; mount -o remount,bind,ro /run/rungate";
    assert_eq!(under(&site, "true", "repositories"), fine);
    assert_eq!(under(&site, fill, "repositories"), refused("directory-full"));
    assert_eq!(under(&site, read_only, "repositories"), refused("lock-file-closed"));
    // A file for each user is created by its user.
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 1\nper = \"user\""));
    fs::remove_file(site.path("system-run/rungate/seats.lock")).expect("the lock file");
    // "Each user owns the lock file that counts them, and can remove it."
    let own = vec!["lock-file-own".to_owned()];
    assert_eq!(under(&site, "true", "repositories"), (Ending::Status(0), own));
    assert_eq!(under(&site, fill, "repositories"), refused("directory-unusable"));
    let empty = format!("rm -f /run/rungate/*; {read_only}");
    assert_eq!(under(&site, &empty, "repositories"), refused("directory-unusable"));
    let files = || fs::read_dir(site.path("system-run/rungate")).expect("a directory").count();
    let before = files();
    set_mode(&site.path("system-run/rungate"), 0o755);
    assert_eq!(under(&site, "rm -f /run/rungate/*", "repositories"), refused("directory-unusable"));
    mended(&site, "repositories", "directory-unusable");
    set_mode(&site.path("system-run/rungate"), 0o700);
    mended(&site, "repositories", "directory-closed");
    assert!(files() <= before, "what was tried is gone");
}

/// A list of users says more than the bits of a mode: who is named in it is not kept out.
#[test]
fn what_is_tried_and_not_read_needs_no_bits() {
    needs_root!();
    let site = host();
    let lock = site.path("system-run/rungate/seats.lock");
    set_mode(&lock, 0o600);
    let given = std::process::Command::new("setfacl").args(["-m", "o::---,u:nobody:rw"]).arg(&lock).status();
    if !given.is_ok_and(|status| status.success()) {
        return crate::support::skip("setfacl(1) is not installed, or the file system has no lists");
    }
    assert_eq!(found(&doctor(&site, "repositories")), []);
}

/// A log for which there is no room loses its events.
#[test]
fn a_log_needs_room() {
    needs_root!();
    let site = host();
    fs::create_dir(site.path("log")).expect("a new directory");
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &format!("{policy}[log]\nto = \"$DIR/log/rungate.jsonl\"\n"));
    let mount = |then: &str| {
        site.expand(&format!(
            "mount -t tmpfs -o size=16k,mode=755 tmpfs $DIR/log; touch $DIR/log/rungate.jsonl; \
             chmod 666 $DIR/log/rungate.jsonl; {then}"
        ))
    };
    assert_eq!(under(&site, &mount("true"), "log"), (Ending::Status(0), Vec::new()));
    let full = mount("cat /dev/zero >$DIR/log/filler 2>/dev/null || true");
    assert_eq!(under(&site, &site.expand(&full), "log"), (Ending::Status(0), vec!["log-lost".to_owned()]));
}

/// Will not after the next boot: `/run` is empty then.
#[test]
fn what_a_boot_takes_away_is_made_again() {
    needs_root!();
    let site = host();
    site.rungate_in_bin();
    fs::create_dir_all(site.path("system-run/systemd/system")).expect("new directories");
    fs::create_dir(site.path("etc/tmpfiles.d")).expect("a new directory");
    let codes = || found(&doctor(&site, "boot")).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(), ["boot-directory", "boot-lock-file"]);
    let lines = |text: &str| site.write("etc/tmpfiles.d/ours.conf", text);
    lines("d /run/rungate 1777 root root -\n");
    doctor(&site, "boot")
        .stdout(
            "
            warning  boot          needed after each boot: /run/rungate and 1 lock file
              warning  nothing creates /run/rungate/seats.lock at boot: after the next boot
                       its first user will own it, and can remove it
                         rungate init --repositories

            1 warning.
            ",
        )
        .status(0);
    lines("d /run/rungate 1777 root root -\nf /run/rungate/seats.lock 0600 root root -\n");
    assert_eq!(codes(), ["boot-lock-file"]);
    lines("d /run/rungate 0777 root root -\nf /run/rungate/seats.lock 0666 daemon root -\n");
    assert_eq!(codes(), ["boot-directory", "boot-lock-file"]);
    lines("D /var/run/rungate/ 1777 daemon\nf+ %t/rungate/seats.lock 0666\n");
    assert_eq!(codes(), ["boot-directory"]);
    lines("d /run/rungate 1777\nf /run/rungate/seats.lock 0666\nd /run/rungate 0700 daemon\n");
    assert_eq!(codes(), Vec::<String>::new());
    fs::remove_file(site.path("etc/tmpfiles.d/ours.conf")).expect("a file");
    let init = site.test().program("/bin/sh").args(["-c", "rungate init --repositories"]).outcome();
    assert_eq!(init.ending, Ending::Status(0), "{init:?}");
    assert_eq!(codes(), Vec::<String>::new());
}

/// Overdue holders go on until a launch of root's, or of their own user, wants the slot.
#[test]
fn something_ends_overdue_holders() {
    needs_root!();
    let site = host();
    let codes = || found(&doctor(&site, "expiry")).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(), Vec::<String>::new());
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 1\nexpire_after = \"2h\""));
    assert_eq!(codes(), ["expiry-off"]);
    fs::create_dir(site.path("etc/cron.d")).expect("a new directory");
    site.write("etc/cron.d/rungate", "# */5 * * * * root rungate end --overdue\n");
    mended(&site, "expiry", "expiry-off");
    fs::remove_file(site.path("etc/cron.d/rungate")).expect("the job");

    fs::create_dir_all(site.path("system-run/systemd/system")).expect("new directories");
    let timer = |words: &str, result: &str| {
        let (timer, service) = (words.replace(' ', "\\n"), result.replace(' ', "\\n"));
        site.script(
            "systemctl",
            &format!(
                "#!/bin/sh\ncase \"$1 $2\" in\n\
                 'show rungate-overdue.timer') printf '{timer}\\n' ;;\n\
                 'show rungate-overdue.service') printf '{service}\\n' ;;\n\
                 *) exit 1 ;;\nesac\n"
            ),
        );
        codes()
    };
    let success = "Result=success ExecMainStatus=0";
    let state = |load: &str, active: &str, file: &str| {
        timer(&format!("LoadState={load} ActiveState={active} UnitFileState={file}"), success)
    };
    assert_eq!(state("not-found", "inactive", ""), ["expiry-off"]);
    assert_eq!(state("masked", "inactive", "masked"), ["expiry-off"]);
    assert_eq!(state("loaded", "inactive", "enabled"), ["expiry-off"]);
    assert_eq!(state("loaded", "active", "disabled"), ["expiry-until-boot"]);
    assert_eq!(state("loaded", "active", "enabled"), Vec::<String>::new());
    let on = "LoadState=loaded ActiveState=active UnitFileState=enabled LastTriggerUSec=today";
    assert_eq!(timer(on, success), Vec::<String>::new());
    assert_eq!(timer(on, "Result=exit-code ExecMainStatus=78"), ["expiry-failed"]);
    doctor(&site, "expiry")
        .stdout(
            "
            warning  expiry        seats after 2h
              warning  rungate-overdue.service failed (exit-code, status 78; last run
                       today): overdue holders continue until a launch of root, or of their
                       own user, needs the slot
                         journalctl -u rungate-overdue.service

            1 warning.
            ",
        )
        .status(0);
}

/// A log that nobody can write loses its events in silence.
#[test]
fn a_log_has_to_be_there_for_everybody() {
    needs_root!();
    let site = host();
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &format!("{policy}[log]\nto = \"$DIR/log/rungate.jsonl\"\n"));
    mended(&site, "log", "log-lost");
    let log = site.path("log/rungate.jsonl");
    assert_eq!(fs::metadata(&log).expect("the log").mode() & 0o777, 0o662);
    set_mode(&log, 0o640);
    mended(&site, "log", "log-lost");
    set_mode(&site.path("log"), 0o700);
    mended(&site, "log", "log-lost");
    fs::remove_file(&log).expect("the log");
    mended(&site, "log", "log-lost");
    // A member of the group that may read it appends to it too: only the bits of the group count for a member.
    let owner = fs::metadata(&log).expect("the log");
    assert_eq!((owner.mode() & 0o777, owner.gid()), (0o662, Account::group_id("adm")));
    for group in ["games", "adm"] {
        let member = site.test().user("games").groups([group]).program("/bin/sh");
        member.args(["-c", "echo line >>\"$0\"", "$DIR/log/rungate.jsonl"]).status(0);
    }
    assert_eq!(fs::read_to_string(&log).expect("the log"), "line\nline\n");
}

/// Do the programs behind `[command]` exist?
#[test]
fn a_command_has_a_program_that_users_can_start() {
    needs_root!();
    let site = host();
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &format!("{policy}[command.matlab]\nexec = \"$DIR/opt/matlab\"\n"));
    let codes = || found(&doctor(&site, "programs")).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(), ["program-missing"]);
    fs::create_dir(site.path("opt")).expect("a new directory");
    set_mode(&site.path("opt"), 0o755);
    copy_program("/bin/true", site.path("opt/matlab"));
    set_mode(&site.path("opt/matlab"), 0o700);
    mended(&site, "programs", "program-closed");
}

/// Do shims lead to this rungate?
#[test]
fn each_shim_leads_here() {
    needs_root!();
    let site = host();
    fs::create_dir(site.path("other")).expect("a new directory");
    copy_program(site.rungate(), site.path("other/rungate"));
    let shims = site.path("etc/rungate/shims");
    fs::create_dir(&shims).expect("a new directory");
    set_mode(&shims, 0o755);
    let link = |target: &Path| {
        let _ = fs::remove_file(shims.join("matlab"));
        symlink(target, shims.join("matlab")).expect("a new link");
    };
    link(site.rungate());
    assert_eq!(found(&doctor(&site, "shims")), []);
    link(&site.path("gone/rungate"));
    let codes = || found(&doctor(&site, "shims")).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(), ["shim-dangling"]);
    link(&site.rungate().with_file_name("rungate-tools"));
    assert_eq!(codes(), ["shim-of-tools"]);
    link(&site.path("other/rungate"));
    assert_eq!(codes(), ["shim-of-another"]);
}

/// A command that is limited, is here and has no shim starts past the policy; any other is worth a note.
#[test]
fn a_shim_that_is_missing_for_what_is_limited_is_a_warning() {
    needs_root!();
    let site = host();
    let shims = site.path("etc/rungate/shims");
    fs::create_dir(&shims).expect("a new directory");
    set_mode(&shims, 0o755);
    symlink(site.rungate(), shims.join("matlab")).expect("a new link");
    site.rungate_in_bin();
    site.program("maple");
    site.program("octave");
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let rule = |command: &str, more: &str| format!("[[rule]]\ncommands = [\"{command}\"]\n{more}\n");
    let acquire = "acquire = [\"seats\"]";
    let rules = [("maple", acquire), ("octave", "action = \"exempt\""), ("nightly-sync", acquire)];
    let rules = rules.map(|(command, more)| rule(command, more)).concat();
    site.system_file("policy.toml", &format!("{policy}{rules}"));
    let about_shims = || {
        let all = all_found(&doctor(&site, "shims")).into_iter();
        all.filter(|(_, code, _)| code == "no-shim").map(|(status, _, mend)| (status, mend.concat()))
    };
    let install = "rungate shim install /etc/rungate/shims";
    assert_eq!(
        about_shims().collect::<Vec<_>>(),
        [
            ("warning".to_owned(), format!("{install} maple")),
            ("note".to_owned(), format!("{install} nightly-sync octave"))
        ]
    );
    mended(&site, "shims", "no-shim");
}

/// False alarm about `exec`: a faulty policy may name the program nevertheless.
#[test]
fn a_faulty_policy_makes_no_shim_wrong() {
    needs_root!();
    let site = host();
    let shims = site.path("etc/rungate/shims");
    fs::create_dir(&shims).expect("a new directory");
    set_mode(&shims, 0o755);
    symlink(site.rungate(), shims.join("matlab")).expect("a new link");
    fs::rename(site.path("bin/matlab"), site.path("work/matlab")).expect("the program");
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let policy = format!("{policy}[command.matlab]\nexec = \"$DIR/work/matlab\"\n");
    site.system_file("policy.toml", &policy);
    assert_eq!(found(&doctor(&site, "shims")), []);
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = many"));
    assert_eq!(found(&doctor(&site, "shims")), []);
}

/// A program that does not exist is told as the policy has it, and what is beside a warning is not said
/// again.
#[test]
fn a_shim_without_a_program_says_whose_word_that_is() {
    needs_root!();
    let site = host();
    let shims = site.path("etc/rungate/shims");
    fs::create_dir(&shims).expect("a new directory");
    set_mode(&shims, 0o755);
    symlink(site.rungate(), shims.join("matlab")).expect("a new link");
    fs::remove_file(site.path("bin/matlab")).expect("the program");
    let mend = || match found(&doctor(&site, "shims")).as_slice() {
        [(code, mend)] if code == "shim-without-program" => mend.join("; "),
        others => panic!("{others:?}"),
    };
    assert_eq!(mend(), "In the policy, say where it is: [command.matlab] exec = \"/path\"");
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let named = "[command.matlab]\nexec = \"/nosuch/matlab\"\n[repository.idle]\nlimit = 1\n";
    site.system_file("policy.toml", &format!("{policy}{named}"));
    assert_eq!(mend(), "In the policy, correct [command.matlab] exec");
    let page = doctor(&site, "policy").outcome().stdout;
    assert!(page.contains("  warning  ") && !page.contains(": warning: "), "{page}");
}

/// Are the shims first in PATH for every way in? A shell is asked, and says what it makes of its files.
#[test]
fn a_shell_that_passes_the_shims_by_is_named() {
    needs_root!();
    let site = host();
    for directory in ["etc/rungate/shims", "etc/profile.d"] {
        fs::create_dir(site.path(directory)).expect("a new directory");
        set_mode(&site.path(directory), 0o755);
    }
    symlink(site.rungate(), site.path("etc/rungate/shims/matlab")).expect("a new link");
    site.write("etc/login.defs", "ENV_PATH PATH=$DIR/bin:/usr/bin:/bin\n");
    site.write("etc/profile", "for file in /etc/profile.d/*.sh; do . \"$file\"; done\n");
    site.write("etc/profile.d/nothing.sh", "echo something that is no path\n");
    let of_bash = || {
        let wrong = doctor(&site, "ways").outcome().stdout;
        wrong.lines().find(|line| line.contains("bash, logged in")).map(|line| line.trim().to_owned())
    };
    if !Path::new("/bin/bash").exists() {
        return crate::support::skip("bash(1) is not installed");
    }
    assert!(of_bash().is_some_and(|line| line.starts_with("warning  ")), "{:?}", of_bash());
    site.write("etc/profile.d/rungate.sh", include_str!("../../packaging/ways-in/profile.sh"));
    // A shell that does not answer in time is warned of, and asked again.
    eventually("nothing is wrong with bash", || of_bash().is_none().then_some(()));
}

/// Root can search each directory of shims; the shells of users pass over one that they cannot search.
#[test]
fn shims_that_users_cannot_reach_do_not_work() {
    needs_root!();
    let site = host();
    let shims = site.path("etc/rungate/shims");
    fs::create_dir(&shims).expect("a new directory");
    symlink(site.rungate(), shims.join("matlab")).expect("a new link");
    let closed = || {
        let wrong = found(&doctor(&site, "ways")).into_iter();
        wrong.filter(|(code, _)| code == "shims-closed").collect::<Vec<_>>()
    };
    set_mode(&shims, 0o755);
    assert_eq!(closed(), []);
    for directory in ["/etc/rungate/shims", "/etc/rungate"] {
        let path = site.path(directory.trim_start_matches('/'));
        set_mode(&path, 0o700);
        let mend = format!("chmod o+x {directory}");
        assert_eq!(closed(), [("shims-closed".to_owned(), vec![mend.clone()])]);
        let outcome = doctor(&site, "ways").args(["-v"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(1), "{}", outcome.stdout);
        assert!(!outcome.stdout.contains("the shims work:"), "{}", outcome.stdout);
        site.test().program("/bin/sh").args(["-c", &mend]).status(0);
        assert_eq!(closed(), []);
    }
}

/// Ways that one command mends are one finding: nobody types the same line into /etc/environment twice, even
/// where one way leads past the shim and another to nothing.
#[test]
fn no_command_is_told_twice_for_the_ways_in() {
    needs_root!();
    if !Path::new("/bin/su").exists() {
        return crate::support::skip("su(1) is not installed");
    }
    let site = host();
    fs::create_dir(site.path("etc/rungate/shims")).expect("a new directory");
    set_mode(&site.path("etc/rungate/shims"), 0o755);
    symlink(site.rungate(), site.path("etc/rungate/shims/matlab")).expect("a new link");
    // su keeps its caller's PATH, which has the program; a shell over ssh has one without it.
    let by_root = doctor(&site, "ways").env("PATH", site.expand("$DIR/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    let told = || {
        let all = all_found(&by_root).into_iter();
        let lines = all.filter(|(.., mend)| mend.iter().any(|line| line.ends_with(">>/etc/environment")));
        let found = lines.map(|(status, code, _)| format!("{status} {code}")).collect::<Vec<_>>();
        let page = by_root.outcome().stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
        let both = "ssh HOST COMMAND: matlab is not found; su USER -c COMMAND: matlab is /";
        (found, page.contains(both))
    };
    // A shell that does not answer in time is told of in other words, and asked again.
    let once = (vec!["warning way-past-shims".to_owned()], true);
    eventually("one finding for that file", || (told() == once).then_some(()));
}

/// Asked by somebody else it is about their session, and whoever has no power learns whom to tell.
#[test]
fn a_user_learns_what_is_wrong_for_them() {
    needs_root!();
    let site = host();
    site.shim("matlab");
    let ann = |path: &str| doctor(&site, "ways").user("ann").env("PATH", site.expand(path));
    let session = |path: &str| {
        let stdout = ann(path).args(["-v"]).outcome().stdout;
        stdout.lines().find(|line| line.contains("this session: ")).map(|line| line.trim().to_owned())
    };
    let first = session("$DIR/shims:$DIR/bin:/usr/bin:/bin").expect("a line about the session");
    assert!(first.starts_with("ok       this session: the shims come first"), "{first}");
    let last = session("$DIR/bin:$DIR/shims:/usr/bin:/bin").expect("a line about the session");
    assert!(last.starts_with("warning  this session: matlab is"), "{last}");

    set_mode(&site.path("etc/rungate/policy.toml"), 0o600);
    doctor(&site, "policy")
        .user("ann")
        .args(["repositories"])
        .stdout(
            "
            fault    policy        refuses every launch that it applies to
              fault    /etc/rungate/policy.toml: cannot be read: open: Permission denied
                       [unreadable-file]
                         rungate policy check
            unknown  repositories  not checked, because the policy has faults

            1 fault.
            To see the faults of the policy: rungate policy check
            For what you cannot fix, ask your administrator: sudo rungate doctor
            ",
        )
        .status(1);
}

/// A topic that is not checked, because the policy has faults, is not well: not in the last line, the status, or JSON.
#[test]
fn what_is_not_checked_is_not_well() {
    let site = Site::with_policy("version = 1\n[[rule");
    let doctor = site.test().args(["doctor", "repositories", "boot", "expiry"]);
    doctor
        .clone()
        .stdout(
            "
            unknown  repositories  not checked, because the policy has faults
            unknown  boot          not checked, because the policy has faults
            unknown  expiry        not checked, because the policy has faults

            3 topics not checked.
            To see the faults of the policy: rungate policy check
            ...
            ",
        )
        .status(1);
    let outcome = doctor.args(["--json"]).outcome();
    let page: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!((&page["status"], &page["topics"][0]["status"]), (&"fault".into(), &"unknown".into()));
    assert_eq!(outcome.ending, Ending::Status(1));
}

/// The agent (socket answers).
#[test]
fn an_agent_that_is_needed_has_to_answer() {
    needs_root!();
    let policy = "
        version = 1
        [repository.tokens]
        keeper = \"agent\"
        limit  = 2
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"tokens\"]
        ";
    let (site, agent) = Site::with_agent(policy);
    doctor(&site, "agent")
        .args(["-v"])
        .stdout(
            "
            ok       agent         keeps tokens
              ok       /run/rungate-agent/socket answers; 0 tables in use
              ok       its version is [..], like the launcher's

            Nothing to fix.
            ",
        )
        .status(0);
    // "It cannot record what it gives."
    let state = "mount -t tmpfs -o size=16k,mode=700 tmpfs /run/rungate-agent/state; \
                 cat /dev/zero >/run/rungate-agent/state/filler 2>/dev/null || true; exec \"$@\"";
    let full = doctor(&site, "agent").through(["unshare", "--mount", "sh", "-ec", state, "sh"]);
    assert_eq!(found(&full).into_iter().map(|(code, _)| code).collect::<Vec<_>>(), ["agent-state"]);
    // Root reaches it all the same.
    site.program("matlab");
    let launch = site.test().user("games").args(["run", "--", "matlab"]).stdin("");
    let (socket, directory) = (site.agent_socket(), site.path("system-run/rungate-agent"));
    for (path, mode) in [(&socket, 0o600), (&socket, 0o644), (&directory, 0o700)] {
        set_mode(path, mode);
        assert_eq!(launch.outcome().ending, Ending::Status(74), "{mode:o}");
        mended(&site, "agent", "agent-closed");
        launch.status(0);
    }
    agent.kill();
    let codes: Vec<String> = found(&doctor(&site, "agent")).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["agent-silent"]);
}

/// Everybody can ask, whatever is there.
#[test]
fn without_a_policy_there_is_nothing_to_mend() {
    let site = Site::new();
    let uid = Account::own().uid;
    let page = site.test().args(["doctor", "policy", "repositories", "programs", "agent", "site"]);
    if uid == 0 {
        site.account("ann", &[]);
    } else if Path::new("/etc/rungate").exists() {
        return crate::support::skip("this host has a policy of the system's");
    }
    page.stdout(
        "
        note     policy        there is none: rungate run starts nothing without --limit
        ok       repositories  none in lock files
        ok       programs      the policy names no command literally
        ok       agent         not needed: lock files keep all slots
        ok       site          none: limits apply to this host, or to hosts that share a
                               directory

        Nothing to fix; 1 note with -v.
        ",
    )
    .status(0);
    assert_eq!(site.test().args(["doctor", "weather"]).outcome().ending, Ending::Status(64));
}
