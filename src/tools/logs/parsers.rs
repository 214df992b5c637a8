//! Parses logs on several processors: the reader cuts each log into pieces of lines, threads parse these, and
//! the events come in the order of their lines. The memory of used events goes back to the threads, because
//! freeing it there costs a fraction of what it costs elsewhere.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    mem,
    num::NonZero,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
    thread, vec,
};

use crate::{
    launch::log::{
        event::Event,
        form::{self, Line},
    },
    text::Clock,
};

/// More threads do not help: the reader of the events would not keep up.
const MOST_THREADS: usize = 8;

/// Threads that parse.
pub(crate) struct Parsers {
    jobs: Sender<Job>,
    /// How many pieces of one log are parsed, or wait to be read, at once.
    ahead: usize,
}

struct Job {
    piece: Piece,
    /// Used events.
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
    /// As many as there are processors, for this many logs.
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
        // The receiver may be gone.
        let _ = done.send(parsed);
    }
}

impl Parsed {
    fn read(&mut self, text: &[u8], clock: &Clock) {
        // Checking all of it once for valid text is cheaper than checking each word.
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

/// The events of one log, one after the other, because a log may be too long for the memory.
pub(crate) struct Log<R> {
    pieces: Pieces<R>,
    /// The parts being parsed, in the order of the log.
    ahead: VecDeque<Receiver<Parsed>>,
    /// The next part, and events that are no longer needed.
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
    /// The rest of a log.
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

    /// The lines that were skipped until now.
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

    /// The event with this time.
    pub(crate) fn take(&mut self) -> Option<Event> {
        self.events.next()
    }

    /// Takes back an event that is no longer needed.
    pub(crate) fn give_back(&mut self, spent: Option<Event>) {
        self.spent.extend(spent);
    }

    /// Gives work to the threads.
    fn read_ahead(&mut self, parsers: &Parsers) {
        while self.ahead.len() < parsers.ahead && !self.is_over {
            match self.pieces.next_piece(mem::take(&mut self.text)) {
                Ok(Some(piece)) => {
                    let (done, parsed) = sync_channel(1);
                    // If no thread is left, the missing answer shows that.
                    let _ = parsers.jobs.send(Job { piece, spent: mem::take(&mut self.spent), done });
                    self.ahead.push_back(parsed);
                }
                Ok(None) => self.is_over = true,
                Err(error) => (self.is_over, self.failed) = (true, Some(error)),
            }
        }
    }
}

// Cuts a log into pieces of whole lines, so that several threads can parse it at once. A line that is longer
// than any event is left out without being kept in memory.

/// How many bytes are read at once.
const PIECE: u64 = 1 << 17;

/// A log that is being cut.
pub(crate) struct Pieces<R> {
    log: R,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
    /// Whether the next bytes belong to a line that is left out.
    is_skipping: bool,
    /// Why there are no more lines.
    failed: Option<io::Error>,
}

/// Some lines.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// Each with its newline, but for the last of a log.
    pub(crate) text: Vec<u8>,
    /// How many lines were left out, because they are too long.
    pub(crate) too_long: usize,
}

impl<R: Read> Pieces<R> {
    /// For a log from here on.
    pub(crate) fn of(log: R) -> Self {
        Self { log, rest: Vec::new(), is_skipping: false, failed: None }
    }

    /// The next lines, in the memory of others that are no longer needed; none at the end. If reading fails,
    /// the lines before the failure come first.
    pub(crate) fn next_piece(&mut self, spent: Vec<u8>) -> io::Result<Option<Piece>> {
        let mut piece = Piece { text: spent, too_long: 0 };
        piece.text.clear();
        piece.text.append(&mut self.rest);
        while self.read_on(&mut piece)? {
            self.skip(&mut piece);
            if self.split(&mut piece) {
                return Ok(Some(piece));
            }
            if piece.text.len() as u64 > LONGEST_LINE {
                piece.text.clear();
                piece.too_long = piece.too_long.saturating_add(1);
                self.is_skipping = true;
            }
        }
        Ok(Some(piece).filter(|piece| !piece.text.is_empty() || piece.too_long > 0))
    }

    /// Whether there is more of it.
    fn read_on(&mut self, piece: &mut Piece) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let before = piece.text.len();
        self.failed = self.log.by_ref().take(PIECE).read_to_end(&mut piece.text).err();
        Ok(piece.text.len() > before || self.failed.is_some())
    }

    /// Discards the bytes of a line that is left out.
    fn skip(&mut self, piece: &mut Piece) {
        if mem::take(&mut self.is_skipping) {
            match piece.text.iter().position(|byte| *byte == b'\n') {
                Some(end) => drop(piece.text.drain(..=end)),
                None => {
                    piece.text.clear();
                    self.is_skipping = true;
                }
            }
        }
    }

    /// Keeps the line that has no end yet for the next piece. Returns whether there are others.
    fn split(&mut self, piece: &mut Piece) -> bool {
        let Some(end) = piece.text.iter().rposition(|byte| *byte == b'\n') else { return false };
        self.rest = piece.text.split_off(end.saturating_add(1));
        true
    }
}

// Reads a log. A user who may append to it can write anything into it: other lines are counted, and a line
// longer than any event is skipped without being kept in memory.

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
mod records_tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::launch::log::event::Kind;

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

#[cfg(test)]
mod tests {
    use crate::launch::log::event::Kind;
    use crate::tools::logs::parsers::*;
    use std::ffi::OsStr;

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

    /// Gives a few bytes at a time, as a pipe does.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let (now, later) = self.0.split_at(self.0.len().min(buffer.len()).min(7919));
            buffer[..now.len()].copy_from_slice(now);
            self.0 = later;
            Ok(now.len())
        }
    }

    #[track_caller]
    fn case(text: &[u8], too_long: usize) -> Vec<u8> {
        let mut pieces = Pieces::of(Slowly(text));
        let (mut seen, mut left_out) = (Vec::new(), 0);
        while let Some(piece) = pieces.next_piece(vec![b'x'; 5]).expect("memory can be read") {
            seen.extend_from_slice(&piece.text);
            left_out += piece.too_long;
            assert!(piece.text.len() < 3 * (1 << 20), "{}", piece.text.len());
        }
        assert_eq!(left_out, too_long);
        seen
    }

    #[test]
    fn all_lines_are_in_the_pieces() {
        let line = |length: usize| [vec![b'a'; length], vec![b'\n']].concat();
        for lines in
            [vec![], vec![0], vec![0, 1, 2], vec![100_000; 9], vec![130_000, 131_071, 131_072, 1_000_000]]
        {
            let text: Vec<u8> = lines.into_iter().flat_map(line).collect();
            assert_eq!(case(&text, 0), text);
        }
        assert_eq!(case(b"a\nb", 0), b"a\nb");
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_with_its_end() {
        let long = [b"x".repeat(5 << 20), b"\n".to_vec()].concat();
        assert_eq!(case(&[&long[..], b"a\n", &long, &long, b"b\n"].concat(), 3), b"a\nb\n");
        assert_eq!(case(&[b"a\n", &long[..], b"b"].concat(), 1), b"a\nb");
        assert_eq!(case(&long[1..long.len() - 1], 1), b"");
    }
}
