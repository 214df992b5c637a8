//! Becomes the program that its arguments name, and does nothing else: what a launcher costs before it does
//! anything.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else { return ExitCode::from(64) };
    let error = Command::new(program).args(arguments).exec();
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}
