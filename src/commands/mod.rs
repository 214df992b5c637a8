//! What each subcommand does: composition only. Here, and nowhere else, the two wings meet: judgement says what a launch
//! wants, this module turns that into claims on lock files, and mechanism takes them.

mod ad_hoc;
mod claims;
mod completer;
mod completions;
mod errand;
mod exectimes;
mod expire;
mod expired;
mod explain;
mod history;
mod history_summary;
mod init;
mod journal;
mod list;
mod look;
mod metrics;
mod names;
mod order;
mod plain_run;
mod policy_check;
mod policy_compile;
mod policy_show;
mod policy_test;
mod recursion;
mod refusal;
mod repositories;
mod reset;
mod run;
mod shim;
mod shim_list;
mod situation;
mod status;
mod supposed;
mod turn;
mod watch;
mod wishes;

use std::env;

use self::{errand::Errand, order::Order};
use crate::{
    cli::{Action, PolicyAction, ShimAction},
    error::Error,
    exit_status::ExitStatus,
    output::{json, stream},
    policy,
    sys::credentials,
};

/// Does what the arguments of this process ask for, and answers with the status to end with. When the program was started
/// it does not come back.
pub fn main() -> u8 {
    let ended = refuse_set_id().and_then(|()| do_errand(Errand::of(env::args_os().collect())?));
    ended.unwrap_or_else(|error| {
        stream::complain(&error.to_string());
        error.status() as u8
    })
}

/// A launcher that runs with another one's rights would start every program with them.
fn refuse_set_id() -> Result<(), Error> {
    if !credentials::is_set_id() {
        return Ok(());
    }
    let text = "rungate is installed set-user-id or set-group-id, and will not run that way";
    Err(Error::new(ExitStatus::Policy, text).advise(
        "It needs no privilege, and a program started so loses part of its environment. Remove the bit: chmod ug-s"
            .to_owned(),
    ))
}

fn do_errand(errand: Errand) -> Result<u8, Error> {
    match errand {
        Errand::Run(order) => run::run(&order),
        Errand::Exectimes(arguments) => Ok(exectimes::main(&arguments)),
        Errand::Typed(action) => act(action),
        Errand::Complete(shell, words) => completer::complete(&shell, words),
        Errand::Done => Ok(ExitStatus::Success as u8),
    }
}

fn act(action: Action) -> Result<u8, Error> {
    match action {
        Action::Run(arguments) => run::run(&Order::typed(arguments)?),
        Action::Explain(arguments) => explain::explain(&arguments),
        Action::Status(arguments) => status::status(&arguments),
        Action::List(arguments) => list::list(&arguments),
        Action::Policy(PolicyAction::Check { files, strict, json, policy }) => {
            policy_check::check(&files, strict, json, policy.policy)
        }
        Action::Policy(PolicyAction::Show { json, policy }) => policy_show::show(json, policy.policy),
        Action::Policy(PolicyAction::Test { files, json, policy }) => {
            policy_test::test(&files, json, policy.policy)
        }
        Action::Policy(PolicyAction::Compile { file }) => policy_compile::compile(file),
        Action::Policy(PolicyAction::Schema) => print(&json::render(&policy::schema())),
        Action::Reset(arguments) => reset::reset(&arguments),
        Action::Expire(arguments) => expire::expire(&arguments),
        Action::History(arguments) => history::show(&arguments),
        Action::Metrics(arguments) => metrics::metrics(&arguments),
        Action::Shim(ShimAction::Install { directory, names, dry_run, policy }) => {
            shim::install(&directory, names, dry_run, policy.policy)
        }
        Action::Shim(ShimAction::List { directories, json, policy }) => {
            shim_list::list(&directories, json, policy.policy)
        }
        Action::Shim(ShimAction::Remove { directory, names, dry_run }) => {
            shim::remove(&directory, names, dry_run)
        }
        Action::Init(arguments) => init::init(&arguments),
        Action::Completions { shell } => completions::print_for(&shell),
        Action::Exectimes { arguments } => Ok(exectimes::main(&arguments)),
    }
}

/// Prints what was asked for; success is the status when it got there.
fn print(text: &str) -> Result<u8, Error> {
    match stream::print(text) {
        Ok(()) => Ok(ExitStatus::Success as u8),
        Err(error) => Err(Error::new(
            ExitStatus::System,
            format!("standard output cannot be written: {}", crate::sys::failure::errno_of(&error).desc()),
        )),
    }
}
