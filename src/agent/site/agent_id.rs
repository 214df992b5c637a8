//! By what an agent knows its own keys again. The name of its host may change, and another host may have the
//! same; the boot id is that of the kernel, which containers share. So each agent draws a number, and keeps
//! it in its state directory for as long as it keeps what its host holds: until the next boot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::ledger::state::State;

/// It: the boot of the host, and the number.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub(super) struct AgentId(String);

impl AgentId {
    /// The one of this state directory, which is drawn where there is none.
    pub(super) fn of(state: &State, boot: &str) -> Result<Self, String> {
        let number = state.identity().map_err(|failure| format!("the state directory: {failure}"))?;
        Ok(Self(format!("{boot}.{number:016x}")))
    }

    /// Whether both are of one boot of one kernel.
    pub(super) fn is_of_boot_of(&self, other: &Self) -> bool {
        let boot = |id: &Self| id.0.split_once('.').map(|(boot, _)| boot.to_owned());
        boot(self).is_some_and(|own| boot(other) == Some(own))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
