//! The page: one file without a script, without a font or a picture of anybody else's, that a phone, a
//! printer and a screen reader can show. It begins with the answer. What others chose is text there and never
//! markup.

use std::fmt::Write;

use super::{
    figures::Figure,
    plot::{drawing, text},
    programs::Program,
};

const STYLE: &str = include_str!("page.css");

/// The heading of the page.
const TITLE: &str = "Use of limited programs";

/// What the page is made of.
pub struct Page<'a> {
    /// How much it is about.
    pub subtitle: &'a str,
    /// The first table.
    pub answer: &'a Figure,
    /// What it is made of.
    pub programs: &'a [Program<'a>],
    /// What the log does not tell.
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

    /// One row for each program, and what follows from it.
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

/// Whether it needs the whole width, as tables of many columns do, or of sentences.
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
