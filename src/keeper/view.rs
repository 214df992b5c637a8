//! What is known of a table at one moment. While the table is locked by this process, what is seen stays
//! true.

use std::time::SystemTime;

use super::{Holder, KeeperError, Look, Record, Vacancy, file, held::Held, memory};
use crate::judge::terms::{ElapsedFrom, Launch, Pause, Terms, name_on_site};

/// A table that is being checked.
pub enum View<'t> {
    /// A lock file.
    File(file::view::View<'t>),
    Memory(&'t memory::Table),
}

impl View<'_> {
    /// When a pause began that is not over at `now`.
    pub fn paused_since(&self, pause: Pause, now: SystemTime) -> Option<SystemTime> {
        let (start, end) = self.stamps();
        let last = match pause.from {
            ElapsedFrom::Start => start,
            ElapsedFrom::End => end,
        };
        // The clock of the other host may be ahead of this one.
        let is_ahead = |last: SystemTime| {
            self.is_of_site() && last.duration_since(now).is_ok_and(|ahead| ahead < pause.length)
        };
        last.filter(|last| pause.is_on(*last, now) || is_ahead(*last))
    }

    /// Whether several hosts keep the table.
    fn is_of_site(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Memory(table) => name_on_site(table.name()).is_some(),
        }
    }

    /// When a program was last started, and when one was last seen to end.
    pub fn stamps(&self) -> (Option<SystemTime>, Option<SystemTime>) {
        match self {
            Self::File(view) => (view.header().last_start, view.header().last_end),
            Self::Memory(table) => table.stamps(),
        }
    }

    /// Whether it is certain, without reading the queue, that no launch waits.
    pub fn is_quiet(&mut self, terms: &Terms) -> Result<bool, KeeperError> {
        Ok(match self {
            Self::File(view) => view.is_quiet_above(terms.limit)?,
            Self::Memory(table) => table.has_no_line(),
        })
    }

    /// The slots that the group of these terms has, by rank, as many as are wanted: to join it takes nothing.
    pub fn shared(&self, terms: &Terms) -> Result<Vec<u64>, KeeperError> {
        Ok(match self {
            Self::File(view) => view.shared(terms)?,
            Self::Memory(table) => table.shared(terms),
        })
    }

    /// Slots that are free and whose taking keeps the limit, or why there are none.
    pub fn vacancy(&mut self, terms: &Terms) -> Result<Vacancy, KeeperError> {
        Ok(match self {
            Self::File(view) => view.vacancy(terms)?,
            Self::Memory(table) => table.vacancy(terms),
        })
    }

    /// The held slots that were seen until now, if seeing them takes a scan.
    pub fn look(&self) -> Option<&Look> {
        match self {
            Self::File(view) => Some(view.look()),
            Self::Memory(_) => None,
        }
    }

    /// Corrects wrong notes of the table that this check has found, if they would mislead others. The table
    /// has to be locked.
    pub fn repair(&mut self) -> Result<(), KeeperError> {
        match self {
            Self::File(view) => Ok(view.mend_hint()?),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Takes back that a launch started now: something could not be written. Nothing fails in memory.
    pub fn withdraw(&self) -> Result<(), KeeperError> {
        match self {
            Self::File(view) => Ok(view.withdraw()?),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Records who took these slots, by which rule, and when.
    pub fn write_down(&mut self, held: &Held, entry: &Entry) -> Result<(), KeeperError> {
        match (self, held) {
            (Self::File(view), Held::File(held)) => match &entry.record {
                Some(record) => Ok(view.write_down(held, record, entry.now)?),
                None => unreachable!("an imagined launch takes nothing of a file"),
            },
            (Self::Memory(table), Held::Memory(held)) => {
                if let Some(holder) = entry.holder() {
                    held.describe(holder);
                }
                table.started(held.slots(), entry.now);
                Ok(())
            }
            (Self::File(_) | Self::Memory(_), _) => {
                unreachable!("slots are written down in the table that they were taken of")
            }
        }
    }
}

/// The record of a launch in every table; each gets its own rule.
pub struct Entry {
    /// None for a simulated launch.
    record: Option<Record>,
    now: SystemTime,
}

impl Entry {
    /// For a launch that is about to acquire its slots.
    pub fn of(launch: &Launch<'_>) -> Self {
        Self { record: Some(Record::of(launch)), now: SystemTime::UNIX_EPOCH }
    }

    /// For a simulated launch, whose identity does not matter.
    pub fn imagined() -> Self {
        Self { record: None, now: SystemTime::UNIX_EPOCH }
    }

    /// The same, taken now.
    #[must_use]
    pub fn at(&self, now: SystemTime) -> Self {
        Self { record: self.record.as_ref().map(|record| record.at(now)), now }
    }

    /// The same as the holder of the slots.
    fn holder(&self) -> Option<Holder> {
        self.record.clone().map(|record| Holder::of_record((0, 0), record))
    }

    /// The rule that asked for the slots of the next table.
    pub fn because_of(&mut self, rule: &str) {
        if let Some(record) = &mut self.record {
            rule.clone_into(&mut record.rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{judge::terms::TooSoon, keeper::Store};

    /// The clock of the host that started last may be ahead. A clock that was set back refuses no launch.
    #[test]
    fn a_start_of_another_host_that_lies_ahead_counts_as_now() {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        let pause = Pause { length: hour, from: ElapsedFrom::Start, too_soon: TooSoon::Refuse };
        let is_paused = |table: &str, last: SystemTime| {
            let table = Store::default().table(table);
            table.started(&[], last);
            View::Memory(&table).paused_since(pause, now).is_some()
        };
        for (ahead, is_on_site) in [(Duration::from_secs(2), true), (2 * hour, false)] {
            assert_eq!(is_paused("site/mail", now + ahead), is_on_site, "{ahead:?}");
            assert!(!is_paused("mail", now + ahead));
        }
        assert!(is_paused("site/mail", now - hour / 2) && is_paused("mail", now - hour / 2));
        assert!(!is_paused("site/mail", now - 2 * hour));
    }
}
