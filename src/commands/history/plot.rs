//! `rungate history --plot`: the pictures of a report, small, in the terminal.

use crate::{
    escape::visible,
    output::figures::count,
    report::census::{Census, HOUR, Repository},
};

/// From nothing to all.
const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How wide a picture is.
const WIDTH: u64 = 60;

/// Use over time for each repository, and refusals over the week.
pub(super) fn plot(census: &Census) -> String {
    let mut text = String::new();
    let names = census.repositories.keys().map(|name| visible(name).chars().count()).max().unwrap_or(0);
    for (name, of) in &census.repositories {
        text.push_str(&line(name, names, of, census));
    }
    for (title, counts) in [("refused", &census.refused), ("waited", &census.waited)] {
        text.push_str(&week(title, counts));
    }
    text
}

fn line(name: &str, width: usize, of: &Repository, census: &Census) -> String {
    let (begin, end) = census.span.unwrap_or_default();
    let (first, last) = (begin / HOUR, end / HOUR);
    let step = ((last - first) / WIDTH + 1).max(1);
    let highest = of.limit().max(of.most()).max(1);
    let mut picture = String::new();
    for from in (first..=last).step_by(usize::try_from(step).unwrap_or(1)) {
        let most = of.hours.range(from..from + step).map(|(_, hour)| hour.most).max().unwrap_or(0);
        picture.push(step_of(most, highest));
    }
    let limit = if of.limit() > 0 { format!(" of {}", count(of.limit())) } else { String::new() };
    let refused =
        if of.cell.refused > 0 { format!(", {} refused", count(of.cell.refused)) } else { String::new() };
    format!("{:width$} |{picture}| most {}{limit}{refused}\n", visible(name), count(of.most()))
}

fn week(title: &str, counts: &[[u64; 24]; 7]) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let most = counts.iter().flatten().copied().max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let mut text = format!("\n{title:7} 00    06    12    18    \n");
    for (day, hours) in DAYS.iter().zip(counts) {
        let picture: String = hours.iter().map(|number| step_of(*number, most)).collect();
        text.push_str(&format!("{day:7} {picture} {}\n", count(hours.iter().sum())));
    }
    text
}

fn step_of(part: u64, all: u64) -> char {
    let step = (part * (STEPS.len() as u64 - 1)).div_ceil(all.max(1));
    STEPS[usize::try_from(step).unwrap_or(0).min(STEPS.len() - 1)]
}
