//! `rungate run` as it is nearly always typed, read without clap: building clap's whole command line costs more than all else
//! that a launch does before it looks at the policy. Anything that is not spelled plainly is left to clap, and with it every
//! error, abbreviation and question for help. The definition stays clap's: a test compares the two.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    slice,
};

use crate::{
    commands::order::{Cap, NOT_AT_ALL, Order, Voice},
    policy::{HIGHEST_LIMIT, Hold, Wait},
};

/// Reads what follows `run`. None where that is for clap to read, or to complain about.
pub(super) fn read(words: &[OsString]) -> Option<Order> {
    let mut reading = Reading { words: words.iter(), ..Reading::default() };
    let command = reading.options()?;
    let Reading { words, order, limit, slots, repository } = reading;
    if limit.is_none() && (slots.is_some() || repository.is_some()) {
        return None;
    }
    Some(Order {
        command: command.clone(),
        zeroth: command.clone(),
        arguments: words.cloned().collect(),
        cap: limit.map(|limit| Cap { limit, slots, repository }),
        ..order
    })
}

#[derive(Default)]
struct Reading<'a> {
    words: slice::Iter<'a, OsString>,
    order: Order,
    limit: Option<u32>,
    slots: Option<u32>,
    repository: Option<PathBuf>,
}

impl<'a> Reading<'a> {
    /// Reads up to the command, and gives it back.
    fn options(&mut self) -> Option<&'a OsString> {
        loop {
            let word = self.words.next()?;
            if word == "--" {
                return self.words.next();
            }
            if !word.as_bytes().starts_with(b"-") {
                return Some(word);
            }
            self.option(word)?;
        }
    }

    fn option(&mut self, word: &'a OsString) -> Option<()> {
        let (name, value) = match word.as_bytes().iter().position(|byte| *byte == b'=') {
            Some(at) if word.as_bytes().starts_with(b"--") => {
                let (name, value) = word.as_bytes().split_at(at);
                (OsStr::from_bytes(name), Some(OsStr::from_bytes(&value[1..])))
            }
            _ => (word.as_os_str(), None),
        };
        match (name.to_str()?, value) {
            ("-n" | "--nonblock", None) => set(&mut self.order.wait, NOT_AT_ALL),
            ("-q" | "--quiet", None) => self.speak(Voice::Quiet),
            ("-v" | "--verbose", None) => self.speak(Voice::Verbose),
            ("-w" | "--wait", value) => {
                let wait = Wait::parse(self.value(value)?.to_str()?)?;
                set(&mut self.order.wait, wait)
            }
            ("--hold", value) => {
                let hold = Hold::parse(self.value(value)?.to_str()?)?;
                set(&mut self.order.hold, hold)
            }
            ("-E" | "--conflict-exit-code", value) => {
                let status = number(self.value(value)?, 0, u8::MAX.into())?;
                set(&mut self.order.conflict_status, u8::try_from(status).ok()?)
            }
            ("--as", value) => {
                let name = self.value(value)?.to_owned();
                set(&mut self.order.typed_as, name)
            }
            ("--policy", value) => {
                let file = self.value(value)?.into();
                set(&mut self.order.policy, file)
            }
            ("--limit", value) => {
                let limit = number(self.value(value)?, 0, HIGHEST_LIMIT)?;
                set(&mut self.limit, limit)
            }
            ("--slots", value) => {
                let slots = number(self.value(value)?, 1, HIGHEST_LIMIT)?;
                set(&mut self.slots, slots)
            }
            ("--repository", value) => {
                let file = self.value(value)?.into();
                set(&mut self.repository, file)
            }
            _ => None,
        }
    }

    /// The value behind the sign of equality, or the next word. One that is empty or looks like an option is doubtful.
    fn value(&mut self, attached: Option<&'a OsStr>) -> Option<&'a OsStr> {
        let value = attached.or_else(|| self.words.next().map(OsString::as_os_str))?;
        let is_plain = !value.is_empty() && !value.as_bytes().starts_with(b"-");
        is_plain.then_some(value)
    }

    fn speak(&mut self, voice: Voice) -> Option<()> {
        let was = std::mem::replace(&mut self.order.voice, voice);
        (was == Voice::Usual).then_some(())
    }
}

/// Nothing is said twice.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn number(text: &OsStr, least: u32, most: u32) -> Option<u32> {
    let text = text.to_str()?;
    let number = text.parse().ok()?;
    (text.bytes().all(|byte| byte.is_ascii_digit()) && (least..=most).contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proptest::prelude::*;

    use super::*;
    use crate::cli::{Action, CommandLine};

    fn by_clap(words: &[OsString]) -> Option<Order> {
        let start = ["rungate", "run"].map(OsString::from);
        let line = CommandLine::try_parse_from(start.iter().chain(words)).ok()?;
        let Action::Run(arguments) = line.action else { return None };
        Order::typed(arguments).ok()
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[track_caller]
    fn case(line: &str) {
        let plain = read(&words(line));
        assert!(plain.is_some(), "{line}: left to clap");
        assert_eq!(plain, by_clap(&words(line)), "{line}");
    }

    #[test]
    fn what_is_plain_needs_no_clap() {
        case("matlab");
        case("-- matlab -r x");
        case("-n -- matlab -- --help");
        case("-q matlab -q -v");
        case("-w 10m -v --as sync -- python3 sync.py");
        case("--wait=forever --hold tree --policy p.toml matlab");
        case("--limit 4 --slots 2 --repository f -E 3 -- x");
        case("--limit=0 --conflict-exit-code 255 --nonblock --quiet x");
        case("-- -x");
        case("-- --");
    }

    #[test]
    fn what_is_not_plain_is_left_to_clap() {
        for line in [
            "",
            "--",
            "-n",
            "-nq x",
            "-w10m x",
            "-h x",
            "--help",
            "--quite x",
            "-n -n x",
            "-n -w 1s x",
            "-q -v x",
            "--slots 2 x",
            "--limit x",
            "--limit +4 x",
            "--limit 9999999 x",
            "--limit -1 x",
            "--wait 10 x",
            "-w -n x",
            "--hold never x",
            "--policy= x",
            "- x",
            "-E 256 x",
            "--nonblock=true x",
        ] {
            assert_eq!(
                read(&words(line).into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>()),
                None,
                "{line}"
            );
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
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The same order, or none: what the small reader understands, clap understands in the same way.
        #[test]
        fn both_read_the_same(line in proptest::collection::vec(word(), 0..8)) {
            if let Some(plain) = read(&line) {
                prop_assert_eq!(Some(plain), by_clap(&line));
            }
        }
    }
}
