//! One look at the tables on behalf of a launch, and what comes of it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, UNIX_EPOCH},
};

use super::{
    ending::ToEnd,
    holding::{Holding, in_memory},
    order::{Order, asker},
    saved::{SavedHolding, SavedNumber, SavedSlots},
    service::Service,
    session::Session,
};
use crate::{
    keeper::{
        Overdue,
        agent::message::{Obstacle, Reason, Refused, Table},
        error::KeeperError,
        memory::Kin,
        table::{Keepers, TableId},
    },
    policy::Wait,
    protocol::{
        at_once::{AtOnce, Standing, at_once},
        grant::Grant,
        refusal::{self, Refusal},
        too_late::Known,
    },
    sys::{failure::Failure, fifo, process},
    terms::location::{Location, name_on_site},
};

/// How many holders a refusal describes.
const DESCRIBED: usize = 16;

/// How a look at the tables ended.
pub(super) enum Looked {
    Granted(Box<Holding>),
    Blocked(Stands),
    /// It would have been granted by an order that is too old to be obeyed.
    Stale,
    Failed(String),
}

/// How a launch stands that got nothing.
pub(super) struct Stands {
    pub(super) refused: Refused,
    /// Whether it stands in line.
    pub(super) waits: bool,
    /// How many come first there.
    pub(super) ahead: u32,
    /// When the time of one of its claims is over.
    pub(super) next: Option<Instant>,
    /// Who is to be ended for it.
    pub(super) to_end: Vec<ToEnd>,
}

impl Service {
    /// One look, and everything is taken or the launch stands in line.
    pub(super) fn look(&mut self, number: u64, order: &Order) -> Looked {
        let Some(mut session) = self.sessions.remove(&number) else { return Looked::Stale };
        let looked = self.look_for(number, &mut session, order);
        self.sessions.insert(number, session);
        looked
    }

    fn look_for(&mut self, number: u64, session: &mut Session, order: &Order) -> Looked {
        let now = Instant::now();
        let begun = *session.place.begun.get_or_insert(now);
        session.place.beaten.get_or_insert(now);
        let deadline = match order.longest {
            Some(Wait::For(longest)) => begun.checked_add(longest),
            Some(Wait::Forever) | None => None,
        };
        let kin = self.kin(session, order);
        let keepers = Keepers { inherited: &self.ledger.inherited, memory: self.ledger.store.for_asker(kin) };
        let (demands, asker) = (order.demands(), asker(order, keepers));
        let line = &mut session.place.line;
        match at_once(&demands, &asker, line, deadline) {
            Ok(AtOnce::Granted(grant)) if !order.is_fresh() => {
                let _ = grant.withdraw();
                Looked::Stale
            }
            Ok(AtOnce::Granted(grant)) => match holding(session, order, grant, self.site.is_some()) {
                Ok(holding) => Looked::Granted(Box::new(holding)),
                Err(failure) => Looked::Failed(failure.to_string()),
            },
            Ok(AtOnce::Blocked(standing)) => match stands(number, session, order, &standing) {
                Ok(stands) => Looked::Blocked(stands),
                Err(error) => Looked::Failed(error.to_string()),
            },
            Err(error) => Looked::Failed(error.to_string()),
        }
    }

    /// What can be proved of a launch that says that ancestors of it have slots.
    fn kin(&self, session: &mut Session, order: &Order) -> Kin {
        let (pid, uid) = (session.peer.pid, session.peer.uid);
        if order.ancestors.is_empty() {
            return Kin { pid: Some(pid), uid: Some(uid), slots: Vec::new() };
        }
        // Once for each question: a process can have many descriptors, and whoever waits looks often.
        let fifos = session.fifos.get_or_insert_with(|| fifo::of_process(pid));
        let joinable =
            self.ledger.holdings.values().filter(|holding| holding.may_be_joined_by(pid, uid, fifos));
        let slots = joinable.flat_map(|holding| &holding.held).flat_map(|held| {
            let number = held.table().number();
            held.slots().iter().map(move |slot| (number, *slot))
        });
        Kin { slots: slots.collect(), pid: Some(pid), uid: Some(uid) }
    }
}

/// What there is to do about a launch that got nothing.
fn stands(
    number: u64,
    session: &mut Session,
    order: &Order,
    standing: &Standing<'_>,
) -> Result<Stands, KeeperError> {
    let Standing { refusal, waits, next, .. } = standing;
    let (pid, line) = (session.peer.pid, &mut session.place.line);
    let ahead = if *waits {
        line.belongs_to(pid, session.peer.uid);
        line.serve_in(number);
        u32::try_from(refusal.ahead(line.number())).unwrap_or(u32::MAX)
    } else {
        0
    };
    let to_end = if order.may_end_others() { to_end(session, standing)? } else { Vec::new() };
    // Who waits hears so each second, and how many are ahead; only a refusal counts all who wait.
    let most_waiting = if *waits { DESCRIBED } else { usize::MAX };
    let refused = refused(refusal, *waits || session.place.has_waited, most_waiting);
    Ok(Stands { refused, waits: *waits, ahead, next: *next, to_end })
}

/// Who is to be ended, besides those who are already. Nobody ends the job that started them.
fn to_end(session: &Session, standing: &Standing<'_>) -> Result<Vec<ToEnd>, KeeperError> {
    let lineage = process::lineage(session.peer.pid);
    let tried: Vec<i32> = session.tried.iter().copied().chain(lineage).collect();
    let was_tried = |overdue: &Overdue| match overdue.elsewhere {
        None => tried.contains(&overdue.process()),
        Some(_) => session.has_given_notice_of(overdue),
    };
    let coming = |table: TableId| {
        let endings = session.endings.iter().filter(|ending| ending.is_on(table));
        let endings = endings.map(|ending| ending.overdue.slots);
        endings.chain(session.notices.iter().map(|notice| notice.frees(table))).sum()
    };
    let chosen = standing.to_end(&Known { was_tried: &was_tried, coming: &coming })?;
    Ok(chosen.into_iter().filter_map(ToEnd::of).collect())
}

/// What a launch has got; `is_shared` where other hosts keep the tables of the site too, and so the pauses.
fn holding(session: &Session, order: &Order, grant: Grant<'_>, is_shared: bool) -> Result<Holding, Failure> {
    let (started, before) = grant.stamps();
    let before = before.to_vec();
    let table = |location: &Location| match location {
        Location::Memory(table) => Some(table.clone()),
        Location::File(_) | Location::Agent(_) => None,
    };
    let without = grant.unenforced().iter().filter_map(|claim| table(&claim.location));
    let without = without.chain(order.without.iter().cloned()).collect();
    let rule = |name: &str| {
        let mut claims =
            grant.claims().iter().filter(|claim| table(&claim.location).as_deref() == Some(name));
        claims.next().and_then(|claim| claim.origins.first()).map_or("", |origin| origin.rule).to_owned()
    };
    let rules: BTreeMap<String, String> = grant
        .claims()
        .iter()
        .filter_map(|claim| table(&claim.location))
        .map(|table| (rule(&table), table))
        .map(|(rule, table)| (table, rule))
        .collect();
    let held = in_memory(grant.into_held());
    let saved_slots = held.iter().map(|held| SavedSlots {
        table: held.table().name().to_owned(),
        rule: rules.get(held.table().name()).cloned().unwrap_or_default(),
        slots: held.slots().to_vec(),
        is_shared: held.is_shared(),
        on_lost: order.on_lost(held.table().name()),
    });
    let millis = |since: Duration| u64::try_from(since.as_millis()).unwrap_or(0);
    let is_of_site = |table: &String| is_shared && name_on_site(table).is_some();
    let (paced_at_site, paced): (Vec<String>, Vec<String>) =
        order.paced().map(str::to_owned).partition(is_of_site);
    let numbered = session.place.line.number().zip(session.take.as_deref());
    let saved = SavedHolding {
        pid: session.peer.pid,
        start: session.peer.started,
        program: None,
        uid: session.peer.uid,
        hold: order.hold,
        host: order.host.clone(),
        command: order.command.clone(),
        since: started.duration_since(UNIX_EPOCH).map_or(0, millis),
        taken: process::since_boot().map(millis),
        is_started: false,
        served_as: numbered.map(|(number, take)| SavedNumber::of(number, take)),
        paced: paced.clone(),
        tables: saved_slots.collect(),
    };
    for (held, slots) in held.iter().zip(&saved.tables).filter(|(held, _)| !held.is_shared()) {
        order.pause_on(&slots.table).into_iter().for_each(|length| held.table().pauses_for(length));
        held.table().describe(held.slots(), saved.holder(&slots.rule));
    }
    let process = Some(session.process()?);
    let of_site = None;
    Ok(Holding { saved, process, fifo: None, held, started, before, paced, without, paced_at_site, of_site })
}

/// A refusal, for the launch.
fn refused(refusal: &Refusal<'_>, has_waited: bool, most_waiting: usize) -> Refused {
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
            tables.push(Table::of(name, table, DESCRIBED, most_waiting));
        }
        obstacles.push(Obstacle { table: name.clone(), reason, unwaited });
    }
    Refused { obstacles, tables, has_waited }
}
