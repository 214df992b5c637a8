//! Runs a command, counts the system calls that it makes until its program starts, and kills it at one of
//! them or lets one of them fail.
//!
//! ```text
//! saboteur REPORT list|kill N|fail N ERROR|keep-failing N ERROR [FILE…] -- COMMAND [ARGUMENT…]
//! ```
//!
//! The calls are those of the command and of every process that it makes, each until it executes another
//! program. `fail` gives the first call from the N-th on that can fail so this error in place of its effect;
//! `keep-failing` does the same with every later call of that name. What happened goes to the file REPORT:
//!
//! ```text
//! call 17 fcntl(F_SETLK) /run/seats.lock           every call (list), or the one that was chosen
//! start 4711 /run/seats.lock=3:4711                a program starts while these slots are held, and by whom
//! ended status 74                                  the command has ended (or: ended signal 9)
//! ```
//!
//! Between the execution of a program and its first instruction nothing moves, so what is reported of the
//! locks is what the program starts with. It uses no code of the library.

//!
//! It knows the registers of one architecture alone, x86-64.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use std::error::Error;

#[path = "../../support/errors_of_calls.rs"]
mod errors_of_calls;
#[path = "../../support/held_slots.rs"]
mod held_slots;
#[path = "../../support/lock_range.rs"]
mod lock_range;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod system_calls;
#[cfg(target_arch = "x86_64")]
mod tracer;

use errors_of_calls::error_named;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let split =
        arguments.iter().position(|word| word == "--").ok_or("usage: saboteur REPORT WHAT -- COMMAND")?;
    let (own, command) = (&arguments[..split], &arguments[split + 1..]);
    let [report, what @ ..] = own else { return Err("no report".into()) };
    let (plan, files) = Plan::parse(what)?;
    sabotage(command, plan, files, report)
}

#[cfg(target_arch = "x86_64")]
use tracer::sabotage;

#[cfg(not(target_arch = "x86_64"))]
fn sabotage(_: &[String], _: Plan, _: &[String], _: &str) -> Result<(), Box<dyn Error>> {
    Err("it knows only the registers of x86-64".into())
}

/// What is to be done to the command.
pub(crate) enum Plan {
    List,
    Kill { at: u64 },
    Fail { at: u64, name: String, error: i64, persistent: bool },
}

impl Plan {
    fn parse(words: &[String]) -> Result<(Self, &[String]), Box<dyn Error>> {
        match words {
            [what, files @ ..] if what == "list" => Ok((Self::List, files)),
            [what, at, files @ ..] if what == "kill" => Ok((Self::Kill { at: at.parse()? }, files)),
            [what, at, error, files @ ..] if what.ends_with("fail") || what.ends_with("failing") => {
                let (at, persistent) = (at.parse()?, what == "keep-failing");
                let number = error_named(error).ok_or("an error that it does not know")?;
                Ok((Self::Fail { at, name: error.clone(), error: number, persistent }, files))
            }
            _ => Err("list, kill N or fail N ERROR".into()),
        }
    }
}
