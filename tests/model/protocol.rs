//! The steps of the protocol: from one state to those that may follow. What the program does in one system call is one step,
//! and between two steps of a process all others may do theirs, or die.

use std::fmt;

use super::{
    state::{At, FILES, PROCESSES, Process, SLOTS, Seen, State},
    steps::AGAIN,
};

/// Which lock is a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hold {
    /// A write lock of the process: no two can have it.
    Process,
    /// A read lock of a description, taken after a query: two can have it, if nothing else keeps them apart.
    Descriptor,
}

/// The protocol, or one of its mistakes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Variant {
    AsItIs,
    /// Nobody takes a mutex.
    WithoutMutex,
    /// Each repository numbers its tickets for itself.
    NumbersOfEachFile,
    /// A claim by a second path has a descriptor of its own, which is closed when the mutexes are given back.
    SecondDescriptor,
}

/// Who wants what, and what may happen meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The limit that counts for each process in each repository, 0 where it wants nothing.
    pub(super) wants: [[u8; FILES]; PROCESSES],
    pub(super) hold: Hold,
    /// How many may be killed.
    pub(super) deaths: u8,
    /// After so many moves from one line to another a process keeps its place in all of them.
    pub(super) moves: u8,
    pub(super) variant: Variant,
}

/// A promise that is not kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Broken {
    /// More slots are held than the limit of the one who was just admitted.
    OverTheCap,
    /// Somebody was admitted before an older one who waits for the same.
    Overtaken,
    /// A program runs without a slot that it took.
    SlotLost,
    /// There is no way on from here to an end of all launches.
    NobodyWakes,
}

/// A step that was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Taken {
    pub(super) process: usize,
    pub(super) step: &'static str,
}

impl fmt::Display for Taken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", ["first", "second", "third", "fourth"][self.process], self.step)
    }
}

/// What may follow, or the promise that it breaks.
pub(super) type Steps = Vec<(Taken, Result<State, Broken>)>;

/// Every step that any process can take.
pub(super) fn steps_from(plan: &Plan, state: &State) -> Steps {
    let mut steps = Vec::new();
    for me in 0..PROCESSES {
        Mover { plan, before: state, me }.steps(&mut steps);
    }
    steps
}

/// One process that is about to take a step.
struct Mover<'a> {
    plan: &'a Plan,
    before: &'a State,
    me: usize,
}

impl Mover<'_> {
    fn this(&self) -> &Process {
        &self.before.processes[self.me]
    }

    fn others(&self) -> impl Iterator<Item = (usize, &Process)> {
        self.before.processes.iter().enumerate().filter(|(number, _)| *number != self.me)
    }

    fn limit(&self, file: usize) -> u8 {
        self.plan.wants[self.me][file]
    }

    /// Its place in the line of a repository: the same number in every line.
    fn number_in(&self, file: usize) -> u8 {
        match (self.plan.variant, self.this().tickets[file]) {
            (Variant::NumbersOfEachFile, 0) => u8::MAX,
            (Variant::NumbersOfEachFile, ticket) => ticket,
            _ => self.this().number,
        }
    }

    /// The next repository that this process wants, from `from` on.
    fn wanted(&self, from: u8) -> Option<u8> {
        (from..=u8::MAX)
            .zip(usize::from(from)..FILES)
            .find(|(_, file)| self.limit(*file) > 0)
            .map(|(file, _)| file)
    }

    fn after(&self, change: impl FnOnce(&mut Process)) -> State {
        let mut state = *self.before;
        change(&mut state.processes[self.me]);
        state
    }

    fn steps(&self, steps: &mut Steps) {
        let mut step = |step, result| steps.push((Taken { process: self.me, step }, result));
        match self.this().at {
            At::Outside => {
                // Two may arrive at one moment of the clock, or time goes on.
                for moment in [self.before.clock, self.before.clock + 1] {
                    let mut state = self.after(|process| {
                        process.at = At::Locking(0);
                        process.number = moment;
                    });
                    state.clock = moment;
                    step("arrive", Ok(state));
                }
            }
            At::Locking(from) => {
                if let Some(state) = self.lock(from) {
                    step("lock a mutex", Ok(state));
                }
            }
            At::Looking(file, again) => {
                step(if again { AGAIN } else { "look for room" }, Ok(self.look(file, again)));
            }
            At::Taking(file) => step("take a slot", self.take(file)),
            At::Queueing => {
                step("stand in line", Ok(self.queue()));
            }
            At::Asking(file) => step("ask who is ahead", Ok(self.ask(file))),
            At::Unlocking(next) => step("give the mutexes back", Ok(self.unlock(next))),
            At::Behind(file, ahead) => {
                if self.before.processes[usize::from(ahead)].tickets[usize::from(file)] == 0 {
                    step("wake behind one who left", Ok(self.after(|process| process.at = At::Locking(0))));
                }
            }
            At::Watching => {
                let holders = self.this().holders;
                if holders & !self.this().watched != 0 {
                    let state = self.after(|process| {
                        process.watched = holders;
                        process.at = At::Locking(0);
                    });
                    step("watch who was not watched yet", Ok(state));
                } else if self
                    .others()
                    .any(|(other, process)| holders & 1 << other != 0 && process.at == At::Gone)
                {
                    step("wake when a holder ends", Ok(self.after(|process| process.at = At::Locking(0))));
                }
            }
            At::Admitted => step(
                "leave the line",
                Ok(self.after(|process| {
                    process.tickets = [0; FILES];
                    process.at = At::Starting;
                })),
            ),
            At::Starting => step("start the program", self.start()),
            At::Running => step("end", Ok(self.after(|process| process.at = At::Closing(0)))),
            At::Closing(file) => step("close a file", Ok(self.close(file))),
            At::Gone => {}
        }
        let is_alive = !matches!(self.this().at, At::Outside | At::Running | At::Closing(_) | At::Gone);
        if is_alive && self.before.deaths > 0 {
            let mut state = self.after(|process| process.at = At::Closing(0));
            state.deaths -= 1;
            step("be killed", Ok(state));
        }
    }

    /// In the order of device and inode; none while somebody else has it.
    fn lock(&self, from: u8) -> Option<State> {
        let Some(file) = self.wanted(from) else {
            let first = self.wanted(0)?;
            return Some(self.after(|process| {
                process.at = At::Looking(first, false);
                process.seen = [Seen::Nothing; FILES];
                process.holders = 0;
            }));
        };
        let next = file + 1;
        let has_mutex = self.plan.variant != Variant::WithoutMutex;
        let file = usize::from(file);
        if has_mutex && self.others().any(|(_, other)| other.mutexes[file]) {
            return None;
        }
        Some(self.after(|process| {
            process.mutexes[file] = has_mutex;
            process.at = At::Locking(next);
        }))
    }

    fn look(&self, file: u8, again: bool) -> State {
        let seen = self.room(usize::from(file));
        let mut state = self.after(|process| process.seen[usize::from(file)] = seen);
        // Whom it would wait for is what it saw when it was refused: one who leaves after that has left a mark.
        let holds = |other: &usize| self.before.processes[*other].slots[usize::from(file)] > 0;
        let holders = (0..PROCESSES).filter(holds).fold(0, |holders, other| holders | 1 << other);
        let process = &mut state.processes[self.me];
        process.holders |= if seen == Seen::Full { holders } else { 0 };
        process.at = match self.wanted(file + 1) {
            Some(next) => At::Looking(next, again),
            None if process.seen.iter().all(|seen| !matches!(seen, Seen::Full | Seen::Behind)) => {
                At::Taking(self.wanted(0).unwrap_or(0))
            }
            None if !again && process.seen.iter().all(|seen| *seen != Seen::Full) => {
                At::Looking(self.wanted(0).unwrap_or(0), true)
            }
            None => At::Queueing,
        };
        state
    }

    fn room(&self, file: usize) -> Seen {
        let limit = self.limit(file);
        if self.ahead(file, self.number_in(file)).is_some() {
            return Seen::Behind;
        }
        if self.before.held(file) >= usize::from(limit) {
            return Seen::Full;
        }
        let is_free = |slot: &u8| self.before.processes.iter().all(|process| process.slots[file] != *slot);
        let slots = 1..=u8::try_from(SLOTS).unwrap_or(0).min(limit);
        slots.clone().find(is_free).map_or(Seen::Full, Seen::Free)
    }

    /// The youngest of those who are older and whose limit is not lower.
    fn ahead(&self, file: usize, number: u8) -> Option<usize> {
        self.others()
            .filter(|(_, other)| other.tickets[file] > 0 && other.tickets[file] < number)
            .filter(|(other, _)| self.plan.wants[*other][file] >= self.limit(file))
            .max_by_key(|(_, other)| other.tickets[file])
            .map(|(other, _)| other)
    }

    fn take(&self, file: u8) -> Result<State, Broken> {
        let index = usize::from(file);
        let Seen::Free(slot) = self.this().seen[index] else { return Ok(*self.before) };
        let is_taken = self.others().any(|(_, other)| other.slots[index] == slot);
        if is_taken && self.plan.hold == Hold::Process {
            // Somebody locked it without the mutex: everything is given back, and it starts over.
            return Ok(self.after(|process| {
                process.slots = [0; FILES];
                process.mutexes = [false; FILES];
                process.at = At::Locking(0);
            }));
        }
        let next = self.wanted(file + 1);
        let state = self.after(|process| {
            process.slots[index] = slot;
            process.at = next.map_or(At::Admitted, At::Taking);
        });
        if next.is_some() {
            return Ok(state);
        }
        for file in (0..FILES).filter(|file| self.limit(*file) > 0) {
            if state.held(file) > usize::from(self.limit(file)) {
                return Err(Broken::OverTheCap);
            }
            if self.ahead(file, self.number_in(file)).is_some() {
                return Err(Broken::Overtaken);
            }
        }
        Ok(state)
    }

    /// In the line of one repository that blocks it; in all of them after it was sent back too often.
    fn queue(&self) -> State {
        let blocks = |file: usize| matches!(self.this().seen[file], Seen::Full | Seen::Behind);
        let blocking: Vec<usize> = (0..FILES).filter(|file| blocks(*file)).collect();
        let stays = blocking.iter().copied().find(|file| self.this().tickets[*file] > 0);
        let here = stays.unwrap_or(blocking[0]);
        let mut state = *self.before;
        let moved = stays.is_none() && self.this().tickets != [0; FILES];
        let process = &mut state.processes[self.me];
        process.moves = (process.moves + u8::from(moved)).min(self.plan.moves);
        let keeps_all = process.moves == self.plan.moves;
        if !keeps_all {
            (0..FILES).filter(|file| *file != here).for_each(|file| process.tickets[file] = 0);
        }
        for file in if keeps_all { blocking.clone() } else { vec![here] } {
            self.take_ticket(&mut state, file);
        }
        let process = &mut state.processes[self.me];
        process.at = At::Asking(u8::try_from(here).unwrap_or(0));
        state
    }

    /// The next free number from its own on, which is its number everywhere from then on.
    fn take_ticket(&self, state: &mut State, file: usize) {
        let (mine, others) = (self.number_in(file), state.processes);
        let process = &mut state.processes[self.me];
        if process.tickets[file] > 0 {
            return;
        }
        if self.plan.variant == Variant::NumbersOfEachFile {
            let last = others.iter().map(|other| other.tickets[file]).max().unwrap_or(0);
            process.tickets[file] = last + 1;
            return;
        }
        let is_free = |number: &u8| {
            others.iter().enumerate().all(|(other, process)| {
                process.tickets[file] != *number
                    || self.plan.wants[other][file] != self.limit(file)
                    || other == self.me
            })
        };
        let number = (mine.max(process.number)..=u8::MAX).find(is_free).unwrap_or(u8::MAX);
        if number != process.number {
            process.tickets = [0; FILES];
            process.number = number;
        }
        process.tickets[file] = number;
    }

    fn ask(&self, file: u8) -> State {
        let index = usize::from(file);
        let ahead = self.ahead(index, self.number_in(index));
        self.after(|process| {
            // What it does when the mutexes are back: behind somebody, at once once more, or first in line.
            process.at = At::Unlocking(match ahead {
                Some(other) => file * 8 + u8::try_from(other).unwrap_or(0) + 2,
                None if process.seen[index] == Seen::Behind => 0,
                None => 1,
            });
        })
    }

    fn unlock(&self, next: u8) -> State {
        self.after(|process| {
            process.mutexes = [false; FILES];
            process.at = match next {
                0 => At::Locking(0),
                1 => At::Watching,
                behind => At::Behind(behind / 8, behind % 8 - 2),
            };
        })
    }

    fn start(&self) -> Result<State, Broken> {
        let state = self.after(|process| {
            process.mutexes = [false; FILES];
            process.at = At::Running;
            // Closing any descriptor of a file drops all locks of the process on it; not those of a description.
            if self.plan.variant == Variant::SecondDescriptor && self.plan.hold == Hold::Process {
                process.slots[0] = 0;
            }
        });
        let keeps = |file: usize| self.limit(file) == 0 || state.processes[self.me].slots[file] > 0;
        if (0..FILES).all(keeps) { Ok(state) } else { Err(Broken::SlotLost) }
    }

    /// The kernel closes one descriptor after the other, and each time drops what is locked through it.
    fn close(&self, file: u8) -> State {
        let index = usize::from(file);
        self.after(|process| {
            process.mutexes[index] = false;
            process.tickets[index] = 0;
            process.slots[index] = 0;
            process.at = if index + 1 < FILES { At::Closing(file + 1) } else { At::Gone };
        })
    }
}
