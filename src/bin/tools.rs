//! The second program, `rungate-tools`, as thin as the launcher and started like it; see `main.rs`.
#![no_main]

use std::ffi::{c_char, c_int};

/// Reports and simulations allocate millions of small texts on several threads. With the allocator of the C
/// library, that takes a third to a half of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The entry point of C.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is that of the C runtime's entry point; nothing else defines it")]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    c_int::from(rungate::tools::main())
}
