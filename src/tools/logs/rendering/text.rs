//! The report as text: the tables; on a terminal also plots, as lines of characters.

use std::fmt::Write as _;

use super::{
    figures::{Drawing, Figure, Use},
    programs::Program,
};
use crate::text::{columns::width, escape::visible, style::Style, table::Table};

/// From nothing to all.
const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How wide a line of characters is, where there is room, and if there is none.
const WIDTHS: (usize, usize) = (60, 20);

/// How many programs have a sentence, and how many a line.
const SENTENCES: usize = 12;

/// The answer: the first table, with a sentence for each program.
pub fn answer(subtitle: &str, table: &Figure, programs: &[Program<'_>], doubts: &[String]) -> String {
    let mut text = format!("{}\n\n{}", visible(subtitle), rendered(table));
    if !programs.is_empty() {
        text.push('\n');
    }
    for program in programs.iter().take(SENTENCES) {
        let (sentence, command) = program.answer();
        let name = Style::Name.paint(&visible(program.name));
        let _ = writeln!(text, "{name}: {}", visible(&sentence));
        if let Some(command) = command {
            let _ = writeln!(text, "  {}", visible(&command));
        }
    }
    for doubt in doubts {
        let _ = write!(text, "\n{}\n", visible(doubt));
    }
    text
}

/// Use over time, a line for each program, in this number of columns.
pub fn uses(programs: &[Program<'_>], figures: &[Figure], columns: u16) -> String {
    let drawn = programs.iter().filter(|program| program.of.cell.launches > 0).zip(figures);
    let rows: Vec<(String, &Use)> = drawn
        .filter_map(|(program, figure)| match &figure.drawing {
            Some(Drawing::Use(of)) => Some((visible(program.name), of)),
            _ => None,
        })
        .take(SENTENCES)
        .collect();
    let Some((_, first)) = rows.first() else { return String::new() };
    let names = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let (most, least) = WIDTHS;
    let room = usize::from(columns).saturating_sub(names + 16).clamp(least, most);
    let mut text = Style::Dim.paint("USE") + "\n";
    for (name, of) in &rows {
        let highest = of.points.iter().map(|point| point.most).chain(of.seats).max().unwrap_or(1).max(1);
        let gap = names - width(name);
        let _ = writeln!(text, "{name}{:gap$} |{}| {highest}", "", line(of, highest, room));
    }
    let drawn = line(first, 1, room).chars().count();
    let axis = match first.labels.as_slice() {
        [begin, .., end] => {
            let gap = drawn.saturating_sub(width(begin) + width(end)).max(1);
            format!("{begin}{:gap$}{end}", "")
        }
        labels => labels.join(" "),
    };
    let _ = writeln!(text, "{:names$}  {axis}; most at once, up to the number at the right", "");
    text
}

/// Points side by side, several of them as one character where there are many.
fn line(of: &Use, highest: u64, room: usize) -> String {
    let each = of.points.len().div_ceil(room).max(1);
    let most = |points: &[super::figures::Point]| points.iter().map(|point| point.most).max().unwrap_or(0);
    let step = |points| {
        let step = (most(points) * (STEPS.len() as u64 - 1)).div_ceil(highest);
        STEPS[usize::try_from(step).unwrap_or(0).min(STEPS.len() - 1)]
    };
    of.points.chunks(each).map(step).collect()
}

/// A figure as text: its table; of a week its sentence and, on a terminal, a plot of characters.
pub fn figure(of: &Figure, is_plotted: bool) -> String {
    let title = Style::Name.paint(&visible(&of.title));
    let body = match &of.drawing {
        Some(Drawing::Week(counts)) if is_plotted => week(counts),
        Some(Drawing::Week(_)) => String::new(),
        _ => rendered(of),
    };
    format!("{}{}{}\n{body}", title, if of.says.is_empty() { "" } else { ": " }, visible(&of.says))
}

fn week(counts: &[[u64; 24]; 7]) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let most = counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    let mut text = "    00    06    12    18\n".to_owned();
    for (day, hours) in DAYS.iter().zip(counts) {
        let step = |number: &u64| {
            let step = (number * (STEPS.len() as u64 - 1)).div_ceil(most);
            STEPS[usize::try_from(step).unwrap_or(0).min(STEPS.len() - 1)]
        };
        let picture: String = hours.iter().map(step).collect();
        let _ = writeln!(text, "{day} {picture} {}", hours.iter().sum::<u64>());
    }
    text
}

fn rendered(of: &Figure) -> String {
    if of.rows.is_empty() {
        return String::new();
    }
    let head = of.columns.iter().map(|column| {
        let title = column.title.to_uppercase();
        if column.is_number { format!(">{title}") } else { title }
    });
    let head: Vec<String> = head.collect();
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for row in &of.rows {
        table.row(row.iter().map(visible));
    }
    table.render()
}
