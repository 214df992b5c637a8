//! Reads logs on several processors: whoever wants the events cuts each log into pieces of lines, threads
//! parse these, and the events come in the order of their lines. The memory of events that were seen goes
//! back to the threads, because to free it there costs a fraction of what it costs elsewhere.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    collections::VecDeque,
    io::{self, Read},
    mem,
    num::NonZero,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
    thread, vec,
};

use super::{
    event::Event,
    form::{self, Line},
    history::{LONGEST_LINE, Skipped},
    pieces::{Piece, Pieces},
};
use crate::output::clock::Clock;

/// More threads do not help: whoever sees the events would not keep up.
const MOST_THREADS: usize = 8;

/// Threads that parse.
pub(crate) struct Parsers {
    jobs: Sender<Job>,
    /// How many pieces of one log are parsed, or wait to be seen, at once.
    ahead: usize,
}

struct Job {
    piece: Piece,
    /// Events that were seen.
    spent: Vec<Event>,
    done: SyncSender<Parsed>,
}

/// The events of a piece.
#[derive(Default)]
struct Parsed {
    events: Vec<Event>,
    skipped: Skipped,
    /// The piece, which is no longer needed.
    text: Vec<u8>,
}

impl Parsers {
    /// As many as there are processors, for so many logs.
    pub(crate) fn start(logs: usize) -> Self {
        let (jobs, to_do) = channel::<Job>();
        let to_do = Arc::new(Mutex::new(to_do));
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        for _ in 0..threads {
            let to_do = Arc::clone(&to_do);
            thread::spawn(move || work(&to_do));
        }
        // Each log has one at least, and all of them together no more than keep the threads busy.
        let ahead = threads.saturating_mul(2).checked_div(logs).unwrap_or(1).max(1);
        Self { jobs, ahead }
    }
}

fn work(to_do: &Mutex<Receiver<Job>>) {
    let clock = Clock::now();
    let next = || to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(Job { piece, mut spent, done }) = next() {
        spent.clear();
        let mut parsed = Parsed { events: spent, ..Parsed::default() };
        parsed.skipped.too_long = piece.too_long;
        parsed.read(&piece.text, &clock);
        parsed.text = piece.text;
        // Whoever wanted it may have left.
        let _ = done.send(parsed);
    }
}

impl Parsed {
    fn read(&mut self, text: &[u8], clock: &Clock) {
        // To look once whether all of it is text is cheaper than to look at each word.
        match std::str::from_utf8(text) {
            Ok(text) => text.split_terminator('\n').for_each(|line| {
                self.take(line.len(), || form::read_text(line, clock));
            }),
            Err(_) => text.split_inclusive(|byte| *byte == b'\n').for_each(|line| {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                self.take(line.len(), || form::read(line, clock));
            }),
        }
    }

    fn take(&mut self, length: usize, read: impl FnOnce() -> Line) {
        if length as u64 > LONGEST_LINE {
            self.skipped.too_long = self.skipped.too_long.saturating_add(1);
            return;
        }
        match read() {
            Line::Event(event) => self.events.push(event),
            Line::Foreign => {}
            Line::Unknown => self.skipped.others = self.skipped.others.saturating_add(1),
        }
    }
}

/// The events of one log, one after the other, because a log may be too long to keep.
pub(crate) struct Log<R> {
    pieces: Pieces<R>,
    /// What is being parsed, in the order of the log.
    ahead: VecDeque<Receiver<Parsed>>,
    /// What comes next, and what is no longer needed.
    events: vec::IntoIter<Event>,
    spent: Vec<Event>,
    text: Vec<u8>,
    /// Whether all of it was read.
    is_over: bool,
    /// Why the rest of it cannot be.
    failed: Option<io::Error>,
    skipped: Skipped,
}

impl<R: Read> Log<R> {
    /// What a log holds from here on.
    pub(crate) fn new(log: R) -> Self {
        Self {
            pieces: Pieces::of(log),
            ahead: VecDeque::new(),
            events: Vec::new().into_iter(),
            spent: Vec::new(),
            text: Vec::new(),
            is_over: false,
            failed: None,
            skipped: Skipped::default(),
        }
    }

    /// What was left out until now.
    pub(crate) fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// When the next event happened, as events of several logs are put in order; none at the end.
    pub(crate) fn time(&mut self, parsers: &Parsers) -> io::Result<Option<u64>> {
        while self.events.as_slice().is_empty() {
            self.read_ahead(parsers);
            let Some(next) = self.ahead.pop_front() else {
                return self.failed.take().map_or(Ok(None), Err);
            };
            let parsed = next.recv().map_err(|_| io::Error::other("a thread that parses has failed"))?;
            self.skipped.others = self.skipped.others.saturating_add(parsed.skipped.others);
            self.skipped.too_long = self.skipped.too_long.saturating_add(parsed.skipped.too_long);
            self.spent = Vec::with_capacity(parsed.events.len());
            (self.events, self.text) = (parsed.events.into_iter(), parsed.text);
        }
        Ok(self.events.as_slice().first().map(|event| event.time))
    }

    /// The event whose time was told.
    pub(crate) fn take(&mut self) -> Option<Event> {
        self.events.next()
    }

    /// Takes back an event that is no longer needed.
    pub(crate) fn give_back(&mut self, spent: Option<Event>) {
        self.spent.extend(spent);
    }

    /// Sees to it that the threads have something to do.
    fn read_ahead(&mut self, parsers: &Parsers) {
        while self.ahead.len() < parsers.ahead && !self.is_over {
            match self.pieces.next_piece(mem::take(&mut self.text)) {
                Ok(Some(piece)) => {
                    let (done, parsed) = sync_channel(1);
                    // Where no thread is left, the answer that never comes says so.
                    let _ = parsers.jobs.send(Job { piece, spent: mem::take(&mut self.spent), done });
                    self.ahead.push_back(parsed);
                }
                Ok(None) => self.is_over = true,
                Err(error) => (self.is_over, self.failed) = (true, Some(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::log::event::Kind;

    fn line(command: &str) -> String {
        let event = Event::now(Kind::Started, command, 0, OsStr::new("ws17"));
        serde_json::to_string(&event).expect("it is plain data") + "\n"
    }

    fn commands_of(text: &[u8]) -> (Vec<String>, Skipped) {
        let parsers = Parsers::start(1);
        let mut log = Log::new(text);
        let mut commands = Vec::new();
        while log.time(&parsers).expect("memory can be read").is_some() {
            let event = log.take().expect("it was announced");
            commands.push(event.command.clone());
            log.give_back(Some(event));
        }
        (commands, log.skipped())
    }

    #[test]
    fn events_come_in_the_order_of_their_lines() {
        let expected: Vec<String> = (0..20_000).map(|number| format!("command {number}")).collect();
        let text: String = expected.iter().map(|command| line(command)).collect();
        assert_eq!(commands_of(text.as_bytes()), (expected, Skipped::default()));
        assert_eq!(commands_of(b""), (Vec::new(), Skipped::default()));
    }

    #[test]
    fn what_is_no_event_hides_none_of_the_others() {
        let long = |length: u64| "x".repeat(usize::try_from(length).expect("it is small"));
        let text = [
            line("a").as_bytes(),
            b"\n\xff\n",
            long(LONGEST_LINE).as_bytes(),
            b"\n",
            long(LONGEST_LINE + 1).as_bytes(),
            b"\n",
            line("b").as_bytes(),
            long(1 << 22).as_bytes(),
            b"\n",
            line("c").trim_end().as_bytes(),
        ]
        .concat();
        let skipped = Skipped { others: 3, too_long: 2 };
        assert_eq!(commands_of(&text), (["a", "b", "c"].map(str::to_owned).to_vec(), skipped));
    }

    #[test]
    fn a_log_that_cannot_be_read_is_told_from_one_that_is_over() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let (parsers, text) = (Parsers::start(1), line("a") + &line("b") + "{\"time\"");
        let mut log = Log::new(text.as_bytes().chain(Broken));
        let mut commands = Vec::new();
        let error = loop {
            match log.time(&parsers) {
                Ok(time) => commands.push(time.and_then(|_| log.take()).expect("it is not over").command),
                Err(error) => break error,
            }
        };
        assert_eq!((commands, error.to_string().as_str()), (vec!["a".to_owned(), "b".to_owned()], "broken"));
    }
}
