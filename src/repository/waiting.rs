//! Waiting for one's turn. A launch stands in the line of one file that blocks it, holds no slot while it waits, and takes
//! its number along when it is blocked elsewhere. It sleeps on the launch right before it; the first in line sleeps on the
//! processes that hold slots. Once a second everybody takes a look, because some things make no sound. Whatever it believes,
//! it takes slots only after everything was looked at again under the mutexes.

use std::time::{Duration, Instant};

use crate::{
    deliberate_fault::DeliberateFault,
    repository::{
        acquisition::{Acquisition, Decided, Launch},
        admitted::Admitted,
        blocking::{Blocked, Line},
        claim::Demand,
        error::RepositoryError,
        file::{LockFile, call},
        line::{self, Number, Ticket, Woken},
        refused::{Reason, Refused},
    },
    sys::pidfd::{self, PidFd},
};

/// How often a waiter looks around when nothing wakes it.
const LOOK: Duration = Duration::from_secs(1);

/// How many holders the first in line waits for by descriptor; the ends of the others are seen at the next look.
const MOST_WATCHED: usize = 256;

/// After so many moves from one line to another a launch keeps its place in all of them.
const MOVES: u32 = 8;

/// How long a launch may keep slots idle that others wait for, because it keeps its place in all lines.
const LONGEST_IDLE: Duration = Duration::from_secs(10);

/// How a wait ended.
#[must_use]
pub enum Waited {
    /// Everything was taken.
    Admitted(Admitted),
    /// It can never be had, or not now, and waiting does not help.
    Refused(Vec<Refused>),
    /// The time ran out.
    TimedOut(Vec<Refused>),
    /// Whoever watches wants the launch to be decided anew.
    Interrupted,
}

/// What is known of a wait, for whoever watches.
pub struct Waiting<'a> {
    /// Every claim that stands in the way.
    pub refused: &'a [Refused],
    /// The claim in whose line the launch stands.
    pub claim: usize,
    file: &'a LockFile,
    limit: u64,
    number: Number,
}

impl Waiting<'_> {
    /// How many launches come first. Counting costs a query for each.
    pub fn ahead(&self) -> usize {
        let before = |waiter: &line::Waiter| waiter.number < self.number && waiter.limit >= self.limit;
        line::waiters(self.file).map_or(0, |waiters| waiters.into_iter().filter(before).count())
    }
}

/// Whether to go on waiting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Go on.
    Wait,
    /// Stop, because the launch has to be decided anew.
    Stop,
}

/// A launch's place in time, kept over several decisions.
#[derive(Default)]
pub struct Place {
    number: Option<Number>,
    tickets: Vec<Ticket>,
    moves: u32,
    idle_since: Option<Instant>,
}

/// Takes what all demands ask for, when it is this launch's turn. `watch` is called when the wait begins, and about once a
/// second.
pub fn acquire_in_turn(
    demands: &[Demand],
    launch: &Launch<'_>,
    place: &mut Place,
    deadline: Option<Instant>,
    watch: &mut dyn FnMut(&Waiting<'_>) -> Verdict,
) -> Result<Waited, RepositoryError> {
    let deadline = deadline.filter(|_| !DeliberateFault::NoDeadline.is_on());
    place.tickets.clear();
    let mut acquisition = Acquisition::open(demands, launch)?;
    let mut watched = Watched::default();
    loop {
        let number = *place.number.get_or_insert_with(Number::now);
        let (decided, mutexes) = acquisition.attempt(number, &mut place.tickets)?;
        let mut blocked = match decided {
            Decided::Admitted(admitted) => {
                place.tickets.clear();
                return Ok(Waited::Admitted(admitted));
            }
            Decided::Blocked(blocked) => blocked,
        };
        let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if blocked.is_final || is_over {
            drop(mutexes);
            acquisition.count_waiting(&mut blocked.refused)?;
            let refused = blocked.refused;
            return Ok(if blocked.is_final { Waited::Refused(refused) } else { Waited::TimedOut(refused) });
        }
        let Line { file, limit, is_behind } = place.stand_in_line(&acquisition, &blocked)?;
        let number = place.number.unwrap_or(number);
        // Asked before the mutexes go: whoever leaves the line after this ends a sleep behind him. Asked later, the last one
        // ahead might be gone, with his slot, and nothing would be left to wake this launch.
        let ahead = line::nearest_older(acquisition.file(file), limit, number)?;
        drop(mutexes);
        let claim = acquisition.choices().find(|choice| choice.file == file);
        let waiting = Waiting {
            refused: &blocked.refused,
            claim: claim.map_or(0, |choice| choice.number),
            file: acquisition.file(file),
            limit,
            number,
        };
        if watch(&waiting) == Verdict::Stop {
            return Ok(Waited::Interrupted);
        }
        // What may happen elsewhere does not wake who sleeps in this line: another alternative may have room, or slots stand
        // idle because of a place that is kept.
        let looks_elsewhere =
            place.idle_since.is_some() || demands.iter().any(|demand| demand.options().len() > 1);
        match ahead {
            Some(ahead)
                if sleep_behind(&waiting, &ahead, deadline, looks_elsewhere, watch)? == Verdict::Stop =>
            {
                return Ok(Waited::Interrupted);
            }
            // Whoever was ahead has left, and with him the only reason not to look whether there is room.
            None if is_behind => {}
            // Only the first in line ends whoever is overdue: those behind it would end more than it takes.
            None if !acquisition.end_overdue(&mut blocked)? => {
                watched.sleep(&blocked.refused, acquisition.file(file), deadline)?;
            }
            Some(_) | None => {}
        }
    }
}

/// Sleeps until the launch ahead is out of the way or the time is over, with a look each second; until the next look at most
/// where everything has to be looked at again.
fn sleep_behind(
    waiting: &Waiting<'_>,
    ahead: &line::Waiter,
    deadline: Option<Instant>,
    looks_elsewhere: bool,
    watch: &mut dyn FnMut(&Waiting<'_>) -> Verdict,
) -> Result<Verdict, RepositoryError> {
    loop {
        let longest = time_to_sleep(deadline);
        if longest.is_zero() {
            return Ok(Verdict::Wait);
        }
        match line::sleep_behind(waiting.file, ahead, longest)? {
            Woken::Left => return Ok(Verdict::Wait),
            Woken::Time if looks_elsewhere => return Ok(Verdict::Wait),
            Woken::Time if watch(waiting) == Verdict::Stop => return Ok(Verdict::Stop),
            Woken::Time => {}
        }
    }
}

fn time_to_sleep(deadline: Option<Instant>) -> Duration {
    deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()).min(LOOK))
}

impl Place {
    /// Sees to it that the launch stands in the line of a file that blocks it, and says which. The mutexes are held.
    fn stand_in_line(
        &mut self,
        acquisition: &Acquisition<'_>,
        blocked: &Blocked,
    ) -> Result<Line, RepositoryError> {
        let has_ticket = |place: &Self, line: &Line| {
            place.tickets.iter().any(|ticket| ticket.is_for(acquisition.file(line.file), line.limit))
        };
        let stays = blocked.files.iter().find(|line| has_ticket(self, line)).copied();
        let here = stays.unwrap_or(blocked.files[0]);
        if stays.is_none() && !self.tickets.is_empty() {
            self.moves += 1;
        }
        if self.moves < MOVES {
            self.tickets.retain(|ticket| ticket.is_for(acquisition.file(here.file), here.limit));
            self.take_ticket(acquisition, here)?;
            return Ok(here);
        }
        for line in &blocked.files {
            self.take_ticket(acquisition, *line)?;
        }
        // With all its tickets kept, a file that does not block it has room that nobody behind it can use.
        let idle = self.tickets.iter().any(|ticket| {
            blocked.files.iter().all(|line| !ticket.is_for(acquisition.file(line.file), line.limit))
        });
        if !idle {
            self.idle_since = None;
        } else if self.idle_since.get_or_insert_with(Instant::now).elapsed() > LONGEST_IDLE {
            self.tickets.retain(|ticket| ticket.is_for(acquisition.file(here.file), here.limit));
            self.idle_since = None;
            self.moves = 0;
        }
        Ok(here)
    }

    fn take_ticket(
        &mut self,
        acquisition: &Acquisition<'_>,
        Line { file, limit, .. }: Line,
    ) -> Result<(), RepositoryError> {
        let file = acquisition.file(file);
        if self.tickets.iter().any(|ticket| ticket.is_for(file, limit)) {
            return Ok(());
        }
        let wanted = *self.number.get_or_insert_with(Number::now);
        let ticket = Ticket::take(file, limit, wanted)?;
        if ticket.number() != wanted {
            // One number in every line: the places under the old one would be older than this launch now is.
            self.tickets.clear();
            self.number = Some(ticket.number());
        }
        self.tickets.push(ticket);
        Ok(())
    }
}

/// The processes that the first in line waits for.
#[derive(Default)]
struct Watched {
    /// By process id; none where the process could not be opened, which is tried once.
    processes: Vec<(i32, Option<PidFd>)>,
}

impl Watched {
    /// Sleeps until one of the holders has ended, at most until the next look. Comes back at once when there are holders that
    /// were not watched yet: they may have ended before they were, so everything has to be looked at once more.
    fn sleep(
        &mut self,
        refused: &[Refused],
        file: &LockFile,
        deadline: Option<Instant>,
    ) -> Result<(), RepositoryError> {
        let keepers = keepers(refused);
        self.processes.retain(|(pid, _)| keepers.contains(pid));
        let mut is_new = false;
        for pid in keepers {
            if self.processes.iter().all(|(watched, _)| *watched != pid) {
                self.processes.push((pid, PidFd::open(pid).ok()));
                is_new = true;
            }
        }
        if is_new {
            return Ok(());
        }
        let open = self.processes.iter().filter_map(|(_, process)| process.as_ref());
        pidfd::wait_for_any(open, time_to_sleep(deadline))
            .map(drop)
            .map_err(|errno| call("wait for the holders of", file.path(), "poll", errno))
    }
}

fn keepers(refused: &[Refused]) -> Vec<i32> {
    let mut keepers = Vec::new();
    for refused in refused {
        let Reason::Full { holders, .. } = &refused.reason else { continue };
        for pid in holders.iter().filter_map(|holder| holder.keeper) {
            if keepers.len() < MOST_WATCHED && !keepers.contains(&pid) {
                keepers.push(pid);
            }
        }
    }
    keepers
}
