//! The editor: `$VISUAL`, `$EDITOR`, or the one that the system has. For root it must be a program that
//! nobody else can have written, for it does whatever root can.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus as ProgramStatus},
};

use crate::{
    launch::{program::Program, situation::Situation},
    sys::{
        failure::errno_of,
        signals::InterruptsHeldBack,
        trusted_file::{JudgedDirectories, TrustedFile},
    },
    text::{error::Error, escape::visible, exit_status::ExitStatus},
};

/// What is there where nobody names one.
const USUAL: [&str; 4] = ["/usr/bin/editor", "/usr/bin/vi", "/bin/vi", "/usr/bin/nano"];

/// Those that take `+LINE` before the file.
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

/// A program that edits a file, with what goes before the file.
pub(super) struct Editor {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Editor {
    /// The one that this user wants.
    pub(super) fn find(situation: &Situation) -> Result<Self, Error> {
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
                "Nothing was changed. Name an editor that there is: EDITOR=nano rungate policy edit"
                    .to_owned(),
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

    /// What others can write would be run with root's rights.
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

    /// Edits a file, perhaps from a line on, and waits. Says whether the editor ended well.
    pub(super) fn edit(&self, file: &Path, line: Option<usize>) -> Result<bool, Error> {
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

    /// What it is called, for messages.
    pub(super) fn shown(&self) -> String {
        visible(&self.program)
    }

    fn goes_to_lines(&self) -> bool {
        let real = fs::canonicalize(&self.program).unwrap_or_else(|_| self.program.clone());
        let is_one =
            |path: &Path| path.file_name().is_some_and(|name| GO_TO_LINES.iter().any(|known| name == *known));
        is_one(&self.program) || is_one(&real)
    }
}
