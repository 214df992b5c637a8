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
    // As readline divides the words.
    let script = r#"
        source <(rungate completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        word=${COMP_WORDS[COMP_CWORD]}
        _rungate rungate "${word#=}" "${COMP_WORDS[COMP_CWORD - 1]}"
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

/// Subcommands, options and words come from the definition of the command line, names of repositories and
/// commands from the policy; what follows the command is its own.
#[test]
fn names_come_from_the_policy() {
    let site = site();
    in_bash(&site, "rungate sta", "status");
    in_bash(&site, "rungate status ma", "matlab-seats");
    in_bash(&site, "rungate list --", "--json --user --policy ...");
    in_bash(&site, "rungate list matlab-seats s", "spectre-tokens");
    in_bash(&site, "rungate run --hold su", "supervisor");
    in_bash(&site, "rungate run ", "matlab matlab-batch spectre ...");
    in_bash(&site, "rungate run -w 5m -- spectr", "spectre spectrogram");
    in_bash(&site, "rungate explain --user ann spectr", "spectre spectrogram");
    in_bash(&site, "rungate explain --user = ann spectr", "spectre spectrogram");
    in_bash(&site, "rungate explain --user daemo", "daemon");
    in_bash(&site, "rungate explain --user = daemo", "daemon");
    in_bash(&site, "rungate explain --user=daemo", "--user=daemon");
    in_bash(&site, "rungate run -qw 5m spectr", "spectre spectrogram");
    in_bash(&site, "rungate run matlab --he", "");
    site.write("work/model.m", "");
    in_bash(&site, "rungate run matlab -r mod", "model.m");
    in_bash(&site, "rungate shim install shims matlab-", "matlab-batch");
    in_bash(&site, "rungate status ./mod", "./model.m");
    in_bash(&site, "rungate status --policy mod", "model.m");
    in_bash(&site, "rungate status --policy ../b", "../bin/");
    in_bash(&site, "rungate completions tc", "tcsh");
    site.write(
        "work/other.toml",
        "version = 1\n[repository.elsewhere]\nlimit = 1\n[[rule]]\nname = \"x\"\nacquire = [\"elsewhere\"]\n",
    );
    in_bash(&site, "rungate status --policy other.toml el", "elsewhere");
    in_bash(&site, "rungate status --policy = other.toml el", "elsewhere");
    in_bash(&site, "rungate --policy other.toml status el", "elsewhere");
    in_bash(&site, "rungate init --pol", "");
    in_bash(&site, "rungate history --repository sp", "spectre-tokens");
    in_bash(&site, "rungate metrics --output =", "model.m other.toml");
}

/// Nobody asked rungate for anything: where the policy has faults the names are missing, and nothing is
/// said.
#[test]
fn a_faulty_policy_is_no_matter() {
    let site = site();
    site.policy("[repository.matlab]\nlimit = \"many\"\n");
    in_bash(&site, "rungate sta", "status");
    in_bash(&site, "rungate status mat", "");
}

#[test]
fn a_name_of_a_file_is_one_word_for_bash_and_no_command() {
    let site = site();
    fs::create_dir(site.path("work/theirs")).expect("a directory");
    fs::write(site.path("work/theirs/log$(touch ran);x ü"), "").expect("a file");
    let quoted = r"theirs/log\$\(touch\ ran\)\;x\ ü";
    for typed in ["theirs/lo", r"theirs/log\$\("] {
        in_bash(&site, &format!("rungate history {typed}"), quoted);
    }
}

/// At the prompt itself.
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
    ask("rungate explain --user=daemo", "--user=daemon\n");
}

/// The shell of many hosts for chip design. A package has the same line for every interactive tcsh.
#[test]
fn tcsh_completes_at_the_terminal() {
    needs_tmux!();
    if !Path::new("/usr/bin/tcsh").exists() {
        return skip("tcsh(1) is not installed");
    }
    let site = site();
    let ways_in = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/ways-in/cshrc");
    for setup in [
        "rungate completions tcsh > it; source it".to_owned(),
        format!("set path_before = ($path); source {}; set path = ($path_before)", ways_in.display()),
    ] {
        let terminal = Terminal::open(&site);
        terminal.enter("exec tcsh -f");
        terminal.enter(&format!("set prompt = '$ '; {setup}; clear; echo ready"));
        terminal.shows_when("tcsh is ready", |screen| screen.starts_with("ready\n"));
        terminal.type_text("rungate sta");
        terminal.press("Tab");
        terminal.shows("$ rungate status");
        terminal.type_text("spec");
        terminal.press("Tab");
        terminal.shows("$ rungate status spectre-tokens");
        terminal.press("Enter");
        terminal.shows("\nspectre-tokens ");
    }
}

fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/completions").join(name);
    fs::read_to_string(path).expect("a packaged file")
}

/// The script of each shell is a file that the packages install. tcsh reads no directory of completions: its
/// line is in the file that an interactive tcsh reads.
#[test]
fn the_packaged_scripts_are_those_that_are_printed() {
    let site = site();
    for (shell, name) in
        [("bash", "rungate.bash"), ("zsh", "_rungate"), ("fish", "rungate.fish"), ("tcsh", "rungate.tcsh")]
    {
        site.test().args(["completions", shell]).stdout(&packaged(name)).status(0);
    }
    let lines = packaged("rungate.tcsh");
    let line = lines.lines().find(|line| line.starts_with("complete ")).expect("a line");
    assert!(packaged("../ways-in/cshrc").contains(&format!("if ( $?tcsh && $?prompt ) {line}\n")), "{line}");
}

/// A name with a newline would be two words to the shell.
#[test]
fn a_name_with_a_control_character_is_left_out() {
    let site = site();
    site.write("work/sound", "");
    site.write("work/so\nrun", "");
    for shell in ["bash", "zsh", "fish", "tcsh"] {
        let test = site.test().args(["completions", shell, "--"]);
        let words: &[&str] =
            if shell == "tcsh" { &["rungate status ./s"] } else { &["rungate", "status", "./s"] };
        let test = test.args(words);
        test.stdout("./sound\n").status(0);
    }
}
