//! The agent: the process of root that keeps slots which no user can take, forge, keep or delete. One thread
//! owns everything and never waits: not for a name service, a policy on a slow disk, or a client. It has
//! three owners: connections (`server`), tables and saved state (`ledger`), and what all hosts keep together
//! (`site`). A launch is a state machine (`session`). The loop (`service`) takes events and carries out their
//! effects, with the same protocol as lock files. Judges (`judge`) load the system's policy and compute what
//! a launch needs, as a `request`. If that needs neither a disk nor a name service, the one thread judges
//! with the policy that they have read.

pub(crate) mod command;
mod eviction;
mod judge;
mod ledger;
mod log;
mod policy_reader;
mod reload;
mod request;
mod server;
mod service;
mod session;
mod site;

use self::{
    eviction::{Eviction, Evictor, RunningEviction},
    judge::{Answered, Case, Judgement, Judges, NoRequest, Outcome, Question},
    ledger::{CheckOutcome, Ledger, RecoveredWaiter},
    log::{Level, Topic},
    policy_reader::PolicyReader,
    request::AcquireRequest,
    server::{Accepted, Caller, Connections, FairQueue, Load, Over},
    session::{Begins, Blocked, Change, Effect, Event, Session, Sessions},
    site::Site,
};

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use self::reload::Reload;
use crate::{
    acquire::SILENCE,
    judge::terms::Names,
    keeper::LONGEST_REQUEST,
    policy::{AgentFile, Faults, LONGEST_MESSAGE},
    sys::{
        Errno, Failure, HangUps, InsecurePath, JudgedDirectories, Listener, Reason, TrustedFile, accounts,
    },
    text::{FORMAT, visible},
};

/// What a number of the poller means: each session, holding or recovered waiter has four of them.
const SESSION: u64 = 0;
const PROCESS: u64 = 1;
const FIFO: u64 = 2;
const RECOVERED: u64 = 3;
const KINDS: u64 = 4;

/// The listener and the bell use numbers of a session and a holding that never exist.
const LISTENER: u64 = SESSION;
const BELL: u64 = PROCESS;

/// A waiting launch without a heartbeat for this long does not respond.
const AWAY: Duration = SILENCE;

/// How often the agent checks while a launch waits for slots or an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A request to the agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen, unless the service manager has opened a socket.
    pub socket: PathBuf,
    /// Where it saves its state.
    pub state: PathBuf,
    /// The path of its settings; the default if none.
    pub settings: Option<PathBuf>,
}

/// Why it cannot serve.
#[derive(Debug)]
pub enum Fatal {
    NotRoot,
    /// The socket cannot be opened.
    Socket(PathBuf, Errno),
    /// The state directory cannot be used.
    State(PathBuf, Failure),
    /// Another agent uses the state directory; its process id, if the kernel shows it.
    StateInUse(PathBuf, Option<i32>),
    /// The socket is in the state directory, which is for root alone.
    SocketInState(PathBuf, PathBuf),
    /// The state directory has this format, of an agent that is newer by more than one version.
    NewerState(PathBuf, u8),
    /// What is wrong with its settings.
    Settings(Faults),
    /// What is wrong with the policy, if only a check was asked for.
    Policy(Faults),
    /// Its settings cannot be read, or are not trusted.
    InsecurePath(InsecurePath),
    /// What is wrong with the site's files that its settings name.
    Site(String),
    /// A failed system call that the agent needs.
    Call(Failure),
}

impl fmt::Display for Fatal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => write!(formatter, "only root can keep slots for everybody"),
            Self::Socket(path, Errno::EADDRINUSE) => {
                write!(formatter, "another agent listens at {}", visible(path))
            }
            Self::Socket(path, errno) => {
                write!(formatter, "cannot listen at {}: {}", visible(path), errno.desc())
            }
            Self::State(path, failure) => {
                write!(formatter, "cannot use the state directory {}: {failure}", visible(path))
            }
            Self::StateInUse(path, pid) => {
                write!(formatter, "another agent uses the state directory {}: ", visible(path))?;
                match pid {
                    Some(pid) => write!(formatter, "PID {pid}. To end it: kill {pid}"),
                    None => formatter.write_str("end it first"),
                }
            }
            Self::SocketInState(socket, state) => write!(
                formatter,
                "the socket {} is in the state directory {}, which only root may enter: no user could connect. Name another path with --socket or --state",
                visible(socket),
                visible(state)
            ),
            Self::NewerState(path, format) => write!(
                formatter,
                "the state directory {} was written by a newer agent (format {format}; this one reads up to {}): launches that it knows hold slots. Start that agent again, or reboot this host",
                visible(path),
                FORMAT.saturating_add(1)
            ),
            Self::Settings(faults) | Self::Policy(faults) => faults.fmt(formatter),
            Self::InsecurePath(distrust) => distrust.fmt(formatter),
            Self::Site(why) => write!(formatter, "[site]: {why}"),
            Self::Call(failure) => failure.fmt(formatter),
        }
    }
}

/// Whether a file is below a directory, also through links.
fn is_below(file: &Path, directory: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file.parent().is_some_and(|parent| real(parent).starts_with(real(directory)))
}

/// Checks its settings and the policy.
pub fn check(options: &Options) -> Result<(), Fatal> {
    let settings = load(options.settings.as_deref())?;
    settings.site.as_ref().map_or(Ok(()), site::check).map_err(Fatal::Site)?;
    PolicyReader::default().read().map(drop).map_err(Fatal::Policy)
}

/// Serves, until it is ended.
pub fn serve(options: &Options, names: &'static (dyn Names + Sync)) -> Result<(), Fatal> {
    if !accounts::is_root() {
        return Err(Fatal::NotRoot);
    }
    let settings = load(options.settings.as_deref())?;
    if is_below(&options.socket, &options.state) {
        return Err(Fatal::SocketInState(options.socket.clone(), options.state.clone()));
    }
    let listener = match Listener::handed_over() {
        Some(listener) => listener,
        None => {
            Listener::at(&options.socket).map_err(|errno| Fatal::Socket(options.socket.clone(), errno))?
        }
    };
    let hang_ups = HangUps::block().map_err(Failure::of("sigprocmask")).map_err(Fatal::Call)?;
    let service = service::Service::new(listener, &options.state, &settings, names)?;
    log::started(&settings, service.holding());
    let reload = Reload { policies: service.policies(), settings, path: options.settings.clone() };
    reload.start(hang_ups).map_err(Fatal::Call)?;
    service.run().map_err(Fatal::Call)
}

/// The agent. It returns if it cannot serve.
pub fn main() -> u8 {
    crate::launch::end(|arguments| command::main(&arguments))
}

// The agent's settings: a file that only root can read, because it may contain secrets. It is read once, when
// the agent starts.

/// Where they are. They are optional.
const SETTINGS: &str = "/etc/rungate/agent.toml";

const ROOT: u32 = 0;

// The longest request of a launcher is the longest that an agent may accept.
const _: () = assert!(LONGEST_REQUEST == LONGEST_MESSAGE as usize);

/// Reads them; the file at `path` must exist.
fn load(path: Option<&Path>) -> Result<AgentFile, Fatal> {
    let at = path.unwrap_or(Path::new(SETTINGS));
    match content(at).map_err(Fatal::InsecurePath)? {
        Some(content) => AgentFile::read(at, content).map_err(Fatal::Settings),
        None if path.is_none() => Ok(AgentFile::default()),
        None => {
            let reason = Reason::System("open", Errno::ENOENT);
            Err(Fatal::InsecurePath(InsecurePath { path: at.to_owned(), reason }))
        }
    }
}

fn content(path: &Path) -> Result<Option<Vec<u8>>, InsecurePath> {
    let file = TrustedFile::open(path, &JudgedDirectories::for_caller(ROOT))?;
    file.map(|file| file.of_its_owner_alone()?.read()).transpose()
}

#[cfg(test)]
mod tests;
