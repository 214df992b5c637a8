//! What another user may have put where a repository belongs, or on the way to it: in a sticky directory that
//! everybody can write to, whatever `fs.protected_regular` says. The launch is refused with the reason, and
//! nothing that belongs to anybody is touched.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use serde_json::{Value, json};

use super::overdue::forge;
use crate::support::{
    Account, Ending, Site, alone_with_the_machine, eventually, needs_root, seats, set_mode, skip, start_of,
};

const PROTECTED_REGULAR: &str = "/proc/sys/fs/protected_regular";

/// The setting of the whole machine, which is put back when the test is over.
struct ProtectedRegular(String);

impl Drop for ProtectedRegular {
    fn drop(&mut self) {
        let _ = fs::write(PROTECTED_REGULAR, &self.0);
    }
}

/// `O_NOFOLLOW`, close-on-exec, never block on a FIFO; `fstat`: regular file, one link.
#[test]
fn traps_of_another_user_in_a_sticky_directory() {
    needs_root!();
    let _alone = alone_with_the_machine();
    let before = fs::read_to_string(PROTECTED_REGULAR).expect("the kernel has this setting since 4.19");
    let _before = ProtectedRegular(before);
    for value in ["0", "1", "2"] {
        if let Err(error) = fs::write(PROTECTED_REGULAR, value) {
            return skip(&format!("{PROTECTED_REGULAR} cannot be set: {error}"));
        }
        for (trap, words) in [
            ("ln -s ../work/precious seats.lock", "symbolic link"),
            ("ln -s nowhere seats.lock", "symbolic link"),
            ("echo other > other; chmod 666 other; ln other seats.lock", "2 names (hard links)"),
            ("mkfifo -m 666 seats.lock", "FIFO"),
            ("mkdir -m 777 seats.lock", "directory"),
        ] {
            let site = Site::new();
            site.system_policy(&seats(2, "", &["matlab"]));
            site.program("matlab");
            site.write("work/precious", "of games\n");
            let games = Account::named("games");
            std::os::unix::fs::chown(site.path("work/precious"), Some(games.uid), None).expect("chown");
            site.test()
                .user("backup")
                .program("/bin/sh")
                .directory("repositories")
                .args(["-c", trap])
                .status(0);
            site.test()
                .user("games")
                .args(["run", "--", "matlab"])
                .stderr(&format!("rungate: [..]$DIR/repositories/seats.lock[..]{words}[..]\n...\n"))
                .status(74);
            let precious = fs::read_to_string(site.path("work/precious")).expect("it is still there");
            assert_eq!(precious, "of games\n", "{trap}");
            assert!(!site.repository("nowhere").exists(), "{trap}");
        }
    }
}

const PROJECTS: &str = r#"
    [repository.projects]
    path  = "projects/{command}"
    limit = 2

    [repository.fixed]
    path  = "projects/of/precious"
    limit = 2

    [[rule]]
    name     = "projects"
    commands = ["precious", "missing"]
    acquire  = ["projects"]
"#;

/// Has a user run a command in the directory of the repositories.
fn prepare(site: &Site, user: &str, command: &str) {
    let shell = site.test().user(user).program("/bin/sh").directory("repositories");
    shell.args(["-c", &site.expand(command)]).status(0);
}

/// A site where a directory of root's holds a file that a launch of `precious` would lead to.
fn site_beside_a_treasure() -> Site {
    let site = Site::new();
    site.system_policy(PROJECTS);
    site.program("precious");
    site.program("missing");
    fs::create_dir(site.path("treasure")).expect("a directory");
    site.write("treasure/precious", "of root\n");
    site
}

#[track_caller]
fn is_untouched(site: &Site) {
    assert_eq!(fs::read_to_string(site.path("treasure/precious")).expect("it is there"), "of root\n");
    assert!(!site.path("treasure/missing").exists(), "a file was created");
}

/// A link is followed only where root or the file's rightful user made it. A user linked `projects`
/// elsewhere before the first launch, and root's launch overwrote a file of root's there and created others
/// with mode 0666.
#[test]
fn a_link_on_the_way_that_another_user_made() {
    needs_root!();
    let site = site_beside_a_treasure();
    let refused =
        "rungate: [..]$DIR/repositories/projects: belongs to backup (34), neither to root nor to you\n...\n";
    for link in ["$DIR/treasure", "../treasure", "../repositories/../treasure"] {
        prepare(&site, "backup", &format!("ln -s {link} projects"));
        for command in ["precious", "missing"] {
            for user in ["root", "games", "backup"] {
                let launch = site.test().user(user).args(["run", "--wait", "1m", "--", command]);
                let refused =
                    refused.replace("backup (34)", if user == "root" { "backup (34)" } else { "[..]" });
                launch.stderr(&refused).status(74);
                is_untouched(&site);
            }
        }
        // Whoever only looks is not led astray either.
        for look in [["list", "fixed"], ["reset", "fixed"], ["status", "fixed"]] {
            let outcome = site.test().args(look).outcome();
            let told = outcome.stdout + &outcome.stderr;
            assert!(told.contains("projects: belongs to backup"), "{look:?}: {told}");
        }
        let list = site.test().args(["list", "projects"]);
        list.stdout("None of them has been used yet.\n").status(0);
        is_untouched(&site);
        prepare(&site, "backup", "rm projects");
    }
    // One of root's is there for a reason.
    std::os::unix::fs::symlink(site.path("elsewhere"), site.repository("projects")).expect("a link");
    fs::create_dir(site.path("elsewhere")).expect("a directory");
    set_mode(&site.path("elsewhere"), 0o1777);
    site.test().user("games").args(["run", "--", "precious"]).status(0);
    assert!(site.path("elsewhere/precious").exists());
}

/// No directory is used that somebody else owns or can write to, unless it is sticky and for everybody, and
/// then the file of one user must be that user's.
#[test]
fn a_directory_on_the_way_that_another_user_made() {
    needs_root!();
    let games = Account::named("games").uid;
    for (directory, words) in [
        (
            format!("mkdir -m 755 people; : > people/{games}; chmod 666 people/{games}"),
            "belongs to backup (34), neither",
        ),
        (
            format!("mkdir -m 777 people; : > people/{games}; chmod 666 people/{games}"),
            "belongs to backup (34), neither",
        ),
        ("mkdir -m 777 people".to_owned(), "belongs to backup (34), neither"),
        (
            format!("mkdir -m 1777 people; : > people/{games}; chmod 666 people/{games}"),
            "it counts for games",
        ),
    ] {
        let site = Site::new();
        site.system_policy(&seats(2, "path = \"people/{uid}\"", &["matlab"]));
        site.program("matlab");
        prepare(&site, "backup", &directory);
        let before = fs::read_dir(site.repository("people")).expect("a directory").count();
        let launch = site.test().user("games").args(["run", "--", "matlab"]);
        launch.stderr(&format!("rungate: [..]people[..]{words}[..]\n...\n")).status(74);
        assert_eq!(
            fs::read_dir(site.repository("people")).expect("a directory").count(),
            before,
            "{directory}"
        );
    }
    // The directory of whoever comes first is for all, and is used by all.
    let site = Site::new();
    site.system_policy(&seats(2, "path = \"people/{uid}\"", &["matlab"]));
    site.program("matlab");
    for user in ["backup", "games", "root"] {
        site.test().user(user).args(["run", "--", "matlab"]).status(0);
    }
    let people = fs::metadata(site.repository("people")).expect("a directory");
    assert_eq!((people.uid(), people.permissions().mode() & 0o7777), (34, 0o1777));
    // But not when the others can put something in the place of what is there.
    set_mode(&site.repository("people"), 0o777);
    let launch = site.test().user("games").args(["run", "--", "matlab"]);
    launch.stderr("rungate: [..]people[..]belongs to backup (34)[..]\n...\n").status(74);
}

/// A directory of another user in the place of one's own under `/tmp` is not used: a private directory of
/// the caller under `/tmp`, its owner checked.
#[test]
fn a_private_directory_that_somebody_else_made() {
    needs_root!();
    let _alone = alone_with_the_machine();
    let site = Site::new();
    let games = Account::named("games");
    for trap in ["mkdir -m 777", "ln -s $DIR/work"] {
        let path = format!("/tmp/rungate-{}", games.uid);
        if fs::symlink_metadata(&path).is_ok() {
            return skip(&format!("{path} is in use"));
        }
        let set = site.expand(&format!("{trap} {path}"));
        site.test().user("backup").program("/bin/sh").args(["-c", &set]).status(0);
        let refused = site.test().user("games").env_remove("XDG_RUNTIME_DIR");
        let outcome = refused.args(["run", "--limit", "1", "--", "true"]).outcome();
        let _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
        assert_eq!(outcome.ending, Ending::Status(74), "{trap}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&path), "{trap}: {}", outcome.stderr);
    }
}

/// A record of the first process hides no program that runs past rungate, although all processes are below it.
#[test]
fn a_record_of_the_first_process_hides_no_program() {
    needs_root!();
    let site = Site::new();
    let outside = "outside = { command = [\"$DIR/lib/rungate/outside/processes\", \"seats\"], counts = \"others\", of = \"host\" }";
    site.system_policy(&seats(2, outside, &["$DIR/bin/matlab"]));
    site.rungate_in_bin();
    site.program("matlab");
    let command = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/outside/processes"));
    fs::create_dir_all(site.path("lib/rungate/outside")).expect("a new directory");
    fs::write(site.path("lib/rungate/outside/processes"), command.expect("the measuring command"))
        .expect("a file");
    set_mode(&site.path("lib/rungate/outside/processes"), 0o755);
    site.test().args(["measure"]).status(0);
    let matlab = ["run", "--hold", "supervisor", "--", "$DIR/bin/matlab"];
    let _holder = site.test().user("games").args(matlab).spawn();
    forge(&site, |record| {
        record["pid"] = json!(1);
        record["start"] = json!(start_of(1));
        record["hold"] = json!("descriptor");
        record["supervisor"] = Value::Null;
    });
    let _past = site.test().user("games").program(site.path("bin/matlab")).spawn();
    let list = site.test().args(["list", "seats"]);
    eventually("it is seen", || {
        site.test().args(["measure"]).status(0);
        list.outcome().stdout.contains("1 in use outside rungate").then_some(())
    });
}

/// Whoever can write to the file can truncate it, fill it and forge every record: nobody is let in for that,
/// and nobody is ended. A record alone, which whoever can open the file can forge, ends nobody.
#[test]
fn forged_records_admit_and_end_nobody() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&seats(1, "expire_after = \"1h\"", &["matlab"]));
    site.program("matlab");
    let holder = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let innocent = site.test().user("games").program("/bin/cat").spawn();
    let forged = format!(
        "printf '%-255s\\n' '{{\"pid\":{0},\"start\":0,\"uid\":5,\"since\":1,\"hold\":\"descriptor\",\"boot\":\"\",\
         \"host\":\"\",\"rule\":\"\",\"command\":\"\",\"taken\":1,\"supervisor\":{0}}}' | dd of=seats.lock bs=1 seek=8192 conv=notrunc,nocreat 2>/dev/null",
        innocent.pid()
    );
    site.test().user("backup").program("/bin/sh").directory("repositories").args(["-c", &forged]).status(0);
    site.test()
        .user("backup")
        .args(["run", "--", "matlab"])
        .stderr("rungate: matlab: not started: [..]\n...\n")
        .status(75);
    assert_eq!(site.held("seats.lock").len(), 1);
    drop((holder, innocent));
    set_mode(&site.repository("seats.lock"), 0o666);
}

/// A record can name an ancestor of each process, which nobody but root may look at. That refuses no launch as
/// one that would wait for itself.
#[test]
fn a_record_of_the_first_process_ends_no_wait() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&seats(1, "", &["matlab"]));
    site.program("matlab");
    let holder = site.test().user("games").args(["run", "--hold", "supervisor", "--", "matlab"]).spawn();
    forge(&site, |record| {
        record["pid"] = json!(1);
        record["start"] = json!(start_of(1));
        record["hold"] = json!("descriptor");
        record["supervisor"] = Value::Null;
    });
    let mut waiter =
        site.test().user("backup").args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &waiter);
    holder.kill();
    waiter.wait_for_echo();
}
