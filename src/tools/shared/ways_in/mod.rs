//! The ways by which people and programs come to commands, and where each of them looks: a shim serves only
//! those that look into its directory before the program's. Shells are asked themselves, with the environment
//! that they would be started with; the rest is read from where it is set. Root's startup files are nobody
//! else's, so root has the shells asked by a user without any.

mod question;
mod remedy;
mod settings;
mod shells;

use std::{path::Path, path::PathBuf, thread};

use self::shells::Shell;
use crate::{
    launch::{program::Search, shim::Shim},
    sys::{credentials, executable},
};

/// How somebody comes to a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// A shell that somebody logs in to.
    Login(Shell),
    /// `ssh HOST COMMAND`, which the shell of the user starts.
    Ssh(Shell),
    /// `su USER -c COMMAND`.
    Su,
    /// A job of cron.
    Cron,
    Sudo,
    /// A session of the desktop, and what is started from its menus.
    Desktop,
    /// What the user's own systemd starts.
    UserUnit,
    /// What the system's systemd starts.
    Service,
}

/// A way, and where commands are looked for on it.
#[derive(Clone, Debug)]
pub(crate) struct WayIn {
    pub(crate) way: Way,
    /// None where only root, or nobody, can tell.
    search: Option<Search>,
}

/// What a name leads to on one way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    Shim,
    /// A program that is found before it.
    Other(PathBuf),
    /// Nothing: neither the shim nor a program is looked for where it is.
    Nothing,
    /// It cannot be told where this way looks.
    Unknown,
}

/// Every way that this host has, for the caller; for root, as it is for a user without startup files of their
/// own.
pub(crate) fn ways_in() -> Vec<WayIn> {
    let by_shells = shells::installed().flat_map(|shell| [Way::Login(shell), Way::Ssh(shell)]);
    let others = [Way::Su, Way::Sudo, Way::Cron, Way::Desktop, Way::UserUnit, Way::Service];
    let ways = by_shells.chain(others.into_iter().filter(|way| settings::is_there(*way)));
    thread::scope(|scope| {
        let asked: Vec<_> = ways.map(|way| (way, scope.spawn(move || search(way)))).collect();
        let answered = |(way, answer): (Way, thread::ScopedJoinHandle<'_, Option<Search>>)| WayIn {
            way,
            search: answer.join().unwrap_or(None),
        };
        asked.into_iter().map(answered).collect()
    })
}

fn search(way: Way) -> Option<Search> {
    let path = match way {
        Way::Login(shell) => shell.path_after_login(),
        Way::Ssh(shell) => shell.path_over_ssh(),
        Way::Su | Way::Sudo | Way::Cron | Way::Desktop | Way::UserUnit | Way::Service => settings::path(way),
    };
    path.map(Search::of)
}

impl Way {
    /// As it is called in listings.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Login(shell) => format!("{}, logged in", shell.name()),
            Self::Ssh(shell) => format!("{}, ssh HOST COMMAND", shell.name()),
            Self::Su => "su USER -c COMMAND".to_owned(),
            Self::Cron => "cron".to_owned(),
            Self::Sudo => "sudo".to_owned(),
            Self::Desktop => "desktop session".to_owned(),
            Self::UserUnit => "systemd, user's units".to_owned(),
            Self::Service => "systemd, services".to_owned(),
        }
    }

    /// As it is called in JSON.
    pub(crate) fn key(self) -> String {
        match self {
            Self::Login(shell) => format!("{}-login", shell.name()),
            Self::Ssh(shell) => format!("{}-ssh", shell.name()),
            Self::Su => "su".to_owned(),
            Self::Cron => "cron".to_owned(),
            Self::Sudo => "sudo".to_owned(),
            Self::Desktop => "desktop".to_owned(),
            Self::UserUnit => "user-unit".to_owned(),
            Self::Service => "service".to_owned(),
        }
    }

    /// Why it is not known where this way looks.
    pub(crate) fn unknown(self) -> &'static str {
        match self {
            Self::Sudo if !credentials::is_root() => "only root can tell",
            Self::Login(_) | Self::Ssh(_) | Self::Desktop => "no answer in time",
            Self::Su | Self::Cron | Self::Sudo | Self::UserUnit | Self::Service => "cannot be told",
        }
    }

    /// What the caller can type, or write, to have this directory of shims looked into first.
    pub(crate) fn remedy(self, shims: &Path) -> String {
        remedy::of(self, shims, credentials::is_root())
    }
}

impl WayIn {
    /// What the name of a shim leads to.
    pub(crate) fn reach(&self, shim: &Shim) -> Reach {
        let Some(search) = &self.search else { return Reach::Unknown };
        let mut candidates = search.entries().iter().map(|entry| entry.join(&shim.name));
        match candidates.find(|path| executable::check(path).is_ok()) {
            Some(found) if executable::identity(&found) == executable::identity(&shim.path) => Reach::Shim,
            Some(found) => Reach::Other(found),
            None => Reach::Nothing,
        }
    }
}
