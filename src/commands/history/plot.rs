//! `rungate history --plot`: the pictures of a report, small, in the terminal.

use std::{
    fmt::Write as _,
    time::{Duration, UNIX_EPOCH},
};

use crate::{
    escape::visible,
    output::{clock::Clock, columns::width, figures::count},
    report::census::{Census, HOUR, Repository},
};

/// From nothing to all.
const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How wide a picture is, where there is room, and where there is none.
const WIDTHS: (usize, usize) = (60, 20);

/// Use over time for each repository, and refusals over the week, on so many columns.
pub(super) fn plot(census: &Census, clock: &Clock, columns: Option<u16>) -> String {
    let mut text = String::new();
    let rows: Vec<(String, &Repository, String)> =
        census.repositories.iter().map(|(name, of)| (visible(name), of, told(of))).collect();
    let names = rows.iter().map(|(name, ..)| width(name)).max().unwrap_or(0);
    let words = rows.iter().map(|(.., words)| width(words)).max().unwrap_or(0);
    let (most, least) = WIDTHS;
    let room = columns.map_or(most, |columns| usize::from(columns).saturating_sub(names + words + 4));
    let scale = Scale::of(census, room.clamp(least, most));
    for (name, of, words) in &rows {
        let gap = names - width(name);
        let _ = writeln!(text, "{name}{:gap$} |{}| {words}", "", scale.picture(of));
    }
    if !rows.is_empty() {
        let _ = writeln!(text, "{:names$}  {}", "", scale.axis(clock));
    }
    for (title, counts) in [("refused", &census.refused), ("waited", &census.waited)] {
        text.push_str(&week(title, counts));
    }
    text
}

/// What stands behind a picture.
fn told(of: &Repository) -> String {
    let limit = if of.limit() > 0 { format!(" of {}", count(of.limit())) } else { String::new() };
    let refused =
        if of.cell.refused > 0 { format!(", {} refused", count(of.cell.refused)) } else { String::new() };
    format!("most {}{limit}{refused}", count(of.most()))
}

/// From which hour to which, and how many of them a character stands for.
struct Scale {
    first: u64,
    last: u64,
    step: u64,
}

impl Scale {
    fn of(census: &Census, width: usize) -> Self {
        let (begin, end) = census.span.unwrap_or_default();
        let (first, last) = (begin / HOUR, end / HOUR);
        Self { first, last, step: (last - first) / (width as u64).max(1) + 1 }
    }

    fn picture(&self, of: &Repository) -> String {
        let highest = of.limit().max(of.most()).max(1);
        let steps = (self.first..=self.last).step_by(usize::try_from(self.step).unwrap_or(1));
        let most =
            |from| of.hours.range(from..from + self.step).map(|(_, hour)| hour.most).max().unwrap_or(0);
        steps.map(|from| step_of(most(from), highest)).collect()
    }

    /// When it begins and when it ends, below the two ends where that fits.
    fn axis(&self, clock: &Clock) -> String {
        let at = |hour: u64| clock.hour(UNIX_EPOCH + Duration::from_micros(hour * HOUR));
        let (begin, end) = (at(self.first), at(self.last));
        let all = usize::try_from((self.last - self.first) / self.step + 1).unwrap_or(0);
        let gap = all.saturating_sub(width(&begin) + width(&end)).max(1);
        format!("{begin}{:gap$}{end}, {} h each", "", self.step)
    }
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

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::policy::Hours;

    /// A month of one repository with this name.
    fn census(name: &str) -> Census {
        let mut census = Census::new(Hours::in_zone(TimeZone::UTC));
        let first = 1_767_225_600_000_000;
        census.span = Some((first, first + 30 * 24 * HOUR));
        let mut repository = Repository::default();
        repository.cell.refused = 273;
        census.repositories.insert(name.to_owned(), repository);
        census
    }

    #[test]
    fn a_picture_says_when_it_was_and_fits_the_terminal() {
        let clock = Clock::in_zone(TimeZone::UTC);
        let axis = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        let text = plot(&census("matlab"), &clock, None);
        assert_eq!(axis(&text), format!("{:8}2026-01-01 00:00{:24}2026-01-31 00:00, 13 h each", "", ""));
        for (columns, step) in [(120, 13), (80, 16), (60, 28)] {
            let text = plot(&census("mathematica"), &clock, Some(columns));
            assert!(axis(&text).ends_with(&format!(", {step} h each")), "{text}");
            let picture = text.lines().next().unwrap_or_default();
            assert!(width(picture) <= usize::from(columns), "{columns}: {text}");
        }
    }
}
