//! The third program, `rungate-agent`, as thin as the others. It executes no other program, so it has an
//! ordinary `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(rungate::agent::main())
}
