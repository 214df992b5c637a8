//! The same launches again and again: by other luck, or under other limits. Each world is played by one
//! thread; how many there are at once makes no difference to what comes out.

use std::{
    num::NonZero,
    sync::{Mutex, PoisonError},
    thread,
};

use super::{
    judge::{Accounts, Judge, Remembered, Terms},
    tally::{LONG_WAIT, Outcome, Tally},
    traffic::{Draw, Traffic},
    world::play,
};
use crate::policy::Policy;

/// How often a log is played where durations have to be sampled.
const DRAWS: u64 = 3;

/// What launches are tried under.
#[derive(Clone, Copy)]
pub struct Trial<'t> {
    /// The launches.
    pub traffic: &'t Traffic,
    /// Who the users are.
    pub accounts: &'t (dyn Accounts + Sync),
    /// What is changed about the policy.
    pub terms: Terms,
    /// What the draws begin with.
    pub seed: u64,
}

impl Trial<'_> {
    /// Plays everything once, and calls `see` for each launch.
    pub fn play(&self, policy: &Policy, number: u64, see: &mut dyn FnMut(usize, Outcome)) -> Tally {
        self.draw(policy, Draw { seed: self.seed, number, is_short: false }, see)
    }

    /// Plays everything once, as if each program whose end is unknown had ended at once.
    pub fn play_short(&self, policy: &Policy, see: &mut dyn FnMut(usize, Outcome)) -> Tally {
        self.draw(policy, Draw { seed: self.seed, number: 0, is_short: true }, see)
    }

    fn draw(&self, policy: &Policy, draw: Draw, see: &mut dyn FnMut(usize, Outcome)) -> Tally {
        let people = Remembered::new(self.accounts);
        let mut judge = Judge::new(policy, &people, self.terms);
        play(&mut judge, self.traffic, policy.hours(), draw, see)
    }

    /// Launches that start or not, depending on when programs ended of which the log does not tell it.
    pub fn undecided(&self, policy: &Policy) -> Vec<usize> {
        if self.traffic.vague.is_empty() {
            return Vec::new();
        }
        let mut long = vec![false; self.traffic.launches.len()];
        let mut undecided = Vec::new();
        self.play(policy, 0, &mut |launch, outcome| long[launch] = outcome.fate.has_started());
        self.play_short(policy, &mut |launch, outcome| {
            if long[launch] != outcome.fate.has_started() {
                undecided.push(launch);
            }
        });
        undecided
    }

    /// Plays everything several times, each time with other durations where those are not known; once where
    /// all are.
    pub fn draws(&self, policy: &Policy, see: &mut dyn FnMut(usize, Outcome)) -> Vec<Tally> {
        let first = self.play(policy, 0, see);
        if first.drawn == 0 {
            return vec![first];
        }
        let numbers: Vec<u64> = (1..DRAWS).collect();
        let others = in_parallel(&numbers, |number| self.play(policy, *number, &mut |_, _| {}));
        [first].into_iter().chain(others).collect()
    }
}

/// Does something with each, several at once, and answers in their order.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0..items.len());
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(place) = take() {
            let result = each(&items[place]);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
        }
    };
    let most = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    thread::scope(|scope| {
        for _ in 1..most {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What one limit of a repository comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub limit: u32,
    /// The launches that want some of the repository.
    pub launches: u64,
    /// The share of them that starts at once.
    pub at_once: f64,
    /// The share of them that is refused.
    pub refused: f64,
    /// Waits that half of those that start do not exceed, 95 and 99 percent of them, and the longest, in
    /// microseconds.
    pub waits: [u64; 4],
    /// How many slots are in use on average.
    pub used: f64,
    /// How many at most.
    pub most: u64,
    /// How many waits over five minutes there are on a day.
    pub long_waits: f64,
    /// How many refusals there are on a day.
    pub refusals: f64,
    /// Whether the log tells enough to say so.
    pub is_known: bool,
}

impl Row {
    /// Of a repository, from what was counted.
    #[expect(clippy::cast_precision_loss, reason = "shares")]
    pub fn of(limit: u32, name: &str, tally: &Tally, traffic: &Traffic, is_known: bool) -> Self {
        let of = tally.repositories.get(name).cloned().unwrap_or_default();
        let all = of.cell.launches.max(1) as f64;
        let span = traffic.end.saturating_sub(traffic.begin()).max(1) as f64;
        Self {
            limit,
            launches: of.cell.launches,
            at_once: of.cell.at_once as f64 / all,
            refused: of.cell.refused as f64 / all,
            waits: [50.0, 95.0, 99.0, 100.0].map(|percent| of.waits.percentile(percent)),
            used: of.slot_time as f64 / span,
            most: of.most,
            long_waits: of.waits.at_least(LONG_WAIT) as f64 / traffic.days(),
            refusals: of.cell.refused as f64 / traffic.days(),
            is_known,
        }
    }
}

/// The lowest limit that starts this share at once; none where no limit does. More seats never start fewer,
/// so only a few limits are tried.
pub fn seats_for(share: f64, range: (u32, u32), mut row: impl FnMut(u32) -> Row) -> Option<u32> {
    let (mut low, mut high) = range;
    if row(high).at_once < share {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if row(middle).at_once >= share {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}
