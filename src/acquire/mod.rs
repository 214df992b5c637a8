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
