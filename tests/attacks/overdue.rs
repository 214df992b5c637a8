//! Somebody tries to have another one's process ended by `expire_after`, or to keep their own from it: by
//! descriptors that are donated, records that lie, numbers that are given out again, and by becoming what
//! root's signal must not hit. Root sweeps, as from a timer, and every innocent answers afterwards.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Ending, Running, Site, Test, copy_program, eventually, needs_root, seats, skip, start_of,
};

/// Whatever holds a slot is overdue by the time that a test has seen it run. Who dies of the first signal has
/// all the time that a slow machine takes for that.
const OVERDUE: &str = "expire_after = \"1ms\"\nexpire_grace = \"10m\"";

/// The same where somebody does not die of what it is sent first.
const STUBBORN: &str = "expire_after = \"1ms\"\nexpire_grace = \"5s\"";

/// The first byte of the guardians of slot 1.
const GUARDIANS: i64 = (1 << 62) + (1 << 60) + (1 << 36);

fn site(keys: &str) -> Site {
    let site = Site::new();
    site.system_policy(&seats(1, keys, &["job"]));
    site.program("job");
    site
}

fn job(site: &Site) -> Test {
    site.test().user("games").args(["run", "--", "job"])
}

fn expire(site: &Site) -> Test {
    site.test().args(["end", "--overdue"])
}

/// Root names a holder that a listing shows.
fn end(site: &Site, pid: i32) -> Test {
    site.test().args(["end", "--yes", "seats", &pid.to_string()])
}

/// Writes into the record of slot 1, which anybody can who may open the file.
#[track_caller]
pub(super) fn forge(site: &Site, lie: impl Fn(&mut Value)) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(site.repository("seats.lock"))
        .expect("the repository");
    let mut bytes = [0; 256];
    file.read_exact_at(&mut bytes, 8192).expect("a record");
    let mut record: Value = serde_json::from_slice(&bytes).expect("a record");
    lie(&mut record);
    let text = format!("{:<255}\n", record.to_string());
    assert_eq!(text.len(), 256);
    file.write_all_at(text.as_bytes(), 8192).expect("the file is ours");
}

/// A daemon of root's that takes descriptors from whoever sends them, and now has one that was sent by
/// another user, with locks on these bytes.
#[track_caller]
fn daemon_with_a_donated_descriptor(site: &Site, ranges: &[String]) -> Running {
    let forger = site.helper("forger");
    let mut daemon = site.test().program(&forger).args(["serve", "$DIR/work/socket"]).background();
    assert_eq!(daemon.read_line(), "ready\n");
    let give = site.test().user("games").program(&forger).args(["give", "$DIR/work/socket"]);
    give.args([site.repository("seats.lock")]).args(ranges).status(0);
    assert_eq!(daemon.read_line(), "received\n");
    daemon
}

/// A descriptor can be donated, a record forged; neither is proof of a job: also where the donated
/// description has locks on the bytes that prove one.
#[test]
fn a_donated_descriptor_ends_no_daemon() {
    needs_root!();
    for hold in ["descriptor", "supervisor", "tree"] {
        let site = site(OVERDUE);
        job(&site).status(0);
        let mut daemon =
            daemon_with_a_donated_descriptor(&site, &["8:1".to_owned(), format!("{}:1", GUARDIANS + 5)]);
        let (pid, start) = (daemon.pid(), start_of(daemon.pid()));
        forge(&site, |record| {
            record["hold"] = json!(hold);
            record["pid"] = json!(pid);
            record["start"] = json!(start);
            record["since"] = json!(1_000_000_000_000_u64);
            record["taken"] = json!(1);
        });
        expire(&site)
            .stderr(&format!(
                "
                rungate: seats: PID {pid} (job), overdue by [age], was not ended: nothing proves that it is the job that holds the slot
                  To see who has its file open (as root): fuser -v $DIR/repositories/seats.lock
                "
            ))
            .status(71);
        end(&site, pid)
            .stderr(&format!(
                "
                rungate: seats: PID {pid} (job) was not ended: nothing proves that it is the job that holds the slot
                  To see who has its file open (as root): fuser -v $DIR/repositories/seats.lock
                "
            ))
            .status(71);
        assert_eq!(job(&site).outcome().ending, Ending::Status(75), "{hold}");
        daemon.wait_for_echo();
    }
}

/// A child that shared the descriptor table took the lock and died, and its reused number named an
/// innocent.
#[test]
fn a_lock_that_names_a_number_which_was_given_out_again_ends_nobody() {
    needs_root!();
    if fs::read_link("/proc/self/ns/pid").is_ok_and(|found| found.as_os_str() != "pid:[4026531836]") {
        return skip("this is not the initial PID namespace");
    }
    let site = site(OVERDUE);
    job(&site).status(0);
    let ranges = ["8:1".to_owned(), format!("{}:1", GUARDIANS + 4)];
    let forger = site
        .test()
        .program(site.helper("forger"))
        .args(["share".into(), site.repository("seats.lock")])
        .args(ranges)
        .args(["--", "bash", "-c", "echo ready; read line; echo \"$line\""]);
    // Another process of this host may get the number, and live for long.
    let mut heir = eventually("the number is given out again", || {
        let mut heir = forger.background();
        (heir.read_line() == "ready\n").then_some(heir)
    });
    let held = site.held("seats.lock");
    let named = held.first().expect("the slot is held").pid;
    assert!(named > 0, "the kernel names somebody: {held:?}");
    assert_eq!(fs::read_to_string(format!("/proc/{named}/comm")).expect("a process"), "bash\n", "the heir");
    let start = start_of(named);
    forge(&site, |record| {
        record["hold"] = json!("process");
        record["pid"] = json!(named);
        record["start"] = json!(start);
        record["since"] = json!(1_000_000_000_000_u64);
        record["taken"] = json!(1);
    });
    expire(&site)
        .stderr("rungate: seats: PID [pid] (job), overdue by [age], was not ended: [..]\n...\n")
        .status(71);
    end(&site, named).stderr("rungate: seats: PID [pid] (job) was not ended: [..]\n...\n").status(71);
    heir.write_line("still here");
    assert_eq!(heir.read_line(), "still here\n");
}

/// What `end --overdue --dry-run` says of the one who is overdue.
#[track_caller]
fn overdue_seconds(site: &Site) -> f64 {
    let seen = site.test().args(["end", "--overdue", "--dry-run"]).outcome().stdout;
    let (who, by) = seen.trim_end().split_once(", overdue by ").expect("somebody is overdue");
    assert!(who.starts_with("seats: would end PID "), "{seen}");
    by.strip_suffix('s').and_then(|seconds| seconds.parse().ok()).expect("less than a minute")
}

/// Process age is not slot age: an antedated record made root end a program that had its slot for 1 s of 6.
#[test]
fn an_antedated_record_makes_nobody_older() {
    needs_root!();
    let site = site(OVERDUE);
    let wait = "read line; exec \"$@\"";
    let mut holder = job(&site).through(["bash", "-c", wait, "bash"]).background();
    let ticks = |pid| {
        let uptime = fs::read_to_string("/proc/uptime").expect("/proc is mounted");
        let uptime: f64 = uptime.split(' ').next().and_then(|text| text.parse().ok()).expect("seconds");
        uptime - f64::from(u32::try_from(start_of(pid)).expect("uptimes are short")) / 100.0
    };
    eventually("it has lived for a while", || (ticks(holder.pid()) > 3.0).then_some(()));
    let launched = Instant::now();
    holder.write_line("go on");
    holder.wait_for_echo();
    forge(&site, |record| {
        record["since"] = json!(1_000_000_000_000_u64);
        record["taken"] = json!(1);
    });
    let overdue = overdue_seconds(&site);
    let most = launched.elapsed() + Duration::from_secs_f64(1.0 / 16.0);
    assert!(overdue <= most.as_secs_f64(), "{overdue} s, launched {most:?} ago");
    holder.wait_for_echo();
}

/// The same for the lock that proves a job: a process has not held a slot for longer than it has lived.
#[test]
fn an_antedated_proof_makes_nobody_older() {
    needs_root!();
    let site = site(OVERDUE);
    job(&site).status(0);
    let launched = Instant::now();
    // Taken a sixteenth of a second after the boot.
    let holder = site.holder("seats.lock", ["posix", "write", "8:1", &format!("{}:1", GUARDIANS + 4)]);
    let overdue =
        eventually("it is overdue", || Some(overdue_seconds(&site)).filter(|overdue| *overdue > 0.0));
    let most = launched.elapsed() + Duration::from_millis(20);
    assert!(overdue <= most.as_secs_f64(), "{overdue} s, launched {most:?} ago");
    drop(holder);
}

/// A postdated record makes one's own program never overdue.
#[test]
fn a_postdated_record_makes_nobody_younger() {
    needs_root!();
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let site = site(&format!("hold = \"{hold}\"\n{OVERDUE}"));
        let mut holder = job(&site).through(["env", "--default-signal"]).spawn();
        forge(&site, |record| {
            record["since"] = json!(9_000_000_000_000_u64);
            record["taken"] = json!(9_000_000_000_000_u64);
        });
        expire(&site)
            .stderr("rungate: seats: ended PID [pid] (job), overdue by [age], with SIGINT\n")
            .status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
    }
}

/// In time of the initial namespace: a holder whose boot clock is a day ahead is as old as any other.
#[test]
fn a_time_namespace_makes_nobody_younger() {
    needs_root!();
    let site = site(OVERDUE);
    let ahead = ["unshare", "--time", "--boottime", "86400", "--fork", "--kill-child"];
    let job = site.test().args(["run", "--", "job"]).through(ahead).through(["env", "--default-signal"]);
    let _holder = job.spawn();
    expire(&site).stderr("rungate: seats: ended PID [pid] (job), overdue by [age], with SIGINT\n").status(0);
}

/// Puts a set-user-id copy of a program into `$DIR/bin`. A copy: a link would change the program itself.
fn set_user_id(site: &Site, program: &str, name: &str) {
    let target = site.path("bin").join(name);
    let _ = fs::remove_file(&target);
    let install = site.test().program("/usr/bin/install").args(["-m", "4755", program]);
    install.args([&target]).status(0);
}

/// Programs that run with what they were given at exec: others rely on them.
#[test]
fn a_set_user_id_program_goes_on() {
    needs_root!();
    let site = site(OVERDUE);
    set_user_id(&site, "/bin/cat", "job");
    let mut holder = job(&site).spawn();
    let pid = holder.pid();
    expire(&site)
        .stderr(&format!(
            "
            rungate: seats: PID {pid} (job), overdue by [age], was not ended: it runs a set-user-id program
              To see who has its file open (as root): fuser -v $DIR/repositories/seats.lock
            "
        ))
        .status(71);
    holder.wait_for_echo();
}

/// Root signals as the user of the job, who could do it too: a service of root's that a job started by way of
/// a set-id program is not hit.
#[test]
fn a_service_that_a_job_started_as_root_goes_on() {
    needs_root!();
    let service = "become-root --reuid=0 --regid=0 --clear-groups cat";
    // What belongs to the user has been ended when only the service is left.
    let beside_it = format!("trap '' INT TERM; {service}; true");
    for (hold, overdue, script) in
        [("supervisor", OVERDUE, service), ("tree", OVERDUE, service), ("tree", STUBBORN, &beside_it)]
    {
        let site = site(&format!("hold = \"{hold}\"\n{overdue}"));
        set_user_id(&site, "/usr/bin/setpriv", "become-root");
        let launch = site.test().user("games").args(["run", "--as", "job", "--", "bash", "-c", script]);
        let mut holder = launch.spawn();
        expire(&site)
            .stderr(
                "rungate: seats: PID [pid] (job), overdue by [age], belongs to another user and was not ended\n",
            )
            .status(71);
        holder.wait_for_echo();
    }
}

/// A process group of 1 (child of a container's PID 1) becomes kill(-1), with group 0 (nsenter) it hits the
/// sweeper's own group: only a group that the holder leads is signalled, and what else was done is said.
#[test]
fn a_group_that_the_holder_does_not_lead_is_not_signalled() {
    needs_root!();
    let site = site(&format!("expire_kill = \"group\"\n{OVERDUE}"));
    let rungate = site.rungate().display().to_string();
    let alone = "ended PID [pid] (job), overdue by [age], with SIGINT to the process alone: it leads no group of its own";
    // The first process of the namespace leads group 1, and all that it starts are in it.
    let script = format!(
        "
        setsid sleep 1000 & bystander=$!
        env --default-signal {rungate} run --as job -- sleep 1000 &
        until {rungate} end --overdue --dry-run | grep -q 'would end'; do :; done
        {rungate} end --overdue
        kill -0 $bystander && echo goes on
        "
    );
    let namespace = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    site.test()
        .program("/usr/bin/env")
        .args(namespace)
        .args(["setsid", "bash", "-c", &script])
        .stdout("goes on\n")
        .stderr(&format!("rungate: seats: {alone}\n"))
        .status(0);
    // Whoever comes in from outside is in a group that has no number there.
    let mut inside = site.test().program("/usr/bin/env").args(namespace).args(["cat"]).spawn();
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", inside.pid()));
    let first = children.expect("a running process").trim_end().to_owned();
    let enter = ["nsenter", "--pid", "--mount", "--target", &first];
    let _holder =
        site.test().args(["run", "--", "job"]).through(enter).through(["env", "--default-signal"]).spawn();
    let script = format!("{rungate} end --overdue; echo goes on");
    site.test()
        .program("/usr/bin/env")
        .args(enter)
        .args(["setsid", "--wait", "bash", "-c", &script])
        .stdout("goes on\n")
        .stderr(&format!("rungate: seats: {alone}\n"))
        .status(0);
    inside.wait_for_echo();
}

/// It silently signals only the process when the newcomer shares its group: it says so.
#[test]
fn a_newcomer_in_the_group_of_the_holder_is_spared() {
    needs_root!();
    let site = site(&format!("expire_kill = \"group\"\n{OVERDUE}"));
    let rungate = site.rungate().display().to_string();
    let script = format!(
        "
        env --default-signal {rungate} run --as job -- sleep 1000 &
        until {rungate} end --overdue --dry-run | grep -q 'would end'; do :; done
        {rungate} run --as job -- echo started
        "
    );
    site.test()
        .program("/usr/bin/setsid")
        .args(["--wait", "bash", "-c", &script])
        .stdout("started\n")
        .stderr(
            "rungate: seats: ended PID [pid] (job), overdue by [age], with SIGINT to the process alone: it leads no group of \
             its own\n",
        )
        .status(0);
}

/// `end --overdue` after an upgrade (another inode of rungate) reports "had-left" and status 0 for a holder that
/// stays.
#[test]
fn a_holder_of_another_copy_of_rungate_is_ended() {
    needs_root!();
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let site = site(&format!("hold = \"{hold}\"\n{OVERDUE}"));
        fs::create_dir(site.path("work/before")).expect("a new directory");
        let before = site.path("work/before/rungate");
        copy_program(site.rungate(), &before);
        let mut holder = job(&site).program(&before).through(["env", "--default-signal"]).spawn();
        expire(&site)
            .stderr("rungate: seats: ended PID [pid] (job), overdue by [age], with SIGINT\n")
            .status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// Without a guardian (exectimes, cleared descriptors, orphans) a holder is named and never ended.
#[test]
fn a_holder_without_a_guardian_is_named_and_goes_on() {
    needs_root!();
    let site = site(&format!("hold = \"descriptor\"\n{STUBBORN}"));
    // An orphan that keeps the descriptor; it ends with its standard input.
    let script = "cat <&0 & wait";
    let launch = site.test().user("games").args(["run", "--as", "job", "--", "bash", "-c", script]);
    let mut holder = launch.through(["env", "--default-signal"]).spawn();
    expire(&site)
        .stderr(
            "
            rungate: seats: ended PID [pid] (job), overdue by [age], with SIG[..], but a process that it left behind keeps the slot
              To see who has its file open (as root): fuser -v $DIR/repositories/seats.lock
            ",
        )
        .status(71);
    holder.wait_for_echo();
    assert_eq!(site.held("seats.lock").len(), 1);
    // One that was launched and then closed a descriptor of the file.
    let site = self::site(&format!("hold = \"descriptor\"\n{OVERDUE}"));
    let script = "exec 7<$DIR/repositories/seats.lock 7<&-; exec cat";
    let launch = site.test().user("games").args(["run", "--as", "job", "--", "bash", "-c"]);
    let mut holder = launch.args([site.expand(script)]).spawn();
    let pid = holder.pid();
    expire(&site)
        .stderr(&format!(
            "rungate: seats: PID {pid} (job), overdue by [age], was not ended: nothing proves [..]\n...\n"
        ))
        .status(71);
    holder.wait_for_echo();
}
