//! The agent as a keeper: one process of root that has its tables in memory and decides on them, by the same
//! protocol as all keepers. A launch sends over a socket everything that the decision needs. A table of the
//! agent that a listing asks for comes back as a table in memory. Here is what both ends share, and the
//! launcher's end.

pub mod client;
pub mod error;
pub mod frame;
pub mod message;
pub mod picture;
pub mod wire;

pub use self::{
    client::{Client, Granted},
    error::AgentError,
    frame::{Garbage, Inbox, LONGEST_REQUEST},
    message::MOST_CHOSEN,
};
use self::{
    message::{About, UnreadableSlot},
    wire::Wire,
};

use std::path::{Path, PathBuf};

use super::{Holder, Occupancy, Store, TableSnapshot, memory};
use crate::{judge::terms::name_on_site, sys::FIFO_ENDING};

/// The names of all tables.
pub fn tables() -> Result<Vec<String>, AgentError> {
    Ok(Client::connect()?.look(Vec::new())?.into_iter().map(|table| table.name).collect())
}

/// What it says of itself.
pub fn about() -> Result<About, AgentError> {
    Client::connect()?.about()
}

/// The slots of a table whose holders were seen to be unknown because no agent wrote their values, where it
/// is one of the site.
pub fn unreadable_slots(table: &str, holders: &[Holder]) -> Vec<UnreadableSlot> {
    if name_on_site(table).is_none() || holders.iter().all(|holder| holder.pid.is_some()) {
        return Vec::new();
    }
    let site = about().ok().and_then(|about| about.site);
    let mut slots = site.map_or_else(Vec::new, |site| site.unreadable);
    slots.retain(|slot| slot.table == table);
    slots
}

/// A table at one moment, to be checked in this process; none if it was never used.
pub fn look(name: &str) -> Result<Option<memory::Table>, AgentError> {
    let tables = Client::connect()?.look(vec![name.to_owned()])?;
    Ok(tables.first().map(|table| table.to_memory(&Store::default())))
}

/// The content of a table; one that was never used is empty.
pub fn survey(name: &str) -> Result<TableSnapshot, AgentError> {
    let Some(table) = look(name)? else { return Ok(TableSnapshot::default()) };
    let occupancy: Occupancy = table.occupancy();
    let (last_start, last_end) = table.stamps();
    let (used, holders) = (occupancy.shown(), table.holders(&occupancy));
    Ok(TableSnapshot { used, holders, waiting: table.waiters(), last_start, last_end })
}

/// Where the agent listens. The directory belongs to root only, so that no other user can listen there.
pub const SOCKET: &str = "/run/rungate-agent/socket";

/// Where it creates the FIFOs that scripts open. In the folder of each user they have random names: only
/// processes that learned a name from the agent can open it.
pub const OPENED: &str = "/run/rungate-agent/open";

/// The path of the FIFO of a user with this number.
pub fn path_of_opened(uid: u32, number: u64) -> PathBuf {
    Path::new(OPENED).join(uid.to_string()).join(format!("{number}{FIFO_ENDING}"))
}

/// The number of the FIFO with this path, of any user; none if it is something else.
pub fn number_of_opened(path: &Path) -> Option<u64> {
    let name = path.strip_prefix(OPENED).ok()?.file_name()?.to_str()?;
    name.strip_suffix(FIFO_ENDING)?.parse().ok()
}
