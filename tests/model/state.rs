//! A state of the model: where each process is, what it holds, and what the kernel has.

/// How many processes there can be; those that want nothing are not there.
pub(super) const PROCESSES: usize = 4;

/// How many repositories there are; their numbers are the order of their device and inode.
pub(super) const FILES: usize = 2;

/// The highest slot that any limit reaches.
pub(super) const SLOTS: usize = 2;

/// Where a process is. The number is that of a repository.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum At {
    /// Not started.
    Outside,
    /// Before it takes the mutex of this repository, or looks at the first one when it has all.
    Locking(u8),
    /// Holds the mutexes, and looks whether there is room; the second time because only the line was in the way.
    Looking(u8, bool),
    /// Has found room everywhere, and locks a slot of this repository.
    Taking(u8),
    /// Was blocked, and sees to it that it stands in a line.
    Queueing,
    /// Stands in the line of this repository and asks who is ahead.
    Asking(u8),
    /// Gives the mutexes back and goes to sleep.
    Unlocking(u8),
    /// Waits for the ticket of this process in this repository.
    Behind(u8, u8),
    /// First in line: waits for the processes that it watches.
    Watching,
    /// Holds everything, and still its places in line.
    Admitted,
    /// Has yet to give the mutexes back.
    Starting,
    /// Is the program.
    Running,
    /// Has ended or was killed; its descriptors of this repository and of those after it are still open.
    Closing(u8),
    /// Is gone.
    Gone,
}

/// What a process has seen of a repository.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Seen {
    /// Nothing yet.
    #[default]
    Nothing,
    /// This slot is free, and taking it keeps the limit.
    Free(u8),
    /// The limit is reached.
    Full,
    /// Older launches wait.
    Behind,
}

/// One process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Process {
    pub(super) at: At,
    /// Its place in time, from 1; 0 before it has one.
    pub(super) number: u8,
    /// Its number in the line of each repository, 0 where it stands in none.
    pub(super) tickets: [u8; FILES],
    /// The slot that it has locked in each repository, 0 for none.
    pub(super) slots: [u8; FILES],
    /// Whether it has the mutex of each repository.
    pub(super) mutexes: [bool; FILES],
    pub(super) seen: [Seen; FILES],
    /// A bit for each process whose end wakes it.
    pub(super) watched: u8,
    /// A bit for each process that held something it wants, as it saw last.
    pub(super) holders: u8,
    /// How often it has moved from one line to another.
    pub(super) moves: u8,
}

/// All processes, and what goes on in time.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct State {
    pub(super) processes: [Process; PROCESSES],
    /// The moment that the next one to arrive arrives at, or a later one.
    pub(super) clock: u8,
    /// How many may still be killed.
    pub(super) deaths: u8,
}

impl State {
    /// Nobody has started.
    pub(super) fn first(wants: [[u8; FILES]; PROCESSES], deaths: u8) -> Self {
        let process = |wants: [u8; FILES]| Process {
            at: if wants == [0; FILES] { At::Gone } else { At::Outside },
            number: 0,
            tickets: [0; FILES],
            slots: [0; FILES],
            mutexes: [false; FILES],
            seen: [Seen::Nothing; FILES],
            watched: 0,
            holders: 0,
            moves: 0,
        };
        Self { processes: [0, 1, 2, 3].map(|number| process(wants[number])), clock: 1, deaths }
    }

    /// Whether every launch has come to its end.
    pub(super) fn is_over(&self) -> bool {
        self.processes.iter().all(|process| process.at == At::Gone)
    }

    /// How many processes have locked a slot of a repository.
    pub(super) fn held(&self, file: usize) -> usize {
        self.processes.iter().filter(|process| process.slots[file] > 0).count()
    }
}
