//! One check of the tables for a launch, and its result.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    Ledger,
    holding::{Holding, in_memory},
    state::{SavedHolding, SavedNumber, SavedSlots, in_millis},
};
use crate::{
    acquire::{
        at_once::{AtOnce, Standing, at_once},
        grant::Grant,
        refusal::{self, Refusal},
        too_late::Known,
    },
    agent::{
        eviction::Eviction,
        request::{AcquireRequest, asker},
        session::{Blocked, Session},
    },
    judge::terms::{
        group::Group,
        location::{Location, name_on_site},
    },
    keeper::{
        Overdue, WaitingProcess,
        agent::message::{Obstacle, Reason, Refused, Table},
        error::KeeperError,
        memory::VerifiedAncestry,
        table::{Keepers, TableId},
    },
    policy::Wait,
    sys::{
        descriptor,
        failure::Failure,
        process::{self, PidFd},
    },
};

/// How many holders a refusal describes.
const DESCRIBED: usize = 16;

/// The result of a check of the tables.
pub(in crate::agent) enum Looked {
    Granted(Box<Holding>),
    Blocked(Blocked),
    /// It would have been granted, but the decision about its claims is too old.
    Stale,
    Failed(String),
}

impl Ledger {
    /// One check: then everything is acquired, or the launch is in the queue. `is_shared` if other hosts keep
    /// the tables of the site too; `process` opens the process that asks.
    pub(in crate::agent) fn look(
        &self,
        number: u64,
        session: &mut Session,
        request: &AcquireRequest,
        is_shared: bool,
        process: impl FnOnce() -> Result<PidFd, Failure>,
    ) -> Looked {
        let now = Instant::now();
        let begun = *session.place.begun.get_or_insert(now);
        session.place.beaten.get_or_insert(now);
        let deadline = match request.longest {
            Some(Wait::For(longest)) => begun.checked_add(longest),
            Some(Wait::Forever) | None => None,
        };
        let memory = self.store.for_asker(self.ancestry(session, request));
        let keepers = Keepers { inherited: &self.inherited, memory };
        let (demands, asker) = (request.demands(), asker(request, keepers));
        let looked = match at_once(&demands, &asker, &mut session.place.line, deadline) {
            Ok(AtOnce::Granted(grant)) if !request.is_fresh() => {
                let _ = grant.withdraw();
                return Looked::Stale;
            }
            Ok(AtOnce::Granted(grant)) => process()
                .map(|process| {
                    Looked::Granted(Box::new(holding(session, request, grant, is_shared, process)))
                })
                .map_err(|failure| failure.to_string()),
            Ok(AtOnce::Blocked(standing)) => blocked(number, session, request, &standing)
                .map(Looked::Blocked)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        looked.unwrap_or_else(Looked::Failed)
    }

    /// The slots of ancestors that a launch claims to have, if this is proved.
    fn ancestry(&self, session: &mut Session, request: &AcquireRequest) -> VerifiedAncestry {
        let (pid, uid) = (session.peer.pid, session.peer.uid);
        let mut ancestry = VerifiedAncestry { pid: Some(pid), uid: Some(uid), slots: Vec::new() };
        if request.ancestors.is_empty() {
            return ancestry;
        }
        // Once for each request: a process can have many descriptors, and a waiting launch checks often.
        let fifos = session.fifos.get_or_insert_with(|| descriptor::of_process(pid));
        let joinable = self.holdings.values().filter(|holding| holding.may_be_joined_by(pid, uid, fifos));
        ancestry.slots.extend(joinable.flat_map(|holding| &holding.held).flat_map(|held| {
            let number = held.table().number();
            held.slots().iter().map(move |slot| (number, *slot))
        }));
        ancestry
    }
}

/// What to do about a launch that got nothing.
fn blocked(
    number: u64,
    session: &mut Session,
    request: &AcquireRequest,
    standing: &Standing<'_>,
) -> Result<Blocked, KeeperError> {
    let Standing { refusal, waits, next, .. } = standing;
    let (pid, user, line) = (session.peer.pid, session.peer.uid, &mut session.place.line);
    let ahead = if *waits {
        line.belongs_to(&WaitingProcess {
            pid: Some(pid),
            host: None,
            user: Some(user),
            command: Some(request.command.as_str().into()),
            since: line.since(),
        });
        line.serve_in(number);
        u32::try_from(refusal.ahead(line.number())).unwrap_or(u32::MAX)
    } else {
        0
    };
    let evictions = if request.may_end_others() { evictions(session, standing)? } else { Vec::new() };
    let refused = refused(refusal, *waits || session.place.has_waited, user);
    Ok(Blocked { refused, waits: *waits, ahead, next: *next, evictions })
}

/// Which holders to end, besides those that are being ended. The job that started the caller is never one.
fn evictions(session: &Session, standing: &Standing<'_>) -> Result<Vec<Eviction>, KeeperError> {
    let lineage = process::lineage(session.peer.pid);
    let tried: Vec<i32> = session.tried.iter().copied().chain(lineage).collect();
    let was_tried = |overdue: &Overdue| match overdue.elsewhere {
        None => tried.contains(&overdue.process()),
        Some(_) => session.has_given_notice_of(overdue),
    };
    let coming = |table: TableId| {
        let endings = session.evictions.iter().filter(|ending| ending.is_on(table));
        let endings = endings.map(|ending| ending.overdue.slots);
        endings.chain(session.notices.iter().map(|notice| notice.frees(table))).sum()
    };
    let chosen = standing.to_end(&Known { was_tried: &was_tried, coming: &coming })?;
    Ok(chosen.into_iter().filter_map(Eviction::of).collect())
}

/// The grant of a launch; `is_shared` if other hosts also keep the tables of the site, and so the pauses.
fn holding(
    session: &Session,
    request: &AcquireRequest,
    grant: Grant<'_>,
    is_shared: bool,
    process: PidFd,
) -> Holding {
    let (started, before) = grant.stamps();
    let before = before.to_vec();
    let table = |location: &Location| match location {
        Location::Memory(table) => Some(table.clone()),
        Location::File(_) | Location::Agent(_) => None,
    };
    let without = grant.unenforced().iter().filter_map(|claim| table(&claim.location));
    let without = without.chain(request.without.iter().cloned()).collect();
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    for claim in grant.claims() {
        let rule = claim.origins.first().map_or("", |origin| origin.rule);
        if let Some(table) = table(&claim.location) {
            rules.entry(table).or_insert_with(|| rule.to_owned());
        }
    }
    let held = in_memory(grant.into_held());
    let saved_slots = held.iter().map(|held| SavedSlots {
        table: held.table().name().to_owned(),
        rule: rules.get(held.table().name()).cloned().unwrap_or_default(),
        slots: held.slots().to_vec(),
        is_shared: held.is_shared(),
        on_lost: request.on_lost(held.table().name()),
        group: held.group().map(|group| group.text().to_owned()),
        is_of_heirs: held.group().is_some_and(Group::is_of_heirs),
        linger: request.linger_on(held.table().name()),
    });
    let millis = |since: Duration| u64::try_from(since.as_millis()).unwrap_or(0);
    let is_of_site = |table: &String| is_shared && name_on_site(table).is_some();
    let (paced_at_site, paced): (Vec<String>, Vec<String>) =
        request.paced().map(str::to_owned).partition(is_of_site);
    let numbered = session.place.line.number().zip(session.take.as_deref());
    let saved = SavedHolding {
        pid: session.peer.pid,
        start: session.peer.started,
        program: None,
        uid: session.peer.uid,
        hold: request.hold,
        host: request.host.clone(),
        command: request.command.clone(),
        since: in_millis(started),
        taken: process::since_boot().map(millis),
        is_started: false,
        served_as: numbered.map(|(number, take)| SavedNumber::of(number, take)),
        paced: paced.clone(),
        tables: saved_slots.collect(),
        lingers_until: None,
    };
    for (held, slots) in held.iter().zip(&saved.tables).filter(|(held, _)| !held.is_shared()) {
        request.pause_on(&slots.table).into_iter().for_each(|length| held.table().pauses_for(length));
        held.describe(saved.holder(&slots.rule));
    }
    let (process, fifo, of_site) = (Some(process), None, None);
    Holding { saved, process, fifo, held, started, before, paced, without, paced_at_site, of_site }
}

/// A refusal, for the launch.
fn refused(refusal: &Refusal<'_>, has_waited: bool, user: u32) -> Refused {
    let mut obstacles: Vec<Obstacle> = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    for refused in refusal.claims() {
        let Location::Memory(name) = &refused.claim.location else { continue };
        let unwaited = refused.unwaited.map(Into::into);
        let reason = match &refused.reason {
            refusal::Reason::Full(full) if full.only_ancestors => Reason::Ancestors,
            refusal::Reason::Full(full) if full.is_behind => Reason::Behind,
            refusal::Reason::Full(_) => Reason::Full,
            refusal::Reason::Never => Reason::Never,
            refusal::Reason::TooSoon { last, uid } => Reason::TooSoon((*last, *uid)),
        };
        if let refusal::Reason::Full(full) = &refused.reason
            && let Some(table) = full.table().in_memory()
            && tables.iter().all(|known| known.name != *name)
        {
            tables.push(Table::of(name, table, DESCRIBED, DESCRIBED, user));
        }
        let outside = match &refused.reason {
            refusal::Reason::Full(full) if full.outside > 0 => Some(full.outside),
            _ => None,
        };
        obstacles.push(Obstacle { table: name.clone(), reason, unwaited, outside });
    }
    Refused { obstacles, tables, has_waited }
}
