//! The help of rungate: its subcommands in groups, and the examples at the end of each help.

use std::{ffi::OsString, fmt::Write as _};

use super::CommandLine;
use crate::text::{Error, ExitStatus, print, visible, visible_lines, word};
use clap::{
    Arg, ArgMatches, Command, CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// The title of a group, its subcommands, and an example.
type Group = (&'static str, &'static [&'static str], &'static str);

/// All subcommands, in the order in which a person meets them.
const GROUPS: [Group; 6] = [
    (
        "Start programs",
        &["run", "acquire", "explain", "exectimes"],
        "rungate run --wait 30m -- matlab -batch sim",
    ),
    ("Look", &["status", "list", "history", "metrics"], "rungate status --watch"),
    ("Act", &["end", "reset", "prune", "measure"], "rungate end --yes matlab ann"),
    (
        "Policy",
        &[
            "policy check",
            "policy edit",
            "policy install",
            "policy log",
            "policy undo",
            "policy diff",
            "policy show",
            "policy schema",
        ],
        "rungate policy check --strict policy.toml",
    ),
    ("Plan", &["report", "simulate"], "rungate report --since 30d"),
    ("Host", &["doctor", "init", "shim", "completions"], "rungate doctor"),
];

/// Two examples for each subcommand.
const EXAMPLES: [(&str, [&str; 2]); 30] = [
    ("run", ["rungate run --wait 30m -- matlab -batch sim", "rungate run --limit 2 -- make all"]),
    ("acquire", ["rungate acquire --path matlab", "rungate acquire --fd 9 --wait 10m matlab"]),
    ("explain", ["rungate explain", "rungate explain --user ann --at 14:02 -- matlab"]),
    (
        "exectimes",
        ["rungate exectimes /run/lock/matlab 4 matlab -batch sim", "rungate exectimes /run/lock/matlab list"],
    ),
    ("status", ["rungate status --watch", "rungate status --json matlab"]),
    ("list", ["rungate list --user ann", "rungate list --json matlab"]),
    (
        "history",
        ["rungate history --since yesterday --user ann", "rungate history --follow --repository matlab"],
    ),
    ("metrics", ["rungate metrics", "rungate metrics --output rungate.prom"]),
    ("end", ["rungate end --yes matlab ann", "rungate end --overdue --dry-run"]),
    ("measure", ["rungate measure", "rungate measure --every"]),
    ("reset", ["rungate reset matlab", "rungate reset /run/rungate/matlab.lock"]),
    ("prune", ["rungate prune --dry-run", "rungate prune"]),
    ("policy", ["rungate policy check --strict policy.toml", "rungate policy edit"]),
    (
        "policy check",
        ["rungate policy check --strict policy.toml", "rungate policy check --from log.jsonl next.toml"],
    ),
    (
        "policy diff",
        ["rungate policy diff /etc/rungate next.toml", "rungate policy diff - next.toml < old.toml"],
    ),
    ("policy edit", ["rungate policy edit", "EDITOR=nano rungate policy edit --yes"]),
    (
        "policy install",
        [
            "rungate policy install --dry-run policy.toml",
            "rungate policy install --name 20-cad.toml --yes cad.toml",
        ],
    ),
    ("policy log", ["rungate policy log", "rungate policy log | head -4"]),
    ("policy undo", ["rungate policy undo --yes", "rungate policy undo --yes 2"]),
    ("policy schema", ["rungate policy schema > policy.schema.json", "rungate policy schema | less"]),
    ("policy show", ["rungate policy show", "rungate policy show --policy policy.toml"]),
    ("report", ["rungate report --since 30d", "rungate report --html use.html ws1.jsonl ws2.jsonl"]),
    (
        "simulate",
        [
            "rungate simulate next.toml log.jsonl",
            "rungate simulate --limit matlab=8..16 policy.toml log.jsonl",
        ],
    ),
    ("shim", ["rungate shim install /usr/local/bin matlab", "rungate shim list"]),
    (
        "shim install",
        ["rungate shim install /usr/local/bin matlab", "rungate shim install --dry-run /usr/local/bin"],
    ),
    ("shim list", ["rungate shim list", "rungate shim list --json /usr/local/bin"]),
    ("shim remove", ["rungate shim remove /usr/local/bin matlab", "rungate shim remove /usr/local/bin"]),
    ("init", ["rungate init --limit 2 matlab", "rungate init --dry-run --repositories"]),
    ("doctor", ["rungate doctor", "rungate doctor --verbose policy shims"]),
    (
        "completions",
        ["rungate completions fish | source", "rungate completions bash > /etc/bash_completion.d/rungate"],
    ),
];

/// The subcommands that read no policy in force. They refuse `--policy`, and their help leaves it out.
const WITHOUT_POLICY: [&str; 10] = [
    "policy diff",
    "policy edit",
    "policy install",
    "policy log",
    "policy undo",
    "policy schema",
    "shim remove",
    "init",
    "completions",
    "exectimes",
];

/// How the help of rungate itself is laid out.
const BEGIN: &str = "{about}\n\n{usage-heading} {usage}\n";
const END: &str = "Options:\n{options}\n\n\
    Help on a command: rungate COMMAND --help\n\
    Manuals: man 1 rungate, man 5 rungate-policy, man 7 rungate-recipes\n";

/// Refuses `--policy` where it would have no effect.
pub fn refuse_unread_policy(matches: &ArgMatches) -> Result<(), clap::Error> {
    let (mut path, mut inner) = (String::new(), matches);
    while let Some((name, below)) = inner.subcommand() {
        (path, inner) = (format!("{path} {name}").trim_start().to_owned(), below);
    }
    if !matches.contains_id("policy") || !WITHOUT_POLICY.contains(&path.as_str()) {
        return Ok(());
    }
    let text = format!("--policy has no effect on rungate {path}\n");
    Err(clap::Error::raw(ErrorKind::ArgumentConflict, text))
}

/// The command line with its help. To read arguments, `CommandLine` alone is enough.
pub fn command() -> Command {
    let mut command = CommandLine::command();
    // So that each subcommand has its copy of `--policy`.
    command.build();
    let command = with_examples(command, "");
    let mut text = BEGIN.to_owned();
    for (title, names, example) in GROUPS {
        let _ = write!(text, "\n{title}:\n");
        for path in names {
            let found = path.split(' ').try_fold(&command, |above, name| above.find_subcommand(name));
            let about = found.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {path:14} {about}");
        }
        let _ = writeln!(text, "    $ {example}");
    }
    command.help_template(text + "\n" + END)
}

/// How to read the page of a subcommand.
fn manual(path: &str) -> String {
    let subcommand = path.split(' ').next().unwrap_or_default();
    match subcommand {
        "shim" => "man rungate-shim".to_owned(),
        // Section 5 has a page of this name too.
        "policy" => "man 1 rungate-policy".to_owned(),
        _ => format!("man rungate-{subcommand}"),
    }
}

fn with_examples(command: Command, path: &str) -> Command {
    let found = EXAMPLES.iter().find(|(known, _)| *known == path);
    let command = match found {
        Some((_, [one, other])) => {
            let manual = manual(path);
            command.after_help(format!("Examples:\n  {one}\n  {other}\n\nManual: {manual}"))
        }
        None => command,
    };
    let has_policy = !WITHOUT_POLICY.contains(&path);
    // In place: `mut_arg` would move it behind the others, whose names clap has already numbered.
    let hidden = |arg: Arg| if arg.get_id() == "policy" { arg.hide(true) } else { arg };
    let command = if has_policy { command } else { command.mut_args(hidden) };
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_examples(inner, path.trim_start())
    })
}

// The messages of clap: for a command line that it cannot read, or one that asks for help.

/// Prints the help that was asked for, or the error of a command line that cannot be read.
pub(crate) fn complain(error: &clap::Error, arguments: &[OsString]) -> Result<u8, Error> {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Error::plain(ExitStatus::Usage, text.trim_end()))
        }
        _ => {
            // The suggestion repeats the typed words.
            let text = visible_lines(text.trim_end().trim_start_matches("error: "));
            Err(Error::new(ExitStatus::Usage, text).advise(meant(error, arguments)))
        }
    }
}

/// The likely intention: a word that is no subcommand is a program to start, and a subcommand below another
/// one is meant by itself.
fn meant(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_first = arguments.get(1).is_some_and(|first| first == typed.as_str());
    let is_near = error.get(ContextKind::SuggestedSubcommand).is_some();
    if !is_first && CommandLine::command().find_subcommand(typed).is_some() {
        return Some(format!("There is: rungate {}", visible(typed)));
    }
    (is_first && !is_near).then(|| format!("To start a program: rungate run -- {}", word(typed)))
}
