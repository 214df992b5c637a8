//! The outcome of overdue holders, reported to the launch that needs their slots.

use super::message::{EvictionOutcome, Expired, Reach};
use crate::{
    keeper::{self, Overdue, UnverifiedTarget},
    sys::signals::Signal,
};

impl Expired {
    /// For a holder; none if it is unknown.
    pub fn of(table: &str, overdue: &Overdue, fate: keeper::EvictionOutcome) -> Option<Self> {
        let Overdue { holder, elsewhere, by, slots, .. } = overdue;
        let holder = super::picture::described(holder.clone())?;
        let (table, is_elsewhere) = (table.to_owned(), elsewhere.is_some());
        Some(Self { table, holder, slots: *slots, by: *by, is_elsewhere, fate: sent(fate) })
    }

    /// The same as if this process had ended it; none if the text makes no sense.
    pub fn told(&self) -> Option<(Overdue, keeper::EvictionOutcome)> {
        let fate = told(&self.fate)?;
        let job = match fate {
            keeper::EvictionOutcome::NotProved(doubt) => Err(doubt),
            _ => Ok(self.holder.pid),
        };
        let holder = super::picture::shown(&self.holder);
        let overdue = Overdue {
            elsewhere: holder.host.clone().filter(|_| self.is_elsewhere),
            holder,
            pid: self.holder.pid,
            by: self.by,
            slots: self.slots,
            job,
            may_be_signalled: fate != keeper::EvictionOutcome::NotPermitted,
            with: Vec::new(),
        };
        Some((overdue, fate))
    }
}

fn sent(fate: keeper::EvictionOutcome) -> EvictionOutcome {
    match fate {
        keeper::EvictionOutcome::Ended(signal, reach) => {
            EvictionOutcome::Ended((signal as i32, reach.into()))
        }
        keeper::EvictionOutcome::LeftOthers(signal) => EvictionOutcome::LeftOthers(signal as i32),
        keeper::EvictionOutcome::HadLeft | keeper::EvictionOutcome::NotProved(UnverifiedTarget::Gone) => {
            EvictionOutcome::HadLeft
        }
        keeper::EvictionOutcome::NotPermitted => EvictionOutcome::NotPermitted,
        keeper::EvictionOutcome::NotProved(UnverifiedTarget::Privileged) => EvictionOutcome::Privileged,
        keeper::EvictionOutcome::NotProved(UnverifiedTarget::InTransit) => EvictionOutcome::InTransit,
        keeper::EvictionOutcome::NotProved(UnverifiedTarget::OutOfSight | UnverifiedTarget::NoGuardian) => {
            EvictionOutcome::OutOfSight
        }
        keeper::EvictionOutcome::Survived => EvictionOutcome::Survived,
        keeper::EvictionOutcome::Noticed => EvictionOutcome::Noticed,
        keeper::EvictionOutcome::NotOverdueThere => EvictionOutcome::NotOverdueThere,
    }
}

fn told(fate: &EvictionOutcome) -> Option<keeper::EvictionOutcome> {
    let signal = |number: i32| Signal::try_from(number).ok();
    Some(match fate {
        EvictionOutcome::Ended((number, reach)) => {
            keeper::EvictionOutcome::Ended(signal(*number)?, reach.into())
        }
        EvictionOutcome::LeftOthers(number) => keeper::EvictionOutcome::LeftOthers(signal(*number)?),
        EvictionOutcome::HadLeft => keeper::EvictionOutcome::HadLeft,
        EvictionOutcome::NotPermitted => keeper::EvictionOutcome::NotPermitted,
        EvictionOutcome::Privileged => keeper::EvictionOutcome::NotProved(UnverifiedTarget::Privileged),
        EvictionOutcome::OutOfSight => keeper::EvictionOutcome::NotProved(UnverifiedTarget::OutOfSight),
        EvictionOutcome::InTransit => keeper::EvictionOutcome::NotProved(UnverifiedTarget::InTransit),
        EvictionOutcome::Survived => keeper::EvictionOutcome::Survived,
        EvictionOutcome::Noticed => keeper::EvictionOutcome::Noticed,
        EvictionOutcome::NotOverdueThere => keeper::EvictionOutcome::NotOverdueThere,
    })
}

impl From<keeper::Reach> for Reach {
    fn from(reach: keeper::Reach) -> Self {
        match reach {
            keeper::Reach::Full => Self::Full,
            keeper::Reach::NoGroup => Self::NoGroup,
            keeper::Reach::Partly => Self::Partly,
        }
    }
}

impl From<&Reach> for keeper::Reach {
    fn from(reach: &Reach) -> Self {
        match reach {
            Reach::Full => Self::Full,
            Reach::NoGroup => Self::NoGroup,
            Reach::Partly => Self::Partly,
        }
    }
}
