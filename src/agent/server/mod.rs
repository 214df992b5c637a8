//! Clients and their messages: the listener, the connections with their bytes, the order of service, and the
//! quotas of each user. It knows the messages and not their meaning: the loop of the agent takes requests
//! from here and returns answers.

pub(super) mod quota;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io, mem,
    ops::Bound,
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use self::quota::{Quota, Quotas, Rate, Share, count};
use super::{KINDS, LISTENER, LONGEST_WAIT, SESSION};
use crate::{
    keeper::{
        Garbage, Inbox,
        agent::message::{AboutWork, Answer, Latency, Request},
    },
    sys::{Errno, Failure, Interest, Listener, Peer, PidFd, Poller, errno_of, local_socket},
};

/// For callers in a user namespace of root: its users have no quota of their own, and root has no limit.
const OF_ROOT: &str = "in a user namespace of root, the user of a launch cannot be determined";

/// For a process that is not visible: without it the agent cannot tell when its slots are free.
const OUT_OF_SIGHT: &str =
    "it cannot see the calling process: the agent has to run in the PID namespace of the host";

/// How many descriptors it takes to see who calls: the process, and two namespaces of users.
const TO_IDENTIFY: usize = 3;

/// So many descriptors that can be given up.
fn spare() -> io::Result<Vec<OwnedFd>> {
    (0..TO_IDENTIFY).map(|_| io::stderr().as_fd().try_clone_to_owned()).collect()
}

/// The owner of all that belongs to sockets.
pub(super) struct Connections {
    poller: Rc<Poller>,
    listener: Listener,
    all: BTreeMap<u64, Connection>,
    /// Connections with unread input.
    speakers: FairQueue,
    quotas: Quotas,
    /// Until when connections that sent too much at once are not read.
    pauses: BTreeSet<(Instant, u64)>,
    /// Connections with output, or that may be read again.
    changed: BTreeSet<u64>,
    /// Since when no client is accepted, because no descriptor is free.
    full: Option<Instant>,
    /// For the client that takes the last descriptor: who calls is found by means of others.
    spare: Vec<OwnedFd>,
    decisions: Latency,
    closer: Closer,
}

/// The process and the user at the other end of a connection.
#[derive(Default)]
pub(super) struct Caller {
    pub(super) pid: i32,
    /// When the process started: with the number it names one process of one boot.
    pub(super) started: u64,
    pub(super) uid: u32,
    /// Their groups, unless these come from the database.
    pub(super) groups: Option<Vec<u32>>,
}

/// A client may have connected.
pub(super) enum Accepted {
    /// This caller did.
    Caller(Caller),
    /// A client connected that cannot be served, and was told so.
    Refused,
    /// No client did.
    Nobody,
}

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The other end closed the connection, or cannot be written to.
    HungUp,
    /// Its input is not a message.
    Garbage(Garbage),
    /// The process at the other end is not the one that connected.
    Stranger,
}

/// What a session uses of its user's quota, and whether it can receive more now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Places in queues.
    pub(super) places: usize,
    /// Bytes of the request, and of the evictions for it.
    pub(super) question: usize,
    /// Whether a request has no answer yet.
    pub(super) is_busy: bool,
}

impl Connections {
    /// Connections that wait to be accepted.
    pub(super) fn new(poller: Rc<Poller>, listener: Listener, quotas: Quotas) -> Result<Self, Failure> {
        poller.add(&listener, LISTENER, Interest::Read).map_err(Failure::of("epoll_ctl"))?;
        let (all, speakers) = (BTreeMap::new(), FairQueue::default());
        let (pauses, changed) = (BTreeSet::new(), BTreeSet::new());
        let (decisions, closer, full) = (Latency::default(), Closer::start()?, None);
        let spare = spare().map_err(|error| Failure::of("dup")(errno_of(&error)))?;
        Ok(Self { poller, listener, all, speakers, quotas, pauses, changed, full, spare, decisions, closer })
    }

    /// Accepts a waiting client, with this number.
    pub(super) fn on_accept(&mut self, number: u64) -> Accepted {
        if self.full.is_some() {
            return Accepted::Nobody;
        }
        match self.listener.accept() {
            Ok(Some(socket)) => match self.connect(number, socket) {
                Some(caller) => Accepted::Caller(caller),
                None => Accepted::Refused,
            },
            Ok(None) => Accepted::Nobody,
            Err(_) => {
                self.let_wait();
                Accepted::Nobody
            }
        }
    }

    /// Out of descriptors: new clients have to wait.
    fn let_wait(&mut self) {
        self.full = self.poller.remove(&self.listener).is_ok().then(Instant::now);
    }

    fn identify(&mut self, socket: &local_socket::Connection) -> Result<Peer, Errno> {
        match socket.peer() {
            Err(Errno::EMFILE | Errno::ENFILE) if !self.spare.is_empty() => {
                self.spare.clear();
                self.let_wait();
                socket.peer()
            }
            found => found,
        }
    }

    fn connect(&mut self, number: u64, socket: local_socket::Connection) -> Option<Caller> {
        while let Some(uid) = self.closer.closed() {
            self.quotas.change(uid, IN_CLOSING, Share::default());
        }
        let peer = match self.identify(&socket) {
            Ok(peer) => peer,
            // If it has ended, there is no client to tell.
            Err(Errno::ESRCH) => return self.refuse(socket, OUT_OF_SIGHT),
            Err(errno) => {
                return self.refuse(socket, &format!("the caller cannot be identified: {}", errno.desc()));
            }
        };
        if peer.uid == 0 && peer.own_uid != 0 {
            return self.refuse(socket, OF_ROOT);
        }
        let groups = peer.groups.clone();
        let caller = Caller { pid: peer.pid, started: peer.started, uid: peer.uid, groups };
        if let Err(quota) = self.quotas.may_connect(caller.uid) {
            let why = self.quotas.decline(quota);
            return self.refuse(socket, &why);
        }
        let mut connection = Connection::new(socket, peer);
        let key = number * KINDS + SESSION;
        let challenged = connection.challenge();
        if challenged.and_then(|()| self.poller.add(&connection.socket, key, Interest::Read)).is_err() {
            self.close(caller.uid, connection.socket);
            return None;
        }
        self.all.insert(number, connection);
        let _ = self.recount(number);
        self.changed.insert(number);
        Some(caller)
    }

    fn refuse<T>(&mut self, socket: local_socket::Connection, why: &str) -> Option<T> {
        let _ = socket.send(&Answer::Failed(why.to_owned()).frame(), None);
        let uid = socket.peer_uid().unwrap_or_default();
        self.close(uid, socket);
        None
    }

    fn close(&mut self, uid: u32, socket: local_socket::Connection) {
        if !socket.drop_input() {
            self.quotas.change(uid, Share::default(), IN_CLOSING);
            self.closer.close(uid, socket);
        }
    }

    /// Accepts clients again, if that was not possible: once one has gone, and otherwise after a while. The
    /// whole machine may have been out of descriptors.
    pub(super) fn accept_again(&mut self, has_gone: bool) {
        if let Some(full) = self.full
            && (has_gone || full.elapsed() >= LONGEST_WAIT)
        {
            if self.spare.is_empty() {
                self.spare = spare().unwrap_or_default();
            }
            let is_heard =
                !self.spare.is_empty() && self.poller.add(&self.listener, LISTENER, Interest::Read).is_ok();
            self.full = (!is_heard).then(Instant::now);
        }
    }

    /// Whether it must check soon even without input: a launch waits for slots, or for an answer.
    pub(super) fn somebody_waits(&self) -> bool {
        self.full.is_some() || self.quotas.somebody_waits()
    }

    /// A client has sent something, or has unread input.
    pub(super) fn on_input(&mut self, number: u64) {
        if let Some(connection) = self.all.get_mut(&number)
            && !mem::replace(&mut connection.has_to_be_heard, true)
        {
            self.speakers.wait(connection.uid(), number);
        }
    }

    /// Connections that sent too much at once are read again. Returns when the next ones are.
    pub(super) fn hear_again(&mut self) -> Option<Instant> {
        let later = self.pauses.split_off(&(Instant::now(), u64::MAX));
        for (_, number) in mem::replace(&mut self.pauses, later) {
            self.on_input(number);
        }
        self.pauses.first().map(|(until, _)| *until)
    }

    /// How many users have unread input.
    pub(super) fn speaking_users(&self) -> usize {
        self.speakers.users()
    }

    /// Whose connection is read next.
    pub(super) fn next_speaker(&mut self) -> Option<u64> {
        self.speakers.next()
    }

    /// Reads the input of a client.
    pub(super) fn on_readable(&mut self, number: u64) -> Result<(), Over> {
        let connection = self.all.get_mut(&number).ok_or(Over::HungUp)?;
        connection.has_to_be_heard = false;
        self.changed.insert(number);
        let mut over = connection.write();
        // Received input is processed before more is read.
        let is_paused = self.quotas.pause(connection.uid(), connection.rate).is_some();
        if over.is_ok() && (is_paused || !connection.has_more_to_say()) {
            over = connection.read();
        }
        let uid = connection.uid();
        let _ = self.recount(number);
        if self.quotas.has_said_too_much(uid) {
            // At once, so that no more of that user's connections are closed than necessary.
            self.disconnect(number);
            over = Err(Over::HungUp);
        }
        over
    }

    /// The next request of a client, once all earlier ones are answered.
    pub(super) fn request(&mut self, number: u64) -> Result<Option<Request>, Over> {
        let connection = self.all.get_mut(&number).ok_or(Over::HungUp)?;
        if self.quotas.pause(connection.uid(), connection.rate).is_some() {
            self.changed.insert(number);
            return Ok(None);
        }
        let request = connection.request(count(self.quotas.limits().message))?;
        if request.is_some() {
            connection.rate.say(self.quotas.limits().rate);
        }
        Ok(request)
    }

    /// Tells a client why its connection is closed.
    pub(super) fn say_why(&mut self, number: u64, over: &Over) {
        let why = match over {
            Over::HungUp => return,
            Over::Stranger => "the calling process is not the one that connected".to_owned(),
            Over::Garbage(Garbage::TooLong) => format!(
                "the request is too long: at most {} bytes are allowed ([agent] message in \
                    /etc/rungate/agent.toml)",
                self.quotas.limits().message
            ),
            Over::Garbage(Garbage::OtherVersion(version)) => {
                format!("it does not support version {version} of the protocol: restart it after an upgrade")
            }
            Over::Garbage(Garbage::Senseless) => "the request is invalid".to_owned(),
        };
        self.answer(number, &Answer::Failed(why), None);
    }

    /// A launch asks for slots: the time to the first answer is measured.
    pub(super) fn note_request(&mut self, number: u64) {
        if let Some(connection) = self.all.get_mut(&number) {
            connection.asked = Some(Instant::now());
        }
    }

    /// What was done since the agent started, and who is there now.
    pub(super) fn work(&self) -> AboutWork {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        AboutWork {
            decisions: self.decisions.clone(),
            declined: self.quotas.declined(),
            connections: count(self.all.len()),
            waiting: count(self.quotas.waiting()),
            holding: count(self.quotas.holding()),
        }
    }

    /// Sends an answer, with a descriptor if there is one.
    pub(super) fn answer(&mut self, number: u64, answer: &Answer, beside: Option<OwnedFd>) {
        if let Some(connection) = self.all.get_mut(&number) {
            if let Some(asked) = connection.asked.take() {
                self.decisions.add(asked.elapsed());
            }
            connection.answer(answer, beside);
            self.changed.insert(number);
        }
    }

    /// Notes what a session uses now. An error if that exceeds its user's quota.
    pub(super) fn set_load(&mut self, number: u64, load: Load) -> Result<(), Quota> {
        if let Some(connection) = self.all.get_mut(&number) {
            if connection.load.is_busy && !load.is_busy {
                self.changed.insert(number);
            }
            connection.load = load;
        }
        self.recount(number)
    }

    fn recount(&mut self, number: u64) -> Result<(), Quota> {
        let Some(connection) = self.all.get_mut(&number) else { return Ok(()) };
        let now = connection.count();
        let before = mem::replace(&mut connection.counted, now);
        let uid = connection.uid();
        self.quotas.change(uid, before, now);
        self.quotas.check_places(uid)
    }

    /// Sends pending output, and waits for space if there is none. Returns the connections that cannot be
    /// written to.
    pub(super) fn flush(&mut self) -> Vec<u64> {
        let mut over = Vec::new();
        for number in mem::take(&mut self.changed) {
            let Some(connection) = self.all.get_mut(&number) else { continue };
            let written = connection.write();
            let pause = self.quotas.pause(connection.uid(), connection.rate);
            let interest = match (connection.has_to_write(), pause) {
                (false, None) => Interest::Read,
                (true, None) => Interest::ReadAndWrite,
                (false, Some(_)) => Interest::End,
                (true, Some(_)) => Interest::Write,
            };
            // A paused connection is read again after that.
            self.pauses.extend(pause.map(|until| (until, number)));
            let is_same = mem::replace(&mut connection.interest, interest) == interest;
            let changed = if is_same {
                Ok(())
            } else {
                self.poller.change(connection.socket.as_fd(), number * KINDS + SESSION, interest)
            };
            // Input beyond the answered request is read after that of others.
            let has_more_to_say = interest == Interest::Read && connection.has_more_to_say();
            let _ = self.recount(number);
            if has_more_to_say {
                self.on_input(number);
            }
            if written.is_err() || changed.is_err() {
                over.push(number);
            }
        }
        over
    }

    /// Whether a client has unread input.
    pub(super) fn is_unheard(&self, number: u64) -> bool {
        self.all.get(&number).is_some_and(|connection| {
            connection.has_message() || connection.socket.wait(false, Duration::ZERO) == Ok(true)
        })
    }

    /// Whether a client has closed its connection, and everything that it sent was processed.
    pub(super) fn is_heard_out(&self, number: u64) -> bool {
        self.all.get(&number).is_some_and(|Connection { socket, inbox, early, .. }| {
            let has_closed = matches!(socket.read(&mut [0]), Ok(0) | Err(Errno::ECONNRESET));
            has_closed && inbox.is_empty() && early.is_none()
        })
    }

    /// The process at the other end, open.
    pub(super) fn process(&self, number: u64) -> Result<PidFd, Failure> {
        let gone = Failure { call: "getsockopt", errno: Errno::ENOTCONN };
        self.all.get(&number).ok_or(gone)?.process()
    }

    /// A client closed the connection.
    pub(super) fn disconnect(&mut self, number: u64) {
        let Some(connection) = self.all.remove(&number) else { return };
        let _ = self.poller.remove(connection.socket.as_fd());
        self.quotas.change(connection.uid(), connection.counted, Share::default());
        self.close(connection.uid(), connection.socket);
        self.accept_again(true);
    }

    /// How much each user may have.
    pub(super) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// A user has something more, or less.
    pub(super) fn count(&mut self, uid: u32, before: Share, now: Share) {
        self.quotas.change(uid, before, now);
    }
}

// Connections in which a client has sent a descriptor, which no client of rungate does. To close one closes
// that descriptor, and takes as long as its owner wants: so another thread does that. Until then it counts
// for the user.

/// What such a connection uses.
const IN_CLOSING: Share = Share {
    connections: 1,
    descriptors: 1,
    launches: 0,
    slots: 0,
    places: 0,
    bytes: 0,
    owed: 0,
    question: 0,
};

/// The thread that closes them.
struct Closer {
    to_close: Sender<(u32, local_socket::Connection)>,
    closed: Receiver<u32>,
}

impl Closer {
    fn start() -> Result<Self, Failure> {
        let (to_close, coming) = channel::<(u32, local_socket::Connection)>();
        let (done, closed) = channel();
        let work = move || {
            for (uid, socket) in coming {
                drop(socket);
                let _ = done.send(uid);
            }
        };
        thread::Builder::new().name("closer".to_owned()).spawn(work).map_err(Failure::of_io("clone"))?;
        Ok(Self { to_close, closed })
    }

    fn close(&self, uid: u32, socket: local_socket::Connection) {
        let _ = self.to_close.send((uid, socket));
    }

    /// The user of one that is closed now.
    fn closed(&self) -> Option<u32> {
        self.closed.try_recv().ok()
    }
}

// One connection, with its unprocessed input and its unsent output. It never holds more than one message in
// each direction, and reads nothing new before its last answer was sent.
//
// Before Linux 6.5 the kernel only gives the process id of the client. By the time it is used, another
// process may have it, while a child of the client still has the socket. So the agent opens the process with
// this id by pidfd, and the client must send back a number with credentials that the kernel confirms. If the
// opened process is alive after that, it is the sender. Requests before that wait until then.

/// Bytes that are read at once.
const ROOM: usize = 16 * 1024;

#[derive(Debug)]
struct Connection {
    socket: local_socket::Connection,
    peer: Peer,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Sent with the first byte of the outbox.
    beside: Option<OwnedFd>,
    /// Who sent the last input, while the client is not identified.
    sender: Option<(i32, u32)>,
    /// The request from before the client was identified, and its length.
    early: Option<(Request, usize)>,
    rate: Rate,
    /// Since when a launch has asked for slots without an answer.
    asked: Option<Instant>,
    /// Whether it waits for its turn to be read.
    has_to_be_heard: bool,
    /// The events that the poller reports.
    interest: Interest,
    /// What its session has.
    load: Load,
    /// Its counted usage.
    counted: Share,
}

impl Connection {
    fn new(socket: local_socket::Connection, peer: Peer) -> Self {
        Self {
            socket,
            peer,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            beside: None,
            sender: None,
            early: None,
            rate: Rate::new(),
            asked: None,
            has_to_be_heard: false,
            interest: Interest::Read,
            load: Load::default(),
            counted: Share::default(),
        }
    }

    /// On whose behalf.
    fn uid(&self) -> u32 {
        self.peer.uid
    }

    /// Challenges the process at the other end, if its identity is not certain.
    fn challenge(&mut self) -> Result<(), Errno> {
        if let Some(number) = self.peer.challenge {
            self.socket.ask_for_senders(true)?;
            self.answer(&Answer::Challenge(number), None);
        }
        Ok(())
    }

    /// Reads available input once.
    fn read(&mut self) -> Result<(), Over> {
        let mut bytes = [0; ROOM];
        let read = if self.peer.challenge.is_some() {
            let read = self.socket.read_with_sender(&mut bytes);
            read.map(|(count, sender)| {
                self.sender = sender;
                count
            })
        } else {
            self.socket.read(&mut bytes)
        };
        match read {
            Ok(0) => Err(Over::HungUp),
            Ok(count) => {
                self.inbox.add(bytes.get(..count).unwrap_or_default());
                Ok(())
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(_) => Err(Over::HungUp),
        }
    }

    /// The next request, once all earlier answers are sent.
    fn request(&mut self, longest: usize) -> Result<Option<Request>, Over> {
        while self.is_heard() {
            let before = self.inbox.len();
            let Some(request) = self.inbox.request(longest).map_err(Over::Garbage)? else { break };
            let request = self.identified(request, before.saturating_sub(self.inbox.len()))?;
            if request.is_some() {
                return Ok(request);
            }
        }
        Ok(None)
    }

    /// How much may be answered after a message of this many bytes.
    fn identified(&mut self, request: Request, size: usize) -> Result<Option<Request>, Over> {
        let Some(challenge) = self.peer.challenge else { return Ok(Some(request)) };
        if let Request::Response(number) = request {
            let is_peer = self.sender == Some((self.peer.pid, self.peer.own_uid));
            let has_ended = self.peer.process.as_ref().is_none_or(PidFd::has_ended);
            if number != challenge || !is_peer || has_ended {
                return Err(Over::Stranger);
            }
            self.peer.challenge = None;
            self.socket.ask_for_senders(false).map_err(|_| Over::HungUp)?;
            return Ok(self.early.take().map(|(request, _)| request));
        }
        // No client sends a second request before the first answer.
        match self.early.replace((request, size)) {
            None => Ok(None),
            Some(_) => Err(Over::Garbage(Garbage::Senseless)),
        }
    }

    /// Whether all requests are answered, and the answers sent.
    fn is_heard(&self) -> bool {
        !self.has_to_write() && !self.load.is_busy
    }

    /// Whether a whole message has come.
    fn has_message(&self) -> bool {
        self.inbox.has_message()
    }

    /// Whether received input can be processed now.
    fn has_more_to_say(&self) -> bool {
        self.is_heard() && self.has_message()
    }

    /// The process at the other end, open.
    fn process(&self) -> Result<PidFd, Failure> {
        match &self.peer.process {
            Some(process) => process.try_clone().map_err(Failure::of("fcntl")),
            None => self.socket.process().map_err(Failure::of("getsockopt")),
        }
    }

    /// What it uses of its user's quota.
    fn count(&self) -> Share {
        let Load { places, question, is_busy: _ } = self.load;
        let early = self.early.as_ref().map_or(0, |(_, size)| *size);
        let (bytes, owed) = (self.inbox.len() + early, self.outbox.len());
        let descriptors = 1 + usize::from(self.peer.process.is_some());
        Share { connections: 1, descriptors, places, bytes, owed, question, ..Share::default() }
    }

    /// Sends an answer, with a descriptor if there is one.
    fn answer(&mut self, answer: &Answer, beside: Option<OwnedFd>) {
        self.outbox.extend(answer.frame());
        self.beside = beside.or(self.beside.take());
    }

    /// Whether there is pending output.
    fn has_to_write(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends as much as the other end accepts now.
    fn write(&mut self) -> Result<(), Over> {
        while !self.outbox.is_empty() {
            match self.socket.send(&self.outbox, self.beside.as_ref().map(AsFd::as_fd)) {
                Ok(count) => {
                    self.beside = None;
                    self.outbox.drain(..count);
                    self.outbox.shrink_to_fit();
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(_) => return Err(Over::HungUp),
            }
        }
        Ok(())
    }
}

// A fair queue: the connection of each user that has waited longest, and all users in turn. So a thousand
// requests of one user do not delay those of another. Reading, judging, evicting and the site use it.

/// Connections, or jobs, that wait for something.
#[derive(Debug, Default)]
pub(in crate::agent) struct FairQueue {
    of_users: BTreeMap<u32, VecDeque<u64>>,
    /// The user who was served last.
    last: u32,
}

impl FairQueue {
    /// A connection of this user waits.
    pub(in crate::agent) fn wait(&mut self, uid: u32, session: u64) {
        self.of_users.entry(uid).or_default().push_back(session);
    }

    /// It is over.
    pub(in crate::agent) fn give_up(&mut self, uid: u32, session: u64) {
        if let Some(waiting) = self.of_users.get_mut(&uid) {
            waiting.retain(|other| *other != session);
            if waiting.is_empty() {
                self.of_users.remove(&uid);
            }
        }
    }

    /// How many users wait.
    pub(in crate::agent) fn users(&self) -> usize {
        self.of_users.len()
    }

    /// Whose turn it is.
    pub(in crate::agent) fn next(&mut self) -> Option<u64> {
        self.next_of(|_| true).map(|(_, session)| session)
    }

    /// Which of these users is next.
    pub(in crate::agent) fn next_of(&mut self, may_be: impl Fn(u32) -> bool) -> Option<(u32, u64)> {
        let after = self.of_users.range((Bound::Excluded(self.last), Bound::Unbounded));
        let uid = *after.chain(&self.of_users).map(|(uid, _)| uid).find(|uid| may_be(**uid))?;
        let waiting = self.of_users.get_mut(&uid)?;
        let session = waiting.pop_front()?;
        if waiting.is_empty() {
            self.of_users.remove(&uid);
        }
        self.last = uid;
        Some((uid, session))
    }
}

#[cfg(test)]
mod tests;
