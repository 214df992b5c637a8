//! Whether there is room, and where. With limit L and s slots wanted, a launch is admitted when `held + s <= L`, and that is
//! proved rather than counted: if nobody holds a slot above L, then s free slots within 1…L are the proof, and each byte
//! held above L takes one more free slot to make up for. So a launch far from the limit asks the kernel a handful of
//! questions, however many slots are held; everything is looked at only when the handful gave no answer. Nothing but the
//! kernel's answers counts: hint and cursor say where to look first, no more.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::ops::RangeInclusive;

use crate::{
    deliberate_fault::DeliberateFault,
    repository::{
        claim::{self, Admit, Claim},
        error::RepositoryError,
        file::LockFile,
        header::Header,
        layout::{LAST_SLOT, everything_above, slot_at, slot_byte, slot_bytes, slot_bytes_above},
        line::{self, Number},
        occupancy::Occupancy,
    },
};

/// What is asked of one file: the claims on it, merged.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// The lowest limit.
    pub limit: u64,
    /// The largest number of slots.
    pub slots: u64,
    /// The slots that may be taken, in order of preference; any within the limit where nothing is kept for anybody.
    pub zones: Option<Vec<RangeInclusive<u64>>>,
    /// The strictest.
    pub admit: Admit,
}

/// Whether a file has room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Room {
    /// These slots are free, and taking them keeps the limit.
    Free(Vec<u64>),
    /// The limit is reached.
    Full,
    /// Older launches wait for what is left.
    Behind,
    /// More slots than the limit are wanted: they can never be had.
    Never,
}

impl Terms {
    /// Of claims on one file; none when there are no claims. One that is not enforced adds nothing to one that is.
    pub fn merge<'a>(claims: impl IntoIterator<Item = &'a Claim, IntoIter: Clone>) -> Option<Self> {
        let claims = claims.into_iter();
        let enforced = claims.clone().any(|claim| claim.admit != Admit::Unenforced);
        let count = claims.filter(|claim| !enforced || claim.admit != Admit::Unenforced);
        count.map(Self::of).reduce(|mut terms, other| {
            terms.limit = terms.limit.min(other.limit);
            terms.slots = terms.slots.max(other.slots);
            terms.admit = terms.admit.min(other.admit);
            terms.zones = other.zones.or(terms.zones.take());
            terms
        })
    }

    fn of(claim: &Claim) -> Self {
        let limit = claim.limit.saturating_add(u64::from(DeliberateFault::OneTooMany.is_on())).min(LAST_SLOT);
        Self { limit, slots: claim.slots.under(limit), zones: claim.zones.clone(), admit: claim.admit }
    }

    /// The limit that counts in the line: how many slots there are for this launch at all. Who may not use what is reserved for
    /// others must not hold them up.
    pub fn line(&self) -> u64 {
        claim::reach(self.limit, self.zones.as_deref())
    }

    /// The slots to look at, in order, each once. A limit that is lower than the repository's says how many slots may be held
    /// and not which of them, so zones go on above it.
    fn search_order(&self, cursor: u64) -> Vec<RangeInclusive<u64>> {
        let mut order: Vec<RangeInclusive<u64>> = match &self.zones {
            None => {
                let start = if (1..=self.limit).contains(&cursor) { cursor } else { 1 };
                vec![start..=self.limit, 1..=start.saturating_sub(1)]
            }
            Some(zones) => zones.clone(),
        };
        if self.admit == Admit::Always {
            let highest = order.iter().map(|range| *range.end()).max().unwrap_or(0);
            order.push(highest.max(self.limit).saturating_add(1)..=LAST_SLOT);
        }
        order
    }
}

/// What is known of a file while its mutex is held.
pub struct View<'file> {
    file: &'file LockFile,
    header: Header,
    /// The launch's place in time: older ones in line come first.
    number: Number,
    occupancy: Option<Occupancy>,
    hint_holds: bool,
    /// Where there was room. What the mutex guards stays true while it is held, but whether an older launch is stopped, and so is
    /// passed over, may change at any moment: what was promised once is kept.
    promised: Vec<(Terms, Vec<u64>)>,
}

/// As many queries at most before everything is looked at.
const QUERIES: usize = 64;

impl<'file> View<'file> {
    /// Looks at a file whose mutex this process holds.
    pub fn of(file: &'file LockFile, number: Number) -> Result<Self, RepositoryError> {
        let header = Header::read(file)?;
        Ok(Self { file, header, number, occupancy: None, hint_holds: false, promised: Vec::new() })
    }

    /// What the content says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Every held slot; looked up once.
    pub fn occupancy(&mut self) -> Result<&Occupancy, RepositoryError> {
        if self.occupancy.is_none() {
            self.occupancy = Some(Occupancy::scan(self.file)?);
        }
        Ok(self.occupancy.get_or_insert_default())
    }

    /// Whether these terms can be met now. Once they could, the answer stays the same.
    pub fn room(&mut self, terms: &Terms) -> Result<Room, RepositoryError> {
        if let Some((_, slots)) = self.promised.iter().find(|(promised, _)| promised == terms) {
            return Ok(Room::Free(slots.clone()));
        }
        let room = self.look_for_room(terms)?;
        if let Room::Free(slots) = &room {
            self.promised.push((terms.clone(), slots.clone()));
        }
        Ok(room)
    }

    fn look_for_room(&mut self, terms: &Terms) -> Result<Room, RepositoryError> {
        let drained = terms.limit == 0;
        if terms.slots > terms.line() && !drained && terms.admit != Admit::Always {
            return Ok(Room::Never);
        }
        if drained && terms.admit != Admit::Always {
            return Ok(Room::Full);
        }
        let is_quiet = self.is_quiet_above(terms.limit)?;
        if !is_quiet
            && terms.admit != Admit::Always
            && line::nearest_older(self.file, terms.line(), self.number)?.is_some()
        {
            return Ok(Room::Behind);
        }
        if self.occupancy.is_none()
            && let Some(beyond) = if is_quiet { Some(0) } else { self.held_beyond(terms.limit)? }
            && let Some(slots) = self.search(terms, beyond)?
        {
            return Ok(Room::Free(slots));
        }
        let cursor = self.header.cursor;
        Ok(room_in(self.occupancy()?, terms, cursor))
    }

    /// Whether there is no lock at all behind the slots that the limit, and the hint, reach: then nobody sits beyond, and nobody
    /// waits. One question answers both, and mostly the answer is yes.
    fn is_quiet_above(&mut self, limit: u64) -> Result<bool, RepositoryError> {
        let Some(hint) = self.header.hint else { return Ok(false) };
        let is_quiet = self.file.conflict(&everything_above(hint.min(limit)))?.is_none();
        self.hint_holds |= is_quiet;
        Ok(is_quiet)
    }

    /// How many slots above the limit are held; none when a handful of questions does not tell, or when somebody sits above
    /// the hint, so that the hint has to be found anew.
    fn held_beyond(&mut self, limit: u64) -> Result<Option<u64>, RepositoryError> {
        let Some(hint) = self.header.hint else { return Ok(None) };
        let above = slot_bytes_above(slot_byte(hint.min(limit)));
        let Some(conflict) = self.file.conflict(&above)? else {
            self.hint_holds = true;
            return Ok(Some(0));
        };
        if hint <= limit || slot_at(*conflict.bytes.end()) > hint {
            return Ok(None);
        }
        self.hint_holds = self.file.conflict(&slot_bytes_above(slot_byte(hint)))?.is_none();
        if !self.hint_holds {
            return Ok(None);
        }
        let mut todo = vec![slot_bytes(limit.saturating_add(1), hint)];
        let mut beyond = 0_u64;
        for _ in 0..QUERIES {
            let Some(range) = todo.pop() else { return Ok(Some(beyond)) };
            if range.is_empty() {
                continue;
            }
            let Some(conflict) = self.file.conflict(&range)? else { continue };
            let first = *conflict.bytes.start().max(range.start());
            let last = *conflict.bytes.end().min(range.end());
            let above = last.saturating_add(1);
            beyond = above.saturating_sub(first).saturating_add(beyond);
            todo.extend([above..=*range.end(), *range.start()..=first.saturating_sub(1)]);
        }
        Ok(None)
    }

    /// Free slots in the order of the terms, and as many more within the limit as are held beyond it.
    fn search(&self, terms: &Terms, beyond: u64) -> Result<Option<Vec<u64>>, RepositoryError> {
        if beyond > 0 && !(terms.zones.is_none() && terms.admit == Admit::WithinLimit) {
            return Ok(None);
        }
        // A free slot above the limit proves nothing, and a less preferred one below it is not to be taken for that.
        if terms.zones.iter().flatten().any(|zone| *zone.end() > terms.limit) {
            return Ok(None);
        }
        let wanted = terms.slots.saturating_add(beyond);
        if wanted > terms.limit && terms.admit == Admit::WithinLimit {
            return Ok(None);
        }
        let mut free = Vec::new();
        let mut todo = terms.search_order(self.header.cursor);
        todo.reverse();
        for _ in 0..QUERIES {
            let Some(range) = todo.pop() else { return Ok(None) };
            if range.is_empty() {
                continue;
            }
            let missing = wanted.saturating_sub(free.len() as u64);
            let first = *range.start();
            let last = first.saturating_add(missing.saturating_sub(1)).min(*range.end());
            match self.file.conflict(&slot_bytes(first, last))? {
                None => {
                    free.extend(first..=last);
                    todo.push(last.saturating_add(1)..=*range.end());
                }
                Some(conflict) => {
                    todo.push(slot_at(*conflict.bytes.end()).saturating_add(1)..=*range.end());
                    todo.push(first..=slot_at(*conflict.bytes.start()).saturating_sub(1));
                }
            }
            if free.len() as u64 == wanted {
                free.truncate(usize::try_from(terms.slots).unwrap_or(usize::MAX));
                return Ok(Some(free));
            }
        }
        Ok(None)
    }

    /// The hint to be written once `taken` are taken too: none where the one in the file holds. It is lowered only by a look at
    /// everything, and made anew where it was found short, impossible or too low.
    pub fn new_hint(&mut self, taken: &[u64]) -> Result<Option<u64>, RepositoryError> {
        let highest_taken = taken.iter().copied().max().unwrap_or(0);
        let hint = match (&self.occupancy, self.header.hint) {
            (None, Some(hint)) if self.hint_holds => hint.max(highest_taken),
            _ => self.occupancy()?.highest().unwrap_or(0).max(highest_taken).min(LAST_SLOT),
        };
        Ok((self.header.hint != Some(hint)).then_some(hint))
    }

    /// Whether an exectimes peer that believes the hint would overlook a holder.
    pub fn hint_misleads(&mut self) -> Result<bool, RepositoryError> {
        if self.hint_holds {
            return Ok(false);
        }
        let hint = self.header.hint;
        let highest = self.occupancy()?.highest();
        Ok(highest.is_some_and(|highest| hint.is_none_or(|hint| hint < highest)))
    }
}

/// The same answer from everything at once.
fn room_in(occupancy: &Occupancy, terms: &Terms, cursor: u64) -> Room {
    let enough = usize::try_from(terms.slots).unwrap_or(usize::MAX);
    let fits = occupancy.held().saturating_add(terms.slots) <= terms.limit;
    if !fits && terms.admit != Admit::Always {
        return Room::Full;
    }
    let free: Vec<u64> = terms
        .search_order(cursor)
        .into_iter()
        .flat_map(|range| occupancy.free_among(range))
        .take(enough)
        .collect();
    if free.len() == enough { Room::Free(free) } else { Room::Full }
}
