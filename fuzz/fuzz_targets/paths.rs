//! `cargo +nightly fuzz run paths`; what is asked of it is in `src/paths.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::paths::judge(data));
