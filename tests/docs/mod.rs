//! The pages, executed: what they show must happen, and what they promise must have a test.

mod broken_policies;
mod keys;
pub(crate) mod manual;
mod plain;
mod promises;
pub(crate) mod readme;
mod recipes;
mod seats;
mod surface;
mod tutorial;
mod words;
