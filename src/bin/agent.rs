//! The third program, `rungate-agent`, as thin as the others. It becomes no other program, so that it has a
//! `main` of Rust's own.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rungate::agent::main())
}
