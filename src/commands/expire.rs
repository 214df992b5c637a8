//! `rungate expire`: end every holder that is overdue, in all repositories; for root, from a timer.

use std::{ffi::OsStr, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    cli::ExpireArguments,
    commands::shared::{
        expired, journal, listed_file::ListedFile, print, repositories, situation::Situation, unseen_ends,
    },
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    keeper::{
        Fate, Overdue,
        agent::{self, client::Client, message},
        error::KeeperError,
        file::{expiry, file::LockFile, lock_path::LockPath, survey::Survey},
        memory,
    },
    log::event::{Event, Kind},
    output::{json, stream},
    policy::Policy,
    terms::pace::Expiry,
};

/// Sweeps the repositories that were named, or all.
pub(super) fn run(arguments: &ExpireArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = situation.load_policy(arguments.policy.policy.clone())?;
    let mut sweep = Sweep {
        policy: &policy,
        uid: situation.credentials.uid,
        host: &situation.host,
        dry_run: arguments.dry_run,
        json: arguments.json.then(Vec::new),
    };
    if situation.credentials.uid == 0 && !arguments.dry_run {
        unseen_ends::look(&policy, &situation.host);
    }
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
            match sweep.table(file, &expiry) {
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
    known.pace().expiry
}

struct Sweep<'a> {
    policy: &'a Policy,
    uid: u32,
    host: &'a OsStr,
    dry_run: bool,
    /// What is to be printed as JSON at the end, where that was asked for.
    json: Option<Vec<Value>>,
}

impl Sweep<'_> {
    /// Ends who is overdue in one table. Says whether all of them have gone.
    fn table(&mut self, file: &ListedFile, expiry: &Expiry) -> Result<bool, KeeperError> {
        match (file.table(), file.place()) {
            (Some(table), _) => self.table_of_agent(file, table, expiry),
            (None, Some(place)) => self.lock_file(file, &place, expiry),
            (None, None) => Ok(true),
        }
    }

    fn lock_file(
        &mut self,
        file: &ListedFile,
        place: &LockPath<'_>,
        expiry: &Expiry,
    ) -> Result<bool, KeeperError> {
        let survey = Survey::of(place)?;
        let Some(open) = LockFile::open_to_read(place)? else { return Ok(true) };
        let mut all_gone = true;
        for overdue in expiry::overdue(&open, &survey.holders, expiry, SystemTime::now())? {
            if self.dry_run {
                self.show(file, &overdue);
            } else {
                let fate = expiry::end(&open, &overdue, expiry)?;
                all_gone &= fate.has_left();
                self.tell(file, &overdue, fate);
            }
        }
        Ok(all_gone)
    }

    fn table_of_agent(
        &mut self,
        file: &ListedFile,
        table: &str,
        expiry: &Expiry,
    ) -> Result<bool, KeeperError> {
        if self.dry_run {
            let overdue = memory::overdue(&agent::survey(table)?.holders, expiry).into_iter();
            // Of other hosts each sweeps its own.
            for overdue in overdue.filter(|overdue| overdue.elsewhere.is_none()) {
                let may_be_signalled = self.uid == 0 || overdue.holder.uid == Some(self.uid);
                self.show(file, &Overdue { may_be_signalled, ..overdue });
            }
            return Ok(true);
        }
        let Expiry { after, grace, kill } = *expiry;
        let sweep = message::Sweep { table: table.to_owned(), after, grace, kill };
        Ok(Client::connect()?.expire(sweep, &mut |overdue, fate| self.tell(file, overdue, fate))?)
    }

    /// Says who would be ended.
    fn show(&mut self, file: &ListedFile, overdue: &Overdue) {
        match &mut self.json {
            Some(seen) => seen.push(to_json(file, overdue, None)),
            None => drop(print(&would_end(file, overdue))),
        }
    }

    /// Says what has become of somebody, and logs it.
    fn tell(&mut self, file: &ListedFile, overdue: &Overdue, fate: Fate) {
        match &mut self.json {
            Some(seen) => seen.push(to_json(file, overdue, Some(fate))),
            None => stream::complain(&expired::describe(&file.title(), file.path(), overdue, fate)),
        }
        self.log(file, overdue, fate);
    }

    fn log(&self, file: &ListedFile, overdue: &Overdue, fate: Fate) {
        let event = Event::now(Kind::Expired, "expire", self.uid, self.host);
        let event = journal::expired(event, &file.title(), overdue, fate);
        for (_, log) in self.policy.logs() {
            let _ = journal::sink(log, self.host).write(&event);
        }
    }
}

fn would_end(file: &ListedFile, overdue: &Overdue) -> String {
    let repository = visible(file.title());
    let who = expired::who(overdue);
    match overdue.job {
        Ok(_) if overdue.may_be_signalled => format!("{repository}: would end {who}\n"),
        Ok(_) => format!("{repository}: could not end {who}, which belongs to another user\n"),
        Err(doubt) => format!("{repository}: would not end {who}: {}\n", expired::why_not(doubt)),
    }
}

fn to_json(file: &ListedFile, overdue: &Overdue, fate: Option<Fate>) -> Value {
    let (fate, signal) = match fate {
        None if overdue.can_be_ended() => ("would-end", None),
        None if overdue.job.is_ok() => ("not-permitted", None),
        None | Some(Fate::NotProved(_)) => ("not-proved", None),
        Some(Fate::Ended(signal, _)) => ("ended", Some(signal.as_str())),
        Some(Fate::LeftOthers(signal)) => ("left-others", Some(signal.as_str())),
        Some(Fate::HadLeft) => ("had-left", None),
        Some(Fate::NotPermitted) => ("not-permitted", None),
        Some(Fate::Survived) => ("survived", None),
        Some(Fate::Noticed) => ("noticed", None),
        Some(Fate::NotOverdueThere) => ("not-overdue-there", None),
    };
    json!({
        "repository": file.name,
        "member": file.member,
        "path": file.path().map(visible),
        "pid": overdue.pid,
        "uid": overdue.holder.uid,
        "command": overdue.holder.command,
        "slots": overdue.slots,
        "overdue_seconds": overdue.by.as_secs_f64(),
        "fate": fate,
        "signal": signal,
    })
}
