//! Why nobody is given a slot whose program runs: the argument of the site as a model, every state of which
//! is visited. Two hosts and one slot, kept in an etcd that lies about leases: the key of a host may vanish
//! at any moment, though its agent has just renewed it. Every transaction may be carried out late, or never,
//! and its answer may be lost; agents are cut off and restarted; each host has a clock, and time passes
//! whenever it likes.
//!
//! What must hold: never two programs; and a slot that an agent took itself for not having never becomes its
//! own afterwards. Each condition of the transactions, left out, must be missed.

use std::collections::{HashSet, VecDeque};

/// How long a host may be silent. The margin is for clocks that run unequally, and here they do not.
const TTL: u8 = 2;

/// When time ends.
const END: u8 = 6;

/// How often what nobody wants may happen.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The first host's key vanishes although its lease lives.
    vanishings: u8,
    /// Answers that are lost, and transactions that are late.
    mishaps: u8,
    /// Agents that die and come back.
    deaths: u8,
}

/// Small ones, each of which some rule needs.
const PLANS: [Plan; 4] = [
    Plan { vanishings: 2, mishaps: 0, deaths: 0 },
    Plan { vanishings: 0, mishaps: 1, deaths: 0 },
    Plan { vanishings: 0, mishaps: 0, deaths: 1 },
    // A host that is cut off, and whose agent dies meanwhile.
    Plan { vanishings: 1, mishaps: 0, deaths: 1 },
];

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
}

/// A transaction on its way.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Sent {
    /// The slot, for a host whose key was written then.
    Take { own: u8 },
    /// The host's keys.
    Register,
    /// The slot of the other one, which was seen absent when this was written.
    Delete { written: u8 },
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
    /// Whether it has been decided that the slot was not taken.
    gave_up: bool,
    /// What it has seen of the other's absence: since when, and when the other's key was last written.
    seen: Option<(u8, u8)>,
}

/// Everything.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct State {
    now: u8,
    revision: u8,
    /// Under a lease, and without one.
    keys: [Option<u8>; 2],
    written: [u8; 2],
    /// Whose the slot is.
    slot: Option<usize>,
    agents: [Agent; 2],
    vanishings: u8,
    mishaps: u8,
    deaths: u8,
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
            revision: 2,
            keys: [Some(1), Some(2)],
            written: [1, 2],
            slot: None,
            agents: [agent(1), agent(2)],
            vanishings: 0,
            mishaps: 0,
            deaths: 0,
        }
    }

    fn is_in_time(&self, host: usize) -> bool {
        self.agents[host].confirmed.is_some_and(|confirmed| self.now < confirmed + TTL)
    }

    /// Whether the deadline has passed. An agent that knows of none ends nothing.
    fn is_late(&self, host: usize) -> bool {
        self.agents[host].confirmed.is_some_and(|confirmed| self.now >= confirmed + TTL)
    }

    /// etcd carries something out. Says whether its conditions held.
    fn carry_out(&mut self, host: usize, sent: Sent, without: Without) -> bool {
        let other = 1 - host;
        let holds = match sent {
            Sent::Register => true,
            Sent::Take { own } => {
                (self.slot.is_none() || without == Without::Free)
                    && (self.keys[host] == Some(own) || without == Without::OwnKey)
            }
            Sent::Delete { written } => {
                let is_absent = without == Without::SameAbsence
                    || self.keys[other].is_none() && self.written[other] == written;
                is_absent && (self.slot == Some(other) || without == Without::SameSlot)
            }
        };
        if holds {
            self.revision += 1;
            match sent {
                Sent::Register => {
                    self.keys[host] = Some(self.revision);
                    self.written[host] = self.revision;
                }
                Sent::Take { .. } => self.slot = Some(host),
                Sent::Delete { .. } => self.slot = None,
            }
        }
        holds
    }

    /// Every state that can follow.
    fn next(&self, without: Without, plan: Plan) -> Vec<State> {
        let mut next = Vec::new();
        if self.now < END {
            let mut later = *self;
            later.now += 1;
            for host in 0..2 {
                // Gone before the deadline, not at it.
                if later.agents[host].runs && later.is_late(host) && without != Without::End {
                    later.agents[host].runs = false;
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
        if host == 0 && self.keys[host].is_some() && self.vanishings < plan.vanishings {
            step(&|state| {
                state.keys[host] = None;
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
                        if matches!(sent, Sent::Take { .. }) {
                            agent.is_unclear = true;
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
        } else if agent.own.is_some() && self.keys[host] == agent.own {
            step(&|state| state.agents[host].confirmed = Some(state.now));
        }
        // What was confirmed is written down, sooner or later; it matters only to an agent that is started later.
        if agent.saved != agent.confirmed && self.deaths < plan.deaths {
            step(&|state| state.agents[host].saved = state.agents[host].confirmed);
        }
        if agent.sent.is_some() {
            return;
        }
        if agent.own.is_none() || agent.has_to_register || self.keys[host] != agent.own {
            step(&|state| state.agents[host].sent = Some(Sent::Register));
        }
        if agent.is_unclear && !agent.has_to_register && agent.own.is_some() && agent.own == self.keys[host]
            || agent.is_unclear && without == Without::Anew
        {
            step(&|state| {
                let agent = &mut state.agents[host];
                agent.is_unclear = false;
                if state.slot == Some(host) {
                    agent.runs = state.now < agent.confirmed.map_or(0, |confirmed| confirmed + TTL);
                } else {
                    agent.gave_up = true;
                }
            });
        }
        if let Some(own) = agent.own
            && !agent.is_unclear
            && !agent.runs
            && !agent.gave_up
            && (self.slot.is_none() || without == Without::Free)
        {
            step(&|state| state.agents[host].sent = Some(Sent::Take { own }));
        }
        // The other one is seen absent, or present; after a ttl of absence what it left is deleted.
        match (self.keys[other], agent.seen) {
            (None, None) => step(&|state| state.agents[host].seen = Some((state.now, state.written[other]))),
            (Some(_), Some(_)) => step(&|state| state.agents[host].seen = None),
            _ => {}
        }
        if let Some((since, written)) = agent.seen
            && self.slot == Some(other)
            && (self.now >= since + TTL || without == Without::Patience)
        {
            step(&|state| state.agents[host].sent = Some(Sent::Delete { written }));
        }
        // The agent dies and comes back: the program goes on as long as it may, and is found again.
        if self.deaths < plan.deaths {
            step(&|state| {
                let agent = &mut state.agents[host];
                let runs = agent.runs;
                let saved = agent.saved;
                *agent = Agent {
                    runs,
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

    fn answered(&mut self, host: usize, sent: Sent, holds: bool) {
        let in_time = self.is_in_time(host);
        let (now, revision) = (self.now, self.revision);
        let agent = &mut self.agents[host];
        match sent {
            Sent::Register => {
                agent.own = Some(revision);
                agent.confirmed = Some(now);
                agent.has_to_register = false;
            }
            Sent::Take { .. } if holds => agent.runs = in_time,
            Sent::Take { .. } | Sent::Delete { .. } => {}
        }
    }

    fn broken(&self, before: &State) -> Option<Broken> {
        if self.agents.iter().all(|agent| agent.runs) {
            return Some(Broken::TwoPrograms);
        }
        let is_deleted = |host: usize| {
            let was_held = before.slot == Some(host) && before.keys[host].is_some();
            was_held && before.agents[host].runs && self.slot != Some(host)
        };
        if (0..2).any(is_deleted) {
            return Some(Broken::SlotDeleted);
        }
        // Only a restart forgets what is on its way; then it is found in the mirror, and deleted.
        let lost = |host: usize| {
            let was_known = before.agents[host].gave_up && before.agents[host].late.is_some();
            was_known
                && before.slot != Some(host)
                && self.slot == Some(host)
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
        let both = Plan { vanishings: 1, mishaps: 1, deaths: 1 };
        plans.extend([both, Plan { vanishings: 2, mishaps: 2, deaths: 0 }]);
    }
    for plan in plans {
        let (states, broken) = explore(Without::Nothing, plan);
        crate::support::tell(&format!("{states} states of two hosts and a slot"));
        assert_eq!(broken, None, "{plan:?}");
    }
}

/// Show that it fails when any one of the compares is left out.
#[test]
fn each_condition_of_the_site_is_missed() {
    let [vanishings, mishaps, _, cut] = PLANS;
    let vanishing = Plan { vanishings: 1, ..vanishings };
    for (without, plan, expected) in [
        (Without::SameAbsence, vanishings, Broken::SlotDeleted),
        (Without::SameSlot, Plan { vanishings: 1, ..mishaps }, Broken::SlotDeleted),
        (Without::Free, Plan { mishaps: 0, ..mishaps }, Broken::TwoPrograms),
        (Without::OwnKey, Plan { deaths: 1, ..mishaps }, Broken::SlotLost),
        (Without::Anew, mishaps, Broken::SlotLost),
        (Without::End, vanishing, Broken::TwoPrograms),
        (Without::Read, vanishing, Broken::TwoPrograms),
        (Without::Patience, vanishing, Broken::TwoPrograms),
        (Without::Saved, cut, Broken::TwoPrograms),
    ] {
        let (_, broken) = explore(without, plan);
        assert_eq!(broken, Some(expected), "{without:?}");
    }
}
