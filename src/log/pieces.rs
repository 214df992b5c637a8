//! Cuts a log into pieces of whole lines, so that several threads can parse it at once. A line that is longer
//! than any event is left out without being kept in memory.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    io::{self, Read},
    mem,
};

use super::history::LONGEST_LINE;

/// So many bytes are read at once.
const PIECE: u64 = 1 << 17;

/// A log that is being cut.
pub(super) struct Pieces<R> {
    log: R,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
    /// Whether what comes belongs to a line that is left out.
    is_skipping: bool,
    /// Why nothing comes any more.
    failed: Option<io::Error>,
}

/// Some lines.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Each with its newline, but for the last of a log.
    pub(super) text: Vec<u8>,
    /// How many lines were left out, because they are too long.
    pub(super) too_long: usize,
}

impl<R: Read> Pieces<R> {
    /// Of a log from here on.
    pub(super) fn of(log: R) -> Self {
        Self { log, rest: Vec::new(), is_skipping: false, failed: None }
    }

    /// The next lines, in the memory of others that are no longer needed; none at the end. Where the log
    /// breaks off, the lines before that come first.
    pub(super) fn next_piece(&mut self, spent: Vec<u8>) -> io::Result<Option<Piece>> {
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

    /// Forgets what belongs to a line that is left out.
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

    /// Keeps the line that has no end yet for the next piece. Says whether there are others.
    fn split(&mut self, piece: &mut Piece) -> bool {
        let Some(end) = piece.text.iter().rposition(|byte| *byte == b'\n') else { return false };
        self.rest = piece.text.split_off(end.saturating_add(1));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
