//! A state of the model: where each process is, what it holds, what the kernel has, and what is true of the
//! line whatever anybody believes.

/// How many processes there can be; those that want nothing do not exist.
pub(super) const PROCESSES: usize = 4;

/// How many repositories there are; their numbers are the order of their device and inode.
pub(super) const FILES: usize = 2;

/// The highest slot that any limit reaches.
pub(super) const SLOTS: usize = 2;

/// After so many looks that show no new beat a waiter is silent. The program takes one more; the model needs
/// no third to tell a look from looks.
pub(super) const LOOKS: u8 = 2;

/// Where a process is. The number is that of a repository.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum At {
    /// Not started.
    Outside,
    /// Before it takes the mutex of this repository, or looks at the first one when it has all.
    Locking(u8),
    /// Holds the mutexes, and checks whether there is room.
    Looking(u8),
    /// Has found room for everything, and locks a slot of this repository.
    Taking(u8),
    /// Was blocked without a place, and asks for the highest place in this repository.
    Numbering(u8),
    /// Has a number, and locks its place in this repository.
    Placing(u8),
    /// Stands in the line of this repository or leaves it.
    Standing(u8),
    /// Gives the mutexes back, and then does this.
    Unlocking(Next),
    /// Asks who is ahead.
    Asking,
    /// Asleep on the standing lock, in this repository, of this process in this class.
    Behind(u8, u8, u8),
    /// First in a line: waits for the processes that it watches.
    Watching,
    /// Does not wait, but watches whether those in the queue are alive.
    Peeking,
    /// Holds its slots, and leaves the line of this repository.
    Leaving(u8),
    /// Has yet to give the mutexes back.
    Starting,
    /// Is the program.
    Running,
    /// Has ended or was killed; its descriptors of this repository and of those after it are still open.
    Closing(u8),
    /// Is gone.
    Gone,
}

/// What a process does once it has given the mutexes back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    Ask,
    Peek,
    Leave,
}

/// What a process has seen of a repository.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Seen {
    /// Nothing yet, or nothing that it wants.
    #[default]
    Nothing,
    /// This slot is free, and taking it keeps the limit.
    Free(u8),
    /// The limit is reached.
    Full,
    /// There is room, and older launches wait for it.
    Behind,
}

/// One process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Process {
    pub(super) at: At,
    pub(super) is_frozen: bool,
    /// The policy that it was decided by.
    pub(super) policy: u8,
    /// Its number, from 1; 0 before it has one. While it numbers itself, the highest that it has seen.
    pub(super) number: u8,
    /// The number of its place in each repository, 0 where it has none.
    pub(super) places: [u8; FILES],
    /// The class in which it stands in each line, 0 where it does not.
    pub(super) standing: [u8; FILES],
    /// The slot that it has locked in each repository, 0 for none.
    pub(super) slots: [u8; FILES],
    pub(super) mutexes: [bool; FILES],
    pub(super) seen: [Seen; FILES],
    /// A bit for each process whose end wakes it.
    pub(super) watched: u8,
    /// A bit for each process that held something it wants, as it saw last.
    pub(super) holders: u8,
    /// How often it was sent back to a line that it had left.
    pub(super) moves: u8,
    /// How many of its looks in turn have shown no new beat of each other process.
    pub(super) looks: [u8; PROCESSES],
    /// A bit for each process that it took for silent before it had the mutexes.
    pub(super) passed: u8,
    /// A bit for each process that was silent when it looked under the mutexes.
    pub(super) judged: u8,
    /// The truth: a bit for each process that waited for something of the same when this one began to wait.
    pub(super) older: u8,
    /// The truth: a bit for each repository that it waits for.
    pub(super) waits: u8,
}

impl Process {
    pub(super) const fn at(at: At) -> Self {
        Self {
            at,
            is_frozen: false,
            policy: 0,
            number: 0,
            places: [0; FILES],
            standing: [0; FILES],
            slots: [0; FILES],
            mutexes: [false; FILES],
            seen: [Seen::Nothing; FILES],
            watched: 0,
            holders: 0,
            moves: 0,
            looks: [0; PROCESSES],
            passed: 0,
            judged: 0,
            older: 0,
            waits: 0,
        }
    }

    /// Whether it takes steps of its own, and so beats.
    pub(super) fn is_awake(&self) -> bool {
        !self.is_frozen && !matches!(self.at, At::Outside | At::Gone)
    }

    /// Whether it has the mutex of any repository.
    pub(super) fn has_mutex(&self) -> bool {
        self.mutexes != [false; FILES]
    }

    /// Whether it is in a wait of any kind, or about to be.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.at, At::Behind(..) | At::Watching | At::Peeking | At::Locking(_))
    }
}

/// All processes, and what may still happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct State {
    pub(super) processes: [Process; PROCESSES],
    /// The policy in force.
    pub(super) policy: u8,
    /// How many may still be killed.
    pub(super) deaths: u8,
    /// How many may still be frozen, and continued.
    pub(super) freezes: u8,
    pub(super) thaws: u8,
    /// How many seconds each process has been frozen for, which nobody should count.
    pub(super) quiet: [u8; PROCESSES],
}

impl State {
    /// How many processes have locked a slot of a repository.
    pub(super) fn held(&self, file: usize) -> usize {
        self.processes.iter().filter(|process| process.slots[file] > 0).count()
    }

    /// Whether a frozen process has the mutex of a repository: nobody can take it away.
    pub(super) fn is_stuck(&self, file: usize) -> bool {
        self.processes.iter().any(|process| process.is_frozen && process.mutexes[file])
    }
}

/// All of a state in a few numbers: two states are the same when these are. A million states are compared by
/// them.
pub(super) type Packed = [u128; PROCESSES + 1];

impl State {
    pub(super) fn packed(&self) -> Packed {
        let Self { processes, policy, deaths, freezes, thaws, quiet } = self;
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|number: usize| processes[number].packed());
        let mut rest = Bits(0);
        for value in [*policy, *deaths, *freezes, *thaws].into_iter().chain(*quiet) {
            rest.put(value, 2);
        }
        [first, second, third, fourth, rest.0]
    }
}

impl Process {
    fn packed(&self) -> u128 {
        let Self { at, is_frozen, policy, number, places, standing, slots, mutexes, .. } = self;
        let Self { seen, watched, holders, moves, looks, passed, judged, older, waits, .. } = self;
        let mut bits = Bits(0);
        let (kind, [first, second, third]) = at.packed();
        for (value, width) in [(kind, 5), (first, 2), (second, 2), (third, 6)] {
            bits.put(value, width);
        }
        for (value, width) in
            [(u8::from(*is_frozen), 1), (*policy, 1), (*number, 3), (*moves, 2), (*waits, 2)]
        {
            bits.put(value, width);
        }
        for file in 0..FILES {
            let seen = match seen[file] {
                Seen::Nothing => 0,
                Seen::Full => 1,
                Seen::Behind => 2,
                Seen::Free(slot) => 2 + slot,
            };
            bits.put(places[file], 3);
            bits.put(standing[file], 3);
            bits.put(slots[file], 2);
            bits.put(u8::from(mutexes[file]), 1);
            bits.put(seen, 3);
        }
        for value in [*watched, *holders, *passed, *judged, *older] {
            bits.put(value, 4);
        }
        for value in looks {
            bits.put(*value, 2);
        }
        bits.0
    }
}

impl At {
    fn packed(self) -> (u8, [u8; 3]) {
        match self {
            Self::Outside => (0, [0; 3]),
            Self::Locking(file) => (1, [file, 0, 0]),
            Self::Looking(file) => (2, [file, 0, 0]),
            Self::Taking(file) => (3, [file, 0, 0]),
            Self::Numbering(file) => (4, [file, 0, 0]),
            Self::Placing(file) => (5, [file, 0, 0]),
            Self::Standing(file) => (6, [file, 0, 0]),
            Self::Unlocking(Next::Ask) => (7, [0; 3]),
            Self::Unlocking(Next::Peek) => (8, [0; 3]),
            Self::Unlocking(Next::Leave) => (9, [0; 3]),
            Self::Asking => (10, [0; 3]),
            Self::Behind(file, ahead, key) => (11, [file, ahead, key]),
            Self::Watching => (12, [0; 3]),
            Self::Peeking => (13, [0; 3]),
            Self::Leaving(file) => (14, [file, 0, 0]),
            Self::Starting => (15, [0; 3]),
            Self::Running => (16, [0; 3]),
            Self::Closing(file) => (17, [file, 0, 0]),
            Self::Gone => (18, [0; 3]),
        }
    }
}

/// Small numbers, one behind the other.
struct Bits(u128);

impl Bits {
    fn put(&mut self, value: u8, width: u32) {
        assert!(u32::from(value) < 1 << width, "{value} is too large for its place");
        self.0 = self.0 << width | u128::from(value);
    }
}
