//! What became of overdue holders, on its way to whoever wanted their slots.

use super::message::{Expired, Fate, Reach};
use crate::{
    keeper::{self, Doubt, Overdue},
    sys::signals::Signal,
};

impl Expired {
    /// Of a holder; none where it is not known who that is.
    pub fn of(table: &str, overdue: &Overdue, fate: keeper::Fate) -> Option<Self> {
        let Overdue { holder, elsewhere, by, slots, .. } = overdue;
        let holder = super::picture::described(holder.clone())?;
        let (table, is_elsewhere) = (table.to_owned(), elsewhere.is_some());
        Some(Self { table, holder, slots: *slots, by: *by, is_elsewhere, fate: sent(fate) })
    }

    /// The same as if this process had ended it; none where what is said makes no sense.
    pub fn told(&self) -> Option<(Overdue, keeper::Fate)> {
        let fate = told(&self.fate)?;
        let job = match fate {
            keeper::Fate::NotProved(doubt) => Err(doubt),
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
            may_be_signalled: fate != keeper::Fate::NotPermitted,
        };
        Some((overdue, fate))
    }
}

fn sent(fate: keeper::Fate) -> Fate {
    match fate {
        keeper::Fate::Ended(signal, reach) => Fate::Ended((signal as i32, reach.into())),
        keeper::Fate::LeftOthers(signal) => Fate::LeftOthers(signal as i32),
        keeper::Fate::HadLeft | keeper::Fate::NotProved(Doubt::Gone) => Fate::HadLeft,
        keeper::Fate::NotPermitted => Fate::NotPermitted,
        keeper::Fate::NotProved(Doubt::Privileged) => Fate::Privileged,
        keeper::Fate::NotProved(Doubt::InTransit) => Fate::InTransit,
        keeper::Fate::NotProved(Doubt::OutOfSight | Doubt::NoGuardian) => Fate::OutOfSight,
        keeper::Fate::Survived => Fate::Survived,
        keeper::Fate::Noticed => Fate::Noticed,
        keeper::Fate::NotOverdueThere => Fate::NotOverdueThere,
    }
}

fn told(fate: &Fate) -> Option<keeper::Fate> {
    let signal = |number: i32| Signal::try_from(number).ok();
    Some(match fate {
        Fate::Ended((number, reach)) => keeper::Fate::Ended(signal(*number)?, reach.into()),
        Fate::LeftOthers(number) => keeper::Fate::LeftOthers(signal(*number)?),
        Fate::HadLeft => keeper::Fate::HadLeft,
        Fate::NotPermitted => keeper::Fate::NotPermitted,
        Fate::Privileged => keeper::Fate::NotProved(Doubt::Privileged),
        Fate::OutOfSight => keeper::Fate::NotProved(Doubt::OutOfSight),
        Fate::InTransit => keeper::Fate::NotProved(Doubt::InTransit),
        Fate::Survived => keeper::Fate::Survived,
        Fate::Noticed => keeper::Fate::Noticed,
        Fate::NotOverdueThere => keeper::Fate::NotOverdueThere,
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
