//! The queue of a table: order, deadlines, waiters that do not answer.

mod changes;
mod hand_over;
pub(crate) mod queue;
mod standing;
pub(crate) mod the_line;
mod under_load;
pub(crate) mod waits;
