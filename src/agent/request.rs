//! What a launch needs of the agent's tables, after judgement. It owns everything, because the policy may be
//! replaced before it is the launch's turn.

use std::time::{Duration, Instant};

use crate::{
    acquire::{AcquireContext, Clock, PlaceInLine, Refusal, refusal},
    judge::terms::{
        Admit, AgentLocation, Claim, Demand, Hold, Launch, Location, NamedSlots, OnLost, Terms, Unreachable,
        name_on_site,
    },
    keeper::{
        EvictionOutcome, Holder, Keepers, Overdue,
        agent::message::{Obstacle, Reason, Refused, Table},
        memory,
    },
    policy::Wait,
    sys::process,
};

/// What a launch asks to acquire.
#[derive(Debug)]
pub(super) struct AcquireRequest {
    /// Its claims on tables of the agent, which are in the agent's memory.
    pub(super) demands: Vec<Demand>,
    /// The same tables, as the policy writes them: one for each claim.
    pub(super) locations: Vec<AgentLocation>,
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

/// An older request is judged again when it is its turn: the policy, or the hour, may have changed.
const FRESH: Duration = Duration::from_secs(1);

/// The part of a decision that concerns the agent. The wait of the command line is for the whole launch, from
/// its request on. It replaces the waits of the claims, whose clocks may run since an earlier request.
pub(super) fn of_agent(mut demands: Vec<Demand>, longest: Option<Wait>) -> (Vec<Demand>, Vec<AgentLocation>) {
    demands.retain(Demand::is_of_agent);
    let wait = longest.map(|longest| if longest == Wait::NONE { longest } else { Wait::Forever });
    let mut locations = Vec::new();
    for claim in demands.iter_mut().flat_map(Demand::claims_mut) {
        let Location::Agent(location) = &claim.location else { continue };
        locations.push(location.clone());
        claim.location = Location::Memory(location.table.clone());
        claim.wait = claim.wait.with(wait);
    }
    (demands, locations)
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

    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.demands.iter().flat_map(Demand::claims)
    }

    fn claims_on(&self, table: &str) -> impl Iterator<Item = &Claim> {
        self.claims().filter(move |claim| claim.location.in_memory() == Some(table))
    }

    /// The tables whose last use has to be remembered.
    pub(super) fn paced(&self) -> impl Iterator<Item = &str> {
        self.claims()
            .filter(|claim| claim.pace.pause.is_some())
            .filter_map(|claim| claim.location.in_memory())
    }

    /// How long after its last use a table is not to be used again.
    pub(super) fn pause_on(&self, table: &str) -> Option<Duration> {
        self.claims_on(table).filter_map(|claim| claim.pace.pause).map(|pause| pause.length).max()
    }

    /// Whether a table's last use has to be remembered.
    pub(super) fn is_paced(&self, table: &str) -> bool {
        self.paced().any(|paced| paced == table)
    }

    /// The names of the site's tables that it needs.
    pub(super) fn tables_of_site(&self) -> impl Iterator<Item = &str> {
        self.tables().filter_map(name_on_site)
    }

    /// The names of those whose queues have a maximum length.
    pub(super) fn ends_of_lines(&self) -> impl Iterator<Item = &str> {
        let ends = self.claims().filter(|claim| !claim.queue.is_endless());
        ends.filter_map(|claim| name_on_site(claim.location.in_memory()?))
    }

    /// What happens to the program when the site that keeps a table is lost.
    pub(super) fn on_lost(&self, table: &str) -> Option<OnLost> {
        self.locations.iter().filter(|location| location.table == table).filter_map(|of| of.on_lost).max()
    }

    /// How long an ended program keeps its slots of a table.
    pub(super) fn linger_on(&self, table: &str) -> Option<Duration> {
        self.claims_on(table).filter_map(|claim| claim.amount.linger).max()
    }

    /// The limit of a table's repository, as far as this launch knows it.
    pub(super) fn limit_of(&self, table: &str) -> u64 {
        self.claims_on(table).map(|claim| claim.amount.limit).min().unwrap_or(0)
    }

    /// How many slots of a table may be held, including those of this launch; none if it is admitted in any
    /// case. If several claims are for one table, the strictest counts, whether it was chosen or not.
    pub(super) fn terms_on(&self, table: &str) -> Option<u64> {
        let amounts: Vec<_> = self.claims_on(table).map(|claim| &claim.amount).collect();
        let terms = Terms::merge(amounts)?;
        (terms.admit != Admit::Always).then_some(terms.limit)
    }

    /// The same without the slots of the site, if the policy lets it start without them.
    pub(super) fn without_site(mut self) -> Option<Self> {
        let (of_site, kept): (Vec<_>, Vec<_>) =
            self.locations.into_iter().partition(|location| name_on_site(&location.table).is_some());
        if of_site.is_empty() || of_site.iter().any(|of| of.unreachable == Unreachable::Refuse) {
            return None;
        }
        self.locations = kept;
        self.without = of_site.into_iter().map(|location| location.table).collect();
        let is_met = |claim: &Claim| claim.location.in_memory().and_then(name_on_site).is_some();
        // An alternative that has become empty is always available, so no other one is needed.
        self.demands.retain_mut(|demand| match demand {
            Demand::One(claim) => !is_met(claim),
            Demand::AnyOf(alternatives) => {
                for list in &mut *alternatives {
                    list.retain(|claim| !is_met(claim));
                }
                alternatives.iter().all(|list| !list.is_empty())
            }
        });
        Some(self)
    }

    /// Whether a holder may have to be ended for it.
    pub(super) fn may_end_others(&self) -> bool {
        self.may_end && self.claims().any(|claim| claim.pace.expiry.is_some())
    }

    /// Whether a holder of a table is overdue by its policy.
    pub(super) fn is_overdue(&self, table: &str, holder: &Holder) -> bool {
        let age = process::since_boot().zip(holder.taken).map(|(now, taken)| now.saturating_sub(taken));
        let mut expiries = self.claims_on(table).filter_map(|claim| claim.pace.expiry);
        self.may_end && age.is_some_and(|age| expiries.any(|expiry| expiry.after <= age))
    }

    /// The tables that it could need slots of.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.claims().filter_map(|claim| claim.location.in_memory())
    }

    pub(super) fn launch(&self) -> Launch<'_> {
        let Self { command, host, uid, ancestors, hold, .. } = self;
        Launch { command, host, uid: *uid, ancestors, hold: *hold }
    }
}

/// For `asker.on_expired`: the agent ends holders itself, besides its other work.
pub(super) const NOBODY_EXPIRES: &OnExpired<'_> = &|_, _, _| {};

type OnExpired<'a> = dyn Fn(&Claim, &Overdue, EvictionOutcome) + 'a;

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

/// How many holders a refusal describes.
const DESCRIBED: usize = 16;

/// A refusal, for the launch.
pub(super) fn refused(refusal: &Refusal<'_>, has_waited: bool, user: u32) -> Refused {
    let mut obstacles: Vec<Obstacle> = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    for refused in refusal.claims() {
        let Some(name) = refused.claim.location.in_memory() else { continue };
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
            refusal::Reason::Full(full) => Some(full.outside.slots()).filter(|slots| *slots > 0),
            _ => None,
        };
        obstacles.push(Obstacle { table: name.to_owned(), reason, unwaited, outside });
    }
    Refused { obstacles, tables, has_waited }
}

/// What blocks a launch that keeps its place, and cannot be judged now: the tables in which it waits.
pub(super) fn unjudged(line: &PlaceInLine, user: u32) -> Refused {
    let all = line.tables();
    let full = |table: &memory::Table| {
        let (table, reason) = (table.name().to_owned(), Reason::Full);
        Obstacle { table, reason, unwaited: None, outside: None }
    };
    let shown = |table: &memory::Table| Table::of(table.name(), table, DESCRIBED, DESCRIBED, user);
    let (obstacles, tables) = (all.iter().map(full).collect(), all.iter().map(shown).collect());
    Refused { obstacles, tables, has_waited: true }
}
