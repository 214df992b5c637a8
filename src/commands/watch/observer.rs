//! Looks at the repositories again and again. Which files there are and what the policy says is found out
//! anew only now and then: a look itself costs no more than opening the files and asking the kernel.

use std::{
    cmp::Reverse,
    ffi::OsString,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    cli::ListingArguments,
    commands::{
        shared::{listed_file::ListedFile, repositories, situation::Situation},
        watch::snapshot::{Entry, Process, Snapshot},
    },
    error::Error,
    escape::visible,
    keeper::{
        file::{holder::Holder, survey::Survey},
        line::Waiter,
    },
    output::clock::Clock,
    policy::Policy,
    sys::accounts::NameCache,
};

/// From one search for files to the next.
const SEARCH: Duration = Duration::from_secs(5);

/// What is looked at, and with what.
pub(super) struct Observer {
    situation: Situation,
    named_policy: Option<PathBuf>,
    wanted: Vec<OsString>,
    policy: Policy,
    files: Vec<ListedFile>,
    searched: Instant,
    names: NameCache,
    clock: Clock,
    notice: Option<String>,
}

impl Observer {
    /// Reads the policy and finds the files.
    pub(super) fn new(situation: Situation, arguments: &ListingArguments) -> Result<Self, Error> {
        let named_policy = arguments.policy.policy.clone();
        let policy = situation.load_silently(named_policy.clone())?;
        let wanted = arguments.repositories.clone();
        let files = files(&policy, &situation, &wanted)?;
        Ok(Self {
            situation,
            named_policy,
            wanted,
            policy,
            files,
            searched: Instant::now(),
            names: NameCache::new(),
            clock: Clock::now(),
            notice: None,
        })
    }

    /// Looks at all of them.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        if self.searched.elapsed() >= SEARCH {
            self.search();
        }
        self.clock = self.clock.again();
        Snapshot {
            entries: self.files.iter().map(|file| self.entry(file)).collect(),
            time: self.clock.time(self.clock.system_time()),
            notice: self.notice.clone(),
        }
    }

    /// Where the policy has faults now, or has lost a repository that was asked for, the old one is shown on.
    fn search(&mut self) {
        self.searched = Instant::now();
        if self.policy.is_stale() {
            match self.situation.load_silently(self.named_policy.clone()) {
                Ok(policy) => self.policy = policy,
                Err(_) => {
                    self.notice = Some("the policy has faults now: rungate policy check".to_owned());
                    return;
                }
            }
        }
        match files(&self.policy, &self.situation, &self.wanted) {
            Ok(files) => (self.files, self.notice) = (files, None),
            Err(_) => self.notice = Some("the policy has lost a repository that is shown here".to_owned()),
        }
    }

    fn entry(&self, file: &ListedFile) -> Entry {
        let entry = Entry {
            title: visible(file.title()),
            limit: file.limit(),
            limit_note: file.limit_note(),
            queue: file.queue,
            error: file.failure().map(ToString::to_string),
            ..Entry::default()
        };
        match file.glance() {
            Err(error) => Entry { error: Some(error.to_string()), ..entry },
            Ok(survey) => self.surveyed(entry, file, &survey),
        }
    }

    fn surveyed(&self, entry: Entry, file: &ListedFile, survey: &Survey) -> Entry {
        let mut holders: Vec<Process> =
            survey.holders.iter().map(|holder| self.holder(file, holder)).collect();
        holders.sort_by_key(|holder| Reverse(holder.age));
        let waiting = survey.waiting.iter().enumerate().map(|(index, waiter)| self.waiter(index + 1, waiter));
        Entry {
            kept: file.kept_idle(survey),
            kept_note: file.kept_note(survey),
            used: survey.used,
            holders,
            waiting: waiting.collect(),
            ..entry
        }
    }

    fn holder(&self, file: &ListedFile, holder: &Holder) -> Process {
        let (first, last) = holder.slots;
        let called = file.names_of(holder.slots).join(",");
        let called = if called.is_empty() { called } else { format!("={}", visible(called)) };
        let number = if first == last { first.to_string() } else { format!("{first}-{last}") };
        Process {
            place: number + &called,
            pid: holder.pid.map_or_else(unknown, |pid| pid.to_string()),
            user: holder.uid.map_or_else(unknown, |uid| visible(self.names.user(uid))),
            age: holder.age(self.clock.system_time()),
            command: holder.command.as_ref().map_or_else(|| "(unknown holder)".to_owned(), visible),
            note: holder.rule.as_ref().map_or_else(String::new, visible),
        }
    }

    fn waiter(&self, place: usize, waiter: &Waiter) -> Process {
        Process {
            place: place.to_string(),
            pid: waiter.pid.map_or_else(unknown, |pid| pid.to_string()),
            user: waiter.uid().map_or_else(unknown, |uid| visible(self.names.user(uid))),
            age: waiter.waited(),
            command: waiter.command().map_or_else(unknown, visible),
            note: format!("waits for use below {}", waiter.class.reach),
        }
    }
}

fn files(policy: &Policy, situation: &Situation, wanted: &[OsString]) -> Result<Vec<ListedFile>, Error> {
    let repositories = repositories::wanted(policy, situation, wanted)?;
    Ok(repositories.into_iter().flat_map(|repository| repository.files).collect())
}

fn unknown() -> String {
    "?".to_owned()
}
