//! The names of signals.

pub use nix::sys::signal::Signal;
