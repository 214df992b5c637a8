//! Errors of a table of slots, for every keeper. The launch is then refused, and takes nothing.

use std::{error::Error, fmt, time::Duration};

use super::{AgentError, RepositoryError};
use crate::sys::Failure;

/// By keeper; the keeper in memory cannot fail.
#[derive(Debug)]
pub enum KeeperError {
    /// A lock file.
    File(RepositoryError),
    Agent(AgentError),
    /// It is unknown what is in use outside rungate.
    Outside(String),
    /// Waiting is impossible.
    Wait(Failure),
}

impl KeeperError {
    /// Whether the policy by which the keeper judges has faults.
    pub fn is_fault_of_policy(&self) -> bool {
        matches!(self, Self::Agent(AgentError::Faulty(..)))
    }

    /// Whether the error costs a launch in the queue its place.
    pub fn costs_the_place(&self) -> bool {
        !matches!(self, Self::Agent(AgentError::Faulty(_, true)))
    }

    /// Whether another program has the table locked, or more locks on it than can be checked, and nothing
    /// else is wrong.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::File(RepositoryError::MutexBusy { .. })) || self.is_flood()
    }

    /// Whether many processes lock the table in turn, so that waiting longer helps.
    pub fn is_crowded(&self) -> bool {
        matches!(self, Self::File(RepositoryError::MutexBusy { was_handed_on: true, .. }))
    }

    /// Whether another program has more locks on the table than can be checked: nothing was waited for.
    pub fn is_flood(&self) -> bool {
        matches!(self, Self::File(RepositoryError::TooManyLocks { .. }))
    }

    /// The same, if it was waited for this long, and others may have had the lock meanwhile.
    #[must_use]
    pub fn after(self, waited: Duration, is_handed_on: bool) -> Self {
        match self {
            Self::File(RepositoryError::MutexBusy { path, holder, was_handed_on, .. }) => {
                let was_handed_on = was_handed_on || is_handed_on;
                Self::File(RepositoryError::MutexBusy { path, waited, holder, was_handed_on })
            }
            error => error,
        }
    }

    /// What the user can do about it, as a sentence; none if there is no general advice.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::File(error) => error.advice(),
            Self::Agent(error) => error.advice(),
            Self::Outside(_) => Some(
                "Your administrator can see why: rungate measure; systemctl status rungate-measure"
                    .to_owned(),
            ),
            Self::Wait(_) => None,
        }
    }
}

impl fmt::Display for KeeperError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(formatter),
            Self::Agent(error) => error.fmt(formatter),
            Self::Outside(why) => formatter.write_str(why),
            Self::Wait(failure) => write!(formatter, "cannot wait for the holders of its slots: {failure}"),
        }
    }
}

impl Error for KeeperError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::File(error) => error.source(),
            Self::Agent(error) => error.source(),
            Self::Outside(_) => None,
            Self::Wait(failure) => Some(failure),
        }
    }
}

impl From<RepositoryError> for KeeperError {
    fn from(error: RepositoryError) -> Self {
        Self::File(error)
    }
}

impl From<AgentError> for KeeperError {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}
