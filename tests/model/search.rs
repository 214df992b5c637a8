//! Visits every state that can be reached, the nearest first, so that the story of what goes wrong is as
//! short as can be. Two things are asked: that no step breaks a promise; and that from every state there is a
//! way to one in which every launch has come to its end, which says that there is neither a deadlock nor a
//! circle that cannot be left.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasherDefault, Hasher},
};

use super::{
    plan::Plan,
    protocol::{Broken, Taken, steps_from},
    state::{Packed, State},
};

/// What came of a search.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// How many steps the farthest state is away.
    pub(super) depth: usize,
    /// The most states of one plan.
    pub(super) largest: usize,
    /// The names of all steps that were taken.
    pub(super) taken: BTreeSet<&'static str>,
    /// The first broken promise, and how it came to it.
    pub(super) violation: Option<(Broken, Vec<Taken>)>,
}

impl Report {
    /// Adds what another search found.
    pub(super) fn add(&mut self, other: Report) {
        self.states += other.states;
        self.steps += other.steps;
        self.depth = self.depth.max(other.depth);
        self.largest = self.largest.max(other.states);
        self.taken.extend(other.taken);
        self.violation = self.violation.take().or(other.violation);
    }

    /// The violation, step by step.
    pub(super) fn story(&self) -> String {
        let Some((broken, steps)) = &self.violation else { return "nothing is broken".to_owned() };
        let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
        format!("{broken:?} after\n  {}", steps.join("\n  "))
    }
}

/// Quick, and good enough for what nobody chooses.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.as_chunks::<8>().0 {
            self.0 = (self.0 ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 32;
        }
    }

    /// The length of an array is always the same.
    fn write_usize(&mut self, _: usize) {}
}

/// The states found so far, each with the step that first led to it.
#[derive(Default)]
struct Found {
    numbers: HashMap<Packed, u32, BuildHasherDefault<Mixed>>,
    states: Vec<State>,
    from: Vec<Option<(u32, Taken)>>,
    depths: Vec<usize>,
    /// Each step, from its end to its beginning.
    back: Vec<Vec<u32>>,
}

impl Found {
    fn add(&mut self, state: State, from: Option<(u32, Taken)>, depth: usize) -> u32 {
        let number = u32::try_from(self.states.len()).expect("states can be numbered");
        let known = *self.numbers.entry(state.packed()).or_insert(number);
        if known != number {
            return known;
        }
        self.states.push(state);
        self.from.push(from);
        self.depths.push(depth);
        self.back.push(Vec::new());
        number
    }

    fn steps_to(&self, number: u32) -> Vec<Taken> {
        let mut steps = Vec::new();
        let mut at = number;
        while let Some((before, taken)) = self.from[at as usize] {
            steps.push(taken);
            at = before;
        }
        steps.reverse();
        steps
    }

    /// The nearest state from which no way leads to the end.
    fn stuck(&self, plan: &Plan) -> Option<u32> {
        let is_over = |(_, state): &(u32, &State)| plan.is_over(state);
        let over = (0_u32..).zip(&self.states).filter(is_over).map(|(number, _)| number);
        let mut todo: Vec<u32> = over.collect();
        let mut ends = vec![false; self.states.len()];
        while let Some(number) = todo.pop() {
            if !std::mem::replace(&mut ends[number as usize], true) {
                todo.extend(&self.back[number as usize]);
            }
        }
        (0_u32..).zip(ends).find(|(_, ends)| !ends).map(|(number, _)| number)
    }
}

/// Visits every state of a plan, from the one in which nobody has started.
pub(super) fn explore(plan: &Plan) -> Report {
    explore_from(plan, plan.first())
}

/// Visits every state that can follow.
pub(super) fn explore_from(plan: &Plan, first: State) -> Report {
    let mut found = Found::default();
    let mut report = Report::default();
    found.add(first, None, 0);
    let mut next = 0_u32;
    while let Some(state) = found.states.get(next as usize).copied() {
        let depth = found.depths[next as usize] + 1;
        for (taken, result) in steps_from(plan, &state) {
            report.steps += 1;
            report.taken.insert(taken.step);
            match result {
                Ok(after) => {
                    let number = found.add(after, Some((next, taken)), depth);
                    found.back[number as usize].push(next);
                }
                Err(broken) => {
                    let steps = found.steps_to(next).into_iter().chain([taken]).collect();
                    report.violation.get_or_insert((broken, steps));
                }
            }
        }
        if report.violation.is_some() {
            break;
        }
        next += 1;
    }
    report.states = found.states.len();
    report.depth = found.depths.iter().copied().max().unwrap_or(0);
    if report.violation.is_none() {
        report.violation = found.stuck(plan).map(|number| (Broken::NobodyWakes, found.steps_to(number)));
    }
    report
}
