//! An admission within this process: what the calls cost, without the start of a process.

use std::path::Path;

use rungate::{
    acquire::{
        acquire_context::{AcquireContext, Clock},
        acquisition::Outcome,
        grant::Grant,
        waiting::acquire,
    },
    judge::terms::{
        claim::{Claim, Demand, Launch},
        keyword::Hold,
        location::FileLocation,
        slots_wanted::{Amount, Slots},
    },
    keeper::table::Keepers,
    sys::descriptor::Inherited,
};

/// Asks for a slot, and gives it back at once.
#[allow(dead_code, reason = "not every program that includes this file asks so")]
pub(crate) fn is_admitted(file: &Path, limit: u64) -> bool {
    granted(&demands(file, limit)).is_some()
}

/// Asks for what is demanded, which is held until what comes out is dropped.
pub(crate) fn granted(demands: &[Demand]) -> Option<Grant<'_>> {
    let inherited = Inherited::default();
    let asker = AcquireContext {
        launch: Launch { command: "bench", host: "bench", uid: 0, ancestors: &[], hold: Hold::Process },
        keepers: Keepers::of(&inherited),
        generation: 0,
        on_expired: &|_, _, _| {},
        clock: Clock::default(),
    };
    match acquire(demands, &asker).expect("a lock file") {
        Outcome::Granted(grant) => Some(grant),
        Outcome::Refused(_) | Outcome::Interrupted => None,
    }
}

/// One slot of so many.
pub(crate) fn demands(file: &Path, limit: u64) -> [Demand; 1] {
    let amount = Amount::plain(Slots::Number(1), limit);
    [Demand::One(Claim::outside_the_policy(FileLocation::named(file.to_owned(), 0o600), amount, "bench"))]
}
