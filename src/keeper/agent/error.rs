//! Errors between a launch and the agent. If nothing answers, the policy says whether the launch may start
//! without its slots; every other error refuses it.

use std::{error::Error, fmt, time::Duration};

use super::{Garbage, SOCKET};
use crate::{sys::Errno, text::visible_lines};

/// Why the agent gave no slots, and refused none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AgentError {
    /// There is no listener, or it may not be called.
    NotReached(Errno),
    /// It has not answered for so long.
    Silent(Duration),
    HungUp,
    /// The listener is not root.
    NotRoot(u32),
    /// Its message cannot be read.
    Garbage(Garbage),
    /// The command line is too long to be judged by it.
    TooLong,
    /// Its judgement differs from that of this process.
    Differs(String),
    /// It refuses, and says why.
    Failed(String),
    /// The policy that it reads has faults; whether a launch in the queue keeps its place meanwhile.
    Faulty(String, bool),
}

impl AgentError {
    /// Whether the agent does not answer, and nothing else is wrong.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NotReached(_) | Self::Silent(_) | Self::HungUp => true,
            Self::NotRoot(_)
            | Self::Garbage(_)
            | Self::TooLong
            | Self::Differs(_)
            | Self::Failed(_)
            | Self::Faulty(..) => false,
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<String> {
        let text = match self {
            Self::NotReached(_) | Self::Silent(_) | Self::HungUp => {
                "Tell your administrator: rungate doctor agent"
            }
            // From within a user namespace root looks like nobody.
            Self::NotRoot(65534) => {
                "In a container, start it outside: from here root cannot be distinguished from others."
            }
            Self::NotRoot(_) => "Tell your administrator: another process listens where the agent should.",
            Self::Garbage(_) => "Their versions may differ by one: restart the agent after an upgrade.",
            Self::TooLong => "Put long lists of arguments into a file.",
            Self::Differs(_) => {
                "Try again. If it happens again, tell your administrator: rungate policy \
                check"
            }
            Self::Faulty(..) => "Tell your administrator: rungate policy check",
            Self::Failed(_) => return None,
        };
        Some(text.to_owned())
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached(errno) => {
                write!(formatter, "the agent cannot be reached at {SOCKET}: {}", errno.desc())
            }
            Self::Silent(longest) => {
                let longest = longest.saturating_add(Duration::from_millis(500)).as_secs();
                write!(formatter, "the agent at {SOCKET} has not answered for {longest} s")
            }
            Self::HungUp => write!(formatter, "the agent at {SOCKET} closed the connection"),
            Self::NotRoot(uid) => write!(formatter, "{SOCKET} is not root's agent: user {uid} listens there"),
            Self::Garbage(Garbage::OtherVersion(version)) => {
                write!(formatter, "the agent at {SOCKET} uses version {version} of the protocol")
            }
            Self::Garbage(Garbage::TooLong | Garbage::Senseless) => {
                write!(formatter, "the answer of the agent at {SOCKET} is invalid")
            }
            Self::TooLong => write!(formatter, "its command line is too long for the agent"),
            Self::Differs(why) => {
                write!(formatter, "the agent uses another policy: {}", visible_lines(why))
            }
            Self::Failed(why) => write!(formatter, "the agent refuses: {}", visible_lines(why)),
            Self::Faulty(why, _) => {
                write!(formatter, "the policy that the agent reads has faults\n{}", visible_lines(why))
            }
        }
    }
}

impl Error for AgentError {}
