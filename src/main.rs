//! The launcher, a thin program around the library. It has no ordinary `main`: the runtime that calls one
//! ignores `SIGPIPE` and opens `/dev/null` for descriptors 0 to 2 that the caller closed. The program that
//! rungate executes must find both as the caller left them.
#![no_main]

use std::ffi::{c_char, c_int};

/// The entry point of C.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is that of the C runtime's entry point; nothing else defines it")]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    c_int::from(rungate::launch::main())
}
