//! `rungate expire`: end every holder that is overdue, in all repositories; for root, from a timer.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::{
    cli::ExpireArguments,
    commands::{
        claims, expired, journal, print,
        repositories::{self, LockFileOf},
        situation::Situation,
    },
    error::Error,
    exit_status::ExitStatus,
    log::event::{Event, Kind},
    output::{age::age, json, stream, visible::visible},
    policy::Policy,
    repository::{
        claim::Expiry,
        error::RepositoryError,
        expiry::{self, Fate, Overdue},
        file::LockFile,
        survey::Survey,
    },
};

/// Sweeps the repositories that were named, or all.
pub(super) fn expire(arguments: &ExpireArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = situation.load_policy(arguments.policy.policy.clone())?;
    let mut sweep = Sweep {
        policy: &policy,
        uid: situation.credentials.uid,
        dry_run: arguments.dry_run,
        json: arguments.json.then(Vec::new),
    };
    let mut status = ExitStatus::Success;
    for repository in repositories::wanted(&policy, &situation, &arguments.repositories)? {
        let Some(expiry) = expiry_of(&policy, &repository.name) else {
            if arguments.repositories.is_empty() {
                continue;
            }
            let name = visible(&repository.name);
            let text = format!("{name}: nothing is ever overdue: the policy gives it no expire_after");
            return Err(Error::new(ExitStatus::Usage, text));
        };
        for file in &repository.files {
            match sweep.file(file, &expiry) {
                Ok(true) => {}
                Ok(false) => status = ExitStatus::System,
                Err(error) => {
                    stream::complain(&format!("rungate: {}: {error}", visible(file.title())));
                    status = ExitStatus::Repository;
                }
            }
        }
    }
    if let Some(seen) = sweep.json {
        print(&json::render(&Value::Array(seen)))?;
    }
    Ok(status as u8)
}

fn expiry_of(policy: &Policy, name: &str) -> Option<Expiry> {
    let known = policy.repositories().iter().find(|known| known.shown_name() == name)?;
    claims::expiry(known.pace())
}

struct Sweep<'a> {
    policy: &'a Policy,
    uid: u32,
    dry_run: bool,
    /// What is to be printed as JSON at the end, where that was asked for.
    json: Option<Vec<Value>>,
}

impl Sweep<'_> {
    /// Ends who is overdue in one file. Says whether all of them have gone.
    fn file(&mut self, file: &LockFileOf, expiry: &Expiry) -> Result<bool, RepositoryError> {
        let survey = Survey::of(&file.path)?;
        let Some(open) = LockFile::open_to_read(&file.path)? else { return Ok(true) };
        let mut all_gone = true;
        for overdue in expiry::overdue(&survey.holders, expiry, SystemTime::now()) {
            if self.dry_run {
                match &mut self.json {
                    Some(seen) => seen.push(to_json(file, &overdue, None)),
                    None => drop(print(&would_end(file, &overdue))),
                }
                continue;
            }
            let fate = expiry::end(&open, &overdue, expiry)?;
            all_gone &= matches!(fate, Fate::Ended(_) | Fate::HadLeft);
            match &mut self.json {
                Some(seen) => seen.push(to_json(file, &overdue, Some(fate))),
                None => stream::complain(&expired::describe(&file.title(), &overdue, fate)),
            }
            self.log(file, &overdue, fate);
        }
        Ok(all_gone)
    }

    fn log(&self, file: &LockFileOf, overdue: &Overdue, fate: Fate) {
        let event = Event::now(Kind::Expired, "expire", self.uid);
        let event = journal::expired(event, &file.title(), overdue, fate);
        for (_, log) in self.policy.logs() {
            let _ = journal::sink(log).write(&event);
        }
    }
}

fn would_end(file: &LockFileOf, overdue: &Overdue) -> String {
    let command = overdue.holder.command.as_deref().unwrap_or("?");
    format!(
        "{}: would end PID {} ({}), overdue by {}\n",
        visible(file.title()),
        overdue.pid,
        visible(command),
        age(overdue.by)
    )
}

fn to_json(file: &LockFileOf, overdue: &Overdue, fate: Option<Fate>) -> Value {
    let (fate, signal) = match fate {
        None => ("would-end", None),
        Some(Fate::Ended(signal)) => ("ended", Some(signal.as_str())),
        Some(Fate::HadLeft) => ("had-left", None),
        Some(Fate::NotPermitted) => ("not-permitted", None),
        Some(Fate::Survived) => ("survived", None),
    };
    json!({
        "repository": file.name,
        "member": file.member,
        "path": visible(&file.path),
        "pid": overdue.pid,
        "uid": overdue.holder.uid,
        "command": overdue.holder.command,
        "slots": overdue.slots,
        "overdue_seconds": overdue.by.as_secs_f64(),
        "fate": fate,
        "signal": signal,
    })
}
