//! How the program learns about its slots: `RUNGATE_HELD="matlab=17 tokens=3-9,12"`, `RUNGATE_SLOT_MATLAB=17`
//! for each, and `RUNGATE_NAME_GPU=0,3` if slots have names. A nested launch reads the same variable as a
//! hint where an ancestor's slot may be. A forged one gains nothing, because the kernel decides.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    collections::BTreeSet,
    env,
    ffi::{CString, OsStr, OsString},
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    judge::terms::{NamedSlots, Runs},
    sys::{Entry, process},
    text::visible,
};

/// The variable that names every repository and its slots. A repository with many tables can have several
/// entries: a name does not say which table it is.
pub const HELD: &str = "RUNGATE_HELD";

/// The start of the names of variables for one repository each. They are about its first entry.
pub const SLOT: &str = "RUNGATE_SLOT_";

/// The same for the names of slots.
pub const NAME: &str = "RUNGATE_NAME_";

/// The longest value: the kernel takes 128 KiB in one variable, and starts nothing with a longer one.
/// Thousands of slots with gaps may exceed it; then the program does not get them.
const LONGEST: usize = 100_000;

/// How many entries are read. Those of the nearest ancestors come first. Every user can write anything into
/// the variable.
const MOST_HELD: usize = 64;

/// Reads `RUNGATE_HELD`. Unreadable parts are ignored: it is only a hint.
pub fn parse_held(text: &str) -> Vec<NamedSlots> {
    text.split(' ')
        .take(MOST_HELD)
        .filter(|entry| entry.len() <= LONGEST)
        .filter_map(|entry| {
            let (name, slots) = entry.split_once('=')?;
            let slots = Runs::parse(slots)?;
            let (called, joined) = (Vec::new(), Runs::default());
            (!name.is_empty()).then(|| NamedSlots { name: name.to_owned(), slots, called, joined })
        })
        .collect()
}

/// The environment of the program: that of the caller, with what this launch holds added to what its
/// ancestors hold. An ancestor's slots may be in another table under the same name, so they are kept.
pub fn with_slots(caller: Vec<Entry>, ancestors: &[NamedSlots], taken: &[NamedSlots]) -> Vec<Entry> {
    if taken.is_empty() {
        return caller;
    }
    let mut held: Vec<&NamedSlots> = taken.iter().collect();
    let is_same = |held: &NamedSlots, other: &NamedSlots| {
        NamedSlots::word(&other.name) == held.name && other.slots == held.slots
    };
    held.extend(ancestors.iter().filter(|held| !taken.iter().any(|other| is_same(held, other))));
    let mut text = String::new();
    for NamedSlots { name, slots, .. } in held {
        let separator = if text.is_empty() { "" } else { " " };
        let entry = format!("{separator}{}={slots}", NamedSlots::word(name));
        if text.len().saturating_add(entry.len()) <= LONGEST {
            text.push_str(&entry);
        }
    }
    let mut added = vec![(HELD.to_owned(), text)];
    let mut seen = BTreeSet::new();
    let first: Vec<_> = taken.iter().filter(|taken| seen.insert(variable(SLOT, &taken.name))).collect();
    added.extend(first.iter().map(|taken| (variable(SLOT, &taken.name), taken.slots.to_string())));
    let called = first.iter().filter(|taken| !taken.called.is_empty());
    added.extend(called.map(|taken| (variable(NAME, &taken.name), taken.called.join(","))));
    added.retain(|(_, value)| value.len() <= LONGEST);

    let replaced = |entry: &Entry| {
        added.iter().any(|(name, _)| {
            entry.to_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        })
    };
    let mut environment: Vec<Entry> = caller.into_iter().filter(|entry| !replaced(entry)).collect();
    let entry =
        |(name, value): &(String, String)| CString::new(format!("{name}={value}")).ok().map(Entry::Owned);
    environment.extend(added.iter().filter_map(entry));
    environment
}

/// `RUNGATE_SLOT_` and the name in capitals; what no variable's name may hold becomes `_`.
fn variable(start: &str, repository: &str) -> String {
    let name: String = repository
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{start}{name}")
}

// How often a command was launched below itself. Two programs that search each other in `PATH` would find
// each other forever; a counter in the environment ends that. Each name has its own counter, so that one
// shim below another does not count. Nor does a launch that only follows another, such as that of a worker
// that executes itself again each day, or of a job that submits the next one.

/// The variable: `matlab=2/mex=1/=4711@1764377747`. No name of a command has a slash. The entry without a
/// name, which older releases ignore, is the process of the last launch and its time, in seconds since 1970.
pub const DEPTH: &str = "RUNGATE_DEPTH";

/// How many launches of one command may be nested. Recursion that is meant, as that of make(1), stays far
/// below it.
const MOST: u32 = 50;

/// A launch that comes so much later, in seconds, need not be part of an endless loop. One in a loop comes
/// after milliseconds.
const SOON: u64 = 10;

/// The launches above this process, counted by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Depth {
    counts: Vec<(OsString, u32)>,
    /// The process of the last launch, if that was long ago.
    earlier: Option<i32>,
}

/// A command was launched below itself too often.
#[derive(Debug)]
pub struct TooDeep {
    times: u32,
    search: OsString,
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it was launched {} times below itself ({DEPTH})\n  PATH={}",
            self.times,
            visible(&self.search)
        )
    }
}

impl std::error::Error for TooDeep {}

impl Depth {
    /// What the environment says. Unreadable parts are ignored.
    pub fn of_environment() -> Self {
        env::var_os(DEPTH).map_or_else(Self::default, |text| Self::parse(text.as_bytes(), now()))
    }

    fn parse(text: &[u8], now: u64) -> Self {
        let mut depth = Self::default();
        for entry in text.split(|byte| *byte == b'/') {
            let at = entry.iter().rposition(|byte| *byte == b'=');
            let Some((name, value)) = at.and_then(|at| entry.split_at_checked(at)) else { continue };
            let Some(value) = value.get(1..).and_then(|value| str::from_utf8(value).ok()) else { continue };
            if name.is_empty() {
                depth.earlier = earlier(value, now);
            } else if let Ok(times) = value.parse() {
                depth.counts.push((OsString::from_vec(name.to_vec()), times));
            }
        }
        depth
    }

    /// Whether nothing was counted yet.
    pub fn is_none(&self) -> bool {
        self.counts.is_empty()
    }

    /// One launch of this name further down, or too many of them.
    pub fn below(mut self, name: &OsStr) -> Result<Self, TooDeep> {
        let Some((_, times)) = self.counts.iter_mut().find(|(known, _)| known == name) else {
            self.counts.push((name.to_owned(), 1));
            return Ok(self);
        };
        // It is not below the last launch if that was made by this process, or by one that is not above it.
        if self.earlier.is_some_and(|process| !process::own_lineage().skip(1).any(|above| above == process)) {
            return Ok(self);
        }
        if *times >= MOST {
            return Err(TooDeep { times: *times, search: env::var_os("PATH").unwrap_or_default() });
        }
        *times = times.saturating_add(1);
        Ok(self)
    }

    /// Passes the counts to the program in its environment, with this process as that of the last launch.
    pub fn tell(&self, environment: &mut Vec<Entry>) {
        let variable = format!("{DEPTH}=").into_bytes();
        let mut entry = variable.clone();
        for (name, times) in &self.counts {
            entry.extend_from_slice(name.as_bytes());
            entry.extend_from_slice(format!("={times}/").as_bytes());
        }
        entry.extend_from_slice(format!("={}@{}", process::own_pid(), now()).as_bytes());
        if let Ok(entry) = CString::new(entry) {
            environment.retain(|other| !other.to_bytes().starts_with(&variable));
            environment.push(Entry::Owned(entry));
        }
    }
}

/// The time by the clock: another host, where the variable can come from, has another boot.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The process of a launch, `4711@1764377747`, if that was long ago. A clock that was set back since shows a
/// time that is still to come.
fn earlier(last: &str, now: u64) -> Option<i32> {
    let (process, at) = last.split_once('@')?;
    (at.parse::<u64>().ok()?.abs_diff(now) > SOON).then(|| process.parse().ok())?
}

#[cfg(test)]
mod depth_tests {
    use super::*;

    fn told(depth: &Depth) -> String {
        let mut environment = [c"RUNGATE_DEPTH=old=7", c"A=1"].map(Entry::Borrowed).to_vec();
        depth.tell(&mut environment);
        assert_eq!((environment.len(), &*environment[0]), (2, c"A=1"));
        environment.remove(1).to_str().expect("plain text").to_owned()
    }

    #[test]
    fn each_name_is_counted_for_itself() {
        let depth = Depth::parse(b"mex=1/a=b=3", now()).below(OsStr::new("matlab")).expect("the first");
        let depth = depth.below(OsStr::new("a=b")).expect("the fourth");
        let (text, last) = (told(&depth), format!("/={}@", process::own_pid()));
        let (counts, at) = text.split_once(&last).expect("the last launch");
        assert_eq!(counts, "RUNGATE_DEPTH=mex=1/a=b=4/matlab=1");
        assert!(at.parse::<u64>().is_ok_and(|at| at.abs_diff(now()) <= SOON));
        assert_eq!(Depth::parse(b"/=1/=@/=1@/=x@1/x/y=/z=-1/n=99999999999", now()), Depth::default());
    }

    /// Only what is still above counts, and what came just before.
    #[test]
    fn what_follows_is_not_below() {
        let times = |process: i32, ago: i64| {
            let now = now();
            let text = format!("matlab=50/={process}@{}", now.saturating_add_signed(-ago));
            Depth::parse(text.as_bytes(), now).below(OsStr::new("matlab")).ok().map(|depth| depth.counts[0].1)
        };
        let (own, parent, ended) = (process::own_pid(), process::parent().expect("one"), i32::MAX);
        let soon = SOON.cast_signed();
        assert_eq!([own, parent, ended].map(|process| times(process, soon)), [None; 3]);
        for ago in [soon + 1, 1_000_000, -soon - 1] {
            assert_eq!([own, parent, ended].map(|process| times(process, ago)), [Some(50), None, Some(50)]);
        }
    }

    #[test]
    fn there_is_an_end() {
        let mut depth = Depth::default();
        for _ in 0..MOST {
            depth = depth.below(OsStr::new("matlab")).expect("not too deep");
        }
        assert!(depth.clone().below(OsStr::new("mex")).is_ok());
        assert!(depth.below(OsStr::new("matlab")).is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(name: &str, slots: &[u64]) -> NamedSlots {
        let (slots, called, joined) = (Runs::of(slots), Vec::new(), Runs::default());
        NamedSlots { name: name.to_owned(), slots, called, joined }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(
            parse_held("matlab=17 tokens=4,5 =3 x= y=1,z z=1,1 plain gpu=0 licences=3-5,9"),
            [
                slots("matlab", &[17]),
                slots("tokens", &[4, 5]),
                slots("gpu", &[0]),
                slots("licences", &[3, 4, 5, 9])
            ]
        );
        assert_eq!(parse_held(""), []);
        // Any user can write more than a launch would.
        assert_eq!(parse_held(&"seats=1 ".repeat(65)).len(), 64);
        let long = |length: usize| parse_held(&format!("{}=1", "a".repeat(length - 2))).len();
        assert_eq!((long(100_000), long(100_001)), (1, 0));
    }

    #[test]
    fn the_program_is_told_its_own_slots_and_those_of_its_ancestors() {
        let caller = [c"A=1", c"RUNGATE_HELD=tokens=4,5 seats=1", c"RUNGATE_SLOT_SEATS=1", c"no-equals-sign"];
        let ancestors = [slots("tokens", &[4, 5]), slots("seats", &[1])];
        let environment = with_slots(
            caller.map(Entry::Borrowed).to_vec(),
            &ancestors,
            &[slots("seats", &[2]), slots("gpu-0.x", &[7]), slots("seats", &[3])],
        );
        let expected = [
            c"A=1",
            c"no-equals-sign",
            c"RUNGATE_HELD=seats=2 gpu-0.x=7 seats=3 tokens=4,5 seats=1",
            c"RUNGATE_SLOT_SEATS=2",
            c"RUNGATE_SLOT_GPU_0_X=7",
        ];
        assert_eq!(environment, expected.map(Entry::Borrowed));
    }

    /// A launch that uses its ancestor's slot does not repeat it.
    #[test]
    fn what_the_ancestors_hold_too_is_told_once() {
        let ancestors = [slots("seats", &[2]), slots("seats", &[1])];
        let environment = with_slots(Vec::new(), &ancestors, &[slots("seats", &[1])]);
        let expected = [c"RUNGATE_HELD=seats=1 seats=2", c"RUNGATE_SLOT_SEATS=1"];
        assert_eq!(environment, expected.map(Entry::Borrowed));
    }

    /// When each number was listed, no program with more than 23,000 slots could be executed.
    #[test]
    fn a_million_slots_are_told_in_a_word_and_too_many_pieces_not_at_all() {
        let all: Vec<u64> = (1..=1_000_000).collect();
        let environment = with_slots(Vec::new(), &[], &[slots("all", &all)]);
        let expected = [c"RUNGATE_HELD=all=1-1000000", c"RUNGATE_SLOT_ALL=1-1000000"];
        assert_eq!(environment, expected.map(Entry::Borrowed));
        let odd: Vec<u64> = (0..30_000).map(|half| half * 2 + 1).collect();
        let environment = with_slots(Vec::new(), &[], &[slots("odd", &odd), slots("one", &[7])]);
        let expected = [c"RUNGATE_HELD=one=7", c"RUNGATE_SLOT_ONE=7"];
        assert_eq!(environment, expected.map(Entry::Borrowed));
    }

    /// A variable has 100,000 bytes at most. What does not fit is left out, and the next repository is shown.
    #[test]
    fn a_variable_is_told_up_to_its_longest_length() {
        let told = |length: usize| {
            let taken = [slots(&"a".repeat(length - 2), &[1]), slots("b", &[7])];
            let environment = with_slots(Vec::new(), &[], &taken);
            environment.iter().map(|entry| entry.to_bytes().len()).collect::<Vec<_>>()
        };
        // The variables of the two slots follow.
        let of_slots = |length: usize| ["RUNGATE_SLOT_=1".len() + length - 2, "RUNGATE_SLOT_B=7".len()];
        let held = "RUNGATE_HELD=".len();
        assert_eq!(told(100_000), [&[held + 100_000][..], &of_slots(100_000)].concat());
        assert_eq!(told(100_001), [&[held + "b=7".len()][..], &of_slots(100_001)].concat());
        let named = |length: usize| {
            let taken = NamedSlots { called: vec!["n".repeat(length)], ..slots("b", &[7]) };
            with_slots(Vec::new(), &[], &[taken]).len()
        };
        assert_eq!((named(100_000), named(100_001)), (3, 2));
    }

    #[test]
    fn a_launch_that_holds_nothing_leaves_the_environment_alone() {
        let caller = vec![Entry::Borrowed(c"RUNGATE_HELD=tokens=4")];
        assert_eq!(with_slots(caller.clone(), &[slots("tokens", &[4])], &[]), caller);
    }
}
