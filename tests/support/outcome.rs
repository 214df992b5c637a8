//! How a command ended and what it printed.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};

/// What is left of a command that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) ending: Ending,
}

/// The status a process returned, or the signal it died of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    Status(i32),
    Signal(i32),
}

impl Outcome {
    pub(crate) fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("what rungate prints is UTF-8");
        let ending = Ending::from(output.status);
        Self { stdout: text(output.stdout), stderr: text(output.stderr), ending }
    }

    /// Whether a launch started nothing because the agent, or etcd behind it, did not answer within the
    /// seconds for which launches are patient. On a machine that stands still for so long that is right.
    pub(crate) fn lost_its_patience(&self) -> bool {
        let words =
            ["has not answered for", "the site has not been reached for", "no transaction succeeded for"];
        self.ending == Ending::Status(74) && words.iter().any(|words| self.stderr.contains(words))
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Status(code),
            None => Self::Signal(status.signal().expect("a process that returned nothing died of a signal")),
        }
    }
}
