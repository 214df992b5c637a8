//! Tables of plain columns: no lines, a blank between columns, numbers aligned right. On a narrow terminal
//! long cells wrap within their column, and a word is broken only if it does not fit, after a hyphen, a dot
//! or a slash if it has one. Elsewhere each row has one line. Rows that are counted, such as slots, always
//! have one line, and long cells are cut.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};

use super::style::{self, Style, broken, cut, width};
use crate::sys::terminal;

/// A column is not narrower than this, or than its longest word.
const NARROWEST: usize = 12;

/// No column of text is cut to less than this.
const SHORTEST: usize = 6;

/// Rows under titles.
pub(crate) struct Table {
    /// The titles, and below them the rows.
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
    /// How long the longest word of each column is.
    longest: Vec<usize>,
    /// Whether each row is one line.
    is_cut: bool,
}

impl Table {
    /// A table; a column whose title begins with `>` is aligned to the right.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let right: Vec<bool> = titles.iter().map(|title| title.starts_with('>')).collect();
        let longest = vec![0; right.len()];
        let mut table = Self { rows: Vec::new(), right, longest, is_cut: false };
        table.row(titles.iter().map(|title| Style::Dim.paint(title.trim_start_matches('>'))));
        table
    }

    /// The same with one line for each row. If it is too wide, the last column is cut first, then the widest
    /// text column.
    #[must_use]
    pub(crate) fn in_one_line(self) -> Self {
        Self { is_cut: true, ..self }
    }

    /// Adds a row; it has a cell for each title.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().take(self.right.len()).collect();
        for (cell, longest) in row.iter().zip(&mut self.longest) {
            *longest = cell.split(' ').map(width).fold(*longest, usize::max);
        }
        self.rows.push(row);
    }

    /// The text, each line with its newline and without trailing blanks.
    pub(crate) fn render(&self) -> String {
        self.render_within(terminal::columns())
    }

    fn render_within(&self, columns: Option<u16>) -> String {
        match columns {
            Some(columns) if self.is_cut => self.render_cut(usize::from(columns)),
            columns => self.render_wrapped(columns),
        }
    }

    fn render_cut(&self, columns: usize) -> String {
        let widths = self.cut_widths(columns);
        let line = |row: &Vec<String>| {
            let (mut line, mut room) = (String::new(), columns);
            for (index, (cell, column)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, (*column).min(room));
                let gap = " ".repeat(column.saturating_sub(width(&cell)));
                line += &if self.right[index] { gap + &cell } else { cell + &gap };
                line.push(' ');
                room = room.saturating_sub(column + 1);
            }
            format!("{}\n", line.trim_end())
        };
        self.rows.iter().map(line).collect()
    }

    /// How wide each column is where every row has one line.
    fn cut_widths(&self, columns: usize) -> Vec<usize> {
        let widest = |index: usize| self.rows.iter().map(|row| width(&row[index])).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..self.right.len()).map(widest).collect();
        let least: Vec<usize> = self.rows[0].iter().map(|title| width(title).max(SHORTEST)).collect();
        let Some(last) = widths.len().checked_sub(1) else { return widths };
        let mut missing = (widths.iter().sum::<usize>() + last).saturating_sub(columns);
        let gained = missing.min(widths[last].saturating_sub(least[last]));
        widths[last] -= gained;
        missing -= gained;
        while missing > 0 {
            let others = (0..last).filter(|index| !self.right[*index] && widths[*index] > least[*index]);
            let Some(widest) = others.max_by_key(|index| widths[*index]) else { break };
            widths[widest] -= 1;
            missing -= 1;
        }
        widths
    }

    fn render_wrapped(&self, columns: Option<u16>) -> String {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        let widths = columns.map(|columns| self.least_widths(usize::from(columns)));
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(index, cell)| {
                let room = widths.as_ref().map(|widths| widths[index] - self.blank(index));
                let text = room.map_or_else(|| cell.clone(), |room| fitting(cell, room));
                let right = self.right[index];
                Cell::new(text).set_alignment(if right { CellAlignment::Right } else { CellAlignment::Left })
            });
            grid.add_row(cells.collect::<Vec<Cell>>());
        }
        if let (Some(columns), Some(widths)) = (columns, widths) {
            grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
            for (column, least) in grid.column_iter_mut().zip(widths) {
                let least = Width::Fixed(u16::try_from(least).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        for (index, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(self.blank(index) > 0)));
        }
        grid.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// How many blanks there are behind a column.
    fn blank(&self, index: usize) -> usize {
        usize::from(index + 1 < self.right.len())
    }

    /// The width of each column so that no word is broken. If there is less space, the columns with the
    /// longest words get less.
    fn least_widths(&self, columns: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.longest.iter().enumerate().map(|(index, longest)| longest + self.blank(index)).collect();
        loop {
            let room = widths.iter().sum::<usize>();
            match widths.iter_mut().max() {
                Some(widest) if room > columns && *widest > NARROWEST => {
                    *widest = widest.saturating_sub(room - columns).max(NARROWEST);
                }
                _ => return widths,
            }
        }
    }
}

/// A cell, wrapped so that its words fit into this many columns.
fn fitting(cell: &str, columns: usize) -> String {
    let words = cell.split(' ').map(|word| {
        let (plain, in_style) = style::split(word);
        broken(&plain, columns).into_iter().map(in_style).collect::<Vec<String>>().join("\n")
    });
    words.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::text::table::*;

    fn table() -> Table {
        let mut table = Table::new(&["RULE", ">STARTS", ">WOULD REFUSE", "RUN MEDIAN/95%/MAX"]);
        table.row(["GPU jobs of everybody who has one", "1", "12", "1m/2m/3m"].map(str::to_owned));
        table
    }

    #[test]
    fn what_is_too_long_for_the_terminal_goes_on_in_its_column() {
        let one_line = "
RULE                              STARTS WOULD REFUSE RUN MEDIAN/95%/MAX
GPU jobs of everybody who has one      1           12 1m/2m/3m
";
        assert_eq!(format!("\n{}", table().render_within(None)), one_line);
        assert_eq!(format!("\n{}", table().render_within(Some(80))), one_line);
        let narrow = table().render_within(Some(50));
        assert!(narrow.lines().all(|line| line.len() <= 50), "{narrow}");
        assert!(narrow.lines().count() > 2 && narrow.contains(" 1m/2m/3m"), "{narrow}");
    }

    #[test]
    fn a_word_is_broken_only_where_there_is_no_room_for_it() {
        let mut shims = Table::new(&["SHIM", "STARTS", "RULES", "NOTE"]);
        let row =
            ["/etc/rungate/shims/matlab", "/opt/matlab/bin/matlab", "three for each user", "not in PATH"];
        shims.row(row.map(str::to_owned));
        let broken_between_words = "
SHIM                      STARTS                 RULES     NOTE
/etc/rungate/shims/matlab /opt/matlab/bin/matlab three for not in
                                                 each user PATH
";
        assert_eq!(format!("\n{}", shims.render_within(Some(68))), broken_between_words);
        let narrow = shims.render_within(Some(50));
        assert!(narrow.lines().all(|line| width(line) <= 50), "{narrow}");
        let mut names = Table::new(&["REPOSITORY", ">USED", "NOTE"]);
        names.row(["a-name-of-which-there-is-too-much", "1", "2 in use or used before"].map(str::to_owned));
        let narrow = names.render_within(Some(30));
        assert!(narrow.lines().all(|line| width(line) <= 30), "{narrow}");
        assert!(narrow.contains(" used\n") && narrow.contains(" before\n"), "{narrow}");
    }

    #[test]
    fn a_row_stays_one_line_and_the_last_column_is_cut_first() {
        let mut slots = Table::new(&[">SLOT", "USER", "COMMAND", "RULE"]).in_one_line();
        slots.row(["1", "ann", "matlab", "seats for everybody"].map(str::to_owned));
        slots.row(["12", "a-long-name", "simulation", "seats"].map(str::to_owned));
        let expected = "
SLOT USER        COMMAND    RULE
   1 ann         matlab     seats for~
  12 a-long-name simulation seats
";
        assert_eq!(format!("\n{}", slots.render_within(Some(38))), expected);
        let expected = "
SLOT USER   COMMAND RULE
   1 ann    matlab  seats~
  12 a-lon~ simula~ seats
";
        assert_eq!(format!("\n{}", slots.render_within(Some(26))), expected);
        let expected = "
SLOT USER   COMMA~
   1 ann    matlab
  12 a-lon~ simul~
";
        assert_eq!(format!("\n{}", slots.render_within(Some(18))), expected);
        assert!(slots.render_within(None).contains("seats for everybody\n"));
    }

    #[test]
    fn a_word_without_room_is_broken_after_one_of_its_marks() {
        let mut names = Table::new(&["REPOSITORY", ">USED", "PATH"]);
        let row = ["cad-flow-per-project-seats [ann]", "1", "/proj/alpha/lock_files/seats"];
        names.row(row.map(str::to_owned));
        let expected = "
REPOSITORY         USED PATH
cad-flow-per-         1 /proj/alpha/
project-seats           lock_files/
[ann]                   seats
";
        assert_eq!(format!("\n{}", names.render_within(Some(36))), expected);
    }
}
