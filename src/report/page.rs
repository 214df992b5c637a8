//! The page: one file without a script, without a font or a picture of anybody else's, that a phone, a
//! printer and a screen reader can show. What others chose is text there and never markup.

use std::fmt::Write;

use super::figure::Figure;
use crate::escape::visible;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(title: &str, subtitle: &str, figures: &[Figure]) -> String {
    let (title, subtitle) = (text(title), text(subtitle));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<p>{subtitle}</p>\n\
         </header>\n<nav aria-label=\"Figures\">\n<ul>\n"
    );
    for figure in figures {
        let _ = writeln!(page, "<li><a href=\"#{}\">{}</a></li>", text(&figure.id), text(&figure.title));
    }
    page.push_str("</ul>\n</nav>\n<main>\n");
    for figure in figures {
        add(&mut page, figure);
    }
    page.push_str("</main>\n<footer><p>Made by rungate report.</p></footer>\n</body>\n</html>\n");
    page
}

fn add(page: &mut String, figure: &Figure) {
    let (id, title, says) = (text(&figure.id), text(&figure.title), text(&figure.says));
    let _ = writeln!(
        page,
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n<p>{says}</p>"
    );
    if let Some(drawing) = &figure.drawing {
        // The words of the drawing are in the sentence and in the table.
        let named =
            drawing.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}: {says}\" "), 1);
        let _ = writeln!(page, "<figure>{named}</figure>");
        let _ = writeln!(page, "<details><summary>The numbers</summary>");
        table(page, figure);
        page.push_str("</details>\n");
    } else {
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
    for title in &figure.head {
        let _ = write!(page, "<th scope=\"col\">{}</th>", text(title));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &figure.rows {
        page.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let cell = text(cell);
            let is_number =
                cell.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '&');
            let class = if is_number { " class=\"number\"" } else { "" };
            let _ = match place {
                0 => write!(page, "<th scope=\"row\">{cell}</th>"),
                _ => write!(page, "<td{class}>{cell}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

/// Text in a page.
fn text(text: &str) -> String {
    let text = visible(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
