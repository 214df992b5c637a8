//! The names of signals.

pub(crate) use nix::sys::signal::Signal;

/// The name of a signal, or its number for one that has none.
pub(crate) fn name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}
