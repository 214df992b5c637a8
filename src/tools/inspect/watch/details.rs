//! One repository: a heading, and below it whoever holds its slots or waits for them.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Stylize,
    text::Line,
    widgets::{Paragraph, TableState, Wrap},
};

use super::{
    bar::{Glyphs, beside_scrollbar, draw_scrollbar},
    processes::Processes,
    snapshot::Entry,
    view::View,
};
use crate::text::columns;

/// The page of one repository.
pub(super) fn draw_details(frame: &mut Frame, area: Rect, entry: &Entry, view: &mut View, glyphs: Glyphs) {
    let processes = Processes::of(entry, view);
    let area = draw_heading(frame, area, entry, glyphs);
    view.page_rows = usize::from(area.height).max(1);
    view.details_top = view.details_top.min(processes.rows().saturating_sub(view.page_rows));
    let (area, bar) = beside_scrollbar(area, processes.rows(), view.page_rows);
    draw_scrollbar(
        frame,
        bar,
        processes.rows() - view.page_rows.min(processes.rows()),
        view.details_top,
        glyphs,
    );
    draw_processes(frame, area, entry, &processes, usize::MAX, view.details_top);
}

/// A line across the screen that says which repository follows. Gives what is left below it.
pub(super) fn draw_heading(frame: &mut Frame, area: Rect, entry: &Entry, glyphs: Glyphs) -> Rect {
    let mut text = format!(" {}", entry.title);
    text += &match (entry.limit, &entry.error) {
        (_, Some(_)) => String::new(),
        (Some(limit), None) => {
            let why = entry.limit_note.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            format!(": {} of {limit} used{why}", entry.used)
        }
        (None, None) => format!(": {} used", entry.used),
    };
    if !entry.waiting.is_empty() {
        text += &format!(", {} waiting", entry.queue.show(entry.waiting.len()));
    }
    if let Some(kept) = &entry.kept_note {
        text += &format!(", {kept}");
    }
    // Two of the line before it and one behind it are always seen.
    let text = columns::cut(&text, usize::from(area.width.saturating_sub(4))) + " ";
    let [heading, rest] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let line = glyphs.line.repeat(usize::from(area.width));
    frame.render_widget(Line::from(vec![glyphs.line.repeat(2).dim(), text.bold(), line.dim()]), heading);
    rest
}

pub(super) fn draw_processes(
    frame: &mut Frame,
    area: Rect,
    entry: &Entry,
    processes: &Processes,
    room: usize,
    top: usize,
) {
    if let Some(error) = &entry.error {
        frame.render_widget(Paragraph::new(error.as_str()).red().wrap(Wrap::default()), area);
    } else if processes.rows() == 0 {
        frame.render_widget("Nobody holds a slot.".dim(), area);
    } else {
        // Below the titles of the repositories.
        let [_, area] = Layout::horizontal([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let mut state = TableState::new().with_offset(top);
        frame.render_stateful_widget(processes.table(area.width, room), area, &mut state);
    }
}
