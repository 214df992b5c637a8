//! What a policy says and means: its text, its layers, its faults, and the example policies, executed.

mod adaptive_locks;
mod captures;
mod changes;
mod check;
mod defaults;
mod delegation;
mod diff;
mod edit;
pub(crate) mod examples;
mod faults;
pub(crate) mod hours;
mod install;
mod kept_rules;
mod layers;
mod schema;
mod semantics;
mod sites;
mod standing_faults;
mod undo;
pub(crate) mod waiting_examples;
