//! `rungate policy log` and `undo`: shows the last changes of the system's policy, or of a user's own, and
//! undoes them, with the same checks as any other change.

use std::{fs, path::Path, rc::Rc};

use super::{
    install,
    location::{Location, path_of_system},
    past::{Past, names},
    step::Step,
    target::{Removal, Target},
};
use crate::{
    cli::UndoArguments,
    launch::situation::Situation,
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
    let past = Past::of(&location);
    let all = past.as_ref().map(Past::copies).unwrap_or_default();
    let number = usize::from(arguments.changes);
    let Some(copy) = number.checked_sub(1).and_then(|index| all.get(index)) else {
        let text = format!("{} of the last changes are known, not {number}", all.len());
        return Err(Error::new(ExitStatus::Usage, text).advise("To see them: rungate policy log".to_owned()));
    };
    install::perform(steps(location, &copy.path, situation)?, arguments.consent, situation)
}

/// The steps from the present policy to a copy.
fn steps(main: Location, copy: &Path, situation: &Situation) -> Result<Vec<Step>, Error> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| {
            Error::new(
                ExitStatus::System,
                format!("{} cannot be read: {}", visible(path), errno_of(&error).desc()),
            )
        })
    };
    let put =
        |location: Location, text: String| Ok::<Step, Error>(Step::Put(Rc::new(Target::at(location)?), text));
    let drop_ins = Past::of(&main).map(|past| past.drop_ins()).unwrap_or_default();
    let text = copy.join("policy.toml");
    // If there was none, nothing was limited.
    let text = if text.exists() { read(&text)? } else { "version = 1\n".to_owned() };
    let mut steps = vec![put(main, text)?];
    let before = names(&copy.join("policy.d"));
    for name in &before {
        let location = Location::of_path(&path_of_system(name, "the copy")?, situation)?;
        steps.push(put(location, read(&copy.join("policy.d").join(name))?)?);
    }
    for name in drop_ins {
        if !before.contains(&name) {
            steps.push(Step::TakeAway(Removal::of(&name, situation)?));
        }
    }
    Ok(steps)
}
