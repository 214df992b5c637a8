//! Slots that the agent gave to this launch. Until the program starts they can be released; afterwards its
//! end releases them.

use std::{
    cell::RefCell,
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
};

use super::{
    client::Client,
    error::AgentError,
    message::{Answer, Request},
};
use crate::sys::descriptor;

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
    pub fn over(client: &Rc<RefCell<Client>>) -> Result<Self, AgentError> {
        let descriptor = client.borrow_mut().take_descriptor();
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

    /// Releases the slots, and is answered; `has_run` where a program had them until now. An agent that has
    /// ended meanwhile finds out by itself.
    pub fn give_back(&mut self, has_run: bool) -> Result<(), AgentError> {
        if self.is_given_back {
            return Ok(());
        }
        self.is_given_back = true;
        self.descriptor = None;
        match self.client.borrow_mut().ask(&Request::GiveBack(has_run)) {
            Ok(Answer::Done(_)) => Ok(()),
            Ok(_) => Err(AgentError::Garbage(super::frame::Garbage::Senseless)),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        let _ = self.give_back(false);
    }
}
