//! Which limits are in force, and were: the storm writes them into `work/caps`, before it raises them and
//! after it has lowered them, and the referee remembers.
//!
//! ```text
//! NAME UID FILE LIMIT       UID is * for a file that everybody shares; LIMIT is * where going beyond is
//! allowed
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A repository as the storm names it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) uid: Option<u32>,
    pub(crate) file: String,
}

/// The limits, with their past.
pub(crate) struct Caps {
    path: PathBuf,
    text: String,
    /// Since when, in seconds since boot, and what.
    history: Vec<(f64, BTreeMap<Member, Option<usize>>)>,
}

impl Caps {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, text: String::new(), history: Vec::new() }
    }

    /// Reads them again.
    pub(crate) fn refresh(&mut self, now: f64) {
        let Ok(text) = fs::read_to_string(&self.path) else { return };
        if text != self.text {
            self.history.push((now, text.lines().filter_map(parse).collect()));
            self.text = text;
        }
    }

    /// All repositories.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.history.last().map(|(_, caps)| caps.keys().cloned().collect()).unwrap_or_default()
    }

    /// The highest limit at any time since then; none if there was no limit.
    pub(crate) fn highest(&self, member: &Member, since: f64) -> Option<usize> {
        let first = self.history.iter().rposition(|(begun, _)| *begun <= since).unwrap_or(0);
        let caps = self.history[first..].iter().map(|(_, caps)| caps.get(member).copied().flatten());
        // No limit at one time is no limit.
        caps.collect::<Option<Vec<usize>>>().and_then(|caps| caps.into_iter().max())
    }
}

fn parse(line: &str) -> Option<(Member, Option<usize>)> {
    match line.split(' ').collect::<Vec<&str>>().as_slice() {
        [name, uid, file, limit] => {
            let member = Member { name: (*name).into(), uid: uid.parse().ok(), file: (*file).into() };
            Some((member, limit.parse().ok()))
        }
        _ => None,
    }
}
