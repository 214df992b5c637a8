//! The site: tables that the agents of all hosts keep together, in an etcd. They are in the agent's memory
//! beside its own, filled from a mirror of etcd, and the same functions decide there. A decision counts only
//! once it is proved: one transaction acquires the slots if nothing has changed that the decision depends on.
//! The thread that owns the tables never talks to etcd; other threads do, and report.

mod absence;
mod admission;
mod difference;
mod etcd;
mod hearing;
mod lease_keeper;
mod mirror;
pub(in crate::agent) mod notices;
mod pending;
mod presence;
mod proof;
mod reconciler;
mod record;
#[cfg(test)]
mod tests;
mod tickets;
mod watcher;

use self::{
    absence::{Absences, Origin},
    admission::Resting,
    difference::{Change, Difference, Present, Value},
    etcd::{Access, Client, ClusterStatus, Compare, Done, Heard, Operation, Range, Transaction},
    lease_keeper::{Command, LeaseKeeper},
    mirror::{Changed, Mirror, Shown, TableOfSite, Versioned},
    notices::ReceivedNotice,
    pending::{Admission, Pending, Report, Reporter, Work},
    presence::Presence,
    proof::Taking,
    reconciler::OwnKeys,
    record::{AgentId, ClusterRecord, HostRecord, Key, Keys, NoticeRecord, Reply, SlotRecord, TicketRecord},
    tickets::Numbers,
    watcher::Watcher,
};

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::{Fatal, Level, PolicyReader, Topic, ledger::state::State};
use crate::{
    policy::SiteSettings,
    sys::{Bell, Failure, accounts, process},
    text::visible,
};

/// How long a launch may wait for etcd before it is answered: less than launches wait for their agent.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long one member may take for one answer.
const PATIENCE_WITH_MEMBER: Duration = Duration::from_millis(1500);

/// How often it checks whether something is due.
const TICK: Duration = Duration::from_millis(100);

/// What the agent knows about the site.
pub(super) struct Site {
    keys: Keys,
    client: Client,
    host: String,
    agent: AgentId,
    endpoints: Vec<String>,
    ttl: Duration,
    is_doubted: Arc<AtomicBool>,
    reports: Receiver<Report>,
    mirror: Mirror,
    origin: Origin,
    /// The last known state of etcd itself.
    condition: Option<ClusterStatus>,
    shown: BTreeMap<String, Shown>,
    presence: Presence,
    numbers: Numbers,
    pending: Pending,
    /// The keys of this host.
    own: OwnKeys,
    /// When all of them were last checked.
    looked: Option<Instant>,
    resting: BTreeMap<u64, Resting>,
    absences: Absences,
    /// Holdings that are being ended because the site is lost, and when they are killed next.
    ended: BTreeMap<u64, Option<Instant>>,
    /// Holdings for which other hosts have left a notice, each with the table.
    received: BTreeMap<(u64, String), ReceivedNotice>,
    /// Slots with unreadable values, and since when there are some.
    unreadable: (Instant, BTreeSet<(String, u64)>),
    /// Tables whose waiters must check again.
    stirred: BTreeSet<String>,
    /// The table whose last use was looked at last.
    searched: String,
}

impl Site {
    /// Connects to etcd.
    pub(super) fn start(
        settings: &SiteSettings,
        state: &State,
        bell: &Arc<Bell>,
        policies: Arc<PolicyReader>,
    ) -> Result<Self, Fatal> {
        let host = accounts::name().map_err(|errno| Fatal::Call(Failure { call: "gethostname", errno }))?;
        let host = host.to_string_lossy().into_owned();
        let agent = AgentId::of(state, process::boot_id().unwrap_or_default())?;
        let SiteSettings { endpoints, prefix, ttl, margin, .. } = settings;
        let client = Client::new(access(settings)).map_err(Fatal::Site)?;
        let keys = Keys::below(prefix);
        let (reports, heard) = channel();
        let reporter = Reporter { reports, bell: Arc::clone(bell) };
        let (commands, commanded) = channel();
        let is_doubted = Arc::new(AtomicBool::new(false));
        let ttl_in_millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        LeaseKeeper {
            client: client.clone(),
            keys: keys.clone(),
            host: host.clone(),
            record: HostRecord {
                agent: agent.clone(),
                version,
                ttl: ttl_in_millis,
                repositories: BTreeMap::new(),
                lease: 0,
            },
            ttl: *ttl,
            reporter: reporter.clone(),
            commands: commanded,
            has_to_look: false,
        }
        .start();
        Watcher {
            client: client.clone(),
            keys: keys.clone(),
            interval: *ttl / 3,
            reporter: reporter.clone(),
            is_doubted: Arc::clone(&is_doubted),
        }
        .start();
        self::lease_keeper::start(commands.clone(), *ttl, policies);
        let pending = Pending::start(&client, &reporter);
        start(client.clone(), keys.clone(), *ttl, reporter.clone());
        tick(reporter);
        Ok(Self {
            mirror: Mirror::new(keys.clone()),
            numbers: Numbers::of(&host),
            keys,
            client,
            host,
            agent,
            endpoints: endpoints.clone(),
            ttl: *ttl,
            is_doubted,
            reports: heard,
            origin: Origin::default(),
            condition: None,
            shown: BTreeMap::new(),
            presence: Presence::new(*ttl, *margin, commands, state),
            pending,
            own: OwnKeys::default(),
            looked: None,
            resting: BTreeMap::new(),
            absences: Absences::default(),
            ended: BTreeMap::new(),
            received: BTreeMap::new(),
            unreadable: (Instant::now(), BTreeSet::new()),
            stirred: BTreeSet::new(),
            searched: String::new(),
        })
    }

    /// Whether slots may be acquired now.
    pub(super) fn is_open(&self) -> bool {
        self.presence.is_certain() && self.mirror.is_known() && self.is_named()
    }

    /// Whether the host's key exists and is this agent's, as far as the mirror knows.
    fn has_own_key(&self) -> bool {
        self.mirror.host(&self.host).is_some_and(|record| record.agent == self.agent)
    }

    /// Requests a transaction.
    fn send(&mut self, work: Work, transaction: Transaction) {
        self.pending.send(work, self.origin.generation(), transaction);
    }

    /// Requests a complete read.
    fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Relaxed);
    }

    /// A connection is closed.
    pub(super) fn forget(&mut self, session: u64) {
        self.resting.remove(&session);
    }
}

/// Checks whether the files that the settings name can be used.
pub(super) fn check(settings: &SiteSettings) -> Result<(), String> {
    Client::new(access(settings)).map(drop)
}

/// Writes a message about the site to the agent's log.
fn log(level: Level, text: &str) {
    super::log::log(level, Topic::Site, text);
}

/// Logs that this host alone keeps a table, because the settings name no site.
pub(super) fn say_alone(name: &str) {
    let text = format!(
        "\"{}\" is kept on this host alone: there is no [site] in /etc/rungate/agent.toml",
        visible(name)
    );
    log(Level::Warning, &text);
}

fn access(settings: &SiteSettings) -> Access {
    let SiteSettings { endpoints, ca, certificate, key, user, password_file, ttl, prefix: _, margin: _ } =
        settings.clone();
    let patience = PATIENCE_WITH_MEMBER.min(ttl / 4);
    Access { endpoints, ca, certificate, key, user, password_file, patience }
}

/// Reports periodically that time passes.
fn tick(reporter: Reporter) {
    thread::spawn(move || {
        while reporter.tell(Report::Tick) {
            thread::sleep(TICK);
        }
    });
}

// The thread that periodically reads the state of etcd itself, for `rungate doctor`. Nothing waits for it.

/// How often, in ttls.
const EVERY: u32 = 10;

/// How long it rests if no member answered.
const REST: Duration = Duration::from_secs(5);

fn start(client: Client, keys: Keys, ttl: Duration, reporter: Reporter) {
    thread::spawn(move || {
        loop {
            // Other threads report connection errors.
            let rest = match client.condition(&keys.all()) {
                Ok(condition) if !reporter.tell(Report::ClusterStatus(condition)) => return,
                Ok(_) => ttl * EVERY,
                Err(_) => REST,
            };
            thread::sleep(rest);
        }
    });
}
