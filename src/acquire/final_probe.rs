//! The last check before a launch is refused because something is full. For some seconds it tests whether the
//! waiters ahead are alive, and ends overdue holders if that makes room for everything that it wants.

use std::thread;

use super::{
    Acquisition, Blocked, Endings, HEARTBEAT_INTERVAL, MISSED_HEARTBEATS, QueuePosition, Unmet, Unwaited,
    WaitCheck,
};
use crate::keeper::KeeperError;

/// What was done already.
#[derive(Default)]
pub(super) struct FinalProbe {
    looked: u8,
    has_begun_to_end: bool,
}

impl FinalProbe {
    /// Sleeps while this may still change something. Returns whether to decide again.
    pub(super) fn goes_on<'c>(
        &mut self,
        acquisition: &Acquisition<'c, '_>,
        blocked: &mut Blocked<'c>,
        position: QueuePosition<'_>,
        endings: &mut Endings<'c>,
    ) -> Result<bool, KeeperError> {
        let was_going_on = endings.are_going_on();
        if self.looked <= MISSED_HEARTBEATS && blocked.is_by_others_alone()? {
            if !acquisition.look_ahead(blocked, position)? {
                self.sleep();
                return Ok(true);
            }
        } else if self.has_begun_to_end {
            endings.stop_in_vain(blocked, acquisition.asker)?;
        } else if endings.begin(blocked, acquisition.asker)? {
            self.has_begun_to_end = true;
            if !endings.are_going_on() {
                return Ok(true);
            }
        }
        // What was begun while it waited is in vain for a launch that is refused.
        endings.stop_resting(acquisition.asker)?;
        if !endings.are_going_on() {
            // The last of them may have ended only now.
            return Ok(was_going_on);
        }
        // Before the sleep, because the decision was found to hold just now.
        endings.advance(acquisition.asker)?;
        if endings.are_going_on() {
            endings.sleep(HEARTBEAT_INTERVAL)?;
        }
        Ok(true)
    }

    /// The same for claims that the launch does not wait for while it waits for others. A launch ends holders
    /// only if it then gets everything that it needs.
    pub(super) fn goes_on_in_line<'c>(
        &mut self,
        acquisition: &Acquisition<'c, '_>,
        blocked: &mut Blocked<'c>,
        waits: WaitCheck<'_>,
        endings: &mut Endings<'c>,
    ) -> Result<bool, KeeperError> {
        let mut refusing = Blocked { unmet: Vec::new(), lines: Vec::new() };
        refusing.unmet = blocked.unmet.extract_if(.., |unmet| unmet.is_unwaited()).collect();
        let goes_on =
            self.before_refusal(acquisition, &mut refusing, blocked.unmet.is_empty(), waits, endings);
        refusing.unmet.append(&mut blocked.unmet);
        blocked.unmet = refusing.unmet;
        goes_on
    }

    fn before_refusal<'c>(
        &mut self,
        acquisition: &Acquisition<'c, '_>,
        refusing: &mut Blocked<'c>,
        is_all: bool,
        waits: WaitCheck<'_>,
        endings: &mut Endings<'c>,
    ) -> Result<bool, KeeperError> {
        let claims = || refusing.unmet.iter().flat_map(Unmet::claims);
        if claims().any(|refused| matches!(refused.unwaited, Some(Unwaited::Over(_)))) {
            // A launch in that queue has checked this all the time.
            return Ok(false);
        }
        let mut are_alive = true;
        for refused in claims().filter(|refused| refused.unwaited.is_some_and(Unwaited::is_queue)) {
            are_alive &= waits.are_alive(&acquisition.wants, refused)?;
        }
        if !are_alive && self.looked <= MISSED_HEARTBEATS {
            self.sleep();
            return Ok(true);
        }
        refusing.lines = claims().filter_map(|refused| refused.line).collect();
        if is_all {
            return self.goes_on(acquisition, refusing, waits.position, endings);
        }
        if self.looked <= MISSED_HEARTBEATS
            && refusing.is_by_others_alone()?
            && !acquisition.look_ahead(refusing, waits.position)?
        {
            self.sleep();
            return Ok(true);
        }
        Ok(false)
    }

    fn sleep(&mut self) {
        thread::sleep(HEARTBEAT_INTERVAL);
        self.looked += 1;
    }
}
