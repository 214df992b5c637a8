//! Watches one lock file while others storm it, and tells which users were seen in which slots.
//!
//! ```text
//! slot_witness FILE
//! ```
//!
//! It looks again and again until its standard input is closed. For each line that it reads there, it takes
//! one more look and then prints what it has seen so far, a line for all users together and one for each of
//! them:
//!
//! ```text
//! all most 12
//! uid 5 most 5 slots 1,2,3,4,5
//! end
//! ```
//!
//! `most` is how many slots were held at one moment. The witness knows nothing but what the kernel says of
//! locks and of processes. A look is no snapshot, so only what a second look finds unchanged is believed:
//! that process held that slot all the time between the looks, and in that time it was asked whose process it
//! is.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;

#[path = "../support/held_slots.rs"]
mod held_slots;
#[path = "../support/lock_range.rs"]
mod lock_range;

use held_slots::{HeldSlot, held_slots};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: slot_witness FILE")?;
    let (sender, questions) = channel();
    thread::spawn(move || {
        for line in io::stdin().lines() {
            if line.is_err() || sender.send(()).is_err() {
                break;
            }
        }
    });
    let mut file = None;
    let mut seen = Seen::default();
    loop {
        // Asked before the look, so that the answer holds whatever was true when the question was put.
        let question = questions.try_recv();
        if question == Err(TryRecvError::Disconnected) {
            return Ok(());
        }
        if file.is_none() {
            file = File::open(&path).ok();
        }
        if let Some(file) = &file {
            seen.look(file)?;
        }
        if question.is_ok() {
            seen.report()?;
        }
    }
}

/// What was seen until now.
#[derive(Default)]
struct Seen {
    most: usize,
    users: BTreeMap<u32, User>,
}

/// What was seen of one user.
#[derive(Default)]
struct User {
    most: usize,
    slots: BTreeSet<i64>,
}

impl Seen {
    fn look(&mut self, file: &File) -> io::Result<()> {
        let first = held_slots(file)?;
        let users: Vec<(HeldSlot, Option<u32>)> =
            first.into_iter().map(|slot| (slot, owner(slot.pid))).collect();
        let second: BTreeSet<HeldSlot> = held_slots(file)?.into_iter().collect();
        let mut together: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
        for (slot, user) in users {
            if let (true, Some(user)) = (second.contains(&slot), user) {
                together.entry(user).or_default().insert(slot.number);
            }
        }
        self.most = self.most.max(together.values().map(BTreeSet::len).sum());
        for (user, slots) in together {
            let seen = self.users.entry(user).or_default();
            seen.most = seen.most.max(slots.len());
            seen.slots.extend(slots);
        }
        Ok(())
    }

    fn report(&self) -> io::Result<()> {
        let mut out = io::stdout();
        writeln!(out, "all most {}", self.most)?;
        for (user, User { most, slots }) in &self.users {
            let slots: Vec<String> = slots.iter().map(i64::to_string).collect();
            writeln!(out, "uid {user} most {most} slots {}", slots.join(","))?;
        }
        writeln!(out, "end")
    }
}

/// Whose process it is, if it is there.
fn owner(pid: i32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|directory| directory.uid())
}
