//! Watches lock files while others storm them, and tells how many slots of each were held at one moment.
//!
//! ```text
//! observer FILE=LIMIT…
//! ```
//!
//! It looks again and again until its standard input is closed. For each line that it reads there, it takes
//! one more look and then prints what it has seen so far, a line for each file:
//!
//! ```text
//! FILE limit 5 most 5 violations 0
//! ```
//!
//! It knows nothing but what the kernel says of the locks; it takes none, so it delays nobody. A look at a
//! file is no snapshot: a slot may be counted, released, and another one taken before the look is over. So
//! more holders than ever before are believed only when a second look finds the same processes in the same
//! slots: those were all held together at the moment between the looks. What is reported is therefore never
//! too high.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;

#[path = "../support/held_slots.rs"]
mod held_slots;
#[path = "../support/lock_range.rs"]
mod lock_range;

use held_slots::{HeldSlot, held_slots};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files =
        std::env::args().skip(1).map(|argument| Watched::new(&argument)).collect::<Result<Vec<_>, _>>()?;
    let (sender, questions) = channel();
    thread::spawn(move || {
        for line in io::stdin().lines() {
            if line.is_err() || sender.send(()).is_err() {
                break;
            }
        }
    });
    loop {
        // Asked before the look, so that the answer holds whatever was true when the question was put.
        let question = questions.try_recv();
        if question == Err(TryRecvError::Disconnected) {
            return Ok(());
        }
        for file in &mut files {
            file.look()?;
        }
        if question.is_ok() {
            for Watched { path, limit, most, violations, .. } in &files {
                writeln!(io::stdout(), "{path} limit {limit} most {most} violations {violations}")?;
            }
        }
    }
}

/// One lock file, and what was seen of it.
struct Watched {
    path: String,
    limit: usize,
    /// Absent until somebody creates the file.
    file: Option<File>,
    most: usize,
    violations: u64,
}

impl Watched {
    fn new(argument: &str) -> Result<Self, Box<dyn Error>> {
        let (path, limit) = argument.rsplit_once('=').ok_or("usage: observer FILE=LIMIT…")?;
        Ok(Self { path: path.into(), limit: limit.parse()?, file: None, most: 0, violations: 0 })
    }

    fn look(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return Ok(()) };
        let first = held_slots(file)?;
        if first.len() <= self.most.min(self.limit) {
            return Ok(());
        }
        let second: BTreeSet<HeldSlot> = held_slots(file)?.into_iter().collect();
        let together: Vec<HeldSlot> = first.into_iter().filter(|slot| second.contains(slot)).collect();
        self.most = self.most.max(together.len());
        if together.len() > self.limit {
            self.violations += 1;
        }
        Ok(())
    }
}
