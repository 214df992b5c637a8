//! Tables of plain columns: no lines, two blanks between columns, numbers to the right. On a terminal that is
//! too narrow, what is long goes on below within its column; what somebody else reads has a line for each
//! row.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Grid, presets};

use crate::sys::terminal;

/// Rows under titles.
pub(crate) struct Table {
    grid: Grid,
    right: Vec<bool>,
}

impl Table {
    /// A table; a column whose title begins with `>` is aligned to the right.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        let right: Vec<bool> = titles.iter().map(|title| title.starts_with('>')).collect();
        let mut table = Self { grid, right };
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

    fn cells(&self, cells: impl IntoIterator<Item = String>) -> Vec<Cell> {
        cells
            .into_iter()
            .zip(&self.right)
            .map(|(cell, right)| {
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
        }
        for (index, column) in self.grid.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(index + 1 < self.right.len())));
        }
        self.grid.lines().map(|line| format!("{}\n", line.trim_end())).collect()
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
}
