//! The loop of the agent: it waits for whatever happens first (somebody calls, says something or hangs up, a
//! holder ends, a judge has judged, the site reports), and does what follows from it, a bounded piece at a
//! time. Sessions take events and leave effects, and `run_effects` carries those out: it looks at tables,
//! writes down, answers, and never calls what has called it. So the stack is as deep for two thousand waiters
//! as for one, and whoever speaks meanwhile is heard in between.

use std::{
    mem,
    os::fd::AsFd,
    path::Path,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    AWAY, BELL, FIFO, Fatal, KINDS, LISTENER, LONGEST_WAIT, RECOVERED, SESSION,
    eviction::Evictor,
    judge::{Answered, Judgement, Judges},
    ledger::{Ledger, holding::Holding, look::Looked},
    request::AcquireRequest,
    server::{
        Accepted, Connections, Over,
        quota::{Quota, Quotas, Share},
    },
    session::{Change, Effect, Event, Session, Sessions},
    site::{self, Site},
    worklist::{LONGEST_ROUND, Next, Worklist},
};
use crate::{
    judge::terms::{names::Names, runs::Runs},
    keeper::{
        Number,
        agent::{
            about::About,
            frame::Garbage,
            message::{Answer, Granted, Obstacle, Refused, Request, Take, Unwaited},
        },
        line::Class,
        memory,
    },
    policy::AgentFile,
    sys::{
        descriptor,
        failure::{Errno, Failure},
        local_socket::Listener,
        poller::{Bell, Interest, Poller},
    },
};

/// How many callers are answered before it looks what others want.
const CALLERS_AT_ONCE: usize = 64;

/// So long it hears before it looks what others want.
const LONGEST_HEARING: Duration = Duration::from_millis(2);

/// How many who did not answer are looked at again before a queue is served.
const MOST_AWAY: usize = 16;

/// The agent at work.
pub(super) struct Service {
    poller: Rc<Poller>,
    bell: Arc<Bell>,
    pub(super) connections: Connections,
    pub(super) ledger: Ledger,
    /// What the agents of all hosts keep together; none where this one keeps it alone.
    pub(super) site: Option<Site>,
    pub(super) sessions: Sessions,
    pub(super) judges: Judges,
    /// Sends signals to overdue holders.
    pub(super) evictor: Evictor,
    /// What follows from what has happened, and is still to be done.
    work: Worklist,
    /// Whether it was said that this host keeps alone what the site should keep.
    has_said_alone: bool,
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
        let call = |call: &'static str| move |errno: Errno| Fatal::Call(Failure { call, errno });
        let poller = Rc::new(Poller::new().map_err(call("epoll_create1"))?);
        let bell = Arc::new(Bell::new().map_err(call("eventfd"))?);
        poller.add(bell.as_fd(), BELL, Interest::Read).map_err(call("epoll_ctl"))?;
        let (ledger, next) = Ledger::open(Rc::clone(&poller), state)?;
        let mut quotas = Quotas::new(settings.limits, descriptors);
        for holding in ledger.holdings().values() {
            quotas.change(holding.saved.uid, Share::default(), Share::of(holding));
        }
        let connections =
            Connections::new(Rc::clone(&poller), listener, quotas).map_err(call("epoll_ctl"))?;
        let judges = Judges::start(names, &bell).map_err(Fatal::Call)?;
        let evictor = Evictor::start(&bell).map_err(Fatal::Call)?;
        let site = settings.site.as_ref();
        let site = site.map(|site| Site::start(site, ledger.state(), &bell, judges.judge().clone()));
        let mut service = Self {
            poller,
            bell,
            connections,
            ledger,
            site: site.transpose().map_err(Fatal::Site)?,
            sessions: Sessions::default(),
            judges,
            evictor,
            work: Worklist::default(),
            has_said_alone: false,
            next: next.max(1),
        };
        service.restore_tickets();
        Ok(service)
    }

    /// Serves for ever.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let mut stalls = StallDetector(Instant::now());
        loop {
            let longest = self.longest_wait();
            let happened = self.poller.wait(longest).map_err(Failure::of("epoll_wait"))?;
            if stalls.has_stalled(longest) {
                self.on_stall();
            }
            for number in happened {
                match (number, number / KINDS, number % KINDS) {
                    (LISTENER, ..) => self.on_accept(),
                    (BELL, ..) => self.on_bell(),
                    (_, session, SESSION) => self.connections.has_to_be_heard(session),
                    (_, waiter, RECOVERED) => self.is_gone(waiter),
                    (_, holding, kind) => {
                        if self.ledger.on_end(holding, kind == FIFO) {
                            self.release(holding, true);
                        }
                    }
                }
            }
            self.connections.accept_again(false);
            self.run_effects();
            self.hear_in_turn();
            let begun = Instant::now();
            self.do_what_is_due(begun);
            self.work_off(begun);
            // Last, for all of the above may have had somebody judged again.
            if let Some(judgement) = self.judges.work(|session| self.sessions.get(&session)?.case(session)) {
                self.judged(judgement);
            }
        }
    }

    /// How long it may wait for something to happen.
    fn longest_wait(&mut self) -> Option<Duration> {
        let pause = self.connections.hear_again();
        if self.connections.speaking_users() > 0 || !self.work.is_empty() {
            return Some(Duration::ZERO);
        }
        let timers = self.sessions.next_timer().into_iter().chain(self.ledger.next_recovered());
        let next = timers.map(|(due, _)| due).chain(pause).min();
        let next = next.map(|due| due.saturating_duration_since(Instant::now()));
        let around = self.connections.somebody_waits().then_some(LONGEST_WAIT);
        next.into_iter().chain(around).min()
    }

    /// It did not run for a while, or the whole machine: nobody could be heard, and so nobody who was not
    /// heard is taken for away.
    fn on_stall(&mut self) {
        self.sessions.on_stall();
        self.ledger.wait_for_recovered(Instant::now() + AWAY);
    }

    /// Answers those who call; who calls again and again holds up nobody who has called before.
    fn on_accept(&mut self) {
        for _ in 0..CALLERS_AT_ONCE {
            let number = self.number();
            match self.connections.on_accept(number) {
                Accepted::Caller(caller) => self.sessions.insert(number, Session::new(caller)),
                Accepted::Refused => {}
                Accepted::Nobody => return,
            }
        }
    }

    /// A number for something new.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn on_bell(&mut self) {
        self.bell.hush();
        while let Some(answer) = self.judges.answer() {
            match answer {
                Answered::Launch(judgement) => self.judged(judgement),
                Answered::Expiry(holding, table, expiry) => self.judged_expiry(holding, &table, expiry),
            }
        }
        self.hear_evictor();
        self.hear_site();
        self.run_effects();
    }

    fn judged(&mut self, Judgement { session, question, outcome, .. }: Judgement) {
        self.on(session, Event::Judged(question, outcome));
        self.run_effects();
    }

    /// Hears those who have something to say, of all users one after the other: each at least once, and as
    /// many as there is time for before it is seen who else has something to say.
    fn hear_in_turn(&mut self) {
        let (mut first, begun) = (self.connections.speaking_users(), Instant::now());
        while first > 0 || begun.elapsed() < LONGEST_HEARING {
            let Some(number) = self.connections.next_speaker() else { return };
            self.on_readable(number);
            first = first.saturating_sub(1);
        }
    }

    /// Hears what somebody says, as far as it goes now.
    fn on_readable(&mut self, number: u64) {
        let mut over = self.connections.on_readable(number);
        while over.is_ok() {
            over = match self.connections.request(number) {
                Ok(Some(request)) => self.on_request(number, request),
                Ok(None) => break,
                Err(over) => Err(over),
            };
            self.run_effects();
        }
        if let Err(over) = over {
            self.connections.say_why(number, &over);
            self.work.is_over(number);
        }
        self.run_effects();
    }

    fn on_request(&mut self, number: u64, request: Request) -> Result<(), Over> {
        let session = self.sessions.get_mut(&number).ok_or(Over::HungUp)?;
        let is_root = session.peer.uid == 0;
        match request {
            Request::Take(take) => self.on_take(number, take),
            Request::Started => {
                if let Some(holding) = session.holding() {
                    self.ledger.on_start(holding);
                }
            }
            Request::RunsAs(program) => {
                if let Some(holding) = session.holding() {
                    self.ledger.runs_as(holding, program);
                }
            }
            Request::GiveBack(has_run) => session.on(Event::GivesBack(has_run)),
            Request::Beat => session.on(Event::Beats),
            Request::Leave => session.on(Event::Leaves),
            Request::Look(tables) => session.answer(Answer::Tables(self.ledger.tables(&tables)), None),
            Request::Reset(tables) if is_root => {
                let are_changed = tables.iter().map(|name| self.ledger.reset(name));
                session.answer(Answer::Done(are_changed.fold(false, |any, is| any | is)), None);
                for name in &tables {
                    self.reset_at_site(name);
                }
            }
            // Everybody else would shorten their own pauses.
            Request::Reset(_) => {
                let why = "only root may have it forget when a repository was last used";
                session.answer(Answer::Failed(why.to_owned()), None);
            }
            Request::Evict(evict) => self.evict_for(number, &evict),
            Request::Ends if is_root => session.answer(Answer::Ended(self.ledger.ends()), None),
            Request::Ends => {
                let why = "only root can ask which programs have ended";
                session.answer(Answer::Failed(why.to_owned()), None);
            }
            // There is no challenge that it could answer.
            Request::Response(_) => return Err(Over::Garbage(Garbage::Senseless)),
            Request::About => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let about = About { version, site: self.site.as_ref().map(Site::about) };
                session.answer(Answer::About(about), None);
            }
        }
        Ok(())
    }

    /// A launch asks for slots. What it got before and has not used goes back, but to nobody else before it
    /// was judged.
    fn on_take(&mut self, number: u64, take: Take) {
        let (unused, served_as) = self.take_up_unused(number, &take);
        self.on(number, Event::Asks(take, unused));
        self.come_back(number);
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let _ = self.connections.set_load(number, session.load());
        session.on(match self.connections.quotas().may_ask(session.peer.uid) {
            Ok(()) => Event::Accepted(served_as),
            Err(quota) => Event::Declined(Answer::Failed(quota.to_string())),
        });
    }

    /// What goes back when this question of a launch is judged: what it has and has not used. Says under
    /// which number the launch comes again: as with a place, it is worth nothing for another launch, nothing
    /// once a program has used what was got by it, and nothing for two at a time.
    fn take_up_unused(&mut self, number: u64, take: &Take) -> (Vec<u64>, Option<Number>) {
        let Some(session) = self.sessions.get(&number) else { return (Vec::new(), None) };
        let whose = (session.peer.pid, session.peer.started);
        let mut unused: Vec<u64> = session.holding().into_iter().collect();
        if unused.is_empty() && take.is_again {
            // An agent that has died since had given it slots, or the connection broke off.
            let all = self.ledger.holdings().iter();
            let theirs = all.filter(|(_, holding)| (holding.saved.pid, holding.saved.start) == whose);
            unused.extend(theirs.map(|(number, _)| *number));
        }
        unused.retain(|of| self.ledger.is_unused(*of));
        if unused.is_empty() {
            return (unused, None);
        }
        let is_other = |(other, session): &(&u64, &Session)| {
            **other != number && (session.peer.pid, session.peer.started) == whose
        };
        let others: Vec<u64> = self.sessions.iter().filter(is_other).map(|(other, _)| *other).collect();
        let mut stand = Vec::new();
        for session in others {
            let Some(session) = self.sessions.get_mut(&session) else { continue };
            if !session.gives_back(&unused) {
                stand.extend(session.place.line.number());
            }
            session.on(Event::Superseded(unused.clone()));
        }
        let theirs = unused.iter().filter_map(|of| self.ledger.holdings().get(of)?.saved.served_as);
        let numbers = theirs.filter(|served| served.is_for(take)).map(|served| Number(served.number));
        let served_as = numbers.filter(|served| !stand.contains(served)).min();
        (unused, served_as)
    }

    /// Tells a session what has happened.
    pub(super) fn on(&mut self, number: u64, event: Event) {
        if let Some(session) = self.sessions.get_mut(&number) {
            session.on(event);
        }
    }

    /// A launch gets nothing, for this reason.
    pub(super) fn fail(&mut self, number: u64, why: String) {
        self.on(number, Event::Refused(Answer::Failed(why)));
    }

    /// Something has happened to these tables: whoever waits for them looks soon, in the order of the queue.
    pub(super) fn serve(&mut self, tables: &[memory::Table]) {
        self.work.are_dirty(tables);
    }

    /// These sessions look again.
    pub(super) fn look_again_after(&mut self, sessions: Vec<u64>) {
        self.work.look_again(sessions);
    }

    /// Carries out what follows from all events.
    fn run_effects(&mut self) {
        while let Some((number, change)) = self.sessions.next_change() {
            match change {
                Change::Load(load) => drop(self.connections.set_load(number, load)),
                Change::Effect(effect) => self.carry_out(number, effect),
            }
        }
        for number in self.connections.flush() {
            self.work.is_over(number);
        }
    }

    fn carry_out(&mut self, number: u64, effect: Effect) {
        match effect {
            Effect::Answer(answer, beside) => self.connections.answer(number, &answer, beside),
            Effect::Judge => {
                if let Some(session) = self.sessions.get(&number) {
                    self.judges.wait(session.peer.uid, number);
                }
            }
            Effect::Decide(request, is_asked) => self.decide(number, request, is_asked),
            Effect::WritePlace => {
                self.write_place(number);
                self.write_tickets(number);
            }
            Effect::Left(tables) => self.serve(&tables),
            Effect::Release(holding, has_run) => self.release(holding, has_run),
            Effect::ReleaseUnused(holding) => {
                if self.ledger.is_unused(holding) {
                    self.release(holding, false);
                }
            }
        }
    }

    /// Looks whether a launch can have what it needs. `is_asked` where it waits for the answer: one that
    /// stands in line hears only of its turn otherwise.
    fn decide(&mut self, number: u64, request: AcquireRequest, is_asked: bool) {
        if request.is_empty() {
            let (slots, without) = (Vec::new(), request.without.clone());
            let granted = Granted { slots, without, hold: request.hold, has_waited: false };
            return self.on(number, Event::Granted(None, granted, None));
        }
        if let Err(quota) = self.has_quota_for(&request) {
            return self.fail(number, quota.to_string());
        }
        let of_site = request.tables_of_site().next();
        if let Some(name) = of_site.filter(|_| self.site.is_none())
            && !mem::replace(&mut self.has_said_alone, true)
        {
            site::say_alone(name);
        }
        if of_site.is_some() {
            if !self.is_site_open() {
                return self.rest_without(number, request);
            }
            self.prepare_for_site(number, &request);
        }
        match self.look_once_or_twice(number, &request, is_asked) {
            Looked::Granted(holding) if self.site.is_some() && holding.is_of_site() => {
                self.prove(number, request, *holding);
            }
            Looked::Granted(holding) => self.grant(number, *holding),
            Looked::Failed(why) => self.fail(number, why),
            Looked::Stale => self.on(number, Event::Stale),
            Looked::Blocked(mut blocked) => {
                self.begin_evictions(number, &mem::take(&mut blocked.evictions));
                if !blocked.waits && self.may_change_soon(&request) {
                    return self.rest_without(number, request);
                }
                let load = self.sessions.get(&number).map(Session::load).unwrap_or_default();
                if blocked.waits
                    && let Err(quota) = self.connections.set_load(number, load)
                {
                    return self.fail(number, quota.to_string());
                }
                let has_begun = self.has_begun_to_wait(number);
                self.on(number, Event::Blocked(request, blocked, is_asked, has_begun));
            }
        }
    }

    /// Whether whoever asks may have one more launch with slots, and the tables that it needs.
    fn has_quota_for(&self, request: &AcquireRequest) -> Result<(), Quota> {
        let (quotas, store, uid) = (self.connections.quotas(), self.ledger.store(), request.uid);
        quotas.may_launch(uid)?;
        let new = request.tables().filter(|table| store.known(table).is_none()).count();
        if quotas.are_too_many_tables(store.count_of(uid), new) {
            self.ledger.forget_idle(uid);
        }
        quotas.may_have_tables(uid, store.count_of(uid), new)
    }

    /// One look; another where the launch finds a queue at its end, and somebody in that does not answer.
    fn look_once_or_twice(&mut self, number: u64, request: &AcquireRequest, is_asked: bool) -> Looked {
        match self.look(number, request) {
            Looked::Blocked(blocked) if is_asked && !blocked.waits && self.finds_absent(&blocked.refused) => {
                self.look(number, request)
            }
            looked => looked,
        }
    }

    fn look(&mut self, number: u64, request: &AcquireRequest) -> Looked {
        let Some(session) = self.sessions.get_mut(&number) else { return Looked::Stale };
        let process = || self.connections.process(number);
        self.ledger.look(number, session, request, self.site.is_some(), process)
    }

    /// Whether somebody in a queue that is at its end does not answer who did when that was last looked at.
    fn finds_absent(&mut self, refused: &Refused) -> bool {
        let ends = |obstacle: &&Obstacle| matches!(obstacle.unwaited, Some(Unwaited::Queue(_)));
        let ended = refused.obstacles.iter().filter(ends);
        let tables = ended.filter_map(|obstacle| self.ledger.store().known(&obstacle.table));
        let mut found = false;
        for number in tables.flat_map(|table| table.sessions()).collect::<Vec<_>>() {
            let was_away = self.sessions.get(&number).is_none_or(|session| session.place.was_away);
            found |= !was_away && self.is_away(number);
        }
        found
    }

    /// Sees whether a launch that waits does not answer.
    fn is_away(&mut self, number: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&number) else { return false };
        session.see_whether_away(|| self.connections.is_unheard(number))
    }

    /// Writes down that a launch has slots, and then tells it.
    pub(super) fn grant(&mut self, session: u64, mut holding: Holding) {
        if let Err(quota) = self.connections.quotas().may_have(&holding) {
            holding.withdraw_stamps();
            self.free_at_site(holding, false);
            return self.fail(session, quota.to_string());
        }
        let saved = &holding.saved;
        let slots = saved.tables.iter().map(|of| (of.table.clone(), Runs::of(&of.slots).to_string()));
        let has_waited = self.sessions.get(&session).is_some_and(|session| session.place.has_waited);
        let (slots, hold, without) = (slots.collect(), saved.hold, mem::take(&mut holding.without));
        let granted = Granted { slots, without, hold, has_waited };
        let number = self.number();
        let (uid, share) = (holding.saved.uid, Share::of(&holding));
        match self.ledger.grant(number, holding) {
            Ok(end) => {
                self.connections.count(uid, Share::default(), share);
                self.on(session, Event::Granted(Some(number), granted, end));
            }
            Err((holding, why)) => {
                self.free_at_site(*holding, false);
                self.fail(session, why);
            }
        }
    }

    /// Frees slots, and gives them to those who wait; `has_run` where a program had them until now.
    pub(super) fn release(&mut self, number: u64, has_run: bool) {
        let Some(holding) = self.ledger.release(number, has_run) else { return };
        self.connections.count(holding.saved.uid, Share::of(&holding), Share::default());
        self.has_let_go(number);
        self.has_ended_by_notice(number, &holding);
        for held in &holding.held {
            self.work.are_dirty(std::slice::from_ref(held.table()));
        }
        self.free_at_site(holding, has_run);
        self.look_again_after(self.sessions.evicting());
    }

    /// Writes down where a launch stands, if that is not written down.
    pub(super) fn write_place(&mut self, number: u64) {
        if let Some(session) = self.sessions.get_mut(&number) {
            let wanted = session.saved_place();
            self.ledger.write_place(number, &mut session.place.written, wanted);
        }
    }

    /// A launch asks: if it stood in line before the agent died, it has its place again.
    fn come_back(&mut self, number: u64) {
        let Some(session) = self.sessions.get(&number) else { return };
        // Nobody has two places.
        if session.place.line.number().is_some() {
            return;
        }
        let theirs = (session.peer.pid, session.peer.started, session.peer.uid);
        let recovered = self.ledger.recovered().iter();
        let of_theirs = recovered.filter(|(_, waiter)| waiter.saved.whose() == theirs);
        let Some((file, waiter)) = of_theirs.min_by_key(|(_, waiter)| waiter.saved.number.number) else {
            return;
        };
        let file = *file;
        // To have stood in line for one launch is worth nothing for another.
        if session.take.as_ref().is_none_or(|take| !waiter.saved.number.is_for(take)) {
            return self.is_gone(file);
        }
        if let Some(waiter) = self.ledger.take_recovered(file) {
            self.hand_over_tickets(file, number);
            self.on(number, Event::Recovered(file, waiter.saved, waiter.line));
        }
    }

    /// One of those who stood in line when the agent died is gone, or will not call.
    pub(super) fn is_gone(&mut self, number: u64) {
        let Some(waiter) = self.ledger.take_recovered(number) else { return };
        self.ledger.forget_place(number);
        let tables = waiter.line.tables();
        drop(waiter);
        self.write_tickets(number);
        self.serve(&tables);
    }

    /// Does what is due by now, for as long as a round may take.
    fn do_what_is_due(&mut self, begun: Instant) {
        let is_due = |(due, _): &(Instant, u64)| *due <= Instant::now() && begun.elapsed() < LONGEST_ROUND;
        while let Some((_, number)) = self.ledger.next_recovered().filter(is_due) {
            match self.ledger.pass_over(number) {
                Some(tables) => self.serve(&tables),
                None => self.is_gone(number),
            }
        }
        while let Some((_, number)) = self.sessions.next_timer().filter(is_due) {
            self.go_on_with_evictions(number);
            self.look_again(number);
            self.run_effects();
        }
    }

    /// Does what is to be done, for as long as a round may take.
    fn work_off(&mut self, begun: Instant) {
        while begun.elapsed() < LONGEST_ROUND {
            match self.work.next() {
                Some(Next::HangUp(session)) => self.hang_up(session),
                Some(Next::Serve(table)) => self.serve_queue(&table, begun),
                Some(Next::Look(session)) => self.on(session, Event::Freed),
                None => return,
            }
            self.run_effects();
        }
    }

    /// Lets the launches look that wait for a table, from the head of its queue on. Whoever gets nothing
    /// holds up those behind it whose class may not pass its own; as soon as nobody is left who may, the rest
    /// need not look: at most those look who start, and one of each class.
    fn serve_queue(&mut self, name: &str, begun: Instant) {
        let Some(table) = self.ledger.store().known(name) else { return };
        // Who was stopped may go on by now. Of many, the others are back with their next beat.
        for number in table.first_away(MOST_AWAY) {
            self.is_away(number);
        }
        let mut blocked: Vec<Class> = Vec::new();
        let mut last: Option<Number> = None;
        while let Some(number) = table.next_to_look(last, &blocked) {
            if begun.elapsed() > LONGEST_ROUND {
                self.work.is_still_dirty(name);
                return;
            }
            last = Some(number);
            if let Some(session) = table.session_of(number)
                && self.sessions.get(&session).is_some_and(Session::is_queued)
            {
                // One that does not answer is passed.
                if self.is_away(session) {
                    continue;
                }
                self.on(session, Event::Turn);
                self.run_effects();
            }
            // Whoever has its slots, or has been refused, stands there no longer.
            blocked.extend(table.classes_of(number));
        }
        drop(table);
        self.ledger.store().forget_if_unused(name);
    }

    /// The other end has hung up: whoever stood in line does no longer. Who has slots keeps them.
    fn hang_up(&mut self, number: u64) {
        self.on(number, Event::Gone);
        self.run_effects();
        if let Some(session) = self.sessions.get(&number) {
            self.judges.give_up(session.peer.uid, number);
        }
        self.sessions.remove(number);
        self.connections.disconnect(number);
        if let Some(site) = &mut self.site {
            site.forget(number);
        }
    }
}

/// By which the agent sees that it stood still: while somebody waits it looks around often, and then it was
/// longer.
struct StallDetector(Instant);

impl StallDetector {
    /// Looks whether it stood still, after it wanted to wait so long at most.
    fn has_stalled(&mut self, longest: Option<Duration>) -> bool {
        let now = Instant::now();
        let passed = now.saturating_duration_since(mem::replace(&mut self.0, now));
        longest.is_some_and(|longest| passed > longest + LONGEST_WAIT)
    }
}
