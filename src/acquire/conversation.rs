//! The conversation of a launch with the agent, until the launch has its slots or is refused. If the agent
//! fails meanwhile, the launch waits for it and asks again.

use std::{
    cell::RefCell,
    rc::Rc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{AcquireContext, Grant, HEARTBEAT_INTERVAL, Outcome, Refusal, Watch, of_agent, waiting::is_over};
use crate::{
    judge::terms::{Claim, Demand, Location, Unreachable, Wait},
    keeper::{
        AgentError, Client, Granted, KeeperError,
        agent::{
            client,
            message::{Answer, Expired, Refused, Request, Take, WaitState},
        },
    },
    sys::SignalsBlocked,
};

/// How long a launch that may wait retries if the agent is gone or does not answer.
pub const LONGEST_ABSENCE: Duration = Duration::from_secs(30);

/// The pause between two attempts.
const REST: Duration = Duration::from_millis(100);

/// How long a launch waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Whether it waits at all.
    pub may_wait: bool,
    /// Whether overdue holders may be ended for it.
    pub may_end: bool,
    /// The deadline; none if it has none.
    pub deadline: Option<Instant>,
    /// When the longest of its waits is over, if it has been set.
    pub over: Option<Instant>,
}

impl Patience {
    /// How long it waits for an agent that does not answer. A launch that may wait for slots also waits for
    /// their keeper, in the queue or before its first request.
    fn with_agent(self) -> Duration {
        let left = self.over.map(|over| over.saturating_duration_since(Instant::now()));
        let longest =
            if self.may_wait { left.unwrap_or(LONGEST_ABSENCE).min(LONGEST_ABSENCE) } else { Duration::ZERO };
        longest.max(client::PATIENCE)
    }
}

/// The request to the agent, and the claims that its answers refer to.
pub struct Question<'q, 'c> {
    /// The part of the claims that it keeps.
    pub demands: &'c [Demand],
    /// The facts about the launch that do not change while it waits.
    pub take: &'q Take,
}

/// The conversation of a launch and the agent, kept while the launch is judged again: its place in the queue
/// goes with it.
#[derive(Debug, Default)]
pub struct Conversation {
    client: Option<Rc<RefCell<Client>>>,
    /// Whether the agent was reached: one that is gone now is expected back.
    was_reached: bool,
    /// Whether the launch has waited in a queue of the agent.
    has_waited: bool,
    /// Whether a connection broke, or was given up: the agent may have granted slots over it.
    is_again: bool,
}

impl Conversation {
    /// Ends it, because the launch needs nothing more from the agent. This gives up the position in the
    /// queue, and releases slots that were granted meanwhile.
    pub fn end(&mut self) {
        if let Some(client) = self.client.take() {
            // An agent that is gone finds out by itself.
            let _ = client.borrow_mut().say(&Request::GiveBack(false));
        }
    }

    /// Shows that the launch is alive while it has no request. Answers to this belong to no request.
    pub fn beat(&mut self) {
        if let Some(client) = &self.client {
            let mut client = client.borrow_mut();
            // The next request looks for an agent that is gone.
            let _ = client.say(&Request::Beat);
            while let Ok(Some(_)) = client.answer_until(Instant::now()) {
                drop(client.take_descriptor());
            }
        }
    }

    /// Whether the launch has waited in a queue of the agent.
    pub(super) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Asks the agent, and waits for its answer as long as the launch may. It waits for an agent that has
    /// failed. If the agent cannot be reached, the launch starts without its slots, if the policy says so.
    pub(super) fn take<'c>(
        &mut self,
        question: &Question<'_, 'c>,
        asker: &AcquireContext<'_>,
        patience: Patience,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome<'c>, KeeperError> {
        match self.take_if_reached(question, asker, patience, watch) {
            Err(error) if error.is_unreachable() => start_without(question.demands, error),
            taken => Ok(taken?),
        }
    }

    /// The same for a launch that waits for something else meanwhile: none if the agent was reached before,
    /// and is expected back.
    pub(super) fn take_at_once<'c>(
        &mut self,
        question: &Question<'_, 'c>,
        asker: &AcquireContext<'_>,
        patience: Patience,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Outcome<'c>>, KeeperError> {
        let at_once = Patience { may_wait: false, may_end: false, ..patience };
        match self.take_if_reached(question, asker, at_once, watch) {
            Err(error) if error.is_unreachable() && self.was_reached => Ok(None),
            Err(error) if error.is_unreachable() => start_without(question.demands, error).map(Some),
            taken => Ok(Some(taken?)),
        }
    }

    fn take_if_reached<'c>(
        &mut self,
        question: &Question<'_, 'c>,
        asker: &AcquireContext<'_>,
        patience: Patience,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome<'c>, AgentError> {
        let begun = Instant::now();
        let mut lost_at: Option<Instant> = None;
        loop {
            let asked = self.ask(question, asker, patience, watch);
            let error = match asked {
                Ok(QuestionOutcome::Answered(outcome)) => {
                    return Ok(match outcome {
                        Outcome::Refused(refusal) => {
                            // Its time may have been over before the agent checked.
                            let is_over = is_over(patience.deadline);
                            let has_waited = refusal.waited.is_some() || patience.may_wait && is_over;
                            let waited = has_waited.then(|| begun.elapsed());
                            Outcome::Refused(Refusal { waited, ..refusal })
                        }
                        outcome => outcome,
                    });
                }
                Ok(QuestionOutcome::Lost(error)) => {
                    if patience.may_wait && !is_over(patience.deadline) {
                        lost_at = None;
                    }
                    error
                }
                Err(error) => error,
            };
            // The place in the queue goes with the connection.
            if !matches!(error, AgentError::Faulty(_, true)) {
                (self.client, self.is_again) = (None, true);
            }
            if !error.is_unreachable() {
                return Err(error);
            }
            // A launch that has reached the agent repeats its request, if an agent is back soon.
            let longest = patience.with_agent();
            let absent = lost_at.get_or_insert_with(Instant::now).elapsed();
            self.was_reached |= matches!(error, AgentError::HungUp);
            if !self.was_reached || absent >= longest || matches!(error, AgentError::Silent(_)) {
                // A launch that has waited for it expects it no more.
                self.was_reached &= !patience.may_wait;
                return Err(error);
            }
            thread::sleep(REST);
        }
    }

    fn ask<'c>(
        &mut self,
        question: &Question<'_, 'c>,
        asker: &AcquireContext<'_>,
        patience: Patience,
        watch: &mut Watch<'_>,
    ) -> Result<QuestionOutcome<'c>, AgentError> {
        // An answer to an earlier request may still be on its way.
        let mut is_stale = self.client.is_some();
        let client = match &self.client {
            Some(client) => Rc::clone(client),
            None => Rc::new(RefCell::new(Client::connect_within(patience.with_agent())?)),
        };
        self.client = Some(Rc::clone(&client));
        let left = patience.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = match left {
            _ if !patience.may_wait => Some(Wait::NONE),
            Some(left) => Some(Wait::For(left)),
            None => question.take.wait,
        };
        let (may_end, is_again) = (patience.may_end, self.is_again);
        client.borrow_mut().say(&Request::Take(Take { wait, may_end, is_again, ..question.take.clone() }))?;
        let deadline = patience.deadline.filter(|_| patience.may_wait);
        let mut listening = Listening::begin(patience);
        loop {
            let answer = client.borrow_mut().answer_until(listening.until);
            let answer = match answer {
                Ok(Some(answer)) => answer,
                Ok(None) => match listening.advance(&mut client.borrow_mut(), deadline) {
                    Ok(()) => continue,
                    Err(error) => return listening.lost(error),
                },
                Err(error) => return listening.lost(error),
            };
            match answer {
                Answer::Anew => is_stale = false,
                // An ended holder is reported, even if it was ended for an earlier request.
                Answer::Expired(_) => {}
                _ if is_stale => drop(client.borrow_mut().take_descriptor()),
                _ => {}
            }
            self.was_reached = true;
            if is_stale && !matches!(answer, Answer::Expired(_)) {
                continue;
            }
            return Ok(QuestionOutcome::Answered(match answer {
                Answer::Granted(granted) => {
                    let is_for_caller = asker.keepers.inherited.has_carriers();
                    let ends = is_for_caller.then(SignalsBlocked::ends).into_iter().collect();
                    let kept = Granted::over(&client, question.take.opened.is_some())?;
                    let grant = Grant { ends, ..of_agent::grant(question.demands, &granted, kept) };
                    match of_agent::missed(question.demands, &granted) {
                        None => Outcome::Granted(grant),
                        Some(missed) => {
                            // If that fails, the agent is gone.
                            let _ = grant.withdraw();
                            // The policy may have changed since this process judged, or the time.
                            if watch(None).is_continue() {
                                return Err(AgentError::Differs(format!("it acquires nothing in {missed}")));
                            }
                            Outcome::Interrupted
                        }
                    }
                }
                Answer::Refused(refused) => {
                    Outcome::Refused(of_agent::refusal(question.demands, &refused, asker)?)
                }
                Answer::Waits(WaitState { refused, ahead }) => {
                    self.has_waited = true;
                    let seen = of_agent::refusal(question.demands, &refused, asker)?;
                    if of_agent::tell(&seen, ahead, watch).is_break() {
                        return Ok(QuestionOutcome::Answered(Outcome::Interrupted));
                    }
                    listening.hear(refused, deadline);
                    continue;
                }
                Answer::Ends(refused) => {
                    if watch(None).is_break() {
                        return Ok(QuestionOutcome::Answered(Outcome::Interrupted));
                    }
                    listening.hear(refused, deadline);
                    continue;
                }
                Answer::Expired(expired) => {
                    tell_of_end(&expired, question.demands, asker);
                    continue;
                }
                Answer::Done(_) => match listening.stands.take() {
                    Some(refused) => Outcome::Refused(of_agent::refusal(question.demands, &refused, asker)?),
                    None => return Err(AgentError::HungUp),
                },
                Answer::Differs(why) => return Err(AgentError::Differs(why)),
                Answer::Failed(why) => return Err(AgentError::Failed(why)),
                Answer::Faulty((why, keeps)) => return Err(AgentError::Faulty(why, keeps)),
                Answer::Tables(_)
                | Answer::About(_)
                | Answer::Ended(_)
                | Answer::Opened(_)
                | Answer::Challenge(_)
                | Answer::Anew => {
                    continue;
                }
            }));
        }
    }
}

/// How a question ended.
enum QuestionOutcome<'c> {
    Answered(Outcome<'c>),
    /// The agent has answered that the launch waits, or that holders are ended for it, and is gone.
    Lost(AgentError),
}

/// What a launch that listens does next, and when.
struct Listening {
    patience: Patience,
    /// When it sends something, or has received nothing for too long.
    until: Instant,
    /// How long it has received nothing by then.
    silence: Duration,
    /// Its last state, if it waits or holders are ended for it.
    stands: Option<Refused>,
    /// Whether it has told the agent that it no longer waits.
    is_leaving: bool,
}

impl Listening {
    fn begin(patience: Patience) -> Self {
        let silence = patience.with_agent();
        let until = Instant::now() + silence;
        Self { patience, until, silence, stands: None, is_leaving: false }
    }

    /// No answer yet: after a second, or at the deadline, it sends something itself.
    fn hear(&mut self, refused: Refused, deadline: Option<Instant>) {
        self.stands = Some(refused);
        let next = Instant::now() + HEARTBEAT_INTERVAL;
        self.until = deadline.map_or(next, |deadline| deadline.min(next));
    }

    /// The agent is gone. If it did not answer, it may never do so: it may close every connection.
    fn lost<'c>(&self, error: AgentError) -> Result<QuestionOutcome<'c>, AgentError> {
        if self.stands.is_some() { Ok(QuestionOutcome::Lost(error)) } else { Err(error) }
    }

    /// Nothing came until it was time.
    fn advance(&mut self, client: &mut Client, deadline: Option<Instant>) -> Result<(), AgentError> {
        let now = Instant::now();
        let is_over = deadline.is_some_and(|deadline| deadline <= now);
        let is_silent = self.stands.is_none() || self.is_leaving || self.until > now;
        if is_silent {
            return Err(AgentError::Silent(self.silence));
        }
        self.is_leaving = is_over;
        self.silence = if is_over { client::PATIENCE } else { self.patience.with_agent() };
        self.until = now + self.silence;
        client.say(if is_over { &Request::Leave } else { &Request::Beat })
    }
}

/// A holder was to be ended for the launch.
fn tell_of_end(expired: &Expired, demands: &[Demand], asker: &AcquireContext<'_>) {
    let Some((overdue, fate)) = expired.told() else { return };
    let mut claims = demands.iter().flat_map(Demand::claims);
    if let Some(claim) = claims.find(|claim| of_agent::table_of(claim) == Some(&expired.table)) {
        (asker.on_expired)(claim, &overdue, fate);
    }
}

/// For a launch that cannot reach the agent: it starts without the agent's slots, if the policy says so.
fn start_without(demands: &[Demand], error: AgentError) -> Result<Outcome<'_>, KeeperError> {
    let claims: Vec<&Claim> = demands.iter().flat_map(Demand::claims).collect();
    let may_start = |claim: &&Claim| match &claim.location {
        Location::Agent(location) => location.unreachable == Unreachable::Start,
        Location::File(_) | Location::Memory(_) => false,
    };
    if !claims.iter().all(may_start) {
        return Err(error.into());
    }
    Ok(Outcome::Granted(Grant::without_slots(claims, SystemTime::now())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch waits for an agent that is gone as long as for slots, and for half a minute at most. A launch
    /// that does not wait gives it some seconds.
    #[test]
    fn no_launch_waits_for_a_lost_agent_for_longer_than_half_a_minute() {
        let waits = |may_wait, seconds: Option<u64>| {
            let over = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
            Patience { may_wait, may_end: false, deadline: None, over }.with_agent()
        };
        assert_eq!((waits(true, None), waits(true, Some(3600))), (LONGEST_ABSENCE, LONGEST_ABSENCE));
        let left = waits(true, Some(25));
        assert!(left <= Duration::from_secs(25) && left > client::PATIENCE, "{left:?}");
        for (may_wait, seconds) in [(true, Some(0)), (false, None), (false, Some(3600))] {
            assert_eq!(waits(may_wait, seconds), client::PATIENCE);
        }
    }
}
