//! A host of a site whose etcd cannot be reached. What there is to report comes from the test, which also
//! sees what the host asks of etcd.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    agent::{
        AcquireRequest,
        ledger::{
            holding::Holding,
            state::{SavedHolding, State},
        },
        service::{Service, local::Local},
        site::{
            AgentId, Change, ClusterRecord, Compare, Done, HostRecord, Key, Report, Site, SlotRecord,
            Transaction,
            etcd::{Pair, Snapshot},
            pending::Pending,
            proof::transaction,
            record::bytes,
        },
    },
    judge::terms::{
        Amount, Claim, Demand, Hold, Location, Nested, Origin, Pace, Queue, Reserved, Setting, Slots, Wait,
        table_of_site,
    },
    keeper::memory,
    launch::SystemNames,
    policy::{AgentFile, SiteSettings},
    sys::{Listener, Process, own_pid, process},
};

pub(super) fn settings() -> SiteSettings {
    SiteSettings {
        endpoints: vec!["http://127.0.0.1:1".to_owned()],
        prefix: "/test/".to_owned(),
        ca: None,
        certificate: None,
        key: None,
        user: None,
        password_file: None,
        ttl: Duration::from_secs(60),
        margin: Duration::from_secs(5),
    }
}

/// Its parts, what reports to it, and its directories. It is prepared before its agent starts.
pub(super) fn host(prepare: impl FnOnce(&State)) -> (Local, Site, Sender<Report>, [TempDir; 2]) {
    let [state, run] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    prepare(&State::open(state.path()).expect("it is new"));
    let listener = Listener::at(&run.path().join("socket")).expect("a free path");
    let settings = AgentFile { site: Some(settings()), ..AgentFile::default() };
    let service = Service::new(listener, state.path(), &settings, &SystemNames);
    let (local, site) = service.expect("an agent").into_parts();
    let mut site = site.expect("a site");
    let (reports, heard) = channel();
    site.reports = heard;
    (local, site, reports, [state, run])
}

/// A transaction, and its number.
type Asked = (u64, Transaction);

/// The host, and what it asks for.
pub(super) struct Stage {
    pub(super) local: Local,
    pub(super) site: Site,
    reports: Sender<Report>,
    asked: Box<dyn Fn() -> Option<Asked>>,
    directories: [TempDir; 2],
}

impl Stage {
    /// A host that is prepared before its agent starts.
    pub(super) fn new(prepare: impl FnOnce(&State)) -> Self {
        let (local, mut site, reports, directories) = host(prepare);
        let (pending, asked) = Pending::recorded();
        site.pending = pending;
        Self { local, site, reports, asked: Box::new(asked), directories }
    }

    /// It can save no holding any more.
    pub(super) fn cannot_save(&self) {
        fs::remove_dir_all(self.directories[0].path().join("holdings")).expect("a directory");
    }

    /// A host that grants slots. It was at the site before.
    pub(super) fn open(prepare: impl FnOnce(&State)) -> Self {
        let mut stage = Self::new(|state| {
            was_confirmed(state);
            prepare(state);
        });
        stage.reads(7, Vec::new());
        stage.registers(8);
        stage
    }

    /// Its table of the site's.
    pub(super) fn table(&self) -> memory::Table {
        self.local.ledger().store().table(&table_of_site("seats"))
    }

    /// These changes, if the key of the host has this revision.
    pub(super) fn kept(&self, registration: i64, changes: &[Change]) -> Transaction {
        let own = self.site.keys.name(&Key::Host(self.site.host.clone()));
        transaction(&self.site.keys, vec![Compare::ChangedAt(own, registration)], changes)
    }

    pub(super) fn hears(&mut self, report: Report) {
        self.hears_together(vec![report]);
    }

    /// It hears all of these at once.
    pub(super) fn hears_together(&mut self, reports: Vec<Report>) {
        for report in reports {
            self.reports.send(report).expect("it is heard");
        }
        self.site.hear(&mut self.local);
    }

    /// The next transaction that it asks for.
    pub(super) fn asks(&self) -> Option<Asked> {
        (self.asked)()
    }

    /// A key with its value and its revision.
    pub(super) fn pair(&self, key: &Key, revision: i64, value: Vec<u8>) -> Pair {
        Pair { key: self.site.keys.name(key), value, revision, lease: 0 }
    }

    /// The key that names the etcd.
    pub(super) fn id(&self, revision: i64, cluster: &str) -> Pair {
        self.pair(&Key::Cluster, revision, bytes(&ClusterRecord { cluster: cluster.to_owned() }))
    }

    /// It reads all keys of the etcd that its tables belong to, with its id.
    pub(super) fn reads(&mut self, revision: i64, mut pairs: Vec<Pair>) {
        pairs.push(self.id(5, "one"));
        self.reads_of(1, "one", revision, pairs);
    }

    /// It reads all keys of this etcd.
    pub(super) fn reads_of(&mut self, generation: u64, cluster: &str, revision: i64, pairs: Vec<Pair>) {
        let cluster = cluster.to_owned();
        self.hears(Report::Fresh(Snapshot { revision, generation, cluster, pairs }));
    }

    /// It hears that keys were written or deleted.
    pub(super) fn sees(&mut self, changes: Vec<(Pair, bool)>) {
        self.hears(Report::Changes(changes));
    }

    /// Its key was written.
    pub(super) fn writes_its_key(&mut self, revision: i64) {
        let (generation, sent) = (self.site.origin.generation(), process::since_boot().expect("a clock"));
        self.hears(Report::Registered { revision, generation, sent });
    }

    /// The key as its agent has written it.
    pub(super) fn own_key(&self, revision: i64) -> Pair {
        let value = of_host(&self.site.agent);
        self.pair(&Key::Host(self.site.host.clone()), revision, value)
    }

    /// Its key was written, and it has heard everything until then.
    pub(super) fn registers(&mut self, revision: i64) {
        let own = self.own_key(revision);
        self.sees(vec![(own, true)]);
        self.writes_its_key(revision);
    }

    /// The record of a launch of this host.
    pub(super) fn record(&self, saved: &SavedHolding, launch: u64) -> SlotRecord {
        SlotRecord::of(saved, "seats", &self.site.host, &self.site.agent, launch)
    }
}

/// A read has confirmed the host a second ago.
pub(super) fn was_confirmed(state: &State) {
    let confirmed = process::since_boot().expect("a clock").saturating_sub(Duration::from_secs(1));
    state.write_confirmation(confirmed).expect("there is room");
}

/// The value of the key of a host with this agent.
pub(super) fn of_host(agent: &AgentId) -> Vec<u8> {
    let (version, repositories) = ("0".to_owned(), BTreeMap::new());
    bytes(&HostRecord { agent: agent.clone(), version, ttl: 0, repositories, lease: 0 })
}

/// The key of a slot.
pub(super) fn slot(number: u64) -> Key {
    Key::Slot("seats".to_owned(), number)
}

/// This process with these slots, as an agent has saved it.
pub(super) fn saved(slots: &[u64]) -> SavedHolding {
    let itself = Process::find(own_pid()).expect("it runs");
    let table = table_of_site("seats");
    let of_table = json!({ "table": table, "rule": "seats", "slots": slots, "is_shared": false });
    let saved = json!({
        "pid": itself.pid, "start": itself.started, "uid": 0, "hold": "process", "host": "",
        "command": "matlab", "since": 1, "tables": [of_table],
    });
    serde_json::from_value(saved).expect("a holding")
}

/// A launch of this process that has these slots in memory.
pub(super) fn holding(saved: SavedHolding, held: memory::Held) -> Holding {
    let (held, without, has_spared) = (vec![held], Vec::new(), Cell::default());
    Holding { saved, process: None, fifo: None, held, without, launch: 0, has_spared }
}

/// What a launch wants that needs one of three slots.
pub(super) fn request() -> AcquireRequest {
    let claim = Claim {
        repository: "seats".into(),
        member: Vec::new(),
        origins: vec![Origin::outside_the_policy("a test")],
        location: Location::Memory(table_of_site("seats")),
        amount: Amount::plain(Slots::Number(1), 3),
        limit_of: None,
        kept: Vec::new(),
        reserved: Reserved::default(),
        names: Arc::default(),
        out_of_order: Vec::new(),
        outside: None,
        pace: Pace::default(),
        nested: Nested::Take,
        wait: Setting { bound: None, default: Some(Wait::Forever) },
        queue: Queue::default(),
        unclear: None,
    };
    AcquireRequest {
        demands: vec![Demand::One(claim)],
        locations: Vec::new(),
        hold: Hold::Process,
        longest: None,
        generation: 0,
        command: "matlab".to_owned(),
        host: String::new(),
        uid: 0,
        ancestors: Vec::new(),
        may_end: false,
        judged: Instant::now(),
        without: Vec::new(),
    }
}

/// All conditions held, in the etcd of this generation.
pub(super) fn done_in(generation: u64, revision: i64) -> Done {
    Done { holds: true, revision, generation }
}

/// The same in the first one.
pub(super) fn done(revision: i64) -> Done {
    done_in(1, revision)
}

pub(super) fn deleted(key: Key, at: i64) -> Change {
    Change { key, at, value: None }
}
