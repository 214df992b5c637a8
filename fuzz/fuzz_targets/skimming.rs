//! `cargo +nightly fuzz run skimming`; what is asked of it is in `src/skimming.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rungate_fuzz::skimming::judge(data));
