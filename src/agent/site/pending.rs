//! Transactions without an answer yet, and the threads that carry out a few of them at a time, for each user
//! in turn. Without an answer the result is unknown: such a proof is kept until the mirror has all commits.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    AgentId, Change, Done, Key, Transaction, Value,
    etcd::{Client, ClusterStatus, EtcdError, Inventory, Pair, Snapshot},
};
use crate::{
    agent::{AcquireRequest, FairQueue, ledger::holding::Holding},
    sys::Bell,
};

/// How many run at once.
const MOVERS: usize = 8;

/// What a transaction is for.
#[derive(Debug)]
pub(super) enum Work {
    /// Slots are acquired for a launch.
    Take(Box<Admission>),
    /// A launch joins bounded queues; decided while the host's key had this revision.
    Join { launch: u64, under: i64, tickets: BTreeMap<Key, Value> },
    /// Keys of this host are updated.
    Keep(Vec<Change>),
    /// Any other change: the mirror shows the result, and this key is not changed meanwhile.
    Aside(Key),
}

impl Work {
    /// The user whose launch it is for; root, if it is for none.
    fn uid(&self) -> u32 {
        match self {
            Self::Take(admission) => admission.holding.saved.uid,
            Self::Join { tickets, .. } => match tickets.values().next() {
                Some(Value::Ticket(ticket)) => ticket.uid,
                _ => 0,
            },
            Self::Keep(_) | Self::Aside(_) => 0,
        }
    }
}

/// A launch that has slots in memory, but no answer yet.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) session: u64,
    /// The number of the launch's request: slots are not for a later one.
    pub(super) question: u64,
    /// None if the launch is answered: its slots are released.
    pub(super) order: Option<AcquireRequest>,
    /// Since when it waits for the site.
    pub(super) since: Instant,
    pub(super) holding: Holding,
    /// Distinguishes its slots from others of the same process.
    pub(super) launch: u64,
    /// The etcd that it was decided on.
    pub(super) generation: u64,
    /// The revision of the host's key at that time.
    pub(super) registration: i64,
    /// The keys that are written with it.
    pub(super) writes: Vec<(Key, Option<Value>)>,
    /// The slots that it shares with others of its group.
    pub(super) joined: Vec<Key>,
}

impl Admission {
    pub(super) fn slots(&self) -> impl Iterator<Item = &Key> {
        self.writes.iter().map(|(key, _)| key).filter(|key| matches!(key, Key::Slot(..)))
    }
}

/// All of them.
pub(super) struct Pending {
    jobs: Sender<Job>,
    /// Those that no thread has yet. Many of one user do not delay those of another.
    waiting: BTreeMap<u64, Job>,
    turns: FairQueue,
    next: u64,
    /// Transactions with lower numbers were sent to the previous etcd.
    first: u64,
    works: BTreeMap<u64, Work>,
    /// Proofs with an unknown result.
    unclear: Vec<Admission>,
}

impl Pending {
    /// Starts the threads.
    pub(super) fn start(client: &Client, reporter: &Reporter) -> Self {
        let (jobs, to_do) = channel();
        let to_do = Arc::new(Mutex::new(to_do));
        for _ in 0..MOVERS {
            let (client, reporter, to_do) = (client.clone(), reporter.clone(), Arc::clone(&to_do));
            thread::spawn(move || carry_out(&client, &reporter, &to_do));
        }
        Self::of(jobs)
    }

    fn of(jobs: Sender<Job>) -> Self {
        Self {
            jobs,
            waiting: BTreeMap::new(),
            turns: FairQueue::default(),
            next: 1,
            first: 1,
            works: BTreeMap::new(),
            unclear: Vec::new(),
        }
    }

    /// Queues a transaction for an etcd.
    pub(super) fn send(&mut self, work: Work, generation: u64, transaction: Transaction) {
        let number = self.next;
        self.next += 1;
        self.turns.wait(work.uid(), number);
        self.works.insert(number, work);
        self.waiting.insert(number, Job { number, generation, transaction });
        self.hand_out();
    }

    /// Gives the threads what they can begin at once.
    fn hand_out(&mut self) {
        while self.works.len() - self.waiting.len() < MOVERS
            && let Some(job) = self.turns.next().and_then(|number| self.waiting.remove(&number))
        {
            // They live as long as this does.
            let _ = self.jobs.send(job);
        }
    }

    /// Another etcd answers: what was sent to the previous one proves nothing now.
    pub(super) fn begin_anew(&mut self) {
        self.first = self.next;
    }

    /// A transaction was answered. Returns its purpose.
    pub(super) fn answered(
        &mut self,
        number: u64,
        result: Result<Done, EtcdError>,
    ) -> Option<(Work, Result<Done, EtcdError>)> {
        let work = self.works.remove(&number)?;
        self.hand_out();
        let is_of_now = number >= self.first;
        Some((work, result.and_then(|done| if is_of_now { Ok(done) } else { Err(EtcdError::replaced()) })))
    }

    /// The transaction may have been committed, or may still be. Until that is impossible, reading proves
    /// nothing.
    pub(super) fn add_unclear(&mut self, admission: Admission) {
        self.unclear.push(admission);
    }

    /// The proofs without an answer.
    pub(super) fn take_unclear(&mut self) -> Vec<Admission> {
        std::mem::take(&mut self.unclear)
    }

    /// Launches that wait to hear whether they have their slots.
    pub(super) fn admissions_mut(&mut self) -> impl Iterator<Item = &mut Admission> {
        let taking = self.works.values_mut().filter_map(|work| match work {
            Work::Take(admission) => Some(&mut **admission),
            _ => None,
        });
        taking.chain(&mut self.unclear)
    }

    fn admissions(&self) -> impl Iterator<Item = &Admission> {
        let taking = self.works.values().filter_map(|work| match work {
            Work::Take(admission) => Some(&**admission),
            _ => None,
        });
        taking.chain(&self.unclear)
    }

    /// The keys that are being changed by a proof, or may have been, and those that must not change
    /// meanwhile.
    pub(super) fn keys_in_proof(&self) -> BTreeSet<Key> {
        let joined = self.admissions().flat_map(|admission| &admission.joined);
        self.keys_being_written().chain(joined).cloned().collect()
    }

    /// Whether a key is being written by a proof.
    pub(super) fn is_in_proof(&self, key: &Key) -> bool {
        self.keys_being_written().any(|other| other == key)
    }

    fn keys_being_written(&self) -> impl Iterator<Item = &Key> {
        self.admissions().flat_map(|admission| admission.writes.iter().map(|(key, _)| key))
    }

    /// Whether slots of a table are being acquired.
    pub(super) fn is_taking(&self, table: &str) -> bool {
        let mut held = self.admissions().flat_map(|admission| &admission.holding.held);
        held.any(|held| held.table().name() == table)
    }

    /// Whether a change of this key without a proof is pending.
    pub(super) fn is_busy_with(&self, key: &Key) -> bool {
        let is_of = |work: &Work| match work {
            Work::Aside(other) => other == key,
            Work::Keep(changes) => changes.iter().any(|change| change.key == *key),
            Work::Take(_) | Work::Join { .. } => false,
        };
        self.works.values().any(is_of)
    }

    /// Whether a launch is joining queues.
    pub(super) fn is_joining(&self, launch: u64) -> bool {
        self.works.values().any(|work| matches!(work, Work::Join { launch: other, .. } if *other == launch))
    }

    /// Whether keys of this host are being changed.
    pub(super) fn is_keeping(&self) -> bool {
        self.works.values().any(|work| matches!(work, Work::Keep(_)))
    }
}

/// A transaction and its number.
struct Job {
    number: u64,
    /// For which etcd it is meant.
    generation: u64,
    transaction: Transaction,
}

fn carry_out(client: &Client, reporter: &Reporter, to_do: &Mutex<Receiver<Job>>) {
    loop {
        let next = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { number, generation, transaction }) = next else { return };
        // A commit in another etcd proves nothing about this one.
        let is_meant = |done: Done| {
            if done.generation == generation { Ok(done) } else { Err(EtcdError::replaced()) }
        };
        if !reporter.tell(Report::Done(number, client.carry_out(&transaction).and_then(is_meant))) {
            return;
        }
    }
}

// Reports of the threads that talk to etcd to the thread that owns the tables. A bell wakes it, and no
// thread waits for it.

#[derive(Debug)]
pub(super) enum Report {
    /// The host's key was written with this revision; requested at this time since boot.
    Registered { revision: i64, generation: u64, sent: Duration },
    /// A read that was sent then found the host's key, in etcd at this revision.
    Confirmed { revision: i64, generation: u64, sent: Duration },
    /// The host's key could not be written again. A read that was sent then found one of this agent.
    Kept { sent: Duration, generation: u64 },
    /// No member answers, or none correctly.
    Unreached(EtcdError),
    /// The newest key had this revision when a read was sent.
    Compared { sent: Duration, revision: i64 },
    /// The keys at a revision up to which every change was reported.
    Listed(Inventory),
    /// The lease of the host's key is gone, or the key with it.
    LeaseLost,
    /// A read that was sent then found that the agent of another host has written this host's key.
    Twin { agent: Option<AgentId>, sent: Duration, generation: u64 },
    /// Everything, read again.
    Fresh(Snapshot),
    /// Changes, in their order.
    Changes(Vec<(Pair, bool)>),
    /// The watch has ended for this reason; it is restarted.
    Deaf(EtcdError),
    /// The result of a transaction, by its number.
    Done(u64, Result<Done, EtcdError>),
    /// The state of etcd itself.
    ClusterStatus(ClusterStatus),
    /// Some time has passed.
    Tick,
}

/// Tells them.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    pub(super) reports: Sender<Report>,
    pub(super) bell: Arc<Bell>,
}

impl Reporter {
    /// Tells something. Returns whether there is a receiver.
    pub(super) fn tell(&self, report: Report) -> bool {
        let is_heard = self.reports.send(report).is_ok();
        self.bell.ring();
        is_heard
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::{
        agent::{
            ledger::state::SavedHolding,
            tests::{holding, saved},
        },
        judge::terms::Hold,
    };

    impl Pending {
        /// Without threads: nothing carries out what is sent. The second part returns the next transaction
        /// that was sent, with its number.
        pub(in crate::agent::site) fn recorded() -> (Self, impl Fn() -> Option<(u64, Transaction)>) {
            let (jobs, sent) = channel::<Job>();
            let next = move || {
                let Job { number, transaction, .. } = sent.try_recv().ok()?;
                Some((number, transaction))
            };
            (Self::of(jobs), next)
        }
    }

    /// A launch of user 7 joins a queue.
    fn joins(launch: u64) -> Work {
        let ticket =
            r#"{"host":"lab1","agent":"","pid":1,"uid":7,"command":"","classes":[],"is_away":false}"#;
        let ticket = Value::Ticket(serde_json::from_str(ticket).expect("a ticket"));
        let tickets = BTreeMap::from([(Key::Ticket("seats".to_owned(), launch), ticket)]);
        Work::Join { launch, under: 8, tickets }
    }

    /// A launch of user 8 acquires slots.
    fn takes() -> Work {
        Work::Take(Box::new(Admission {
            session: 0,
            question: 0,
            order: None,
            since: Instant::now(),
            holding: holding(SavedHolding { uid: 8, ..saved(1, Hold::Process) }, None),
            launch: 1,
            generation: 1,
            registration: 8,
            writes: Vec::new(),
            joined: Vec::new(),
        }))
    }

    /// A few transactions are carried out at a time, and the others wait, for each user in turn: many of one
    /// user delay neither those of another nor those of the host. Each answer lets one more begin.
    #[test]
    fn each_user_has_a_turn() {
        let (mut pending, begun) = Pending::recorded();
        let others = [takes(), Work::Aside(Key::Cluster), Work::Keep(Vec::new())];
        for work in (1..=10).map(joins).chain(others) {
            pending.send(work, 1, Transaction::default());
        }
        let first: Vec<u64> = iter::from_fn(&begun).map(|(number, _)| number).collect();
        assert_eq!(first, [1, 2, 3, 4, 5, 6, 7, 8]);
        let turns = [(2, Some(11)), (11, Some(12)), (1, Some(9)), (8, Some(13)), (12, Some(10)), (3, None)];
        for (answered, next) in turns {
            // The second one is no answer to any.
            for next in [next, None] {
                drop(pending.answered(answered, Ok(Done { holds: true, revision: 9, generation: 1 })));
                let begun = [(); 2].map(|()| begun().map(|(number, _)| number));
                assert_eq!(begun, [next, None], "after an answer to {answered}");
            }
        }
    }
}
