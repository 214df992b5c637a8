//! Reads the command line of the second program, `rungate-tools`, and calls the subcommand. The launcher
//! executes this program under its own name and with its own arguments.

use std::{
    ffi::{CString, OsString},
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::FromArgMatches;

use super::{
    act::{end, measure, prune, reset},
    doctor,
    inspect::{explain, list, metrics, status},
    logs::{history, report, simulate},
    policy,
    setup::{completions, init, shim},
};
use crate::{
    acquire::Grant,
    cli::{self, Action, CommandLine, help},
    judge::terms::Hold,
    launch::{
        Shim, Situation, TOOLS, exectimes, installation, is_own_name, refusals,
        run::{self, acquire},
        start::{NotSpawned, supervise},
    },
    sys::{Ending, Failure, Inherited, executable, own_pid, process},
    text::{Error, ExitStatus},
};

/// Runs the subcommand of the arguments.
pub(super) fn main(arguments: &[OsString]) -> Result<u8, Error> {
    refuse_other_names()?;
    let program = executable::own_path();
    let called = arguments.first().map_or(Path::new(TOOLS), Path::new);
    if let Some(launcher) = installation::launcher(called) {
        executable::stand_for(launcher);
    }
    let read = cli::command().try_get_matches_from(arguments);
    let line = read.and_then(|matches| {
        cli::refuse_unread_policy(&matches)?;
        CommandLine::from_arg_matches(&matches)
    });
    match line {
        Ok(line) => match act_in_child(&line.action, program, arguments)? {
            Some(status) => Ok(status),
            None => act(line),
        },
        Err(error) => help::complain(&error, arguments),
    }
}

/// A shim that points here instead of to the launcher would start nothing, and print no helpful message.
fn refuse_other_names() -> Result<(), Error> {
    let Some(path) = executable::executed_path() else { return Ok(()) };
    match path.file_name() {
        Some(name) if (!is_own_name(name) || name == "exectimes") && !path.starts_with("/dev/fd") => {
            let shim = Shim { name: name.to_owned(), path: path.clone() };
            Err(refusals::link(
                &shim,
                &format!("a link to {TOOLS}, which starts nothing; a shim is a link to rungate"),
            ))
        }
        _ => Ok(()),
    }
}

/// Executes this program in a child if this process holds slots with POSIX locks. When a subcommand closes a
/// descriptor of the lock file, the process that did it loses these locks. Nor do its queries show them. A
/// child has none. A launch, and what explains one, knows that. Returns how the child ended.
fn act_in_child(
    action: &Action,
    program: Option<PathBuf>,
    arguments: &[OsString],
) -> Result<Option<u8>, Error> {
    let is_launch = matches!(action, Action::Run(_) | Action::Acquire(_) | Action::Exectimes(_));
    let is_of_launch = is_launch || matches!(action, Action::Explain(explain) if !explain.command.is_empty());
    let Some(program) = program.filter(|_| !is_of_launch && Inherited::scan().carry_locks_of_the_process())
    else {
        return Ok(None);
    };
    let words: Vec<CString> = arguments.iter().filter_map(|word| executable::c_string(word)).collect();
    let this = own_pid();
    // Without its slots it does not continue.
    let become_tools = || match process::die_with(this) {
        Ok(()) => executable::execute(&program, &words, &executable::environment()),
        Err(errno) => errno,
    };
    let mut nothing = Grant::without_slots(Vec::new(), SystemTime::now());
    let failure = match supervise(become_tools, Hold::Supervisor, &mut nothing) {
        Ok(Ending::Exited(status)) => return Ok(Some(status)),
        Ok(Ending::Killed(signal)) => return Ok(Some(process::die_of(signal))),
        Err(NotSpawned::Exec(errno)) => Failure { call: "execve", errno },
        Err(NotSpawned::Call(failure) | NotSpawned::Lost(failure)) => failure,
    };
    let text = format!("{TOOLS} cannot be started beside the slots of this process: {failure}");
    Err(Error::new(ExitStatus::System, text))
}

fn act(CommandLine { policy, action }: CommandLine) -> Result<u8, Error> {
    let here = || Situation::of_this_process(policy.clone());
    match &action {
        Action::Run(arguments) => run::run(arguments, policy),
        Action::Acquire(arguments) => acquire::run(arguments, policy),
        Action::Explain(arguments) => explain::run(arguments, here()?),
        Action::Status(arguments) => status::run(arguments, here()?),
        Action::List(arguments) => list::run(arguments, &here()?),
        Action::Policy(arguments) => policy::run(arguments, here()?),
        Action::Reset(arguments) => reset::run(arguments, &here()?),
        Action::Prune(arguments) => prune::run(arguments, &here()?),
        Action::End(arguments) => end::run(arguments, &here()?),
        Action::History(arguments) => history::run(arguments, &here()?),
        Action::Report(arguments) => report::run(arguments, &here()?),
        Action::Simulate(arguments) => simulate::run(arguments, &here()?),
        Action::Metrics(arguments) => metrics::run(arguments, &here()?),
        Action::Measure(arguments) => measure::run(arguments, &here()?),
        Action::Shim(arguments) => shim::run(arguments, &here()?),
        Action::Init(arguments) => init::run(arguments, &here()?),
        Action::Doctor(arguments) => doctor::run(arguments, here()?),
        Action::Completions(arguments) => completions::run(arguments),
        Action::Exectimes(arguments) => exectimes::run(arguments),
    }
}
