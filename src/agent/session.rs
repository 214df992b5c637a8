//! One conversation: what has come, what is still to go out, and what it is about. It never holds more than a
//! message each way, and reads nothing new before its last answer has gone out.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    ending::Ending, judge::shortened, order::Order, quota::Counted, rate::Rate, saved::SavedPlace,
    site::notices::given::GivenNotice,
};
use crate::{
    keeper::Overdue,
    keeper::agent::{
        frame::{Garbage, Inbox},
        message::{Answer, Request, Take, Waits},
    },
    protocol::place_in_line::PlaceInLine,
    sys::{
        failure::{Errno, Failure},
        file_id::FileId,
        local_socket::Connection,
        peer::Peer,
        pidfd::PidFd,
        poller::Interest,
        process::Process,
    },
};

/// Bytes that are read at once.
const ROOM: usize = 16 * 1024;

/// A waiting launch that has not beaten for so long does not answer.
pub(super) const AWAY: Duration = Duration::from_secs(3);

/// A conversation.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) peer: Peer,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Who sent what came last, as long as it is not certain who asks.
    pub(super) sender: Option<(i32, u32)>,
    /// What was asked before that was certain, and how long it was.
    pub(super) early: Option<(Request, usize)>,
    pub(super) rate: Rate,
    /// Whether it waits for its turn to be heard.
    pub(super) has_to_be_heard: bool,
    /// What the poller looks for.
    pub(super) interest: Interest,
    /// Goes out with the first byte of the outbox.
    beside: Option<OwnedFd>,
    /// The number of the last question that was given to the judges.
    pub(super) question: u64,
    pub(super) stage: Stage,
    pub(super) take: Option<Arc<Take>>,
    pub(super) place: Waiting,
    /// The FIFOs of other launches that its process has open, once somebody has looked.
    pub(super) fifos: Option<Vec<FileId>>,
    /// What it got for a question before this one, and has not used.
    pub(super) unused: Vec<u64>,
    /// Overdue holders that are being ended for it.
    pub(super) endings: Vec<Ending>,
    /// Nobody is sent signals again and again.
    pub(super) tried: Vec<i32>,
    /// Overdue holders on other hosts, of which notice was given for it.
    pub(super) notices: Vec<GivenNotice>,
    /// The same with those of whom everything was told: notice is given of nobody again and again.
    pub(super) noticed: Vec<Overdue>,
    /// When it is to be looked at though nothing is said.
    pub(super) due: Option<Instant>,
    /// What it has, as it was counted.
    pub(super) counted: Counted,
}

/// What it is about.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing.
    Idle,
    /// A question that the judges have.
    Judged,
    /// Slots that it has if the site proves it, or for which it is looked again soon.
    Proved,
    /// Slots for which the launch stands in line.
    Waits(Order),
    /// Slots for which the launch does not stand in line, while others are ended for it.
    Ends(Order),
    /// Overdue holders that are to be ended, whoever wants their slots; whether all of them have gone so far.
    Sweeps(bool),
    /// Slots that it has, by the number of the holding.
    Has(u64),
}

/// A launch's place in line, over all of its questions.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) line: PlaceInLine,
    pub(super) begun: Option<Instant>,
    pub(super) beaten: Option<Instant>,
    /// Whether what it has asked, or its last beat, has no answer yet.
    pub(super) is_owed: bool,
    pub(super) has_waited: bool,
    /// Whether it did not answer when that was last looked at.
    pub(super) was_away: bool,
    /// When the time of one of its claims is over.
    pub(super) next: Option<Instant>,
    /// Since when it waits for the site rather than for slots.
    pub(super) resting: Option<Instant>,
    /// How it begins to wait at the site, where a line ends.
    pub(super) begins: Begins,
    /// What is written down of it, and in which file.
    pub(super) written: Option<(u64, SavedPlace)>,
}

/// A launch that begins to wait: where lines end, it has to be proved that nobody came into them since it
/// looked, and until then it is told nothing.
#[derive(Debug, Default)]
pub(super) struct Begins {
    /// The lines that end, by the names of their tables at the site.
    pub(super) lines: Vec<String>,
    /// At which revision it looked, of which etcd.
    pub(super) looked: (u64, i64),
    /// What it is to be told.
    pub(super) answer: Option<Waits>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Waiting").field("number", &self.line.number()).finish_non_exhaustive()
    }
}

impl Waiting {
    /// Whether its launch does not answer. One that waits for an answer itself says nothing meanwhile.
    pub(super) fn is_away(&self) -> bool {
        let is_silent = self.has_waited && !self.is_owed;
        is_silent && self.beaten.is_some_and(|beaten| beaten.elapsed() > AWAY)
    }
}

/// Why a conversation is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The other end has hung up, or cannot be talked to.
    HungUp,
    /// What it says is no message.
    Garbage(Garbage),
    /// Whoever is at the other end is not who has connected.
    Stranger,
}

impl Session {
    pub(super) fn new(connection: Connection, peer: Peer) -> Self {
        Self {
            connection,
            peer,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            sender: None,
            early: None,
            rate: Rate::new(),
            has_to_be_heard: false,
            interest: Interest::Read,
            beside: None,
            question: 0,
            stage: Stage::Idle,
            take: None,
            place: Waiting::default(),
            fifos: None,
            unused: Vec::new(),
            endings: Vec::new(),
            tried: Vec::new(),
            notices: Vec::new(),
            noticed: Vec::new(),
            due: None,
            counted: Counted::default(),
        }
    }

    /// Reads once what has come. Says whether it was anything.
    pub(super) fn read(&mut self) -> Result<(), Over> {
        let mut bytes = [0; ROOM];
        let read = if self.peer.challenge.is_some() {
            let read = self.connection.read_with_sender(&mut bytes);
            read.map(|(count, sender)| {
                self.sender = sender;
                count
            })
        } else {
            self.connection.read(&mut bytes)
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

    /// The next request, once everything that was asked before has its answer, and that has gone out.
    pub(super) fn request(&mut self, longest: usize) -> Result<Option<Request>, Over> {
        if !self.is_heard() {
            return Ok(None);
        }
        loop {
            let before = self.inbox.len();
            let Some(request) = self.inbox.request(longest).map_err(Over::Garbage)? else { return Ok(None) };
            let request = self.identified(request, before.saturating_sub(self.inbox.len()))?;
            if request.is_some() {
                return Ok(request);
            }
        }
    }

    /// Whether everything that was asked has its answer, and that has gone out.
    fn is_heard(&self) -> bool {
        !self.has_to_write() && !matches!(self.stage, Stage::Judged | Stage::Proved | Stage::Sweeps(_))
    }

    /// Whether something that has come can be heard now.
    pub(super) fn has_more_to_say(&self) -> bool {
        self.is_heard() && self.inbox.has_message()
    }

    /// The process at the other end, open.
    pub(super) fn process(&self) -> Result<PidFd, Failure> {
        match &self.peer.process {
            Some(process) => process.try_clone().map_err(Failure::of("fcntl")),
            None => self.connection.process().map_err(Failure::of("getsockopt")),
        }
    }

    /// The command that it is to start, as others see it.
    pub(super) fn command(&self) -> String {
        let typed = self.take.as_ref().map(|take| Path::new(&take.typed));
        typed.and_then(Path::file_name).map_or_else(String::new, shortened)
    }

    /// What is kept for it.
    pub(super) fn count(&self) -> Counted {
        let early = self.early.as_ref().map_or(0, |(_, size)| *size);
        Counted {
            places: self.place.line.places(),
            bytes: self.inbox.len() + early,
            owed: self.outbox.len(),
            question: self.take.as_ref().map_or(0, |take| take.size()),
        }
    }

    /// How many descriptors are open for it.
    pub(super) fn descriptors(&self) -> usize {
        1 + usize::from(self.peer.process.is_some())
    }

    /// Whether its launch does not answer: it has said nothing for too long, and nothing that it has said is
    /// still to be heard. An agent that is slow takes nobody for dead.
    pub(super) fn is_away(&self) -> bool {
        let is_unheard =
            || self.inbox.has_message() || self.connection.wait(false, Duration::ZERO) == Ok(true);
        self.place.is_away() && !is_unheard()
    }

    /// Sees whether its launch answers now, and says so in the lines in which it stands.
    pub(super) fn see_whether_away(&mut self) -> bool {
        let process = Process::find(self.peer.pid);
        let is_away = self.is_away() || process.is_none_or(|process| process.is_stopped());
        self.place.was_away = is_away;
        self.place.line.set_away(is_away);
        is_away
    }

    /// It stands in line, for all to see.
    pub(super) fn begins_to_wait(&mut self) {
        self.place.has_waited = true;
        self.place.resting = None;
        if let Some(waits) = self.place.begins.answer.take() {
            self.answer(&Answer::Waits(waits), None);
        }
    }

    /// Answers; with a descriptor beside, where there is one.
    pub(super) fn answer(&mut self, answer: &Answer, beside: Option<OwnedFd>) {
        self.outbox.extend(answer.frame());
        // From now on it has as long as ever to say something.
        self.place.is_owed &= matches!(answer, Answer::Anew | Answer::Expired(_));
        self.place.beaten = self.place.beaten.map(|_| Instant::now());
        self.beside = beside.or(self.beside.take());
    }

    /// Whether something is still to go out.
    pub(super) fn has_to_write(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends as much as the other end takes now.
    pub(super) fn write(&mut self) -> Result<(), Over> {
        while !self.outbox.is_empty() {
            match self.connection.send(&self.outbox, self.beside.as_ref().map(AsFd::as_fd)) {
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
