//! The page: one file without scripts, fonts or pictures from elsewhere, for phones, printers and screen
//! readers. Text of others is text there and never markup.

use std::fmt::Write as _;

use super::{
    figures::{Drawing, Figure, Use},
    programs::Program,
};
use crate::text::{Style, count, table::Table, visible, width};

const STYLE: &str = include_str!("page.css");

/// The heading of the page.
const TITLE: &str = "Use of limited programs";

/// The inputs of the page.
pub struct Page<'a> {
    /// The amount of data in it.
    pub subtitle: &'a str,
    /// The first table.
    pub answer: &'a Figure,
    /// Its inputs.
    pub programs: &'a [Program<'a>],
    /// The gaps of the log.
    pub doubts: &'a [String],
    /// Everything else.
    pub figures: &'a [Figure],
}

/// How many programs have a sentence.
const SENTENCES: usize = 12;

impl Page<'_> {
    pub fn to_html(&self) -> String {
        let (title, subtitle) = (TITLE, text(self.subtitle));
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
             <p>{subtitle}</p>\n</header>\n"
        );
        self.add_answer(&mut page);
        if !self.figures.is_empty() {
            page.push_str("<details class=\"contents\"><summary>Contents</summary>\n<nav aria-label=\"Figures\">\n<ul>\n");
            for figure in self.figures {
                let _ =
                    writeln!(page, "<li><a href=\"#{}\">{}</a></li>", text(&figure.id), text(&figure.title));
            }
            page.push_str("</ul>\n</nav>\n</details>\n");
        }
        page.push_str("<main>\n");
        for run in self.figures.chunk_by(|one, next| is_wide(one) == is_wide(next)) {
            for (place, figure) in run.iter().enumerate() {
                // The last of an odd number would leave half of the row empty.
                let is_alone = run.len() % 2 == 1 && place + 1 == run.len();
                add(&mut page, figure, is_alone);
            }
        }
        page.push_str("</main>\n<footer><p>Made by rungate report.</p></footer>\n</body>\n</html>\n");
        page
    }

    /// One row for each program, and the conclusion.
    fn add_answer(&self, page: &mut String) {
        let says = text(&self.answer.says);
        let _ =
            writeln!(page, "<section id=\"programs\" class=\"answer\">\n<h2>Programs</h2>\n<p>{says}</p>");
        if !self.answer.rows.is_empty() {
            table(page, self.answer);
        }
        let mut sentences = String::new();
        for program in self.programs.iter().take(SENTENCES) {
            let (sentence, command) = program.answer();
            let _ = write!(sentences, "<li><b>{}</b>: {}", text(program.name), text(&sentence));
            if let Some(command) = command {
                let _ = write!(sentences, " <code>{}</code>", text(&command));
            }
            sentences.push_str("</li>\n");
        }
        if !sentences.is_empty() {
            let _ = write!(page, "<ul class=\"sentences\">\n{sentences}</ul>\n");
        }
        for doubt in self.doubts {
            let _ = writeln!(page, "<p class=\"doubt\">{}</p>", text(doubt));
        }
        page.push_str("</section>\n");
    }
}

/// Whether it needs the whole width, like tables with many columns or with sentences.
fn is_wide(figure: &Figure) -> bool {
    figure.drawing.is_none() && figure.columns.len() > 3 || figure.id == "suggestions"
}

fn add(page: &mut String, figure: &Figure, is_alone: bool) {
    let (id, title, says) = (text(&figure.id), text(&figure.title), text(&figure.says));
    let class = if is_alone || is_wide(figure) { " class=\"wide\"" } else { "" };
    let _ = writeln!(
        page,
        "<section id=\"{id}\"{class} aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n<p>{says}</p>"
    );
    if let Some(of) = &figure.drawing {
        // The words of the drawing are in the sentence and in the table.
        let _ = writeln!(
            page,
            "<figure><div role=\"img\" aria-label=\"{title}: {says}\">{}</div></figure>",
            drawing(of)
        );
        let _ = writeln!(page, "<details><summary>The numbers</summary>");
        table(page, figure);
        page.push_str("</details>\n");
    } else if !figure.rows.is_empty() {
        table(page, figure);
    }
    page.push_str("</section>\n");
}

fn table(page: &mut String, figure: &Figure) {
    let _ = writeln!(
        page,
        "<div class=\"scroll\" role=\"region\" aria-label=\"{}\" tabindex=\"0\"><table>",
        text(&figure.title)
    );
    page.push_str("<thead><tr>");
    let class = |is_number: bool| if is_number { " class=\"number\"" } else { "" };
    for column in &figure.columns {
        let _ = write!(page, "<th scope=\"col\"{}>{}</th>", class(column.is_number), text(column.title));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &figure.rows {
        page.push_str("<tr>");
        for (place, (cell, column)) in row.iter().zip(&figure.columns).enumerate() {
            let cell = text(cell);
            let _ = match place {
                0 => write!(page, "<th scope=\"row\">{cell}</th>"),
                // On a phone each cell shows its title.
                _ => write!(
                    page,
                    "<td{} data-title=\"{}\">{cell}</td>",
                    class(column.is_number),
                    text(column.title)
                ),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

// The drawings. Lines and areas are SVG, which is stretched to the page. All words are normal text beside it,
// so that they keep their size on a phone. Colours are variables of the page, and lines differ in more than
// their colour.

/// How wide and high a drawing is, in units of its own.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// A drawing, with what its lines mean.
pub(super) fn drawing(of: &Drawing) -> String {
    match of {
        Drawing::Use(of) => over_time(of),
        Drawing::Week(counts) => week(counts),
        Drawing::Bars(bars) => bars_of(bars),
    }
}

#[expect(clippy::cast_precision_loss, reason = "places in a drawing")]
fn over_time(of: &Use) -> String {
    let most = of.points.iter().map(|point| point.most).chain(of.seats).max().unwrap_or(1).max(1);
    let width = WIDTH / of.points.len().max(1) as f64;
    let height = |number: f64| HEIGHT * (1.0 - number / most as f64 / 1.04);
    // In steps, because a value applies to a whole hour.
    let steps = |value: &dyn Fn(usize) -> f64| {
        let step = |place: usize| {
            let (left, right) = (place as f64 * width, (place + 1) as f64 * width);
            let level = height(value(place));
            format!("{left:.1},{level:.1} {right:.1},{level:.1}")
        };
        (0..of.points.len()).map(step).collect::<Vec<_>>().join(" ")
    };
    let has_average = of.points.iter().all(|point| point.average.is_some());
    let mut svg = String::new();
    for part in 0..=2 {
        let level = height(most as f64 * f64::from(part) / 2.0);
        let _ = write!(svg, "<path class=\"grid\" d=\"M0 {level:.1}H{WIDTH}\"/>");
    }
    if has_average {
        let average = steps(&|place| of.points[place].average.unwrap_or(0.0));
        let _ = write!(svg, "<polygon class=\"average\" points=\"0,{HEIGHT} {average} {WIDTH},{HEIGHT}\"/>");
    }
    let line = steps(&|place| of.points[place].most as f64);
    let _ = write!(svg, "<polyline class=\"most\" points=\"{line}\"/>");
    if let Some(seats) = of.seats {
        let _ = write!(svg, "<path class=\"seats\" d=\"M0 {:.1}H{WIDTH}\"/>", height(seats as f64));
    }
    let half = if most.is_multiple_of(2) { count(most / 2) } else { String::new() };
    let bound = if of.has_bounds { " (upper bound)" } else { "" };
    let mut legend = String::new();
    if has_average {
        let _ = write!(legend, "<span class=\"key average\">in use on average{bound}</span>");
    }
    let what = if of.is_of_members { "most of one member at a start" } else { "most at once" };
    let _ = write!(legend, "<span class=\"key most\">{what} in each {}{bound}</span>", text(&of.step));
    if of.seats.is_some() {
        legend.push_str("<span class=\"key seats\">seats</span>");
    }
    let labels: String = of.labels.iter().map(|label| format!("<span>{}</span>", text(label))).collect();
    format!(
        "<div class=\"plot\"><div class=\"y\"><span>{}</span><span>{half}</span><span>0</span></div><svg \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">{svg}</svg><div class=\"x\">{labels}</div></div>\
         <p class=\"legend\">{legend}</p>",
        count(most)
    )
}

/// A week: a field for each hour of each day, the fuller the more.
#[expect(clippy::cast_precision_loss, reason = "shares")]
fn week(counts: &[[u64; 24]; 7]) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let most = counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    let mut grid = String::from("<div class=\"week\"><span></span>");
    for hour in 0..24 {
        let word = if hour % 6 == 0 { format!("{hour:02}") } else { String::new() };
        let _ = write!(grid, "<span class=\"hour\">{word}</span>");
    }
    for (day, hours) in DAYS.iter().zip(counts) {
        let _ = write!(grid, "<span class=\"day\">{day}</span>");
        for (hour, number) in hours.iter().enumerate() {
            let share = (*number as f64 / most as f64 * 100.0).ceil();
            let _ = write!(
                grid,
                "<span class=\"field\" style=\"--full:{share}%\" title=\"{day} {hour:02}:00: {}\"></span>",
                count(*number)
            );
        }
    }
    grid + &format!("</div><p class=\"legend\">A full field is {}.</p>", count(most))
}

#[expect(clippy::cast_precision_loss, reason = "shares")]
fn bars_of(bars: &[(&'static str, u64)]) -> String {
    let most = bars.iter().map(|(_, number)| *number).max().unwrap_or(0).max(1);
    let mut list = String::from("<div class=\"bars\">");
    for (word, number) in bars {
        let share = *number as f64 / most as f64 * 100.0;
        let _ = write!(
            list,
            "<span>{}</span><span class=\"bar\"><i style=\"width:{share:.1}%\"></i></span><span class=\"number\">{}</span>",
            text(word),
            count(*number)
        );
    }
    list + "</div>"
}

/// Text in a page.
pub(super) fn text(text: &str) -> String {
    let text = visible(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

// The report as text: the tables; on a terminal also plots, as lines of characters.

/// From 0 to the maximum.
const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The width of a line of characters on a wide and on a narrow terminal.
const WIDTHS: (usize, usize) = (60, 20);

/// How many programs have a sentence, and how many a line.
const LINES: usize = 12;

/// The answer: the first table, with a sentence for each program.
pub fn answer(subtitle: &str, table: &Figure, programs: &[Program<'_>], doubts: &[String]) -> String {
    let mut text = format!("{}\n\n{}", visible(subtitle), rendered(table));
    if !programs.is_empty() {
        text.push('\n');
    }
    for program in programs.iter().take(LINES) {
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
        .take(LINES)
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

/// Points side by side; if there are many, several of them as one character.
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
        Some(Drawing::Week(counts)) if is_plotted => week_in_text(counts),
        Some(Drawing::Week(_)) => String::new(),
        _ => rendered(of),
    };
    format!("{}{}{}\n{body}", title, if of.says.is_empty() { "" } else { ": " }, visible(&of.says))
}

fn week_in_text(counts: &[[u64; 24]; 7]) -> String {
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
