//! Slots of the agent, and of lock files beside them. The launch asks the agent first, for all of its slots
//! or none, and then tries the files without waiting. If a file refuses, the agent's slots are released
//! before the launch waits in the queue of the file. When its turn has come there, it asks the agent again.
//! So a launch never waits for one keeper while it holds slots of another. The agent decides; here its
//! answers are converted to those of this process.

use std::time::Instant;

use super::{
    AcquireContext, Acquisition, Conversation, Decided, Grant, HEARTBEAT_INTERVAL, Outcome, Patience,
    PlaceInLine, Question, Watch,
    dry_run::outlook,
    waiting::{acquire_watched, wait_for_turn},
};
use crate::{judge::terms::Demand, keeper::KeeperError};

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
    loop {
        let begun = Instant::now();
        // While it stands in the queue of a file, its turn there can come at any moment. If it has to wait
        // for the agent, it blocks no launch there. One that already waits for the agent stands in no queue.
        let mut taken = None;
        if place.stands() {
            match conversation.take_at_once(question, asker, patience, watch) {
                Ok(None | Some(Outcome::Refused(_))) | Err(_) => place.step_aside()?,
                Ok(outcome) => taken = outcome,
            }
        }
        let taken = match taken {
            Some(taken) => taken,
            None => {
                let taken = conversation.take(question, asker, patience, watch);
                if conversation.has_waited() {
                    place.waited_elsewhere();
                }
                taken?
            }
        };
        let given = match taken {
            // The agent has judged it now. What was decided of the files may be as old as the wait.
            Outcome::Granted(given)
                if !others.is_empty() && begun.elapsed() >= HEARTBEAT_INTERVAL && watch(None).is_break() =>
            {
                given.withdraw()?;
                return Ok(Outcome::Interrupted);
            }
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
        if !patience.may_wait {
            return Ok(match acquire_watched(others, asker, watch)? {
                Outcome::Granted(files) => Outcome::Granted(files.and(given)),
                other => {
                    given.withdraw()?;
                    other
                }
            });
        }
        if let Some(files) = look_once(others, asker, place, patience)? {
            return Ok(Outcome::Granted(files.and(given)));
        }
        given.withdraw()?;
        // It takes nothing there before the agent has granted its part: a start that is written down and does
        // not happen would refuse other launches as too soon.
        match wait_for_turn(others, asker, place, patience.deadline, watch)? {
            Outcome::Granted(_nothing) => {}
            other => return Ok(other),
        }
    }
}

/// Takes the slots of the files if they are free. A launch that was judged again while it waited for them is
/// at its place, in the tables that it has open. If a file stays locked, it waits without the agent's slots.
fn look_once<'c>(
    others: &'c [Demand],
    asker: &AcquireContext<'_>,
    place: &mut PlaceInLine,
    patience: Patience,
) -> Result<Option<Grant<'c>>, KeeperError> {
    let mut acquisition = Acquisition::open(others, asker, &place.tables)?;
    let longest = place.patience(patience.deadline).min(HEARTBEAT_INTERVAL);
    match acquisition.attempt(place.position(asker), longest) {
        Ok((Decided::Granted(grant), _locked)) => {
            place.step_aside()?;
            Ok(Some(grant))
        }
        Ok((Decided::Blocked(_), _)) => Ok(None),
        Err(error) if error.is_busy() => Ok(None),
        Err(error) => Err(error),
    }
}
