//! `cargo +nightly fuzz run words`; what is asked of it is in `src/words.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::words::judge(data));
