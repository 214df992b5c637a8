//! `rungate completions`: each shell really completes. Names of repositories and commands come from the
//! policy.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ending, Site, Terminal, needs_tmux, skip};

fn site() -> Site {
    let site = Site::with_policy(
        r#"
        [repository.matlab-seats]
        limit = 50

        [repository.spectre-tokens]
        limit = 9

        [[rule]]
        name     = "seats"
        commands = ["matlab", "matlab-batch"]
        acquire  = ["matlab-seats"]

        [[rule]]
        name     = "tokens"
        commands = ["spectre"]
        acquire  = ["spectre-tokens"]
        "#,
    );
    site.program("spectrogram");
    site.rungate_in_bin();
    site
}

/// What bash offers for the last word of a command line; `...` stands for more.
#[track_caller]
fn in_bash(site: &Site, line: &str, offered: &str) {
    let script = r#"
        source <(rungate completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _clap_complete_rungate rungate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[*]}"
    "#;
    let words = line.split(' ');
    let bash = site.test().program("/bin/bash").args(["--norc", "-c", script, "bash"]).args(words);
    let outcome = bash.outcome();
    assert_eq!((outcome.stderr.as_str(), outcome.ending), ("", Ending::Status(0)), "{line}");
    let printed = outcome.stdout.trim_end();
    match offered.strip_suffix(" ...") {
        Some(first) => assert!(printed.starts_with(first), "{line}: {printed}"),
        None => assert_eq!(printed, offered, "{line}"),
    }
}

/// "Subcommands, options and words come from the definition of the command line, names of repositories and
/// commands from the policy; what follows the command is its own."
#[test]
fn names_come_from_the_policy() {
    let site = site();
    in_bash(&site, "rungate sta", "status");
    in_bash(&site, "rungate status ma", "matlab-seats");
    in_bash(&site, "rungate list -", "--policy --json --user -h");
    in_bash(&site, "rungate list matlab-seats s", "spectre-tokens");
    in_bash(&site, "rungate run --hold su", "supervisor");
    in_bash(&site, "rungate run ", "matlab matlab-batch spectre ...");
    in_bash(&site, "rungate run -w 5m -- spectr", "spectre spectrogram");
    in_bash(&site, "rungate explain --user ann spectr", "spectre spectrogram");
    in_bash(&site, "rungate run matlab --he", "");
    site.write("work/model.m", "");
    in_bash(&site, "rungate run matlab -r mod", "model.m");
    in_bash(&site, "rungate shim install shims matlab-", "matlab-batch");
    in_bash(&site, "rungate status ./mod", "./model.m");
    site.write(
        "work/other.toml",
        "version = 1\n[repository.elsewhere]\nlimit = 1\n[[rule]]\nname = \"x\"\nacquire = [\"elsewhere\"]\n",
    );
    in_bash(&site, "rungate status --policy other.toml el", "elsewhere");
}

/// "Nobody asked rungate for anything": where the policy has faults the names are missing, and nothing is
/// said.
#[test]
fn a_faulty_policy_is_no_matter() {
    let site = site();
    site.policy("[repository.matlab]\nlimit = \"many\"\n");
    in_bash(&site, "rungate sta", "status");
    in_bash(&site, "rungate status mat", "");
}

/// "A launch never looks at the variable."
#[test]
fn a_variable_completes_no_launch() {
    let site = site();
    site.program("spectre");
    let test = site.test().env("RUNGATE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "1");
    test.clone().args(["run", "--", "spectre"]).stdin("it runs\n").stdout("it runs\n").status(0);
    test.clone().args(["status", "matlab-seats"]).stdout("REPOSITORY[..]\nmatlab-seats[..]\n").status(0);
    test.env("RUNGATE_COMPLETE", "").args(["--", "spectre"]).stderr("rungate: [..]\n...\n").status(64);
}

#[test]
fn bash_completes_at_the_terminal() {
    needs_tmux!();
    let site = site();
    let terminal = Terminal::open(&site);
    terminal.command("source <(rungate completions bash)");
    terminal.shell_reads();
    terminal.type_text("rungate st");
    terminal.press("Tab");
    terminal.shows("$ rungate status");
    terminal.type_text("sp");
    terminal.press("Tab");
    terminal.shows("$ rungate status spectre-tokens");
    terminal.press("Enter");
    terminal.shows("\nspectre-tokens ");
}

/// Where the lines were read by the shell, and where they lie in a directory of functions, as a package puts
/// them.
#[test]
fn zsh_completes_at_the_terminal() {
    needs_tmux!();
    if !Path::new("/usr/bin/zsh").exists() {
        return skip("zsh(1) is not installed");
    }
    let site = site();
    fs::create_dir(site.path("work/functions")).expect("a directory");
    site.write("work/functions/_rungate", &packaged("_rungate"));
    for setup in [
        "autoload -U compinit; compinit -u -D; source <(rungate completions zsh)",
        "fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D",
    ] {
        let terminal = Terminal::open(&site);
        terminal.enter("exec zsh -f");
        terminal.enter(&format!("PS1='$ '; {setup}; clear; echo ready"));
        terminal.shows_when("zsh is ready", |screen| screen.starts_with("ready\n"));
        terminal.type_text("rungate list spec");
        terminal.press("Tab");
        terminal.shows("$ rungate list spectre-tokens");
    }
}

#[test]
fn fish_completes() {
    if !Path::new("/usr/bin/fish").exists() {
        return skip("fish(1) is not installed");
    }
    let site = site();
    let ask = |line: &str, offered: &str| {
        let script = format!("rungate completions fish | source; complete -C '{line}'");
        site.test().program("/usr/bin/fish").args(["-N", "-c", &script]).stdout(offered).status(0);
    };
    ask("rungate sta", "status\tShow use and limit of every repository\n");
    ask("rungate status ma", "matlab-seats\tlimit 50\n");
    ask("rungate run -- spectr", "spectre\nspectrogram\n");
}

fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/completions").join(name);
    fs::read_to_string(path).expect("a packaged file")
}

/// What the package installs is what the command prints.
#[test]
fn the_packaged_lines_are_those_that_are_printed() {
    let site = site();
    for (shell, name) in [("bash", "rungate.bash"), ("zsh", "_rungate"), ("fish", "rungate.fish")] {
        let printed = site.test().args(["completions", shell]).outcome().stdout;
        assert_eq!(printed, packaged(name), "rungate completions {shell} > packaging/completions/{name}");
    }
    for shell in ["elvish", "powershell"] {
        let printed = site.test().args(["completions", shell]).outcome().stdout;
        assert!(printed.contains("RUNGATE_COMPLETE") && printed.contains("rungate"), "{printed}");
    }
}
