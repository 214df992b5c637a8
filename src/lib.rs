//! rungate starts programs under a policy: it finds every rule that matches a command, its user and the user's
//! groups, takes a slot in every lock repository that those rules name, all of them or none, and then becomes the
//! program. A slot is a byte-range lock of the kernel, so it is free again the moment the program ends.
//!
//! Two wings know nothing of each other. *Judgement* is [`decision`] over [`policy`]: pure, from text and a request to
//! claims. *Mechanism* is [`launch`] over [`repository`] over [`sys`]: from claims to slots and an exec. Only
//! [`commands`] turns the claims of the one into the claims of the other. The rest are leaves that everybody may use.

pub mod cli;
pub mod commands;
pub mod decision;
mod deliberate_fault;
pub mod diagnostic;
pub mod error;
pub mod exit_status;
pub mod launch;
pub mod log;
pub mod output;
pub mod policy;
pub mod repository;
pub mod sys;
