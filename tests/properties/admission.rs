//! "Admission: prove, do not count." Whatever is locked in a file and whatever its content says, the few questions that a
//! launch asks give the answer that a look at every byte gives.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    os::{fd::AsFd, unix::fs::FileExt},
    path::Path,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use rungate::{
    repository::{
        acquisition::{Launch, Outcome, acquire},
        claim::{Admit, Claim, Demand, Nested, Slots},
        file::{Creation, Opening},
        hold::Hold,
    },
    sys::descriptor::{DEFAULT_FLOOR, Inherited},
};
use tempfile::NamedTempFile;

use crate::support::lock_range;

/// The byte before that of slot 1, and where the tickets of waiters with each limit begin.
const BEFORE_SLOTS: u64 = 7;
const TICKETS: u64 = 1 << 43;

/// Slots are looked at up to here; some locks go on to the end of any file.
const LAST: u64 = 80;

/// A lock file in some state, and a launch that comes to it.
#[derive(Clone, Debug)]
struct State {
    /// First slot and number of slots of each lock; none to the end of any file.
    held: Vec<(u64, Option<u64>)>,
    /// The limits of those who wait.
    waiting: Vec<u64>,
    /// What the first eight bytes say.
    hint: Option<u64>,
    cursor: Option<u64>,
    limit: u64,
    slots: u64,
    admit: Admit,
}

fn states() -> impl Strategy<Value = State> {
    let held = vec((1..60_u64, prop_oneof![9 => (1..6_u64).prop_map(Some), 1 => Just(None)]), 0..12);
    let waiting = prop_oneof![3 => Just(Vec::new()), 1 => vec(1..40_u64, 1..3)];
    let hint = option::of(prop_oneof![0..80_u64, Just(u64::MAX), Just(1 << 20)]);
    let admit = select(vec![Admit::WithinLimit, Admit::WithinLimit, Admit::Unenforced, Admit::Always]);
    (held, waiting, hint, option::of(0..90_u64), 0..50_u64, 1..5_u64, admit).prop_map(
        |(held, waiting, hint, cursor, limit, slots, admit)| State {
            held,
            waiting,
            hint,
            cursor,
            limit,
            slots,
            admit,
        },
    )
}

/// What a launch gets: so many slots, or none at all though it starts, or a refusal.
#[derive(Debug, Eq, PartialEq)]
enum Answer {
    Slots(u64),
    Nothing,
    Refused,
}

impl State {
    fn held(&self) -> BTreeSet<u64> {
        let end = |(first, count): &(u64, Option<u64>)| count.map_or(LAST, |count| first + count - 1);
        self.held.iter().flat_map(|lock| lock.0..=end(lock)).collect()
    }

    /// What follows from everything at once.
    fn expected(&self) -> Answer {
        let endless = self.held.iter().any(|(_, count)| count.is_none());
        let held = self.held();
        let fits = !endless && held.len() as u64 + self.slots <= self.limit;
        let is_behind = self.waiting.iter().any(|limit| *limit >= self.limit);
        match self.admit {
            // A lock to the end of any file leaves slots only before it.
            Admit::Always if !endless => Answer::Slots(self.slots),
            Admit::Always => {
                let free = (1..LAST).filter(|slot| !held.contains(slot)).count() as u64;
                if free >= self.slots { Answer::Slots(self.slots) } else { Answer::Refused }
            }
            _ if fits && !is_behind => Answer::Slots(self.slots),
            Admit::Unenforced => Answer::Nothing,
            Admit::WithinLimit => Answer::Refused,
        }
    }

    /// Brings a file into this state. The locks go with the descriptors.
    fn lock(&self, path: &Path) -> Vec<File> {
        let open = || OpenOptions::new().read(true).write(true).open(path).expect("the file");
        let file = open();
        if let Some(hint) = self.hint {
            file.write_all_at(&hint.wrapping_add(BEFORE_SLOTS).to_ne_bytes(), 0).expect("the hint");
        }
        if let Some(cursor) = self.cursor {
            let header: Vec<u8> = [u64::from_le_bytes(*b"rungate\n"), 1, cursor, 0, 0]
                .iter()
                .flat_map(|field| field.to_le_bytes())
                .collect();
            file.write_all_at(&header, 4096).expect("the header");
        }
        let slots = self.held.iter().map(|(first, count)| (BEFORE_SLOTS + first, count.unwrap_or(0)));
        let tickets = self.waiting.iter().enumerate();
        let tickets = tickets.map(|(number, limit)| (TICKETS * limit + 1 + number as u64, 1));
        let lock = |(start, length): (u64, u64)| {
            let file = open();
            let range = lock_range(libc::F_RDLCK, start.cast_signed(), length.cast_signed());
            fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&range)).expect("read locks do not conflict");
            file
        };
        slots.chain(tickets).map(lock).collect()
    }

    fn claim(&self, path: &Path) -> Claim {
        let base = path.parent().expect("a directory").to_owned();
        Claim {
            name: "seats".into(),
            path: path.to_owned(),
            creation: Creation {
                base,
                create_base: false,
                private: None,
                file_mode: 0o600,
                directory_mode: 0o700,
            },
            owner: None,
            limit: self.limit,
            slots: Slots::Number(self.slots),
            zones: None,
            admit: self.admit,
            nested: Nested::Take,
            rule: "seats".into(),
            pause: None,
            expiry: None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_few_questions_answer_as_a_look_at_everything_does(state in states()) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let locks = state.lock(&path);
        let inherited = Inherited::default();
        let launch = Launch {
            command: "matlab",
            host: "ws17",
            uid: 0,
            ancestors: &[],
            opening: Opening { inherited: &inherited, floor: DEFAULT_FLOOR, hold: Hold::Process },
            on_expired: &|_, _, _| {},
        };
        let demands = [Demand::One(state.claim(&path))];
        let outcome = acquire(&demands, &launch).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let held = state.held();
        let answer = match &outcome {
            Outcome::Refused(_) => Answer::Refused,
            Outcome::Admitted(admitted) => {
                let taken: Vec<u64> = admitted.slots().iter().flat_map(|held| held.slots.clone()).collect();
                prop_assert!(taken.iter().all(|slot| !held.contains(slot)), "{:?} are taken twice", taken);
                let within = state.admit == Admit::Always || taken.iter().all(|slot| *slot <= state.limit);
                prop_assert!(within, "{:?} are beyond the limit", taken);
                // A peer that believes the hint overlooks nobody.
                if let (Some(highest), true) = (held.iter().chain(&taken).max(), !taken.is_empty()) {
                    let mut hint = [0; 8];
                    let file = File::open(&path).expect("the file");
                    file.read_exact_at(&mut hint, 0).expect("the hint");
                    // A process that closes a file gives up its locks on it.
                    std::mem::forget(file);
                    prop_assert!(u64::from_ne_bytes(hint) >= BEFORE_SLOTS + highest.min(&LAST));
                }
                if taken.is_empty() { Answer::Nothing } else { Answer::Slots(taken.len() as u64) }
            }
        };
        prop_assert_eq!(answer, state.expected());
        drop((outcome, locks));
    }
}
