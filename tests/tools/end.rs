//! `rungate end` ends the holders that are named: by process id, by user or by slot. Users end their own, root
//! ends any. A holder is signalled only if the kernel proves that it holds the slot.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use crate::support::{
    Account, Ending, Running, Site, Terminal, Test, eventually, given_time, is_alive, is_over_the_agent,
    listing, needs_root, needs_tmux, start_of,
};

/// Nothing is ever overdue here.
fn site(keys: &str) -> Site {
    let site = Site::with_policy(&format!(
        r#"
        [repository.seats]
        {keys}

        [[rule]]
        name     = "seats"
        commands = ["job"]
        acquire  = ["seats"]
        "#
    ));
    site.program("job");
    site
}

fn job(site: &Site) -> Test {
    site.test().args(["run", "--", "job"]).through(["env", "--default-signal"])
}

fn end(site: &Site, words: &[&str]) -> Test {
    site.test().args(["end"]).args(words)
}

/// The process that `list` shows at a slot.
#[track_caller]
fn listed(site: &Site, slot: u64) -> Option<String> {
    let listed = listing(&site.test());
    let holders = listed[0]["holders"].as_array().expect("holders");
    let holder = holders.iter().find(|holder| holder["slot"] == json!(slot))?;
    holder["pid"].as_i64().map(|pid| pid.to_string())
}

/// The same, once a supervisor has said which process is its program.
#[track_caller]
fn program(site: &Site, launch: &Running, hold: &str) -> String {
    let is_a_child = matches!(hold, "supervisor" | "tree");
    eventually("the program is listed", || {
        listed(site, 1).filter(|pid| is_a_child == (*pid != launch.pid().to_string()))
    })
}

fn ended(pid: &str) -> String {
    format!("rungate: seats: ended PID {pid} (job), with SIGINT\n")
}

/// Also where nothing is ever overdue. By a lock file nobody can tell who holds a slot that is kept by a
/// descriptor.
#[test]
pub(crate) fn a_holder_that_is_named_is_ended() {
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let site = site("limit = 1");
        let holder = site.test().args(["run", "--hold", hold, "--", "job"]);
        let mut holder = holder.through(["env", "--default-signal"]).spawn();
        let pid = program(&site, &holder, hold);
        let end = end(&site, &["--yes", "seats", &pid]);
        if hold == "descriptor" && !is_over_the_agent() {
            end.stderr(&format!(
                "
                rungate: seats: PID {pid} (job) was not ended: nothing proves that it is the job that holds the slot
                  To see who has its file open (as root): fuser -v $DIR/repositories/seats.lock
                "
            ))
            .status(71);
            holder.wait_for_echo();
        } else {
            end.stderr(&ended(&pid)).status(0);
            assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
            assert_eq!(site.held("seats.lock"), []);
        }
    }
}

/// Members that differ are shown as different ones, and only the one that is named is ended. Another spelling
/// of its lock file's name, which any user can create, is no file of the repository.
#[test]
fn the_holder_of_one_member_is_ended() {
    let site = Site::with_policy(
        r#"
        [repository.each]
        path  = "{arg1}+{arg2}.lock"
        limit = 1

        [[rule]]
        name     = "each"
        commands = ["job"]
        acquire  = ["each"]
        "#,
    );
    site.script("job", "#!/bin/sh\nexec cat\n");
    let start = |values: [&[u8]; 2]| {
        let launch = site.test().args(["run", "--", "job"]).args(values.map(OsStr::from_bytes));
        launch.through(["env", "--default-signal"]).spawn()
    };
    let [mut other, mut meant, mut literal] =
        [&b"M\xfcller"[..], b"M\xf6ller", br"M\xf6ller"].map(|name| start([name, b"x"]));
    fs::copy(site.path("repositories/M%F6ller+x.lock"), site.path("repositories/M%f6ller+x.lock"))
        .expect("a copy");
    end(&site, &["--yes", r"each [M\xf6ller, x]", "slot:1"])
        .stderr(&format!("rungate: each [M\\xf6ller, x]: ended PID {} (job), with SIGINT\n", meant.pid()))
        .status(0);
    assert_eq!(meant.end().ending, Ending::Signal(2));
    for holder in [&mut other, &mut literal] {
        assert!(holder.answers());
    }

    let [mut first, mut second] = [start([b"a, b", b"c"]), start([b"a", b"b, c"])];
    end(&site, &["--yes", r"each [a, b\, c]", "slot:1"])
        .stderr(&format!("rungate: each [a, b\\, c]: ended PID {} (job), with SIGINT\n", second.pid()))
        .status(0);
    assert_eq!(second.end().ending, Ending::Signal(2));
    assert!(first.answers());
}

/// What a script has started before it became the supervisor is not of the job.
#[test]
fn what_the_script_had_started_before_is_spared() {
    for hold in ["supervisor", "tree"] {
        let site = site("limit = 1");
        site.copy_of("/bin/sleep", "job");
        let before = "env --default-signal cat <&0 >/dev/null 2>&1 & echo $!";
        let script = format!("{before}; exec {} run --hold {hold} -- job 600", site.rungate().display());
        let mut holder = site.test().program("/bin/bash").args(["-c", &script]).background();
        let before: i32 = holder.read_line().trim_end().parse().expect("a process id");
        let pid = program(&site, &holder, hold);
        end(&site, &["--yes", "seats", &pid]).stderr(&ended(&pid)).status(0);
        eventually("the holder has ended", || holder.is_zombie().then_some(()));
        assert!(is_alive(before), "{hold}");
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
    }
}

/// The first thread may end before the others. The process seems to have ended, and has not.
#[test]
fn a_program_without_its_first_thread_is_ended() {
    // The kernel lets nobody else look into such a process.
    needs_root!();
    let site = site("limit = 1");
    let script = "import ctypes, signal, sys, threading; signal.signal(signal.SIGINT, signal.SIG_DFL); \
                  threading.Thread(target=sys.stdin.read).start(); ctypes.CDLL(None).pthread_exit(None)";
    let mut holder =
        site.test().args(["run", "--as", "job", "--", "/usr/bin/python3", "-c", script]).background();
    eventually("its first thread has ended", || holder.is_zombie().then_some(()));
    let pid = holder.pid().to_string();
    assert_eq!(listed(&site, 1).as_ref(), Some(&pid));
    end(&site, &["--yes", "seats", &pid]).stderr(&ended(&pid)).status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// By user, by the number of a slot, by the name of a slot; and all of a repository. The name of a slot may be the
/// number of another one.
#[test]
pub(crate) fn holders_are_named_by_user_and_by_slot() {
    let user = Account::own().name;
    let cases: [(&[&str], bool, bool); 7] = [
        (&["slot:1"], true, false),
        (&["name:1"], false, true),
        (&["slot:2"], false, true),
        (&["name:2"], true, false),
        (&["slot:1", "name:1"], true, true),
        (&[&user], true, true),
        (&[], true, true),
    ];
    for (words, ends_first, ends_second) in cases {
        let site = site("names = [\"2\", \"1\"]");
        let launches = [(job(&site).spawn(), ends_first), (job(&site).spawn(), ends_second)];
        let outcome = end(&site, &["--yes", "seats"]).args(words).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
        for (mut launch, ends) in launches {
            assert_eq!(outcome.stderr.contains(&ended(&launch.pid().to_string())), ends, "{outcome:?}");
            if ends {
                assert_eq!(launch.end().ending, Ending::Signal(2), "{words:?}");
            } else {
                launch.wait_for_echo();
            }
        }
        let nobody = ["no slot of it is held", "you hold no slot of it"][usize::from(user != "root")];
        if words.is_empty() {
            end(&site, &["seats"]).stderr(&format!("rungate: seats: {nobody}\n")).status(0);
        }
    }
}

/// A holder that does not end is killed: SIGINT, SIGTERM and SIGKILL, with the time of the policy in between.
#[test]
pub(crate) fn a_holder_that_ignores_the_first_signals_is_killed() {
    given_time(&["150ms", "3s", "20s"], |grace| {
        let site = site(&format!("limit = 1\nexpire_after = \"1h\"\nexpire_grace = \"{grace}\""));
        let witness = site.helper("witness");
        let run = site.test().args(["run", "--as", "job", "--"]).args([&witness]).args(["$DIR/work/signals"]);
        let mut holder = run.through(["env", "--default-signal"]).spawn();
        let said = format!("rungate: seats: ended PID {} (job), with SIGKILL\n", holder.pid());
        end(&site, &["-y", "seats", "slot:1"]).stderr(&said).status(0);
        assert_eq!(holder.end().ending, Ending::Signal(9));
        let seen = fs::read_to_string(site.path("work/signals")).expect("it wrote them down");
        assert!(seen.ends_with("SIGTERM\n"), "{seen}");
    });
}

/// Without a terminal and without `--yes` nothing is ended, nor with `--dry-run`.
#[test]
pub(crate) fn nobody_is_ended_without_an_answer() {
    let site = site("limit = 2");
    let (mut first, mut second) = (job(&site).spawn(), job(&site).spawn());
    end(&site, &["seats"])
        .stderr(
            "
            rungate: seats: 2 holders would end, and there is no terminal to confirm that
            To see them: rungate end --dry-run seats
            To end them: rungate end --yes seats
            ",
        )
        .status(64);
    let would = |pid: i32| format!("seats: would end PID {pid} (job)\n");
    let both = would(first.pid()) + &would(second.pid());
    end(&site, &["--dry-run", "seats"]).stdout(&both).status(0);
    end(&site, &["--dry-run", "--yes", "seats", "slot:2"]).stdout(&would(second.pid())).status(0);
    first.wait_for_echo();
    second.wait_for_echo();
}

/// What is no holder is said, and nobody else is ended then. A program that has ended leaves its record behind,
/// which means nothing.
#[test]
pub(crate) fn who_holds_nothing_is_not_ended() {
    let site = site("limit = 2");
    let mut holder = job(&site).spawn();
    let gone = job(&site).spawn();
    let before = gone.pid().to_string();
    gone.kill();
    let own = std::process::id().to_string();
    let list = "To see who holds its slots: rungate list seats\n";
    let pid = holder.pid().to_string();
    for stranger in [&own, &before] {
        end(&site, &["--yes", "seats", &pid, stranger])
            .stderr(&format!("rungate: seats: PID {stranger} holds no slot of it\n{list}"))
            .status(64);
    }
    let nobody = ["daemon", "nobody"][usize::from(Account::own().name == "daemon")];
    end(&site, &["--yes", "seats", &pid, nobody])
        .stderr(&format!("rungate: seats: {nobody} holds no slot of it\n{list}"))
        .status(64);
    end(&site, &["--yes", "seats", &pid, "slot:2"])
        .stderr(&format!("rungate: seats: slot 2 is not held\n{list}"))
        .status(64);
    end(&site, &["--yes", "seats", &pid, "name:1"])
        .stderr(&format!("rungate: seats: no slot with the name 1 is held\n{list}"))
        .status(64);
    end(&site, &["--yes", "seats", &pid, "slot:red"])
        .stderr(&format!(
            "rungate: \"red\" is not the number of a slot\n\
             If it is the name of a slot, write: name:red\n{list}"
        ))
        .status(64);
    for word in ["nonsense", "slot:", "name:", "99999999999999999999"] {
        end(&site, &["--yes", "seats", &pid, word])
            .stderr(&format!(
                "rungate: \"{word}\" is no PID, no user and no slot\n\
                 Name a holder by its PID, its user, or its slot by number (slot:3) or name (name:gpu3).\n{list}"
            ))
            .status(64);
    }
    end(&site, &["--yes"])
        .stderr(
            "
            rungate: name the repository whose holders to end
            To end one holder: rungate end REPOSITORY PID
            To end all overdue holders: rungate end --overdue
            ",
        )
        .status(64);
    holder.wait_for_echo();
}

/// "Users end their own": nobody is ended where one of those that are named is somebody else's.
#[test]
pub(crate) fn only_root_ends_what_is_somebody_elses() {
    needs_root!();
    let site = site("limit = 3");
    let run = |user: &str| job(&site).user(user).spawn();
    let (mut theirs, mut own) = (run("games"), run("backup"));
    let (of_games, of_backup) = (theirs.pid().to_string(), own.pid().to_string());
    let end = |user: &str, words: &[&str]| site.test().user(user).args(["end", "--yes", "seats"]).args(words);
    for words in [&[of_games.as_str()][..], &["games"], &["slot:1"], &[&of_backup, &of_games]] {
        let typed = words.join(" ");
        end("backup", words)
            .stderr(&format!(
                "
                rungate: seats: PID {of_games} (job) belongs to games
                Only root and games may end it. Ask one of them: rungate end seats {typed}
                "
            ))
            .status(77);
    }
    let mut of_root = run("root");
    let pid = of_root.pid().to_string();
    end("backup", &[&pid])
        .stderr(&format!(
            "
            rungate: seats: PID {pid} (job) belongs to root
            Only root may end it. Ask root: rungate end seats {pid}
            "
        ))
        .status(77);
    of_root.wait_for_echo();
    theirs.wait_for_echo();
    own.wait_for_echo();
    // All of a repository are all of one's own.
    end("backup", &[]).stderr(&ended(&of_backup)).status(0);
    assert_eq!(own.end().ending, Ending::Signal(2));
    end("backup", &[]).stderr("rungate: seats: you hold no slot of it\n").status(0);
    theirs.wait_for_echo();
    end("root", &["games"]).stderr(&ended(&of_games)).status(0);
    assert_eq!(theirs.end().ending, Ending::Signal(2));
}

/// The job that started it is not ended: the command would end with it.
#[test]
pub(crate) fn nobody_ends_the_job_that_started_them() {
    let site = site("limit = 2\nnested = \"take\"");
    let rungate = site.rungate().display();
    let script = format!(
        "read line; {rungate} end -y seats slot:1 2>&1; echo $?; {rungate} end -y seats 2>&1; echo $?; exec cat"
    );
    let mut above = site.test().args(["run", "--as", "job", "--", "bash", "-c", &script]).background();
    eventually("it has a slot", || (site.held("seats.lock").len() == 1).then_some(()));
    let mut other = job(&site).spawn();
    above.write_line("now");
    assert_eq!(
        above.read_line(),
        format!("rungate: seats: PID {} (job) has started this command\n", above.pid())
    );
    assert_eq!(above.read_line(), "Start rungate end from another terminal.\n");
    assert_eq!(above.read_line(), "77\n");
    assert_eq!(above.read_line(), ended(&other.pid().to_string()));
    assert_eq!(above.read_line(), "0\n");
    assert_eq!(other.end().ending, Ending::Signal(2));
    above.wait_for_echo();
}

/// On a terminal it lists the holders and asks.
#[test]
fn on_a_terminal_it_asks() {
    needs_tmux!();
    let site = site("limit = 2");
    let mut holder = job(&site).spawn();
    let terminal = Terminal::open(&site);
    let rungate = site.rungate().display().to_string();
    terminal.command(&format!("{rungate} end seats"));
    let screen = terminal.shows("End 1 holder of seats? [y/n]");
    assert!(screen.contains(&format!(" {} ", holder.pid())), "{screen}");
    terminal.enter("n");
    terminal.shows("rungate: seats: no holder was ended");
    terminal.command("echo status $?");
    terminal.shows("\nstatus 1\n");
    holder.wait_for_echo();
    let terminal = Terminal::open(&site);
    terminal.command(&format!("{rungate} end seats"));
    terminal.shows("End 1 holder of seats? [y/n]");
    terminal.enter("y");
    terminal.shows(ended(&holder.pid().to_string()).trim_end());
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// A program that is ended tells its user why: on the terminal that it has.
#[test]
fn who_sees_their_program_end_sees_who_ended_it() {
    needs_tmux!();
    let site = site("limit = 1");
    let terminal = Terminal::open(&site);
    terminal.enter(&format!("{} run -- job", site.rungate().display()));
    eventually("the job has its slot", || (site.held_numbers("seats.lock") == [1]).then_some(()));
    eventually("its program runs", || listed(&site, 1));
    assert_eq!(end(&site, &["--yes", "seats"]).outcome().ending, Ending::Status(0));
    terminal.shows(&format!("is ended: {} ended the holder of a slot of", Account::own().name));
}

/// The log says who ended whom, and no such end counts as an overdue holder.
#[test]
fn the_log_says_who_ended_whom() {
    needs_root!();
    let site = Site::with_policy(
        "
        [log]
        to     = \"$DIR/work/log.jsonl\"

        [repository.seats]
        limit = 1

        [[rule]]
        name     = \"seats\"
        commands = [\"job\"]
        acquire  = [\"seats\"]
        ",
    );
    site.program("job");
    let mut holder = job(&site).spawn();
    let pid = holder.pid();
    end(&site, &["--yes", "seats", &pid.to_string()]).stderr(&ended(&pid.to_string())).status(0);
    holder.end();
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let evicted: Vec<Value> = events.filter(|event| event["event"] == "evicted").collect();
    let [event] = evicted.as_slice() else { panic!("{log}") };
    assert_eq!((&event["command"], &event["uid"]), (&json!("job"), &json!(0)), "{event}");
    assert_eq!((&event["holder"], &event["holder_uid"]), (&json!(pid), &json!(0)), "{event}");
    assert_eq!((&event["status"], &event["seconds"]), (&json!("SIGINT"), &Value::Null), "{event}");
    assert_eq!((&event["repositories"], &event["rules"]), (&json!(["seats"]), &json!(["seats"])), "{event}");
    let history = site.test().args(["history"]).outcome().stdout;
    assert!(history.contains(&format!("seats, SIGINT, PID {pid} of root\n")), "{history}");
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    let mut expired = metrics.lines().filter(|line| line.starts_with("rungate_expired_holders_total"));
    assert!(expired.all(|line| line.ends_with(" 0")), "{metrics}");
}

/// A record proves nothing: it names somebody else's process, and the slot is kept by a description that
/// anybody may have.
#[test]
fn a_forged_record_has_no_innocent_ended() {
    needs_root!();
    for hold in ["descriptor", "supervisor", "tree"] {
        let site = site("limit = 1");
        job(&site).status(0);
        let mut innocent = site.test().program("/bin/cat").background();
        innocent.wait_for_echo();
        let stat = fs::read_to_string(format!("/proc/{}/stat", innocent.pid())).expect("it runs");
        let start: u64 = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(19)?.parse().ok())
            .expect("a start");
        let _holder = site.holder("seats.lock", ["ofd", "read", "8:1"]);
        let file =
            OpenOptions::new().read(true).write(true).open(site.repository("seats.lock")).expect("the file");
        let mut bytes = [0; 256];
        file.read_exact_at(&mut bytes, 8192).expect("a record");
        let mut record: Value = serde_json::from_slice(&bytes).expect("a record");
        record["hold"] = json!(hold);
        record["pid"] = json!(innocent.pid());
        record["start"] = json!(start);
        file.write_all_at(format!("{:<255}\n", record.to_string()).as_bytes(), 8192).expect("it is ours");
        let pid = innocent.pid();
        assert_eq!(listed(&site, 1), Some(pid.to_string()), "the lie is believed for people");
        for words in [&[][..], &["slot:1"], &[&pid.to_string()]] {
            end(&site, &["--yes", "seats"])
                .args(words)
                .stderr(&format!(
                    "
                    rungate: seats: PID {pid} (job) was not ended: nothing proves that it is the job that holds the slot
                      To see who has its file open (as root): fuser -v $DIR/repositories/seats.lock
                    "
                ))
                .status(71);
        }
        innocent.wait_for_echo();
    }
}

/// Changes what the record of slot 1 says.
fn forge(site: &Site, changes: &[(&str, Value)]) {
    let file =
        OpenOptions::new().read(true).write(true).open(site.repository("seats.lock")).expect("the file");
    let mut bytes = [0; 256];
    file.read_exact_at(&mut bytes, 8192).expect("a record");
    let mut record: Value = serde_json::from_slice(&bytes).expect("a record");
    for (key, value) in changes {
        record[key] = value.clone();
    }
    file.write_all_at(format!("{:<255}\n", record.to_string()).as_bytes(), 8192).expect("the file is open");
}

/// A record of the first process, which is above every terminal, does not protect its holder.
#[test]
fn a_record_of_the_first_process_protects_nobody() {
    needs_root!();
    for words in [&["seats", "slot:1"][..], &["seats"]] {
        let site = site("limit = 1");
        let mut holder = site.test().user("games").args(["run", "--hold", "supervisor", "--", "job"]).spawn();
        let lie = [("pid", json!(1)), ("start", json!(start_of(1))), ("hold", json!("descriptor"))];
        forge(&site, &lie);
        forge(&site, &[("supervisor", Value::Null)]);
        end(&site, &["--yes"]).args(words).stderr("rungate: seats: ended PID [..]\n").status(0);
        holder.end();
    }
}

/// Nor does a record of the job that has started the command, which has another slot.
#[test]
fn a_record_of_the_job_above_protects_nobody() {
    needs_root!();
    let site = site("limit = 2\nnested = \"take\"");
    let mut other = site.test().user("games").args(["run", "--hold", "supervisor", "--", "job"]).spawn();
    let script =
        format!("read line; {} end -y seats slot:1 2>&1; echo $?; exec cat", site.rungate().display());
    let mut above = site.test().args(["run", "--as", "job", "--", "bash", "-c", &script]).background();
    eventually("it has a slot", || (site.held_numbers("seats.lock") == [1, 2]).then_some(()));
    let lie = [("pid", json!(above.pid())), ("start", json!(start_of(above.pid())))];
    forge(&site, &lie);
    forge(&site, &[("hold", json!("descriptor")), ("supervisor", Value::Null)]);
    assert_eq!(listed(&site, 1), Some(above.pid().to_string()), "the record is believed");
    above.write_line("now");
    let said = above.read_line();
    assert!(said.starts_with("rungate: seats: ended PID "), "{said}");
    assert_eq!(above.read_line(), "0\n");
    other.end();
    above.wait_for_echo();
}

/// A user or a process is named as a record says. The kernel says another one: then nobody is ended.
#[test]
fn a_forged_record_has_nobody_ended_in_the_place_of_another() {
    needs_root!();
    for hold in ["process", "supervisor"] {
        let site = site("limit = 1");
        let mut holder = site.test().user("backup").args(["run", "--hold", hold, "--", "job"]).spawn();
        let pid = program(&site, &holder, hold);
        let mut runaway = site.test().user("games").program("/bin/cat").background();
        runaway.wait_for_echo();
        let stat = fs::read_to_string(format!("/proc/{}/stat", runaway.pid())).expect("it runs");
        let start: Option<u64> =
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)?.parse().ok());
        let own = runaway.pid().to_string();
        forge(&site, &[("uid", json!(Account::named("games").uid))]);
        let mut lies = vec!["games"];
        if hold == "supervisor" {
            forge(&site, &[("pid", json!(runaway.pid())), ("start", json!(start.expect("a start")))]);
            lies.push(&own);
        }
        // Now the record names a process that is none of the holder's.
        let proved = if hold == "supervisor" { holder.pid().to_string() } else { pid };
        for lie in lies {
            for option in ["--yes", "--dry-run"] {
                end(&site, &[option, "seats", lie])
                    .stderr(&format!(
                        "
                        rungate: seats: slot 1 is held by PID {proved} ([..]), which belongs to backup. Its record names another holder: nothing was ended
                        To end it: rungate end seats slot:1
                        "
                    ))
                    .status(71);
            }
        }
        holder.wait_for_echo();
        runaway.wait_for_echo();
        end(&site, &["--yes", "seats", "slot:1"]).stderr("rungate: seats: ended PID [..]\n").status(0);
        holder.end();
        runaway.wait_for_echo();
    }
}

/// What is in the log about an end, and in the question before it, is the user whose process it is.
#[test]
fn the_log_names_the_user_of_the_process() {
    needs_root!();
    let site = Site::with_policy(
        "
        [log]
        to = \"$DIR/work/log.jsonl\"

        [repository.seats]
        limit = 1

        [[rule]]
        commands = [\"job\"]
        acquire  = [\"seats\"]
        ",
    );
    site.program("job");
    // The log is root's.
    job(&site).status(0);
    let mut holder = site.test().user("backup").args(["run", "--", "job"]).spawn();
    forge(&site, &[("uid", json!(Account::named("games").uid))]);
    end(&site, &["--yes", "seats", "slot:1"]).stderr(&ended(&holder.pid().to_string())).status(0);
    holder.end();
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let uid = format!("\"holder_uid\":{}", Account::named("backup").uid);
    assert!(log.lines().any(|line| line.contains("\"evicted\"") && line.contains(&uid)), "{log}");
}

/// Joins the group that has the slots of a lock file: it locks the same bytes.
const JOINS: &str = r#"#!/usr/bin/python3
import fcntl, os, struct, sys
file = open(sys.argv[1], "rb")
inode = os.fstat(file.fileno()).st_ino
for line in open("/proc/locks"):
    words = line.split()
    if words[1] == "POSIX" and words[5].endswith(f":{inode}") and words[6] == words[7]:
        fcntl.fcntl(file, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, int(words[6]), 1, 0))
print("joined", flush=True)
sys.stdin.read()
"#;

/// Where each user has an own seat, nobody is ended together with a user who has locked the same bytes.
#[test]
fn who_forges_a_membership_has_nobody_else_ended() {
    needs_root!();
    let site = site("limit = 3\nshared_by = [\"user\"]");
    site.script("joins", JOINS);
    let mut holder = site.test().user("backup").args(["run", "--", "job"]).spawn();
    let joins = || {
        let path = site.repository("seats.lock").display().to_string();
        let mut joins = site.test().user("games").program(site.path("bin/joins")).args([&path]).background();
        assert_eq!(joins.read_line(), "joined\n");
        joins
    };
    let mut joined = joins();
    let pid = joined.pid().to_string();
    end(&site, &["--yes", "seats", "games"])
        .stderr(&format!("rungate: seats: ended PID {pid} ([..]), with SIGINT\n"))
        .status(0);
    joined.end();
    holder.wait_for_echo();
    let mut joined = joins();
    let pid = joined.pid().to_string();
    end(&site, &["--yes", "seats", &pid])
        .stderr(&format!("rungate: seats: ended PID {pid} ([..]), with SIGINT\n"))
        .status(0);
    joined.end();
    holder.wait_for_echo();
}

/// A seat that two users share is free only when both programs have ended, and only root may end both.
#[test]
fn nobody_is_ended_in_vain_where_users_share_a_slot() {
    needs_root!();
    let keys = "keeper = \"agent\"\nshared_by = [\"host\"]";
    let (site, _agent) = Site::with_agent(&crate::support::seats(1, keys, &["job"]));
    site.program("job");
    let run = |user: &str| job(&site).user(user).spawn();
    let (mut theirs, mut own) = (run("games"), run("backup"));
    let (of_games, of_backup) = (theirs.pid().to_string(), own.pid().to_string());
    let end = |user: &str, words: &[&str]| site.test().user(user).args(["end", "--yes", "seats"]).args(words);
    for words in [&[of_backup.as_str()][..], &["backup"], &["slot:1"]] {
        let typed = words.join(" ");
        end("backup", words)
            .stderr(&format!(
                "
                rungate: seats: PID {of_games} (job) belongs to games
                Only root may end it. Ask root: rungate end seats {typed}
                "
            ))
            .status(77);
    }
    end("backup", &[])
        .stderr(&format!(
            "rungate: seats: slot 1 is shared with PID {of_games} (job), which belongs to games: only root may end both\n"
        ))
        .status(71);
    theirs.wait_for_echo();
    own.wait_for_echo();
    let outcome = end("root", &["backup"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    theirs.end();
    own.end();
}
