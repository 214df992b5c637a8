//! `cargo +nightly fuzz run messages`; what is asked of it is in `src/messages.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::messages::judge(data));
