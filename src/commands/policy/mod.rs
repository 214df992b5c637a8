//! `rungate policy`: what can be known of the policy itself, and done about it. Those that judge a policy share
//! one pipeline: its files are gathered (`location`, `target`), checked and tested (`candidate`), compared with
//! the policy as it is (`changes`, `candidate`), agreed to (`question`), and put in place (`step`).

mod candidate;
mod changes;
mod check;
mod diff;
mod edit;
mod from_log;
mod install;
mod location;
mod order;
mod question;
mod removal;
mod show;
mod step;
mod target;

use crate::{cli::PolicyAction, commands::shared::print, error::Error, output::json, policy};

/// Does what was asked for.
pub(super) fn run(arguments: &PolicyAction) -> Result<u8, Error> {
    match arguments {
        PolicyAction::Check(arguments) => check::run(arguments),
        PolicyAction::Diff(arguments) => diff::run(arguments),
        PolicyAction::Edit(arguments) => edit::run(arguments),
        PolicyAction::Install(arguments) => install::run(arguments),
        PolicyAction::Schema => print(&json::render(&policy::schema())),
        PolicyAction::Show(arguments) => show::run(arguments),
    }
}
