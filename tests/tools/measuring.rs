//! The measuring commands: what licence servers and GPUs print becomes lines of a sample, and whoever goes
//! around rungate is named. The listings are made up by the manual of `FlexNet`, for three of its versions.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::libc::O_NONBLOCK;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::support::{
    Ending, Outcome, Site, Test, Trace, eventually, is_alive, needs_root, needs_strace, set_mode, sleeps_of,
    unindent,
};
use crate::tools::doctor::all_found;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn packaged(command: &str) -> String {
    fs::read_to_string(root().join("packaging/outside").join(command)).expect("a measuring command")
}

/// A site with the command, and a stand-in for the program that it asks.
fn site(command: &str, asked: &str, script: &str) -> Site {
    let site = Site::new();
    put(&site, command);
    site.script(asked, script);
    site
}

/// Puts a measuring command where it is installed, beside `bin`.
fn put(site: &Site, command: &str) -> PathBuf {
    let directory = site.path("lib/rungate/outside");
    fs::create_dir_all(&directory).expect("a new directory");
    let path = directory.join(command);
    fs::write(&path, packaged(command)).expect("there is room");
    set_mode(&path, 0o755);
    path
}

fn lmstat(listing: &str, feature: &str) -> Outcome {
    let site = site(
        "lmstat",
        "lmutil",
        "#!/bin/sh\n[ \"$*\" = \"lmstat -c 27000@lic1 -f $FEATURE\" ] && cat listing\n",
    );
    let listing = fs::read_to_string(root().join("tests/tools/outside").join(listing)).expect("a listing");
    site.write("work/listing", &listing);
    let lmstat = site.test().program(site.path("lib/rungate/outside/lmstat")).env("FEATURE", feature);
    lmstat.args(["--lmutil", "$DIR/bin/lmutil", "--server", "27000@lic1", feature]).outcome()
}

/// User, host and amount of each line.
#[track_caller]
fn used(outcome: &Outcome) -> Vec<(String, String, i64)> {
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (text(&line["user"]), text(&line["host"]), line["amount"].as_i64().expect("a number"))
    };
    outcome.stdout.lines().map(line).collect()
}

fn line(user: &str, host: &str, amount: i64) -> (String, String, i64) {
    (user.to_owned(), host.to_owned(), amount)
}

/// "Borrowed licences count, reserved ones do not."; a user's name may have blanks.
#[test]
fn the_licences_in_use_are_counted() {
    assert_eq!(used(&lmstat("lmstat-7.txt", "f1")), [line("ann", "ws17", 1), line("bob", "lab1", 2)]);
    assert_eq!(
        used(&lmstat("lmstat-11.txt", "MATLAB")),
        [
            line("ann", "ws17.example.org", 1),
            line("bob", "lab1", 3),
            line("Eve Ng", "PC-0042", 1),
            line("cid", "nb3", 1)
        ]
    );
    assert_eq!(used(&lmstat("lmstat-11.txt", "MATLAB_Distrib_Comp_Engine")), []);
    assert_eq!(used(&lmstat("lmstat-11.txt", "node")), [], "uncounted");
}

/// "never more than the total that the server gives": the listing has a hundred of 88.
#[test]
fn the_total_of_the_server_is_the_most() {
    assert_eq!(
        used(&lmstat("lmstat-11.19.txt", "abaqus")),
        [line("o'neil", "node001.cluster", 50), line("ann", "node002.cluster", 38)]
    );
}

/// "fails if the server does not answer", and for a feature that it does not have.
#[test]
fn a_server_that_does_not_answer_is_no_use_of_zero() {
    for (listing, feature, why) in [
        ("lmstat-down.txt", "MATLAB", "Error getting status"),
        ("lmstat-11.txt", "MATLA", "does not list MATLA"),
        ("lmstat-11.txt", "MATLAB.*", "does not list"),
    ] {
        let outcome = lmstat(listing, feature);
        assert_eq!((outcome.ending, outcome.stdout.as_str()), (Ending::Status(1), ""), "{listing} {feature}");
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    }
}

/// Names are those of the server's clients: whatever they are, a line is one of JSON.
#[test]
fn a_name_cannot_break_out_of_its_line() {
    let site = site("lmstat", "lmutil", "#!/bin/sh\ncat listing\n");
    let head = "Users of f: (Total of 9 licenses issued;  Total of 9 licenses in use)\n";
    let client = r#"    a"b\c{é h" h (v1) (s/1 1), start Fri 1/1 1:01"#;
    site.write("work/listing", &format!("{head}{client}\n"));
    let lmstat = site.test().program(site.path("lib/rungate/outside/lmstat"));
    let outcome = lmstat.args(["--lmutil", "$DIR/bin/lmutil", "--server", "x", "f"]).outcome();
    assert_eq!(used(&outcome), [line("a\"b\\c{??", "h\"", 1)]);
}

/// A line for each GPU with a program, by its index or its UUID.
#[test]
fn the_gpus_in_use_are_named() {
    let site = site(
        "nvidia-smi",
        "smi",
        r#"
        #!/bin/sh
        case $* in
          *--query-gpu=index,uuid*) printf '0, GPU-aa\n1, GPU-bb\n2, GPU-cc\n' ;;
          *--query-compute-apps=gpu_uuid,pid*) printf "GPU-cc, $PPID\nGPU-cc, 999999999\nGPU-aa, [N/A]\n" ;;
        esac
        "#,
    );
    let smi = site
        .test()
        .program(site.path("lib/rungate/outside/nvidia-smi"))
        .args(["--nvidia-smi", "$DIR/bin/smi"]);
    let names = |text: &str| -> Vec<String> {
        let name = |line: &str| {
            serde_json::from_str::<Value>(line).expect("JSON")["name"].as_str().map(str::to_owned)
        };
        text.lines().filter_map(name).collect()
    };
    let outcome = smi.clone().outcome();
    assert_eq!(names(&outcome.stdout), ["2", "0"], "{outcome:?}");
    assert_eq!(names(&smi.clone().args(["--uuid"]).outcome().stdout), ["GPU-cc", "GPU-aa"]);
    // Use that is not understood is not overlooked.
    site.script("smi", "#!/bin/sh\necho GPU-x, 1\n");
    assert_eq!(smi.clone().outcome().ending, Ending::Status(1));
    site.script("smi", "#!/bin/sh\necho 'Unable to determine the device handle'; exit 255\n");
    assert_eq!(smi.outcome().ending, Ending::Status(1));
}

const PROCESSES: &str = r#"
    [repository.matlab]
    limit = 2

    [repository.matlab.outside]
    command = ["$DIR/lib/rungate/outside/processes", "matlab"]
    counts  = "others"
    of      = "host"

    [[rule]]
    commands = ["$DIR/bin/matlab", "$DIR/bin/wrapper"]
    acquire  = ["matlab"]
"#;

/// Who starts a limited program past rungate takes a seat all the same, and is named by doctor, status, list
/// and metrics. Who has a slot is not, nor is a program that he started.
#[test]
fn who_goes_around_is_seen() {
    needs_root!();
    let site = Site::of_system(PROCESSES);
    site.rungate_in_bin();
    site.program("matlab");
    put(&site, "processes");
    let doctor = |site: &Site| site.test().args(["doctor", "repositories"]).outcome().stdout;
    assert!(doctor(&site).contains("there is no sample: launches are refused (74)"), "{}", doctor(&site));
    site.test().args(["measure"]).status(0);
    site.script("wrapper", "#!/bin/sh\n$DIR/bin/matlab\n");
    let _with_a_slot = site.test().user("ann").args(["run", "--", "$DIR/bin/wrapper"]).spawn();
    let past = site.test().user("ann").program(site.path("bin/matlab")).spawn();
    let list = site.test().args(["list", "matlab"]);
    eventually("it is seen", || {
        site.test().args(["measure"]).status(0);
        list.outcome().stdout.contains("1 in use outside rungate").then_some(())
    });
    site.test()
        .args(["run", "--", "$DIR/bin/matlab"])
        .stderr("...\n[..]matlab  1 of 2 used, 1 in use outside rungate\n...\n")
        .status(75);
    let status = site.test().args(["status"]).outcome().stdout;
    assert!(status.contains("1 in use outside rungate"), "{status}");
    let json: Value =
        serde_json::from_str(&site.test().args(["status", "--json"]).outcome().stdout).expect("JSON");
    let program = serde_json::json!({ "pid": past.pid(), "user": "ann", "command": "matlab" });
    assert_eq!(json[0]["outside"]["programs"], serde_json::json!([program]), "{json}");
    assert_eq!((&json[0]["outside"]["slots"], &json[0]["free"]), (&1.into(), &0.into()), "{json}");
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    for sample in [
        "rungate_slots_used_outside{repository=\"matlab\"} 1",
        "rungate_programs_past_rungate{repository=\"matlab\"} 1",
    ] {
        assert!(metrics.contains(sample), "{metrics}");
    }
    let named = format!("matlab (PID {}) of ann runs without a slot", past.pid());
    assert!(doctor(&site).contains(&named), "{}", doctor(&site));
    past.kill();
    site.test().args(["measure"]).status(0);
    let _second = site.test().args(["run", "--", "$DIR/bin/matlab"]).spawn();
}

/// Where /proc hides the processes of other users, the measuring command, which runs as nobody, cannot count them. That
/// is no sample of 0: the last one stays, and the doctor names the reason.
#[test]
fn hidden_processes_are_no_use_of_zero() {
    needs_root!();
    let site = Site::of_system(PROCESSES);
    site.rungate_in_bin();
    site.program("matlab");
    put(&site, "processes");
    let _past = site.test().user("ann").program(site.path("bin/matlab")).spawn();
    eventually("it is seen", || {
        site.test().args(["measure"]).status(0);
        sample(&site, "matlab").contains("\"total\":1").then_some(())
    });
    let before = sample(&site, "matlab");
    for option in ["hidepid=1", "hidepid=2"] {
        let mount = format!("mount -t proc -o {option} proc /proc && exec \"$@\"");
        let through = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
        site.test()
            .args(["measure"])
            .through(through)
            .stderr(
                "
                rungate: matlab: not counted: /proc hides the processes of other users (hidepid)
                The last sample stays until stale_after. For the fix, as root: rungate doctor
                rungate: matlab: not measured: $DIR/lib/rungate/outside/processes: it ended with exit status: 74
                ",
            )
            .status(74);
        assert_eq!(sample(&site, "matlab"), before);
        let doctor = |test: Test| {
            let found = all_found(&test.args(["doctor", "repositories"])).into_iter();
            found
                .filter(|(_, code, _)| code == "processes-hidden")
                .flat_map(|(.., fix)| fix)
                .collect::<Vec<_>>()
        };
        assert_eq!(doctor(site.test().through(through)), ["mount -o remount,hidepid=0 /proc"]);
        assert_eq!(doctor(site.test()), [""; 0]);
    }
}

/// A program counts by the groups of its process. If a group of a rule cannot be looked up, it is unknown
/// which programs need a slot: that is no sample without them.
#[test]
fn a_lookup_that_fails_is_no_sample() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        [repository.seats]
        limit = 1

        [[rule]]
        name     = "games"
        commands = ["$DIR/bin/matlab"]
        groups   = ["games"]
        acquire  = ["seats"]
        "#,
    );
    site.write("etc/nsswitch.conf", "passwd: files\ngroup: files\n");
    site.program("matlab");
    let past = site.test().user("games").program(site.path("bin/matlab")).spawn();
    let processes = site.test().user("games").args(["measure", "--processes", "seats"]);
    let line = format!("\"pid\":{},", past.pid());
    eventually("it is seen", || processes.clone().outcome().stdout.contains(&line).then_some(()));
    set_mode(&site.path("etc/group"), 0o600);
    processes
        .stderr(
            "rungate: seats: not counted: it is unknown whether [..] needs a slot\n\
            [..]getgrnam[..]games[..]Permission denied\n[..]games[..]/etc/rungate/policy.toml:[..]\n...\n",
        )
        .status(71);
}

/// "Each sample that differs from the last is logged", if the log is for simulations.
#[test]
fn a_sample_that_differs_is_logged() {
    needs_root!();
    for replay in [true, false] {
        let site = Site::new();
        site.directory_over_run();
        site.system_policy(&format!(
            "[log]\nto = \"$DIR/work/log.jsonl\"\nreplay = {replay}\n[repository.seats]\nlimit = 3\n\
             [repository.seats.outside]\ncommand = [\"/bin/cat\", \"$DIR/work/used\"]\nevery = \"1s\"\n\
             [[rule]]\nacquire = [\"seats\"]\n"
        ));
        site.write("work/log.jsonl", "");
        site.write("work/used", "{\"user\":\"bob\",\"host\":\"lab1\",\"amount\":2}\n");
        let _service = site.test().args(["measure", "--every"]).background();
        let begun =
            || fs::read_to_string(site.path("system-run/rungate-outside/seats.jsonl")).unwrap_or_default();
        let mut last = String::new();
        for _ in 0..3 {
            last = eventually("it measures again", || Some(begun()).filter(|now| *now != last));
        }
        let logged = || {
            let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
            let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            lines.map(|event| event["outside"].clone()).collect::<Vec<Value>>()
        };
        if !replay {
            assert_eq!(logged(), Vec::<Value>::new());
            continue;
        }
        let bobs = json!([{ "user": "bob", "host": "lab1", "amount": 2 }]);
        assert_eq!(logged(), std::slice::from_ref(&bobs));
        site.write("work/used", "");
        let logged = eventually("the change is logged", || Some(logged()).filter(|all| all.len() > 1));
        assert_eq!(logged, [bobs, json!([])]);
        let said = site.test().args(["history", "$DIR/work/log.jsonl"]).outcome().stdout;
        assert!(said.contains("measured") && said.contains("2 in use outside rungate"), "{said}");
    }
}

/// "A line without a host is about this one", by the name that the host has now: launches look for that name.
#[test]
fn a_sample_has_the_name_that_the_host_has_now() {
    needs_root!();
    let site = Site::of_system(
        r#"
        [repository.seats]
        limit = 1
        per   = "host"

        [repository.seats.outside]
        command = ["/bin/cat", "$DIR/work/used"]
        of      = "host"
        every   = "1s"

        [[rule]]
        commands = ["tool"]
        acquire  = ["seats"]
        "#,
    );
    site.program("tool");
    site.write("work/used", "{\"user\":\"bob\"}\n");
    let service = site.test().host("lab1").args(["measure", "--every"]).background();
    let host = || {
        let sample = fs::read_to_string(site.path("system-run/rungate-outside/seats.jsonl")).ok()?;
        let line: Value = serde_json::from_str(sample.lines().nth(1)?).expect("JSON");
        Some(line["host"].as_str().expect("a name").to_owned())
    };
    let is_of = |name: &str| eventually(name, || (host()? == name).then_some(()));
    let tool = site.test().host("lab9").args(["run", "--", "tool"]);
    is_of("lab1");
    // Use on lab1 is none on lab9.
    tool.status(0);
    let pid = service.pid().to_string();
    let renamed = Command::new("nsenter").args(["-t", &pid, "--uts", "hostname", "lab9"]).status();
    assert!(renamed.expect("nsenter(1) comes with util-linux").success());
    is_of("lab9");
    let full = "...\n[..]seats [lab9]  0 of 1 used, 1 in use outside rungate\n...\n";
    tool.stderr(full).status(75);
}

/// The sample of a repository; empty if there is none.
fn sample(site: &Site, repository: &str) -> String {
    let path = site.path("system-run/rungate-outside").join(format!("{repository}.jsonl"));
    fs::read_to_string(path).unwrap_or_default()
}

/// Waits until there is another sample of a repository than now.
#[track_caller]
fn is_renewed(site: &Site, repository: &str) {
    let before = sample(site, repository);
    eventually("there is another sample", || (sample(site, repository) != before).then_some(()));
}

const SEATS: &str = r#"
    [repository.seats]
    limit   = 1
    outside = { command = ["/bin/true"], every = "1s" }

    [[rule]]
    acquire = ["seats"]
"#;

/// "The same faults are reported once." Those of a delegated file are not: it has nothing to measure, and is not
/// opened.
#[test]
fn a_fault_of_the_policy_is_reported_once() {
    needs_root!();
    let delegation = "[delegate.\"20-cad.toml\"]\nowner = \"root\"\nusers = [\"*\"]\ncommands = [\"*\"]\n";
    let policy = format!("{delegation}{}", unindent(SEATS));
    let site = Site::of_system(&policy);
    site.system_file("policy.d/20-cad.toml", "unknown = 1\n");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    // The file would be reported if it were read.
    let listed = site.test().args(["list"]).outcome().stderr;
    assert!(listed.contains("20-cad.toml"), "{listed}");
    site.test().args(["measure"]).status(0);
    let mut service = site.test().args(["measure", "--every"]).background();
    for _ in 0..3 {
        is_renewed(&site, "seats");
    }
    site.system_policy(&format!("{policy}unknown = 1\n"));
    let before = sleeps_of(service.pid());
    eventually("it has read it repeatedly", || (sleeps_of(service.pid()) > before + 4).then_some(()));
    site.system_policy(&policy);
    is_renewed(&site, "seats");
    service.signal(Signal::SIGTERM);
    let reported = service.end().stderr;
    assert_eq!(reported.matches("the policy has 1 fault\n").count(), 1, "{reported}");
    assert!(reported.contains("unknown-key") && !reported.contains("20-cad.toml"), "{reported}");
}

/// Samples and their directory have exact modes, and the umask is not changed for that: measuring commands, which
/// would inherit it, may start at any time.
#[test]
fn modes_are_exact_without_a_change_of_the_umask() {
    needs_root!();
    needs_strace!();
    let site = Site::of_system(SEATS);
    let directory = site.path("system-run/rungate-outside");
    let mode = |path: &Path| fs::metadata(path).expect("it was made").permissions().mode() & 0o7777;
    let modes = || (mode(&directory), mode(&directory.join("seats.jsonl")));
    let tight = ["sh", "-c", "umask 0777; exec \"$@\"", "sh"];
    site.test().through(tight).args(["measure"]).status(0);
    assert_eq!(modes(), (0o755, 0o644));
    fs::remove_dir_all(&directory).expect("its samples");
    let test = site.test().args(["measure"]);
    let (mut running, trace) = Trace::begin(&test, "umask,rename,renameat,renameat2", &["-f"]);
    assert_eq!(running.end().ending, Ending::Status(0));
    let calls = trace.after(1, "rungate-outside");
    assert!(!calls.iter().any(|call| call.text.contains("umask")), "{calls:?}");
    assert_eq!(modes(), (0o755, 0o644));
}

/// A site with a repository whose first measurement waits for an answer, and fails afterwards, before one that is
/// measured at once.
fn slow_site() -> Site {
    let slow = "[repository.slow]\nlimit = 9\noutside = { command = [\"$DIR/bin/slow\"], every = \"1s\" }\n";
    let site = Site::of_system(&format!("{slow}{}", unindent(SEATS)));
    site.script(
        "slow",
        r#"
        #!/bin/sh
        echo begun >>$DIR/work/begun
        [ "$(wc -l <$DIR/work/begun)" = 1 ] || exit 1
        exec cat $DIR/work/answer
        "#,
    );
    site.write("work/begun", "");
    mkfifo(&site.path("work/answer"), Mode::S_IRUSR | Mode::S_IWUSR).expect("a FIFO");
    for (file, mode) in [("work/begun", 0o666), ("work/answer", 0o644)] {
        set_mode(&site.path(file), mode);
    }
    site
}

/// The answer for the slow command, which runs, has no sample yet, and waits for it.
#[track_caller]
fn answer(site: &Site) -> File {
    eventually("the slow command reads", || {
        OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(site.path("work/answer")).ok()
    })
}

const SEVEN: &[u8] = b"{\"user\":\"bob\",\"amount\":7}\n";

/// "A slow one delays only its own sample.", and is not started again while it runs.
#[test]
fn a_slow_command_delays_only_its_own_sample() {
    needs_root!();
    let site = slow_site();
    let _service = site.test().args(["measure", "--every"]).background();
    let mut answer = answer(&site);
    // Each of them would have been the time for the slow one, too.
    for _ in 0..3 {
        is_renewed(&site, "seats");
    }
    let begun = fs::read_to_string(site.path("work/begun")).expect("the file");
    assert_eq!((begun.as_str(), sample(&site, "slow").as_str()), ("begun\n", ""));
    answer.write_all(SEVEN).expect("it reads");
    drop(answer);
    eventually("the slow one has its sample", || sample(&site, "slow").contains("\"total\":7").then_some(()));
    // It is measured again, and what fails leaves the sample. At the third time the second has failed.
    eventually("it has begun again", || {
        let begun = fs::read_to_string(site.path("work/begun")).expect("the file");
        (begun.lines().count() > 2).then_some(())
    });
    assert!(sample(&site, "slow").contains("\"total\":7"));
}

/// Without `--every` it waits for all repositories. The status is 74 if one of them fails.
#[test]
fn all_repositories_are_waited_for() {
    needs_root!();
    let site = slow_site();
    let test = site.test().args(["measure"]);
    let mut running = test.background();
    let mut answer = answer(&site);
    eventually("the other is measured", || (!sample(&site, "seats").is_empty()).then_some(()));
    assert!(is_alive(running.pid()) && sample(&site, "slow").is_empty());
    answer.write_all(SEVEN).expect("it reads");
    drop(answer);
    let outcome = running.end();
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""));
    assert!(sample(&site, "slow").contains("\"total\":7"), "{}", sample(&site, "slow"));
    let before = sample(&site, "seats");
    let failed = "rungate: slow: not measured: $DIR/bin/slow: it ended with exit status: 1\n";
    test.stderr(failed).status(74);
    assert!(sample(&site, "seats") != before && sample(&site, "slow").contains("\"total\":7"));
}
