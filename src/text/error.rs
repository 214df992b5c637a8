//! The one error with which a command ends: the message for people, and the status for scripts. The code that
//! creates one knows both; no other code ends the process.

use std::fmt;

use super::escape::Show;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Error {
    status: ExitStatus,
    /// The first line says what and where; further lines, indented by their author, say more.
    text: String,
    /// What the user can do next: a separate sentence.
    advice: Option<String>,
    /// The name of the program, or nothing.
    prefix: &'static str,
}

impl Error {
    pub(crate) fn new(status: ExitStatus, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), advice: None, prefix: "rungate: " }
    }

    /// An error without a prefix: the help for an empty command line.
    pub(crate) fn plain(status: ExitStatus, text: impl Into<String>) -> Self {
        Self { prefix: "", ..Self::new(status, text) }
    }

    /// The same, with advice.
    #[must_use]
    pub(crate) fn advise(mut self, advice: impl Into<Option<String>>) -> Self {
        self.advice = advice.into();
        self
    }

    /// The same, with the contact, as the policy says.
    #[must_use]
    pub(crate) fn contact(mut self, contact: Option<&str>) -> Self {
        if let Some(contact) = contact {
            let line = contact_line(contact);
            self.advice =
                Some(self.advice.map_or_else(|| line.clone(), |advice| format!("{advice}\n{line}")));
        }
        self
    }

    #[must_use]
    pub(crate) fn not_started(mut self, command: &str) -> Self {
        self.text = format!("{command}: not started: {}", self.text);
        self
    }
    /// What happened, without advice.
    pub(crate) fn what(&self) -> &str {
        &self.text
    }

    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }
}

/// The last line of a refusal.
pub(crate) fn contact_line(contact: &str) -> String {
    format!("Contact: {}", contact.shown())
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.prefix, self.text)?;
        match &self.advice {
            Some(advice) => write!(formatter, "\n{advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

// Every exit status of rungate itself. The numbers are those of `sysexits.h` where it has one, of timeout(1)
// for a wait that timed out, and of the shell for a program that cannot be started.

/// The exit status of rungate if no program was started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum ExitStatus {
    /// The request was carried out.
    Success = 0,
    /// `policy check` found a fault, or `policy diff` a difference. `policy edit` or `policy install` put
    /// nothing in place. Something is in the way of `shim install` or `shim remove`. Or the `exectimes`
    /// command line failed.
    Failure = 1,
    /// The command line is wrong (`EX_USAGE`).
    Usage = 64,
    /// Too soon after the last start: `if_elapsed` (`EX_UNAVAILABLE`).
    TooSoon = 69,
    /// A system call, or a look-up of a user or group, failed (`EX_OSERR`).
    System = 71,
    /// A repository cannot be opened, created, locked or trusted (`EX_IOERR`).
    Repository = 74,
    /// A limit is reached and there was no wait; another user edits the policy (`EX_TEMPFAIL`).
    Full = 75,
    /// A `deny` rule, or `unmatched = "refuse"` (`EX_NOPERM`).
    Denied = 77,
    /// The policy is faulty or not trusted, or the claim can never be met (`EX_CONFIG`).
    Policy = 78,
    /// Waited, and the time ran out.
    TimedOut = 124,
    /// The program was found but cannot be executed.
    CannotExecute = 126,
    /// The program was not found.
    NotFound = 127,
}
