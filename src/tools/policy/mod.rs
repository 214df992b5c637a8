//! `rungate policy`: shows and changes the policy itself. `check`, `edit` and `install` share one pipeline:
//! they gather the files (`location`, `target`), check and test them (`candidate`), compare them with the
//! policy in force (`changes`), ask (`question`), and put them in place (`step`).

mod candidate;
mod changes;
mod check;
mod diff;
mod edit;
mod from_log;
mod install;
mod location;
mod order;
pub(super) mod question;
pub mod rehearsal;
mod removal;
mod show;
mod step;
mod target;

use crate::{
    cli::PolicyAction,
    policy,
    text::{error::Error, json, print::print},
};

/// Does what was asked for.
pub(super) fn run(arguments: &PolicyAction) -> Result<u8, Error> {
    match arguments {
        PolicyAction::Check(arguments) => check::run(arguments),
        PolicyAction::Diff(arguments) => diff::run(arguments),
        PolicyAction::Edit(arguments) => edit::run(arguments),
        PolicyAction::Install(arguments) => install::run(arguments),
        PolicyAction::Schema => print(&json::plain(&policy::schema())),
        PolicyAction::Show(arguments) => show::run(arguments),
    }
}
