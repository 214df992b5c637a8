//! The programs behind commands: a command that the policy leads to a program which is not there can be
//! started by nobody.

use std::ffi::{OsStr, OsString};

use crate::{
    cli::Topic,
    commands::{
        doctor::{
            examination::Examination,
            finding::Finding,
            page::counted,
            readers::{Want, barrier},
            section::Section,
        },
        run::stages,
    },
    escape::Show,
    policy::Policy,
    sys::executable,
};

pub(super) fn look(examination: &Examination) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Programs);
    };
    let names = policy.command_names();
    let summary = match names.len() {
        0 => "the policy names no command literally".to_owned(),
        count => counted(count, "command") + " that the policy names",
    };
    let findings = names.into_iter().map(|name| of_command(name, policy, examination)).collect();
    Section::new(Topic::Programs, summary, findings)
}

fn of_command(name: &str, policy: &Policy, examination: &Examination) -> Finding {
    match policy.executable(OsStr::new(name)) {
        Some(_) => missing(name, policy, examination).unwrap_or_else(|| {
            Finding::fine("program", format!("{}: the program of [command] is there", name.shown()))
        }),
        None => found(name, policy, examination),
    }
}

/// Programs that `[command.NAME] exec` names and nobody, or no user, can start.
pub(super) fn all_missing(examination: &Examination) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    policy.command_names().into_iter().filter_map(|name| missing(name, policy, examination)).collect()
}

/// What is wrong with the program that `[command.NAME] exec` names.
fn missing(name: &str, policy: &Policy, examination: &Examination) -> Option<Finding> {
    let program = policy.executable(OsStr::new(name))?;
    let key = format!("[command.{}] exec = \"{}\"", name.shown(), program.shown());
    if let Err(errno) = executable::check(program) {
        let text = format!("{key}: {}: nobody can start {}", errno.desc(), name.shown());
        return Some(
            Finding::fault("program-missing", text)
                .mend("Name the program where it is, or take the lines out."),
        );
    }
    let barrier = barrier(program, Want::Execute).filter(|_| examination.is_root())?;
    let text = format!("{}: users cannot start {}", barrier.text(), name.shown());
    Some(Finding::warning("program-closed", text).mend(barrier.mend()))
}

/// A command without one is looked for in `PATH`, which others may have otherwise.
fn found(name: &str, policy: &Policy, examination: &Examination) -> Finding {
    let typed = OsString::from(name);
    let found = stages::find(|name| policy.executable(name), &typed, None, &examination.situation.directory);
    match found {
        Ok(program) => Finding::fine("program", format!("{}: {}", name.shown(), program.path.shown())),
        Err(_) => Finding::note("program-unknown", format!("{} is not in this PATH", name.shown())),
    }
}
