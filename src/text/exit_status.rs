//! Every exit status of rungate itself. The numbers are those of `sysexits.h` where it has one, of timeout(1)
//! for a wait that timed out, and of the shell for a program that cannot be started.

/// How rungate ends when the program did not start, or when it was not asked to start one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum ExitStatus {
    /// The request was carried out.
    Success = 0,
    /// `policy check` found something wrong; `policy diff` found a difference; `policy edit`
    /// or `policy install` put nothing in place; something is in the way of `shim install` or `shim remove`;
    /// a failure of the `exectimes` command line.
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
