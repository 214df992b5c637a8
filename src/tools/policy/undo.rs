//! `rungate policy log` and `undo`: shows the last changes of the system's policy, or of a user's own, and
//! undoes them, with the same checks as any other change.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{
    Location, Past, Removal, Step, Target, install,
    past::{Copy, link_to},
    step,
    target::{self, Link, distrusted, names},
};
use crate::{
    cli::UndoArguments,
    launch::Situation,
    policy::Proposal,
    sys::{Attributes, Errno, JudgedDirectories, Kind, TrustedDirectory, accounts, regular_file},
    text::{Clock, Error, ExitStatus, Show, print, stream, system_time, table::Table},
};

/// `rungate policy log`: the last changes, the last first.
pub(super) fn log(situation: &Situation) -> Result<u8, Error> {
    let past = Past::usual(situation);
    let all = past.as_ref().map(Past::copies).unwrap_or_default();
    if all.is_empty() {
        let is_own = situation.credentials.uid != 0;
        let whose = if is_own { "your own policy" } else { "the system's policy" };
        return print(&format!("No change of {whose} by rungate policy edit or install is known.\n"));
    }
    let clock = Clock::now();
    let mut table = Table::new(&[">UNDO", "WHEN", "BY", "CHANGE"]);
    for (number, copy) in all.iter().enumerate() {
        let (who, what) = copy.note();
        table.row([(number + 1).to_string(), clock.time(system_time(copy.until)), who, what]);
    }
    print(&table.render())
}

/// `rungate policy undo`: the policy as it was before the last change, or before an earlier one.
pub(super) fn undo(arguments: &UndoArguments, situation: &Situation) -> Result<u8, Error> {
    let location = Location::usual(situation)?;
    let _lock = location.lock(situation)?;
    let past = Past::of(&location);
    let all = past.as_ref().map(Past::copies).unwrap_or_default();
    let number = usize::from(arguments.changes);
    let Some(copy) = number.checked_sub(1).and_then(|index| all.get(index)) else {
        let text = format!("{} of the last changes are known, not {number}", all.len());
        return Err(Error::new(ExitStatus::Usage, text).advise("To see them: rungate policy log".to_owned()));
    };
    let (steps, differs) = steps(location, copy, situation)?;
    let steps = step::due(steps);
    if steps.is_empty() {
        if differs {
            let text = "there is nothing else to undo".to_owned();
            let advice = "To see older changes: rungate policy log".to_owned();
            return Err(Error::new(ExitStatus::Failure, text).advise(advice));
        }
        stream::complain("rungate: there is nothing to undo: the policy is the same as before the change");
        return Ok(ExitStatus::Success as u8);
    }
    install::perform(steps, arguments.consent, situation)
}

/// The steps from the present policy to a copy, and whether a file that is left alone differs from it.
fn steps(main: Location, copy: &Copy, situation: &Situation) -> Result<(Vec<Step>, bool), Error> {
    let present = Past::of(&main).map(|past| past.drop_ins()).unwrap_or_default();
    let (drop_ins, place) = (copy.path.join("policy.d"), main.sources.drop_ins());
    let (mut steps, mut differs) = (Vec::new(), false);
    if let Some(bytes) = main_text(copy, situation)? {
        differs |= put(&mut steps, Target::at(main)?, bytes, &copy.path.join("policy.toml"));
    } else {
        pass_over(&main.path, UNREAD);
        differs = true;
    }
    let main: Vec<Proposal> = steps.iter().map(Step::proposal).collect();
    // Root's text would be what this user wrote, or the policy would distrust it.
    let may_belong_to = |location: &Location, owner: u32, what: &str| -> Result<bool, Error> {
        let is_trusted = location.may_belong_to(owner, &main)?;
        if !is_trusted {
            let what = format!("{what} {}", accounts::shown(owner));
            let why = format!("{what}, and the policy would not delegate it to that user");
            pass_over(&location.path, &why);
        }
        Ok(is_trusted)
    };
    let leave_alone =
        |error: Error| stream::complain(&error.advise("It is left alone.".to_owned()).to_string());
    let before = names(&drop_ins);
    for name in &before {
        // A link that was removed since, or replaced, comes back as a link, if it still leads to the same
        // text.
        let is_back = |to: &PathBuf| {
            let link = Link::of(name, to.clone(), situation).ok().flatten();
            let copied = kept(&drop_ins, name, situation).ok().and_then(|(bytes, _)| bytes);
            link.is_some_and(|link| Some(link.text.into_bytes()) == copied)
        };
        let removed = || fs::read_link(drop_ins.join(link_to(name))).ok().filter(is_back);
        if let Some(to) = fs::read_link(drop_ins.join(name)).ok().or_else(removed) {
            let link = match Link::of(name, to, situation) {
                Ok(Some(link)) => link,
                Ok(None) => continue,
                // By now there may be no file of the other user, or one that the policy does not trust.
                Err(error) => {
                    leave_alone(error);
                    differs = true;
                    continue;
                }
            };
            if may_belong_to(&link.location, link.owner, "it was a link to a file of")? {
                steps.push(Step::Link(link));
            } else {
                differs = true;
            }
        } else if drop_ins.join(name).is_file() {
            let (was, now) = (fs::read_link(drop_ins.join(link_to(name))), fs::read_link(place.join(name)));
            if was.is_ok_and(|was| now.is_ok_and(|now| was != now)) {
                pass_over(&place.join(name), "it is a link to another file by now");
                differs = true;
                continue;
            }
            let (bytes, mut attributes) = kept(&drop_ins, name, situation)?;
            let target = match Target::of_path(&place.join(name), situation) {
                Ok(target) => target,
                // By now it may be a link to a file of another user.
                Err(error) => {
                    leave_alone(error);
                    differs = true;
                    continue;
                }
            };
            let owner = copy.owner(name)?;
            if !may_belong_to(&target.location, owner, "it belonged to")? {
                differs |= target.before != bytes;
                continue;
            }
            if let Some(before) = &mut attributes.before {
                before.uid = owner;
            }
            if let Some(bytes) = bytes {
                differs |= put(&mut steps, target.with(attributes), bytes, &drop_ins.join(name));
            }
        } else {
            pass_over(&place.join(name), UNREAD);
            differs = true;
        }
    }
    for name in present {
        if !before.contains(&name) {
            steps.push(Step::TakeAway(Removal::of(&name, situation)?));
        }
    }
    Ok((steps, differs))
}

const UNREAD: &str = "it could not be read before the change";

/// Says that undo does not change a file, and why.
fn pass_over(path: &Path, why: &str) {
    stream::complain(&format!("rungate: {} is left alone: {why}", path.shown()));
}

/// Adds the step that puts the text of a copy in place. Returns whether it differs but cannot be put there.
fn put(steps: &mut Vec<Step>, target: Target, bytes: Vec<u8>, copy: &Path) -> bool {
    match String::from_utf8(bytes) {
        Ok(text) => steps.push(Step::Put(Rc::new(target), text)),
        Err(error) if target.before.as_deref() == Some(error.as_bytes()) => {}
        Err(_) => {
            let why = format!("it was not UTF-8 text before the change; its copy is {}", copy.shown());
            pass_over(target.path(), &why);
            return true;
        }
    }
    false
}

/// The text of the main file in a copy; none if the file could not be read then.
fn main_text(copy: &Copy, situation: &Situation) -> Result<Option<Vec<u8>>, Error> {
    let name = OsStr::new("policy.toml");
    match regular_file::status_of_path(&copy.path.join(name)) {
        Ok(status) if status.kind == Kind::Regular => Ok(kept(&copy.path, name, situation)?.0),
        // If there was none, nothing was limited.
        Err(Errno::ENOENT) => Ok(Some(b"version = 1\n".to_vec())),
        _ => Ok(None),
    }
}

/// A file of a copy, which no other user can have written.
fn kept(
    directory: &Path,
    name: &OsStr,
    situation: &Situation,
) -> Result<(Option<Vec<u8>>, Attributes), Error> {
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let path = directory.join(name);
    let opened =
        TrustedDirectory::open(directory, &judged).map_err(|distrust| distrusted(&path, &distrust))?;
    let gone = || Error::new(ExitStatus::System, format!("there is no directory {}", directory.shown()));
    target::read_of(&opened.ok_or_else(gone)?, name, &path, situation.credentials.uid)
}
