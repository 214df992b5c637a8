//! What a launch wants, in the words that judgement and mechanism share: a claim says where slots are kept,
//! how many may be held and when, and which rules ask for it. Plain data: nothing here knows a policy, a lock
//! or a process.

pub mod admit;
pub mod amount;
pub mod because;
pub(crate) mod choice;
pub mod claim;
pub mod hold;
pub mod keeper;
pub mod launch;
pub mod location;
pub mod member;
pub mod merged;
pub mod named_slots;
pub mod names;
pub mod nested;
pub mod on_lost;
pub mod origin;
pub mod pace;
pub mod place;
pub mod queue;
pub mod runs;
pub mod setting;
pub mod slots;
pub mod span_of_time;
pub mod unreachable;
