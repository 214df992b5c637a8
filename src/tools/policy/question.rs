//! Questions to the person at the terminal; without a terminal, none is asked.

use std::io::{self, IsTerminal, Write};

/// Why `--yes` alone is not enough if held slots would not be counted.
pub(super) const UNCOUNTED: &str =
    "slots are held that would not be counted; --yes --allow-uncounted accepts that";

/// The same if that is not known.
pub(super) const PERHAPS_UNCOUNTED: &str = "because of faults it is not known whether held slots would still \
    be counted; --yes --allow-uncounted accepts that";

/// An answer that can be given: the letter, and what it does.
pub(crate) type Answer<T> = (char, T);

/// Whether there is a person to ask.
pub(crate) fn is_there_anybody() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks until one of the answers is given; none at the end of the input.
pub(crate) fn ask<T: Copy>(question: &str, answers: &[Answer<T>]) -> Option<T> {
    loop {
        // The answer follows the question, on one line.
        let _ = io::stderr().write_all(question.as_bytes());
        let mut line = String::new();
        match io::stdin().read_line(&mut line) {
            Ok(0) | Err(_) => {
                let _ = io::stderr().write_all(b"\n");
                return None;
            }
            Ok(_) => {}
        }
        let letter = line.trim().chars().next().map(|letter| letter.to_ascii_lowercase());
        if let Some((_, answer)) = answers.iter().find(|(known, _)| Some(*known) == letter) {
            return Some(*answer);
        }
    }
}
