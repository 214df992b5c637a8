//! Which blocked claims a launch waits for: not those whose wait has timed out, or whose queue is full. A
//! launch that waits in one queue may join every other queue that it needs later; only newcomers find a queue
//! full.

use super::{Blocked, Clocks, QueuePosition, Refused, Sign, Unmet, Unwaited, Wants};
use crate::keeper::{KeeperError, TableId, Waiter};

/// The facts about a launch that decide how long and where it may wait.
#[derive(Clone, Copy)]
pub(super) struct WaitCheck<'a> {
    pub(super) position: QueuePosition<'a>,
    /// Whether it waits in no queue yet, although it may have a number. A launch that has waited in one joins
    /// every other.
    pub(super) is_new: bool,
    pub(super) uid: u32,
    pub(super) clocks: &'a Clocks,
    /// Queues that it found full when it came: waiting in another queue does not let it in.
    pub(super) shut: &'a [TableId],
}

impl WaitCheck<'_> {
    /// Marks the claims that the launch does not wait for, and leaves it the queues of the rest. While the
    /// tables are locked no launch can join a queue, so no queue exceeds its length.
    pub(super) fn mark(&self, wants: &Wants<'_>, blocked: &mut Blocked<'_>) -> Result<(), KeeperError> {
        for refused in blocked.unmet.iter_mut().flat_map(Unmet::claims_mut) {
            refused.unwaited = self.unwaited(wants, refused)?;
        }
        blocked.find_lines();
        Ok(())
    }

    fn unwaited(&self, wants: &Wants<'_>, refused: &Refused<'_>) -> Result<Option<Unwaited>, KeeperError> {
        if refused.line.is_none() {
            return Ok(None);
        }
        if let Some(over) = self.clocks.unwaited(refused.claim, refused.table) {
            return Ok(Some(over));
        }
        if refused.claim.queue.is_endless() || !self.is_new && !self.shut.contains(&refused.table) {
            return Ok(None);
        }
        self.end_of_line(wants, refused)
    }

    fn end_of_line(&self, wants: &Wants<'_>, refused: &Refused<'_>) -> Result<Option<Unwaited>, KeeperError> {
        let queue = refused.claim.queue;
        let table = wants.table(refused.table);
        let mut waiters = table.all_waiters()?;
        waiters.retain(|waiter| !waiter.is_away && Some(waiter.number) != self.position.number);
        // One launch may be in a queue with several classes.
        let count = |waiters: &mut dyn Iterator<Item = &Waiter>| {
            let mut numbers: Vec<_> = waiters.map(|waiter| waiter.number).collect();
            numbers.dedup();
            numbers.len()
        };
        if let Some(most) = queue.per_user {
            let waiting = count(&mut waiters.iter().filter(|waiter| waiter.uid() == Some(self.uid)));
            if waiting >= most as usize {
                return Ok(Some(Unwaited::OwnQueue { waiting, most }));
            }
        }
        if let Some(most) = queue.most {
            let ahead = self.ahead(wants, refused, &waiters)?;
            let waiting = count(&mut ahead.into_iter());
            if waiting >= most as usize {
                return Ok(Some(Unwaited::Queue { waiting, most }));
            }
        }
        Ok(None)
    }

    /// The launches that this one may not overtake.
    fn ahead<'w>(
        &self,
        wants: &Wants<'_>,
        refused: &Refused<'_>,
        waiters: &'w [Waiter],
    ) -> Result<Vec<&'w Waiter>, KeeperError> {
        let Some(line) = refused.line else { return Ok(Vec::new()) };
        let generation = wants.generation_on(line.table, self.position.generation);
        // A launch that begins to wait does so behind all others, whenever it came.
        let number = self.position.number.filter(|_| !self.is_new);
        let position = QueuePosition { number, generation, ..self.position };
        position.all_ahead(wants.table(line.table), line.capacity, waiters)
    }

    /// Checks the waiters of a full queue, and returns whether enough of them are alive.
    pub(super) fn are_alive(&self, wants: &Wants<'_>, refused: &Refused<'_>) -> Result<bool, KeeperError> {
        let (Some(liveness), Some(Unwaited::Queue { most, .. })) = (self.position.liveness, refused.unwaited)
        else {
            return Ok(true);
        };
        let table = wants.table(refused.table);
        let waiters = table.all_waiters()?;
        let mut alive = 0;
        for waiter in self.ahead(wants, refused, &waiters)? {
            alive += usize::from(liveness.look(table, waiter)? == Sign::Alive);
        }
        Ok(alive >= most as usize)
    }
}
