//! `cargo +nightly fuzz run policy`; what is asked of it is in `src/policy.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::policy::judge(data));
