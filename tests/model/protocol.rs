//! The steps of the protocol: from one state to those that may follow. What the program does in one system
//! call is one step, and between two steps of a process all others may do theirs, or die, or be frozen. A
//! second passes at any moment: then whoever is awake has beaten, and whoever waits has looked.

use std::fmt;

use super::{
    plan::{Hold, Plan, Variant, Want},
    state::{At, FILES, LOOKS, Next, PROCESSES, Process, SLOTS, Seen, State},
};

/// A promise that is not kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Broken {
    /// More slots are held than the limit of the one who was just admitted.
    OverTheCap,
    /// Somebody was admitted before an older one who waits for the same and is alive.
    Overtaken,
    /// A launch that does not wait was refused because of others, none of whom was alive.
    RefusedInVain,
    /// Somebody began to wait behind as many as may.
    LineTooLong,
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
        let process = ["first", "second", "third", "fourth", "everybody"][self.process];
        write!(formatter, "{process}: {}", self.step)
    }
}

/// What may follow, or the promise that it breaks.
pub(super) type Steps = Vec<(Taken, Result<State, Broken>)>;

/// Every step that any process can take, and what happens to all of them.
pub(super) fn steps_from(plan: &Plan, state: &State) -> Steps {
    let mut steps = Vec::new();
    for me in 0..PROCESSES {
        let mover = Mover { plan, before: state, me };
        mover.befall(&mut steps);
        if !mover.this().is_frozen {
            mover.steps(&mut steps);
        }
    }
    if plan.changes && state.policy == 0 {
        let changed = State { policy: 1, ..*state };
        steps.push((Taken { process: PROCESSES, step: "see the policy change" }, Ok(changed)));
    }
    let later = a_second_later(plan, state);
    if later != *state {
        steps.push((Taken { process: PROCESSES, step: "beat, and look who else does" }, Ok(later)));
    }
    steps
}

/// Only where somebody is frozen does it matter that time passes.
fn a_second_later(plan: &Plan, before: &State) -> State {
    let mut state = *before;
    for (other, process) in before.processes.iter().enumerate().filter(|(_, process)| process.is_frozen) {
        if plan.variant == Variant::SecondsAreCounted {
            state.quiet[other] = (state.quiet[other] + 1).min(LOOKS);
        }
        for looker in state.processes.iter_mut().filter(|looker| looker.is_awake() && looker.is_waiting()) {
            if process.places != [0; FILES] {
                looker.looks[other] = (looker.looks[other] + 1).min(LOOKS);
            }
        }
    }
    state
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

    fn want(&self) -> Want {
        self.plan.wants[usize::from(self.this().policy)][self.me]
    }

    fn limit(&self, file: usize) -> u8 {
        self.want().limits[file]
    }

    fn waits(&self) -> bool {
        self.plan.newcomers >> self.me & 1 == 0
    }

    /// What others read from its standing lock: its limit, and the policy that gave it.
    fn class(&self, file: usize) -> u8 {
        1 + self.this().policy * 2 + self.limit(file) - 1
    }

    /// The next repository, from `from` on, of which this holds.
    fn next(from: u8, holds: impl Fn(usize) -> bool) -> Option<u8> {
        (from..).zip(usize::from(from)..FILES).find(|(_, file)| holds(*file)).map(|(file, _)| file)
    }

    fn wanted(&self, from: u8) -> Option<u8> {
        Self::next(from, |file| self.limit(file) > 0)
    }

    fn first_wanted(&self) -> u8 {
        self.wanted(0).unwrap_or(0)
    }

    fn blocks(&self, file: usize) -> bool {
        matches!(self.this().seen[file], Seen::Full | Seen::Behind)
    }

    fn after(&self, change: impl FnOnce(&mut Process)) -> State {
        let mut state = *self.before;
        change(&mut state.processes[self.me]);
        state
    }

    /// What happens to a process, and what it does not do itself.
    fn befall(&self, steps: &mut Steps) {
        let mut step = |step, state| steps.push((Taken { process: self.me, step }, Ok(state)));
        let Process { at, is_frozen, .. } = *self.this();
        if matches!(at, At::Outside | At::Running | At::Closing(_) | At::Gone) {
            return;
        }
        if self.before.deaths > 0 {
            let mut state = self.after(|process| {
                process.at = At::Closing(0);
                process.is_frozen = false;
            });
            state.deaths -= 1;
            step("be killed", state);
        }
        if self.before.freezes > 0 && !is_frozen {
            let mut state = self.after(|process| process.is_frozen = true);
            state.freezes -= 1;
            step("be frozen", state);
        }
        if self.before.thaws > 0 && is_frozen {
            // Its first beat restores it.
            let mut state = self.after(|process| process.is_frozen = false);
            state.thaws -= 1;
            state.quiet[self.me] = 0;
            state.processes.iter_mut().for_each(|looker| looker.looks[self.me] = 0);
            step("go on, and beat", state);
        }
    }

    fn steps(&self, steps: &mut Steps) {
        let mut step = |step, result| steps.push((Taken { process: self.me, step }, result));
        let is_stale = self.this().policy != self.before.policy;
        let again = |process: &mut Process| process.at = At::Locking(self.first_wanted());
        match self.this().at {
            At::Outside => {
                step("arrive", Ok(self.after(|process| self.decide(process))));
            }
            At::Locking(from) => self.lock(from, &mut step),
            At::Looking(file) => {
                let looked = self.look(file);
                let leaves = |state: &State| state.processes[self.me].at == At::Unlocking(Next::Leave);
                let is_refused = self.waits() && looked.as_ref().is_ok_and(leaves);
                step(if is_refused { "find a line at its end" } else { "look for room" }, looked);
            }
            At::Taking(file) => step("take a slot", self.take(file)),
            At::Numbering(file) => step("ask for the highest place", Ok(self.number(file))),
            At::Placing(file) => step("take a place", Ok(self.place(file))),
            At::Standing(file) => step("stand in line", self.stand(file)),
            At::Asking => step("ask who is ahead", Ok(self.ask())),
            At::Unlocking(next) => {
                step(
                    "give the mutexes back",
                    Ok(self.after(|process| {
                        process.mutexes = [false; FILES];
                        process.at = match next {
                            Next::Ask => At::Asking,
                            Next::Peek => At::Peeking,
                            Next::Leave => At::Closing(0),
                        };
                    })),
                );
            }
            At::Behind(..) | At::Watching | At::Peeking if is_stale => {
                step("decide anew", Ok(self.decide_anew()));
            }
            At::Behind(file, ahead, key) => {
                let other = &self.before.processes[usize::from(ahead)];
                if Self::key(other, usize::from(file)) != key {
                    step("wake behind one who left", Ok(self.after(again)));
                } else if self.is_silent(usize::from(ahead)) {
                    step(
                        "pass one who does not beat",
                        Ok(self.after(|process| {
                            process.passed |= 1 << ahead;
                            again(process);
                        })),
                    );
                }
                self.look_around(&mut step);
            }
            At::Watching => {
                self.watch(&mut step);
                self.look_around(&mut step);
            }
            At::Peeking => self.peek(&mut step),
            At::Leaving(file) => step("leave the line", Ok(self.leave(file))),
            At::Starting => step("start the program", self.start()),
            At::Running if self.plan.endless >> self.me & 1 == 1 => {}
            At::Running => step("end", Ok(self.after(|process| process.at = At::Closing(0)))),
            At::Closing(file) => step("close a file", Ok(self.close(file))),
            At::Gone => {}
        }
    }

    /// In the order of device and inode; none while somebody else has it. Nobody keeps others from a
    /// repository because of another one whose mutex cannot be available.
    fn lock(&self, from: u8, step: &mut impl FnMut(&'static str, Result<State, Broken>)) {
        let Some(file) = self.wanted(from) else {
            let first = self.first_wanted();
            step(
                "lock a mutex",
                Ok(self.after(|process| {
                    process.at = At::Looking(first);
                    process.seen = [Seen::Nothing; FILES];
                    process.holders = 0;
                    process.judged = 0;
                })),
            );
            return;
        };
        let has_mutex = self.plan.variant != Variant::WithoutMutex;
        let index = usize::from(file);
        if !has_mutex || self.others().all(|(_, other)| !other.mutexes[index]) {
            step(
                "lock a mutex",
                Ok(self.after(|process| {
                    process.mutexes[index] = has_mutex;
                    process.at = At::Locking(file + 1);
                })),
            );
        } else if self.this().has_mutex()
            && self.before.is_stuck(index)
            && self.plan.variant != Variant::MutexesKept
        {
            step(
                "give back what it has of the mutexes",
                Ok(self.after(|process| {
                    process.mutexes = [false; FILES];
                    process.at = At::Locking(self.first_wanted());
                })),
            );
        }
    }

    fn look(&self, file: u8) -> Result<State, Broken> {
        let index = usize::from(file);
        let seen = self.room(index);
        let mut state = self.after(|process| {
            process.seen[index] = seen;
            let silent = (0..PROCESSES).filter(|other| process.looks[*other] >= LOOKS);
            process.judged |= silent.fold(0, |bits, other| bits | 1_u8 << other);
        });
        // Whom it would wait for is what it saw when it was refused: one who leaves after that has left a
        // mark.
        if seen == Seen::Full {
            let holders = self.others().filter(|(_, other)| other.slots[index] > 0);
            let bits = holders.fold(0, |bits, (number, _)| bits | 1_u8 << number);
            state.processes[self.me].holders |= bits;
        }
        let next = self.wanted(file + 1);
        let process = &mut state.processes[self.me];
        if let Some(next) = next {
            process.at = At::Looking(next);
            return Ok(state);
        }
        process.passed = 0;
        let free = |seen: &Seen| matches!(seen, Seen::Free(_));
        let blocked = process.seen.iter().any(|seen| matches!(seen, Seen::Full | Seen::Behind));
        if self.want().any
            && let Some(chosen) = process.seen.iter().position(free)
        {
            (0..FILES).filter(|file| *file != chosen).for_each(|file| process.seen[file] = Seen::Nothing);
            process.at = At::Taking(u8::try_from(chosen).unwrap_or(0));
        } else if !blocked {
            process.at = At::Taking(self.first_wanted());
        } else if !self.waits() {
            let is_full = process.seen.contains(&Seen::Full);
            let looks = !is_full && self.plan.variant != Variant::NewcomersDoNotLook;
            process.at = At::Unlocking(if looks { Next::Peek } else { Next::Leave });
            let is_frozen = |other: usize| self.before.processes[other].is_frozen;
            let was_in_vain = !is_full && (0..FILES).all(|file| self.truly_ahead(file).all(is_frozen));
            if !looks && was_in_vain {
                return Err(Broken::RefusedInVain);
            }
        } else {
            let seen = process.seen;
            let is_newcomer = self.this().number == 0 && self.plan.variant != Variant::LinesDoNotEnd;
            let ends =
                |file: usize| matches!(seen[file], Seen::Full | Seen::Behind) && self.is_at_its_end(file);
            process.at = if is_newcomer && (0..FILES).any(ends) {
                At::Unlocking(Next::Leave)
            } else {
                self.where_to_stand(seen)
            };
        }
        Ok(state)
    }

    /// Whether as many wait as may, of those whom it would have to let go first.
    fn is_at_its_end(&self, file: usize) -> bool {
        let ahead = self.others().filter(|(other, process)| {
            let class = process.standing[file];
            class > 0 && !self.may_pass(class, file) && !self.is_silent(*other)
        });
        self.plan.queue[file] > 0 && ahead.count() >= usize::from(self.plan.queue[file])
    }

    /// Straight to its lines, if it has a place in all of its repositories.
    fn where_to_stand(&self, seen: [Seen; FILES]) -> At {
        let places = self.this().places;
        let needs = |file: usize| self.needs_place(file, seen);
        if (0..FILES).all(|file| !needs(file) || places[file] > 0) {
            return At::Standing(0);
        }
        At::Numbering(Self::next(0, needs).unwrap_or(0))
    }

    fn needs_place(&self, file: usize, seen: [Seen; FILES]) -> bool {
        let is_blocked = matches!(seen[file], Seen::Full | Seen::Behind);
        self.limit(file) > 0 && (is_blocked || self.plan.variant != Variant::PlacesWhereBlocked)
    }

    fn room(&self, file: usize) -> Seen {
        let limit = self.limit(file);
        if self.before.held(file) >= usize::from(limit) {
            return Seen::Full;
        }
        let passes = self.plan.variant == Variant::NewcomersPass && !self.waits();
        if !passes && self.ahead(file).is_some() {
            return Seen::Behind;
        }
        let is_free = |slot: &u8| self.before.processes.iter().all(|process| process.slots[file] != *slot);
        let slots = 1..=u8::try_from(SLOTS).unwrap_or(0).min(limit);
        slots.clone().find(is_free).map_or(Seen::Full, Seen::Free)
    }

    /// The youngest of those who are older, alive, and not to be passed.
    fn ahead(&self, file: usize) -> Option<usize> {
        let mine = match self.this().places[file] {
            0 => u8::MAX,
            place => place,
        };
        self.others()
            .filter(|(_, other)| other.standing[file] > 0 && other.places[file] < mine)
            .filter(|(_, other)| !self.may_pass(other.standing[file], file))
            .filter(|(other, _)| !self.is_silent(*other))
            .max_by_key(|(_, other)| other.places[file])
            .map(|(other, _)| other)
    }

    /// Whether a lower limit is a reason to pass somebody: only one that the same policy gave.
    fn may_pass(&self, class: u8, file: usize) -> bool {
        let (generation, limit) = ((class - 1) / 2, (class - 1) % 2 + 1);
        let is_alike = generation == self.this().policy || self.plan.variant == Variant::WithoutGeneration;
        is_alike && limit < self.limit(file)
    }

    fn is_silent(&self, other: usize) -> bool {
        let looks = self.this().looks[other];
        match self.plan.variant {
            Variant::WithoutSilence => false,
            Variant::SecondsAreCounted => self.before.quiet[other] >= LOOKS,
            Variant::JudgedBeforeTheMutex => looks >= LOOKS || self.this().passed >> other & 1 == 1,
            _ => looks >= LOOKS,
        }
    }

    /// Who waits for this repository since before this launch began to wait, with no lower limit, and could
    /// use it now.
    fn truly_ahead(&self, file: usize) -> impl Iterator<Item = usize> {
        let limits = &self.plan.wants[usize::from(self.this().policy)];
        let older = if self.this().waits == 0 { u8::MAX } else { self.this().older };
        self.others()
            .filter(move |(other, process)| older >> other & 1 == 1 && process.waits >> file & 1 == 1)
            .filter(move |(other, process)| {
                let want = self.plan.wants[usize::from(process.policy)][*other];
                let is_all_it_needs = want.any || process.waits == 1 << file;
                is_all_it_needs || process.standing[file] > 0
            })
            .filter(move |(other, _)| limits[*other].limits[file] >= self.limit(file))
            .map(|(other, _)| other)
    }

    fn take(&self, file: u8) -> Result<State, Broken> {
        let index = usize::from(file);
        let Seen::Free(slot) = self.this().seen[index] else { return Ok(*self.before) };
        let is_taken = self.others().any(|(_, other)| other.slots[index] == slot);
        if is_taken && self.plan.hold == Hold::Process {
            // Somebody locked it without the mutex: everything is released, and it starts over.
            return Ok(self.after(|process| {
                process.slots = [0; FILES];
                process.mutexes = [false; FILES];
                process.at = At::Locking(self.first_wanted());
            }));
        }
        let is_chosen = |file: usize| matches!(self.this().seen[file], Seen::Free(_));
        let next = Self::next(file + 1, is_chosen);
        let state = self.after(|process| {
            process.slots[index] = slot;
            process.at = next.map_or(At::Leaving(0), At::Taking);
        });
        if next.is_some() {
            return Ok(state);
        }
        for file in (0..FILES).filter(|file| is_chosen(*file)) {
            if state.held(file) > usize::from(self.limit(file)) {
                return Err(Broken::OverTheCap);
            }
            if self.truly_ahead(file).any(|other| self.this().judged >> other & 1 == 0) {
                return Err(Broken::Overtaken);
            }
        }
        Ok(state)
    }

    /// One more than the highest in any of its repositories. A launch that has one keeps it, or takes the
    /// next that is free in all, where it wants others than before.
    fn number(&self, file: u8) -> State {
        let needs = |file: usize| self.needs_place(file, self.this().seen);
        let had = self.this().places.into_iter().max().filter(|place| *place > 0);
        if let Some(had) = had {
            let is_free = |number: &u8| {
                self.others()
                    .all(|(_, other)| (0..FILES).all(|file| !needs(file) || other.places[file] != *number))
            };
            let number = (had..u8::MAX).find(is_free).unwrap_or(had);
            return self.after(|process| {
                process.number = number;
                process.at = At::Placing(Self::next(0, needs).unwrap_or(0));
            });
        }
        let highest = self.others().map(|(_, other)| other.places[usize::from(file)]).max().unwrap_or(0);
        let next = Self::next(file + 1, needs);
        self.after(|process| {
            process.number = process.number.max(highest);
            match next {
                Some(next) => process.at = At::Numbering(next),
                None => {
                    process.number += 1;
                    process.at = At::Placing(Self::next(0, needs).unwrap_or(0));
                }
            }
        })
    }

    fn place(&self, file: u8) -> State {
        let index = usize::from(file);
        let needs = |file: usize| self.needs_place(file, self.this().seen);
        let highest = self.others().map(|(_, other)| other.places[index]).max().unwrap_or(0);
        let next = Self::next(file + 1, needs);
        let mut state = self.after(|process| {
            process.places[index] = match self.plan.variant {
                Variant::NumbersOfEachFile if process.places[index] > 0 => process.places[index],
                Variant::NumbersOfEachFile => highest + 1,
                _ => process.number,
            };
            process.at = next.map_or(At::Standing(0), At::Placing);
        });
        if next.is_none() {
            self.tell_the_truth(&mut state);
        }
        state
    }

    /// Who is older than whom, from now on. Whoever has to take a later number is younger than it was.
    fn tell_the_truth(&self, state: &mut State) {
        let wanted =
            (0..FILES).filter(|file| self.limit(*file) > 0).fold(0, |bits, file| bits | 1_u8 << file);
        let has_waited = self.this().waits != 0;
        let me = state.processes[self.me];
        let had = self.this().places.into_iter().max().unwrap_or(0);
        let is_later = has_waited && had != me.number;
        let others = self.others().filter(|(_, other)| other.waits & wanted != 0);
        let older = others
            .filter(|(_, other)| !has_waited || other.places.into_iter().max().unwrap_or(0) < me.number)
            .fold(0, |bits, (other, _)| bits | 1_u8 << other);
        for process in state.processes.iter_mut().filter(|_| is_later) {
            process.older &= !(1 << self.me);
        }
        let process = &mut state.processes[self.me];
        process.older = if is_later { older } else { process.older | older };
        process.waits = wanted;
    }

    /// In the line of each repository that blocks it and of no other; of all of them after it was sent back
    /// too often.
    fn stand(&self, file: u8) -> Result<State, Broken> {
        let index = usize::from(file);
        let standing = self.this().standing;
        let mut state = *self.before;
        let process = &mut state.processes[self.me];
        if file == 0 {
            let moved = (0..FILES).any(|file| standing[file] > 0 && !self.blocks(file));
            process.moves = (process.moves + u8::from(moved)).min(self.plan.moves);
        }
        let keeps_all = process.moves == self.plan.moves && self.limit(index) > 0;
        let only_first = self.plan.variant == Variant::OneLineForAny
            && self.want().any
            && (0..index).any(|file| self.blocks(file));
        let stands = (self.blocks(index) || keeps_all) && !only_first && process.places[index] > 0;
        process.standing[index] = if stands { self.class(index) } else { 0 };
        process.at = if index + 1 < FILES { At::Standing(file + 1) } else { At::Unlocking(Next::Ask) };
        if stands && standing == [0; FILES] && self.is_at_its_end(index) {
            return Err(Broken::LineTooLong);
        }
        Ok(state)
    }

    /// What tells one standing lock from another.
    fn key(process: &Process, file: usize) -> u8 {
        if process.standing[file] == 0 { 0 } else { process.places[file] * 8 + process.standing[file] }
    }

    fn ask(&self) -> State {
        let stands = |file: &usize| self.this().standing[*file] > 0 && self.blocks(*file);
        let ahead: Vec<(usize, Option<usize>)> =
            (0..FILES).filter(stands).map(|file| (file, self.ahead(file))).collect();
        let is_head = |file: usize| ahead.contains(&(file, None));
        let again = At::Locking(self.first_wanted());
        let at = if (0..FILES).any(|file| is_head(file) && self.this().seen[file] == Seen::Behind) {
            // Whoever was ahead has left, and with them the only reason not to take what is free.
            again
        } else if (0..FILES).any(is_head) {
            At::Watching
        } else if let Some((file, Some(other))) = ahead.first() {
            let key = Self::key(&self.before.processes[*other], *file);
            let number = |index: usize| u8::try_from(index).unwrap_or(0);
            At::Behind(number(*file), number(*other), key)
        } else {
            again
        };
        self.after(|process| process.at = at)
    }

    fn watch(&self, step: &mut impl FnMut(&'static str, Result<State, Broken>)) {
        let Process { holders, watched, .. } = *self.this();
        let has_ended = |(other, process): &(usize, &Process)| {
            holders & watched & 1 << other != 0 && process.at == At::Gone
        };
        if holders & !watched != 0 {
            let state = self.after(|process| {
                process.watched = holders;
                process.at = At::Locking(self.first_wanted());
                if self.plan.variant == Variant::WatchedTooLate {
                    let gone = self.others().filter(|(_, other)| other.at == At::Gone);
                    process.holders &= !gone.fold(0, |bits, (other, _)| bits | 1_u8 << other);
                    process.at = At::Watching;
                }
            });
            step("watch who was not watched yet", Ok(state));
        } else if self.others().any(|other| has_ended(&other)) {
            let state = self.after(|process| process.at = At::Locking(self.first_wanted()));
            step("wake when a holder ends", Ok(state));
        }
    }

    /// Whoever stands in several lines sleeps on what happens in one, and looks each second whether it is
    /// first in another.
    fn look_around(&self, step: &mut impl FnMut(&'static str, Result<State, Broken>)) {
        let lines: Vec<usize> = (0..FILES).filter(|file| self.this().standing[*file] > 0).collect();
        let is_first = lines.iter().any(|file| self.ahead(*file).is_none());
        if lines.len() > 1 && is_first && self.plan.variant != Variant::NoLooksAround {
            let state = self.after(|process| process.at = At::Locking(self.first_wanted()));
            step("look around", Ok(state));
        }
    }

    /// Whether anybody in the way moves: if so, it is refused; if not, they are passed over.
    fn peek(&self, step: &mut impl FnMut(&'static str, Result<State, Broken>)) {
        let wanted = || (0..FILES).filter(|file| self.limit(*file) > 0);
        let blockers = || wanted().filter_map(|file| self.ahead(file));
        if blockers().next().is_none() {
            let state = self.after(|process| process.at = At::Locking(self.first_wanted()));
            step("see nobody alive in the way", Ok(state));
        } else if blockers().any(|other| !self.before.processes[other].is_frozen) {
            step("see somebody alive in the way", Ok(self.after(|process| process.at = At::Closing(0))));
        }
    }

    /// What it wants is looked up once more. Its places stay, save in what it does not want any more.
    fn decide_anew(&self) -> State {
        let mut state = self.after(|process| self.decide(process));
        let decided = self.plan.wants[usize::from(self.before.policy)][self.me].limits;
        let before = self.want().limits;
        let gives_up = self.plan.variant == Variant::PlaceGivenUp;
        let process = &mut state.processes[self.me];
        for (file, limit) in decided.into_iter().enumerate() {
            // Of a repository that did not block it nobody knows yet that it is all it needs.
            let is_alike = decided.map(|limit| limit > 0) == before.map(|limit| limit > 0);
            if limit == 0 || !is_alike && process.standing[file] == 0 {
                process.waits &= !(1 << file);
            }
            if limit == 0 || gives_up {
                process.places[file] = 0;
                process.standing[file] = 0;
            }
        }
        if process.places == [0; FILES] {
            process.number = 0;
        }
        state
    }

    /// Under the policy in force.
    fn decide(&self, process: &mut Process) {
        process.policy = self.before.policy;
        let wanted = self.plan.wants[usize::from(process.policy)][self.me].limits;
        process.at = At::Locking(Self::next(0, |file| wanted[file] > 0).unwrap_or(0));
    }

    fn leave(&self, file: u8) -> State {
        let index = usize::from(file);
        let mut state = self.after(|process| {
            process.places[index] = 0;
            process.standing[index] = 0;
            process.at = if index + 1 < FILES { At::Leaving(file + 1) } else { At::Starting };
        });
        if index + 1 == FILES {
            self.forget(&mut state);
        }
        state
    }

    /// Nobody waits for it any more, and it waits for nobody.
    fn forget(&self, state: &mut State) {
        for process in &mut state.processes {
            process.older &= !(1 << self.me);
            process.looks[self.me] = 0;
        }
        state.quiet[self.me] = 0;
        let process = &mut state.processes[self.me];
        *process = Process {
            policy: process.policy,
            seen: process.seen,
            places: process.places,
            standing: process.standing,
            slots: process.slots,
            mutexes: process.mutexes,
            ..Process::at(process.at)
        };
    }

    fn start(&self) -> Result<State, Broken> {
        let is_chosen = |file: usize| matches!(self.this().seen[file], Seen::Free(_));
        let state = self.after(|process| {
            process.mutexes = [false; FILES];
            process.at = At::Running;
            // Closing any descriptor of a file drops all locks of the process on it; not those of a
            // description.
            if self.plan.variant == Variant::SecondDescriptor && self.plan.hold == Hold::Process {
                process.slots[0] = 0;
            }
        });
        let keeps = |file: usize| !is_chosen(file) || state.processes[self.me].slots[file] > 0;
        if !(0..FILES).all(keeps) {
            return Err(Broken::SlotLost);
        }
        let mut state = state;
        state.processes[self.me].seen = [Seen::Nothing; FILES];
        Ok(state)
    }

    /// The kernel closes one descriptor after the other, and each time drops what is locked through it.
    fn close(&self, file: u8) -> State {
        let index = usize::from(file);
        let mut state = self.after(|process| {
            process.mutexes[index] = false;
            process.places[index] = 0;
            process.standing[index] = 0;
            process.slots[index] = 0;
            process.seen[index] = Seen::Nothing;
            process.at = if index + 1 < FILES { At::Closing(file + 1) } else { At::Gone };
        });
        // From here on it does not wait, whatever the kernel has still to close.
        self.forget(&mut state);
        if index + 1 == FILES {
            state.processes[self.me] = Process::at(At::Gone);
        }
        state
    }
}
