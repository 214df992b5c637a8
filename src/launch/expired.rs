//! The message about a holder that should be ended.

use std::path::Path;

use crate::{
    keeper::{EvictionOutcome, Overdue, Reach, UnverifiedTarget},
    text::{
        clock::age,
        escape::{Show, visible},
    },
};

/// One line for the launch that wanted the slot; one more with manual steps, if nothing was done.
pub(crate) fn describe(
    repository: &str,
    path: Option<&Path>,
    overdue: &Overdue,
    fate: EvictionOutcome,
) -> String {
    let name = visible(repository);
    let by_hand = by_hand(path);
    let comma = if overdue.by.is_some() { "," } else { "" };
    let (who, subject) = (who(overdue), format!("{}{comma}", who(overdue)));
    match fate {
        EvictionOutcome::Ended(signal, Reach::Full | Reach::Partly) => {
            format!("rungate: {name}: ended {who}, with {}", signal.as_str())
        }
        EvictionOutcome::Ended(signal, Reach::NoGroup) => format!(
            "rungate: {name}: ended {who}, with {} to the process alone: it leads no group of its own",
            signal.as_str()
        ),
        EvictionOutcome::LeftOthers(signal) => format!(
            "rungate: {name}: ended {who}, with {}, but a process that it left behind keeps the slot{by_hand}",
            signal.as_str(),
        ),
        EvictionOutcome::HadLeft => format!("rungate: {name}: {subject} had already exited"),
        EvictionOutcome::NotPermitted => {
            format!("rungate: {name}: {subject} belongs to another user and was not ended")
        }
        EvictionOutcome::NotProved(doubt) => {
            format!("rungate: {name}: {subject} was not ended: {}{by_hand}", why_not(doubt))
        }
        EvictionOutcome::Survived => {
            format!("rungate: {name}: {subject} survived SIGKILL: it hangs in the kernel")
        }
        EvictionOutcome::Noticed => {
            format!("rungate: {name}: {subject} is still running: its host was asked to end it")
        }
        EvictionOutcome::NotOverdueThere => {
            format!(
                "rungate: {name}: {subject} was not ended: by the policy and the clock of its host it is not overdue"
            )
        }
    }
}

/// What an administrator can inspect if nothing proves the holder of a slot.
pub(crate) fn by_hand(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| {
        format!("\n  To see who has its file open (as root): fuser -v {}", path.shown())
    })
}

/// The holder, and by how much it is overdue.
pub(crate) fn who(overdue: &Overdue) -> String {
    let command = overdue.holder.command.as_ref().map_or_else(|| "?".to_owned(), visible);
    let host = overdue.elsewhere.as_ref().map_or_else(String::new, |host| format!(" on {}", visible(host)));
    let by = overdue.by.map_or_else(String::new, |by| format!(", overdue by {}", age(by)));
    format!("PID {} ({command}){host}{by}", overdue.pid)
}

/// Why it is not signalled.
pub(crate) fn why_not(doubt: UnverifiedTarget) -> &'static str {
    match doubt {
        UnverifiedTarget::Gone | UnverifiedTarget::NoGuardian => {
            "nothing proves that it is the job that holds the slot"
        }
        UnverifiedTarget::Privileged => "it runs a set-user-id program",
        UnverifiedTarget::InTransit => {
            "it has ended, and the descriptor that keeps its slot lies in the queue of a socket"
        }
        UnverifiedTarget::OutOfSight => "it cannot be inspected from here",
    }
}
