//! What a waiter of a table waits for, as listings show it: a waiter ahead of it in the queue, or slots.
//! [`Class::passes`](crate::keeper::Class::passes) decides which launches may overtake which, as in the
//! queue.

use crate::{
    keeper::{Holder, Waiter, WaitingProcess, file::table_snapshot::TableSnapshot},
    sys::accounts::NameCache,
    text::escape::visible,
};

/// What one waiter waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WaitsFor {
    /// The nearest waiter ahead that it may not pass.
    Waiter(Waiter),
    /// The only process that holds slots.
    Holder(Holder),
    /// Fewer slots in use than its rule allows: its ceiling is below the limit.
    UseBelow(u64),
    /// As many free slots as it wants.
    Slots(u64),
}

impl WaitsFor {
    /// What the waiter at this position in the queue of a table waits for.
    pub(crate) fn of(survey: &TableSnapshot, place: usize, limit: Option<u64>) -> Self {
        let waiter = &survey.waiting[place];
        let ahead = survey.waiting[..place].iter().rev().find(|older| !waiter.class.passes(older.class));
        if let Some(ahead) = ahead {
            return Self::Waiter(ahead.clone());
        }
        let reach = waiter.class.reach;
        if limit.is_some_and(|limit| reach < limit) {
            return Self::UseBelow((reach + 1).saturating_sub(waiter.wants.unwrap_or(1)).max(1));
        }
        let mut pids: Vec<Option<String>> = survey.holders.iter().map(Holder::shown_pid).collect();
        pids.dedup();
        match (pids.as_slice(), survey.holders.first()) {
            ([Some(_)], Some(holder)) => Self::Holder(holder.clone()),
            _ => Self::Slots(waiter.wants.unwrap_or(1)),
        }
    }

    /// The waiter ahead, if it waits behind one.
    pub(crate) fn waiter(&self) -> Option<&WaitingProcess> {
        match self {
            Self::Waiter(ahead) => Some(&ahead.process),
            Self::Holder(_) | Self::UseBelow(_) | Self::Slots(_) => None,
        }
    }

    /// `PID 9001 cid`, `use below 30`, `2 free slots`
    pub(crate) fn show(&self, names: &NameCache) -> String {
        let process = |pid: Option<String>, uid: Option<u32>| {
            let pid = pid.unwrap_or_else(|| "?".to_owned());
            let user = uid.map_or_else(String::new, |uid| format!(" {}", visible(names.user(uid))));
            format!("PID {pid}{user}")
        };
        match self {
            Self::Waiter(ahead) => process(ahead.process.shown_pid(), ahead.uid()),
            Self::Holder(holder) => process(holder.shown_pid(), holder.uid),
            Self::UseBelow(most) => format!("use below {most}"),
            Self::Slots(1) => "a free slot".to_owned(),
            Self::Slots(slots) => format!("{slots} free slots"),
        }
    }
}
