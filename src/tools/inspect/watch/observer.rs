//! Takes snapshots of the repositories repeatedly. It finds new files and reads the policy only every few
//! seconds: a refresh only opens the files and queries the kernel.

use std::{
    cmp::Reverse,
    ffi::OsString,
    time::{Duration, Instant},
};

use crate::{
    cli::ListingArguments,
    judge::terms::Queue,
    keeper::{Holder, TableSnapshot, Waiter},
    launch::Situation,
    policy::Policy,
    sys::NameCache,
    text::{Clock, Error, visible},
    tools::shared::{Free, ListedFile, WaitsFor, repositories},
};
use jiff::Timestamp;

/// The interval between two searches for files.
const SEARCH: Duration = Duration::from_secs(5);

/// The inputs of the observer.
pub(super) struct Observer {
    situation: Situation,
    wanted: Vec<OsString>,
    policy: Policy,
    /// Whether the policy had faults when it was last read.
    is_faulty: bool,
    /// Whether a policy without faults was read before.
    had_sound_policy: bool,
    /// Which policy gives the limits.
    generation: u16,
    files: Vec<ListedFile>,
    searched: Instant,
    names: NameCache,
    clock: Clock,
    notice: Option<String>,
}

impl Observer {
    /// Reads the policy and finds the files. With faults in the policy, it uses the repositories of
    /// [`repositories::despite_faults`].
    pub(super) fn new(situation: Situation, arguments: &ListingArguments) -> Result<Self, Error> {
        let wanted = arguments.repositories.clone();
        let (policy, error) = situation.salvage_silently();
        let files = match &error {
            None => files(&policy, &situation, &wanted)?,
            Some(_) => files_despite_faults(&policy, &situation, &wanted),
        };
        Ok(Self {
            situation,
            wanted,
            generation: policy.generation(Timestamp::now()),
            policy,
            is_faulty: error.is_some(),
            had_sound_policy: error.is_none(),
            files,
            searched: Instant::now(),
            names: NameCache::new(),
            clock: Clock::now(),
            notice: error.map(|error| error.to_string()),
        })
    }

    /// Takes a snapshot of all of them.
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

    /// Reads the policy again if it has changed or had faults. While it has faults, the last policy without
    /// faults is shown; without one, the unaffected repositories.
    fn search(&mut self) {
        self.searched = Instant::now();
        if self.is_faulty || self.policy.is_stale() {
            let (policy, error) = self.situation.salvage_silently();
            self.is_faulty = error.is_some();
            self.notice = error.map(|error| error.to_string());
            if !self.is_faulty || !self.had_sound_policy {
                self.policy = policy;
            }
            self.had_sound_policy |= !self.is_faulty;
        }
        self.generation = self.policy.generation(Timestamp::now());
        if !self.had_sound_policy {
            self.files = files_despite_faults(&self.policy, &self.situation, &self.wanted);
            return;
        }
        match files(&self.policy, &self.situation, &self.wanted) {
            Ok(files) => self.files = files,
            Err(_) if self.is_faulty => return,
            Err(error) => return self.notice = Some(error.to_string()),
        }
        if !self.is_faulty {
            self.notice = None;
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

    fn surveyed(&self, entry: Entry, file: &ListedFile, survey: &TableSnapshot) -> Entry {
        let mut holders: Vec<Process> =
            survey.holders.iter().map(|holder| self.holder(file, holder)).collect();
        holders.sort_by_key(|holder| Reverse(holder.age));
        let waiting = survey.waiting.iter().enumerate().map(|(index, waiter)| {
            let waits_for = WaitsFor::of(survey, index, file.limit()).show(&self.names);
            self.waiter(index + 1, waiter, waits_for)
        });
        let free = file.free(survey, self.generation);
        let notes = [file.kept_note(survey), free.and_then(Free::note)];
        let outside = file.outside();
        let beside = [ListedFile::note_of(outside.as_ref()), ListedFile::linger_note(survey)];
        Entry {
            outside: outside.and_then(Result::ok).map_or(0, |outside| outside.slots),
            beside: beside.into_iter().flatten().collect(),
            kept: file.kept_idle(survey) + free.map_or(0, |free| free.for_queue),
            kept_note: notes.into_iter().flatten().reduce(|one, other| format!("{one}, {other}")),
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
            user: self.user(holder.uid, holder.elsewhere()),
            age: holder.age(self.clock.system_time()),
            command: holder.command.as_ref().map_or_else(|| "(unknown holder)".to_owned(), visible),
            note: holder.rule.as_ref().map_or_else(String::new, visible),
        }
    }

    /// `ann`, or `ann@lab2` on another host.
    fn user(&self, uid: Option<u32>, elsewhere: Option<&str>) -> String {
        let user = uid.map_or_else(unknown, |uid| visible(self.names.user(uid)));
        elsewhere.map_or_else(|| user.clone(), |host| format!("{user}@{}", visible(host)))
    }

    fn waiter(&self, place: usize, waiter: &Waiter, note: String) -> Process {
        Process {
            place: place.to_string(),
            pid: waiter.process.pid.map_or_else(unknown, |pid| pid.to_string()),
            user: self.user(waiter.uid(), waiter.process.host.as_deref()),
            age: waiter.waited(),
            command: waiter.command().map_or_else(unknown, visible),
            note,
        }
    }
}

fn files(policy: &Policy, situation: &Situation, wanted: &[OsString]) -> Result<Vec<ListedFile>, Error> {
    let repositories = repositories::wanted(policy, situation, wanted)?;
    Ok(repositories.into_iter().flat_map(|repository| repository.files).collect())
}

fn files_despite_faults(policy: &Policy, situation: &Situation, wanted: &[OsString]) -> Vec<ListedFile> {
    let repositories = repositories::called_despite_faults(policy, situation, wanted);
    repositories.into_iter().flat_map(|repository| repository.files).collect()
}

fn unknown() -> String {
    "?".to_owned()
}

// All repositories at one moment, in printable texts and numbers: names are looked up, and control
// characters are escaped.

/// The visible state.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) entries: Vec<Entry>,
    /// The time of day.
    pub(super) time: String,
    /// The faults of the policy, so that this may be incomplete or outdated.
    pub(super) notice: Option<String>,
}

/// A lock file.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// `seats [ann]`
    pub(super) title: String,
    pub(super) limit: Option<u64>,
    /// Why it is not the limit of all.
    pub(super) limit_note: Option<String>,
    /// How many idle slots are kept for some users, or for waiting launches.
    pub(super) kept: u64,
    /// The same, with the users that they are for.
    pub(super) kept_note: Option<String>,
    /// How many slots are in use outside rungate.
    pub(super) outside: u64,
    /// The same for people, and how many slots linger.
    pub(super) beside: Vec<String>,
    /// Why it could not be checked.
    pub(super) error: Option<String>,
    pub(super) used: u64,
    /// Longest first.
    pub(super) holders: Vec<Process>,
    /// In the order of the queue.
    pub(super) waiting: Vec<Process>,
    /// The maximum length of its queue.
    pub(super) queue: Queue,
}

/// A holder or a waiter.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    /// Its slots, or its place in the queue.
    pub(super) place: String,
    pub(super) pid: String,
    pub(super) user: String,
    /// For how long.
    pub(super) age: Option<Duration>,
    pub(super) command: String,
    /// The rule that required its slots, or what it waits for.
    pub(super) note: String,
}

impl Entry {
    /// How long the oldest holder has held its slot.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.holders.iter().filter_map(|holder| holder.age).max()
    }

    /// Use in relation to the limit, where 1000 is full. Without a limit it is never full, and with limit 0
    /// always.
    pub(super) fn fullness(&self) -> u64 {
        match self.limit {
            None => 0,
            Some(limit) => (self.used.saturating_mul(1000)).checked_div(limit).unwrap_or(1000),
        }
    }
}

impl Process {
    /// Whether its user or its command has this in its name; the text is in lower case.
    pub(super) fn is_about(&self, text: &str) -> bool {
        [&self.user, &self.command, &self.pid].iter().any(|name| name.to_lowercase().contains(text))
    }
}
