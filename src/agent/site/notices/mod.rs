//! Notices that a host leaves in etcd for another one about a holder there. `giving` has those for launches
//! of this host, `answering` those of other hosts about holders of this host.

mod answering;
mod giving;

pub(in crate::agent::site) use self::answering::ReceivedNotice;

use std::time::{Duration, Instant};

use super::{Reply, SlotRecord};
use crate::keeper::{Overdue, SIGNAL_COUNT};

/// How long a host may take for a reply before a launch that does not wait is refused.
const PATIENCE: Duration = Duration::from_secs(4);

/// After this multiple of the grace, the last signal must have had its effect.
const SIGNALS_WITH_GRACE: u32 = SIGNAL_COUNT - 1;

/// What a launch knows about it.
#[derive(Debug)]
pub(in crate::agent) struct GivenNotice {
    /// The site's name of the table.
    table: String,
    /// One of its slots; with the last one the others become free.
    slot: u64,
    holder: SlotRecord,
    pub(in crate::agent) overdue: Overdue,
    /// Whether it is withdrawn for the moment: the end of the holder would not help to make room.
    pub(in crate::agent) rests: bool,
    /// The user who requests its end; none if it is overdue.
    by: Option<u32>,
    /// By the policy of this host.
    grace: Duration,
    since: Instant,
    reply: Option<Reply>,
}

impl GivenNotice {
    /// Whether it will end this holder, as far as known.
    pub(in crate::agent) fn ends(&self, overdue: &Overdue) -> bool {
        self.reply != Some(Reply::NotOverdue) && self.overdue.is_same(overdue)
    }

    /// Whether a launch that does not wait has waited for its end for long enough.
    fn is_late(&self) -> bool {
        let longest = match self.reply {
            None => PATIENCE,
            Some(_) => self.grace.saturating_mul(SIGNALS_WITH_GRACE).saturating_add(PATIENCE),
        };
        self.since.elapsed() > longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests::overdue;

    impl GivenNotice {
        /// Of a holder on another host, just now.
        pub(in crate::agent) fn of(overdue: Overdue) -> Self {
            let text = r#"{"host":"lab9","agent":"","pid":1,"start":1,"uid":1000,"hold":"process","command":"matlab","rule":"seats","launch":1,"since":1}"#;
            Self {
                table: "seats".to_owned(),
                slot: 1,
                holder: serde_json::from_str(text).expect("a holder"),
                overdue,
                rests: false,
                by: None,
                grace: Duration::ZERO,
                since: Instant::now(),
                reply: None,
            }
        }
    }

    /// A notice of the holder of one slot, which was given at this moment. The grace is 100 s.
    fn given(since: Instant, reply: Option<Reply>) -> GivenNotice {
        let grace = Duration::from_secs(100);
        GivenNotice { grace, since, reply, ..GivenNotice::of(overdue(7, None)) }
    }

    const ENDING: Option<Reply> = Some(Reply::Ending(2));

    /// A holder will free its slots, and no other, unless its host says that it is not overdue.
    #[test]
    fn a_holder_that_is_not_overdue_frees_nothing() {
        for (reply, is_ended) in [(None, true), (ENDING, true), (Some(Reply::NotOverdue), false)] {
            let given = given(Instant::now(), reply);
            assert_eq!([7, 8].map(|pid| given.ends(&overdue(pid, None))), [is_ended, false]);
        }
    }

    /// A launch that does not wait has its answer after 4 s if no reply comes, and otherwise 4 s after the
    /// grace of SIGINT, SIGTERM and SIGKILL is over.
    #[test]
    fn a_launch_waits_for_a_reply_and_then_for_all_signals() {
        let now = Instant::now();
        let later = now.checked_add(Duration::from_secs(3600));
        let ago = |millis| now.checked_sub(Duration::from_millis(millis));
        for (since, reply, is_late) in [
            (later, None, false),
            (ago(4_500), None, true),
            (ago(250_000), ENDING, false),
            (ago(304_500), ENDING, true),
        ] {
            assert_eq!(given(since.expect("a moment"), reply).is_late(), is_late);
        }
    }
}
