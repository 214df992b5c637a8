//! Tables of plain columns: no lines, a blank between columns, numbers aligned right. On a narrow terminal
//! long cells wrap within their column, and a word is broken only if it does not fit, after a hyphen, a dot
//! or a slash if it has one. Elsewhere each row has one line. Rows that are counted, such as slots, always
//! have one line, and long cells are cut.

use super::style::{self, Style};
use crate::sys::terminal;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column is not narrower than this, or than its longest word.
const NARROWEST: usize = 12;

/// No column of text is cut to less than this.
const SHORTEST: usize = 6;

/// Rows under titles.
pub(crate) struct Table {
    /// The titles, and below them the rows.
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
    /// How long the longest word of each column is.
    longest: Vec<usize>,
    /// Whether each row is one line.
    is_cut: bool,
}

impl Table {
    /// A table; a column whose title begins with `>` is aligned to the right.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let right: Vec<bool> = titles.iter().map(|title| title.starts_with('>')).collect();
        let longest = vec![0; right.len()];
        let mut table = Self { rows: Vec::new(), right, longest, is_cut: false };
        table.row(titles.iter().map(|title| Style::Dim.paint(title.trim_start_matches('>'))));
        table
    }

    /// The same with one line for each row. If it is too wide, the last column is cut first, then the widest
    /// text column.
    #[must_use]
    pub(crate) fn in_one_line(self) -> Self {
        Self { is_cut: true, ..self }
    }

    /// Adds a row; it has a cell for each title.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().take(self.right.len()).collect();
        for (cell, longest) in row.iter().zip(&mut self.longest) {
            *longest = cell.split(' ').map(width).fold(*longest, usize::max);
        }
        self.rows.push(row);
    }

    /// The text, each line with its newline and without trailing blanks.
    pub(crate) fn render(&self) -> String {
        self.render_within(terminal::columns())
    }

    fn render_within(&self, columns: Option<u16>) -> String {
        match columns {
            Some(columns) if self.is_cut => self.render_cut(usize::from(columns)),
            columns => self.render_wrapped(columns),
        }
    }

    fn render_cut(&self, columns: usize) -> String {
        let widths = self.cut_widths(columns);
        let line = |row: &Vec<String>| {
            let (mut line, mut room) = (String::new(), columns);
            for (index, (cell, column)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, (*column).min(room));
                let gap = " ".repeat(column.saturating_sub(width(&cell)));
                line += &if self.right[index] { gap + &cell } else { cell + &gap };
                line.push(' ');
                room = room.saturating_sub(column + 1);
            }
            format!("{}\n", line.trim_end())
        };
        self.rows.iter().map(line).collect()
    }

    /// How wide each column is where every row has one line.
    fn cut_widths(&self, columns: usize) -> Vec<usize> {
        let widest = |index: usize| self.rows.iter().map(|row| width(&row[index])).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..self.right.len()).map(widest).collect();
        let least: Vec<usize> = self.rows[0].iter().map(|title| width(title).max(SHORTEST)).collect();
        let Some(last) = widths.len().checked_sub(1) else { return widths };
        let mut missing = (widths.iter().sum::<usize>() + last).saturating_sub(columns);
        let gained = missing.min(widths[last].saturating_sub(least[last]));
        widths[last] -= gained;
        missing -= gained;
        while missing > 0 {
            let others = (0..last).filter(|index| !self.right[*index] && widths[*index] > least[*index]);
            let Some(widest) = others.max_by_key(|index| widths[*index]) else { break };
            widths[widest] -= 1;
            missing -= 1;
        }
        widths
    }

    fn render_wrapped(&self, columns: Option<u16>) -> String {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        let widths = columns.map(|columns| self.least_widths(usize::from(columns)));
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(index, cell)| {
                let room = widths.as_ref().map(|widths| widths[index] - self.blank(index));
                let text = room.map_or_else(|| cell.clone(), |room| fitting(cell, room));
                let right = self.right[index];
                Cell::new(text).set_alignment(if right { CellAlignment::Right } else { CellAlignment::Left })
            });
            grid.add_row(cells.collect::<Vec<Cell>>());
        }
        if let (Some(columns), Some(widths)) = (columns, widths) {
            grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
            for (column, least) in grid.column_iter_mut().zip(widths) {
                let least = Width::Fixed(u16::try_from(least).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        for (index, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((0, u16::from(self.blank(index) > 0)));
        }
        grid.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// How many blanks there are behind a column.
    fn blank(&self, index: usize) -> usize {
        usize::from(index + 1 < self.right.len())
    }

    /// The width of each column so that no word is broken. If there is less space, the columns with the
    /// longest words get less.
    fn least_widths(&self, columns: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            self.longest.iter().enumerate().map(|(index, longest)| longest + self.blank(index)).collect();
        loop {
            let room = widths.iter().sum::<usize>();
            match widths.iter_mut().max() {
                Some(widest) if room > columns && *widest > NARROWEST => {
                    *widest = widest.saturating_sub(room - columns).max(NARROWEST);
                }
                _ => return widths,
            }
        }
    }
}

/// A cell whose words all fit into this many columns.
fn fitting(cell: &str, columns: usize) -> String {
    let words = cell.split(' ').map(|word| {
        let (plain, in_style) = style::split(word);
        broken(&plain, columns).into_iter().map(in_style).collect::<Vec<String>>().join("\n")
    });
    words.collect::<Vec<String>>().join(" ")
}

// The width of text on a terminal. Text that does not fit is cut, with a mark.

/// The marks after which a word may continue in the next line.
const BREAKABLE: [char; 8] = ['-', '.', '_', '/', ':', ',', '=', '@'];

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (text, in_style) = style::split(text);
    let mut left = columns.saturating_sub(1);
    let fits = |character: &char| {
        let rest = left.checked_sub(character.width().unwrap_or(0));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.extend((columns > 0).then_some('~'));
    in_style(&cut)
}

/// A word in pieces that fit: broken after the last mark that still has room, and anywhere where there is
/// none.
pub(crate) fn broken(word: &str, columns: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while width(rest) > columns {
        let mut room = columns;
        let fits = |(_, character): &(usize, char)| {
            let left = room.checked_sub(character.width().unwrap_or(0));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let ends = rest
            .char_indices()
            .take_while(fits)
            .map(|(at, character)| (at + character.len_utf8(), character));
        let ends: Vec<(usize, char)> = ends.collect();
        let marked = ends.iter().rev().find(|(end, character)| *end > 1 && BREAKABLE.contains(character));
        // A part wider than the terminal exceeds it.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = marked.or(ends.last()).map_or(first, |(end, _)| *end);
        let (piece, others) = rest.split_at(end);
        pieces.push(piece);
        rest = others;
    }
    if pieces.is_empty() || !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

// Long lines of a message on a terminal, broken between their words. Text to be copied stays in one piece,
// because the terminal omits its own line breaks from the copy. Drawings stay in one piece too, such as the
// excerpts of a policy: their carets point at the line above.

/// The indent of continuation lines, after that of the line itself.
const INDENT: &str = "  ";

/// A message whose lines are broken where standard error is a terminal with fewer columns.
pub(crate) fn fitted(text: &str) -> String {
    terminal::error_columns().map_or_else(|| text.to_owned(), |columns| wrapped(text, usize::from(columns)))
}

/// The same of an answer, where standard output is a terminal.
pub(crate) fn answer(text: &str) -> String {
    terminal::columns().map_or_else(|| text.to_owned(), |columns| wrapped(text, usize::from(columns)))
}

fn wrapped(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| line_wrapped(line, columns)).collect::<Vec<String>>().join("\n")
}

fn line_wrapped(line: &str, columns: usize) -> String {
    if width(line) <= columns || is_drawn(line) {
        return line.to_owned();
    }
    let words = line.trim_start_matches(' ');
    let (indent, _) = line.split_at(line.len() - words.len());
    let room = columns.saturating_sub(width(indent) + INDENT.len());
    let mut lines: Vec<String> = Vec::new();
    for (blank, unit) in units(words).into_iter().flat_map(|unit| pieces(unit, room)) {
        match lines.last_mut() {
            None => lines.push(format!("{indent}{unit}")),
            Some(last) if width(last) + blank.len() + width(unit) <= columns => last.extend([blank, unit]),
            // The additional blanks of a sequence.
            Some(_) if unit.is_empty() => {}
            Some(last) => {
                last.truncate(last.trim_end().len());
                lines.push(format!("{indent}{INDENT}{unit}"));
            }
        }
    }
    lines.join("\n")
}

/// A unit with the blank before it. If it is too long for a line, a list of words in brackets, or of paths
/// such as `PATH`, is split into its elements. Anything else stays whole.
fn pieces(unit: &str, room: usize) -> Vec<(&str, &str)> {
    let is_wide = width(unit) > room && !unit.contains('"');
    if is_wide && unit.starts_with('[') {
        return unit.split(' ').map(|word| (" ", word)).collect();
    }
    if !is_wide || unit.contains(' ') || !unit.contains(":/") {
        return vec![(" ", unit)];
    }
    let each = unit.split_inclusive(':').enumerate();
    each.map(|(index, path)| (if index == 0 { " " } else { "" }, path)).collect()
}

/// Whether a line is one of an excerpt: a number or none, and an edge.
fn is_drawn(line: &str) -> bool {
    let edge = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    ["|", "-->", ":::", "..."].iter().any(|drawn| edge.starts_with(drawn))
}

/// The parts that stay on one line: words, strings, lists and tables, a key with its value, and commands.
fn units(line: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let begins_command = |text: &str| COMMANDS.iter().any(|command| text.starts_with(command));
    let (mut begin, mut quoted, mut depth, mut in_command) = (0, false, 0_u32, begins_command(line));
    let has_pairs = line.matches('"').count().is_multiple_of(2);
    let has_ends = line.matches(['[', '{']).count() == line.matches([']', '}']).count();
    for (at, character) in line.char_indices() {
        let (before, after) = (&line[..at], &line[at..]);
        match character {
            '"' if has_pairs && !before.ends_with('\\') => quoted = !quoted,
            '[' | '{' if has_ends && !quoted => depth += 1,
            ']' | '}' if has_ends && !quoted => depth = depth.saturating_sub(1),
            ' ' => {
                in_command &= !before.ends_with([',', ';', '.', ':']);
                let is_of_key = before.ends_with('=') || after.starts_with(" = ");
                if !quoted && depth == 0 && !in_command && !is_of_key {
                    units.push(&line[begin..at]);
                    begin = at + 1;
                }
                in_command |= begins_command(&after[1..]);
            }
            _ => {}
        }
    }
    units.push(&line[begin..]);
    units
}

/// What commands that a message suggests begin with.
const COMMANDS: &[&str] = &[
    "rungate ",
    "sudo ",
    "chmod ",
    "chown ",
    "getent ",
    "install -",
    "journalctl ",
    "kill -",
    "ls -",
    "mkdir ",
    "mv ",
    "rm ",
    "systemctl ",
];

#[cfg(test)]
mod columns_tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, columns: usize, expected: &str) {
        assert_eq!(cut(text, columns), expected);
        assert!(width(expected) <= columns);
    }

    #[test]
    fn a_mark_says_that_something_is_missing() {
        case("matlab", 6, "matlab");
        case("matlab", 4, "mat~");
        case("matlab", 1, "~");
        case("matlab", 0, "");
        case("", 0, "");
        case("漢字漢字", 8, "漢字漢字");
        case("漢字漢字", 6, "漢字~");
        case("漢字漢字", 2, "~");
    }

    #[test]
    fn a_word_is_broken_after_a_mark() {
        for (word, columns, expected) in [
            ("matlab", 6, &["matlab"][..]),
            ("matlab-per-user", 8, &["matlab-", "per-user"]),
            ("matlab-per-user", 14, &["matlab-per-", "user"]),
            ("matlab-per-user", 3, &["mat", "lab", "-pe", "r-", "use", "r"]),
            ("/department/seats", 6, &["/depar", "tment/", "seats"]),
            ("a/b.c_d:e", 4, &["a/b.", "c_d:", "e"]),
            ("漢字漢字", 5, &["漢字", "漢字"]),
            ("漢字", 1, &["漢", "字"]),
            ("", 0, &[""]),
        ] {
            assert_eq!(broken(word, columns), expected, "{word} in {columns}");
        }
    }
}

#[cfg(test)]
mod wrapped_tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, columns: usize, expected: &str) {
        assert_eq!(wrapped(text, columns), expected);
        assert_eq!(expected.replace("\n  ", " "), text, "nothing is lost");
    }

    #[test]
    fn words_stay_whole() {
        case("/p:1:1: what is wrong [code]", 80, "/p:1:1: what is wrong [code]");
        case("/p:1:1: what is wrong [code]", 16, "/p:1:1: what is\n  wrong [code]");
        case("/a/long/path:1:1: what", 10, "/a/long/path:1:1:\n  what");
    }

    #[test]
    fn what_is_to_be_copied_stays_whole() {
        case("write limit = 5 or more", 14, "write\n  limit = 5 or\n  more");
        case("write a = [\"x y\", \"z\"] here", 12, "write\n  a = [\"x y\", \"z\"]\n  here");
        case("the rule \"three of them\" is", 16, "the rule\n  \"three of them\"\n  is");
        case("ask it: rungate policy check x; or not", 12, "ask it:\n  rungate policy check x;\n  or not");
        assert_eq!(wrapped("it is\n  chmod o+r /etc/a/b", 14), "it is\n  chmod o+r /etc/a/b");
    }

    #[test]
    fn what_has_no_end_is_broken_all_the_same() {
        case("a string \"has no end there", 14, "a string \"has\n  no end there");
        case("a list [ has no end there", 14, "a list [ has\n  no end there");
    }

    #[test]
    fn each_line_is_broken_below_where_it_begins() {
        assert_eq!(wrapped("one two\n  three four", 9), "one two\n  three\n    four");
        assert_eq!(wrapped("  seats [ann]  3 of 3 used", 15), "  seats [ann]\n    3 of 3 used");
        assert_eq!(wrapped("  seats [ann]  3 of 3 used", 19), "  seats [ann]  3 of\n    3 used");
        assert_eq!(wrapped("漢字 漢字", 6), "漢字\n  漢字");
        assert_eq!(wrapped("", 6), "");
        assert_eq!(wrapped("one\n\n  \ntwo\n", 3), "one\n\n  \ntwo\n");
        assert_eq!(wrapped("       ", 3), "       ");
    }

    #[test]
    fn a_list_of_words_is_broken_where_no_line_has_room() {
        case("it is [one, two, three] or not", 20, "it is\n  [one, two, three]\n  or not");
        case("it is [one, two, three] or not", 14, "it is [one,\n  two, three]\n  or not");
    }

    #[test]
    fn a_list_of_paths_is_broken_between_them() {
        assert_eq!(wrapped("not in (/a/bin:/b/bin:/bin)", 20), "not in (/a/bin:\n  /b/bin:/bin)");
        case("/a/long/path/to:1:1: what", 10, "/a/long/path/to:1:1:\n  what");
    }

    #[test]
    fn what_is_drawn_is_not_broken() {
        for drawn in ["  |", "17 | three four five", "   |       ^^^^ first here", "   ::: /a/b.toml:1:1"] {
            assert_eq!(wrapped(&format!("one two\n{drawn}"), 5), format!("one\n  two\n{drawn}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::text::table::*;

    fn table() -> Table {
        let mut table = Table::new(&["RULE", ">STARTS", ">WOULD REFUSE", "RUN MEDIAN/95%/MAX"]);
        table.row(["GPU jobs of everybody who has one", "1", "12", "1m/2m/3m"].map(str::to_owned));
        table
    }

    #[test]
    fn what_is_too_long_for_the_terminal_goes_on_in_its_column() {
        let one_line = "
RULE                              STARTS WOULD REFUSE RUN MEDIAN/95%/MAX
GPU jobs of everybody who has one      1           12 1m/2m/3m
";
        assert_eq!(format!("\n{}", table().render_within(None)), one_line);
        assert_eq!(format!("\n{}", table().render_within(Some(80))), one_line);
        let narrow = table().render_within(Some(50));
        assert!(narrow.lines().all(|line| line.len() <= 50), "{narrow}");
        assert!(narrow.lines().count() > 2 && narrow.contains(" 1m/2m/3m"), "{narrow}");
    }

    #[test]
    fn a_word_is_broken_only_where_there_is_no_room_for_it() {
        let mut shims = Table::new(&["SHIM", "STARTS", "RULES", "NOTE"]);
        let row =
            ["/etc/rungate/shims/matlab", "/opt/matlab/bin/matlab", "three for each user", "not in PATH"];
        shims.row(row.map(str::to_owned));
        let broken_between_words = "
SHIM                      STARTS                 RULES     NOTE
/etc/rungate/shims/matlab /opt/matlab/bin/matlab three for not in
                                                 each user PATH
";
        assert_eq!(format!("\n{}", shims.render_within(Some(68))), broken_between_words);
        let narrow = shims.render_within(Some(50));
        assert!(narrow.lines().all(|line| width(line) <= 50), "{narrow}");
        let mut names = Table::new(&["REPOSITORY", ">USED", "NOTE"]);
        names.row(["a-name-of-which-there-is-too-much", "1", "2 in use or used before"].map(str::to_owned));
        let narrow = names.render_within(Some(30));
        assert!(narrow.lines().all(|line| width(line) <= 30), "{narrow}");
        assert!(narrow.contains(" used\n") && narrow.contains(" before\n"), "{narrow}");
    }

    #[test]
    fn a_row_stays_one_line_and_the_last_column_is_cut_first() {
        let mut slots = Table::new(&[">SLOT", "USER", "COMMAND", "RULE"]).in_one_line();
        slots.row(["1", "ann", "matlab", "seats for everybody"].map(str::to_owned));
        slots.row(["12", "a-long-name", "simulation", "seats"].map(str::to_owned));
        let expected = "
SLOT USER        COMMAND    RULE
   1 ann         matlab     seats for~
  12 a-long-name simulation seats
";
        assert_eq!(format!("\n{}", slots.render_within(Some(38))), expected);
        let expected = "
SLOT USER   COMMAND RULE
   1 ann    matlab  seats~
  12 a-lon~ simula~ seats
";
        assert_eq!(format!("\n{}", slots.render_within(Some(26))), expected);
        let expected = "
SLOT USER   COMMA~
   1 ann    matlab
  12 a-lon~ simul~
";
        assert_eq!(format!("\n{}", slots.render_within(Some(18))), expected);
        assert!(slots.render_within(None).contains("seats for everybody\n"));
    }

    #[test]
    fn a_word_without_room_is_broken_after_one_of_its_marks() {
        let mut names = Table::new(&["REPOSITORY", ">USED", "PATH"]);
        let row = ["cad-flow-per-project-seats [ann]", "1", "/proj/alpha/lock_files/seats"];
        names.row(row.map(str::to_owned));
        let expected = "
REPOSITORY         USED PATH
cad-flow-per-         1 /proj/alpha/
project-seats           lock_files/
[ann]                   seats
";
        assert_eq!(format!("\n{}", names.render_within(Some(36))), expected);
    }
}
