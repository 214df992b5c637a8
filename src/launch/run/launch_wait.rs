//! The acquisition of a launch: slots at once, or a wait with one line on a terminal that shows its position.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    ops::ControlFlow,
    os::fd::RawFd,
    thread,
    time::{Duration, Instant, SystemTime},
};

use jiff::Timestamp;

use super::launch_spec::LaunchSpec;
use crate::{
    acquire::{
        AcquireContext, Conversation, Full, HEARTBEAT_INTERVAL, Outcome, Patience, PlaceInLine, Question,
        Reason, SILENCE, Unmet, Waiting, acquire_in_turn, acquire_watched, acquire_with_agent,
    },
    judge::{Request, terms::Demand},
    keeper::{KeeperError, agent::message::Take},
    launch::{HELD, refusals::limits},
    policy::{Affected, Policy, Wait},
    sys::{NameCache, NameWhileWaiting},
    text::{Clock, LivingLine, age, stream, visible},
};

/// The observer of a wait, and its display.
pub(super) struct Watch<'a> {
    /// When it changes, the launch is judged again.
    pub(super) policy: &'a Policy,
    /// When that was. When a time window of the policy ends or begins, the launch is judged again too.
    pub(super) decided: Timestamp,
    pub(super) command: &'a OsStr,
    pub(super) is_quiet: bool,
    /// The request to the agent.
    pub(super) take: Option<&'a Take>,
}

impl Watch<'_> {
    /// Continues until the launch must be judged again.
    fn go_on(&self) -> ControlFlow<()> {
        let times = |moment| self.policy.times_at(moment);
        if self.policy.is_stale() || times(Timestamp::now()) != times(self.decided) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// A launch's position in the order of arrival.
pub(super) struct LaunchWait {
    begun: Instant,
    place: PlaceInLine,
    conversation: Conversation,
    has_waited: bool,
    /// When the time of the whole launch is over, with every keeper.
    over: Option<Instant>,
    /// The shortened waits that were reported to the caller.
    told_cuts: Vec<String>,
}

impl LaunchWait {
    /// The launch has arrived.
    pub(super) fn begin() -> Self {
        Self {
            begun: Instant::now(),
            place: PlaceInLine::default(),
            conversation: Conversation::default(),
            has_waited: false,
            over: None,
            told_cuts: Vec::new(),
        }
    }

    /// How long it waited, if it had to.
    pub(super) fn waited(&self) -> Option<Duration> {
        self.has_waited.then(|| self.begun.elapsed())
    }

    /// When it first waited.
    pub(super) fn since(&self) -> Option<SystemTime> {
        self.place.since()
    }

    /// How long it waited, if its wait timed out.
    pub(super) fn ran_out_after(&self) -> Option<Duration> {
        let is_over = self.time_is_over_at().is_some_and(|over| over <= Instant::now());
        is_over.then(|| self.begun.elapsed())
    }

    /// When its time is over: lock files report it for each queue, the agent for none.
    fn time_is_over_at(&self) -> Option<Instant> {
        self.place.time_is_over_at().or(self.over)
    }

    /// For a launch that waits while the policy has faults: nothing may start, but no launch loses its
    /// position because a file is being edited. If others can start meanwhile, it blocks none of them. Sleeps
    /// briefly, and returns whether there is time left.
    pub(super) fn pause(&mut self, affected: Affected) -> bool {
        let left = self.time_is_over_at().map_or(HEARTBEAT_INTERVAL, |deadline| {
            deadline.saturating_duration_since(Instant::now()).min(HEARTBEAT_INTERVAL)
        });
        let may_wait = self.has_waited && !left.is_zero();
        if may_wait {
            // If a file cannot be written any more, the next attempt reports that. The agent knows no waiter
            // that stands nowhere, so the place there is given up.
            if affected == Affected::Caller {
                let _ = self.place.step_aside();
                self.conversation.end();
            }
            thread::sleep(left);
            let _ = self.place.beat();
            self.conversation.beat();
        }
        may_wait
    }

    /// Acquires the slots, or waits for them as long as it may and the policy does not change.
    pub(super) fn take<'c>(
        &mut self,
        wanted: &'c LaunchSpec,
        asker: &AcquireContext<'_>,
        watch: &Watch<'_>,
    ) -> Result<Outcome<'c>, KeeperError> {
        let (of_agent, others) = wanted.by_keeper();
        if watch.take.is_none() {
            self.conversation.end();
        }
        // A launch that is already in the queue keeps its turn, or its time is over.
        let may_wait = self.has_waited || wanted.may_wait();
        if !may_wait && of_agent.is_empty() {
            return acquire_watched(others, asker, &mut |_| watch.go_on());
        }
        if may_wait {
            stream::keep_deadline();
        }
        if self.has_waited {
            // A new policy without a wait may also make room. Launches ahead decide again within a second.
            // Until then it is unknown whether the time was long enough.
            self.place.spare(SILENCE);
        }
        let deadline = match wanted.longest {
            Some(Wait::For(longest)) => self.begun.checked_add(longest),
            Some(Wait::Forever) | None => None,
        };
        let longest = wanted.longest.or_else(|| wanted.claims().map(|claim| claim.wait.resolve()).max());
        self.over = match longest {
            Some(Wait::For(longest)) => self.begun.checked_add(longest),
            Some(Wait::Forever) | None => None,
        };
        // Others see in the queue which command this process waits for. A start gets its own name.
        let _name = NameWhileWaiting::take(asker.launch.command);
        let mut line = LivingLine::default();
        let mut shown = false;
        let begun = self.begun;
        let cuts = &mut self.told_cuts;
        let mut look = |waiting: Option<&Waiting<'_, '_>>| {
            if let Some(waiting) = waiting.filter(|_| !watch.is_quiet) {
                let blocked =
                    waiting.unmet.iter().flat_map(Unmet::claims).filter(|refused| refused.unwaited.is_none());
                for text in
                    blocked.filter_map(|refused| limits::cut(watch.command, refused.claim, wanted.longest))
                {
                    if !cuts.contains(&text) {
                        line.wipe();
                        stream::complain(&text);
                        cuts.push(text);
                    }
                }
                if line.is_living() || !shown {
                    line.show(&describe(watch.command, waiting, begun.elapsed()));
                }
            }
            shown |= waiting.is_some();
            watch.go_on()
        };
        let mut outcome = if let Some(take) = watch.take {
            let question = Question { demands: of_agent, take };
            let patience = Patience { may_wait, may_end: true, deadline, over: self.over };
            let (conversation, place) = (&mut self.conversation, &mut self.place);
            acquire_with_agent(&question, others, asker, conversation, place, patience, &mut look)
        } else {
            acquire_in_turn(others, asker, &mut self.place, deadline, &mut look)
        };
        match &mut outcome {
            // The program must not have its places.
            Ok(Outcome::Granted(_)) => self.place.leave(),
            // It may have been decided several times.
            Ok(Outcome::Refused(refusal)) => refusal.waited = refusal.waited.map(|_| begun.elapsed()),
            Ok(Outcome::Interrupted) | Err(_) => {}
        }
        self.has_waited |= shown;
        outcome
    }
}

/// `rungate: matlab: waits for seats (50 of 50 used), 2 ahead, 4m12s`
fn describe(command: &OsStr, waiting: &Waiting<'_, '_>, waited: Duration) -> String {
    let claim = waiting.claim;
    let limit = claim.amount.effective_limit();
    let mut refused = waiting.unmet.iter().flat_map(Unmet::claims);
    let use_and_limit = refused
        .find(|refused| std::ptr::eq(refused.claim, claim))
        .and_then(|refused| match &refused.reason {
            // A ceiling is lower than what others may use.
            Reason::Full(full) if full.used() > limit => {
                Some(format!(" ({} used, up to {limit} for this rule)", full.used()))
            }
            Reason::Full(full) => {
                let limit_of =
                    claim.reason_of_limit().map_or_else(String::new, |limit_of| format!(", {limit_of}"));
                Some(format!(" ({} of {limit} used{limit_of})", full.used()))
            }
            _ => None,
        })
        .unwrap_or_default();
    let place = match waiting.ahead() {
        0 => "first in line".to_owned(),
        ahead => format!("{ahead} ahead"),
    };
    let full = waiting.unmet.iter().flat_map(Unmet::claims).find_map(|refused| match &refused.reason {
        Reason::Full(full) if std::ptr::eq(refused.claim, claim) => Some(full),
        _ => None,
    });
    let holder = full.and_then(longest_holder).map_or_else(String::new, |holder| format!("; {holder}"));
    let (command, name) = (visible(command), visible(claim.repository.as_ref()));
    format!("rungate: {command}: waits for {name}{use_and_limit}, {place}, {}{holder}", age(waited))
}

/// `held by PID 8123 ann matlab, since 14:02 (5m)`; of several holders the oldest.
fn longest_holder(full: &Full) -> Option<String> {
    let known = full.known_holders();
    let holder = known.holders.iter().filter(|holder| holder.pid.is_some());
    let holder = holder.min_by_key(|holder| (holder.since.is_none(), holder.since))?;
    let is_only = known.others == 0 && known.holders.iter().all(|other| other.pid == holder.pid);
    let longest = if is_only { "" } else { "longest " };
    let shown = limits::holder(holder, 1, &Clock::now(), &NameCache::new());
    Some(format!("{longest}held by {shown}"))
}

// The request to the agent: the launch as it was judged here, with the environment variables that this
// judgement used. The agent judges itself, by its own policy.

/// The variables that rules use, each with its value.
#[derive(Debug, Default)]
pub(super) struct UsedVariables(RefCell<Vec<(String, Option<OsString>)>>);

impl UsedVariables {
    /// A variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let mut variables = self.0.borrow_mut();
        if let Some((_, value)) = variables.iter().find(|(known, _)| known == name) {
            return value.clone();
        }
        let value = env::var_os(name);
        variables.push((name.to_owned(), value.clone()));
        value
    }

    /// The set variables that rules use, each with whether its value may be logged.
    pub(super) fn logged(&self, policy: &Policy) -> BTreeMap<String, Option<String>> {
        let of = |(name, value): &(String, Option<OsString>)| {
            let value = value.as_ref()?;
            let told = policy.names_value(name, value).then(|| value.to_string_lossy().into_owned());
            Some((name.clone(), told))
        };
        self.0.borrow().iter().filter_map(of).collect()
    }

    /// The request; none if the agent keeps no needed slots.
    pub(super) fn of_agent(
        &self,
        request: &Request<'_>,
        wanted: &LaunchSpec,
        opened: Option<(u64, RawFd)>,
    ) -> Option<Take> {
        let is_asked = wanted.demands.first().is_some_and(Demand::is_of_agent);
        is_asked.then(|| Take {
            typed: request.typed.to_owned(),
            path: request.path.into(),
            canonical: request.canonical.into(),
            directory: request.directory.into(),
            arguments: request.arguments.to_vec(),
            environment: self.0.borrow().clone(),
            held: env::var_os(HELD).unwrap_or_default(),
            hold: wanted.hold,
            wait: wanted.longest,
            may_end: true,
            is_again: false,
            opened: opened.map(|(number, _)| number),
            through: opened.map(|(_, descriptor)| descriptor),
        })
    }
}
