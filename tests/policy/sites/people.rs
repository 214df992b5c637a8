//! Who may have more than others, less, or nothing: by name, by group, by the hour, by the host.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{changed, denied, full, run, site, site_with, spawn};
use crate::support::{eventually, needs_root};

#[test]
fn power_users() {
    needs_root!();
    let people: [(&str, &[&str]); 6] = [
        ("ann", &["users"]),
        ("pia", &["power"]),
        ("bob", &[]),
        ("eve", &[]),
        ("adm", &["sudo"]),
        ("svc-render", &[]),
    ];
    let site = site("power-users.toml", &people, &["viewer"]);
    let viewer = |user| run(&site, user, &["viewer"]);
    // "A person has one, a power user three (the group power, and bob who is not in it)."
    let _ann = viewer("ann").spawn();
    full(&viewer("ann"), &[("sessions-per-user [ann]", "1 of 1")]);
    let mut pia = spawn(&viewer("pia"), 3);
    full(&viewer("pia"), &[("sessions-per-user [pia]", "3 of 3 used (limit of @power)")]);
    let _bob = spawn(&viewer("bob"), 2);
    full(&viewer("bob"), &[("sessions", "6 of 6")]);
    full(&viewer("eve"), &[("sessions", "6 of 6")]);
    // "Administrators start as many as they like and take none."
    let _administrators = [spawn(&viewer("adm"), 2), spawn(&viewer("root"), 2)];
    assert_eq!(site.held_numbers("sessions.lock").len(), 6);
    // "Service accounts are counted, but never refused … `rungate status` (7 of 6), and people wait until it
    // is released."
    let service = viewer("svc-render").spawn();
    assert_eq!(site.held_numbers("sessions.lock").len(), 7);
    site.test()
        .args(["status", "sessions"])
        .stdout("REPOSITORY[..]\nsessions[gap]7[gap]6[gap][..]\n")
        .status(0);
    pia.remove(0).kill();
    full(&viewer("eve"), &[("sessions", "6 of 6")]);
    drop(service);
    viewer("eve").status(0);
}

const DAY: &str = "\"Mon-Fri 08:00-18:00\"";
const NIGHT: &str = "\"Mon-Thu 18:00-08:00\", \"Fri 18:00..Mon 08:00\"";

#[test]
fn office_hours_by_day() {
    needs_root!();
    let policy = changed("office-hours.toml", DAY, "\"00:00-24:00\"").replace(NIGHT, "\"2000-01-01\"");
    let people: [(&str, &[&str]); 3] = [("ann", &[]), ("pia", &["cad"]), ("bob", &[])];
    let site = site_with(&policy, &people, &["simulate", "simulate-batch"]);
    let simulate = |user| run(&site, user, &["simulate"]);
    // "A fifth of them is kept for the designers and two for the screens of the meeting rooms."
    site.test()
        .args(["list", "simulator"])
        .stdout("simulator: 0 of 20 used, 4 kept for %cad, 2 kept for meeting*\n")
        .status(0);
    // "By day a person has two, a designer four."
    let _ann = spawn(&simulate("ann"), 2);
    full(&simulate("ann"), &[("simulator-per-user [ann]", "2 of 2")]);
    let mut designer = spawn(&simulate("pia"), 4);
    full(&simulate("pia"), &[("simulator-per-user [pia]", "4 of 4 used (limit of %cad)")]);
    // Hers are those that were kept for her: as many are left for others as before.
    site.test()
        .args(["list", "simulator"])
        .stdout("simulator: 6 of 20 used, 2 kept for meeting*\n...\n")
        .status(0);
    let _room = run(&site, "bob", &["simulate"]).host("meeting2").spawn();
    assert_eq!(site.held_numbers("simulator.lock"), [1, 2, 3, 4, 5, 7, 8]);
    designer.clear();
}

#[test]
fn office_hours_by_night() {
    needs_root!();
    let policy = changed("office-hours.toml", DAY, "\"2000-01-01\"").replace(NIGHT, "\"00:00-24:00\"");
    let site = site_with(&policy, &[("ann", &[]), ("bob", &[])], &["simulate", "simulate-batch"]);
    // "Whoever is still there has eight."
    let _ann = spawn(&run(&site, "ann", &["simulate"]), 8);
    let eight = "8 of 8 used (limit of this hour)";
    full(&run(&site, "ann", &["simulate"]), &[("simulator-per-user [ann]", eight)]);
    // "A batch run leaves a third of the licences free, at any hour."
    let batch = run(&site, "bob", &["simulate-batch"]);
    let _bob = spawn(&batch, 5);
    full(&batch, &[("simulator", "13 of 13")]);
    site.test().args(["list", "simulator"]).stdout("simulator: 13 of 20 used\n...\n").status(0);
}

/// In the evening and at the weekend the lab is theirs. By day it is in `policies.rs`.
#[test]
fn student_lab_by_night() {
    needs_root!();
    let policy = changed("student-lab.toml", "\"Mon-Fri 08:00-18:00\"", "\"2000-01-01\"");
    let site = site_with(&policy, &[("stu1", &["students"]), ("stu2", &["students"])], &["spss"]);
    let spss = |user| run(&site, user, &["spss"]);
    let _running = [spawn(&spss("stu1"), 3), spawn(&spss("stu2"), 2)];
    full(&spss("stu2"), &[("spss", "5 of 5")]);
}

#[test]
fn ssh_sessions() {
    needs_root!();
    let site = site("ssh-sessions.toml", &[("ann", &[]), ("bob", &[])], &["shell"]);
    // As sshd does it: the line of the comment, in a shell of the user's.
    let comment = super::shared("ssh-sessions.toml");
    let line = comment
        .lines()
        .find_map(|line| line.split_once("ForceCommand rungate "))
        .expect("the line for sshd")
        .1;
    let forced = format!("exec {} {line}", site.rungate().display());
    let session = |user: &str, command: Option<&str>| {
        let test =
            site.test().program("/bin/sh").args(["-c", &forced]).user(user).env("SHELL", "$DIR/bin/shell");
        command.into_iter().fold(test, |test, command| test.env("SSH_ORIGINAL_COMMAND", command))
    };
    let _three = [
        session("ann", None).spawn(),
        session("ann", Some("cat")).spawn(),
        session("ann", Some("printf '%s' \"\"; cat -- - | cat")).spawn(),
    ];
    // "The user reads the refusal where they would have seen their prompt."
    session("ann", None)
        .stderr(
            "
            rungate: ssh-session: not started: [..]
              ssh-sessions [ann]  3 of 3 used
            ...
            You have three sessions here. To see them: who. To end them all: pkill -u $USER sshd
            ...
            ",
        )
        .status(75);
    // Nobody can type anything there, except what they ask sshd for by another name.
    let sshd = |line: &str| {
        site.script("sshd", &format!("#!/bin/sh\n{line}\nexit $?\n"));
        let outcome = site.test().program(site.path("bin/sshd")).user("ann").outcome();
        assert!(outcome.stderr.contains("\nClose one of yours, or "), "{outcome:?}");
        outcome.stderr.contains("--wait")
    };
    let rungate = site.rungate().display().to_string();
    assert!(!sshd(&format!("{rungate} {line}")), "it suggests what nobody can give");
    site.program("ssh-session");
    assert!(sshd(&format!("{rungate} run -- ssh-session")), "it suggests nothing to whoever can type");
    // "Three for each user, ten for the account that copies the backups, and no limit for root."
    let _others = [spawn(&session("bob", None), 3), spawn(&session("backup", Some("cat")), 10)];
    for user in ["bob", "backup"] {
        session(user, None).stderr("rungate: ssh-session: not started: [..]\n...\n").status(75);
    }
    let _root = spawn(&session("root", None), 4);
    // "Frees the slot when the session ends, though it may leave a daemon behind."
    let site = super::site("ssh-sessions.toml", &[("ann", &[])], &[]);
    let outcome = site
        .test()
        .program("/bin/sh")
        .args(["-c", &forced])
        .user("ann")
        .env("SSH_ORIGINAL_COMMAND", "sleep 600 >/dev/null 2>&1 & echo $!")
        .outcome();
    let daemon: i32 = outcome.stdout.trim().parse().unwrap_or_else(|_| panic!("{outcome:?}"));
    eventually("the daemon is what it is to be", || {
        let name = fs::read_to_string(format!("/proc/{daemon}/comm")).expect("the daemon still runs");
        (name == "sleep\n").then_some(())
    });
    kill(Pid::from_raw(daemon), Signal::SIGKILL).expect("the daemon still runs");
    let files = fs::read_dir(site.path("repositories")).expect("the repositories");
    let files: Vec<String> =
        files.map(|file| file.expect("an entry").file_name().into_string().expect("a plain name")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(site.held_numbers(&files[0]), [] as [i64; 0]);
}

#[test]
fn one_per_user() {
    needs_root!();
    let site = site("one-per-user.toml", &[("ann", &[]), ("bob", &[])], &["firefox", "libreoffice"]);
    // It starts itself again, out of the way of whoever started it.
    site.script("thunderbird", "#!/bin/sh\nexec 3<&0\ncat <&3 &\n");
    let start = |user, command: &[&str]| run(&site, user, command);
    let firefox = start("ann", &["firefox"]).spawn();
    full(&start("ann", &["firefox", "--private-window"]), &[("desktop [ann, firefox]", "1 of 1")]);
    // "Somebody else's are no matter, and neither is another program of one's own."
    let _bob = start("bob", &["firefox"]).spawn();
    let _office = start("ann", &["libreoffice", "--writer"]).spawn();
    // "A link that is handed to the browser that runs already is no second browser."
    start("ann", &["firefox", "https://example.org/"]).status(0);
    drop(firefox);
    eventually("its slot is free", || start("ann", &["firefox"]).outcome().stderr.is_empty().then_some(()));
    // "Such programs start themselves again, and end, to get out of the terminal's way."
    let mut mail = start("ann", &["thunderbird"]).background();
    mail.wait_for_echo();
    full(&start("ann", &["thunderbird"]), &[("desktop [ann, thunderbird]", "1 of 1")]);
}

#[test]
fn export_control() {
    needs_root!();
    let people: [(&str, &[&str]); 4] = [
        ("ann", &["contractors"]),
        ("bob", &["contractors"]),
        ("cal", &["contractors"]),
        ("eve", &["users"]),
    ];
    let site = site("export-control.toml", &people, &["virtuoso", "gedit"]);
    std::os::unix::fs::symlink(site.path("bin/virtuoso"), site.path("bin/vi2")).expect("a link");
    let start = |user, host: &str, program| run(&site, user, &[program]).host(host);
    // "Except two of them, by name, and only on the one host that stands in a locked room."
    for (user, host, may) in [
        ("ann", "cage1", true),
        ("bob", "cage1.example.org", true),
        ("cal", "cage1", false),
        ("ann", "cage2", false),
        ("bob", "ws3", false),
        ("eve", "ws3", true),
    ] {
        for program in ["virtuoso", "vi2"] {
            let start = start(user, host, program);
            if may { start.status(0) } else { denied(&start, "contractors have no layout") }
        }
    }
    start("cal", "ws3", "gedit").status(0);
    // "A look at the file says": the refusal names the group and whom to ask.
    start("cal", "ws3", "virtuoso")
        .stderr(
            "
            rungate: virtuoso: refused: rule \"contractors have no layout\"
              ([..]policy.toml:[..]) matches your group \"contractors\"
            Not covered by our export licence. Ask: export-control@example.org
            ",
        )
        .status(77);
}
