//! A policy that was found and not yet read to the end. Before a launch can say which of its rules it needs, it has to know
//! the program, and which program a command means the policy can say.

use std::{ffi::OsStr, path::Path, slice, time::SystemTime};

use super::{
    Policy,
    compiled::{Compilation, CompileError, Compiled, compile, path_of},
    faults::Faults,
    invocation::Invocation,
    layer::LayerKind,
    source::{FileStamp, Found, Sources, read_files},
};
use crate::diagnostic::SourceText;

/// The files of a policy, and what they say of programs.
pub struct Opened<'s> {
    sources: &'s Sources,
    state: State,
}

enum State {
    /// There is no compiled form that fits.
    Whole(Policy),
    Compiled(Found, Compiled),
}

impl<'s> Opened<'s> {
    /// Finds the files, and validates them where nobody has done so before.
    pub fn open(sources: &'s Sources) -> Result<Self, Faults> {
        let found = sources.read();
        let state = match sources.read_compiled(&found) {
            Some(compiled) => State::Compiled(found, compiled),
            None => State::Whole(Policy::of_found(found, sources.caller == 0, None, None)?),
        };
        Ok(Opened { sources, state })
    }

    /// Whether no file says anything.
    pub fn is_empty(&self) -> bool {
        matches!(&self.state, State::Whole(policy) if policy.is_empty())
    }

    /// Whether parts of it can stay unread, because it was compiled.
    pub fn is_compiled(&self) -> bool {
        matches!(self.state, State::Compiled(..))
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        match &self.state {
            State::Whole(policy) => policy.executable(command),
            State::Compiled(_, compiled) => compiled.executable(command),
        }
    }

    /// The policy, as far as it can matter to this command.
    pub fn policy_for(self, command: &Invocation<'_>) -> Result<Policy, Faults> {
        let (found, compiled) = match self.state {
            State::Whole(policy) => return Ok(policy),
            State::Compiled(found, compiled) => (found, compiled),
        };
        let texts = found.layers.iter().flat_map(|layer| &layer.files).map(SourceText::text);
        let Some(parts) = compiled.parts(texts, command) else { return Policy::load(self.sources) };
        // A fault that only the parts have would be one of the index: the whole decides.
        Policy::of_found(found, self.sources.caller == 0, None, Some(&parts))
            .or_else(|_| Policy::load(self.sources))
    }
}

impl Compilation {
    /// Compiles the one file that is given; without it the system's policy, or where there is none the caller's own.
    pub fn of(sources: &Sources) -> Result<Compilation, CompileError> {
        let found = match &sources.given {
            Some(given) => read_files(slice::from_ref(given), sources.caller),
            None => match sources.read() {
                found if found.layers.len() < 2 => found,
                _ => Sources::system(sources.caller).read(),
            },
        };
        let own =
            || sources.own.as_ref().filter(|_| found.layers.iter().any(|layer| layer.kind == LayerKind::Own));
        let main = sources.given.as_ref().or_else(own).unwrap_or(&sources.system);
        let (main, path) = (main.clone(), path_of(main));
        let stamps = found.stamps.of_files();
        let policy = Policy::of_found(found, true, None, None).map_err(CompileError::Faults)?;
        if policy.is_empty() {
            return Err(CompileError::NoPolicy);
        }
        let content = compile(&policy, &stamps).map_err(CompileError::Encoding)?;
        let changed = stamps.iter().map(FileStamp::changed).max().unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(Compilation { main, path, content, changed })
    }
}
