//! `cargo +nightly fuzz run contents`; what is asked of it is in `src/contents.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::contents::judge(data));
