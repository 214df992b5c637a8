//! The user's choices: the order, the filter, the repository, and the scroll position. It knows keys, and
//! nothing of drawing.

use std::{cmp::Reverse, env};

use super::observer::{Entry, Process, Snapshot};
use crate::{
    text::{age, style},
    tools::inspect::screen::{KeyCode, KeyEvent, KeyModifiers},
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style, Stylize},
    text::{Line, Span, Text},
    widgets::{
        Cell, HighlightSpacing, Row, Scrollbar, ScrollbarOrientation, ScrollbarState, Table, TableState,
    },
};

/// The order of the repositories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum SortKey {
    #[default]
    Policy,
    /// The fullest first.
    Use,
    /// The longest queue first.
    Waiting,
    /// The oldest holder first.
    Age,
    Name,
}

impl SortKey {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Use => "use",
            Self::Waiting => "waiting",
            Self::Age => "age",
            Self::Name => "name",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Policy => Self::Use,
            Self::Use => Self::Waiting,
            Self::Waiting => Self::Age,
            Self::Age => Self::Name,
            Self::Name => Self::Policy,
        }
    }
}

/// What fills the screen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Page {
    /// The repositories, and below them as much of the chosen one as fits.
    #[default]
    Overview,
    /// All of the chosen one.
    Details,
    /// The keys.
    Help,
}

/// A request of a key that the view cannot do itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Action {
    None,
    Quit,
    Stop,
    Redraw,
}

/// What was chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) order: SortKey,
    pub(super) page: Page,
    /// In lower case; empty where everything is shown.
    pub(super) filter: String,
    /// Whether keys go to the filter.
    pub(super) is_typing: bool,
    /// The title of the chosen repository, because its place may change.
    chosen: Option<String>,
    /// How far the list of repositories, and the details, are scrolled.
    pub(super) top: usize,
    pub(super) details_top: usize,
    /// The titles of the last drawing, and how many rows a page has.
    titles: Vec<String>,
    pub(super) page_rows: usize,
}

impl View {
    /// The effect of a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        let code = match (key.modifiers - KeyModifiers::SHIFT, key.code) {
            (KeyModifiers::NONE, code) => code,
            (KeyModifiers::CONTROL, KeyCode::Char('c')) => return Action::Quit,
            (KeyModifiers::CONTROL, KeyCode::Char('z')) => return Action::Stop,
            (KeyModifiers::CONTROL, KeyCode::Char('l')) => return Action::Redraw,
            // The codes that some terminals send for it.
            (KeyModifiers::CONTROL, KeyCode::Char('h')) => KeyCode::Backspace,
            _ => return Action::None,
        };
        match code {
            code if self.is_typing => self.type_filter(code),
            KeyCode::Char('q') => return Action::Quit,
            _ if self.page == Page::Help => self.page = Page::Overview,
            KeyCode::Char('h' | '?') => self.page = Page::Help,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Enter => {
                self.page = if self.page == Page::Details { Page::Overview } else { Page::Details };
                self.details_top = 0;
            }
            KeyCode::Esc if self.page == Page::Details => self.page = Page::Overview,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up | KeyCode::Char('k') => self.go(|place, _| place.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(|place, _| place.saturating_add(1)),
            KeyCode::PageUp => self.go(usize::saturating_sub),
            KeyCode::PageDown | KeyCode::Char(' ') => self.go(usize::saturating_add),
            KeyCode::Home | KeyCode::Char('g') => self.go(|_, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.go(|_, _| usize::MAX),
            _ => {}
        }
        Action::None
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(character) => self.filter.extend(character.to_lowercase()),
            KeyCode::Backspace if self.filter.is_empty() => self.is_typing = false,
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
    }

    fn go(&mut self, to: impl Fn(usize, usize) -> usize) {
        if self.page == Page::Details {
            self.details_top = to(self.details_top, self.page_rows);
        } else if !self.titles.is_empty() {
            let place = to(self.place(), self.page_rows).min(self.titles.len() - 1);
            self.chosen = Some(self.titles[place].clone());
        }
    }

    fn place(&self) -> usize {
        let is_chosen = |title: &String| Some(title) == self.chosen.as_ref();
        self.titles.iter().position(is_chosen).unwrap_or_default()
    }

    /// The repositories that are shown, in their order, and the place of the chosen one.
    pub(super) fn select<'p>(&mut self, snapshot: &'p Snapshot) -> (Vec<&'p Entry>, usize) {
        let mut entries: Vec<&Entry> = snapshot.entries.iter().filter(|entry| self.shows(entry)).collect();
        match self.order {
            SortKey::Policy => {}
            SortKey::Use => entries.sort_by_key(|entry| Reverse(entry.fullness())),
            SortKey::Waiting => entries.sort_by_key(|entry| Reverse(entry.waiting.len())),
            SortKey::Age => entries.sort_by_key(|entry| Reverse(entry.oldest())),
            SortKey::Name => entries.sort_by(|one, other| one.title.cmp(&other.title)),
        }
        self.titles = entries.iter().map(|entry| entry.title.clone()).collect();
        let place = self.place();
        (entries, place)
    }

    fn shows(&self, entry: &Entry) -> bool {
        self.names(entry)
            || entry.holders.iter().chain(&entry.waiting).any(|process| process.is_about(&self.filter))
    }

    fn names(&self, entry: &Entry) -> bool {
        entry.title.to_lowercase().contains(&self.filter)
    }

    /// The processes of a repository that are shown: all, unless the filter is about a user.
    pub(super) fn filtered<'p>(&self, entry: &'p Entry, processes: &'p [Process]) -> Vec<&'p Process> {
        processes.iter().filter(|process| self.names(entry) || process.is_about(&self.filter)).collect()
    }
}

// A bar that shows how full a repository is, in characters that every terminal has unless the locale
// promises more. Its length says what its colour says, for people and terminals without colours.

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

    /// A bar of this width. Any use is visible, and only full use has no gap.
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
        // The selected row is reversed, so its bar would be inverted.
        Line::from(vec![Span::styled(piece(self.used, filled), style), rest.dim()]).not_reversed()
    }
}

// Cells of tables, cut to the width of their column.

/// How many columns a text takes.
pub(super) fn width(text: &str) -> u16 {
    u16::try_from(style::width(text)).unwrap_or(u16::MAX)
}

/// A cell with text on its left side.
pub(super) fn left(text: &str, width: u16) -> Cell<'static> {
    Cell::from(style::cut(text, usize::from(width)))
}

/// A cell with text on its right side.
pub(super) fn right(text: &str, width: u16) -> Cell<'static> {
    Cell::from(Text::from(style::cut(text, usize::from(width))).right_aligned())
}

// The visible part of a long list.

/// If not all rows fit, the right side is for a scrollbar.
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

// The table of the repositories: names and bars as wide as possible, numbers as wide as needed. On a narrow
// screen the least important columns disappear first.

/// The maximum width of a bar: with a wider one, the numbers would be too far away.
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
                Some(limit) => Cell::from(glyphs.bar(width, entry.used, entry.kept + entry.outside, limit)),
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

/// Draws the table so that the selected repository is visible.
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
        // Set as the style of the row, so that cells keep their own.
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

#[cfg(test)]
mod tests {
    use super::*;

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
