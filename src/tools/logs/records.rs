//! Reads a log. A user who may append to it can write anything into it: other lines are counted, and a line
//! longer than any event is skipped without being kept in memory.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use crate::{
    launch::log::{
        event::Event,
        form::{self, Line},
    },
    text::clock::Clock,
};

/// The longest line that is read, in bytes. The event of a launch that takes ten thousand slots has less than
/// a tenth of it.
pub(crate) const LONGEST_LINE: u64 = 1 << 20;

/// Lines that are not events. Rotation may have cut a log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Skipped {
    /// Lines that could not be parsed.
    pub(crate) others: usize,
    /// Lines that were too long to be parsed.
    pub(crate) too_long: usize,
}

/// The events of one log, one after the other, because a log may be too long to keep.
pub(crate) struct Reader<R> {
    log: R,
    clock: Clock,
    line: Vec<u8>,
    skipped: Skipped,
}

impl<R: BufRead> Reader<R> {
    /// Reads the rest of the log.
    pub(crate) fn new(log: R) -> Self {
        Self { log, clock: Clock::now(), line: Vec::new(), skipped: Skipped::default() }
    }

    fn next_event(&mut self) -> io::Result<Option<Event>> {
        loop {
            self.line.clear();
            match next_line(&mut self.log, &mut self.line)? {
                Next::End => return Ok(None),
                Next::TooLong => self.skipped.too_long = self.skipped.too_long.saturating_add(1),
                Next::Line => match form::read(&self.line, &self.clock) {
                    Line::Event(event) => return Ok(Some(event)),
                    Line::Foreign => {}
                    Line::Unknown => self.skipped.others = self.skipped.others.saturating_add(1),
                },
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

/// Calls `see` for each event of a file; returns what was skipped.
pub(crate) fn each(path: &Path, mut see: impl FnMut(Event)) -> io::Result<Skipped> {
    let mut reader = Reader::new(BufReader::new(File::open(path)?));
    while let Some(event) = reader.next_event()? {
        see(event);
    }
    Ok(reader.skipped)
}

enum Next {
    Line,
    TooLong,
    End,
}

/// Reads up to the end of the line. The rest of one that is too long is skipped.
fn next_line(log: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Next> {
    let read = log.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(Next::Line);
    }
    Ok(match read as u64 {
        0 => Next::End,
        1..=LONGEST_LINE => Next::Line,
        _ => {
            log.skip_until(b'\n')?;
            Next::TooLong
        }
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::launch::log::event::Kind;
    use crate::tools::logs::records::*;

    #[test]
    fn a_line_that_is_too_long_hides_none_of_the_others() {
        let event = serde_json::to_string(&Event::now(Kind::Started, "sync", 0, OsStr::new("ws17")));
        let event = event.expect("it is plain data");
        let long = |length| "x".repeat(usize::try_from(length).expect("it is small"));
        let text =
            [&event, "", &long(LONGEST_LINE), &long(LONGEST_LINE + 1), &event, &long(1 << 21)].join("\n");
        for capacity in [1, 100, 1 << 16] {
            let mut seen = 0;
            let mut reader = Reader::new(BufReader::with_capacity(capacity, text.as_bytes()));
            while reader.next_event().expect("memory can be read").is_some() {
                seen += 1;
            }
            assert_eq!((seen, reader.skipped), (2, Skipped { others: 2, too_long: 2 }), "{capacity}");
        }
    }
}
