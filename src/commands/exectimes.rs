//! The command line, output and statuses of exectimes (Gamble 2011): `LOCK-FILE MAX COMMAND…`, `LOCK-FILE check` and
//! `LOCK-FILE list`. What the original takes on trust is checked here: MAX must be a number.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::{
    exit_status::ExitStatus,
    launch::{
        program::Program,
        start::{Command, start},
    },
    output::{stream, visible::visible},
    repository::{
        acquisition::{Launch, Outcome, acquire},
        claim::{Admit, Claim, Demand, Nested, Slots},
        file::{Creation, Opening},
        hold::Hold,
        refused::{Reason, Refused},
        survey::Survey,
    },
    sys::{
        credentials::Credentials,
        descriptor::{DEFAULT_FLOOR, Inherited},
        host,
    },
};

const USAGE: &str = "Usage: exectimes lock-file max-instances command";

/// Does what exectimes does with these arguments; all that goes wrong ends with 1.
pub(super) fn main(arguments: &[OsString]) -> u8 {
    let failure = ExitStatus::Failure as u8;
    match act(arguments) {
        Ok(()) => ExitStatus::Success as u8,
        Err(Failed::Usage) => {
            let _ = stream::print(&format!("{USAGE}\n"));
            failure
        }
        Err(Failed::Because(reason)) => {
            stream::complain(&reason);
            failure
        }
    }
}

enum Failed {
    /// The original prints its usage to standard output.
    Usage,
    Because(String),
}

fn act(arguments: &[OsString]) -> Result<(), Failed> {
    let [file, word, command @ ..] = arguments else { return Err(Failed::Usage) };
    let path = env::current_dir().unwrap_or_default().join(file);
    match word.to_str() {
        Some("check") => {
            survey(&path).and_then(|survey| print(&format!("{} instances running\n", survey.used)))
        }
        Some("list") => list(&path),
        _ => run(path, word, command),
    }
}

fn survey(path: &Path) -> Result<Survey, Failed> {
    Survey::of(path).map_err(|error| Failed::Because(format!("Failed to open file: {error}")))
}

fn print(text: &str) -> Result<(), Failed> {
    stream::print(text).map_err(|error| Failed::Because(format!("Failed to write: {error}")))
}

fn list(path: &Path) -> Result<(), Failed> {
    let lines = survey(path)?.holders.into_iter().flat_map(|holder| {
        let pid = holder.pid.unwrap_or(-1);
        (holder.slots.0..=holder.slots.1).map(move |slot| format!("Slot {slot} held by PID {pid}\n"))
    });
    print(&lines.collect::<String>())
}

fn run(path: PathBuf, most: &OsStr, command: &[OsString]) -> Result<(), Failed> {
    let Some((command, words)) = command.split_first() else { return Err(Failed::Usage) };
    let limit: u32 = most.to_str().and_then(|most| most.trim_start().parse().ok()).ok_or_else(|| {
        Failed::Because(format!("exectimes: max-instances is a number, not \"{}\"\n{USAGE}", visible(most)))
    })?;
    let base = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let claim = Claim {
        name: path.file_stem().unwrap_or_default().to_string_lossy().replace([' ', '=', ','], "_"),
        path,
        creation: Creation {
            base,
            create_base: false,
            private: None,
            file_mode: 0o666,
            directory_mode: 0o700,
        },
        owner: None,
        limit: u64::from(limit),
        slots: Slots::Number(1),
        zones: None,
        admit: Admit::WithinLimit,
        nested: Nested::Take,
        rule: "exectimes".to_owned(),
        pause: None,
        expiry: None,
    };
    let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy();
    let host = host::name().map(|host| host.to_string_lossy().into_owned()).unwrap_or_default();
    let uid = Credentials::of_this_process().map_or(0, |credentials| credentials.uid);
    let inherited = Inherited::scan();
    let launch = Launch {
        command: &name,
        host: &host,
        uid,
        ancestors: &[],
        opening: Opening { inherited: &inherited, floor: DEFAULT_FLOOR, hold: Hold::Process },
        on_expired: &|_, _, _| {},
    };
    match acquire(&[Demand::One(claim)], &launch) {
        Ok(Outcome::Admitted(admitted)) => {
            let directory = env::current_dir().unwrap_or_default();
            let program = Program::find_or_shim(command, &directory)
                .map_err(|error| Failed::Because(format!("exec failed: {error}")))?;
            let command = Command { program, name: command, arguments: words, ancestors: &[], depth: None };
            match start(command, Hold::Process, admitted) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failed::Because(format!("exec failed: {error}"))),
            }
        }
        Ok(Outcome::Refused(refused)) => Err(Failed::Because(cannot_start(&refused))),
        Err(error) => Err(Failed::Because(format!("Failed to lock file: {error}"))),
    }
}

fn cannot_start(refused: &[Refused]) -> String {
    let used = refused
        .iter()
        .find_map(|refused| if let Reason::Full { used, .. } = refused.reason { Some(used) } else { None })
        .unwrap_or(0);
    format!("Cannot start, {used} instances already running")
}
