//! `rungate run`: policy, request, decision, claims, slots, exec, each once and in this order.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::{
    cli::RunArguments,
    commands::{
        claims::Claims,
        refusal::{Denial, Refusal},
        situation::Situation,
    },
    decision::{Decision, Verdict, decide},
    error::Error,
    exit_status::ExitStatus,
    launch::{
        environment::{HELD, parse_held},
        program::{Program, ProgramError},
        start::{StartError, start},
    },
    output::{stream, visible::visible},
    policy::Policy,
    repository::{
        acquisition::{self, Admitted, Launch, Outcome},
        claim::{Admit, Claim, Demand, NamedSlots, Nested, Slots},
        error::RepositoryError,
        file::Creation,
    },
    sys::{
        descriptor::{DEFAULT_FLOOR, Inherited},
        regular_file,
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
    let claims = Claims::of(&terms.demands);
    let mut demands = claims.demands;
    demands.extend(ad_hoc(arguments, command, &situation).map(Demand::One));

    let typed = Path::new(command).file_name().unwrap_or(command);
    let name = typed.to_string_lossy();
    let ancestors = env::var(HELD).map_or_else(|_| Vec::new(), |text| parse_held(&text));
    let inherited = if demands.is_empty() { Inherited::default() } else { Inherited::scan() };
    let host = situation.host.to_string_lossy();
    let launch = Launch {
        command: &name,
        host: &host,
        uid: situation.credentials.uid,
        inherited: &inherited,
        ancestors: &ancestors,
        descriptor_floor: DEFAULT_FLOOR,
    };
    match acquisition::acquire(&demands, &launch) {
        Ok(Outcome::Admitted(admitted)) => {
            if arguments.verbose {
                report(command, &admitted);
            }
            let failed = start(program, command, words, &ancestors, &admitted);
            Err(not_started(command, &failed))
        }
        Ok(Outcome::Refused(refused)) => {
            let refusal = Refusal::new(command, &demands, &claims.judged, &refused);
            let status = if refusal.is_final() {
                ExitStatus::Policy as u8
            } else {
                arguments.conflict_exit_code.unwrap_or(ExitStatus::Full as u8)
            };
            if !arguments.quiet {
                stream::complain(&refusal.to_string());
            }
            Ok(status)
        }
        Err(error) => Err(cannot_take(command, &error)),
    }
}

fn find(policy: &Policy, command: &OsStr, directory: &Path) -> Result<Program, Error> {
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

/// The claim of `--limit`. Without `--repository` the lock file is the caller's own, and named after the command.
fn ad_hoc(arguments: &RunArguments, command: &OsStr, situation: &Situation) -> Option<Claim> {
    let limit = u64::from(arguments.limit?);
    let (path, creation) = match &arguments.repository {
        Some(file) => {
            let path = situation.directory.join(file);
            let base = path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
            let file_mode = regular_file::mode_for_new_files();
            (path, Creation { base, private: false, file_mode, directory_mode: 0o700 })
        }
        None => {
            let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy().into_owned();
            let base = situation.runtime.clone();
            let path = base.join(format!("{name}.lock"));
            (path, Creation { base, private: true, file_mode: 0o600, directory_mode: 0o700 })
        }
    };
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    Some(Claim {
        name: name.replace([' ', '=', ','], "_"),
        path,
        creation,
        owner: None,
        limit,
        slots: Slots::Number(u64::from(arguments.slots.unwrap_or(1))),
        zones: Vec::new(),
        admit: Admit::WithinLimit,
        nested: Nested::Join,
        rule: "--limit".to_owned(),
    })
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
