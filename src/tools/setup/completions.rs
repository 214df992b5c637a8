//! `rungate completions SHELL`: prints the script with which a shell completes command lines of rungate. With
//! words after `--`, it prints the completions for that script. The script of a shell has only a few fixed
//! lines, because rungate computes the answer.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs, iter,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use clap::{Arg, Command, ValueHint};

use crate::{
    cli::{self, CompletionsArguments},
    launch::Situation,
    policy::Policy,
    sys::{accounts, executable},
    text::{Error, print, printed, stream},
};

/// A shell whose command lines can be completed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Tcsh,
}

/// Prints the script of a shell, or what may follow the words.
pub(crate) fn run(arguments: &CompletionsArguments) -> Result<u8, Error> {
    let shell = match arguments.shell.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        "tcsh" => Shell::Tcsh,
        _ => Shell::Bash,
    };
    if arguments.words.is_empty() {
        return print(shell.script());
    }
    let mut words = match shell {
        Shell::Tcsh => split(&arguments.words[0]),
        _ => arguments.words.clone(),
    };
    if let (Shell::Bash, Some(last)) = (shell, words.last_mut()) {
        *last = unescaped(last);
    }
    let lines: Vec<u8> = answer(&words).iter().filter_map(|found| shell.line(found)).flatten().collect();
    printed(stream::pass_on(&lines))
}

/// A word of a bash command line without its backslashes. Quoted words are not completed.
fn unescaped(word: &OsStr) -> OsString {
    let mut bytes = word.as_bytes().iter();
    let plain = iter::from_fn(|| match bytes.next() {
        Some(b'\\') => bytes.next(),
        byte => byte,
    });
    OsString::from_vec(plain.copied().collect())
}

/// The same with backslashes: bash puts a candidate on the command line as it is.
fn escaped(word: &[u8]) -> Vec<u8> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_./:=@%+,-".contains(&byte);
    word.iter().flat_map(|byte| iter::repeat_n(b'\\', usize::from(!is_plain(*byte))).chain([*byte])).collect()
}

/// tcsh has the line up to the cursor as one text. It is split only at blanks, because rungate completes no
/// quoted words.
fn split(line: &OsString) -> Vec<OsString> {
    let words = line.to_string_lossy();
    let mut words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    if line.as_bytes().last().is_none_or(u8::is_ascii_whitespace) {
        words.push(OsString::new());
    }
    words
}

impl Shell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("../../../packaging/completions/rungate.bash"),
            Self::Zsh => include_str!("../../../packaging/completions/_rungate"),
            Self::Fish => include_str!("../../../packaging/completions/rungate.fish"),
            Self::Tcsh => include_str!("../../../packaging/completions/rungate.tcsh"),
        }
    }

    /// A candidate in the form that the script reads: a line, with the description where the shell shows one.
    /// A name with a control character cannot be a line.
    fn line(self, Candidate { word, help }: &Candidate) -> Option<Vec<u8>> {
        let bytes = word.as_bytes();
        if bytes.iter().any(u8::is_ascii_control) {
            return None;
        }
        let described = |mut line: Vec<u8>, separator: u8| {
            if !help.is_empty() {
                line.push(separator);
                line.extend(help.bytes());
            }
            line
        };
        let mut line = match self {
            Self::Bash => escaped(bytes),
            Self::Tcsh => bytes.to_vec(),
            Self::Fish => described(bytes.to_vec(), b'\t'),
            // A colon would begin the description.
            Self::Zsh => {
                let escaped = |byte: &u8| match byte {
                    b':' | b'\\' => vec![b'\\', *byte],
                    byte => vec![*byte],
                };
                described(bytes.iter().flat_map(escaped).collect(), b':')
            }
        };
        line.push(b'\n');
        Some(line)
    }
}

// The completions of a command line: subcommands, options and their values from the definition of the command
// line; names of repositories, commands and users from the policy and the system; and paths. Errors are never
// reported, because the user has not run rungate yet.

/// A word that may be next.
struct Candidate {
    word: OsString,
    /// For shells that show it; empty if there is none.
    help: String,
}

impl Candidate {
    fn plain(word: impl Into<OsString>) -> Self {
        Self { word: word.into(), help: String::new() }
    }
}

/// The completions of the last word. The first word is the program's name.
fn answer(words: &[OsString]) -> Vec<Candidate> {
    let Some((word, before)) = words.split_last() else { return Vec::new() };
    let mut definition = cli::command();
    definition.build();
    let place = Place::after(&definition, before.get(1..).unwrap_or_default());
    place.candidates(word)
}

/// The position of a word on the command line.
struct Place<'a> {
    command: &'a Command,
    /// The number of operands before it.
    operands: usize,
    /// An option that still needs its value.
    option: Option<&'a Arg>,
    /// After `--` there are no options.
    only_operands: bool,
    /// The words belong to another program.
    is_foreign: bool,
    policy: Option<PathBuf>,
}

impl<'a> Place<'a> {
    fn after(definition: &'a Command, words: &[OsString]) -> Self {
        let mut place = Self {
            command: definition,
            operands: 0,
            option: None,
            only_operands: false,
            is_foreign: false,
            policy: None,
        };
        for word in words {
            place.pass(word);
        }
        place
    }

    fn pass(&mut self, word: &OsStr) {
        if let Some(option) = self.option {
            // bash makes three words of `--option=value`.
            if word != "=" {
                self.set(option, word);
                self.option = None;
            }
            return;
        }
        let bytes = word.as_bytes();
        if self.is_foreign {
        } else if !self.only_operands && word == "--" {
            self.only_operands = true;
        } else if !self.only_operands && bytes.starts_with(b"--") {
            let (name, value) = divided(word);
            let option = self.long(name);
            match (option, value) {
                (Some(option), Some(value)) => self.set(option, value),
                (option, None) => self.option = option.filter(|option| takes_value(option)),
                (None, Some(_)) => {}
            }
        } else if !self.only_operands && bytes.len() > 1 && bytes.starts_with(b"-") {
            self.option = self.short(&bytes[1..]);
        } else if let Some(command) = self.subcommand(word) {
            (self.command, self.operands) = (command, 0);
        } else {
            self.is_foreign = self.operand().is_some_and(Arg::is_trailing_var_arg_set);
            self.operands += 1;
        }
    }

    fn set(&mut self, option: &Arg, value: &OsStr) {
        if option.get_long() == Some("policy") {
            self.policy = Some(PathBuf::from(value));
        }
    }

    fn long(&self, name: &OsStr) -> Option<&'a Arg> {
        let name = name.to_str()?;
        self.options().find(|option| option.get_long().is_some_and(|long| name == format!("--{long}")))
    }

    /// The option at the end of `-abc` that needs the next word.
    fn short(&self, letters: &[u8]) -> Option<&'a Arg> {
        let with_value = |letter: &u8| {
            let letter = char::from(*letter);
            self.options().find(|option| option.get_short() == Some(letter) && takes_value(option))
        };
        let (at, option) =
            letters.iter().enumerate().find_map(|(at, letter)| Some((at, with_value(letter)?)))?;
        (at + 1 == letters.len()).then_some(option)
    }

    fn subcommand(&self, word: &OsStr) -> Option<&'a Command> {
        (self.operands == 0).then(|| self.command.find_subcommand(word)).flatten()
    }

    fn options(&self) -> impl Iterator<Item = &'a Arg> + use<'a> {
        self.command.get_arguments().filter(|argument| !argument.is_positional())
    }

    /// The kind of an operand. The last one may have several words.
    fn operand(&self) -> Option<&'a Arg> {
        let operands: Vec<&Arg> =
            self.command.get_positionals().filter(|operand| !operand.is_last_set()).collect();
        let last =
            operands.last().filter(|last| last.get_num_args().is_some_and(|count| count.max_values() > 1));
        operands.get(self.operands).or(last).copied()
    }

    fn candidates(&self, word: &OsStr) -> Vec<Candidate> {
        if let Some(option) = self.option {
            let word = if word == "=" { OsStr::new("") } else { word };
            return self.values(option, word);
        }
        if self.is_foreign {
            return paths(word);
        }
        if !self.only_operands && word.as_bytes().starts_with(b"-") {
            return self.option_candidates(word);
        }
        let mut found = Vec::new();
        if self.operands == 0 && !self.only_operands {
            let shown = self.command.get_subcommands().filter(|command| !command.is_hide_set());
            found.extend(shown.filter(|command| goes_on(command.get_name(), word)).map(|command| {
                Candidate {
                    word: command.get_name().into(),
                    help: command.get_about().map(ToString::to_string).unwrap_or_default(),
                }
            }));
        }
        found.extend(self.operand().map(|operand| self.values(operand, word)).unwrap_or_default());
        found
    }

    fn option_candidates(&self, word: &OsStr) -> Vec<Candidate> {
        let (name, value) = divided(word);
        if let Some(value) = value {
            let Some(option) = self.long(name) else { return Vec::new() };
            let mut found = self.values(option, value);
            for candidate in &mut found {
                let value = std::mem::take(&mut candidate.word);
                candidate.word = [name, OsStr::new("="), &value].into_iter().collect();
            }
            return found;
        }
        let candidate = |option: &Arg| {
            let word = format!("--{}", option.get_long()?);
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            (!option.is_hide_set()).then(|| Candidate { word: word.into(), help })
        };
        let mut found: Vec<Candidate> = self.options().filter_map(candidate).collect();
        found.retain(|candidate| candidate.word.as_bytes().starts_with(word.as_bytes()));
        found
    }

    /// The values of an argument with this beginning.
    fn values(&self, argument: &Arg, word: &OsStr) -> Vec<Candidate> {
        let possible = argument.get_possible_values();
        if !possible.is_empty() {
            let known = possible.iter().filter(|value| goes_on(value.get_name(), word));
            return known.map(|value| Candidate::plain(value.get_name())).collect();
        }
        let name = argument.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
        match name {
            Some("REPOSITORY" | "COMMAND") if word.as_bytes().contains(&b'/') => paths(word),
            Some("REPOSITORY") => self.repositories(word),
            Some("COMMAND") => self.programs(word),
            Some("USER" | "PID|USER|slot:N|name:NAME") => users(word),
            Some("NAME") if argument.is_positional() => self.commands(word).collect(),
            _ if argument.get_value_hint() == ValueHint::Unknown => Vec::new(),
            _ => paths(word),
        }
    }

    fn with_policy(&self) -> Option<Policy> {
        Situation::of_this_process(self.policy.clone()).ok()?.load_silently().ok()
    }

    /// Repositories of the policy, each with its limit.
    fn repositories(&self, word: &OsStr) -> Vec<Candidate> {
        let Some(policy) = self.with_policy() else { return Vec::new() };
        let known = policy.repositories().iter().filter(|known| goes_on(known.shown_name(), word));
        let candidate = known.map(|known| Candidate {
            word: known.shown_name().into(),
            help: format!("limit {}", known.limit().resolve(accounts::processors)),
        });
        candidate.collect()
    }

    /// Commands that the policy names.
    fn commands(&self, word: &OsStr) -> impl Iterator<Item = Candidate> + use<'a> {
        let names: Vec<String> = self.with_policy().map_or_else(Vec::new, |policy| {
            policy.command_names().into_iter().filter(|name| goes_on(name, word)).map(str::to_owned).collect()
        });
        names.into_iter().map(Candidate::plain)
    }

    /// The commands of the policy; after the first letter also the programs in `PATH`.
    fn programs(&self, word: &OsStr) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = self.commands(word).collect();
        if !word.is_empty() {
            let mut programs = in_path(word);
            programs.retain(|name| found.iter().all(|known| known.word != *name));
            found.extend(programs.into_iter().map(Candidate::plain));
        }
        found
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn goes_on(name: &str, word: &OsStr) -> bool {
    name.as_bytes().starts_with(word.as_bytes())
}

/// `--name=value` in two.
fn divided(word: &OsStr) -> (&OsStr, Option<&OsStr>) {
    let bytes = word.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), Some(OsStr::from_bytes(&bytes[at + 1..]))),
        None => (word, None),
    }
}

fn users(word: &OsStr) -> Vec<Candidate> {
    let names: BTreeSet<OsString> = accounts::user_names().into_iter().collect();
    let names = names.into_iter().filter(|name| name.as_bytes().starts_with(word.as_bytes()));
    names.map(Candidate::plain).collect()
}

/// Files and directories whose paths have this beginning. Hidden ones are shown only if the word begins with
/// a dot.
fn paths(word: &OsStr) -> Vec<Candidate> {
    let bytes = word.as_bytes();
    let (folder, begin) = bytes.split_at(bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1));
    let directory = if folder.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(folder)) };
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_shown = !name.as_bytes().starts_with(b".") || begin.starts_with(b".");
        if is_shown && name.as_bytes().starts_with(begin) {
            let end: &[u8] = if entry.path().is_dir() { b"/" } else { b"" };
            found.insert(OsString::from_vec([folder, name.as_bytes(), end].concat()));
        }
    }
    found.into_iter().map(Candidate::plain).collect()
}

/// The programs in the directories of `PATH` whose names have this beginning.
fn in_path(word: &OsStr) -> BTreeSet<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).filter(|path| path.is_absolute()).collect();
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().as_bytes().starts_with(word.as_bytes()));
    found.filter(|entry| executable::check(&entry.path()).is_ok()).map(|entry| entry.file_name()).collect()
}
