//! The eviction of holders. The agent has the process by descriptor and knows what keeps its slots. It still
//! has to prove that a signal reaches only programs of the holder's user. The thread that owns the tables
//! decides which holder to evict and which signal is due. Another thread sends the signals. It has to read
//! all of `/proc`, once for several holders, and the first thread has no time for that.

use std::{
    cell::LazyCell,
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    AcquireRequest, FairQueue,
    ledger::holding::{Alive, Holding, is_of_user},
};
use crate::{
    acquire,
    judge::terms::{ExpireKill, Expiry, Hold},
    keeper::{Delivery, EvictionOutcome, Overdue, SIGNALS, UnverifiedTarget, Whom},
    sys::{Bell, Errno, Failure, Fifo, FileId, PidFd, Process, Signal, process},
};

/// Holders of one table that must be ended.
pub(super) struct Eviction {
    pub(super) table: String,
    pub(super) expiry: Expiry,
    pub(super) overdue: Vec<Overdue>,
}

impl Eviction {
    /// The same, as the result for a claim.
    pub(super) fn of(found: acquire::too_late::Eviction<'_>) -> Option<Self> {
        let table = found.claim.location.in_memory()?.to_owned();
        let overdue = found.overdue.into_iter().flat_map(Overdue::each).collect();
        Some(Self { table, expiry: found.expiry, overdue })
    }
}

/// A holder that is being ended.
#[derive(Debug)]
pub(super) struct RunningEviction {
    pub(super) holding: u64,
    /// The table whose slots are wanted.
    pub(super) table: String,
    expiry: Expiry,
    pub(super) overdue: Overdue,
    /// Whether it gets no signal at the moment: its end would not help to make room.
    pub(super) rests: bool,
    next: usize,
    pub(super) due: Instant,
    sent: Option<(Signal, Delivery)>,
    /// The signal that is being sent, and how.
    attempt: Option<(Option<Signal>, Attempt)>,
    /// Whether nothing was found below a supervisor, so that it gets the signals itself.
    is_childless: bool,
    /// The process group of the launch that it is ended for; none if that is on another host.
    own_group: Option<i32>,
}

impl RunningEviction {
    /// For a holding and a launch of this process.
    pub(super) fn of(holding: u64, eviction: &Eviction, overdue: Overdue, launch: Option<i32>) -> Self {
        let Eviction { table, expiry, .. } = eviction;
        Self {
            holding,
            table: table.clone(),
            expiry: *expiry,
            overdue,
            rests: false,
            next: 0,
            due: Instant::now(),
            sent: None,
            attempt: None,
            is_childless: false,
            own_group: launch.and_then(Process::find).map(|process| process.group),
        }
    }

    /// The next signal of those that may end it.
    pub(super) fn next_signal(&self) -> Option<Signal> {
        SIGNALS.iter().skip(self.next).copied().find(|signal| *signal != Signal::SIGCONT)
    }

    /// The outcome, now that a nested launch keeps its slots.
    pub(super) fn when_left(&mut self) -> EvictionOutcome {
        match self.when_free() {
            EvictionOutcome::Ended(signal, _) => EvictionOutcome::LeftOthers(signal),
            outcome => outcome,
        }
    }

    /// The outcome, now that its slots are free.
    pub(super) fn when_free(&mut self) -> EvictionOutcome {
        if let Some((Some(signal), attempt)) = self.attempt.take()
            && let Some(Sent::To(delivery)) = attempt.cancel()
        {
            self.sent = Some((signal, delivery));
        }
        self.sent
            .map_or(EvictionOutcome::HadLeft, |(signal, delivery)| EvictionOutcome::Ended(signal, delivery))
    }

    /// When to check it next; none while a signal is being sent.
    pub(super) fn due(&self) -> Option<Instant> {
        self.attempt.is_none().then_some(self.due)
    }

    /// Whether a signal is to be sent now.
    pub(super) fn is_due(&self) -> bool {
        !self.rests && self.due().is_some_and(|due| due <= Instant::now())
    }

    /// Whether the holder is still to be ended: at a user's request, or because this launch finds it overdue.
    pub(super) fn is_due_by(&self, request: &AcquireRequest) -> bool {
        self.overdue.by.is_none() || request.is_overdue(&self.table, &self.overdue.holder)
    }

    /// Reads the result of the signal that is being sent. Returns the outcome if nothing more can be done.
    pub(super) fn hear(&mut self, holding: &Holding) -> Option<EvictionOutcome> {
        let (signal, attempt) = self.attempt.as_ref()?;
        let (signal, sent) = (*signal, attempt.answer()?);
        self.attempt = None;
        self.on_sent(signal, sent, holding)
    }

    /// The same, and requests the next signal, if it is due.
    pub(super) fn advance(&mut self, holding: &Holding, evictor: &Evictor) -> Option<EvictionOutcome> {
        if let Some(fate) = self.hear(holding) {
            return Some(fate);
        }
        if !self.is_due() {
            return None;
        }
        // No wait after SIGCONT: it only lets the process receive the next signal.
        let mut signals = Vec::new();
        while let Some(signal) = SIGNALS.get(self.next).copied() {
            self.next = self.next.saturating_add(1);
            signals.push(signal);
            if signal != Signal::SIGCONT {
                break;
            }
        }
        let last = signals.last().copied();
        self.attempt = Some((last, evictor.signal(self.target(holding), signals)));
        None
    }

    /// About how much memory it takes, with the signal that is being sent.
    pub(super) fn size(&self) -> usize {
        let holders = self.overdue.holder.all().count().saturating_mul(OF_HOLDER);
        size_of::<Self>().saturating_add(OF_SIGNAL).saturating_add(holders)
    }

    /// The processes that get signals.
    fn target(&self, holding: &Holding) -> Target {
        let keeps_more = holding.saved.hold > Hold::Process;
        Target {
            process: holding.process.as_ref().map(Arc::downgrade),
            fifo: holding.fifo.as_ref().filter(|_| keeps_more).map(Fifo::id),
            hold: if self.is_childless { Hold::Process } else { holding.saved.hold },
            taken: holding.taken_on_host(),
            kill: self.expiry.kill,
            own_group: self.own_group,
            user: holding.saved.uid,
        }
    }

    /// The result of a signal, or of a check whether any process exists.
    fn on_sent(&mut self, signal: Option<Signal>, sent: Sent, holding: &Holding) -> Option<EvictionOutcome> {
        match (signal, sent) {
            (_, Sent::Doubted(doubt)) => Some(EvictionOutcome::NotProved(doubt)),
            (Some(signal), Sent::To(delivery)) => {
                self.sent = Some((signal, delivery));
                self.wait_for_grace()
            }
            (Some(_), Sent::Denied) => Some(self.not_reached()),
            // A supervisor whose program has ended is about to release the slots. One that does not is not a
            // supervisor: the requesting process itself keeps them.
            (Some(_), Sent::Nobody) => {
                self.is_childless |= holding.process.as_ref().is_some_and(|process| !process.has_ended());
                self.wait_for_grace()
            }
            (None, Sent::Nobody) => Some(EvictionOutcome::NotProved(UnverifiedTarget::InTransit)),
            (None, Sent::To(_) | Sent::Denied) => Some(match self.sent {
                Some((_, Delivery::Partly)) | None => EvictionOutcome::NotPermitted,
                Some(_) => EvictionOutcome::Survived,
            }),
        }
    }

    fn wait_for_grace(&mut self) -> Option<EvictionOutcome> {
        self.due = Instant::now().checked_add(self.expiry.grace.max(SHORTEST_GRACE))?;
        None
    }

    fn not_reached(&self) -> EvictionOutcome {
        self.sent.map_or(EvictionOutcome::NotPermitted, |(signal, _)| EvictionOutcome::LeftOthers(signal))
    }
}

/// Bytes of memory of a holder with its texts, rounded up, and of a signal that is being sent: the job of the
/// evictor, and what brings its result.
const OF_HOLDER: usize = 512;
const OF_SIGNAL: usize = 1024;

/// Signals in quick succession would leave no time to end.
const SHORTEST_GRACE: Duration = Duration::from_millis(10);

/// How often the agent hears of results while there are more signals to send.
const UNTIL_HEARD: Duration = Duration::from_millis(10);

/// Gives it work.
#[derive(Clone, Debug)]
pub(super) struct Evictor {
    jobs: Sender<Job>,
}

/// A holder, and which process of its job gets a signal.
#[derive(Debug)]
pub(super) struct Target {
    /// The process that requested the slots; none if it has ended. The descriptor is that of the holding, and
    /// is closed with it: any number of jobs for one holder open none.
    pub(super) process: Option<Weak<PidFd>>,
    /// The FIFO that its descendants have open.
    pub(super) fifo: Option<FileId>,
    pub(super) hold: Hold,
    /// When it got them, as [`Process::started_on_host`] counts.
    pub(super) taken: Option<Duration>,
    pub(super) kill: ExpireKill,
    /// The process group of the launch that it is ended for.
    pub(super) own_group: Option<i32>,
    pub(super) user: u32,
}

/// The result of a signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    /// It was sent to these.
    To(Delivery),
    /// There is nothing to send it to: neither the process nor another that keeps the slots for it.
    Nobody,
    /// It may not be sent.
    Denied,
    /// Nothing proves that the process may be signalled at all.
    Doubted(UnverifiedTarget),
}

/// A signal that is being sent. If dropped, the signal is not sent any more, unless sending has begun.
#[derive(Debug)]
pub(super) struct Attempt {
    claim: Arc<Claim>,
    answer: Receiver<Sent>,
}

/// Which came first: the evictor, which begins to send, or the holder's end, after which nothing is sent.
#[derive(Debug, Default)]
struct Claim(AtomicBool);

impl Claim {
    fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Attempt {
    /// The result; none while it is unknown.
    pub(super) fn answer(&self) -> Option<Sent> {
        self.answer.try_recv().ok()
    }

    /// The holder has ended. Returns the result of the signal, if it was sent. One that is still being sent
    /// counts as sent: the thread that owns the tables does not wait for its result.
    pub(super) fn cancel(&self) -> Option<Sent> {
        (!self.claim.is_first()).then(|| self.answer().unwrap_or(Sent::To(Delivery::Full)))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = self.claim.is_first();
    }
}

#[derive(Debug)]
struct Job {
    target: Target,
    /// In this order, at once. Without any, only checks whether a process exists.
    signals: Vec<Signal>,
    claim: Arc<Claim>,
    answer: Sender<Sent>,
}

/// What is to be done, for the holders of each user in turn: many signals for those of one user do not delay
/// those for another's. One signal may take a read of `/proc`.
#[derive(Debug, Default)]
struct Jobs {
    turns: FairQueue,
    all: BTreeMap<u64, Job>,
    /// How many there were so far; each has a lower number.
    count: u64,
}

impl Jobs {
    fn add(&mut self, job: Job) {
        self.turns.wait(job.target.user, self.count);
        self.all.insert(self.count, job);
        self.count = self.count.saturating_add(1);
    }

    /// The next one, with its number. Those that were cancelled are dropped.
    fn next(&mut self) -> Option<(u64, Job)> {
        loop {
            let number = self.turns.next()?;
            let job = self.all.remove(&number)?;
            if !job.claim.is_taken() {
                return Some((number, job));
            }
        }
    }
}

impl Evictor {
    /// Starts the thread; the bell rings soon after each answer.
    pub(super) fn start(bell: &Arc<Bell>) -> Result<Self, Failure> {
        let (jobs, to_do) = channel::<Job>();
        let bell = Arc::clone(bell);
        let run = move || {
            let mut jobs = Jobs::default();
            while let Ok(first) = to_do.recv() {
                jobs.add(first);
                let mut alive: LazyCell<Alive> = LazyCell::new(Alive::look);
                let (mut known, mut heard) = (0, Instant::now());
                loop {
                    for job in to_do.try_iter() {
                        jobs.add(job);
                    }
                    let Some((number, job)) = jobs.next() else { break };
                    // One read of `/proc` serves all jobs that were there before it.
                    if number >= known {
                        alive = LazyCell::new(Alive::look);
                        known = jobs.count;
                    }
                    let sent = job.carry_out(&alive);
                    // The receiver may be gone.
                    let _ = job.answer.send(sent);
                    if heard.elapsed() >= UNTIL_HEARD {
                        bell.ring();
                        heard = Instant::now();
                    }
                }
                bell.ring();
            }
        };
        thread::Builder::new().name("evictor".to_owned()).spawn(run).map_err(Failure::of_io("clone"))?;
        Ok(Self { jobs })
    }

    /// Sends signals to the right processes; without a signal, checks whether any exists.
    pub(super) fn signal(&self, target: Target, signals: Vec<Signal>) -> Attempt {
        let (answer, answered) = channel();
        let claim = Arc::new(Claim::default());
        // The thread lives as long as this does.
        let _ = self.jobs.send(Job { target, signals, claim: Arc::clone(&claim), answer });
        Attempt { claim, answer: answered }
    }
}

impl Job {
    fn carry_out(&self, alive: &LazyCell<Alive>) -> Sent {
        let Target { process, fifo, hold, taken, kill, own_group, user } = &self.target;
        let process = process.as_ref().and_then(Weak::upgrade).filter(|process| !process.has_ended());
        let process = process.as_deref();
        if let Some(doubt) = process.and_then(doubt) {
            return Sent::Doubted(doubt);
        }
        let of_fifo = match (process, fifo) {
            (None, Some(fifo)) => alive.heirs(*fifo),
            _ => Vec::new(),
        };
        // Its slots may be free by now, and the process not a holder any more.
        if !self.claim.is_first() {
            return Sent::Nobody;
        }
        if self.signals.is_empty() {
            return if process.is_some() || !of_fifo.is_empty() { Sent::Denied } else { Sent::Nobody };
        }
        let user = *user;
        let whom = Whom {
            hold: *hold,
            taken: *taken,
            kill: *kill,
            spares_others: true,
            own_group: *own_group,
            may_signal: &move |process, users| is_of_user(process, users, user),
        };
        let mut sent = Sent::Nobody;
        for signal in &self.signals {
            let delivery = match process {
                Some(process) => whom.signal(process, *signal),
                None => whom.signal_each(&of_fifo, *signal),
            };
            sent = match delivery {
                Ok(delivery) => Sent::To(delivery),
                Err(Errno::ESRCH) => Sent::Nobody,
                Err(_) => Sent::Denied,
            };
        }
        sent
    }
}

/// Why nothing may be ended for what a process holds.
fn doubt(process: &PidFd) -> Option<UnverifiedTarget> {
    let is_privileged = process::is_privileged_by_exec(process.pid());
    match is_privileged {
        _ if process.has_ended() => None,
        Some(false) => None,
        Some(true) => Some(UnverifiedTarget::Privileged),
        None => Some(UnverifiedTarget::OutOfSight),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::{
        agent::tests::{HOUR, ending, holding, overdue, saved},
        sys::own_uid,
    };

    fn program() -> Child {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep(1)");
        // The parent continues before Linux shows anything of the new program.
        while process::is_privileged_by_exec(child.id().try_into().expect("a PID")).is_none() {
            thread::yield_now();
        }
        child
    }

    fn open(child: &Child) -> Arc<PidFd> {
        Arc::new(PidFd::open(child.id().try_into().expect("a PID")).expect("it was not waited for"))
    }

    fn job(holder: &Arc<PidFd>, signals: Vec<Signal>) -> Job {
        let process = Some(Arc::downgrade(holder));
        let (hold, kill, user) = (Hold::Process, ExpireKill::Process, own_uid());
        let target = Target { process, fifo: None, hold, taken: None, kill, own_group: None, user };
        Job { target, signals, claim: Arc::default(), answer: channel().0 }
    }

    fn carry_out(job: &Job) -> Sent {
        job.carry_out(&LazyCell::new(Alive::look))
    }

    /// A signal that is cancelled before its turn is not sent.
    #[test]
    fn what_was_cancelled_is_not_sent() {
        let mut holder = program();
        let process = open(&holder);
        let cancelled = job(&process, vec![Signal::SIGKILL]);
        assert!(cancelled.claim.is_first());
        assert_eq!(carry_out(&cancelled), Sent::Nobody);
        assert_eq!(holder.try_wait().expect("it can be waited for"), None);
        let due = job(&process, vec![Signal::SIGKILL]);
        assert!(matches!(carry_out(&due), Sent::To(_)));
        holder.wait().expect("it has ended");
    }

    /// The holders of each user have their turn, however many of another user are to be ended. What was
    /// cancelled is dropped.
    #[test]
    fn each_user_has_a_turn() {
        let mut jobs = Jobs::default();
        let mut cancelled = Vec::new();
        for (user, is_cancelled) in
            [(7, false), (7, true), (7, false), (7, false), (9, true), (9, false), (8, false), (6, true)]
        {
            let (hold, kill) = (Hold::Process, ExpireKill::Process);
            let target = Target { process: None, fifo: None, hold, taken: None, kill, own_group: None, user };
            let job = Job { target, signals: Vec::new(), claim: Arc::default(), answer: channel().0 };
            cancelled.extend(is_cancelled.then(|| Arc::clone(&job.claim)));
            jobs.add(job);
        }
        assert!(cancelled.iter().all(|claim| claim.is_first()));
        let all = std::iter::from_fn(|| jobs.next());
        let all: Vec<(u64, u32)> = all.map(|(number, job)| (number, job.target.user)).collect();
        assert_eq!(all, [(0, 7), (6, 8), (5, 9), (2, 7), (3, 7)]);
        assert!(jobs.all.is_empty() && jobs.count == 8, "those that were cancelled are dropped");
    }

    /// A job without signals only says whether the process exists.
    #[test]
    fn a_look_signals_nobody() {
        let mut holder = program();
        let process = open(&holder);
        let look = job(&process, Vec::new());
        assert_eq!(carry_out(&look), Sent::Denied);
        assert_eq!(holder.try_wait().expect("it can be waited for"), None);
        holder.kill().expect("it is ours");
        holder.wait().expect("it has ended");
        assert_eq!(carry_out(&look), Sent::Nobody);
    }

    /// Nothing has to be proved of a process that has ended meanwhile.
    #[test]
    fn a_process_that_has_ended_is_not_doubted() {
        let mut holder = program();
        let process = PidFd::open(holder.id().try_into().expect("a PID")).expect("it runs");
        assert_eq!(doubt(&process), None);
        holder.kill().expect("it is ours");
        holder.wait().expect("it has ended");
        assert_eq!(doubt(&process), None);
    }

    /// What has the FIFO of a holder is found although its process has ended.
    #[test]
    fn a_look_finds_what_has_the_fifo() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("own.fifo");
        let fifo = Fifo::create(&path).expect("a FIFO");
        let writer = Fifo::writer(&path).expect("a FIFO");
        let mut heir = Command::new("sleep").arg("600").stdout(writer).spawn().expect("sleep(1)");
        let mut look = job(&open(&heir), Vec::new());
        (look.target.process, look.target.fifo) = (None, Some(fifo.id()));
        assert_eq!(carry_out(&look), Sent::Denied);
        heir.kill().expect("it is ours");
        heir.wait().expect("it has ended");
    }

    /// What the thread of the evictor would get next.
    #[track_caller]
    fn next(to_do: &Receiver<Job>) -> Job {
        let job = to_do.try_recv().expect("a job");
        assert!(to_do.try_recv().is_err(), "one job at a time");
        job
    }

    /// The signals come in their order, each after the time for the one before it. The first only lets a
    /// stopped process receive the second, and comes with it. At last it is checked whether the holder is
    /// still there.
    #[test]
    fn each_signal_comes_after_the_time_for_the_one_before() {
        let (jobs, to_do) = channel();
        let (evictor, holding) = (Evictor { jobs }, holding(saved(1, Hold::Process), None));
        let mut eviction = ending(1, overdue(2, None));
        let both = vec![Signal::SIGCONT, Signal::SIGINT];
        for signals in [both, vec![Signal::SIGTERM], vec![Signal::SIGKILL]] {
            let next_signal = signals.iter().copied().find(|signal| *signal != Signal::SIGCONT);
            assert_eq!(eviction.next_signal(), next_signal);
            assert_eq!(eviction.advance(&holding, &evictor), None);
            let job = next(&to_do);
            assert_eq!(job.signals, signals);
            assert_eq!(eviction.advance(&holding, &evictor), None);
            assert!(to_do.try_recv().is_err(), "the signal is being sent");
            let sent = Instant::now();
            job.answer.send(Sent::To(Delivery::Full)).expect("it is heard");
            assert_eq!(eviction.advance(&holding, &evictor), None);
            assert!(to_do.try_recv().is_err() && eviction.due >= sent + HOUR, "it has time to end");
            eviction.due = sent;
        }
        assert_eq!(eviction.advance(&holding, &evictor), None);
        let look = next(&to_do);
        assert!(look.signals.is_empty());
        look.answer.send(Sent::Denied).expect("it is heard");
        assert_eq!(eviction.advance(&holding, &evictor), Some(EvictionOutcome::Survived));
    }

    /// A holder has some time to end, also if the policy gives it none.
    #[test]
    fn signals_do_not_come_in_quick_succession() {
        let mut eviction = ending(1, overdue(2, None));
        eviction.expiry.grace = Duration::ZERO;
        let sent = Instant::now();
        let holding = holding(saved(1, Hold::Process), None);
        assert_eq!(eviction.on_sent(Some(Signal::SIGINT), Sent::To(Delivery::Full), &holding), None);
        assert!(eviction.due >= sent + SHORTEST_GRACE);
    }

    /// A holder whose slots are free was ended by a signal if that was sent, also if the answer comes only
    /// now, or after the outcome. A signal that was not sent yet is not sent any more.
    #[test]
    fn a_signal_that_is_sent_before_the_end_counts() {
        let ended = |delivery| EvictionOutcome::Ended(Signal::SIGINT, delivery);
        for (is_sent, delivery, expected) in [
            (true, Some(Delivery::NoGroup), ended(Delivery::NoGroup)),
            (true, None, ended(Delivery::Full)),
            (false, None, EvictionOutcome::HadLeft),
        ] {
            let (jobs, to_do) = channel();
            let (evictor, holding) = (Evictor { jobs }, holding(saved(1, Hold::Process), None));
            let mut eviction = ending(1, overdue(2, None));
            assert_eq!(eviction.advance(&holding, &evictor), None);
            let job = next(&to_do);
            assert!(!is_sent || job.claim.is_first());
            if let Some(delivery) = delivery {
                job.answer.send(Sent::To(delivery)).expect("it is heard");
            }
            assert_eq!(eviction.when_free(), expected);
            assert!(!job.claim.is_first());
        }
    }

    /// A supervisor that lives and has no child keeps the slots itself, and gets the signals itself. One that
    /// has ended is about to release them.
    #[test]
    fn a_supervisor_without_a_child_gets_the_signals_itself() {
        let mut child = program();
        let open = || PidFd::open(child.id().try_into().expect("a PID")).ok();
        let (lives, ends) = (open(), open());
        let target_of = |process: Option<PidFd>| {
            let holding = holding(saved(1, Hold::Supervisor), process);
            let mut eviction = ending(1, overdue(2, None));
            assert_eq!(eviction.on_sent(Some(Signal::SIGINT), Sent::Nobody, &holding), None);
            eviction.target(&holding).hold
        };
        assert_eq!(target_of(lives), Hold::Process);
        assert_eq!(target_of(None), Hold::Supervisor, "only its FIFO is left");
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        assert_eq!(target_of(ends), Hold::Supervisor);
    }
}
