//! Waits for many descriptors at once. Idle ones cost nothing, however many there are.

use std::{os::fd::AsFd, time::Duration};

use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    eventfd::{EfdFlags, EventFd},
};

use crate::sys::failure::Errno;

/// How many are reported at once.
const AT_ONCE: usize = 1024;

/// What is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interest {
    /// Only its end, whatever is written before.
    End,
    /// Something to read, or the end.
    Read,
    /// Room to write, or the end.
    Write,
    /// Any of these.
    ReadAndWrite,
}

impl Interest {
    fn flags(self) -> EpollFlags {
        match self {
            Self::End => EpollFlags::empty(),
            Self::Read => EpollFlags::EPOLLIN,
            Self::Write => EpollFlags::EPOLLOUT,
            Self::ReadAndWrite => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        }
    }
}

/// A set of descriptors, each with a number by which it is reported.
#[derive(Debug)]
pub struct Poller(Epoll);

impl Poller {
    /// An empty one.
    pub fn new() -> Result<Self, Errno> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self)
    }

    /// Adds a descriptor. It is removed when it is closed, if no process has a copy of it.
    pub fn add(&self, descriptor: impl AsFd, number: u64, interest: Interest) -> Result<(), Errno> {
        self.0.add(descriptor, EpollEvent::new(interest.flags(), number))
    }

    /// Waits for something else.
    pub fn change(&self, descriptor: impl AsFd, number: u64, interest: Interest) -> Result<(), Errno> {
        self.0.modify(descriptor, &mut EpollEvent::new(interest.flags(), number))
    }

    /// Takes a descriptor out.
    pub fn remove(&self, descriptor: impl AsFd) -> Result<(), Errno> {
        self.0.delete(descriptor)
    }

    /// Sleeps until something happens, at most this long, and says with which of them.
    pub fn wait(&self, longest: Option<Duration>) -> Result<Vec<u64>, Errno> {
        let mut events = [EpollEvent::empty(); AT_ONCE];
        // Rounded up: waking a moment too early would be useless.
        let timeout = longest.map_or(EpollTimeout::NONE, |longest| {
            EpollTimeout::try_from(longest.as_nanos().div_ceil(1_000_000)).unwrap_or(EpollTimeout::NONE)
        });
        match self.0.wait(&mut events, timeout) {
            Ok(count) => Ok(events.iter().take(count).map(EpollEvent::data).collect()),
            Err(Errno::EINTR) => Ok(Vec::new()),
            Err(errno) => Err(errno),
        }
    }
}

/// Used by other threads to wake the waiting one.
#[derive(Debug)]
pub struct Bell(EventFd);

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Result<Self, Errno> {
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map(Self)
    }

    /// Wakes the waiting thread. It is not a failure if the bell has already rung and was not heard yet.
    pub fn ring(&self) {
        let _ = self.0.write(1);
    }

    /// Is silent again.
    pub fn hush(&self) {
        let _ = self.0.read();
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
