//! Whether there is room. All callers use this one function, for every keeper, and whether slots are to be
//! taken, explained or simulated.

use std::{collections::BTreeMap, rc::Rc, time::SystemTime};

use super::liveness::QueuePosition;
use crate::{
    judge::terms::{
        claim::{Claim, Terms},
        group::Seats,
        keyword::Admit,
        outside::{Counts, Outside, WhenStale},
    },
    keeper::{
        Means,
        error::KeeperError,
        occupancy::Vacancy,
        outside::{Names, NoSample, Sample, Used},
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
    claim: &Claim,
    terms: &Terms,
    seen: &mut TableView<'_>,
    now: SystemTime,
) -> Result<Room, KeeperError> {
    let paused = claim.enforced_pause().and_then(|pause| seen.view.paused_since(pause, now));
    match paused {
        Some(last) => Ok(Room::TooSoon(last)),
        None if claim.unclear.is_some() => Ok(Room::Never),
        None => seen.room(terms),
    }
}

/// A table as a launch sees it from its place in time.
pub struct TableView<'t> {
    /// What is known of the table.
    pub view: View<'t>,
    table: &'t Table,
    position: QueuePosition<'t>,
    /// Where there was room. The state of a table cannot change while the table is locked. But an older
    /// launch can respond again at any moment, and then it is not passed over. So an answer that was given
    /// once is kept.
    promised: Vec<(Terms, Seats)>,
    /// A claim on the table that takes room for what rungate did not start, and the sample of that, once it
    /// was needed: all questions get the same.
    beside: Option<(&'t Claim, &'t Outside)>,
    sample: Option<Result<Rc<Sample>, NoSample>>,
    /// The slots that this is, as far as it has refused a claim.
    pub outside: Used,
    /// Why that is unknown, if a claim was refused because of it.
    pub no_sample: Option<NoSample>,
}

/// The tables that a launch needs and does not share with an ancestor.
pub type TableViews<'t> = BTreeMap<TableId, TableView<'t>>;

impl<'t> TableView<'t> {
    /// Looks at a table for these claims. Older launches in its queue come first.
    pub fn of(
        table: &'t Table,
        position: QueuePosition<'t>,
        claims: impl Iterator<Item = &'t Claim>,
    ) -> Result<Self, KeeperError> {
        let measured = claims.filter_map(|claim| Some((claim, claim.outside.as_ref()?)));
        // What root has measured comes before what a user has.
        let beside = measured.min_by_key(|(_, outside)| outside.owner);
        Ok(Self {
            view: table.view()?,
            table,
            position,
            promised: Vec::new(),
            beside,
            sample: None,
            outside: Used::default(),
            no_sample: None,
        })
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
        if terms.slots > terms.attainable_slots() {
            return Ok(Err(Room::Never));
        }
        if terms.admit != Admit::Always
            && !self.view.is_quiet(terms)?
            && self.position.nearest_ahead(self.table, terms.usable_slots())?.is_some()
        {
            return Ok(Err(Room::Behind));
        }
        let vacancy = match self.beside {
            Some((claim, outside)) if terms.admit != Admit::Always => {
                self.vacancy_beside(missing, claim, outside)?
            }
            _ => self.view.vacancy(missing)?,
        };
        Ok(match vacancy {
            Vacancy::Slots(slots) => Ok(slots),
            Vacancy::Kept => Err(Room::Kept),
            Vacancy::Full => Err(Room::Full),
        })
    }

    /// What there is beside what is in use outside. While that is unknown there is no room: a launch in the
    /// queue waits, and others fail, unless an alternative has room.
    fn vacancy_beside(
        &mut self,
        terms: &Terms,
        claim: &Claim,
        outside: &Outside,
    ) -> Result<Vacancy, KeeperError> {
        let unknown = match self.vacancy_by_sample(terms, claim, outside)? {
            Ok(vacancy) => return Ok(vacancy),
            Err(unknown) => unknown,
        };
        if outside.when_stale == WhenStale::Ignore || terms.admit == Admit::Unenforced {
            return self.view.vacancy(terms);
        }
        self.no_sample = Some(unknown);
        Ok(Vacancy::Full)
    }

    fn vacancy_by_sample(
        &mut self,
        terms: &Terms,
        claim: &Claim,
        outside: &Outside,
    ) -> Result<Result<Vacancy, NoSample>, KeeperError> {
        let sample = match self.sample.get_or_insert_with(|| self.table.sample(outside)) {
            Ok(sample) => Rc::clone(sample),
            Err(unknown) => return Ok(Err(unknown.clone())),
        };
        // If everything fits without taking off our own, neither lines nor holders are looked at.
        if sample.total == 0 || claim.names.is_empty() && terms.zones.is_none() {
            let beside = Terms { limit: terms.limit.saturating_sub(sample.total), ..terms.clone() };
            let vacancy = self.view.vacancy(&beside)?;
            if sample.total == 0 || matches!(vacancy, Vacancy::Slots(_)) {
                return Ok(Ok(vacancy));
            }
        }
        let lines = match sample.lines(outside) {
            Ok(lines) => lines,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let (held, is_whole) = self.table.occupancy(None, Means::All)?;
        if !is_whole {
            return Ok(Ok(Vacancy::Full));
        }
        let vouched = match outside.counts {
            Counts::Others if outside.shared_by.is_none() => Vec::new(),
            _ => self.table.vouched(&held)?,
        };
        let names = Names { all: &claim.names, out_of_order: &claim.out_of_order };
        let used = Used::of(&sample, &lines, outside, (&held, &vouched), &names, terms.slots);
        if used.is_seated {
            return Ok(Ok(self.view.vacancy(terms)?));
        }
        let vacancy = used.vacancy(&held, terms);
        self.outside = used;
        Ok(Ok(vacancy))
    }
}
