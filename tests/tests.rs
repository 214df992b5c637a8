//! The integration tests, one program. Each file is one behaviour, and reads like the manual: its sentence first, then
//! what must happen to somebody who relies on it.

mod support;

mod faults;
mod instruments;
