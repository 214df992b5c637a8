//! The table of the repositories: names and bars as wide as possible, numbers as wide as needed. On a narrow
//! screen the least important columns disappear first.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style, Stylize},
    widgets::{Cell, HighlightSpacing, Row, Table, TableState},
};

use super::{
    bar::{Glyphs, left, right, width},
    snapshot::Entry,
    view::{SortKey, View},
};
use crate::text::clock::age;

/// The widest bar: with more, one would look for the numbers on the other side of the screen.
const WIDEST_BAR: u16 = 60;

#[derive(Clone, Copy)]
enum Column {
    Title,
    Bar,
    Used,
    Limit,
    Kept,
    Waiting,
    Oldest,
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Title => "REPOSITORY",
            Self::Bar => "USE",
            Self::Used => "USED",
            Self::Limit => "LIMIT",
            Self::Kept => "KEPT",
            Self::Waiting => "WAIT",
            Self::Oldest => "OLDEST",
        }
    }

    /// The order that it is sorted by.
    fn order(self) -> Option<SortKey> {
        match self {
            Self::Title => Some(SortKey::Name),
            Self::Bar => Some(SortKey::Use),
            Self::Waiting => Some(SortKey::Waiting),
            Self::Oldest => Some(SortKey::Age),
            Self::Used | Self::Limit | Self::Kept => None,
        }
    }

    fn header(self, width: u16, order: SortKey) -> Cell<'static> {
        let cell = match self {
            Self::Title | Self::Bar => left(self.title(), width),
            _ => right(self.title(), width),
        };
        if self.order() == Some(order) { cell.not_dim().bold().underlined() } else { cell }
    }

    fn cell(self, entry: &Entry, width: u16, glyphs: Glyphs) -> Cell<'static> {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        match self {
            Self::Title => left(&entry.title, width),
            Self::Bar => match entry.limit {
                Some(limit) => Cell::from(glyphs.bar(width, entry.used, entry.kept, limit)),
                None => Cell::default(),
            },
            Self::Used => right(&entry.used.to_string(), width),
            Self::Limit => right(&number(entry.limit), width),
            Self::Kept => right(&entry.kept.to_string(), width),
            Self::Waiting if entry.waiting.is_empty() => right("0", width),
            Self::Waiting => right(&entry.waiting.len().to_string(), width).bold(),
            Self::Oldest => right(&entry.oldest().map_or_else(|| "-".to_owned(), age), width),
        }
    }
}

/// The columns that there is room for, and how wide each is.
fn columns(entries: &[&Entry], room: u16) -> Vec<(Column, u16)> {
    let highest = entries.iter().flat_map(|entry| [Some(entry.used), entry.limit]).flatten().max();
    let number = width(&highest.unwrap_or(0).to_string()).max(5);
    let mut columns = vec![(Column::Used, number)];
    if room >= 2 * number + 13 {
        columns.push((Column::Limit, number));
    }
    if room >= 56 && entries.iter().any(|entry| entry.kept_note.is_some()) {
        columns.push((Column::Kept, 4));
    }
    if room >= 34 {
        columns.push((Column::Waiting, 5));
    }
    if room >= 48 {
        columns.push((Column::Oldest, 7));
    }
    // The first column is that of the mark.
    let taken: u16 = 1 + columns.iter().map(|(_, width)| width + 1).sum::<u16>();
    let rest = room.saturating_sub(taken);
    let longest = entries.iter().map(|entry| width(&entry.title)).max().unwrap_or(0).max(10);
    if rest < 26 {
        columns.insert(0, (Column::Title, rest.min(longest)));
    } else {
        let bar = rest.saturating_sub(longest.saturating_add(1)).max(rest / 3).min(WIDEST_BAR);
        columns.splice(0..0, [(Column::Title, (rest - bar - 1).min(longest)), (Column::Bar, bar)]);
    }
    columns
}

/// Draws the table with the selected repository in sight.
pub(super) fn draw(
    frame: &mut Frame,
    area: Rect,
    entries: &[&Entry],
    place: usize,
    view: &mut View,
    glyphs: Glyphs,
) {
    let columns = columns(entries, area.width);
    let header = columns.iter().map(|(column, width)| column.header(*width, view.order));
    let rows = entries.iter().enumerate().map(|(index, entry)| {
        let row = match &entry.error {
            None => Row::new(columns.iter().map(|(column, width)| column.cell(entry, *width, glyphs))),
            Some(error) => {
                let rest = u16::try_from(columns.len() - 1).unwrap_or(0);
                let title = Column::Title.cell(entry, columns[0].1, glyphs);
                Row::new([title, Cell::from(error.clone()).red().column_span(rest)])
            }
        };
        // As the style of the row, so that cells keep their own.
        if index == place { row.style(Modifier::REVERSED | Modifier::BOLD) } else { row }
    });
    let table = Table::new(rows, columns.iter().map(|(_, width)| *width))
        .header(Row::new(header).style(Style::new().dim()))
        .highlight_symbol(">")
        .highlight_spacing(HighlightSpacing::Always);
    let mut state = TableState::new().with_offset(view.top).with_selected(place);
    frame.render_stateful_widget(table, area, &mut state);
    view.top = state.offset();
}
