//! Skimming. Most rules of a long policy are for other commands, and its tests are for no launch. Plainly
//! written rules are scanned: whether they are correct, and for which commands they are. Those that cannot
//! matter to the command are then not parsed.
//!
//! This shortcut must not be noticed. Everything that is not known to be plain is parsed. Rules that are left
//! out still count where they could be missed (names, aliases, missing repositories, times). If anything is
//! wrong in what was read, the whole is read again, so that the reported faults are those of the whole.

mod cursor;
mod extract;
mod kept;
mod outline;
mod references;
mod rule;

pub(super) use self::{
    extract::Extract,
    kept::{Choice, Idle, KeptRules},
    outline::Outline,
    references::Mention,
    rule::PlainRule,
};
