//! The agent's answers in the types of this process: grants, refusals, and the launch's place in the queue.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use super::{
    AcquireContext, Alternative, Full, Grant, Line, Reason, Refusal, Refused, Unmet, Unwaited, Waiting,
    Watch, acquisition::names_of, waiting::shown,
};
use crate::{
    judge::terms::{Claim, Demand, Location, NamedSlots, Runs},
    keeper::{AgentError, Granted, agent::message, table::Table},
};

/// The agent's grant, as a grant of this process.
pub(super) fn grant<'c>(demands: &'c [Demand], granted: &message::Granted, kept: Granted) -> Grant<'c> {
    let claims: Vec<&'c Claim> = demands.iter().flat_map(Demand::claims).collect();
    let on = |table: &str| claims.iter().copied().find(|claim| table_of(claim) == Some(table));
    let named = |(table, slots): &(String, String)| {
        let (claim, slots) = (on(table), Runs::parse(slots)?);
        let name = claim.map_or(table.as_str(), |claim| claim.repository.as_ref()).to_owned();
        let called = claim.map_or_else(Vec::new, |claim| names_of(claim, &slots));
        let joined = granted.joined.iter().flatten().find(|(other, _)| other == table);
        let joined = joined.and_then(|(_, slots)| Runs::parse(slots)).unwrap_or_default();
        Some(NamedSlots { name, slots, called, joined })
    };
    let own = |(table, slots): &(String, String)| Some((on(table)?, Runs::parse(slots)?));
    let met = granted.slots.iter().filter_map(|(table, _)| on(table));
    let without: Vec<&Claim> = granted.without.iter().filter_map(|table| on(table)).collect();
    Grant::of_agent(
        kept,
        granted.slots.iter().filter_map(named).collect(),
        granted.slots.iter().filter_map(own).collect(),
        met.chain(without.iter().copied()).collect(),
        without,
    )
}

/// The repository of a demand for which the agent has acquired nothing: it judges for itself, and may know
/// the host by another name than a container. For the same reason a table may be called otherwise there, so
/// each table that no claim names may be one that is missed.
pub(super) fn missed<'c>(demands: &'c [Demand], granted: &message::Granted) -> Option<&'c str> {
    let tables = granted.slots.iter().map(|(table, _)| table).chain(&granted.without);
    let has = |claim: &Claim| table_of(claim).is_some_and(|table| tables.clone().any(|known| known == table));
    let is_met = |demand: &Demand| demand.alternatives().any(|claims| claims.iter().all(has));
    let unmet = demands.iter().filter(|demand| !is_met(demand)).filter_map(|demand| demand.claims().next());
    let unmet: Vec<&Claim> = unmet.collect();
    let first = unmet.first()?;
    let missed: BTreeSet<Option<&str>> = unmet.iter().map(|claim| table_of(claim)).collect();
    let is_named =
        |table: &String| demands.iter().flat_map(Demand::claims).any(|claim| table_of(claim) == Some(table));
    let unnamed = tables.filter(|table| !is_named(table)).count();
    (missed.len() > unnamed).then(|| first.repository.as_ref())
}

pub(super) fn table_of(claim: &Claim) -> Option<&str> {
    match &claim.location {
        Location::Agent(location) => Some(&location.table),
        Location::File(_) | Location::Memory(_) => None,
    }
}

/// The agent's refusal, in this process's own types.
pub(super) fn refusal<'c>(
    demands: &'c [Demand],
    refused: &message::Refused,
    asker: &AcquireContext<'_>,
) -> Result<Refusal<'c>, AgentError> {
    let refused_claim = |claim: &'c Claim| {
        let name = table_of(claim)?;
        let obstacle = refused.obstacles.iter().find(|obstacle| obstacle.table == name)?;
        let seen = refused.tables.iter().find(|table| table.name == name);
        let store = &asker.keepers.memory;
        let table = Table::Memory(seen.map_or_else(|| store.unused(), |seen| seen.to_memory(store)));
        let is_behind = matches!(obstacle.reason, message::Reason::Behind);
        let mut reason = reason(&obstacle.reason, &table);
        if let Reason::Full(full) = &mut reason {
            full.outside.count = obstacle.outside.unwrap_or(0);
        }
        let capacity = claim.amount.usable_slots();
        let line = matches!(reason, Reason::Full(_)).then(|| Line { table: table.id(), capacity, is_behind });
        let unwaited = obstacle.unwaited.as_ref().map(Into::into);
        Some(Refused { claim, table: table.id(), reason, line, unwaited })
    };
    let alternative = |claims: &'c [Claim]| {
        let refused: Vec<Refused<'_>> = claims.iter().filter_map(refused_claim).collect();
        (!refused.is_empty()).then(|| Alternative { claims: claims.iter().collect(), refused })
    };
    let unmet = demands.iter().filter_map(|demand| {
        let alternatives: Option<Vec<Alternative<'_>>> = demand.alternatives().map(alternative).collect();
        alternatives.map(|alternatives| Unmet { alternatives })
    });
    let unmet: Vec<Unmet<'_>> = unmet.collect();
    if unmet.is_empty() {
        let names: Vec<&str> = refused.obstacles.iter().map(|obstacle| obstacle.table.as_str()).collect();
        return Err(AgentError::Differs(format!("there is no room in {}", names.join(", "))));
    }
    Ok(Refusal { unmet, waited: refused.has_waited.then_some(Duration::ZERO) })
}

fn reason(reason: &message::Reason, table: &Table) -> Reason {
    let full = |is_behind, only_ancestors| {
        let mut full = Full::of(table, None, is_behind);
        full.only_ancestors = only_ancestors;
        Reason::Full(full)
    };
    match reason {
        message::Reason::Full => full(false, false),
        message::Reason::Behind => full(true, false),
        message::Reason::Ancestors => full(false, true),
        message::Reason::Never => Reason::Never,
        message::Reason::TooSoon((last, uid)) => Reason::TooSoon { last: *last, uid: *uid },
    }
}

/// Reports the position of the launch to its observer.
pub(super) fn tell(refusal: &Refusal<'_>, ahead: u32, watch: &mut Watch<'_>) -> ControlFlow<()> {
    let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
    match shown(&refusal.unmet) {
        Some(refused) => watch(Some(&Waiting::elsewhere(&refusal.unmet, refused.claim, ahead))),
        None => ControlFlow::Continue(()),
    }
}

impl From<Unwaited> for message::Unwaited {
    fn from(unwaited: Unwaited) -> Self {
        let count = |waiting: usize| u32::try_from(waiting).unwrap_or(u32::MAX);
        match unwaited {
            Unwaited::Never => Self::Never,
            Unwaited::Over(longest) => Self::Over(longest),
            Unwaited::Queue { waiting, most } => Self::Queue((count(waiting), most)),
            Unwaited::OwnQueue { waiting, most } => Self::OwnQueue((count(waiting), most)),
        }
    }
}

impl From<&message::Unwaited> for Unwaited {
    fn from(unwaited: &message::Unwaited) -> Self {
        let count = |waiting: u32| usize::try_from(waiting).unwrap_or(usize::MAX);
        match *unwaited {
            message::Unwaited::Never => Self::Never,
            message::Unwaited::Over(longest) => Self::Over(longest),
            message::Unwaited::Queue((waiting, most)) => Self::Queue { waiting: count(waiting), most },
            message::Unwaited::OwnQueue((waiting, most)) => Self::OwnQueue { waiting: count(waiting), most },
        }
    }
}
