//! Conversations: who calls is welcome or not, what is said is heard and answered, and who hangs up is
//! forgotten.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use super::{
    pulse::PULSE,
    quota::{Counted, count},
    service::{KINDS, LISTENER, SESSION, Service},
    session::{Over, Session, Stage},
    site::Site,
};
use crate::{
    keeper::{
        agent::{
            about::About,
            frame::Garbage,
            message::{Answer, Request, Table},
        },
        memory,
    },
    sys::{failure::Errno, local_socket::Connection, poller::Interest},
};

/// For whoever is in a user namespace of root's making: none of those in there has a share of their own, and
/// root has no end of it.
const OF_ROOT: &str =
    "from within a user namespace that root has made it cannot be told on whose behalf a launch is";

/// How many are answered before it looks what others want.
const CALLERS_AT_ONCE: usize = 64;

/// So long it hears before it looks what others want.
const LONGEST_ROUND: Duration = Duration::from_millis(2);

/// For whoever cannot be seen: without its process nothing tells when its slots are free.
const OUT_OF_SIGHT: &str =
    "it does not see the process that asks: the agent has to run in the PID namespace of the host";

impl Service {
    /// Answers those who call; who calls again and again holds up nobody who has called before.
    pub(super) fn accept(&mut self) {
        for _ in 0..CALLERS_AT_ONCE {
            match self.connections.listener.accept() {
                Ok(Some(connection)) => self.welcome(connection),
                Ok(None) => return,
                // Out of descriptors: those who call have to wait until there are some.
                Err(_) => {
                    self.connections.full =
                        self.poller.remove(&self.connections.listener).is_ok().then(Instant::now);
                    return;
                }
            }
        }
    }

    /// Answers again, if that was not possible: once somebody has gone, and else after a while. It may be the
    /// whole machine that had no descriptors.
    pub(super) fn accept_again(&mut self, has_gone: bool) {
        if let Some(full) = self.connections.full
            && (has_gone || full.elapsed() >= PULSE)
        {
            let is_heard = self.poller.add(&self.connections.listener, LISTENER, Interest::Read).is_ok();
            self.connections.full = (!is_heard).then(Instant::now);
        }
    }

    fn welcome(&mut self, connection: Connection) {
        let peer = match connection.peer() {
            Ok(peer) => peer,
            // Where it has ended nobody is there to be told.
            Err(Errno::ESRCH) => return refuse(&connection, OUT_OF_SIGHT),
            Err(errno) => {
                return refuse(&connection, &format!("it cannot be seen who asks: {}", errno.desc()));
            }
        };
        if peer.uid == 0 && peer.own_uid != 0 {
            return refuse(&connection, OF_ROOT);
        }
        let (number, uid) = (self.number(), peer.uid);
        let mut session = Session::new(connection, peer);
        let descriptors = session.descriptors();
        if let Err(quota) = self.connections.quotas.connect(uid, descriptors) {
            return refuse(&session.connection, &quota.to_string());
        }
        let is_heard = session.challenge().and_then(|()| {
            self.poller.add(session.connection.as_fd(), number * KINDS + SESSION, Interest::Read)
        });
        match is_heard {
            Ok(()) => {
                let has_to_write = session.has_to_write();
                self.sessions.insert(number, session);
                if has_to_write {
                    self.flush(number);
                }
            }
            Err(_) => self.connections.quotas.disconnect(uid, descriptors, Counted::default()),
        }
    }

    /// Somebody has said something, or was not heard to the end.
    pub(super) fn has_to_be_heard(&mut self, number: u64) {
        if let Some(session) = self.sessions.get_mut(&number)
            && !std::mem::replace(&mut session.has_to_be_heard, true)
        {
            self.connections.speakers.wait(session.peer.uid, number);
        }
    }

    /// Hears those who have something to say, of all users one after the other: each at least once, and as
    /// many as there is time for before it is seen who else has something to say.
    pub(super) fn hear_in_turn(&mut self) {
        let (mut first, begun) = (self.connections.speakers.users(), Instant::now());
        while first > 0 || begun.elapsed() < LONGEST_ROUND {
            let Some(number) = self.connections.speakers.next() else { return };
            self.converse(number);
            first = first.saturating_sub(1);
        }
    }

    /// Hears what somebody says.
    fn converse(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.has_to_be_heard = false;
        let mut over = session.write();
        // What has come is heard before more of it is read.
        let is_paused = self.connections.quotas.pause(session.peer.uid, session.rate).is_some();
        if over.is_ok() && (is_paused || !session.has_more_to_say()) {
            over = session.read();
        }
        let _ = self.recount(number);
        if over.is_ok() && self.is_too_much(number) {
            over = Err(Over::HungUp);
        }
        self.go_on(number, over);
    }

    /// Goes on with a conversation as far as it goes now.
    pub(super) fn go_on(&mut self, number: u64, mut over: Result<(), Over>) {
        while over.is_ok() {
            let Some(session) = self.sessions.get_mut(&number) else { return };
            if let Some(until) = self.connections.quotas.pause(session.peer.uid, session.rate) {
                self.connections.pauses.insert((until, number));
                break;
            }
            match session.request(count(self.connections.quotas.limits.message)) {
                Ok(Some(request)) => {
                    session.rate.say(self.connections.quotas.limits.rate);
                    over = self.answer(number, request);
                }
                Ok(None) => break,
                Err(garbage) => over = Err(garbage),
            }
        }
        match over {
            Ok(()) => self.flush(number),
            Err(Over::HungUp) => self.work.is_over(number),
            Err(Over::Stranger) => {
                let why = "whoever asks is not the process that has connected".to_owned();
                session_answer(&mut self.sessions, number, &Answer::Failed(why));
                self.flush(number);
                self.work.is_over(number);
            }
            Err(Over::Garbage(garbage)) => {
                let why = match garbage {
                    Garbage::TooLong => format!(
                        "what is asked is too long: {} bytes are the most ([agent] message in /etc/rungate/agent.toml)",
                        self.connections.quotas.limits.message
                    ),
                    Garbage::OtherVersion(version) => format!("it does not speak version {version}"),
                    Garbage::Senseless => "what is asked makes no sense".to_owned(),
                };
                session_answer(&mut self.sessions, number, &Answer::Failed(why));
                self.flush(number);
                self.work.is_over(number);
            }
        }
    }

    /// Those who have said too much at once are heard again.
    pub(super) fn hear_again(&mut self) {
        let now = Instant::now();
        let later = self.connections.pauses.split_off(&(now, u64::MAX));
        for (_, number) in std::mem::replace(&mut self.connections.pauses, later) {
            self.has_to_be_heard(number);
        }
    }

    /// Sends what is to be sent, and waits for room where there is none.
    pub(super) fn flush(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let written = session.write();
        let interest =
            match (session.has_to_write(), self.connections.quotas.pause(session.peer.uid, session.rate)) {
                (false, None) => Interest::Read,
                (true, None) => Interest::ReadAndWrite,
                (false, Some(_)) => Interest::End,
                (true, Some(_)) => Interest::Write,
            };
        let changed = if session.interest == interest {
            Ok(())
        } else {
            self.poller.change(session.connection.as_fd(), number * KINDS + SESSION, interest)
        };
        session.interest = interest;
        // What was said beside what has been answered is heard when others have been.
        let has_more_to_say = interest == Interest::Read && session.has_more_to_say();
        let _ = self.recount(number);
        if has_more_to_say {
            self.has_to_be_heard(number);
        }
        if written.is_err() || changed.is_err() {
            self.work.is_over(number);
        }
    }

    fn answer(&mut self, number: u64, request: Request) -> Result<(), Over> {
        let Some(session) = self.sessions.get_mut(&number) else { return Err(Over::HungUp) };
        match request {
            Request::Take(take) => self.ask(number, take),
            Request::Started => {
                if let Stage::Has(of) = session.stage
                    && let Some(holding) = self.ledger.holdings.get_mut(&of)
                {
                    holding.saved.is_started = true;
                    // That it could not be written down costs at most a slot that is given back later.
                    let _ = self.ledger.state.write_start(of);
                }
            }
            Request::RunsAs(program) => {
                if let Stage::Has(of) = session.stage
                    && let Some(holding) = self.ledger.holdings.get_mut(&of)
                    && holding.runs_as(program)
                {
                    // That is for people, and is not missed.
                    let _ = self.ledger.state.write(of, &holding.saved);
                }
            }
            Request::GiveBack(has_run) => self.take_back(number, has_run),
            Request::Beat => self.beat(number),
            Request::Leave => self.leave(number),
            Request::Look(tables) => {
                let tables = self.tables(&tables);
                session_answer(&mut self.sessions, number, &Answer::Tables(tables));
            }
            Request::Reset(tables) => self.reset(number, &tables),
            Request::Expire(sweep) => self.sweep(number, &sweep),
            Request::Ends => {
                let answer = if session.peer.uid == 0 {
                    Answer::Ended(self.ledger.ends.all())
                } else {
                    Answer::Failed("only root is told which programs have ended".to_owned())
                };
                session.answer(&answer, None);
            }
            // There is no challenge that it could answer.
            Request::Response(_) => return Err(Over::Garbage(Garbage::Senseless)),
            Request::About => {
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let about = About { version, site: self.site.as_ref().map(Site::about) };
                session_answer(&mut self.sessions, number, &Answer::About(about));
            }
        }
        Ok(())
    }

    /// These tables, each once, or all.
    fn tables(&self, names: &[String]) -> Vec<Table> {
        let all = |(name, table): &(String, memory::Table)| Table::of(name, table, usize::MAX, usize::MAX);
        if names.is_empty() {
            return self.ledger.store.all().iter().map(all).collect();
        }
        let names: BTreeSet<&String> = names.iter().collect();
        let known =
            |name: &String| Some(Table::of(name, &self.ledger.store.known(name)?, usize::MAX, usize::MAX));
        names.into_iter().filter_map(known).collect()
    }

    /// Forgets when tables were last used. That is for root: everybody else would shorten their own pauses.
    fn reset(&mut self, number: u64, names: &[String]) {
        let is_root = self.sessions.get(&number).is_some_and(|session| session.peer.uid == 0);
        let answer = if is_root {
            let mut changed = false;
            for name in names {
                changed |= self.ledger.store.known(name).is_some_and(|table| table.reset());
                self.reset_at_site(name);
                self.ledger.state.forget_stamps(name);
                self.ledger.store.forget_if_unused(name);
            }
            Answer::Done(changed)
        } else {
            Answer::Failed("only root may have it forget when a repository was last used".to_owned())
        };
        session_answer(&mut self.sessions, number, &answer);
    }

    /// The other end has hung up: whoever stood in line does no longer. Who has slots keeps them.
    pub(super) fn hang_up(&mut self, number: u64) {
        let Some(mut session) = self.sessions.remove(&number) else { return };
        let _ = self.poller.remove(session.connection.as_fd());
        self.connections.quotas.disconnect(session.peer.uid, session.descriptors(), session.counted);
        session.due.map(|due| self.dues.remove(&(due, number)));
        self.ending.remove(&number);
        self.questions.give_up(session.peer.uid, number);
        let tables = session.place.line.tables();
        session.place.line.give_up();
        if let Some((file, _)) = session.place.written.take() {
            self.ledger.state.forget_place(file);
        }
        drop(session);
        if let Some(site) = &mut self.site {
            site.forget(number);
        }
        self.write_tickets(number);
        self.accept_again(true);
        self.serve(&tables);
    }
}

/// Answers in a conversation that may be over by now.
pub(super) fn session_answer(sessions: &mut BTreeMap<u64, Session>, number: u64, answer: &Answer) {
    if let Some(session) = sessions.get_mut(&number) {
        session.answer(answer, None);
    }
}

fn refuse(connection: &Connection, why: &str) {
    let _ = connection.send(&Answer::Failed(why.to_owned()).frame(), None);
}
