//! The command line, output and statuses of exectimes (Gamble 2011): `LOCK-FILE MAX COMMAND…`, `LOCK-FILE
//! check` and `LOCK-FILE list`. This checks what the original does not: MAX must be a number.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Display,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use super::{Command, Program, start::start};
use crate::{
    acquire::{AcquireContext, Clock, Full, Outcome, Reason, Refusal, acquire},
    judge::terms::{Amount, Claim, Demand, FileLocation, Hold, LAST_SLOT, Launch, Location, Slots},
    keeper::{
        BaseDirectories, KeeperError, Keepers, LockPath, Means, Occupancy, TableSnapshot,
        file::holder::held_slots,
    },
    sys::{Credentials, Inherited, accounts, executable, own_pid},
    text::{ExitStatus, stream, visible},
};
#[cfg(feature = "tools")]
use crate::{cli::ExectimesArguments, text::Error};

/// Works like exectimes.
#[cfg(feature = "tools")]
#[expect(clippy::unnecessary_wraps, reason = "every subcommand is entered in one way")]
pub(crate) fn run(arguments: &ExectimesArguments) -> Result<u8, Error> {
    Ok(main(&arguments.arguments))
}

/// The same for the launcher: every failure ends with 1.
pub(crate) fn main(arguments: &[OsString]) -> u8 {
    let failure = ExitStatus::Failure as u8;
    match act(arguments) {
        Ok(()) => ExitStatus::Success as u8,
        Err(Failed::Usage) => {
            let _ = stream::write_out(&format!("{USAGE}\n"));
            failure
        }
        Err(Failed::Provenance(reason)) => {
            stream::complain(&reason);
            failure
        }
    }
}

enum Failed {
    /// The original prints its usage to standard output.
    Usage,
    Provenance(String),
}

fn act(arguments: &[OsString]) -> Result<(), Failed> {
    let [file, word, command @ ..] = arguments else { return Err(Failed::Usage) };
    let path = env::current_dir().unwrap_or_default().join(file);
    match word.to_str() {
        Some("check") => print(&format!("{} instances running\n", held(&path)?.shown())),
        Some("list") => list(&path),
        _ => launch(path, word, command),
    }
}

fn held(path: &Path) -> Result<Occupancy, Failed> {
    held_slots(&LockPath::named(path)).map_err(|error| Failed::Provenance(cannot_open(error)))
}

fn print(text: &str) -> Result<(), Failed> {
    stream::write_out(text).map_err(|error| Failed::Provenance(cannot_write(error)))
}

fn list(path: &Path) -> Result<(), Failed> {
    let held = held(path)?;
    let lines: String = if held.spans().iter().all(|span| span.pid.is_some()) {
        held.spans().iter().map(|span| lines(span.slots.clone(), span.pid)).collect()
    } else {
        // Records know more about slots that a description keeps.
        let survey = TableSnapshot::of(&LockPath::named(path));
        let holders = survey.map_err(|error| Failed::Provenance(cannot_open(error)))?.holders;
        holders.iter().map(|holder| lines(holder.slots.0..=holder.slots.1, holder.pid)).collect()
    };
    print(&lines)
}

fn lines(slots: RangeInclusive<u64>, pid: Option<i32>) -> String {
    let pid = pid.unwrap_or(-1);
    // A lock to the end of the file covers more than there can be.
    let slots = *slots.start()..=(*slots.end()).min(LAST_SLOT.max(*slots.start()));
    slots.map(|slot| format!("Slot {slot} held by PID {pid}\n")).collect()
}

fn launch(path: PathBuf, most: &OsStr, command: &[OsString]) -> Result<(), Failed> {
    let Some((command, words)) = command.split_first() else { return Err(Failed::Usage) };
    let limit: u32 = most
        .to_str()
        .and_then(|most| most.trim_start().parse().ok())
        .ok_or_else(|| Failed::Provenance(no_number(most)))?;
    let amount = Amount::plain(Slots::Number(1), u64::from(limit));
    let claim = Claim::outside_the_policy(FileLocation::named(path, 0o666), amount, "exectimes");
    let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy();
    let host = accounts::name().map(|host| host.to_string_lossy().into_owned()).unwrap_or_default();
    let uid = Credentials::of_this_process().map_or(0, |credentials| credentials.uid);
    let inherited = Inherited::scan();
    let asker = AcquireContext {
        launch: Launch { command: &name, host: &host, uid, ancestors: &[], hold: Hold::Process },
        keepers: Keepers::of(&inherited),
        generation: 0,
        on_expired: &|_, _, _| {},
        clock: Clock::default(),
    };
    let failed = |error| Failed::Provenance(cannot_lock(error));
    let demands = if keeps_slot(&claim, &asker).map_err(failed)? { vec![] } else { vec![Demand::One(claim)] };
    match acquire(&demands, &asker) {
        Ok(Outcome::Granted(grant)) => {
            let directory = env::current_dir().unwrap_or_default();
            let program = match Program::find_or_shim(command, &directory) {
                Ok(program) => program,
                Err(error) => {
                    // Nothing was started, so no start is recorded.
                    let _ = grant.withdraw();
                    return Err(Failed::Provenance(cannot_execute(error)));
                }
            };
            let command = Command { program, name: command, arguments: words, ancestors: &[], depth: None };
            match start(command, Hold::Process, grant) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failed::Provenance(cannot_execute(error))),
            }
        }
        Ok(Outcome::Refused(refusal)) => Err(Failed::Provenance(cannot_start(&refusal, limit))),
        Ok(Outcome::Interrupted) => unreachable!("nobody watches a launch that does not wait"),
        Err(error) => Err(Failed::Provenance(cannot_lock(error))),
    }
}

/// Whether this process holds a slot already, from the time when it was another program, and the others leave
/// room for it. The original does not see locks of its own process, so that one exectimes may become another.
/// It acquires nothing, and its slots already count for all later launches, so it may read without locking
/// the file.
fn keeps_slot(claim: &Claim, asker: &AcquireContext<'_>) -> Result<bool, KeeperError> {
    let Location::File(file) = &claim.location else { return Ok(false) };
    let may_hold = |id| asker.keepers.inherited.may_carry_locks_of_the_process(id);
    if !executable::identity(&file.path).is_some_and(may_hold) {
        return Ok(false);
    }
    let table = asker.keepers.open(claim, &asker.launch, &BaseDirectories::default())?;
    let (occupancy, is_whole) = table.occupancy(None, Means::All)?;
    let own = occupancy.spans().iter().filter(|span| span.pid == Some(own_pid()));
    let own: u64 = own.map(|span| span.slots.end() + 1 - span.slots.start()).sum();
    Ok(is_whole && own > 0 && occupancy.held() - own < claim.amount.limit)
}

// The messages of exectimes, in the words of the original.

pub(crate) const USAGE: &str = "Usage: exectimes lock-file max-instances command";

/// MAX is not a number, which the original would take for 0.
pub(crate) fn no_number(most: &OsStr) -> String {
    format!("exectimes: max-instances is a number from 0 to 4294967295, not \"{}\"\n{USAGE}", visible(most))
}

/// The lock file cannot be checked.
pub(crate) fn cannot_open(error: impl Display) -> String {
    format!("Failed to open file: {error}")
}

/// Its locks cannot be checked or taken.
pub(crate) fn cannot_lock(error: impl Display) -> String {
    format!("Failed to lock file: {error}")
}

/// The answer cannot be printed.
pub(crate) fn cannot_write(error: impl Display) -> String {
    format!("Failed to write: {error}")
}

/// The program cannot be started.
pub(crate) fn cannot_execute(error: impl Display) -> String {
    format!("exec failed: {error}")
}

/// Waiting launches have a claim to free slots. If that is the reason, the original's message would be wrong
/// without it.
pub(crate) fn cannot_start(refusal: &Refusal<'_>, limit: u32) -> String {
    let full = refusal.claims().find_map(|refused| match &refused.reason {
        Reason::Full(full) => Some(full),
        Reason::Never | Reason::TooSoon { .. } => None,
    });
    let used = full.map_or(0, Full::used);
    let waiting = full.filter(|_| used < u64::from(limit)).map_or(0, Full::waiting);
    let waiting = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
    format!("Cannot start, {used} instances already running{waiting}")
}
