//! Who wants what, what may happen meanwhile, and which mistake the protocol makes, if any.

use super::state::{At, FILES, PROCESSES, Process, State};

/// Which lock is a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hold {
    /// A write lock of the process: no two can have it.
    Process,
    /// A read lock of a description, taken after a query: two can have it, if nothing else keeps them apart.
    Descriptor,
}

/// What a launch wants of the repositories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Want {
    /// The limit that counts for it in each repository, 0 where it wants nothing.
    pub(super) limits: [u8; FILES],
    /// Whether one of them will do.
    pub(super) any: bool,
}

/// The protocol, or one of its mistakes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Variant {
    AsItIs,
    /// Nobody takes a mutex.
    WithoutMutex,
    /// Each repository numbers its places for itself.
    NumbersOfEachFile,
    /// A number counts, and a place is taken, only where the launch is blocked first.
    PlacesWhereBlocked,
    /// A claim by a second path has a descriptor of its own, which is closed when the mutexes are released.
    SecondDescriptor,
    /// Whoever has a lower limit is passed, whatever policy gave it.
    WithoutGeneration,
    /// A launch that is decided again gives its place up meanwhile.
    PlaceGivenUp,
    /// A launch that several repositories could serve stands in the line of the first.
    OneLineForAny,
    /// A launch that does not wait does not see those who do.
    NewcomersPass,
    /// A launch that does not wait ends at once when others wait in the queue, whether they live or not.
    NewcomersDoNotLook,
    /// Nobody is passed over, whether it moves or not.
    WithoutSilence,
    /// Who was silent before the mutexes were taken is passed.
    JudgedBeforeTheMutex,
    /// Seconds without a beat are counted, and not looks.
    SecondsAreCounted,
    /// The first in the queue sleeps on holders that it began to watch only now.
    WatchedTooLate,
    /// The mutexes that it has are kept while the next one is waited for.
    MutexesKept,
    /// A launch in several lines does not look around.
    NoLooksAround,
    /// A launch begins to wait behind however many do.
    LinesDoNotEnd,
}

/// A plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What each process wants under the first policy, and under the second.
    pub(super) wants: [[Want; PROCESSES]; 2],
    /// A bit for each process that does not wait.
    pub(super) newcomers: u8,
    /// A bit for each process that has the first slot of all that it wants from the beginning.
    pub(super) running: u8,
    /// A bit for each process whose program never ends.
    pub(super) endless: u8,
    /// Whether the policy changes once.
    pub(super) changes: bool,
    pub(super) hold: Hold,
    /// How many may be killed, frozen (the mutex in their hands or not) and continued.
    pub(super) deaths: u8,
    pub(super) freezes: u8,
    pub(super) thaws: u8,
    /// How many may wait in each repository before one more begins to, 0 where the line does not end.
    pub(super) queue: [u8; FILES],
    /// After so many returns to a line that it had left a process keeps its place in all of them.
    pub(super) moves: u8,
    pub(super) variant: Variant,
}

impl Plan {
    /// These processes want all of what they want, wait, and nothing happens to them.
    pub(super) fn of(limits: &[[u8; FILES]]) -> Self {
        let mut wants = [Want::default(); PROCESSES];
        for (want, limits) in wants.iter_mut().zip(limits) {
            want.limits = *limits;
        }
        Self {
            wants: [wants; 2],
            newcomers: 0,
            running: 0,
            endless: 0,
            changes: false,
            hold: Hold::Process,
            deaths: 0,
            freezes: 0,
            thaws: 0,
            queue: [0; FILES],
            moves: 2,
            variant: Variant::AsItIs,
        }
    }

    /// The same, where any repository will do for these processes.
    pub(super) fn any(mut self, processes: &[usize]) -> Self {
        for policy in &mut self.wants {
            for process in processes {
                policy[*process].any = true;
            }
        }
        self
    }

    /// The same, where these processes do not wait.
    pub(super) fn newcomers(self, processes: &[usize]) -> Self {
        Self { newcomers: processes.iter().map(|process| 1 << process).sum(), ..self }
    }

    /// The same, where these processes have their slots already.
    pub(super) fn running(self, processes: &[usize]) -> Self {
        Self { running: processes.iter().map(|process| 1 << process).sum(), ..self }
    }

    /// The same, where the programs of these processes never end.
    pub(super) fn endless(self, processes: &[usize]) -> Self {
        Self { endless: processes.iter().map(|process| 1 << process).sum(), ..self }
    }

    /// The same, if the policy changes to these limits at any moment.
    pub(super) fn changing(mut self, limits: &[[u8; FILES]]) -> Self {
        for (want, limits) in self.wants[1].iter_mut().zip(limits) {
            want.limits = *limits;
        }
        Self { changes: true, ..self }
    }

    /// The same, where the lines end.
    pub(super) fn queue(self, queue: [u8; FILES]) -> Self {
        Self { queue, ..self }
    }

    pub(super) fn deaths(self, deaths: u8) -> Self {
        Self { deaths, ..self }
    }

    pub(super) fn freezes(self, freezes: u8, thaws: u8) -> Self {
        Self { freezes, thaws, ..self }
    }

    pub(super) fn with(self, variant: Variant) -> Self {
        Self { variant, ..self }
    }

    /// Nobody has started.
    pub(super) fn first(&self) -> State {
        let process = |number: usize| {
            let limits = self.wants[0][number].limits;
            let runs = self.running >> number & 1 == 1;
            let is_there = limits != [0; FILES];
            let process = Process::at(if runs {
                At::Running
            } else if is_there {
                At::Outside
            } else {
                At::Gone
            });
            Process { slots: limits.map(|limit| u8::from(runs && limit > 0)), ..process }
        };
        State {
            processes: std::array::from_fn(process),
            policy: 0,
            deaths: self.deaths,
            freezes: self.freezes,
            thaws: self.thaws,
            quiet: [0; PROCESSES],
        }
    }

    /// Whether every launch has come to its end, or cannot for a reason that no protocol can mend: it is
    /// frozen, or somebody who is frozen has a mutex that it needs.
    pub(super) fn is_over(&self, state: &State) -> bool {
        state.processes.iter().zip(0..).all(|(process, number): (_, usize)| {
            let wants = |file: usize| self.wants[usize::from(process.policy)][number].limits[file] > 0;
            let needs_stuck = || (0..FILES).any(|file| wants(file) && state.is_stuck(file));
            process.at == At::Gone
                || process.at == At::Running && self.endless >> number & 1 == 1
                || process.is_frozen
                || !matches!(process.at, At::Running | At::Closing(_))
                    && !process.has_mutex()
                    && needs_stuck()
        })
    }
}
