//! The loop of the agent. It waits for the next event (a client connects, speaks or hangs up, a holder ends,
//! a judge answers, the site reports) and does what follows, a bounded piece at a time. Sessions take events
//! and leave effects. `run_effects` carries these out: it checks tables, writes, answers, and never calls its
//! caller. So the stack is as deep for two thousand waiters as for one, and other clients are served in
//! between.

mod endings;
pub(super) mod local;

use std::{
    mem,
    os::fd::AsFd,
    path::Path,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use self::local::{LONGEST_ROUND, Local, Next, Worklist};
use super::{
    AWAY, Accepted, AcquireRequest, Answered, BELL, Change, CheckOutcome, Connections, Effect, Event,
    Evictor, FIFO, Fatal, Judgement, Judges, KINDS, LISTENER, LONGEST_WAIT, Ledger, Over, PolicyReader,
    RECOVERED, SESSION, Session, Sessions, Site,
    ledger::holding::Holding,
    server::quota::{Quotas, Share},
    session::LONGEST_UNUSED,
    site,
};
use crate::{
    judge::terms::{Names, name_on_site},
    keeper::{
        Class, Garbage, Number,
        agent::message::{About, Answer, Granted, Request, Take},
        memory,
    },
    policy::AgentFile,
    sys::{Bell, Errno, Failure, Interest, Listener, Poller, ServiceManager, descriptor, process},
};

/// How many new clients are accepted before others are served.
const CALLERS_AT_ONCE: usize = 64;

/// How long it reads input before it does other work.
const LONGEST_HEARING: Duration = Duration::from_millis(2);

/// How many waiters that did not respond are checked again before a queue is served.
const MOST_AWAY: usize = 16;

/// The agent at work.
pub(super) struct Service {
    poller: Rc<Poller>,
    bell: Arc<Bell>,
    local: Local,
    /// The tables that the agents of all hosts keep together; none if this agent keeps them alone.
    site: Option<Site>,
    /// Whether the log says that this host alone keeps the site's tables.
    has_said_alone: bool,
    /// The service manager, which restarts the agent if it hangs; none if there is none.
    manager: Option<ServiceManager>,
}

impl Service {
    /// Restores the saved state, and begins to listen.
    pub(super) fn new(
        listener: Listener,
        state: &Path,
        settings: &AgentFile,
        names: &'static (dyn Names + Sync),
    ) -> Result<Self, Fatal> {
        let descriptors = descriptor::raise_limit();
        let call = |call: &'static str| move |errno: Errno| Fatal::Call(Failure { call, errno });
        let poller = Rc::new(Poller::new().map_err(call("epoll_create1"))?);
        let bell = Arc::new(Bell::new().map_err(call("eventfd"))?);
        poller.add(bell.as_fd(), BELL, Interest::Read).map_err(call("epoll_ctl"))?;
        let (ledger, next) = Ledger::open(Rc::clone(&poller), state)?;
        let mut quotas = Quotas::new(settings.limits, descriptors);
        for holding in ledger.holdings().values() {
            quotas.change(holding.saved.uid, Share::default(), Share::of(holding));
        }
        for uid in ledger.users_of_unused() {
            quotas.change(uid, Share::default(), Share::of_unused(ledger.unused_of(uid)));
        }
        let connections = Connections::new(Rc::clone(&poller), listener, quotas).map_err(Fatal::Call)?;
        let judges = Judges::start(names, &bell).map_err(Fatal::Call)?;
        let evictor = Evictor::start(&bell).map_err(Fatal::Call)?;
        let site = settings.site.as_ref();
        let site = site.map(|site| Site::start(site, ledger.state(), &bell, Arc::clone(judges.policies())));
        let mut site = site.transpose()?;
        if site.is_none() {
            ledger.state().forget_confirmation();
        }
        let (sessions, work, next) = (Sessions::default(), Worklist::default(), next.max(1));
        let generation = None;
        let mut local = Local { connections, ledger, sessions, judges, evictor, work, next, generation };
        if let Some(site) = &mut site {
            site.restore(&mut local);
        }
        let manager = ServiceManager::of_this_process();
        Ok(Self { poller, bell, local, site, has_said_alone: false, manager })
    }

    /// What it keeps of this host, and the site.
    #[cfg(test)]
    pub(super) fn into_parts(self) -> (Local, Option<Site>) {
        (self.local, self.site)
    }

    /// How many launches have slots.
    pub(super) fn holding(&self) -> usize {
        self.local.ledger.holdings().len()
    }

    /// What reads the policy.
    pub(super) fn policies(&self) -> Arc<PolicyReader> {
        Arc::clone(self.local.judges.policies())
    }

    /// Serves for ever.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let mut stalls = StallDetector(Instant::now());
        if let Some(manager) = &self.manager {
            manager.is_ready();
        }
        loop {
            let longest = self.longest_wait();
            let happened = self.poller.wait(longest).map_err(Failure::of("epoll_wait"))?;
            if stalls.check_stall(longest) {
                self.on_stall();
            }
            for number in happened {
                match (number, number / KINDS, number % KINDS) {
                    (LISTENER, ..) => self.on_accept(),
                    (BELL, ..) => self.on_bell(),
                    (_, session, SESSION) => self.local.connections.on_input(session),
                    (_, waiter, RECOVERED) => self.on_gone(waiter),
                    (_, holding, kind) => {
                        if self.local.ledger.on_end(holding, kind == FIFO) {
                            self.release(holding, true);
                        } else if self.local.ledger.is_left_to_nested(holding) {
                            self.local.on_released(holding);
                        }
                    }
                }
            }
            self.local.connections.accept_again(false);
            self.run_effects();
            self.hear_in_turn();
            // First, because no holder gets a signal for room that has become free meanwhile.
            self.work_off(Instant::now());
            self.do_what_is_due(Instant::now());
            // Last, because all of the above may have requested judging.
            let judged = self.local.judges.work(|session| self.local.sessions.get(&session)?.case(session));
            for judgement in judged {
                self.judged(judgement);
            }
        }
    }

    /// How long it may wait for something to happen.
    fn longest_wait(&mut self) -> Option<Duration> {
        let pause = self.local.connections.hear_again();
        let watched = self.manager.as_mut().and_then(ServiceManager::report_alive);
        if self.local.connections.speaking_users() > 0 || !self.local.work.is_empty() {
            return Some(Duration::ZERO);
        }
        let timers = self.local.sessions.next_timer().into_iter().chain(self.local.ledger.next_recovered());
        let timers = timers.chain(self.local.ledger.next_lingering());
        let judges = self.local.judges.next_due();
        let next = timers.map(|(due, _)| due).chain(pause).chain(watched).chain(judges).min();
        let next = next.map(|due| due.saturating_duration_since(Instant::now()));
        let around = self.local.connections.somebody_waits().then_some(LONGEST_WAIT);
        next.into_iter().chain(around).min()
    }

    /// The agent, or the whole machine, did not run for a while: it could read no input, so no client counts
    /// as away.
    fn on_stall(&mut self) {
        self.local.sessions.on_stall();
        self.local.ledger.wait_for_recovered(Instant::now() + AWAY);
    }

    /// Accepts new clients; one that connects in a loop delays no earlier one.
    fn on_accept(&mut self) {
        for _ in 0..CALLERS_AT_ONCE {
            let number = self.local.number();
            match self.local.connections.on_accept(number) {
                Accepted::Caller(caller) => self.local.sessions.insert(number, Session::new(caller)),
                Accepted::Refused => {}
                Accepted::Nobody => return,
            }
        }
    }

    fn on_bell(&mut self) {
        self.bell.hush();
        while let Some(answer) = self.local.judges.answer() {
            match answer {
                Answered::Launch(judgement) => self.judged(judgement),
                Answered::Expiry(holding, table, expiry) => {
                    if let Some(site) = &mut self.site {
                        site.judged_expiry(&mut self.local, holding, &table, expiry);
                    }
                }
            }
        }
        self.local.hear_evictor();
        if let Some(site) = &mut self.site {
            site.hear(&mut self.local);
            // A nested launch that was not granted used the slots of a holder until now.
            self.release_left_over();
        }
        self.run_effects();
    }

    fn judged(&mut self, Judgement { session, question, outcome }: Judgement) {
        if outcome.is_ok() {
            self.local.sessions.on_judged(session);
        }
        self.local.on(session, Event::Judged(question, outcome));
        self.run_effects();
    }

    /// Reads connections with input, of all users in turn: each at least once, and as many as time permits
    /// before the next poll.
    fn hear_in_turn(&mut self) {
        let (mut first, begun) = (self.local.connections.speaking_users(), Instant::now());
        while first > 0 || begun.elapsed() < LONGEST_HEARING {
            let Some(number) = self.local.connections.next_speaker() else { return };
            self.on_readable(number);
            first = first.saturating_sub(1);
        }
    }

    /// Processes the input of a client as far as possible.
    fn on_readable(&mut self, number: u64) {
        let mut over = self.local.connections.on_readable(number);
        while over.is_ok() {
            over = match self.local.connections.request(number) {
                Ok(Some(request)) => self.on_request(number, request),
                Ok(None) => break,
                Err(over) => Err(over),
            };
            self.run_effects();
        }
        if let Err(over) = over {
            self.local.connections.say_why(number, &over);
            self.local.work.hang_up_later(number);
        }
        self.run_effects();
    }

    fn on_request(&mut self, number: u64, request: Request) -> Result<(), Over> {
        self.local.ledger.show_keepers();
        let session = self.local.sessions.get_mut(&number).ok_or(Over::HungUp)?;
        let is_root = session.peer.uid == 0;
        match request {
            Request::Take(take) => self.on_take(number, take),
            Request::Started => {
                if let Some(holding) = session.holding()
                    && self.local.ledger.on_start(holding)
                {
                    self.release(holding, true);
                }
            }
            Request::RunsAs(program) => {
                if let Some(holding) = session.holding() {
                    self.local.ledger.runs_as(holding, program);
                }
            }
            Request::GiveBack(has_run) => {
                let peer = &session.peer;
                let whose = (peer.pid, peer.started, peer.uid);
                let is_new = has_run && session.take.is_none();
                match is_new.then(|| self.local.ledger.supervised_by(whose)).flatten() {
                    // Its connection was with an agent that has ended since.
                    Some(holding) => {
                        session.answer(Answer::Done(true), None);
                        self.release(holding, true);
                    }
                    None => {
                        let of = session.holding().filter(|of| self.local.ledger.is_unused(*of));
                        let of = of.and_then(|of| self.local.ledger.holdings().get(&of));
                        let may_keep = !has_run && of.is_some_and(|of| !is_old(of.saved.taken));
                        session.on(Event::GivesBack(has_run, may_keep));
                    }
                }
            }
            Request::Beat => session.on(Event::Beats),
            Request::Leave => session.on(Event::Leaves),
            Request::Look(tables) => session.answer(Answer::Tables(self.local.ledger.tables(&tables)), None),
            Request::Reset(tables) if is_root => {
                let is_of_site = tables.iter().any(|name| name_on_site(name).is_some());
                match self.site.as_mut().filter(|_| is_of_site) {
                    Some(site) => site.reset(&mut self.local, number, tables),
                    None => session.answer(Answer::Done(self.local.ledger.reset_all(&tables)), None),
                }
            }
            // Other users would shorten their own pauses.
            Request::Reset(_) => {
                let why = "only root may reset the last use of a repository";
                session.answer(Answer::Failed(why.to_owned()), None);
            }
            Request::Evict(evict) => self.evict_for(number, &evict),
            Request::Open => {
                let uid = session.peer.uid;
                let opened = self.open_for(uid);
                if let Some(session) = self.local.sessions.get_mut(&number) {
                    session.answer(opened, None);
                }
            }
            Request::Keeps(opened) => {
                let uid = session.peer.uid;
                let kept = self.local.keeps(uid, opened);
                if let Some(session) = self.local.sessions.get_mut(&number) {
                    session.answer(kept, None);
                }
            }
            Request::Ends if is_root => session.answer(Answer::Ended(self.local.ledger.ends()), None),
            Request::Ends => {
                let why = "only root can ask which programs have ended";
                session.answer(Answer::Failed(why.to_owned()), None);
            }
            // It could answer no challenge.
            Request::Response(_) => return Err(Over::Garbage(Garbage::Senseless)),
            Request::About => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let work = Some(self.local.connections.work());
                let about = About { version, site: self.site.as_ref().map(Site::about), work };
                session.answer(Answer::About(about), None);
            }
        }
        Ok(())
    }

    /// A new FIFO for a script of this user.
    fn open_for(&mut self, uid: u32) -> Answer {
        if let Err(quota) = self.local.connections.quotas().may_open(uid) {
            return Answer::Failed(self.local.connections.quotas().decline(quota));
        }
        let made = self.local.with_fifos_of(uid, |local| {
            let in_use = local.fifos_in_use(uid);
            local.ledger.new_fifo(uid, &in_use)
        });
        match made {
            Ok(path) => Answer::Opened(path.into()),
            Err(failure) => Answer::Failed(format!("it cannot create a FIFO: {failure}")),
        }
    }

    /// A launch requests slots. Earlier unused ones are released, but not to another launch before this one
    /// was judged.
    fn on_take(&mut self, number: u64, take: Take) {
        self.local.connections.note_request(number);
        let (unused, served_as) = self.take_up_unused(number, &take);
        let before = self.local.sessions.get(&number).map_or(0, |session| session.load().question);
        self.local.on(number, Event::Asks(take, unused));
        self.come_back(number);
        let Some(session) = self.local.sessions.get_mut(&number) else { return };
        let load = session.load();
        let _ = self.local.connections.set_load(number, load);
        let quotas = self.local.connections.quotas();
        // A request that is no larger than the one that it replaces takes no memory from others.
        let asked = if load.question > before { quotas.may_ask(session.peer.uid) } else { Ok(()) };
        session.on(match asked {
            Ok(()) => Event::Accepted(served_as),
            Err(quota) => Event::Declined(Answer::Failed(quotas.decline(quota))),
        });
    }

    /// The slots to release when this request of a launch is judged: those that it has not used. Returns the
    /// number under which the launch joins the queue again, and when it first got slots under it. Like a
    /// position, the number is invalid for another launch, after a program has used its slots, and for two
    /// launches at a time. It is also invalid some time after these slots were granted: otherwise a launch
    /// that starts nothing would keep them from those behind it for ever.
    fn take_up_unused(&mut self, number: u64, take: &Take) -> (Vec<u64>, Option<(Number, Option<u64>)>) {
        let Some(session) = self.local.sessions.get(&number) else { return (Vec::new(), None) };
        let whose = (session.peer.pid, session.peer.started);
        let mut unused: Vec<u64> = session.holding().into_iter().collect();
        if unused.is_empty() && take.is_again {
            // The script has them, and not the process that asks.
            let kept = take.opened.and_then(|opened| self.local.ledger.kept_by(session.peer.uid, opened));
            unused.extend(kept.map(|(number, _)| number));
            // A failed agent had granted it slots, or the connection broke.
            let all = self.local.ledger.holdings().iter();
            let theirs = all.filter(|(_, holding)| (holding.saved.pid, holding.saved.start) == whose);
            unused.extend(theirs.map(|(number, _)| *number));
        }
        unused.retain(|of| self.local.ledger.is_unused(*of));
        if unused.is_empty() {
            return (unused, None);
        }
        let is_other = |(other, session): &(&u64, &Session)| {
            **other != number && (session.peer.pid, session.peer.started) == whose
        };
        let others: Vec<u64> = self.local.sessions.iter().filter(is_other).map(|(other, _)| *other).collect();
        let mut stand = Vec::new();
        for session in others {
            let Some(session) = self.local.sessions.get_mut(&session) else { continue };
            if !session.gives_back(&unused) {
                stand.extend(session.place.line.number());
            }
            session.on(Event::Superseded(unused.clone()));
        }
        let theirs = || unused.iter().filter_map(|of| Some(&self.local.ledger.holdings().get(of)?.saved));
        let numbers = theirs().filter_map(|saved| saved.served_as).filter(|served| served.is_for(take));
        let numbers = numbers.map(|served| Number(served.number));
        let served_as = numbers.filter(|served| !stand.contains(served)).min();
        let taken = theirs().filter_map(|saved| saved.taken).min();
        let served_as = served_as.filter(|_| !is_old(taken)).map(|number| (number, taken));
        (unused, served_as)
    }

    /// Carries out what follows from all events.
    fn run_effects(&mut self) {
        while let Some((number, change)) = self.local.sessions.next_change() {
            match change {
                Change::Load(load) => drop(self.local.connections.set_load(number, load)),
                Change::Effect(effect) => self.carry_out(number, effect),
            }
        }
        for number in self.local.connections.flush() {
            self.local.work.hang_up_later(number);
        }
    }

    fn carry_out(&mut self, number: u64, effect: Effect) {
        match effect {
            Effect::Answer(answer, beside) => self.local.connections.answer(number, &answer, beside),
            Effect::Judge => {
                if let Some(session) = self.local.sessions.get(&number) {
                    // Its earlier request may still wait.
                    if session.is_late() {
                        self.local.judges.give_up(session.peer.uid, number);
                    }
                    self.local.judges.wait(session.peer.uid, number);
                }
            }
            Effect::Decide(request, is_asked) => self.decide(number, request, is_asked),
            Effect::WritePlace => {
                self.local.write_place(number);
                self.write_tickets(number);
            }
            Effect::Left(tables) => self.local.serve(&tables),
            Effect::Release(holding, has_run) => self.release(holding, has_run),
            Effect::ReleaseUnused(holding) => {
                if self.local.ledger.is_unused(holding) {
                    self.release(holding, false);
                }
            }
        }
    }

    /// Checks whether a launch can have its slots. `is_asked` if it waits for the answer; otherwise a launch
    /// in the queue is only told of its turn.
    fn decide(&mut self, number: u64, request: AcquireRequest, is_asked: bool) {
        self.local.ledger.show_keepers();
        if request.is_empty() {
            let (slots, without) = (Vec::new(), request.without.clone());
            let granted = Granted { slots, without, hold: request.hold, has_waited: false, joined: None };
            return self.local.on(number, Event::Granted(None, granted, None));
        }
        if let Some(why) = self.local.cannot_be_kept_by_a_script(number, &request) {
            return self.local.fail(number, why);
        }
        let is_of_site = |name: &str| self.site.as_ref().is_some_and(|site| site.shows(name));
        if let Err(quota) = self.local.has_quota_for(&request, is_of_site) {
            let why = self.local.connections.quotas().decline(quota);
            return self.local.fail(number, why);
        }
        let of_site = request.tables_of_site().next();
        if let Some(name) = of_site.filter(|_| self.site.is_none())
            && !mem::replace(&mut self.has_said_alone, true)
        {
            site::say_alone(name);
        }
        if let Some(site) = self.site.as_mut().filter(|_| of_site.is_some()) {
            if !site.is_open() {
                return site.rest_without(&mut self.local, number, request);
            }
            site.prepare(&mut self.local, number, &request);
        }
        match self.local.look_once_or_twice(number, &request, is_asked, self.site.is_some()) {
            CheckOutcome::Granted(holding) => match &mut self.site {
                Some(site) if holding.is_of_site() => {
                    site.prove(&mut self.local, number, request, *holding);
                }
                _ => {
                    if let Err(holding) = self.local.grant(number, *holding) {
                        self.free(*holding, false);
                    }
                }
            },
            CheckOutcome::Failed(why) => self.local.fail(number, why),
            CheckOutcome::Stale => self.local.on(number, Event::Stale),
            CheckOutcome::Blocked(blocked)
                if blocked.waits && is_asked && self.local.is_left_behind(number, &request) =>
            {
                self.local.on(number, Event::Stale);
            }
            CheckOutcome::Blocked(mut blocked) => {
                self.begin_evictions(number, &mem::take(&mut blocked.evictions));
                let may_change =
                    |site: &&mut Site| !blocked.waits && site.may_change_soon(&self.local, number, &request);
                if let Some(site) = self.site.as_mut().filter(may_change) {
                    return site.rest_without(&mut self.local, number, request);
                }
                let load = self.local.sessions.get(&number).map(Session::load).unwrap_or_default();
                if blocked.waits
                    && let Err(quota) = self.local.connections.set_load(number, load)
                {
                    let why = self.local.connections.quotas().decline(quota);
                    return self.local.fail(number, why);
                }
                let has_begun =
                    self.site.as_ref().is_none_or(|site| site.has_begun_to_wait(&self.local, number));
                self.local.on(number, Event::Blocked(request, blocked, is_asked, has_begun));
            }
        }
    }

    /// Frees slots, and gives them to waiting launches; `has_run` if a program had them until now. Slots that
    /// a nested launch uses too are free when it has ended.
    fn release(&mut self, number: u64, has_run: bool) {
        self.release_one(number, has_run);
        self.release_left_over();
    }

    /// The same for one holding. A nested launch may use its slots even if it has run no program itself.
    fn release_one(&mut self, number: u64, has_run: bool) {
        if self.local.ledger.leaves_to_nested(number) {
            return self.local.on_released(number);
        }
        let Some(holding) = self.local.ledger.holdings().get(&number) else { return };
        let tables: Vec<memory::Table> = holding.held.iter().map(|held| held.table().clone()).collect();
        let uid = holding.saved.uid;
        let released = self.local.with_fifos_of(uid, |local| local.ledger.release(number, has_run));
        let Some(holding) = released else { return };
        self.local.connections.count(holding.saved.uid, Share::of(&holding), Share::default());
        self.local.on_released(number);
        if let Some(site) = &mut self.site {
            site.on_ended_by_notice(number, &holding);
        }
        self.local.serve(&tables);
        self.free(holding, has_run);
    }

    /// Frees the slots of holders that only nested launches kept, and nothing keeps any more.
    fn release_left_over(&mut self) {
        while let Some(above) = self.local.ledger.left_over() {
            self.release_one(above, true);
        }
    }

    /// Releases the slots of a holding, here and in the site.
    fn free(&mut self, holding: Holding, has_run: bool) {
        if let Some(site) = &mut self.site {
            site.free(&mut self.local, holding, has_run);
        }
    }

    /// Requests tickets for a launch as it waits now.
    fn write_tickets(&mut self, number: u64) {
        if let Some(site) = &mut self.site {
            site.write_tickets(&mut self.local, number);
        }
    }

    /// A launch makes a request: if it waited before the agent failed, it gets its position back.
    fn come_back(&mut self, number: u64) {
        let Some(session) = self.local.sessions.get(&number) else { return };
        // No launch has two positions.
        if session.place.line.number().is_some() {
            return;
        }
        let theirs = (session.peer.pid, session.peer.started, session.peer.uid);
        let recovered = self.local.ledger.recovered().iter();
        let of_theirs = recovered.filter(|(_, waiter)| waiter.saved.whose() == theirs);
        let Some((file, waiter)) = of_theirs.min_by_key(|(_, waiter)| waiter.saved.number.number) else {
            return;
        };
        let file = *file;
        // A position in the queue is invalid for another launch.
        if session.take.as_ref().is_none_or(|take| !waiter.saved.number.is_for(take)) {
            return self.on_gone(file);
        }
        if let Some(waiter) = self.local.ledger.take_recovered(file) {
            if let Some(site) = &mut self.site {
                site.hand_over_tickets(file, number);
            }
            self.local.on(number, Event::Recovered(file, waiter.saved, waiter.line));
        }
    }

    /// A launch that waited when the agent failed is gone, or will not reconnect.
    fn on_gone(&mut self, number: u64) {
        if self.local.forget_recovered(number) {
            self.write_tickets(number);
        }
    }

    /// Does the work that is due, for at most one round.
    fn do_what_is_due(&mut self, begun: Instant) {
        let is_due = |(due, _): &(Instant, u64)| *due <= Instant::now() && begun.elapsed() < LONGEST_ROUND;
        while let Some((_, number)) = self.local.ledger.next_recovered().filter(is_due) {
            match self.local.ledger.pass_over(number) {
                Some(tables) => self.local.serve(&tables),
                None => self.on_gone(number),
            }
        }
        while let Some((_, number)) = self.local.ledger.next_lingering().filter(is_due) {
            let now = process::since_boot().unwrap_or(Duration::MAX);
            let over = self.local.ledger.end_lingering(number, now);
            self.free_lingering(over);
        }
        while let Some((_, number)) = self.local.sessions.next_timer().filter(is_due) {
            self.local.continue_evictions(number);
            self.local.on_timer(number);
            self.run_effects();
        }
    }

    /// Does pending work, for at most one round.
    fn work_off(&mut self, begun: Instant) {
        while begun.elapsed() < LONGEST_ROUND {
            match self.local.work.next() {
                Some(Next::HangUp(session)) => self.hang_up(session),
                Some(Next::Serve(table)) => self.serve_queue(&table, begun),
                Some(Next::Look(session)) => self.local.on(session, Event::Freed),
                None => return,
            }
            self.run_effects();
        }
    }

    /// Lets the waiting launches of a table check again, from the head of the queue on. A launch that gets
    /// nothing blocks later ones whose class may not overtake its own. When none is left that may, the rest
    /// need not check. So only the launches that start, and one of each class, check.
    fn serve_queue(&mut self, name: &str, begun: Instant) {
        let Some(table) = self.local.ledger.store().known(name) else { return };
        // A stopped one may run again by now. If there are many, the others return with their next heartbeat.
        for number in table.first_away(MOST_AWAY) {
            self.local.update_away(number);
        }
        let mut blocked: Vec<Class> = Vec::new();
        let mut last: Option<Number> = None;
        while let Some(number) = table.next_to_look(last, &blocked) {
            if begun.elapsed() > LONGEST_ROUND {
                return self.local.serve(&[table]);
            }
            last = Some(number);
            if let Some(session) = table.session_of(number)
                && self.local.sessions.get(&session).is_some_and(Session::is_queued)
            {
                // One that does not respond is passed over.
                if self.local.update_away(session) {
                    continue;
                }
                self.local.on(session, Event::Turn);
                self.run_effects();
            }
            // A launch that has its slots, or was refused, is not in the queue any more.
            blocked.extend(table.classes_of(number));
        }
        drop(table);
        self.local.ledger.store().forget_if_unused(name);
    }

    /// The other end closed the connection: a waiting launch leaves the queue, and a holder keeps its slots,
    /// unless it is a script that does not know of them.
    fn hang_up(&mut self, number: u64) {
        let unknown = self.local.unknown_to_script(number);
        self.local.on(number, Event::Gone);
        if let Some(holding) = unknown {
            self.release(holding, false);
        }
        self.run_effects();
        if let Some(session) = self.local.sessions.get(&number) {
            self.local.judges.give_up(session.peer.uid, number);
        }
        self.local.sessions.remove(number);
        self.local.connections.disconnect(number);
        if let Some(site) = &mut self.site {
            site.forget(number);
        }
    }
}

/// Whether slots were first got so long ago that a launch that has not used them has its number no more.
fn is_old(taken: Option<u64>) -> bool {
    let age = |(taken, now): (u64, Duration)| now.saturating_sub(Duration::from_millis(taken));
    taken.zip(process::since_boot()).is_some_and(|times| age(times) > LONGEST_UNUSED)
}

/// Detects that the agent was suspended: while a launch waits it checks often, and this gap was longer.
struct StallDetector(Instant);

impl StallDetector {
    /// Checks whether it was suspended, after it wanted to wait at most this long.
    fn check_stall(&mut self, longest: Option<Duration>) -> bool {
        let now = Instant::now();
        let passed = now.saturating_duration_since(mem::replace(&mut self.0, now));
        longest.is_some_and(|longest| passed > longest + LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests;
