//! What people and scripts see: text made safe for a terminal, times and durations as they are read at a glance, tables,
//! and the one way to standard output and standard error. It knows nothing of policies or repositories.

pub mod age;
pub mod bar;
pub mod clock;
pub mod exposition;
pub mod full_screen;
pub mod json;
pub mod key;
pub mod living_line;
pub mod row;
pub mod stream;
pub mod table;
pub mod visible;
