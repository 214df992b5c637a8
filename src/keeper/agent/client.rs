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

    /// Hands the slots over to the program that this process, or a child of it, is about to become. It does
    /// no harm if the agent does not receive this: it knows the process.
    pub fn keep_across_exec(&self) -> Result<(), AgentError> {
        if let Some(kept) = &self.descriptor {
            descriptor::keep_across_exec(kept.as_fd()).map_err(AgentError::NotReached)?;
        }
        let _ = self.client.borrow_mut().say(&Request::Started);
        Ok(())
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
        let until = Instant::now() + RETURN;
        while has_run
            && matches!(answered, Err(AgentError::HungUp | AgentError::NotReached(_)))
            && Instant::now() < until
        {
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
