//! The table of the processes of one repository: who holds its slots and, below them, who waits.

use std::borrow::Cow;

use ratatui::{
    style::Stylize,
    widgets::{Cell, Row, Table},
};

use super::{
    bar,
    snapshot::{Entry, Process},
    view::View,
};
use crate::text::clock::age;

/// Holders and waiting processes that are shown.
pub(super) struct Processes<'s> {
    holders: Vec<&'s Process>,
    waiting: Vec<&'s Process>,
}

impl<'s> Processes<'s> {
    /// Those of a repository that the view does not filter out.
    pub(super) fn of(entry: &'s Entry, view: &View) -> Self {
        Self { holders: view.filtered(entry, &entry.holders), waiting: view.filtered(entry, &entry.waiting) }
    }

    /// How many rows all of them take, headers included.
    pub(super) fn rows(&self) -> usize {
        rows(&self.holders) + rows(&self.waiting)
    }

    /// A table in so many rows. The line gets half of them at most, if both need more; what is left out is
    /// counted.
    pub(super) fn table(&self, width: u16, room: usize) -> Table<'static> {
        let for_waiting = rows(&self.waiting).min((room / 2).max(room.saturating_sub(rows(&self.holders))));
        let columns = self.columns(width);
        let mut rows = section(["SLOT", "RULE"], &self.holders, room - for_waiting, &columns);
        rows.extend(section(["LINE", "WAITS FOR"], &self.waiting, for_waiting, &columns));
        Table::new(rows, columns.into_iter().map(|(_, width)| width))
    }

    /// The columns that there is room for, and how wide each is. The last one gets what is left.
    fn columns(&self, width: u16) -> Vec<(Column, u16)> {
        let widest = |column: Column, least: u16, most: u16| {
            let cells = self.holders.iter().chain(&self.waiting).map(|process| column.text(process));
            let widest = cells.map(|cell| bar::width(&cell)).max().unwrap_or(0);
            (column, widest.clamp(least, most))
        };
        let mut columns = vec![widest(Column::Place, 4, 11)];
        if width >= 40 {
            columns.push(widest(Column::Pid, 7, 10));
        }
        columns.push(widest(Column::User, 4, (width / 6).max(16)));
        if width >= 28 {
            columns.push((Column::Age, 7));
        }
        if width >= 40 {
            columns.push(widest(Column::Command, 7, (width / 4).max(20)));
        }
        let taken: u16 = columns.iter().map(|(_, width)| width + 1).sum();
        let last = if width >= 40 { Column::Note } else { Column::Command };
        columns.push((last, width.saturating_sub(taken)));
        columns
    }
}

#[derive(Clone, Copy)]
enum Column {
    Place,
    Pid,
    User,
    Age,
    Command,
    Note,
}

impl Column {
    fn text(self, process: &Process) -> Cow<'_, str> {
        match self {
            Self::Place => Cow::from(&process.place),
            Self::Pid => Cow::from(&process.pid),
            Self::User => Cow::from(&process.user),
            Self::Age => Cow::from(process.age.map_or_else(|| "?".to_owned(), age)),
            Self::Command => Cow::from(&process.command),
            Self::Note => Cow::from(&process.note),
        }
    }

    fn cell(self, text: &str, width: u16) -> Cell<'static> {
        match self {
            Self::Place | Self::Pid | Self::Age => bar::right(text, width),
            Self::User | Self::Command | Self::Note => bar::left(text, width),
        }
    }
}

/// How many rows so many processes take, with their header.
fn rows(processes: &[&Process]) -> usize {
    if processes.is_empty() { 0 } else { processes.len() + 1 }
}

/// A header and as many processes as there is room for.
fn section(
    [place, note]: [&str; 2],
    processes: &[&Process],
    room: usize,
    columns: &[(Column, u16)],
) -> Vec<Row<'static>> {
    if processes.is_empty() || room < 2 {
        return Vec::new();
    }
    let fits = if processes.len() < room { processes.len() } else { room - 2 };
    let header = columns.iter().map(|(column, width)| {
        let title = match column {
            Column::Place => place,
            Column::Pid => "PID",
            Column::User => "USER",
            Column::Age => "AGE",
            Column::Command => "COMMAND",
            Column::Note => note,
        };
        column.cell(title, *width)
    });
    let mut rows = vec![Row::new(header).dim()];
    rows.extend(processes[..fits].iter().map(|process| {
        Row::new(columns.iter().map(|(column, width)| column.cell(&column.text(process), *width)))
    }));
    if fits < processes.len() {
        let more = format!("  ... {} more (enter)", processes.len() - fits);
        rows.push(Row::new([Cell::from(more).column_span(6)]).dim());
    }
    rows
}
