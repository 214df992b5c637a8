//! Watches a storm of launches over several repositories, and reports every moment at which something was not
//! as it must be.
//!
//! ```text
//! referee DIRECTORY RUNGATE SLACK
//! ```
//!
//! DIRECTORY is that of the site. It looks again and again until its standard input is closed. A line there
//! is answered with `looks N`, after one more look; whatever is wrong is printed when it is seen, once:
//!
//! ```text
//! crowded …      more slots are held than the limit in force allows
//! lost …         a program runs that says it has a slot, and nobody holds that slot for it
//! leaked …       a slot is held that no program has any more
//! overtaken …    a launch got a slot while an older one waited for it
//! idle …         room was left for somebody in the queue, who did not start for long
//! blocked …      a launch is at work for longer than its wait and SLACK seconds
//! ```
//!
//! It uses no code of the library: the kernel says who holds which bytes, the process table who runs since
//! when, and a program's own environment what it believes to hold. What is wrong for the blink of an eye
//! while processes come and go is checked again before it is believed; each rule says how. See `rules.rs`.

use std::error::Error;
use std::io::{self, Write};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;

#[path = "../../support/held_slots.rs"]
mod held_slots;
#[path = "../../support/lock_range.rs"]
mod lock_range;

mod caps;
mod line;
mod process;
mod repository;
mod rules;

use rules::Referee;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, rungate, slack] = arguments.as_slice() else {
        return Err("usage: referee DIRECTORY RUNGATE SLACK".into());
    };
    let mut referee = Referee::new(directory, rungate, slack.parse()?);
    let (sender, questions) = channel();
    thread::spawn(move || {
        for line in io::stdin().lines() {
            if line.is_err() || sender.send(()).is_err() {
                break;
            }
        }
    });
    let mut looks = 0_u64;
    loop {
        let question = questions.try_recv();
        if question == Err(TryRecvError::Disconnected) {
            return Ok(());
        }
        for wrong in referee.look()? {
            writeln!(io::stdout(), "{wrong}")?;
        }
        looks += 1;
        if question.is_ok() {
            writeln!(io::stdout(), "looks {looks}")?;
        }
    }
}
