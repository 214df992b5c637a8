//! What every topic needs: the caller, and the policy in force, as far as it can be read.

use crate::{
    launch::situation::{Situation, SystemNames},
    policy::{Faults, Policy, Proposal, Sources},
};

/// The caller, and the policy in force for them.
pub(crate) struct Context {
    pub(super) situation: Situation,
    pub(super) sources: Sources,
    pub(crate) policy: Result<Policy, Faults>,
}

impl Context {
    /// For the policy in force for the caller.
    pub(crate) fn begin(situation: Situation) -> Self {
        let sources = situation.sources();
        let policy = Policy::check(&sources, &SystemNames);
        Self { situation, sources, policy }
    }

    /// For the system's policy with another text in one of its files.
    pub(crate) fn of_proposal(situation: Situation, proposal: Proposal) -> Self {
        let sources = Sources::system(situation.credentials.uid);
        let policy = Policy::propose(&sources, &[proposal], Some(&SystemNames));
        Self { situation, sources, policy }
    }

    /// The policy, if it has no fault.
    pub(super) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref().ok()
    }

    pub(super) fn is_root(&self) -> bool {
        self.situation.credentials.uid == 0
    }
}
