//! How often a command was launched below itself. Two programs that search each other in `PATH` would find
//! each other forever; a counter in the environment ends that. Each name has its own counter, so that one
//! shim below another does not count.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    env,
    ffi::{CString, OsStr, OsString},
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use crate::{sys::executable::Entry, text::escape::visible};

/// The variable: `matlab=2/mex=1`. No name of a command has a slash.
pub const DEPTH: &str = "RUNGATE_DEPTH";

/// How deep a command may be below itself. Recursion that is meant, as that of make(1), stays far below it.
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

    /// Tells the program, whose environment it is.
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
mod tests {
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
