//! What a shell gets for an answer that asks how a command line may go on: subcommands and options from the
//! one definition, names of repositories and commands from the policy. Whatever goes wrong, nothing is said:
//! nobody asked rungate anything.
//!
//! A shell asks by a variable and a first argument of `--`, which no command line of rungate begins with: a
//! launch never looks at the variable, and what somebody has put into it cannot turn one into something else.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use clap::{Arg, ArgMatches, Command, CommandFactory, ValueHint};
use clap_complete::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, engine::ValueCompleter, env::Shells,
};

use crate::{
    cli::CommandLine,
    commands::shared::{printed, situation::Situation},
    error::Error,
    exit_status::ExitStatus,
    output::stream,
    policy::Policy,
    sys::{accounts, executable, host},
};

/// Which shell asks.
pub(in crate::commands) const VARIABLE: &str = "RUNGATE_COMPLETE";

/// The shell that asks, if one does.
pub(in crate::commands) fn asking_shell() -> Option<OsString> {
    env::var_os(VARIABLE).filter(|shell| !shell.is_empty())
}

/// Answers a shell in its own form. The words are those of the command line, `rungate` itself included.
pub(in crate::commands) fn complete(shell: &OsStr, words: Vec<OsString>) -> Result<u8, Error> {
    let mut answer = Vec::new();
    match write(shell, words, &mut answer) {
        Ok(()) => printed(stream::pass_on(&answer)),
        Err(_) => Ok(ExitStatus::Failure as u8),
    }
}

fn write(shell: &OsStr, words: Vec<OsString>, answer: &mut Vec<u8>) -> io::Result<()> {
    let known = Shells::builtins();
    let shell = shell.to_str().and_then(|name| known.completer(name)).ok_or(io::ErrorKind::NotFound)?;
    let before = Before::the_cursor(&words);
    // What follows the command belongs to it, options included.
    let mut definition = if before.has_command { only_paths() } else { with_names(before.policy) };
    shell.write_complete(&mut definition, words, env::current_dir().ok().as_deref(), answer)
}

/// What stands on the command line before the word that is completed.
struct Before {
    has_command: bool,
    policy: Option<PathBuf>,
}

impl Before {
    fn the_cursor(words: &[OsString]) -> Self {
        let place = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let place = place.unwrap_or(words.len().saturating_sub(1)).min(words.len());
        let found = CommandLine::command().ignore_errors(true).try_get_matches_from(&words[..place]).ok();
        let mut innermost = found.as_ref();
        while let Some((_, inner)) = innermost.and_then(ArgMatches::subcommand) {
            innermost = Some(inner);
        }
        let has_command = innermost.is_some_and(
            |found| matches!(found.try_get_many::<OsString>("command"), Ok(Some(words)) if words.len() > 0),
        );
        let policy = innermost.and_then(|found| found.try_get_one::<PathBuf>("policy").ok().flatten());
        Self { has_command, policy: policy.cloned() }
    }
}

/// Any number of files and directories.
fn only_paths() -> Command {
    let paths = Arg::new("path").num_args(0..).allow_hyphen_values(true).value_hint(ValueHint::AnyPath);
    Command::new("rungate").disable_help_flag(true).disable_version_flag(true).arg(paths)
}

/// The definition of the command line, whose operands know the names in the policy.
fn with_names(policy: Option<PathBuf>) -> Command {
    let names = Situation::of_this_process()
        .and_then(|situation| situation.load_silently(policy))
        .map_or_else(|_| Names::default(), |policy| Names::of(&policy));
    operands(CommandLine::command(), &names)
}

fn operands(definition: Command, names: &Names) -> Command {
    let definition = definition.mut_subcommands(|inner| operands(inner, names));
    definition.mut_args(|argument| {
        let what = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        let names = names.clone();
        match what.as_deref() {
            Some("REPOSITORY") => {
                argument.add(ArgValueCompleter::new(move |word: &OsStr| names.repositories(word)))
            }
            Some("COMMAND") => argument.add(ArgValueCompleter::new(move |word: &OsStr| names.programs(word))),
            Some("USER" | "PID|USER|slot:N") => argument.add(ArgValueCompleter::new(users)),
            Some("NAME") if argument.is_positional() => {
                argument.add(ArgValueCompleter::new(move |word: &OsStr| names.commands(word)))
            }
            _ => argument,
        }
    })
}

/// Users whose names begin so: a directory of a hundred thousand is not asked for all of them.
fn users(word: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = accounts::user_names();
    names.retain(|name| name.as_bytes().starts_with(word.as_bytes()));
    names.sort();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The names in the policy.
#[derive(Clone, Default)]
struct Names {
    /// Each with its limit.
    repositories: Vec<(String, String)>,
    commands: Vec<String>,
}

impl Names {
    fn of(policy: &Policy) -> Self {
        let repositories = policy.repositories().iter().map(|known| {
            (known.shown_name().to_owned(), format!("limit {}", known.limit().resolve(host::processors)))
        });
        let commands = policy.command_names().into_iter().map(str::to_owned);
        Self { repositories: repositories.collect(), commands: commands.collect() }
    }

    /// Repositories, and lock files by path.
    fn repositories(&self, word: &OsStr) -> Vec<CompletionCandidate> {
        if word.as_bytes().contains(&b'/') {
            return PathCompleter::any().complete(word);
        }
        let known = self.repositories.iter().filter(|(name, _)| goes_on(name, word));
        known.map(|(name, limit)| CompletionCandidate::new(name).help(Some(limit.clone().into()))).collect()
    }

    /// Commands that the policy names.
    fn commands(&self, word: &OsStr) -> Vec<CompletionCandidate> {
        self.commands.iter().filter(|name| goes_on(name, word)).map(CompletionCandidate::new).collect()
    }

    /// Those; and, once something is typed, whatever `PATH` has.
    fn programs(&self, word: &OsStr) -> Vec<CompletionCandidate> {
        if word.as_bytes().contains(&b'/') {
            return PathCompleter::any().complete(word);
        }
        let mut found = self.commands(word);
        if !word.is_empty() {
            let mut programs: Vec<OsString> = in_path(word);
            programs.retain(|name| self.commands.iter().all(|known| name.as_os_str() != known.as_str()));
            programs.sort();
            programs.dedup();
            found.extend(programs.into_iter().map(CompletionCandidate::new));
        }
        found
    }
}

fn goes_on(name: &str, word: &OsStr) -> bool {
    name.as_bytes().starts_with(word.as_bytes())
}

/// The programs in the directories of `PATH` whose names begin so.
fn in_path(word: &OsStr) -> Vec<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).filter(|path| path.is_absolute()).collect();
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_bytes().starts_with(word.as_bytes()))
        .filter(|entry| executable::check(&entry.path()).is_ok())
        .map(|entry| entry.file_name())
        .collect()
}
