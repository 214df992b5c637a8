//! Which files make up the policy, and their text. Only this folder of the module reads files. Everything
//! after it works on text in memory, so that tests and `policy check FILE` judge exactly as a launch.

mod found;
mod reading;
mod stamps;

use std::path::{Path, PathBuf};

pub use self::found::LayerText;
use self::reading::{Need, Reading};
pub(super) use self::{
    found::Found,
    reading::{read_files, read_place},
    stamps::Stamps,
};

use super::{
    delegation::Delegation,
    layer::{LayerKind, SYSTEM_POLICY},
    preview::delegations_of,
};
use crate::text::diagnostic::SourceText;

/// Where the policy comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sources {
    /// The system's file. Its drop-ins are in the directory beside it whose name ends in `.d` instead of
    /// `.toml`.
    pub system: PathBuf,
    /// What `--policy` or `RUNGATE_POLICY` names; it must exist.
    pub given: Option<PathBuf>,
    /// The user who names it, and may also own it: a caller may act for another user.
    pub given_by: u32,
    /// The caller's own file, `$XDG_CONFIG_HOME/rungate/policy.toml`.
    pub own: Option<PathBuf>,
    /// The caller's real uid: the only owner of a policy besides root, and whether added layers may loosen.
    pub caller: u32,
}

/// A text that may be put at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Proposal {
    /// Where.
    pub path: PathBuf,
    /// The kind; none if it would not be a file.
    pub text: Option<String>,
}

impl Proposal {
    fn source(&self) -> Option<SourceText> {
        self.text.as_deref().map(|text| SourceText::new(&self.path, text))
    }
}

impl Sources {
    /// The system's policy alone, for a caller with this real uid.
    pub fn system(caller: u32) -> Self {
        Sources { system: SYSTEM_POLICY.into(), given: None, given_by: caller, own: None, caller }
    }

    /// The directory of the system's drop-ins.
    pub fn drop_ins(&self) -> PathBuf {
        self.system.with_extension("d")
    }

    pub(super) fn is_drop_in(&self, file: &Path) -> bool {
        file.parent() == Some(&self.drop_ins())
    }

    /// Reads every file, and the delegated files that `is_wanted` selects: no others are even opened.
    pub(super) fn read(&self, is_wanted: &dyn Fn(&Delegation) -> bool) -> Found {
        self.read_by(Reading::for_caller(self.caller), is_wanted)
    }

    /// Reads every file as if these texts were at their paths.
    pub(super) fn read_with(&self, proposals: &[Proposal]) -> Found {
        self.read_by(Reading::for_caller(self.caller).with(proposals), &|_| true)
    }

    fn read_by(&self, mut reading: Reading<'_>, is_wanted: &dyn Fn(&Delegation) -> bool) -> Found {
        let mut system = reading.file(&self.system, Need::May);
        let delegations = system.first().map_or_else(Vec::new, |main| delegations_of(main.text()));
        let delegated = reading.drop_ins(&self.drop_ins(), &mut system, &delegations, is_wanted);
        reading.layer(LayerKind::System, system);
        for file in delegated {
            reading.layer(LayerKind::Delegated, vec![file]);
        }
        if let Some(given) = &self.given {
            let files = reading.given(given, self.given_by);
            reading.layer(LayerKind::Given, files);
        }
        if let Some(own) = &self.own {
            let files = reading.file(own, Need::WhereReached);
            reading.layer(LayerKind::Own, files);
        }
        Found { delegations, ..reading.found }
    }
}
