//! From the events of a log to the launches that it tells of, to be played again. Starts are joined with
//! their waits and ends by the statistics that `report` counts with.

use std::collections::HashMap;

use super::{
    dice::Dice,
    durations::Durations,
    kind::Kinds,
    tally::{OfRepository, Outcome, Tally},
    traffic::{Launch, Traffic},
};
use crate::{
    log::event::Event,
    policy::{Hours, Looks},
    statistics::{
        counts::Counts,
        joiner::{self, End, Joiner, Launched, Run, Sink},
    },
};

/// Bounds of an end that are no wider than this are good enough: `rungate end --overdue` looks every five
/// minutes.
const NARROW: u64 = 600_000_000;

/// How a log is to be read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What the policy looks at: the rest need not be told apart.
    pub looks: Looks,
    /// What is known of the tables.
    pub tables: joiner::Reading,
    /// What the draws begin with.
    pub seed: u64,
    /// More launches than these are counted, and cannot be played again; nor can more than a tenth of it of
    /// different kinds.
    pub most: Option<usize>,
}

/// The launches of the events so far.
pub struct Recording {
    joiner: Joiner,
    launches: Launches,
}

struct Launches {
    reading: Reading,
    hours: Hours,
    kinds: Kinds,
    names: HashMap<String, u32>,
    commands: Vec<u32>,
    came: Vec<Launch>,
    durations: Durations,
    dice: Dice,
    counts: Counts,
    then: Tally,
    vague: HashMap<usize, u64>,
    is_too_long: bool,
}

impl Recording {
    /// Of a log of which nothing was seen yet. Hours are told as `hours` says.
    pub fn new(reading: Reading, hours: Hours) -> Self {
        let counts = Counts::new(hours.clone(), [].into_iter(), [].into_iter());
        Self::counted(reading, hours, counts)
    }

    /// The same, where what is counted is wanted too.
    pub fn counted(reading: Reading, hours: Hours, counts: Counts) -> Self {
        Self {
            joiner: Joiner::new(reading.tables.clone()),
            launches: Launches {
                hours,
                kinds: Kinds::default(),
                names: HashMap::new(),
                commands: Vec::new(),
                came: Vec::new(),
                durations: Durations::default(),
                dice: Dice::new(reading.seed),
                counts,
                then: Tally::default(),
                vague: HashMap::new(),
                is_too_long: false,
                reading,
            },
        }
    }

    /// One event more. Events of one process come in the order in which they happened.
    /// Gives back one that is no longer needed.
    pub fn see(&mut self, event: Event) -> Option<Event> {
        self.joiner.see(event, &mut self.launches)
    }

    /// All of it.
    pub fn finish(self) -> Traffic {
        self.finish_counted().0.unwrap_or_default()
    }

    /// The launches, where there are not too many, and what was counted.
    pub fn finish_counted(mut self) -> (Option<Traffic>, Counts) {
        let closing = self.joiner.finish(&mut self.launches);
        let is_too_long = self.launches.is_too_long;
        let Launches { kinds, commands, came: mut launches, durations, mut counts, mut then, vague, .. } =
            self.launches;
        counts.close(closing);
        let vague = in_order(&mut launches, vague);
        for (name, of) in counts.repositories.iter() {
            let of = OfRepository {
                cell: of.cell,
                waits: of.waits.clone(),
                limit: of.usage.highest_limit,
                most: of.usage.most().high,
                slot_time: of.usage.slot_time(),
            };
            then.repositories.insert(name.clone(), of);
        }
        let refused = counts.rules.iter().filter(|(_, rule)| rule.refused > 0);
        then.rules = refused.map(|(name, rule)| (name.clone(), rule.refused)).collect();
        let traffic = Traffic {
            launches,
            kinds: kinds.into_list(),
            commands,
            durations,
            ends: counts.ends,
            vague,
            then,
            end: counts.closing.span.map_or(0, |(_, end)| end),
            untold: counts.untold,
            of_each_host: counts.closing.of_each_host.clone(),
        };
        (Some(traffic).filter(|_| !is_too_long), counts)
    }
}

impl Sink for Launches {
    fn launched(&mut self, launch: &Launched<'_>) {
        self.counts.launched(launch);
        let is_much = |most: usize| self.came.len() >= most || self.kinds.len() >= most / 10;
        if self.reading.most.is_some_and(is_much) {
            self.is_too_long = true;
            (self.came, self.kinds, self.then) = (Vec::new(), Kinds::default(), Tally::default());
        }
        if self.is_too_long {
            return;
        }
        let Launched { event, arrived, fate, .. } = *launch;
        let command = self.name(&event.command);
        let kind = self.kinds.number(event, self.reading.looks, self.reading.tables.is_by_host);
        if self.commands.len() <= kind as usize {
            self.commands.resize(kind as usize + 1, command);
        }
        self.commands[kind as usize] = command;
        let hour = self.hours.at(arrived);
        self.then.add(kind, hour, Outcome { fate, wait: launch.wait(), then: None });
        self.came.push(Launch::new(arrived, kind, fate, None));
    }

    fn freed(&mut self, table: u32, repository: &str, at: u64) {
        self.counts.freed(table, repository, at);
    }

    fn ended(&mut self, run: &Run) {
        self.counts.ended(run);
        // Between two looks it ended in the middle; without a look, no later than its slot was free.
        let is_vague = match run.end {
            End::Seen => run.to - run.from > NARROW,
            End::Missed => true,
            End::Running => false,
        };
        let end = if run.end == End::Seen { run.from.midpoint(run.to) } else { run.to };
        let lasted = end.saturating_sub(run.began);
        let Some(launch) = self.came.get_mut(run.launch).filter(|_| !self.is_too_long) else { return };
        launch.set_lasted(lasted);
        if is_vague {
            let shortest = if run.is_bounded { run.from.saturating_sub(run.began) } else { 0 };
            self.vague.insert(run.launch, shortest);
        }
        if is_vague || run.end == End::Running {
            return;
        }
        let kind = launch.kind;
        let command = self.commands[kind as usize];
        self.durations.add(self.kinds.uid(kind), command, lasted, &mut self.dice);
    }

    fn noted(&mut self, event: &Event, at: u64) {
        self.counts.noted(event, at);
    }
}

/// Puts launches in the order in which they came. What is known by their numbers follows them.
fn in_order(launches: &mut [Launch], known: HashMap<usize, u64>) -> HashMap<usize, u64> {
    if known.is_empty() {
        launches.sort_by_key(|launch| launch.arrived());
        return known;
    }
    let mut order: Vec<usize> = (0..launches.len()).collect();
    order.sort_by_key(|number| launches[*number].arrived());
    let sorted: Vec<Launch> = order.iter().map(|number| launches[*number]).collect();
    launches.copy_from_slice(&sorted);
    let places = order.iter().enumerate();
    places.filter_map(|(place, number)| Some((place, *known.get(number)?))).collect()
}

impl Launches {
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
