//! Skimming: most rules of a long policy are for other commands, and its tests are for no launch at all. What
//! is written plainly is seen through at a glance: that nothing is wrong with it, and which commands it is
//! for. What cannot matter to the command at hand is then left out of what is parsed.
//!
//! All of this is a shortcut and must not be noticed. Whatever is not known to be plain is parsed as ever;
//! what is left out still has its say where it can be missed (names, aliases, repositories that are not
//! there, times); and where anything is found wrong with what was read, the whole is read again, so that
//! faults are always those of the whole.

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
