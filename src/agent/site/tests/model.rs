//! Why nobody is given a slot whose program runs: the argument of the site as a model, every state of which
//! is visited. Two hosts and one slot, kept in an etcd that lies about leases: the key of a host may vanish
//! at any moment, though its agent has just renewed it. Every transaction may be carried out late, or never,
//! and its answer may be lost; agents are cut off and restarted; each host has a clock, and time passes
//! whenever it likes.
//!
//! What must hold: never two programs; and a slot that an agent took itself for not having never becomes its
//! own afterwards. On each host a second program may share the slot (`shared_by`): it joins the first one,
//! and the slot stays as long as one of both runs. The transactions are those of the agent, made by the same
//! functions, and the model's etcd compares and does what they say. Each of their conditions, left out, must
//! be missed.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
};

use crate::{
    agent::site::{
        Change, Compare, Key, Keys, Operation, Present, SlotRecord, Taking, Transaction, Value,
        difference::diff,
        lease_keeper::registration,
        proof::{self, clearing, compares, of_host, transaction},
    },
    keeper::Occupancy,
};

const HOSTS: [&str; 2] = ["one", "two"];

/// How long a host may be silent. The margin is for clocks that run unequally, and here they do not.
const TTL: u8 = 2;

/// When time ends: late enough for each rule to be missed, and later where all states are visited.
const END: u8 = 4;
const LATER: u8 = 5;
/// The same where programs join.
const JOINED: u8 = 2;

/// How often what nobody wants may happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Plan {
    /// The first host's key vanishes although its lease lives.
    vanishings: u8,
    /// Answers that are lost, and transactions that are late.
    mishaps: u8,
    /// Agents that die and come back.
    deaths: u8,
    /// Programs that join the first one of their host, and first ones that end by themselves.
    joins: u8,
    end: u8,
}

/// Small ones, each of which some rule needs.
const PLANS: [Plan; 7] = [
    Plan { vanishings: 2, mishaps: 0, deaths: 0, joins: 0, end: END },
    Plan { vanishings: 0, mishaps: 1, deaths: 0, joins: 0, end: END },
    Plan { vanishings: 0, mishaps: 0, deaths: 1, joins: 0, end: END },
    // A host that is cut off, and whose agent dies meanwhile.
    Plan { vanishings: 1, mishaps: 0, deaths: 1, joins: 0, end: END },
    Plan { vanishings: 1, mishaps: 0, deaths: 0, joins: 1, end: JOINED },
    Plan { vanishings: 0, mishaps: 1, deaths: 0, joins: 1, end: JOINED },
    Plan { vanishings: 0, mishaps: 0, deaths: 1, joins: 1, end: JOINED },
];

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Without {
    Nothing,
    /// Whoever deletes does not ask whether the host is absent since it was seen to be (`absence.rs`). That
    /// it is absent now follows from that, because both keys are only ever written together.
    SameAbsence,
    /// Nor whether the slot is still that of the other one: somebody else may have deleted it before, and a
    /// third one taken it (`absence.rs`).
    SameSlot,
    /// Whoever takes the slot does not ask whether it is free (`proof.rs`).
    Free,
    /// Nor whether the host's key is as it was written (`admission.rs`).
    OwnKey,
    /// The difference asks neither whether the host's key is as it was written, nor
    /// whether the slot is as it was seen to be (`reconciler.rs`). Each of both suffices here.
    FencesToKeep,
    /// What became of a transaction is read without writing the host's key anew (`lease_keeper.rs`).
    Anew,
    /// Programs are not ended at the deadline (`loss.rs`).
    End,
    /// The deadline rests on the renewal of the lease, and not on a read (`lease_keeper.rs`).
    Read,
    /// Whoever sees a host absent deletes at once (`absence.rs`).
    Patience,
    /// An agent that is restarted does not read when its host was last confirmed (`presence.rs`).
    Saved,
    /// Whoever joins does not ask whether the key of the slot is there: it may be in proof (`admission.rs`).
    Known,
    /// Whoever joins does not ask whether the last member has ended: the key may be on its way out
    /// (`reconciler.rs`).
    Members,
    /// The key is deleted while a program joins (`pending.rs`).
    Alone,
    /// An answer counts although the host's key was written again since it was asked for: meanwhile others
    /// may have deleted the slot (`admission.rs`).
    SameKeyOfHost,
}

/// What a host asked of etcd in a state, under a rule that is left out; and what came of it.
type CarriedOut = HashMap<(usize, Sent, Without, Etcd), (bool, Etcd)>;

/// What a host has to change, where its program runs and the slot is as it is.
type Differences = HashMap<(usize, bool, Option<(usize, u8)>), Option<(u8, bool)>>;

/// A transaction on its way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Sent {
    /// The slot, for a host whose key was written then.
    Take { own: u8 },
    /// The host's keys.
    Register,
    /// The slot of the other one, which was seen absent when this was written, and the slot when that was.
    Delete { written: u8, at: u8 },
    /// What the difference says of the slot: it is written, or goes.
    Keep { own: u8, at: u8, is_put: bool },
    /// Nothing: it is only asked whether the slot is as it was, for a host whose key was written then. No
    /// state misses these two conditions, because of those for its answer and of the deadline; they are for
    /// what is no part of the model, such as a backup that was restored.
    Join { own: u8, at: Option<u8> },
}

/// The keys of etcd, each with the revision at which it was last written.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Etcd {
    revision: u8,
    /// Under a lease, and without one.
    keys: [Option<u8>; 2],
    written: [u8; 2],
    /// Whose the slot is.
    slot: Option<(usize, u8)>,
}

fn keys() -> Keys {
    Keys::below("/r")
}

fn slot() -> Key {
    Key::Slot("seats".to_owned(), 1)
}

/// What the key of the slot says for a host.
fn held_by(host: usize) -> Value {
    let record = format!(
        r#"{{"host":"{}","agent":"{host}","pid":1,"start":1,"uid":1,"hold":"process","command":"","rule":"","launch":1,"since":1}}"#,
        HOSTS[host]
    );
    Value::Slot(serde_json::from_str::<SlotRecord>(&record).expect("a record"))
}

impl Sent {
    /// What a host asks of etcd, as the agent would.
    fn transaction(self, host: usize) -> Transaction {
        let keys = keys();
        let (name, other) = (HOSTS[host], HOSTS[1 - host]);
        match self {
            Self::Register => registration(&keys, name, b"{}".to_vec(), b"{}".to_vec(), 1),
            Self::Take { own } => {
                let (table, held) = ("seats".to_owned(), Occupancy::of(Vec::new()));
                let (slots, limit, joined) = (vec![1], Some(1), Vec::new());
                let taking = Taking { table, slots, joined, limit, held, stamps: None };
                let mut compares = compares(&keys, &[taking], 9, own.into());
                compares.extend(proof::of_absent(&keys, &[].into(), own.into(), 1));
                compares.push(of_host(&keys, name, own.into()));
                let operations = vec![Operation::Put(keys.name(&slot()), held_by(host).bytes())];
                Transaction { compares, operations }
            }
            Self::Join { own, at } => {
                let (table, held) = ("seats".to_owned(), Occupancy::of(Vec::new()));
                let joined = at.map(|at| (1, at.into())).into_iter().collect();
                let (slots, stamps) = (Vec::new(), None);
                let taking = Taking { table, slots, joined, limit: None, held, stamps };
                let mut compares = compares(&keys, &[taking], 9, own.into());
                compares.push(of_host(&keys, name, own.into()));
                Transaction { compares, operations: Vec::new() }
            }
            Self::Delete { written, at } => {
                let left = Change { key: slot(), at: at.into(), value: None };
                clearing(&keys, other, written.into(), &[left])
            }
            Self::Keep { own, at, is_put } => {
                let value = is_put.then(|| held_by(host));
                let change = Change { key: slot(), at: at.into(), value };
                transaction(&keys, vec![of_host(&keys, name, own.into())], &[change])
            }
        }
    }
}

impl Without {
    /// Whether a condition of a transaction is left out.
    fn leaves_out(self, sent: Sent, host: usize, compare: &Compare) -> bool {
        let name = match compare {
            Compare::Absent(name) | Compare::ChangedAt(name, _) => name,
            Compare::UnchangedSince(..) => return false,
        };
        let key = keys().parse(name).expect("a key");
        let is_of = |host: usize| matches!(&key, Key::Host(of) | Key::Written(of) if of == HOSTS[host]);
        match (self, sent) {
            (Self::SameAbsence, Sent::Delete { .. }) => is_of(1 - host),
            (Self::OwnKey, Sent::Take { .. }) => is_of(host),
            (Self::SameSlot, Sent::Delete { .. }) | (Self::Free, Sent::Take { .. }) => key == slot(),
            (Self::FencesToKeep, Sent::Keep { .. }) => true,
            _ => false,
        }
    }
}

impl Etcd {
    /// Every key that is there.
    fn all(&self) -> BTreeMap<String, i64> {
        let leased = self.keys.iter().zip(HOSTS).filter_map(|(at, host)| {
            let key = Key::Host(host.to_owned());
            Some((key, (*at)?))
        });
        let written = self.written.iter().zip(HOSTS).map(|(at, host)| (Key::Written(host.to_owned()), *at));
        let held = self.slot.iter().map(|(_, at)| (slot(), *at));
        let all = leased.chain(written).chain(held);
        all.map(|(key, at)| (keys().name(&key), at.into())).collect()
    }

    /// Carries something out as etcd does, all or nothing. Says whether its conditions held.
    fn carry_out(&mut self, host: usize, sent: Sent, without: Without) -> bool {
        let Transaction { mut compares, operations } = sent.transaction(host);
        compares.retain(|compare| !without.leaves_out(sent, host, compare));
        let all = self.all();
        let at = |name: &String| all.get(name).copied().unwrap_or(0);
        let holds = compares.iter().all(|compare| match compare {
            Compare::Absent(name) => at(name) == 0,
            Compare::ChangedAt(name, revision) => at(name) == *revision,
            Compare::UnchangedSince(range, revision) => {
                all.iter().filter(|(name, _)| range.contains(name)).all(|(_, at)| at <= revision)
            }
        });
        if holds && !operations.is_empty() {
            self.revision += 1;
            for operation in operations {
                let (Operation::Put(name, _) | Operation::PutUnderLease(name, ..) | Operation::Delete(name)) =
                    &operation;
                let is_there = !matches!(operation, Operation::Delete(_));
                match keys().parse(name).expect("a key") {
                    Key::Slot(..) => self.slot = is_there.then_some((host, self.revision)),
                    Key::Host(_) => self.keys[host] = Some(self.revision),
                    Key::Written(_) => self.written[host] = self.revision,
                    _ => panic!("a key that no transaction of the model writes"),
                }
            }
        }
        holds
    }
}

/// What an agent knows.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct Agent {
    /// The revision of its key as it wrote it.
    own: Option<u8>,
    /// When the last read was sent that found it so.
    confirmed: Option<u8>,
    /// The same as it was last written down, for an agent that is started later.
    saved: Option<u8>,
    /// What is on its way, and whether the answer is still waited for.
    sent: Option<Sent>,
    /// A transaction that may be carried out later, though nobody waits for its answer any more.
    late: Option<Sent>,
    /// Whether it is not known whether the slot was taken.
    is_unclear: bool,
    /// Whether its key has to be written anew before that is read.
    has_to_register: bool,
    /// Whether its program runs.
    runs: bool,
    /// Whether another one does, which shares the slot.
    shares: bool,
    /// The question of one that joins; and whether it held, once it was asked.
    joins: Option<(Sent, Option<bool>)>,
    /// Whether it has been decided that the slot was not taken.
    gave_up: bool,
    /// What it has seen of the other's absence: since when, and when the other's key was last written.
    seen: Option<(u8, u8)>,
}

/// Everything.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct State {
    now: u8,
    etcd: Etcd,
    agents: [Agent; 2],
    vanishings: u8,
    mishaps: u8,
    deaths: u8,
    joins: u8,
    ends: u8,
}

impl Agent {
    /// Whether a program has the slot.
    fn has_it(&self) -> bool {
        self.runs || self.shares
    }
}

fn difference(host: usize, runs: bool, held: Option<(usize, u8)>) -> Option<(u8, bool)> {
    let key = slot();
    let wanted = |_: &Key| runs.then(|| held_by(host));
    let present = |_: &Key| {
        let (owner, revision) = held?;
        Some(Present { revision: revision.into(), value: Some(held_by(owner)), is_own: owner == host })
    };
    let change = diff([&key], wanted, present).changes.pop()?;
    Some((u8::try_from(change.at).expect("a small number"), change.value.is_some()))
}

/// What must never be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Broken {
    TwoPrograms,
    SlotLost,
    /// The slot of a host that is there was deleted while its program runs.
    SlotDeleted,
}

impl State {
    fn first() -> Self {
        let agent =
            |revision| Agent { own: Some(revision), confirmed: Some(0), saved: Some(0), ..Agent::default() };
        Self {
            now: 0,
            etcd: Etcd { revision: 2, keys: [Some(1), Some(2)], written: [1, 2], slot: None },
            agents: [agent(1), agent(2)],
            vanishings: 0,
            mishaps: 0,
            deaths: 0,
            joins: 0,
            ends: 0,
        }
    }

    fn is_in_time(&self, host: usize) -> bool {
        self.agents[host].confirmed.is_some_and(|confirmed| self.now < confirmed + TTL)
    }

    /// Whether the deadline has passed. An agent that knows of none ends nothing.
    fn is_late(&self, host: usize) -> bool {
        self.agents[host].confirmed.is_some_and(|confirmed| self.now >= confirmed + TTL)
    }

    /// Whose the slot is.
    fn owner(&self) -> Option<usize> {
        self.etcd.slot.map(|(owner, _)| owner)
    }

    /// etcd carries something out. Says whether its conditions held.
    fn carry_out(&mut self, host: usize, sent: Sent, without: Without) -> bool {
        thread_local! {
            /// The same is asked a million times.
            static KNOWN: RefCell<CarriedOut> = RefCell::default();
        }
        let (holds, etcd) = KNOWN.with_borrow_mut(|known| {
            *known.entry((host, sent, without, self.etcd)).or_insert_with(|| {
                let mut etcd = self.etcd;
                (etcd.carry_out(host, sent, without), etcd)
            })
        });
        self.etcd = etcd;
        holds
    }

    /// What a host has to change of the slot, by the difference between what is and what should be.
    fn difference(&self, host: usize) -> Option<(u8, bool)> {
        let (runs, held) = (self.agents[host].has_it(), self.etcd.slot);
        thread_local! {
            static KNOWN: RefCell<Differences> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            *known.entry((host, runs, held)).or_insert_with(|| difference(host, runs, held))
        })
    }

    /// Every state that can follow.
    fn next(&self, without: Without, plan: Plan) -> Vec<State> {
        let mut next = Vec::new();
        if self.now < plan.end {
            let mut later = *self;
            later.now += 1;
            for host in 0..2 {
                // Gone before the deadline, not at it.
                if later.agents[host].has_it() && later.is_late(host) && without != Without::End {
                    later.agents[host].runs = false;
                    later.agents[host].shares = false;
                }
            }
            next.push(later);
        }
        for host in 0..2 {
            self.steps_of(host, without, plan, &mut next);
        }
        next
    }

    fn steps_of(&self, host: usize, without: Without, plan: Plan, next: &mut Vec<State>) {
        let other = 1 - host;
        let agent = self.agents[host];
        let mut step = |change: &dyn Fn(&mut State)| {
            let mut state = *self;
            change(&mut state);
            next.push(state);
        };
        // The lease lies: the key vanishes at any moment.
        if host == 0 && self.etcd.keys[host].is_some() && self.vanishings < plan.vanishings {
            step(&|state| {
                state.etcd.keys[host] = None;
                state.vanishings += 1;
            });
        }
        // What is on its way is carried out and answered, or carried out with its answer lost, or late.
        if let Some(sent) = agent.sent {
            step(&|state| {
                let holds = state.carry_out(host, sent, without);
                state.agents[host].sent = None;
                state.answered(host, sent, holds);
            });
            if self.mishaps < plan.mishaps {
                for is_late in [false, true] {
                    step(&|state| {
                        state.mishaps += 1;
                        if !is_late {
                            state.carry_out(host, sent, without);
                        } else if state.agents[host].late.is_none() {
                            state.agents[host].late = Some(sent);
                        }
                        let agent = &mut state.agents[host];
                        agent.sent = None;
                        agent.is_unclear |= matches!(sent, Sent::Take { .. });
                        if matches!(sent, Sent::Take { .. } | Sent::Keep { .. }) {
                            agent.has_to_register = without != Without::Anew;
                        }
                    });
                }
            }
        }
        if let Some(sent) = agent.late {
            step(&|state| {
                state.agents[host].late = None;
                state.carry_out(host, sent, without);
            });
        }
        // A read, sent now or before time passed; it finds the key as it was written, or not.
        if without == Without::Read && agent.own.is_some() {
            step(&|state| state.agents[host].confirmed = Some(state.now));
        } else if agent.own.is_some() && self.etcd.keys[host] == agent.own {
            step(&|state| state.agents[host].confirmed = Some(state.now));
        }
        // What was confirmed is written down, sooner or later; it matters only to an agent that starts later.
        if agent.saved != agent.confirmed && self.deaths < plan.deaths {
            step(&|state| state.agents[host].saved = state.agents[host].confirmed);
        }
        self.steps_of_members(host, without, plan, &mut step);
        if agent.sent.is_some() {
            return;
        }
        if agent.own.is_none() || agent.has_to_register || self.etcd.keys[host] != agent.own {
            step(&|state| state.agents[host].sent = Some(Sent::Register));
        }
        if agent.is_unclear
            && !agent.has_to_register
            && agent.own.is_some()
            && agent.own == self.etcd.keys[host]
            || agent.is_unclear && without == Without::Anew
        {
            step(&|state| {
                let is_owner = state.owner() == Some(host);
                let agent = &mut state.agents[host];
                agent.is_unclear = false;
                if is_owner {
                    agent.runs = state.now < agent.confirmed.map_or(0, |confirmed| confirmed + TTL);
                } else {
                    agent.gave_up = true;
                }
            });
        }
        if let Some(own) = agent.own
            && !agent.is_unclear
            && !agent.has_it()
            && !agent.gave_up
            && (self.etcd.slot.is_none() || without == Without::Free)
        {
            step(&|state| state.agents[host].sent = Some(Sent::Take { own }));
        }
        // The other one is seen absent, or present; after a ttl of absence what it left is deleted.
        match (self.etcd.keys[other], agent.seen) {
            (None, None) => {
                step(&|state| state.agents[host].seen = Some((state.now, state.etcd.written[other])));
            }
            (Some(_), Some(_)) => step(&|state| state.agents[host].seen = None),
            _ => {}
        }
        if let Some((since, written)) = agent.seen
            && let Some((owner, at)) = self.etcd.slot
            && owner == other
            && (self.now >= since + TTL || without == Without::Patience)
        {
            step(&|state| state.agents[host].sent = Some(Sent::Delete { written, at }));
        }
        // The slot is made what it should be, as soon as it is known what there is.
        if let Some(own) = agent.own
            && !agent.is_unclear
            && !agent.has_to_register
            && (agent.joins.is_none() || without == Without::Alone)
            && let Some((at, is_put)) = self.difference(host)
        {
            step(&|state| state.agents[host].sent = Some(Sent::Keep { own, at, is_put }));
        }
        // The agent dies and comes back: the program goes on as long as it may, and is found again.
        if self.deaths < plan.deaths {
            step(&|state| {
                let agent = &mut state.agents[host];
                let Agent { runs, shares, saved, .. } = *agent;
                *agent = Agent {
                    runs,
                    shares,
                    confirmed: saved.filter(|_| without != Without::Saved),
                    saved,
                    late: agent.sent.or(agent.late),
                    ..Agent::default()
                };
                agent.gave_up = true;
                state.deaths += 1;
            });
        }
    }

    /// A program joins the first one, which may end.
    fn steps_of_members(
        &self,
        host: usize,
        without: Without,
        plan: Plan,
        step: &mut impl FnMut(&dyn Fn(&mut State)),
    ) {
        let agent = self.agents[host];
        if self.ends < plan.joins && agent.runs {
            step(&|state| {
                state.agents[host].runs = false;
                state.ends += 1;
            });
        }
        match agent.joins {
            Some((sent, None)) => step(&|state| {
                let holds = state.carry_out(host, sent, without);
                state.agents[host].joins = Some((sent, Some(holds)));
            }),
            // The answer comes, later than what else is carried out meanwhile.
            Some((Sent::Join { own, .. }, Some(holds))) => step(&|state| {
                let in_time = state.is_in_time(host);
                let agent = &mut state.agents[host];
                agent.joins = None;
                let is_of_now = agent.own == Some(own) || without == Without::SameKeyOfHost;
                agent.shares |= holds && in_time && is_of_now;
            }),
            _ => {}
        }
        let at = self.etcd.slot.filter(|(owner, _)| *owner == host).map(|(_, at)| at);
        let is_in_proof = matches!(agent.sent, Some(Sent::Take { .. }));
        let is_known = at.is_some() && !is_in_proof || without == Without::Known;
        let has_members = agent.has_it() || is_in_proof || without == Without::Members;
        if let Some(own) = agent.own
            && self.joins < plan.joins
            && agent.joins.is_none()
            && !agent.shares
            && !agent.is_unclear
            && !agent.has_to_register
            && is_known
            && has_members
        {
            step(&|state| {
                state.joins += 1;
                state.agents[host].joins = Some((Sent::Join { own, at }, None));
            });
        }
    }

    fn answered(&mut self, host: usize, sent: Sent, holds: bool) {
        let in_time = self.is_in_time(host);
        let (now, revision) = (self.now, self.etcd.revision);
        let agent = &mut self.agents[host];
        match sent {
            Sent::Register => {
                agent.own = Some(revision);
                agent.confirmed = Some(now);
                agent.has_to_register = false;
            }
            Sent::Take { .. } if holds => agent.runs = in_time,
            // What it has given back it does not take again: of time there is no end otherwise.
            Sent::Keep { is_put: false, .. } if holds => agent.gave_up = true,
            Sent::Take { .. } | Sent::Delete { .. } | Sent::Keep { .. } | Sent::Join { .. } => {}
        }
    }

    /// The same state with the smallest revisions that keep their order: nothing asks for more than that, and
    /// states that differ in nothing else are one.
    fn with_small_revisions(mut self) -> Self {
        let mut revisions: Vec<u8> = Vec::with_capacity(16);
        self.each_revision(|revision| revisions.push(*revision));
        revisions.sort_unstable();
        revisions.dedup();
        self.each_revision(|revision| {
            let smaller = revisions.binary_search(revision).expect("it was noted");
            *revision = u8::try_from(smaller + 1).expect("few revisions");
        });
        self
    }

    fn each_revision(&mut self, mut each: impl FnMut(&mut u8)) {
        let Etcd { revision, keys, written, slot } = &mut self.etcd;
        each(revision);
        keys.iter_mut().flatten().chain(written).for_each(&mut each);
        if let Some((_, at)) = slot {
            each(at);
        }
        for agent in &mut self.agents {
            agent.own.iter_mut().for_each(&mut each);
            agent.seen.iter_mut().for_each(|(_, written)| each(written));
            let joins = agent.joins.as_mut().map(|(sent, _)| sent);
            for sent in [&mut agent.sent, &mut agent.late].into_iter().flatten().chain(joins) {
                match sent {
                    Sent::Join { own, at } => {
                        each(own);
                        at.iter_mut().for_each(&mut each);
                    }
                    Sent::Register => {}
                    Sent::Take { own } => each(own),
                    Sent::Delete { written: first, at } | Sent::Keep { own: first, at, .. } => {
                        each(first);
                        each(at);
                    }
                }
            }
        }
    }

    fn broken(&self, before: &State) -> Option<Broken> {
        if self.agents.iter().all(Agent::has_it) {
            return Some(Broken::TwoPrograms);
        }
        let is_deleted = |host: usize| {
            let was_held = before.owner() == Some(host) && before.etcd.keys[host].is_some();
            was_held && before.agents[host].has_it() && self.owner() != Some(host)
        };
        if (0..2).any(is_deleted) {
            return Some(Broken::SlotDeleted);
        }
        // Only a restart forgets what is on its way; then it is found in the mirror, and deleted.
        let lost = |host: usize| {
            let was_known = before.agents[host].gave_up && before.agents[host].late.is_some();
            was_known
                && before.owner() != Some(host)
                && self.owner() == Some(host)
                && self.agents[host].own.is_some()
        };
        (0..2).any(lost).then_some(Broken::SlotLost)
    }
}

/// Visits every state; says how many there are, and what is broken first.
fn explore(without: Without, plan: Plan) -> (usize, Option<Broken>) {
    let mut seen = HashSet::from([State::first()]);
    let mut todo = VecDeque::from([State::first()]);
    while let Some(state) = todo.pop_front() {
        for next in state.next(without, plan) {
            if let Some(broken) = next.broken(&state) {
                return (seen.len(), Some(broken));
            }
            let next = next.with_small_revisions();
            if seen.insert(next) {
                todo.push_back(next);
            }
        }
    }
    (seen.len(), None)
}

/// The argument as it is.
#[test]
fn nobody_is_given_a_slot_whose_program_runs() {
    let mut plans = PLANS.to_vec();
    if std::env::var_os("RUNGATE_MODEL").is_some() {
        let both = Plan { vanishings: 1, mishaps: 1, deaths: 1, joins: 0, end: LATER };
        for plan in &mut plans {
            plan.end = if plan.joins == 0 { LATER } else { END };
        }
        plans.extend([both, Plan { vanishings: 2, mishaps: 2, deaths: 0, joins: 0, end: LATER }]);
    }
    for plan in plans {
        let (states, broken) = explore(Without::Nothing, plan);
        assert_eq!((plan, broken), (plan, None), "after {states} states");
    }
}

/// Show that it fails when any one of the compares is left out.
#[test]
fn each_condition_of_the_site_is_missed() {
    let [vanishings, mishaps, _, cut, joins, ..] = PLANS;
    let vanishing = Plan { vanishings: 1, ..vanishings };
    for (without, plan, expected) in [
        (Without::SameAbsence, vanishings, Broken::SlotDeleted),
        (Without::SameSlot, Plan { vanishings: 1, ..mishaps }, Broken::SlotDeleted),
        (Without::Free, Plan { mishaps: 0, ..mishaps }, Broken::TwoPrograms),
        (Without::OwnKey, Plan { deaths: 1, ..mishaps }, Broken::SlotLost),
        (Without::FencesToKeep, Plan { deaths: 1, ..mishaps }, Broken::SlotDeleted),
        (Without::Anew, mishaps, Broken::SlotLost),
        (Without::End, vanishing, Broken::TwoPrograms),
        (Without::Read, vanishing, Broken::TwoPrograms),
        (Without::Patience, vanishing, Broken::TwoPrograms),
        (Without::Saved, cut, Broken::TwoPrograms),
        (Without::Known, joins, Broken::TwoPrograms),
        (Without::Members, joins, Broken::SlotDeleted),
        (Without::Alone, joins, Broken::SlotDeleted),
        (Without::SameKeyOfHost, joins, Broken::TwoPrograms),
    ] {
        let (_, broken) = explore(without, plan);
        assert_eq!((without, broken), (without, Some(expected)));
    }
}
