//! Days, dates and minutes as `when` writes them, and what is wrong with a text that is none of them.

use std::fmt;

use jiff::{
    ToSpan,
    civil::{Date, DateTime, Time, Weekday},
};

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Why a text is no window.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WindowProblem {
    Empty,
    Day,
    Date,
    DatesBackwards,
    Hours,
    EmptyHours,
    /// An end of a span without hours.
    SpanEnd,
    /// One end is a day of the week, and the other a date.
    SpanEnds,
    EmptySpan,
    SpanBackwards,
    /// A span that is written so.
    Write(String),
}

impl fmt::Display for WindowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowProblem::Write(text) => return write!(f, "write \"{text}\""),
            WindowProblem::SpanEnd => "a span has hours at both ends: Fri 18:00..Sun 20:00",
            WindowProblem::SpanEnds => "both ends of a span are days of the week, or both are dates",
            WindowProblem::EmptySpan => "the span ends where it begins",
            WindowProblem::SpanBackwards => "the span ends before it begins",
            WindowProblem::Empty => "it names neither days nor hours",
            WindowProblem::Day => "days are written Mon, Mon-Fri or Sat,Sun",
            WindowProblem::Date => "dates are written 2026-12-24 or 2026-12-24..2027-01-01",
            WindowProblem::DatesBackwards => "the last date is before the first",
            WindowProblem::Hours => "hours are written 08:00-18:00, up to 24:00",
            WindowProblem::EmptyHours => "the hours are empty; a whole day is 00:00-24:00",
        })
    }
}

/// The number of a day, from Monday.
pub(super) fn parse_day(text: &str) -> Result<usize, WindowProblem> {
    DAYS.iter().position(|(name, _)| name.eq_ignore_ascii_case(text)).ok_or(WindowProblem::Day)
}

/// The number of a date's day, from Monday.
pub(super) fn number_of_day(day: Date) -> usize {
    DAYS.iter().position(|(_, weekday)| *weekday == day.weekday()).unwrap_or(0)
}

pub(super) fn parse_date(text: &str) -> Result<Date, WindowProblem> {
    match text.as_bytes() {
        [_, _, _, _, b'-', _, _, b'-', _, _] => text.parse().map_err(|_| WindowProblem::Date),
        _ => Err(WindowProblem::Date),
    }
}

pub(super) fn parse_minute(text: &str) -> Result<i16, WindowProblem> {
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        if digits_only && digits.contains(&text.len()) { text.parse::<i16>().ok() } else { None }
    };
    let (hour, minute) = text.split_once(':').ok_or(WindowProblem::Hours)?;
    let hour = number(hour, 1..=2).ok_or(WindowProblem::Hours)?;
    let minute = number(minute, 2..=2).filter(|minute| *minute < 60).ok_or(WindowProblem::Hours)?;
    let minutes = hour * 60 + minute;
    if minutes <= 24 * 60 { Ok(minutes) } else { Err(WindowProblem::Hours) }
}

pub(super) fn minute_of_day(time: DateTime) -> i16 {
    i16::from(time.hour()) * 60 + i16::from(time.minute())
}

/// A minute of a day; the last, 24:00, is the first of the next day.
pub(super) fn moment(day: Date, minute: i16) -> Option<DateTime> {
    day.to_datetime(Time::midnight()).checked_add(i64::from(minute).minutes()).ok()
}
