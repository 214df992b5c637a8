//! The thread that keeps the host's key. It writes `h/HOST` under a lease, and `g/HOST` beside it without
//! one. It renews the lease, which lasts a third of the ttl, so that others soon see that a host cannot be
//! reached. It reads the key, so that the agent knows until when no host can have considered it dead. On
//! request it writes the keys again, which makes every older transaction of this agent fail, however late it
//! is committed. An etcd that is full refuses that, but renews leases and answers reads: then the old key is
//! kept meanwhile. If the agent of another host writes the same key, both write it in turns of a third of
//! the ttl. So each detects the other while both exist.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    AgentId, HostRecord, Key, Keys, Operation, Range, Report, Reporter, Transaction,
    etcd::{Client, EtcdError},
    record::{bytes, read},
};
use crate::{agent::PolicyReader, judge::terms::Keeper, policy::Policy, sys::process};

/// Its commands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Command {
    /// Write the keys again, at once.
    Anew,
    /// Check at once whether the keys are as written.
    Look,
    /// Write them again, with this about the repositories of the site.
    Publish(BTreeMap<String, String>),
}

/// How often in a ttl the key is read, and how many leases make a ttl: each of them is renewed as often.
pub(super) const THIRD: u32 = 3;

/// How long it rests after an error.
const REST: Duration = Duration::from_millis(200);

/// Its settings.
pub(super) struct LeaseKeeper {
    pub(super) client: Client,
    pub(super) keys: Keys,
    pub(super) host: String,
    pub(super) record: HostRecord,
    pub(super) ttl: Duration,
    pub(super) reporter: Reporter,
    pub(super) commands: Receiver<Command>,
    /// Whether it was told to check the key.
    pub(super) has_to_look: bool,
}

/// The keys as they were written.
#[derive(Clone, Copy, Debug)]
struct Written {
    lease: i64,
    revision: i64,
}

/// The state of a key that was written.
enum Found {
    AsWritten,
    Gone,
    /// Written by this agent, earlier or later; or by another one, unless its author is unreadable.
    Another(Option<AgentId>),
}

impl LeaseKeeper {
    /// Runs while its reports are received.
    pub(super) fn start(self) {
        thread::spawn(move || self.run());
    }

    fn run(mut self) {
        let mut written: Option<Written> = None;
        let (mut lease, mut disputed) = (None, None);
        let mut looked = Instant::now();
        loop {
            let begun = Instant::now();
            let is_written = written.is_some();
            // If the key cannot be written, the lease is renewed only with a check.
            let interval = self.ttl / if is_written { THIRD } else { THIRD * THIRD };
            let is_due = self.has_to_look || begun.duration_since(looked) >= interval;
            let advanced = self.advance(&mut written, &mut lease, &mut disputed, is_due);
            let is_checked = match &advanced {
                // A write of the key finds it, too.
                Ok(()) => is_due || !is_written,
                // A check that failed stays due, unless it came after a write that failed.
                Err(_) => is_due && !is_written,
            };
            if is_checked {
                (looked, self.has_to_look) = (begun, false);
            }
            let has_failed = advanced.is_err();
            let rest = match advanced {
                // A key that another host wrote is left to it for a while.
                Ok(()) if written.is_none() => self.ttl / THIRD,
                Ok(()) => self.ttl / (THIRD * THIRD),
                Err(trouble) => {
                    if !self.reporter.tell(Report::Unreached(trouble)) {
                        return;
                    }
                    REST.min(self.ttl / 3)
                }
            };
            // Nothing interrupts the turn of the other host with this name, nor the rest after an error.
            let is_its_turn = written.is_none() && disputed.is_some();
            if !self.rest(rest, is_its_turn || has_failed, &mut written) {
                return;
            }
        }
    }

    /// Rests, or until the next command if that may interrupt it. Returns whether commands can still come.
    fn rest(&mut self, rest: Duration, is_whole: bool, written: &mut Option<Written>) -> bool {
        let until = Instant::now() + rest;
        loop {
            match self.commands.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(command) => self.heed(command, written),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            if !is_whole {
                // There may be several requests by now: once is enough.
                while let Ok(command) = self.commands.try_recv() {
                    self.heed(command, written);
                }
                return true;
            }
        }
    }

    fn heed(&mut self, command: Command, written: &mut Option<Written>) {
        match command {
            Command::Anew => *written = None,
            Command::Look => self.has_to_look = true,
            Command::Publish(repositories) => {
                self.record.repositories = repositories;
                *written = None;
            }
        }
    }

    fn advance(
        &self,
        written: &mut Option<Written>,
        lease: &mut Option<i64>,
        disputed: &mut Option<Instant>,
        is_checked: bool,
    ) -> Result<(), EtcdError> {
        let Some(known) = *written else {
            if lease.is_none() {
                self.look_before()?;
            }
            let now = self.write(lease).inspect_err(|_| {
                if let Some(lease) = lease.filter(|_| is_checked) {
                    // The error of the write is reported.
                    let _ = self.keep(lease);
                }
            });
            *written = Some(now?);
            return Ok(());
        };
        if let Err(trouble) = self.client.keep_alive(known.lease) {
            if !trouble.is_lease_gone() {
                return Err(trouble);
            }
            self.reporter.tell(Report::LeaseLost);
            *lease = None;
            *written = None;
            *written = Some(self.write(lease)?);
            return Ok(());
        }
        if !is_checked {
            return Ok(());
        }
        let sent = process::since_boot().unwrap_or_default();
        let (found, revision, generation) = self.find(known.revision)?;
        match found {
            Found::AsWritten => {
                self.reporter.tell(Report::Confirmed { revision, generation, sent });
            }
            Found::Another(other) if other.as_ref() != Some(&self.record.agent) => {
                *written = None;
                self.reporter.tell(Report::Twin { agent: other, sent, generation });
                let was_disputed = disputed.replace(Instant::now()).is_some_and(|at| at.elapsed() < self.ttl);
                if was_disputed {
                    // It is not renewed until it is this agent's turn.
                    *lease = None;
                } else {
                    *written = Some(self.write(lease)?);
                }
            }
            Found::Gone | Found::Another(_) => {
                if matches!(found, Found::Gone) {
                    self.reporter.tell(Report::LeaseLost);
                }
                *written = None;
                *written = Some(self.write(lease)?);
            }
        }
        Ok(())
    }

    /// Checks before the first write whether another agent of the same kernel has the name. A key of another
    /// boot is this host's own, from before its start.
    fn look_before(&self) -> Result<(), EtcdError> {
        let sent = process::since_boot().unwrap_or_default();
        let (found, _, generation) = self.find(0)?;
        if let Found::Another(Some(other)) = found
            && other != self.record.agent
            && other.is_of_boot_of(&self.record.agent)
        {
            self.reporter.tell(Report::Twin { agent: Some(other), sent, generation });
        }
        Ok(())
    }

    /// Renews the lease and looks for a key that this agent has written before.
    fn keep(&self, lease: i64) -> Result<(), EtcdError> {
        self.client.keep_alive(lease)?;
        let sent = process::since_boot().unwrap_or_default();
        let (found, _, generation) = self.find(0)?;
        if let Found::Another(Some(agent)) = found
            && agent == self.record.agent
        {
            self.reporter.tell(Report::Kept { sent, generation });
        }
        Ok(())
    }

    /// Writes both keys, in one transaction. If the result is unknown, it writes again: a late commit is
    /// detected, because it changes the revision.
    fn write(&self, lease: &mut Option<i64>) -> Result<Written, EtcdError> {
        let seconds = i64::try_from((self.ttl / THIRD).as_secs()).unwrap_or(i64::MAX).max(1);
        let current = match *lease {
            Some(lease) => lease,
            None => self.client.grant_lease(seconds)?,
        };
        *lease = Some(current);
        // The key without a lease remains after the host is gone, and only shows that it existed.
        let lasting = HostRecord { repositories: BTreeMap::new(), ..self.record.clone() };
        let transaction = registration(&self.keys, &self.host, bytes(&self.record), bytes(&lasting), current);
        let sent = process::since_boot().unwrap_or_default();
        let done = self.client.carry_out(&transaction).inspect_err(|trouble| {
            if trouble.is_lease_gone() {
                *lease = None;
            }
        })?;
        let (revision, generation) = (done.revision, done.generation);
        self.reporter.tell(Report::Registered { revision, generation, sent });
        Ok(Written { lease: current, revision: done.revision })
    }

    /// The state of the key, with the revision and the generation of the etcd that answers.
    fn find(&self, revision: i64) -> Result<(Found, i64, u64), EtcdError> {
        let snapshot = self.client.read(&Range::key(self.keys.name(&Key::Host(self.host.clone()))))?;
        let found = match snapshot.pairs.first() {
            None => Found::Gone,
            Some(pair) if pair.revision == revision => Found::AsWritten,
            Some(pair) => Found::Another(read::<HostRecord>(&pair.value).map(|record| record.agent)),
        };
        Ok((found, snapshot.revision, snapshot.generation))
    }
}

/// Writes both keys of a host, under a lease and without one, whatever their state.
pub(super) fn registration(
    keys: &Keys,
    host: &str,
    record: Vec<u8>,
    lasting: Vec<u8>,
    lease: i64,
) -> Transaction {
    let (leased, written) = (Key::Host(host.to_owned()), Key::Written(host.to_owned()));
    let operations = vec![
        Operation::PutUnderLease(keys.name(&leased), record, lease),
        Operation::Put(keys.name(&written), lasting),
    ];
    Transaction { compares: Vec::new(), operations }
}

// The thread that writes the policy of the site's repositories into the host's key, so that people see where
// hosts differ. No decision uses it. It takes the policy that the judges have already read.

/// How often it checks at most whether the policy has changed.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many repositories it publishes.
const MOST: usize = 100;

/// Runs while its reports are received.
pub(super) fn start(commands: Sender<Command>, ttl: Duration, policies: Arc<PolicyReader>) {
    thread::spawn(move || {
        let mut told = BTreeMap::new();
        loop {
            // Launches report its faults.
            let known = policies.current().ok().map(|policy| repositories(&policy));
            if let Some(known) = known.filter(|known| *known != told) {
                told.clone_from(&known);
                if commands.send(Command::Publish(known)).is_err() {
                    return;
                }
            }
            thread::sleep(INTERVAL.min(ttl / 3));
        }
    });
}

fn repositories(policy: &Policy) -> BTreeMap<String, String> {
    let all = policy.repositories().iter().filter(|known| known.keeper() == Keeper::Site);
    all.take(MOST).map(|known| (known.shown_name().to_owned(), known.printed())).collect()
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread::JoinHandle};

    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::Value;

    use super::*;
    use crate::{
        agent::site::etcd::tests::{committed, found, member, refused},
        sys::Bell,
    };

    const LEASE: &str = r#"{"ID":"3","TTL":"20"}"#;
    const RENEWED: &str = r#"{"result":{"ID":"3","TTL":"20"}}"#;
    const EXPIRED: &str = r#"{"result":{"ID":"3"}}"#;

    fn record(agent: &str) -> HostRecord {
        let agent: AgentId = serde_json::from_value(agent.into()).expect("an id");
        let (version, repositories) = ("0".to_owned(), BTreeMap::new());
        HostRecord { agent, version, ttl: 60_000, repositories, lease: 0 }
    }

    /// The answer to a read of the key: written by this agent at this revision.
    fn key(agent: &str, revision: i64) -> String {
        found(7, "/test/h/lab", &bytes(&record(agent)), Some(revision))
    }

    /// The thread of a host, as far as it has come.
    struct Scene {
        keeper: LeaseKeeper,
        reports: Receiver<Report>,
        member: JoinHandle<Vec<Value>>,
        written: Option<Written>,
        lease: Option<i64>,
        disputed: Option<Instant>,
    }

    impl Scene {
        /// It has written its key at revision 8, if it `has_begun`.
        fn new(has_begun: bool, answers: &[String]) -> Self {
            let (client, member) = member(answers);
            let (reports, heard) = channel();
            let keeper = LeaseKeeper {
                client,
                keys: Keys::below("/test/"),
                host: "lab".to_owned(),
                record: record("boot.1"),
                ttl: Duration::from_secs(60),
                reporter: Reporter { reports, bell: Arc::new(Bell::new().expect("a bell")) },
                commands: channel().1,
                has_to_look: false,
            };
            let written = has_begun.then_some(Written { lease: 3, revision: 8 });
            let lease = written.map(|written| written.lease);
            Self { keeper, reports: heard, member, written, lease, disputed: None }
        }

        /// One step, and what it reports.
        fn advances(&mut self, is_checked: bool) -> Vec<&'static str> {
            let Self { keeper, written, lease, disputed, .. } = self;
            keeper.advance(written, lease, disputed, is_checked).expect("each request is answered");
            self.reports.try_iter().map(|report| word(&report)).collect()
        }

        /// One step that is not possible, and what it reports.
        fn reports_of_a_failure(&mut self, is_checked: bool) -> Vec<&'static str> {
            let Self { keeper, written, lease, disputed, .. } = self;
            assert!(keeper.advance(written, lease, disputed, is_checked).is_err());
            self.reports.try_iter().map(|report| word(&report)).collect()
        }

        /// One step that is not possible. It reports nothing.
        fn fails(&mut self) {
            assert_eq!(self.reports_of_a_failure(true), [""; 0]);
        }
    }

    fn word(report: &Report) -> &'static str {
        match report {
            Report::Registered { .. } => "registered",
            Report::Confirmed { .. } => "confirmed",
            Report::Kept { .. } => "kept",
            Report::LeaseLost => "lease lost",
            Report::Twin { .. } => "twin",
            Report::Unreached(_) => "unreached",
            _ => "something else",
        }
    }

    /// A host looks at its key before it writes it. A key of another agent of the same kernel is that of
    /// another host; one of another boot is its own, from before.
    #[test]
    fn a_host_that_starts_looks_who_has_its_name() {
        let nothing = found(7, "/test/h/lab", &[], None);
        for (read, is_twin) in [
            (nothing, false),
            (key("boot.1", 5), false),
            (key("reboot.2", 5), false),
            (key("boot.2", 5), true),
            (found(7, "/test/h/lab", b"a mistake", Some(5)), false),
        ] {
            let mut scene = Scene::new(false, &[read.clone(), LEASE.to_owned(), committed(8)]);
            let reports = scene.advances(true);
            assert_eq!(reports.contains(&"twin"), is_twin, "{read}");
            assert_eq!(reports.last(), Some(&"registered"), "{read}");
            assert_eq!(scene.written.map(|written| (written.lease, written.revision)), Some((3, 8)));
            let asked = scene.member.join().expect("three requests");
            // A third of the ttl.
            assert_eq!(asked[1]["TTL"], "20");
            let lease_of = |key: usize| &asked[2]["success"][key]["request_put"]["lease"];
            assert_eq!((lease_of(0), lease_of(1)), (&"3".into(), &Value::Null));
        }
    }

    /// A check finds the key as it was written, or it is written again. A key that is gone was lost with its
    /// lease, and one that this agent itself has written later was not.
    #[test]
    fn a_key_that_is_not_as_it_was_written_is_written_again() {
        let gone = found(7, "/test/h/lab", &[], None);
        for (read, reports) in [
            (key("boot.1", 8), vec!["confirmed"]),
            (key("boot.1", 9), vec!["registered"]),
            (gone, vec!["lease lost", "registered"]),
            (key("boot.2", 9), vec!["twin", "registered"]),
            (key("reboot.2", 9), vec!["twin", "registered"]),
            (found(7, "/test/h/lab", b"a mistake", Some(9)), vec!["twin", "registered"]),
        ] {
            let mut scene = Scene::new(true, &[RENEWED.to_owned(), read.clone(), committed(10)]);
            assert_eq!(scene.advances(true), reports, "{read}");
            let revision = if reports == ["confirmed"] { 8 } else { 10 };
            assert_eq!(scene.written.map(|written| written.revision), Some(revision), "{read}");
            assert_eq!((scene.lease, scene.disputed.is_some()), (Some(3), reports[0] == "twin"), "{read}");
        }
    }

    /// Between two checks the lease is renewed. If it has expired, the key is written under another one.
    #[test]
    fn a_lease_that_has_expired_is_replaced() {
        let mut scene = Scene::new(true, &[RENEWED.to_owned()]);
        assert_eq!(scene.advances(false), [""; 0]);
        assert_eq!(scene.written.map(|written| written.revision), Some(8));
        let lease = r#"{"ID":"4","TTL":"20"}"#.to_owned();
        let mut scene = Scene::new(true, &[EXPIRED.to_owned(), lease, committed(10)]);
        assert_eq!(scene.advances(false), ["lease lost", "registered"]);
        assert_eq!(scene.lease, Some(4));
        assert_eq!(scene.written.map(|written| (written.lease, written.revision)), Some((4, 10)));
    }

    /// A lease that exists is not replaced if a member cannot renew it now. One that is gone when the key is
    /// written is replaced the next time.
    #[test]
    fn a_lease_is_replaced_when_it_is_gone() {
        let mut scene = Scene::new(true, &[refused("etcdserver: no leader")]);
        scene.fails();
        assert_eq!((scene.written.map(|written| written.revision), scene.lease), (Some(8), Some(3)));
        let mut scene = Scene::new(true, &[refused("etcdserver: no leader")]);
        scene.written = None;
        scene.fails();
        assert_eq!((scene.written.is_none(), scene.lease), (true, Some(3)));
        let gone = refused("etcdserver: requested lease not found");
        let nothing = found(7, "/test/h/lab", &[], None);
        let mut scene = Scene::new(false, &[gone, nothing, LEASE.to_owned(), committed(10)]);
        scene.lease = Some(2);
        scene.fails();
        assert_eq!(scene.advances(true), ["registered"]);
        assert_eq!((scene.written.map(|written| written.revision), scene.lease), (Some(10), Some(3)));
    }

    /// An etcd that is full refuses every write, and still renews leases and answers reads. So the key that
    /// is there is kept, when that is due. Only the host's own key protects its slots.
    #[test]
    fn a_key_that_cannot_be_written_is_kept() {
        let full = || refused("etcdserver: mvcc: database space exceeded");
        let gone = found(7, "/test/h/lab", &[], None);
        for (read, is_due, reports) in [
            (key("boot.1", 8), true, vec!["kept"]),
            // A write that seemed to fail may have been committed.
            (key("boot.1", 9), true, vec!["kept"]),
            (key("boot.2", 9), true, vec![]),
            (gone, true, vec![]),
            (key("boot.1", 8), false, vec![]),
        ] {
            let mut scene = Scene::new(true, &[full(), RENEWED.to_owned(), read.clone()]);
            scene.keeper.heed(Command::Publish(BTreeMap::new()), &mut scene.written);
            assert_eq!(scene.reports_of_a_failure(is_due), reports, "{read}");
            assert_eq!((scene.written.is_none(), scene.lease), (true, Some(3)), "{read}");
            if is_due {
                let asked = scene.member.join().expect("three requests");
                assert_eq!(asked[1]["ID"], "3", "the lease of the key is renewed");
            }
        }
        // There is nothing to keep without a lease.
        let mut scene = Scene::new(false, &[key("boot.1", 8), full(), RENEWED.to_owned(), key("boot.1", 8)]);
        assert_eq!(scene.reports_of_a_failure(true), [""; 0]);
    }

    /// A write that is refused is tried again soon. What keeps the key meanwhile is not repeated as often.
    #[test]
    fn a_key_that_cannot_be_written_is_kept_once_in_a_while() {
        let full = || refused("etcdserver: mvcc: database space exceeded");
        let nothing = found(7, "/test/h/lab", &[], None);
        let answers =
            [nothing, LEASE.to_owned(), full(), RENEWED.to_owned(), key("boot.1", 8), full(), committed(10)];
        let Scene { mut keeper, reports, .. } = Scene::new(false, &answers);
        let (commands, commanded) = channel();
        (keeper.commands, keeper.has_to_look, keeper.ttl) = (commanded, true, Duration::from_secs(3600));
        keeper.start();
        let told = [(); 4].map(|()| {
            let report = reports.recv_timeout(Duration::from_secs(60)).expect("a report");
            word(&report)
        });
        assert_eq!(told, ["kept", "unreached", "unreached", "registered"]);
        drop(commands);
    }

    /// A lease lasts a second at least.
    #[test]
    fn a_short_ttl_has_a_lease_of_a_second() {
        let nothing = found(7, "/test/h/lab", &[], None);
        let mut scene = Scene::new(false, &[nothing, LEASE.to_owned(), committed(8)]);
        scene.keeper.ttl = Duration::from_secs(2);
        assert_eq!(scene.advances(true), ["registered"]);
        assert_eq!(scene.member.join().expect("three requests")[1]["TTL"], "1");
    }

    /// What a host publishes is written into its key at once. The key without a lease does not have it.
    #[test]
    fn what_is_published_is_in_the_key_under_the_lease() {
        let mut scene = Scene::new(true, &[committed(10)]);
        let repositories = BTreeMap::from([("seats".to_owned(), "limit = 3".to_owned())]);
        scene.keeper.heed(Command::Publish(repositories.clone()), &mut scene.written);
        assert_eq!(scene.advances(true), ["registered"]);
        let asked = scene.member.join().expect("a request");
        let published = |key: usize| {
            let value = asked[0]["success"][key]["request_put"]["value"].as_str().expect("a value");
            let value = STANDARD.decode(value).expect("base64");
            read::<HostRecord>(&value).expect("a record").repositories
        };
        assert_eq!((published(0), published(1)), (repositories, BTreeMap::new()));
    }

    /// The settings of the site's repositories are published, and of no others.
    #[test]
    fn repositories_of_the_site_are_published() {
        let text = r#"
            [repository.seats]
            keeper = "site"
            limit = 3
            [repository.licences]
            keeper = "agent"
            limit = 4
            [[rule]]
            commands = ["matlab"]
            acquire = ["seats", "licences"]
        "#;
        let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
        let published = repositories(&policy);
        assert_eq!(published.keys().collect::<Vec<_>>(), ["seats"]);
        assert!(published["seats"].contains("limit = 3"));
    }

    /// Commands interrupt a rest, and all that have come are heeded together. In the turn of another host of
    /// the same name they are heeded, and do not interrupt it.
    #[test]
    fn commands_do_not_interrupt_the_turn_of_another_host() {
        for is_its_turn in [false, true] {
            let mut scene = Scene::new(true, &[]);
            let (commands, commanded) = channel();
            scene.keeper.commands = commanded;
            for command in [Command::Look, Command::Anew] {
                commands.send(command).expect("it is heard");
            }
            drop(commands);
            let is_over = scene.keeper.rest(Duration::from_secs(60), is_its_turn, &mut scene.written);
            // A rest that is not interrupted ends here because no command can come any more.
            assert_eq!(is_over, !is_its_turn);
            assert!(scene.keeper.has_to_look && scene.written.is_none());
        }
    }

    /// Two hosts of one name write the key in turns, so that each sees the other: one that has seen the other
    /// twice within a ttl leaves the key to it, and does not renew its lease.
    #[test]
    fn two_hosts_of_one_name_write_the_key_in_turns() {
        for (ago, is_left) in [(1, true), (61, false)] {
            let mut scene = Scene::new(true, &[RENEWED.to_owned(), key("boot.2", 9), committed(10)]);
            scene.disputed = Instant::now().checked_sub(Duration::from_secs(ago));
            let reports = scene.advances(true);
            assert_eq!(reports, if is_left { vec!["twin"] } else { vec!["twin", "registered"] }, "{ago}");
            assert_eq!((scene.written.is_none(), scene.lease.is_none()), (is_left, is_left), "{ago}");
        }
    }
}
