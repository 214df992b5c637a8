//! Reading a log of JSON lines back.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use crate::log::event::Event;

/// The events of a file, in its order, and how many lines are none: a log may have been cut by rotation.
pub fn read(path: &Path) -> io::Result<(Vec<Event>, usize)> {
    let mut events = Vec::new();
    let others = each(path, |event| events.push(event))?;
    Ok((events, others))
}

/// Shows the events of a file one by one, because a log may be long, and says how many lines are none.
pub fn each(path: &Path, mut see: impl FnMut(Event)) -> io::Result<usize> {
    let mut others = 0_usize;
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(event) => see(event),
            Err(_) => others = others.saturating_add(1),
        }
    }
    Ok(others)
}
