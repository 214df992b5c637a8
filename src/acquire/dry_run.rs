//! What would happen to a launch now: the same decision as for a launch that starts, without locking or
//! taking anything. It may be out of date a moment later.

use std::time::SystemTime;

use super::{
    AcquireContext, Allocation, Clocks, QueuePosition, Refusal, Room, TableView, TableViews, WaitCheck,
    Wants, room::room,
};
use crate::{
    judge::terms::{Claim, Demand, Location, Terms},
    keeper::{
        KeeperError, Means, Occupancy, Waiter,
        agent::{self, message::UnreadableSlot},
        table::Table,
    },
};

/// What a launch would find.
pub struct DryRun<'c> {
    /// Every claim.
    pub prospects: Vec<Prospect<'c>>,
    /// Why it would not start; none if it would. If a table cannot be checked, the first of them is the
    /// reason.
    pub refusal: Result<Option<Refusal<'c>>, KeeperError>,
}

/// A claim, and how it finds its table.
pub struct Prospect<'c> {
    pub claim: &'c Claim,
    /// The state of the table, or the error that a launch would get.
    pub found: Result<Found, String>,
}

impl Prospect<'_> {
    /// Slots of it with unknown holders, because the site's value is unreadable.
    pub fn unreadable_slots(&self) -> Vec<UnreadableSlot> {
        let (Location::Agent(location), Ok(found)) = (&self.claim.location, &self.found) else {
            return Vec::new();
        };
        let holders = found.table.holders(&found.occupancy).unwrap_or_default();
        agent::unreadable_slots(&location.table, &holders)
    }
}

/// A table as a claim finds it.
pub struct Found {
    pub table: Table,
    /// The room in it; none if the launch would use a slot of an ancestor.
    pub room: Option<Room>,
    /// The held slots.
    pub occupancy: Occupancy,
    /// All waiting launches, oldest first.
    pub waiting: Vec<Waiter>,
    /// How many slots are in use outside rungate, where that leaves no room.
    pub outside: u64,
}

impl Found {
    fn of(table: &Table, room: Option<Room>, outside: u64) -> Result<Self, KeeperError> {
        let (occupancy, _) = table.occupancy(None, Means::All)?;
        Ok(Self { table: table.clone(), room, occupancy, waiting: table.waiters()?, outside })
    }

    /// Whether the claim could be met.
    pub fn has_room(&self) -> bool {
        matches!(self.room, None | Some(Room::Free(_)))
    }
}

/// Reads the tables of all demands.
pub fn outlook<'c>(demands: &'c [Demand], asker: &AcquireContext<'_>) -> DryRun<'c> {
    match look(demands, asker) {
        Ok((prospects, refusal)) => DryRun { prospects, refusal },
        // A table that cannot be read hides none of the others.
        Err(error) => {
            let claims = demands.iter().flat_map(Demand::claims);
            DryRun { prospects: claims.map(|claim| alone(claim, asker)).collect(), refusal: Err(error) }
        }
    }
}

/// Whether a launch with these terms that comes now would be refused because others wait. Every launch asks
/// this of a table; here it is for listings.
pub fn is_for_queue(table: &Table, terms: &Terms, generation: u16) -> Result<bool, KeeperError> {
    let mut seen = TableView::of(table, QueuePosition::newcomer(generation, None), std::iter::empty())?;
    Ok(seen.room(terms)? == Room::Behind)
}

type Prospects<'c> = (Vec<Prospect<'c>>, Result<Option<Refusal<'c>>, KeeperError>);

fn look<'c>(demands: &'c [Demand], asker: &AcquireContext<'_>) -> Result<Prospects<'c>, KeeperError> {
    let wants = Wants::open(demands, |claim| asker.keepers.look(claim))?;
    let mut views = TableViews::new();
    for (id, table) in &wants.tables {
        let AcquireContext { launch, keepers, .. } = asker;
        if launch.ancestors.is_empty() || !table.could_join(&wants.claims_on(*id), launch, keepers)? {
            let generation = wants.generation_on(*id, asker.generation);
            let newcomer = QueuePosition::newcomer(generation, None);
            views.insert(*id, TableView::of(table, newcomer, wants.all_on(*id))?);
        }
    }
    let now = SystemTime::now();
    let mut prospects = Vec::new();
    for choice in wants.choices() {
        let room = wants.room_for(choice, &mut views, now)?.map(|(room, _)| room);
        let seen = views.get(&choice.table);
        let found = match seen.and_then(|seen| seen.no_sample.as_ref()) {
            Some(unknown) => Err(unknown.to_string()),
            None => {
                let outside = seen.map_or(0, |seen| seen.outside.slots());
                Ok(Found::of(wants.table(choice.table), room, outside)?)
            }
        };
        prospects.push(Prospect { claim: choice.claim, found });
    }
    let refusal = match wants.deliberate(&mut views, now)? {
        Allocation::Start(_) | Allocation::Disturbed => None,
        Allocation::Blocked(mut blocked) => {
            let position = QueuePosition::newcomer(asker.generation, None);
            WaitCheck {
                position,
                is_new: true,
                uid: asker.launch.uid,
                clocks: &Clocks::default(),
                shut: &[],
            }
            .mark(&wants, &mut blocked)?;
            if let Err(unknown) = blocked.fail_without_sample() {
                return Ok((prospects, Err(unknown)));
            }
            Some(Refusal { unmet: blocked.unmet, waited: None })
        }
    };
    Ok((prospects, Ok(refusal)))
}

fn alone<'c>(claim: &'c Claim, asker: &AcquireContext<'_>) -> Prospect<'c> {
    let found = asker.keepers.look(claim).and_then(|table| {
        let terms = Terms::merge([&claim.amount]).unwrap_or_default();
        let newcomer = QueuePosition::newcomer(asker.generation, None);
        let mut seen = TableView::of(&table, newcomer, std::iter::once(claim))?;
        let room = room(claim, &terms, &mut seen, SystemTime::now())?;
        Found::of(&table, Some(room), seen.outside.slots())
    });
    Prospect { claim, found: found.map_err(|error| error.to_string()) }
}
