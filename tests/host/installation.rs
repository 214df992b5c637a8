//! The two programs: the launcher becomes the second one for everything but a launch, wherever both are
//! installed, and becomes nothing that others than the launcher's owner can have put there.

use std::fs::{self, create_dir_all, hard_link};
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use crate::support::{Site, Test, copy_program, is_root, set_mode};

/// What stands for the second program, where only that it runs matters.
const TOOLS: &str = "#!/bin/sh\necho \"$@\"\n";

/// A site with the launcher alone in `$DIR/prefix/bin`.
fn site() -> Site {
    let site = Site::new();
    for directory in ["prefix/bin", "prefix/lib/rungate"] {
        create_dir_all(site.path(directory)).expect("a directory");
        set_mode(&site.path(directory), 0o755);
    }
    put(site.rungate(), &site.path("prefix/bin/rungate"));
    site
}

fn put(program: &Path, path: &Path) {
    if hard_link(program, path).is_err() {
        copy_program(program, path);
    }
}

/// A program in the second one's place.
fn put_tools(site: &Site, place: &str) {
    site.script("tools", TOOLS);
    fs::rename(site.path("bin/tools"), site.path(place)).expect("both are in one directory");
}

fn rungate(site: &Site) -> Test {
    site.test().program(site.path("prefix/bin/rungate"))
}

/// Beside the launcher, or in `../lib/rungate`; beside comes first.
#[test]
fn the_second_program_is_found_from_the_launcher() {
    let site = site();
    put_tools(&site, "prefix/lib/rungate/rungate-tools");
    rungate(&site).args(["status", "--json"]).stdout("status --json\n").status(0);
    rungate(&site).args(["run", "--help"]).stdout("run --help\n").status(0);
    site.test().program("/bin/sh").args(["-c", "cd $DIR/prefix && bin/rungate a"]).stdout("a\n").status(0);
    symlink("prefix/bin/rungate", site.path("rungate")).expect("a link");
    site.test().program(site.path("rungate")).args(["a"]).stdout("a\n").status(0);
    fs::write(site.path("prefix/bin/rungate-tools"), "").expect("a file");
    set_mode(&site.path("prefix/bin/rungate-tools"), 0o755);
    // An empty file is no program, and what cannot be executed is no script for the shell either.
    rungate(&site)
        .args(["status"])
        .stderr("rungate: $DIR/prefix/bin/rungate-tools: not started: Exec format error\n[..]\n")
        .status(71);
}

/// A launch works without it; everything else says where it was looked for. `PATH` and the environment have
/// no say.
#[test]
fn without_the_second_program_there_are_launches_alone() {
    let site = site();
    put_tools(&site, "bin/rungate-tools");
    let missing = "
        rungate: rungate-tools, which does this, is not installed
          looked for $DIR/prefix/bin/rungate-tools
          looked for $DIR/prefix/lib/rungate/rungate-tools
        Install both programs, side by side; in a checkout: cargo build. Launches, as in rungate run, work without it.
        ";
    for words in [&["status"][..], &["run"], &["--help"], &["run", "-n", "-w", "1s", "--", "echo"]] {
        rungate(&site).args(words).stderr(missing).status(71);
    }
    rungate(&site)
        .args(["run", "--limit", "1", "-qE3", "--", "echo", "started"])
        .stdout("started\n")
        .status(0);
    rungate(&site).args(["exectimes", "seats", "1", "echo", "started"]).stdout("started\n").status(0);
}

/// The launcher becomes only what nobody can have put there who could not have replaced the launcher.
#[test]
fn nobody_can_slip_in_another_program() {
    let site = site();
    // Its mode changes: no other test has this file.
    fs::remove_file(site.path("prefix/bin/rungate")).expect("a link");
    copy_program(site.rungate(), site.path("prefix/bin/rungate"));
    let refused = |path: &str| {
        let stderr = format!(
            "rungate: $DIR/prefix/{path}: not started: it is not a regular file or directory, or users can \
                change it who cannot change rungate\n[..]\n"
        );
        rungate(&site).args(["status"]).stderr(&stderr).status(71);
    };
    let allowed = || rungate(&site).args(["status"]).stdout("status\n").status(0);
    for tools in ["bin/rungate-tools", "lib/rungate/rungate-tools"] {
        let path = site.path("prefix").join(tools);
        symlink("/bin/echo", &path).expect("a link");
        refused(tools);
        fs::remove_file(&path).expect("a link");
        put_tools(&site, path.to_str().expect("a plain path"));
        allowed();
        for mode in [0o757, 0o775] {
            set_mode(&path, mode);
            refused(tools);
        }
        set_mode(&path, 0o755);
        if is_root() {
            chown(&path, Some(5), None).expect("chown");
            refused(tools);
            chown(&path, Some(0), None).expect("chown");
            // Whom the launcher is open to may be its group, and no other group.
            let launcher = site.path("prefix/bin/rungate");
            let of_group = |mode, group| {
                set_mode(&launcher, mode);
                set_mode(&path, mode);
                chown(&path, None, Some(group)).expect("chown");
            };
            of_group(0o775, 0);
            allowed();
            of_group(0o775, 5);
            refused(tools);
            of_group(0o755, 0);
        }
        allowed();
        if tools.starts_with("lib") {
            for directory in ["lib", "lib/rungate"] {
                let path = site.path("prefix").join(directory);
                for mode in [0o757, 0o775, 0o1777] {
                    set_mode(&path, mode);
                    refused(directory);
                }
                set_mode(&path, 0o755);
                if is_root() {
                    chown(&path, Some(5), None).expect("chown");
                    refused(directory);
                    chown(&path, Some(0), None).expect("chown");
                }
            }
            allowed();
        }
        fs::remove_file(&path).expect("the script");
    }
}

/// Shims lead to the launcher, as it was called, and never to the second program.
#[test]
fn shims_lead_to_the_launcher() {
    let site = site();
    put(&site.rungate().with_file_name("rungate-tools"), &site.path("prefix/lib/rungate/rungate-tools"));
    create_dir_all(site.path("local")).expect("a directory");
    create_dir_all(site.path("shims")).expect("a directory");
    symlink(
        "$DIR/prefix/bin/rungate".replace("$DIR", site.path("").to_str().expect("a plain path")),
        site.path("local/rungate"),
    )
    .expect("a link");
    let install = |path: &str, command: &str, target: &str| {
        site.test()
            .program("/bin/bash")
            .env("PATH", path)
            .args(["-c", &format!("{command} shim install --dry-run $DIR/shims matlab")])
            .stdout(&format!("$DIR/shims/matlab -> {target}\n"))
            .status(0);
    };
    install("$DIR/local:$DIR/prefix/bin", "rungate", "$DIR/local/rungate");
    install("$DIR/prefix/bin:$DIR/local", "rungate", "$DIR/prefix/bin/rungate");
    install("/bin", "$DIR/local/rungate", "$DIR/local/rungate");
    install("/bin", "cd $DIR/local; ./rungate", "$DIR/local/rungate");
    // As nobody calls it, but might.
    install("$DIR/local", "$DIR/prefix/lib/rungate/rungate-tools", "$DIR/prefix/bin/rungate");
    install("/bin", "exec -a rungate $DIR/local/rungate", "$DIR/prefix/bin/rungate");

    for name in ["exectimes", "matlab"] {
        let shim = format!("$DIR/shims/{name}");
        symlink(site.path("prefix/lib/rungate/rungate-tools"), site.expand(&shim)).expect("a link");
        let refusal = format!(
            "rungate: {name}: not started: {shim} is a link to rungate-tools, which starts nothing; a shim is a link to \
             rungate\nRemove the link: rm {shim}\n"
        );
        site.test().program(site.expand(&shim)).args(["seats", "1", "true"]).stderr(&refusal).status(78);
    }
    rungate(&site)
        .args(["shim", "list", "$DIR/shims"])
        .stdout("[..]\n$DIR/shims/matlab[..]points to rungate-tools[..]\n...\n")
        .status(0);
}
