//! How far the mirror is behind. Now and then a read says at which revision the newest key is; when the
//! mirror has got there, it is known how long that took.

use std::time::Duration;

/// What is known of it; times are since boot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Lag {
    /// When a read was sent that the mirror has not caught up with, and which revision it found.
    awaited: Option<(Duration, i64)>,
    /// When the last one was sent that it has caught up with, and how long that took.
    level: Option<(Duration, Duration)>,
}

impl Lag {
    /// A read that was sent then found this revision. One that is still awaited says more.
    pub(super) fn compare(&mut self, sent: Duration, revision: i64) {
        self.awaited.get_or_insert((sent, revision));
    }

    /// The mirror is at this revision now.
    pub(super) fn reach(&mut self, revision: i64, now: Duration) {
        if let Some((sent, _)) = self.awaited.take_if(|(_, awaited)| *awaited <= revision) {
            self.level = Some((sent, now.saturating_sub(sent)));
        }
    }

    /// Everything is read anew: what was awaited may never come.
    pub(super) fn forget(&mut self) {
        self.awaited = None;
    }

    /// By how much it is behind now; none where it was never level. Where nothing was compared for longer
    /// than this, nobody knows what has happened since.
    pub(super) fn at(&self, now: Duration, longest: Duration) -> Option<Duration> {
        let (compared, took) = self.level?;
        let since = |sent: Duration| now.saturating_sub(sent);
        Some(match self.awaited {
            Some((sent, _)) => since(sent),
            None if since(compared) > longest => since(compared),
            None => took,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    fn lag_at(lag: &Lag, second: u64) -> Option<u64> {
        lag.at(Duration::from_secs(second), LONGEST).map(|lag| lag.as_secs())
    }

    #[test]
    fn a_mirror_is_behind_until_it_has_what_a_read_found() {
        let second = Duration::from_secs;
        let mut lag = Lag::default();
        assert_eq!(lag_at(&lag, 9), None);
        lag.compare(second(10), 7);
        lag.reach(7, second(11));
        assert_eq!(lag_at(&lag, 20), Some(1));
        lag.compare(second(30), 9);
        lag.compare(second(50), 10);
        lag.reach(8, second(51));
        assert_eq!(lag_at(&lag, 55), Some(25));
        lag.reach(9, second(56));
        assert_eq!(lag_at(&lag, 57), Some(26));
        // Nobody answers any more.
        assert_eq!(lag_at(&lag, 91), Some(61));
    }
}
