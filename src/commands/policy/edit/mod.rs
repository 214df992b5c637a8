//! `rungate policy edit`: a copy of a policy's file is edited, checked together with the other files in
//! force, and put in its place as a whole. Nothing faulty gets there, two people do not edit at a time, and
//! nothing that was edited is lost.

mod copy;
mod editor;

use self::{copy::EditedCopy, editor::Editor};
use crate::{
    cli::EditArguments,
    commands::{
        policy::{candidate::Candidate, location::Location, question, target::Target},
        shared::{print, situation::Situation},
    },
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    output::stream,
    sys::edit_lock::EditLock,
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
pub(super) fn run(arguments: &EditArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let target = match &arguments.file {
        Some(file) => Target::of_path(file, &situation)?,
        None => Target::at(Location::usual(&situation)?)?,
    };
    let editor = Editor::find(&situation)?;
    let mut lock = target.location.lock(&situation)?;
    // It may have been changed by whoever had the lock before.
    let target = Target::of_path(target.path(), &situation)?;
    if let Some(left) = lock.left() {
        let left = visible(left);
        stream::complain(&format!("rungate: an earlier edit was cut off; what it had come to is in {left}"));
    }
    let copy = EditedCopy::of(&target, &situation)?;
    let EditArguments { yes: is_agreed, allow_uncounted, .. } = *arguments;
    Session { target, editor, copy, situation, is_agreed, allow_uncounted }.run(&mut lock)
}

struct Session {
    target: Target,
    editor: Editor,
    copy: EditedCopy,
    situation: Situation,
    /// Whether whatever is sound is put in place without a question.
    is_agreed: bool,
    allow_uncounted: bool,
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
            let candidate =
                Candidate::new(&self.target.location.sources, vec![self.target.proposal(text.clone())]);
            line = candidate.first_line();
            match self.ask(&candidate)? {
                Next::EditAgain => {}
                Next::PutInPlace if self.target.has_changed()? => {
                    stream::complain(&format!(
                        "rungate: {} was changed by somebody else meanwhile, and stays as it is now",
                        visible(self.target.path())
                    ));
                    return Ok(self.keep());
                }
                Next::PutInPlace => {
                    self.target.put(&text).map_err(|error| self.kept(error))?;
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
        let complaints = candidate.complaints();
        if !complaints.is_empty() {
            stream::complain(&complaints);
        }
        print(&candidate.changes(&self.situation))?;
        let is_sound = candidate.is_sound();
        let forgotten = candidate.forgotten(&self.situation);
        print(&forgotten)?;
        if self.is_agreed && is_sound && (self.allow_uncounted || forgotten.is_empty()) {
            return Ok(Next::PutInPlace);
        }
        if !question::is_there_anybody() {
            let why = if is_sound && self.is_agreed {
                format!("there is no terminal to ask on; {}", question::NOT_BY_YES)
            } else if is_sound {
                "there is no terminal to ask on; --yes puts it in place without a question".to_owned()
            } else {
                candidate.why_not()
            };
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
        stream::complain(&format!("What was edited is in {}", visible(self.copy.path())));
        ExitStatus::Failure as u8
    }

    /// An error by which nothing that was edited is lost.
    fn kept(&self, error: Error) -> Error {
        let (path, copy) = (visible(self.target.path()), visible(self.copy.path()));
        error.advise(format!("{path} is as it was. What was edited is in {copy}"))
    }
}
