//! The launches that run now, as far as they can be seen: each with what a policy asks of it.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::Timestamp;

use crate::{
    keeper::file::holder::Holder,
    launch::{
        program::Program,
        situation::{Situation, SystemNames},
    },
    policy::{Policy, Request},
    sys::{accounts, credentials, process},
    text::{escape::visible, table::Table},
    tools::{
        policy::rehearsal,
        shared::{listed_file::ListedFile, repositories},
    },
};

struct Running {
    pid: i32,
    uid: u32,
    groups: Vec<u32>,
    command: OsString,
    arguments: Vec<OsString>,
    program: Program,
    directory: PathBuf,
    environment: Vec<OsString>,
    since: Option<SystemTime>,
}

/// All of them, in the order in which they came.
pub(super) struct Present<'s> {
    situation: &'s Situation,
    running: Vec<Running>,
}

impl<'s> Present<'s> {
    /// Those who hold slots of a policy.
    pub(super) fn of(policy: &Policy, situation: &'s Situation) -> Self {
        let repositories = repositories::wanted(policy, situation, &[]).unwrap_or_default();
        let surveys = repositories.iter().flat_map(|repository| &repository.files).map(ListedFile::survey);
        let mut running: Vec<Running> = Vec::new();
        for holder in surveys.filter_map(Result::ok).flat_map(|survey| survey.holders) {
            let is_known = running.iter().any(|known| Some(known.pid) == holder.pid);
            running.extend(Running::of(&holder, policy, situation).filter(|_| !is_known));
        }
        running.sort_by_key(|running| running.since);
        Self { situation, running }
    }

    /// Who of them would be refused by one policy and not by another, in lines for people; nothing where
    /// nobody would.
    pub(super) fn refused_by(&self, new: &Policy, old: &Policy) -> String {
        let (by_new, by_old) = (self.judge(new), self.judge(old));
        let all = self.running.iter().zip(by_new).zip(by_old);
        let newly: Vec<(&Running, String)> = all
            .filter(|(_, by_old)| by_old.is_none())
            .filter_map(|((running, why), _)| why.map(|why| (running, why)))
            .collect();
        if newly.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["  USER", ">PID", "COMMAND", "WHY"]);
        for (running, why) in &newly {
            let user = format!("  {}", accounts::shown(running.uid));
            table.row([user, running.pid.to_string(), visible(&running.command), visible(why)]);
        }
        format!(
            "Of {} that run now, {} would be refused if they came anew. None is ended.\n{}",
            self.running.len(),
            newly.len(),
            table.render()
        )
    }

    fn judge(&self, policy: &Policy) -> Vec<Option<String>> {
        let now = Timestamp::now();
        let variables = |running| move |name: &str| Running::variable(running, name);
        let environments: Vec<_> = self.running.iter().map(variables).collect();
        let pairs = self.running.iter().zip(&environments);
        let requests: Vec<Request<'_>> =
            pairs.map(|(running, environment)| request(running, environment, self.situation, now)).collect();
        rehearsal::refused(policy, &requests)
    }
}

fn request<'a>(
    running: &'a Running,
    environment: &'a dyn Fn(&str) -> Option<OsString>,
    situation: &'a Situation,
    now: Timestamp,
) -> Request<'a> {
    Request {
        typed: &running.command,
        arguments: &running.arguments,
        path: &running.program.path,
        canonical: &running.program.canonical,
        uid: running.uid,
        gids: &running.groups,
        host: &situation.host,
        directory: &running.directory,
        environment,
        now,
        cpus: &credentials::processors,
        runtime: Path::new("/run/user/rungate"),
        names: &SystemNames,
    }
}

impl Running {
    /// A holder who is on this host, and of whom is known what it started.
    fn of(holder: &Holder, policy: &Policy, situation: &Situation) -> Option<Self> {
        let (pid, uid) = (holder.pid?, holder.uid?);
        let command = OsString::from(holder.command.as_ref()?);
        if holder.host.as_ref().is_some_and(|host| **host != *situation.host) {
            return None;
        }
        let account = accounts::account_of_uid(uid).ok()??;
        let directory = process::directory(pid).unwrap_or_default();
        let program = match policy.executable(&command) {
            Some(program) => Program::supposed(program.as_os_str(), &directory),
            None => Program::find(&command, &directory)
                .unwrap_or_else(|_| Program::supposed(&command, &directory)),
        };
        Some(Self {
            pid,
            uid,
            groups: accounts::groups_of(&account).ok()?,
            arguments: arguments(process::command_line(pid), &command),
            environment: process::environment(pid),
            command,
            program,
            directory,
            since: holder.since,
        })
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let value = |entry: &OsString| {
            let value = entry.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(OsStr::from_bytes(value).to_owned())
        };
        self.environment.iter().find_map(value)
    }
}

/// What follows the command in a command line; before it there may be an interpreter.
fn arguments(words: Vec<OsString>, command: &OsStr) -> Vec<OsString> {
    let is_it = |word: &OsString| Path::new(word).file_name() == Path::new(command).file_name();
    let at = words.iter().position(is_it).unwrap_or_default();
    words.into_iter().skip(at + 1).collect()
}
