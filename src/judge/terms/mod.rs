//! The claims of a launch, in the types that judge and keepers share. A claim says where slots are kept, how
//! many may be held and when, and which rules ask for it. This is plain data: nothing here knows a policy, a
//! lock or a process.

pub mod claim;
pub mod group;
pub mod keyword;
pub mod location;
pub mod outside;
pub mod provenance;
pub mod runs;
pub mod slots_wanted;
pub mod span_of_time;
