//! Tables of plain columns: no lines, a blank between columns, numbers to the right. On a terminal that is
//! too narrow, what is long goes on below within its column, and only a word that has no room is broken;
//! what somebody else reads has a line for each row.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};

use crate::{output::columns::width, sys::terminal};

/// A column is not narrower than this, or than its longest word.
const NARROWEST: usize = 12;

/// Rows under titles.
pub(crate) struct Table {
    grid: Grid,
    right: Vec<bool>,
    /// How long the longest word of each column is.
    longest: Vec<usize>,
}

impl Table {
    /// A table; a column whose title begins with `>` is aligned to the right.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        let right: Vec<bool> = titles.iter().map(|title| title.starts_with('>')).collect();
        let longest = vec![0; right.len()];
        let mut table = Self { grid, right, longest };
        let head = titles.iter().map(|title| title.trim_start_matches('>').to_owned());
        let cells = table.cells(head);
        table.grid.set_header(cells);
        table
    }

    /// Adds a row; it has a cell for each title.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = self.cells(cells);
        self.grid.add_row(cells);
    }

    fn cells(&mut self, cells: impl IntoIterator<Item = String>) -> Vec<Cell> {
        cells
            .into_iter()
            .zip(&self.right)
            .zip(&mut self.longest)
            .map(|((cell, right), longest)| {
                *longest = cell.split(' ').map(width).fold(*longest, usize::max);
                let alignment = if *right { CellAlignment::Right } else { CellAlignment::Left };
                Cell::new(cell).set_alignment(alignment)
            })
            .collect()
    }

    /// The text, each line with its newline and without trailing blanks.
    pub(crate) fn render(&mut self) -> String {
        self.render_within(terminal::columns())
    }

    fn render_within(&mut self, columns: Option<u16>) -> String {
        if let Some(columns) = columns {
            self.grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
            let widths = self.least_widths(usize::from(columns));
            for (column, least) in self.grid.column_iter_mut().zip(widths) {
                let least = Width::Fixed(u16::try_from(least).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        for (index, column) in self.grid.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(index + 1 < self.right.len())));
        }
        self.grid.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// How wide each column has to be so that no word is broken; where there is not so much room, the columns
    /// with the longest words have to do with less.
    fn least_widths(&self, columns: usize) -> Vec<usize> {
        let blank = |index: usize| usize::from(index + 1 < self.right.len());
        let mut widths: Vec<usize> =
            self.longest.iter().enumerate().map(|(index, longest)| longest + blank(index)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
