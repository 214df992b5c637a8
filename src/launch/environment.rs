//! How the program learns about its slots: `RUNGATE_HELD="matlab=17 tokens=3-9,12"`, `RUNGATE_SLOT_MATLAB=17`
//! for each, and `RUNGATE_NAME_GPU=0,3` if slots have names. A nested launch reads the same variable as a
//! hint where an ancestor's slot may be. A forged one gains nothing, because the kernel decides.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    env,
    ffi::{CString, OsStr, OsString},
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use crate::{
    judge::terms::{NamedSlots, Runs},
    sys::Entry,
    text::visible,
};

/// The variable that names every repository and its slots.
pub const HELD: &str = "RUNGATE_HELD";

/// The start of the names of variables for one repository each.
pub const SLOT: &str = "RUNGATE_SLOT_";

/// The same for the names of slots.
pub const NAME: &str = "RUNGATE_NAME_";

/// The longest value: the kernel takes 128 KiB in one variable, and starts nothing with a longer one.
/// Thousands of slots with gaps may exceed it; then the program does not get them.
const LONGEST: usize = 100_000;

/// How many repositories of ancestors are read. No launch that we start writes more of them than it can use,
/// but every user can write anything into the variable.
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
/// ancestors hold.
pub fn with_slots(caller: Vec<Entry>, ancestors: &[NamedSlots], taken: &[NamedSlots]) -> Vec<Entry> {
    if taken.is_empty() {
        return caller;
    }
    let mut held: Vec<&NamedSlots> = taken.iter().collect();
    let is_taken = |held: &&NamedSlots| taken.iter().any(|other| NamedSlots::word(&other.name) == held.name);
    held.extend(ancestors.iter().filter(|held| !is_taken(held)));
    let mut text = String::new();
    for NamedSlots { name, slots, .. } in held {
        let separator = if text.is_empty() { "" } else { " " };
        let entry = format!("{separator}{}={slots}", NamedSlots::word(name));
        if text.len().saturating_add(entry.len()) <= LONGEST {
            text.push_str(&entry);
        }
    }
    let mut added = vec![(HELD.to_owned(), text)];
    added.extend(taken.iter().map(|taken| (variable(SLOT, &taken.name), taken.slots.to_string())));
    let called = taken.iter().filter(|taken| !taken.called.is_empty());
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
// shim below another does not count.

/// The variable: `matlab=2/mex=1`. No name of a command has a slash.
pub const DEPTH: &str = "RUNGATE_DEPTH";

/// How many launches of one command may be nested. Recursion that is meant, as that of make(1), stays far
/// below it.
const MOST: u32 = 50;

/// The launches above this process, counted by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Depth(Vec<(OsString, u32)>);

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
        env::var_os(DEPTH).map_or_else(Self::default, |text| Self::parse(text.as_bytes()))
    }

    fn parse(text: &[u8]) -> Self {
        let counts = text.split(|byte| *byte == b'/').filter_map(|entry| {
            let (name, times) = entry.split_at_checked(entry.iter().rposition(|byte| *byte == b'=')?)?;
            let times = str::from_utf8(times.get(1..)?).ok()?.parse().ok()?;
            (!name.is_empty()).then(|| (OsString::from_vec(name.to_vec()), times))
        });
        Self(counts.collect())
    }

    /// Whether nothing was counted yet.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// One launch of this name further down, or too many of them.
    pub fn below(mut self, name: &OsStr) -> Result<Self, TooDeep> {
        let Some((_, times)) = self.0.iter_mut().find(|(known, _)| known == name) else {
            self.0.push((name.to_owned(), 1));
            return Ok(self);
        };
        if *times >= MOST {
            return Err(TooDeep { times: *times, search: env::var_os("PATH").unwrap_or_default() });
        }
        *times = times.saturating_add(1);
        Ok(self)
    }

    /// Passes the counts to the program in its environment.
    pub fn tell(&self, environment: &mut Vec<Entry>) {
        let variable = format!("{DEPTH}=").into_bytes();
        let mut entry = variable.clone();
        for (name, times) in &self.0 {
            if entry.len() > variable.len() {
                entry.push(b'/');
            }
            entry.extend_from_slice(name.as_bytes());
            entry.extend_from_slice(format!("={times}").as_bytes());
        }
        if let Ok(entry) = CString::new(entry) {
            environment.retain(|other| !other.to_bytes().starts_with(&variable));
            environment.push(Entry::Owned(entry));
        }
    }
}

#[cfg(test)]
mod depth_tests {
    use super::*;

    fn told(depth: &Depth) -> CString {
        let mut environment = [c"RUNGATE_DEPTH=old=7", c"A=1"].map(Entry::Borrowed).to_vec();
        depth.tell(&mut environment);
        assert_eq!((environment.len(), &*environment[0]), (2, c"A=1"));
        environment.remove(1).into_owned()
    }

    #[test]
    fn each_name_is_counted_for_itself() {
        let depth = Depth::parse(b"mex=1/a=b=3").below(OsStr::new("matlab")).expect("the first");
        let depth = depth.below(OsStr::new("a=b")).expect("the fourth");
        assert_eq!(told(&depth).as_c_str(), c"RUNGATE_DEPTH=mex=1/a=b=4/matlab=1");
        assert_eq!(Depth::parse(b"/=1/x/y=/z=-1/n=99999999999"), Depth::default());
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
            &[slots("seats", &[2]), slots("gpu-0.x", &[7])],
        );
        let expected = [
            c"A=1",
            c"no-equals-sign",
            c"RUNGATE_HELD=seats=2 gpu-0.x=7 tokens=4,5",
            c"RUNGATE_SLOT_SEATS=2",
            c"RUNGATE_SLOT_GPU_0_X=7",
        ];
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
