//! `rungate status --watch`: use, holders and queues, updated each second until the user presses q. It takes
//! no slot. It draws a snapshot of all repositories, as the user's choices (the view) require.

mod observer;
mod view;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Stylize,
    text::{Line, Span},
    widgets::{Cell, Paragraph, Row, Table, TableState, Wrap},
};

use self::{
    observer::{Entry, Observer, Process, Snapshot},
    view::{Action, Glyphs, Page, View, beside_scrollbar, draw_scrollbar},
};
use super::screen::{Event, Events, Screen};
use crate::{
    cli::ListingArguments,
    launch::Situation,
    sys::{Signal, errno_of, process, signals},
    text::{Error, ExitStatus, age, style},
};

/// The interval between two snapshots.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the requested repositories until the user ends it.
pub(crate) fn run(arguments: &ListingArguments, situation: Situation) -> Result<u8, Error> {
    if !Screen::is_possible() {
        let text = "status --watch needs a terminal on standard input and standard output";
        return Err(Error::new(ExitStatus::Usage, text)
            .advise("For scripts: rungate status --json. To print it once: rungate status".to_owned()));
    }
    let mut observer = Observer::new(situation, arguments)?;
    let shown = show(&mut observer).map_err(|error| {
        let why = errno_of(&error).desc();
        Error::new(ExitStatus::System, format!("the terminal cannot be used: {why}"))
    })?;
    Ok(match shown {
        End::Asked => ExitStatus::Success as u8,
        // The sender of the signal must see its effect.
        End::Signal(signal) => process::die_of(signal as i32),
    })
}

enum End {
    /// By a key.
    Asked,
    Signal(Signal),
}

fn show(observer: &mut Observer) -> io::Result<End> {
    let events = Events::begin()?;
    let glyphs = Glyphs::of_locale();
    let mut view = View::default();
    let mut snapshot = observer.snapshot();
    let mut looked = Instant::now();
    let mut screen = Screen::enter(style::is_on())?;
    loop {
        screen.draw(|frame| draw(frame, &snapshot, &mut view, glyphs))?;
        match events.next(looked + INTERVAL) {
            Event::Key(key) => match view.press(key) {
                Action::None => {}
                Action::Quit => return Ok(End::Asked),
                Action::Redraw => screen.clear()?,
                Action::Stop => stop(&mut screen)?,
            },
            Event::Signal(Signal::SIGTSTP) => stop(&mut screen)?,
            // Another program may have changed the terminal meanwhile.
            Event::Signal(Signal::SIGCONT) => screen.take_again()?,
            Event::Signal(Signal::SIGWINCH) => screen.clear()?,
            Event::Signal(signal) => return Ok(End::Signal(signal)),
            Event::Time => {}
            Event::Closed => return Ok(End::Asked),
        }
        if looked.elapsed() >= INTERVAL {
            snapshot = observer.snapshot();
            looked = Instant::now();
        }
    }
}

/// Stops as Ctrl-Z stops any program, and takes the terminal again when it is continued.
fn stop(screen: &mut Screen) -> io::Result<()> {
    screen.give_back();
    signals::stop();
    match screen.take_again() {
        // Continued in the background, without a terminal of its own.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        taken => taken,
    }
}

// From a snapshot and a view to a screen of any size. On a very small screen, only the repositories are
// shown.

/// Draws the whole screen.
fn draw(frame: &mut Frame, snapshot: &Snapshot, view: &mut View, glyphs: Glyphs) {
    let notice = snapshot.notice.as_deref().map(|notice| notice_rows(notice, frame.area().height));
    let above = u16::try_from(notice.as_ref().map_or(0, Vec::len)).unwrap_or(0);
    let rows = [Constraint::Length(1), Constraint::Length(above), Constraint::Fill(1), Constraint::Length(1)];
    let [head, above, body, foot] = Layout::vertical(rows).areas(frame.area());
    let (entries, place) = view.select(snapshot);
    draw_head(frame, head, snapshot, &entries);
    if let Some(notice) = notice {
        frame.render_widget(Paragraph::new(notice).red(), above);
    }
    match (view.page, entries.get(place)) {
        (Page::Help, _) => draw_help(frame, body),
        (Page::Details, Some(entry)) => draw_details(frame, body, entry, view, glyphs),
        (_, None) => draw_nothing(frame, body, view, snapshot.notice.is_some()),
        (_, Some(_)) => draw_overview(frame, body, &entries, place, view, glyphs),
    }
    draw_foot(frame, foot, view);
}

/// The lines of a notice: as many as leave three quarters of the screen for the repositories, but always the
/// last one, which has the advice.
fn notice_rows(notice: &str, height: u16) -> Vec<Line<'_>> {
    let lines: Vec<&str> = notice.lines().collect();
    let room = usize::from(height / 4).max(1);
    let shown = match (lines.split_last(), room) {
        (Some((last, others)), 2..) if lines.len() > room => {
            others.iter().take(room - 1).chain([last]).copied().collect()
        }
        _ => lines.into_iter().take(room).collect::<Vec<&str>>(),
    };
    shown.into_iter().map(Line::from).collect()
}

/// The keys, for help.
const KEYS: [(&str, &str); 9] = [
    ("up, down, k, j", "choose a repository"),
    ("page up, page down", "the same, a page at a time"),
    ("home, end, g, G", "choose the first, the last"),
    ("enter", "all holders of the chosen repository, and back"),
    ("s", "sort: as in the policy, by use, waiting, age, name"),
    ("/", "only repositories, users, commands with this in the name"),
    ("escape", "no filter; back"),
    ("q, Ctrl-C", "quit"),
    ("h, ?", "this help; any key closes it"),
];

fn draw_head(frame: &mut Frame, area: Rect, snapshot: &Snapshot, entries: &[&Entry]) {
    let programs = programs(entries);
    let waiting: usize = entries.iter().map(|entry| entry.waiting.len()).sum();
    let counts = if area.width < 60 {
        format!(" {} repos, {programs} run, {waiting} wait", entries.len())
    } else {
        let word = if entries.len() == 1 { "repository" } else { "repositories" };
        let run = if programs == 1 { "program" } else { "programs" };
        format!("  {} {word}, {programs} {run}, {waiting} waiting", entries.len())
    };
    let line = Line::from(vec!["rungate".bold(), counts.into()]);
    let time = Line::from(snapshot.time.as_str()).right_aligned();
    let has_room = line.width() + time.width() < usize::from(area.width);
    frame.render_widget(line, area);
    if has_room {
        frame.render_widget(time, area);
    }
}

/// How many programs hold slots: a program with several slots, or of several repositories, counts once.
fn programs(entries: &[&Entry]) -> usize {
    let holders = entries.iter().flat_map(|entry| &entry.holders);
    let (unknown, known): (Vec<&str>, Vec<&str>) =
        holders.map(|holder| holder.pid.as_str()).partition(|pid| *pid == "?");
    unknown.len() + known.into_iter().collect::<BTreeSet<&str>>().len()
}

fn draw_foot(frame: &mut Frame, area: Rect, view: &View) {
    let mut line = Line::default();
    if view.is_typing {
        line.extend(["show: ".bold(), view.filter.as_str().into()]);
        let end = area.x.saturating_add(u16::try_from(line.width()).unwrap_or(u16::MAX));
        frame.set_cursor_position((end.min(area.right().saturating_sub(1)), area.y));
    } else {
        if !view.filter.is_empty() {
            line.push_span(format!("only {}  ", view.filter).bold());
        }
        let order = match area.width {
            ..60 => view.order.name().to_owned(),
            _ => format!("order: {}", view.order.name()),
        };
        let keys: &[(&str, &str)] = match (view.page, area.width) {
            (Page::Details, _) => &[("q", "quit"), ("enter", "back"), ("?", "help")],
            (_, ..60) => &[("q", "quit"), ("s", &order), ("/", "filter"), ("?", "help")],
            _ => &[("q", "quit"), ("s", &order), ("/", "filter"), ("enter", "all holders"), ("?", "help")],
        };
        for (key, what) in keys {
            line.extend([Span::from(*key).bold(), format!(" {what}  ").dim()]);
        }
    }
    frame.render_widget(line, area);
}

fn draw_help(frame: &mut Frame, area: Rect) {
    let gap = if area.width < 60 { 0 } else { 20 };
    let lines = KEYS.map(|(keys, what)| Line::from(vec![format!("{keys:gap$} ").bold(), what.into()]));
    frame.render_widget(Paragraph::new(lines.to_vec()).wrap(Wrap::default()), area);
}

fn draw_nothing(frame: &mut Frame, area: Rect, view: &View, has_faults: bool) {
    let text = if has_faults && view.filter.is_empty() {
        "No lock file and no table of the agent was found."
    } else if view.filter.is_empty() {
        "No repository has been used yet, or the policy has none."
    } else {
        "Nothing has this in its name. Escape shows everything."
    };
    frame.render_widget(Paragraph::new(text).wrap(Wrap::default()), area);
}

/// The repositories above, the chosen one below. It gets the remaining rows, but at least half of the screen
/// if it needs them.
fn draw_overview(
    frame: &mut Frame,
    area: Rect,
    entries: &[&Entry],
    place: usize,
    view: &mut View,
    glyphs: Glyphs,
) {
    let processes = Processes::of(entries[place], view);
    let room = usize::from(area.height).saturating_sub(1);
    let below = match room {
        ..12 => 0,
        _ => (1 + processes.rows().max(1)).min(room / 2).max(room.saturating_sub(entries.len())),
    };
    let below = u16::try_from(below).unwrap_or(0);
    let [list, below] = Layout::vertical([Constraint::Fill(1), Constraint::Length(below)]).areas(area);
    view.page_rows = usize::from(list.height).saturating_sub(1).max(1);
    let (list, bar) = beside_scrollbar(list, entries.len(), view.page_rows);
    self::view::draw(frame, list, entries, place, view, glyphs);
    draw_scrollbar(frame, bar, entries.len() - view.page_rows.min(entries.len()), view.top, glyphs);
    if below.height > 1 {
        let area = draw_heading(frame, below, entries[place], glyphs);
        draw_processes(frame, area, entries[place], &processes, usize::from(area.height), 0);
    }
}

// One repository: a heading, and below it its holders and waiters.

/// The page of one repository.
fn draw_details(frame: &mut Frame, area: Rect, entry: &Entry, view: &mut View, glyphs: Glyphs) {
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

/// A line across the screen that says which repository follows. Returns the rest below it.
fn draw_heading(frame: &mut Frame, area: Rect, entry: &Entry, glyphs: Glyphs) -> Rect {
    let mut text = format!(" {}", entry.title);
    text += &match (entry.limit, &entry.error) {
        (_, Some(_)) => String::new(),
        (Some(limit), None) => {
            let why = entry.limit_note.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            format!(": {} of {limit} used{why}", entry.used)
        }
        (None, None) => format!(": {} used", entry.used),
    };
    for note in &entry.beside {
        text += &format!(", {note}");
    }
    if !entry.waiting.is_empty() {
        text += &format!(", {} waiting", entry.queue.show(entry.waiting.len()));
    }
    if let Some(kept) = &entry.kept_note {
        text += &format!(", {kept}");
    }
    // Two columns of the line are visible before it, and one after it.
    let text = style::cut(&text, usize::from(area.width.saturating_sub(4))) + " ";
    let [heading, rest] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let line = glyphs.line.repeat(usize::from(area.width));
    frame.render_widget(Line::from(vec![glyphs.line.repeat(2).dim(), text.bold(), line.dim()]), heading);
    rest
}

fn draw_processes(
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
        frame.render_widget("No slot is held.".dim(), area);
    } else {
        // Below the titles of the repositories.
        let [_, area] = Layout::horizontal([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let mut state = TableState::new().with_offset(top);
        frame.render_stateful_widget(processes.table(area.width, room), area, &mut state);
    }
}

// The table of the processes of one repository: its holders and, below them, its waiters.

/// Holders and waiting processes that are shown.
struct Processes<'s> {
    holders: Vec<&'s Process>,
    waiting: Vec<&'s Process>,
}

impl<'s> Processes<'s> {
    /// The processes of a repository that the filter shows.
    fn of(entry: &'s Entry, view: &View) -> Self {
        Self { holders: view.filtered(entry, &entry.holders), waiting: view.filtered(entry, &entry.waiting) }
    }

    /// How many rows all of them take, headers included.
    fn rows(&self) -> usize {
        rows(&self.holders) + rows(&self.waiting)
    }

    /// A table in this many rows. If both need more, the queue gets half of the rows at most; omitted rows
    /// are counted.
    fn table(&self, width: u16, room: usize) -> Table<'static> {
        let for_waiting = rows(&self.waiting).min((room / 2).max(room.saturating_sub(rows(&self.holders))));
        let columns = self.columns(width);
        let mut rows = section(["SLOT", "RULE"], &self.holders, room - for_waiting, &columns);
        rows.extend(section(["LINE", "WAITS FOR"], &self.waiting, for_waiting, &columns));
        Table::new(rows, columns.into_iter().map(|(_, width)| width))
    }

    /// The columns that fit, and their widths. The last one gets the rest.
    fn columns(&self, width: u16) -> Vec<(Column, u16)> {
        let widest = |column: Column, least: u16, most: u16| {
            let cells = self.holders.iter().chain(&self.waiting).map(|process| column.text(process));
            let widest = cells.map(|cell| self::view::width(&cell)).max().unwrap_or(0);
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
            Self::Place | Self::Pid | Self::Age => self::view::right(text, width),
            Self::User | Self::Command | Self::Note => self::view::left(text, width),
        }
    }
}

/// How many rows this many processes take, with their header.
fn rows(processes: &[&Process]) -> usize {
    if processes.is_empty() { 0 } else { processes.len() + 1 }
}

/// A header and as many processes as fit.
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

#[cfg(test)]
mod tests {
    use crate::tools::inspect::{
        screen::{KeyCode, KeyEvent},
        watch::{observer::Process, *},
    };
    use ratatui::{Terminal, backend::TestBackend, style::Modifier};
    use std::time::Duration;

    fn process(number: u64) -> Process {
        Process {
            place: number.to_string(),
            pid: (8000 + number).to_string(),
            user: "ann".to_owned(),
            age: Some(Duration::from_secs(number * 1000)),
            command: "matlab".to_owned(),
            note: "matlab seats".to_owned(),
        }
    }

    fn entry(title: &str, holders: u64, waiting: u64) -> Entry {
        Entry {
            title: title.to_owned(),
            limit: Some(8),
            used: holders,
            holders: (1..=holders).rev().map(process).collect(),
            waiting: (1..=waiting).map(process).collect(),
            ..Entry::default()
        }
    }

    fn snapshot() -> Snapshot {
        let mut entries =
            vec![entry("matlab", 8, 12), entry("per-user [ann]", 3, 0), entry("漢字漢字", 0, 0)];
        entries[1].kept_note = Some("2 kept for %adm".to_owned());
        entries[1].kept = 2;
        let error = Some("cannot open it".to_owned());
        entries.push(Entry { title: "lost".to_owned(), error, ..Entry::default() });
        Snapshot { entries, time: "14:02:11".to_owned(), notice: None }
    }

    fn draw_of(snapshot: &Snapshot, view: &mut View, (columns, rows): (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a screen in memory");
        terminal.draw(|frame| draw(frame, snapshot, view, Glyphs::ASCII)).expect("it is drawn");
        let buffer = terminal.backend().buffer();
        let cells = |row: u16| (0..columns).map(move |column| buffer[(column, row)].symbol());
        (0..rows).map(|row| cells(row).collect()).collect()
    }

    fn press(view: &mut View, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\r' => KeyCode::Enter,
                '\t' => KeyCode::PageDown,
                key => KeyCode::Char(key),
            };
            view.press(KeyEvent::from(code));
        }
    }

    #[test]
    fn every_size_of_a_screen_is_kept_to() {
        let snapshot = snapshot();
        let all_keys = ["", "G", "\r", "G\r", "s", "?", "/ann", "/nobody", "/ann\rG\r\t"];
        let wide = [33, 34, 39, 40, 47, 48, 55, 56, 59, 60, 80, 149, 150, 250];
        let all_columns: Vec<u16> = (0..30).step_by(4).chain([9, 22, 23, 29]).chain(wide).collect();
        // Each size with one of the nine snapshots: all combinations would take twelve seconds.
        for (place, keys) in all_keys.into_iter().enumerate() {
            for (column, &columns) in all_columns.iter().enumerate() {
                for (row, rows) in [0, 1, 2, 3, 5, 14, 15, 45].into_iter().enumerate() {
                    if (place + column + row) % 9 != 0 {
                        continue;
                    }
                    let mut view = View::default();
                    draw_of(&snapshot, &mut view, (20, 5));
                    press(&mut view, keys);
                    let screen = draw_of(&snapshot, &mut view, (columns, rows));
                    let foot = screen.last().filter(|_| columns > 8).map_or("q quit", String::as_str);
                    let is_right = ["q quit", "show: ", "only ann"].iter().any(|text| foot.starts_with(text));
                    assert!(is_right, "{keys:?} {columns}x{rows}: {screen:#?}");
                }
            }
        }
    }

    #[test]
    fn numbers_stand_below_their_titles_at_every_width() {
        let mut snapshot = snapshot();
        snapshot.entries[0].title = "a-name-that-is-".repeat(7);
        for columns in (60..400).step_by(17) {
            let screen = draw_of(&snapshot, &mut View::default(), (columns, 30));
            let end = |row: &str, text: &str| row.find(text).map(|start| start + text.len());
            let (titles, first) = (&screen[1], &screen[2]);
            for (title, value) in [("LIMIT", "8     8"), ("WAIT", " 12"), ("OLDEST", "2h13m")] {
                assert!(end(titles, title).is_some(), "{columns}: {screen:#?}");
                assert_eq!(end(titles, title), end(first, value), "{columns}: {screen:#?}");
            }
            let bar = first.matches('#').count();
            assert!(bar >= usize::from(columns / 10).min(60), "{columns}: {screen:#?}");
            let name = &first[1..first.find(" #").expect("a bar")];
            assert!(name == snapshot.entries[0].title || name.ends_with('~'), "{columns}: {screen:#?}");
        }
    }

    #[test]
    fn large_numbers_do_not_run_into_each_other() {
        let pool = Entry { limit: Some(1_048_575), used: 200_000, ..entry("pool", 0, 0) };
        let snapshot = Snapshot { entries: vec![pool], ..Snapshot::default() };
        let rows = draw_of(&snapshot, &mut View::default(), (80, 10));
        assert!(rows[2].ends_with(" 200000 1048575     0       -"), "{}", rows[2]);
        assert!(rows[1].ends_with("   USED   LIMIT  WAIT  OLDEST"), "{}", rows[1]);
    }

    #[test]
    fn the_chosen_one_is_always_to_be_seen() {
        let entries = (0..300).map(|number| entry(&format!("host{number}"), 1, 1)).collect();
        let many = Snapshot { entries, ..Snapshot::default() };
        for snapshot in [snapshot(), many] {
            let mut view = View::default();
            for key in
                [KeyCode::End, KeyCode::Up, KeyCode::Home, KeyCode::PageDown, KeyCode::Down, KeyCode::PageUp]
            {
                view.press(KeyEvent::from(key));
                for rows in 5..30 {
                    let screen = draw_of(&snapshot, &mut view, (80, rows));
                    assert!(screen.iter().any(|row| row.starts_with('>')), "{key:?} {rows}: {screen:#?}");
                }
            }
        }
    }

    #[test]
    fn a_scrollbar_says_where_a_long_list_is() {
        let entries = (0..300).map(|number| entry(&format!("host{number}"), 1, 0)).collect();
        let snapshot = Snapshot { entries, ..Snapshot::default() };
        let mut view = View::default();
        let bar = |view: &mut View| -> String {
            let screen = draw_of(&snapshot, view, (80, 12));
            screen[1..11].iter().filter_map(|row| row.chars().last()).collect()
        };
        assert_eq!(bar(&mut view), "#|||||||||");
        press(&mut view, "G");
        assert_eq!(bar(&mut view), "|||||||||#");
        press(&mut view, "/host29\r");
        assert_eq!(bar(&mut view), "||########");
        press(&mut view, "/8\r");
        assert_eq!(bar(&mut view), "Ts        ");
    }

    #[test]
    fn a_filter_for_somebody_shows_theirs_alone() {
        let mut view = View::default();
        press(&mut view, "/8002\r");
        let rows = draw_of(&snapshot(), &mut view, (60, 15));
        assert_eq!(
            rows[1..9].iter().map(|row| row.trim_end()).collect::<Vec<&str>>(),
            [
                " REPOSITORY     USE            USED LIMIT KEPT  WAIT  OLDEST",
                ">matlab         #############     8     8    0    12   2h13m",
                " per-user [ann] ####===......     3     8    2     0  50m00s",
                "-- matlab: 8 of 8 used, 12 waiting -------------------------",
                " SLOT     PID USER     AGE COMMAND RULE",
                "    2    8002 ann   33m20s matlab  matlab seats",
                " LINE     PID USER     AGE COMMAND WAITS FOR",
                "    2    8002 ann   33m20s matlab  matlab seats",
            ]
        );
    }

    #[test]
    fn the_bar_of_the_chosen_one_is_not_reversed() {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a screen in memory");
        let (snapshot, mut view) = (snapshot(), View::default());
        terminal.draw(|frame| draw(frame, &snapshot, &mut view, Glyphs::ASCII)).expect("it is drawn");
        let row = (0..80).map(|column| &terminal.backend().buffer()[(column, 2)]);
        for cell in row {
            assert_eq!(cell.modifier.contains(Modifier::REVERSED), cell.symbol() != "#", "{cell:?}");
        }
    }
}
