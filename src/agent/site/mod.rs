//! The site: tables that the agents of all hosts keep together, in an etcd. They stand in the agent's memory
//! beside its own, filled from a mirror of what etcd has, and everything is decided there by the same
//! function as ever. What is decided counts only once it is proved: one transaction takes the slots if
//! nothing that the decision rests on has changed. The thread that owns the tables never talks to etcd;
//! others do, and report.

mod about;
mod admission;
mod agent_id;
mod announcement;
mod deadline;
mod difference;
mod etcd;
mod hearing;
mod key;
mod lease_keeper;
mod loss;
mod mirror;
pub(in crate::agent) mod notices;
mod number;
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
    agent_id::AgentId,
    difference::Change,
    etcd::{Access, Client, ClusterStatus, Compare, EtcdError, Transaction},
    key::{Key, Keys},
    lease_keeper::{Command, LeaseKeeper},
    mirror::Mirror,
    notices::received::ReceivedNotice,
    number::Numbers,
    own_keys::OwnKeys,
    proof::Taking,
    record::HostRecord,
    report::{Report, Reporter},
    resting::Resting,
    shown::Shown,
    table_of_site::{TableOfSite, Versioned},
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
        start(client, keys.clone(), *ttl, reporter.clone());
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

// Which etcd it is that the agent goes by, and whether what is known of it is complete. What follows from
// that is in `restored`.

/// Of which etcd the mirror is, and what follows from it.
#[derive(Debug, Default)]
struct Origin {
    generation: u64,
    /// The cluster id; none before anything was read.
    cluster: Option<String>,
    /// Since when nothing is given because the tables may lack something, since boot.
    held_back: Option<Duration>,
    /// The longest ttl of any host that is known, or was.
    longest: Duration,
    /// Whether slots of this host may be missing there.
    is_incomplete: bool,
    /// The revision of `c/id` that is to be put in doubt.
    doubted: Option<i64>,
    /// Works of lower numbers were sent before.
    first_work: u64,
}

impl Origin {
    /// Whether a work that has this number was meant for the etcd that is known now.
    fn has_sent(&self, number: u64) -> bool {
        number >= self.first_work
    }
}

// The thread that looks now and then how etcd itself is, for whoever asks the doctor. Nothing waits for it.

/// How often, in ttls.
const EVERY: u32 = 10;

/// How long it rests where nobody answered.
const REST: Duration = Duration::from_secs(5);

fn start(client: Client, keys: Keys, ttl: Duration, reporter: Reporter) {
    thread::spawn(move || {
        loop {
            // What is wrong with the way there is told by others.
            let rest = match client.condition(&keys.all()) {
                Ok(condition) if !reporter.tell(Report::ClusterStatus(condition)) => return,
                Ok(_) => ttl * EVERY,
                Err(_) => REST,
            };
            thread::sleep(rest);
        }
    });
}

// How far the mirror is behind. Now and then a read says at which revision the newest key is; when the
// mirror has got there, it is known how long that took.

/// What is known of it; times are since boot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Lag {
    /// When a read was sent that the mirror has not caught up with, and which revision it found.
    awaited: Option<(Duration, i64)>,
    /// When the last one was sent that it has caught up with, and how long that took.
    level: Option<(Duration, Duration)>,
}

impl Lag {
    /// A read that was sent then found this revision. One that is still awaited says more.
    fn compare(&mut self, sent: Duration, revision: i64) {
        self.awaited.get_or_insert((sent, revision));
    }

    /// The mirror is at this revision now.
    fn reach(&mut self, revision: i64, now: Duration) {
        if let Some((sent, _)) = self.awaited.take_if(|(_, awaited)| *awaited <= revision) {
            self.level = Some((sent, now.saturating_sub(sent)));
        }
    }

    /// Everything is read anew: what was awaited may never come.
    fn forget(&mut self) {
        self.awaited = None;
    }

    /// By how much it is behind now; none where it was never level. Where nothing was compared for longer
    /// than this, nobody knows what has happened since.
    fn at(&self, now: Duration, longest: Duration) -> Option<Duration> {
        let (compared, took) = self.level?;
        let since = |sent: Duration| now.saturating_sub(sent);
        Some(match self.awaited {
            Some((sent, _)) => since(sent),
            None if since(compared) > longest => since(compared),
            None => took,
        })
    }
}

// Hosts that have gone: after one of them was seen absent for a ttl without a break, its slots and tickets
// are deleted, in a transaction that holds only if it is absent still, and was ever since, and if they are
// still those that it left. These are no keys of this host, and so no part of the difference that the
// reconciler makes up: what is fenced by another host's absence must not fail, or wait for, what is fenced
// by this one's presence.

/// How many keys go at once.
const AT_ONCE: usize = 100;

/// A host that is absent.
#[derive(Clone, Copy, Debug)]
struct Absence {
    /// When its key was last written: by that this absence is told from another.
    written: i64,
    /// Since when this agent has seen it, since boot.
    since: Duration,
}

impl Absence {
    /// Since when this agent has seen it, since boot.
    fn since(self) -> Duration {
        self.since
    }
}

impl Site {
    /// Sees who is absent, and deletes what those left who have been for long enough.
    fn look_for_absent(&mut self) {
        if !self.mirror.is_known() {
            return;
        }
        let now = process::since_boot().unwrap_or_default();
        let hosts = self.hosts_with_keys();
        self.absences.retain(|host, _| hosts.contains(host));
        for host in hosts {
            if self.mirror.hosts.contains_key(&host) || host == self.host {
                self.absences.remove(&host);
                continue;
            }
            let written = self.mirror.written.get(&host).map_or(0, |at| at.revision);
            let absence = *self
                .absences
                .entry(host.clone())
                .and_modify(|known| {
                    if known.written != written {
                        *known = Absence { written, since: now };
                    }
                })
                .or_insert(Absence { written, since: now });
            if now.saturating_sub(absence.since) > self.ttl_of(&host) {
                self.clear(&host, absence);
            }
        }
    }

    /// Notes whose hosts can be reached, and which tables show it otherwise: who waits on a host whose key is
    /// not there keeps its place, and is passed over.
    fn look_who_is_reachable(&mut self) {
        let records = self.mirror.hosts.iter();
        let of = |(host, at): (&String, &Versioned<HostRecord>)| {
            Some((host.clone(), at.record.as_ref()?.agent.clone()))
        };
        let reachable: BTreeMap<String, AgentId> = records.filter_map(of).collect();
        if reachable == self.reachable {
            return;
        }
        let before = std::mem::replace(&mut self.reachable, reachable);
        let hosts = before.keys().chain(self.reachable.keys());
        let changed: BTreeSet<_> =
            hosts.filter(|host| before.get(*host) != self.reachable.get(*host)).collect();
        let is_concerned = |of: &TableOfSite| {
            of.tickets.values().any(|at| at.record.as_ref().is_some_and(|of| changed.contains(&of.host)))
        };
        let tables = self.mirror.tables().filter(|(_, of)| is_concerned(of)).map(|(name, _)| name.clone());
        self.stirred.extend(tables);
    }

    /// The hosts that cannot be reached, on which somebody waits for one of these tables before this number.
    fn passed_over(&self, takings: &[Taking], number: u64) -> BTreeSet<String> {
        let tables = takings.iter().filter(|taking| taking.limit.is_some());
        let tickets = tables.filter_map(|taking| Some(&self.mirror.table(&taking.table)?.tickets));
        let records = tickets.flat_map(|of| of.range(..number)).filter_map(|(_, at)| at.record.as_ref());
        let absent = records.filter(|record| !self.mirror.hosts.contains_key(&record.host));
        absent.map(|record| record.host.clone()).collect()
    }

    /// Everybody who has a key.
    fn hosts_with_keys(&self) -> BTreeSet<String> {
        let of_slots = self.mirror.tables().flat_map(|(_, table)| table.slots.values());
        let of_slots = of_slots.filter_map(|at| Some(&at.record.as_ref()?.host));
        let of_tickets = self.mirror.tables().flat_map(|(_, table)| table.tickets.values());
        let of_tickets = of_tickets.filter_map(|at| Some(&at.record.as_ref()?.host));
        let of_notices = self.mirror.tables_with_notices().flat_map(|(_, table)| table.notices.values());
        let of_notices = of_notices.filter_map(|at| Some(&at.record.as_ref()?.host));
        let all = of_slots.chain(of_tickets).chain(of_notices).chain(self.mirror.written.keys());
        // Few hosts have many keys: only their names are copied.
        all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    /// How long a host may be silent: as long as it said itself, and as long as this one.
    fn ttl_of(&self, host: &str) -> Duration {
        let said = self.mirror.written.get(host).and_then(|at| Some(at.record.as_ref()?.ttl));
        said.map_or(self.ttl, |said| Duration::from_millis(said).max(self.ttl))
    }

    fn clear(&mut self, host: &str, absence: Absence) {
        let of_host = Key::Host(host.to_owned());
        if self.is_busy_with(&of_host) {
            return;
        }
        let gone = |(key, at)| Change { key, at, value: None };
        let written = Key::Written(host.to_owned());
        let compares = vec![
            Compare::Absent(self.keys.name(&of_host)),
            Compare::ChangedAt(self.keys.name(&written), absence.written),
        ];
        let mut changes: Vec<Change> = self.keys_of(|of, _| of == host).take(AT_ONCE).map(gone).collect();
        if changes.is_empty() {
            changes.push(gone((written, absence.written)));
        }
        // Another host may have deleted them before, and a slot be somebody else's by now.
        let transaction = self.transaction(compares, &changes);
        self.send(Work::Aside(of_host), transaction);
    }

    /// The slots, tickets and notices of these hosts and agents, each with its revision.
    fn keys_of(&self, is_wanted: impl Fn(&str, &AgentId) -> bool) -> impl Iterator<Item = (Key, i64)> {
        let mut keys = Vec::new();
        for (table, of) in self.mirror.tables() {
            for (slot, Versioned { revision, record }) in &of.slots {
                if record.as_ref().is_some_and(|record| is_wanted(&record.host, &record.agent)) {
                    keys.push((Key::Slot(table.clone(), *slot), *revision));
                }
            }
            for (number, Versioned { revision, record }) in &of.tickets {
                if record.as_ref().is_some_and(|record| is_wanted(&record.host, &record.agent)) {
                    keys.push((Key::Ticket(table.clone(), *number), *revision));
                }
            }
            for (slot, Versioned { revision, record }) in &of.notices {
                if record.as_ref().is_some_and(|record| is_wanted(&record.host, &record.agent)) {
                    keys.push((Key::Notice(table.clone(), *slot), *revision));
                }
            }
        }
        keys.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    fn lag_at(lag: &Lag, second: u64) -> Option<u64> {
        lag.at(Duration::from_secs(second), LONGEST).map(|lag| lag.as_secs())
    }

    #[test]
    fn a_mirror_is_behind_until_it_has_what_a_read_found() {
        let second = Duration::from_secs;
        let mut lag = Lag::default();
        assert_eq!(lag_at(&lag, 9), None);
        lag.compare(second(10), 7);
        lag.reach(7, second(11));
        assert_eq!(lag_at(&lag, 20), Some(1));
        lag.compare(second(30), 9);
        lag.compare(second(50), 10);
        lag.reach(8, second(51));
        assert_eq!(lag_at(&lag, 55), Some(25));
        lag.reach(9, second(56));
        assert_eq!(lag_at(&lag, 57), Some(26));
        // Nobody answers any more.
        assert_eq!(lag_at(&lag, 91), Some(61));
    }
}
