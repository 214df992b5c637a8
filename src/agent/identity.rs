//! Who is at the other end, where the kernel cannot say (Linux before 6.5): its number of whoever has
//! connected may be somebody else's by the time it is looked at, while a child of theirs still has the
//! socket. So the process that has the number is opened, and then it must send a number that is told over the
//! connection, with credentials for which the kernel vouches. If the open process is alive after that, it is
//! the one that has sent it. What is asked before waits until then.

use super::session::{Over, Session};
use crate::{
    keeper::agent::{
        frame::Garbage,
        message::{Answer, Request},
    },
    sys::{failure::Errno, pidfd::PidFd},
};

impl Session {
    /// Asks whoever is at the other end to prove who it is, where that is not certain.
    pub(super) fn challenge(&mut self) -> Result<(), Errno> {
        if let Some(number) = self.peer.challenge {
            self.connection.ask_for_senders()?;
            self.answer(&Answer::Challenge(number), None);
        }
        Ok(())
    }

    /// What may be answered, when this was said, in so many bytes.
    pub(super) fn identified(&mut self, request: Request, size: usize) -> Result<Option<Request>, Over> {
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
}
