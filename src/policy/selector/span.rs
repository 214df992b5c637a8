//! Spans of time over several days: `Fri 18:00..Sun 20:00` in every week, `2026-11-20 18:00..2026-11-22
//! 20:00` once. The end is not part of it.

use jiff::{ToSpan, civil::DateTime};

use super::clock::{WindowProblem, minute_of_day, moment, parse_date, parse_day, parse_minute};

const MINUTES_OF_A_DAY: i32 = 24 * 60;

const MINUTES_OF_A_WEEK: i32 = 7 * MINUTES_OF_A_DAY;

/// From and until.
#[derive(Debug)]
pub(super) enum Span {
    /// In minutes of the week, from Monday; over its end where the second is not above the first.
    Week(i32, i32),
    Dates(DateTime, DateTime),
}

/// One end, as it is written.
enum End {
    Week(i32),
    Date(DateTime),
}

impl Span {
    /// Reads a span; none where the text is none, and no attempt at one.
    pub(super) fn parse(text: &str) -> Result<Option<Span>, WindowProblem> {
        if let Some((from, until)) = text.split_once("..") {
            return match (End::parse(from.trim())?, End::parse(until.trim())?) {
                (None, None) => Ok(None),
                (Some(from), Some(until)) => Span::between(&from, &until).map(Some),
                (None, Some(_)) | (Some(_), None) => Err(WindowProblem::SpanEnd),
            };
        }
        match spelled_with_a_dash(text) {
            Some((from, until)) => Err(WindowProblem::Write(format!("{from}..{until}"))),
            None => Ok(None),
        }
    }

    fn between(from: &End, until: &End) -> Result<Span, WindowProblem> {
        match (from, until) {
            (End::Week(from), End::Week(until)) if from == until => Err(WindowProblem::EmptySpan),
            (End::Week(from), End::Week(until)) => Ok(Span::Week(*from, *until)),
            (End::Date(from), End::Date(until)) if from == until => Err(WindowProblem::EmptySpan),
            (End::Date(from), End::Date(until)) if from > until => Err(WindowProblem::SpanBackwards),
            (End::Date(from), End::Date(until)) => Ok(Span::Dates(*from, *until)),
            (End::Week(_), End::Date(_)) | (End::Date(_), End::Week(_)) => Err(WindowProblem::SpanEnds),
        }
    }

    pub(super) fn contains(&self, time: DateTime) -> bool {
        match self {
            Span::Week(from, until) => {
                let minute = minute_of_week(time);
                if from < until {
                    (*from..*until).contains(&minute)
                } else {
                    minute >= *from || minute < *until
                }
            }
            Span::Dates(from, until) => (*from..*until).contains(&time),
        }
    }

    /// Where the span ends that this time lies in.
    pub(super) fn end(&self, time: DateTime) -> Option<DateTime> {
        match self {
            Span::Week(_, until) => {
                let left = (until - minute_of_week(time)).rem_euclid(MINUTES_OF_A_WEEK);
                let minute = moment(time.date(), minute_of_day(time))?;
                minute.checked_add(i64::from(left).minutes()).ok()
            }
            Span::Dates(_, until) => Some(*until),
        }
    }
}

impl End {
    /// Reads `Fri 18:00` or `2026-11-20 18:00`; none where it is a day without hours, or with hours from and
    /// until.
    fn parse(text: &str) -> Result<Option<End>, WindowProblem> {
        let Some((day, hours)) = text.split_once(char::is_whitespace) else { return Ok(None) };
        let hours = hours.trim();
        if hours.contains(['-', ',']) {
            return Ok(None);
        }
        let minute = parse_minute(hours)?;
        if day.starts_with(|first: char| first.is_ascii_digit()) {
            return moment(parse_date(day)?, minute).map(End::Date).ok_or(WindowProblem::Date).map(Some);
        }
        let days = i32::try_from(parse_day(day)?).unwrap_or(0);
        // The end of Sunday is the beginning of Monday.
        let minute = days * MINUTES_OF_A_DAY + i32::from(minute);
        Ok(Some(End::Week(minute.rem_euclid(MINUTES_OF_A_WEEK))))
    }
}

/// The ends of `Fri 18:00-Sun 20:00`, which would be a span with two dots.
fn spelled_with_a_dash(text: &str) -> Option<(&str, &str)> {
    let mut dashes = text.match_indices('-').map(|(at, _)| (text[..at].trim(), text[at + 1..].trim()));
    let is_end = |text: &str| matches!(End::parse(text), Ok(Some(_)));
    dashes.find(|(from, until)| is_end(from) && is_end(until))
}

fn minute_of_week(time: DateTime) -> i32 {
    let days = i32::from(time.weekday().to_monday_zero_offset());
    days * MINUTES_OF_A_DAY + i32::from(minute_of_day(time))
}

#[cfg(test)]
mod tests {
    use super::super::window::Window;

    #[track_caller]
    fn case(span: &str, time: &str, inside: bool) {
        let span = Window::parse(span).expect("a span");
        assert_eq!(span.contains(time.parse().expect("a time")), inside, "{time}");
    }

    #[track_caller]
    fn none(span: &str, problem: &str) {
        assert_eq!(Window::parse(span).expect_err("no span").to_string(), problem, "{span}");
    }

    // 2026-11-20 is a Friday.
    #[test]
    fn a_span_of_the_week_goes_from_its_first_minute_to_before_its_last() {
        let weekend = "Fri 18:00..Sun 20:00";
        case(weekend, "2026-11-20T17:59:59", false);
        case(weekend, "2026-11-20T18:00", true);
        case(weekend, "2026-11-21T03:00", true);
        case(weekend, "2026-11-22T19:59:59", true);
        case(weekend, "2026-11-22T20:00", false);
        case(weekend, "2026-11-27T18:00", true);
        case("sun 20:00 .. mon 06:00", "2026-11-22T20:00", true);
        case("Sun 20:00..Mon 06:00", "2026-11-23T05:59", true);
        case("Sun 20:00..Mon 06:00", "2026-11-23T06:00", false);
        case("Sat 00:00..Sun 24:00", "2026-11-22T23:59", true);
        case("Sat 00:00..Sun 24:00", "2026-11-23T00:00", false);
    }

    #[test]
    fn a_span_of_dates_comes_once() {
        let upgrade = "2026-11-20 18:00..2026-11-22 20:00";
        case(upgrade, "2026-11-20T17:59:59", false);
        case(upgrade, "2026-11-20T18:00", true);
        case(upgrade, "2026-11-22T19:59:59", true);
        case(upgrade, "2026-11-22T20:00", false);
        case(upgrade, "2026-11-27T19:00", false);
        // Days with the hours of each are something else.
        case("2026-11-20..2026-11-22 18:00-20:00", "2026-11-21T03:00", false);
    }

    #[test]
    fn what_is_no_span_says_why() {
        none("Fri 18:00-Sun 20:00", "write \"Fri 18:00..Sun 20:00\"");
        none("Fri 18:00 - Sun 20:00", "write \"Fri 18:00..Sun 20:00\"");
        none("2026-11-20 18:00-2026-11-22 20:00", "write \"2026-11-20 18:00..2026-11-22 20:00\"");
        none("Fri 18:00..Sun", "a span has hours at both ends: Fri 18:00..Sun 20:00");
        none("2026-11-20 18:00..2026-11-22", "a span has hours at both ends: Fri 18:00..Sun 20:00");
        none("2026-11-20..2026-11-22 20:00", "a span has hours at both ends: Fri 18:00..Sun 20:00");
        none("Fri 18:00..2026-11-22 20:00", "both ends of a span are days of the week, or both are dates");
        none("Fri 18:00..Fri 18:00", "the span ends where it begins");
        none("2026-11-22 20:00..2026-11-20 18:00", "the span ends before it begins");
        none("Mo 18:00..Sun 20:00", "days are written Mon, Mon-Fri or Sat,Sun");
        none("Fri..Sun", "days are written Mon, Mon-Fri or Sat,Sun");
        none("2026-02-30 18:00..2026-03-01 20:00", "dates are written 2026-12-24 or 2026-12-24..2027-01-01");
        none("Fri 18:00..Sun 25:00", "hours are written 08:00-18:00, up to 24:00");
    }
}
