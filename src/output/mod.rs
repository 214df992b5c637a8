//! What people and scripts see: text made safe for a terminal, times and durations as they are read at a
//! glance, tables, and the one way to standard output and standard error. It knows nothing of policies or
//! repositories.

pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod exposition;
pub(crate) mod figures;
pub(crate) mod json;
pub(crate) mod stream;
pub(crate) mod style;
#[cfg(feature = "tools")]
pub(crate) mod table;
