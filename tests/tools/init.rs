//! `rungate init`: a newcomer's first minute. What is there already is never touched, and all of it is made
//! or nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::support::{Account, Ending, Site, needs_root, set_mode};
use crate::tools::doctor::all_found;

/// A site whose commands see an `/etc` and a `/run` of their own, without anything of rungate.
fn bare_system() -> Site {
    let site = Site::new();
    site.account("ann", &[]);
    site.directory_over_run();
    fs::remove_dir(site.path("system-run/rungate")).expect("an empty directory");
    for program in ["matlab", "clang-16.0"] {
        site.program(program);
    }
    site
}

#[track_caller]
fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// Every path below a directory.
fn below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                todo.push(path.clone());
            }
            found.push(path.strip_prefix(directory).expect("it is below").display().to_string());
        }
    }
    found.sort();
    found
}

/// As root: the system's policy, the directory of its repositories with mode 1777, their lock files, which
/// belong to root, and a file for systemd-tmpfiles.
#[test]
fn root_gets_the_systems_policy_and_all_that_it_needs() {
    needs_root!();
    let site = bare_system();
    let init = site.test().args(["init", "--limit", "2", "matlab", "clang-16.0"]);
    let before = (below(&site.path("etc")), below(&site.path("system-run")));
    init.clone()
        .args(["--dry-run"])
        .stdout(
            "
            would make /run/rungate/ (mode 1777)
            would make /run/rungate/matlab.lock (mode 0666)
            would make /run/rungate/clang-16.0.lock (mode 0666)
            would make /etc/tmpfiles.d/ (mode 0755)
            would make /etc/tmpfiles.d/rungate-setup.conf (mode 0644)
            would make /etc/rungate/ (mode 0755)
            would make /etc/rungate/policy.toml (mode 0644)
            ",
        )
        .status(0);
    assert_eq!((below(&site.path("etc")), below(&site.path("system-run"))), before);

    let test = site.test().program("/bin/sh").args(["-c", "umask 0077; exec \"$0\" \"$@\""]);
    test.args([site.rungate().as_os_str()])
        .args(["init", "--limit", "2", "matlab", "clang-16.0"])
        .stdout(
            "
            made /run/rungate/ (mode 1777)
            made /run/rungate/matlab.lock (mode 0666)
            made /run/rungate/clang-16.0.lock (mode 0666)
            made /etc/tmpfiles.d/ (mode 0755)
            made /etc/tmpfiles.d/rungate-setup.conf (mode 0644)
            made /etc/rungate/ (mode 0755)
            made /etc/rungate/policy.toml (mode 0644)
            Three to try:
              rungate explain -- matlab       # what would happen, and why
              rungate run -- matlab           # start it under the policy
              rungate policy edit             # change the policy; it is checked before it applies
            ",
        )
        .status(0);
    assert_eq!(mode(&site.path("system-run/rungate")), 0o1777);
    assert_eq!(mode(&site.path("system-run/rungate/matlab.lock")), 0o666);
    assert_eq!(mode(&site.path("etc/rungate/policy.toml")), 0o644);
    let entry = fs::read_to_string(site.path("etc/tmpfiles.d/rungate-setup.conf")).expect("the entry");
    assert!(entry.ends_with("d /run/rungate 1777 root root -\nf /run/rungate/matlab.lock 0666 root root -\nf /run/rungate/clang-16.0.lock 0666 root root -\n"), "{entry}");
    assert!(below(&site.path("etc/rungate")) == ["policy.toml"], "nothing is left behind");

    // It holds for a user at once.
    site.test().args(["policy", "check", "--strict"]).status(0);
    let ann = site.test().user("ann").args(["run", "--", "matlab"]);
    let _holders = [ann.spawn(), ann.spawn()];
    assert_eq!(ann.outcome().ending, Ending::Status(75));
    let _other = site.test().user("ann").args(["run", "--", "clang-16.0"]).spawn();

    // Never again over it.
    init.stderr(
        "
        rungate: /etc/rungate/policy.toml is there already
        Nothing was created or changed.
        To change it: rungate policy edit
        To start from an empty policy, first: mv /etc/rungate/policy.toml /etc/rungate/policy.toml.old
        ",
    )
    .status(71);
    let anew = "mv /etc/rungate/policy.toml /etc/rungate/policy.toml.old";
    site.test().program("/bin/sh").args(["-c", anew]).status(0);
    let entry = site.path("etc/tmpfiles.d/rungate-setup.conf");
    let before = fs::read_to_string(&entry).expect("the entry");
    site.test()
        .args(["init", "--limit", "3", "matlab", "spectre"])
        .stdout(
            "
            made /run/rungate/spectre.lock (mode 0666)
            made /etc/rungate/policy.toml (mode 0644)
            made /etc/tmpfiles.d/rungate-setup.conf (mode 0644)
            Three to try:
            ...
            ",
        )
        .status(0);
    let after = fs::read_to_string(&entry).expect("the entry");
    assert_eq!(after, format!("{before}f /run/rungate/spectre.lock 0666 root root -\n"));
    site.test().program("/bin/sh").args(["-c", anew]).status(0);
    // A file that init did not write stays.
    fs::write(&entry, "# of the site\n").expect("the entry");
    site.test()
        .args(["init"])
        .stderr(
            "
            rungate: /etc/tmpfiles.d/rungate-setup.conf is there already
            Nothing was created or changed.
            ",
        )
        .status(71);
    assert!(!site.path("etc/rungate/policy.toml").exists());
}

/// Without a command the policy limits nothing, and shows how to.
#[test]
fn the_example_can_be_put_into_force() {
    let site = Site::new();
    let own = Account::own();
    site.program("ffmpeg");
    site.program("make");
    let text = include_str!("../../src/tools/setup/init/own.toml");
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(code) if !code.starts_with([' ', ':']) => code.to_owned(),
        _ => line.to_owned(),
    };
    let example: Vec<String> = text.lines().map(uncommented).collect();
    for (text, limits) in [(text.to_owned(), false), (example.join("\n"), true)] {
        site.own_policy(&own, &text);
        site.test().args(["policy", "check", "--strict"]).status(0);
        assert_eq!(text.contains("\nlimit = 2"), limits);
    }
    let _holders = [0; 2].map(|_| site.test().args(["run", "--", "ffmpeg"]).spawn());
    assert_eq!(site.test().args(["run", "-n", "--", "ffmpeg"]).outcome().ending, Ending::Status(75));
}

/// Anybody else gets a policy of their own.
#[test]
fn a_user_gets_a_policy_of_his_own() {
    needs_root!();
    let site = bare_system();
    let ann = site.test().user("ann").env_remove("RUNGATE_POLICY");
    let config =
        site.test().user("ann").program("/bin/sh").args(["-c", "echo $XDG_CONFIG_HOME"]).outcome().stdout;
    let config = Path::new(config.trim());
    ann.clone()
        .args(["init", "matlab"])
        .stdout(&format!(
            "
            made {config}/rungate/ (mode 0700)
            made {config}/rungate/policy.toml (mode 0644)
            Three to try:
              rungate explain -- matlab       # what would happen, and why
              rungate run -- matlab           # start it under the policy
              rungate policy edit             # change the policy; it is checked before it applies
            ",
            config = config.display()
        ))
        .status(0);
    ann.clone().args(["policy", "check", "--strict"]).status(0);
    let _holder = ann.clone().args(["run", "--", "matlab"]).spawn();
    assert_eq!(ann.clone().args(["run", "--", "matlab"]).outcome().ending, Ending::Status(75));
    ann.clone()
        .args(["init"])
        .stderr(
            "
            rungate: [..]/rungate/policy.toml is there already
            Nothing was created or changed.
            To change it: rungate policy edit
            To start from an empty policy, first: mv [..]/rungate/policy.toml [..]/rungate/policy.toml.old
            ",
        )
        .status(71);
    // Below HOME, with a directory for it.
    let home = site.path("work/home");
    fs::create_dir(&home).expect("a home");
    let metadata = fs::metadata(config).expect("Ann's directory");
    chown(&home, Some(metadata.uid()), Some(metadata.gid())).expect("give it to Ann");
    let home = home.display().to_string();
    ann.clone()
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", &home)
        .args(["init", "--dry-run"])
        .stdout(&format!(
            "
            would make {home}/.config/ (mode 0700)
            would make {home}/.config/rungate/ (mode 0700)
            would make {home}/.config/rungate/policy.toml (mode 0644)
            "
        ))
        .status(0);
    ann.clone()
        .env("XDG_CONFIG_HOME", format!("{home}/none"))
        .env("HOME", &home)
        .args(["init"])
        .stderr(&format!(
            "
            rungate: there is no place for your own policy: {home}/none, which XDG_CONFIG_HOME names, does not exist
            To create it: mkdir -m 700 {home}/none
            "
        ))
        .status(71);
    ann.env_remove("XDG_CONFIG_HOME")
        .env("HOME", "/")
        .args(["init"])
        .stderr(
            "
            rungate: there is no place for your own policy: /, which HOME names, belongs to another user
            Set HOME to a directory that is yours.
            ",
        )
        .status(71);
}

/// All of it is made, or nothing.
#[test]
fn what_stands_in_the_way_stops_everything() {
    needs_root!();
    let site = bare_system();
    let init = site.test().args(["init", "matlab"]);
    let untouched = |in_the_way: &str| {
        let outcome = init.outcome();
        assert_eq!(outcome.ending, Ending::Status(71), "{}", outcome.stderr);
        let expected = format!("rungate: {in_the_way}\nNothing was created");
        assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
        assert!(!site.path("etc/rungate").exists() && !site.path("etc/tmpfiles.d").exists());
    };
    // A directory that is not as it must be.
    let directory = site.path("system-run/rungate");
    fs::create_dir(&directory).expect("a directory");
    set_mode(&directory, 0o755);
    untouched(
        "/run/rungate exists already, and is not a directory of root with mode 1777: it is a directory of \
            root (0) with mode 0755",
    );
    set_mode(&directory, 0o1777);
    // A lock file that a user was faster with.
    let lock = directory.join("matlab.lock");
    fs::write(&lock, "").expect("a file");
    set_mode(&lock, 0o666);
    let ann = Account::named("games");
    chown(&lock, Some(ann.uid), None).expect("give it away");
    untouched(
        "/run/rungate/matlab.lock exists already, and is not a file of root with mode 0666: it is a regular \
            file of games (5) with mode 0666",
    );
    fs::remove_file(&lock).expect("the file");
    // A step that fails undoes the others: /etc/rungate leads to a file system that cannot be written.
    symlink("/proc/rungate", site.path("etc/rungate")).expect("a link");
    let outcome = init.outcome();
    assert_eq!(outcome.ending, Ending::Status(71), "{}", outcome.stderr);
    assert_eq!(below(&site.path("system-run")), ["rungate"], "{}", outcome.stderr);
    assert!(!site.path("etc/tmpfiles.d").exists());
    fs::remove_file(site.path("etc/rungate")).expect("the link");
    symlink("/proc", site.path("etc/rungate")).expect("a link");
    let outcome = init.outcome();
    assert!(
        outcome.stderr.starts_with("rungate: cannot create /etc/rungate/policy.toml: open: "),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.ends_with("\nNothing was made.\n"), "{}", outcome.stderr);
    assert_eq!(below(&site.path("system-run")), ["rungate"]);
    assert!(!site.path("etc/tmpfiles.d").exists());
}

/// Drop-ins that exist already may define the same repository, or put it elsewhere. The policy would stop every launch,
/// or init would create lock files that no launch uses: nothing is made.
#[test]
fn a_first_policy_fits_its_drop_ins() {
    needs_root!();
    let site = bare_system();
    fs::create_dir_all(site.path("etc/rungate/policy.d")).expect("new directories");
    let rule = "[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"matlab\"]\n";
    let init = site.test().args(["init", "matlab"]);
    for (drop_in, message) in [
        (
            format!("version = 1\n[repository.matlab]\nlimit = 5\n{rule}"),
            "
            rungate: with this policy and its drop-ins, every launch would be refused
            /etc/rungate/policy.d/50-site.toml:2:13: repository \"matlab\" has the same path and other settings [same-path]
            ...
            Nothing was created or changed.
            Correct the drop-in, or limit other commands.
            ",
        ),
        (
            "version = 1\ndefaults.directory = \"/srv/locks\"\n".to_owned(),
            "
            rungate: /run/rungate/matlab.lock would not be a lock file of the policy: [defaults] of a drop-in puts it \
             elsewhere
            Nothing was created or changed.
            To limit commands there: rungate policy edit
            Then create the lock files: rungate init --repositories
            ",
        ),
    ] {
        site.system_file("policy.d/50-site.toml", &drop_in);
        for words in [&["--dry-run"][..], &[]] {
            init.clone().args(words).stderr(message).status(78);
        }
        assert_eq!(below(&site.path("system-run")), [""; 0]);
        assert_eq!(below(&site.path("etc/rungate")), ["policy.d", "policy.d/50-site.toml"]);
        site.test().user("ann").args(["run", "--", "true"]).status(0);
    }
    // Launches do not read tests, so one that fails stops nothing.
    let failing = "[[test]]\nname = \"fails\"\ncommand = \"matlab\"\nexpect = \"refuse\"\n";
    site.system_file("policy.d/50-site.toml", &format!("version = 1\n{failing}"));
    init.stdout("made [..]\n...\n").status(0);
    site.test().user("ann").args(["run", "--", "true"]).status(0);
}

#[test]
fn only_plain_names_can_be_limited_this_way() {
    let site = Site::new();
    site.test()
        .args(["init", "--dry-run", "a b"])
        .stderr(
            "
            rungate: \"a b\" is not a plain name of a command
            Letters, digits, \".\", \"_\" and \"-\" are allowed. For any other name, edit the policy.
            ",
        )
        .status(64);
    site.test().args(["init", "--limit", "3"]).stderr("rungate: [..]\n...\n").status(64);
}

/// Directories and lock files of the policy in force, all of them root's, as often as wanted.
#[test]
fn the_repositories_of_a_policy_become_roots() {
    needs_root!();
    let site = bare_system();
    site.system_policy(
        "
        version = 1
        [repository.seats]
        limit = 2
        [repository.seats-per-user]
        per   = \"user\"
        limit = 1
        [repository.by-project]
        per   = \"directory\"
        limit = 1
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"seats\", \"seats-per-user\", \"by-project\"]
        ",
    );
    let init = site.test().args(["init", "--repositories"]);
    init.clone()
        .args(["--dry-run"])
        .stdout(
            "
            would make /run/rungate/ (mode 1777)
            would make /run/rungate/seats.lock (mode 0666)
            would write /etc/tmpfiles.d/rungate-repositories.conf
            ",
        )
        .status(0);
    assert!(!site.path("system-run/rungate").exists());
    init.clone()
        .stdout(
            "
            made /run/rungate/ (mode 1777)
            made /run/rungate/seats.lock (mode 0666)
            wrote /etc/tmpfiles.d/rungate-repositories.conf
            ",
        )
        .status(0);
    let entry = fs::read_to_string(site.path("etc/tmpfiles.d/rungate-repositories.conf")).expect("the entry");
    assert_eq!(
        entry,
        "# Written by: rungate init --repositories\n\
         d /run/rungate 1777 root root -\nf /run/rungate/seats.lock 0666 root root -\n"
    );
    init.clone().stdout("Nothing to create: all of it exists and belongs to root.\n").status(0);

    // What users came to own is released, and whoever holds a slot keeps it.
    let running = site.test().user("ann").args(["run", "--", "matlab"]).spawn();
    let lock = site.path("system-run/rungate/seats.lock");
    let ann = site.user("ann");
    chown(&lock, Some(ann.uid), Some(ann.gid)).expect("chown");
    set_mode(&lock, 0o644);
    set_mode(&site.path("system-run/rungate"), 0o777);
    init.clone()
        .stdout(
            "
            changed /run/rungate/: root (0), mode 1777; it was root (0), mode 0777
            changed /run/rungate/seats.lock: root (0), mode 0666; it was ann ([pid]), mode 0644
            changed /run/rungate/by-project.[..].lock: root (0), mode 0666; it was ann ([pid]), mode 0666
            ",
        )
        .status(0);
    let changed = fs::metadata(&lock).expect("the lock file");
    assert_eq!((mode(&lock), changed.uid(), changed.gid()), (0o666, 0, 0));
    let own = format!("system-run/rungate/seats-per-user.{}.lock", site.user("ann").uid);
    let owner = fs::metadata(site.path(&own)).expect("ann's file").uid();
    assert_eq!(owner, site.user("ann").uid, "a file for one user alone is that user's");
    site.test()
        .user("ann")
        .args(["run", "--", "matlab"])
        .stderr("...\n[..]seats-per-user[..]\n...\n")
        .status(75);
    drop(running);
    site.test().args(["doctor", "repositories"]).outcome();
    init.stdout("Nothing to create: all of it exists and belongs to root.\n").status(0);
}

/// The directories below it too: a department's. Its first user owned it, and could remove the lock file.
#[test]
fn the_directory_of_a_department_becomes_roots() {
    needs_root!();
    let site = bare_system();
    site.account("cadadm", &[]);
    site.system_policy(
        "
        version = 1
        [delegate.\"20-cad.toml\"]
        owner    = \"cadadm\"
        users    = [\"ann\"]
        commands = [\"matlab\"]
        ",
    );
    site.system_file(
        "policy.d/20-cad.toml",
        "
        version = 1
        [repository.seats]
        limit = 2
        [repository.seats-per-user]
        per   = \"user\"
        limit = 1
        [[rule]]
        acquire = [\"seats\", \"seats-per-user\"]
        ",
    );
    let base = site.path("system-run/rungate");
    fs::create_dir(&base).expect("a new directory");
    set_mode(&base, 0o1777);
    let launch = site.test().user("ann").args(["run", "--", "matlab"]).stdin("");
    launch.status(0);
    let (directory, lock) = (base.join("@20-cad"), base.join("@20-cad/seats.lock"));
    let owners = || [&directory, &lock].map(|path| fs::metadata(path).expect("it was made").uid());
    let ann = site.user("ann").uid;
    assert_eq!(owners(), [ann, ann]);
    let found = |topic: &str| {
        let all = all_found(&site.test().args(["doctor", topic])).into_iter();
        let wrong = all.filter(|(status, ..)| status == "warning" || status == "fault");
        wrong.map(|(_, code, _)| code).collect::<Vec<String>>()
    };
    assert_eq!(found("repositories"), ["directory-owner", "lock-file-owner", "lock-file-own"]);

    let init = site.test().args(["init", "--repositories"]);
    let told = |change: &str, write: &str| {
        format!(
            "
            {change} /run/rungate/@20-cad/: root (0), mode 1777; it was ann ([pid]), mode 1777
            {change} /run/rungate/@20-cad/seats.lock: root (0), mode 0666; it was ann ([pid]), mode 0666
            {write} /etc/tmpfiles.d/rungate-repositories.conf
            "
        )
    };
    init.clone().args(["--dry-run"]).stdout(&told("would change", "would write")).status(0);
    assert_eq!(owners(), [ann, ann]);
    init.clone().stdout(&told("changed", "wrote")).status(0);
    assert_eq!((owners(), mode(&directory)), ([0, 0], 0o1777));
    assert_eq!(found("repositories"), ["lock-file-own"]);
    let remove = site.test().user("ann").program("/bin/rm").args(["-f", "/run/rungate/@20-cad/seats.lock"]);
    assert_eq!(remove.outcome().ending, Ending::Status(1));
    assert!(lock.exists());
    launch.status(0);

    // A boot makes all of it again. Without a line, the directory would be root's alone, for its lock file.
    let lines = site.path("etc/tmpfiles.d/rungate-repositories.conf");
    let text = fs::read_to_string(&lines).expect("the lines");
    let of_directory = "d /run/rungate/@20-cad 1777 root root -\n";
    assert_eq!(
        text,
        format!(
            "# Written by: rungate init --repositories\nd /run/rungate 1777 root root -\n{of_directory}\
             f /run/rungate/@20-cad/seats.lock 0666 root root -\n"
        )
    );
    fs::create_dir_all(site.path("system-run/systemd/system")).expect("new directories");
    assert_eq!(found("boot"), Vec::<String>::new());
    fs::write(&lines, text.replace(of_directory, "")).expect("the lines");
    assert_eq!(found("boot"), ["boot-directory"]);
    init.clone().stdout("wrote /etc/tmpfiles.d/rungate-repositories.conf\n").status(0);

    // It is made before the first launch, and below a directory that is made right first.
    fs::remove_dir_all(&directory).expect("the directory");
    chown(&base, Some(ann), None).expect("chown");
    init.stdout(
        "
        changed /run/rungate/: root (0), mode 1777; it was ann ([pid]), mode 1777
        made /run/rungate/@20-cad/ (mode 1777)
        made /run/rungate/@20-cad/seats.lock (mode 0666)
        ",
    )
    .status(0);
    assert_eq!((owners(), mode(&directory)), ([0, 0], 0o1777));
}

/// Where `create_mode` is for a group, directories and files keep their group: launches of its members start before
/// and after, and nothing is wrong.
#[test]
fn the_repositories_of_a_group_stay_the_groups() {
    needs_root!();
    let site = Site::new();
    for (user, groups) in [("ann", &["cad"][..]), ("art", &["cad"]), ("dan", &[])] {
        site.account(user, groups);
    }
    site.directory_over_run();
    site.program("matlab");
    site.system_policy(
        "
        version = 1
        defaults.directory   = \"/run/cad\"
        defaults.create_mode = \"0660\"
        [repository.seats]
        limit = 2
        [repository.jobs]
        path  = \"below/jobs.lock\"
        limit = 2
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"seats\", \"jobs\"]
        ",
    );
    let init = site.test().args(["init", "--repositories"]);
    for words in [&["--dry-run"][..], &[]] {
        init.clone()
            .args(words)
            .stderr(
                "
                rungate: /run/cad does not exist, and it is not known for which group it is
                Name the group, then run the same command again: install -d -m 3770 -g GROUP /run/cad
                ",
            )
            .status(74);
    }
    let groups = fs::read_to_string(site.path("etc/group")).expect("the groups");
    let cad = groups.lines().find_map(|line| line.strip_prefix("cad:x:")?.split(':').next()?.parse().ok());
    let cad: u32 = cad.expect("the group");
    let directory = site.path("system-run/cad");
    let [lock, below, job] = ["seats.lock", "below", "below/jobs.lock"].map(|name| directory.join(name));
    fs::create_dir(&directory).expect("a new directory");
    chown(&directory, None, Some(cad)).expect("chown");
    set_mode(&directory, 0o3770);
    fs::create_dir_all(site.path("system-run/systemd/system")).expect("new directories");
    let found = |topic: &str| {
        let all = all_found(&site.test().args(["doctor", topic])).into_iter();
        let wrong = all.filter(|(status, ..)| status == "warning" || status == "fault");
        wrong.map(|(_, code, _)| code).collect::<Vec<String>>()
    };
    let state = || {
        [&directory, &below, &lock, &job].map(|path| {
            let status = fs::metadata(path).expect("it was made");
            (status.uid(), status.gid(), mode(path))
        })
    };
    let well = || {
        assert_eq!(state(), [0o3770, 0o3777, 0o660, 0o660].map(|mode| (0, cad, mode)));
        for (user, status) in [("ann", 0), ("art", 0), ("dan", 74)] {
            let launch = site.test().user(user).args(["run", "--", "matlab"]).stdin("");
            assert_eq!(launch.outcome().ending, Ending::Status(status), "{user}");
        }
        assert_eq!([found("repositories"), found("boot")], [[""; 0]; 2]);
        init.clone().stdout("Nothing to create: all of it exists and belongs to root.\n").status(0);
    };
    assert_eq!(found("repositories"), ["lock-file-missing"]);
    init.clone()
        .stdout(
            "
            made /run/cad/below/ (mode 3777)
            made /run/cad/seats.lock (mode 0660)
            made /run/cad/below/jobs.lock (mode 0660)
            wrote /etc/tmpfiles.d/rungate-repositories.conf
            ",
        )
        .status(0);
    let lines = fs::read_to_string(site.path("etc/tmpfiles.d/rungate-repositories.conf")).expect("the lines");
    assert_eq!(
        lines,
        format!(
            "# Written by: rungate init --repositories\n\
             d /run/cad 3770 root {cad} -\nd /run/cad/below 3777 root {cad} -\n\
             f /run/cad/below/jobs.lock 0660 root {cad} -\nf /run/cad/seats.lock 0660 root {cad} -\n"
        )
    );
    well();

    // A member was faster, and owned the file, and a directory.
    fs::remove_file(&lock).expect("the lock file");
    fs::remove_dir_all(&below).expect("the directory");
    site.test().user("ann").args(["run", "--", "matlab"]).stdin("").status(0);
    assert_eq!(found("repositories"), ["directory-owner", "lock-file-owner", "lock-file-owner"]);
    init.clone()
        .stdout(
            "
            changed /run/cad/below/: root (0), mode 3777; it was ann ([pid]), mode 3777
            changed /run/cad/seats.lock: root (0), mode 0660; it was ann ([pid]), mode 0660
            changed /run/cad/below/jobs.lock: root (0), mode 0660; it was ann ([pid]), mode 0660
            ",
        )
        .status(0);
    well();

    // An earlier version took the group away.
    chown(&lock, None, Some(0)).expect("chown");
    assert_eq!(found("repositories"), ["lock-file-closed"]);
    init.clone()
        .stdout("changed /run/cad/seats.lock: the group of its directory; it was group 0\n")
        .status(0);
    well();
    chown(&directory, None, Some(0)).expect("chown");
    init.clone()
        .stderr("rungate: /run/cad has no group that can use it\n[..] -g GROUP /run/cad\n")
        .status(74);
    chown(&directory, None, Some(cad)).expect("chown");
    well();

    // Members could remove each other's files, and new ones were not the group's.
    set_mode(&directory, 0o770);
    assert_eq!(found("repositories"), ["directory-mode"]);
    let changed = "changed /run/cad/: root (0), mode 3770; it was root (0), mode 0770\n";
    init.clone().stdout(changed).status(0);
    well();

    // A file that one user has alone needs no group.
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let own = policy.replace("[repository.seats]", "[repository.seats]\nper = \"user\"");
    assert_ne!(own, policy);
    site.system_policy(&own);
    set_mode(&directory, 0o1770);
    site.test().user("ann").args(["run", "--", "matlab"]).stdin("").status(0);
    let gids = fs::read_dir(&directory)
        .expect("the directory")
        .map(|entry| entry.and_then(|entry| entry.metadata()));
    assert!(gids.map(|status| status.expect("a file").gid()).any(|gid| gid != cad), "ann has her own group");
    assert_eq!(found("repositories"), ["lock-file-own"]);
}

/// Links and files with a second name are nobody's lock file, and are not given to anybody.
#[test]
fn what_is_no_lock_file_is_not_made_roots() {
    needs_root!();
    let site = bare_system();
    site.system_policy("version = 1\n[repository.seats]\nlimit = 2\n[[rule]]\nacquire = [\"seats\"]\n");
    let directory = site.path("system-run/rungate");
    fs::create_dir(&directory).expect("a new directory");
    set_mode(&directory, 0o1777);
    site.write("work/anns", "");
    let uid = site.user("ann").uid;
    chown(site.path("work/anns"), Some(uid), None).expect("chown");
    let init = site.test().args(["init", "--repositories"]);
    symlink(site.path("work/anns"), directory.join("seats.lock")).expect("a new link");
    init.clone().stderr("...\n[..]seats.lock is a symbolic link[..]\n...\n").status(74);
    fs::remove_file(directory.join("seats.lock")).expect("a link");
    fs::hard_link(site.path("work/anns"), directory.join("seats.lock")).expect("a second name");
    init.stderr("...\n[..]seats.lock has 2 names[..]\n...\n").status(74);
    assert_eq!(fs::metadata(site.path("work/anns")).expect("ann's file").uid(), uid);

    let ann = site.test().user("ann").args(["init", "--repositories"]);
    ann.stderr(
        "
        rungate: only root can create files of root
        Repositories of your own policy are created when they are first used.
        ",
    )
    .status(71);
}

/// Below a directory of a group, a member can replace the directory by a link: what that leads to stays as it
/// is.
#[test]
fn what_another_user_can_put_a_link_to_is_not_made_roots() {
    needs_root!();
    let site = bare_system();
    site.system_policy(
        "
        version = 1
        defaults.directory = \"$DIR/project/locks\"
        [repository.seats]
        limit = 2
        [[rule]]
        acquire = [\"seats\"]
        ",
    );
    let (project, secret) = (site.path("project"), site.path("secret"));
    for directory in [&project, &secret] {
        fs::create_dir(directory).expect("a new directory");
    }
    set_mode(&secret, 0o700);
    chown(&project, None, Some(site.user("ann").gid)).expect("chown");
    set_mode(&project, 0o2775);
    symlink(&secret, project.join("locks")).expect("a new link");
    let init = site.test().args(["init", "--repositories"]);
    let refused = init.clone().stderr(
        "
        rungate: $DIR/project/locks cannot be given to root: $DIR/project: its group can write to it (mode \
         2775); chmod g-w fixes that
        What was created before stays. Correct this, then run the same command again.
        ",
    );
    refused.status(74);
    fs::remove_file(project.join("locks")).expect("the link");
    refused.status(74);
    assert!(!project.join("locks").exists());
    // In a directory like /tmp the link itself is somebody's.
    set_mode(&project, 0o1777);
    symlink(&secret, project.join("locks")).expect("a new link");
    std::os::unix::fs::lchown(project.join("locks"), Some(site.user("ann").uid), None).expect("lchown");
    init.clone()
        .stderr("rungate: $DIR/project/locks cannot be given to root: belongs to ann [..]\n...\n")
        .status(74);
    assert_eq!(mode(&secret), 0o700);
    // A link of root's leads where root wants.
    std::os::unix::fs::lchown(project.join("locks"), Some(0), None).expect("lchown");
    init.stdout("changed $DIR/project/locks/: root (0), mode 1777; it was root (0), mode 0700\n...\n")
        .status(0);
    assert_eq!(mode(&secret), 0o1777);
}

/// Users never get write permission in a directory of root's that has anything but lock files, such as /run: a policy
/// that needs it has to name another directory. The doctor says the same. Lines for systemd-tmpfiles that no policy
/// needs any more are removed.
#[test]
fn a_directory_of_other_programs_stays_roots() {
    needs_root!();
    let site = bare_system();
    let policy = |keys: &str| {
        site.system_policy(&format!(
            "version = 1\n{keys}\n[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n"
        ));
    };
    let init = site.test().args(["init", "--repositories"]);
    let run = site.path("system-run");
    let lines = site.path("etc/tmpfiles.d/rungate-repositories.conf");
    let mends = || {
        let wrong = all_found(&site.test().args(["doctor", "repositories"])).into_iter();
        wrong
            .filter(|(_, code, _)| code == "directory-unusable")
            .flat_map(|(.., fix)| fix)
            .collect::<Vec<_>>()
    };
    let below = |path: &str| [format!("In the policy, name a directory below it, such as {path}/rungate")];
    set_mode(&run, 0o755);
    for keys in [
        "[repository.seats]\nlimit = 1\npath = \"/run/seats-{user}.lock\"",
        "defaults.directory = \"/run\"\n[repository.seats]\nlimit = 1\nper = \"user\"",
    ] {
        policy(keys);
        assert_eq!(mends(), below("/run"));
        for words in [&["--dry-run"][..], &[]] {
            init.clone()
                .args(words)
                .stderr(
                    "
                    rungate: users must not create files in /run: /run belongs to the system
                    What was created before stays.
                    In the policy, name a directory below it, such as /run/rungate
                    ",
                )
                .status(74);
        }
        assert_eq!((mode(&run), lines.exists()), (0o755, false));
    }

    // Root creates the one file that is missing, for which users need no permission.
    policy("[repository.seats]\nlimit = 1\npath = \"/run/seats.lock\"");
    assert_eq!(mends(), ["rungate init --repositories"]);
    init.clone()
        .stdout("made /run/seats.lock (mode 0666)\nwrote /etc/tmpfiles.d/rungate-repositories.conf\n")
        .status(0);
    assert_eq!((mode(&run), mends()), (0o755, Vec::new()));
    site.test().user("ann").args(["run", "--", "matlab"]).stdin("").status(0);

    // A directory with lock files alone is for them.
    policy("defaults.directory = \"$DIR/locks\"\n[repository.seats]\nlimit = 1\nper = \"user\"");
    let locks = site.path("locks");
    fs::create_dir(&locks).expect("a new directory");
    fs::write(locks.join("seats.1000.lock"), "").expect("a file");
    set_mode(&locks, 0o755);
    fs::write(locks.join("precious"), "").expect("a file");
    assert_eq!(mends(), below(&locks.display().to_string()));
    init.clone()
        .stderr(
            "rungate: users must not create files in $DIR/locks: it has precious, which is not a lock file\n...\n",
        )
        .status(74);
    assert_eq!(mode(&locks), 0o755);
    fs::remove_file(locks.join("precious")).expect("a file");
    assert_eq!(mends(), [format!("chmod 1777 {}", locks.display())]);
    init.clone()
        .stdout("changed $DIR/locks/: root (0), mode 1777; it was root (0), mode 0755\n...\n")
        .status(0);
    assert_eq!((mode(&locks), mends()), (0o1777, Vec::new()));

    policy("[repository.seats]\nlimit = 1\nkeeper = \"agent\"");
    site.write(
        "etc/tmpfiles.d/rungate-repositories.conf",
        "# Written by: rungate init --repositories\nd /run 1777\n",
    );
    init.clone()
        .args(["--dry-run"])
        .stdout("would remove /etc/tmpfiles.d/rungate-repositories.conf\n")
        .status(0);
    assert!(lines.exists());
    init.stdout("removed /etc/tmpfiles.d/rungate-repositories.conf\n").status(0);
    assert!(!lines.exists());
}

/// A directory of a user's that has anything but lock files stays with that user, also where root would create the one
/// lock file. The doctor says the same.
#[test]
fn a_directory_of_a_user_is_taken_only_for_lock_files() {
    needs_root!();
    let site = bare_system();
    let ann = site.user("ann").uid;
    let home = site.path("home");
    fs::create_dir(&home).expect("a new directory");
    fs::write(home.join("notes"), "").expect("a file");
    set_mode(&home, 0o755);
    chown(&home, Some(ann), None).expect("chown");
    let init = site.test().args(["init", "--repositories"]);
    let mends = || {
        let wrong = all_found(&site.test().args(["doctor", "repositories"])).into_iter();
        let wrong = wrong.filter(|(_, code, _)| code.starts_with("directory-"));
        wrong.flat_map(|(.., fix)| fix).collect::<BTreeSet<_>>()
    };
    let policy = |name: &str| {
        site.system_policy(&format!(
            "version = 1\n[repository.seats]\nlimit = 1\npath = \"$DIR/home/{name}\"\n[[rule]]\nacquire = [\"seats\"]\n"
        ));
    };
    for name in ["seats-{user}.lock", "seats.lock"] {
        policy(name);
        for words in [&["--dry-run"][..], &[]] {
            init.clone()
                .args(words)
                .stderr(
                    "
                    rungate: $DIR/home stays with its owner, ann ([pid]): it has notes, which is not a lock file
                    What was created before stays.
                    In the policy, name another directory, such as /run/rungate
                    ",
                )
                .status(74);
        }
        assert_eq!((mode(&home), fs::metadata(&home).expect("the directory").uid()), (0o755, ann));
        let expected = "In the policy, name another directory, such as /run/rungate".to_owned();
        assert_eq!(mends(), BTreeSet::from([expected]), "{name}");
    }
    fs::remove_file(home.join("notes")).expect("the file");
    let expected = [format!("chown -h root {}", home.display()), "rungate init --repositories".to_owned()];
    assert_eq!(mends(), BTreeSet::from(expected));
    init.stdout("changed $DIR/home/: root (0), mode 0755; it was ann ([pid]), mode 0755\n...\n").status(0);
    assert_eq!(mends(), BTreeSet::new());
}

/// Lock files are known by the names that the policy gives to them, also without the ending .lock and in the directories
/// of members. A name without any text of its own may be that of any file.
#[test]
fn lock_files_are_known_by_their_names() {
    needs_root!();
    let site = bare_system();
    let init = site.test().args(["init", "--repositories"]);
    let cases = [
        ("seats.{user}", "seats.ann", None),
        ("{host}/m-{user}.txt", "vm/m-ann.txt", None),
        ("{host}/m-{user}.txt", "vm/precious", Some("vm/precious")),
        ("{host}/m-{user}.txt", "vm/m-ann.txt/precious", Some("vm/m-ann.txt")),
        ("{user}", "ann", Some("ann")),
    ];
    for (at, (name, file, other)) in cases.into_iter().enumerate() {
        let directory = site.path(format!("locks{at}"));
        site.system_policy(&format!(
            "version = 1\n[repository.seats]\nlimit = 1\npath = \"$DIR/locks{at}/{name}\"\n[[rule]]\nacquire = [\"seats\"]\n"
        ));
        let file = directory.join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("new directories");
        fs::write(&file, "").expect("a file");
        set_mode(&directory, 0o755);
        match other {
            None => init
                .clone()
                .stdout(&format!("changed $DIR/locks{at}/: root (0), mode 1777; it was root (0), mode 0755\n...\n"))
                .status(0),
            Some(other) => init
                .clone()
                .stderr(&format!(
                    "rungate: users must not create files in $DIR/locks{at}: it has {other}, which is not a lock file\n...\n"
                ))
                .status(74),
        }
    }
}

/// A place below a directory that users cannot reach is no advice, neither init's nor the doctor's.
#[test]
fn the_advice_for_another_directory_is_a_place_that_users_reach() {
    needs_root!();
    let site = bare_system();
    site.system_policy(
        "version = 1\n[repository.seats]\nlimit = 1\npath = \"$DIR/private/seats.lock\"\n[[rule]]\nacquire = [\"seats\"]\n",
    );
    fs::create_dir(site.path("private")).expect("a new directory");
    fs::write(site.path("private/precious"), "").expect("a file");
    set_mode(&site.path("private"), 0o700);
    let advice = "In the policy, name another directory, such as /run/rungate";
    let expected = format!("...\nWhat was created before stays.\n{advice}\n");
    site.test().args(["init", "--repositories"]).stderr(&expected).status(74);
    let found = all_found(&site.test().args(["doctor", "repositories"])).into_iter();
    let mends: Vec<String> =
        found.filter(|(_, code, _)| code == "directory-closed").flat_map(|(.., fix)| fix).collect();
    assert_eq!(mends, [advice]);
}

/// `--for` writes the example policy of a place as it is, or for root with the repositories of the host, and names three
/// commands to try.
#[test]
fn a_policy_for_a_place() {
    needs_root!();
    let site = bare_system();
    let made = |text: &str| text.lines().filter(|line| line.starts_with("  ")).count();
    for place in ["agents", "gpu", "licences", "cron", "ci"] {
        let outcome = site.test().user("ann").args(["init", "--for", place]).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{place}: {}", outcome.stderr);
        assert_eq!(made(&outcome.stdout), 3, "{place}: {}", outcome.stdout);
        site.test().user("ann").args(["policy", "check"]).stdout("[..] passed\n").stderr("...").status(0);
        let uid = site.user("ann").uid;
        fs::remove_dir_all(site.path(format!("config/{uid}/rungate"))).expect("what was made");
    }
    let outcome = site.test().args(["init", "--for", "agents"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("made /run/rungate/builds.lock (mode 0666)\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("rungate shim install /etc/rungate/shims"), "{}", outcome.stdout);
    site.test().args(["policy", "check"]).stdout("[..] passed\n").stderr("...").status(0);
}
