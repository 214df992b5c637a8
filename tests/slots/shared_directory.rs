//! A system policy with its default modes serves users who share nothing but a sticky directory, whatever the
//! kernel's `fs.protected_regular` makes of files there that belong to others.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::support::{Account, Site, alone_with_the_machine, needs_root, set_mode, skip};

const PROTECTED_REGULAR: &str = "/proc/sys/fs/protected_regular";

const SEATS: &str = r#"
    [repository.seats]
    limit = 2

    [repository.seats-per-user]
    per   = "user"
    limit = 1

    [[rule]]
    name     = "seats"
    commands = ["matlab"]
    acquire  = ["seats", "seats-per-user"]
"#;

/// The setting of the whole machine, which is put back when the test is over.
struct ProtectedRegular(String);

impl ProtectedRegular {
    fn read() -> Self {
        Self(fs::read_to_string(PROTECTED_REGULAR).expect("the kernel has this setting since 4.19"))
    }
}

impl Drop for ProtectedRegular {
    fn drop(&mut self) {
        let _ = fs::write(PROTECTED_REGULAR, &self.0);
    }
}

#[test]
fn two_users_share_a_repository_in_a_sticky_directory() {
    needs_root!();
    let _alone = alone_with_the_machine();
    let _before = ProtectedRegular::read();
    for value in ["0", "1", "2"] {
        if let Err(error) = fs::write(PROTECTED_REGULAR, value) {
            return skip(&format!("{PROTECTED_REGULAR} cannot be set: {error}"));
        }
        let site = Site::new();
        site.system_policy(SEATS);
        site.program("matlab");
        let matlab = |user| site.test().user(user).groups([]).args(["run", "--", "matlab"]);
        // Each of them creates files that the other one then uses.
        let games = matlab("games").spawn();
        let backup = matlab("backup").spawn();
        matlab("www-data")
            .stderr("rungate: matlab: not started: [..]\n  seats [..]2 of 2[..]\n...\n")
            .status(75);
        drop(games);
        matlab("games").status(0);
        drop(backup);
        matlab("www-data").status(0);

        let created = fs::metadata(site.repository("seats.lock")).expect("the repository");
        assert_eq!(created.permissions().mode() & 0o7777, 0o666, "\"exactly, whatever the umask\"");
        assert_eq!(created.uid(), Account::named("games").uid, "who came first");
    }
}

/// Where the directory is sticky and world-writable, a `{uid}` or `{user}` repository must belong to that
/// user.
#[test]
fn a_file_for_one_user_that_another_one_made_is_refused() {
    needs_root!();
    let site = Site::new();
    site.system_policy(SEATS);
    site.program("matlab");
    let games = Account::named("games");
    let file = format!("seats-per-user.{}.lock", games.uid);
    site.test().user("backup").program("/bin/touch").args([&format!("$DIR/repositories/{file}")]).status(0);
    set_mode(&site.repository(&file), 0o666);
    site.test()
        .user("games")
        .args(["run", "--", "matlab"])
        .stderr(&format!("rungate: [..]$DIR/repositories/{file}[..] belongs to backup (34)[..]\n...\n"))
        .status(74);
    assert_eq!(site.held("seats.lock"), []);
}

/// In a directory that only root can write to, the file of a user may be root's: an administrator has made it there.
#[test]
fn a_file_for_one_user_that_root_made_in_its_own_directory_is_used() {
    needs_root!();
    let site = Site::new();
    site.system_policy(SEATS);
    site.program("matlab");
    let file = format!("seats-per-user.{}.lock", Account::named("games").uid);
    for name in ["seats.lock", &file] {
        site.write(format!("repositories/{name}"), "");
        set_mode(&site.repository(name), 0o666);
    }
    let matlab = site.test().user("games").args(["run", "--", "matlab"]);
    // In a directory for all users every user could have made it, and could block games.
    matlab
        .clone()
        .stderr(&format!("rungate: [..]$DIR/repositories/{file} belongs to root[..]\n...\n"))
        .status(74);
    set_mode(&site.repository(""), 0o755);
    matlab.status(0);
}
