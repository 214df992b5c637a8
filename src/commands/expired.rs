//! What is said of a holder that was overdue.

use crate::{
    output::{age::age, visible::visible},
    repository::expiry::{Fate, Overdue},
};

/// One line for whoever wanted the slot.
pub(super) fn describe(repository: &str, overdue: &Overdue, fate: Fate) -> String {
    let name = visible(repository);
    let command = overdue.holder.command.as_ref().map_or_else(|| "?".to_owned(), visible);
    let who = format!("PID {} ({command}), overdue by {}", overdue.pid, age(overdue.by));
    match fate {
        Fate::Ended(signal) => format!("rungate: {name}: ended {who}, with {}", signal.as_str()),
        Fate::HadLeft => format!("rungate: {name}: {who}, had left by itself"),
        Fate::NotPermitted => format!("rungate: {name}: {who}, belongs to another user and goes on"),
        Fate::Survived => format!("rungate: {name}: {who}, survived SIGKILL: it hangs in the kernel"),
    }
}
