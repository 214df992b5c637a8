//! How a launch comes by its slots: claims in, a grant or a refusal out. All or none, in several tables at
//! once, first come first served; nobody waits in a circle. Nothing here knows a byte, a path or a
//! descriptor: what is held, and who waits, is for the keepers to say ([`crate::keeper`]), and the same
//! functions judge whoever keeps the slots.

pub mod acquisition;
pub mod asker;
pub mod at_once;
pub mod blocked;
pub mod clock;
mod clocks;
pub mod conversation;
pub mod deliberation;
pub mod grant;
mod last_look;
pub mod line;
pub mod looks;
mod of_agent;
pub mod outlook;
pub mod overdue;
pub mod place_in_line;
pub mod refusal;
pub mod returning;
pub mod room;
#[cfg(test)]
mod tests;
pub mod too_late;
pub mod unwaited;
pub mod waiting;
mod waits;
pub mod wants;
mod watched;
pub mod with_agent;
pub mod without_waiting;
