//! What blocks a launch, and the queues in which it may wait.

use super::{AcquireContext, Alternative, Line, Reason, Refused, Unmet};
use crate::keeper::KeeperError;

/// A launch that has to wait, or is refused.
pub struct Blocked<'c> {
    /// Every demand that cannot be met.
    pub unmet: Vec<Unmet<'c>>,
    /// The queues in which the launch may wait: at least one, unless waiting is useless.
    pub lines: Vec<Line>,
}

impl Blocked<'_> {
    /// Whether only older launches, or nothing that could be found, block it.
    pub fn is_by_the_line_alone(&self) -> bool {
        !self.is_final() && self.lines.iter().all(|line| line.is_behind)
    }

    /// Whether every demand could be met without the other waiting launches.
    pub fn is_by_others_alone(&self) -> Result<bool, KeeperError> {
        for unmet in &self.unmet {
            let mut could_be_met = false;
            for alternative in &unmet.alternatives {
                could_be_met |= is_behind_others(alternative)?;
            }
            if !could_be_met {
                return Ok(false);
            }
        }
        Ok(!self.unmet.is_empty())
    }

    /// Marks that older launches wait in this queue. They may have come back since the decision.
    pub(super) fn stand_behind(&mut self, line: &Line) {
        for refused in self.unmet.iter_mut().flat_map(Unmet::claims_mut) {
            let is_there =
                refused.line.is_some_and(|own| (own.table, own.capacity) == (line.table, line.capacity));
            if let Reason::Full(full) = &mut refused.reason {
                full.is_behind |= is_there;
            }
        }
    }

    /// Whether waiting is useless: something that is needed can never be acquired, or not in this way.
    pub fn is_final(&self) -> bool {
        self.unmet.iter().any(Unmet::is_final)
    }

    /// Whether the launch does not wait, or no longer waits, for something that it needs.
    pub fn is_unwaited(&self) -> bool {
        self.unmet.iter().any(Unmet::is_unwaited)
    }

    /// Fails if a launch that is in no queue yet cannot know whether there is room, and waits for no
    /// alternative of which it knows that.
    pub(super) fn fail_without_sample(&self) -> Result<(), KeeperError> {
        for unmet in &self.unmet {
            let is_known = |alternative: &Alternative<'_>| {
                !alternative.is_unwaited() && alternative.refused.iter().all(|one| one.no_sample().is_none())
            };
            if let Some(unknown) = unmet.claims().find_map(Refused::no_sample)
                && !unmet.alternatives.iter().any(is_known)
            {
                return Err(KeeperError::Outside(unknown.to_string()));
            }
        }
        Ok(())
    }

    /// Finds the queues in which the launch waits: those of every alternative that it may wait for.
    pub(super) fn find_lines(&mut self) {
        let alternatives = self.unmet.iter().flat_map(|unmet| &unmet.alternatives);
        let waited_for = alternatives.filter(|alternative| !alternative.is_unwaited());
        self.lines = waited_for
            .flat_map(|alternative| &alternative.refused)
            .filter_map(|refused| refused.line)
            .collect();
    }

    /// Finds the tables in which only ancestors of this process block the launch. The tables need not be
    /// locked.
    pub fn look_for_ancestors(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        self.unmet.iter_mut().try_for_each(|unmet| unmet.look_for_ancestors(asker))
    }
}

/// Whether a launch leaves free slots to older ones that would be enough for an alternative.
pub(super) fn leaves_room(unmet: &[Unmet<'_>]) -> Result<bool, KeeperError> {
    for alternative in unmet.iter().flat_map(|unmet| &unmet.alternatives) {
        if is_behind_others(alternative)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether all claims could be met without the other waiting launches.
fn is_behind_others(alternative: &Alternative<'_>) -> Result<bool, KeeperError> {
    for refused in &alternative.refused {
        let Reason::Full(full) = &refused.reason else { return Ok(false) };
        if !full.is_behind || !full.occupancy()?.fits(&full.missing(refused.claim)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
