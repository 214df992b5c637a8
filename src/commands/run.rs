//! `rungate run`: policy, request, decision, claims, slots, exec, each once and in this order.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use crate::{
    cli::RunArguments,
    commands::{
        ad_hoc,
        claims::Claims,
        expired,
        refusal::{Denial, Refusal},
        situation::Situation,
        turn::Turn,
        wishes::Wishes,
    },
    decision::{Decision, Verdict, decide},
    error::Error,
    exit_status::ExitStatus,
    launch::{
        environment::{HELD, parse_held},
        program::{Program, ProgramError},
        start::{Command, StartError, start},
    },
    output::{stream, visible::visible},
    policy::Policy,
    repository::{
        acquisition::Launch,
        admitted::Admitted,
        claim::{Demand, NamedSlots},
        error::RepositoryError,
        file::Opening,
        waiting::Waited,
    },
    sys::{
        child::{self, Ending},
        descriptor::{DEFAULT_FLOOR, Inherited},
    },
};

/// Starts a command, or says why not.
pub(super) fn run(arguments: &RunArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    if situation.credentials.set_id {
        return Err(set_id());
    }
    let Some((command, words)) = arguments.command.split_first() else {
        return Err(Error::new(ExitStatus::Usage, "no command"));
    };
    let wishes = Wishes::of(arguments)?;
    let mut turn = Turn::begin();
    // Once for most launches; again whenever the policy changes while this one waits.
    loop {
        let policy = situation.load_policy(arguments.policy.policy.clone())?;
        if policy.is_empty() && arguments.limit.is_none() {
            return Err(no_policy(command));
        }
        let program = find(&policy, command, &situation.directory)?;
        let request = situation.request(command, words, &program);
        let decision = decide(&policy, &request);
        let terms = match judge(command, &decision) {
            Ok(terms) => terms,
            Err(refused) if arguments.quiet && refused.status() == ExitStatus::Denied => {
                return Ok(ExitStatus::Denied as u8);
            }
            Err(refused) => return Err(refused),
        };
        let hold = wishes.hold(terms);
        let claims = Claims::of(&terms.demands, &situation.runtime);
        let mut demands = claims.demands;
        demands.extend(ad_hoc::claim(arguments, command, &situation).map(Demand::One));

        let typed = Path::new(command).file_name().unwrap_or(command);
        let name = typed.to_string_lossy();
        let host = situation.host.to_string_lossy();
        let ancestors = env::var(HELD).map_or_else(|_| Vec::new(), |text| parse_held(&text));
        let inherited = if demands.is_empty() { Inherited::default() } else { Inherited::scan() };
        let launch = Launch {
            command: &name,
            host: &host,
            uid: situation.credentials.uid,
            ancestors: &ancestors,
            opening: Opening { inherited: &inherited, floor: DEFAULT_FLOOR, hold },
            on_expired: &|claim, overdue, fate| {
                if !arguments.quiet {
                    stream::complain(&expired::describe(claim, overdue, fate));
                }
            },
        };
        let refusal = match turn.take(&demands, &launch, wishes.wait(terms), &policy, command) {
            Err(error) => return Err(cannot_take(command, &error)),
            Ok(Waited::Interrupted) => continue,
            Ok(Waited::Admitted(admitted)) => {
                if arguments.verbose {
                    report(command, &admitted);
                }
                let typed = Command { program, name: command, arguments: words, ancestors: &ancestors };
                return match start(typed, hold, admitted) {
                    Ok(Ending::Exited(status)) => Ok(status),
                    Ok(Ending::Killed(signal)) => Ok(child::die_of(signal)),
                    Err(error) => Err(not_started(command, &error)),
                };
            }
            Ok(Waited::Refused(refused)) => Refusal::new(command, &demands, &claims.judged, &refused, None),
            Ok(Waited::TimedOut(refused)) => {
                Refusal::new(command, &demands, &claims.judged, &refused, Some(turn.waited()))
            }
        };
        return Ok(end_with(&refusal, arguments));
    }
}

fn end_with(refusal: &Refusal, arguments: &RunArguments) -> u8 {
    if refusal.is_silent() {
        return ExitStatus::Success as u8;
    }
    if !arguments.quiet {
        stream::complain(&refusal.to_string());
    }
    match (refusal.status(), arguments.conflict_exit_code) {
        (ExitStatus::Full | ExitStatus::TimedOut, Some(status)) => status,
        (status, _) => status as u8,
    }
}

/// The program of a command: the one that the policy names, or the one that is found.
pub(super) fn find(policy: &Policy, command: &OsStr, directory: &Path) -> Result<Program, Error> {
    let found = match policy.executable(command) {
        Some(path) => Program::named(path, directory),
        None => Program::find(command, directory),
    };
    found.map_err(|error: ProgramError| {
        let status = if error.was_found() { ExitStatus::CannotExecute } else { ExitStatus::NotFound };
        Error::new(status, error.to_string())
    })
}

fn judge<'d, 'p>(
    command: &OsStr,
    decision: &'d Decision<'p>,
) -> Result<&'d crate::decision::Terms<'p>, Error> {
    match &decision.verdict {
        Verdict::Start(terms) => Ok(terms),
        Verdict::Denied { rule, matches } => Err(Denial::of_rule(command, rule, matches)),
        Verdict::Unmatched => Err(Denial::unmatched(command)),
        Verdict::LookupFailed { rule, failure } => Err(Error::new(
            ExitStatus::System,
            format!(
                "{}: not started: your groups could not be looked up\n  {failure}\n  needed by rule \"{}\", {}",
                visible(command),
                visible(rule.shown_name()),
                rule.place()
            ),
        )
        .advise("A limit that cannot be checked is not skipped. Tell your administrator.".to_owned())),
    }
}

fn report(command: &OsStr, admitted: &Admitted) {
    let held: Vec<String> = admitted.slots().iter().map(described).collect();
    let what = if held.is_empty() { "no slot".to_owned() } else { held.join(", ") };
    stream::complain(&format!("rungate: {}: starts with {what}", visible(command)));
}

fn described(held: &NamedSlots) -> String {
    let slots: Vec<String> = held.slots.iter().map(u64::to_string).collect();
    format!("{} slot {}", visible(&held.name), slots.join(","))
}

fn not_started(command: &OsStr, error: &StartError) -> Error {
    match error {
        StartError::Repository(error) => cannot_take(command, error),
        StartError::Call(_) => Error::new(ExitStatus::System, format!("{}: {error}", visible(command))),
        StartError::Exec { .. } => {
            let status = if error.is_missing() { ExitStatus::NotFound } else { ExitStatus::CannotExecute };
            Error::new(status, error.to_string())
        }
    }
}

fn cannot_take(command: &OsStr, error: &RepositoryError) -> Error {
    Error::new(ExitStatus::Repository, format!("{}: not started: {error}", visible(command)))
        .advise(error.advice())
}

fn no_policy(command: &OsString) -> Error {
    Error::new(
        ExitStatus::Policy,
        format!("{}: not started: there is no policy that says what may start", visible(command)),
    )
    .advise(format!(
        "Give one with --policy FILE, or a cap without one: rungate run --limit 1 -- {}",
        visible(command)
    ))
}

fn set_id() -> Error {
    Error::new(
        ExitStatus::Policy,
        "rungate is installed set-user-id or set-group-id, and will not run that way",
    )
    .advise(
        "It needs no privilege, and a program started so loses part of its environment. Remove the bit: chmod ug-s"
            .to_owned(),
    )
}
