//! Tables of plain columns: no lines, two blanks between columns, numbers to the right.

use comfy_table::{Cell, CellAlignment, Table as Grid, presets};

/// A table with a head.
pub struct Table {
    grid: Grid,
    right: Vec<bool>,
}

impl Table {
    /// A table; a column whose title begins with `>` is aligned to the right.
    pub fn new(titles: &[&str]) -> Self {
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
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
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
    pub fn render(&mut self) -> String {
        for (index, column) in self.grid.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(index + 1 < self.right.len())));
        }
        self.grid.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}
