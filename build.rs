//! How rungate is linked. It stands in front of every start of every command, and before its first own
//! instruction the dynamic loader has done half of what a launch costs. Three things make that less, where
//! the machine that builds has them:
//!
//! - The unwinder is taken from the static half of libgcc. Rust asks for the shared one, though a program
//!   that aborts on a panic needs next to nothing of it: one library less to find, map and relocate.
//! - Relative relocations are packed (`DT_RELR`), so that the loader reads 1 KiB instead of 200. The C
//!   library understands that from 2.36 on.
//! - The functions that a launch uses lie together, in the order of a file that `RUNGATE_TEXT_ORDER` names;
//!   `packaging/order-text` makes it, for packages. Without it they lie where the compiler put them.
//!
//! A program that is not optimised has so many relocations that they are half of its start. It lies at a
//! fixed address, so that there are none: the tests start it some ten thousand times.
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::{env, fs, io, path::Path, process::Command};

/// The first release of the C library that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUNGATE_TEXT_ORDER");
    if variable("CARGO_CFG_TARGET_ENV") != "gnu" || variable("HOST") != variable("TARGET") {
        return Ok(());
    }
    if has_static_unwinder() {
        // A linker takes a text in place of a library for a script.
        let directory = variable("OUT_DIR");
        fs::write(Path::new(&directory).join("libgcc_s.so"), "INPUT(-lgcc_eh)\n")?;
        println!("cargo::rustc-link-arg-bins=-L{directory}");
    }
    if variable("PROFILE") == "debug" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    let order = variable("RUNGATE_TEXT_ORDER");
    if !order.is_empty() {
        println!("cargo::rerun-if-changed={order}");
        println!("cargo::rustc-link-arg-bin=rungate=-Wl,--symbol-ordering-file={order}");
    }
    if c_library().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// The compiler answers with a path where it has the file, and with the bare name where not.
fn has_static_unwinder() -> bool {
    said("cc", "-print-file-name=libgcc_eh.a").is_some_and(|path| path.contains('/'))
}

/// The release of the C library: `glibc 2.36`.
fn c_library() -> Option<(u32, u32)> {
    let said = said("getconf", "GNU_LIBC_VERSION")?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

fn said(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    String::from_utf8(output.stdout).ok()
}
