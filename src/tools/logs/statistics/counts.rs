//! Counts of a log.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

use serde::Serialize;

use super::{
    Closing, Distribution, Ends, Joiner, LaunchOutcome, Launched, MINUTE, Reading, Run, Sink, Usage,
    joiner::LATE, usage::step_for,
};
use crate::{
    launch::log::event::{Event, Kind},
    policy::Hours,
};

/// How many repositories that the policy does not have are counted by name, and how many rules.
const MOST_REPOSITORIES: usize = 400;

/// How many users, groups and commands.
const MOST_NAMES: usize = 100_000;

/// Why a launch was refused, and whether that was enforced.
pub type Reason = (&'static str, bool);

#[derive(Debug, Default)]
pub struct Repository {
    /// The launches that it gave slots to, and those that it blocked.
    pub cell: Cell,
    /// The waits of launches that started; 0 for those that did not wait.
    pub waits: Distribution,
    /// How long programs ran whose end is known.
    pub runs: Distribution,
    /// The interval before each start, if there is one table.
    pub gaps: Distribution,
    /// How many slots of it were in use.
    pub usage: Usage,
    /// How many launches it refused, or would have.
    pub refusals: BTreeMap<Reason, u64>,
    /// Overdue holders that were ended or had just left.
    pub expired: u64,
    started: Option<u64>,
}

impl Repository {
    /// How many would have been refused if everything were enforced.
    pub fn would_refuse(&self) -> u64 {
        self.refusals.iter().filter(|((_, is_enforced), _)| !is_enforced).map(|(_, count)| count).sum()
    }

    /// How many came too soon.
    pub fn too_soon(&self) -> u64 {
        self.refusals.get(&("too-soon", true)).copied().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Rule {
    /// Launches that started under it.
    pub started: u64,
    /// Launches that it refused, by a denial or by the limit of a claim.
    pub refused: u64,
    /// Refusals by the rule itself.
    pub denied: u64,
    /// What it would have refused if it were enforced.
    #[serde(rename = "would_be_refused")]
    pub would_refuse: u64,
}

/// A user, a group or a command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Party {
    /// The launches.
    pub cell: Cell,
    /// What would have been refused if everything were enforced.
    pub would_refuse: u64,
}

/// Everything that was counted.
#[derive(Debug)]
pub struct Counts {
    hours: Hours,
    /// All launches.
    pub all: Cell,
    /// By name.
    pub repositories: Bounded<String, Repository>,
    /// By name.
    pub rules: Bounded<String, Rule>,
    /// By the user's number.
    pub users: Bounded<u32, Party>,
    /// By the group's number, if the log has the groups.
    pub groups: Bounded<u32, Party>,
    /// By name.
    pub commands: Bounded<String, Party>,
    /// Refusals by the day of the week, Monday first, and the hour.
    pub refused: [[u64; 24]; 7],
    /// Waits, in the same way.
    pub waited: [[u64; 24]; 7],
    /// The waits of launches that started.
    pub waits: Distribution,
    /// How long programs ran whose end is known.
    pub runs: Distribution,
    /// How well ends are known.
    pub ends: Ends,
    /// Refusals without a repository, and those that would have been.
    pub refusals: BTreeMap<Reason, u64>,
    /// Launches that were started although something would have refused them, were it enforced.
    pub would_refuse: u64,
    /// Launches that came too soon after another.
    pub too_soon: u64,
    /// Overdue holders that ended.
    pub expired: u64,
    /// Launches of which the log has only user and command.
    pub untold: u64,
    /// Facts about the log itself.
    pub closing: Closing,
    /// When each process was last started although something would have refused it.
    would_be_refused: HashMap<(String, i32), u64>,
    first: Option<u64>,
    step: u64,
}

impl Counts {
    /// Empty. `hours` determines the hour of an event; these repositories and rules are always counted by
    /// name.
    pub fn new<'n>(
        hours: Hours,
        repositories: impl Iterator<Item = &'n str>,
        rules: impl Iterator<Item = &'n str>,
    ) -> Self {
        let mut counts = Self {
            hours,
            all: Cell::default(),
            repositories: Bounded::of(MOST_REPOSITORIES),
            rules: Bounded::of(MOST_REPOSITORIES),
            users: Bounded::of(MOST_NAMES),
            groups: Bounded::of(MOST_NAMES),
            commands: Bounded::of(MOST_NAMES),
            refused: [[0; 24]; 7],
            waited: [[0; 24]; 7],
            waits: Distribution::default(),
            runs: Distribution::default(),
            ends: Ends::default(),
            refusals: BTreeMap::new(),
            would_refuse: 0,
            too_soon: 0,
            expired: 0,
            untold: 0,
            closing: Closing::default(),
            would_be_refused: HashMap::new(),
            first: None,
            step: MINUTE,
        };
        repositories.for_each(|name| counts.repositories.keep(name.to_owned()));
        rules.for_each(|name| counts.rules.keep(name.to_owned()));
        counts
    }

    /// After the last event.
    pub fn close(&mut self, closing: Closing) {
        if let Some((begin, end)) = closing.span {
            self.step = step_for(begin, end);
            let step = self.step;
            self.repositories.values_mut().for_each(|repository| {
                repository.usage.close(end);
                repository.usage.timeline.widen(step);
            });
        }
        self.closing = closing;
    }

    /// How long the log is, in microseconds.
    pub fn span(&self) -> u64 {
        self.closing.span.map_or(0, |(begin, end)| end - begin)
    }

    /// How long the steps of its timelines are.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Makes steps longer, if the log has become longer.
    fn pass(&mut self, at: u64) {
        let first = self.first.map_or(at, |first| first.min(at));
        self.first = Some(first);
        if at / self.step - first / self.step >= 360 {
            self.step = step_for(first, at);
            let step = self.step;
            self.repositories.values_mut().for_each(|repository| repository.usage.timeline.widen(step));
        }
    }

    fn count(&mut self, launch: &Launched<'_>) {
        let Launched { event, at, fate, .. } = *launch;
        let wait = launch.wait();
        self.all.add(fate, wait, None);
        self.users.entry(&event.uid).cell.add(fate, wait, None);
        for gid in event.launch.iter().flat_map(|launch| &launch.groups) {
            self.groups.entry(gid).cell.add(fate, wait, None);
        }
        self.commands.entry(event.command.as_str()).cell.add(fate, wait, None);
        self.untold += u64::from(event.launch.is_none());
        let (day, hour) = (self.hours.weekday_at(at), self.hours.at(at));
        self.refused[day][hour] += u64::from(!fate.has_started());
        self.waited[day][hour] += u64::from(fate == LaunchOutcome::Waited);
    }

    fn started(&mut self, launch: &Launched<'_>) {
        let (at, wait, fate, step) = (launch.at, launch.wait(), launch.fate, self.step);
        self.waits.add(wait);
        for rule in &launch.event.rules {
            self.rules.entry(rule.as_str()).started += 1;
        }
        let mut counted: Vec<&str> = Vec::new();
        for name in launch.event.names_of_repositories() {
            if counted.contains(&name) {
                continue;
            }
            counted.push(name);
            let repository = self.repositories.entry(name);
            repository.cell.add(fate, wait, None);
            repository.waits.add(wait);
            let of = repository.usage.timeline.at(at, step);
            of.started += 1;
            of.waited += u64::from(fate == LaunchOutcome::Waited);
            let has_one =
                launch.event.tables.iter().all(|table| table.repository != name || table.member.is_none());
            if has_one && let Some(before) = repository.started.replace(at) {
                repository.gaps.add(at.saturating_sub(before));
            }
        }
        for taken in launch.taken {
            self.repositories.entry(taken.repository).usage.take(taken, at, step);
        }
    }

    fn refused(&mut self, launch: &Launched<'_>) {
        let Launched { event, at, fate, .. } = *launch;
        let (wait, reason, step) = (launch.wait(), reason(event), self.step);
        self.too_soon += u64::from(event.event == Kind::TooSoon);
        let is_denied = event.status.as_deref() == Some("denied");
        for rule in &event.rules {
            let rule = self.rules.entry(rule.as_str());
            rule.refused += 1;
            rule.denied += u64::from(is_denied);
        }
        if event.repositories.is_empty() {
            *self.refusals.entry(reason).or_default() += 1;
        }
        for name in repositories_of(event) {
            let repository = self.repositories.entry(name);
            repository.cell.add(fate, wait, None);
            *repository.refusals.entry(reason).or_default() += 1;
            repository.usage.timeline.at(at, step).refused += 1;
            for table in event.tables.iter().filter(|table| table.repository == name) {
                repository.usage.see(table, at, step);
            }
        }
    }

    fn would_be_refused(&mut self, event: &Event, at: u64) {
        // One launch may have two such events: by a rule, and by limits.
        let process = (event.host.clone(), event.pid);
        if self.would_be_refused.len() >= MOST_NAMES {
            self.would_be_refused.clear();
        }
        let before = self.would_be_refused.insert(process, at);
        if before.is_none_or(|before| at.saturating_sub(before) > LATE) {
            self.would_refuse += 1;
            self.users.entry(&event.uid).would_refuse += 1;
            self.commands.entry(event.command.as_str()).would_refuse += 1;
        }
        let reason = reason(event);
        if event.repositories.is_empty() {
            *self.refusals.entry(reason).or_default() += 1;
        }
        for name in repositories_of(event) {
            *self.repositories.entry(name).refusals.entry(reason).or_default() += 1;
        }
        for rule in &event.rules {
            self.rules.entry(rule.as_str()).would_refuse += 1;
        }
    }
}

/// The repositories of an event, each once, however many of their members it names.
fn repositories_of(event: &Event) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in event.names_of_repositories().map(without_member) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Sink for Counts {
    fn launched(&mut self, launch: &Launched<'_>) {
        self.pass(launch.at);
        // What the process becomes next is another launch. In a log with replay, the event of this one may be
        // before it, in the same millisecond.
        let process = (launch.event.host.clone(), launch.event.pid);
        let is_own = |before: u64| !launch.event.tables.is_empty() && before / 1000 == launch.at / 1000;
        if self.would_be_refused.get(&process).is_some_and(|before| !is_own(*before)) {
            self.would_be_refused.remove(&process);
        }
        self.count(launch);
        if launch.fate.has_started() {
            self.started(launch);
        } else {
            self.refused(launch);
        }
    }

    fn freed(&mut self, table: u32, repository: &str, at: u64) {
        self.repositories.entry(repository).usage.free(table, at);
    }

    fn ended(&mut self, run: &Run) {
        self.pass(run.began);
        self.pass(run.to);
        self.ends.add(run);
        // The duration is known if the end is.
        let ran = run.length();
        if let Some(ran) = ran {
            self.runs.add(ran);
        }
        let step = self.step;
        let mut counted: Vec<&str> = Vec::new();
        for held in &run.slots {
            let repository = self.repositories.entry(held.repository.as_ref());
            repository.usage.hold(held, run, step);
            if !counted.contains(&held.repository.as_ref())
                && let Some(ran) = ran
            {
                counted.push(held.repository.as_ref());
                repository.runs.add(ran);
            }
        }
    }

    fn noted(&mut self, event: &Event, at: u64) {
        self.pass(at);
        match event.event {
            Kind::WouldRefuse => self.would_be_refused(event, at),
            Kind::Expired if event.has_left() => {
                self.expired += 1;
                for name in event.names_of_repositories() {
                    self.repositories.entry(without_member(name)).expired += 1;
                }
            }
            Kind::Expired
            | Kind::Evicted
            | Kind::Started
            | Kind::Refused
            | Kind::Waited
            | Kind::Ended
            | Kind::TooSoon
            | Kind::Measured => {}
        }
    }
}

/// The repository of `seats [ann]`, as events of ended holders have it.
pub(crate) fn without_member(name: &str) -> &str {
    name.split(" [").next().unwrap_or(name)
}

/// Why a launch was refused, and whether it really was.
fn reason(event: &Event) -> Reason {
    let why = match (event.event, event.status.as_deref()) {
        (Kind::TooSoon, _) => "too-soon",
        (_, Some("timed out")) => "timed-out",
        (_, Some("unmatched")) => "unmatched",
        _ if event.repositories.is_empty() => "denied",
        _ => "full",
    };
    (why, event.event != Kind::WouldRefuse)
}

/// The figures of a log: events in, counts out.
pub struct Statistics {
    joiner: Joiner,
    counts: Counts,
}

impl Statistics {
    /// For a log that was not read yet.
    pub fn new(reading: Reading, counts: Counts) -> Self {
        Self { joiner: Joiner::new(reading), counts }
    }

    /// One event more. Releases one that is no longer needed.
    pub fn see(&mut self, event: Event) -> Option<Event> {
        self.joiner.see(event, &mut self.counts)
    }

    pub fn finish(mut self) -> Counts {
        let closing = self.joiner.finish(&mut self.counts);
        self.counts.close(closing);
        self.counts
    }
}

// Launches, counted by outcome.

/// Some launches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cell {
    pub launches: u64,
    /// Started without a wait.
    pub at_once: u64,
    /// Started after one.
    pub waited: u64,
    /// Not started, including launches whose wait timed out.
    pub refused: u64,
    /// Those whose wait timed out.
    pub timed_out: u64,
    /// The sum of all waits, in microseconds.
    pub wait: u64,
    /// Refused, and started in the log.
    pub newly_refused: u64,
    /// Started, and refused in the log.
    pub newly_started: u64,
}

impl Cell {
    /// Adds one launch.
    pub fn add(&mut self, fate: LaunchOutcome, wait: u64, then: Option<LaunchOutcome>) {
        self.launches += 1;
        match fate {
            LaunchOutcome::AtOnce => self.at_once += 1,
            LaunchOutcome::Waited => self.waited += 1,
            LaunchOutcome::Refused | LaunchOutcome::TimedOut => self.refused += 1,
        }
        self.timed_out += u64::from(fate == LaunchOutcome::TimedOut);
        self.wait = self.wait.saturating_add(wait);
        if let Some(then) = then {
            self.newly_refused += u64::from(then.has_started() && !fate.has_started());
            self.newly_started += u64::from(!then.has_started() && fate.has_started());
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        let Self { launches, at_once, waited, refused, timed_out, wait, newly_refused, newly_started } =
            other;
        self.launches += launches;
        self.at_once += at_once;
        self.waited += waited;
        self.refused += refused;
        self.timed_out += timed_out;
        self.wait = self.wait.saturating_add(*wait);
        self.newly_refused += newly_refused;
        self.newly_started += newly_started;
    }

    /// The mean of the waits, in microseconds: of launches that waited, whatever came of it.
    pub fn mean_wait(&self) -> u64 {
        self.wait.checked_div(self.waited + self.timed_out).unwrap_or(0)
    }

    /// How many started.
    pub fn started(&self) -> u64 {
        self.at_once + self.waited
    }
}

// A map of names with a bound, because users who may append to a log can invent names. Names beyond the bound
// are counted as "others".

/// Values by name, and one value for all further names.
#[derive(Debug)]
pub struct Bounded<K, V> {
    most: usize,
    named: HashMap<K, V>,
    /// The value of all names that are not stored; none if all are stored.
    pub others: Option<V>,
}

impl<K: Eq + Hash + Ord, V: Default> Bounded<K, V> {
    /// For at most this many names.
    pub fn of(most: usize) -> Self {
        Self { most, named: HashMap::new(), others: None }
    }

    /// The value of a name. The name is copied only once.
    pub fn entry<Q>(&mut self, name: &Q) -> &mut V
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if !self.named.contains_key(name) {
            if self.named.len() >= self.most {
                return self.others.get_or_insert_default();
            }
            self.named.insert(name.to_owned(), V::default());
        }
        self.named.get_mut(name).unwrap_or_else(|| unreachable!("it was put there"))
    }

    /// The value of a name that is stored even beyond the bound.
    pub fn keep(&mut self, name: K) {
        self.named.entry(name).or_default();
    }

    /// The value of a name that is kept.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, name: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.named.get(name)
    }

    /// All names with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut all: Vec<(&K, &V)> = self.named.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }

    /// All values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.named.values_mut().chain(&mut self.others)
    }

    /// How many names are kept.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use jiff::tz::TimeZone;

    use super::*;

    /// A launch that would have been refused by a rule and by limits counts once. A later one whose process
    /// has the same number is another launch, however many there were in between.
    #[test]
    fn each_launch_that_would_be_refused_counts_once() {
        let mut counts = Counts::new(Hours::in_zone(TimeZone::UTC), [].into_iter(), [].into_iter());
        let mut event = Event::now(Kind::WouldRefuse, "matlab", 7, OsStr::new("ws17"));
        let most = i32::try_from(MOST_NAMES).expect("a number") + 5;
        for (day, pids) in [(1, 1..=1), (1, 1..=1), (2, 1..=1), (3, 1..=most), (4, 1..=1)] {
            for pid in pids {
                event.pid = pid;
                counts.noted(&event, day * 86_400_000_000);
            }
        }
        let expected = u64::try_from(most).expect("a number") + 3;
        assert_eq!((counts.would_refuse, counts.users.entry(&7).would_refuse), (expected, expected));
    }

    /// A program that executes rungate becomes another launch, at once and with the same process number.
    #[test]
    fn a_launch_by_exec_is_another_one() {
        let mut counts = Counts::new(Hours::in_zone(TimeZone::UTC), [].into_iter(), [].into_iter());
        let event = |kind| Event::now(kind, "matlab", 7, OsStr::new("ws17"));
        let (would_refuse, started) = (event(Kind::WouldRefuse), event(Kind::Started));
        let (at, fate) = (86_400_000_000, LaunchOutcome::AtOnce);
        for number in 0..2 {
            counts.noted(&would_refuse, at);
            counts.noted(&would_refuse, at);
            counts.launched(&Launched { number, event: &started, at, arrived: at, fate, taken: &[] });
        }
        assert_eq!((counts.would_refuse, counts.all.launches), (2, 2));
    }

    /// A launch that is refused at once waits for nothing, and one that gives up has waited.
    #[test]
    fn the_mean_wait_is_of_those_that_waited() {
        let minute = 60_000_000;
        let mut cell = Cell::default();
        cell.add(LaunchOutcome::Waited, minute, None);
        assert_eq!(cell.mean_wait(), minute);
        for _ in 0..99 {
            cell.add(LaunchOutcome::Refused, 0, None);
        }
        assert_eq!(cell.mean_wait(), minute);
        let mut sum = Cell::default();
        for _ in 0..9 {
            sum.add(LaunchOutcome::TimedOut, 11 * minute, None);
        }
        sum.merge(&cell);
        assert_eq!((sum.mean_wait(), sum.refused, sum.timed_out), (10 * minute, 108, 9));
        assert_eq!(Cell::default().mean_wait(), 0);
    }
}
