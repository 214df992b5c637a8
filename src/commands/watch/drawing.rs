//! From a picture and a view to the rows of a screen of any size. Where there is hardly any room, everything goes but the
//! repositories.

use crate::{
    commands::watch::{
        columns::Columns,
        picture::{Entry, Person, Picture},
        view::{Page, View},
    },
    output::{
        age::age,
        bar::Glyphs,
        row::{Looks, Row, width},
    },
};

/// The rows of the whole screen.
pub(super) fn rows(picture: &Picture, view: &mut View, size: (usize, usize), glyphs: Glyphs) -> Vec<Row> {
    let (columns, height) = size;
    let (entries, place) = view.select(picture);
    let mut screen = Screen { columns, height, glyphs, rows: Vec::new() };
    screen.head(picture, &entries);
    match (view.page, entries.get(place)) {
        (Page::Help, _) => screen.help(),
        (Page::Details, Some(entry)) => screen.details(entry, view),
        (_, None) => screen.nothing(view),
        (_, Some(_)) => screen.overview(&entries, place, view),
    }
    screen.rows.truncate(height.saturating_sub(1));
    screen.rows.resize_with(height.saturating_sub(1), || Row::new(columns));
    screen.foot(picture, view);
    screen.rows.truncate(height);
    screen.rows
}

/// The keys, for help.
const KEYS: [(&str, &str); 9] = [
    ("up, down, k, j", "choose a repository"),
    ("page up, page down", "the same, further"),
    ("home, end, g, G", "the first, the last"),
    ("enter", "all holders of the chosen one, and back"),
    ("s", "another order: as in the policy, by use, waiting, age, name"),
    ("/", "show only repositories, users, commands with this in the name"),
    ("escape", "everything again"),
    ("q, Ctrl-C", "quit"),
    ("h, ?", "this page; any key goes back"),
];

struct Screen {
    columns: usize,
    height: usize,
    glyphs: Glyphs,
    rows: Vec<Row>,
}

impl Screen {
    fn row(&self) -> Row {
        Row::new(self.columns)
    }

    fn line(&mut self, looks: Looks, text: &str) {
        let mut row = self.row();
        row.push(looks, text);
        self.rows.push(row);
    }

    fn head(&mut self, picture: &Picture, entries: &[&Entry]) {
        let used: u64 = entries.iter().map(|entry| entry.used).sum();
        let waiting: usize = entries.iter().map(|entry| entry.waiting.len()).sum();
        let counts = if self.columns < 60 {
            format!(" {} repos, {used} used, {waiting} wait", entries.len())
        } else {
            let word = if entries.len() == 1 { "repository" } else { "repositories" };
            let slots = if used == 1 { "slot" } else { "slots" };
            format!("  {} {word}, {used} {slots} used, {waiting} waiting", entries.len())
        };
        let mut row = self.row();
        row.push(Looks::Strong, "rungate");
        row.push(Looks::Plain, &counts);
        if row.left() > picture.time.len() {
            row.fill(picture.time.len());
            row.push(Looks::Plain, &picture.time);
        }
        self.rows.push(row);
    }

    fn foot(&mut self, picture: &Picture, view: &View) {
        let mut row = self.row();
        if view.is_typing {
            row.push(Looks::Strong, "show: ");
            row.push(Looks::Plain, &view.filter);
            row.push(Looks::Reversed, " ");
        } else if let Some(notice) = &picture.notice {
            row.push(Looks::Bad, notice);
        } else {
            if !view.filter.is_empty() {
                row.push(Looks::Strong, &format!("only {}  ", view.filter));
            }
            let keys = match (view.page, self.columns) {
                (Page::Details, _) => "q quit  enter back  ? help".to_owned(),
                (_, ..60) => format!("q quit  s {}  / filter  ? help", view.order.name()),
                _ => {
                    format!("q quit  s order: {}  / filter  enter all holders  ? help", view.order.name())
                }
            };
            row.push(Looks::Faint, &keys);
        }
        self.rows.push(row);
    }

    fn help(&mut self) {
        self.rows.push(self.row());
        for (keys, what) in KEYS {
            let mut row = self.row();
            row.cell(Looks::Strong, keys, 20, false);
            row.push(Looks::Plain, what);
            self.rows.push(row);
        }
    }

    fn nothing(&mut self, view: &View) {
        self.rows.push(self.row());
        let text = if view.filter.is_empty() {
            "No repository has been used yet, or the policy has none."
        } else {
            "Nothing has this in its name. Escape shows everything."
        };
        self.line(Looks::Plain, text);
    }

    /// The repositories above, the chosen one below; it gets what is left, and half of the screen if it needs that.
    fn overview(&mut self, entries: &[&Entry], place: usize, view: &mut View) {
        let room = self.height.saturating_sub(3);
        let (holders, waiting) = (&entries[place].holders, &entries[place].waiting);
        let needed = 1 + (needs(holders.len()) + needs(waiting.len())).max(1);
        let below = match room {
            ..12 => 0,
            _ => needed.min(room / 2).max(room.saturating_sub(entries.len())),
        };
        let list = (room - below).min(entries.len());
        view.page_rows = list.max(1);
        view.top = view.top.min(place).max((place + 1).saturating_sub(list)).min(entries.len() - list);

        let columns = Columns::of(entries, self.columns);
        self.rows.push(columns.titles(self.row()));
        for (index, entry) in entries.iter().enumerate().skip(view.top).take(list) {
            let row = columns.entry(self.row(), entry, index == place, self.glyphs);
            self.rows.push(row);
        }
        if below > 1 {
            let entry = entries[place];
            self.heading(entry);
            let people = self.people(entry, view, below - 1);
            self.rows.extend(people);
        }
    }

    fn details(&mut self, entry: &Entry, view: &mut View) {
        self.heading(entry);
        let rows = self.people(entry, view, usize::MAX);
        let room = self.height.saturating_sub(3);
        view.page_rows = room.max(1);
        view.details_top = view.details_top.min(rows.len().saturating_sub(room));
        self.rows.extend(rows.into_iter().skip(view.details_top));
    }

    /// A line across the screen that says which repository follows.
    fn heading(&mut self, entry: &Entry) {
        let mut text = format!(" {}", entry.title);
        text += &match (entry.limit, &entry.error) {
            (_, Some(_)) => String::new(),
            (Some(limit), None) => format!(": {} of {limit} used", entry.used),
            (None, None) => format!(": {} used", entry.used),
        };
        if let Some(kept) = &entry.kept_note {
            text += &format!(", {kept}");
        }
        if !entry.waiting.is_empty() {
            text += &format!(", {} waiting", entry.waiting.len());
        }
        let mut row = self.row();
        let line = self.glyphs.line.to_string();
        row.push(Looks::Faint, &line.repeat(2));
        row.push(Looks::Strong, &(text + " "));
        row.push(Looks::Faint, &line.repeat(row.left()));
        self.rows.push(row);
    }

    /// Those who wait and those who hold, in so many rows. The line gets half of them at most, if both need more.
    fn people(&self, entry: &Entry, view: &View, room: usize) -> Vec<Row> {
        if let Some(error) = &entry.error {
            let mut row = self.row();
            row.push(Looks::Bad, error);
            return vec![row];
        }
        let holders = view.people(entry, &entry.holders);
        let waiting = view.people(entry, &entry.waiting);
        if holders.is_empty() && waiting.is_empty() {
            let mut row = self.row();
            row.push(Looks::Faint, "Nobody holds a slot.");
            return vec![row];
        }
        let for_waiting = needs(waiting.len()).min((room / 2).max(room.saturating_sub(needs(holders.len()))));
        let mut rows = self.table("SLOT", &holders, room - for_waiting);
        rows.extend(self.table("LINE", &waiting, for_waiting));
        rows
    }

    /// A head, and as many people as there is room for; the last row says how many are left out.
    fn table(&self, title: &str, people: &[&Person], room: usize) -> Vec<Row> {
        if people.is_empty() || room < 2 {
            return Vec::new();
        }
        let widest = |title: &str, cell: fn(&Person) -> &str, most: usize| {
            people.iter().map(|person| width(cell(person))).max().unwrap_or(0).max(title.len()).min(most)
        };
        let place = widest(title, |person| &person.place, 11);
        let user = widest("USER", |person| &person.user, 16);
        let command = widest("COMMAND", |person| &person.command, 20);
        let line = |looks, cells: [&str; 6]| {
            let [number, pid, name, since, program, note] = cells;
            let mut row = self.row();
            row.cell(looks, number, place + 1, true);
            row.cell(looks, pid, 8, true);
            row.push(looks, " ");
            row.cell(looks, name, user, false);
            row.cell(looks, since, 8, true);
            row.push(looks, "  ");
            row.cell(looks, program, command, false);
            row.push(looks, "  ");
            row.push(looks, note);
            row
        };
        let last = if title == "SLOT" { "RULE" } else { "" };
        let mut rows = vec![line(Looks::Faint, [title, "PID", "USER", "AGE", "COMMAND", last])];
        let fits = if people.len() < room { people.len() } else { room - 2 };
        for person in &people[..fits] {
            let since = person.age.map_or_else(|| "?".to_owned(), age);
            let Person { place, pid, user, command, note, .. } = person;
            rows.push(line(Looks::Plain, [place, pid, user, &since, command, note]));
        }
        if fits < people.len() {
            let mut row = self.row();
            row.push(Looks::Faint, &format!("   ... {} more (enter)", people.len() - fits));
            rows.push(row);
        }
        rows
    }
}

/// How many rows a table of so many people takes, with its head.
fn needs(people: usize) -> usize {
    if people == 0 { 0 } else { people + 1 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::output::key::{Key, keys};

    fn person(number: u64) -> Person {
        Person {
            place: number.to_string(),
            pid: (8000 + number).to_string(),
            user: "ann".to_owned(),
            age: Some(Duration::from_secs(number * 1000)),
            command: "matlab".to_owned(),
            note: "matlab seats".to_owned(),
        }
    }

    fn picture() -> Picture {
        let entry = |title: &str, holders: u64, waiting: u64| Entry {
            title: title.to_owned(),
            limit: Some(8),
            used: holders,
            holders: (1..=holders).rev().map(person).collect(),
            waiting: (1..=waiting).map(person).collect(),
            ..Entry::default()
        };
        let mut entries =
            vec![entry("matlab", 8, 12), entry("per-user [ann]", 3, 0), entry("漢字漢字", 0, 0)];
        entries[1].kept_note = Some("2 kept for %adm".to_owned());
        entries[1].kept = 2;
        entries.push(Entry {
            title: "lost".to_owned(),
            error: Some("cannot open it".to_owned()),
            ..entry("", 0, 0)
        });
        Picture { entries, time: "14:02:11".to_owned(), notice: None }
    }

    fn draw(view: &mut View, size: (usize, usize)) -> Vec<String> {
        rows(&picture(), view, size, Glyphs::plain()).iter().map(Row::text).collect()
    }

    fn pressed(view: &mut View, bytes: &str) {
        for key in keys(bytes.as_bytes()) {
            view.press(key);
        }
    }

    #[test]
    fn every_size_of_a_screen_is_kept_to() {
        for keys in ["", "G", "\r", "G\r", "s", "?", "/ann", "/nobody", "/ann\rG\r\x1b[6~"] {
            for columns in (0..28).chain([39, 40, 47, 48, 55, 56, 59, 60, 80, 130]) {
                for height in (0..15).chain([24, 45]) {
                    let mut view = View::default();
                    draw(&mut view, (columns, height));
                    pressed(&mut view, keys);
                    draw(&mut view, (columns, height));
                    let rows = draw(&mut view, (columns, height));
                    assert_eq!(rows.len(), height, "{keys:?} {columns}x{height}");
                    for row in rows {
                        assert!(width(&row) <= columns, "{keys:?} {columns}x{height}: {row:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn large_numbers_do_not_run_into_each_other() {
        let entry =
            Entry { title: "pool".to_owned(), limit: Some(1_048_575), used: 200_000, ..Entry::default() };
        let picture = Picture { entries: vec![entry], ..Picture::default() };
        let rows = rows(&picture, &mut View::default(), (80, 10), Glyphs::plain());
        assert!(rows[2].text().contains(" 200000 1048575     0       -"), "{}", rows[2].text());
        assert!(rows[1].text().contains("   USED   LIMIT  WAIT  OLDEST"), "{}", rows[1].text());
    }

    #[test]
    fn the_chosen_one_is_always_to_be_seen() {
        let mut view = View::default();
        for key in [Key::End, Key::Up, Key::Home, Key::PageDown, Key::Down, Key::PageUp] {
            view.press(key);
            for height in 5..30 {
                let rows = draw(&mut view, (80, height));
                assert!(rows.iter().any(|row| row.starts_with('>')), "{key:?} {height}: {rows:#?}");
            }
        }
    }

    #[test]
    fn a_filter_for_somebody_shows_his_alone() {
        let mut view = View::default();
        pressed(&mut view, "/8002\r");
        let rows = draw(&mut view, (60, 15));
        assert_eq!(
            rows[1..9].iter().map(|row| row.trim_end()).collect::<Vec<&str>>(),
            [
                " REPOSITORY     USE            USED LIMIT KEPT  WAIT  OLDEST",
                ">matlab         #############     8     8    0    12   2h13m",
                " per-user [ann] ####===......     3     8    2     0  50m00s",
                "-- matlab: 8 of 8 used, 12 waiting -------------------------",
                " SLOT     PID USER     AGE  COMMAND  RULE",
                "    2    8002 ann   33m20s  matlab   matlab seats",
                " LINE     PID USER     AGE  COMMAND",
                "    2    8002 ann   33m20s  matlab   matlab seats",
            ]
        );
    }
}
