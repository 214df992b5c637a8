//! Slots of the agent, and of lock files beside them. The launch asks the agent first, for all of its slots
//! or none, and then tries the files without waiting. If a file refuses, the agent's slots are released
//! before the launch waits in the queue of the file. When its turn has come there, it asks the agent again.
//! So a launch never waits for one keeper while it holds slots of another. While others keep both keepers
//! busy, its turns would never come together. So the agent lets it keep its number once when it gives slots
//! back, and after some moves it keeps its turn at the file for a while. The agent decides; here its answers
//! are converted to those of this process.

use std::{mem, time::Instant};

use super::{
    AcquireContext, Acquisition, Conversation, Decided, HEARTBEAT_INTERVAL, Outcome, Patience, PlaceInLine,
    Question, Watch,
    dry_run::outlook,
    waiting::{acquire_watched, holds, is_over, wait_for_turn},
};
use crate::{
    judge::terms::{Demand, Wait},
    keeper::KeeperError,
};

/// Acquires the slots of the agent and of lock files, all or nothing, and waits as long as it may.
pub fn acquire_with_agent<'c>(
    question: &Question<'_, 'c>,
    others: &'c [Demand],
    asker: &AcquireContext<'_>,
    conversation: &mut Conversation,
    place: &mut PlaceInLine,
    patience: Patience,
    watch: &mut Watch<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    let mut held_at = Instant::now();
    let waits_for_files =
        others.iter().flat_map(Demand::claims).any(|claim| claim.wait.resolve() != Wait::NONE);
    let mut is_its_turn = false;
    loop {
        // While it stands in the queue of a file, its turn there can come at any moment. If it has to wait
        // for the agent, it blocks no launch there. One that already waits for the agent stands in no queue.
        // One that stays there does not ask at once: after a refusal it would be the last at the agent.
        let mut taken = None;
        if place.stands() && !(mem::take(&mut is_its_turn) && place.stays_meanwhile()) {
            match conversation.take_at_once(question, asker, patience, watch) {
                Ok(None | Some(Outcome::Refused(_))) | Err(_) => place.step_aside()?,
                Ok(outcome) => taken = outcome,
            }
        }
        let taken = match taken {
            Some(taken) => taken,
            None => {
                let taken = conversation.take(question, asker, patience, &mut |waiting| {
                    // Without a heartbeat it is passed over.
                    let _ = place.beat_meanwhile();
                    watch(waiting)
                });
                if conversation.has_waited() {
                    place.waited_elsewhere();
                }
                if !matches!(taken, Ok(Outcome::Granted(_))) {
                    place.step_aside()?;
                }
                taken?
            }
        };
        let given = match taken {
            Outcome::Granted(given) => given,
            Outcome::Refused(mut refusal) => {
                // The files were not checked; check whether they would refuse too.
                if let Ok(Some(also)) = outlook(others, asker).refusal {
                    refusal.unmet.extend(also.unmet);
                }
                return Ok(Outcome::Refused(refusal));
            }
            Outcome::Interrupted => return Ok(Outcome::Interrupted),
        };
        if others.is_empty() {
            return Ok(Outcome::Granted(given));
        }
        // The agent has judged it now. What was decided of the files may be as old as the wait.
        let files = if !holds(&mut held_at, watch) {
            Some(Outcome::Interrupted)
        } else if patience.may_wait && waits_for_files {
            look_once(others, asker, place, patience, &mut held_at, watch)?
        } else {
            Some(acquire_watched(others, asker, watch)?)
        };
        let refused = match files {
            Some(Outcome::Granted(files)) => return Ok(Outcome::Granted(files.and(given))),
            other => other,
        };
        match given.withdraw() {
            // It is unknown whether these slots are free. The next request settles that, before the launch
            // waits for the files.
            Err(KeeperError::Agent(error))
                if error.is_unreachable() && patience.may_wait && !is_over(patience.deadline) =>
            {
                continue;
            }
            given_back => given_back?,
        }
        if let Some(refused) = refused {
            return Ok(refused);
        }
        // It takes nothing there before the agent has granted its part: a start that is written down and does
        // not happen would refuse other launches as too soon.
        match wait_for_turn(others, asker, place, patience.deadline, watch)? {
            Outcome::Granted(_nothing) => is_its_turn = true,
            other => return Ok(other),
        }
    }
}

/// Takes the slots of the files if they are free, and the decision holds. None if they are not: then the
/// launch waits, without the agent's slots. A launch that was judged again while it waited for the files is
/// at its place, in the tables that it has open.
fn look_once<'c>(
    others: &'c [Demand],
    asker: &AcquireContext<'_>,
    place: &mut PlaceInLine,
    patience: Patience,
    held_at: &mut Instant,
    watch: &mut Watch<'_>,
) -> Result<Option<Outcome<'c>>, KeeperError> {
    let mut acquisition = Acquisition::open(others, asker, &place.tables)?;
    let longest = place.patience(patience.deadline).min(HEARTBEAT_INTERVAL);
    match acquisition.attempt(place.position(asker), longest) {
        // It may have waited for the locks, or have been stopped.
        Ok((Decided::Granted(grant), _locked)) if !holds(held_at, watch) => {
            grant.withdraw()?;
            Ok(Some(Outcome::Interrupted))
        }
        Ok((Decided::Granted(grant), _locked)) => {
            place.step_aside()?;
            Ok(Some(Outcome::Granted(grant)))
        }
        Ok((Decided::Blocked(_), _)) => Ok(None),
        Err(error) if error.is_busy() => Ok(None),
        Err(error) => Err(error),
    }
}
