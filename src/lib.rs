//! rungate starts programs under a policy: it finds every rule that matches a command, its user and the
//! user's groups, takes a slot in every lock repository that those rules name, all of them or none, and then
//! becomes the program. A slot is a byte-range lock of the kernel, so it is free again the moment the program
//! ends.
//!
//! Two wings know nothing of each other. *Judgement* is [`decision`] over [`policy`]: pure, from text and a
//! request to claims. *Mechanism* is [`launch`] over [`protocol`] over [`keeper`] over [`sys`]: from claims
//! to slots and an exec. They speak of claims in the same words, those of [`terms`], and meet in
//! [`commands`], in [`rehearsal`] and in [`simulation`]. [`screen`] is for `status --watch` alone. The rest
//! are leaves that everybody may use.
//!
//! The features `tools` and `agent` add what only `rungate-tools` and `rungate-agent` need. The launcher
//! alone is built with neither.
#![cfg_attr(
    not(all(feature = "tools", feature = "agent")),
    allow(
        dead_code,
        unused_imports,
        reason = "the modules that all three programs share are whole in each of them"
    )
)]

pub mod acquire;
#[cfg(feature = "agent")]
pub mod agent;
#[cfg(any(feature = "tools", feature = "agent"))]
pub mod cli;
mod deliberate_fault;
pub mod judge;
pub mod keeper;
pub mod launch;
pub mod policy;
pub mod sys;
pub mod text;
#[cfg(feature = "tools")]
pub mod tools;
