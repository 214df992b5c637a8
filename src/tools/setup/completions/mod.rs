//! `rungate completions SHELL`: the script by which a shell completes command lines of rungate; and, with
//! words after `--`, the answer to such a script. A script is a few fixed lines for each shell, because all
//! knowledge is in the answer (`answer`).

mod answer;

use std::{ffi::OsString, os::unix::ffi::OsStrExt};

use self::answer::{Candidate, answer};
use crate::{
    cli::CompletionsArguments,
    text::{
        error::Error,
        print::{print, printed},
        stream,
    },
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
    let words = match shell {
        Shell::Tcsh => split(&arguments.words[0]),
        _ => arguments.words.clone(),
    };
    let lines: Vec<u8> = answer(&words).iter().filter_map(|found| shell.line(found)).flatten().collect();
    printed(stream::pass_on(&lines))
}

/// tcsh has the line up to the cursor as one text. Only blanks divide it: there is no quoted word that
/// rungate could complete.
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
            Self::Bash => include_str!("../../../../packaging/completions/rungate.bash"),
            Self::Zsh => include_str!("../../../../packaging/completions/_rungate"),
            Self::Fish => include_str!("../../../../packaging/completions/rungate.fish"),
            Self::Tcsh => include_str!("../../../../packaging/completions/rungate.tcsh"),
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
            Self::Bash | Self::Tcsh => bytes.to_vec(),
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
