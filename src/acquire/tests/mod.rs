//! The protocol over tables in memory: what others hold, who waits and what was started go in, and a line
//! says what a launch gets, or with which status it ends and what is in its way.

mod amounts;
mod choices;
mod endings;
mod foresight;
mod line;
mod of_agent;
mod ownership;
mod refusals;
mod rooms;
pub(super) mod stage;
mod waits;
