//! The options of `rungate run`, read without clap. Building clap's command line costs more than everything
//! else before the policy is read, and the launcher has no clap. Every accepted line has the same result as
//! with clap. Any other line is left to clap, as are errors and help. clap's definition is the reference: a
//! test compares both.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    slice,
};

use super::launch_options::{Cap, LaunchOptions, NOT_AT_ALL, Voice};
use crate::{
    judge::terms::{Hold, Keyword},
    policy::{HIGHEST_LIMIT, Wait},
};

/// Reads the arguments of `run`. None if clap has to read them.
pub(crate) fn read(words: &[OsString]) -> Option<LaunchOptions> {
    let mut reading = Reading { words: words.iter(), ..Reading::default() };
    let command = reading.up_to_command()?;
    let Reading { words, options, limit, slots, repository } = reading;
    if limit.is_none() && (slots.is_some() || repository.is_some()) {
        return None;
    }
    Some(LaunchOptions {
        command: command.clone(),
        argv0: command.clone(),
        arguments: words.cloned().collect(),
        cap: limit.map(|limit| Cap { limit, slots, repository: repository.map(Into::into) }),
        ..options
    })
}

/// An option, by its letter or its word.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Name<'a> {
    Short(u8),
    Long(&'a str),
}

#[derive(Default)]
struct Reading<'a> {
    words: slice::Iter<'a, OsString>,
    options: LaunchOptions,
    limit: Option<u32>,
    slots: Option<u32>,
    repository: Option<OsString>,
}

impl<'a> Reading<'a> {
    /// Reads up to the command, and returns it.
    fn up_to_command(&mut self) -> Option<&'a OsString> {
        loop {
            let word = self.words.next()?;
            match word.as_bytes() {
                b"--" => return self.words.next(),
                [b'-', b'-', long @ ..] => self.long(long)?,
                [b'-', letters @ ..] if !letters.is_empty() => self.letters(letters)?,
                _ => return Some(word),
            }
        }
    }

    /// `--wait 5m`, or `--wait=5m`.
    fn long(&mut self, word: &'a [u8]) -> Option<()> {
        let (name, value) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) => (&word[..at], Some(OsStr::from_bytes(&word[at + 1..]))),
            None => (word, None),
        };
        let name = Name::Long(str::from_utf8(name).ok()?);
        if value.is_none() && self.flag(name).is_some() { Some(()) } else { self.option(name, value) }
    }

    /// `-q`, `-qn`, `-w 5m`, `-qw5m`, `-w=5m`.
    fn letters(&mut self, mut letters: &'a [u8]) -> Option<()> {
        while let Some((letter, rest)) = letters.split_first() {
            if self.flag(Name::Short(*letter)).is_none() {
                let value = (!rest.is_empty()).then(|| rest.strip_prefix(b"=").unwrap_or(rest));
                return self.option(Name::Short(*letter), value.map(OsStr::from_bytes));
            }
            letters = rest;
        }
        Some(())
    }

    fn flag(&mut self, name: Name<'_>) -> Option<()> {
        match name {
            Name::Short(b'n') | Name::Long("nonblock") => set(&mut self.options.wait, NOT_AT_ALL),
            Name::Long("notify") => (!std::mem::replace(&mut self.options.notify, true)).then_some(()),
            Name::Short(b'q') | Name::Long("quiet") => self.speak(Voice::Quiet),
            Name::Short(b'v') | Name::Long("verbose") => self.speak(Voice::Verbose),
            _ => None,
        }
    }

    /// An option with its value: the one attached to it, or the next word, unless that looks like an option
    /// itself.
    fn option(&mut self, name: Name<'_>, attached: Option<&'a OsStr>) -> Option<()> {
        let next = || self.words.next().filter(|word| !looks_like_option(word)).map(OsString::as_os_str);
        let value = attached.or_else(next)?;
        let file = || (!value.is_empty()).then(|| value.to_owned());
        match name {
            Name::Short(b'w') | Name::Long("wait") => {
                set(&mut self.options.wait, Wait::parse(value.to_str()?)?)
            }
            Name::Long("hold") => set(&mut self.options.hold, Hold::of(value.to_str()?)?),
            Name::Short(b'E') | Name::Long("conflict-exit-code") => {
                let status = number(value, 0, u8::MAX.into())?;
                set(&mut self.options.conflict_status, u8::try_from(status).ok()?)
            }
            Name::Long("as") => set(&mut self.options.typed_as, value.to_owned()),
            Name::Long("policy") => set(&mut self.options.policy, file()?.into()),
            Name::Long("limit") => set(&mut self.limit, number(value, 0, HIGHEST_LIMIT)?),
            Name::Long("slots") => set(&mut self.slots, number(value, 1, HIGHEST_LIMIT)?),
            Name::Long("repository") => set(&mut self.repository, file()?),
            _ => None,
        }
    }

    fn speak(&mut self, voice: Voice) -> Option<()> {
        let was = std::mem::replace(&mut self.options.voice, voice);
        (was == Voice::Usual).then_some(())
    }
}

/// Nothing is printed twice.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn looks_like_option(word: &OsStr) -> bool {
    word.as_bytes().starts_with(b"-") && word != "-"
}

fn number(text: &OsStr, least: u32, most: u32) -> Option<u32> {
    let number = text.to_str()?.parse().ok()?;
    (least..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proptest::prelude::*;

    use crate::cli::{Action, CommandLine};
    use crate::launch::run::plain_run::*;

    fn by_clap(words: &[OsString]) -> Option<LaunchOptions> {
        let start = ["rungate", "run"].map(OsString::from);
        let line = CommandLine::try_parse_from(start.iter().chain(words)).ok()?;
        let Action::Run(arguments) = line.action else { return None };
        Some(LaunchOptions { policy: line.policy, ..LaunchOptions::typed(&arguments).ok()? })
    }

    /// Whether the line is read; both readers must agree.
    #[track_caller]
    fn is_read(line: &str) -> bool {
        let words: Vec<OsString> =
            line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect();
        let read = read(&words);
        assert_eq!(read, by_clap(&words), "{line}");
        read.is_some()
    }

    #[test]
    fn every_form_of_an_option_is_read() {
        for line in [
            "matlab",
            "-- matlab -r x",
            "-n -- matlab -- --help",
            "-q matlab -q -v",
            "-w 10m -v --as sync -- python3 sync.py",
            "--wait=forever --hold tree --policy p.toml matlab",
            "--limit 4 --slots 2 --repository f -E 3 -- x",
            "--limit 1048575 --slots 1 x",
            "--limit 1 --slots 1048575 x",
            "--limit=0 --conflict-exit-code 255 --nonblock --quiet x",
            "-E 0 x",
            "-nq x",
            "-w10m x",
            "-vw=10m x",
            "-qE3 -- x",
            "--notify -w 1h x",
            "--as=-x --limit +4 x",
            "--as - -",
            "--as= x",
            "-- -x",
            "-- --",
            "- x",
        ] {
            assert!(is_read(line), "{line}");
        }
    }

    #[test]
    fn what_clap_complains_about_is_left_to_it() {
        for line in [
            "",
            "--",
            "-n",
            "-h x",
            "-nh x",
            "--help",
            "--quite x",
            "-n -n x",
            "-nqn x",
            "-n -w 1s x",
            "-q -v x",
            "--slots 2 x",
            "--repository r x",
            "--limit x",
            "--limit 1048576 x",
            "--limit 1 --slots 1048576 x",
            "--limit 1 --slots 0 x",
            "--limit -1 x",
            "--wait 10 x",
            "-w -n x",
            "-w= x",
            "--hold never x",
            "--policy= x",
            "-E 256 x",
            "--nonblock=true x",
            "--notify --notify x",
        ] {
            assert!(!is_read(line), "{line}");
        }
    }

    fn word() -> impl Strategy<Value = OsString> {
        let known = proptest::sample::select(vec![
            "-n",
            "--nonblock",
            "-q",
            "--quiet",
            "-v",
            "--verbose",
            "--notify",
            "-w",
            "--wait",
            "-E",
            "--conflict-exit-code",
            "--hold",
            "--as",
            "--policy",
            "--limit",
            "--slots",
            "--repository",
            "--",
            "-",
            "-h",
            "--help",
            "-V",
            "-nq",
            "-nh",
            "-qw1s",
            "-qE",
            "-vw=",
            "-q=",
            "-n-",
            "--wait=1s",
            "--wait=",
            "--as=x",
            "--as==",
            "--limit=3",
            "--limit=x",
            "--hold=tree",
            "--policy=p",
            "-w1s",
            "--repository=r",
            "--slots=0",
            "--slots=1",
            "--nonblock=",
            "--lim",
            "-E3",
            "-E=3",
            "-w=1s",
            "--hold=no",
            "10m",
            "1h30m",
            "forever",
            "0s",
            "process",
            "descriptor",
            "supervisor",
            "tree",
            "0",
            "1",
            "255",
            "256",
            "1048575",
            "1048576",
            "+1",
            "-1",
            "01",
            "x",
            "run",
            "",
            " ",
            "=",
            "é",
        ]);
        prop_oneof![
            12 => known.prop_map(OsString::from),
            1 => proptest::collection::vec(1u8..=255, 0..6).prop_map(|bytes| OsStr::from_bytes(&bytes).to_owned()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// The same options, or none: there is nothing that only one of the two readers understands.
        #[test]
        fn both_read_the_same(line in proptest::collection::vec(word(), 0..8)) {
            prop_assert_eq!(read(&line), by_clap(&line));
        }
    }
}
