//! What a policy was before each of its last changes: `edit`, `install` and `undo` keep a copy of all of its
//! files before they change one. The system's has copies, and each user's own.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File, Permissions},
    io::{self, Write as _},
    mem,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    Location,
    target::{self, names},
};
use crate::{
    launch::Situation,
    policy::{SYSTEM_POLICY, Sources},
    sys::{
        Attributes, Errno, JudgedDirectories, TrustedDirectory, TrustedFile, accounts, errno_of, process,
        regular_file::{self, create_directory, create_new},
    },
    text::{Clock, Error, ExitStatus, stream, system_time, visible},
};

/// How many there are.
const KEPT: usize = 10;

/// The file that says who changed what, and then each drop-in that was not root's, after its owner.
const NOTE: &str = "note";

/// How the name of a copy begins that is not complete.
const UNFINISHED: &str = ".new.";

/// One copy: what the policy was until then.
pub(super) struct Copy {
    pub(super) path: PathBuf,
    pub(super) until: Timestamp,
}

impl Copy {
    /// Who made the change after it, and what that was.
    pub(super) fn note(&self) -> (String, String) {
        let text = fs::read_to_string(self.path.join(NOTE)).unwrap_or_default();
        let mut lines = text.lines().map(visible);
        let mut line = || lines.next().unwrap_or_else(|| "?".to_owned());
        (line(), line())
    }

    /// Who had a drop-in: the copy is root's.
    pub(super) fn owner(&self, name: &OsStr) -> Result<u32, Error> {
        let note = self.path.join(NOTE);
        let text = fs::read_to_string(&note).map_err(|error| {
            let text = format!("{} cannot be read: {}", visible(&note), errno_of(&error).desc());
            Error::new(ExitStatus::System, text)
        })?;
        let name = visible(name);
        let owner = |line: &str| line.split_once(' ').filter(|(_, known)| *known == name)?.0.parse().ok();
        Ok(text.lines().skip(2).find_map(owner).unwrap_or(0))
    }
}

/// The copies of one policy.
pub(super) struct Past {
    /// Its main file.
    main: PathBuf,
    /// The directory of its drop-ins; a user's own policy has none.
    drop_ins: Option<PathBuf>,
}

impl Past {
    /// The past of the policy that this file is of; none of one that belongs to another user, or that was
    /// named.
    pub(super) fn of(location: &Location) -> Option<Self> {
        let Sources { given, own, .. } = &location.sources;
        let drop_ins = location.sources.drop_ins();
        let is_of_system = location.path == Path::new(SYSTEM_POLICY) || location.is_drop_in();
        match (accounts::own_uid(), given, own) {
            (0, None, None) if is_of_system => {
                Some(Self { main: SYSTEM_POLICY.into(), drop_ins: Some(drop_ins) })
            }
            (1.., None, Some(own)) => Some(Self { main: own.clone(), drop_ins: None }),
            _ => None,
        }
    }

    /// The past of the system's policy for root, and of their own for other users; none if they can have
    /// none.
    pub(super) fn usual(situation: &Situation) -> Option<Self> {
        match situation.credentials.uid {
            0 => {
                let drop_ins = Some(Sources::system(0).drop_ins());
                Some(Self { main: SYSTEM_POLICY.into(), drop_ins })
            }
            _ => situation.own_policy().map(|main| Self { main, drop_ins: None }),
        }
    }

    /// Where the copies are: beside the policy, so that what keeps one keeps the other.
    fn place(&self) -> PathBuf {
        self.main.with_extension("past")
    }

    /// All copies, the last first.
    pub(super) fn copies(&self) -> Vec<Copy> {
        let entries = fs::read_dir(self.place()).into_iter().flatten().flatten();
        let copy = |entry: fs::DirEntry| {
            let until = entry.file_name().to_str()?.parse().ok()?;
            Some(Copy { path: entry.path(), until })
        };
        let mut all: Vec<Copy> = entries.filter_map(copy).collect();
        all.sort_by_key(|copy| std::cmp::Reverse(copy.until));
        all
    }

    /// Keeps a copy before the policy is changed, and returns its path. If none can be kept, the change is
    /// made without one, unless it removes a drop-in.
    pub(super) fn remember(&self, what: &str) -> Option<PathBuf> {
        let kept = self.copy(what).inspect_err(|error| {
            stream::complain(&format!(
                "rungate: the policy as it was is not kept: {}: {}",
                visible(self.place()),
                errno_of(error).desc()
            ));
        });
        kept.ok()
    }

    fn copy(&self, what: &str) -> io::Result<PathBuf> {
        let place = self.place();
        create_directory(&place, 0o700)?;
        // Changes come one after the other: what is there of another one was left by a process that was
        // killed.
        for left in fs::read_dir(&place)?.flatten() {
            if left.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                let _ = fs::remove_dir_all(left.path());
            }
        }
        // An earlier program let all users in, and kept setuid bits.
        fs::set_permissions(&place, Permissions::from_mode(0o700))?;
        let new = place.join(unfinished());
        create_directory(&new, 0o700)?;
        // It is the last one, even if the clock was set back since the one before.
        let last = self.copies().first().map(|copy| copy.until + Duration::from_millis(1));
        let until = last.map_or_else(Timestamp::now, |last| last.max(Timestamp::now()));
        let kept = self.fill(&new, what).and_then(|()| {
            let copy = place.join(Clock::stamp(system_time(until)).unwrap_or_default());
            fs::rename(&new, &copy).map(|()| copy)
        });
        if kept.is_err() {
            let _ = fs::remove_dir_all(&new);
        }
        for old in self.copies().iter().skip(KEPT) {
            forget(&old.path);
        }
        kept
    }

    fn fill(&self, new: &Path, what: &str) -> io::Result<()> {
        let user = env::var("SUDO_USER").unwrap_or_else(|_| accounts::shown(accounts::own_uid()));
        let one_line = |text: &str| text.replace('\n', " ");
        let mut note = File::from(create_new(&new.join(NOTE), 0o644)?);
        writeln!(note, "{}\n{}", one_line(&user), one_line(what))?;
        if let (Some(above), Some(name)) = (self.main.parent(), self.main.file_name()) {
            keep(name, &open(above)?, &open(new)?, None)?;
        }
        if let Some(drop_ins) = &self.drop_ins {
            fill_drop_ins(drop_ins, &new.join("policy.d"), &mut note)?;
        }
        note.sync_all()
    }

    /// The drop-ins that are there now.
    pub(super) fn drop_ins(&self) -> Vec<OsString> {
        self.drop_ins.as_deref().map(names).unwrap_or_default()
    }
}

fn fill_drop_ins(drop_ins: &Path, copies: &Path, note: &mut File) -> io::Result<()> {
    create_directory(copies, 0o700)?;
    let names = names(drop_ins);
    if names.is_empty() {
        return Ok(());
    }
    let [from, to] = [open(drop_ins)?, open(copies)?];
    for name in &names {
        if let Some(owner) =
            keep(name, &from, &to, Some(owner_of(from.path().join(name))))?.filter(|owner| *owner != 0)
        {
            writeln!(note, "{owner} {}", visible(name))?;
        }
    }
    Ok(())
}

/// The owner of a file, also behind a link, unless another user could replace that.
fn owner_of(path: PathBuf) -> u32 {
    let judged = JudgedDirectories::for_caller(accounts::own_uid());
    let end = TrustedFile::resolve(&path, &judged).ok().flatten().unwrap_or(path);
    regular_file::status_of_path(&end).map_or(0, |status| status.uid)
}

/// Where a copy has the link behind which the text of a drop-in was: under a name that no drop-in has.
pub(super) fn link_to(name: &OsStr) -> OsString {
    let mut link = OsString::from(".");
    link.push(name);
    link
}

/// Removes a copy. It loses its name first: what is left of a copy after SIGKILL is none.
pub(super) fn forget(copy: &Path) {
    let nameless = copy.with_file_name(unfinished());
    let _ = fs::rename(copy, &nameless).and_then(|()| fs::remove_dir_all(&nameless));
}

/// The name of a copy that is not complete yet, or not any more.
fn unfinished() -> String {
    format!("{UNFINISHED}{}", process::own_pid())
}

fn open(path: &Path) -> io::Result<TrustedDirectory> {
    let judged = JudgedDirectories::for_caller(accounts::own_uid());
    let opened = TrustedDirectory::open(path, &judged).ok().flatten();
    opened.ok_or_else(|| io::Error::from(Errno::EPERM))
}

/// Keeps a drop-in with its mode, as a file that only root can write to, and returns the owner. Without a
/// delegate it is the main file, of which only the text is needed. The text behind a link is kept only if no
/// other user could have replaced the file; otherwise the copy is the link. The copy of what cannot be read
/// is a directory, and undo leaves that file alone.
fn keep(
    name: &OsStr,
    from: &TrustedDirectory,
    to: &TrustedDirectory,
    delegate: Option<u32>,
) -> io::Result<Option<u32>> {
    let (path, copy) = (from.path().join(name), to.path().join(name));
    let owner = delegate.unwrap_or_else(accounts::own_uid);
    let error = match (target::read_of(from, name, &path, owner), fs::read_link(&path)) {
        (Ok((Some(bytes), mut attributes)), link) => {
            if let (Some(_), Ok(target)) = (delegate, link) {
                symlink(target, to.path().join(link_to(name)))?;
            }
            let owner = attributes.before.as_mut().map(|before| mem::take(&mut before.uid));
            // A group of the owner alone; an access control list could give it back.
            if delegate.is_none() || attributes.mode & 0o020 != 0 {
                attributes = Attributes { before: None, mode: attributes.mode & !0o022 };
            }
            // Its owner may have given it attributes that this file system cannot have.
            let plain = Attributes { before: None, mode: attributes.mode & !0o022 };
            let placed = to.place(name, &bytes, &attributes).or_else(|_| to.place(name, &bytes, &plain));
            return placed.map(|()| owner).map_err(|failure| io::Error::from(failure.errno));
        }
        (_, Ok(target)) => return symlink(target, copy).map(|()| None),
        (Ok((None, _)), Err(_)) => return Ok(None),
        (Err(error), Err(_)) => error,
    };
    let advice = "No copy of it is kept: rungate policy undo leaves it alone.".to_owned();
    stream::complain(&error.advise(advice).to_string());
    fs::create_dir(copy).map(|()| None)
}
