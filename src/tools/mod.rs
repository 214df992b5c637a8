//! Everything but launches: the second program, `rungate-tools`. It only combines the other rooms. The
//! launcher must not use this room.

pub(crate) mod act;
pub(crate) mod dispatch;
pub(crate) mod doctor;
pub mod inspect;
pub mod logs;
pub mod policy;
pub(crate) mod setup;
pub(crate) mod shared;

use crate::launch;

/// The second program: everything else.
pub fn main() -> u8 {
    launch::end(|arguments| dispatch::main(&arguments))
}
