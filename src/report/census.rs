//! Counts what the events of a log tell, hour by hour.

use std::collections::{BTreeMap, HashMap};

use crate::{
    log::event::{Event, Kind},
    policy::Hours,
    simulation::{
        fate::Fate,
        tally::{Cell, named},
        waits::Waits,
    },
    terms::runs::Runs,
};

/// In microseconds.
pub const HOUR: u64 = 3_600_000_000;

/// What happened within an hour of one repository.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hour {
    /// Slots times microseconds.
    pub slot_time: u64,
    /// How many slots were held at most.
    pub most: u64,
    /// The limit, where the log tells it.
    pub limit: u64,
    /// How many idle slots were kept for some, at most, as far as the log tells.
    pub kept: u64,
    /// How many slots were lent to those who started.
    pub lent: u64,
    /// How many launches started.
    pub started: u64,
    /// How many were refused.
    pub refused: u64,
    /// How many waited.
    pub waited: u64,
}

/// One repository.
#[derive(Debug, Default)]
pub struct Repository {
    /// By the hour since 1970.
    pub hours: BTreeMap<u64, Hour>,
    /// All hours.
    pub cell: Cell,
    /// How long those waited that started.
    pub waits: Waits,
    /// How long they ran.
    pub runs: Waits,
    /// How long after another each of them started, where all members have one table.
    pub gaps: Waits,
    started: Option<u64>,
    held: u64,
    since: u64,
}

/// What a rule refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule {
    /// By its own word, or by a limit that it claims.
    pub refused: u64,
    /// Of these by its own word.
    pub denied: u64,
    /// What it would have refused, were it enforced.
    pub would_refuse: u64,
}

/// Everything.
#[derive(Debug)]
pub struct Census {
    hours: Hours,
    /// When it began and ended, in microseconds since 1970.
    pub span: Option<(u64, u64)>,
    /// All launches.
    pub all: Cell,
    /// By name.
    pub repositories: BTreeMap<String, Repository>,
    /// By name.
    pub rules: BTreeMap<String, Rule>,
    /// By the user's number.
    pub users: HashMap<u32, Cell>,
    /// By the group's number, where the log tells the groups.
    pub groups: HashMap<u32, Cell>,
    /// By name.
    pub commands: HashMap<String, Cell>,
    /// Refusals by the day of the week, Monday first, and the hour.
    pub refused: [[u64; 24]; 7],
    /// Waits likewise.
    pub waited: [[u64; 24]; 7],
    /// How long those waited that started.
    pub waits: Waits,
    /// How long they ran, where that is known.
    pub runs: Waits,
    /// Launches that were started although something would have refused them, were it enforced.
    pub unenforced: u64,
    /// Holders that were overdue and ended.
    pub expired: u64,
    hosts: HashMap<String, u32>,
    running: HashMap<Process, Running>,
    waiting: HashMap<Process, u64>,
}

/// A host, by number, and the number of a process.
type Process = (u32, i32);

#[derive(Debug)]
struct Running {
    began: u64,
    slots: Vec<(String, u64)>,
}

impl Census {
    /// Of nothing yet; hours are told as `hours` says.
    pub fn new(hours: Hours) -> Self {
        Self {
            hours,
            span: None,
            all: Cell::default(),
            repositories: BTreeMap::new(),
            rules: BTreeMap::new(),
            users: HashMap::new(),
            groups: HashMap::new(),
            commands: HashMap::new(),
            refused: [[0; 24]; 7],
            waited: [[0; 24]; 7],
            waits: Waits::default(),
            runs: Waits::default(),
            unenforced: 0,
            expired: 0,
            hosts: HashMap::new(),
            running: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// One event more.
    pub fn see(&mut self, event: &Event) {
        let now = event.micros();
        let (begin, end) = self.span.unwrap_or((now, now));
        self.span = Some((begin.min(now), end.max(now)));
        let process = (self.number_of_host(&event.host), event.pid);
        match event.event {
            Kind::Started => self.start(process, event, now),
            Kind::Refused | Kind::TooSoon => self.refuse(process, event, now),
            Kind::Waited => {
                self.waiting.insert(process, micros_of(event));
            }
            Kind::Ended => self.end(process, event.between.map_or(now, |(from, to)| from.midpoint(to))),
            Kind::Expired if event.has_left() => {
                self.expired += 1;
                if let Some(holder) = event.holder {
                    self.end((process.0, holder), now);
                }
            }
            Kind::Expired => {}
            Kind::WouldRefuse => {
                self.unenforced += 1;
                for rule in &event.rules {
                    named(&mut self.rules, rule).would_refuse += 1;
                }
            }
        }
    }

    /// After the last event: what still runs was held until then.
    pub fn close(&mut self) {
        let Some((_, end)) = self.span else { return };
        self.repositories.values_mut().for_each(|repository| repository.pass(end));
    }

    fn number_of_host(&mut self, name: &str) -> u32 {
        if let Some(number) = self.hosts.get(name) {
            return *number;
        }
        let number = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        self.hosts.insert(name.to_owned(), number);
        number
    }

    fn start(&mut self, process: Process, event: &Event, now: u64) {
        // A number that was given anew: the one before has ended without being seen.
        self.end(process, now);
        let wait = self.waiting.remove(&process).unwrap_or(0);
        let fate = if wait > 0 { Fate::Waited } else { Fate::AtOnce };
        self.count(event, now, fate, wait);
        self.waits.add(wait);
        let mut slots = Vec::new();
        for text in &event.repositories {
            let (name, taken) = text.split_once('=').unwrap_or((text, "1"));
            let table = event.tables.iter().find(|table| table.repository == name);
            let count = Runs::parse(taken).map_or(1, |runs| runs.count());
            let repository = named(&mut self.repositories, name);
            repository.pass(now);
            repository.cell.add(fate, wait, None);
            repository.waits.add(wait);
            if table.is_none_or(|table| !table.shared) {
                repository.held += count;
                slots.push((name.to_owned(), count));
            }
            // Where the table belongs to a member, its use is not that of all.
            let seen = table.filter(|table| table.member.is_none());
            if table.is_none() || seen.is_some() {
                repository.pace(now);
            }
            let held = repository.held.max(seen.and_then(|seen| seen.used).unwrap_or(0));
            let hour = repository.hours.entry(now / HOUR).or_default();
            hour.started += 1;
            hour.waited += u64::from(wait > 0);
            hour.most = hour.most.max(held);
            hour.lent += table.map_or(0, |table| table.lent);
            hour.kept = hour.kept.max(seen.map_or(0, |seen| seen.kept));
            hour.limit = hour.limit.max(seen.map_or(0, |seen| seen.limit));
        }
        self.running.insert(process, Running { began: now, slots });
    }

    fn refuse(&mut self, process: Process, event: &Event, now: u64) {
        self.waiting.remove(&process);
        let fate = if event.seconds.is_some() { Fate::TimedOut } else { Fate::Refused };
        let wait = micros_of(event);
        self.count(event, now, fate, wait);
        let is_denied = event.status.as_deref() == Some("denied");
        for rule in &event.rules {
            let rule = named(&mut self.rules, rule);
            rule.refused += 1;
            rule.denied += u64::from(is_denied);
        }
        for name in event.names_of_repositories() {
            let seen = event.tables.iter().find(|table| table.repository == name && table.member.is_none());
            let repository = named(&mut self.repositories, name);
            repository.cell.add(fate, wait, None);
            let hour = repository.hours.entry(now / HOUR).or_default();
            hour.refused += 1;
            hour.kept = hour.kept.max(seen.map_or(0, |table| table.kept));
            hour.limit = hour.limit.max(seen.map_or(0, |table| table.limit));
        }
    }

    fn count(&mut self, event: &Event, now: u64, fate: Fate, wait: u64) {
        self.all.add(fate, wait, None);
        self.users.entry(event.uid).or_default().add(fate, wait, None);
        for gid in event.launch.iter().flat_map(|launch| &launch.groups) {
            self.groups.entry(*gid).or_default().add(fate, wait, None);
        }
        match self.commands.get_mut(&event.command) {
            Some(cell) => cell.add(fate, wait, None),
            None => self.commands.entry(event.command.clone()).or_default().add(fate, wait, None),
        }
        let (day, hour) = (self.hours.weekday_at(now), self.hours.at(now));
        self.refused[day][hour] += u64::from(!fate.has_started());
        self.waited[day][hour] += u64::from(wait > 0);
    }

    fn end(&mut self, process: Process, now: u64) {
        let Some(running) = self.running.remove(&process) else { return };
        let ran = now.saturating_sub(running.began);
        self.runs.add(ran);
        for (name, count) in running.slots {
            let repository = named(&mut self.repositories, &name);
            repository.pass(now);
            repository.held = repository.held.saturating_sub(count);
            repository.runs.add(ran);
        }
    }
}

impl Repository {
    /// A launch starts.
    fn pace(&mut self, now: u64) {
        if let Some(before) = self.started.replace(now) {
            self.gaps.add(now.saturating_sub(before));
        }
    }

    /// Counts what was held until now, hour by hour.
    fn pass(&mut self, now: u64) {
        let mut since = self.since;
        self.since = now.max(since);
        if self.held == 0 || since == 0 {
            return;
        }
        while since < now {
            let end = ((since / HOUR + 1) * HOUR).min(now);
            let hour = self.hours.entry(since / HOUR).or_default();
            hour.slot_time += self.held * (end - since);
            hour.most = hour.most.max(self.held);
            since = end;
        }
    }

    /// The highest limit that the log tells.
    pub fn limit(&self) -> u64 {
        self.hours.values().map(|hour| hour.limit).max().unwrap_or(0)
    }

    /// The most slots that were held at once.
    pub fn most(&self) -> u64 {
        self.hours.values().map(|hour| hour.most).max().unwrap_or(0)
    }
}

fn micros_of(event: &Event) -> u64 {
    event.duration().map_or(0, |duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
