//! The topics of `rungate doctor` that are about rungate itself: its programs, the databases of names, the
//! agent. Each finding has to be there with its weight and what mends it, and only where something is so.

use std::fs;
use std::os::unix::fs::{chown, symlink};

use crate::support::{Ending, Site, Test, copy_program, needs_root, set_mode, skip};
use crate::tools::doctor::{all_found, doctor, host};

/// What is found, as `status code: what mends it`.
#[track_caller]
fn findings(test: &Test) -> Vec<String> {
    let line = |(status, code, mend): (String, String, Vec<String>)| match mend.join("; ") {
        none if none.is_empty() => format!("{status} {code}"),
        mend => format!("{status} {code}: {mend}"),
    };
    all_found(test).into_iter().map(line).collect()
}

/// rungate as it was installed below `$DIR/prefix/bin`, asked about itself. These are files of its own.
fn installed(site: &Site) -> Test {
    for directory in ["prefix", "prefix/bin"] {
        fs::create_dir(site.path(directory)).expect("a new directory");
        set_mode(&site.path(directory), 0o755);
    }
    for program in ["rungate", "rungate-tools"] {
        copy_program(site.rungate().with_file_name(program), site.path("prefix/bin").join(program));
    }
    about_itself(site, "prefix/bin/rungate")
}

/// One that is asked about itself, with nothing of the machine's in `PATH`.
fn about_itself(site: &Site, program: &str) -> Test {
    let only = ["/usr/bin/env", "PATH=$DIR/bin"];
    site.test().program(site.path(program)).through(only).args(["doctor", "installation"])
}

/// Types the commands after the colon of the one finding.
#[track_caller]
fn mended(site: &Site, test: &Test) {
    let wrong = findings(test);
    let [finding] = wrong.as_slice() else { panic!("{wrong:?}") };
    let (_, command) = finding.split_once(": ").expect("something mends it");
    site.test().program("/bin/sh").args(["-c", command]).status(0);
    assert_eq!(findings(test), ["ok launcher"]);
}

/// Whether everybody can start them, and nobody but their owner change them.
#[test]
fn the_launcher_is_for_everybody_to_start_and_for_nobody_to_change() {
    needs_root!();
    let site = host();
    let rungate = installed(&site);
    let launcher = site.path("prefix/bin/rungate");
    let command = |words: &str, path: &str| format!("{words} {}", site.path(path).display());
    assert_eq!(findings(&rungate), ["ok launcher"]);
    for (mode, finding, words) in [
        (0o4755, "fault launcher-set-id", "chmod ug-s"),
        (0o2755, "fault launcher-set-id", "chmod ug-s"),
        (0o775, "warning launcher-writable", "chmod go-w"),
        (0o757, "warning launcher-writable", "chmod go-w"),
        (0o754, "fault launcher-closed", "chmod o+x"),
    ] {
        set_mode(&launcher, mode);
        assert_eq!(findings(&rungate), [format!("{finding}: {}", command(words, "prefix/bin/rungate"))]);
        mended(&site, &rungate);
    }
    set_mode(&site.path("prefix/bin"), 0o750);
    let closed = format!("fault launcher-closed: {}", command("chmod o+x", "prefix/bin"));
    assert_eq!(findings(&rungate), [closed]);
    mended(&site, &rungate);
    chown(&launcher, Some(site.user("ann").uid), None).expect("chown");
    let owned = format!("note launcher-owner: {}", command("chown root:root", "prefix/bin/rungate"));
    assert_eq!(findings(&rungate), [owned]);
    // Whose programs they are is root's business.
    assert_eq!(findings(&rungate.clone().user("ann")), ["ok launcher"]);
    mended(&site, &rungate);
}

/// Another rungate in `PATH`, "the launcher is not beside its tools".
#[test]
fn there_is_one_rungate_and_all_of_it() {
    needs_root!();
    let site = host();
    let rungate = installed(&site);
    symlink(site.path("prefix/bin/rungate"), site.path("bin/rungate")).expect("a new link");
    assert_eq!(findings(&rungate), ["ok launcher"]);
    fs::remove_file(site.path("bin/rungate")).expect("the link");
    copy_program(site.rungate(), site.path("bin/rungate"));
    let second = "warning second-rungate: Keep one of them: the package's, or that of /usr/local.";
    assert_eq!(findings(&rungate), [second, "ok launcher"]);
    // What nobody can start is none.
    set_mode(&site.path("bin/rungate"), 0o644);
    assert_eq!(findings(&rungate), ["ok launcher"]);

    copy_program(site.rungate().with_file_name("rungate-tools"), site.path("work/rungate-tools"));
    assert_eq!(
        findings(&about_itself(&site, "work/rungate-tools")),
        ["warning launcher-unknown: Install both programs again, from one package."]
    );
}

/// Holders are shown by their records alone where `/proc` hides the processes of others.
#[test]
fn hidden_processes_are_told_to_whom_they_are_hidden_from() {
    needs_root!();
    let site = host();
    let ann = site.user("ann");
    let ids = [format!("--reuid={}", ann.uid), format!("--regid={}", ann.gid), "--init-groups".to_owned()];
    let with = |option: &str| {
        let mount = format!("mount -t proc -o {option} proc /proc && exec \"$@\"");
        let test = doctor(&site, "installation").through(["unshare", "--mount", "sh", "-c", &mount, "sh"]);
        let hidden = |test: &Test| findings(test).iter().any(|it| it.starts_with("note hidden-processes: "));
        (hidden(&test), hidden(&test.clone().through(["setpriv"]).through(&ids)))
    };
    assert_eq!(with("hidepid=2"), (false, true), "root sees them all the same");
    assert_eq!(with("hidepid=0"), (false, false));
}

/// Where root cannot become another user nothing is tried, and that is said.
#[test]
fn what_cannot_be_tried_is_not_called_right() {
    needs_root!();
    let site = host();
    let rungate = installed(&site);
    let without = rungate.through(["/usr/bin/setpriv", "--bounding-set=-setuid"]);
    let note = "note not-tried: Ask a user to run: rungate doctor".to_owned();
    assert_eq!(findings(&without), [note, "ok launcher".to_owned()]);
}

/// Which databases answer names.
#[test]
fn databases_of_names_are_there_and_answer() {
    needs_root!();
    let site = host();
    let names = doctor(&site, "names");
    let sources = |text: &str| site.write("etc/nsswitch.conf", text);
    sources("passwd: files\ngroup: files\n");
    names.clone().stdout("Nothing to fix: names checked (details: rungate doctor -v)\n").status(0);
    assert_eq!(findings(&names), ["ok look-up", "ok look-up"]);

    sources("passwd: files\ngroup: files [NOTFOUND=continue] nowhere\n");
    let missing = "warning name-service-missing: Install the package that has libnss_nowhere.so.2, or remove nowhere from /etc/nsswitch.conf.";
    assert_eq!(findings(&names), [missing, "ok look-up", "ok look-up"]);
    sources("passwd: files nowhere\ngroup: files\n");
    assert_eq!(findings(&names), [missing, "ok look-up", "ok look-up"]);

    sources("passwd: files\ngroup: files\n");
    let ann = names.clone().user("ann");
    let asks = "getent passwd; getent group; systemctl status sssd nslcd winbind systemd-userdbd";
    for (file, whom) in [("passwd", "a user"), ("group", "a group")] {
        set_mode(&site.path("etc").join(file), 0o600);
        assert_eq!(findings(&ann), [format!("fault look-up-failed: {asks}"), "ok look-up".to_owned()]);
        let page = ann.outcome().stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(page.contains(&format!("launches under rules that name {whom} are refused (71)")), "{page}");
        set_mode(&site.path("etc").join(file), 0o644);
    }

    let nobody = names.through(["setpriv", "--reuid=63999", "--regid=63999", "--clear-groups"]);
    let number = "A rule can name the number: users = [\"63999\"]. To see whether a database is missing: getent passwd 63999";
    assert_eq!(findings(&nobody), [&format!("warning no-name: {number}"), "ok look-up", "ok look-up"]);
}

/// "The agent": where it is silent, how to start it depends on what starts services.
#[test]
fn an_agent_that_is_silent_can_be_started() {
    needs_root!();
    let site = host();
    let agent = doctor(&site, "agent");
    assert_eq!(findings(&agent), Vec::<String>::new());
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 1\nkeeper = \"agent\""));
    assert_eq!(
        findings(&agent),
        ["fault agent-silent: Start rungate-agent as root, from whatever starts services here."]
    );
    fs::create_dir_all(site.path("system-run/systemd/system")).expect("new directories");
    assert_eq!(findings(&agent), ["fault agent-silent: systemctl enable --now rungate-agent.socket"]);
    assert_eq!(agent.outcome().ending, Ending::Status(1));
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 1\nkeeper = \"site\""));
    assert_eq!(findings(&agent), ["fault agent-silent: systemctl enable --now rungate-agent.socket"]);
    assert_eq!(findings(&doctor(&site, "site")), ["fault site-unknown: rungate doctor agent"]);
    site.system_file("policy.toml", "version = 1\nno = 1\n");
    for topic in ["agent", "site"] {
        let head = format!("unknown  {topic:<14}not checked, because the policy has faults\n...\n");
        doctor(&site, topic).stdout(&head).status(1);
    }
}

/// "times that its last events show to never fit": runs that are nearly all ended, launches that nearly all come too
/// soon. Only the end of the log is read, so what was right for years does not hide it, and a log of refusals alone
/// shows nothing.
#[test]
fn the_end_of_the_log_shows_which_times_never_fit() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\n");
    let event = |event: &str, repository: &str| {
        let start = "{\"format\":1,\"time\":1790000000000,\"command\":\"job\",\"uid\":0,\"pid\":7";
        format!("{start},\"event\":\"{event}\",\"repositories\":[\"{repository}\"]}}\n")
    };
    let events = |count: usize, kind: &str, repository: &str| event(kind, repository).repeat(count);
    let mut log = events(30_000, "started", "nightly=1");
    assert!(log.len() > 2 << 20, "more than what is read");
    log += &events(10_000, "too-soon", "other");
    log += &events(9, "expired", "refusals-alone");
    log += &(events(10, "started", "nightly=1") + &events(9, "expired", "nightly=1"));
    log += &(events(1, "started", "seats=2") + &events(9, "too-soon", "seats"));
    log += &(events(2, "started", "fine=1") + &events(9, "too-soon", "fine"));
    site.write("work/log.jsonl", &log);
    let ended = "warning always-ended: In the policy, for nightly: a longer expire_after.";
    let soon = "warning always-too-soon: In the policy, for seats: a shorter if_elapsed, or fewer starts.";
    assert_eq!(findings(&doctor(&site, "log")), [ended, soon, "ok log"]);
}

/// The same from the journal, where systemd's is installed: its newest events alone.
#[test]
fn the_end_of_the_journal_shows_which_times_never_fit() {
    needs_root!();
    let journald = std::path::Path::new("/usr/lib/systemd/systemd-journald");
    if !journald.exists() {
        return skip("systemd-journald is not installed");
    }
    let site = Site::with_policy("[log]\nto = \"journald\"\n");
    // As in tools::history: a /run and a /var/log/journal of its own. An event of another user's about root is forged.
    let script = "
        mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir -p /run/log/journal /run/systemd/journal && cp /etc/machine-id /run/ || exit 9
        /usr/lib/systemd/systemd-journald & daemon=$!
        i=0; until [ -S /run/systemd/journal/socket ]; do i=$((i+1)); [ $i -lt 12000 ] || exit 8; sleep 0.01; done
        tell() {
          printf 'MESSAGE=event=%s command=job uid=0 pid=7 repositories=\"%s\"\\nSYSLOG_IDENTIFIER=rungate\\n' $1 $2 | $3 logger --journald
        }
        for n in 1 2 3 4 5 6 7 8 9 10; do tell started nightly=1; tell expired nightly=1; tell started forged=1; done
        for n in 1 2 3 4 5 6 7 8 9 10; do tell expired forged=1 'setpriv --reuid=1 --regid=1 --clear-groups'; done
        journalctl --sync >/dev/null 2>&1; kill -USR1 $daemon
        \"$0\" doctor log \"$@\"; status=$?
        kill $daemon; wait $daemon; exit $status";
    let doctor =
        site.test().program("unshare").args(["--mount", "--propagation", "private", "sh", "-c", script]);
    let doctor = doctor.args([site.rungate()]);
    let ended = "warning always-ended: In the policy, for nightly: a longer expire_after.";
    assert_eq!(findings(&doctor), [ended, "ok log"]);
}
