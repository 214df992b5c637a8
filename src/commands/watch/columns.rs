//! The columns of the repositories: names and bars as wide as there is room for, numbers as wide as they are. Where there is
//! little room the columns that say least go first.

use crate::{
    commands::watch::picture::Entry,
    output::{
        age::age,
        bar::Glyphs,
        row::{Looks, Row, width},
    },
};

/// How wide the columns of the repositories are; one that has no room has no width.
pub(super) struct Columns {
    title: usize,
    bar: usize,
    /// Used, and limit, each with a blank before it.
    number: usize,
    kept: usize,
    waiting: usize,
    oldest: usize,
}

impl Columns {
    /// Those for these repositories on a screen so wide.
    pub(super) fn of(entries: &[&Entry], columns: usize) -> Self {
        let highest = entries.iter().flat_map(|entry| [Some(entry.used), entry.limit]).flatten().max();
        let number = highest.unwrap_or(0).to_string().len().max(5) + 1;
        let kept = if columns >= 56 && entries.iter().any(|entry| entry.kept_note.is_some()) { 5 } else { 0 };
        let oldest = if columns >= 48 { 8 } else { 0 };
        let waiting = if columns >= 34 { 6 } else { 0 };
        let rest = columns.saturating_sub(1 + 2 * number + kept + waiting + oldest);
        let longest = entries.iter().map(|entry| width(&entry.title)).max().unwrap_or(0).max(10);
        let bar = if rest < 26 { 0 } else { rest.saturating_sub(longest + 1).clamp(rest / 3, 40) };
        Self { title: rest.saturating_sub(bar + 1).min(longest), bar, number, kept, waiting, oldest }
    }

    /// The row above them.
    pub(super) fn titles(&self, mut row: Row) -> Row {
        row.cell(Looks::Faint, " REPOSITORY", self.title + 1, false);
        row.push(Looks::Faint, " ");
        row.cell(Looks::Faint, "USE", self.bar, false);
        row.cell(Looks::Faint, "USED", self.number, true);
        row.cell(Looks::Faint, "LIMIT", self.number, true);
        row.cell(Looks::Faint, "KEPT", self.kept, true);
        row.cell(Looks::Faint, "WAIT", self.waiting, true);
        row.cell(Looks::Faint, "OLDEST", self.oldest, true);
        row
    }

    /// The row of one of them.
    pub(super) fn entry(&self, mut row: Row, entry: &Entry, is_chosen: bool, glyphs: Glyphs) -> Row {
        let looks = if is_chosen { Looks::Strong } else { Looks::Plain };
        row.push(looks, if is_chosen { ">" } else { " " });
        row.cell(looks, &entry.title, self.title, false);
        row.push(looks, " ");
        if let Some(error) = &entry.error {
            row.push(Looks::Bad, error);
            return row;
        }
        match entry.limit {
            Some(limit) => glyphs.bar(&mut row, self.bar, entry.used, entry.kept, limit),
            None => row.cell(looks, "", self.bar, false),
        }
        row.cell(looks, &entry.used.to_string(), self.number, true);
        let limit = entry.limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        row.cell(looks, &limit, self.number, true);
        row.cell(looks, &entry.kept.to_string(), self.kept, true);
        let waits = if entry.waiting.is_empty() { looks } else { Looks::Strong };
        row.cell(waits, &entry.waiting.len().to_string(), self.waiting, true);
        row.cell(looks, &entry.oldest().map_or_else(|| "-".to_owned(), age), self.oldest, true);
        row
    }
}
