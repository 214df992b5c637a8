//! Tables of plain columns: no lines, a blank between columns, numbers to the right. On a terminal that is
//! too narrow, what is long goes on below within its column, and only a word that has no room is broken,
//! after one of its hyphens, dots or slashes where it has one; what somebody else reads has a line for each
//! row.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};

use crate::{
    output::columns::{broken, width},
    sys::terminal,
};

/// A column is not narrower than this, or than its longest word.
const NARROWEST: usize = 12;

/// Rows under titles.
pub(crate) struct Table {
    /// The titles, and below them the rows.
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
    /// How long the longest word of each column is.
    longest: Vec<usize>,
}

impl Table {
    /// A table; a column whose title begins with `>` is aligned to the right.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let right: Vec<bool> = titles.iter().map(|title| title.starts_with('>')).collect();
        let longest = vec![0; right.len()];
        let mut table = Self { rows: Vec::new(), right, longest };
        table.row(titles.iter().map(|title| title.trim_start_matches('>').to_owned()));
        table
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

    /// How wide each column has to be so that no word is broken; where there is not so much room, the columns
    /// with the longest words have to do with less.
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

/// A cell whose words all have room in so many columns.
fn fitting(cell: &str, columns: usize) -> String {
    let words = cell.split(' ').map(|word| broken(word, columns).join("\n"));
    words.collect::<Vec<String>>().join(" ")
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
