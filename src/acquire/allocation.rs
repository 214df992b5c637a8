//! From the room in every table to one outcome: the first combination of alternatives that is completely
//! free, or everything that blocks the launch. It takes nothing. Launches, explanations and tests use it
//! alike.

use std::time::SystemTime;

use super::{
    Alternative, Blocked, ClaimOnTable, Full, Line, Options, Reason, Refused, Room, TableViews, Unmet, Wants,
    room::room, wants::terms_on,
};
use crate::{
    judge::terms::{Admit, Terms},
    keeper::KeeperError,
};

/// What came out.
pub enum Allocation<'c> {
    /// These are available together. Claims that are not available need not be met.
    Start(Vec<ClaimOnTable<'c>>),
    /// Something blocks the launch.
    Blocked(Blocked<'c>),
    /// Nothing blocks the launch, and there is no room: a process took slots without locking the table. Look
    /// again.
    Disturbed,
}

/// How an alternative can be had, from the best to the worst.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Fit {
    Within,
    /// There is no room within the limit, but it refuses no launch.
    Beyond,
    Blocked,
}

impl<'c> Wants<'c> {
    /// Looks at everything. Tables without a view are shared with an ancestor.
    pub fn deliberate(
        &self,
        views: &mut TableViews<'_>,
        now: SystemTime,
    ) -> Result<Allocation<'c>, KeeperError> {
        let too_soon = self.too_soon(views, now)?;
        if !too_soon.is_empty() {
            return Ok(Allocation::Blocked(Blocked { unmet: too_soon, lines: Vec::new() }));
        }
        let mut picked = Vec::new();
        if Self::choose(&self.demands, views, now, &mut picked)? {
            return Ok(Allocation::Start(picked));
        }
        let blocked = self.blocked(views, now, false)?;
        if !blocked.is_by_the_line_alone() {
            return Ok(Allocation::Blocked(blocked));
        }
        // A launch leaves a queue without locking the table, so a launch ahead may have gone since. None
        // joins meanwhile.
        picked.clear();
        if Self::choose(&self.demands, views, now, &mut picked)? {
            return Ok(Allocation::Start(picked));
        }
        // Slots that are free alone but not together block another claim.
        let blocked = self.blocked(views, now, true)?;
        Ok(if blocked.unmet.is_empty() { Allocation::Disturbed } else { Allocation::Blocked(blocked) })
    }

    /// Demands whose pause is not over. If one of several alternatives pauses, only that one cannot be
    /// chosen.
    fn too_soon(&self, views: &mut TableViews<'_>, now: SystemTime) -> Result<Vec<Unmet<'c>>, KeeperError> {
        let mut unmet = Vec::new();
        for options in &self.demands {
            let mut alternatives = Vec::new();
            for choices in options.alternatives() {
                let mut refused = Vec::new();
                for choice in choices {
                    let Some(seen) = views.get(&choice.table) else { continue };
                    let pause = choice.claim.enforced_pause();
                    if let Some(last) = pause.and_then(|pause| seen.view.paused_since(pause, now)) {
                        refused.push(self.refused(choice, &Room::TooSoon(last), 0, views)?);
                    }
                }
                if refused.is_empty() {
                    break;
                }
                alternatives.push(Alternative::of(choices, refused));
            }
            if alternatives.len() == options.alternatives().count() {
                unmet.push(Unmet { alternatives });
            }
        }
        Ok(unmet)
    }

    /// Finds the first combination, in order of preference, that is available as a whole. Alternatives with
    /// room within the limit precede those that refuse no launch. `picked` has the choice for the first
    /// demands.
    fn choose(
        demands: &[Options<'c>],
        views: &mut TableViews<'_>,
        now: SystemTime,
        picked: &mut Vec<ClaimOnTable<'c>>,
    ) -> Result<bool, KeeperError> {
        let Some((options, demands)) = demands.split_first() else { return Ok(true) };
        let joined = Self::joined(options, views, now, picked)?;
        let in_order = options.alternatives().enumerate().filter(|(index, _)| Some(*index) != joined);
        let first = joined.and_then(|joined| options.alternatives().nth(joined));
        let before = picked.len();
        let mut beyond = Vec::new();
        for choices in first.into_iter().chain(in_order.map(|(_, choices)| choices)) {
            picked.extend(choices);
            match Self::fit(options, choices, views, now, picked)? {
                Fit::Within if Self::choose(demands, views, now, picked)? => return Ok(true),
                Fit::Beyond => beyond.push(choices),
                Fit::Within | Fit::Blocked => {}
            }
            picked.truncate(before);
        }
        for choices in beyond {
            picked.extend(choices);
            if Self::choose(demands, views, now, picked)? {
                return Ok(true);
            }
            picked.truncate(before);
        }
        Ok(false)
    }

    /// The first of several alternatives whose slots an ancestor or the launch's group already has. It
    /// precedes alternatives that need new slots.
    fn joined(
        options: &Options<'c>,
        views: &mut TableViews<'_>,
        now: SystemTime,
        picked: &[ClaimOnTable<'c>],
    ) -> Result<Option<usize>, KeeperError> {
        if options.alternatives().nth(1).is_none() {
            return Ok(None);
        }
        'alternatives: for (index, choices) in options.alternatives().enumerate() {
            let together: Vec<ClaimOnTable<'c>> = picked.iter().chain(choices).copied().collect();
            for choice in choices {
                let Some(seen) = views.get_mut(&choice.table) else { continue };
                let terms = terms_on(choice.table, &together);
                if terms.group.is_none() {
                    continue 'alternatives;
                }
                match room(choice.claim, &terms, seen, now)? {
                    Room::Free(seats) if seats.free.is_empty() => {}
                    _ => continue 'alternatives,
                }
            }
            return Ok(Some(index));
        }
        Ok(None)
    }

    /// How an alternative can be had that is among the picked ones: as the worst of its claims.
    fn fit(
        options: &Options<'c>,
        choices: &[ClaimOnTable<'c>],
        views: &mut TableViews<'_>,
        now: SystemTime,
        picked: &[ClaimOnTable<'c>],
    ) -> Result<Fit, KeeperError> {
        let has_others = options.alternatives().nth(1).is_some();
        let mut worst = Fit::Within;
        for choice in choices {
            let Some(seen) = views.get_mut(&choice.table) else { continue };
            let terms = terms_on(choice.table, picked);
            let fit = match room(choice.claim, &terms, seen, now)? {
                // A claim that is not enforced has room only within the limit.
                Room::Free(seats) if has_others && terms.admit == Admit::Always && !seats.free.is_empty() => {
                    let within = Terms { admit: Admit::Unenforced, ..terms };
                    match room(choice.claim, &within, seen, now)? {
                        Room::Free(_) => Fit::Within,
                        _ => Fit::Beyond,
                    }
                }
                Room::Free(_) => Fit::Within,
                _ if choice.claim.amount.admit == Admit::Unenforced => Fit::Beyond,
                _ => return Ok(Fit::Blocked),
            };
            worst = worst.max(fit);
        }
        Ok(worst)
    }

    /// Every demand that cannot be met. With `choices_too`, this includes alternatives that are available
    /// separately but not together.
    fn blocked(
        &self,
        views: &mut TableViews<'_>,
        now: SystemTime,
        choices_too: bool,
    ) -> Result<Blocked<'c>, KeeperError> {
        let mut blocked = Blocked { unmet: Vec::new(), lines: Vec::new() };
        for options in &self.demands {
            let count = options.alternatives().count();
            let mut alternatives = Vec::new();
            for choices in options.alternatives() {
                let mut refused = self.refused_of(choices, views, now, false)?;
                if refused.is_empty() && choices_too && count > 1 {
                    refused = self.refused_of(choices, views, now, true)?;
                }
                if refused.is_empty() {
                    break;
                }
                alternatives.push(Alternative::of(choices, refused));
            }
            if alternatives.len() == count {
                blocked.unmet.push(Unmet { alternatives });
            }
        }
        blocked.find_lines();
        Ok(blocked)
    }

    /// The unavailable parts of an alternative; with `choices_too` also those that are available by
    /// themselves.
    fn refused_of(
        &self,
        choices: &[ClaimOnTable<'c>],
        views: &mut TableViews<'_>,
        now: SystemTime,
        choices_too: bool,
    ) -> Result<Vec<Refused<'c>>, KeeperError> {
        let mut refused = Vec::new();
        for choice in choices {
            let (room, capacity) = match self.room_beside(choices, choice, views, now)? {
                Some((Room::Free(_), capacity)) if choices_too => (Room::Full, capacity),
                None | Some((Room::Free(_), _)) => continue,
                Some(_) if choice.claim.amount.admit == Admit::Unenforced => continue,
                Some(found) => found,
            };
            refused.push(self.refused(choice, &room, capacity, views)?);
        }
        Ok(refused)
    }

    /// The room for one claim beside everything that has no alternative, and its capacity there; none if its
    /// table is shared with an ancestor.
    pub fn room_for(
        &self,
        choice: &ClaimOnTable<'c>,
        views: &mut TableViews<'_>,
        now: SystemTime,
    ) -> Result<Option<(Room, u64)>, KeeperError> {
        self.room_beside(&[*choice], choice, views, now)
    }

    /// The same, but considers the claims that must be met together with it.
    fn room_beside(
        &self,
        beside: &[ClaimOnTable<'c>],
        choice: &ClaimOnTable<'c>,
        views: &mut TableViews<'_>,
        now: SystemTime,
    ) -> Result<Option<(Room, u64)>, KeeperError> {
        let Some(seen) = views.get_mut(&choice.table) else { return Ok(None) };
        let mut together: Vec<ClaimOnTable<'c>> = self.single().collect();
        together.extend(beside);
        let terms = terms_on(choice.table, &together);
        Ok(Some((room(choice.claim, &terms, seen, now)?, terms.usable_slots())))
    }

    fn refused(
        &self,
        choice: &ClaimOnTable<'c>,
        room: &Room,
        capacity: u64,
        views: &mut TableViews<'_>,
    ) -> Result<Refused<'c>, KeeperError> {
        let table = self.table(choice.table);
        let reason = match room {
            Room::Never => Reason::Never,
            Room::TooSoon(last) => Reason::TooSoon { last: *last, uid: table.who_started(*last)? },
            Room::Behind => Reason::Full(Full::of(table, None, true)),
            Room::Free(_) | Room::Closed | Room::Full | Room::Kept => {
                let seen = views.get(&choice.table);
                let look = seen.and_then(|seen| seen.view.look());
                let mut full = Full::of(table, look.cloned(), false);
                if let Some(seen) = seen {
                    full.outside.clone_from(&seen.outside);
                    full.no_sample.clone_from(&seen.no_sample);
                }
                Reason::Full(full)
            }
        };
        let is_behind = *room == Room::Behind;
        let line = (!room.is_final()).then_some(Line { table: choice.table, capacity, is_behind });
        Ok(Refused { claim: choice.claim, table: choice.table, reason, line, unwaited: None })
    }
}
