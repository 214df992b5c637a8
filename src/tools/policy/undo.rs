//! `rungate policy log` and `undo`: shows the last changes of the system's policy, and undoes them, with the
//! same checks as any other change.

use std::{ffi::OsString, fs, path::Path, rc::Rc};

use super::{
    install,
    location::{Location, path_of_system},
    step::{Copy, Step, names},
    target::{Removal, Target},
};
use crate::{
    cli::UndoArguments,
    launch::situation::Situation,
    policy::Sources,
    sys::failure::errno_of,
    text::{
        clock::{Clock, system_time},
        error::{Error, ExitStatus},
        escape::visible,
        stream::print,
        table::Table,
    },
};

/// `rungate policy log`: the last changes, the last first.
pub(super) fn log() -> Result<u8, Error> {
    let all = Copy::all();
    if all.is_empty() {
        return print("No change of the system's policy by rungate policy edit or install is known.\n");
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
    if situation.credentials.uid != 0 {
        return Err(Error::new(ExitStatus::System, "only root can change the policy of the system"));
    }
    let all = Copy::all();
    let number = usize::from(arguments.changes);
    let Some(copy) = number.checked_sub(1).and_then(|index| all.get(index)) else {
        let text = format!("{} of the last changes are known, not {number}", all.len());
        return Err(Error::new(ExitStatus::Usage, text).advise("To see them: rungate policy log".to_owned()));
    };
    install::perform(steps(&copy.path, situation)?, arguments.consent, situation)
}

/// The steps from the present policy to a copy.
fn steps(copy: &Path, situation: &Situation) -> Result<Vec<Step>, Error> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| {
            Error::new(
                ExitStatus::System,
                format!("{} cannot be read: {}", visible(path), errno_of(&error).desc()),
            )
        })
    };
    let put = |name: &OsString, text: String| {
        let location = Location::of_path(&path_of_system(name, "the copy")?, situation)?;
        Ok::<Step, Error>(Step::Put(Rc::new(Target::at(location)?), text))
    };
    let main = copy.join("policy.toml");
    // If there was none, nothing was limited.
    let text = if main.exists() { read(&main)? } else { "version = 1\n".to_owned() };
    let mut steps = vec![put(&"policy.toml".into(), text)?];
    let before = names(&copy.join("policy.d"));
    for name in &before {
        steps.push(put(name, read(&copy.join("policy.d").join(name))?)?);
    }
    for name in names(&Sources::system(0).drop_ins()) {
        if !before.contains(&name) {
            steps.push(Step::TakeAway(Removal::of(&name, situation)?));
        }
    }
    Ok(steps)
}
