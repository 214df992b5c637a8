//! `rungate policy`: shows and changes the policy. `check`, `edit` and `install` share one pipeline: they
//! gather the files (`location`, `target`), check and test them (`candidate`), compare them with the policy
//! in force (`Difference`), ask (`question`), and put them in place (`step`).

mod candidate;
mod check;
mod diff;
mod edit;
mod install;
mod past;
pub(super) mod question;
mod step;
mod target;
mod undo;

use self::{
    candidate::{Candidate, TestResult},
    past::Past,
    step::Step,
    target::{Location, Removal, Target},
};

use crate::{
    cli::PolicyAction,
    launch::Situation,
    policy,
    text::{Error, json, print},
};

/// Runs the requested subcommand.
pub(super) fn run(arguments: &PolicyAction, situation: Situation) -> Result<u8, Error> {
    match arguments {
        PolicyAction::Check(arguments) => check::run(arguments, &situation),
        PolicyAction::Diff(arguments) => diff::run(arguments, &situation),
        PolicyAction::Edit(arguments) => edit::run(arguments, situation),
        PolicyAction::Install(arguments) => install::run(arguments, &situation),
        PolicyAction::Log => undo::log(&situation),
        PolicyAction::Undo(arguments) => undo::undo(arguments, &situation),
        PolicyAction::Schema => print(&json::plain(&policy::schema())),
        PolicyAction::Show => self::diff::show(&situation),
    }
}
