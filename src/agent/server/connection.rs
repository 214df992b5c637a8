//! One connection: what has come, and what is still to go out. It never holds more than a message each way,
//! and reads nothing new before its last answer has gone out.
//!
//! Where the kernel cannot say who is at the other end (Linux before 6.5), its number of whoever has
//! connected may be somebody else's by the time it is looked at, while a child of theirs still has the
//! socket. So the process that has the number is opened, and then it must send a number that is told over the
//! connection, with credentials for which the kernel vouches. If the open process is alive after that, it is
//! the one that has sent it. What is asked before waits until then.

use std::os::fd::{AsFd, OwnedFd};

use super::{
    Load, Over,
    quota::{Rate, Share},
};
use crate::{
    keeper::agent::{
        frame::{Garbage, Inbox},
        message::{Answer, Request},
    },
    sys::{
        failure::{Errno, Failure},
        local_socket::{self, Peer},
        poller::Interest,
        process::PidFd,
    },
};

/// Bytes that are read at once.
const ROOM: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: local_socket::Connection,
    peer: Peer,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// Goes out with the first byte of the outbox.
    beside: Option<OwnedFd>,
    /// Who sent what came last, as long as it is not certain who asks.
    sender: Option<(i32, u32)>,
    /// What was asked before that was certain, and how long it was.
    early: Option<(Request, usize)>,
    pub(super) rate: Rate,
    /// Whether it waits for its turn to be heard.
    pub(super) has_to_be_heard: bool,
    /// What the poller looks for.
    pub(super) interest: Interest,
    /// What its session has.
    pub(super) load: Load,
    /// What it has, as it was counted.
    pub(super) counted: Share,
}

impl Connection {
    pub(super) fn new(socket: local_socket::Connection, peer: Peer) -> Self {
        Self {
            socket,
            peer,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            beside: None,
            sender: None,
            early: None,
            rate: Rate::new(),
            has_to_be_heard: false,
            interest: Interest::Read,
            load: Load::default(),
            counted: Share::default(),
        }
    }

    /// On whose behalf.
    pub(super) fn uid(&self) -> u32 {
        self.peer.uid
    }

    /// Asks whoever is at the other end to prove who it is, where that is not certain.
    pub(super) fn challenge(&mut self) -> Result<(), Errno> {
        if let Some(number) = self.peer.challenge {
            self.socket.ask_for_senders()?;
            self.answer(&Answer::Challenge(number), None);
        }
        Ok(())
    }

    /// Reads once what has come.
    pub(super) fn read(&mut self) -> Result<(), Over> {
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

    /// The next request, once everything that was asked before has its answer, and that has gone out.
    pub(super) fn request(&mut self, longest: usize) -> Result<Option<Request>, Over> {
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

    /// What may be answered, when this was said, in so many bytes.
    fn identified(&mut self, request: Request, size: usize) -> Result<Option<Request>, Over> {
        let Some(challenge) = self.peer.challenge else { return Ok(Some(request)) };
        if let Request::Response(number) = request {
            let is_peer = self.sender == Some((self.peer.pid, self.peer.own_uid));
            let has_ended = self.peer.process.as_ref().is_none_or(PidFd::has_ended);
            if number != challenge || !is_peer || has_ended {
                return Err(Over::Stranger);
            }
            self.peer.challenge = None;
            return Ok(self.early.take().map(|(request, _)| request));
        }
        // Nobody asks twice without having heard anything.
        match self.early.replace((request, size)) {
            None => Ok(None),
            Some(_) => Err(Over::Garbage(Garbage::Senseless)),
        }
    }

    /// Whether everything that was asked has its answer, and that has gone out.
    fn is_heard(&self) -> bool {
        !self.has_to_write() && !self.load.is_busy
    }

    /// Whether a whole message has come.
    pub(super) fn has_message(&self) -> bool {
        self.inbox.has_message()
    }

    /// Whether something that has come can be heard now.
    pub(super) fn has_more_to_say(&self) -> bool {
        self.is_heard() && self.has_message()
    }

    /// The process at the other end, open.
    pub(super) fn process(&self) -> Result<PidFd, Failure> {
        match &self.peer.process {
            Some(process) => process.try_clone().map_err(Failure::of("fcntl")),
            None => self.socket.process().map_err(Failure::of("getsockopt")),
        }
    }

    /// What it has of its user's share.
    pub(super) fn count(&self) -> Share {
        let Load { places, question, is_busy: _ } = self.load;
        let early = self.early.as_ref().map_or(0, |(_, size)| *size);
        let (bytes, owed) = (self.inbox.len() + early, self.outbox.len());
        let descriptors = 1 + usize::from(self.peer.process.is_some());
        Share { connections: 1, descriptors, places, bytes, owed, question, ..Share::default() }
    }

    /// Answers; with a descriptor beside, where there is one.
    pub(super) fn answer(&mut self, answer: &Answer, beside: Option<OwnedFd>) {
        self.outbox.extend(answer.frame());
        self.beside = beside.or(self.beside.take());
    }

    /// Whether something is still to go out.
    pub(super) fn has_to_write(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends as much as the other end takes now.
    pub(super) fn write(&mut self) -> Result<(), Over> {
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
