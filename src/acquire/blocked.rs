//! What blocks a launch, and the queues in which it may wait.

use super::{
    line::Line,
    refusal::{Alternative, Reason, Unmet},
};
use crate::keeper::{error::KeeperError, table::Keepers};

/// A launch that has to wait, or is refused.
pub struct Blocked<'c> {
    /// Every demand that cannot be met.
    pub unmet: Vec<Unmet<'c>>,
    /// The queues in which the launch may wait: at least one, unless waiting makes no sense.
    pub lines: Vec<Line>,
}

impl Blocked<'_> {
    /// Whether nothing but older launches, or nothing that could be found, is in the way.
    pub fn is_by_the_line_alone(&self) -> bool {
        !self.is_final() && self.lines.iter().all(|line| line.is_behind)
    }

    /// Whether every demand could be met if only the others in line were not there.
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

    /// Whether it makes no sense to wait: something that is needed can never be had, or not in this way.
    pub fn is_final(&self) -> bool {
        self.unmet.iter().any(Unmet::is_final)
    }

    /// Whether something that is needed is not waited for, or not any more.
    pub fn is_unwaited(&self) -> bool {
        self.unmet.iter().any(Unmet::is_unwaited)
    }

    /// Finds the lines in which the launch waits: those of every alternative that is waited for.
    pub(super) fn find_lines(&mut self) {
        let alternatives = self.unmet.iter().flat_map(|unmet| &unmet.alternatives);
        let waited_for = alternatives.filter(|alternative| !alternative.is_unwaited());
        self.lines = waited_for
            .flat_map(|alternative| &alternative.refused)
            .filter_map(|refused| refused.line)
            .collect();
    }

    /// Finds out where only ancestors of this process block the launch. The tables need not be locked.
    pub fn look_for_ancestors(&mut self, keepers: &Keepers<'_>) -> Result<(), KeeperError> {
        self.unmet.iter_mut().try_for_each(|unmet| unmet.look_for_ancestors(keepers))
    }
}

/// Whether all of it could be had if only the others in line were not there.
fn is_behind_others(alternative: &Alternative<'_>) -> Result<bool, KeeperError> {
    for refused in &alternative.refused {
        let Reason::Full(full) = &refused.reason else { return Ok(false) };
        if !full.is_behind || !full.occupancy()?.fits(&refused.missing(full)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
