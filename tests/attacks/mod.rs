//! What somebody may try who can write where others can, set their environment, and choose their names and
//! limits. The table in docs/security.md says of each attack what happens and which test shows it;
//! `docs::promises` sees to it that those tests exist.

mod environment;
mod limits;
mod names;
mod overdue;
mod places;
mod policies;
