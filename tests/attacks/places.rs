//! What another user may have put where a repository belongs: in a sticky directory that everybody can write to, whatever
//! `fs.protected_regular` says. The launch is refused with the reason, and nothing that belongs to anybody is touched.

use std::fs;

use crate::support::{Account, Site, needs_root, set_mode, skip};

const SEATS: &str = r#"
    [repository.seats]
    limit = 2

    [[rule]]
    name     = "seats"
    commands = ["matlab"]
    acquire  = ["seats"]
"#;

const PROTECTED_REGULAR: &str = "/proc/sys/fs/protected_regular";

/// The setting of the whole machine, which is put back when the test is over.
struct ProtectedRegular(String);

impl Drop for ProtectedRegular {
    fn drop(&mut self) {
        let _ = fs::write(PROTECTED_REGULAR, &self.0);
    }
}

/// "`O_NOFOLLOW`, close-on-exec, never block on a FIFO; `fstat`: regular file, one link."
#[test]
fn traps_of_another_user_in_a_sticky_directory() {
    needs_root!();
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
            site.system_policy(SEATS);
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

/// A directory of another user in the place of one's own under `/tmp` is not used: "a private directory of the caller under
/// `/tmp`, its owner checked".
#[test]
fn a_private_directory_that_somebody_else_made() {
    needs_root!();
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
        assert_eq!(outcome.ending, crate::support::Ending::Status(74), "{trap}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&path), "{trap}: {}", outcome.stderr);
    }
}

/// Whoever can write to the file can truncate it, fill it and forge every record: nobody is let in for that, and nobody is
/// ended. "A record alone, which whoever can open the file can forge, ends nobody."
#[test]
fn forged_records_admit_and_end_nobody() {
    needs_root!();
    let site = Site::new();
    site.system_policy(&SEATS.replace("limit = 2", "limit = 1\nexpire_after = \"1s\""));
    site.program("matlab");
    let holder = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let innocent = site.test().user("games").program("/bin/cat").spawn();
    let forged = format!(
        "printf '%-255s\\n' '{{\"pid\":{0},\"start\":0,\"uid\":5,\"since\":1,\"hold\":\"descriptor\",\"boot\":\"\",\
         \"host\":\"\",\"rule\":\"\",\"command\":\"\",\"taken\":1,\"supervisor\":{0}}}' | dd of=seats.lock bs=1 seek=8192 conv=notrunc 2>/dev/null",
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
