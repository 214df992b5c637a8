//! Shims: a link to rungate with the name of a command is `rungate run` of that command, however it is
//! started, and starts the real program once, or says why not.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::support::{Site, Test, copy_program, is_root, needs_root, skip};

const POLICY: &str = r#"
    [repository.seats]
    limit = 1

    [[rule]]
    name     = "one seat"
    commands = ["matlab"]
    acquire  = ["seats"]
"#;

/// A site with a shim for a program that copies what it is given, as cat(1).
fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.shim("matlab");
    site
}

/// A line of shell, with the shims first in `PATH`.
fn shell(site: &Site, line: &str) -> Test {
    site.test().program("/bin/bash").env("PATH", "$DIR/shims:$DIR/bin:/usr/bin:/bin").args([
        "--norc",
        "--noprofile",
        "-c",
        line,
    ])
}

/// What a program finds as its arguments.
const ARGUMENTS: &str = "/proc/self/cmdline";

/// makes `matlab -r x` the same as `rungate run -- matlab -r x`
#[test]
fn a_shim_is_run_with_its_name() {
    let site = site();
    let matlab =
        site.test().program(site.path("shims/matlab")).env("PATH", "$DIR/shims:$DIR/bin:/usr/bin:/bin");
    let running = matlab.spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    let refusal = format!(
        "
        rungate: matlab: not started: the limit is reached
          seats  1 of 1 used
              rule \"one seat\", $DIR/policy.toml:[..]
              PID {} [..] matlab, since [time] ([age])
        Close one of yours, [..]rungate run --wait 30m -- matlab --version
        To see why: rungate explain -- matlab --version
        To end the oldest of yours: rungate end seats [pid]
        ",
        running.pid()
    );
    shell(&site, "matlab --version").stderr(&refusal).status(75);
    drop(running);
    shell(&site, "matlab /proc/self/cmdline").stdout("matlab\0/proc/self/cmdline\0").status(0);
}

/// argv[0] of the program stays what the user typed
#[test]
fn the_program_finds_its_name_as_typed() {
    let site = site();
    let typed = |word: &str| format!("{word}\0{ARGUMENTS}\0");
    shell(&site, "matlab /proc/self/cmdline").stdout(&typed("matlab")).status(0);
    shell(&site, "$DIR/shims/matlab /proc/self/cmdline").stdout(&typed("$DIR/shims/matlab")).status(0);
    shell(&site, "exec -a other matlab /proc/self/cmdline").stdout(&typed("other")).status(0);
    shell(&site, "exec -a rungate matlab /proc/self/cmdline").stdout(&typed("rungate")).status(0);
    shell(&site, "exec -a '' matlab /proc/self/cmdline").stdout(&typed("")).status(0);
    // The kernel's word counts, not the caller's.
    shell(&site, "cd $DIR/shims && exec -a other ./matlab /proc/self/cmdline")
        .stdout(&typed("other"))
        .status(0);
}

/// A script whose first line asks env(1) for the command, or names the shim as its interpreter.
#[test]
fn scripts_reach_the_program_through_the_shim() {
    let site = site();
    site.script("by-env", "#!/usr/bin/env matlab\nscript\n");
    site.script("by-path", "#!$DIR/shims/matlab\nscript\n");
    site.script("by-path-with-word", "#!$DIR/shims/matlab /proc/self/cmdline\nscript\n");
    shell(&site, "by-env").stdout("#!/usr/bin/env matlab\nscript\n").status(0);
    shell(&site, "by-path").stdout("#!$DIR/shims/matlab\nscript\n").status(0);
    shell(&site, "by-path-with-word")
        .stdout(
            "$DIR/shims/matlab\0/proc/self/cmdline\0$DIR/bin/by-path-with-word\0\
            #!$DIR/shims/matlab /proc/self/cmdline\nscript\n",
        )
        .status(0);
    // The script is not the shim, even where it bears the same name and comes later in PATH than the program.
    fs::create_dir(site.path("late")).expect("a directory");
    copy_program(site.path("bin/by-path"), site.path("late/matlab"));
    shell(&site, "$DIR/late/matlab")
        .env("PATH", "$DIR/shims:$DIR/bin:$DIR/late:/usr/bin:/bin")
        .stdout("#!$DIR/shims/matlab\nscript\n")
        .status(0);
    // They count, too.
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    for script in ["by-env", "by-path"] {
        shell(&site, script).stderr("rungate: matlab: not started: the limit is reached\n...\n").status(75);
    }
}

/// cron(8) gives its jobs a `PATH` of its own: the error says which one was searched.
#[test]
fn from_the_environment_of_cron() {
    let site = site();
    let job = |line: &str| {
        site.test()
            .program("/usr/bin/env")
            .args(["-i", "HOME=/", "LOGNAME=root", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"])
            .args(["RUNGATE_POLICY=$DIR/policy.toml", "/bin/sh", "-c", line])
    };
    job("$DIR/shims/matlab")
        .stderr(
            "
            rungate: matlab: not found behind the shim $DIR/shims/matlab
              PATH=/usr/bin:/bin
            Put the directory of the program into PATH, or name the program in the policy: [command.matlab] exec = \"/path\"
            ",
        )
        .status(127);
    job("matlab").stderr("[..]matlab: not found\n").status(127);
    job("PATH=$DIR/shims:$DIR/bin:$PATH; matlab /proc/self/cmdline")
        .stdout("matlab\0/proc/self/cmdline\0")
        .status(0);
    // A shim is the job of the program that the policy names, wherever that is.
    site.policy(&format!("{POLICY}\n[command.matlab]\nexec = \"$DIR/bin/matlab\""));
    job("$DIR/shims/matlab /proc/self/cmdline").stdout("$DIR/shims/matlab\0/proc/self/cmdline\0").status(0);
}

/// sudo(8) looks for the command along `secure_path`, and gives that to the command as its `PATH`.
#[test]
fn under_sudo() {
    needs_root!();
    let site = site();
    let sudo = |words: &[&str]| {
        site.test()
            .program("/usr/bin/sudo")
            .env("PATH", "$DIR/shims:$DIR/bin:/usr/bin:/bin")
            .args(["-n", "RUNGATE_POLICY=$DIR/policy.toml"])
            .args(words)
    };
    if !fs::exists("/usr/bin/sudo").is_ok_and(|exists| exists) {
        return skip("sudo is not installed");
    }
    // What sudo has to say of the machine's name, or of its settings, is none of our business.
    sudo(&["matlab"]).stderr("...\nsudo: matlab: command not found\n").status(1);
    sudo(&["$DIR/shims/matlab"])
        .stderr("...\nrungate: matlab: not found behind the shim $DIR/shims/matlab\n  PATH=[..]\n...\n")
        .status(127);
    site.policy(&format!("{POLICY}\n[command.matlab]\nexec = \"$DIR/bin/matlab\""));
    sudo(&["$DIR/shims/matlab", ARGUMENTS])
        .stderr("...\n")
        .stdout("$DIR/shims/matlab\0/proc/self/cmdline\0")
        .status(0);
}

/// A shell remembers where it found a command: one that ran the program before there was a shim passes it
/// by until `hash -r`.
#[test]
fn a_shell_that_remembers_the_path() {
    let site = site();
    fs::remove_file(site.path("shims/matlab")).expect("a shim");
    let rungate = site.rungate().display().to_string();
    let line = format!(
        "matlab /dev/null; ln -s {rungate} $DIR/shims/matlab; \
        matlab <<<passed-by; hash -r; matlab <<<counted; echo $?; \
        rm $DIR/shims/matlab; matlab; echo $?; hash -r; matlab <<<again"
    );
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    shell(&site, &line)
        .stdout("passed-by\n75\n127\nagain\n")
        .stderr(
            "
            rungate: matlab: not started: the limit is reached
            ...
            [..]: $DIR/shims/matlab: No such file or directory
            ",
        )
        .status(0);
}

/// The real program is in the first entry of `PATH` after the one that led here, whatever the entries look
/// like.
#[test]
fn the_search_goes_on_behind_the_shim() {
    let site = site();
    // Before the shim, and to be found by nobody who started that.
    fs::create_dir(site.path("early")).expect("a directory");
    copy_program("/bin/false", site.path("early/matlab"));
    let started = |path: &str, directory: &str, command: &str| {
        site.test()
            .program("/bin/bash")
            .env("PATH", path)
            .directory(directory)
            .args(["-c", &format!("{command} <<<started")])
            .stdout("started\n")
            .status(0);
    };
    for path in [
        "$DIR/shims:$DIR/bin",
        "$DIR/shims/:$DIR/bin",
        "$DIR/bin/../shims:$DIR/bin",
        "$DIR/shims:$DIR/shims:$DIR/bin",
        "$DIR/shims:$DIR/missing:$DIR/policy.toml:$DIR/bin",
        "$DIR/missing::$DIR/shims:$DIR/bin",
    ] {
        started(path, "work", "matlab");
    }
    for path in [":$DIR/bin", ".:$DIR/bin", "$DIR/missing:.:../bin", "./../shims:../bin"] {
        started(path, "shims", "matlab");
    }
    started("$DIR/shims:", "bin", "matlab");
    started("$DIR/early:$DIR/shims:$DIR/bin", "work", "$DIR/shims/matlab");
    // A shim in no entry: all of them are behind it.
    started("$DIR/bin:/usr/bin", "work", "$DIR/shims/matlab");
    started("$DIR/bin:/usr/bin", "work", "../shims/matlab");
    // Found by name, a shim is no program, and passed by.
    started("$DIR/shims:$DIR/bin", "work", &format!("{} run -- matlab", site.rungate().display()));
    started(
        "$DIR/missing:$DIR/bin",
        "work",
        &format!("{} run -- $DIR/shims/matlab", site.rungate().display()),
    );
    assert_eq!(site.held("seats.lock"), []);
}

#[test]
fn without_a_path_there_is_the_usual_one() {
    let site = site();
    site.shim("true");
    let unset = site.test().program(site.path("shims/true")).env_remove("PATH");
    unset.status(0);
    let empty = site.test().program(site.path("shims/matlab")).env("PATH", "");
    empty.clone().directory("bin").stdin("started\n").stdout("started\n").status(0);
    empty.stderr("rungate: matlab: not found behind the shim $DIR/shims/matlab\n  PATH=\n...\n").status(127);
}

/// A copy of the way in which ccache(1) looks for the compiler: the first entry of `PATH` that is not itself.
const WALKER: &str = r#"#!/bin/bash
    IFS=:
    for entry in $PATH; do
      found=$entry/matlab
      if [ -x "$found" ] && ! [ "$found" -ef "$0" ]; then
        HOW "$found" "$@" again
      fi
    done
    exit 1
"#;

/// Two systems of shims that find each other: one clear error.
#[test]
fn a_loop_ends_in_one_error() {
    for (how, policy) in [
        ("exec", POLICY.to_owned()),
        // Children of the walker have no part in its slot: without the program's own they would be refused
        // earlier.
        ("exit_with() { \"$@\"; exit $?; }; exit_with", POLICY.replace("limit = 1", "limit = 100")),
        ("exec", POLICY.replace("limit = 1", "limit = 100\nnested = \"take\"")),
    ] {
        let site = Site::with_policy(&policy);
        site.shim("matlab");
        site.script("matlab", &WALKER.replace("HOW", how));
        shell(&site, "matlab one")
            .stderr(
                "
                rungate: matlab: not started: it was launched 50 times below itself (RUNGATE_DEPTH)
                  PATH=$DIR/shims:$DIR/bin:/usr/bin:/bin
                  the shim $DIR/shims/matlab leads to $DIR/bin/matlab, and that leads back here
                Name the program itself in the policy: [command.matlab] exec = \"/path\"
                ",
            )
            .status(126);
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// A wrapper that says `rungate run -- matlab`, and is itself what that finds: also where no rule matches, so
/// that nothing is held that would tell.
#[test]
fn a_wrapper_that_finds_itself_ends_in_one_error() {
    for policy in [POLICY.to_owned(), POLICY.replace("[\"matlab\"]", "[\"another\"]")] {
        for exec in ["exec ", ""] {
            let site = Site::with_policy(&policy.replace("limit = 1", "limit = 100"));
            let rungate = site.rungate().display();
            site.script("matlab", &format!("#!/bin/sh\n{exec}{rungate} run -- matlab \"$@\"\n"));
            shell(&site, "matlab")
                .stderr(
                    "
                    rungate: matlab: not started: it was launched 50 times below itself (RUNGATE_DEPTH)
                      PATH=[..]
                      the command leads to $DIR/bin/matlab, and that leads back here
                    Name the program itself [..]
                    ",
                )
                .status(126);
        }
    }
}

/// Each name is counted for itself: what is below one shim may be below many others.
#[test]
fn depth_is_counted_for_each_name() {
    let site = Site::with_policy(POLICY);
    for (name, next) in [("first", "second"), ("second", "first two"), ("third", "true")] {
        site.shim(name);
        site.script(name, &format!("#!/bin/sh\necho $RUNGATE_DEPTH\n[ \"$1\" = two ] || exec {next}\n"));
    }
    shell(&site, "first").stdout("first=1/=[..]\nfirst=1/second=1/=[..]\nfirst=2/second=1/=[..]\n").status(0);
    shell(&site, "third").env("RUNGATE_DEPTH", "first=50/=/x").stdout("first=50/third=1/=[..]\n").status(0);
    shell(&site, "first")
        .env("RUNGATE_DEPTH", "first=50/=/x")
        .stderr("rungate: first: not started: [..]\n...\n")
        .status(126);
}

/// A launch follows another one that was long ago, if the same process makes it, or if the process of that
/// one has ended. It counts below a process that is still there, and soon after the other one.
#[test]
fn a_launch_that_follows_another_is_not_below_it() {
    let site = Site::with_policy(POLICY);
    site.shim("worker");
    site.script("worker", "#!/bin/sh\necho $RUNGATE_DEPTH\n");
    let (ended, long_ago, now) = (i32::MAX.to_string(), "1000000000", "$(date +%s)");
    for (process, at, how, is_below) in [
        ("$$", long_ago, "exec worker", false),
        ("$$", long_ago, "worker; exit", true),
        (ended.as_str(), long_ago, "exec worker", false),
        (ended.as_str(), long_ago, "worker; exit", false),
        ("$$", now, "exec worker", true),
        (ended.as_str(), now, "worker; exit", true),
    ] {
        let line = format!("export RUNGATE_DEPTH=worker=50/={process}@{at}; {how}");
        if is_below {
            shell(&site, &line).stderr("rungate: worker: not started: [..]\n...\n").status(126);
        } else {
            shell(&site, &line).stdout("worker=50/=[..]\n").status(0);
        }
    }
}

/// Other copies of rungate: a link to another installation is passed by, a copy that bears the name of the
/// command is one more way to the same program.
#[test]
fn other_copies_of_rungate() {
    let site = site();
    for directory in ["other", "other/bin", "copy", "hard"] {
        fs::create_dir(site.path(directory)).expect("a directory");
    }
    copy_program(site.rungate(), site.path("other/bin/rungate"));
    symlink("bin/rungate", site.path("other/matlab")).expect("its shim");
    copy_program(site.rungate(), site.path("copy/matlab"));
    if fs::hard_link(site.rungate(), site.path("hard/matlab")).is_err() {
        copy_program(site.rungate(), site.path("hard/matlab"));
    }
    for path in [
        "$DIR/shims:$DIR/other:$DIR/copy:$DIR/hard:$DIR/bin",
        "$DIR/hard:$DIR/copy:$DIR/other:$DIR/shims:$DIR/bin",
        "$DIR/copy:$DIR/bin",
        "$DIR/other:$DIR/shims:$DIR/copy:$DIR/bin",
    ] {
        let matlab = shell(&site, "exec matlab").env("PATH", path);
        let running = matlab.spawn();
        assert_eq!(site.held_numbers("seats.lock"), [1], "{path}");
        matlab.clone().stderr("rungate: matlab: not started: the limit is reached\n...\n").status(75);
        drop(running);
    }
    for path in ["$DIR/shims:$DIR/other:$DIR/copy", "$DIR/copy:$DIR/other:$DIR/shims", "$DIR/other:$DIR/hard"]
    {
        shell(&site, "matlab")
            .env("PATH", path)
            .stderr("rungate: matlab: not found behind the shim [..]\n  PATH=[..]\n[..]\n")
            .status(127);
    }
}

/// A copy of rungate under another name is a shim for that name, and says so to whoever did not expect
/// that.
#[test]
fn a_copy_under_another_name_says_what_it_is() {
    let site = site();
    copy_program(site.rungate(), site.path("bin/rg"));
    shell(&site, "rg status")
        .stderr(
            "
            rungate: rg: not found behind the shim $DIR/bin/rg, a copy of rungate
              PATH=$DIR/shims:$DIR/bin:/usr/bin:/bin
            rungate is a shim under any other name. To run rungate, call the file rungate: mv $DIR/bin/rg $DIR/bin/rungate
            ",
        )
        .status(127);
}

/// A shim has no option that could name a policy: what is said if there is none must not ask for one.
#[test]
fn without_a_policy_a_shim_starts_nothing() {
    let site = Site::new();
    site.program("matlab");
    site.shim("matlab");
    shell(&site, "matlab")
        .stderr(
            "
            rungate: matlab: not started: there is no policy that says what may start
            Write one to begin with: rungate init matlab
            Remove the shim: rm $DIR/shims/matlab
            ",
        )
        .status(78);
    shell(&site, "$0 shim list").args([site.rungate()])
        .stdout("SHIM[gap]STARTS[gap]RULES[gap]NOTE\n$DIR/shims/matlab[gap]$DIR/bin/matlab[gap]-[gap]there is no policy, so it starts nothing\n\nWAY IN[gap]SHIMS\n...\n")
        .status(0);
    // What would happen is what happens.
    site.test()
        .args(["explain", "--", "matlab"])
        .stdout("...\nnow   refused, status 78: there is no policy that says what may start\nNothing was taken.\n")
        .status(0);
}

/// "`[command.NAME] exec`": a shim that the policy names as its own program would start itself.
#[test]
fn the_policy_cannot_name_the_shim_as_the_program() {
    let site = site();
    site.policy(&format!("{POLICY}\n[command.matlab]\nexec = \"$DIR/shims/matlab\""));
    shell(&site, "matlab")
        .stderr(
            "
            rungate: $DIR/shims/matlab: not started: the policy names it as the program, and it is rungate itself
            Name the program itself there, not the shim: [command.NAME] exec
            ",
        )
        .status(126);
}

/// Shims named `rungate`, `sh`, `env` or a shell are refused.
#[test]
fn some_names_are_refused() {
    let site = Site::with_policy(POLICY);
    for name in ["sh", "env", "bash"] {
        site.shim(name);
        site.test()
            .program(site.path("shims").join(name))
            .args(["-c", "true"])
            .stderr(&format!(
                "
                rungate: {name}: not started: $DIR/shims/{name} is a link to rungate, and shells and env [..]
                Remove the link: rm $DIR/shims/{name}
                "
            ))
            .status(78);
    }
    if is_root() {
        // The directory is root's.
        let others = site.test().user("games").program(site.path("shims/sh"));
        let said = "...\nAsk your administrator to remove the link: rm $DIR/shims/sh\n";
        others.args(["-c", "true"]).stderr(said).status(78);
    }
    site.shim("rungate");
    site.shim("rungate-0.1");
    for name in ["rungate", "rungate-0.1"] {
        site.test()
            .program(site.path("shims").join(name))
            .args(["--version"])
            .stdout("rungate [..]\n")
            .status(0);
    }
    site.test()
        .program("/bin/bash")
        .args(["-c", "exec -a matlab $DIR/shims/rungate --version"])
        .stdout("rungate [..]\n")
        .status(0);
}

/// Transparent: working directory, umask and environment reach the program as they came.
#[test]
fn a_shim_changes_nothing() {
    let site = Site::new();
    site.policy("[[rule]]\nname = \"free\"\ncommands = [\"env\"]\naction = \"exempt\"");
    site.script(
        "report",
        "#!/bin/sh\npwd; umask; env | grep -v ^_=; echo \"$#\" \"$@\"; trap; ls /proc/self/fd | wc -l\n",
    );
    site.shim("report");
    let report = |through: &str| {
        let line = format!("umask 027; cd /var; A=b {through} '' 'a b' --help -- -n 7</dev/null");
        shell(&site, &line).outcome().stdout
    };
    let (plain, shimmed) = (report("$DIR/bin/report"), report("report"));
    let is_of_caller = |line: &&str| !line.starts_with("RUNGATE_DEPTH=report=1/=");
    assert_eq!(shimmed.split_inclusive('\n').filter(is_of_caller).collect::<String>(), plain);
    assert!(plain.contains("0027\n") && plain.contains("A=b\n"), "{plain}");
}

/// The instructions, in user space, from the start of a process to its exec.
fn instructions(site: &Site, name: &str, program: &str, words: &[&str]) -> u64 {
    let out = site.path("work").join(name);
    site.test()
        .program("/usr/bin/valgrind")
        .env("PATH", "$DIR/shims:$DIR/bin:/usr/bin:/bin")
        .args(["--quiet", "--tool=callgrind", "--dump-before=execve"])
        .args([format!("--callgrind-out-file={}", out.display()), site.expand(program)])
        .args(words)
        .status(0);
    let profile = fs::read_to_string(out.with_extension("1")).expect("the profile up to execve");
    let sum = profile.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a sum");
    sum.parse().expect("a number")
}

/// A shim adds no more than `rungate run` does. That clap is in neither is seen in the launcher's symbols.
#[test]
fn a_shim_costs_no_more_than_run() {
    if !fs::exists("/usr/bin/valgrind").is_ok_and(|exists| exists) {
        return skip("valgrind(1) is not installed");
    }
    let site = site();
    let rungate = site.rungate().display().to_string();
    let shim = instructions(&site, "shim", "$DIR/shims/matlab", &["/dev/null"]);
    let run = instructions(&site, "run", &rungate, &["run", "--", "matlab", "/dev/null"]);
    assert!(shim <= run + run / 50, "{shim} instructions of a shim, {run} of rungate run");
}

/// `explain` names the shim that a command goes through.
#[test]
fn explain_names_the_shim() {
    let site = site();
    site.test()
        .env("PATH", "$DIR/shims:$DIR/bin:/usr/bin:/bin")
        .args(["explain", "--", "matlab"])
        .stdout("request  matlab -> $DIR/bin/matlab (shim $DIR/shims/matlab)\n...\n")
        .status(0);
}

const NAMES: &str = r#"
    [alias]
    tools = ["mex", "matlab*"]

    [repository.seats]
    limit = 1

    [command.virtuoso]
    exec = "/opt/virtuoso"

    [[rule]]
    name     = "one seat"
    commands = ["matlab", "@tools", "/opt/spectre/bin/spectre", "bash"]
    acquire  = ["seats"]
"#;

/// `rungate shim install` makes a link for each command that the policy names literally, all of them or
/// none.
#[test]
fn install() {
    let site = Site::with_policy(NAMES);
    let shim = |words: &[&str]| site.test().args(["shim"]).args(words);
    let note = "rungate: no shim for bash: shells and env start other programs, and must not be replaced\n";
    let missing = "rungate: opendir $DIR/work/new: No such file or directory\n";
    shim(&["remove", "new"]).stderr(missing).status(71);
    let rungate = site.rungate().canonicalize().expect("rungate").display().to_string();
    let made = format!(
        "$DIR/work/new/matlab -> {rungate}\n$DIR/work/new/mex -> {rungate}\n$DIR/work/new/virtuoso -> {rungate}\n"
    );
    shim(&["install", "--dry-run", "new"]).stdout(&made).stderr(note).status(0);
    assert!(!site.path("work/new").exists());
    site.write("work/file", "");
    let in_the_way = format!("{note}rungate: opendir $DIR/work/file: Not a directory\n");
    shim(&["install", "file"]).stderr(&in_the_way).status(71);
    shim(&["install", "new"]).stderr(note).status(0);
    assert_eq!(fs::read_dir(site.path("work/new")).expect("the directory").count(), 3);
    let linked = fs::metadata(site.path("work/new/mex")).expect("a link");
    assert_eq!(linked.ino(), fs::metadata(site.rungate()).expect("rungate").ino());
    // Once more changes nothing.
    shim(&["install", "--dry-run", "new"]).stderr(note).status(0);
    shim(&["install", "new", "mex", "mex", "gcc"]).status(0);
    assert_eq!(fs::read_dir(site.path("work/new")).expect("the directory").count(), 4);
}

/// "A missing directory is created with mode 0755, regardless of the umask", and so are those above it.
#[test]
fn install_makes_a_directory_that_all_users_can_search() {
    let site = Site::with_policy(POLICY);
    let install = site.test().program("/bin/sh").args(["-c", "umask 0077; exec \"$0\" \"$@\""]);
    let install = install.args([site.rungate().as_os_str()]);
    install.args(["shim", "install", "$DIR/work/above/shims", "matlab"]).status(0);
    let mode = |path: &str| fs::metadata(site.path(path)).expect("a directory").mode() & 0o7777;
    assert_eq!(["work/above", "work/above/shims"].map(mode), [0o755, 0o755]);
    assert!(site.path("work/above/shims/matlab").exists());
}

/// A shim leads to rungate by the name that was typed: after an upgrade that name leads to the next version.
#[test]
fn install_keeps_the_name_that_was_typed() {
    let site = Site::with_policy(POLICY);
    let named = site.path("bin").canonicalize().expect("the directory").join("rungate");
    symlink(site.rungate(), &named).expect("a link");
    for typed in ["rungate", "../bin/rungate"] {
        site.test().program(typed).args(["shim", "install", ".", "matlab"]).status(0);
        let shim = site.path("work/matlab");
        assert_eq!(fs::read_link(&shim).expect("a link"), named, "{typed}");
        fs::remove_file(shim).expect("it is there");
    }
}

/// A path that was typed leads from the working directory, also if `PATH` has such a file.
#[test]
fn install_keeps_the_path_that_was_typed() {
    let site = Site::with_policy(POLICY);
    let base = site.path("work").canonicalize().expect("the directory");
    for below in ["next", "path/next"] {
        fs::create_dir_all(base.join(below)).expect("a directory");
        symlink(site.rungate(), base.join(below).join("rungate")).expect("a link");
    }
    let shell = site.test().program("/bin/sh").env("PATH", "$DIR/work/path:/usr/bin:/bin");
    shell.args(["-c", "next/rungate shim install . matlab"]).status(0);
    assert_eq!(fs::read_link(base.join("matlab")).expect("a link"), base.join("next/rungate"));
}

/// "Only links to rungate are replaced": after a move of rungate, install lets all shims lead to it again.
#[test]
fn install_replaces_links_to_another_rungate() {
    let site = Site::with_policy(POLICY);
    let rungate = site.rungate().canonicalize().expect("rungate").display().to_string();
    copy_program(site.rungate(), site.path("bin/rungate-0.1"));
    let link = |name: &str| site.path("shims").join(name);
    site.shim("matlab");
    let here = fs::read_link(link("matlab")).expect("a link");
    symlink("/opt/gone/bin/rungate", link("gone")).expect("a link");
    symlink(site.path("bin/rungate-0.1"), link("older")).expect("a link");
    let install = |words: &[&str]| {
        site.test().args(["shim", "install"]).args(words).args(["$DIR/shims", "matlab", "gone", "older"])
    };
    let made = format!("$DIR/shims/gone -> {rungate}\n$DIR/shims/older -> {rungate}\n");
    install(&["--dry-run"]).stdout(&made).status(0);
    let targets = || ["gone", "older"].map(|name| fs::read_link(link(name)).expect("a link"));
    assert_eq!(targets(), ["/opt/gone/bin/rungate".into(), site.path("bin/rungate-0.1")]);
    install(&[]).status(0);
    assert_eq!(targets(), [&rungate, &rungate].map(std::path::PathBuf::from));
    assert_eq!(fs::read_link(link("matlab")).expect("a link"), here, "it led here before");
    install(&["--dry-run"]).status(0);
    assert_eq!(fs::read_dir(site.path("shims")).expect("the directory").count(), 3);
}

/// "Nothing that is not a link to rungate is written over."
#[test]
fn install_writes_over_nothing() {
    let site = Site::with_policy(POLICY);
    fs::create_dir(site.path("work/dir")).expect("a directory");
    site.write("work/file", "precious\n");
    symlink("/bin/true", site.path("work/link")).expect("a link");
    site.test()
        .args(["shim", "install", ".", "matlab", "file", "link", "dir", "sh", "a/b", "rungate"])
        .stderr(
            "
            rungate: no shims created:
              $DIR/work/./file is a file, not a link to rungate
              $DIR/work/./link is a link to something else
              $DIR/work/./dir is a directory
              sh: shells and env start other programs, and must not be replaced
              a/b: that is not the name of a command
              rungate: rungate itself has that name
            Existing files are never overwritten. Name the commands that need one after the directory.
            ",
        )
        .status(1);
    assert!(!fs::exists(site.path("work/matlab")).expect("a look"));
    assert_eq!(fs::read_to_string(site.path("work/file")).expect("the file"), "precious\n");
    site.test()
        .env_remove("RUNGATE_POLICY")
        .args(["shim", "install", "."])
        .stderr(
            "
            rungate: no shims created: there is no policy
            Name the commands: rungate shim install . NAME...
            ",
        )
        .status(64);
}

/// "All of them or none", also where a name is too long for the file system.
#[test]
fn install_makes_none_where_one_cannot_be() {
    let site = Site::with_policy(POLICY);
    let long = "x".repeat(300);
    site.test()
        .args(["shim", "install", ".", "matlab", &long])
        .stderr(&format!("rungate: no shims created:\n  $DIR/work/./{long} cannot be inspected\n[..]\n"))
        .status(1);
    assert_eq!(fs::read_dir(site.path("work")).expect("the directory").count(), 0);
}

/// `remove` removes only links to rungate, also to one that is gone.
#[test]
fn remove() {
    let site = Site::with_policy(POLICY);
    for name in ["mex", "matlab", "rungate"] {
        site.shim(name);
    }
    symlink("/opt/gone/bin/rungate", site.path("shims/gone")).expect("a link");
    symlink("/bin/true", site.path("shims/true")).expect("a link");
    fs::write(site.path("shims/file"), "precious\n").expect("a file");
    let remove = |words: &[&str]| site.test().args(["shim", "remove", "$DIR/shims"]).args(words);
    remove(&["matlab", "true", "file", "missing", "rungate"])
        .stderr(
            "
            rungate: no shims removed:
              $DIR/shims/true is a link to something else
              $DIR/shims/file is a file, not a link to rungate
              $DIR/shims/missing is not there
              rungate: rungate itself has that name
            To see what there is: rungate shim list
            ",
        )
        .status(1);
    remove(&["mex", "mex"]).status(0);
    remove(&[]).status(0);
    remove(&[]).status(0);
    let mut left: Vec<String> = fs::read_dir(site.path("shims"))
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    left.sort();
    assert_eq!(left, ["file", "rungate", "true"]);
}

/// `list` shows what each shim starts, which rules match, and what stands in its way.
#[test]
fn list() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 1

        [command.named]
        exec = "/bin/true"

        [[rule]]
        name     = "one seat"
        commands = ["matlab", "missing", "m*"]
        acquire  = ["seats"]

        [[rule]]
        name     = "not for you"
        commands = ["matlab"]
        users    = ["nobody-at-all"]
        action   = "deny"
        "#,
    );
    for name in ["matlab", "missing", "mex", "named", "sh"] {
        site.shim(name);
    }
    symlink("/opt/gone/bin/rungate", site.path("shims/gone")).expect("a link");
    site.program("matlab");
    fs::create_dir(site.path("early")).expect("a directory");
    fs::copy("/bin/true", site.path("early/mex")).expect("a program");
    let list = |path: &str, words: &[&str]| site.test().env("PATH", path).args(["shim", "list"]).args(words);
    list("$DIR/early:$DIR/shims:$DIR/bin:$DIR/shims", &[])
        .stdout(
            "
            SHIM[gap]STARTS[gap]RULES[gap]NOTE
            $DIR/shims/gone[gap]-[gap]-[gap]points to a rungate that does not exist
            $DIR/shims/matlab[gap]$DIR/bin/matlab[gap]one seat
            $DIR/shims/mex[gap]-[gap]one seat[gap]shadowed by $DIR/early/mex
            $DIR/shims/missing[gap]-[gap]one seat[gap]no program behind it
            $DIR/shims/named[gap]/usr/bin/true[gap]-
            $DIR/shims/sh[gap]-[gap]-[gap]shells and env start other programs, and must not be replaced

            WAY IN[gap]SHIMS
            ...
            ",
        )
        .status(0);
    list("$DIR/bin", &["$DIR/bin"]).status(0);
    list("$DIR/bin", &["$DIR/missing"])
        .stderr("rungate: opendir $DIR/missing: No such file or directory\n")
        .status(71);
    for name in ["missing", "mex", "named", "sh", "gone"] {
        fs::remove_file(site.path("shims").join(name)).expect("a link");
    }
    list("$DIR/bin", &["--json", "$DIR/shims"])
        .stdout(
            r#"
            [
              {
                "format": 1,
                "in_path": false,
                "name": "matlab",
                "note": "its directory is not in PATH",
                "path": "$DIR/shims/matlab",
                "program": "$DIR/bin/matlab",
                "rules": [
                  "one seat"
                ],
                "shadowed_by": null,
                "ways": {
            ...
                }
              }
            ]
            "#,
        )
        .status(0);
}
