//! What a launch needs of the agent's tables, after judgement. It owns everything, because the policy may be
//! replaced before it is the launch's turn.

use std::time::{Duration, Instant};

use crate::{
    acquire::{AcquireContext, Clock},
    judge::terms::{
        Admit, AgentLocation, Amount, Claim, Demand, Hold, Launch, Location, NamedSlots, Nested, OnLost,
        Origin, Outside, Pace, Place, Queue, Reserved, Setting, Terms, Unreachable, name_on_site,
    },
    keeper::{EvictionOutcome, Keepers, Overdue},
    policy::Wait,
};

/// What a launch asks to acquire.
#[derive(Debug)]
pub(super) struct AcquireRequest {
    /// For each demand its alternatives.
    pub(super) demands: Vec<Vec<Vec<SlotRequest>>>,
    /// What keeps the slots.
    pub(super) hold: Hold,
    /// How long the whole launch may wait, where its command line says so.
    pub(super) longest: Option<Wait>,
    /// Which policy it is from.
    pub(super) generation: u16,
    /// The command, as records name it.
    pub(super) command: String,
    pub(super) host: String,
    pub(super) uid: u32,
    pub(super) ancestors: Vec<NamedSlots>,
    /// Whether overdue holders may be ended for it.
    pub(super) may_end: bool,
    /// When it was judged.
    pub(super) judged: Instant,
    /// The slots without which it may start, because the site cannot be reached and the policy allows it.
    pub(super) without: Vec<String>,
}

/// Slots of one table.
#[derive(Debug)]
pub(super) struct SlotRequest {
    repository: String,
    table: String,
    rule: String,
    place: Option<Place>,
    amount: Amount,
    pace: Pace,
    nested: Nested,
    wait: Setting<Wait>,
    queue: Queue,
    names: Vec<String>,
    out_of_order: Vec<u32>,
    reserved: Reserved,
    outside: Option<Outside>,
    unreachable: Unreachable,
    /// None if the agent keeps the table alone.
    on_lost: Option<OnLost>,
}

/// An older request is judged again when it is its turn: the policy, or the hour, may have changed.
const FRESH: Duration = Duration::from_secs(1);

/// The part of the decision that concerns the agent.
pub(super) fn demands_of(decided: &[Demand<'_>], longest: Option<Wait>) -> Vec<Vec<Vec<SlotRequest>>> {
    let of_agent = decided.iter().filter(|demand| demand.is_of_agent());
    let wanted =
        |claims: &[Claim<'_>]| claims.iter().filter_map(|claim| SlotRequest::of(claim, longest)).collect();
    of_agent.map(|demand| demand.alternatives().map(wanted).collect()).collect()
}

impl AcquireRequest {
    /// Whether nothing is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.demands.is_empty()
    }

    /// Whether it may be carried out without being judged again.
    pub(super) fn is_fresh(&self) -> bool {
        self.judged.elapsed() < FRESH
    }

    /// The same as claims on tables in memory.
    pub(super) fn demands(&self) -> Vec<Demand<'_>> {
        self.demands.iter().map(|alternatives| demand(alternatives)).collect()
    }

    /// The tables whose last use has to be remembered.
    pub(super) fn paced(&self) -> impl Iterator<Item = &str> {
        self.wanted().filter(|wanted| wanted.pace.pause.is_some()).map(|wanted| wanted.table.as_str())
    }

    /// How long after its last use a table is not to be used again.
    pub(super) fn pause_on(&self, table: &str) -> Option<Duration> {
        let of = self.wanted().filter(|wanted| wanted.table == table);
        of.filter_map(|wanted| wanted.pace.pause).map(|pause| pause.length).max()
    }

    /// Whether a table's last use has to be remembered.
    pub(super) fn is_paced(&self, table: &str) -> bool {
        self.paced().any(|paced| paced == table)
    }

    fn wanted(&self) -> impl Iterator<Item = &SlotRequest> {
        self.demands.iter().flatten().flatten()
    }

    /// The names of the site's tables that it needs.
    pub(super) fn tables_of_site(&self) -> impl Iterator<Item = &str> {
        self.wanted().filter_map(|wanted| name_on_site(&wanted.table))
    }

    /// The names of those whose queues have a maximum length.
    pub(super) fn ends_of_lines(&self) -> impl Iterator<Item = &str> {
        let ends = self.wanted().filter(|wanted| !wanted.queue.is_endless());
        ends.filter_map(|wanted| name_on_site(&wanted.table))
    }

    /// What happens to the program when the site that keeps a table is lost.
    pub(super) fn on_lost(&self, table: &str) -> Option<OnLost> {
        self.wanted().filter(|wanted| wanted.table == table).filter_map(|wanted| wanted.on_lost).max()
    }

    /// How long an ended program keeps its slots of a table.
    pub(super) fn linger_on(&self, table: &str) -> Option<Duration> {
        self.wanted().filter(|wanted| wanted.table == table).filter_map(|wanted| wanted.amount.linger).max()
    }

    /// The limit of a table's repository, as far as this launch knows it.
    pub(super) fn limit_of(&self, table: &str) -> u64 {
        let limits = self.wanted().filter(|wanted| wanted.table == table).map(|wanted| wanted.amount.limit);
        limits.min().unwrap_or(0)
    }

    /// How many slots of a table may be held, including those of this launch; none if it is admitted in any
    /// case. If several claims are for one table, the strictest counts, whether it was chosen or not.
    pub(super) fn terms_on(&self, table: &str) -> Option<u64> {
        let amounts = self.wanted().filter(|wanted| wanted.table == table).map(|wanted| &wanted.amount);
        let terms = Terms::merge(amounts.collect::<Vec<_>>())?;
        (terms.admit != Admit::Always).then_some(terms.limit)
    }

    /// The same without the slots of the site, if the policy lets it start without them.
    pub(super) fn without_site(mut self) -> Option<Self> {
        let is_of_site = |wanted: &SlotRequest| name_on_site(&wanted.table).is_some();
        let of_site = || self.wanted().filter(|wanted| is_of_site(wanted));
        if of_site().any(|wanted| wanted.unreachable == Unreachable::Refuse) || of_site().next().is_none() {
            return None;
        }
        let without: Vec<String> = of_site().map(|wanted| wanted.table.clone()).collect();
        for alternatives in &mut self.demands {
            for list in alternatives {
                list.retain(|wanted| !is_of_site(wanted));
            }
        }
        // An alternative that has become empty is always available, so no other one is needed.
        self.demands.retain(|alternatives| alternatives.iter().all(|list| !list.is_empty()));
        self.without = without;
        Some(self)
    }

    /// Whether a holder may have to be ended for it.
    pub(super) fn may_end_others(&self) -> bool {
        self.may_end && self.wanted().any(|wanted| wanted.pace.expiry.is_some())
    }

    /// The tables that it could need slots of.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.wanted().map(|wanted| wanted.table.as_str())
    }

    pub(super) fn launch(&self) -> Launch<'_> {
        let Self { command, host, uid, ancestors, hold, .. } = self;
        Launch { command, host, uid: *uid, ancestors, hold: *hold }
    }
}

/// For `asker.on_expired`: the agent ends holders itself, besides its other work.
pub(super) const NOBODY_EXPIRES: &OnExpired<'_> = &|_, _, _| {};

type OnExpired<'a> = dyn Fn(&Claim<'_>, &Overdue, EvictionOutcome) + 'a;

impl SlotRequest {
    fn of(claim: &Claim<'_>, longest: Option<Wait>) -> Option<Self> {
        let Location::Agent(AgentLocation { table, unreachable, on_lost }) = &claim.location else {
            return None;
        };
        let origin = claim.origins.first();
        Some(Self {
            repository: claim.repository.clone().into_owned(),
            table: table.clone(),
            rule: origin.map_or_else(String::new, |origin| origin.rule.to_owned()),
            place: origin.and_then(|origin| origin.place.cloned()),
            amount: claim.amount.clone(),
            pace: claim.pace,
            nested: claim.nested,
            wait: claim.wait.with(longest),
            queue: claim.queue,
            names: claim.names.to_vec(),
            out_of_order: claim.out_of_order.clone(),
            reserved: claim.reserved.clone(),
            outside: claim.outside.clone(),
            unreachable: *unreachable,
            on_lost: *on_lost,
        })
    }
}

fn demand(alternatives: &[Vec<SlotRequest>]) -> Demand<'_> {
    if let [only] = alternatives
        && let [only] = only.as_slice()
    {
        return Demand::One(claim(only));
    }
    Demand::AnyOf(alternatives.iter().map(|list| list.iter().map(claim).collect()).collect())
}

fn claim(wanted: &SlotRequest) -> Claim<'_> {
    let SlotRequest {
        repository,
        table,
        rule,
        place,
        amount,
        pace,
        nested,
        wait,
        queue,
        names,
        out_of_order,
        reserved,
        outside,
        unreachable: _,
        on_lost: _,
    } = wanted;
    Claim {
        repository: repository.as_str().into(),
        member: Vec::new(),
        origins: vec![Origin { rule, place: place.as_ref(), message: None, contact: None }],
        location: Location::Memory(table.clone()),
        amount: amount.clone(),
        pace: *pace,
        nested: *nested,
        wait: *wait,
        queue: *queue,
        unclear: None,
        outside: outside.clone(),
        limit_of: None,
        kept: Vec::new(),
        reserved: reserved.clone(),
        names,
        out_of_order: out_of_order.clone(),
    }
}

/// The launch that requests slots, with these keepers.
pub(super) fn asker<'a>(request: &'a AcquireRequest, keepers: Keepers<'a>) -> AcquireContext<'a> {
    AcquireContext {
        launch: request.launch(),
        keepers,
        generation: request.generation,
        on_expired: NOBODY_EXPIRES,
        clock: Clock::default(),
    }
}
