//! An admission within this process: what the calls cost, without the start of a process.

use std::path::Path;

use rungate::repository::{
    acquisition::{Launch, Outcome, acquire},
    admitted::Admitted,
    claim::{Admit, Claim, Demand, Nested, Slots},
    file::{Creation, Opening},
    hold::Hold,
};
use rungate::sys::descriptor::{DEFAULT_FLOOR, Inherited};

/// Asks for a slot, and gives it back at once.
#[allow(dead_code, reason = "not every program that includes this file asks so")]
pub(crate) fn is_admitted(file: &Path, limit: u64) -> bool {
    admitted(file, limit).is_some()
}

/// Asks for a slot, which is held until what comes out is dropped.
pub(crate) fn admitted(file: &Path, limit: u64) -> Option<Admitted> {
    let inherited = Inherited::default();
    let demands = [Demand::One(claim(file, limit))];
    let launch = Launch {
        command: "bench",
        host: "bench",
        uid: 0,
        ancestors: &[],
        opening: Opening { inherited: &inherited, floor: DEFAULT_FLOOR, hold: Hold::Process },
        on_expired: &|_, _, _| {},
    };
    match acquire(&demands, &launch).expect("a lock file") {
        Outcome::Admitted(admitted) => Some(admitted),
        Outcome::Refused(_) => None,
    }
}

fn claim(file: &Path, limit: u64) -> Claim {
    let base = file.parent().unwrap_or(Path::new("/")).to_owned();
    Claim {
        name: "bench".into(),
        path: file.to_owned(),
        creation: Creation {
            base,
            create_base: false,
            private: None,
            file_mode: 0o600,
            directory_mode: 0o700,
        },
        owner: None,
        limit,
        slots: Slots::Number(1),
        zones: None,
        admit: Admit::WithinLimit,
        nested: Nested::Join,
        rule: "bench".into(),
        pause: None,
        expiry: None,
    }
}
