//! A launch that joins no queue: it gets everything at once, or is refused.

use std::time::Instant;

use super::{
    acquire_context::AcquireContext,
    acquisition::{Acquisition, Decided, Outcome},
    clocks::Clocks,
    final_probe::FinalProbe,
    liveness::{LivenessTracker, QueuePosition},
    refusal::Refusal,
    too_late::Endings,
    wait_check::WaitCheck,
};
use crate::{
    judge::terms::claim::Demand,
    keeper::{LONGEST_PATIENCE, PATIENCE, error::KeeperError},
};

/// Acquires the slots of all demands, or nothing; waits for no slot. If only waiters block the launch, it
/// checks for some seconds whether they are alive, and ends overdue holders if that makes room.
pub fn acquire<'c>(
    demands: &'c [Demand<'c>],
    asker: &AcquireContext<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    let mut acquisition = Acquisition::open(demands, asker, &[])?;
    let (looks, clocks) = (LivenessTracker::default(), Clocks::default());
    let (mut endings, mut last_look, begun) = (Endings::default(), FinalProbe::default(), Instant::now());
    loop {
        let newcomer = QueuePosition::newcomer(asker.generation, Some(&looks));
        let (decided, locked) = match acquisition.attempt(newcomer, PATIENCE) {
            Err(error) if error.is_crowded() && begun.elapsed() < LONGEST_PATIENCE => continue,
            attempted => attempted?,
        };
        drop(locked);
        let mut blocked = match decided {
            Decided::Granted(grant) => {
                endings.leave_alone(asker)?;
                return Ok(Outcome::Granted(grant));
            }
            Decided::Blocked(blocked) => blocked,
        };
        if !blocked.is_final() && last_look.goes_on(&acquisition, &mut blocked, newcomer, &mut endings)? {
            continue;
        }
        WaitCheck { standpoint: newcomer, is_new: true, uid: asker.launch.uid, clocks: &clocks, shut: &[] }
            .mark(&acquisition.wants, &mut blocked)?;
        endings.tell(&mut blocked);
        return Ok(Outcome::Refused(Refusal { unmet: blocked.unmet, waited: None }));
    }
}

/// Acquires the slots of all demands, or nothing, in one attempt: for simulated launches. It waits for
/// nothing, not even to show that waiters are alive.
pub fn acquire_at_once<'c>(
    demands: &'c [Demand<'c>],
    asker: &AcquireContext<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    let mut acquisition = Acquisition::open(demands, asker, &[])?;
    let standpoint = QueuePosition::newcomer(asker.generation, None);
    match acquisition.attempt(standpoint, PATIENCE)?.0 {
        Decided::Granted(grant) => Ok(Outcome::Granted(grant)),
        Decided::Blocked(mut blocked) => {
            let clocks = Clocks::default();
            WaitCheck { standpoint, is_new: true, uid: asker.launch.uid, clocks: &clocks, shut: &[] }
                .mark(&acquisition.wants, &mut blocked)?;
            Ok(Outcome::Refused(Refusal { unmet: blocked.unmet, waited: None }))
        }
    }
}
