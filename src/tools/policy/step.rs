//! One step of an installation: a file that gets a text, or a drop-in that is removed.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{
    location::Location,
    target::{Removal, Target},
};
use crate::{
    policy::{Proposal, SYSTEM_POLICY, Sources},
    sys::{accounts, credentials, failure::errno_of, process},
    text::{
        clock::{Clock, system_time},
        error::{Error, ExitStatus},
        escape::{Show, visible},
        stream,
    },
};
use jiff::Timestamp;

/// Makes the steps one after the other, and stops at the first failure.
pub(super) fn make<'s>(steps: impl IntoIterator<Item = &'s Step>) -> Result<(), Error> {
    let mut done: Vec<String> = Vec::new();
    let steps: Vec<&Step> = steps.into_iter().collect();
    let files: Vec<&Path> = steps.iter().map(|step| step.path()).collect();
    let what: Vec<String> = steps.iter().map(|step| step.to_do()).collect();
    remember(&files, &what.join(" and "));
    for step in steps {
        let so_far = || match done.as_slice() {
            [] => "Nothing was changed.".to_owned(),
            done => format!("Before that {}. The policy has no fault as it is.", done.join(" and ")),
        };
        if step.has_changed()? {
            let text = format!("{} was changed by another user meanwhile", visible(step.path()));
            return Err(Error::new(ExitStatus::Failure, text).advise(so_far()));
        }
        step.make().map_err(|error| error.advise(so_far()))?;
        done.push(step.done());
    }
    Ok(())
}

/// The step for one file.
pub(super) enum Step {
    /// It gets this text.
    Put(Rc<Target>, String),
    /// It goes.
    TakeAway(Removal),
}

impl Step {
    /// Where the file is.
    pub(super) fn location(&self) -> &Location {
        match self {
            Self::Put(target, _) => &target.location,
            Self::TakeAway(removal) => &removal.location,
        }
    }

    /// Where the policy names it.
    pub(super) fn path(&self) -> &Path {
        &self.location().path
    }

    /// Whether there is anything to do.
    pub(super) fn is_due(&self) -> bool {
        match self {
            Self::Put(target, text) => target.before.as_ref() != Some(text),
            Self::TakeAway(_) => true,
        }
    }

    /// The policy as it would be.
    pub(super) fn proposal(&self) -> Proposal {
        match self {
            Self::Put(target, text) => target.proposal(text.clone()),
            Self::TakeAway(removal) => removal.proposal(),
        }
    }

    /// Whether the file was changed since it was checked.
    fn has_changed(&self) -> Result<bool, Error> {
        match self {
            Self::Put(target, _) => target.has_changed(),
            Self::TakeAway(removal) => Ok(removal.has_changed()),
        }
    }

    /// Does it.
    fn make(&self) -> Result<(), Error> {
        match self {
            Self::Put(target, text) => target.put(text),
            Self::TakeAway(removal) => removal.take_away(),
        }
    }

    /// Its name in a prompt.
    pub(super) fn to_do(&self) -> String {
        match self {
            Self::Put(target, _) => {
                let verb = if target.before.is_some() { "replace" } else { "add" };
                format!("{verb} the {} {}", self.kind(), self.path().shown())
            }
            Self::TakeAway(_) => format!("take {} away", self.path().shown()),
        }
    }

    /// The role of the file in the policy.
    fn kind(&self) -> &'static str {
        match self.location() {
            location if location.is_drop_in() => "drop-in",
            Location { sources: Sources { own: Some(_), .. }, .. } => "policy",
            _ => "main file",
        }
    }

    /// Its name once done.
    fn done(&self) -> String {
        match self {
            Self::Put(..) => format!("{} was put in place", self.path().shown()),
            Self::TakeAway(_) => format!("{} was taken away", self.path().shown()),
        }
    }
}

// The system's policy before each of its last changes: `edit`, `install` and `undo` keep a copy of all its
// files before they change one.

/// Where the copies are: beside the policy, so that backups include both.
const PLACE: &str = "/etc/rungate/policy.past";

/// How many there are.
const KEPT: usize = 10;

/// The file that records who changed what.
const NOTE: &str = "note";

/// One copy of the policy before a change.
pub(super) struct Copy {
    pub(super) path: PathBuf,
    pub(super) until: Timestamp,
}

impl Copy {
    /// All of them, the last first.
    pub(super) fn all() -> Vec<Self> {
        let entries = fs::read_dir(PLACE).into_iter().flatten().flatten();
        let copy = |entry: fs::DirEntry| {
            let until = entry.file_name().to_str()?.parse().ok()?;
            Some(Self { path: entry.path(), until })
        };
        let mut all: Vec<Self> = entries.filter_map(copy).collect();
        all.sort_by_key(|copy| std::cmp::Reverse(copy.until));
        all
    }

    /// Who made the next change, and what it was.
    pub(super) fn note(&self) -> (String, String) {
        let text = fs::read_to_string(self.path.join(NOTE)).unwrap_or_default();
        let (who, what) = text.trim_end().split_once('\n').unwrap_or(("?", "?"));
        (visible(who), visible(what))
    }
}

/// Keeps a copy of the system's policy before these files are changed. A failure to keep a copy does not
/// prevent the change.
pub(super) fn remember(files: &[&Path], what: &str) {
    let drop_ins = Sources::system(0).drop_ins();
    let is_of_system =
        |file: &&Path| *file == Path::new(SYSTEM_POLICY) || file.parent() == Some(drop_ins.as_path());
    if credentials::own_uid() != 0 || files.is_empty() || !files.iter().all(is_of_system) {
        return;
    }
    if let Err(error) = copy(what, &drop_ins) {
        stream::complain(&format!(
            "rungate: no copy of the old policy was kept: {}: {}",
            PLACE,
            errno_of(&error).desc()
        ));
    }
}

fn copy(what: &str, drop_ins: &Path) -> io::Result<()> {
    let place = Path::new(PLACE);
    fs::create_dir_all(place)?;
    // Changes are made one after the other, so files of another change were left by a killed process.
    for left in fs::read_dir(place)?.flatten() {
        if left.file_name().as_encoded_bytes().starts_with(b".new.") {
            let _ = fs::remove_dir_all(left.path());
        }
    }
    let new = place.join(format!(".new.{}", process::own_pid()));
    fs::create_dir(&new)?;
    let kept = fill(&new, what, drop_ins).and_then(|()| {
        let name = Clock::stamp(system_time(Timestamp::now())).unwrap_or_default();
        fs::rename(&new, place.join(name))
    });
    if kept.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    for old in Copy::all().iter().skip(KEPT) {
        let _ = fs::remove_dir_all(&old.path);
    }
    kept
}

fn fill(new: &Path, what: &str, drop_ins: &Path) -> io::Result<()> {
    let user = env::var("SUDO_USER").unwrap_or_else(|_| accounts::shown(credentials::own_uid()));
    let one_line = |text: &str| text.replace('\n', " ");
    fs::write(new.join(NOTE), format!("{}\n{}\n", one_line(&user), one_line(what)))?;
    let main = Path::new(SYSTEM_POLICY);
    if main.exists() {
        fs::copy(main, new.join("policy.toml"))?;
    }
    fs::create_dir(new.join("policy.d"))?;
    for name in names(drop_ins) {
        fs::copy(drop_ins.join(&name), new.join("policy.d").join(&name))?;
    }
    Ok(())
}

/// The drop-ins of a directory.
pub(super) fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<OsString> =
        entries.filter(|name| name.as_encoded_bytes().ends_with(b".toml")).collect();
    names.sort();
    names
}
