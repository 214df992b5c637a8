//! What the user has chosen: the order, the filter, the repository, and how far down. It knows keys, and
//! nothing of drawing.

use std::cmp::Reverse;

use super::snapshot::{Entry, Process, Snapshot};
use crate::tools::inspect::screen::{KeyCode, KeyEvent, KeyModifiers};

/// The order of the repositories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum SortKey {
    #[default]
    Policy,
    /// The fullest first.
    Use,
    /// The longest line first.
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
    /// The repositories, and below them as much of the chosen one as there is room for.
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
            // The codes of some terminals for it.
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
