//! Adds up the results: launch by launch, and how many slots of each repository are in use for how long.

use super::{Launch, OfRepository, Outcome, Tally};
use crate::{acquire::Refusal, policy::Hours, tools::logs::statistics::LaunchOutcome};

/// Called for each launch with its number and its outcome.
pub type See<'s> = dyn FnMut(usize, Outcome) + 's;

/// The totals of one simulated world.
pub(super) struct Accumulator<'w, 's> {
    hours: Hours,
    see: &'w mut See<'s>,
    /// The names of the repositories, by number, and how much of each is in use.
    names: Vec<String>,
    uses: Vec<Use>,
    tally: Tally,
    /// Whether the log has ended.
    is_over: bool,
}

/// How much of a repository is in use.
#[derive(Clone, Default)]
struct Use {
    of: OfRepository,
    held: u64,
    since: u64,
}

impl Use {
    fn change(&mut self, now: u64, by: i64) {
        self.of.slot_time += u128::from(self.held) * u128::from(now - self.since);
        self.since = now;
        self.held = self.held.saturating_add_signed(by);
        self.of.most = self.of.most.max(self.held);
    }
}

impl<'w, 's> Accumulator<'w, 's> {
    /// Empty, from this moment on.
    pub(super) fn new(names: &[String], begin: u64, hours: Hours, see: &'w mut See<'s>) -> Self {
        let uses = vec![Use { since: begin, ..Use::default() }; names.len()];
        Self { hours, see, names: names.to_vec(), uses, tally: Tally::default(), is_over: false }
    }

    /// The outcome of the launch with this number, and its wait.
    pub(super) fn came_to(&mut self, number: usize, launch: Launch, fate: LaunchOutcome, wait: u64) {
        let outcome = Outcome { fate, wait, then: Some(launch.fate()) };
        self.tally.add(launch.kind, self.hours.at(launch.arrived()), outcome);
        (self.see)(number, outcome);
    }

    /// A repository gave slots to a launch that had waited this long, under this limit.
    pub(super) fn given(&mut self, repository: usize, limit: u64, wait: u64) {
        let of = &mut self.uses[repository].of;
        of.limit = of.limit.max(limit);
        of.cell.add(if wait == 0 { LaunchOutcome::AtOnce } else { LaunchOutcome::Waited }, wait, None);
        of.waits.add(wait);
    }

    /// This many more, or fewer, of its slots are in use.
    pub(super) fn change(&mut self, repository: usize, now: u64, by: i64) {
        if !self.is_over {
            self.uses[repository].change(now, by);
        }
    }

    /// The duration of the program was sampled.
    pub(super) fn count_drawn(&mut self) {
        self.tally.drawn += 1;
    }

    /// A launch was refused for lack of slots.
    pub(super) fn refused(&mut self, refusal: &Refusal<'_>) {
        let mut named: Vec<&str> = Vec::new();
        let mut rules: Vec<&str> = Vec::new();
        for refused in refusal.claims() {
            let (name, amount) = (refused.claim.repository.as_ref(), &refused.claim.amount);
            if !named.contains(&name) {
                named.push(name);
                if let Some(number) = self.names.iter().position(|known| known == name) {
                    let of = &mut self.uses[number].of;
                    of.limit = of.limit.max(amount.effective_limit());
                    of.cell.add(LaunchOutcome::Refused, 0, None);
                }
            }
            let of_policy = refused.claim.origins.iter().filter(|origin| origin.place.is_some());
            rules.extend(of_policy.map(|origin| &*origin.rule));
        }
        rules.sort_unstable();
        rules.dedup();
        self.count_rules(rules.into_iter());
    }

    /// These rules refused a launch.
    pub(super) fn count_rules<'r>(&mut self, rules: impl Iterator<Item = &'r str>) {
        for rule in rules {
            match self.tally.rules.get_mut(rule) {
                Some(count) => *count += 1,
                None => drop(self.tally.rules.insert(rule.to_owned(), 1)),
            }
        }
    }

    /// The log ends: outcomes of launches still count, but the use does not.
    pub(super) fn end_of_log(&mut self, now: u64) {
        self.uses.iter_mut().for_each(|of| of.change(now, 0));
        self.is_over = true;
    }

    /// The sum of all.
    pub(super) fn close(mut self) -> Tally {
        let used = self.names.into_iter().zip(self.uses).filter(|(_, of)| of.of.cell.launches > 0);
        self.tally.repositories = used.map(|(name, of)| (name, of.of)).collect();
        self.tally
    }
}
