//! A bar that shows how full a repository is, in characters that every terminal has unless the locale
//! promises more. Its length says what its colour says, for people and terminals without colours.

use std::env;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Style, Stylize},
    text::{Line, Span, Text},
    widgets::{Cell, Scrollbar, ScrollbarOrientation, ScrollbarState},
};

use crate::text::columns;

/// The characters of bars, lines and scrollbars.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Glyphs {
    pub(super) used: &'static str,
    kept: &'static str,
    free: &'static str,
    /// A piece of a horizontal line, and of a vertical one.
    pub(super) line: &'static str,
    pub(super) track: &'static str,
}

impl Glyphs {
    /// The characters for the locale: blocks if its encoding is UTF-8.
    pub(super) fn of_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().to_ascii_lowercase());
        if locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8")) {
            Self { used: "█", kept: "▒", free: "░", line: "─", track: "│" }
        } else {
            Self::ASCII
        }
    }

    pub(super) const ASCII: Self = Self { used: "#", kept: "=", free: ".", line: "-", track: "|" };

    /// A bar so wide. Any use is visible, and only full use has no gap.
    pub(super) fn bar(self, columns: u16, used: u64, kept: u64, limit: u64) -> Line<'static> {
        let all = u64::from(columns);
        let is_full = used.saturating_add(kept) >= limit;
        let share = |part: u64| part.saturating_mul(all).checked_div(limit).unwrap_or(all).min(all);
        let longest = if is_full { all } else { all.saturating_sub(1) };
        let filled = share(used).max(u64::from(used > 0)).min(longest);
        let idle = if is_full { all - filled } else { share(kept).min(all - filled) };
        let style = match used {
            used if used >= limit => Style::new().red(),
            used if used.saturating_add(kept).saturating_mul(5) >= limit.saturating_mul(4) => {
                Style::new().yellow()
            }
            _ => Style::new().green(),
        };
        let piece = |glyph: &str, length: u64| glyph.repeat(usize::try_from(length).unwrap_or(0));
        let rest = piece(self.kept, idle) + &piece(self.free, all - filled - idle);
        // The selected row is reversed, and its bar would say the opposite.
        Line::from(vec![Span::styled(piece(self.used, filled), style), rest.dim()]).not_reversed()
    }
}

// Cells of tables, cut to the width of their column.

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

// Which part of a long list is to be seen.

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

#[cfg(test)]
mod tests {
    use crate::tools::inspect::watch::bar::*;

    #[track_caller]
    fn case(used: u64, kept: u64, limit: u64, expected: &str) {
        assert_eq!(Glyphs::ASCII.bar(10, used, kept, limit).to_string(), expected);
    }

    #[test]
    fn there_may_be_no_room() {
        assert_eq!(Glyphs::ASCII.bar(0, 1, 0, 4).to_string(), "");
        assert_eq!(Glyphs::ASCII.bar(0, 1, 1, 4).to_string(), "");
    }

    #[test]
    fn a_little_is_not_nothing_and_nearly_all_is_not_all() {
        case(0, 0, 4, "..........");
        case(1, 0, 1000, "#.........");
        case(5, 0, 10, "#####.....");
        case(999, 0, 1000, "#########.");
        case(4, 0, 4, "##########");
        case(307, 0, 300, "##########");
        case(2, 3, 10, "##===.....");
        case(1, 1, 2, "#####=====");
        case(0, 0, 0, "##########");
    }
}
