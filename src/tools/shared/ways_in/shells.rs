//! The shells of this host, each asked what `PATH` it has: started as it would be, it reads its startup files
//! and tells.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    question::{QUESTION, answer, prepared},
    settings,
};

/// A shell that people have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shell {
    Sh,
    Bash,
    Zsh,
    Fish,
    Tcsh,
}

/// Those that this host has.
pub(super) fn installed() -> impl Iterator<Item = Shell> {
    let all = [Shell::Sh, Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Tcsh];
    all.into_iter().filter(|shell| shell.program().is_some())
}

impl Shell {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sh => "sh",
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Tcsh => "tcsh",
        }
    }

    fn program(self) -> Option<PathBuf> {
        let places = ["/bin", "/usr/bin", "/usr/local/bin"];
        places.iter().map(|place| Path::new(place).join(self.name())).find(|path| path.exists())
    }

    /// What it has where somebody logs in.
    pub(super) fn path_after_login(self) -> Option<OsString> {
        let mut command = self.command(&settings::login_path())?;
        // All of them know by the dash that somebody logs in; tcsh takes no other word beside -l.
        answer(command.arg0(format!("-{}", self.name())))
    }

    /// What it has where sshd starts it for one command.
    pub(super) fn path_over_ssh(self) -> Option<OsString> {
        let mut command = self.command(&settings::ssh_path())?;
        // By these bash knows, and reads the startup files of shells that somebody types to.
        answer(command.env("SSH_CLIENT", "127.0.0.1 1 22").env("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22"))
    }

    fn command(self, path: &OsStr) -> Option<Command> {
        let mut command = prepared(&self.program()?, path);
        command.args(["-c", QUESTION]);
        Some(command)
    }
}
