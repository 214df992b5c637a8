//! What the one who looks has chosen: the order, what is filtered out, which repository, and how far down. It knows keys, and
//! nothing of how anything is drawn.

use std::cmp::Reverse;

use crate::{
    commands::watch::picture::{Entry, Person, Picture},
    output::key::Key,
};

/// In which order the repositories stand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Order {
    /// As the policy has them.
    #[default]
    Policy,
    /// The fullest first.
    Use,
    /// The longest line first.
    Waiting,
    /// The oldest holder first.
    Age,
    /// By name.
    Name,
}

impl Order {
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

/// What a key asks for that the view cannot do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Wish {
    Nothing,
    Quit,
    Stop,
    Redraw,
}

/// What was chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) order: Order,
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
    /// The titles as they stood in the last drawing, and how many rows a step of a page is.
    titles: Vec<String>,
    pub(super) page_rows: usize,
}

impl View {
    /// What a key does.
    pub(super) fn press(&mut self, key: Key) -> Wish {
        match key {
            Key::Interrupt => return Wish::Quit,
            Key::Stop => return Wish::Stop,
            Key::Redraw => return Wish::Redraw,
            _ if self.is_typing => self.type_filter(key),
            Key::Character('q') => return Wish::Quit,
            _ if self.page == Page::Help => self.page = Page::Overview,
            Key::Character('h' | '?') => self.page = Page::Help,
            Key::Character('s') => self.order = self.order.next(),
            Key::Character('/') => self.is_typing = true,
            Key::Enter => {
                self.page = if self.page == Page::Details { Page::Overview } else { Page::Details };
                self.details_top = 0;
            }
            Key::Escape if self.page == Page::Details => self.page = Page::Overview,
            Key::Escape => self.filter.clear(),
            Key::Up | Key::Character('k') => self.go(|place, _| place.saturating_sub(1)),
            Key::Down | Key::Character('j') => self.go(|place, _| place.saturating_add(1)),
            Key::PageUp => self.go(usize::saturating_sub),
            Key::PageDown | Key::Character(' ') => self.go(usize::saturating_add),
            Key::Home | Key::Character('g') => self.go(|_, _| 0),
            Key::End | Key::Character('G') => self.go(|_, _| usize::MAX),
            Key::Character(_) | Key::Backspace | Key::Other => {}
        }
        Wish::Nothing
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Character(character) => self.filter.extend(character.to_lowercase()),
            Key::Backspace if self.filter.is_empty() => self.is_typing = false,
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.is_typing = false,
            Key::Escape => {
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
    pub(super) fn select<'p>(&mut self, picture: &'p Picture) -> (Vec<&'p Entry>, usize) {
        let mut entries: Vec<&Entry> = picture.entries.iter().filter(|entry| self.shows(entry)).collect();
        match self.order {
            Order::Policy => {}
            Order::Use => entries.sort_by_key(|entry| Reverse(entry.fullness())),
            Order::Waiting => entries.sort_by_key(|entry| Reverse(entry.waiting.len())),
            Order::Age => entries.sort_by_key(|entry| Reverse(entry.oldest())),
            Order::Name => entries.sort_by(|one, other| one.title.cmp(&other.title)),
        }
        self.titles = entries.iter().map(|entry| entry.title.clone()).collect();
        let place = self.place();
        (entries, place)
    }

    fn shows(&self, entry: &Entry) -> bool {
        self.names(entry)
            || entry.holders.iter().chain(&entry.waiting).any(|person| person.is_about(&self.filter))
    }

    fn names(&self, entry: &Entry) -> bool {
        entry.title.to_lowercase().contains(&self.filter)
    }

    /// Those of a repository who are shown: all, unless the filter is about somebody.
    pub(super) fn people<'p>(&self, entry: &'p Entry, people: &'p [Person]) -> Vec<&'p Person> {
        people.iter().filter(|person| self.names(entry) || person.is_about(&self.filter)).collect()
    }
}
