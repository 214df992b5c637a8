//! `rungate policy compile`: writes down which parts of the policy matter to which command, so that launches under a long
//! policy read only those. Nobody has to do this, and nobody has to do it again after a change: a compiled policy that no
//! longer fits is not used.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use crate::{
    commands::situation::Situation,
    error::Error,
    exit_status::ExitStatus,
    output::visible::visible,
    policy::{Compilation, CompileError, SYSTEM_POLICY},
    sys::replaced_file,
};

/// How old a change has to be before it is certain that another one will show: the coarsest clock of a file system that
/// is in use counts two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// Compiles the policy in force for the caller, or the file that was named.
pub(super) fn compile(file: Option<PathBuf>) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let sources = situation.sources(file);
    let compilation = loop {
        let compilation = Compilation::of(&sources).map_err(|error| failed(&situation, error))?;
        // A clock that was put back makes files of the future: those are compiled as they are.
        let age = SystemTime::now().duration_since(compilation.changed).unwrap_or(SETTLED);
        match SETTLED.checked_sub(age) {
            None | Some(Duration::ZERO) => break compilation,
            Some(left) => thread::sleep(left),
        }
    };
    // Who may not read the policy may not read in here for which commands it has rules.
    let mode = fs::metadata(&compilation.main).map_or(0o600, |main| main.mode() & 0o644);
    replaced_file::replace(&compilation.path, &compilation.content, mode).map_err(|failure| {
        let path = visible(&compilation.path);
        Error::new(ExitStatus::Policy, format!("{path}: cannot be written: {failure}"))
            .advise("Launches do without it; they only take a little longer.".to_owned())
    })?;
    Ok(ExitStatus::Success as u8)
}

fn failed(situation: &Situation, error: CompileError) -> Error {
    match error {
        CompileError::Faults(faults) => situation.faulty(&faults),
        CompileError::NoPolicy => Error::new(ExitStatus::Policy, "there is no policy to compile")
            .advise(format!("It would stand in {SYSTEM_POLICY}, or be named: rungate policy compile FILE")),
        CompileError::Encoding(error) => {
            Error::new(ExitStatus::Policy, format!("the policy cannot be compiled: {error}"))
        }
    }
}
