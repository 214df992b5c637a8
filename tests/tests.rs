//! The integration tests, one program. Each folder is a part of what rungate does, each file one behaviour. A file reads
//! like the manual: its sentence first, then what must happen to somebody who relies on it.

mod support;

mod agent;
mod attacks;
#[cfg(target_arch = "x86_64")]
mod campaign;
mod corpora;
mod docs;
mod formats;
mod host;
mod instruments;
mod keepers;
mod launch;
mod model;
mod modules;
mod policy;
mod properties;
mod site;
mod slots;
mod storm;
mod tools;
mod waiting;
