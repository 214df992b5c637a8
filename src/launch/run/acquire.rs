//! `rungate acquire`: takes the slots of a launch, and has descriptors of the caller keep them instead of a
//! program. A lock on a file is one of the caller's open file description. Slots of the agent are kept by a
//! FIFO that the agent has created and the caller has opened to read, as it opens a lock file. Both stay when
//! this process has ended, until the last process has closed the descriptor.

use std::{ffi::CStr, os::fd::RawFd, path::PathBuf};

use super::{
    Located, Purpose, Session, launch_options::LaunchOptions, launch_spec::LaunchSpec,
    launch_wait::LaunchWait,
};
use crate::{
    acquire::Grant,
    cli::AcquireArguments,
    judge::{
        Request,
        terms::{Admit, Claim, Hold, Keyword, Location, NamedSlots},
    },
    keeper::{
        AgentError, BaseDirectories, Client, LAST_SLOT, LockPath, RepositoryError,
        agent::number_of_opened,
        file::{
            file::{LockFile, Opening},
            layout::{shared_bytes, slot_bytes},
        },
    },
    launch::{Journal, Program, environment},
    policy::{LazyPolicy, Policy},
    sys::{FileId, Inherited, Unfit, descriptor, process, regular_file},
    text::{Error, ExitStatus, print, stream::hand_over, visible, word},
};

/// Takes slots for the caller's descriptors, or prints which files they have to be open for.
pub(crate) fn run(arguments: &AcquireArguments, policy: Option<PathBuf>) -> Result<u8, Error> {
    let opened = |number: &RawFd| Some((number_of_opened(&descriptor::path_of(*number)?)?, *number));
    let of_agent: Vec<(u64, RawFd)> = arguments.fd.iter().filter_map(opened).collect();
    let opened = of_agent.first().copied();
    let options = LaunchOptions { policy, opened, ..LaunchOptions::typed_to_acquire(arguments)? };
    let session = Session::begin(&options)?;
    let mut inherited = Inherited::scan();
    let unfit = arguments.fd.iter().find_map(|number| Some((*number, inherited.carry_by(*number).err()?)));
    let session = Session { inherited, ..session };
    session.run(&ForCaller { prints_paths: arguments.path, is_exported: arguments.export, unfit, of_agent })
}

/// The message for a descriptor that can keep nothing.
fn unusable(number: RawFd, unfit: Unfit, options: &LaunchOptions) -> Error {
    let what = match unfit {
        Unfit::Closed => "is not open",
        Unfit::NoFile => "is not open for a file",
        Unfit::WriteOnly => "is open only to write",
    };
    let command = word(&options.command);
    Error::new(ExitStatus::Usage, format!("descriptor {number} {what}: a lock needs one that can be read"))
        .advise(Some(format!("To open it: exec {number}<\"$(rungate acquire --path {command})\"")))
}

/// The slots stay with the caller.
struct ForCaller {
    /// `--path`: only the lock files are printed, made if they are missing. Nothing is taken.
    prints_paths: bool,
    /// Whether the variables that a program would find are printed.
    is_exported: bool,
    /// A descriptor that can keep nothing.
    unfit: Option<(RawFd, Unfit)>,
    /// Those that are open for FIFOs of the agent, and their numbers. The first one keeps its slots.
    of_agent: Vec<(u64, RawFd)>,
}

/// The program behind the command, or one that is supposed: nothing is executed.
fn supposed(session: &Session<'_>, opened: &LazyPolicy<'_>) -> Result<Located, Error> {
    let Session { options, situation, depth, .. } = session;
    let located = super::locate(options, opened, situation, depth);
    if opened.is_empty() && options.cap.is_none() {
        return located;
    }
    Ok(located.unwrap_or_else(|_| Located {
        program: Program::supposed(&options.command, &situation.directory),
        depth: depth.clone(),
    }))
}

/// The lock files of a launch, each once, and whether the agent keeps slots for it. None if the rules for its
/// command ask nothing of this launch; a fault if no rule is for the command.
fn lock_files<'w>(
    wanted: &'w LaunchSpec,
    options: &LaunchOptions,
    policy: &Policy,
    request: &Request<'_>,
) -> Result<Option<(Vec<LockPath<'w>>, bool)>, Error> {
    let (mut places, mut needs_agent): (Vec<LockPath<'w>>, bool) = (Vec::new(), false);
    for claim in wanted.claims() {
        match &claim.location {
            Location::File(file) if places.iter().any(|known| known.path == file.path) => {}
            Location::File(file) => places.push(LockPath::of(file)),
            Location::Agent(_) => needs_agent = true,
            Location::Memory(_) => {}
        }
    }
    if !places.is_empty() || needs_agent {
        return Ok(Some((places, needs_agent)));
    }
    if !policy.has_rule_for(request) {
        let command = visible(&options.command);
        let text = format!("{command}: nothing to acquire: no rule of the policy is for this command");
        let advice = format!("To see the rules: rungate explain -- {}", word(&options.command));
        return Err(Error::new(ExitStatus::Policy, text).advise(Some(advice)));
    }
    Ok(None)
}

fn of_agent(error: &AgentError, command: &str) -> Error {
    Error::new(ExitStatus::Repository, format!("{command}: {error}")).advise(error.advice())
}

/// Prints the lock files, each made if it is missing.
fn print_paths(
    session: &Session<'_>,
    wanted: &LaunchSpec,
    places: Vec<LockPath<'_>>,
    needs_agent: bool,
) -> Result<u8, Error> {
    let command = visible(&session.options.command);
    let bases = BaseDirectories::default();
    let mut text = String::new();
    for claim in wanted.claims() {
        let Location::File(file) = &claim.location else { continue };
        let opening = Opening { inherited: &session.inherited, hold: Hold::Process, bases: &bases };
        let opened = LockFile::open_to_lock(&LockPath::of(file), &file.creation, &opening);
        opened.map_err(|error| of_file(&error, &command))?;
    }
    for place in places {
        text.push_str(&visible(place.path));
        text.push('\n');
    }
    if needs_agent {
        let opened = Client::connect().and_then(|mut client| client.open());
        let path = opened.map_err(|error| of_agent(&error, &command))?;
        text.push_str(&visible(&path));
        text.push('\n');
    }
    print(&text)
}

fn of_file(error: &RepositoryError, command: &str) -> Error {
    Error::new(ExitStatus::Repository, format!("{command}: {error}")).advise(error.advice())
}

impl Purpose for ForCaller {
    fn locate(&self, session: &Session<'_>, opened: &LazyPolicy<'_>) -> Result<Located, Error> {
        supposed(session, opened)
    }

    fn consider(
        &self,
        session: &Session<'_>,
        wanted: &LaunchSpec,
        policy: &Policy,
        request: &Request<'_>,
    ) -> Result<Option<u8>, Error> {
        let Session { options, inherited, .. } = session;
        let Some((places, needs_agent)) = lock_files(wanted, options, policy, request)? else {
            // A script opens it, and continues.
            let text = if self.prints_paths { "/dev/null\n" } else { "" };
            return print(text).map(Some);
        };
        if self.prints_paths {
            return print_paths(session, wanted, places, needs_agent).map(Some);
        }
        if let Some((number, unfit)) = self.unfit {
            return Err(unusable(number, unfit, options));
        }
        let command = visible(&options.command);
        if wanted.hold > Hold::Descriptor {
            let text = format!(
                "{command}: cannot be kept by a descriptor: the policy demands hold = \"{}\"",
                wanted.hold.word()
            );
            let advice = "Start what needs the slots with rungate run.".to_owned();
            return Err(Error::new(ExitStatus::Policy, text).advise(Some(advice)));
        }
        let is_at = |place: &LockPath<'_>, id| {
            regular_file::status_of_target(place.path).is_ok_and(|status| status.id == id)
        };
        let agents = self.of_agent.first().map(|(_, number)| *number).filter(|_| needs_agent);
        let is_needed = |number, id| agents == Some(number) || places.iter().any(|place| is_at(place, id));
        if let Some((number, _)) = inherited.carriers().find(|(number, id)| !is_needed(*number, *id)) {
            let text = format!("{command}: descriptor {number} is not open for a lock file of this command");
            let advice = format!("To see which they are: rungate acquire --path {}", word(&options.command));
            return Err(Error::new(ExitStatus::Usage, text).advise(Some(advice)));
        }
        // As with flock: a descriptor that already has the lock keeps it. It may use the slots of a holder
        // above instead, as long as these are inherited.
        let slots = slot_bytes(1, LAST_SLOT);
        let count = |number: RawFd, id: FileId| {
            let used = |above: &NamedSlots| -> u64 {
                let runs = above.slots.iter().map(|run| (*run.start(), *run.end()));
                let held = runs.filter(|(first, last)| inherited.have_locked(id, &slot_bytes(*first, *last)));
                held.map(|(first, last)| inherited.count_locked(number, &shared_bytes(first, last))).sum()
            };
            let used = session.ancestors.iter().map(used).max().unwrap_or(0);
            inherited.count_locked(number, &slots).max(used)
        };
        let held: Vec<(RawFd, FileId, u64)> = inherited
            .carriers()
            .map(|(number, id)| (number, id, count(number, id)))
            .filter(|(.., count)| *count > 0)
            .collect();
        if needs_agent && agents.is_none() {
            let text = format!("{command}: none of the descriptors given is open for the agent");
            let advice = format!("To see what to open: rungate acquire --path {}", word(&options.command));
            return Err(Error::new(ExitStatus::Repository, text).advise(Some(advice)));
        }
        let kept = match options.opened {
            Some((opened, _)) => Client::connect().and_then(|mut client| client.keeps(opened)),
            None => Ok(Vec::new()),
        };
        let kept = kept.map_err(|error| of_agent(&error, &command))?;
        let of_files = held.first().map(|(number, ..)| *number);
        let Some(first) = of_files.or(agents.filter(|_| !kept.is_empty())) else { return Ok(None) };
        let is_enough = |claim: &Claim, count: u64| count >= claim.amount.wanted();
        let is_met = |claim: &Claim| match &claim.location {
            _ if claim.amount.admit == Admit::Unenforced => true,
            Location::File(file) => {
                held.iter().any(|(_, id, count)| is_enough(claim, *count) && is_at(&LockPath::of(file), *id))
            }
            Location::Agent(location) => {
                kept.iter().any(|(table, count)| *table == location.table && is_enough(claim, *count))
            }
            Location::Memory(_) => false,
        };
        let mut demands = wanted.demands.iter();
        if demands.all(|demand| demand.alternatives().any(|claims| claims.iter().all(is_met))) {
            return Ok(Some(ExitStatus::Success as u8));
        }
        let text =
            format!("{command}: descriptor {first} keeps a slot already, but the command needs others too");
        let advice = format!("To give it back: exec {first}<&-");
        Err(Error::new(ExitStatus::Usage, text).advise(Some(advice)))
    }

    fn use_slots(
        &self,
        session: &Session<'_>,
        _: Located,
        wanted: &LaunchSpec,
        grant: Grant<'_>,
        journal: &Journal<'_>,
        turn: &LaunchWait,
    ) -> Result<u8, Error> {
        if let Some(caller) = session.inherited.keeper_of_carriers().or_else(process::parent) {
            // The record is for people only: the slots are kept even if it cannot be written.
            let _ = grant.record_command(caller);
        }
        if self.is_exported
            && let Err(error) = hand_over(&exports(session, &grant))
        {
            // Nothing was acquired, so no pause begins. A SIGPIPE that came ends this process after that.
            let _ = grant.withdraw();
            return Err(error);
        }
        // An agent learns that the script knows of its slots. A lock needs nothing more. Until then the agent
        // frees the slots if this process is killed, so it comes after the variables.
        if let Err(error) = grant.keep_across_exec() {
            let _ = grant.withdraw();
            let text = format!("{}: {error}", visible(&session.options.command));
            return Err(Error::new(ExitStatus::Repository, text).advise(error.advice()));
        }
        journal.started(wanted, &grant, turn.since());
        // The caller's descriptors keep them.
        std::mem::forget(grant);
        Ok(ExitStatus::Success as u8)
    }
}

/// `export RUNGATE_HELD=deploy=1`, as a shell reads it.
fn exports(session: &Session<'_>, grant: &Grant<'_>) -> String {
    let entries = environment::with_slots(Vec::new(), &session.ancestors, grant.slots());
    let lines = entries.iter().filter_map(|entry| {
        let entry: &CStr = entry;
        let (name, value) = entry.to_str().ok()?.split_once('=')?;
        Some(format!("export {name}={}\n", word(value)))
    });
    lines.collect()
}
