//! Too soon and too late: a pause between two launches (`IfElapsed` of adaptive locks), and the end of
//! holders that block others for too long (`ExpireAfter`).

use std::time::{Duration, SystemTime};

use super::keyword::Keyword;

/// What a pause counts from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ElapsedFrom {
    /// The last start.
    #[default]
    Start,
    /// The last end.
    End,
}

impl Keyword for ElapsedFrom {
    const WORDS: &'static [(&'static str, Self)] =
        &[("start", ElapsedFrom::Start), ("end", ElapsedFrom::End)];
}

/// What happens to a start that comes too soon.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TooSoon {
    /// It is refused.
    #[default]
    Refuse,
    /// No program is started; rungate prints nothing and exits with 0.
    Ok,
}

impl Keyword for TooSoon {
    const WORDS: &'static [(&'static str, Self)] = &[("refuse", TooSoon::Refuse), ("ok", TooSoon::Ok)];
}

/// What is ended when a holder is overdue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ExpireKill {
    /// The holder.
    #[default]
    Process,
    /// Its process group.
    Group,
}

impl Keyword for ExpireKill {
    const WORDS: &'static [(&'static str, Self)] =
        &[("process", ExpireKill::Process), ("group", ExpireKill::Group)];
}

/// A time that has to pass between two launches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pause {
    /// How long.
    pub length: Duration,
    /// What it counts from.
    pub from: ElapsedFrom,
    /// Whether a launch within it is a failure.
    pub too_soon: TooSoon,
}

impl Pause {
    /// Whether the pause is not over at `now`, if it began at `last`. A moment in the future counts as long
    /// ago: a clock that was set back must not refuse launches.
    pub fn is_on(&self, last: SystemTime, now: SystemTime) -> bool {
        now.duration_since(last).is_ok_and(|ago| ago < self.length)
    }
}

/// When and how a holder that blocks others is ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expiry {
    /// A holder older than this is overdue.
    pub after: Duration,
    /// The time between the signals that end it.
    pub grace: Duration,
    /// What is ended.
    pub kill: ExpireKill,
}

impl Expiry {
    /// The default time between the signals.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// The default for a holder that is ended at a user's request, which may have any age.
    pub const AT_REQUEST: Self =
        Self { after: Duration::ZERO, grace: Self::GRACE, kill: ExpireKill::Process };
}

/// Both, where a repository has them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pace {
    /// Not again within this time.
    pub pause: Option<Pause>,
    /// No longer than this.
    pub expiry: Option<Expiry>,
}
