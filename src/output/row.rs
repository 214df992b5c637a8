//! One row of a full screen: text in pieces, each with its looks, never wider than the screen. A row that were too wide would
//! be wrapped by the terminal and shift everything below it.

use unicode_width::UnicodeWidthChar;

/// How a piece of text looks. What only differs by colour is the same where there are no colours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Looks {
    /// Like any text.
    Plain,
    /// It stands out.
    Strong,
    /// It keeps in the background.
    Faint,
    /// Black and white exchanged.
    Reversed,
    /// All is well.
    Good,
    /// It will soon not be.
    Near,
    /// It is not.
    Bad,
}

impl Looks {
    /// The parameters of "select graphic rendition" (ECMA-48, 8.3.117).
    fn parameters(self, colours: bool) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Reversed => "7",
            Self::Faint if colours => "90",
            Self::Good if colours => "32",
            Self::Near if colours => "33",
            Self::Bad if colours => "31",
            _ => "",
        }
    }
}

/// A row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Row {
    pieces: Vec<(Looks, String)>,
    /// How many columns are left.
    left: usize,
}

impl Row {
    /// An empty row, so many columns wide at most.
    pub fn new(columns: usize) -> Self {
        Self { pieces: Vec::new(), left: columns }
    }

    /// How many columns are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Adds as much of a text as there is room for. The text is one that a terminal only shows (`visible`).
    pub fn push(&mut self, looks: Looks, text: &str) {
        let text = cut(text, self.left);
        self.left -= width(&text);
        self.pieces.push((looks, text));
    }

    /// Adds a text in a column of its own, on its left or right side.
    pub fn cell(&mut self, looks: Looks, text: &str, columns: usize, to_the_right: bool) {
        let text = cut(text, columns);
        let blanks = " ".repeat(columns - width(&text));
        self.push(looks, &if to_the_right { blanks + &text } else { text + &blanks });
    }

    /// Blanks up to the last column but so many.
    pub fn fill(&mut self, but: usize) {
        self.push(Looks::Plain, &" ".repeat(self.left.saturating_sub(but)));
    }

    /// The text with its control sequences.
    pub(super) fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for (looks, piece) in &self.pieces {
            match looks.parameters(colours) {
                "" => text.push_str(piece),
                parameters => text.push_str(&format!("\x1b[{parameters}m{piece}\x1b[0m")),
            }
        }
        text
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, piece)| piece.as_str()).collect()
    }
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// As much of a text as fits; where something had to go, a mark says so.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut cut: String = text
        .chars()
        .take_while(|character| {
            let width = character.width().unwrap_or(0);
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
        .collect();
    if columns > 0 {
        cut.push('~');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_is_wider_than_the_screen() {
        let mut row = Row::new(10);
        row.cell(Looks::Plain, "matlab", 4, false);
        row.push(Looks::Bad, " 漢字漢字漢字");
        assert_eq!(row.text(), "mat~ 漢字~");
        assert_eq!(row.left(), 0);
        row.push(Looks::Plain, "more");
        assert_eq!(row.render(true), "mat~\x1b[31m 漢字~\x1b[0m");
        assert_eq!(row.render(false), "mat~ 漢字~");
    }

    #[test]
    fn cells_have_sides() {
        let mut row = Row::new(80);
        row.cell(Looks::Plain, "7", 3, true);
        row.cell(Looks::Plain, "x", 3, false);
        row.push(Looks::Plain, "|");
        assert_eq!(row.text(), "  7x  |");
    }
}
