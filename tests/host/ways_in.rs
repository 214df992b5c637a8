//! For each way in, whether a shim works: real shells with real startup files, each by itself, and what
//! `rungate shim list` says of all of them. `packaging/test-ways-in` asks sshd, cron, su and sudo in a Debian
//! of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{
    Account, Site, Test, copy_program, eventually, is_alive, is_root, needs_root, set_mode, skip,
};
use crate::tools::doctor::all_found;

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/ways-in").join(name)
}

/// The rows of the table of ways, each with what it says of the shims, and the commands below it.
fn told(list: &Test) -> (Vec<(String, String)>, Vec<String>) {
    let text = list.outcome().stdout;
    let (_, ways) = text.split_once("WAY IN").unwrap_or_else(|| panic!("no ways in are told: {text}"));
    let rows = ways.lines().skip(1).take_while(|line| !line.starts_with("To use")).map(cells);
    let rows: Vec<(String, String)> = rows.collect();
    let remedies =
        ways.lines().skip(1).filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect();
    (rows, remedies)
}

/// The same, once every shell has answered: within five seconds, or it is asked again.
#[track_caller]
fn told_by_all(list: &Test) -> (Vec<(String, String)>, Vec<String>) {
    eventually("every shell answers", || {
        Some(told(list)).filter(|(rows, _)| rows.iter().all(|(_, says)| says != "no answer in time"))
    })
}

/// Returns when each way says what it must. A shell that does not answer within five seconds says nothing,
/// and is asked again.
#[track_caller]
fn come_to_say(list: &Test, remedies: &[String], expected: impl Fn(&str) -> Option<&'static str>) {
    let mut last = Vec::new();
    let is_right = |(way, says): &(String, String)| expected(way).is_none_or(|expected| says == expected);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("each way says what it must", || {
            last = told(list).0;
            last.iter().all(is_right).then_some(())
        });
    }));
    assert!(found.is_ok(), "{last:#?} after {remedies:#?}");
}

fn cells(row: &str) -> (String, String) {
    let verdicts = ["do not work", "work", "only root can tell", "no answer in time", "cannot be told"];
    let found = verdicts.iter().find_map(|says| Some((row.strip_suffix(says)?.trim_end(), *says)));
    let (way, says) = found.unwrap_or_else(|| panic!("a row that ends with a verdict: {row}"));
    (way.to_owned(), says.to_owned())
}

/// What no line in a file of the environment can do.
fn is_elsewhere(way: &str) -> bool {
    way == "cron" || way == "sudo" || way == "systemd, services"
}

/// A user, who has no startup files yet, at a site with one shim that is not in their `PATH`.
fn newcomer(site: &Site) -> Test {
    site.program("matlab");
    site.shim("matlab");
    let user = if is_root() { "games".to_owned() } else { Account::own().name };
    site.test().user(&user).env_remove("XDG_CONFIG_HOME").env("HOME", "$DIR/work/home")
}

/// Says for which of them a shim works, and the commands that it tells have the others work as well.
#[test]
fn what_users_are_told_to_do_makes_shims_work() {
    let site = Site::with_policy("[[rule]]\nname = \"any\"\ncommands = [\"*\"]\naction = \"exempt\"");
    let user = newcomer(&site);
    user.clone().program("/bin/mkdir").args(["$DIR/work/home"]).status(0);
    // Debian's ends at once where nobody types.
    let guard = "case $- in *i*) ;; *) return ;; esac";
    let write = format!("echo '{guard}' >$DIR/work/home/.bashrc; touch $DIR/work/home/.bash_profile");
    user.clone().program("/bin/sh").args(["-c", &write]).status(0);
    let list = user.clone().args(["shim", "list", "$DIR/shims"]);
    let (before, remedies) = told_by_all(&list);
    assert!(before.iter().any(|(way, says)| way == "sh, logged in" && says == "do not work"), "{before:?}");
    assert!(remedies.len() >= 2, "{remedies:?}");
    for remedy in remedies.iter().filter(|remedy| !remedy.starts_with("as root") && remedy.contains("~/")) {
        user.clone().program("/bin/bash").args(["-c", remedy]).status(0);
    }
    let by_root_alone = ["sh, ssh HOST COMMAND", "su USER -c COMMAND"];
    come_to_say(&list, &remedies, |way| {
        let expected = if by_root_alone.contains(&way) { "do not work" } else { "work" };
        (!is_elsewhere(way)).then_some(expected)
    });
}

/// The same for root, for everybody.
#[test]
fn what_root_is_told_to_do_makes_shims_work() {
    needs_root!();
    let site = Site::new();
    site.system_policy("version = 1");
    site.program("matlab");
    site.shim("matlab");
    for directory in ["etc/zsh", "etc/fish", "etc/sudoers.d"] {
        fs::create_dir(site.path(directory)).expect("a directory of the site");
    }
    let sudoers = "Defaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\nroot ALL=(ALL:ALL) ALL\n";
    site.write("etc/sudoers", &format!("{sudoers}@includedir /etc/sudoers.d\n"));
    set_mode(&site.path("etc/sudoers"), 0o440);
    let list = site.test().args(["shim", "list", "$DIR/shims"]);
    let (before, remedies) = told_by_all(&list);
    assert!(before.iter().all(|(_, says)| says == "do not work"), "{before:?}");
    for remedy in remedies.iter().filter(|remedy| remedy.contains(">>/etc/")) {
        site.test().program("/bin/bash").args(["-c", remedy]).status(0);
    }
    come_to_say(&list, &remedies, |way| (!is_elsewhere(way) || way == "sudo").then_some("work"));
    if !remedies.iter().any(|remedy| remedy.contains("/etc/sudoers.d/rungate")) {
        return skip("sudo is not installed");
    }
    let parsed = "/etc/sudoers: parsed OK\n/etc/sudoers.d/rungate: parsed OK\n";
    site.test().program("/usr/sbin/visudo").args(["-c"]).stdout(parsed).status(0);
}

/// The commands keep what files have: content, mode, and the link that a file of a user's may be. They quote a
/// directory whose name has a blank.
#[test]
fn the_commands_for_users_keep_their_files() {
    let site = Site::with_policy("[[rule]]\nname = \"any\"\ncommands = [\"*\"]\naction = \"exempt\"");
    let user = newcomer(&site);
    let write = "mkdir -p $DIR/work/home/dots && cd $DIR/work/home && echo '# first' >dots/bashrc && \
        chmod 600 dots/bashrc && ln -s dots/bashrc .bashrc && printf '# no newline' >.profile";
    user.clone().program("/bin/sh").args(["-c", write]).status(0);
    fs::create_dir(site.path("my shims")).expect("a new directory");
    set_mode(&site.path("my shims"), 0o755);
    symlink(site.rungate(), site.path("my shims/matlab")).expect("a new link");
    let list = user.clone().args(["shim", "list", "$DIR/my shims"]);
    let (_, remedies) = told_by_all(&list);
    for remedy in remedies.iter().filter(|remedy| !remedy.starts_with("as root") && remedy.contains("~/")) {
        user.clone().program("/bin/bash").args(["-c", remedy]).status(0);
    }
    let home = site.path("work/home");
    let text = |name: &str| fs::read_to_string(home.join(name)).expect("a startup file");
    let line = format!("PATH=\"{}:$PATH\"\n", site.path("my shims").display());
    assert_eq!(text(".profile"), format!("# no newline\n{line}"));
    if remedies.iter().any(|remedy| remedy.ends_with("~/.bashrc")) {
        let target = fs::metadata(home.join("dots/bashrc")).expect("the file of the user");
        assert_eq!(text("dots/bashrc"), format!("{line}# first\n"));
        assert_eq!(fs::read_link(home.join(".bashrc")).expect("a link"), Path::new("dots/bashrc"));
        assert_eq!(target.permissions().mode() & 0o777, 0o600);
    }
    come_to_say(&list, &remedies, |way| way.ends_with(", logged in").then_some("work"));
}

/// Settings that must contain the whole search path keep the directories that the host has in it.
#[test]
fn the_commands_for_root_keep_the_directories_of_the_host() {
    needs_root!();
    let site = Site::new();
    site.system_policy("version = 1");
    site.program("matlab");
    site.shim("matlab");
    fs::create_dir(site.path("etc/sudoers.d")).expect("a directory of the site");
    let sudoers =
        "Defaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin\"\nroot ALL=(ALL:ALL) ALL\n";
    site.write("etc/sudoers", &format!("{sudoers}@includedir /etc/sudoers.d\n"));
    set_mode(&site.path("etc/sudoers"), 0o440);
    let list = site.test().args(["shim", "list", "$DIR/shims"]);
    let shims = site.path("shims").display().to_string();
    let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let to_environment = |remedies: &[String]| {
        let mut found = remedies.iter().filter(|remedy| remedy.ends_with("/etc/environment"));
        found.next().expect("a command for that file").clone()
    };
    for (before, after) in [
        ("LANG=C.UTF-8".to_owned(), format!("LANG=C.UTF-8\nPATH={shims}:{usual}\n")),
        (
            "PATH=\"/usr/bin:/bin:/snap/bin\"\nLANG=C.UTF-8".to_owned(),
            format!("PATH=\"{shims}:/usr/bin:/bin:/snap/bin\"\nLANG=C.UTF-8"),
        ),
        (
            "export PATH='/usr/bin:/snap/bin'\n".to_owned(),
            format!("export PATH='/usr/bin:/snap/bin'\nPATH={shims}:/usr/bin:/snap/bin\n"),
        ),
        // An empty entry is the current directory.
        ("PATH=:/usr/bin:\n".to_owned(), format!("PATH=:/usr/bin:\nPATH={shims}:/usr/bin\n")),
    ] {
        site.write("etc/environment", &before);
        let (_, remedies) = told_by_all(&list);
        site.test().program("/bin/sh").args(["-c", &to_environment(&remedies)]).status(0);
        assert_eq!(fs::read_to_string(site.path("etc/environment")).expect("the file"), after);
    }
    let (_, remedies) = told_by_all(&list);
    let Some(sudo) = remedies.iter().find(|remedy| remedy.contains("/etc/sudoers.d/rungate")) else {
        return skip("sudo is not installed");
    };
    let line = format!("'Defaults secure_path=\"{shims}:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin\"'");
    assert!(sudo.contains(&line), "{sudo}");
}

/// It is not silent when there are none.
#[test]
fn a_host_without_shims_is_told_how_to_have_some() {
    let site = Site::new();
    site.test()
        .args(["shim", "list"])
        .stderr(
            "
            rungate: there are no shims in PATH, nor in /etc/rungate/shims
            To create one for each command that the policy names: rungate shim install /etc/rungate/shims
            ",
        )
        .status(0);
}

/// With `--json`, each shim has its ways.
#[test]
fn ways_have_names_of_their_own_in_json() {
    let site = Site::new();
    site.program("matlab");
    site.shim("matlab");
    let answer = eventually("the shell answers", || {
        let text = site.test().args(["shim", "list", "--json", "$DIR/shims"]).outcome().stdout;
        let shims: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        shims[0]["ways"]["sh-login"].as_bool()
    });
    assert!(!answer);
}

/// Startup files may say much, and may never end.
#[test]
fn a_shell_that_says_much_or_hangs_stops_nobody() {
    let site = Site::new();
    let user = newcomer(&site);
    fs::create_dir(site.path("work/home")).expect("a home");
    site.write(
        "work/home/.profile",
        "echo Welcome; printf 'no newline'; sleep 1000 & PATH=$DIR/shims:$PATH\n",
    );
    let list = user.args(["shim", "list", "$DIR/shims"]);
    assert!(told(&list).0.iter().any(|(way, _)| way == "sh, logged in"));
    come_to_say(&list, &[], |way| (way == "sh, logged in").then_some("work"));
    site.write("work/home/.profile", "exec sleep 1000\n");
    come_to_say(&list, &[], |way| (way == "sh, logged in").then_some("no answer in time"));
}

/// A startup file may ask for the ways in itself: where one asks already, no shell is started. What a startup file leaves
/// in its process group ends with its shell.
#[test]
fn a_startup_file_that_asks_starts_no_shells() {
    let site = Site::new();
    let user = newcomer(&site);
    fs::create_dir(site.path("work/home")).expect("a home");
    // One level, without the program in the startup file: a defect must not start shells without end.
    site.write(
        "work/home/.profile",
        "echo \"${RUNGATE_WAYS-unset}\" >>$DIR/work/asked; sleep 1000 & echo $! >>$DIR/work/left\n",
    );
    for name in ["asked", "left"] {
        site.write(format!("work/{name}"), "");
        set_mode(&site.path(format!("work/{name}")), 0o666);
    }
    let list = user.args(["shim", "list", "$DIR/shims"]);
    let text = |name: &str| fs::read_to_string(site.path(format!("work/{name}"))).expect("a file");
    // A server that a startup file started may pass the variable to other shells: they get the reason.
    let inherited = list.clone().env("RUNGATE_WAYS", "1");
    inherited.stdout("SHIM [..]\n[..]\n\nWays in: not asked: RUNGATE_WAYS is set; unset it\n").status(0);
    let doctor = site.test().env("RUNGATE_WAYS", "1").env("PATH", "$DIR/shims:/usr/bin:/bin");
    let found = all_found(&doctor.args(["doctor", "ways"]));
    let note = ("note", "ways-not-asked", ["unset RUNGATE_WAYS"]);
    assert!(
        found.iter().any(|(status, code, fix)| (status.as_str(), code.as_str()) == (note.0, note.1) && *fix == note.2),
        "{found:?}"
    );
    assert!(found.iter().all(|(status, ..)| status != "ok"), "{found:?}");
    assert_eq!(text("asked"), "");
    // A shell that does not answer in time is asked again.
    eventually("a shell reads its startup file", || {
        told(&list);
        (!text("left").is_empty()).then_some(())
    });
    assert!(text("asked").lines().all(|line| line == "1"), "{}", text("asked"));
    let left = text("left");
    let left: Vec<i32> = left.lines().map(|line| line.parse().expect("a process")).collect();
    eventually("what the shells left has ended", || left.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

/// A shell with a file that it reads at its start finds the shims first, once, also in a shell below it.
#[track_caller]
fn finds_shims_first(site: &Site, shell: &str, words: &[&str]) {
    let program = Path::new("/usr/bin").join(shell);
    if !program.exists() {
        return skip(&format!("{shell} is not installed"));
    }
    let shims = "/etc/rungate/shims:/usr/bin:/bin\n";
    site.test()
        .program(program)
        .env("PATH", "/usr/bin:/bin")
        .args(words)
        .stdout(&format!("{shims}{shims}"))
        .status(0);
}

#[test]
fn the_snippets_put_shims_first_and_once() {
    let site = Site::new();
    let twice = |read: &str, name: &str| {
        format!("{read} {0}; echo $PATH; {read} {0}; echo $PATH", packaged(name).display())
    };
    finds_shims_first(&site, "sh", &["-euc", &twice(".", "profile.sh")]);
    finds_shims_first(&site, "bash", &["-euc", &twice(".", "profile.sh")]);
    finds_shims_first(&site, "zsh", &["-fuc", &twice(".", "profile.sh")]);
    let fish = twice("source", "shims.fish").replace("echo $PATH", "string join : $PATH");
    finds_shims_first(&site, "fish", &["--no-config", "-c", &fish]);
    finds_shims_first(&site, "tcsh", &["-f", "-c", &twice("source", "cshrc")]);
}

/// systemd's own program says what a user's units get.
#[test]
fn units_of_users_find_shims_first() {
    let generator =
        Path::new("/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator");
    if !generator.exists() {
        return skip("systemd is not installed");
    }
    let site = Site::new();
    let user = site.test().env("PATH", "/usr/bin").env("XDG_CONFIG_HOME", "$DIR/work");
    fs::create_dir(site.path("work/environment.d")).expect("a directory");
    fs::copy(packaged("environment.conf"), site.path("work/environment.d/99-rungate.conf")).expect("a copy");
    // Debian has a link of this name to /etc/environment, and what comes last counts.
    site.write("work/environment.d/99-environment.conf", "PATH=/usr/bin:/bin\n");
    let said = user.program(generator).outcome().stdout;
    assert!(said.lines().any(|line| line == "PATH=/etc/rungate/shims:/usr/bin:/bin"), "{said}");
}

/// Of several shims, those that a way misses are named.
#[test]
fn a_shim_that_a_way_misses_is_named() {
    let site = Site::new();
    let user = newcomer(&site);
    site.shim("mex");
    fs::create_dir(site.path("early")).expect("a directory");
    copy_program("/bin/true", site.path("early/mex"));
    fs::create_dir(site.path("work/home")).expect("a home");
    site.write("work/home/.profile", "PATH=$DIR/early:$DIR/shims:$PATH\n");
    let list = user.args(["shim", "list", "$DIR/shims"]);
    // A shell that does not answer in time says nothing, and is asked again.
    eventually("the shim that is missed is named", || {
        let text = list.outcome().stdout;
        let is_it = |line: &str| {
            line.starts_with("sh, logged in ")
                && line.ends_with(
                    " work, except for \
            mex",
                )
        };
        text.lines().any(is_it).then_some(())
    });
}
