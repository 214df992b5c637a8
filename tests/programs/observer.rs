//! Watches lock files while others storm them, and tells how many slots of each were held at one moment.
//!
//! ```text
//! observer FILE=LIMIT…
//! ```
//!
//! It says `ready` after its first look, looks again and again until its standard input is closed, and then prints a
//! line for each file:
//!
//! ```text
//! FILE limit 5 most 5 violations 0
//! ```
//!
//! It knows nothing but what the kernel says of the locks; it takes none, so it delays nobody. A look at a file is no
//! snapshot: a slot may be counted, given back, and another one taken before the look is over. So more holders than
//! ever before are believed only when a second look finds the same processes in the same slots: those were all held
//! together at the moment between the looks. What is reported is therefore never too high.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[path = "../support/held_slots.rs"]
mod held_slots;
#[path = "../support/lock_range.rs"]
mod lock_range;

use held_slots::{HeldSlot, held_slots};

/// Set when standard input is closed.
static ENOUGH: AtomicBool = AtomicBool::new(false);

fn main() -> Result<(), Box<dyn Error>> {
    let mut files =
        std::env::args().skip(1).map(|argument| Watched::new(&argument)).collect::<Result<Vec<_>, _>>()?;
    let mut ready = false;
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        ENOUGH.store(true, Ordering::Relaxed);
    });
    while !ENOUGH.load(Ordering::Relaxed) {
        for file in &mut files {
            file.look()?;
        }
        if !ready {
            writeln!(io::stdout(), "ready")?;
            ready = true;
        }
    }
    for Watched { path, limit, most, violations, .. } in &files {
        writeln!(io::stdout(), "{path} limit {limit} most {most} violations {violations}")?;
    }
    Ok(())
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
