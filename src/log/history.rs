//! Reading a log of JSON lines back.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use crate::log::event::Event;

/// The events of a file, in its order, and how many lines are none: a log may have been cut by rotation.
pub fn read(path: &Path) -> io::Result<(Vec<Event>, usize)> {
    let mut events = Vec::new();
    let mut others = 0;
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(event) => events.push(event),
            Err(_) => others += 1,
        }
    }
    Ok((events, others))
}
