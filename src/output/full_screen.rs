//! The whole terminal, for something that lives: rows that are written over where they changed, and a terminal that is what
//! it was before however the program ends, also when it is told to or when it panics.

use std::{
    io::{self, IsTerminal, Write},
    panic,
    sync::Once,
};

use crate::{
    output::row::Row,
    sys::{failure::Failure, raw_terminal, terminal},
};

/// The second screen of the terminal, and no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[2J";

/// The screen, given back when dropped.
#[must_use = "the terminal is given back when this is dropped"]
pub struct FullScreen {
    /// What stands there now, row by row.
    shown: Vec<String>,
    is_clear: bool,
    colours: bool,
}

impl FullScreen {
    /// Whether there is a terminal to read from and to write to, that understands where to write.
    pub fn is_possible() -> bool {
        let is_able = std::env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb");
        io::stdin().is_terminal() && io::stdout().is_terminal() && is_able
    }

    /// Takes the terminal.
    pub fn enter() -> Result<Self, Failure> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                leave();
                usual(panicked);
            }));
        });
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut screen = Self { shown: Vec::new(), is_clear: false, colours };
        screen.take_again()?;
        Ok(screen)
    }

    /// Takes the terminal once more, after somebody else had it.
    pub fn take_again(&mut self) -> Result<(), Failure> {
        raw_terminal::begin().map_err(Failure::of("tcsetattr"))?;
        self.forget();
        write(ENTER).map_err(Failure::of_io("write"))
    }

    /// Gives the terminal back for a while.
    pub fn give_back(&self) {
        leave();
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        terminal::size()
    }

    /// Draws everything anew the next time: the size is another one, or somebody has written over it.
    pub fn forget(&mut self) {
        self.is_clear = false;
    }

    /// Makes the screen look like these rows. What is there already is not written again, so that nothing flickers.
    pub fn draw(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let changes = self.changes(rows);
        if changes.is_empty() { Ok(()) } else { write(&changes).map_err(Failure::of_io("write")) }
    }

    fn changes(&mut self, rows: &[Row]) -> String {
        let mut text = String::new();
        if !self.is_clear {
            text.push_str(CLEAR);
            self.shown.clear();
        }
        self.shown.resize(rows.len(), String::new());
        for (index, (row, shown)) in rows.iter().zip(&mut self.shown).enumerate() {
            let new = row.render(self.colours);
            if *shown != new {
                text.push_str(&format!("\x1b[{};1H{new}\x1b[K", index + 1));
                *shown = new;
            }
        }
        self.is_clear = true;
        text
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave();
    }
}

/// Does nothing where the terminal was given back already.
fn leave() {
    if raw_terminal::end() {
        let _ = write(LEAVE);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::row::Looks;

    #[test]
    fn only_what_changed_is_written() {
        let mut screen = FullScreen { shown: Vec::new(), is_clear: false, colours: false };
        let rows = |texts: [&str; 3]| {
            texts.map(|text| {
                let mut row = Row::new(80);
                row.push(Looks::Good, text);
                row
            })
        };
        assert_eq!(screen.changes(&rows(["a", "", "c"])), "\x1b[2J\x1b[1;1Ha\x1b[K\x1b[3;1Hc\x1b[K");
        assert_eq!(screen.changes(&rows(["a", "", "c"])), "");
        assert_eq!(screen.changes(&rows(["a", "b", "c"])), "\x1b[2;1Hb\x1b[K");
        screen.forget();
        assert_eq!(screen.changes(&rows(["a", "", ""])), "\x1b[2J\x1b[1;1Ha\x1b[K");
    }
}
