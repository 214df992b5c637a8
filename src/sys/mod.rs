//! The operating system: the only module that knows nix, libc, rustix and users. It offers plain values and typed
//! errors, knows nothing of policies or repositories, and keeps what needs `unsafe` in one file.

pub mod accounts;
pub mod trusted_file;
