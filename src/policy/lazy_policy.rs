//! A policy as a launch meets it: found, and not yet read to the end. First it says which program a command
//! means, and only who knows the program can ask what holds for it.

use std::{
    borrow::Borrow,
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    Policy,
    delegation::Delegation,
    eval_context::{EvalContext, Invocation, Request},
    findings::Faults,
    loading::Skim,
    skim::Outline,
    source::{Found, LayerText, Sources, Stamps},
};
use crate::text::diagnostic::{Diagnostic, SourceText};

/// The files of a policy, and what they say of programs.
pub struct LazyPolicy<'s> {
    sources: &'s Sources,
    state: State,
}

enum State {
    Whole(Policy),
    /// Every file has an outline, so that parts of it can stay unread.
    Outlined {
        found: Found,
        outlines: Vec<Outline>,
        programs: HashMap<String, PathBuf>,
    },
}

impl<'s> LazyPolicy<'s> {
    /// Finds the files, without those that are delegated, which name no programs; and validates them where
    /// they have to be read as a whole.
    pub fn open(sources: &'s Sources) -> Result<Self, Faults> {
        let found = sources.read(&|_| false);
        let state = match outlines(&found) {
            Some((outlines, programs)) => State::Outlined { found, outlines, programs },
            None => State::Whole(Policy::of_found(found, sources.caller == 0, None, None)?),
        };
        Ok(LazyPolicy { sources, state })
    }

    /// Whether no file says anything.
    pub fn is_empty(&self) -> bool {
        match &self.state {
            State::Whole(policy) => policy.is_empty(),
            State::Outlined { outlines, .. } => outlines.is_empty(),
        }
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        match &self.state {
            State::Whole(policy) => policy.executable(command),
            State::Outlined { programs, .. } => programs.get(command.to_str()?).map(PathBuf::as_path),
        }
    }

    /// The policy, as far as it can matter to this command, which is that of this request; `None` where it
    /// was changed since it was opened, so that another program may be meant.
    pub fn policy_for(
        self,
        command: &Invocation<'_>,
        request: &Request<'_>,
    ) -> Result<Option<Policy>, Faults> {
        let sources = self.sources;
        let facts = EvalContext::new(request, []);
        let is_delegated = match &self.state {
            State::Whole(policy) => may_be_for(&policy.delegations, &facts),
            State::Outlined { found, .. } => may_be_for(&found.delegations, &facts),
        };
        if !is_delegated {
            return self.undelegated(command);
        }
        let is_wanted = |delegation: &Delegation| delegation.may_be_for(&facts);
        let found = sources.read(&is_wanted);
        if !found.stamps.are_those_of_everybody(self.stamps()) {
            return Ok(None);
        }
        let faults = match skimmed(found, sources.caller == 0, command) {
            Some(policy) => return Ok(Some(policy)),
            None => match Policy::load_for(sources, &is_wanted) {
                Ok(policy) => {
                    let is_same = policy.stamps.are_those_of_everybody(self.stamps());
                    return Ok(Some(policy).filter(|_| is_same));
                }
                Err(faults) => faults,
            },
        };
        // What is not delegated has none, or those are everybody's.
        let Some(policy) = self.undelegated(command)? else { return Ok(None) };
        let is_delegated = |fault: &Diagnostic| {
            sources.is_drop_in(&fault.path)
                && policy.delegations.iter().any(|delegation| delegation.is_of(&fault.path))
        };
        Err(faults.of_delegated(is_delegated))
    }

    fn stamps(&self) -> &Stamps {
        match &self.state {
            State::Whole(policy) => &policy.stamps,
            State::Outlined { found, .. } => &found.stamps,
        }
    }

    fn undelegated(self, command: &Invocation<'_>) -> Result<Option<Policy>, Faults> {
        let LazyPolicy { sources, state } = self;
        match state {
            State::Whole(policy) => Ok(Some(policy)),
            State::Outlined { found, outlines, .. } => {
                let skim = Skim { outlines: &outlines, command };
                let stamps = found.stamps.clone();
                let skimmed = Policy::of_found(found, sources.caller == 0, None, Some(&skim));
                skimmed.map(Some).or_else(|_| {
                    let policy = Policy::load_undelegated(sources)?;
                    Ok(Some(policy).filter(|policy| policy.stamps.are_those_of_everybody(&stamps)))
                })
            }
        }
    }

    /// The faults of the whole, for whoever knows nothing to ask it for.
    pub fn faults(self) -> Result<(), Faults> {
        match self.state {
            State::Whole(_) => Ok(()),
            State::Outlined { .. } => Policy::load_undelegated(self.sources).map(drop),
        }
    }
}

impl Policy {
    /// Text in memory, read as far as it can matter to a command; `None` where the whole has to be read.
    pub fn skimmed(layers: Vec<LayerText>, caller_is_root: bool, command: &Invocation<'_>) -> Option<Policy> {
        skimmed(Found { layers, ..Found::default() }, caller_is_root, command)
    }
}

fn skimmed(found: Found, caller_is_root: bool, command: &Invocation<'_>) -> Option<Policy> {
    let (outlines, _) = outlines(&found)?;
    let skim = Skim { outlines: &outlines, command };
    Policy::of_found(found, caller_is_root, None, Some(&skim)).ok()
}

/// Whether something is delegated that can be for a launch.
fn may_be_for<D: Borrow<Delegation>>(delegations: &[D], facts: &EvalContext<'_>) -> bool {
    delegations.iter().any(|delegation| delegation.borrow().may_be_for(facts))
}

/// The outlines of all files, and the programs behind commands, of which the last counts. `None` where the
/// whole has to be read.
fn outlines(found: &Found) -> Option<(Vec<Outline>, HashMap<String, PathBuf>)> {
    if !found.faults.is_empty() {
        return None;
    }
    let mut programs = HashMap::new();
    let outline = |file: &SourceText| {
        let outline = Outline::of(file.text())?;
        programs
            .extend(outline.programs(file.text()).map(|(name, program)| (name.to_owned(), program.into())));
        Some(outline)
    };
    let outlines = found.layers.iter().flat_map(|layer| &layer.files).map(outline).collect::<Option<_>>()?;
    Some((outlines, programs))
}
