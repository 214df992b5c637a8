//! Which part of a long list is to be seen.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    widgets::{Scrollbar, ScrollbarOrientation, ScrollbarState},
};

use crate::commands::watch::bar::Glyphs;

/// Where not all rows are to be seen, the right side is for a scrollbar.
pub(super) fn beside_scrollbar(area: Rect, all: usize, visible: usize) -> (Rect, Rect) {
    let bar = if all > visible && area.width >= 30 { 2 } else { 0 };
    let [rest, bar] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(bar)]).areas(area);
    (rest, bar)
}

/// A scrollbar for a list whose first visible row is `top`, at most `last`.
pub(super) fn draw_scrollbar(frame: &mut Frame, area: Rect, last: usize, top: usize, glyphs: Glyphs) {
    let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight)
        .begin_symbol(None)
        .end_symbol(None)
        .thumb_symbol(glyphs.used)
        .track_symbol(Some(glyphs.track));
    let visible = usize::from(area.height);
    let mut state = ScrollbarState::new(last + 1).position(top).viewport_content_length(visible);
    frame.render_stateful_widget(bar, area, &mut state);
}
