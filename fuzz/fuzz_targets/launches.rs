//! `cargo +nightly fuzz run launches`; what is asked of it is in `src/launches.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::launches::judge(data));
