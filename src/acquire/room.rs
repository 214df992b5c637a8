//! Whether there is room. All callers use this one function, for every keeper, and whether slots are to be
//! taken, explained or simulated.

use std::{collections::BTreeMap, time::SystemTime};

use super::liveness::QueuePosition;
use crate::{
    judge::terms::{
        claim::{Claim, Terms},
        group::Seats,
        keyword::Admit,
    },
    keeper::{
        error::KeeperError,
        occupancy::Vacancy,
        table::{Table, TableId},
        view::View,
    },
};

/// Whether a claim can be met.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Room {
    /// These slots are free, or the group's already, and taking them keeps the limit.
    Free(Seats),
    /// The pause since this moment is not over.
    TooSoon(SystemTime),
    /// The limit is 0: nothing new starts for now.
    Closed,
    /// More slots are wanted than there can ever be for this launch.
    Never,
    /// Older launches wait for what is left.
    Behind,
    /// The limit is reached.
    Full,
    /// What is free is kept for others.
    Kept,
}

impl Room {
    /// Whether there is none, and waiting would not help.
    pub fn is_final(&self) -> bool {
        match self {
            Self::TooSoon(_) | Self::Never => true,
            Self::Free(_) | Self::Closed | Self::Behind | Self::Full | Self::Kept => false,
        }
    }
}

/// A claim, and everything that one launch asks of the claim's table.
pub fn room(
    claim: &Claim<'_>,
    terms: &Terms,
    sight: &mut TableView<'_>,
    now: SystemTime,
) -> Result<Room, KeeperError> {
    let paused = claim.enforced_pause().and_then(|pause| sight.view.paused_since(pause, now));
    match paused {
        Some(last) => Ok(Room::TooSoon(last)),
        None => sight.room(terms),
    }
}

/// A table as a launch sees it from its place in time.
pub struct TableView<'t> {
    /// What is known of the table.
    pub view: View<'t>,
    table: &'t Table,
    standpoint: QueuePosition<'t>,
    /// Where there was room. The state of a table cannot change while the table is locked. But an older
    /// launch can respond again at any moment, and then it is not passed over. So an answer that was given
    /// once is kept.
    promised: Vec<(Terms, Seats)>,
}

/// The tables that a launch needs and does not share with an ancestor.
pub type Sights<'t> = BTreeMap<TableId, TableView<'t>>;

impl<'t> TableView<'t> {
    /// Looks at a table. Older launches in its queue come first.
    pub fn of(table: &'t Table, standpoint: QueuePosition<'t>) -> Result<Self, KeeperError> {
        Ok(Self { view: table.view()?, table, standpoint, promised: Vec::new() })
    }

    /// Whether these terms can be met now. Once they could, the answer stays the same.
    pub fn room(&mut self, terms: &Terms) -> Result<Room, KeeperError> {
        if let Some((_, seats)) = self.promised.iter().find(|(promised, _)| promised == terms) {
            return Ok(Room::Free(seats.clone()));
        }
        if terms.limit == 0 && terms.admit != Admit::Always {
            return Ok(Room::Closed);
        }
        let shared = self.view.shared(terms)?;
        let missing = terms.beyond(&shared);
        let found = match self.room_for_missing(terms, &missing)? {
            Ok(free) => free,
            Err(room) => return Ok(room),
        };
        let seats = Seats { shared, free: found };
        self.promised.push((terms.clone(), seats.clone()));
        Ok(Room::Free(seats))
    }

    /// The slots that are taken beside those of the group. A launch that takes none waits behind no other.
    fn room_for_missing(
        &mut self,
        terms: &Terms,
        missing: &Terms,
    ) -> Result<Result<Vec<u64>, Room>, KeeperError> {
        if missing.slots == 0 && terms.slots > 0 {
            return Ok(Ok(Vec::new()));
        }
        if terms.admit != Admit::Always {
            if terms.slots > terms.reach() {
                return Ok(Err(Room::Never));
            }
            if !self.view.is_quiet(terms)?
                && self.standpoint.nearest_ahead(self.table, terms.reach())?.is_some()
            {
                return Ok(Err(Room::Behind));
            }
        }
        Ok(match self.view.vacancy(missing)? {
            Vacancy::Slots(slots) => Ok(slots),
            Vacancy::Kept => Err(Room::Kept),
            Vacancy::Full => Err(Room::Full),
        })
    }
}
