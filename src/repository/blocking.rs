//! What stands in the way of a launch: every claim that cannot be met, for people; the files in whose lines it may stand; and
//! holders that are overdue and have to go.

use std::{collections::BTreeMap, time::SystemTime};

use crate::{
    repository::{
        acquisition::{Acquisition, Choice, terms_on},
        admission::{Room, View},
        claim::Admit,
        error::RepositoryError,
        expiry::{self, Fate},
        file::LockFile,
        header::Header,
        holder::{Holder, holders},
        layout::slot_bytes,
        line, nested,
        refused::{Reason, Refused},
    },
    sys::{descriptor::FileId, process},
};

/// A launch that has to wait, or is refused.
pub(super) struct Blocked {
    /// Every claim that stands in the way.
    pub(super) refused: Vec<Refused>,
    /// The lines in which it may stand: never none, unless it makes no sense to wait.
    pub(super) files: Vec<Line>,
    /// Whether it makes no sense to wait: something that is needed can never be had, or not in this way.
    pub(super) is_final: bool,
}

impl Blocked {
    /// Whether nothing but older launches, or nothing that could be found, is in the way.
    pub(super) fn by_the_line_alone(&self) -> bool {
        !self.is_final && self.files.iter().all(|line| line.is_behind)
    }
}

/// A file in which a launch is blocked, and as whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) file: FileId,
    /// The limit that counts for it there.
    pub(super) limit: u64,
    /// Whether it was not asked if there is room, because older launches wait.
    pub(super) is_behind: bool,
}

impl<'a> Acquisition<'a> {
    /// Every claim that stands in the way. A hint that would mislead an exectimes peer is mended on the way. With `choices`,
    /// alternatives count that could be had alone and cannot be had together.
    pub(super) fn blocked(
        &self,
        views: &mut BTreeMap<FileId, View<'_>>,
        choices_too: bool,
    ) -> Result<Blocked, RepositoryError> {
        let needed: Vec<Choice<'a>> = self
            .demands
            .iter()
            .filter_map(|choices| if let [only] = choices.as_slice() { Some(*only) } else { None })
            .collect();
        let now = SystemTime::now();
        let mut blocked = Blocked { refused: Vec::new(), files: Vec::new(), is_final: false };
        for choices in &self.demands {
            let mut refusals = Vec::new();
            let mut files = Vec::new();
            for choice in choices {
                let mut together: Vec<Choice<'a>> = needed.clone();
                together.push(*choice);
                let Some(view) = views.get_mut(&choice.file) else { continue };
                let terms = terms_on(choice.file, &together);
                let room = view.room(&terms)?;
                let reason = match room {
                    Room::Free(_) => match self.too_soon_for(choice, view, now)? {
                        Some(reason) => reason,
                        None if choices_too && choices.len() > 1 => self.full(choice, view)?,
                        None => continue,
                    },
                    _ if choice.claim.admit == Admit::Unenforced => continue,
                    Room::Full | Room::Behind => self.full(choice, view)?,
                    Room::Never => Reason::Never,
                };
                let refused = Refused { claim: choice.number, reason };
                if !refused.is_final() {
                    files.push(Line {
                        file: choice.file,
                        limit: terms.line(),
                        is_behind: room == Room::Behind,
                    });
                }
                refusals.push(refused);
            }
            if refusals.len() == choices.len() {
                blocked.is_final |= refusals.iter().all(Refused::is_final);
                blocked.refused.append(&mut refusals);
                blocked.files.append(&mut files);
            }
        }
        Ok(blocked)
    }

    /// Ends holders that are overdue, where that makes room for everything that blocks the launch: nobody is ended in vain. Says
    /// whether any has gone. The mutexes must not be held.
    pub(super) fn end_overdue(&mut self, blocked: &mut Blocked) -> Result<bool, RepositoryError> {
        // Where older launches wait, the first of them does it, and what becomes free is theirs.
        if blocked.is_final || blocked.files.iter().any(|line| line.is_behind) {
            return Ok(false);
        }
        let now = SystemTime::now();
        let mut to_end = Vec::new();
        for (index, refused) in blocked.refused.iter().enumerate() {
            let Some(choice) = self.choices().find(|choice| choice.number == refused.claim) else {
                return Ok(false);
            };
            let Choice { claim, .. } = choice;
            let (Some(expiry), Reason::Full { used, holders, .. }) = (claim.expiry, &refused.reason) else {
                return Ok(false);
            };
            let in_reach = |slot: u64| {
                let zones = claim.zones.as_ref();
                zones.is_none_or(|zones| zones.iter().any(|zone| zone.contains(&slot)))
            };
            let mut missing = (used + claim.slots.under(claim.limit)).saturating_sub(claim.limit).max(1);
            for overdue in expiry::overdue(holders, &expiry, now) {
                if missing > 0 && in_reach(overdue.holder.slots.0) && !self.tried.contains(&overdue.pid) {
                    missing = missing.saturating_sub(overdue.slots);
                    to_end.push((index, *choice, expiry, overdue));
                }
            }
            if missing > 0 {
                return Ok(false);
            }
        }
        let mut has_ended = false;
        for (index, choice, expiry, overdue) in to_end {
            self.tried.push(overdue.pid);
            let fate = expiry::end(self.file(choice.file), &overdue, &expiry)?;
            has_ended |= matches!(fate, Fate::Ended(_) | Fate::HadLeft);
            (self.launch.on_expired)(choice.claim, &overdue, fate);
            if let Reason::Full { overdue: left, .. } = &mut blocked.refused[index].reason {
                left.push((overdue, fate));
            }
        }
        Ok(has_ended)
    }

    fn full(&self, choice: &Choice<'a>, view: &mut View<'_>) -> Result<Reason, RepositoryError> {
        let file = self.file(choice.file);
        let occupancy = view.occupancy()?.clone();
        if view.hint_misleads()?
            && let Some(hint) = view.new_hint(&[])?
        {
            Header::write_hint(file, hint)?;
        }
        let holders = holders(file, &occupancy)?;
        let only_ancestors = !holders.is_empty() && self.are_ancestors(file, &holders)?;
        Ok(Reason::Full { used: occupancy.shown(), holders, only_ancestors, overdue: Vec::new(), waiting: 0 })
    }

    /// Adds how many others wait, for whoever is told of the refusal. That takes a question for each of them, so nobody who only
    /// wants to wait asks, and nobody who holds a mutex.
    pub(super) fn count_waiting(&self, refused: &mut [Refused]) -> Result<(), RepositoryError> {
        for Refused { claim, reason } in refused {
            let choice = self.choices().find(|choice| choice.number == *claim);
            if let (Some(choice), Reason::Full { waiting, .. }) = (choice, reason) {
                let others = line::waiters(self.file(choice.file))?;
                *waiting = others.iter().filter(|other| other.pid != Some(process::own_pid())).count();
            }
        }
        Ok(())
    }

    /// Whether this process and its ancestors keep all of these slots. One that goes with a description is kept by whoever has a
    /// descriptor of it, this process included.
    fn are_ancestors(&self, file: &LockFile, holders: &[Holder]) -> Result<bool, RepositoryError> {
        let lineage: Vec<i32> = process::own_lineage().collect();
        for Holder { keeper, slots: (first, last), .. } in holders {
            if !keeper.is_some_and(|keeper| lineage.contains(&keeper))
                && !nested::is_inherited(file, &slot_bytes(*first, *last), self.launch)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
