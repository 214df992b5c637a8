//! Policies that are not in force: what somebody named instead, or would put in its place.

use std::path::{Path, PathBuf};

use super::{
    Policy,
    faults::Faults,
    names::Names,
    source::{self, Proposal, Sources},
    warning::Warning,
};

impl Policy {
    /// Reads and checks every file as it would be if these texts stood at their paths.
    pub fn propose(
        sources: &Sources,
        proposals: &[Proposal],
        names: Option<&dyn Names>,
    ) -> Result<Policy, Faults> {
        Self::of_found(sources.read_with(proposals), sources.caller == 0, names, None)
    }

    /// Reads and checks files that were named one by one, as if together they were the system's policy.
    pub fn check_files(paths: &[PathBuf], caller: u32, names: &dyn Names) -> Result<Policy, Faults> {
        let mut policy = Self::of_found(source::read_files(paths, caller), true, Some(names), None)?;
        // Whose policy such a file is to be nobody has said yet, and in one's own {runtime} is right.
        policy.warnings.retain(|warning| warning.code != Warning::RuntimeOfCaller.code());
        Ok(policy)
    }

    /// Reads the policy that a path leads to, a file or a directory with files, as if it were the system's.
    pub fn at(path: &Path, caller: u32) -> Result<Policy, Faults> {
        Self::of_found(source::read_place(path, caller), true, None, None)
    }
}
