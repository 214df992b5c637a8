//! How fast a conversation may go: whoever says more is heard later, and holds up nobody meanwhile.

use std::time::{Duration, Instant};

/// So many messages may come at once after a silence.
const BURST: u32 = 50;

/// What one conversation has said of late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// When all of it would have been said by somebody who says as much as they may, and no faster.
    said: Instant,
}

impl Rate {
    /// Of a conversation that begins.
    pub(super) fn new() -> Self {
        Self { said: Instant::now() }
    }

    /// One message more.
    pub(super) fn say(&mut self, a_second: u32) {
        self.said = self.said.max(Instant::now()) + each(a_second);
    }

    /// Until when no more is heard; none where it may go on.
    pub(super) fn pause(&self, a_second: u32) -> Option<Instant> {
        let until = self.said.checked_sub(each(a_second) * BURST)?;
        (until > Instant::now()).then_some(until)
    }
}

fn each(a_second: u32) -> Duration {
    Duration::from_secs(1) / a_second.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_says_much_at_once_is_heard_again_when_others_would_have_said_as_much() {
        let mut rate = Rate::new();
        for _ in 0..=BURST {
            assert_eq!(rate.pause(1), None);
            rate.say(1);
        }
        let until = rate.pause(1).expect("a pause");
        assert!(until <= Instant::now() + Duration::from_secs(1));
        rate.say(1);
        assert_eq!(rate.pause(1), Some(until + Duration::from_secs(1)));
    }
}
