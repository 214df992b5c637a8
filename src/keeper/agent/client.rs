//! The launcher's end of a conversation with the agent. It waits some seconds at most, and sends nothing to a
//! listener that does not belong to root.

use std::{
    cell::RefCell,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use super::{
    AgentError, Garbage, Inbox, SOCKET,
    message::{About, Answer, End, Evict, Request, Table},
};
use crate::{
    judge::terms::Runs,
    keeper::{EvictionOutcome, Overdue, SIGNAL_COUNT},
    sys::{Connection, Errno, descriptor},
};

/// How long the agent may take for an answer, unless the caller is more patient.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// An answer to another question.
const SENSELESS: AgentError = AgentError::Garbage(Garbage::Senseless);

/// Bytes that are read at once.
const ROOM: usize = 16 * 1024;

/// A connection with the agent.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    inbox: Inbox,
    /// The descriptor that came last.
    descriptor: Option<OwnedFd>,
    /// How long it may take to receive a request.
    patience: Duration,
}

impl Client {
    pub fn connect() -> Result<Self, AgentError> {
        Self::connect_within(PATIENCE)
    }

    /// The same, to an agent that may take this long to receive it.
    pub fn connect_within(patience: Duration) -> Result<Self, AgentError> {
        let connected = Connection::to(Path::new(SOCKET), patience);
        let connection = connected.map_err(|errno| match errno {
            Errno::ETIMEDOUT => AgentError::Silent(patience),
            errno => AgentError::NotReached(errno),
        })?;
        match connection.peer_uid().map_err(AgentError::NotReached)? {
            0 => Ok(Self { connection, inbox: Inbox::default(), descriptor: None, patience }),
            uid => Err(AgentError::NotRoot(uid)),
        }
    }

    /// Says something.
    pub fn say(&mut self, request: &Request) -> Result<(), AgentError> {
        let frame = request.frame().ok_or(AgentError::TooLong)?;
        self.put(&frame, Connection::send_plain)
    }

    fn put(
        &self,
        frame: &[u8],
        send: impl Fn(&Connection, &[u8]) -> Result<usize, Errno>,
    ) -> Result<(), AgentError> {
        let (mut left, until) = (frame, Instant::now() + self.patience);
        while !left.is_empty() {
            match send(&self.connection, left) {
                Ok(count) => left = left.get(count..).unwrap_or_default(),
                Err(Errno::EAGAIN) => self.rest(true, until)?,
                Err(Errno::EINTR) => {}
                // Data from before it closed the connection is still to be read.
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Ok(()),
                Err(errno) => return Err(AgentError::NotReached(errno)),
            }
        }
        Ok(())
    }

    /// The next answer, if it comes before then. An agent that must first be certain of its caller gets the
    /// proof.
    pub fn answer_until(&mut self, until: Instant) -> Result<Option<Answer>, AgentError> {
        loop {
            match self.inbox.answer().map_err(AgentError::Garbage)? {
                Some(Answer::Challenge(number)) => {
                    let frame = Request::Response(number).frame().ok_or(AgentError::TooLong)?;
                    self.put(&frame, Connection::send_as_oneself)?;
                    continue;
                }
                Some(answer) => return Ok(Some(answer)),
                None => {}
            }
            let mut bytes = [0; ROOM];
            match self.connection.receive(&mut bytes) {
                Ok((0, _)) | Err(Errno::ECONNRESET) => return Err(AgentError::HungUp),
                Ok((count, descriptor)) => {
                    self.descriptor = descriptor.or(self.descriptor.take());
                    self.inbox.add(bytes.get(..count).unwrap_or_default());
                }
                Err(Errno::EAGAIN) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.connection.wait(false, left).map_err(AgentError::NotReached)?;
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(AgentError::NotReached(errno)),
            }
        }
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, AgentError> {
        self.say(request)?;
        match self.answer_until(Instant::now() + PATIENCE)? {
            Some(Answer::Failed(why)) => Err(AgentError::Failed(why)),
            Some(answer) => Ok(answer),
            None => Err(AgentError::Silent(PATIENCE)),
        }
    }

    /// These tables as they are now, or all. One that does not exist was never used.
    pub fn look(&mut self, tables: Vec<String>) -> Result<Vec<Table>, AgentError> {
        match self.ask(&Request::Look(tables))? {
            Answer::Tables(tables) => Ok(tables),
            _ => Err(SENSELESS),
        }
    }

    /// The agent's report about itself.
    pub fn about(&mut self) -> Result<About, AgentError> {
        match self.ask(&Request::About)? {
            Answer::About(about) => Ok(about),
            _ => Err(SENSELESS),
        }
    }

    /// The path of a new FIFO, for a script to open.
    pub fn open(&mut self) -> Result<PathBuf, AgentError> {
        match self.ask(&Request::Open)? {
            Answer::Opened(path) => Ok(path.into()),
            _ => Err(SENSELESS),
        }
    }

    /// The tables in which a FIFO keeps slots, and how many.
    pub fn keeps(&mut self, opened: u64) -> Result<Vec<(String, u64)>, AgentError> {
        let count = |slots: String| Runs::parse(&slots).map_or(0, |slots| slots.count());
        match self.ask(&Request::Keeps(opened))? {
            Answer::Granted(granted) => {
                Ok(granted.slots.into_iter().map(|(table, slots)| (table, count(slots))).collect())
            }
            Answer::Done(_) => Ok(Vec::new()),
            _ => Err(SENSELESS),
        }
    }

    /// The ends that it has seen last, oldest first.
    pub fn ends(&mut self) -> Result<Vec<End>, AgentError> {
        match self.ask(&Request::Ends)? {
            Answer::Ended(ends) => Ok(ends),
            _ => Err(SENSELESS),
        }
    }

    /// Makes tables forget when they were last used. Returns whether there was anything to forget.
    pub fn reset(&mut self, tables: Vec<String>) -> Result<bool, AgentError> {
        match self.ask(&Request::Reset(tables))? {
            Answer::Done(changed) => Ok(changed),
            _ => Err(SENSELESS),
        }
    }

    /// Requests the end of holders; `told` gets the outcome of each. Returns whether all of them have gone.
    pub fn evict(
        &mut self,
        evict: Evict,
        told: &mut dyn FnMut(&Overdue, EvictionOutcome),
    ) -> Result<bool, AgentError> {
        // A signal after each grace, and the agent's own time.
        let longest = evict.grace.saturating_mul(SIGNAL_COUNT).saturating_add(PATIENCE);
        self.say(&Request::Evict(evict))?;
        loop {
            match self.answer_until(Instant::now() + longest)? {
                Some(Answer::Done(are_all_gone)) => return Ok(are_all_gone),
                Some(Answer::Expired(expired)) => {
                    if let Some((overdue, fate)) = expired.told() {
                        told(&overdue, fate);
                    }
                }
                Some(Answer::Failed(why)) => return Err(AgentError::Failed(why)),
                Some(_) => return Err(SENSELESS),
                None => return Err(AgentError::Silent(longest)),
            }
        }
    }

    /// The descriptor that came with the last answer.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    fn rest(&self, to_write: bool, until: Instant) -> Result<(), AgentError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AgentError::Silent(self.patience));
        }
        self.connection.wait(to_write, left).map(drop).map_err(AgentError::NotReached)
    }
}

// Slots that the agent gave to this launch. Until the program starts they can be released; afterwards its
// end releases them.

/// How long a supervisor tries to reach an agent that is being restarted, and how often.
const RETURN: Duration = Duration::from_secs(3);
const REST: Duration = Duration::from_millis(50);

/// The same for an agent that was silent, which systemd must end first. With the time for the first answer
/// and for the last one, it is half a minute in all.
const RETURN_OF_SILENT: Duration = Duration::from_secs(20);

/// All slots of one launch in the agent's tables.
#[must_use = "the slots are given back when this is dropped"]
#[derive(Debug)]
pub struct Granted {
    client: Rc<RefCell<Client>>,
    /// What keeps the slots, besides this process.
    descriptor: Option<OwnedFd>,
    is_given_back: bool,
}

impl Granted {
    /// The data of this connection. A descriptor that the program has to inherit gets another number, so that
    /// it is not in the program's way.
    ///
    /// The FIFO of a script keeps the slots alone. An older agent does not know it, and sends one of its own.
    pub fn over(client: &Rc<RefCell<Client>>, is_of_script: bool) -> Result<Self, AgentError> {
        let descriptor = client.borrow_mut().take_descriptor();
        if is_of_script && descriptor.is_some() {
            let _ = client.borrow_mut().ask(&Request::GiveBack(false));
            return Err(AgentError::Differs("it is older than this rungate".to_owned()));
        }
        let moved = descriptor.map(descriptor::move_high).transpose();
        let descriptor = moved.map_err(AgentError::NotReached)?;
        Ok(Self { client: Rc::clone(client), descriptor, is_given_back: false })
    }

    /// Hands the slots over to the program that this process, or a child of it, is about to become, or to the
    /// script. It does no harm if the agent is gone: the next one knows the process, or the FIFO. An agent
    /// that lives, and does not receive this, would free the slots of a script.
    pub fn keep_across_exec(&self) -> Result<(), AgentError> {
        if let Some(kept) = &self.descriptor {
            descriptor::keep_across_exec(kept.as_fd()).map_err(AgentError::NotReached)?;
        }
        self.client.borrow_mut().say(&Request::Started)
    }

    /// Says which child of this process the program is. That is for people: this process has the slots.
    pub fn runs_as(&self, program: i32) {
        let _ = self.client.borrow_mut().say(&Request::RunsAs(program));
    }

    /// Releases the slots, and is answered; `has_run` where a program had them until now.
    pub fn give_back(&mut self, has_run: bool) -> Result<(), AgentError> {
        if self.is_given_back {
            return Ok(());
        }
        self.is_given_back = true;
        self.descriptor = None;
        let request = Request::GiveBack(has_run);
        let mut answered = self.client.borrow_mut().ask(&request);
        // An agent that was started meanwhile knows the supervisor of a program by its process. Slots of any
        // other process are free at its end.
        let (lost, mut longest) = (Instant::now(), Duration::ZERO);
        while has_run && let Err(error) = &answered {
            longest = longest.max(match error {
                AgentError::HungUp | AgentError::NotReached(_) => RETURN,
                AgentError::Silent(_) => RETURN_OF_SILENT,
                _ => break,
            });
            if lost.elapsed() >= longest {
                break;
            }
            thread::sleep(REST);
            answered = Client::connect().and_then(|mut client| client.ask(&request));
        }
        match answered? {
            Answer::Done(_) => Ok(()),
            _ => Err(SENSELESS),
        }
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        let _ = self.give_back(false);
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::net::UnixStream};

    use super::*;
    use crate::{
        judge::terms::{ExpireKill, Hold},
        keeper::agent::message::{self, Chosen, Expired, Which},
        sys::Listener,
    };

    /// A launcher, and the agent's end of its connection.
    fn connected() -> (Client, Connection) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = Listener::at(&path).expect("a free path");
        let connection = Connection::to(&path, PATIENCE).expect("it listens");
        let agent = listener.accept().expect("a socket").expect("it has called");
        let client = Client { connection, inbox: Inbox::default(), descriptor: None, patience: PATIENCE };
        (client, agent)
    }

    /// The agent says this, before it is asked.
    fn says(agent: &Connection, answers: &[Answer]) {
        let bytes: Vec<u8> = answers.iter().flat_map(Answer::frame).collect();
        assert_eq!(agent.send_plain(&bytes), Ok(bytes.len()));
    }

    /// The requests that the agent has got.
    fn requests(agent: &Connection) -> Vec<Request> {
        let (mut inbox, mut bytes) = (Inbox::default(), [0; 4096]);
        while let Ok(count @ 1..) = agent.read(&mut bytes) {
            inbox.add(&bytes[..count]);
        }
        std::iter::from_fn(|| inbox.request(4096).expect("a request")).collect()
    }

    /// Slots are given back once, and an agent that has answered is not asked again.
    #[test]
    fn slots_are_given_back_once() {
        for has_run in [true, false] {
            let (client, agent) = connected();
            says(&agent, &[Answer::Done(true)]);
            let mut granted = Granted::over(&Rc::new(RefCell::new(client)), false).expect("slots");
            assert_eq!(granted.give_back(has_run), Ok(()));
            assert_eq!(granted.give_back(has_run), Ok(()));
            drop(granted);
            assert_eq!(requests(&agent), [Request::GiveBack(has_run)]);
        }
    }

    /// Slots that the program did not get are given back when the launch gives up.
    #[test]
    fn slots_that_no_program_has_are_given_back() {
        let (client, agent) = connected();
        says(&agent, &[Answer::Done(true)]);
        drop(Granted::over(&Rc::new(RefCell::new(client)), true).expect("slots"));
        assert_eq!(requests(&agent), [Request::GiveBack(false)]);
    }

    /// A descriptor that came with an answer is there until it is taken. For the FIFO of a script none may
    /// come: then the slots are given back.
    #[test]
    fn a_descriptor_is_there_until_it_is_taken() {
        let (mut client, agent) = connected();
        let own = std::io::stderr();
        let send = || agent.send(&Answer::Done(true).frame(), Some(own.as_fd())).expect("it is open");
        let mut answer = || {
            let answer = client.answer_until(Instant::now() + PATIENCE);
            assert_eq!(answer, Ok(Some(Answer::Done(true))));
        };
        send();
        answer();
        says(&agent, &[Answer::Done(true)]);
        answer();
        assert!(client.take_descriptor().is_some() && client.take_descriptor().is_none());
        send();
        assert_eq!(client.answer_until(Instant::now() + PATIENCE), Ok(Some(Answer::Done(true))));
        says(&agent, &[Answer::Done(true)]);
        let refused = Granted::over(&Rc::new(RefCell::new(client)), true).expect_err("it is not the FIFO");
        assert!(matches!(refused, AgentError::Differs(_)));
        assert_eq!(requests(&agent), [Request::GiveBack(false)]);
    }

    /// What keeps the slots besides the process is closed when they are given back.
    #[test]
    fn a_descriptor_is_closed_with_the_slots() {
        let (mut client, agent) = connected();
        let (mut other, own) = UnixStream::pair().expect("a pair");
        other.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        agent.send(&Answer::Done(true).frame(), Some(own.as_fd())).expect("it is open");
        drop(own);
        assert!(client.answer_until(Instant::now() + PATIENCE).is_ok());
        says(&agent, &[Answer::Done(true)]);
        let mut granted = Granted::over(&Rc::new(RefCell::new(client)), false).expect("slots");
        assert!(granted.descriptor.is_some());
        assert_eq!(granted.give_back(true), Ok(()));
        assert_eq!(other.read(&mut [0]).ok(), Some(0));
    }

    /// The kernel could not say who calls: the launcher proves it with the number that it is asked for.
    #[test]
    fn a_challenge_is_answered() {
        let (mut client, agent) = connected();
        says(&agent, &[Answer::Challenge(7), Answer::Done(false)]);
        assert_eq!(client.ends(), Err(SENSELESS), "it answers another question");
        assert_eq!(requests(&agent), [Request::Ends, Request::Response(7)]);
    }

    /// There is no answer before the time is over, and none from an agent that has closed the connection.
    #[test]
    fn an_answer_may_not_come() {
        let (mut client, agent) = connected();
        assert_eq!(client.answer_until(Instant::now()), Ok(None));
        drop(agent);
        assert_eq!(client.ask(&Request::About), Err(AgentError::HungUp));
    }

    /// Each holder that was to be ended is reported, and then whether all of them have gone.
    #[test]
    fn the_outcome_of_each_holder_is_told() {
        let since = std::time::SystemTime::UNIX_EPOCH;
        let holder = |pid| message::Holder {
            slots: (1, 1),
            pid,
            uid: 1000,
            host: "no.such.host.".to_owned(),
            since,
            taken: None,
            hold: Hold::Process,
            command: "matlab".to_owned(),
            rule: "seats".to_owned(),
            lingers_until: None,
        };
        let expired = |pid, is_elsewhere, fate| {
            let (table, holder) = ("seats".to_owned(), holder(pid));
            Answer::Expired(Expired { table, holder, slots: 1, by: None, is_elsewhere, fate })
        };
        for are_all_gone in [true, false] {
            let (mut client, agent) = connected();
            let first = expired(7, false, message::EvictionOutcome::HadLeft);
            let second = expired(8, true, message::EvictionOutcome::Freed);
            says(&agent, &[first, second, Answer::Done(are_all_gone)]);
            let which = Which::These(vec![Chosen { slot: 1, pid: 7, since }]);
            let (table, grace, kill) = ("seats".to_owned(), Duration::ZERO, ExpireKill::Process);
            let mut told = Vec::new();
            let gone = client.evict(Evict { table, which, grace, kill }, &mut |overdue, fate| {
                told.push((overdue.pid, overdue.elsewhere.is_some(), fate));
            });
            assert_eq!(gone, Ok(are_all_gone));
            assert_eq!(told, [(7, false, EvictionOutcome::HadLeft), (8, true, EvictionOutcome::Freed)]);
            assert!(matches!(requests(&agent)[..], [Request::Evict(_)]));
        }
    }
}
