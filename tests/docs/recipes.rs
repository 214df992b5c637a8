//! rungate-recipes(7), executed: the files of the page are installed at a site as their first lines say, and
//! what starts them in real life starts them here: systemd, make, PAM, shells.
//!
//! What cannot be available on a machine that runs tests, and is played by something else:
//!
//! - cron: the lines are run in its environment. `packaging/test-ways-in` has cron itself run jobs through a
//!   shim.
//! - Slurm: `scontrol` only says what it was told. Once, by hand, the job and the task prolog were run by
//!   Slurm 22.05 on one node: the shim came first, and the job without a seat went back into the queue.
//! - Grid Engine, which Debian 12 does not have: its scripts are run as it would run them.
//! - The runners of GitHub, GitLab and Jenkins: the same; that GitLab knows `exit_codes` is in its manual.
//! - `JupyterHub`: its file is executed as Python, and the command is started as its spawner does.
//! - Open `OnDemand`, `PostgreSQL` and a mailer: their words are taken from the file, and what they start is a
//!   script.
//! - A container engine: what makes a container, namespaces and mounts, is made by unshare(1).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Ending, Outcome, RUN, Running, Site, Test, eventually, needs_root, read_some, skip};

/// The files of the page, by their paths, and the text of each.
fn recipes() -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rungate-recipes.7");
    let page = fs::read_to_string(page).expect("the page");
    let blocks = page.split(".Bd -literal -offset indent").skip(1).filter_map(|rest| rest.split_once('\n'));
    let blocks = blocks.map(|(_, rest)| rest);
    let blocks =
        blocks.map(|rest| rest.split(".Ed\n").next().expect("a block that ends").replace("\\e", "\\"));
    blocks.map(|block| (name_of(&block), block)).collect()
}

/// A file says in its first line where it goes, a script in its second; what is no file is its own name.
fn name_of(block: &str) -> String {
    let line = block.lines().find(|line| !line.starts_with("#!")).expect("a block of some lines");
    line.trim_start_matches("# ").trim_start_matches("// ").to_owned()
}

fn recipe(name: &str) -> String {
    recipes().remove(name).unwrap_or_else(|| panic!("the page has no {name}"))
}

/// A site where one `matlab`, one `board-job` and the like may run at a time, and the programs are there.
fn site() -> Site {
    let site = Site::with_policy(
        r#"
        [repository.each]
        per   = "command"
        limit = 1

        [[rule]]
        name     = "one of each"
        commands = ["*"]
        except   = [{ commands = ["cc"] }]
        acquire  = ["each"]

        [repository.compilers]
        limit = 2

        [[rule]]
        name     = "two compilers"
        commands = ["cc"]
        acquire  = ["compilers"]
        "#,
    );
    site.rungate_in_bin();
    site
}

/// A shell that starts something at a site whose programs are in `PATH`.
fn shell(site: &Site, line: &str) -> Test {
    site.test().program("/bin/sh").args(["-c", line])
}

fn said(test: &Test) -> (String, Ending) {
    let Outcome { stdout, stderr, ending } = test.outcome();
    (stdout + &stderr, ending)
}

/// Somebody who has the only slot of a command, as long as the guard lives.
fn holder(site: &Site, command: &str) -> Running {
    site.test().args(["run", "--as", command, "--", "cat"]).spawn()
}

/// What a recipe is known by, and the test that plays it.
const PLAYED: [(&str, &str); 27] = [
    ("/etc/systemd/system/nightly-sync.service", "systemd"),
    ("/etc/systemd/system/nightly-sync.timer", "systemd"),
    ("/etc/systemd/system/solver@.service", "systemd"),
    ("/etc/cron.d/nightly", "cron"),
    ("matlab.sbatch", "slurm"),
    ("/etc/slurm/task-prolog", "slurm"),
    ("/etc/sge/starter", "grid_engine"),
    ("Makefile", "make"),
    ("deploy.sh", "part_of_a_script"),
    ("deploy.py", "part_of_a_script"),
    ("deploy.pl", "part_of_a_script"),
    (".github/workflows/board.yml", "github"),
    (".gitlab-ci.yml", "gitlab"),
    ("Jenkinsfile", "jenkins"),
    ("/etc/jupyterhub/jupyterhub_config.py", "jupyterhub"),
    ("/etc/rungate/policy.d/notebooks.toml", "jupyterhub"),
    ("/etc/ood/config/clusters.d/lab.yml", "open_ondemand"),
    ("/etc/rungate/policy.d/test-databases.toml", "databases"),
    ("/usr/local/bin/db-tests", "databases"),
    ("/etc/systemd/system/rungate-webhook.service", "webhook"),
    ("/usr/local/lib/rungate-webhook", "webhook"),
    ("/usr/local/lib/rungate-mail", "mail"),
    ("compose.yaml", "containers"),
    ("/usr/local/lib/rungate-session", "pam"),
    ("session required pam_exec.so quiet stdout /usr/local/lib/rungate-session", "pam"),
    ("/etc/rungate/policy.toml", "pam"),
    ("", ""),
];

#[test]
fn every_recipe_of_the_page_is_played() {
    let here: Vec<String> = recipes().into_keys().collect();
    let mut played: Vec<&str> =
        PLAYED.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
    played.sort_unstable();
    assert_eq!(here, played);
}

/// `SuccessExitStatus` declares that a refusal is no failure. Systemd restarts a service if it fails, but not
/// if the command line, a rule or the policy is the reason.
#[test]
fn systemd() {
    needs_root!();
    let manager = Path::new("/usr/lib/systemd/systemd");
    if !manager.exists() {
        return skip("systemd is not installed");
    }
    let site = site();
    site.directory_over_run();
    fs::create_dir_all(site.path("system-run/systemd/system")).expect("what says that systemd runs");
    fs::create_dir_all(site.path("config/0/systemd/user")).expect("units of root's");
    site.script("nightly-sync", "#!/bin/sh\necho ran >>$DIR/work/nightly\n");
    site.script("solver", "#!/bin/sh\necho \"$1\" >>$DIR/work/solved\nexit 3\n");
    let policy = format!("\n[Service]\nEnvironment=RUNGATE_POLICY={}\n", site.path("policy.toml").display());
    for unit in ["nightly-sync.service", "nightly-sync.timer", "solver@.service"] {
        let text = recipe(&format!("/etc/systemd/system/{unit}"))
            .replace("/usr/bin/rungate", "$DIR/bin/rungate")
            .replace("/usr/local/bin", "$DIR/bin")
            .replace("RestartSec=5s", "RestartSec=1ms");
        let text = if unit.ends_with(".service") { text + &policy } else { text };
        site.write(Path::new("config/0/systemd/user").join(unit), &text);
        site.write(
            Path::new("config/0/systemd/user").join(format!("alarming-{unit}")),
            &text.replace("SuccessExitStatus", "# SuccessExitStatus"),
        );
    }
    // What the package has for users' units, where users have it.
    fs::create_dir(site.path("config/0/environment.d")).expect("a directory");
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/ways-in/environment.conf");
    fs::copy(environment, site.path("config/0/environment.d/99-rungate.conf")).expect("a copy");

    let words = ["config/0/systemd/user/nightly-sync.service", "config/0/systemd/user/solver@.service"];
    let verify = site.test().program("/usr/bin/systemd-analyze").args(["verify", "--man=no"]);
    verify.args(words.map(|unit| site.path(unit))).status(0);

    // A manager takes whatever is in its control group for its own, so it gets one that has nothing else in
    // it, and sees no other. It ends with the first process of its namespace.
    let group = ControlGroup::new();
    let within = format!(
        "mount -t cgroup2 none /sys/fs/cgroup && [ \"$(grep ^0: /proc/self/cgroup)\" = 0::/ ] || {{ echo none; exit; }}\n\
         {} --user --log-target=null &\n\
         i=0; until systemctl --user show-environment >/dev/null 2>&1; do\n\
         i=$((i + 1)); [ $i -lt 2000 ] || {{ echo none; exit; }}; sleep 0.05; done\n\
         echo ready; while read -r line; do eval \"$line\"; echo \"status $?\"; done",
        manager.display()
    );
    let enter = format!("echo $$ >{}/cgroup.procs || {{ echo none; exit; }}; exec \"$@\"", group.0.display());
    let apart = ["unshare", "--cgroup", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let session = site.test().program("/bin/bash").args(["-c", &within]);
    let session = session.through(["sh", "-c", &enter, "sh"].into_iter().chain(apart));
    let mut session = session.background();
    if session.read_line() != "ready\n" {
        return skip("systemd does not run as a user's manager here");
    }
    let mut ask = |line: &str| {
        session.write_line(line);
        session.read_line()
    };
    let first = "systemctl --user show-environment | grep --quiet ^PATH=/etc/rungate/shims:";
    assert_eq!(ask(first), "status 0\n");
    assert_eq!(ask("systemctl --user start nightly-sync.service"), "status 0\n");
    assert_eq!(fs::read_to_string(site.path("work/nightly")).expect("it ran"), "ran\n");
    let held = holder(&site, "nightly-sync");
    assert_eq!(ask("systemctl --user start nightly-sync.service"), "status 0\n");
    assert_eq!(ask("systemctl --user start alarming-nightly-sync.service 2>/dev/null"), "status 1\n");
    assert_eq!(fs::read_to_string(site.path("work/nightly")).expect("it ran"), "ran\n", "and not again");
    held.kill();

    // It fails, and is started again and again; once a rule denies it, it stays down.
    assert_eq!(ask("systemctl --user start solver@7.service"), "status 0\n");
    let times = || fs::read_to_string(site.path("work/solved")).unwrap_or_default().lines().count();
    eventually("the solver is started again", || (times() > 2).then_some(()));
    site.policy("[[rule]]\nname = \"no\"\ncommands = [\"*\"]\naction = \"deny\"");
    eventually("the solver stays down", || {
        (ask("systemctl --user is-failed solver@7.service >/dev/null") == "status 0\n").then_some(())
    });
    assert_eq!(
        ask("test \"$(systemctl --user show -p ExecMainStatus --value solver@7)\" = 77"),
        "status 0\n"
    );
}

/// A control group of this test's own, which goes with it, and all that is in it.
struct ControlGroup(PathBuf);

impl ControlGroup {
    fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("the mounts of this process");
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<&str>>());
        let root = lines.find(|fields| fields[2] == "cgroup2").map(|fields| PathBuf::from(fields[1]));
        let group = root.unwrap_or_default().join(format!("rungate-test-systemd-{}", *RUN));
        // Where it cannot be made, nothing can enter it.
        let _ = fs::create_dir(&group);
        Self(group)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let remove = "find \"$0\" -depth -type d -exec rmdir {} + 2>/dev/null";
        let gone = || {
            let _ = std::process::Command::new("sh").args(["-c", remove]).arg(&self.0).status();
            (!self.0.exists()).then_some(())
        };
        eventually("the control group is gone", gone);
    }
}

/// `-q` prints nothing about a refusal, and `-E 0` makes it succeed.
#[test]
fn cron() {
    let site = site();
    for name in ["nightly-sync", "nightly-report"] {
        site.script(name, "#!/bin/sh\necho did it\n");
    }
    let table = recipe("/etc/cron.d/nightly");
    let jobs: Vec<(&str, String)> = table
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.splitn(7, char::is_whitespace).collect::<Vec<&str>>())
        .map(|fields| line_of(&fields))
        .collect();
    assert_eq!(jobs.len(), 2, "{table}");
    for (name, line) in &jobs {
        // All that cron gives to a job, but for PATH, which leads to this site.
        let job = shell(&site, &line.replace("2h", "1ms")).env_remove("XDG_RUNTIME_DIR");
        assert_eq!(said(&job), ("did it\n".to_owned(), Ending::Status(0)), "{line}");
        let _held = holder(&site, name);
        assert_eq!(said(&job), (String::new(), Ending::Status(0)), "{line}");
    }
}

/// The name of the program of a line of a crontab, and the command.
fn line_of<'a>(fields: &[&'a str]) -> (&'a str, String) {
    let (user, command) = fields[6].trim_start().split_once(' ').expect("a user and a command");
    assert_eq!(user, "backup");
    (command.rsplit(' ').next().expect("a program"), command.trim_start().to_owned())
}

/// A job without a seat returns to the queue, and a task prolog puts the shims in the `PATH` of all tasks.
#[test]
fn slurm() {
    let site = site();
    site.script("matlab", "#!/bin/sh\necho \"$@\"\nexit 5\n");
    site.script("scontrol", "#!/bin/sh\necho scontrol \"$@\"\n");
    site.script("job", &recipe("matlab.sbatch").replace("10m", "1ms"));
    let job = shell(&site, "job 2>/dev/null").env("SLURM_JOB_ID", "4711");
    job.clone().stdout("-batch sim\n").status(5);
    let held = holder(&site, "matlab");
    job.clone().stdout("scontrol requeue 4711\n").status(0);
    held.kill();
    job.stdout("-batch sim\n").status(5);

    site.script("task-prolog", &recipe("/etc/slurm/task-prolog"));
    let printed =
        site.test().program(site.path("bin/task-prolog")).env("PATH", "/usr/bin:/bin").outcome().stdout;
    assert_eq!(printed, "export PATH=/etc/rungate/shims:/usr/bin:/bin\n");
}

/// Status 99 returns a job to its queue.
#[test]
fn grid_engine() {
    let site = site();
    site.script("starter", &recipe("/etc/sge/starter"));
    site.write("work/job_script", "echo job \"$@\"; exit 3\n");
    let start = shell(&site, "starter job_script one 'two three'").env("SGE_STARTER_SHELL_PATH", "/bin/bash");
    start.clone().stdout("job one two three\n").status(3);
    let _held = holder(&site, "sge-job");
    start.stderr("rungate: sge-job: not started: the limit is reached\n...\n").status(99);
}

/// This limits compilers on the host, over all users and jobs of make.
#[test]
fn make() {
    if !Path::new("/usr/bin/make").exists() {
        return skip("make(1) is not installed");
    }
    let site = site();
    // Each compiler says how many there are, itself among them; told to, it waits until so many are there.
    site.script(
        "cc",
        "#!/bin/sh\ncd $DIR/work\nmkdir running.$$\ncount() { ls -d running.* | wc -l; }\n\
         until [ -e together ] || [ $(count) -ge ${TOGETHER:-1} ]; do sleep 0.02; done\n\
         [ $(count) -lt ${TOGETHER:-9} ] || touch together\n\
         count >>counts\nsleep 0.05\nrmdir running.$$\n",
    );
    for object in ["one", "two", "three", "four", "five", "six"] {
        site.write(format!("work/{object}.c"), "");
    }
    site.write("work/Makefile", &recipe("Makefile"));
    let counts = |words: &str| {
        let _ = fs::remove_file(site.path("work/counts"));
        let (printed, ending) = said(&shell(&site, &format!("make -j8 -s {words}")));
        assert_eq!(ending, Ending::Status(0), "{printed}");
        let counts = fs::read_to_string(site.path("work/counts")).expect("the compilers counted");
        counts.lines().map(|count| count.trim().parse().expect("a number")).collect::<Vec<u32>>()
    };
    let limited = counts("");
    assert!(limited.len() == 6 && limited.iter().all(|count| *count <= 2), "{limited:?}");
    // Without it there are more, which is seen.
    assert!(counts("CC=cc TOGETHER=3").iter().any(|count| *count > 2));
}

/// A part of a script has the slot: a second script waits until the first has closed its descriptor, and no longer.
#[test]
fn part_of_a_script() {
    for (file, interpreter) in [("deploy.sh", "/bin/sh"), ("deploy.py", "python3"), ("deploy.pl", "perl")] {
        let site = site();
        if !Path::new("/usr/bin").join(interpreter).exists() {
            skip(&format!("{interpreter} is not installed"));
            continue;
        }
        site.write(format!("work/{file}"), &recipe(file));
        let script = || shell(&site, &format!("exec {interpreter} {file}"));
        let said_by = |running: &mut Running| [running.read_line(), running.read_line()].concat();
        let mut first = script().background();
        assert_eq!(said_by(&mut first), "in turn\nand on\n", "{file}");
        assert_eq!(first.end().ending, Ending::Status(0));
        let held = holder(&site, "deploy");
        let mut second = script().background();
        eventually("it waits", || (site.line("each.deploy.lock").len() == 1).then_some(()));
        drop(held);
        assert_eq!(said_by(&mut second), "in turn\nand on\n", "{file}");
        assert_eq!(second.end().ending, Ending::Status(0));
        let _held = holder(&site, "deploy");
        site.write(format!("work/{file}"), &recipe(file).replace("10m", "1ms"));
        let (printed, ending) = said(&script());
        assert_eq!(ending, Ending::Status(124), "{file}: {printed}");
        assert!(!printed.contains("in turn"), "{file}: {printed}");
    }
}

/// Each step acquires the slot and releases it. Of the file only the shell is played, as a runner uses it:
/// its braces are the path of a script with what the step runs.
#[test]
fn github() {
    let site = site();
    let file = recipe(".github/workflows/board.yml");
    let shells = file.lines().filter_map(|line| line.trim().strip_prefix("shell: "));
    let [through] = shells.collect::<Vec<&str>>()[..] else { panic!("one shell: {file}") };
    site.write("work/step.sh", "echo tested\nfalse\necho never\n");
    let step = |wait: &str| shell(&site, &through.replace("{0}", "step.sh").replace("1h", wait));
    step("1h").stdout("tested\n").status(1);
    let _held = holder(&site, "board-job");
    step("1ms").stderr("...\n").status(124);
}

/// GitLab retries a job without a slot. The script is run as a runner does; that GitLab knows these words is
/// in its manual.
#[test]
fn gitlab() {
    let site = site();
    site.script("make", "#!/bin/sh\necho \"made $1\"\n");
    let file = recipe(".gitlab-ci.yml");
    let scripts = file.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let [script] = scripts.collect::<Vec<&str>>()[..] else { panic!("one line of a script: {file}") };
    let job = |wait: &str| shell(&site, &format!("set -e; {}", script.replace("50m", wait)));
    job("50m").stdout("made board-test\n").status(0);
    let _held = holder(&site, "board-job");
    let (_, ending) = said(&job("1ms"));
    let Ending::Status(status) = ending else { panic!("{ending:?}") };
    let retried = file.lines().find_map(|line| line.trim().strip_prefix("exit_codes: [")).expect("statuses");
    assert!(retried.trim_end_matches(']').split(", ").any(|code| code == status.to_string()), "{status}");
}

/// A build without a board is unstable: the script of the step ends with a status of the list, and a failing test
/// with its own.
#[test]
fn jenkins() {
    let site = site();
    site.script("make", "#!/bin/sh\necho \"made $1\"\nexit 2\n");
    let file = recipe("Jenkinsfile");
    let script = file.lines().find_map(|line| line.trim().strip_prefix("script: \"")).expect("a script");
    // As the step `sh` runs it.
    let line = format!("set -e; {}", script.trim_end_matches('"'));
    shell(&site, &line).stdout("made board-test\n").status(2);
    let _held = holder(&site, "board-job");
    let (_, ending) = said(&shell(&site, &line.replace("1h", "1ms")));
    let Ending::Status(status) = ending else { panic!("{ending:?}") };
    let unstable =
        file.lines().find_map(|line| line.trim().strip_prefix("if (status in [")).expect("statuses");
    let unstable = unstable.split(']').next().expect("a list");
    assert!(unstable.split(", ").any(|code| code == status.to_string()), "{status}");
}

/// The command of the spawner is started as the user, with the words that the hub adds; the policy of the page counts it.
#[test]
fn jupyterhub() {
    needs_root!();
    let site = Site::new();
    if !Path::new("/usr/bin/python3").exists() {
        return skip("python3 is not installed");
    }
    site.directory_over_run();
    site.rungate_in_bin();
    let policy = recipe("/etc/rungate/policy.d/notebooks.toml").replace("limit = 20", "limit = 1");
    site.system_file("policy.toml", "version = 1\n");
    site.system_file("policy.d/notebooks.toml", &policy);
    for user in ["ann", "bob"] {
        site.account(user, &[]);
    }
    site.script("jupyterhub-singleuser", "#!/bin/sh\necho \"server $1\"\nexec cat\n");
    site.write(
        "work/jupyterhub_config.py",
        &recipe("/etc/jupyterhub/jupyterhub_config.py").replace("30s", "1ms"),
    );
    site.write(
        "work/spawn.py",
        "import os, types\n\
         class Any(types.SimpleNamespace):\n    \
             def __getattr__(self, name):\n        \
                 setattr(self, name, Any()); return getattr(self, name)\n\
         config = Any()\n\
         scope = {'get_config': lambda: config}\n\
         exec(open('jupyterhub_config.py').read(), scope)\n\
         assert config.JupyterHub.spawner_class.endswith('.LocalProcessSpawner')\n\
         command = config.Spawner.cmd + ['--debug']\n\
         os.execvp(command[0], command)\n",
    );
    let spawn = |user: &str| shell(&site, "exec python3 spawn.py").user(user);
    let mut first = spawn("ann").background();
    assert_eq!(first.read_line(), "server --debug\n");
    let (printed, ending) = said(&spawn("bob"));
    assert_eq!(ending, Ending::Status(124), "{printed}");
    assert!(printed.contains("Stop a server that you do not need"), "{printed}");
    first.close_stdin();
    first.end();
    let mut second = spawn("bob").background();
    assert_eq!(second.read_line(), "server --debug\n");
}

/// Programs of a session are started through the shims. The session's script takes the place of `%s`, in both kinds
/// of sessions.
#[test]
fn open_ondemand() {
    let site = site();
    site.script("matlab", "#!/bin/sh\necho \"matlab $1\"\nexec cat\n");
    site.shim("matlab");
    let file = recipe("/etc/ood/config/clusters.d/lab.yml");
    let wrappers: Vec<String> = file
        .split("script_wrapper: |\n")
        .skip(1)
        .map(|rest| {
            rest.lines().map_while(|line| line.strip_prefix("        ")).collect::<Vec<&str>>().join("\n")
        })
        .collect();
    assert_eq!(wrappers.len(), 2, "{file}");
    for wrapper in wrappers {
        let session = wrapper
            .replace("/etc/rungate/shims", &site.path("shims").display().to_string())
            .replace("%s", "matlab -desktop");
        let mut first = shell(&site, &session).background();
        assert_eq!(first.read_line(), "matlab -desktop\n");
        let (printed, ending) = said(&shell(&site, &session));
        assert_eq!(ending, Ending::Status(75), "{printed}");
        first.close_stdin();
        first.end();
    }
}

/// Each run has a database that no other run has, made for it; a fourth waits until one is free.
#[test]
fn databases() {
    let site = Site::new();
    site.rungate_in_bin();
    site.policy(&recipe("/etc/rungate/policy.d/test-databases.toml").replace("version = 1\n", ""));
    for program in ["dropdb", "createdb"] {
        site.script(program, "#!/bin/sh\necho \"${0##*/} $*\" >>$DIR/work/databases\n");
    }
    site.script("pytest", "#!/bin/sh\necho \"$DATABASE_URL $*\"\nexec cat\n");
    site.script("db-tests", &recipe("/usr/local/bin/db-tests"));
    let tests = || shell(&site, "exec rungate run -- db-tests -k orders");
    let mut runs: Vec<Running> = (0..3).map(|_| tests().background()).collect();
    let mut said: Vec<String> = runs.iter_mut().map(Running::read_line).collect();
    said.sort();
    let expected = [1, 2, 3].map(|number| format!("postgresql:///test_{number} -k orders\n"));
    assert_eq!(said, expected);
    let made = fs::read_to_string(site.path("work/databases")).expect("they were made");
    for number in [1, 2, 3] {
        let both = format!("dropdb --if-exists test_{number}\n");
        assert!(made.contains(&both) && made.contains(&format!("createdb test_{number}\n")), "{made}");
    }
    let mut fourth = tests().background();
    eventually("it waits", || (site.line("test-db.lock").len() == 1).then_some(()));
    runs[1].close_stdin();
    runs[1].end();
    assert!(fourth.read_line().ends_with(" -k orders\n"));
}

/// A site whose log is a file, where one `matlab` may run.
fn logged() -> Site {
    let site = site();
    site.policy(
        r#"
        [log]
        to = "$DIR/work/log.jsonl"

        [repository.seats]
        limit = 1

        [[rule]]
        commands = ["matlab"]
        acquire  = ["seats"]
        "#,
    );
    site.program("matlab");
    let first = "{\"format\":1,\"time\":1790000000000,\"event\":\"started\",\"command\":\"matlab\",\"uid\":0,\"pid\":6}\n";
    site.write("work/log.jsonl", first);
    site
}

/// A program that follows the log, below a shell that is killed alone. It ends with the test.
struct Follower(i32);

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

/// Something that follows the log, once it does: `history -f` prints what is logged from then on.
fn following(site: &Site, pid: i32) -> Follower {
    let log = site.path("work/log.jsonl").canonicalize().expect("the log");
    // It opens the log before it goes to its end.
    let length = fs::metadata(&log).expect("the log").len();
    assert!(length > 0, "the end of the log is not its begin");
    let is_at_the_end = |pid: i32, fd: &Path| {
        let number = fd.file_name()?.to_str()?;
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        Some(
            info.lines()
                .any(|line| line.strip_prefix("pos:").is_some_and(|at| at.trim() == length.to_string())),
        )
    };
    let opens = |pid: i32| {
        let mut descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().map(|fd| fd.path());
        let follows = |fd: &PathBuf| {
            fs::read_link(fd).is_ok_and(|to| to == log) && is_at_the_end(pid, fd) == Some(true)
        };
        descriptors.any(|fd| follows(&fd)).then_some(pid)
    };
    let below = |pid: i32| -> Vec<i32> {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    };
    Follower(eventually("the log is followed", || {
        std::iter::once(pid).chain(below(pid)).chain(below(pid).into_iter().flat_map(below)).find_map(opens)
    }))
}

/// The service posts each refusal, and nothing else, to a real web server; one that does not answer stops nothing.
#[test]
fn webhook() {
    if !Path::new("/usr/bin/python3").exists() {
        return skip("python3 is not installed");
    }
    let site = logged();
    site.script("rungate-webhook", &recipe("/usr/local/lib/rungate-webhook"));
    let unit = recipe("/etc/systemd/system/rungate-webhook.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/bin/sh -c ")).expect("a command");
    let start = start.trim_matches('"').replace("/usr/local/lib/", "");
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let hook = format!("http://{}/hooks/4711", server.local_addr().expect("its address"));
    let service = shell(&site, &start).env("HOOK", &hook).background();
    let _follower = following(&site, service.pid());
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    site.test()
        .args(["run", "--", "matlab"])
        .stderr("rungate: matlab: not started: the limit is reached\n...\n")
        .status(75);
    server.set_nonblocking(true).expect("a socket");
    let (mut connection, _) = eventually("a request comes", || server.accept().ok());
    connection.set_nonblocking(false).expect("a socket");
    connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let mut request = String::new();
    let mut bytes = [0; 4096];
    while !request.contains("\"}") {
        let count = read_some(&mut connection, &mut bytes).expect("the request");
        assert!(count > 0, "{request}");
        request += &String::from_utf8_lossy(&bytes[..count]);
    }
    connection.write_all(b"HTTP/1.0 200 OK\r\n\r\n").expect("an answer");
    assert!(request.starts_with("POST /hooks/4711 HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with(": seats\"}") && request.contains("{\"text\": \"matlab of "), "{request}");
}

/// The script mails an event of an ended holder, and no other.
#[test]
fn mail() {
    let site = logged();
    site.script("mail", "#!/bin/sh\necho \"mail $*\"\ncat\n");
    site.script("rungate-mail", &recipe("/usr/local/lib/rungate-mail"));
    let mut script = shell(&site, "exec rungate-mail").background();
    let _follower = following(&site, script.pid());
    let event = |event: &str| {
        format!(
            "{{\"format\":1,\"time\":1790000000000,\"event\":\"{event}\",\"command\":\"matlab\",\"uid\":0,\"pid\":7}}\n"
        )
    };
    let mut log = fs::OpenOptions::new().append(true).open(site.path("work/log.jsonl")).expect("the log");
    log.write_all((event("refused") + &event("expired")).as_bytes()).expect("two events");
    assert_eq!(script.read_line(), "mail -s rungate: a run was ended ops\n");
    let mailed = script.read_line();
    assert!(mailed.contains("\"event\":\"expired\""), "{mailed}");
}

/// "Containers that share the directory of the repositories share the slots, with each other and with the
/// host."
#[test]
fn containers() {
    needs_root!();
    let site = site();
    let compose = recipe("compose.yaml");
    assert!(compose.contains("- /run/rungate:/run/rungate\n"), "{compose}");
    let inside =
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc", "--net"];
    let solve = site.test().args(["run", "--as", "solver", "--", "cat"]);
    let contained = solve.clone().through(inside);
    let mut in_container = contained.spawn();
    let refused = "rungate: solver: not started: the limit is reached\n...\n";
    solve.clone().stderr(refused).status(75);
    contained.clone().stderr(refused).status(75);
    // "The host sees all of them."
    let list = site.test().args(["list", "each"]);
    let (listed, _) = said(&list);
    assert!(listed.contains("cat") && listed.contains("1 of 1 used"), "{listed}");
    in_container.close_stdin();
    in_container.end();
    let _on_host = solve.spawn();
    contained.stderr(refused).status(75);
}

/// Each user can have three sessions of any kind, by the real PAM, which su(1) calls.
#[test]
fn pam() {
    needs_root!();
    if !Path::new("/usr/lib/x86_64-linux-gnu/security/pam_exec.so").exists() {
        return skip("pam_exec(8) is not where this test looks for it");
    }
    let site = Site::new();
    site.directory_over_run();
    site.rungate_in_bin();
    site.system_file("policy.toml", &recipe("/etc/rungate/policy.toml"));
    site.account("ann", &[]);
    site.account("bob", &[]);
    let script = recipe("/usr/local/lib/rungate-session").replace("PATH=/usr", "PATH=$DIR/bin:/usr");
    site.script("rungate-session", &script);
    let line = recipe("session required pam_exec.so quiet stdout /usr/local/lib/rungate-session");
    fs::create_dir(site.path("etc/pam.d")).expect("a directory");
    let service = format!(
        "auth sufficient pam_rootok.so\naccount required pam_permit.so\nsession required pam_permit.so\n{}",
        line.replace("/usr/local/lib", "$DIR/bin")
    );
    site.write("etc/pam.d/su", &service);
    let session = |user: &str| site.test().program("/usr/bin/su").args([user, "-s", "/bin/cat"]);
    let mut sessions: Vec<Running> = (0..3).map(|_| session("ann").spawn()).collect();
    let (printed, ending) = said(&session("ann"));
    assert!(ending != Ending::Status(0), "{printed}");
    // su(1) keeps to itself what PAM has to say; sshd(8) does not.
    let open = site.test().program(site.path("bin/rungate-session"));
    let (printed, _) = said(&open.env("PAM_TYPE", "open_session").env("PAM_USER", "ann"));
    assert!(printed.contains("You have three sessions. Close one of them first."), "{printed}");
    assert!(printed.contains("ry again later\n"), "{printed}");
    assert!(!printed.contains("--wait"), "nobody can give it there: {printed}");
    drop(session("bob").spawn());
    // The slot is free once the session has ended.
    let mut first = sessions.remove(0);
    first.close_stdin();
    first.end();
    let used = || site.test().args(["list", "sessions"]).outcome().stdout;
    eventually("the slot is free again", || used().contains("2 of 3 used").then_some(()));
    sessions.push(session("ann").spawn());
}
