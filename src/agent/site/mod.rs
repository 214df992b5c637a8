//! The site: tables that the agents of all hosts keep together, in an etcd. They stand in the agent's memory
//! beside its own, filled from a mirror of what etcd has, and everything is decided there by the same
//! function as ever. What is decided counts only once it is proved: one transaction takes the slots if
//! nothing that the decision rests on has changed. The thread that owns the tables never talks to etcd;
//! others do, and report.

mod about;
mod absence;
mod admission;
mod agent_id;
mod announcement;
mod deadline;
mod difference;
mod etcd;
mod hearing;
mod key;
mod lag;
mod lease_keeper;
mod loss;
mod mirror;
pub(in crate::agent) mod notices;
mod number;
mod origin;
mod own_keys;
mod patience;
mod proof;
mod publisher;
mod reconciler;
mod record;
mod report;
mod resting;
mod restored;
mod shown;
mod surveyor;
mod table_of_site;
mod tickets;
mod txn_job;
mod watcher;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use self::{
    absence::Absence,
    agent_id::AgentId,
    etcd::{Access, Client, ClusterStatus, EtcdError, Transaction},
    key::{Key, Keys},
    lag::Lag,
    lease_keeper::{Command, LeaseKeeper},
    mirror::Mirror,
    notices::received::ReceivedNotice,
    number::Numbers,
    origin::Origin,
    own_keys::OwnKeys,
    record::HostRecord,
    report::{Report, Reporter},
    resting::Resting,
    shown::Shown,
    txn_job::TxnJob,
    watcher::Watcher,
    work::{Admission, Work},
};
use super::{judge::Judge, ledger::state::State};
use crate::{
    policy::SiteSettings,
    sys::{credentials, poller::Bell, process},
    text::escape::visible,
};

/// How long a launch may wait for etcd before it is answered: less than launches wait for their agent.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long one member may take for one answer.
const PATIENCE_WITH_MEMBER: Duration = Duration::from_millis(1500);

/// How often it is looked whether something is due.
const TICK: Duration = Duration::from_millis(100);

/// What the agent knows of the site.
pub(super) struct Site {
    keys: Keys,
    host: String,
    agent: AgentId,
    endpoints: Vec<String>,
    ttl: Duration,
    margin: Duration,
    moves: Sender<TxnJob>,
    commands: Sender<Command>,
    is_doubted: Arc<AtomicBool>,
    reports: Receiver<Report>,
    mirror: Mirror,
    origin: Origin,
    /// How etcd itself is, when that was looked at last.
    condition: Option<ClusterStatus>,
    lag: Lag,
    shown: BTreeMap<String, Shown>,
    /// The revision of the host's key as this agent wrote it; none while it is being written anew.
    registration: Option<i64>,
    /// When that was, since boot.
    registered: Duration,
    /// When the last read was sent that found it so, since boot.
    confirmed: Option<Duration>,
    /// The same as it was written down last.
    saved: Option<Duration>,
    /// What is wrong, and since when.
    trouble: Option<(EtcdError, Instant)>,
    /// The same where another host has this one's name.
    twin: Option<(String, Instant)>,
    /// When it was seen last, since boot.
    disputed: Option<Duration>,
    /// How often the lease was lost.
    leases_lost: u64,
    /// Whether the first half of the deadline was said to be over.
    has_warned: bool,
    numbers: Numbers,
    next: u64,
    works: BTreeMap<u64, Work>,
    /// Proofs of which it is not known whether they were done.
    unclear: Vec<Admission>,
    /// The keys of this host.
    own: OwnKeys,
    /// When all of them were looked at last.
    looked: Option<Instant>,
    resting: BTreeMap<u64, Resting>,
    absences: BTreeMap<String, Absence>,
    /// The hosts whose keys are there, as the tables show it: who waits on others is passed over.
    reachable: BTreeMap<String, AgentId>,
    /// Holdings that are being ended because the site is lost, and when they were killed last.
    ended: BTreeMap<u64, Option<Instant>>,
    /// Holdings of which other hosts have given notice, each with the table.
    received: BTreeMap<(u64, String), ReceivedNotice>,
    /// Slots whose values nobody can read, and since when there are some.
    unreadable: (Instant, BTreeSet<(String, u64)>),
    /// Tables in which somebody has to look again.
    stirred: BTreeSet<String>,
}

impl Site {
    /// Begins to talk to etcd; or says what is wrong with the settings.
    pub(super) fn start(
        settings: &SiteSettings,
        state: &State,
        bell: &Arc<Bell>,
        judge: Judge,
    ) -> Result<Self, String> {
        let host = credentials::name().map_err(|errno| format!("gethostname: {}", errno.desc()))?;
        let host = host.to_string_lossy().into_owned();
        let agent = AgentId::of(state, process::boot_id().unwrap_or_default())?;
        let SiteSettings { endpoints, prefix, ttl, margin, .. } = settings;
        let client = Client::new(access(settings))?;
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
            longest: *ttl / 3,
            reporter: reporter.clone(),
            is_doubted: Arc::clone(&is_doubted),
        }
        .start();
        publisher::start(commands.clone(), *ttl, judge);
        let moves = txn_job::start(&client, &reporter);
        surveyor::start(client, keys.clone(), *ttl, reporter.clone());
        tick(reporter);
        Ok(Self {
            mirror: Mirror::new(keys.clone()),
            numbers: Numbers::of(&host),
            keys,
            host,
            agent,
            endpoints: endpoints.clone(),
            ttl: *ttl,
            margin: *margin,
            moves,
            commands,
            is_doubted,
            reports: heard,
            origin: Origin::default(),
            condition: None,
            lag: Lag::default(),
            shown: BTreeMap::new(),
            registration: None,
            registered: Duration::ZERO,
            confirmed: None,
            saved: None,
            trouble: None,
            twin: None,
            disputed: None,
            leases_lost: 0,
            has_warned: false,
            next: 1,
            works: BTreeMap::new(),
            unclear: Vec::new(),
            own: OwnKeys::default(),
            looked: None,
            resting: BTreeMap::new(),
            absences: BTreeMap::new(),
            reachable: BTreeMap::new(),
            ended: BTreeMap::new(),
            received: BTreeMap::new(),
            unreadable: (Instant::now(), BTreeSet::new()),
            stirred: BTreeSet::new(),
        })
    }

    /// Until when nobody can have taken this host for gone, since boot.
    fn deadline(&self) -> Option<Duration> {
        Some(self.confirmed?.saturating_add(self.ttl).saturating_sub(self.margin))
    }

    /// Whether slots may be taken now.
    fn is_open(&self) -> bool {
        let now = process::since_boot().unwrap_or(Duration::MAX);
        // Nothing is begun that would have to be ended at once.
        self.registration.is_some()
            && self.saved.is_some()
            && self.mirror.is_known()
            && self.is_named()
            && !self.is_disputed()
            && self.ends_at().is_some_and(|(first, _)| now < first)
    }

    /// Whether another host has written this one's key of late, and may do so again: twins take turns, and
    /// whoever of them is gone has not been seen for a whole ttl.
    fn is_disputed(&self) -> bool {
        let now = process::since_boot().unwrap_or_default();
        self.disputed.is_some_and(|disputed| now.saturating_sub(disputed) <= self.ttl_of(&self.host))
    }

    /// That, for as long as it is so.
    fn twin(&self) -> Option<&(String, Instant)> {
        self.twin.as_ref().filter(|_| self.is_disputed())
    }

    /// Whether the host's key is there, and this agent's, as far as the mirror knows.
    fn has_own_key(&self) -> bool {
        let record = self.mirror.hosts.get(&self.host).and_then(|at| at.record.as_ref());
        record.is_some_and(|record| record.agent == self.agent)
    }

    /// Gives a transaction to those who carry it out.
    fn send(&mut self, work: Work, transaction: Transaction) {
        let number = self.next;
        self.next += 1;
        self.works.insert(number, work);
        // They live as long as this does.
        let _ = self.moves.send(TxnJob { number, generation: self.origin.generation, transaction });
    }

    /// Whether something about this key is being done.
    fn is_busy_with(&self, key: &Key) -> bool {
        self.works.values().any(|work| matches!(work, Work::Aside(other) if other == key))
    }

    /// Has the host's key written anew, so that whatever was sent before can no longer be done.
    fn register_anew(&mut self) {
        self.registration = None;
        let _ = self.commands.send(Command::Anew);
    }

    /// Has everything read anew.
    fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Relaxed);
    }

    /// Remembers what is wrong, and since when.
    fn note(&mut self, trouble: EtcdError) {
        let since = self.trouble.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        self.trouble = Some((trouble, since));
    }

    /// A conversation is over.
    pub(super) fn forget(&mut self, session: u64) {
        self.resting.remove(&session);
    }

    fn key_of_host(&self) -> String {
        self.keys.name(&Key::Host(self.host.clone()))
    }
}

/// Looks whether the files that the settings name can be used.
pub(super) fn check(settings: &SiteSettings) -> Result<(), String> {
    Client::new(access(settings)).map(drop)
}

/// Says that a table is kept on this host alone, because nobody said where the others are.
pub(super) fn say_alone(name: &str) {
    announcement::log(&format!(
        "\"{}\" is kept on this host alone: there is no [site] in /etc/rungate/agent.toml",
        visible(name)
    ));
}

fn access(settings: &SiteSettings) -> Access {
    let SiteSettings { endpoints, ca, certificate, key, user, password_file, ttl, prefix: _, margin: _ } =
        settings.clone();
    let patience = PATIENCE_WITH_MEMBER.min(ttl / 4);
    Access { endpoints, ca, certificate, key, user, password_file, patience }
}

/// Reports now and then that time passes.
fn tick(reporter: Reporter) {
    thread::spawn(move || {
        while reporter.tell(Report::Tick) {
            thread::sleep(TICK);
        }
    });
}
