//! The launches of a log, in order: sixteen bytes for each, so that a year of a large site takes a hundred
//! megabytes.

use std::collections::{BTreeMap, HashMap};

use super::{Kind, Kinds, OfRepository, Outcome, Tally};
use crate::{
    keeper::outside::Line,
    launch::log::event::{Event, Kind as EventKind},
    policy::{Hours, RelevantInputs},
    tools::logs::statistics::{Counts, End, Ends, Joiner, LaunchOutcome, Launched, Run, Sink, joiner},
};

#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// When it came, in microseconds since 1970 (52 bits, so until 2112), the outcome (2 bits), and the upper
    /// bits of how long it ran.
    arrived: u64,
    /// Its kind, by number.
    pub kind: u32,
    /// The lower bits of how long it ran.
    lasted: u32,
}

/// Where the parts of the first field begin, and how long they are.
const FATE: u32 = 10;
const ARRIVED: u32 = 12;
const LATEST: u64 = u64::MAX >> ARRIVED;

/// A length of time in 42 bits. Below this it is in microseconds, which is 25 days; from there on in
/// milliseconds.
const MILLIS: u64 = 1 << 41;

/// It did not run, so its duration is unknown.
const UNKNOWN: u64 = (1 << 42) - 1;

impl Launch {
    /// A launch that came then, and ran this long, if known.
    pub fn new(arrived: u64, kind: u32, fate: LaunchOutcome, lasted: Option<u64>) -> Self {
        let mut launch =
            Self { arrived: (arrived.min(LATEST) << ARRIVED) | ((fate as u64) << FATE), kind, lasted: 0 };
        launch.set_packed(lasted.map_or(UNKNOWN, packed));
        launch
    }

    /// When it came, in microseconds since 1970.
    pub fn arrived(self) -> u64 {
        self.arrived >> ARRIVED
    }

    pub fn fate(self) -> LaunchOutcome {
        LaunchOutcome::ALL[usize::try_from((self.arrived >> FATE) & 3).unwrap_or(0)]
    }

    /// How long it ran, in microseconds.
    pub fn lasted(self) -> Option<u64> {
        match ((self.arrived & ((1 << FATE) - 1)) << 32) | u64::from(self.lasted) {
            UNKNOWN => None,
            micros @ 0..MILLIS => Some(micros),
            millis => Some((millis - MILLIS) * 1000),
        }
    }

    /// Sets how long it ran, at most.
    pub(super) fn set_lasted(&mut self, micros: u64) {
        self.set_packed(packed(micros));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is kept there")]
    fn set_packed(&mut self, length: u64) {
        self.arrived = (self.arrived & !((1 << FATE) - 1)) | (length >> 32);
        self.lasted = length as u32;
    }
}

fn packed(micros: u64) -> u64 {
    if micros < MILLIS { micros } else { (MILLIS + micros / 1000).min(UNKNOWN - 1) }
}

/// The number of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draw {
    /// The seed of the draws.
    pub seed: u64,
    /// How many came before.
    pub number: u64,
    /// Whether programs with an unknown end end at once, instead of as late as possible.
    pub is_short: bool,
}

/// The data of a log that a simulation needs.
#[derive(Debug, Default)]
pub struct Traffic {
    /// In the order in which they came.
    pub launches: Vec<Launch>,
    /// Their kinds, by number.
    pub kinds: Vec<Kind>,
    /// For each kind its command, by number.
    pub commands: Vec<u32>,
    /// How long launches ran.
    pub durations: Durations,
    /// How well the ends are known.
    pub ends: Ends,
    /// For launches with an unknown end, by number, the minimum of how long they ran.
    pub vague: HashMap<usize, u64>,
    /// Their outcomes then.
    pub then: Tally,
    /// The last moment of the log, in microseconds since 1970.
    pub end: u64,
    /// Launches whose facts are not in the log.
    pub untold: u64,
    /// A repository in which two hosts held one slot at the same time, each in its own lock file.
    pub of_each_host: Option<String>,
    /// The use outside rungate, in order of time.
    pub measured: Vec<Measured>,
    /// For each repository, how many of these are in the log.
    pub samples: BTreeMap<String, u64>,
}

/// More lines than these are not kept; samples after them are left out.
const MOST_LINES: usize = 1_000_000;

/// What a host measured as used outside rungate. It counts until the next sample.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Since when it counts, and when its command began, in microseconds since 1970.
    pub at: u64,
    pub began: u64,
    pub repository: String,
    pub host: String,
    pub lines: Vec<Line>,
}

impl Traffic {
    /// When the first launch came.
    pub fn begin(&self) -> u64 {
        self.launches.first().map_or(self.end, |launch| launch.arrived())
    }

    /// The number of days in the log.
    #[expect(clippy::cast_precision_loss, reason = "a share of a microsecond is nobody's wait")]
    pub fn days(&self) -> f64 {
        (self.end.saturating_sub(self.begin()) as f64 / 86_400e6).max(1.0 / 86_400.0)
    }

    /// How long a launch runs: as in the log, or like a similar launch. Returns whether that was sampled.
    pub fn lasts(&self, index: usize, draw: Draw) -> (u64, bool) {
        let launch = self.launches[index];
        if let Some(lasted) = launch.lasted() {
            let shortest = self.vague.get(&index).filter(|_| draw.is_short);
            return (shortest.copied().unwrap_or(lasted), false);
        }
        let mut dice = Dice::of_launch(draw.seed, draw.number, index as u64);
        let kind = launch.kind as usize;
        let drawn = self.durations.draw(self.kinds[kind].uid, self.commands[kind], &mut dice);
        (drawn.unwrap_or(0), true)
    }
}

// From the events of a log to its launches, for the simulation. Starts are joined with their waits and ends
// by the statistics that `report` counts with.

/// Bounds of an end that are no wider than this are good enough: `rungate end --overdue` looks every five
/// minutes.
const NARROW: u64 = 600_000_000;

/// The settings for reading a log.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The facts that the policy uses: others need not be distinguished.
    pub inputs: RelevantInputs,
    /// The known state of the tables.
    pub tables: joiner::Reading,
    /// The seed of the draws.
    pub seed: u64,
    /// The maximum number of launches that can be simulated; more are only counted. The maximum number of
    /// kinds is a tenth of it.
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
    measured: Vec<Measured>,
    lines: usize,
    is_too_long: bool,
}

impl Recording {
    /// For a log that was not read yet. Hours are counted as `hours` says.
    pub fn new(reading: Reading, hours: Hours) -> Self {
        let counts = Counts::new(hours.clone(), [].into_iter(), [].into_iter());
        Self::counted(reading, hours, counts)
    }

    /// The same, with the counts.
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
                measured: Vec::new(),
                lines: 0,
                is_too_long: false,
                reading,
            },
        }
    }

    /// One event more. Events of one process come in the order in which they happened.
    /// Releases one that is no longer needed.
    pub fn see(&mut self, event: Event) -> Option<Event> {
        self.joiner.see(event, &mut self.launches)
    }

    pub fn finish(self) -> Traffic {
        self.finish_counted().0.unwrap_or_default()
    }

    /// The launches, where there are not too many, and what was counted.
    pub fn finish_counted(mut self) -> (Option<Traffic>, Counts) {
        let closing = self.joiner.finish(&mut self.launches);
        let is_too_long = self.launches.is_too_long;
        let Launches { kinds, commands, came: mut launches, durations, mut counts, .. } = self.launches;
        let Launches { mut then, vague, mut measured, .. } = self.launches;
        measured.sort_by_key(|measured| measured.at);
        let mut samples: BTreeMap<String, u64> = BTreeMap::new();
        for of in &measured {
            *samples.entry(of.repository.clone()).or_default() += 1;
        }
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
            measured,
            samples,
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
        let kind = self.kinds.number(event, self.reading.inputs, self.reading.tables.is_by_host);
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
        // An end between two sweeps is assumed to be in the middle; without a sweep, at the time when its
        // slot was known to be free.
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
        if is_vague || run.end == End::Running || !run.is_executed {
            return;
        }
        let kind = launch.kind;
        let command = self.commands[kind as usize];
        self.durations.add(self.kinds.uid(kind), command, lasted, &mut self.dice);
    }

    fn noted(&mut self, event: &Event, at: u64) {
        self.counts.noted(event, at);
        let (Some(lines), Some(name)) = (&event.outside, event.repositories.first()) else { return };
        // An empty sample takes memory too.
        self.lines = self.lines.saturating_add(lines.len() + 1);
        if event.event == EventKind::Measured && self.lines <= MOST_LINES && !self.is_too_long {
            let (repository, host, lines) = (name.clone(), event.host.clone(), lines.clone());
            let took = event.duration().map_or(0, |took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            let began = at.saturating_sub(took);
            self.measured.push(Measured { at, began, repository, host, lines });
        }
    }
}

/// Puts launches in the order in which they came. Data by number follow them.
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

// The durations of launches, to sample from for a launch that was refused in the log and starts under the new
// policy.

/// How many durations are stored for one user with one command, and for one command.
const KEPT: usize = 32;

/// Samples, from the most similar launches to the least.
#[derive(Debug, Default)]
pub struct Durations {
    users: HashMap<(u32, u32), Sample>,
    commands: HashMap<u32, Sample>,
    all: Sample,
}

/// A uniform random sample of many values.
#[derive(Debug, Default)]
struct Sample {
    seen: u64,
    kept: Vec<u64>,
}

impl Sample {
    fn add(&mut self, micros: u64, dice: &mut Dice) {
        self.seen += 1;
        if self.kept.len() < KEPT {
            self.kept.push(micros);
        } else if let Ok(place) = usize::try_from(dice.next_u64() % self.seen)
            && let Some(kept) = self.kept.get_mut(place)
        {
            *kept = micros;
        }
    }

    fn draw(&self, dice: &mut Dice) -> Option<u64> {
        self.kept.get(dice.below(self.kept.len())).copied()
    }
}

impl Durations {
    /// A launch of this user, with this command, ran this long.
    pub fn add(&mut self, uid: u32, command: u32, micros: u64, dice: &mut Dice) {
        self.users.entry((uid, command)).or_default().add(micros, dice);
        self.commands.entry(command).or_default().add(micros, dice);
        self.all.add(micros, dice);
    }

    /// A possible duration: that of a launch of the same user and command, else of the same command, else of
    /// any. None if no end is known at all.
    pub fn draw(&self, uid: u32, command: u32, dice: &mut Dice) -> Option<u64> {
        let of_user = self.users.get(&(uid, command)).and_then(|sample| sample.draw(dice));
        let of_command = || self.commands.get(&command).and_then(|sample| sample.draw(dice));
        of_user.or_else(of_command).or_else(|| self.all.draw(dice))
    }
}

// Numbers that look random and are the same for the same seed, on every machine and in every version.

/// A sequence of them (`SplitMix64`).
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The random number of one launch in one draw. It does not depend on earlier launches, so that two
    /// policies are compared with the same draws.
    pub fn of_launch(seed: u64, draw: u64, launch: u64) -> Self {
        let mut dice = Self(seed ^ draw.wrapping_mul(0xa076_1d64_78bd_642f));
        Self(dice.next_u64() ^ launch.wrapping_mul(0xe703_7ed1_a0b4_28db))
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next_u64() % (count.max(1) as u64)).unwrap_or(0)
    }

    /// From 0 up to 1, exclusive.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::logs::simulation::traffic::*;

    #[test]
    fn a_duration_is_exact_for_weeks_and_good_enough_for_years() {
        const DAY: u64 = 86_400_000_000;
        for (micros, kept) in [
            (0, 0),
            (2_147_483_649, 2_147_483_649),
            (25 * DAY + 1, 25 * DAY + 1),
            (MILLIS - 1, MILLIS - 1),
            (MILLIS, MILLIS / 1000 * 1000),
            (365 * DAY + 999, 365 * DAY),
            (u64::MAX, (MILLIS - 2) * 1000),
        ] {
            let mut launch = Launch::new(1_790_000_000_123_456, 7, LaunchOutcome::TimedOut, Some(micros));
            for _ in 0..2 {
                assert_eq!(launch.lasted(), Some(kept));
                assert_eq!(
                    (launch.arrived(), launch.fate()),
                    (1_790_000_000_123_456, LaunchOutcome::TimedOut)
                );
                assert_eq!(launch.kind, 7);
                launch.set_lasted(1);
                launch.set_lasted(micros);
            }
        }
        assert_eq!(Launch::new(1, 0, LaunchOutcome::Refused, None).lasted(), None);
        // Users can write any time into a log.
        let late = Launch::new(u64::MAX, 0, LaunchOutcome::Waited, Some(1));
        assert_eq!((late.arrived(), late.fate(), late.lasted()), (LATEST, LaunchOutcome::Waited, Some(1)));
        assert_eq!(size_of::<Launch>(), 16);
    }
}
