//! `rungate policy edit`: the user edits a copy of a policy's file. It is checked together with the other
//! files in force, and replaces the file as a whole. Nothing faulty is put in place, two people do not edit
//! at a time, and no edit is lost.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus as ProgramStatus},
    rc::Rc,
};

use super::{Candidate, Location, Step, Target, question, step};
use crate::{
    cli::{ConsentOptions, EditArguments},
    launch::{Program, Situation},
    sys::{
        EditLock, Errno, InterruptsHeldBack, JudgedDirectories, TrustedFile, atomic_write, errno_of,
        replaced_file,
    },
    text::{Error, ExitStatus, stream, visible},
};

/// The choice after editing.
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
    // The previous holder of the lock may have changed it.
    let target = Rc::new(Target::of_path(target.path(), &situation)?);
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
            // If the lock is lost, the next edit says where this is. This failure need not stop the edit.
            let _ = lock.note(self.copy.path());
            let ended_well = self.editor.edit(self.copy.path(), line).map_err(|error| self.kept(error))?;
            let bytes = self.copy.read().map_err(|error| self.kept(error))?;
            let is_unchanged = self.copy.original == bytes;
            if !ended_well {
                let text = format!("{} exited with an error", self.editor.shown());
                let failed = Error::new(ExitStatus::Failure, text);
                return Err(if is_unchanged { self.left_unchanged(failed) } else { self.kept(failed) });
            }
            if is_unchanged {
                return Ok(self.leave_unchanged());
            }
            let text = self.copy.text(bytes).map_err(|error| self.kept(error))?;
            let steps = [Step::Put(Rc::clone(&self.target), text)];
            let candidate = Candidate::after(&steps, &self.target.location.sources);
            line = candidate.first_line();
            match self.ask(&candidate).map_err(|error| self.kept(error))? {
                Next::EditAgain => {}
                Next::PutInPlace => {
                    step::make(&steps, false, &self.situation).map_err(|error| self.kept(error))?;
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

    /// Shows what is wrong and what would change, and lets the person at the terminal choose.
    fn ask(&self, candidate: &Candidate) -> Result<Next, Error> {
        let review = candidate.review(&self.situation)?;
        if review.is_agreed(self.consent) {
            return Ok(Next::PutInPlace);
        }
        let is_sound = review.obstacle.is_none();
        if !question::is_there_anybody() {
            let how = review.uncounted.filter(|_| self.consent.yes);
            let how = how.unwrap_or("--yes puts it in place without a prompt");
            let why = review.obstacle.unwrap_or_else(|| {
                format!(
                    "there is no terminal for the prompt; \
                {how}"
                )
            });
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

    /// An error before anything was edited.
    fn left_unchanged(self, error: Error) -> Error {
        let advice = format!("{} is unchanged", visible(self.target.path()));
        self.copy.remove();
        error.advise(advice)
    }

    fn keep(&self) -> u8 {
        stream::complain(&format!("The edited text is in {}", visible(self.copy.path())));
        ExitStatus::Failure as u8
    }

    /// An error after editing; the copy is kept.
    fn kept(&self, error: Error) -> Error {
        error.advise(format!("The edited text is in {}", visible(self.copy.path())))
    }
}

// The copy that is edited: in its own directory, which other users cannot enter. It is removed when it is not
// needed any more, and only then.

/// The first text of a policy.
const EMPTY: &str = "version = 1\n";

/// A copy of a file.
struct EditedCopy {
    directory: PathBuf,
    path: PathBuf,
    original: Vec<u8>,
}

impl EditedCopy {
    /// Creates a copy of the present text.
    fn of(target: &Target, situation: &Situation) -> Result<Self, Error> {
        let failed = |what: &str, errno: Errno| {
            Error::new(ExitStatus::System, format!("cannot create a copy to edit: {what}: {}", errno.desc()))
        };
        let directory = atomic_write::create("rungate-policy-", situation.credentials.uid)
            .map_err(|errno| failed("mkdtemp", errno))?;
        let name = target.path().file_name().unwrap_or_default();
        let path = directory.join(name);
        let original = target.before.clone().unwrap_or_else(|| EMPTY.into());
        replaced_file::create(&path, &original, 0o600)
            .map_err(|failure| failed(failure.call, failure.errno))?;
        Ok(Self { directory, path, original })
    }

    /// Where it is.
    fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> Result<Vec<u8>, Error> {
        fs::read(&self.path).map_err(|error| {
            let why = errno_of(&error).desc();
            Error::new(ExitStatus::System, format!("{} cannot be read: {why}", visible(&self.path)))
        })
    }

    /// What was read from it, as text.
    fn text(&self, bytes: Vec<u8>) -> Result<String, Error> {
        String::from_utf8(bytes).map_err(|_| {
            let text = format!("{} is not UTF-8 text", visible(&self.path));
            Error::new(ExitStatus::Failure, text)
        })
    }

    /// Removes it, with the files that an editor left beside it.
    fn remove(self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

// The editor: `$VISUAL`, `$EDITOR`, or the one that the system has. For root it must be a program that no
// other user can have written, because it can do whatever root can.

/// The default.
const USUAL: [&str; 4] = ["/usr/bin/editor", "/usr/bin/vi", "/bin/vi", "/usr/bin/nano"];

/// Editors that accept `+LINE` before the file.
const GO_TO_LINES: [&str; 12] = [
    "vi",
    "vim",
    "vim.basic",
    "vim.tiny",
    "nvim",
    "view",
    "nano",
    "emacs",
    "emacsclient",
    "joe",
    "mg",
    "editor",
];

/// A program that edits a file, with its arguments before the file.
struct Editor {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Editor {
    /// The editor of this user.
    fn find(situation: &Situation) -> Result<Self, Error> {
        let named = [("VISUAL", env::var("VISUAL")), ("EDITOR", env::var("EDITOR"))];
        let named = named.into_iter().find_map(|(variable, text)| {
            let text = text.ok().filter(|text| !text.trim().is_empty())?;
            Some((variable, text))
        });
        let Some((variable, text)) = named else { return Self::usual() };
        let mut words = text.split_whitespace().map(OsString::from);
        let word = words.next().unwrap_or_default();
        let found = Program::find_or_shim(&word, &situation.directory).map_err(|error| {
            Error::new(ExitStatus::NotFound, format!("{variable}: {error}")).advise(
                "Nothing was changed. Name an editor that exists: EDITOR=nano rungate policy edit".to_owned(),
            )
        })?;
        let editor = Self { program: found.path, arguments: words.collect() };
        if situation.credentials.uid == 0 {
            editor.must_be_roots(variable)?;
        }
        Ok(editor)
    }

    fn usual() -> Result<Self, Error> {
        let found = USUAL.into_iter().map(Path::new).find(|path| path.exists());
        let found = found.ok_or_else(|| {
            Error::new(ExitStatus::NotFound, "there is no editor: neither VISUAL nor EDITOR names one")
                .advise("Nothing was changed. Name one, as in: EDITOR=nano rungate policy edit".to_owned())
        })?;
        Ok(Self { program: found.to_owned(), arguments: Vec::new() })
    }

    /// A program that other users can write would run with root's rights.
    fn must_be_roots(&self, variable: &str) -> Result<(), Error> {
        let refuse = |why: String| {
            Err(Error::new(
                ExitStatus::CannotExecute,
                format!("{variable} names an editor that root does not run: {why}"),
            )
            .advise("Nothing was changed. Name one of the system's, as in: EDITOR=/usr/bin/vi".to_owned()))
        };
        match TrustedFile::open(&self.program, &JudgedDirectories::for_caller(0)) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => refuse(format!("{} is not there", visible(&self.program))),
            Err(distrust) => refuse(distrust.to_string()),
        }
    }

    /// Edits a file, perhaps from a line on, and waits. Returns whether the editor succeeded.
    fn edit(&self, file: &Path, line: Option<usize>) -> Result<bool, Error> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.args(line.filter(|_| self.goes_to_lines()).map(|line| format!("+{line}")));
        let _held_back = InterruptsHeldBack::begin();
        let status = command.arg(file).status().map_err(|error| {
            let why = errno_of(&error).desc();
            Error::new(
                ExitStatus::CannotExecute,
                format!("{} cannot be started: {why}", visible(&self.program)),
            )
        })?;
        Ok(ProgramStatus::success(&status))
    }

    /// Its name in messages.
    fn shown(&self) -> String {
        visible(&self.program)
    }

    fn goes_to_lines(&self) -> bool {
        let real = fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone());
        let is_one =
            |path: &Path| path.file_name().is_some_and(|name| GO_TO_LINES.iter().any(|known| name == *known));
        is_one(&self.program) || is_one(&real)
    }
}
