//! A launch's turn: taken at once, or waited for with one living line on a terminal that says where it stands.

use std::{
    ffi::OsStr,
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use crate::{
    output::{age::age, living_line::LivingLine, visible::visible},
    policy::{Policy, Wait},
    repository::{
        acquisition::{self, Launch, Outcome},
        claim::{Claim, Demand},
        error::RepositoryError,
        refused::Reason,
        waiting::{Place, Verdict, Waited, Waiting, acquire_in_turn},
    },
    sys::process::NameWhileWaiting,
};

/// How often a policy that has faults is looked at again.
const LOOK: Duration = Duration::from_secs(1);

/// What a wait is watched by, and shown with.
pub(super) struct Watch<'a> {
    /// When it changes, the launch is decided anew.
    pub(super) policy: &'a Policy,
    /// When that was. Once the policy says of an hour that it is over, or that it has come, the launch is decided anew too.
    pub(super) decided: Timestamp,
    pub(super) command: &'a OsStr,
    pub(super) is_quiet: bool,
}

/// A launch's place in time, from its arrival on.
pub(super) struct Turn {
    begun: Instant,
    place: Place,
    has_waited: bool,
    deadline: Option<Instant>,
}

impl Turn {
    /// The launch has arrived.
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now(), place: Place::default(), has_waited: false, deadline: None }
    }

    /// Whether it had to stand in line.
    pub(super) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// For a launch that stands in line while the policy has faults: nothing may start, but nobody has to lose his place over
    /// a file that is being edited. Sleeps a little, and says whether there is time left.
    pub(super) fn pause(&self) -> bool {
        let left = self
            .deadline
            .map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()).min(LOOK));
        let may_wait = self.has_waited && !left.is_zero();
        if may_wait {
            thread::sleep(left);
        }
        may_wait
    }

    /// How long it has been here.
    pub(super) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Takes the slots, or waits for them as long as it may, and as long as the policy stays what it is.
    pub(super) fn take(
        &mut self,
        demands: &[Demand],
        launch: &Launch<'_>,
        wait: Wait,
        watch: &Watch<'_>,
    ) -> Result<Waited, RepositoryError> {
        let deadline = match wait {
            // One that stood in line already, when the policy still let it, keeps its turn or has run out of time.
            Wait::For(Duration::ZERO) if !self.has_waited => {
                return Ok(match acquisition::acquire(demands, launch)? {
                    Outcome::Admitted(admitted) => Waited::Admitted(admitted),
                    Outcome::Refused(refused) => Waited::Refused(refused),
                });
            }
            Wait::For(longest) => self.begun.checked_add(longest),
            Wait::Forever => None,
        };
        self.deadline = deadline;
        let claims: Vec<&Claim> = demands.iter().flat_map(Demand::options).collect();
        // Others see in the line for which command this process waits. What starts gets a name of its own.
        let _name = NameWhileWaiting::take(launch.command);
        let mut line = LivingLine::default();
        let mut shown = false;
        let begun = self.begun;
        let times = watch.policy.times_at(watch.decided);
        let waited = acquire_in_turn(demands, launch, &mut self.place, deadline, &mut |waiting| {
            if !watch.is_quiet && (line.is_living() || !shown) {
                line.show(&describe(watch.command, waiting, claims[waiting.claim], begun.elapsed()));
            }
            shown = true;
            if watch.policy.is_stale() || watch.policy.times_at(Timestamp::now()) != times {
                Verdict::Stop
            } else {
                Verdict::Wait
            }
        });
        self.has_waited |= shown;
        waited
    }
}

/// `rungate: matlab: waits for seats (50 of 50 used), 2 ahead, 4m12s`
fn describe(command: &OsStr, waiting: &Waiting<'_>, claim: &Claim, waited: Duration) -> String {
    let use_and_limit = waiting
        .refused
        .iter()
        .find(|refused| refused.claim == waiting.claim)
        .and_then(|refused| match refused.reason {
            // A ceiling is lower than what others may use.
            Reason::Full { used, .. } if used > claim.limit => {
                Some(format!(" ({used} used, up to {} for this rule)", claim.limit))
            }
            Reason::Full { used, .. } => Some(format!(" ({used} of {} used)", claim.limit)),
            _ => None,
        })
        .unwrap_or_default();
    let place = match waiting.ahead() {
        0 => "first in line".to_owned(),
        ahead => format!("{ahead} ahead"),
    };
    let (command, name) = (visible(command), visible(&claim.name));
    format!("rungate: {command}: waits for {name}{use_and_limit}, {place}, {}", age(waited))
}
