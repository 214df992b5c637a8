//! How a launch acquires its slots: claims in, a grant or a refusal out. It takes all or none, in several
//! tables at once, in order of arrival, and no launches wait in a circle. Nothing here knows a byte, a path
//! or a descriptor. The keepers report what is held and which launches wait ([`crate::keeper`]), and the same
//! functions decide for every keeper.

pub mod acquire_context;
pub mod acquisition;
pub mod allocation;
pub mod at_once;
pub mod blocked;
pub mod conversation;
pub mod dry_run;
mod final_probe;
pub mod grant;
pub mod liveness;
mod of_agent;
pub mod place_in_line;
pub mod refusal;
pub mod room;
#[cfg(test)]
mod tests;
pub mod too_late;
pub mod unwaited;
mod wait_check;
pub mod waiting;
pub mod wants;
pub mod with_agent;

pub use self::{
    acquire_context::{AcquireContext, Clock},
    acquisition::Outcome,
    allocation::Allocation,
    at_once::{AtOnce, Standing},
    blocked::Blocked,
    conversation::{Conversation, LONGEST_ABSENCE, Patience, Question},
    dry_run::{DryRun, Found, Prospect, is_for_queue, outlook},
    grant::Grant,
    liveness::{HEARTBEAT_INTERVAL, LivenessTracker, MISSED_HEARTBEATS, QueuePosition, SILENCE, Sign},
    place_in_line::{PlaceInLine, PlaceInTable},
    refusal::{Alternative, Full, Line, Reason, Refusal, Refused, Unmet},
    room::{Room, TableView, TableViews},
    too_late::{Endings, Eviction, Known, Progress, RoomForOlder},
    unwaited::Unwaited,
    waiting::{Waiting, Watch, acquire, acquire_at_once, acquire_in_turn, acquire_watched},
    wants::{ClaimOnTable, Options, Wants},
    with_agent::acquire_with_agent,
};
use self::{
    acquisition::{Acquisition, Decided},
    final_probe::FinalProbe,
    liveness::{Clocks, Watched},
    wait_check::WaitCheck,
};
