//! From the events of a log to the launches that it tells of: starts are joined with their waits and their
//! ends. Where nobody saw an end, the next start in the same slot proves that it was over by then. Who sees
//! an end writes it down a little later: what others saw of the table meanwhile tells whether they came
//! before it or after.

mod slots;

use std::{collections::HashMap, mem};

use super::{
    dice::Dice,
    durations::Durations,
    fate::Fate,
    in_order::{InOrder, LATE},
    kind::Kinds,
    tables::{Process, Tables},
    tally::{Outcome, Tally, named},
    traffic::{Ends, Launch, Traffic},
};
use crate::{
    log::event::{Event, Kind as EventKind},
    policy::{Hours, Looks},
    terms::runs::Runs,
};

/// Bounds that are no wider than this are as good as exact, in microseconds.
const EXACT: u64 = 1_000_000;

/// How a log is to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// What the policy looks at: the rest need not be told apart.
    pub looks: Looks,
    /// Whether each host has lock files of its own.
    pub is_by_host: bool,
    /// What the draws begin with.
    pub seed: u64,
}

/// The launches of the events so far.
pub struct Recording {
    reading: Reading,
    hours: Hours,
    kinds: Kinds,
    names: HashMap<String, u32>,
    commands: Vec<u32>,
    launches: Vec<Launch>,
    running: HashMap<Process, Running>,
    waited: HashMap<Process, Waited>,
    /// Who had each slot last.
    tables: Tables,
    pending: InOrder,
    durations: Durations,
    dice: Dice,
    ends: Ends,
    then: Tally,
    first: Option<u64>,
    last: u64,
    untold: u64,
    of_each_host: Option<String>,
}

struct Running {
    launch: usize,
    began: u64,
    /// When one of its slots was taken again.
    taken: Option<u64>,
    slots: Vec<(u32, Runs)>,
}

struct Waited {
    micros: u64,
    arrived: Option<u64>,
}

impl Recording {
    /// Of a log of which nothing was seen yet. Hours are told as `hours` says.
    pub fn new(reading: Reading, hours: Hours) -> Self {
        Self {
            reading,
            hours,
            kinds: Kinds::default(),
            names: HashMap::new(),
            commands: Vec::new(),
            launches: Vec::new(),
            running: HashMap::new(),
            waited: HashMap::new(),
            tables: Tables::default(),
            pending: InOrder::default(),
            durations: Durations::default(),
            dice: Dice::new(reading.seed),
            ends: Ends::default(),
            then: Tally::default(),
            first: None,
            last: 0,
            untold: 0,
            of_each_host: None,
        }
    }

    /// One event more. Events of one process come in the order in which they happened.
    /// Gives back one that is no longer needed.
    pub fn see(&mut self, event: Event) -> Option<Event> {
        self.pending.add(event);
        let mut spent = None;
        while let Some(event) = self.pending.due() {
            self.tables.explain_looks(event.micros().saturating_sub(2 * LATE), &mut self.launches);
            self.happened(&event);
            spent = Some(event);
        }
        spent
    }

    fn happened(&mut self, event: &Event) {
        let process = (self.name(&event.host), event.pid);
        self.first.get_or_insert(event.micros());
        self.last = self.last.max(event.micros());
        match event.event {
            EventKind::Started => self.start(process, event),
            EventKind::Refused | EventKind::TooSoon => self.refuse(process, event),
            EventKind::Waited => {
                let micros = micros_of(event);
                self.waited.insert(process, Waited { micros, arrived: event.arrived });
            }
            EventKind::Ended => {
                let (from, to) = event.between.unwrap_or((event.micros(), event.micros()));
                self.end(process, from, to);
            }
            EventKind::Expired if event.has_left() => {
                if let Some(holder) = event.holder {
                    self.end((process.0, holder), event.micros(), event.micros());
                }
            }
            EventKind::Expired | EventKind::WouldRefuse => {}
        }
    }

    /// All of it.
    pub fn finish(mut self) -> Traffic {
        for event in mem::take(&mut self.pending).into_rest() {
            self.happened(&event);
        }
        let mut running: Vec<(Process, Running)> = self.running.drain().collect();
        running.sort_unstable_by_key(|(_, running)| running.launch);
        for (_, running) in running {
            match running.taken {
                Some(taken) => self.settle(&running, taken, true),
                None => {
                    self.launches[running.launch].set_lasted(self.last.saturating_sub(running.began));
                    self.ends.open += 1;
                }
            }
        }
        self.tables.explain_looks(u64::MAX, &mut self.launches);
        self.launches.sort_by_key(|launch| launch.arrived());
        Traffic {
            launches: self.launches,
            kinds: self.kinds.into_list(),
            commands: self.commands,
            durations: self.durations,
            ends: self.ends,
            then: self.then,
            end: self.last,
            untold: self.untold,
            of_each_host: self.of_each_host,
        }
    }

    fn start(&mut self, process: Process, event: &Event) {
        let began = event.micros();
        // The number was given to another process: the one before has ended.
        if let Some(before) = self.running.remove(&process) {
            let end = before.taken.unwrap_or(began).min(began);
            self.tables.give_back(before.launch, &before.slots);
            self.settle(&before, end, true);
        }
        let waited = self.waited.remove(&process);
        let arrived = waited.as_ref().map_or(event.arrived, |waited| waited.arrived.or(event.arrived));
        let arrived = arrived.or_else(|| Some(began.saturating_sub(waited.as_ref()?.micros)));
        let fate = if waited.is_some() { Fate::Waited } else { Fate::AtOnce };
        let arrived = arrived.filter(|_| fate == Fate::Waited).unwrap_or(began);
        let slots = self.take(process, began, event);
        self.count_use(event);
        self.look(began, event);
        let launch = self.push(event, arrived, fate, began.saturating_sub(arrived));
        self.running.insert(process, Running { launch, began, taken: None, slots });
    }

    fn refuse(&mut self, process: Process, event: &Event) {
        self.waited.remove(&process);
        let decided = event.micros();
        let waited = micros_of(event);
        let arrived = event.arrived.unwrap_or(decided.saturating_sub(waited)).min(decided);
        let fate = if event.seconds.is_some() { Fate::TimedOut } else { Fate::Refused };
        for rule in &event.rules {
            *named(&mut self.then.rules, rule) += 1;
        }
        for name in event.names_of_repositories() {
            let repository = named(&mut self.then.repositories, name);
            repository.cell.add(fate, decided.saturating_sub(arrived), None);
        }
        self.count_use(event);
        self.look(decided, event);
        let wait = if fate == Fate::TimedOut { decided.saturating_sub(arrived) } else { 0 };
        self.push(event, arrived, fate, wait);
    }

    fn push(&mut self, event: &Event, arrived: u64, fate: Fate, wait: u64) -> usize {
        self.untold += u64::from(event.launch.is_none());
        if fate.has_started() {
            for name in event.names_of_repositories() {
                let repository = named(&mut self.then.repositories, name);
                repository.cell.add(fate, wait, None);
                repository.waits.add(wait);
            }
        }
        let command = self.name(&event.command);
        let kind = self.kinds.number(event, self.reading.looks, self.reading.is_by_host);
        if self.commands.len() <= kind as usize {
            self.commands.resize(kind as usize + 1, command);
        }
        self.commands[kind as usize] = command;
        let hour = self.hours.at(arrived);
        self.then.add(kind, hour, Outcome { fate, wait, then: None });
        self.launches.push(Launch::new(arrived, kind, fate, None));
        self.launches.len() - 1
    }

    /// What the log says of limits and use.
    fn count_use(&mut self, event: &Event) {
        for table in &event.tables {
            let repository = named(&mut self.then.repositories, &table.repository);
            repository.limit = repository.limit.max(table.limit);
            repository.most = repository.most.max(table.used.unwrap_or(0));
        }
    }

    fn end(&mut self, process: Process, from: u64, to: u64) {
        let Some(running) = self.running.remove(&process) else { return };
        let is_bounded = to.saturating_sub(from) > EXACT;
        let end = if is_bounded { from + (to - from) / 2 } else { to };
        // Whoever takes a slot knows before anybody else that it is free. Only in tables of different hosts
        // one slot can have two holders for longer.
        let end = match running.taken {
            Some(taken) if from.saturating_sub(taken) > LATE => {
                self.note_two_holders(&running);
                end
            }
            Some(taken) => end.min(taken),
            None => end,
        };
        self.tables.give_back(running.launch, &running.slots);
        self.settle(&running, end, is_bounded);
    }

    /// A launch ended then.
    fn settle(&mut self, running: &Running, end: u64, is_bounded: bool) {
        let lasted = end.saturating_sub(running.began);
        let launch = &mut self.launches[running.launch];
        launch.set_lasted(lasted);
        let kind = launch.kind;
        if is_bounded {
            self.ends.bounded += 1;
        } else {
            self.ends.exact += 1;
        }
        let command = self.commands[kind as usize];
        self.durations.add(self.kinds.uid(kind), command, lasted, &mut self.dice);
    }

    /// The number of a name.
    fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.insert(name.to_owned(), number);
        number
    }
}

fn micros_of(event: &Event) -> u64 {
    event.duration().map_or(0, |duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
