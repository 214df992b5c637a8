//! rungate starts programs under a policy. It finds every rule that matches a command, its user and the
//! user's groups, takes a slot in every lock repository that those rules name, all of them or none, and then
//! executes the program. A slot is a byte-range lock of the kernel, so it is free again when the program
//! ends.
//!
//! There are ten rooms. *Judgement* is [`judge`] over [`policy`]: pure, from text and a request to claims.
//! *Mechanism* is [`acquire`] over [`keeper`] over [`sys`]: from claims to slots. They share only the words
//! of a claim ([`judge::terms`]) and meet in [`launch`], in [`agent`] and in [`tools`]. [`cli`] is the
//! command line as typed, and [`text`] the output for people and scripts.
//!
//! The features `tools` and `agent` add the code that only `rungate-tools` and `rungate-agent` need. The
//! launcher alone is built with neither.
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
pub mod judge;
pub mod keeper;
pub mod launch;
pub mod policy;
pub mod sys;
pub mod text;
#[cfg(feature = "tools")]
pub mod tools;
