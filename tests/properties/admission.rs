//! Admission: prove, do not count. Whatever is locked in a file and whatever its content says, the few
//! questions that a launch asks give the answer that a look at every byte gives.

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
    acquire::{
        acquire_context::{AcquireContext, Clock},
        acquisition::Outcome,
        dry_run::outlook,
        waiting::acquire,
    },
    judge::terms::{
        claim::{Claim, Demand, Launch},
        keyword::{Admit, Hold},
        location::FileLocation,
        slots_wanted::{Amount, Slots},
    },
    keeper::{error::KeeperError, table::Keepers},
    sys::descriptor::Inherited,
};
use tempfile::NamedTempFile;

use crate::support::lock_range;

/// The byte before that of slot 1, and where those who wait in the queue have their locks.
const BEFORE_SLOTS: u64 = 7;
const STANDING: u64 = 1 << 61;

/// Slots are checked up to here; some locks go on to the end of any file.
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
    slots: u32,
    admit: Admit,
}

fn states() -> impl Strategy<Value = State> {
    let held = vec((1..60_u64, prop_oneof![9 => (1..6_u64).prop_map(Some), 1 => Just(None)]), 0..12);
    let waiting = prop_oneof![3 => Just(Vec::new()), 1 => vec(1..40_u64, 1..3)];
    let hint = option::of(prop_oneof![0..80_u64, Just(u64::MAX), Just(1 << 20)]);
    let admit = select(vec![Admit::WithinLimit, Admit::WithinLimit, Admit::Unenforced, Admit::Always]);
    (held, waiting, hint, option::of(0..90_u64), 0..50_u64, 1..5_u32, admit).prop_map(
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

    fn is_behind(&self) -> bool {
        self.waiting.iter().any(|limit| *limit >= self.limit)
    }

    /// What follows from everything at once.
    fn expected(&self) -> Answer {
        let endless = self.held.iter().any(|(_, count)| count.is_none());
        let held = self.held();
        let fits = !endless && held.len() as u64 + u64::from(self.slots) <= self.limit;
        let is_behind = self.is_behind();
        match self.admit {
            // A lock to the end of any file leaves slots only before it.
            Admit::Always if !endless => Answer::Slots(u64::from(self.slots)),
            Admit::Always => {
                let free = (1..LAST).filter(|slot| !held.contains(slot)).count() as u64;
                if free >= u64::from(self.slots) {
                    Answer::Slots(u64::from(self.slots))
                } else {
                    Answer::Refused
                }
            }
            _ if fits && !is_behind => Answer::Slots(u64::from(self.slots)),
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
        let tickets = tickets.map(|(number, limit)| (STANDING + ((1 + number as u64) << 32) + limit, 1));
        let lock = |(start, length): (u64, u64)| {
            let file = open();
            let range = lock_range(libc::F_RDLCK, start.cast_signed(), length.cast_signed());
            fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&range)).expect("read locks do not conflict");
            file
        };
        slots.chain(tickets).map(lock).collect()
    }

    fn claim(&self, path: &Path) -> Claim {
        let amount = Amount::plain(Slots::Number(self.slots), self.limit);
        let mut file = FileLocation::named(path.to_owned(), 0o600);
        // What a policy names is believed to be a repository, whatever it holds.
        file.creation.by_hand = false;
        Claim::outside_the_policy(file, Amount { admit: self.admit, ..amount }, "seats")
    }
}

proptest! {
    #![proptest_config(super::cases(500))]

    #[test]
    fn a_few_questions_answer_as_a_look_at_everything_does(state in states()) {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let locks = state.lock(&path);
        let inherited = Inherited::default();
        let asker = AcquireContext {
            launch: Launch { command: "matlab", host: "ws17", uid: 0, ancestors: &[], hold: Hold::Process },
            keepers: Keepers::of(&inherited),
            generation: 0,
            on_expired: &|_, _, _| {},
            clock: Clock::default(),
        };
        let demands = [Demand::One(state.claim(&path))];
        // Whether those in the queue are alive is another question, and takes seconds to answer.
        let failed = |error: KeeperError| TestCaseError::fail(error.to_string());
        let outcome = if state.is_behind() {
            outlook(&demands, &asker).refusal.map_err(failed)?.map(Outcome::Refused)
        } else {
            None
        };
        let outcome = outcome.map_or_else(|| acquire(&demands, &asker).map_err(failed), Ok)?;
        let held = state.held();
        let answer = match &outcome {
            Outcome::Refused(_) | Outcome::Interrupted => Answer::Refused,
            Outcome::Granted(grant) => {
                let taken: Vec<u64> = grant.slots().iter().flat_map(|held| held.slots.slots()).collect();
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
