//! The drawings. Lines and areas are SVG that is stretched to the page; all words are text of the page beside
//! it, so that they are as large on a phone as elsewhere. Colours are variables of the page, and lines differ
//! in more than their colour.

use std::fmt::Write;

use super::figures::{Drawing, Use};
use crate::text::{escape::visible, figures::count};

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
    // In steps: what holds for an hour is as wide as an hour.
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
