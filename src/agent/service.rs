//! The thread that owns everything: it waits for whatever happens first (somebody calls, says something or
//! hangs up, a holder ends, a judge has judged), does what follows from it, and waits again. It never waits
//! for anything else.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::AsFd,
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    time::{Duration, Instant, SystemTime},
};

use super::{
    Fatal,
    connections::Connections,
    evictor::Evictor,
    holding::Holding,
    judge::{self, Answered, Judge, Question},
    ledger::Ledger,
    pulse::Pulse,
    quota::Quotas,
    saved::{SavedHolding, SavedStamps},
    session::Session,
    site::Site,
    state::State,
    turns::Questions,
    worklist::Worklist,
};
use crate::{
    keeper::memory::{self, Kin},
    policy::AgentFile,
    sys::{
        descriptor,
        failure::{Errno, Failure},
        fifo::Fifo,
        local_socket::Listener,
        poller::{Bell, Interest, Poller},
    },
    terms::{hold::Hold, names::Names},
};

/// What a number of the poller stands for: four of them for each session, holding or place.
pub(super) const SESSION: u64 = 0;
const PROCESS: u64 = 1;
const FIFO: u64 = 2;
pub(super) const RETURNING: u64 = 3;
pub(super) const KINDS: u64 = 4;

/// The listener and the bell have the numbers of a session and a holding that are never there.
pub(super) const LISTENER: u64 = SESSION;
const BELL: u64 = PROCESS;

/// The agent at work.
pub(super) struct Service {
    pub(super) poller: Poller,
    bell: Arc<Bell>,
    pub(super) cases: Sender<Question>,
    judged: Receiver<Answered>,
    /// Judges what takes no waiting.
    pub(super) judge: Judge,
    /// Sends signals to overdue holders.
    pub(super) evictor: Evictor,
    /// Those whose questions the judges do not have yet.
    pub(super) questions: Questions,
    pub(super) connections: Connections,
    pub(super) ledger: Ledger,
    pub(super) sessions: BTreeMap<u64, Session>,
    /// The conversations for which somebody is being ended.
    pub(super) ending: BTreeSet<u64>,
    /// When conversations are to be looked at though nothing is said in them.
    pub(super) dues: BTreeSet<(Instant, u64)>,
    /// What the agents of all hosts keep together; none where this one keeps it alone.
    pub(super) site: Option<Site>,
    /// Whether it was said that this host keeps alone what the site should keep.
    pub(super) has_said_alone: bool,
    /// What follows from what has happened, and is still to be done.
    pub(super) work: Worklist,
    /// The number that the next session or holding gets.
    next: u64,
}

impl Service {
    /// Takes up what was written down, and begins to listen.
    pub(super) fn new(
        listener: Listener,
        state: &Path,
        settings: &AgentFile,
        names: &'static (dyn Names + Sync),
    ) -> Result<Self, Fatal> {
        let descriptors = descriptor::raise_limit();
        let state = State::open(state)?;
        let call = |call: &'static str| move |errno: Errno| Fatal::Call(Failure { call, errno });
        let poller = Poller::new().map_err(call("epoll_create1"))?;
        let bell = Arc::new(Bell::new().map_err(call("eventfd"))?);
        poller.add(&listener, LISTENER, Interest::Read).map_err(call("epoll_ctl"))?;
        poller.add(bell.as_fd(), BELL, Interest::Read).map_err(call("epoll_ctl"))?;
        let (cases, judged, judge) = judge::start(names, &bell).map_err(Fatal::Call)?;
        let evictor = Evictor::start(&bell).map_err(Fatal::Call)?;
        let mut service = Self {
            poller,
            connections: Connections::new(listener, Quotas::new(settings.limits, descriptors)),
            ledger: Ledger::new(state),
            bell,
            cases,
            judged,
            judge,
            evictor,
            questions: Questions::default(),
            sessions: BTreeMap::new(),
            ending: BTreeSet::new(),
            dues: BTreeSet::new(),
            site: None,
            has_said_alone: false,
            work: Worklist::default(),
            next: 1,
        };
        service.restore()?;
        if let Some(site) = &settings.site {
            service.site = Some(
                Site::start(site, service.ledger.state(), &service.bell, service.judge.clone())
                    .map_err(Fatal::Site)?,
            );
            service.restore_tickets();
        }
        Ok(service)
    }

    /// Takes up what was written down before the agent died.
    fn restore(&mut self) -> Result<(), Fatal> {
        let found = self.ledger.state.read()?;
        for (table, stamps) in &found.stamps {
            stamps.put_into(&self.store_of(stamps.started_by).table(table));
        }
        for (number, saved) in found.holdings {
            self.next = self.next.max(number + 1);
            let path = self.ledger.state.fifo(number);
            let has_fifo = saved.hold > Hold::Process;
            let fifo = has_fifo.then(|| Fifo::open(&path)).transpose();
            let fifo = fifo.map_err(|errno| Fatal::State(path, Failure { call: "open", errno }))?;
            match Holding::restore(&saved, fifo, &self.store_of(Some(saved.uid))).map_err(Fatal::Call)? {
                Some(holding) => self.watch(number, holding).map_err(Fatal::Call)?,
                None => self.ended_unseen(number, &saved),
            }
        }
        for (number, saved) in found.places {
            self.next = self.next.max(number + 1);
            self.restore_place(number, saved)?;
        }
        Ok(())
    }

    /// A program has ended while nobody looked: as far as pauses are concerned, now.
    fn ended_unseen(&self, number: u64, saved: &SavedHolding) {
        for name in &saved.paced {
            if let Some(table) = self.ledger.store.known(name) {
                table.ended(SystemTime::now());
                let _ = self.ledger.state.write_stamps(name, &SavedStamps::of(&table, saved.uid));
            }
        }
        self.ledger.state.forget(number, saved.hold);
    }

    /// The tables, for somebody on whose account new ones are made.
    pub(super) fn store_of(&self, uid: Option<u32>) -> memory::Store {
        self.ledger.store.for_asker(Kin { uid, ..Kin::default() })
    }

    /// Serves for ever.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let mut pulse = Pulse::new();
        loop {
            let next = self
                .dues
                .first()
                .into_iter()
                .chain(self.connections.pauses.first())
                .map(|(due, _)| *due)
                .min();
            let longest = next.map(|due| due.saturating_duration_since(Instant::now()));
            let has_work = self.connections.speakers.users() > 0 || !self.work.is_empty();
            let longest = if has_work { Some(Duration::ZERO) } else { longest };
            let longest = Pulse::longest(
                self.connections.quotas.somebody_waits() || self.connections.full.is_some(),
                longest,
            );
            let happened = self.poller.wait(longest).map_err(Failure::of("epoll_wait"))?;
            if pulse.beat(longest) {
                self.has_stood_still();
            }
            for number in happened {
                match (number, number / KINDS, number % KINDS) {
                    (LISTENER, ..) => self.accept(),
                    (BELL, ..) => self.hear_judges(),
                    (_, session, SESSION) => self.has_to_be_heard(session),
                    (_, place, RETURNING) => self.is_gone(place),
                    (_, holding, kind) => self.look_at(holding, kind == FIFO),
                }
            }
            self.accept_again(false);
            self.hear_again();
            self.hear_in_turn();
            let begun = Instant::now();
            self.do_what_is_due(begun);
            self.work_off(begun);
            // Last, for all of the above may have had somebody judged again.
            self.have_judged();
        }
    }

    /// A number for something new.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn hear_judges(&mut self) {
        self.bell.hush();
        while let Ok(judgement) = self.judged.try_recv() {
            match judgement {
                Answered::Launch(judgement) => {
                    self.questions.is_judged(judgement.uid);
                    self.judged(judgement);
                }
                Answered::Expiry(holding, table, expiry) => self.judged_expiry(holding, &table, expiry),
            }
        }
        self.hear_evictor();
        self.hear_site();
    }

    /// Keeps an eye on whoever has slots.
    pub(super) fn watch(&mut self, number: u64, holding: Holding) -> Result<(), Failure> {
        let add = |descriptor: std::os::fd::BorrowedFd<'_>, kind, interest| {
            self.poller.add(descriptor, number * KINDS + kind, interest).map_err(Failure::of("epoll_ctl"))
        };
        let of_process =
            holding.process.as_ref().map(|process| add(process.as_fd(), PROCESS, Interest::Read));
        let of_fifo = holding.fifo.as_ref().map(|fifo| add(fifo.as_fd(), FIFO, Interest::End));
        if let Some(Err(failure)) = [of_process, of_fifo].into_iter().flatten().find(Result::is_err) {
            self.forget(&holding);
            self.ledger.state.forget(number, holding.saved.hold);
            holding.withdraw_stamps();
            self.free_at_site(holding, false);
            return Err(failure);
        }
        self.connections.quotas.take(&holding);
        self.ledger.holdings.insert(number, holding);
        Ok(())
    }

    /// Looks away from somebody whose slots are free. To close the descriptors would not do: the conversation
    /// with the process may have a copy.
    pub(super) fn forget(&self, holding: &Holding) {
        let _ = holding.process.as_ref().map(|process| self.poller.remove(process.as_fd()));
        let _ = holding.fifo.as_ref().map(|fifo| self.poller.remove(fifo.as_fd()));
    }

    /// Something has happened to whoever has slots.
    fn look_at(&mut self, number: u64, is_fifo: bool) {
        let Some(holding) = self.ledger.holdings.get_mut(&number) else { return };
        if !holding.is_kept() {
            return self.release(number, true);
        }
        // What has ended does not end again.
        let _ = match (&holding.fifo, &holding.process) {
            (Some(fifo), _) if is_fifo => self.poller.remove(fifo.as_fd()),
            (_, Some(process)) if !is_fifo => self.poller.remove(process.as_fd()),
            _ => Ok(()),
        };
    }
}
