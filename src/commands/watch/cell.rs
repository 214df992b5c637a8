//! Cells of tables, cut to the width of their column.

use ratatui::{text::Text, widgets::Cell};

use crate::output::columns;

/// How many columns a text takes.
pub(super) fn width(text: &str) -> u16 {
    u16::try_from(columns::width(text)).unwrap_or(u16::MAX)
}

/// A cell with text on its left side.
pub(super) fn left(text: &str, width: u16) -> Cell<'static> {
    Cell::from(columns::cut(text, usize::from(width)))
}

/// A cell with text on its right side.
pub(super) fn right(text: &str, width: u16) -> Cell<'static> {
    Cell::from(Text::from(columns::cut(text, usize::from(width))).right_aligned())
}
