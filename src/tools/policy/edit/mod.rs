//! `rungate policy edit`: a copy of a policy's file is edited, checked together with the other files in
//! force, and put in its place as a whole. Nothing faulty gets there, two people do not edit at a time, and
//! nothing that was edited is lost.

mod copy;
mod editor;

use std::rc::Rc;

use self::{copy::EditedCopy, editor::Editor};
use super::{
    candidate::Candidate,
    location::Location,
    question,
    step::{self, Step},
    target::Target,
};
use crate::{
    cli::{ConsentOptions, EditArguments},
    launch::situation::Situation,
    sys::edit_lock::EditLock,
    text::{error::Error, escape::visible, exit_status::ExitStatus, stream},
};

/// What is done with what was edited.
#[derive(Clone, Copy)]
enum Next {
    EditAgain,
    PutInPlace,
    ThrowAway,
    Keep,
}

/// Edits the file that was named, or the usual one.
pub(super) fn run(arguments: &EditArguments, situation: Situation) -> Result<u8, Error> {
    let target = match &arguments.file {
        Some(file) => Target::of_path(file, &situation)?,
        None => Target::at(Location::usual(&situation)?)?,
    };
    let editor = Editor::find(&situation)?;
    let mut lock = target.location.lock(&situation)?;
    // It may have been changed by whoever had the lock before.
    let target = Rc::new(Target::of_path(target.path(), &situation)?);
    if let Some(left) = lock.left() {
        let left = visible(left);
        stream::complain(&format!("rungate: an earlier edit was cut off; what it had come to is in {left}"));
    }
    let copy = EditedCopy::of(&target, &situation)?;
    Session { target, editor, copy, situation, consent: arguments.consent }.run(&mut lock)
}

struct Session {
    target: Rc<Target>,
    editor: Editor,
    copy: EditedCopy,
    situation: Situation,
    consent: ConsentOptions,
}

impl Session {
    fn run(self, lock: &mut EditLock) -> Result<u8, Error> {
        let mut line = None;
        loop {
            // Should the lock be lost, whoever edits next is told where this is. It is not worth stopping
            // for.
            let _ = lock.note(self.copy.path());
            let ended_well = self.editor.edit(self.copy.path(), line).map_err(|error| self.kept(error))?;
            let text = self.copy.text().map_err(|error| self.kept(error))?;
            let is_unchanged = self.copy.is_original(&text);
            if !ended_well {
                let text = format!("{} ended as if it had failed", self.editor.shown());
                let failed = Error::new(ExitStatus::Failure, text);
                return Err(if is_unchanged { self.left_unchanged(failed) } else { self.kept(failed) });
            }
            if is_unchanged {
                return Ok(self.leave_unchanged());
            }
            let steps = [Step::Put(Rc::clone(&self.target), text)];
            let candidate = Candidate::after(&steps, &self.target.location.sources);
            line = candidate.first_line();
            match self.ask(&candidate)? {
                Next::EditAgain => {}
                Next::PutInPlace => {
                    step::make(&steps).map_err(|error| self.kept(error))?;
                    self.copy.remove();
                    return Ok(ExitStatus::Success as u8);
                }
                Next::ThrowAway => {
                    self.copy.remove();
                    return Ok(ExitStatus::Failure as u8);
                }
                Next::Keep => return Ok(self.keep()),
            }
        }
    }

    /// Shows what is wrong and what would be different, and lets whoever is there choose.
    fn ask(&self, candidate: &Candidate) -> Result<Next, Error> {
        let review = candidate.review(&self.situation)?;
        if review.is_agreed(self.consent) {
            return Ok(Next::PutInPlace);
        }
        let is_sound = review.obstacle.is_none();
        if !question::is_there_anybody() {
            let how = if self.consent.yes {
                question::NOT_BY_YES
            } else {
                "--yes puts it in place without a question"
            };
            let why = review.obstacle.unwrap_or_else(|| format!("there is no terminal to ask on; {how}"));
            stream::complain(&format!("rungate: {} stays as it is: {why}", visible(self.target.path())));
            return Ok(Next::Keep);
        }
        let always = [('e', Next::EditAgain), ('t', Next::ThrowAway), ('q', Next::Keep)];
        let answer = if is_sound {
            let answers = [&always[..], &[('p', Next::PutInPlace)]].concat();
            question::ask(
                "(p)ut in place, (e)dit again, (t)hrow away, or (q)uit and keep the copy? ",
                &answers,
            )
        } else {
            question::ask("(e)dit again, (t)hrow away, or (q)uit and keep the copy? ", &always)
        };
        Ok(answer.unwrap_or(Next::Keep))
    }

    fn leave_unchanged(self) -> u8 {
        stream::complain(&format!("rungate: {} is unchanged", visible(self.target.path())));
        self.copy.remove();
        ExitStatus::Success as u8
    }

    /// An error by which nothing was edited.
    fn left_unchanged(self, error: Error) -> Error {
        let advice = format!("{} is unchanged", visible(self.target.path()));
        self.copy.remove();
        error.advise(advice)
    }

    fn keep(&self) -> u8 {
        stream::complain(&format!("The edited text is in {}", visible(self.copy.path())));
        ExitStatus::Failure as u8
    }

    /// An error by which nothing that was edited is lost.
    fn kept(&self, error: Error) -> Error {
        error.advise(format!("The edited text is in {}", visible(self.copy.path())))
    }
}
